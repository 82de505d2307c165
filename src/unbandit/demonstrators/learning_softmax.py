"""Softmax on values learnt with a learning rate: the model that behavioural scientists fit to people."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.randomised import Draws, Memory, Pulls, RandomisedRule
from unbandit.demonstrators.rule import RATE, TEMPERATURE, OtherName
from unbandit.instance import Noise
from unbandit.kernels.special import expand_softmax, softmax_choice, softmax_share


class LearningSoftmax(RandomisedRule):
    """Pull an arm with probability in proportion to exp(value / temperature), values moving towards each reward.

    After a reward `r` the value `Q` of the arm becomes `Q + rate (r - Q)` (Rescorla and Wagner's rule, also called
    Q-learning): recent rewards count more, and old ones are forgotten.

    Parameters
    ----------
    rate
        How far a value moves towards a reward; at 1 only the last one counts.
    temperature
        How far below the best value an arm is still worth a try; its inverse is often called beta.
    start
        The value of every arm before its first pull.

    Examples
    --------
    >>> from unbandit import Instance
    >>> LearningSoftmax(rate=0.3).demonstrate(Instance([1.0, 0.5]), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    """

    name: ClassVar[str] = "learning-softmax"
    fits: ClassVar[tuple[str, ...]] = ("rate", "temperature")
    no_standard: ClassVar[tuple[str, ...]] = ("rate", "temperature")
    called: ClassVar[Mapping[str, OtherName]] = RATE | TEMPERATURE
    unit: ClassVar[str] = "temperature"
    title: ClassVar[str] = "Softmax on learnt values, as in Q-learning and Rescorla-Wagner models"
    aliases: ClassVar[tuple[str, ...]] = ("q-learning", "rescorla-wagner")
    columns: ClassVar[int] = 2
    score: ClassVar[int] = 1
    quick: ClassVar[bool] = True
    examples: ClassVar[Examples] = (
        {},
        {"rate": 1, "temperature": 0.5, "start": 2},
        {"rate": 0.05, "temperature": 1e-3, "initial": 1},
        {"batch": 4},
    )

    rate: float = Field(0.1, gt=0, le=1, description="learning rate, in (0, 1]")
    temperature: float = Field(0.2, gt=0, description="difference of values by which an arm is e times as likely")
    start: float = Field(0.0, description="value of an arm before its first pull")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return learning rates, slow and quick, and temperatures in units of the noise."""
        return {"rate": (0.1, 0.3), "temperature": [noise.deviation * part for part in (0.2, 0.5, 1.0)]}

    @staticmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return the arm's share of `exp(value / temperature)`."""
        return softmax_share(memory, 1, pulls, False, 1.0 / parameters.temperature, arm)

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return the arm in whose share the draw falls."""
        return softmax_choice(memory, 1, pulls, False, 1.0 / parameters.temperature, draws[0])

    @staticmethod
    def learn(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any, reward: float) -> None:
        """Move the arm's value towards the reward; its distance from the start is stored."""
        memory[arm, 1] += parameters.rate * (reward - parameters.start - memory[arm, 1])

    @staticmethod
    def log_expansion(
        parameters: Any, pulls: Pulls, scores: Draws, round: Any, arm: Any, slope: Draws, bend: Memory
    ) -> float:
        """Expand the log of the arm's share, which is concave in the values."""
        return expand_softmax(scores, pulls, False, 1.0 / parameters.temperature, arm, slope, bend)
