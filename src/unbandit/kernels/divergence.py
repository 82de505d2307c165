"""Bounds on a Bernoulli mean from the Kullback-Leibler divergence `d(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))`."""

from __future__ import annotations

import math

from unbandit.kernels.compiling import inlined

__all__ = ["bernoulli_divergence", "lower_bernoulli", "upper_bernoulli"]

STEPS = 64
TINY = 1e-300
CLOSE = 4e-16


@inlined
def bernoulli_divergence(mean: float, away: float) -> float:
    """Return `d(mean, mean + away)` for `mean` and `mean + away` in (0, 1); exact to a small part of `away`."""
    return -mean * math.log1p(away / mean) - (1.0 - mean) * math.log1p(-away / (1.0 - mean))


@inlined
def upper_bernoulli(mean: float, rate: float) -> float:
    """Return the largest `q` with `d(mean, q) <= rate`; means outside [0, 1] count as its ends.

    The divergence is convex in `q`, so Newton's steps from above go down to the solution without passing it by. Two
    points above it are known: Pinsker's `mean + sqrt(rate / 2)`, and the solution where `-mean ln q` is left out.
    """
    if mean >= 1.0:
        return 1.0
    if mean < TINY:
        return -math.expm1(-rate)
    if not rate > 0.0:
        return mean
    rest = 1.0 - mean
    entropy = -mean * math.log(mean) - rest * math.log(rest)
    away = min(math.sqrt(0.5 * rate), rest - math.exp(-(rate + entropy) / rest))
    for _ in range(STEPS):
        left = rest - away
        if not left > 0.0:
            return 1.0
        step = (bernoulli_divergence(mean, away) - rate) * (mean + away) * left / away
        away -= step
        if not step > CLOSE:
            break
    return min(mean + away, 1.0)


@inlined
def lower_bernoulli(index: float, rate: float) -> float:
    """Return the mean whose `upper_bernoulli` is `index`: the smallest `p` with `d(p, index) <= rate`.

    Infinite where no mean has that bound: above 1, and below that of a mean of 0. The divergence is convex in `p` too.
    """
    if index >= 1.0:
        return 1.0 if index == 1.0 else math.inf
    if not rate > 0.0:
        return index
    lowest = -math.expm1(-rate)
    if index <= lowest:
        return 0.0 if index == lowest else -math.inf
    p = index - math.sqrt(0.5 * rate)  # below the solution, by Pinsker's inequality
    if not p > 0.0:
        p = 0.5 * min(index, -math.log1p(-index) - rate)
        for _ in range(STEPS):
            if bernoulli_divergence(p, index - p) >= rate:
                break
            p *= 0.5
    for _ in range(STEPS):
        slope = math.log1p((index - p) / p) - math.log1p((p - index) / (1.0 - p))
        step = (bernoulli_divergence(p, index - p) - rate) / slope
        p += step
        if not step > CLOSE:
            break
    return min(max(p, 0.0), index)
