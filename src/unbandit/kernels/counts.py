"""Pull counts and switching counts of an index rule that ignores the round, without putting the pulls in order.

Pulls come in descending order of their levels (see `simulate_index`). Each arm is advanced, on its own, to a common
level at which nearly the whole horizon is spent; the last few pulls are made one by one. What Procedure 2 needs of the
order follows from levels alone: a pull comes before another arm's exactly if its level is higher (at an equal level,
the lower arm's). `count_by_levels` draws every reward; `count_by_bridges` advances over `bridges`, which skip long
stretches.
"""

from typing import Any, NamedTuple

import numpy as np

from unbandit.kernels.bandit import Bandit, arrange, inverse_of, reward
from unbandit.kernels.bridges import ROOTS, Path, Room, fill_roots, first_below, lowest_up_to, path_of
from unbandit.kernels.compile import Integers, Numbers, borrowing, called, compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.rewards import BLOCK, STRIDE, Ahead, count_above, draw_ahead, draw_first
from unbandit.kernels.simulate_index import ArmStates, forget_states, level_guide, new_states, next_level

ZERO, ONE, SIZE = np.uint64(0), np.uint64(1), np.uint64(BLOCK)
FEW_LEFT, FEW_LEFT_BY_BRIDGES = 32, 8  # pulls left, from which on they are made one by one
HIGHEST = np.finfo(np.float64).max


@borrowing
def _copy(source: ArmStates, into: ArmStates) -> None:
    for arm in range(source.pulls.size):
        into.pulls[arm], into.lowest[arm] = source.pulls[arm], source.lowest[arm]
        into.ahead.ends[arm], into.ahead.totals[arm] = source.ahead.ends[arm], source.ahead.totals[arm]
    for place in range(source.ahead.minima.size):
        into.ahead.minima[place] = source.ahead.minima[place]


@borrowing
def pull_again(
    bandit: Bandit, parameters: Any, run: np.uint64, arm: np.uint64, n: np.uint64, total: float
) -> tuple[float, float]:
    """Pull an arm once more after `n` pulls; return the sum of its rewards, and its index."""
    total += reward(bandit, run, arm, n)
    return total, index_value(parameters, total * inverse_of(bandit.inverse, n + ONE), n + ONE, ONE)


@borrowing
def _advance(bandit: Bandit, parameters: Any, level: float, budget: int, run: int, states: ArmStates) -> int:
    """Advance each arm until its running minimum is at most `level`; give up after `budget` pulls in all.

    Returns the number of pulls made, more than `budget` if given up.
    """
    pulls, lowest, ahead = states
    made, horizon, limit = ZERO, np.uint64(bandit.horizon), np.uint64(budget)
    for arm in range(np.uint64(bandit.means.size)):
        if lowest[arm] <= level:
            continue
        end, before = (arm + ONE) * STRIDE, pulls[arm]
        above = count_above(ahead.minima, end - SIZE, level, False)
        while above == SIZE and ahead.ends[arm] < horizon and made + ahead.ends[arm] - before <= limit:
            draw_ahead(bandit, parameters, np.uint64(run), arm, ahead)
            above = count_above(ahead.minima, end - SIZE, level, False)
        beyond = SIZE - min(above + ONE, SIZE)  # pulls drawn that are not made
        pulls[arm], lowest[arm] = min(ahead.ends[arm] - beyond, horizon), ahead.minima[end - beyond - ONE]
        made += pulls[arm] - before
        if made > limit:
            break
    return np.int64(made)


@called
def _levels_of_arm(bandit: Bandit, parameters: Any, arm: int, count: int, run: int, room: Ahead) -> Numbers:
    """Replay one arm: the level of each of its first `count` pulls, never rising; filled up to whole blocks."""
    levels = np.full((count + BLOCK - 1) // BLOCK * BLOCK, -np.inf)
    end, level = np.uint64(arm + 1) * STRIDE, np.inf
    room.ends[arm], room.totals[arm], room.minima[end - ONE] = ZERO, 0.0, np.inf
    for pull in range(count):
        levels[pull] = level
        if pull % BLOCK == 0:
            draw_ahead(bandit, parameters, np.uint64(run), np.uint64(arm), room)
        level = room.minima[end - np.uint64(BLOCK - pull % BLOCK)]
    return levels


@borrowing
def comes_after(level: float, arm: int, other_level: float, other_arm: int) -> bool:
    """Return whether a pull at `level` comes after another arm's pull at `other_level`."""
    return level < other_level or (level == other_level and arm > other_arm)


@borrowing
def _pulls_before(levels: Numbers, arm: int, other_level: float, other_arm: int) -> int:
    """Count an arm's pulls, given their levels, that come before another arm's pull: blocks by bisection, then one."""
    low, high = 0, levels.size // BLOCK - 1
    while low < high:
        middle = (low + high) // 2
        if comes_after(other_level, other_arm, levels[middle * BLOCK + BLOCK - 1], arm):
            low = middle + 1
        else:
            high = middle
    return low * BLOCK + np.int64(count_above(levels, np.uint64(low * BLOCK), other_level, arm < other_arm))


@compiled
def count_by_levels(
    bandit: Bandit, parameters: Any, first_run: int, pulls_out: Integers, own_out: Integers, of_best_out: Integers
) -> None:
    """Fill in, one row per run: pulls, and the pulls of arm and most-pulled arm at switching rounds (0 where none)."""
    arms, horizon = bandit.means.size, bandit.horizon
    guide = level_guide(parameters, bandit.sample, arms, horizon)
    states, kept = new_states(arms), new_states(arms)
    pulls, lowest, ahead = states
    for row in range(pulls_out.shape[0]):
        arrange(bandit, row)
        run = first_run + row
        forget_states(states)
        # --- advance all arms from level to level until nearly all pulls are made; undo a step that made too many ---
        left, level, step, trust = horizon, np.inf, 0, 1.0
        while left > FEW_LEFT and trust > 0.01:
            if step > 0:
                _copy(states, kept)
            target = horizon - left + trust * left
            aim = next_level(guide, level, horizon - left, target, arms, step, bandit.sigma)
            if step == 0:
                draw_first(bandit, parameters, np.uint64(run), aim, ahead)
            made = _advance(bandit, parameters, aim, left, run, states)
            if made > left:
                trust *= 0.5
                if step > 0:
                    _copy(kept, states)
                else:
                    forget_states(states)
            else:
                level, left, step = aim, left - made, step + 1
        # --- the last few pulls, one stretch at one level after the other ---
        while left > 0:
            arm = 0
            for other in range(arms):  # `argmax` also looks for NaN: 3% of the time at K=224
                if lowest[other] > lowest[arm]:
                    arm = other
            level = lowest[arm]
            while left > 0 and lowest[arm] == level:
                if pulls[arm] == ahead.ends[arm]:
                    draw_ahead(bandit, parameters, np.uint64(run), np.uint64(arm), ahead)
                pulls[arm] += ONE
                lowest[arm] = ahead.minima[np.uint64(arm + 1) * STRIDE - ONE - (ahead.ends[arm] - pulls[arm])]
                left -= 1
        # --- an arm's switching round `tau_i`: its last pull that comes before the best arm's last one ---
        best = pulls.argmax()
        path = _levels_of_arm(bandit, parameters, best, np.int64(pulls[best]), run, kept.ahead)
        last = path[np.int64(pulls[best]) - 1]
        for arm in range(arms):
            n, own, of_best = np.int64(pulls[arm]), 0, 0
            if arm != best and last < np.inf:
                start = arm * np.int64(STRIDE)  # the place of the running minimum after `first` pulls
                first = np.int64(ahead.ends[arm]) - BLOCK
                above = np.int64(count_above(ahead.minima, np.uint64(start + 1), last, arm < best))
                own = min(first + above + 1, n)
                level = ahead.minima[start + own - 1 - first]
                if above == 0 and comes_after(ahead.minima[start], arm, last, best):  # then it is before the block
                    levels = _levels_of_arm(bandit, parameters, arm, n, run, kept.ahead)
                    own = _pulls_before(levels, arm, last, best)
                    level = levels[own - 1]
                of_best = _pulls_before(path, best, level, arm)
            pulls_out[row, arm], own_out[row, arm], of_best_out[row, arm] = n, own if of_best > 0 else 0, of_best


class BridgeStates(NamedTuple):
    """The arms over bridges: sums at powers of two, pulls and running minimum, and both after a step that is tried."""

    roots: Numbers
    pulls: Integers
    lowest: Numbers
    next_pulls: Integers
    next_lowest: Numbers


@called
def _try_level(
    bandit: Bandit, parameters: Any, level: float, left: int, run: int, states: BridgeStates, room: Room
) -> int:
    """Find how far each arm goes until its index is at most `level`, into `next_pulls` and `next_lowest`.

    Returns the number of pulls left; -1 if there are too few, and then the results are incomplete.
    """
    _, pulls, lowest, next_pulls, next_lowest = states
    for arm in range(bandit.means.size):
        next_pulls[arm], next_lowest[arm] = pulls[arm], lowest[arm]
        if lowest[arm] > level:
            path = path_of(bandit, arm, run, states.roots)
            next_pulls[arm], next_lowest[arm] = first_below(
                path, parameters, level, True, pulls[arm] + 1, pulls[arm] + left, room
            )
            left -= next_pulls[arm] - pulls[arm]
            if left < 0:
                return -1
    return left


@inlined
def _accept(states: BridgeStates) -> None:
    """Keep the step that was tried."""
    for arm in range(states.pulls.size):
        states.pulls[arm], states.lowest[arm] = states.next_pulls[arm], states.next_lowest[arm]


@called
def _made_before(path: Path, parameters: Any, pulls: int, level: float, other: int, room: Room) -> int:
    """Count those of an arm's first `pulls` pulls that came before the arm `other` was pulled at `level`."""
    own = np.int64(path.arm)
    if level == np.inf and own > other:  # every arm's first pull, in turn
        return 0
    return min(first_below(path, parameters, level, own > other, 1, pulls, room)[0], pulls)


@compiled
def count_by_bridges(
    bandit: Bandit, parameters: Any, first_run: int, pulls_out: Integers, own_out: Integers, of_best_out: Integers
) -> None:
    """Fill in the same as `count_by_levels`, of other demonstrations with the same distribution."""
    arms = bandit.means.size
    roots = np.empty((arms, ROOTS))
    room = (np.empty(ROOTS + 1, np.int64), np.empty(ROOTS + 1), np.empty(ROOTS + 1))
    pulls, lowest = np.empty(arms, np.int64), np.empty(arms)
    next_pulls, next_lowest = np.empty(arms, np.int64), np.empty(arms)
    states = BridgeStates(roots, pulls, lowest, next_pulls, next_lowest)
    guide = level_guide(parameters, bandit.sample, arms, bandit.horizon)
    for row in range(pulls_out.shape[0]):
        arrange(bandit, row)
        run = first_run + row
        for arm in range(arms):
            fill_roots(path_of(bandit, arm, run, roots), bandit.horizon)
        # --- the opening: every arm once, whatever its index ---
        for arm in range(arms):
            pulls[arm], lowest[arm] = 0, np.inf
        left, high, low, step = bandit.horizon, np.inf, -np.inf, 0
        if left > arms:
            left = _try_level(bandit, parameters, HIGHEST, left, run, states, room)
            _accept(states)
            high = lowest[lowest.argmax()]
        # --- go down as predicted until a level is too low; then bisect ---
        while left > FEW_LEFT_BY_BRIDGES and high < np.inf:
            if low == -np.inf:
                level = next_level(guide, high, bandit.horizon - left, bandit.horizon, arms, step, bandit.sigma)
                step += 1
                if level >= high:
                    continue
            else:
                level = 0.5 * (low + high)
                if not low < level < high:  # many pulls are made at one level
                    break
            rest = _try_level(bandit, parameters, level, left, run, states, room)
            if rest < 0:
                low = level
            else:
                _accept(states)
                left, high = rest, level
        # --- the last few pulls, from one new lowest index to the next ---
        while left > 0:
            arm = lowest.argmax()
            path = path_of(bandit, arm, run, roots)
            at, index = first_below(path, parameters, lowest[arm], False, pulls[arm] + 1, pulls[arm] + left, room)
            if at > pulls[arm] + left:
                at, index = pulls[arm] + left, lowest[arm]
            left, pulls[arm], lowest[arm] = left - (at - pulls[arm]), at, index
        # --- switching counts: pulls before the best arm's last one, and the best arm's before that ---
        best = pulls.argmax()
        path_of_best = path_of(bandit, best, run, roots)
        last = lowest_up_to(path_of_best, parameters, pulls[best] - 1, room)  # the level of the best arm's last pull
        for arm in range(arms):
            pulls_out[row, arm], own, of_best = pulls[arm], 0, 0
            if arm != best:
                path = path_of(bandit, arm, run, roots)
                own = _made_before(path, parameters, pulls[arm], last, best, room)
                if own > 0:
                    level = lowest_up_to(path, parameters, own - 1, room)
                    of_best = _made_before(path_of_best, parameters, pulls[best], level, arm, room)
            own_out[row, arm], of_best_out[row, arm] = own if of_best > 0 else 0, of_best
