"""The paper's confidence width, shared by its two demonstrators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, model_validator

from unbandit import theory
from unbandit.kernels.formula import PowerWidth

__all__ = ["RegretWidth"]


class RegretWidth(BaseModel):
    """Give a rule the width `C(n) = scale sqrt(G / n)` with `G = (T^alpha - 1) / alpha`, so that regret is O(T^alpha).

    Parameters
    ----------
    alpha
        The regret's exponent, in [0, 1); at 0, `G = ln T`.
    scale
        The width's factor; sqrt(2), the paper's for unit variance, where neither scale nor sigma is given.
    sigma
        Instead of a scale: the noise for which the width is adjusted, `scale = 5 sigma`.
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
    def grid(cls, sigma: float | None) -> Mapping[str, Sequence[Any]]:
        """Return exponents, the logarithm among them, with both of the paper's scales."""
        return {"alpha": (0.0, 0.15, 0.25), "scale": (math.sqrt(2), 5 * (sigma or 0.5))}

    @property
    def factor(self) -> float:
        """Return the width's factor, however it was given."""
        return 5 * self.sigma if self.sigma is not None else cast(float, self.scale)

    def power_width(self, horizon: int) -> PowerWidth:
        """Return what computes `C(n)` at each pull, for horizons too long for a table."""
        return PowerWidth(self.factor, float(theory.growth(horizon, self.alpha)))

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `C(n)`."""
        with np.errstate(over="ignore"):  # a width without bound is refused where it is used
            return np.asarray(self.factor * np.sqrt(theory.growth(horizon, self.alpha) / pulls))
