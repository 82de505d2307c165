"""Thompson sampling: pull each arm as often as it is likely to be the best, in the rule's own eyes."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.randomised import Draws, Memory, Pulls, RandomisedRule
from unbandit.demonstrators.rule import OtherName
from unbandit.errors import ParameterError
from unbandit.instance import Bernoulli, Noise
from unbandit.kernels.compile import inlined
from unbandit.kernels.formula import Formula
from unbandit.kernels.largest import expand_largest_of_normals, largest_of_normals
from unbandit.kernels.largest_beta import largest_of_betas
from unbandit.kernels.special import log_odds_from_uniform, normal_from_uniform

SMALLEST_DEVIATION = 1e-150


class Thompson(RandomisedRule):
    """Draw a mean for every arm from the rule's own posterior, and pull the arm with the largest draw.

    Parameters
    ----------
    noise
        The rewards the rule assumes: `gaussian`, with a Normal prior on each mean, or `bernoulli`, with a Beta prior.
        It is the rule's prior, not the analyst's, which is given elsewhere.
    mean, deviation
        Of the rule's Normal prior.
    sigma
        Standard deviation of a reward, as the rule believes; 1 unless given.
    successes, failures
        Pseudo-count that the rule's Beta prior begins with; 1 unless given.

    Examples
    --------
    >>> from unbandit import Instance
    >>> Thompson(sigma=0.5).demonstrate(Instance([1.0, 0.5], 0.5), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    """

    name: ClassVar[str] = "thompson"
    varied: ClassVar[tuple[str, ...]] = ("successes", "failures")
    fits: ClassVar[tuple[str, ...]] = ("sigma",)
    no_standard: ClassVar[tuple[str, ...]] = ("sigma",)
    called: ClassVar[Mapping[str, OtherName]] = {"alpha": OtherName("successes"), "beta": OtherName("failures")}
    unit: ClassVar[str] = "sigma"
    title: ClassVar[str] = "Thompson sampling"
    aliases: ClassVar[tuple[str, ...]] = ("ts", "thompson-sampling")
    one_draw: ClassVar[bool] = False
    tries_first: ClassVar[bool] = True
    examples: ClassVar[Examples] = (
        {},
        {"mean": 0.5, "deviation": 0.3, "sigma": 0.5, "initial": 2},
        {"deviation": 10, "batch": 5},
        {"noise": "bernoulli"},
        {"noise": "bernoulli", "successes": 0.5, "failures": 2, "batch": 3},
    )

    noise: Literal["gaussian", "bernoulli"] = Field("gaussian", description="rewards it believes in")
    mean: float | None = Field(None, description="mean of its Normal prior; 0 unless given")
    deviation: float | None = Field(None, gt=0, description="deviation of its Normal prior; 1 unless given")
    sigma: float | None = Field(None, gt=0, description="noise of a reward, as it believes; 1 unless given")
    successes: float | None = Field(None, ge=0.1, le=1e8, description="successes of its Beta prior; 1 unless given")
    failures: float | None = Field(None, ge=0.1, le=1e8, description="failures of its Beta prior; 1 unless given")

    @model_validator(mode="before")
    @classmethod
    def _one_prior(cls, given: Any) -> Any:
        """Fill in the defaults of the prior for this noise; refuse parts of the other prior."""
        if not isinstance(given, dict):
            return given
        normal, beta = {"mean": 0.0, "deviation": 1.0, "sigma": 1.0}, {"successes": 1.0, "failures": 1.0}
        bernoulli = given.get("noise", "gaussian") == "bernoulli"
        own, other = (beta, normal) if bernoulli else (normal, beta)
        strange = next((key for key in other if given.get(key) is not None), None)
        if strange is not None:
            raise ValueError(
                f'expected {", ".join(own)} for noise {"bernoulli" if bernoulli else "gaussian"}; got "{strange}". '
                f"Leave it out, or give noise={'gaussian' if bernoulli else 'bernoulli'}."
            )
        return {**given, **{key: usual for key, usual in own.items() if given.get(key) is None}}

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return priors, and for normal rewards a noise that is right, too small or too large."""
        if isinstance(noise, Bernoulli):
            return {"noise": ["bernoulli"], "successes": (0.5, 1.0), "failures": (0.5, 1.0)}
        sigma = noise.sigma
        return {"sigma": (sigma / 2, sigma, 2 * sigma), "deviation": (1.0, 10.0)}

    @property
    def bernoulli_only(self) -> bool:
        """Return whether it accepts only rewards of 0 and 1."""
        return self.noise == "bernoulli"

    @property
    def score(self) -> int | None:
        """Return the column of the sums, for normal draws: probabilities of Beta draws are not log-concave in them."""
        return None if self.bernoulli_only else 0

    @property
    def beta_prior(self) -> tuple[float, float] | None:
        """Return the Beta prior, for draws from Beta distributions."""
        return (self.successes or 1.0, self.failures or 1.0) if self.bernoulli_only else None

    @staticmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return the probability that the arm's draw is the largest."""
        chance = _probability_of_betas if parameters.bernoulli else _probability_of_normals
        return chance(parameters, pulls, memory, round, arm)

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return the arm with the largest draw, each being the quantile at a uniform number."""
        chosen = _choose_among_betas if parameters.bernoulli else _choose_among_normals
        return chosen(parameters, pulls, memory, round, draws)

    @staticmethod
    def log_expansion(
        parameters: Any, pulls: Pulls, scores: Draws, round: Any, arm: Any, slope: Draws, bend: Memory
    ) -> float:
        """Expand the log probability, which is concave in the sums of normal rewards (a normal measure of a cone)."""
        arms = pulls.size
        work = np.empty((3, arms))
        centres, roots, scales = work[0], work[1], work[2]
        fill_beliefs(parameters, pulls, scores, centres, roots)
        for each in range(arms):
            scales[each] = parameters.reward_precision / roots[each] ** 2
        value = expand_largest_of_normals(centres, roots, arm, slope, bend)
        for each in range(arms):  # by the chain rule
            slope[each] *= scales[each]
            for other in range(arms):
                bend[each, other] *= scales[each] * scales[other]
        return value

    def formulas(self) -> dict[str, Formula]:
        """Return the formulas of the prior that it has: kernels need not be compiled for both."""
        found, beta = super().formulas(), self.bernoulli_only
        if found["probability"] is Thompson.probability:
            found["probability"] = _probability_of_betas if beta else _probability_of_normals
        if found["choose"] is Thompson.choose:
            found["choose"] = _choose_among_betas if beta else _choose_among_normals
        return found

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the priors as the formulas read them: precisions, or counts."""
        normal = precisions(self.name, self.mean or 0.0, self.deviation or 1.0, self.sigma or 1.0)
        return normal | {
            "bernoulli": float(self.bernoulli_only),
            "successes": self.successes or 1.0,
            "failures": self.failures or 1.0,
            "horizon": float(horizon),
        }


def _probability_of_normals(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
    work = np.empty((2, pulls.size))
    fill_beliefs(parameters, pulls, memory[:, 0], work[0], work[1])
    return largest_of_normals(work[0], work[1], arm)


def _choose_among_normals(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
    best, largest = 0, -math.inf
    for arm in range(pulls.size):
        precision = parameters.prior_precision + parameters.reward_precision * pulls[arm]
        weighted = parameters.prior_weight + parameters.reward_precision * memory[arm, 0]
        drawn = weighted / precision + normal_from_uniform(draws[arm]) / math.sqrt(precision)
        if drawn > largest:
            best, largest = arm, drawn
    return best


def _probability_of_betas(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
    work = np.empty((2, pulls.size))
    for each in range(pulls.size):
        work[0, each] = parameters.successes + memory[each, 0]
        work[1, each] = parameters.failures + pulls[each] - memory[each, 0]
    return largest_of_betas(work[0], work[1], arm)


def _choose_among_betas(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
    best, largest = 0, -math.inf
    for arm in range(pulls.size):
        successes = memory[arm, 0]
        a, b = parameters.successes + successes, parameters.failures + pulls[arm] - successes
        drawn = log_odds_from_uniform(a, b, draws[arm])
        if drawn > largest:
            best, largest = arm, drawn
    return best


def precisions(owner: str, mean: float, deviation: float, sigma: float) -> dict[str, float]:
    """Return a Normal prior and the noise of a reward as `fill_beliefs` reads them."""
    for name, value in (("deviation", deviation), ("sigma", sigma)):
        if value < SMALLEST_DEVIATION:
            text = f"expected {SMALLEST_DEVIATION:g} or more, of which a computer can hold the square; got {value}."
            raise ParameterError(text, owner=owner, parameter=name, value=value)
    return {
        "prior_precision": deviation**-2,
        "prior_weight": mean * deviation**-2,
        "reward_precision": sigma**-2,
    }


@inlined
def fill_beliefs(parameters: Any, pulls: Pulls, sums: Draws, centres: Draws, roots: Draws) -> None:
    """Fill in the mean and the inverse deviation of what a rule with a Normal prior believes of every arm."""
    for arm in range(pulls.size):
        precision = parameters.prior_precision + parameters.reward_precision * pulls[arm]
        weighted = parameters.prior_weight + parameters.reward_precision * sums[arm]
        centres[arm], roots[arm] = weighted / precision, math.sqrt(precision)
