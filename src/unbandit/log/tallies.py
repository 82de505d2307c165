"""What closed forms read of demonstrations, whoever did the reading: counts, and the rounds at which things changed.

A log in memory is read by `ActionLog.tallied`; one too large for it in streaming passes; one that still grows, a few
rounds at a time. All three give these arrays, so an estimator does not know which it was.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Need", "Tallies"]

Need = Literal["counts", "switching", "epochs"]
"""How much is read: pulls with the first and last round of each; besides, switching rounds; or instead, epochs."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tallies:
    """Hold what was read: arrays of (demonstrations, arms), and of what was not asked for, None.

    Attributes
    ----------
    pulls
        `n_i`.
    first, last
        The round (from 1; 0 for none) of each arm's first pull, and of its last.
    own, of_best, rounds
        At each arm's switching round: its own pulls, those of the most-pulled arm (the first of several), both 0 where
        the latter had not been pulled by then; and the round itself, 0 where there is none. The most-pulled arm itself
        has no pulls there (0), and for the round that of its last pull.
    passed
        The round in which it showed that an elimination rule's arm was gone: its turn came and another was pulled;
        0 for an arm still active at the end.
    broken, broken_arm
        For each demonstration the first round whose arm had been passed over before, 0 if there is none, and that arm
        (0 if there is none).
    """

    pulls: Counts
    first: Counts
    last: Counts
    own: Counts | None = None
    of_best: Counts | None = None
    rounds: Counts | None = None
    passed: Counts | None = None
    broken: Counts | None = None
    broken_arm: Counts | None = None

    def row(self, which: int) -> Tallies:
        """Return what was read of one demonstration, one place an arm."""
        return self._at(which)

    def part(self, start: int, stop: int) -> Tallies:
        """Return what was read of some demonstrations, as views.

        Examples
        --------
        >>> rounds = np.array([[1, 2], [3, 4]])
        >>> Tallies(rounds, rounds, rounds).part(1, 2).pulls.tolist()
        [[3, 4]]
        """
        return self._at(slice(start, stop))

    def _at(self, places: int | slice) -> Tallies:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: array[places] for name, array in named.items() if array is not None})

    @property
    def counted(self) -> tuple[Counts, Counts, Counts]:
        """Return `pulls`, `first` and `last`, which are always there."""
        return self.pulls, self.first, self.last

    @property
    def at_switching(self) -> tuple[Counts, Counts, Counts]:
        """Return `own`, `of_best` and `rounds`, which must have been asked for."""
        assert self.own is not None
        assert self.of_best is not None
        assert self.rounds is not None
        return self.own, self.of_best, self.rounds

    @property
    def turns(self) -> tuple[Counts, Counts, Counts]:
        """Return `passed`, `broken` and `broken_arm`, which must have been asked for."""
        assert self.passed is not None
        assert self.broken is not None
        assert self.broken_arm is not None
        return self.passed, self.broken, self.broken_arm
