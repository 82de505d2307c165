"""Read what a demonstration gives away: pull counts, and the counts at each arm's switching round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled

__all__ = ["first_pulls", "pulls_and_last", "switching_counts_of_runs", "switching_rounds"]

LANES = 8  # tables counted side by side, so that a run of one arm does not wait for its own last increment


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
def first_pulls(actions: NDArray[Any], pulls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the round (from 1) of each arm's first pull, 0 for an arm never pulled; looks no further than needed."""
    first = np.zeros(pulls.size, np.int64)
    missing = np.count_nonzero(pulls)
    for t in range(actions.size):
        if missing == 0:
            break
        arm = np.uint64(actions[t])
        if first[arm] == 0:
            first[arm] = t + 1
            missing -= 1
    return first


def switching_rounds(
    actions: NDArray[Any], pulls: NDArray[np.int64], last: NDArray[np.int64], best: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find each arm's switching round `tau_i`: its last pull that is followed by a pull of the best arm.

    Parameters
    ----------
    actions
        One demonstration.
    pulls, last
        Each arm's pulls, and the round of its last.
    best
        The most-pulled arm.

    Returns
    -------
    rounds, own, of_best
        The switching rounds (from 1; 0 where there is none, and for the best arm), and the pull counts of the arm and
        of the best arm at that round, that pull included; 0 where the best arm had not been pulled by then.
    """
    rounds, own = _last_before_best(actions, pulls, last, best)
    of_best = _pulls_of_best(actions, rounds, np.argsort(-rounds), pulls[best], best)
    return rounds, np.where(of_best > 0, own, 0), of_best


@compiled
def _last_before_best(
    actions: NDArray[Any], pulls: NDArray[np.int64], last: NDArray[np.int64], best: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find each arm's last pull before the best arm's last, and its pulls up to there."""
    rounds, own = last.copy(), pulls.copy()
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
    return rounds, own


@compiled
def _pulls_of_best(
    actions: NDArray[Any], rounds: NDArray[np.int64], latest_first: NDArray[np.int64], total: int, best: int
) -> NDArray[np.int64]:
    """Count the best arm's pulls up to each of some rounds, from the end backwards; 0 up to round 0."""
    counts = np.zeros(rounds.size, np.int64)
    after, at = 0, actions.size
    for arm in latest_first:
        if rounds[arm] == 0:
            break
        for t in range(rounds[arm], at):
            after += 1 if actions[t] == best else 0
        at = rounds[arm]
        counts[arm] = total - after
    return counts


@compiled
def switching_counts_of_runs(
    block: NDArray[Any], pulls: NDArray[np.int64], last: NDArray[np.int64],
    own_out: NDArray[np.int64], of_best_out: NDArray[np.int64], rounds_out: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill what `switching_rounds` finds for each run of a block (runs x horizon), read once from front to back.

    Of the most-pulled arm, `rounds_out` has the round of its last pull.
    """
    for run in range(block.shape[0]):
        best = 0
        for arm in range(pulls.shape[1]):
            best = arm if pulls[run, arm] > pulls[run, best] else best
        rounds, own = _last_before_best(block[run], pulls[run], last[run], best)
        of_best_out[run] = 0
        best_so_far = 0
        for t in range(block.shape[1]):
            arm = np.uint64(block[run, t])
            if arm == np.uint64(best):
                best_so_far += 1
            elif rounds[arm] == t + 1:
                of_best_out[run, arm] = best_so_far
        for arm in range(pulls.shape[1]):
            own_out[run, arm] = own[arm] if of_best_out[run, arm] > 0 else 0
            rounds_out[run, arm] = last[run, best] if arm == best else rounds[arm]
