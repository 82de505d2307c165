"""Bayes-UCB of Kaufmann, Cappe and Garivier: an upper quantile of each mean's posterior, in the rule's own eyes."""

import math
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.confidence import NoiseIndexRule
from unbandit.demonstrators.rule import OtherName
from unbandit.instance import Noise


class BayesUCB(NoiseIndexRule):
    """Pull the arm whose posterior has the largest quantile of order 1 - 1 / (t (ln T)^c), where t is the round.

    For rewards of 0 and 1 the posterior is Beta(1 + successes, 1 + failures). For Gaussian rewards with a flat prior
    the index is the sample mean plus `sigma z / sqrt(n)`, with the standard normal quantile `z` of that order.

    Examples
    --------
    >>> round(BayesUCB().index(mean=0.5, pulls=10, round=20, horizon=1_000), 6)
    0.72875
    >>> round(BayesUCB(noise="gaussian").index(mean=0.5, pulls=10, round=20, horizon=1_000), 6)
    0.760074
    """

    name: ClassVar[str] = "bayes-ucb"
    fits: ClassVar[tuple[str, ...]] = ("sigma",)
    called: ClassVar[Mapping[str, OtherName]] = {"c": OtherName("log_power")}
    title: ClassVar[str] = "Bayes-UCB"
    aliases: ClassVar[tuple[str, ...]] = ("bayesucb", "bayesian-ucb")
    proposed: ClassVar[bool] = False
    uses_round: ClassVar[bool] = True
    examples: ClassVar[Examples] = (
        {},
        {"log_power": 2, "clock": "pulls", "ties": "random"},
        {"noise": "gaussian"},
        {"noise": "gaussian", "sigma": 0.2, "log_power": 5, "batch": 3},
    )

    log_power: float = Field(0.0, ge=0, le=20, description="power c of ln T in the order of the quantile")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return the order with and without the horizon."""
        return {**cls.rewards(noise), "log_power": (0.0, 5.0)}

    def bound(self, horizon: int) -> dict[str, float]:
        """Return the numbers of the quantile: the factor of the round is `(ln T)^c`."""
        return {"sigma": self.assumed_sigma, "quantile": max(math.log(horizon), 1.0) ** self.log_power}
