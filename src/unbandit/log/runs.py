"""Rows in order, cut where another demonstration begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.log.coding import Codes

__all__ = ["Runs", "in_memory", "starts_of", "turns_of"]

Integers = NDArray[np.int64]


class Runs(NamedTuple):
    """Hold rows in order, and where another demonstration begins.

    Attributes
    ----------
    codes
        The arm of every row.
    starts, who
        Where each run begins, and the end; the demonstration of each.
    """

    codes: Codes
    starts: Integers
    who: Integers

    def between(self, begin: int, end: int) -> Runs:
        """Return some of the rows, as runs of their own.

        Examples
        --------
        >>> part = Runs(np.arange(6), np.array([0, 2, 6]), np.array([7, 8])).between(1, 4)
        >>> part.starts.tolist(), part.who.tolist()
        ([0, 1, 3], [7, 8])
        """
        first = int(np.searchsorted(self.starts, begin, side="right")) - 1
        last = int(np.searchsorted(self.starts, end, side="left"))
        starts = np.clip(self.starts[first : last + 1], begin, end) - begin
        return Runs(self.codes[begin:end], starts, self.who[first:last])


def turns_of(column: pl.Series) -> tuple[Integers, pl.Series] | None:
    """Find the rows in which another value begins, or may do; None for what must be coded to tell.

    Returns
    -------
    starts, first
        These rows, and the end; and the value in each of them.

    Examples
    --------
    >>> starts, first = turns_of(pl.Series(["a", "a", "b"]))
    >>> starts.tolist(), first.to_list()
    ([0, 2, 3], ['a', 'b'])
    """
    if column.dtype.is_integer():
        parts = in_memory(column)
        found = [starts_of(part) for part in parts]
        values = np.concatenate([part[starts[:-1]] for part, starts in zip(parts, found, strict=True)])
        return _joined(found), pl.Series(values)
    if column.dtype != pl.String:
        return None
    from unbandit.kernels.tally import run_starts_of_pairs
    from unbandit.log.arrow_views import views_of

    with views_of(column) as chunks:  # equal views are equal texts; others are looked at as texts
        if chunks is None:
            return None
        found = [starts_of(views, run_starts_of_pairs) for views in chunks]
    starts = _joined(found)
    return starts, column.gather(starts[:-1])


def in_memory(column: pl.Series) -> list[NDArray[Any]]:
    """Return the pieces that a column of integers is kept in, without a copy."""
    return [part.to_numpy() for part in column.get_chunks()]


def _joined(found: list[Integers]) -> Integers:
    """Count rows on from piece to piece."""
    ends = np.cumsum([0, *(starts[-1] for starts in found)])
    parts = [starts[:-1] + end for starts, end in zip(found, ends, strict=False)]
    return np.concatenate([*parts, ends[-1:]])


def starts_of(values: NDArray[Any], kernel: Callable[..., int] | None = None) -> Integers:
    """Return the rows in which another value begins, the first too, and the end."""
    from unbandit.kernels.tally import run_starts

    room = np.empty(len(values) + 1, np.int64)
    return room[: (kernel or run_starts)(values, room) + 1].copy()
