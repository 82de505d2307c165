"""MOSS without a horizon, of Degenne and Perchet: an arm's share is that of the rounds so far."""

import math
from typing import ClassVar, Self

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.confidence import ConfidenceIndexRule
from unbandit.errors import ParameterError
from unbandit.instance import Noise


class AnytimeMOSS(ConfidenceIndexRule):
    """Pull the arm with the largest sample mean plus scale sqrt(max(ln(t / (K n)), 0) / n), where t is the round.

    `K`, the number of arms, comes from the instance or the log (`for_arms`).

    Examples
    --------
    >>> round(AnytimeMOSS(arms=5).index(mean=0.5, pulls=4, round=1_000, horizon=2_000), 6)
    1.488942
    """

    name: ClassVar[str] = "anytime-moss"
    title: ClassVar[str] = "MOSS without a horizon"
    aliases: ClassVar[tuple[str, ...]] = ("moss-anytime",)
    proposed: ClassVar[bool] = False
    uses_round: ClassVar[bool] = True
    shifts: ClassVar[bool] = True
    examples: ClassVar[Examples] = ({}, {"scale": 0.5, "clock": "pulls"}, {"scale": 3, "ties": "random", "batch": 2})

    scale: float = Field(1.0, gt=0, description="factor of the width")
    arms: int | None = Field(None, ge=2, description="number of arms, K; by default those of the instance or the log")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return factors in units of the noise."""
        return {"scale": [noise.deviation * factor for factor in (1.0, 2.0, 4.0)]}

    def for_arms(self, arms: int) -> Self:
        """Return the rule with the number of arms filled in, unless it was given."""
        return self if self.arms is not None else self.model_copy(update={"arms": arms})

    def bound(self, horizon: int) -> dict[str, float]:
        """Return the numbers of `L = max(ln t - ln(K n), 0)`, and of the factor of its root."""
        if self.arms is None:
            text = "expected the number of arms before an index is asked for; use for_arms(K)."
            raise ParameterError(text, owner=self.name)
        return {"sigma": self.scale / math.sqrt(2.0), "share": float(self.arms)}
