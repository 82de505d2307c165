"""Epsilon-greedy choice with a linear model."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from unbandit.contexts.rule import RIDGE, LinearRule
from unbandit.demonstrators.rule import EPSILON, Examples, OtherName
from unbandit.kernels.simulate_linear import GREEDY


class LinEpsilonGreedy(LinearRule):
    """Choose any offer with probability epsilon, else the offer with the largest `x'M`.

    Examples
    --------
    >>> LinEpsilonGreedy(epsilon=0.05)
    LinEpsilonGreedy(epsilon=0.05, ridge=1.0)
    """

    name: ClassVar[str] = "lin-epsilon-greedy"
    called: ClassVar[Mapping[str, OtherName]] = RIDGE | EPSILON
    title: ClassVar[str] = "Epsilon-greedy with a linear model"
    aliases: ClassVar[tuple[str, ...]] = ("lingreedy", "lin-greedy", "lin-egreedy")
    fits: ClassVar[tuple[str, ...]] = ("epsilon",)
    no_standard: ClassVar[tuple[str, ...]] = ("epsilon",)
    tuning: ClassVar[str] = "epsilon"
    kind: ClassVar[int] = GREEDY
    examples: ClassVar[Examples] = (
        {},
        {"epsilon": 0, "intercept": True},
        {"epsilon": 0.3, "disjoint": True, "ties": "random"},
        {"ridge": 0.1, "batch": 7, "delay": 3},
    )

    epsilon: float = Field(0.1, ge=0, le=1, description="probability of choosing any offer, all equally likely")
