"""UCB-tuned of Auer, Cesa-Bianchi and Fischer: UCB1 with what the sample variance could be."""

from typing import ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.ucbv import VarianceIndexRule
from unbandit.instance import Noise


class UCBTuned(VarianceIndexRule):
    """Pull the arm with the largest mean plus sqrt(L min(1/4, V) / n), V = variance + sqrt(2 L / n), L = ln t.

    For rewards of 0 and 1 the sample variance is `m (1 - m)`, with the sample mean `m`. The index rises with the mean,
    though not one for one, so no gap is known without a mean.

    Examples
    --------
    >>> round(UCBTuned().index(mean=0.9, pulls=1_000, round=2_000, horizon=5_000), 6)
    0.940265
    """

    name: ClassVar[str] = "ucb-tuned"
    varied: ClassVar[tuple[str, ...]] = ("exploration",)
    title: ClassVar[str] = "UCB-tuned"
    aliases: ClassVar[tuple[str, ...]] = ("ucb1-tuned", "ucbtuned")
    proposed: ClassVar[bool] = False
    examples: ClassVar[Examples] = ({}, {"exploration": 0.3, "ties": "random", "batch": 3, "clock": "pulls"})

    exploration: float = Field(1.0, gt=0, description="factor of ln t")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return factors of ln t."""
        return {"exploration": (0.5, 1.0, 2.0)}

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the factor, and that the formula is this one."""
        return {"exploration": self.exploration, "correction": 0.0, "tuned": 1.0}
