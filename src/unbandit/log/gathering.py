"""Gather the tallies of demonstrations whose rows come piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.log.coding import Codes
from unbandit.log.runs import Runs

__all__ = ["MOST_PAIRS", "Gathering"]

Integers = NDArray[np.int64]

MOST_PAIRS = 2_000
"""Up to so many arms, the switching round of each against every other is kept of a demonstration being read."""


class Gathering:
    """Gather tallies run by run; rows and columns are added as demonstrations and arms turn up."""

    NAMES = ("pulls", "first", "last", "own", "of_best", "rounds")

    def __init__(self) -> None:
        self.grids = [np.zeros((1, 0), np.int64) for _ in self.NAMES]
        self.lengths, self.torn = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        self._open: int | None = None  # the demonstration whose rows the last piece ended with
        self._pairs: list[Integers] = []

    def add(self, runs: Runs, demonstrations: int, arms: int) -> None:
        """Add the next rows."""
        from unbandit.kernels.tally import tally_runs

        self._fit(demonstrations, arms)
        if self._open is not None and arms > MOST_PAIRS:  # too many to go on with
            self.torn[self._open], self._open = True, None
        codes, starts, who = runs
        first, last = 0, who.size - 1
        if self._open is not None:
            if who[0] == self._open:
                self._carry_on(codes[: starts[1]])
                first = 1
            if first <= last:
                self.close()
        if first < last:
            tally_runs(codes, starts[first : last + 1], who[first:last], self.lengths, self.torn, *self.grids)
        if first <= last and self.lengths[who[last]] == 0 and arms <= MOST_PAIRS:
            self._open, self._pairs = int(who[last]), [np.zeros((arms, arms), np.int64) for _ in range(3)]
            self._carry_on(codes[starts[last] :])
        elif first <= last:
            tally_runs(codes, starts[last:], who[last:], self.lengths, self.torn, *self.grids)

    def close(self) -> None:
        """End the demonstration that was being read, if there is one: its most-pulled arm is known now."""
        if self._open is None:
            return
        pulls, _, last, own, of_best, rounds = (grid[self._open] for grid in self.grids)
        best, arms = int(pulls.argmax()), self._pairs[0].shape[0]
        latest, counted, of_it = (pair[:, best] for pair in self._pairs)
        rounds[:arms], of_best[:arms] = latest, of_it
        own[:arms] = np.where(of_it > 0, counted, 0)
        rounds[best] = last[best]
        self._open, self._pairs = None, []

    def _carry_on(self, codes: Codes) -> None:
        from unbandit.kernels.tally import advance_switching

        d, arms = self._open, self.grids[0].shape[1]
        assert d is not None
        if self._pairs[0].shape[0] < arms:
            more = arms - self._pairs[0].shape[0]
            self._pairs = [np.pad(pair, ((0, more), (0, more))) for pair in self._pairs]
        advance_switching(codes, self.lengths[d], *(grid[d] for grid in self.grids[:3]), *self._pairs)
        self.lengths[d] += codes.size

    def _fit(self, demonstrations: int, arms: int) -> None:
        rows, columns = self.grids[0].shape
        if demonstrations <= rows and arms <= columns:
            return
        shape = (rows if demonstrations <= rows else max(demonstrations, 2 * rows), max(arms, columns))
        for at, grid in enumerate(self.grids):
            self.grids[at] = np.zeros(shape, np.int64)
            self.grids[at][:rows, :columns] = grid
        self.lengths, self.torn = (_padded(each, shape[0]) for each in (self.lengths, self.torn))


def _padded(array: NDArray[Any], size: int) -> NDArray[Any]:
    larger = np.zeros(size, array.dtype)
    larger[: array.size] = array
    return larger
