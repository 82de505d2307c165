"""What the paper says of its main picture: of each panel, and of the bounds behind them.

How near is near enough was settled before any of it was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from unbandit import theory
from unbandit.paper.claim import Claim, above, below, within
from unbandit.paper.comparing import collapse, fall, growth_of_regret, ratio, within_range
from unbandit.study.folds import Curve, Measured, measured, slope

__all__ = ["bounds", "fraction", "of_panels"]

ByAlpha = list[tuple[float, Curve]]
"""The worse of two arms at each alpha, the smaller alpha first."""

CLOSE_TO_MINUS_ONE = 0.1
"""How far from -1 a slope may be and still be called very close to it."""

ON_ONE_CURVE = 1.25
"""By what factor two curves may differ and still be said to collapse; and the other way round."""

NEARLY_LINEAR = 0.2
"""How far from 1 an exponent may be and still be called nearly linear."""


def bounds(alphas: ByAlpha, longest: int, bernoulli: bool) -> Iterator[Claim]:
    """Compare with the paper's bounds, at their own constants."""
    for alpha, found in alphas:
        gap, last = float(found.gap[0]), np.flatnonzero(found.along == longest)[0]
        limits = np.array([theory.regret_upper_bound([gap], horizon, alpha) for horizon in found.horizon])
        largest = measured((found.regret / limits).max(axis=1))
        yield Claim(
            f"the regret stays below the bound of Proposition 1 (α = {alpha})",
            "regret over the bound, the largest of all T, below 1",
            largest,
            *below(largest, 1.0),
        )
        asked = theory.horizon_required([gap], longest, alpha)
        share = Measured(longest / asked, 0.0, len(found.mse) - 1)
        yield Claim(
            f"the horizons shown are long enough for Theorem 2 (α = {alpha})",
            f"longest horizon of the paper, {longest:,}, over what the theorem asks for, above 1",
            share,
            *above(share, 1.0),
        )
        if bernoulli:
            above_bound = measured(found.mean_absolute_error[:, last] / theory.lower_bound(found.pulls[:, last]))
            yield Claim(
                f"no estimator beats the bound of Theorem 1 (α = {alpha})",
                f"mean absolute error over the bound at T = {longest:,}, above 1",
                above_bound,
                *above(above_bound, 1.0),
            )


def of_panels(alphas: ByAlpha, arms: list[Curve], start: int, stop: int) -> Iterator[Claim]:
    """Test what is said of panels (a) to (d), over the horizons from `start` to `stop`."""
    over = f"T from {start:,} to {stop:,}"
    (_, low), (_, high) = alphas
    every = (low.horizon >= start) & (low.horizon <= stop)
    for alpha, found in alphas:
        grows = measured(growth_of_regret(found, every))
        yield Claim(
            f"(a) the regret grows slower than T (α = {alpha})",
            f"slope of log regret on log T, below 1; {over}",
            grows,
            *below(grows, 1.0),
        )
    more = measured(ratio(high.regret, low.regret, every))
    yield Claim(
        "(a) a larger α pays more regret",
        f"regret at α = 0.25 over that at α = 0.15, geometric mean over T, above 1; {over}",
        more,
        *above(more, 1.0),
    )
    for alpha, found in alphas:
        falls = measured(fall(found, within_range(found, start, stop)))
        yield Claim(
            f"(b) the error falls with T (α = {alpha})",
            f"slope of log MSE on log T, below 0; {over}",
            falls,
            *below(falls, 0.0),
        )
    both = within_range(low, start, stop) & within_range(high, start, stop)
    less = measured(ratio(high.mse, low.mse, both))
    yield Claim(
        "(b) a larger α leaves a smaller error",
        f"MSE at α = 0.25 over that at α = 0.15, geometric mean over T, below 1; {over}",
        less,
        *below(less, 1.0),
    )
    steeper = measured(fall(high, both) - fall(low, both))
    yield Claim(
        "(b) the error falls faster for a larger α",
        f"slope of log MSE on log T at α = 0.25 less that at α = 0.15, below 0; {over}",
        steeper,
        *below(steeper, 0.0),
    )
    for alpha, found in alphas:
        where = within_range(found, start, stop)
        tradeoff = measured(slope(np.log(found.regret), np.log(found.mse), where))
        yield Claim(
            f"(c) the slope of error against regret is very close to −1 (α = {alpha})",
            f"slope of log MSE on log regret, within {CLOSE_TO_MINUS_ONE} of −1; {over}",
            tradeoff,
            *within(tradeoff, -1 - CLOSE_TO_MINUS_ONE, -1 + CLOSE_TO_MINUS_ONE),
        )
    masks = [within_range(found, start, stop) for found in (low, high)]
    regrets = (low.regret[:, masks[0]], high.regret[:, masks[1]])
    errors = (low.mse[:, masks[0]], high.mse[:, masks[1]])
    apart = measured(collapse(regrets, errors))
    yield Claim(
        "(c) against regret, the two curves are one",
        f"MSE at α = 0.25 over that at α = 0.15 at equal regret, within a factor of {ON_ONE_CURVE}; {over}",
        apart,
        *within(apart, 1 / ON_ONE_CURVE, ON_ONE_CURVE),
    )
    for near, far in pairwise(arms):
        where = within_range(near, start, stop) & within_range(far, start, stop)
        harder = measured(ratio(far.mse, near.mse, where))
        yield Claim(
            f"(d) gap {fraction(far.gap[0])} is harder to estimate than gap {fraction(near.gap[0])}",
            f"ratio of their MSE, geometric mean over T, above 1; {over}",
            harder,
            *above(harder, 1.0),
        )
    where = np.logical_and.reduce([within_range(found, start, stop) for found in arms])
    gaps = np.log([found.gap[0] for found in arms])
    heights = np.stack([np.log(found.mse[:, where]).mean(axis=1) for found in arms], axis=1) if where.any() else None
    power = measured(slope(gaps, heights) if heights is not None else np.full(3, np.nan))
    yield Claim(
        "(d) the error grows nearly linearly with the gap",
        f"slope of log MSE (mean over T) on log gap, within {NEARLY_LINEAR} of 1; {over}",
        power,
        *within(power, 1 - NEARLY_LINEAR, 1 + NEARLY_LINEAR),
    )


def fraction(gap: float) -> str:
    """Write a gap as thirds are written.

    Examples
    --------
    >>> fraction(1 / 3), fraction(1.0), fraction(0.5)
    ('1/3', '1', '1/2')
    """
    return str(Fraction(float(gap)).limit_denominator(12))
