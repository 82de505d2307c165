"""KL-UCB of Garivier and Cappe, for Bernoulli and for Gaussian rewards."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.confidence import NoiseIndexRule
from unbandit.demonstrators.rule import OtherName
from unbandit.instance import Noise


class KLUCB(NoiseIndexRule):
    """Pull the arm with the largest q for which n d(sample mean, q) is at most ln T, or ln t.

    `d` is the Kullback-Leibler divergence of two arms' rewards. For Gaussian rewards the index is the sample mean plus
    `sigma sqrt(2 L / n)`. For Bernoulli rewards it lies in [0, 1] and how far it is from the mean depends on where the
    mean is, so no gap is known without a mean. `L = ln T + double_log ln ln T`, or the same with the round for `T`.

    Examples
    --------
    >>> round(KLUCB().index(mean=0.5, pulls=10, round=20, horizon=1_000), 6)
    0.932669
    >>> round(KLUCB(noise="gaussian", level="round").index(mean=0.5, pulls=10, round=20, horizon=1_000), 6)
    0.887023
    """

    name: ClassVar[str] = "klucb"
    fits: ClassVar[tuple[str, ...]] = ("sigma",)
    called: ClassVar[Mapping[str, OtherName]] = {"c": OtherName("double_log")}
    title: ClassVar[str] = "KL-UCB"
    aliases: ClassVar[tuple[str, ...]] = ("kl-ucb",)
    examples: ClassVar[Examples] = (
        {},
        {"level": "round", "double_log": 3},
        {"level": "round", "clock": "pulls"},
        {"batch": 4, "ties": "random"},
        {"noise": "gaussian"},
        {"noise": "gaussian", "sigma": 0.1, "level": "round", "initial": 2},
    )

    level: Literal["horizon", "round"] = Field(
        "horizon", description="what the level grows with: horizon (ln T) or round (ln t)"
    )
    double_log: float = Field(0.0, ge=0, description="factor of ln ln t, added to ln t")

    @model_validator(mode="after")
    def _clock_is_of_use(self) -> Self:
        if self.level == "horizon" and self.clock == "pulls":
            raise ValueError("expected clock=pulls only with level=round, for ln T has no clock; leave it out.")
        return self

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return levels of both kinds, with and without the term ln ln t."""
        return {**cls.rewards(noise), "level": ("horizon", "round"), "double_log": (0.0, 3.0)}

    @property
    def uses_round(self) -> bool:
        """Return whether the level grows with the round."""
        return self.level == "round"

    def bound(self, horizon: int) -> dict[str, float]:
        """Return the numbers of `L = ln T + double_log ln ln T`; without a fixed number the round stands for `T`."""
        fixed = 0.0 if self.uses_round else float(horizon)
        return {"sigma": self.assumed_sigma, "fixed": fixed, "double_log": self.double_log}
