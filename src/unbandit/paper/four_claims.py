"""What the paper says of its main picture, panel by panel; and, as questions of ours, how it stands to the theorems."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.paper.claim import Claim, above, below, within
from unbandit.paper.comparing import FEWEST, collapse, fall, falling, growth_of_regret, ratio, used, within_range
from unbandit.study.curves import Curve
from unbandit.study.monte_carlo import computed, measured, slope

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
    """Ask how the measured numbers stand to the paper's bounds, at their own constants."""
    for alpha, found in alphas:
        gap = float(found.gap[0])
        limits = np.array([theory.regret_upper_bound([gap], horizon, alpha) for horizon in found.horizon])
        telling = limits < gap * found.horizon  # elsewhere no demonstrator could break the bound
        largest = (found.regret / limits)[:, telling].max(axis=1, initial=0.0)
        regret = measured(np.where(telling.any(), largest, np.nan))
        yield Claim(
            f"the regret lies below the bound of Proposition 1 (α = {alpha})",
            f"regret over the bound, largest of the {telling.sum()} horizons where the bound is below gap × T, below 1",
            regret,
            *below(regret, 1.0),
            ours=True,
        )
        asked = computed(longest / theory.horizon_required([gap], longest, alpha))
        yield Claim(
            f"the horizons are as long as Theorem 2 asks for (α = {alpha})",
            f"longest horizon of the paper, {longest:,}, over what the theorem asks for there, above 1",
            asked,
            *above(asked, 1.0),
            ours=True,
        )
        if bernoulli:
            last = int(np.flatnonzero(found.along == longest)[0])
            error = measured(found.mean_absolute_error[:, last] / theory.lower_bound(found.pulls[:, last]))
            yield Claim(
                f"the error of the procedure lies above the bound of Theorem 1 (α = {alpha})",
                f"mean absolute error over the bound, at T = {longest:,}, above 1: how far the bound is from what is "
                "reached here",
                error,
                *above(error, 1.0),
                ours=True,
            )


def of_panels(alphas: ByAlpha, arms: list[Curve], start: int, stop: int) -> Iterator[Claim]:
    """Test what is said of panels (a) to (d), over the horizons from `start` to `stop`."""
    (_, low), (_, high) = alphas
    every = (low.horizon >= start) & (low.horizon <= stop)
    for alpha, found in alphas:
        grows = measured(growth_of_regret(found, every))
        yield Claim(
            f"(a) the regret grows slower than T (α = {alpha})",
            f"slope of log regret on log T, below 1; {used(found, every)}",
            grows,
            *below(grows, 1.0),
        )
    more = measured(ratio(high.regret, low.regret, every))
    yield Claim(
        "(a) a larger α pays more regret",
        f"regret at α = 0.25 over that at α = 0.15, geometric mean, above 1; {used(low, every)}",
        more,
        *above(more, 1.0),
    )
    for alpha, found in alphas:
        yield falling(f"(b) the error falls with T (α = {alpha})", found, within_range(found, start, stop))
    both = within_range(low, start, stop) & within_range(high, start, stop)
    less = measured(ratio(high.mse, low.mse, both))
    yield Claim(
        "(b) a larger α leaves a smaller error",
        f"MSE at α = 0.25 over that at α = 0.15, geometric mean, below 1; {used(low, both)}",
        less,
        *below(less, 1.0),
    )
    steeper = measured(fall(high, both) - fall(low, both))
    yield Claim(
        "(b) the error falls faster for a larger α",
        f"slope of log MSE on log T at α = 0.25 less that at α = 0.15, below 0; {used(low, both)}",
        steeper,
        *below(steeper, 0.0),
    )
    masks = [within_range(found, start, stop) for _, found in alphas]
    for (alpha, found), where in zip(alphas, masks, strict=True):
        enough = where if where.sum() >= FEWEST else np.zeros_like(where)
        tradeoff = measured(slope(np.log(found.regret), np.log(found.mse), enough))
        yield Claim(
            f"(c) the slope of error against regret is very close to −1 (α = {alpha})",
            f"slope of log MSE on log regret, within {CLOSE_TO_MINUS_ONE} of −1; {used(found, where)}",
            tradeoff,
            *within(tradeoff, -1 - CLOSE_TO_MINUS_ONE, -1 + CLOSE_TO_MINUS_ONE),
        )
    regrets = (low.regret[:, masks[0]], high.regret[:, masks[1]])
    errors = (low.mse[:, masks[0]], high.mse[:, masks[1]])
    apart = measured(collapse(regrets, errors))
    yield Claim(
        "(c) against regret, the two curves are one",
        f"MSE at α = 0.25 over that at α = 0.15 at equal regret, within a factor of {ON_ONE_CURVE}; "
        + "; ".join(dict.fromkeys(used(found, where) for (_, found), where in zip(alphas, masks, strict=True))),
        apart,
        *within(apart, 1 / ON_ONE_CURVE, ON_ONE_CURVE),
    )
    for near, far in pairwise(arms):
        where = within_range(near, start, stop) & within_range(far, start, stop)
        harder = measured(ratio(far.mse, near.mse, where))
        yield Claim(
            f"(d) gap {fraction(far.gap[0])} is harder to estimate than gap {fraction(near.gap[0])}",
            f"ratio of their MSE, geometric mean, above 1; {used(near, where)}",
            harder,
            *above(harder, 1.0),
        )
    where = np.logical_and.reduce([within_range(found, start, stop) for found in arms])
    power = measured(_power_of_gap(arms, where))
    yield Claim(
        "(d) the squared error grows nearly linearly with the gap",
        f"slope of log MSE (mean over T) on log gap, within {NEARLY_LINEAR} of 1; {used(arms[0], where)}",
        power,
        *within(power, 1 - NEARLY_LINEAR, 1 + NEARLY_LINEAR),
    )


def _power_of_gap(arms: list[Curve], where: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the exponent of the gap in the mean squared error, as replicates."""
    if where.sum() < FEWEST:
        return np.full(len(arms[0].mse), np.nan)
    heights = np.stack([np.log(found.mse[:, where]).mean(axis=1) for found in arms], axis=1)
    return slope(np.log([found.gap[0] for found in arms]), heights)


def fraction(gap: float) -> str:
    """Write a gap as thirds are written.

    Examples
    --------
    >>> fraction(1 / 3), fraction(1.0), fraction(0.5)
    ('1/3', '1', '1/2')
    """
    return str(Fraction(float(gap)).limit_denominator(12))
