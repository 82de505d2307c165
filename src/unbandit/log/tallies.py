"""What closed forms read of demonstrations, whoever did the reading: counts, and the rounds at which things changed.

A log in memory is read by `ActionLog.tallied`; one too large for it in streaming passes; one that still grows, a few
rounds at a time. All three give these arrays, so an estimator does not know which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import in_threads, threads
from unbandit.errors import Notice, ParameterError
from unbandit.log.labels import Codes
from unbandit.log.rewards import Rewards

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


class Record(Protocol):
    """Stand for demonstrations that can be counted, whether or not their rounds can be looked at one by one."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the label of every arm."""

    @property
    def demonstrations(self) -> Sequence[str]:
        """Return the name of each demonstration."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of rounds of each."""

    @property
    def ordered(self) -> bool:
        """Tell whether the rounds are known, or only the counts."""

    @property
    def reading(self) -> tuple[Notice, ...]:
        """Return what the user should know about the reading."""

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Return how often each arm was pulled: (demonstrations, arms)."""

    @property
    def rewards(self) -> Rewards | None:
        """Return the rewards that are known; None, as a rule."""

    def __len__(self) -> int:
        """Return the number of demonstrations."""

    def tallied(self, need: Need) -> Tallies:
        """Read what is needed, once: the answer is kept."""


def is_record(given: Any) -> TypeGuard[Record]:
    """Tell whether something is a record, without reading it.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> is_record(ActionLog.from_actions("AB")), is_record(["A", "B"])
    (True, False)
    """
    return callable(getattr(type(given), "tallied", None))


BLOCK = 1 << 18
"""Rounds of a block: so few that they are still in a core's own memory when they are read for the second time."""

MOST_ARMS = 15
"""So many arms, at most, are read by `kernels.packed`."""


def tally(actions: Codes, offsets: NDArray[np.int64], arms: int, need: Need, counted: Tallies | None = None) -> Tallies:
    """Read demonstrations, one after the other in `actions`; what was `counted` before is not counted again.

    Examples
    --------
    >>> found = tally(np.array([0, 1, 0, 0]), np.array([0, 4]), 2, "switching")
    >>> found.pulls.tolist(), found.first.tolist(), found.own.tolist(), found.of_best.tolist()
    ([[3, 1]], [[1, 2]], [[0, 1]], [[0, 1]])
    """
    shape = (offsets.size - 1, arms)
    found = _room(shape) if counted is None else Tallies(counted.pulls, counted.first, counted.last)
    if need == "switching":
        found = replace(found, **{name: np.empty(shape, np.int64) for name in ("own", "of_best", "rounds")})
    elif need == "epochs":
        single = {name: np.empty(shape[0], np.int64) for name in ("broken", "broken_arm")}
        found = replace(found, passed=np.empty(shape, np.int64), **single)

    def fill(start: int, stop: int) -> bool:
        part, ends = found.part(start, stop), offsets[start : stop + 1] - offsets[start]
        block = actions[offsets[start] : offsets[stop]]
        if counted is None and block.dtype == np.uint8 and arms <= MOST_ARMS:
            return _few_arms(block, ends, part, need)
        if counted is None and not _count(block, ends, part):
            return False
        _read(block, ends, part, need)
        return True

    if not all(in_threads(fill, _blocks(offsets), threads())):
        raise ParameterError(
            f"expected codes from 0 to {arms - 1}, one for each arm; got others. "
            "Use ActionLog.from_actions for labels, and do not change an array that a log was made of.",
            parameter="actions",
        )
    return found


def _room(shape: tuple[int, int]) -> Tallies:
    return Tallies(*(np.empty(shape, np.int64) for _ in range(3)))


def _blocks(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut demonstrations into blocks of about as many rounds; a long one is a block of its own."""
    count, total = offsets.size - 1, int(offsets[-1])
    cuts = np.searchsorted(offsets, np.arange(BLOCK, total, BLOCK), side="left")
    return list(pairwise(np.unique(np.concatenate(([0], cuts, [count]))).tolist()))


def _few_arms(block: Codes, ends: NDArray[np.int64], part: Tallies, need: Need) -> bool:
    """Count and, but for epochs, read in one go; False if there are codes of no arm."""
    from unbandit.kernels.tally import read_few_arms

    at_switching = part.at_switching if need == "switching" else (np.empty((0, 0), np.int64),) * 3
    if not read_few_arms(block.view(np.uint8), ends, part.pulls, part.first, part.last, *at_switching):
        return False
    if need == "epochs":
        _read(block, ends, part, need)
    return True


def _count(block: Codes, ends: NDArray[np.int64], part: Tallies) -> bool:
    """Count pulls, and find the first and last round of each arm; False if there are codes of no arm."""
    from unbandit.kernels.tally import first_pulls, pulls_and_last

    arms = part.pulls.shape[1]
    pulls, last = pulls_and_last(block, ends, arms)
    if pulls[:, arms].any():
        return False
    part.pulls[:], part.last[:] = pulls[:, :arms], last[:, :arms]
    first_pulls(block, ends, part.pulls, part.first)
    return True


def _read(block: Codes, ends: NDArray[np.int64], part: Tallies, need: Need) -> None:
    """Read what is needed beside counts."""
    pulls, first, last = (_fixed(array) for array in (part.pulls, part.first, part.last))
    if need == "switching":
        from unbandit.kernels.tally import switching_counts

        switching_counts(block, ends, pulls, last, *part.at_switching)
    elif need == "epochs":
        from unbandit.kernels.tally import epochs_of_demonstrations

        epochs_of_demonstrations(block, ends, first, *part.turns)


def _fixed(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a view that cannot be written to, as counts read before are: kernels are compiled for one kind only."""
    view = array.view()
    view.setflags(write=False)
    return view
