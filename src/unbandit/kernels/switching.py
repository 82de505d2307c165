"""Read what a demonstration gives away: pull counts, and the counts at each arm's switching round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled

__all__ = ["first_pulls", "last_before_best", "pulls_and_last", "switching_counts"]

LANES = 8  # tables counted side by side, so that a run of one arm does not wait for its own last increment
FEW_ARMS = 32  # up to so many are sorted in place


@compiled
def pulls_and_last(
    actions: NDArray[Any], offsets: NDArray[np.int64], arms: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count each demonstration's pulls, and find the round (from 1; 0 for none) of each arm's last.

    Demonstration `d` is `actions[offsets[d] : offsets[d + 1]]`. Returns two arrays of (demonstrations, arms + 1): the
    last column is for actions outside 0 ... arms - 1, of which there should be none.
    """
    demonstrations = offsets.size - 1
    pulls = np.zeros((demonstrations, arms + 1), np.int64)
    last = np.zeros((demonstrations, arms + 1), np.int64)
    tables = np.zeros((LANES, arms + 1), np.int64)
    outside = np.uint64(arms)
    for which in range(demonstrations):
        start, stop = offsets[which], offsets[which + 1]
        latest = last[which]
        whole = start + (stop - start) // LANES * LANES
        if whole > start:
            tables[:] = 0
            for t in range(start, whole, LANES):
                for lane in range(LANES):
                    arm = min(np.uint64(actions[t + lane]), outside)
                    tables[lane, arm] += 1
                    latest[arm] = t + lane
            for arm in range(arms + 1):
                for lane in range(LANES):
                    pulls[which, arm] += tables[lane, arm]
                latest[arm] += 1 - start if pulls[which, arm] > 0 else 0
        for t in range(whole, stop):
            arm = min(np.uint64(actions[t]), outside)
            pulls[which, arm] += 1
            latest[arm] = t + 1 - start
    return pulls, last


@compiled
def first_pulls(
    actions: NDArray[Any], offsets: NDArray[np.int64], pulls: NDArray[np.int64], first: NDArray[np.int64]
) -> None:
    """Fill in the round (from 1) of each arm's first pull, 0 for an arm never pulled; looks no further than needed."""
    for which in range(offsets.size - 1):
        earliest, missing = first[which], 0
        for arm in range(pulls.shape[1]):
            earliest[arm] = 0
            missing += 1 if pulls[which, arm] > 0 else 0
        t = offsets[which]
        while missing > 0:
            arm = np.uint64(actions[t])
            t += 1
            if earliest[arm] == 0:
                earliest[arm] = t - offsets[which]
                missing -= 1


@compiled
def switching_counts(
    actions: NDArray[Any], offsets: NDArray[np.int64], pulls: NDArray[np.int64], last: NDArray[np.int64],
    own: NDArray[np.int64], of_best: NDArray[np.int64], rounds: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find each arm's switching round `tau_i`, its last pull that is followed by one of the most-pulled arm.

    All arrays but the first two have one row a demonstration. `pulls` has how often each arm was pulled, `last` the
    round of its last pull. Filled in are:

    rounds
        The switching rounds (from 1), 0 where there is none; of the most-pulled arm the round of its last pull.
    own, of_best
        The pulls of the arm and of the most-pulled one at that round, that pull included; 0 where the latter had not
        been pulled by then, and of that arm itself.
    """
    arms = pulls.shape[1]
    order = np.empty(arms, np.int64)
    for which in range(offsets.size - 1):
        demonstration = actions[offsets[which] : offsets[which + 1]]
        best = 0
        for arm in range(arms):
            best = arm if pulls[which, arm] > pulls[which, best] else best
        last_before_best(demonstration, pulls[which], last[which], best, rounds[which], own[which])
        of_best[which] = 0
        if pulls[which, best] > 0:
            _latest_first(rounds[which], order)
            _pulls_of_best(demonstration, rounds[which], order, pulls[which, best], last[which, best], of_best[which])
        for arm in range(arms):
            own[which, arm] = own[which, arm] if of_best[which, arm] > 0 else 0
        rounds[which, best] = last[which, best]


@compiled
def last_before_best(
    actions: NDArray[Any], pulls: NDArray[np.int64], last: NDArray[np.int64], best: int,
    rounds: NDArray[np.int64], own: NDArray[np.int64],
) -> None:  # fmt: skip
    """Find each arm's last pull before the best arm's last, and its pulls up to there; of the best arm itself, 0."""
    for arm in range(pulls.size):
        rounds[arm], own[arm] = last[arm], pulls[arm]
    for t in range(last[best], actions.size):  # what comes after is not followed by the best arm
        rounds[np.uint64(actions[t])] = 0
        own[np.uint64(actions[t])] -= 1
    missing = 0
    for arm in range(pulls.size):
        missing += 1 if last[arm] > last[best] and own[arm] > 0 else 0
    rounds[best], own[best] = -1, 0
    t = last[best] - 1
    while missing > 0:  # go back for the arms that were pulled there
        t -= 1
        if rounds[np.uint64(actions[t])] == 0:
            rounds[np.uint64(actions[t])] = t + 1
            missing -= 1
    rounds[best] = 0


@compiled
def _latest_first(rounds: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """Sort arms by their rounds, the latest first."""
    if rounds.size > FEW_ARMS:
        order[:] = np.argsort(-rounds)
        return
    for arm in range(rounds.size):
        at = arm
        while at > 0 and rounds[order[at - 1]] < rounds[arm]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = arm


@compiled
def _pulls_of_best(
    actions: NDArray[Any], rounds: NDArray[np.int64], latest_first: NDArray[np.int64], total: int, final: int,
    counts: NDArray[np.int64],
) -> None:  # fmt: skip
    """Count the best arm's pulls, of which the last is in round `final`, up to each of some rounds, from the end."""
    best = actions[final - 1]  # of the type of the others, so that many are compared at once
    after, at = 0, actions.size
    for arm in latest_first:
        if rounds[arm] == 0:
            break
        for t in range(rounds[arm], at):
            after += 1 if actions[t] == best else 0
        at = rounds[arm]
        counts[arm] = total - after
