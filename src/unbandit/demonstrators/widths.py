"""Confidence widths: as tables or as what computes them; the paper's, for a regret of O(T^alpha), and MOSS's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, model_validator

from unbandit import theory
from unbandit.errors import ParameterError
from unbandit.instance import Noise
from unbandit.kernels.formula import PowerWidth

Table = NDArray[np.float64]

WIDTHS_PER_BLOCK = 1 << 20  # so that a long table needs no second one for intermediate results
LONGEST_TABLE = 1 << 20  # beyond this horizon, what can be computed at every pull is not tabulated


def cached_table(make: Callable[..., Table]) -> Callable[..., Table]:
    """Cache the last few tables of `make(..., horizon)`: a study asks for the same ones again and again.

    A table of more than `LONGEST_TABLE` rounds is cheap beside its simulation, and too large to cache.
    """
    cached = lru_cache(maxsize=4)(make)

    @wraps(make)
    def table(*arguments: Any) -> Table:
        return (cached if arguments[-1] <= LONGEST_TABLE else make)(*arguments)

    return table


def _filled(values: Callable[[Table], Table], at_zero: float, horizon: int) -> Table:
    """Return `values(n)` for n = 0 ... horizon + 1, with `at_zero` first; read-only, because it is shared."""
    table = np.empty(horizon + 2)
    table[0] = at_zero
    for start in range(1, horizon + 2, WIDTHS_PER_BLOCK):
        stop = min(start + WIDTHS_PER_BLOCK, horizon + 2)
        table[start:stop] = values(np.arange(start, stop, dtype=np.float64))
    table.setflags(write=False)
    return table


def inverse_table(horizon: int) -> Table:
    """Return 1/n, up to the longest table."""
    return _inverses(min(horizon, LONGEST_TABLE))


@cached_table
def _inverses(horizon: int) -> Table:
    return _filled(lambda n: 1.0 / n, 1.0, horizon)


@cached_table
def width_table(rule: Any, horizon: int) -> Table:
    """Return a rule's `C(n)`, infinite at 0."""
    table = _filled(lambda n: rule.width(n, horizon), np.inf, horizon)
    if not np.isfinite(table[1:]).all():
        raise ParameterError(f"expected finite widths over {horizon} rounds. Check {rule}.", owner=rule.name)
    return table


def width_parameters(rule: Any, horizon: int, *, table: bool = True) -> Any:
    """Return a rule's widths as the kernels take them: a `table` or, for a long horizon, what computes them."""
    if not np.isfinite(rule.width(np.ones(1), horizon)).all():
        raise ParameterError(f"expected a finite width after one pull. Check {rule}.", owner=rule.name)
    if hasattr(rule, "power_width") and not (table and horizon <= LONGEST_TABLE):
        return rule.power_width(horizon)
    return width_table(rule, horizon)


def has_power_width(rule: Any, horizon: int) -> bool:
    """Return whether a rule's widths are in `1/sqrt(n)`: it has a `power_width`, and no subclass overrides `width`."""
    if not hasattr(rule, "power_width"):
        return False
    few, power = np.array([1.0, 2.0, 1000.0, horizon]), rule.power_width(horizon)
    with np.errstate(over="ignore"):
        return np.array_equal(rule.width(few, horizon), power.factor * np.sqrt(power.growth / few))


class RegretWidth(BaseModel):
    """The width `C(n) = scale sqrt(G / n)` with `G = (T^alpha - 1) / alpha`, for a regret of O(T^alpha).

    Parameters
    ----------
    alpha
        The regret's exponent, in [0, 1); at 0, `G = ln T`.
    scale
        The width's factor; by default sqrt(2), the paper's for unit variance.
    sigma
        Instead of a scale: the noise the width is adjusted for, `scale = 5 sigma`.
    """

    alpha: float = Field(0.25, ge=0, lt=1, description="exponent of the regret, in [0, 1); 0 means ln T")
    scale: float | None = Field(None, gt=0, description="factor of the width; sqrt(2) unless sigma is given")
    sigma: float | None = Field(None, gt=0, description="noise the width is adjusted for: scale = 5 sigma")

    @model_validator(mode="before")
    @classmethod
    def _one_of_two(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if given.get("scale") is None and given.get("sigma") is None:
            return given | {"scale": math.sqrt(2)}
        if given.get("scale") is not None and given.get("sigma") is not None:
            raise ValueError("expected scale or sigma, not both (sigma means scale = 5 sigma); leave one out.")
        return given

    @classmethod
    def unit_variance(cls, alpha: float = 0.25) -> Self:
        """Return the rule as the paper states it, for noise of unit variance: `scale = sqrt(2)`."""
        return cls(alpha=alpha)

    @classmethod
    def variance_adjusted(cls, alpha: float = 0.25, *, sigma: float) -> Self:
        """Return the rule as the paper runs it on battery and gene data: `scale = 5 sigma`."""
        return cls(alpha=alpha, sigma=sigma)

    @classmethod
    def grid(cls, noise: Noise) -> Mapping[str, Sequence[Any]]:
        """Return exponents, including the logarithm, with both of the paper's scales."""
        return {"alpha": (0.0, 0.15, 0.25), "scale": (math.sqrt(2), 5 * noise.deviation)}

    @property
    def factor(self) -> float:
        """Return the width's factor, given as a scale or by sigma."""
        return 5 * self.sigma if self.sigma is not None else cast(float, self.scale)

    def power_width(self, horizon: int) -> PowerWidth:
        """Return what computes `C(n)` at each pull, for horizons too long for a table."""
        return PowerWidth(self.factor, float(theory.growth(horizon, self.alpha)))

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `C(n)`."""
        with np.errstate(over="ignore"):  # an infinite width is refused where it is used
            return np.asarray(self.factor * np.sqrt(theory.growth(horizon, self.alpha) / pulls))


class EvenShare(BaseModel):
    """The numbers of MOSS, whose width `scale sqrt(max(ln(t / (K n)), 0) / n)` vanishes at an even share of the rounds.

    `K`, the number of arms, comes from the instance or the log (`for_arms`).
    """

    scale: float = Field(1.0, gt=0, description="factor of the width")
    arms: int | None = Field(None, ge=2, description="number of arms, K; by default those of the instance or the log")

    @classmethod
    def grid(cls, noise: Noise) -> Mapping[str, Sequence[Any]]:
        """Return factors in units of the noise."""
        return {"scale": [noise.deviation * factor for factor in (1.0, 2.0, 4.0)]}

    def for_arms(self, arms: int) -> Self:
        """Return the rule with the number of arms filled in, unless it was given."""
        return self if self.arms is not None else self.model_copy(update={"arms": arms})

    @property
    def known_arms(self) -> int:
        """Return the number of arms; refuse where nobody gave it."""
        if self.arms is None:
            text = "expected the number of arms before a width is asked for; use for_arms(K)."
            raise ParameterError(text, owner=getattr(self, "name", None))
        return self.arms
