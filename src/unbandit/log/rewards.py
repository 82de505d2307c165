"""Rewards that a log happens to hold: a number where one is known, a blank where none is."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice, option
from unbandit.log.labels import Refuse, is_missing_word

Rewards = NDArray[np.float64]  # one number per round, NaN where it is not known

_TRUTHS = {"true": 1.0, "false": 0.0}


class RewardColumn:
    """Column of rewards, read batch by batch; blanks, NaN and words for a missing value are rewards not known.

    Where the user did not say that the column holds the rewards (`named`), it is ignored if it holds no number.
    """

    def __init__(self, name: str, *, named: bool) -> None:
        self.name, self._named = name, named
        self._known = 0
        self._wrong: LogError | None = None
        self._batches: list[Rewards] = []

    def read(self, refuse: Refuse, column: pl.Series) -> None:
        """Read the next rows; refuse a cell that is no number."""
        values = _numbers(column)
        if values is None:
            text = f"expected numbers for reward; got a column of type {column.dtype}."
            remedy = f'Name another column than "{self.name}" with {option("columns", {"reward": "NAME"})}, or none '
            remedy += f"with {option('columns', {'reward': ''})}."
            self._wrong = self._wrong or refuse(text, column=self.name, remedy=remedy)
            values = np.full(len(column), np.nan)
        wrong = np.isinf(values)
        if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
            values = values.copy()
            for row, word in _words(column, values).items():
                values[row] = _TRUTHS.get(word.lower(), np.nan)
                wrong[row] = word.lower() not in _TRUTHS
        if wrong.any() and self._wrong is None:
            row = int(np.argmax(wrong))
            value = column[row]
            got = f'"{value}"' if isinstance(value, str) else str(value)
            text = f"expected a number for reward, or a blank where it is not known; got {got}."
            ignoring = f"ignore the whole column with {option('columns', {'reward': ''})}."
            remedy = f"Correct it, leave the cell blank, or {ignoring}"
            self._wrong = refuse(text, row=row + 1, column=self.name, value=value, remedy=remedy)
        self._known += int(np.isfinite(values).sum())
        if self._wrong is not None and (self._named or self._known):
            raise self._wrong
        self._batches.append(values)

    def values(self) -> Rewards | None:
        """Return all rewards; None where none is known."""
        return np.concatenate(self._batches) if self._known and self._wrong is None else None

    def notice(self) -> Notice:
        """Say how many rewards were read, and what uses them."""
        if self.values() is None:
            return Notice("reading", f'column "{self.name}" is ignored: it holds no rewards that are numbers.')
        total = sum(values.size for values in self._batches)
        held = f'column "{self.name}" holds {self._known:,} of {total:,} rewards'
        text = f"{held}: only {option('method', 'posterior')} uses them."
        if not self._named and self.name.strip() != "reward":
            text += f" If it holds something else, say so with {option('columns', {'reward': ''})}."
        return Notice("reading", text, count=self._known)


def _numbers(column: pl.Series) -> Rewards | None:
    """Return the cells as numbers, NaN where they are none; None for a type that holds no numbers."""
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum):
        column, kind = column.cast(pl.String), pl.String()
    if kind == pl.String:
        column = column.str.strip_chars()
    elif not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
        return None
    return column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def _words(column: pl.Series, values: Rewards) -> dict[int, str]:
    """Return the cells of text that are neither numbers nor blanks, by row."""
    rows = np.flatnonzero(np.isnan(values) & column.is_not_null().to_numpy())
    cells = column.cast(pl.String).gather(rows).str.strip_chars()
    plain = {word: not word or is_missing_word(word) or word.lower().lstrip("+-") == "nan" for word in cells.unique()}
    return {int(row): word for row, word in zip(rows, cells, strict=True) if not plain[word]}
