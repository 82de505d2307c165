"""The statistics that claims rest on: slopes, ratios of curves, and whether curves collapse.

All work on replicates, arrays of (folds + 1, points), and return (folds + 1,): `measured` then gives value and error.
They use only horizons at which nearly all runs have an estimate, and ask for three of them; `used` says which.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.paper.claim import Claim, below
from unbandit.study.curves import Curve
from unbandit.study.monte_carlo import measured, slope

__all__ = ["collapse", "fall", "falling", "growth_of_regret", "ratio", "used", "within_range"]

Replicates = NDArray[np.float64]

FEWEST = 3
"""Horizons that a statistic over them needs."""


def within_range(curve: Curve, low: float, high: float) -> NDArray[np.bool_]:
    """Tell which points have a horizon from `low` to `high`, and an estimate in nearly all of their runs."""
    return np.asarray((curve.horizon >= low) & (curve.horizon <= high) & curve.usable)


def used(curve: Curve, where: NDArray[np.bool_]) -> str:
    """Say which of a curve's horizons a statistic rests on."""
    horizons = curve.horizon[where]
    if horizons.size < FEWEST:
        return f"{horizons.size} of {curve.horizon.size} horizons can be used"
    return f"{horizons.size} horizons, T from {horizons.min():,.0f} to {horizons.max():,.0f}"


def growth_of_regret(curve: Curve, where: NDArray[np.bool_]) -> Replicates:
    """Return the slope of log regret against log T."""
    return slope(np.log(curve.horizon), np.log(curve.regret), where)


def fall(curve: Curve, where: NDArray[np.bool_]) -> Replicates:
    """Return the slope of log mean squared error against log T."""
    if where.sum() < FEWEST:
        return np.full(len(curve.mse), np.nan)
    return slope(np.log(curve.horizon), _log(curve.mse), where)


def falling(says: str, curve: Curve, where: NDArray[np.bool_] | None = None) -> Claim:
    """Test that the error falls with the horizon."""
    there = curve.usable if where is None else where
    found = measured(fall(curve, there))
    return Claim(says, f"slope of log MSE on log T, below 0; {used(curve, there)}", found, *below(found, 0.0))


def ratio(first: Replicates, second: Replicates, where: NDArray[np.bool_]) -> Replicates:
    """Return the geometric mean, over the points, of one curve divided by another.

    Examples
    --------
    >>> every = np.ones(3, bool)
    >>> ratio(np.array([[1.0, 4.0, 2.0]]), np.array([[2.0, 2.0, 2.0]]), every).round(6).tolist()
    [1.0]
    """
    if where.sum() < FEWEST:
        return np.full(len(first), np.nan)
    return np.asarray(np.exp((_log(first) - _log(second))[:, where].mean(axis=1)))


def collapse(x: tuple[Replicates, Replicates], y: tuple[Replicates, Replicates]) -> Replicates:
    """Return the factor by which the second curve lies above the first at equal x, on logarithmic axes.

    Both get a straight line of one common slope; the factor is the distance between the two lines.

    Examples
    --------
    >>> across = np.array([[1.0, 10.0, 100.0]])
    >>> collapse((across, across * 3), (1 / across, 2 / (across * 3))).round(6).tolist()
    [2.0]
    """
    log_x, log_y = [_log(values) for values in x], [_log(values) for values in y]
    if any(values.shape[1] < FEWEST for values in log_x):
        return np.full(len(log_x[0]), np.nan)

    def centred(values: Replicates) -> Replicates:
        return np.asarray(values - values.mean(axis=1, keepdims=True))

    products = sum((centred(a) * centred(b)).sum(axis=1) for a, b in zip(log_x, log_y, strict=True))
    squares = sum(np.square(centred(a)).sum(axis=1) for a in log_x)
    heights = [b.mean(axis=1) - products / squares * a.mean(axis=1) for a, b in zip(log_x, log_y, strict=True)]
    return np.asarray(np.exp(heights[1] - heights[0]))


def _log(values: Replicates) -> Replicates:
    """Return logarithms; NaN of what is not positive."""
    return np.log(np.where(values > 0, values, np.nan))
