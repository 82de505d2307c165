"""Simulate any index rule, round by round: pull the arm with the largest index.

For indices that change with the round, ties broken at random, longer openings, and rules that decide only now and then.
A round costs as much as there are arms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit, arrange, inverse_of, reward
from unbandit.kernels.compiling import compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.scalar import philox, uniform_from_word

__all__ = ["play_largest_index", "pull_largest_index"]

ZERO, ONE = np.uint64(0), np.uint64(1)
TIES = np.uint64(2)  # the tape's stream 2


@inlined
def play_largest_index(
    bandit: Bandit, parameters: Any, name: np.uint64, uses_round: bool, random_ties: bool, initial: int, batch: int,
    pulls: NDArray[Any], totals: NDArray[np.float64], index: NDArray[np.float64], actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`; the three arrays before it, one place an arm, are for its working.

    Each arm is first pulled `initial` times, in turn. From then on the rule decides every `batch` rounds.
    """
    arms, horizon = bandit.means.size, actions.size
    opening = initial * arms
    for arm in range(arms):
        pulls[arm], totals[arm], index[arm] = 0, 0.0, np.inf
    chosen = 0
    for t in range(horizon):
        if t < opening or (t - opening) % batch == 0:
            if t < opening:
                if t % arms == 0:
                    for arm in range(arms):
                        index[arm] = np.inf  # a new turn; the arms that have had theirs go down
            elif uses_round or t == opening:
                for arm in range(arms):
                    n = np.uint64(pulls[arm])
                    mean = totals[arm] * inverse_of(bandit.inverse, n)
                    index[arm] = index_value(parameters, mean, n, np.uint64(t + 1))
            chosen, tied = 0, 1
            for arm in range(1, arms):
                if index[arm] > index[chosen]:
                    chosen, tied = arm, 1
                elif index[arm] == index[chosen]:
                    tied += 1
            if random_ties and tied > 1:
                first, second = philox(np.uint64(t) >> ONE, ZERO, name, TIES, bandit.key[0], bandit.key[1])
                word = second if t & 1 else first
                ahead = np.int64(uniform_from_word(word) * tied)  # how many of the tied arms to pass over
                largest = index[chosen]
                while ahead > 0 or index[chosen] != largest:
                    if index[chosen] == largest:
                        ahead -= 1
                    chosen += 1
        totals[chosen] += reward(bandit, name, np.uint64(chosen), np.uint64(pulls[chosen]))
        pulls[chosen] += 1
        if t < opening:
            index[chosen] = -np.inf
        elif not uses_round:
            n = np.uint64(pulls[chosen])
            mean = totals[chosen] * inverse_of(bandit.inverse, n)
            index[chosen] = index_value(parameters, mean, n, np.uint64(t + 1))
        actions[t] = chosen


@compiled
def pull_largest_index(
    bandit: Bandit, parameters: Any, first_run: int, uses_round: bool, random_ties: bool, initial: int, batch: int,
    actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ..."""
    arms = bandit.means.size
    pulls, totals, index = np.empty(arms, np.int64), np.empty(arms), np.empty(arms)
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        play_largest_index(
            bandit, parameters, name, uses_round, random_ties, initial, batch, pulls, totals, index, actions[run]
        )
