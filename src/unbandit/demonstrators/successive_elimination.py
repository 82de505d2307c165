"""Successive elimination of Even-Dar, Mannor and Mansour: a radius that holds at every epoch and for every arm."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.elimination import EliminationRule
from unbandit.errors import ParameterError
from unbandit.instance import Noise

FOR_UNIT_RANGE = 0.5  # the largest standard deviation of rewards from 0 to 1


class SuccessiveElimination(EliminationRule):
    """Pull all active arms in turn, and eliminate those two radii sigma sqrt(2 ln(4 K n^2 / delta) / n) below the best.

    With the default `sigma = 1/2`, for rewards from 0 to 1, the radius is `sqrt(ln(4 K n^2 / delta) / (2 n))`. `K`, the
    number of arms, comes from the instance or the log (`for_arms`). The horizon plays no part.

    Examples
    --------
    >>> SuccessiveElimination().for_arms(10).width(np.array([1.0, 50.0]), horizon=1_000).round(3).tolist()
    [1.828, 0.381]
    """

    name: ClassVar[str] = "successive-elimination"
    title: ClassVar[str] = "Successive elimination of Even-Dar, Mannor and Mansour"
    aliases: ClassVar[tuple[str, ...]] = ("even-dar",)
    proposed: ClassVar[bool] = False
    no_standard: ClassVar[tuple[str, ...]] = ("sigma",)
    examples: ClassVar[Examples] = ({}, {"sigma": 0.05, "delta": 1}, {"sigma": 0.1, "batch": 3})

    delta: float = Field(0.05, gt=0, le=1, description="error probability of all tests together")
    sigma: float | None = Field(None, gt=0, description="noise the radius is made for; 1/2 unless given")
    arms: int | None = Field(None, ge=2, description="number of arms, K; by default those of the instance or the log")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return error probabilities, with the rewards' noise."""
        return {"delta": (0.01, 0.05, 0.1), "sigma": [noise.deviation]}

    def for_arms(self, arms: int) -> Self:
        """Return the rule with the number of arms filled in, unless it was given."""
        return self if self.arms is not None else self.model_copy(update={"arms": arms})

    def in_force(self, name: str) -> Any:
        """Return the value of a parameter that the rule plays with, sigma included."""
        return FOR_UNIT_RANGE if name == "sigma" and self.sigma is None else super().in_force(name)

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `sigma sqrt(2 ln(4 K n^2 / delta) / n)`."""
        if self.arms is None:
            text = "expected the number of arms before a width is asked for; use for_arms(K)."
            raise ParameterError(text, owner=self.name)
        with np.errstate(over="ignore"):  # an infinite width is refused where it is used
            return np.asarray(
                self.in_force("sigma") * np.sqrt(2 * np.log(4 * self.arms * pulls**2 / self.delta) / pulls)
            )
