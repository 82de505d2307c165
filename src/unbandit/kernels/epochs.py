"""Read an elimination rule's log epoch by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled

__all__ = ["read_epochs"]


@compiled
def read_epochs(actions: NDArray[Any], order: NDArray[np.int64], arms: int) -> tuple[NDArray[np.int64], int]:
    """Tell in which round it showed that an arm was gone: its turn came and another arm was pulled.

    Parameters
    ----------
    actions
        Arms, round by round.
    order
        The arms that were pulled, in the order of the first epoch.
    arms
        How many there are.

    Returns
    -------
    passed
        For each arm the round (from 1) in which its turn visibly passed; 0 for an arm still active at the end.
    broken
        The first round whose arm had been passed over before, so that no elimination rule explains it; 0 if none.
    """
    passed, broken = np.zeros(arms, np.int64), 0
    following, preceding = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    for at in range(order.size):
        following[order[at]] = order[(at + 1) % order.size]
        preceding[order[at]] = order[at - 1]
    due = order[0]
    for t in range(actions.size):
        arm = np.int64(actions[t])
        if passed[arm] > 0:
            broken = t + 1 if broken == 0 else broken
            continue
        while due != arm:  # the arms between are gone: take them out of the ring
            passed[due] = t + 1
            following[preceding[due]], preceding[following[due]] = following[due], preceding[due]
            due = following[due]
        due = following[arm]
    return passed, broken
