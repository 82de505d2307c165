"""Indices that are upper confidence bounds of a mean, at a level of evidence: one formula for several rules.

With rewards of 0 and 1 the bound is the largest `q` with `n d(mean, q) <= L`, for Gaussian ones `mean + sigma
sqrt(2 L / n)`; or a quantile of a posterior. Rules differ in the level `L`. They share their compiled loops.
"""

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from unbandit.demonstrators.base import Grid
from unbandit.demonstrators.index import RoundIndexRule, pulls_before
from unbandit.instance import Bernoulli, Noise
from unbandit.kernels.compile import inlined
from unbandit.kernels.special import (
    lower_bernoulli,
    mean_below_beta,
    normal_from_uniform,
    upper_bernoulli,
    upper_of_beta,
)

UNUSED = {"sigma": 0.0, "fixed": 0.0, "double_log": 0.0, "iterated": 0.0, "share": 0.0, "quantile": 0.0}


@inlined
def _rate(parameters: Any, pulls: Any, time: Any) -> float:
    """Return `L / n` with `L = ln t + double_log ln ln t + iterated ln log2(2 n) - ln(share n)`, at least 0.

    Each term is left out where its number is 0; a `fixed` number stands for the time `t`.
    """
    logarithm = math.log(parameters.fixed if parameters.fixed > 0.0 else float(time))
    level: float = logarithm + parameters.double_log * math.log(max(logarithm, 1.0))
    if parameters.iterated > 0.0:
        level += parameters.iterated * math.log(math.log(2.0 * pulls) / math.log(2.0))
    if parameters.share > 0.0:
        level = max(level - math.log(parameters.share * pulls), 0.0)
    return float(level / pulls)


@inlined
def _tail(parameters: Any, time: Any) -> float:
    """Return the probability above the posterior's quantile, `1 / (quantile t)`."""
    return float(1.0 / max(parameters.quantile * time, 2.0))


@inlined
def _upper(parameters: Any, mean: float, pulls: Any, time: Any) -> float:
    sigma: float = parameters.sigma
    if parameters.quantile > 0.0:
        tail = _tail(parameters, time)
        if sigma > 0.0:
            return mean - sigma * normal_from_uniform(tail) / math.sqrt(pulls)
        return upper_of_beta(mean, float(pulls), tail)
    rate = _rate(parameters, pulls, time)
    return float(mean + sigma * math.sqrt(2.0 * rate)) if sigma > 0.0 else upper_bernoulli(mean, rate)


@inlined
def _lower(parameters: Any, index: float, pulls: Any, time: Any) -> float:
    sigma: float = parameters.sigma
    if parameters.quantile > 0.0:
        tail = _tail(parameters, time)
        if sigma > 0.0:
            return index + sigma * normal_from_uniform(tail) / math.sqrt(pulls)
        return mean_below_beta(index, float(pulls), tail)
    rate = _rate(parameters, pulls, time)
    return float(index - sigma * math.sqrt(2.0 * rate)) if sigma > 0.0 else lower_bernoulli(index, rate)


class ConfidenceIndexRule(RoundIndexRule):
    """Pull the arm whose mean could be the largest, at a level of evidence that the rule gives in numbers."""

    @abstractmethod
    def bound(self, horizon: int) -> dict[str, float]:
        """Return the numbers of the bound that the rule uses; the others are 0 (`UNUSED`)."""

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the numbers that the formula reads: the same names for every rule, so that all share their loops."""
        return UNUSED | self.bound(horizon)

    @staticmethod
    def formula(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the upper confidence bound."""
        return _upper(parameters, mean, pulls, round)

    @staticmethod
    def inverse(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the mean with this upper confidence bound."""
        return _lower(parameters, index, pulls, round)

    @staticmethod
    def formula_by_pulls(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return _upper(parameters, mean, pulls, pulls_before(round))

    @staticmethod
    def inverse_by_pulls(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return _lower(parameters, index, pulls, pulls_before(round))


class NoiseIndexRule(ConfidenceIndexRule):
    """Pull the arm whose mean could be the largest, for rewards of 0 and 1 or for Gaussian ones."""

    no_standard: ClassVar[tuple[str, ...]] = ("sigma",)

    noise: Literal["bernoulli", "gaussian"] = Field(
        "bernoulli", description="rewards that the rule expects: bernoulli or gaussian"
    )
    sigma: float | None = Field(None, gt=0, description="standard deviation of Gaussian rewards; 1/2 unless given")

    @model_validator(mode="after")
    def _only_gaussian_rewards_have_a_sigma(self) -> Self:
        if self.noise == "bernoulli" and self.sigma is not None:
            raise ValueError("expected no sigma with Bernoulli rewards; leave it out, or give noise=gaussian.")
        return self

    @property
    def shifts(self) -> bool:
        """Return whether gaps need no known mean, as for Gaussian rewards."""
        return self.noise == "gaussian"

    @property
    def bernoulli_only(self) -> bool:
        """Return whether the rule expects rewards of 0 and 1."""
        return self.noise == "bernoulli"

    @property
    def assumed_sigma(self) -> float:
        """Return the standard deviation of Gaussian rewards; 0 stands for rewards of 0 and 1."""
        return 0.0 if self.noise == "bernoulli" else 0.5 if self.sigma is None else self.sigma

    def in_force(self, name: str) -> Any:
        """Return the value of a parameter that the rule plays with, sigma included."""
        return self.assumed_sigma or None if name == "sigma" else super().in_force(name)

    @classmethod
    def rewards(cls, noise: Noise) -> Grid:
        """Return the part of a grid that says which rewards there are."""
        return (
            {"noise": ["bernoulli"]}
            if isinstance(noise, Bernoulli)
            else {"noise": ["gaussian"], "sigma": [noise.deviation]}
        )
