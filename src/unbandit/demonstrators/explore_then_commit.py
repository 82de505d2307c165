"""Explore, then commit: a fixed number of pulls of each arm, and from then on the one that looked best."""

import math
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.elimination import EliminationRule
from unbandit.instance import Noise
from unbandit.log import ActionLog


class ExploreThenCommit(EliminationRule):
    """Pull every arm equally often, then the one with the largest sample mean until the end.

    An elimination rule with a single test that only one arm passes, the lowest of several with the largest mean. Its
    actions show which arm it judged best, and nothing else.

    Examples
    --------
    >>> from unbandit import Instance
    >>> ExploreThenCommit(explore=2).demonstrate(Instance([0.0, 5.0]), horizon=8).actions.tolist()
    [0, 1, 0, 1, 1, 1, 1, 1]
    """

    name: ClassVar[str] = "explore-then-commit"
    title: ClassVar[str] = "Explore, then commit"
    aliases: ClassVar[tuple[str, ...]] = ("etc",)
    reveals: ClassVar[Literal["values", "best", "nothing"]] = "best"
    examples: ClassVar[Examples] = ({}, {"explore": 1}, {"explore": 3})

    explore: int = Field(10, ge=1, lt=2**32, description="pulls of each arm before it commits")
    batch: Literal[1] = Field(1, description="always 1: there is one test only")

    @field_validator("batch", mode="before")
    @classmethod
    def _without_batch(cls, given: Any) -> Any:
        """Refuse a batch: there are no later tests for it to put apart."""
        if given != 1:
            raise ValueError("expected 1, as it tests once, after as many pulls of each arm as explore says")
        return given

    @classmethod
    def guesses(cls, noise: Noise, log: ActionLog) -> list[tuple[Self, float]]:
        """Return the length that the log shows, with its prior probability, and one that is too long for the log.

        The prior is flat in the logarithm, from one pull to as many as the log has rounds: `P(explore >= n)` is
        `1 - ln n / ln (T + 2)`. All lengths that the log does not show explain nothing, and keep their probability;
        those too long for it count as one, because the log may end before its rule commits.
        """
        rounds = int(log.lengths[0])
        shown, too_long = max(int(log.pulls[0].min()), 1), rounds // len(log.arms) + 1
        masses = math.log((shown + 1) / shown), math.log((rounds + 2) / too_long)
        return [
            (cls(explore=each), mass / math.log(rounds + 2))
            for each, mass in zip((shown, too_long), masses, strict=True)
        ]

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return 0: all but the best arm go."""
        return np.zeros_like(pulls)

    def tests(self, epochs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether this is the last epoch of the exploration."""
        return np.asarray(np.asarray(epochs) == self.explore)
