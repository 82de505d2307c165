"""KL-UCB of Garivier and Cappe, for Bernoulli and for Gaussian rewards."""

import math
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.index import RoundIndexRule, pulls_before
from unbandit.instance import Bernoulli, Noise
from unbandit.kernels.compile import inlined
from unbandit.kernels.special import lower_bernoulli, upper_bernoulli


@inlined
def _rate(parameters: Any, pulls: Any, time: Any) -> float:
    """Return `L / n`, at the horizon or at a time."""
    logarithm = math.log(parameters.fixed if parameters.fixed > 0.0 else float(time))
    level: float = logarithm + parameters.double_log * math.log(max(logarithm, 1.0))
    return float(level / pulls)


@inlined
def _upper(parameters: Any, mean: float, rate: float) -> float:
    if parameters.sigma > 0.0:
        return float(mean + parameters.sigma * math.sqrt(2.0 * rate))
    return upper_bernoulli(mean, rate)


@inlined
def _lower(parameters: Any, index: float, rate: float) -> float:
    if parameters.sigma > 0.0:
        return float(index - parameters.sigma * math.sqrt(2.0 * rate))
    return lower_bernoulli(index, rate)


class KLUCB(RoundIndexRule):
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

    noise: Literal["bernoulli", "gaussian"] = Field(
        "bernoulli", description="rewards that the rule expects: bernoulli or gaussian"
    )
    sigma: float | None = Field(None, gt=0, description="standard deviation of Gaussian rewards; 1/2 unless given")
    level: Literal["horizon", "round"] = Field(
        "horizon", description="what the level grows with: horizon (ln T) or round (ln t)"
    )
    double_log: float = Field(0.0, ge=0, description="factor of ln ln t, added to ln t")

    @model_validator(mode="after")
    def _used_parameters(self) -> Self:
        if self.noise == "bernoulli" and self.sigma is not None:
            raise ValueError("expected no sigma with Bernoulli rewards; leave it out, or give noise=gaussian.")
        if self.level == "horizon" and self.clock == "pulls":
            raise ValueError("expected clock=pulls only with level=round, for ln T has no clock; leave it out.")
        return self

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return levels of both kinds, with and without the term ln ln t."""
        gaussian: Grid = {"noise": ["gaussian"], "sigma": [noise.deviation]}
        rewards = {"noise": ["bernoulli"]} if isinstance(noise, Bernoulli) else gaussian
        return {**rewards, "level": ("horizon", "round"), "double_log": (0.0, 3.0)}

    @property
    def uses_round(self) -> bool:
        """Return whether the level grows with the round."""
        return self.level == "round"

    @property
    def shifts(self) -> bool:
        """Return whether gaps need no known mean, as for Gaussian rewards."""
        return self.noise == "gaussian"

    @property
    def bernoulli_only(self) -> bool:
        """Return whether the rule expects rewards of 0 and 1."""
        return self.noise == "bernoulli"

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the numbers that the formula reads; a sigma of 0 stands for Bernoulli rewards."""
        sigma = 0.0 if self.noise == "bernoulli" else 0.5 if self.sigma is None else self.sigma
        fixed = 0.0 if self.uses_round else float(horizon)
        return super().numbers(horizon) | {"sigma": sigma, "fixed": fixed}

    @staticmethod
    def formula(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the largest `q` with `n d(mean, q) <= L`."""
        return _upper(parameters, mean, _rate(parameters, pulls, round))

    @staticmethod
    def inverse(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the mean below the index with `n d(mean, index) = L`."""
        return _lower(parameters, index, _rate(parameters, pulls, round))

    @staticmethod
    def formula_by_pulls(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return _upper(parameters, mean, _rate(parameters, pulls, pulls_before(round)))

    @staticmethod
    def inverse_by_pulls(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return _lower(parameters, index, _rate(parameters, pulls, pulls_before(round)))
