"""Epsilon-greedy: mostly the arm that looks best, and now and then any."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.randomised import Draws, Memory, Pulls, RandomisedRule
from unbandit.demonstrators.rule import EPSILON, OtherName
from unbandit.errors import option
from unbandit.instance import Noise
from unbandit.kernels.compile import inlined
from unbandit.log import ActionLog

FALLS = 4.0  # standard deviations by which other arms are chosen more often in the first half of a log


class EpsilonGreedy(RandomisedRule):
    """Pull the arm with the largest sample mean; with probability epsilon pull any arm instead.

    With `initial=0` it decides from the first round on, and an arm that was never pulled has the mean 0.

    Parameters
    ----------
    epsilon
        The probability of pulling any arm, all being equally likely.
    decay
        If given, that probability falls with the round `t`: it is `min(1, epsilon * decay / t)`.
    rate
        If given, it falls exponentially: it is `epsilon * exp(-rate * (t - 1))`.
    ties
        Which of several arms with the largest mean is taken: the lowest, or each with the same probability.

    Examples
    --------
    >>> from unbandit import Instance
    >>> EpsilonGreedy(epsilon=0.1).demonstrate(Instance([1.0, 0.5]), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    """

    name: ClassVar[str] = "epsilon-greedy"
    fits: ClassVar[tuple[str, ...]] = ("epsilon",)
    no_standard: ClassVar[tuple[str, ...]] = ("epsilon",)
    called: ClassVar[Mapping[str, OtherName]] = EPSILON
    title: ClassVar[str] = "Epsilon-greedy"
    aliases: ClassVar[tuple[str, ...]] = ("egreedy", "e-greedy", "eps-greedy")
    smooth: ClassVar[bool] = False
    greedy: ClassVar[bool] = True
    tries_first: ClassVar[bool] = True
    examples: ClassVar[Examples] = (
        {},
        {"epsilon": 0.5, "initial": 2},
        {"epsilon": 1, "decay": 20},
        {"epsilon": 0.8, "rate": 0.02},
        {"epsilon": 0.3, "batch": 7, "ties": "random"},
        {"epsilon": 0.3, "initial": 0},
    )

    epsilon: float = Field(0.1, gt=0, le=1, description="probability of pulling any arm, in (0, 1]")
    decay: float | None = Field(None, gt=0, description="constant c of a probability that falls: min(1, epsilon c / t)")
    rate: float | None = Field(
        None, gt=0, description="rate r of a probability that falls exponentially: epsilon exp(-r (t - 1))"
    )
    ties: Literal["lowest", "random"] = Field("lowest", description="arm that wins a tie: lowest or random")
    initial: int = Field(
        1,
        ge=0,
        lt=2**32,
        description="pulls of each arm, in turn, before the rule decides; with 0, untried arms have mean 0",
    )

    @property
    def shifts(self) -> bool:
        """Return whether it compares means of pulled arms alone, so that a number added to all rewards is not seen."""
        return self.initial > 0

    @model_validator(mode="after")
    def _one_way_to_fall(self) -> Self:
        if self.decay is not None and self.rate is not None:
            raise ValueError("expected decay or rate, not both: each says how epsilon falls.")
        return self

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return constant probabilities."""
        return {"epsilon": (0.02, 0.05, 0.1, 0.2, 0.4)}

    @classmethod
    def forms(cls, noise: Noise, horizon: int) -> Sequence[Grid]:
        """Return probabilities that fall with the round, from 1 on: as `c / t`, and exponentially."""
        slowest = 1.0 / max(horizon, 10)
        return (
            {"epsilon": (1.0,), "decay": (1.0, max(horizon / 2, 2.0))},
            {"epsilon": (1.0,), "rate": (slowest, max(0.2, 2 * slowest))},
        )

    def advice(self, log: ActionLog) -> str | None:
        """Point to an epsilon that falls, if other arms than the leading one are chosen far more rarely later on."""
        if self.decay is not None or self.rate is not None or not log.ordered:
            return None
        early = late = 0
        for which in range(len(log)):
            codes = log.demonstration(which)[self.initial * len(log.arms) :]
            others = codes != log.pulls[which].argmax()
            half = codes.size // 2
            early, late = early + int(others[:half].sum()), late + int(others[codes.size - half :].sum())
        if early - late <= FALLS * math.sqrt(early + late):
            return None
        chosen = f"{early:,} times in the first half of the log and {late:,} times in the second"
        others = {key: value for key, value in self.model_dump(exclude_defaults=True).items() if key != "epsilon"}
        settings = ",".join(f"{key}={value}" for key, value in {"epsilon": 1, "decay": "fit", **others}.items())
        remedy = option("rule", f"{self.name}:{settings}")
        return f"Arms other than the leading one are chosen {chosen}. If epsilon falls with the rounds, give {remedy}."

    @staticmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return `epsilon / K`, and `1 - epsilon` more for the arm with the largest sample mean."""
        epsilon = exploring(parameters, round)
        mean, ahead, tied = sample_mean(pulls, memory, arm), 0, 1
        for other in range(pulls.size):
            if other != arm:
                against = sample_mean(pulls, memory, other)
                if against > mean:
                    return epsilon / pulls.size
                if against == mean:
                    tied += 1
                    ahead += other < arm
        greedy = 1.0 / tied if parameters.random_ties else 1.0 if ahead == 0 else 0.0
        return epsilon / pulls.size + (1.0 - epsilon) * greedy

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return any arm for the lowest draws, and for the others the arm with the largest sample mean."""
        epsilon, draw, best, tied = exploring(parameters, round), draws[0], 0, 1
        if draw < epsilon:
            return min(int(draw / epsilon * pulls.size), pulls.size - 1)
        for arm in range(1, pulls.size):
            against = sample_mean(pulls, memory, arm) - sample_mean(pulls, memory, best)
            if against > 0.0:
                best, tied = arm, 1
            elif against == 0.0:
                tied += 1
        if tied == 1 or not parameters.random_ties:
            return best
        mean, ahead = sample_mean(pulls, memory, best), int((draw - epsilon) / (1.0 - epsilon) * tied)
        for arm in range(best, pulls.size):
            if sample_mean(pulls, memory, arm) == mean:
                if ahead == 0:
                    return arm
                ahead -= 1
        return best

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return epsilon, its decay and rate (0 for none), and whether ties are broken at random."""
        others = {"decay": self.decay or 0.0, "rate": self.rate or 0.0, "random_ties": float(self.ties == "random")}
        return super().numbers(horizon) | others


@inlined
def exploring(parameters: Any, round: Any) -> float:
    """Return the probability of pulling any arm in a round."""
    epsilon: float = parameters.epsilon
    if parameters.decay > 0.0:
        return float(min(1.0, epsilon * parameters.decay / round))
    return epsilon * math.exp(-parameters.rate * (round - 1.0)) if parameters.rate > 0.0 else epsilon


@inlined
def sample_mean(pulls: Pulls, memory: Memory, arm: Any) -> float:
    """Return an arm's sample mean; 0 for an arm that was never pulled."""
    return float(memory[arm, 0] / max(pulls[arm], 1))
