"""From counts to an arm's gap, its interval and its verdict: one arm of one demonstration at a time.

The estimators (`estimators.switching`, `counts`, `naive`, `intervals`) do the same for whole tables, with warnings in
words; the tests hold the two against each other. These functions serve where a table would be too much to keep:
simulated runs whose answers are only summed up, on a GPU too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, compiled, inlined
from unbandit.kernels.formula import index_value, mean_value

BEST, ESTIMATED, BOUNDED, UNSEEN = 0, 1, 2, 3
STEP = 1e-5
ONE_IN_A_MILLION = 4.75
CLEAR = 4.0
HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)

Appraised = tuple[float, float, float, int]
"""Gap, low and high end of its interval (NaN where there is none), and the verdict as its number."""


class Setting(NamedTuple):
    """Hold what is known beside the counts.

    Attributes
    ----------
    initial, batch
        Of an index rule: pulls of each arm in the opening, rounds from one decision to the next.
    shifts
        Whether gaps need no known mean.
    best_mean
        The best arm's mean.
    sigma
        The deviation of a reward; NaN for rewards of 0 and 1, whose mean decides.
    z, wider
        How many deviations an interval reaches, and a bound that luck may have given.
    error
        The logarithm of the share beyond `z`.
    """

    initial: int
    batch: int
    shifts: bool
    best_mean: float
    sigma: float
    z: float
    wider: float
    error: float


class Tests(NamedTuple):
    """Hold an elimination rule's tests.

    Attributes
    ----------
    half_widths
        `C(k / 2)` for k = 0, 1, ...
    latest
        For every epoch, from 0 on, the latest one up to it that ended in a test; 0 where none did.
    """

    half_widths: NDArray[np.float64]
    latest: NDArray[np.int64]


@inlined
def _equated(parameters: Any, known: float, of_known: int, own: int, round: int) -> float:
    """Return the mean at which `own` pulls give the index that the mean `known` has after `of_known` pulls."""
    level = index_value(parameters, known, np.uint64(of_known), np.uint64(round))
    return mean_value(parameters, level, np.uint64(own), np.uint64(round))


@called
def _solved(parameters: Any, setting: Setting, own: int, other: int, round: int) -> tuple[float, float]:
    """Return the gap at which the indices of arm and best arm are equal, and how far the arm's mean moves with it."""
    if setting.shifts:
        return 0.0 - _equated(parameters, 0.0, other, own, round), 1.0
    best = setting.best_mean
    step = STEP * max(abs(best), 1.0)
    gap = best - _equated(parameters, best, other, own, round)
    below = _equated(parameters, best - step, other, own, round)
    above = _equated(parameters, best + step, other, own, round)
    slope = (above - below) / (2.0 * step)
    if not math.isfinite(slope):
        slope = (best - gap - below) / step
    return gap if math.isfinite(gap) else math.nan, slope if math.isfinite(slope) else 1.0


@inlined
def _deviation(setting: Setting, gap: float, own: float) -> float:
    """Return the deviation of an arm's rewards; 1/2 for rewards of 0 and 1 whose mean is not known."""
    if setting.sigma == setting.sigma:
        return setting.sigma
    point = setting.best_mean - gap
    if not 0.0 < point < 1.0:
        return 0.5
    added = (own * point + 2.0) / (own + 4.0)
    variance, smoothed = point * (1.0 - point), abs(added * (1.0 - added))
    return math.sqrt(max(variance, smoothed) if smoothed == smoothed else variance)


@inlined
def _spread(of_arm: float, of_best: float, slope: float, own: float, other: float) -> float:
    """Return the deviation of a gap."""
    return math.sqrt(of_arm * of_arm / own + (slope * of_best) * (slope * of_best) / other)


@inlined
def _of_best(setting: Setting) -> float:
    """Return the deviation of the best arm's rewards."""
    if setting.sigma == setting.sigma:
        return setting.sigma
    return math.sqrt(setting.best_mean * (1.0 - setting.best_mean))


@inlined
def _bounded_below(setting: Setting, below: float, deviation: float) -> float:
    """Return the low end of an arm that is only bounded: never below 0."""
    reach = setting.wider if below < ONE_IN_A_MILLION * deviation else setting.z
    reach = reach * deviation if deviation == deviation else 0.0
    return max(below - reach, 0.0)


@called
def index_arm(
    parameters: Any, setting: Setting, pulls: int, own: int, of_best: int, round: int, most: int, ended: int,
    over: bool,
) -> Appraised:  # fmt: skip
    """Appraise an arm of an index rule that is not the most-pulled one.

    Parameters
    ----------
    pulls
        The arm's, in the end.
    own, of_best, round
        The pulls of the arm and of the most-pulled one at the arm's switching round, and that round.
    most, ended
        The pulls of the most-pulled arm in the end, and the round after its last.
    over
        Whether an arm that was never compared had all its pulls behind it, or only those of the opening.
    """
    if pulls == 0:
        return math.nan, math.nan, math.nan, UNSEEN
    if own > setting.initial and of_best > 0:
        gap, slope = _solved(parameters, setting, own, of_best, round + 1)
        before = max(own - setting.batch, setting.initial)
        then, _ = _solved(parameters, setting, before, of_best, round + 1)
        in_the_end, _ = _solved(parameters, setting, before, most, ended)
        above = (then + in_the_end) / 2.0
        below, gap = gap, gap if setting.batch == 1 else (gap + above) / 2.0
        arm, best = _deviation(setting, gap, own), _of_best(setting)
        high = above + setting.z * _spread(arm, best, slope, before, of_best)
        if below != below:
            return gap, _bounded_below(setting, 0.0, _spread(arm, best, slope, own, of_best)), high, BOUNDED
        return gap, below - setting.z * _spread(arm, best, slope, own, of_best), high, ESTIMATED
    held = pulls if over else min(pulls, setting.initial)
    below, slope = _solved(parameters, setting, held, most, ended)
    deviation = _spread(_deviation(setting, math.nan, held), _of_best(setting), slope, held, most)
    return math.nan, _bounded_below(setting, below if below == below else 0.0, deviation), math.nan, BOUNDED


@called
def eliminated_arm(tests: Tests, setting: Setting, pulls: int, gone: bool, active: int, most: int) -> Appraised:
    """Appraise an arm of an elimination rule.

    Parameters
    ----------
    pulls, gone
        The arm's pulls, and whether it was eliminated.
    active, most
        How many arms were still active in the end, and the pulls of the most-pulled one.
    """
    if pulls == 0:
        return math.nan, math.nan, math.nan, UNSEEN
    known = active == 1
    if not gone:
        if known:
            return 0.0, math.nan, math.nan, BEST
        last = tests.latest[max(pulls - 1, 0)]
        if last == 0:
            return math.nan, 0.0, math.nan, BOUNDED
        spread = _spread(_deviation(setting, math.nan, last), _of_best(setting), 1.0, last, last)
        low = _bounded_below(setting, 0.0, spread)
        return math.nan, low, 2.0 * tests.half_widths[2 * last] + setting.z * spread, BOUNDED
    before = tests.latest[pulls - 1]
    skipped = before < pulls - 1
    survived = skipped and before > 0
    below = 2.0 * tests.half_widths[2 * pulls]
    above = 2.0 * tests.half_widths[2 * before] if survived else math.nan if skipped else below
    estimated = survived or not skipped
    gap = ((below + above) / 2.0 if survived else below) if estimated else math.nan
    earlier = before if survived else pulls
    arm, best = _deviation(setting, gap, pulls), _of_best(setting)
    spread = _spread(arm, best, 1.0, pulls, pulls)
    high = above + setting.z * _spread(arm, best, 1.0, earlier, earlier)
    if not estimated:
        return gap, _bounded_below(setting, below, spread), high, BOUNDED
    low = below - setting.z * spread
    if not skipped:
        longest = pulls + most if known else 2 * max(most - 1, pulls)  # counted in half epochs
        ahead = (below - 2.0 * tests.half_widths[longest]) / spread
        if ahead < CLEAR:
            low = min(low, max(below - _reach_before_the_end(setting, ahead) * spread, 0.0))
    return gap, low, high, ESTIMATED


@inlined
def naive_arm(pulls: int, horizon: float, constant: float) -> Appraised:
    """Appraise an arm by its pull count alone."""
    if pulls == 0:
        return math.nan, math.nan, math.nan, UNSEEN
    return constant * math.sqrt(math.log(horizon) / pulls), math.nan, math.nan, ESTIMATED


@called
def _reach_before_the_end(setting: Setting, ahead: float) -> float:
    """Return how far the low end reaches of an arm that the record was only just long enough to show eliminated."""
    least, most = setting.z, 64.0
    for _ in range(40):
        middle = (least + most) / 2.0
        if _log_normal_cdf(-middle) - _log_normal_cdf(ahead - middle) > setting.error:
            least = middle
        else:
            most = middle
    return least


@inlined
def _log_normal_cdf(u: float) -> float:
    """Return `log Phi(u)`, also where `Phi` itself is too small a number."""
    if u > -20.0:
        return math.log(0.5 * math.erfc(-u * math.sqrt(0.5)))
    square = u * u
    series = 1.0 - 1.0 / square * (1.0 - 3.0 / square * (1.0 - 5.0 / square * (1.0 - 7.0 / square)))
    return -0.5 * square - math.log(-u) - HALF_LOG_TAU + math.log(series)


@compiled
def equated_means(
    parameters: Any,
    known: NDArray[np.float64],
    of_known: NDArray[np.int64],
    own: NDArray[np.int64],
    rounds: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return, place by place, the mean at which `own` pulls give the index of the mean `known` after `of_known` pulls.

    Both indices are those before round `rounds` (from 1). NaN where nothing is known.
    """
    found = np.full(known.size, np.nan)
    for at in range(known.size):
        if known[at] == known[at]:
            level = index_value(parameters, known[at], of_known[at], rounds[at])
            found[at] = mean_value(parameters, level, own[at], rounds[at])
    return found
