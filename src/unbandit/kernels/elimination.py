"""Simulate successive elimination: pull every active arm once an epoch, then drop those that are clearly worse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import REWARDS, Bandit, inverse_of
from unbandit.kernels.compiling import compiled
from unbandit.kernels.formula import index_value
from unbandit.kernels.scalar import philox, reward_from_word

__all__ = ["eliminate"]

ONE = np.uint64(1)


@compiled
def eliminate(bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ...

    At the end of epoch `e` an active arm goes if its sample mean is at most the largest one less twice the width. Each
    block of random bits serves two epochs.
    """
    arms, (runs, horizon) = bandit.means.size, actions.shape
    totals, spare, active = np.empty(arms), np.empty(arms), np.empty(arms, np.int64)
    for run in range(runs):
        name = np.uint64(first_run + run)
        for arm in range(arms):
            totals[arm], active[arm] = 0.0, arm
        left, t, epoch = arms, 0, 0
        while left > 1 and t + left <= horizon:
            epoch += 1
            inverse = inverse_of(bandit.inverse, np.uint64(epoch))
            width = index_value(parameters, 0.0, np.uint64(epoch), ONE)  # of a mean of 0: the width alone
            largest = -np.inf
            for position in range(left):
                arm = active[position]
                actions[run, t + position] = arm
                if epoch & 1:
                    first, second = philox(np.uint64(epoch) >> ONE, np.uint64(arm), name, REWARDS, *bandit.key)
                    reward = reward_from_word(first, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)
                    spare[arm] = reward_from_word(
                        second, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table
                    )
                else:
                    reward = spare[arm]
                totals[arm] += reward
                largest = max(largest, totals[arm] * inverse)
            t += left
            kept = 0
            for position in range(left):
                arm = active[position]
                active[kept] = arm
                if totals[arm] * inverse > largest - 2 * width:
                    kept += 1
            left = kept
        for later in range(t, horizon):  # one arm left, or an epoch cut short, which makes no test
            actions[run, later] = active[(later - t) % left]
