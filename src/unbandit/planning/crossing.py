"""From which horizon on is a curve low enough?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["at", "crossing"]

Numbers = NDArray[np.float64]


def crossing(horizons: Numbers, values: Numbers, target: float) -> Numbers:
    """Return the horizon from which on a curve stays at or below a target, along the first axis.

    Between two horizons both logarithms are taken as a straight line. It is the first horizon where the whole curve is
    low enough, and infinite where its last point is not.

    Examples
    --------
    >>> horizons = np.array([100.0, 400.0, 1600.0])
    >>> crossing(horizons, np.array([[0.4, 0.1, 0.4], [0.2, 0.1, 0.3], [0.1, 0.1, np.inf]]), 0.2828).round().tolist()
    [200.0, 100.0, inf]
    """
    across = np.asarray(values, np.float64).reshape(len(horizons), -1)
    found = np.empty(across.shape[1])
    for at_column, column in enumerate(across.T):
        high = np.flatnonzero(~(column <= target))
        if high.size == 0:
            found[at_column] = horizons[0]
        elif high[-1] == len(horizons) - 1:
            found[at_column] = np.inf
        else:
            found[at_column] = _between(horizons, column, int(high[-1]), target)
    return found.reshape(np.shape(values)[1:])


def _between(horizons: Numbers, column: Numbers, place: int, target: float) -> float:
    """Return where the line from a point above the target to the next one, not above it, meets the target."""
    above, below = column[place], column[place + 1]
    if not np.isfinite(above) or below <= 0:
        return float(horizons[place + 1])
    share = np.log(above / target) / np.log(above / below)
    return float(horizons[place] * (horizons[place + 1] / horizons[place]) ** share)


def at(horizons: Numbers, values: Numbers, wanted: Numbers) -> Numbers:
    """Return a growing curve's value at some horizons, logarithms taken as a straight line; NaN outside.

    Examples
    --------
    >>> at(np.array([100.0, 400.0]), np.array([10.0, 20.0]), np.array([200.0, np.inf])).round(1).tolist()
    [14.1, nan]
    """
    with np.errstate(divide="ignore"):
        result = np.exp(np.interp(np.log(wanted), np.log(horizons), np.log(values)))
    return np.where((wanted >= horizons[0]) & (wanted <= horizons[-1]), result, np.nan)
