"""Read a demonstration's switching rounds backwards, no further than needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined

__all__ = ["find_switches"]

ZERO, ONE = np.uint64(0), np.uint64(1)


@inlined
def find_switches(
    actions: NDArray[Any], pulls: NDArray[Any], best: int, own: NDArray[Any], of_best: NDArray[Any],
    rounds: NDArray[Any],
) -> None:  # fmt: skip
    """Fill what `switching.switching_rounds` finds, of the best arm the round of its last pull.

    `pulls` has the arms' pull counts; the last three arrays, one place an arm, are filled.
    """
    missing = -1
    for arm in range(pulls.size):
        own[arm], of_best[arm], rounds[arm] = pulls[arm], 0, 0
        missing += 1 if pulls[arm] > 0 else 0
    few, found = pulls.size <= 64, ZERO  # of few arms, those that are found are kept as bits of one number
    most, after, t = pulls[best], 0, actions.size
    while missing > 0 or after == 0:
        # four at a time, so that reading one does not wait for what follows from another
        for pulled in (actions[t - 1], actions[max(t - 2, 0)], actions[max(t - 3, 0)], actions[max(t - 4, 0)]):
            if missing > 0 or after == 0:
                t -= 1
                arm = np.int64(pulled)
                if arm == best:
                    rounds[best] = t + 1 if after == 0 else rounds[best]
                    after += 1
                elif after == 0:  # not followed by the best arm
                    own[arm] -= 1
                    missing -= 1 if own[arm] == 0 else 0
                elif ((found >> np.uint64(arm)) & ONE) == ZERO if few else rounds[arm] == 0:
                    rounds[arm], of_best[arm] = t + 1, most - after
                    found |= ONE << np.uint64(arm & 63)
                    missing -= 1
    for arm in range(pulls.size):
        own[arm] = own[arm] if of_best[arm] > 0 else 0
