"""Put the noise in: from comparisons to intervals, and from gaps to means."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.procedures import Anchor, Comparison
from unbandit.result import BEST, BOUNDED

ONE_IN_A_MILLION = 4.75
"""As many standard deviations are exceeded by luck once in a million times."""

CLEAR = 4.0
"""By so many deviations a gap must exceed the smallest that the record could show, to be taken as it is."""

FIFTY = 50
"""How many times smaller the error of a bound is made where luck may have given it."""

Numbers = NDArray[np.float64]

Deviation = float | NDArray[np.float64]
"""One number for all, or one a demonstration or an arm."""


@dataclass(frozen=True)
class Noise:
    """Hold the standard deviation of a reward: one number, or None for Bernoulli rewards, whose mean decides."""

    sigma: float | None

    def of_arms(self, comparison: Comparison, anchor: Anchor | None) -> tuple[Deviation, Deviation]:
        """Return the deviation for each arm, and for the best arm; 1/2 for a Bernoulli arm whose mean is not known.

        A mean that was estimated at 0 or below, or at 1 or above, says no more than that it is not known.
        """
        if self.sigma is not None:
            return self.sigma, self.sigma
        if anchor is None:
            return 0.5, 0.5
        points = _points(comparison, anchor)
        inside = (points > 0) & (points < 1)
        # Few successes, or few failures, do not show how rare they are: as if there had been two more of each.
        added = (comparison.own * points + 2) / (comparison.own + 4)
        variance = np.fmax(points * (1 - points), np.abs(added * (1 - added)))
        deviations = np.where(inside, np.sqrt(np.abs(variance)), 0.5)
        given = float(np.sqrt(anchor.value * (1 - anchor.value)))
        known = comparison.best.sum(axis=-1, keepdims=True) == 1
        if anchor.arm is None:
            deviations[comparison.best & known] = given
            return deviations, given
        deviations[..., anchor.arm] = given
        best = np.take_along_axis(deviations, comparison.best.argmax(axis=-1)[..., None], axis=-1)
        return deviations, np.where(known, best, 0.5)


def quantile(level: float) -> float:
    """Return `z`, the normal quantile of a two-sided interval.

    Examples
    --------
    >>> round(quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + level / 2)


def ends(
    comparison: Comparison, noise: Noise, anchor: Anchor | None, z: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low and high ends of every gap's interval; a bound is not let below 0, an estimate's end is."""
    deviation, above = spreads(comparison, noise, anchor)
    low, bounded = comparison.below - z * deviation, comparison.verdict == BOUNDED
    if bounded.any():
        reach = np.nan_to_num(_by_luck(comparison, deviation, z) * deviation)
        low = np.where(bounded, comparison.below - reach, low)
    if comparison.cut is not None:
        low = np.fmin(low, _before_the_end(comparison, comparison.cut, deviation, z))
    if bounded.any():
        low = np.where(bounded, np.maximum(low, 0.0), low)
    return low, comparison.above + z * above


def spreads(
    comparison: Comparison, noise: Noise, anchor: Anchor | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the standard deviation of each gap, and that of the comparison behind its upper end."""
    variances = (_variance(comparison, noise, anchor), _variance(comparison, noise, anchor, above=True))
    if anchor is None or anchor.arm is None:
        return np.sqrt(variances[0]), np.sqrt(variances[1])
    loose = ((1 - comparison.slope) * _level_deviation(comparison, noise, anchor)) ** 2  # what the anchor leaves open
    return np.sqrt(variances[0] + loose), np.sqrt(variances[1] + loose)


def _by_luck(comparison: Comparison, deviation: NDArray[np.float64], z: float) -> NDArray[np.float64]:
    """Return how many deviations a bound from below allows for.

    An arm given up at once gets its verdict *because* its first rewards were low. Where that would happen to an
    arm as good as the best more often than once in a million times, the bound holds at an error fifty times smaller.
    """
    wider = NormalDist().inv_cdf(1 - NormalDist().cdf(-z) / FIFTY)
    with np.errstate(invalid="ignore"):
        return np.where(comparison.below < ONE_IN_A_MILLION * deviation, wider, z)


def _before_the_end(comparison: Comparison, cut: Numbers, deviation: Numbers, z: float) -> Numbers:
    """Return the low ends of arms that the record was only just long enough to show eliminated; NaN for others.

    Had such an arm's sample mean been a little better, there would be no estimate: given that there is one, it is
    likely too large. With `x` the gap found and `c` the smallest that the record could show, the low end is the `g` at
    which a normal variable around `g` is `x` or more in 2.5% (of 95% intervals) of the cases in which it is `c` or
    more; but at least 0, for no gap is below.
    """
    ends = np.full(comparison.below.shape, np.nan)
    with np.errstate(invalid="ignore"):
        ahead = (comparison.below - cut) / deviation
        near = np.flatnonzero(ahead < CLEAR)
    if near.size == 0:
        return ends
    from scipy.special import log_ndtr

    error, distance = np.log(NormalDist().cdf(-z)), ahead.flat[near]
    least, most = np.full(near.size, z), np.full(near.size, 64.0)
    for _ in range(40):
        middle = (least + most) / 2
        more = log_ndtr(-middle) - log_ndtr(distance - middle) > error
        least, most = np.where(more, middle, least), np.where(more, most, middle)
    ends.flat[near] = np.maximum(comparison.below.flat[near] - least * deviation.flat[near], 0.0)
    return ends


def means(
    comparison: Comparison, noise: Noise, anchor: Anchor | None, z: float, found: tuple[Numbers, Numbers]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return every arm's mean with its interval's ends, from one known mean; NaN without one.

    `found` has the ends of the gaps' intervals.
    An anchor with no estimated gap tells nothing about the others: then, too, all are NaN.

    With any arm but the best as anchor, both comparisons' noise counts: the interval is rather too long, as the two
    share the best arm's sample mean in part.
    """
    if anchor is None:
        return (np.broadcast_to(np.nan, comparison.gap.shape),) * 3
    straight = anchor.value - comparison.gap, anchor.value - found[1], anchor.value - found[0]
    if anchor.arm is None:
        return straight
    level = anchor.value + comparison.gap[..., [anchor.arm]]  # the best arm's mean, as far as the anchor tells
    loose = (comparison.slope * _level_deviation(comparison, noise, anchor)) ** 2
    reach = z * np.sqrt(np.nan_to_num(_variance(comparison, noise, anchor)) + loose)
    further = z * np.sqrt(np.nan_to_num(_variance(comparison, noise, anchor, above=True)) + loose)
    point, below, above = level - comparison.gap, level - comparison.above - further, level - comparison.below + reach
    best = comparison.verdict == BEST
    below[best], above[best] = point[best] - reach[best], point[best] + reach[best]
    below[..., anchor.arm] = above[..., anchor.arm] = np.nan
    point[..., anchor.arm] = anchor.value
    itself = comparison.best[..., [anchor.arm]] & (comparison.best.sum(axis=-1, keepdims=True) == 1)
    lost = np.isnan(level) & ~itself
    point, below, above = (
        np.where(itself, known, np.where(lost, np.nan, values))
        for known, values in zip(straight, (point, below, above), strict=True)
    )
    return point, below, above


def _points(comparison: Comparison, anchor: Anchor) -> NDArray[np.float64]:
    """Return the means as the anchor tells them."""
    shift = 0.0 if anchor.arm is None else np.nan_to_num(comparison.gap[..., [anchor.arm]])
    return np.asarray(anchor.value + shift - comparison.gap)


def _variance(
    comparison: Comparison, noise: Noise, anchor: Anchor | None, *, above: bool = False
) -> NDArray[np.float64]:
    """Return the variance of each gap, or of the comparison behind its upper end; NaN where nothing was compared."""
    own, best = noise.of_arms(comparison, anchor)
    pulls = (comparison.own_above, comparison.other_above) if above else (comparison.own, comparison.other)
    return np.asarray(np.square(own) / pulls[0] + np.square(comparison.steepness * best) / pulls[1])


def _level_deviation(comparison: Comparison, noise: Noise, anchor: Anchor | None) -> Deviation:
    """Return the deviation of the best arm's mean as the anchor tells it; 0 where it is given, or does not matter."""
    if anchor is None or anchor.arm is None:
        return 0.0
    of_anchor = np.nan_to_num(_variance(comparison, noise, anchor)[..., [anchor.arm]])
    found = np.sqrt(of_anchor) / comparison.slope[..., [anchor.arm]]
    return found if comparison.gap.ndim > 1 else float(found[0])
