"""Tally demonstrations in memory, a block of them after the other, on threads."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.log.blocks import in_threads
from unbandit.log.coding import Codes
from unbandit.log.tallies import Need, Tallies

__all__ = ["tally"]

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

    if not all(in_threads(fill, _blocks(offsets))):
        raise ParameterError(
            f"actions: expected codes from 0 to {arms - 1}, one for each arm; got others. "
            "Use ActionLog.from_actions for labels, and do not change an array that a log was made of."
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
    from unbandit.kernels.packed import read_few_arms

    at_switching = part.at_switching if need == "switching" else (np.empty((0, 0), np.int64),) * 3
    if not read_few_arms(block.view(np.uint8), ends, part.pulls, part.first, part.last, *at_switching):
        return False
    if need == "epochs":
        _read(block, ends, part, need)
    return True


def _count(block: Codes, ends: NDArray[np.int64], part: Tallies) -> bool:
    """Count pulls, and find the first and last round of each arm; False if there are codes of no arm."""
    from unbandit.kernels.switching import first_pulls, pulls_and_last

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
        from unbandit.kernels.switching import switching_counts

        switching_counts(block, ends, pulls, last, *part.at_switching)
    elif need == "epochs":
        from unbandit.kernels.epochs import epochs_of_demonstrations

        epochs_of_demonstrations(block, ends, first, *part.turns)


def _fixed(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a view that cannot be written to, as counts read before are: kernels are compiled for one kind only."""
    view = array.view()
    view.setflags(write=False)
    return view
