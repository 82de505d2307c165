"""Intervals of gaps and means: what the noise of the rewards leaves open about an arm that was compared.

A comparison (`kernels.procedures.Compared`) is between sample means; here stand how far those stray from the means, and
the ends of intervals that follow. On the CPU `fill_intervals` runs over demonstrations and arms; a GPU calls the
functions of one arm.
"""

import math

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import Marks, Numbers, called, compiled_late, inlined
from unbandit.kernels.procedures import BEST, BEST_ARM, BOUNDED, Assumptions, Compared
from unbandit.kernels.special import log_normal_cdf

ONE_IN_A_MILLION = 4.75  # standard deviations that a normal variable exceeds by luck once in a million times
APART = 1.3  # times `z`: the best arm is chosen after the fact, so an arm this close is not told apart from it
CLEAR = 4.0  # deviations by which a gap must exceed the smallest that the record could show, to be taken as it is

Verdicts = NDArray[np.int8]


@inlined
def reward_deviation(assumed: Assumptions, mean: float, pulls: float) -> float:
    """Return the standard deviation of an arm's rewards; 1/2 for a Bernoulli arm whose mean is not known.

    A mean that was estimated at 0 or below, or at 1 or above, says no more than that it is not known.
    """
    if assumed.sigma == assumed.sigma:
        return assumed.sigma
    if not 0.0 < mean < 1.0:
        return 0.5
    # Few successes, or few failures, do not show how rare they are: as if there had been two more of each.
    added = (pulls * mean + 2.0) / (pulls + 4.0)
    variance, smoothed = mean * (1.0 - mean), abs(added * (1.0 - added))
    return math.sqrt(max(variance, smoothed) if smoothed == smoothed else variance)


@inlined
def known_deviation(assumed: Assumptions) -> float:
    """Return the standard deviation of the rewards of the arm whose mean is known."""
    if assumed.sigma == assumed.sigma:
        return assumed.sigma
    return math.sqrt(assumed.known_mean * (1.0 - assumed.known_mean))


@inlined
def _variance(of_arm: float, of_best: float, slope: float, own: float, other: float) -> float:
    """Return the variance of a gap; NaN where nothing was compared."""
    return of_arm * of_arm / own + (slope * of_best) * (slope * of_best) / other


@inlined
def gap_variances(compared: Compared, of_arm: float, of_best: float) -> tuple[float, float]:
    """Return the variances behind the low and the high end of a gap's interval; NaN where nothing was compared."""
    if compared.spread == compared.spread:
        return compared.spread * compared.spread, compared.spread * compared.spread
    return (
        _variance(of_arm, of_best, compared.slope, compared.own, compared.other),
        _variance(of_arm, of_best, compared.slope, compared.own_above, compared.other_above),
    )


@called
def gap_interval(
    assumed: Assumptions, compared: Compared, of_arm: float, of_best: float, level_deviation: float
) -> tuple[float, float, float, float]:
    """Return the low and high ends of a gap's interval, and the standard deviation behind each.

    A bound is not let below 0, an estimate's end is. `of_arm` and `of_best` are the standard deviations of a reward,
    `level_deviation` that of the best arm's mean where it follows from another arm's (0 otherwise).
    """
    loose = ((1.0 - compared.slope) * level_deviation) * ((1.0 - compared.slope) * level_deviation)
    below, above = gap_variances(compared, of_arm, of_best)
    deviation, earlier = math.sqrt(below + loose), math.sqrt(above + loose)
    high = compared.above + assumed.z * earlier
    if compared.verdict == BOUNDED:
        # An arm given up at once gets its verdict *because* its first rewards were low. Where that would happen to an
        # arm as good as the best more often than once in a million times, the bound holds at a smaller error.
        reach = assumed.wider if compared.below < ONE_IN_A_MILLION * deviation else assumed.z
        reach = reach * deviation if deviation == deviation else 0.0
        return max(compared.below - reach, 0.0), high, deviation, earlier
    low = compared.below - assumed.z * deviation
    if compared.spread == compared.spread and compared.below < APART * assumed.z * deviation:
        low = min(low, 0.0)
    ahead = (compared.below - compared.cut) / deviation
    if ahead < CLEAR:
        low = min(low, max(compared.below - _reach_before_the_end(assumed, ahead) * deviation, 0.0))
    return low, high, deviation, earlier


@called
def _reach_before_the_end(assumed: Assumptions, ahead: float) -> float:
    """Return how far the low end reaches of an arm that the record was only just long enough to show eliminated.

    Had such an arm's sample mean been a little better, there would be no estimate: given that there is one, it is
    likely too large. With `x` the gap found and `c` the smallest that the record could show, the low end is the `g` at
    which a normal variable around `g` is `x` or more in 2.5% (of 95% intervals) of the cases in which it is `c` or
    more; but at least 0, since no gap is below.
    """
    least, most = assumed.z, 64.0
    for _ in range(40):
        middle = (least + most) / 2.0
        if log_normal_cdf(-middle) - log_normal_cdf(ahead - middle) > assumed.log_error:
            least = middle
        else:
            most = middle
    return least


@inlined
def _taken(verdict: Verdicts, numbers: Numbers, d: int, arm: int) -> Compared:
    return Compared(
        verdict[d, arm], numbers[0, d, arm], numbers[1, d, arm], numbers[2, d, arm], numbers[3, d, arm],
        numbers[4, d, arm], numbers[5, d, arm], numbers[6, d, arm], numbers[7, d, arm], numbers[8, d, arm],
        numbers[9, d, arm],
    )  # fmt: skip


@compiled_late(spared=200)  # arms
def fill_intervals(
    assumed: Assumptions, best: Marks, verdict: Verdicts, numbers: Numbers, ends: Numbers, means: Numbers
) -> None:
    """Fill in intervals of gaps, and from one known mean those of means.

    With any arm but the best as anchor, both comparisons' noise counts: the interval is rather too long, as the two
    share the best arm's sample mean in part. An anchor without an estimated gap says nothing about the others. `ends`
    are low and high ends of the gaps and the standard deviation behind each, (4, demonstrations, arms); `means` are
    points, low and high ends, (3, demonstrations, arms), or (3, 0, arms) for none.
    """
    arms, anchor, known = best.shape[1], assumed.anchor, assumed.known_mean
    for d in range(best.shape[0]):
        top, active = -1, 0
        for arm in range(arms):
            active += 1 if best[d, arm] else 0
            top = arm if best[d, arm] and top < 0 else top
        alone, itself = active == 1, active == 1 and top == anchor
        # the best arm's mean, as far as the anchor shows it, and its deviation
        shift = numbers[0, d, anchor] if anchor >= 0 else 0.0
        level = known + (shift if shift == shift else 0.0)
        of_best = 0.5 if assumed.sigma != assumed.sigma else assumed.sigma
        if anchor == BEST_ARM or itself:
            of_best = known_deviation(assumed)
        elif anchor >= 0 and alone:
            of_best = reward_deviation(assumed, level, math.nan)
        level_deviation = 0.0
        if anchor >= 0:
            compared = _taken(verdict, numbers, d, anchor)
            variance, _ = gap_variances(compared, known_deviation(assumed), of_best)
            level_deviation = math.sqrt(variance if variance == variance else 0.0) / compared.slope
        for arm in range(arms):
            compared = _taken(verdict, numbers, d, arm)
            of_arm = reward_deviation(assumed, level - compared.gap, compared.own)
            if arm == anchor:
                of_arm = known_deviation(assumed)
            low, high, deviation, earlier = gap_interval(assumed, compared, of_arm, of_best, level_deviation)
            ends[0, d, arm], ends[1, d, arm], ends[2, d, arm], ends[3, d, arm] = low, high, deviation, earlier
            if means.shape[1] == 0:
                continue
            if anchor == BEST_ARM or itself:
                mean, mean_low, mean_high = known - compared.gap, known - high, known - low
            elif shift != shift:
                mean, mean_low, mean_high = math.nan, math.nan, math.nan
            elif arm == anchor:
                mean, mean_low, mean_high = known, math.nan, math.nan
            else:
                mean, mean_low, mean_high = _mean_interval(
                    assumed, compared, of_arm, of_best, known + shift, level_deviation
                )
            means[0, d, arm], means[1, d, arm], means[2, d, arm] = mean, mean_low, mean_high


@called
def _mean_interval(
    assumed: Assumptions, compared: Compared, of_arm: float, of_best: float, level: float, level_deviation: float
) -> tuple[float, float, float]:
    """Return an arm's mean with its interval, from the best arm's mean and that mean's standard deviation."""
    loose = (compared.slope * level_deviation) * (compared.slope * level_deviation)
    variance, earlier = gap_variances(compared, of_arm, of_best)
    reach = assumed.z * math.sqrt((variance if variance == variance else 0.0) + loose)
    further = assumed.z * math.sqrt((earlier if earlier == earlier else 0.0) + loose)
    mean = level - compared.gap
    if compared.verdict == BEST:
        return mean, mean - reach, mean + reach
    return mean, level - compared.above - further, level - compared.below + reach
