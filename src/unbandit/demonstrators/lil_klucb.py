"""Lil-KLUCB of Tanczos, Nowak and Mankoff: the divergence of KL-UCB at a level that holds at all pull counts."""

from typing import ClassVar, Literal

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.confidence import NoiseIndexRule
from unbandit.instance import Noise


class LilKLUCB(NoiseIndexRule):
    """Pull the arm with the largest q for which n d(sample mean, q) is at most c ln(log2(2 n) / delta).

    `d` is the Kullback-Leibler divergence of two arms' rewards, as for `KLUCB`. Neither the round nor the horizon plays
    a part: the level holds for all pull counts together, by the law of the iterated logarithm (lil). The constant of
    that law belongs to `delta`.

    Examples
    --------
    >>> round(LilKLUCB().index(mean=0.5, pulls=10, round=20, horizon=1_000), 6)
    0.919203
    """

    name: ClassVar[str] = "lil-klucb"
    varied: ClassVar[tuple[str, ...]] = ("exploration",)
    fits: ClassVar[tuple[str, ...]] = ("sigma",)
    title: ClassVar[str] = "Lil-KLUCB"
    aliases: ClassVar[tuple[str, ...]] = ("lilklucb", "lil-kl-ucb")
    proposed: ClassVar[bool] = False
    examples: ClassVar[Examples] = ({}, {"delta": 0.1, "exploration": 2, "ties": "random"}, {"noise": "gaussian"})

    exploration: float = Field(1.0, gt=0, le=10, description="factor of the level, c")
    delta: float = Field(0.01, ge=1e-30, le=1, description="error probability of the confidence bound")
    clock: Literal["round"] = Field("round", description="always round: the index does not change with it")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return error probabilities."""
        return {**cls.rewards(noise), "delta": (0.01, 0.05, 0.1)}

    def bound(self, horizon: int) -> dict[str, float]:
        """Return the numbers of `L = c ln(1 / delta) + c ln log2(2 n)`."""
        fixed = self.delta**-self.exploration
        return {"sigma": self.assumed_sigma, "fixed": fixed, "iterated": self.exploration}
