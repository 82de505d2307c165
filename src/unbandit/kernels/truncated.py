"""Draw a standard normal that lies in an interval, and tell how likely the interval was."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import called, inlined
from unbandit.kernels.scalar import normal_quantile

__all__ = ["truncated"]

FAR = 8.0
"""From here on the tail is drawn from its leading term, which is off by a share of 1 / FAR^2."""

ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@inlined
def _below(x: float) -> float:
    """Return the normal distribution function."""
    return 0.5 * math.erfc(-x * ROOT_HALF)


@called
def _far(low: float, high: float, uniform: float) -> tuple[float, float]:
    """Draw between `low` and `high`, both below -FAR: there minus x^2 / 2 falls nearly as an exponential does."""
    near, steepness = high * high, -high
    for term in range(8, 0, -1):  # the continued fraction of density over tail
        steepness = -high + term / steepness
    beyond = 0.0 if low == -math.inf else math.exp(0.5 * (near - low * low))
    tail = 1.0 - uniform * (1.0 - beyond)
    return -math.sqrt(near - 2.0 * math.log(tail)), -0.5 * near - LOG_ROOT_TWO_PI - math.log(steepness) + math.log1p(
        -beyond
    )


@called
def truncated(low: float, high: float, uniform: float, table: NDArray[np.float64]) -> tuple[float, float]:
    """Return a standard normal between `low` and `high`, and the logarithm of the interval's probability.

    An empty interval has probability 0; what is returned then is its lower end.
    """
    if not low < high:
        return low, -math.inf
    mirrored = low > 0.0
    if mirrored:
        low, high = -high, -low
    if high < -FAR:
        value, mass = _far(low, high, uniform)
    else:
        at_low, at_high = _below(low), _below(high)
        if not at_low < at_high:
            return -low if mirrored else low, -math.inf
        inside = at_low + uniform * (at_high - at_low)
        value, mass = normal_quantile(min(max(inside, 1e-300), 1.0 - 1e-16), table), math.log(at_high - at_low)
        value = min(max(value, low), high)
    return -value if mirrored else value, mass
