"""Simulate successive elimination: pull every active arm once an epoch, then drop those that are clearly worse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import REWARDS, Bandit, arrange, inverse_of, reward_from_word
from unbandit.kernels.compile import compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.rng import philox

ONE = np.uint64(1)


@inlined
def _epoch(
    bandit: Bandit, parameters: Any, name: np.uint64, epoch: int, left: int, active: NDArray[np.int64],
    totals: NDArray[np.float64], spare: NDArray[np.float64], ahead: NDArray[np.int64],
) -> int:  # fmt: skip
    """Pull the first `left` of the active arms once each, and keep those that pass the test; return how many.

    An arm goes if its sample mean is at most the largest one less twice the width; `ahead` then has how many of the
    arms that stay stand before it. The first arm with the largest mean always stays; at an infinite width, which stands
    for no test, all do. Each block of random bits serves two epochs.
    """
    inverse = inverse_of(bandit.inverse, np.uint64(epoch))
    width = index_value(parameters, 0.0, np.uint64(epoch), ONE)  # of a mean of 0: the width alone
    largest, leader = -np.inf, 0
    for position in range(left):
        arm = active[position]
        if epoch & 1:
            first, second = philox(np.uint64(epoch) >> ONE, np.uint64(arm), name, REWARDS, bandit.key[0], bandit.key[1])
            reward = reward_from_word(first, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)
            spare[arm] = reward_from_word(second, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)
        else:
            reward = spare[arm]
        totals[arm] += reward
        mean = totals[arm] * inverse
        if mean > largest:
            largest, leader = mean, arm
    kept = 0
    for position in range(left):
        arm = active[position]
        active[kept] = arm
        if totals[arm] * inverse > largest - 2 * width or arm == leader:
            kept += 1
        else:
            ahead[arm] = kept
    return kept


@inlined
def play_elimination(
    bandit: Bandit, parameters: Any, name: np.uint64, totals: NDArray[np.float64], spare: NDArray[np.float64],
    active: NDArray[np.int64], ahead: NDArray[np.int64], actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`; the four arrays before it, one place an arm, are for its working."""
    arms, horizon = bandit.means.size, actions.size
    for arm in range(arms):
        totals[arm], active[arm] = 0.0, arm
    left, t, epoch = arms, 0, 0
    while left > 1 and t + left <= horizon:
        epoch += 1
        for position in range(left):
            actions[t + position] = active[position]
        t += left
        left = _epoch(bandit, parameters, name, epoch, left, active, totals, spare, ahead)
    for later in range(t, horizon):  # one arm left, or an epoch cut short, which makes no test
        actions[later] = active[(later - t) % left]


@inlined
def count_elimination(
    bandit: Bandit, parameters: Any, name: np.uint64, horizon: int, totals: NDArray[np.float64],
    spare: NDArray[np.float64], active: NDArray[np.int64], ahead: NDArray[np.int64],
    pulls: NDArray[Any], gone: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Fill the pulls of each arm, and whether the actions show that it was eliminated.

    They show it once its turn has come again and another arm was pulled instead: one round after the arms that stay
    and stand before it have been pulled in the next epoch.
    """
    arms = bandit.means.size
    for arm in range(arms):
        totals[arm], active[arm], ahead[arm], gone[arm] = 0.0, arm, -1, False
    left, t, epoch = arms, 0, 0
    while left > 1 and t + left <= horizon:
        epoch += 1
        t, before = t + left, left
        for position in range(left):
            pulls[active[position]] = epoch
        left = _epoch(bandit, parameters, name, epoch, left, active, totals, spare, ahead)
        if left < before:
            for arm in range(arms):
                gone[arm] |= ahead[arm] >= 0 and t + ahead[arm] < horizon
                ahead[arm] = -1
    for position in range(left):
        rest = horizon - t - position  # of the rounds that are left, this arm has every `left`-th
        pulls[active[position]] = epoch + (rest + left - 1) // left if rest > 0 else epoch


@compiled
def eliminate(bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ..."""
    arms = bandit.means.size
    totals, spare = np.empty(arms), np.empty(arms)
    active, ahead = np.empty(arms, np.int64), np.empty(arms, np.int64)
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        play_elimination(bandit, parameters, np.uint64(first_run + run), totals, spare, active, ahead, actions[run])


@compiled
def count_eliminations(
    bandit: Bandit, parameters: Any, first_run: int, horizon: int, pulls: NDArray[np.int64], gone: NDArray[np.bool_]
) -> None:
    """Fill, one row a run, the pulls of each arm, and whether the actions show that it was eliminated."""
    arms = bandit.means.size
    totals, spare = np.empty(arms), np.empty(arms)
    active, ahead = np.empty(arms, np.int64), np.empty(arms, np.int64)
    for run in range(pulls.shape[0]):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        count_elimination(bandit, parameters, name, horizon, totals, spare, active, ahead, pulls[run], gone[run])
