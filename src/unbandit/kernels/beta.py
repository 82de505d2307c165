"""The Beta distribution on the scale of log odds, on which all its shapes are smooth and have one peak.

A number `x` in (0, 1) is `1 / (1 + exp(-y))`. There the density of Beta(a, b) is `x^a (1 - x)^b / B(a, b)`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined
from unbandit.kernels.normal import normal_from_uniform

__all__ = ["beta_cdf", "exponential", "log_beta", "log_odds_from_uniform", "log_share"]

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
CELLS = 16  # of the two tables, a unit
LOWEST = -40.0


def _tables() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `exp` at the middles of its cells, and four Taylor coefficients of `-log(1 + exp(-y))` at those of its."""
    middles = LOWEST + (np.arange(round((4.0 - LOWEST) * CELLS)) + 0.5) / CELLS
    y = -20.0 + (np.arange(40 * CELLS) + 0.5) / CELLS
    x = 1.0 / (1.0 + np.exp(-y))
    shares = np.column_stack([-np.log1p(np.exp(-y)), 1 - x, -x * (1 - x) / 2, -x * (1 - x) * (1 - 2 * x) / 6])
    return np.exp(middles), shares


EXPONENTIALS, SHARES = _tables()


@inlined
def exponential(value: float) -> float:
    """Return `exp(value)` with a relative error of 1e-7; values are at most 4, and vanish below -40."""
    if value < LOWEST:
        return math.exp(value)
    scaled = (value - LOWEST) * CELLS
    at = np.int64(scaled)
    d = (scaled - at - 0.5) * (1.0 / CELLS)
    return EXPONENTIALS[np.uint64(at)] * (1.0 + d * (1.0 + d * (0.5 + d * (1.0 / 6.0))))


@inlined
def log_share(y: float) -> float:
    """Return `log x`, that is `-log(1 + exp(-y))`, with an absolute error of 1e-7."""
    if y <= -20.0:
        return y
    if y >= 20.0:
        return -math.exp(-y)
    scaled = (y + 20.0) * CELLS
    at = np.int64(scaled)
    d, cell = (scaled - at - 0.5) * (1.0 / CELLS), np.uint64(at)
    return (SHARES[cell, 0] + d * SHARES[cell, 1]) + (d * d) * (SHARES[cell, 2] + d * SHARES[cell, 3])


@inlined
def _log_gamma(value: float) -> float:
    """Return `log Gamma`, by Stirling's series from 8 on and by the recurrence below."""
    below = 1.0
    while value < 8.0:
        below *= value
        value += 1.0
    inverse = 1.0 / value
    square = inverse * inverse
    series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0))
    stirling = (value - 0.5) * math.log(value) - value + HALF_LOG_TWO_PI + series
    return stirling if below == 1.0 else stirling - math.log(below)


@inlined
def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the Beta function."""
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


@inlined
def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete Beta function, from the front (Lentz), to 1e-9."""
    total, c = a + b, 1.0
    d = 1.0 / (1.0 - total * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        twice = a + 2.0 * m
        even = m * (b - m) * x / ((twice - 1.0) * twice)
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        value *= d * c
        odd = -(a + m) * (total + m) * x / (twice * (twice + 1.0))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        value *= d * c
        if abs(d * c - 1.0) < 1e-9:
            break
    return value


@inlined
def beta_cdf(a: float, b: float, norm: float, y: float) -> float:
    """Return the probability of log odds below `y`; `norm` is `log_beta(a, b)`."""
    x, log_x = 1.0 / (1.0 + math.exp(-y)), -math.log1p(math.exp(-y)) if y > -36.0 else y
    front = math.exp(a * log_x + b * (log_x - y) - norm)
    if x * (a + b + 2.0) < a + 1.0:
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


@inlined
def log_odds_from_uniform(a: float, b: float, uniform: float) -> float:
    """Return the log odds at which the distribution function is `uniform`, by Newton's steps on its logarithm.

    The logarithm bends downwards, so every step lands below the solution and the next ones rise to it. The upper half
    is the lower half of Beta(b, a).
    """
    below = uniform <= 0.5
    if not below:
        a, b, uniform = b, a, 1.0 - uniform
    norm, goal = log_beta(a, b), math.log(uniform)
    y = math.log(a / b) + min(0.0, normal_from_uniform(uniform)) * math.sqrt(1.0 / a + 1.0 / b)
    for _ in range(100):
        height = beta_cdf(a, b, norm, y)
        log_x = -math.log1p(math.exp(-y)) if y > -36.0 else y
        density = math.exp(a * log_x + b * (log_x - y) - norm)
        step = (goal - math.log(height)) * height / density if density > 0.0 else 1.0
        y += step
        if abs(step) < 1e-9 * (1.0 + abs(y)):
            break
    return y if below else -y
