"""MOSS of Audibert and Bubeck: the width vanishes once an arm has had its even share of the rounds."""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.index import AdditiveIndexRule
from unbandit.errors import ParameterError
from unbandit.instance import Noise


class MOSS(AdditiveIndexRule):
    """Pull the arm with the largest sample mean plus scale sqrt(max(ln(T / (K n)), 0) / n).

    `K`, the number of arms, comes from the instance or the log (`for_arms`); as a parameter it is needed only to
    compute the width itself.

    Examples
    --------
    >>> MOSS().for_arms(10).width(np.array([1.0, 50.0, 100.0]), horizon=1_000).round(3).tolist()
    [2.146, 0.118, 0.0]
    """

    name: ClassVar[str] = "moss"
    title: ClassVar[str] = "MOSS"
    examples: ClassVar[Examples] = ({}, {"scale": 0.5}, {"scale": 3, "ties": "random", "batch": 2})

    scale: float = Field(1.0, gt=0, description="factor of the width")
    arms: int | None = Field(None, ge=2, description="number of arms, K; by default those of the instance or the log")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return factors in units of the noise."""
        return {"scale": [noise.deviation * factor for factor in (1.0, 2.0, 4.0)]}

    def for_arms(self, arms: int) -> Self:
        """Return the rule with the number of arms filled in, unless it was given."""
        return self if self.arms is not None else self.model_copy(update={"arms": arms})

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `scale sqrt(max(ln(T / (K n)), 0) / n)`."""
        if self.arms is None:
            raise ParameterError("moss: expected the number of arms before a width is asked for; use for_arms(K).")
        return np.asarray(self.scale * np.sqrt(np.maximum(np.log(horizon / (self.arms * pulls)), 0) / pulls))
