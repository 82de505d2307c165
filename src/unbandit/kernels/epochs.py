"""Read an elimination rule's log epoch by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled

__all__ = ["epochs_of_demonstrations", "read_epochs"]


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
    passed = np.zeros(arms, np.int64)
    following, preceding = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    return passed, _pass_turns(actions, order, following, preceding, passed)


@compiled
def epochs_of_demonstrations(
    actions: NDArray[Any], offsets: NDArray[np.int64], first: NDArray[np.int64],
    passed: NDArray[np.int64], broken: NDArray[np.int64], broken_arm: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill in what `read_epochs` finds of each demonstration, and the arm of the round that is broken.

    `first` has one row a demonstration: the round of each arm's first pull, by which the first epoch is ordered.
    """
    arms = first.shape[1]
    following, preceding = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    for which in range(offsets.size - 1):
        demonstration = actions[offsets[which] : offsets[which + 1]]
        passed[which] = 0
        broken[which] = broken_arm[which] = 0
        if demonstration.size == 0:
            continue
        order = np.argsort(first[which])
        order = order[np.count_nonzero(first[which] == 0) :]
        broken[which] = _pass_turns(demonstration, order, following, preceding, passed[which])
        if broken[which] > 0:
            broken_arm[which] = demonstration[broken[which] - 1]


@compiled
def _pass_turns(
    actions: NDArray[Any], order: NDArray[np.int64], following: NDArray[np.int64], preceding: NDArray[np.int64],
    passed: NDArray[np.int64],
) -> int:  # fmt: skip
    """Go round the ring of arms, and take out those that are passed over; return the first round that breaks it."""
    broken = 0
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
    return broken
