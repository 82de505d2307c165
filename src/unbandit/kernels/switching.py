"""Read what a demonstration gives away: pull counts, and the counts at each arm's switching round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled

__all__ = ["count_pulls", "first_pulls", "switching_rounds"]

LANES = 8  # tables counted side by side, so that a run of one arm does not wait for its own last increment


@compiled
def count_pulls(actions: NDArray[Any], arms: int) -> NDArray[np.int64]:
    """Count how often each arm was pulled; an action outside 0 ... arms-1 is undefined."""
    tables = np.zeros((LANES, arms), np.int64)
    whole = actions.size // LANES * LANES
    for t in range(0, whole, LANES):
        for lane in range(LANES):
            tables[lane, np.uint64(actions[t + lane])] += 1
    for t in range(whole, actions.size):
        tables[0, np.uint64(actions[t])] += 1
    return tables.sum(axis=0)


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


@compiled
def switching_rounds(
    actions: NDArray[Any], pulls: NDArray[np.int64], best: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find each arm's switching round `tau_i`: its last pull that is followed by a pull of the best arm.

    Returns the rounds (from 1; 0 where there is none, and for the best arm), and the pull counts of the arm and of the
    best arm at that round, that pull included. Reads backwards, and no further than the last switching round found.
    """
    rounds = np.zeros(pulls.size, np.int64)
    own, of_best = pulls.copy(), np.zeros(pulls.size, np.int64)
    best_so_far, missing = pulls[best], np.count_nonzero(pulls) - 1
    for back in range(actions.size):
        t = actions.size - 1 - back
        arm = np.int64(actions[t])
        if arm == best:
            best_so_far -= 1
            if best_so_far == 0:
                break
        elif best_so_far == pulls[best]:
            own[arm] -= 1  # after the best arm's last pull: not followed by it
        elif rounds[arm] == 0:
            rounds[arm], of_best[arm] = t + 1, best_so_far
            missing -= 1
        if missing == 0:
            break
    for arm in range(pulls.size):
        if rounds[arm] == 0:
            own[arm] = 0
    return rounds, own, of_best
