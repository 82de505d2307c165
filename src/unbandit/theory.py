"""What the paper proves: how often arms are pulled, what that costs, and how well values can be estimated from it.

Symbols, once: `T` is the horizon, `K` the number of arms, `n_i` the pulls of arm i, `Delta_i` its gap to the best
arm, and `C(n) = scale sqrt(G / n)` the width of a demonstrator's confidence interval after n pulls. The paper proves
its bounds for `scale = sqrt(2)`; they are written here for any scale, and equal the paper's at that one.

The probabilities quoted below are the paper's, for rewards in [0, 1]. Its proof carries over to normal rewards wherever
`scale >= 2 sqrt(2) sigma`, hence to the variance-adjusted scale `5 sigma`. It does not cover unit variance with
`scale = sqrt(2)`, which the paper simulates.

All functions take arrays as well as numbers, and work element by element.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbandit import checks
from unbandit.errors import ParameterError

Numbers: TypeAlias = Any
"""A float where all arguments are numbers, an array where one of them is; as NumPy types its own functions."""

PAPER_SCALE = math.sqrt(2.0)


def growth(horizon: ArrayLike, alpha: ArrayLike) -> Numbers:
    """Return `G = (T^alpha - 1) / alpha`, and its limit `ln T` at alpha 0: how fast a demonstrator's regret grows.

    Computed as `expm1(alpha ln T) / alpha`, which is accurate for small alpha.

    Examples
    --------
    >>> round(growth(10_000, 0.25), 9)
    np.float64(36.0)
    >>> growth(100, [0.0, 0.5]).round(4).tolist()
    [4.6052, 18.0]
    """
    rounds, power = _checked("horizon", horizon), _checked("alpha", alpha)
    logarithm = np.log(rounds)
    divisor = np.where(power == 0, 1.0, power)
    return np.where(power == 0, logarithm, np.expm1(power * logarithm) / divisor)[()]


def width(pulls: ArrayLike, horizon: ArrayLike, alpha: ArrayLike, scale: ArrayLike = PAPER_SCALE) -> Numbers:
    """Return `C(n) = scale sqrt(G / n)`, infinite for an arm that was never pulled (Algorithms 1 and 2).

    Examples
    --------
    >>> width([0, 2, 8], horizon=10_000, alpha=0.25).round(9).tolist()
    [inf, 6.0, 3.0]
    """
    counts = _checked("pulls", pulls)
    top = _checked("scale", scale) * np.sqrt(growth(horizon, alpha))
    # At T = 1 the numerator is 0 as well, and an arm that was never pulled still comes first.
    return np.where(counts == 0, np.inf, top / np.sqrt(np.where(counts == 0, 1.0, counts)))[()]


def kappa(gap: ArrayLike, horizon: ArrayLike, alpha: ArrayLike, scale: ArrayLike = PAPER_SCALE) -> Numbers:
    """Return `kappa_i = 2 scale^2 G / Delta_i^2`, the pulls after which the width is `Delta_i / sqrt(2)`.

    At the paper's scale it is `4 (T^alpha - 1) / (alpha Delta_i^2)`. Pulls of a suboptimal arm are of this order.

    Examples
    --------
    >>> round(kappa(0.5, horizon=10_000, alpha=0.25), 9)
    np.float64(576.0)
    """
    return 2 * np.square(_checked("scale", scale)) * growth(horizon, alpha) / np.square(_checked("gap", gap))


def pull_upper_bound(gap: ArrayLike, horizon: ArrayLike, alpha: ArrayLike, scale: ArrayLike = PAPER_SCALE) -> Numbers:
    """Return `8 kappa_i`, which the pulls of a suboptimal arm do not exceed with high probability.

    For SAE it holds for all suboptimal arms at once with probability at least `1 - 2K / T^3`, the best arm never being
    eliminated; for UCB, for any one arm, with probability at least `1 - 4 / T^3`. It may exceed the horizon, and is
    then void.

    Examples
    --------
    >>> round(pull_upper_bound(0.5, horizon=10_000, alpha=0.25), 9)
    np.float64(4608.0)
    """
    return 8 * kappa(gap, horizon, alpha, scale)


def regret_upper_bound(gaps: ArrayLike, horizon: float, alpha: float, scale: float = PAPER_SCALE) -> float:
    """Return `sum_i 8 kappa_i Delta_i`, which the regret does not exceed with high probability.

    At the paper's scale it is `sum_i 32 (T^alpha - 1) / (alpha Delta_i)`, for UCB and SAE alike with probability at
    least `1 - 4K / T^3` wherever `T > K`. The gaps are of the suboptimal arms only.

    Examples
    --------
    >>> round(regret_upper_bound([0.5], horizon=10_000, alpha=0.25), 9)
    2304.0
    """
    values = _checked("gap", gaps)
    return float(np.sum(pull_upper_bound(values, horizon, alpha, scale) * values))


def horizon_required(gaps: ArrayLike, horizon: float, alpha: float, scale: float = PAPER_SCALE) -> float:
    """Return `32 scale^2 G sum_i 1 / Delta_i^2`, the shortest horizon for Theorem 2.

    At the paper's scale it is `64 sum_i (T^alpha - 1) / (alpha Delta_i^2)`. Above it the most-pulled arm is the best
    one with high probability. `G` grows with the horizon, so a longer one has more to reach. The gaps are of the
    suboptimal arms only.

    Examples
    --------
    The paper's two-armed simulation falls short of it at its longest horizon.

    >>> round(horizon_required([0.5], horizon=5_000, alpha=0.25))
    7587
    """
    return float(16 * np.sum(kappa(gaps, horizon, alpha, scale)))


def horizon_condition_holds(gaps: ArrayLike, horizon: float, alpha: float, scale: float = PAPER_SCALE) -> bool:
    """Return whether the horizon is long enough for Theorem 2.

    Examples
    --------
    >>> horizon_condition_holds([0.5], horizon=5_000, alpha=0.25)
    False
    >>> horizon_condition_holds([0.5], horizon=10_000, alpha=0.25)
    True
    """
    return bool(horizon >= horizon_required(gaps, horizon, alpha, scale))


def lower_bound(expected_pulls: ArrayLike) -> Numbers:
    """Return `min(1 / sqrt(E n_i), 1) / 16`, a mean absolute error that no estimator beats everywhere (Theorem 1).

    It holds for Bernoulli rewards with all means within 1/4 of 1/2 and a suboptimal arm i, whatever the demonstrator,
    even if its rule and the best mean are known. "Everywhere" means: this instance has a twin such that the larger of
    the two errors is at least this. It is loose: expect several times as much.

    Examples
    --------
    >>> lower_bound([0.0, 1.0, 100.0]).tolist()
    [0.0625, 0.0625, 0.00625]
    """
    return 1 / (16 * np.sqrt(np.maximum(_checked("pulls", expected_pulls), 1.0)))


def tradeoff_slope(power: float = 1.0) -> float:
    """Return the slope of `log E|error|^power` against `log E[regret]` for two arms at a fixed gap.

    The paper's two-armed corollary says that the error is of the order `sqrt(Delta / E[regret])`, from above and from
    below, up to constants: a slope of -1/2, or of -1 for the squared error.

    Examples
    --------
    >>> tradeoff_slope(), tradeoff_slope(power=2)
    (-0.5, -1.0)
    """
    return -checks.positive("power", power) / 2


_EXPECTED: dict[str, tuple[str, Callable[[NDArray[np.float64]], NDArray[np.bool_]]]] = {
    "alpha": ("a number from 0 up to, but not including, 1", lambda value: (value >= 0) & (value < 1)),
    "horizon": ("a number of rounds, 1 or more", lambda value: (value >= 1) & (value < np.inf)),
    "scale": ("a positive number", lambda value: (value > 0) & (value < np.inf)),
    "pulls": ("a count, 0 or more", lambda value: (value >= 0) & (value < np.inf)),
    "gap": ("the positive gap of a suboptimal arm", lambda value: (value > 0) & (value < np.inf)),
}
"""By argument: what is expected of every number of it, in words and as a test."""


def _checked(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """Return an argument as an array; refuse it where one of its numbers is not as expected."""
    values = checks.numbers(name, given)
    if name == "gap" and values.size == 0:
        text = "expected one suboptimal arm or more; got none. Equal arms cannot be told apart."
        raise ParameterError(text, parameter="gap", count=0)
    expected, holds = _EXPECTED[name]
    if not (good := holds(values)).all():
        bad = float(values[~good].flat[0])
        remedy = "Leave out the best arm: gaps[gaps > 0]." if name == "gap" else None
        raise ParameterError(f"expected {expected}; got {bad:g}.", parameter=name, value=bad, remedy=remedy)
    return values
