"""Discounted UCB of Kocsis and Szepesvari: rewards count less with every round that passes."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.recent import RecentIndexRule
from unbandit.demonstrators.rule import EXPLORATION, OtherName


class DiscountedUCB(RecentIndexRule):
    """Pull the arm with the largest discounted mean plus sqrt(exploration ln n / N), both counts discounted.

    `N` is the sum of `discount^age` over the arm's pulls, and `n` that over all pulls.

    Examples
    --------
    >>> from unbandit import Instance
    >>> DiscountedUCB(discount=0.9).demonstrate(Instance([1.0, 0.5]), horizon=100, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 100 rounds>
    """

    name: ClassVar[str] = "discounted-ucb"
    varied: ClassVar[tuple[str, ...]] = ("exploration",)
    called: ClassVar[Mapping[str, OtherName]] = EXPLORATION | {"gamma": OtherName("discount")}
    title: ClassVar[str] = "Discounted UCB"
    aliases: ClassVar[tuple[str, ...]] = ("d-ucb", "ducb")
    examples: ClassVar[Examples] = (
        {},
        {"exploration": 0.5, "discount": 0.9, "ties": "random"},
        {"discount": 0.95, "batch": 4},
    )

    exploration: float = Field(2.0, gt=0, description="factor of ln n in the width's square")
    discount: float = Field(0.999, gt=0, lt=1, description="weight of a reward relative to that of the next round's")

    @property
    def memory(self) -> tuple[int, float]:
        """Return the discount."""
        return 0, self.discount
