"""Count pulls and switching counts of an index rule that ignores the round, without putting a single pull in order.

See `levels` for why pulls come in descending order of their levels. Here each arm is advanced, on its own, to a common
level at which nearly the whole horizon is spent; the last few pulls are made one by one, highest level first. What
Procedure 2 needs of the order follows from the levels alone: one arm's last pull comes before another's exactly if its
level is higher.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from unbandit.kernels.bandit import REWARDS, Bandit, arrange, inverse_of, reward
from unbandit.kernels.compiling import compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.levels import level_guide, next_level
from unbandit.kernels.scalar import philox, reward_from_word

__all__ = ["comes_after", "count_by_levels", "guide_of"]

ZERO, ONE = np.uint64(0), np.uint64(1)


@inlined
def _advance(
    bandit: Bandit,
    parameters: Any,
    level: float,
    budget: int,
    run: int,
    pulls: NDArray[np.uint64],
    totals: NDArray[np.float64],
    lowest: NDArray[np.float64],
    last: NDArray[np.float64],
    before: NDArray[np.float64],
) -> int:
    """Advance each arm until its running minimum is at most `level`; give up after `budget` pulls in all.

    `last` and `before` keep the levels of each arm's last pull and of the one before. Returns the number of pulls made,
    more than `budget` if given up.
    """
    means, _, sigma, bernoulli, inverse, (key_low, key_high), table, horizon, _, _ = bandit
    made = ZERO
    for arm in range(np.uint64(means.size)):
        if lowest[arm] <= level:
            continue
        n, total, minimum, mean, newer, older = pulls[arm], totals[arm], lowest[arm], means[arm], last[arm], before[arm]
        stop = min(n + np.uint64(budget) - made + ONE, np.uint64(horizon))
        made -= n
        first, second = philox(n >> ONE, arm, np.uint64(run), REWARDS, key_low, key_high)
        if n & ONE:
            n += ONE
            newer, older = minimum, newer
            total += reward_from_word(second, mean, sigma, bernoulli, table)
            minimum = min(minimum, index_value(parameters, total * inverse_of(inverse, n), n, ONE))
            first, second = philox(n >> ONE, arm, np.uint64(run), REWARDS, key_low, key_high)
        while minimum > level and n < stop:
            next_first, next_second = philox((n >> ONE) + ONE, arm, np.uint64(run), REWARDS, key_low, key_high)
            n += ONE
            newer, older = minimum, newer
            total += reward_from_word(first, mean, sigma, bernoulli, table)
            minimum = min(minimum, index_value(parameters, total * inverse_of(inverse, n), n, ONE))
            if minimum <= level:
                break
            n += ONE
            newer, older = minimum, newer
            total += reward_from_word(second, mean, sigma, bernoulli, table)
            minimum = min(minimum, index_value(parameters, total * inverse_of(inverse, n), n, ONE))
            first, second = next_first, next_second
        made += n
        pulls[arm], totals[arm], lowest[arm], last[arm], before[arm] = n, total, minimum, newer, older
        if made > np.uint64(budget):
            break
    return np.int64(made)


@register_jitable
def _levels_of_arm(bandit: Bandit, parameters: Any, arm: int, count: int, run: int) -> NDArray[np.float64]:
    """Replay one arm: the level of each of its first `count` pulls, never rising."""
    levels = np.empty(count)
    total, minimum = 0.0, np.inf
    for pull in range(np.uint64(count)):
        levels[pull] = minimum
        total += reward(bandit, np.uint64(run), np.uint64(arm), pull)
        minimum = min(minimum, index_value(parameters, total * inverse_of(bandit.inverse, pull + ONE), pull + ONE, ONE))
    return levels


@inlined
def comes_after(level: float, arm: int, other_level: float, other_arm: int) -> bool:
    """Tell whether a pull at `level` comes after another arm's pull at `other_level`."""
    return level < other_level or (level == other_level and arm > other_arm)


@compiled
def guide_of(parameters: Any, sample: NDArray[np.float64], arms: int, horizon: int) -> NDArray[np.float64]:
    """Return `level_guide`, for whoever simulates elsewhere."""
    return level_guide(parameters, sample, arms, horizon)


@compiled
def count_by_levels(
    bandit: Bandit,
    parameters: Any,
    first_run: int,
    horizon: int,
    pulls_out: NDArray[np.int64],
    own_out: NDArray[np.int64],
    of_best_out: NDArray[np.int64],
) -> None:
    """Fill, one row a run: pulls, and the pulls of arm and most-pulled arm at each switching round (0 where none)."""
    arms = bandit.means.size
    guide = level_guide(parameters, bandit.sample, arms, horizon)
    pulls, totals, lowest = np.empty(arms, np.uint64), np.empty(arms), np.empty(arms)
    last, before = np.empty(arms), np.empty(arms)
    kept_pulls, kept = np.empty(arms, np.uint64), np.empty((4, arms))
    for row in range(pulls_out.shape[0]):
        arrange(bandit, row)
        run = first_run + row
        pulls[:], totals[:], lowest[:], last[:], before[:] = ZERO, 0.0, np.inf, np.inf, np.inf
        left, level, step, trust = horizon, np.inf, 0, 1.0
        while left > 32 and trust > 0.01:
            for arm in range(arms):
                kept_pulls[arm] = pulls[arm]
                kept[0, arm], kept[1, arm], kept[2, arm], kept[3, arm] = (
                    totals[arm],
                    lowest[arm],
                    last[arm],
                    before[arm],
                )
            target = horizon - left + trust * left
            aim = next_level(guide, level, horizon - left, target, arms, step, bandit.sigma)
            made = _advance(bandit, parameters, aim, left, run, pulls, totals, lowest, last, before)
            if made > left:  # gone too far: take the step back, and aim nearer
                for arm in range(arms):
                    pulls[arm] = kept_pulls[arm]
                    totals[arm], lowest[arm], last[arm], before[arm] = (
                        kept[0, arm],
                        kept[1, arm],
                        kept[2, arm],
                        kept[3, arm],
                    )
                trust *= 0.5
            else:
                level, left, step = aim, left - made, step + 1
        while left > 0:  # the last few pulls, one by one
            arm = 0
            for other in range(arms):
                if lowest[other] > lowest[arm]:
                    arm = other
            level = lowest[arm]
            while left > 0 and lowest[arm] == level:  # a stretch at one level
                totals[arm] += reward(bandit, np.uint64(run), np.uint64(arm), pulls[arm])
                pulls[arm], last[arm], before[arm] = pulls[arm] + ONE, level, last[arm]
                mean = totals[arm] * inverse_of(bandit.inverse, pulls[arm])
                lowest[arm] = min(level, index_value(parameters, mean, pulls[arm], ONE))
                left -= 1
        best = 0
        for arm in range(arms):
            pulls_out[row, arm] = np.int64(pulls[arm])
            if pulls[arm] > pulls[best]:
                best = arm
        path = _levels_of_arm(bandit, parameters, best, pulls_out[row, best], run)
        for arm in range(arms):
            own, level = pulls_out[row, arm], last[arm]
            if arm == best:
                own = 0
            elif comes_after(level, arm, last[best], best):  # then its switching round is an earlier pull
                own, level = own - 1, before[arm]
                if own > 0 and comes_after(level, arm, last[best], best):
                    earlier = _levels_of_arm(bandit, parameters, arm, own, run)
                    while own > 0 and comes_after(earlier[own - 1], arm, last[best], best):
                        own -= 1
                    level = earlier[own - 1] if own > 0 else np.inf
            low, high = 0, path.size if own > 0 else 0  # search the best arm's pulls that came before that one
            while low < high:
                middle = (low + high) // 2
                if comes_after(level, arm, path[middle], best):
                    low = middle + 1
                else:
                    high = middle
            own_out[row, arm], of_best_out[row, arm] = own if low > 0 else 0, low
