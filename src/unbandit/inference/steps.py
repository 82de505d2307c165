"""A demonstration as the filters read it: steps, and where each arm's turn comes again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import InferenceError
from unbandit.kernels.particles import FAR, Record

__all__ = ["steps_of"]


def steps_of(
    actions: NDArray[np.int64], rewards: NDArray[np.float64], labels: tuple[str, ...], initial: int, batch: int
) -> Record:
    """Cut a demonstration of an index rule into steps: the opening pull by pull, then batch by batch.

    Raises
    ------
    InferenceError
        If no rule with such an opening and such batches makes this record; it names the round.
    """
    arms, opening = len(labels), initial * len(labels)
    check_opening(actions, labels, initial)
    starts = np.concatenate([np.arange(min(opening, actions.size)), np.arange(opening, actions.size, batch)])
    counts = np.diff(starts, append=actions.size)
    chosen = actions[starts].astype(np.int64)
    expected = np.repeat(chosen, counts)
    if not np.array_equal(expected, actions):
        at = int(np.flatnonzero(expected != actions)[0])
        raise InferenceError(
            f"round {at + 1}: a rule that decides every {batch} rounds from round {opening + 1} on would have stayed "
            f'with arm "{labels[expected[at]]}"; the record has "{labels[actions[at]]}". Check batch and initial.'
        )
    following, binding = np.full(starts.size, FAR), np.ones(starts.size, np.bool_)
    for arm in range(arms):
        own = np.flatnonzero(chosen == arm)
        decided = own[own >= opening]
        where = np.searchsorted(decided, own, side="right")
        later = where < decided.size
        following[own[later]] = starts[decided[where[later]]] + 1
        binding[own[own < opening][:-1]] = False
    ahead, rival, until = _stretches(chosen, counts, starts + 1, min(opening, starts.size))
    return Record(
        chosen, counts, starts + 1, following, min(opening, starts.size), binding, ahead, rival, until, rewards
    )


def _stretches(
    chosen: NDArray[np.int64], counts: NDArray[np.int64], rounds: NDArray[np.int64], opening: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find for each step of a stretch of one arm how many of its pulls are left, and who ends it when.

    The last step of a stretch has none left; a stretch to the end of the record is ended by nobody, and counts as none.
    """
    ends = np.flatnonzero(np.append(chosen[1:] != chosen[:-1], True))  # the last step of each stretch
    last = ends[np.searchsorted(ends, np.arange(chosen.size))]
    summed = np.cumsum(counts)
    ended = last + 1 < chosen.size
    following = np.where(ended, last + 1, 0)
    ahead = np.where(ended, summed[last] - summed, 0)
    ahead[:opening] = 0
    return ahead, chosen[following], rounds[following]


def check_opening(actions: NDArray[np.int64], labels: tuple[str, ...], initial: int) -> None:
    """Refuse a record whose first rounds do not pull every arm so many times, in any order."""
    opening = initial * len(labels)
    head = actions[:opening]
    seen = np.zeros(len(labels), np.int64)
    for at, arm in enumerate(head.tolist()):
        seen[arm] += 1
        if seen[arm] > initial:
            times = "once" if initial == 1 else f"{initial} times"
            raise InferenceError(
                f'round {at + 1}: the rule pulls every arm {times} first, and "{labels[arm]}" comes again before all '
                f"{len(labels)} have been. Another rule made this record, or it begins in mid-run."
            )
