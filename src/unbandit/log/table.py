"""What every source of a log looks like to the code that checks it: named columns, and where a row stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import polars as pl

from unbandit.errors import LogError

__all__ = ["ColumnTable", "Table"]


class Table(ABC):
    """A table whose cells are not read before the columns are chosen.

    Attributes
    ----------
    names
        Its columns, as written in it.
    path
        What to call it in a message; None for a table that never was a file.
    """

    names: list[str]
    path: str | None

    @abstractmethod
    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Read the columns at these positions."""

    def head(self, positions: Sequence[int], count: int) -> list[pl.Series]:
        """Read the first rows of columns, and no more than that where the source allows; nothing is checked."""
        return [column.head(count) for column in self.take(positions)]

    def line(self, row: int) -> int | None:
        """Return the line of a text file that a row (from 1) begins in."""
        return None

    def refuse(
        self, message: str, *, row: int | None = None, column: str | None = None, value: object = None
    ) -> LogError:
        """Make the error that names this file and the place in it."""
        line = None if row is None else self.line(row)
        return LogError(message, path=self.path, row=row, line=line, column=column, value=value)


class ColumnTable(Table):
    """A sequence of choices, looked at as a table with one column.

    Examples
    --------
    >>> str(ColumnTable(pl.Series([1, 2])).refuse("expected an arm.", row=2))
    'row 2: expected an arm.'
    """

    def __init__(self, column: pl.Series) -> None:
        self.path, self.names, self._column = None, ["arm"], column

    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Give the column."""
        return [self._column for _ in positions]
