"""EXP3: exponential weights for exploration and exploitation, against any sequence of rewards."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.randomised import Draws, Memory, Pulls, RandomisedRule
from unbandit.demonstrators.rule import OtherName
from unbandit.instance import Noise
from unbandit.kernels.compile import inlined
from unbandit.kernels.special import softmax_choice, softmax_share


class EXP3(RandomisedRule):
    """Pull an arm in proportion to exp(rate * importance-weighted gains), mixed with the uniform rule; rewards 0 and 1.

    P. Auer, N. Cesa-Bianchi, Y. Freund, R. Schapire, "The nonstochastic multiarmed bandit problem", SIAM J. Comput.
    2002. A reward is divided by the probability of its pull. In an opening, arms are pulled in turn and
    every reward counts as if its arm had had the probability `1 / K`.

    Parameters
    ----------
    mixing
        Gamma, the share of the uniform rule.
    rate
        The learning rate; by default `mixing / K`, as in the paper.

    Examples
    --------
    >>> from unbandit import Bernoulli, Instance
    >>> EXP3(mixing=0.2).demonstrate(Instance([0.9, 0.5], noise=Bernoulli()), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    """

    name: ClassVar[str] = "exp3"
    fits: ClassVar[tuple[str, ...]] = ("mixing",)
    no_standard: ClassVar[tuple[str, ...]] = ("mixing",)
    called: ClassVar[Mapping[str, OtherName]] = {
        "gamma": OtherName("mixing"),
        "eta": OtherName("rate"),
        "lr": OtherName("rate"),
    }
    title: ClassVar[str] = "EXP3, exponential weights"
    bernoulli_only: ClassVar[bool] = True
    examples: ClassVar[Examples] = (
        {},
        {"mixing": 1},
        {"mixing": 0.3, "rate": 0.5, "initial": 2},
        {"mixing": 0.2, "batch": 6},
        {"mixing": 0.3, "delay": 4, "batch": 2},
    )

    delay: int = Field(0, ge=0, le=1000, description="rounds by which a reward is known later than in the next round")
    mixing: float = Field(0.1, gt=0, le=1, description="share of the uniform rule, in (0, 1]")
    rate: float | None = Field(None, gt=0, description="learning rate; mixing / K unless given")

    @model_validator(mode="after")
    def _gains_that_can_be_kept(self) -> Self:
        if self.delay > 0 and self.batch > 1000:
            raise ValueError("expected a batch of 1,000 or fewer beside a delay: the gains of a batch are kept.")
        return self

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return shares of the uniform rule."""
        return {"mixing": (0.05, 0.1, 0.2, 0.5)}

    @property
    def columns(self) -> int:  # type: ignore[override]
        """Return how many numbers an arm remembers: with a delay, also gains of earlier rounds."""
        return 3 if self.delay == 0 else 3 + self.delay + self.batch

    @property
    def gains(self) -> int:
        """Return the column of the importance-weighted gains."""
        return 1

    @staticmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return the arm's share of the exponential weights, mixed with `1 / K`."""
        return mixed(parameters, pulls, memory, 1, arm)

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return any arm for the lowest draws, and for the others the arm in whose share of the weights they fall."""
        mixing, draw = parameters.mixing, draws[0]
        if draw < mixing:
            return min(int(draw / mixing * pulls.size), pulls.size - 1)
        rate = parameters.rate if parameters.rate > 0.0 else mixing / pulls.size
        return softmax_choice(memory, 1, pulls, False, rate, (draw - mixing) / (1.0 - mixing))

    @staticmethod
    def learn(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any, reward: float) -> None:
        """Add the reward, divided by the probability of its pull, which was fixed at the batch's first round.

        With a delay of `d`, that look knew the rewards of all but the `d` rounds before it: gains are kept for so long.
        """
        delay, batch = np.int64(parameters.delay), np.int64(parameters.batch)
        opening = np.int64(parameters.initial) * pulls.size
        since, column = round - 1 - opening - (delay if opening > 0 else 0), 2
        if delay > 0:
            for other in range(pulls.size):
                memory[other, 3 + (round - 1) % (delay + batch)] = memory[other, 1]  # gains of all rounds before
            column = 3 + max(round - 1 - since % batch - delay, 0) % (delay + batch)
        if since < 0:
            memory[arm, 1] += reward * pulls.size
            return
        if delay == 0 and since % batch == 0:
            for other in range(pulls.size):
                memory[other, 2] = memory[other, 1]  # the gains as the rule sees them until it looks again
        if reward != 0.0:  # half of the time there is nothing to divide
            memory[arm, 1] += reward / mixed(parameters, pulls, memory, column, arm)

    @staticmethod
    def log_expansion(
        parameters: Any, pulls: Pulls, scores: Draws, round: Any, arm: Any, slope: Draws, bend: Memory
    ) -> float:
        """Return the log of `probability`; fill in its gradient, and the information that a choice has of the gains.

        With shares `q` of the weights, `p_l = (1 - mixing) q_l + mixing / K` has the gradient `(1 - mixing) rate q_l
        (1[l = j] - q_j)`. The information is the expectation of the negative Hessian, which need not be positive.
        """
        uniform = parameters.mixing / pulls.size
        rate = parameters.rate if parameters.rate > 0.0 else uniform
        largest, total, information = scores.max(), 0.0, 0.0
        for each in range(pulls.size):
            slope[each] = math.exp(rate * (scores[each] - largest))
            total += slope[each]
        for each in range(pulls.size):
            slope[each] /= total
            bend[each, each] = ((1.0 - parameters.mixing) * rate * slope[each]) ** 2
            bend[each, each] /= (1.0 - parameters.mixing) * slope[each] + uniform
            information += bend[each, each]
        for row in range(pulls.size):
            for column in range(row):
                crossed = bend[row, row] * slope[column] + bend[column, column] * slope[row]
                bend[row, column] = bend[column, row] = information * slope[row] * slope[column] - crossed
        for row in range(pulls.size):
            bend[row, row] += information * slope[row] * slope[row] - 2.0 * bend[row, row] * slope[row]
        own = (1.0 - parameters.mixing) * slope[arm]
        chance = own + uniform
        for each in range(pulls.size):
            slope[each] = own / chance * rate * ((1.0 if each == arm else 0.0) - slope[each])
        return math.log(chance)

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the rule's numbers; a rate of 0 stands for `mixing / K`."""
        return super().numbers(horizon) | {"rate": self.rate or 0.0}


@inlined
def mixed(parameters: Any, pulls: Pulls, memory: Memory, column: int, arm: Any) -> float:
    """Return an arm's probability from the gains in a column."""
    uniform = parameters.mixing / pulls.size
    rate = parameters.rate if parameters.rate > 0.0 else uniform
    share: float = (1.0 - parameters.mixing) * softmax_share(memory, column, pulls, False, rate, arm) + uniform
    return share
