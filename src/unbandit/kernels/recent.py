"""Index rules that forget: simulations round by round, and what their choices say about every arm's gap.

Such a rule (`RecentIndexRule`) judges an arm by the rewards of a window of the last rounds, or by all rewards, each
weighted by `discount` to the power of its age. With `N_i` the arm's pulls counted in the same way, the index is the
mean so weighted plus `sqrt(exploration ln n / N_i)`, where `n` is the sum of all counts.

**Reading.** Let `D(t)` be the difference of the two weighted means, of the most-pulled arm and arm `i`, before round
`t`, and `g(t)` that of the two widths, which the actions show. The arm is pulled where `D <= g`, and the best where
`D >= g`.

- *When `D` is known.* While an arm waits, its weighted mean does not change, unless a reward leaves the window, and its
  width grows. So at its next pull, `D = g`. A reward that leaves the window in the meantime moves `D` at random; then
  what is known is that `D >= g` just after the last pull, and `D <= g` at the next one: `D` is taken halfway.
- *What it says.* The arm's noise at a fixed time, `N_i(t)` times the error of its weighted mean, is a sum of rewards
  minus their means: its expectation is 0, however the rule chose. So the gap is the average of `D(t)` over all rounds,
  weighted by `N_i(t)`. A reward counts in it by the sum of its weights over the rounds, hence the variance.
- *A bound.* In nearly every round `D >= g`, so the same average of `g(t)` bounds the gap from below. That is all where
  an arm's window ran empty, since such an arm is pulled whatever its mean.
- *Batches.* Only the rounds in which the rule decides are averaged over: which these are does not depend on rewards.
  The arm's turn came between two decisions, so `D` is halfway between `g` when the best arm was last preferred and `g`
  at the next pull. While the rule stays with the arm for several batches there is an upper side alone; the rewards of
  the stay have a mean that follows from `D` before and after it (`_lay_between`).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit, arrange, reward
from unbandit.kernels.compile import Integers, Marks, Numbers, called, compiled, inlined
from unbandit.kernels.procedures import BEST, BOUNDED, ESTIMATED, UNSEEN, Compared, without_comparison
from unbandit.kernels.rng import philox, uniform_from_word

ZERO, ONE = np.uint64(0), np.uint64(1)
TIES = np.uint64(2)  # the tape's stream 2
NONE = -1


class RecentIndex(NamedTuple):
    """A rule that forgets, as the kernels take it."""

    window: int  # rounds that count; 0 for all
    discount: float  # weight of a reward by its age in rounds; 1 for none
    exploration: float
    random_ties: bool
    batch: int  # rounds from one decision to the next, once every arm has had a turn


class Hesitations(NamedTuple):
    """What the actions say about one arm: averages over rounds, and their variances in units of a reward's."""

    estimated: bool  # whether there is a point, or the bound alone
    gap: float  # the point, or the bound
    apart: float  # average distance between the two sides of the point, where a reward left the window
    own: float  # one over the variance that the arm's rewards cause: as many rewards as in a plain mean
    other: float  # the same of the best arm's


@inlined
def recent_width(rule: RecentIndex, total: float, pulls: float) -> float:
    """Return `sqrt(exploration ln n / N)`; infinite for an arm without recent pulls."""
    return math.sqrt(rule.exploration * math.log(max(total, 1.0)) / pulls) if pulls > 0.0 else math.inf


@inlined
def _decides(rule: RecentIndex, arms: int, t: int) -> bool:
    """Return whether the rule decides before round `t`: in one round per arm, then once a batch."""
    return t < arms or (t - arms) % rule.batch == 0


@inlined
def _largest(index: Numbers, random_ties: bool, t: int, name: np.uint64, bandit: Bandit) -> int:
    """Return the lowest arm with the largest index, or one of the tied arms at random."""
    chosen, tied = 0, 1
    for arm in range(1, index.size):
        if index[arm] > index[chosen]:
            chosen, tied = arm, 1
        elif index[arm] == index[chosen]:
            tied += 1
    if random_ties and tied > 1:
        first, second = philox(np.uint64(t) >> ONE, ZERO, name, TIES, bandit.key[0], bandit.key[1])
        ahead = np.int64(uniform_from_word(second if t & 1 else first) * tied)  # how many of the tied arms to skip
        largest = index[chosen]
        while ahead > 0 or index[chosen] != largest:
            if index[chosen] == largest:
                ahead -= 1
            chosen += 1
    return chosen


@compiled
def pull_largest_recent(bandit: Bandit, rule: RecentIndex, first_run: int, actions: NDArray[Any]) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ..."""
    arms, (runs, horizon) = bandit.means.size, actions.shape
    made, pulls, totals, index = np.empty(arms, np.int64), np.empty(arms), np.empty(arms), np.empty(arms)
    window = min(rule.window, horizon)
    kept = np.empty(max(window, 1))  # the rewards of the window, the oldest at the round's place
    for run in range(runs):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        for arm in range(arms):
            made[arm], pulls[arm], totals[arm] = 0, 0.0, 0.0
        chosen = 0
        for t in range(horizon):
            if _decides(rule, arms, t):
                total = 0.0
                for arm in range(arms):
                    total += pulls[arm]
                for arm in range(arms):
                    mean = totals[arm] / pulls[arm] if pulls[arm] > 0.0 else 0.0
                    index[arm] = mean + recent_width(rule, total, pulls[arm])
                chosen = _largest(index, rule.random_ties, t, name, bandit)
            gained = reward(bandit, name, np.uint64(chosen), np.uint64(made[chosen]))
            if window > 0:
                if t >= window:
                    oldest = np.int64(actions[run, t - window])
                    pulls[oldest] -= 1.0
                    totals[oldest] = totals[oldest] - kept[t % window] if pulls[oldest] > 0.0 else 0.0
                kept[t % window] = gained
            else:
                for arm in range(arms):
                    pulls[arm] *= rule.discount
                    totals[arm] *= rule.discount
            pulls[chosen] += 1.0
            totals[chosen] += gained
            made[chosen] += 1
            actions[run, t] = chosen


# What the choices say


@called
def _variance(actions: NDArray[Any], rule: RecentIndex, arm: int, weights: Numbers) -> float:
    """Return the variance of the sum over rounds of `weights` times an arm's noise then, in units of a reward's."""
    variance, ahead = 0.0, 0.0  # `ahead`: how much a reward counts in all rounds after it
    for t in range(actions.size - 1, -1, -1):
        ahead = ahead * rule.discount + weights[t + 1]
        if rule.window > 0 and t + 1 + rule.window < weights.size:
            ahead -= weights[t + 1 + rule.window]
        variance += ahead * ahead if actions[t] == arm else 0.0
    return variance


@called
def _count_pulls(actions: NDArray[Any], rule: RecentIndex, arm: int, counts: Numbers) -> bool:
    """Fill in an arm's recent pulls before each round; return whether there were none when it was pulled again."""
    counts[0], made, ran_empty = 0.0, 0, False
    for t in range(actions.size):
        counts[t + 1] = counts[t] * rule.discount
        if rule.window > 0 and t >= rule.window and actions[t - rule.window] == arm:
            counts[t + 1] -= 1.0
        if actions[t] == arm:
            ran_empty = ran_empty or (made > 0 and counts[t] == 0.0)
            counts[t + 1] += 1.0
            made += 1
    return ran_empty


@called
def _points(
    actions: NDArray[Any], rule: RecentIndex, arms: int, arm: int, best: int, own: Numbers, gaps: Numbers
) -> tuple[Numbers, Numbers]:
    """Return `D` before every decision, and how far its two sides are apart; NaN where nothing says what it is."""
    rounds = actions.size
    following, last = np.full(rounds, NONE), NONE  # the arm's next pull, from a round on
    for t in range(rounds - 1, -1, -1):
        last = t if actions[t] == arm else last
        following[t] = last
    waited, below = np.full(rounds, math.nan), math.nan  # g when the best arm was last preferred, before a decision
    for t in range(rounds):
        if rule.batch > 1 and _decides(rule, arms, t):
            waited[t] = below
            below = gaps[t] if actions[t] == best else below
        below = math.nan if actions[t] == arm else below
    points, sides, after = np.full(rounds, math.nan), np.zeros(rounds), math.nan
    for t in range(rounds):
        upcoming = following[t]
        if upcoming != NONE and _decides(rule, arms, t):
            leaves = rule.window > 0 and own[upcoming] < own[t]  # a reward leaves the window first
            side = after if leaves else waited[upcoming]
            points[t] = gaps[upcoming]
            if leaves or math.isfinite(side):
                sides[t] = abs(points[t] - side)
                points[t] = 0.5 * (points[t] + side)
        if actions[t] == arm:
            after = gaps[t + 1]
    if rule.batch > 1:
        _lay_between(actions, rule, arms, arm, own, points)
    return points, sides


@called
def _lay_between(actions: NDArray[Any], rule: RecentIndex, arms: int, arm: int, own: Numbers, points: Numbers) -> None:
    """Replace the points within stays of several batches with an arm, where the actions show an upper side alone.

    The rewards of a stay have a mean that follows from the points before and after it; each batch is taken to have it.
    """
    start = NONE
    for end in range(actions.size):
        if not _decides(rule, arms, end):
            continue
        if actions[end] == arm:
            start = end if start == NONE else start
            continue
        known = start != NONE and math.isfinite(points[end])
        if known and (own[start] == 0.0 or math.isfinite(points[start])):
            base = points[start] if own[start] > 0.0 else 0.0
            gained = _gained(rule, end - start)
            of_stay = (own[end] * points[end] - (own[end] - gained) * base) / gained
            for t in range(start + 1, end):
                if _decides(rule, arms, t):
                    gained = _gained(rule, t - start)
                    between = ((own[t] - gained) * base + gained * of_stay) / own[t]
                    points[t] = min(points[t], between)
        start = NONE


@inlined
def _gained(rule: RecentIndex, pulls: int) -> float:
    """Return what as many pulls in a row add to an arm's recent pulls."""
    return float(min(pulls, rule.window)) if rule.window > 0 else (1.0 - rule.discount**pulls) / (1.0 - rule.discount)


@called
def read_recent_arm(actions: NDArray[Any], rule: RecentIndex, arms: int, arm: int, best: int) -> Hesitations:
    """Return what a demonstration of `arms` arms says about the gap between an arm and the most-pulled one."""
    rounds = actions.size
    own, other, gaps = np.empty(rounds + 1), np.empty(rounds + 1), np.empty(rounds + 1)
    bounded = _count_pulls(actions, rule, arm, own)
    _count_pulls(actions, rule, best, other)
    for t in range(rounds + 1):
        recent = _gained(rule, t)
        known = own[t] > 0.0 and other[t] > 0.0
        gaps[t] = recent_width(rule, recent, own[t]) - recent_width(rule, recent, other[t]) if known else math.nan
    # --- the average of D, weighted by the arm's recent pulls; where there is a bound alone, that of g ---
    pulled = 0
    for t in range(rounds):
        pulled += 1 if actions[t] == arm else 0
    bounded = bounded or pulled < 2
    points, sides = _points(actions, rule, arms, arm, best, own, gaps)
    total, sum_of_points, sum_apart = 0.0, 0.0, 0.0
    weights, of_best = np.zeros(rounds + 1), np.zeros(rounds + 1)
    for t in range(rounds):
        point, apart = (gaps[t], 0.0) if bounded else (points[t], sides[t])
        if _decides(rule, arms, t) and math.isfinite(point) and math.isfinite(gaps[t]):
            total += own[t]
            sum_of_points += own[t] * point
            sum_apart += own[t] * apart
            weights[t], of_best[t] = 1.0, own[t] / other[t]
    if total == 0.0:
        return Hesitations(False, 0.0, 0.0, math.nan, math.nan)
    own_variance = _variance(actions, rule, arm, weights) / (total * total)
    other_variance = _variance(actions, rule, best, of_best) / (total * total)
    return Hesitations(not bounded, sum_of_points / total, sum_apart / total, 1.0 / own_variance, 1.0 / other_variance)


@compiled
def compare_recent(
    rule: RecentIndex, sigma: float, actions: NDArray[Any], offsets: Integers, pulls: Integers, best: Marks,
    verdict: NDArray[np.int8], numbers: Numbers,
) -> None:  # fmt: skip
    """Fill in what demonstrations say about every arm's gap, as `kernels.comparison.compare_index` does.

    `sigma` is the standard deviation of a reward. Between the two sides of a point anything is equally likely.
    """
    nan, arms = math.nan, pulls.shape[1]
    for d in range(pulls.shape[0]):
        top = 0
        for arm in range(arms):
            top = arm if pulls[d, arm] > pulls[d, top] else top
        for arm in range(arms):
            best[d, arm] = arm == top
            compared = without_comparison(BEST if arm == top else UNSEEN, 0.0 if arm == top else nan)
            if arm != top and pulls[d, arm] > 0:
                found = read_recent_arm(actions[offsets[d] : offsets[d + 1]], rule, arms, arm, top)
                noise = sigma * sigma * (1.0 / found.own + 1.0 / found.other)
                spread = math.sqrt(noise + found.apart * found.apart / 12.0)
                own, other, gap = found.own, found.other, found.gap
                if found.estimated:
                    compared = Compared(ESTIMATED, gap, gap, gap, own, other, own, other, 1.0, nan, spread)
                else:
                    below = max(gap, 0.0)
                    compared = Compared(BOUNDED, nan, below, nan, own, other, nan, nan, 1.0, nan, spread)
            verdict[d, arm] = compared.verdict
            for at, number in enumerate(compared[1:]):
                numbers[at, d, arm] = number
