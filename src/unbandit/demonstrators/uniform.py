"""The rule that learns nothing: every arm is as likely as every other."""

from typing import Any, ClassVar, Literal

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.randomised import Draws, Memory, Pulls, RandomisedRule


class Uniform(RandomisedRule):
    """Pull every arm with the same probability, whatever its rewards: such a log says nothing about values.

    Examples
    --------
    >>> from unbandit import Instance
    >>> Uniform().demonstrate(Instance([1.0, 0.5]), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    """

    name: ClassVar[str] = "uniform"
    title: ClassVar[str] = "Any arm at random"
    aliases: ClassVar[tuple[str, ...]] = ("random",)
    reveals: ClassVar[Literal["values", "best", "nothing"]] = "nothing"
    examples: ClassVar[Examples] = ({}, {"initial": 2})

    @staticmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return `1 / K`."""
        return 1.0 / pulls.size

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return the arm in whose stretch of (0, 1) the draw falls."""
        return int(draws[0] * pulls.size)
