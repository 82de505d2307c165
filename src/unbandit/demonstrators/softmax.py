"""Softmax (Boltzmann) choice on sample means."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.randomised import Draws, Memory, Pulls, RandomisedRule
from unbandit.demonstrators.rule import TEMPERATURE, OtherName
from unbandit.instance import Noise
from unbandit.kernels.special import expand_softmax, softmax_choice, softmax_share


class Softmax(RandomisedRule):
    """Pull an arm with probability in proportion to exp(sample mean / temperature).

    Parameters
    ----------
    temperature
        How far below the best mean an arm is still worth a try.
    annealing
        The power `p` with which the temperature falls: in round `t` it is `temperature / t^p`. At 0 it stays.

    Examples
    --------
    >>> from unbandit import Instance
    >>> Softmax(temperature=0.2).demonstrate(Instance([1.0, 0.5]), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    """

    name: ClassVar[str] = "softmax"
    fits: ClassVar[tuple[str, ...]] = ("temperature",)
    no_standard: ClassVar[tuple[str, ...]] = ("temperature",)
    called: ClassVar[Mapping[str, OtherName]] = TEMPERATURE
    unit: ClassVar[str] = "temperature"
    title: ClassVar[str] = "Softmax (Boltzmann) choice"
    aliases: ClassVar[tuple[str, ...]] = ("boltzmann",)
    score: ClassVar[int] = 0
    quick: ClassVar[bool] = True
    tries_first: ClassVar[bool] = True
    unwritten: ClassVar[frozenset[str]] = frozenset({"initial", "batch", "delay", "annealing"})
    examples: ClassVar[Examples] = (
        {},
        {"temperature": 1e-4, "initial": 2},
        {"temperature": 2, "annealing": 0.5},
        {"temperature": 0.3, "batch": 10},
        {"temperature": 0.4, "initial": 0},
    )

    temperature: float = Field(0.1, gt=0, description="difference of means by which an arm is e times as likely")
    annealing: float = Field(0.0, ge=0, description="power p of a temperature that falls: temperature / t^p")
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

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return temperatures, from a small part of the noise to twice as much."""
        return {"temperature": [noise.deviation * part for part in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)]}

    @classmethod
    def forms(cls, noise: Noise, horizon: int) -> Sequence[Grid]:
        """Return temperatures that fall as the root of the round, between a small part of the noise and twice as much.

        They are taken after a few rounds, and at the end.
        """
        low, high = 0.1 * noise.deviation * 10**0.5, 2.0 * noise.deviation * max(horizon, 10) ** 0.5
        return ({"annealing": (0.5,), "temperature": (low, high)},)

    @staticmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return the arm's share of `exp(mean / temperature)`."""
        sharpness = round**parameters.annealing / parameters.temperature
        return softmax_share(memory, 0, pulls, True, sharpness, arm)

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return the arm in whose share the draw falls."""
        sharpness = round**parameters.annealing / parameters.temperature
        return softmax_choice(memory, 0, pulls, True, sharpness, draws[0])

    @staticmethod
    def log_expansion(
        parameters: Any, pulls: Pulls, scores: Draws, round: Any, arm: Any, slope: Draws, bend: Memory
    ) -> float:
        """Expand the log of the arm's share, which is concave in the sums of rewards."""
        sharpness = round**parameters.annealing / parameters.temperature
        return expand_softmax(scores, pulls, True, sharpness, arm, slope, bend)
