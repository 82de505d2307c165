"""Put the noise in: from comparisons to intervals, and from gaps to means."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.comparison import Comparison
from unbandit.result import BEST, BOUNDED

__all__ = ["Anchor", "Noise", "ends", "means", "quantile"]


Deviation = float | NDArray[np.float64]
"""One number, or one a demonstration."""


@dataclass(frozen=True)
class Anchor:
    """Hold one arm's known mean; arm None stands for the best arm, whichever it is."""

    arm: int | None
    value: float


@dataclass(frozen=True)
class Noise:
    """Hold the standard deviation of a reward: one number, or None for Bernoulli rewards, whose mean decides."""

    sigma: float | None

    def of_arms(self, comparison: Comparison, anchor: Anchor | None) -> tuple[NDArray[np.float64], Deviation]:
        """Return the deviation for each arm, and for the best arm; 1/2 for a Bernoulli arm whose mean is not known.

        A mean that was estimated at 0 or below, or at 1 or above, says no more than that it is not known.
        """
        if self.sigma is not None:
            return np.full(comparison.gap.shape, self.sigma), self.sigma
        if anchor is None:
            return np.full(comparison.gap.shape, 0.5), 0.5
        points = _points(comparison, anchor)
        inside = (points > 0) & (points < 1)
        deviations = np.where(inside, np.sqrt(np.abs(points * (1 - points))), 0.5)
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
    reach = z * _deviation(comparison, noise, anchor)
    bounded = comparison.verdict == BOUNDED
    low = comparison.below - np.where(bounded, np.nan_to_num(reach), reach)
    return np.where(bounded, np.maximum(low, 0.0), low), comparison.above + reach


def means(
    comparison: Comparison, noise: Noise, anchor: Anchor | None, z: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return every arm's mean with its interval's ends, from one known mean; NaN without one.

    An anchor with no estimated gap tells nothing about the others: then, too, all are NaN.

    With any arm but the best as anchor, both comparisons' noise counts: the interval is rather too long, as the two
    share the best arm's sample mean in part.
    """
    nothing = np.full(comparison.gap.size, np.nan)
    if anchor is None:
        return nothing, nothing, nothing
    low, high = ends(comparison, noise, anchor, z)
    if anchor.arm is None or np.flatnonzero(comparison.best).tolist() == [anchor.arm]:
        return anchor.value - comparison.gap, anchor.value - high, anchor.value - low
    if np.isnan(comparison.gap[anchor.arm]):
        return nothing, nothing, nothing
    level = anchor.value + comparison.gap[anchor.arm]  # the best arm's mean, as far as the anchor tells
    deviation = _deviation(comparison, noise, anchor)
    reach = z * np.sqrt(np.nan_to_num(deviation) ** 2 + deviation[anchor.arm] ** 2)
    point, below, above = level - comparison.gap, level - comparison.above - reach, level - comparison.below + reach
    best = comparison.verdict == BEST
    below[best], above[best] = point[best] - reach[best], point[best] + reach[best]
    below[anchor.arm] = above[anchor.arm] = np.nan
    point[anchor.arm] = anchor.value
    return point, below, above


def _points(comparison: Comparison, anchor: Anchor) -> NDArray[np.float64]:
    """Return the means as the anchor tells them."""
    shift = 0.0 if anchor.arm is None else np.nan_to_num(comparison.gap[anchor.arm])
    return np.asarray(anchor.value + shift - comparison.gap)


def _deviation(comparison: Comparison, noise: Noise, anchor: Anchor | None) -> NDArray[np.float64]:
    """Return the standard deviation of each gap; NaN where nothing was compared."""
    own, best = noise.of_arms(comparison, anchor)
    return np.asarray(np.sqrt(own**2 / comparison.own + best**2 / comparison.other))
