"""Intervals: the noise of the rewards put into comparisons; gaps turned into means, or into ratios."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.procedures import Anchor, Comparison, assumptions
from unbandit.instance import Noise
from unbandit.kernels.procedures import fill_intervals
from unbandit.result import ESTIMATED

Numbers = NDArray[np.float64]


class Intervals(NamedTuple):
    """Intervals of every arm's gap and mean: arrays of (demonstrations, arms), NaN where there is no number.

    Attributes
    ----------
    low, high
        The ends of each gap's interval.
    deviation, deviation_above
        The standard deviation of each gap, and that of the comparison behind its upper end.
    mean, mean_low, mean_high
        Each mean with its interval, from one known mean; no rows without one.
    """

    low: Numbers
    high: Numbers
    deviation: Numbers
    deviation_above: Numbers
    mean: Numbers
    mean_low: Numbers
    mean_high: Numbers


def quantile(level: float) -> float:
    """Return `z`, the normal quantile of a two-sided interval.

    Examples
    --------
    >>> round(quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + level / 2)


def intervals(comparison: Comparison, noise: Noise, anchor: Anchor | None, z: float) -> Intervals:
    """Return the intervals of gaps, and from one known mean those of means, at `z` standard deviations.

    A bound is not let below 0, an estimate's end is.
    """
    demonstrations, arms = comparison.verdict.shape
    ends, means = np.empty((4, demonstrations, arms)), np.empty((3, 0 if anchor is None else demonstrations, arms))
    assumed = assumptions(anchor=anchor, noise=noise, z=z)
    fill_intervals(assumed, comparison.best, comparison.verdict, comparison.numbers, ends, means)
    return Intervals(*ends, *means)


def ratios(comparison: Comparison, reference: int | None) -> tuple[Numbers, NDArray[np.int64]]:
    """Count every gap in units of one arm's gap: a common factor falls out.

    Returns the ratios, NaN where the reference arm has no estimated gap above 0, and for each demonstration the
    reference arm: the one given, or the one whose gap is known best; -1 where there is none.
    """
    with np.errstate(invalid="ignore"):
        usable = (comparison.verdict == ESTIMATED) & (comparison.gap > 0)
    variance = 1 / comparison.own + 1 / comparison.other  # in units of sigma squared
    variance = np.where(np.isnan(variance), 1.0, variance)  # naive gaps have none: a common one
    known_best = np.where(usable, variance, np.inf).argmin(axis=-1)
    units = np.where(usable.any(axis=-1), known_best, -1)
    if reference is not None:
        units = np.full(units.shape, reference)
    place = np.maximum(units, 0)[..., None]
    counted = np.take_along_axis(usable, place, axis=-1) & (units >= 0)[..., None]
    unit = np.where(counted, np.take_along_axis(comparison.gap, place, axis=-1), np.nan)
    return np.asarray(comparison.gap / unit), units
