"""Sliding-window UCB of Garivier and Moulines: only the last rounds count."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.recent import RecentIndexRule
from unbandit.demonstrators.rule import EXPLORATION, OtherName


class SlidingWindowUCB(RecentIndexRule):
    """Pull the arm with the largest mean of the last rounds plus sqrt(exploration ln min(t, window) / N).

    `N` counts the arm's pulls in the window, and `t` the rounds so far.

    Examples
    --------
    >>> from unbandit import Instance
    >>> SlidingWindowUCB(window=50).demonstrate(Instance([1.0, 0.5]), horizon=100, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 100 rounds>
    """

    name: ClassVar[str] = "sliding-window-ucb"
    varied: ClassVar[tuple[str, ...]] = ("exploration", "window")
    called: ClassVar[Mapping[str, OtherName]] = EXPLORATION | {"tau": OtherName("window")}
    title: ClassVar[str] = "Sliding-window UCB"
    aliases: ClassVar[tuple[str, ...]] = ("sw-ucb", "swucb")
    examples: ClassVar[Examples] = ({}, {"window": 40, "ties": "random"}, {"window": 60, "batch": 7})

    window: int = Field(1000, ge=1, lt=2**32, description="rounds that count, the last ones")

    @property
    def memory(self) -> tuple[int, float]:
        """Return the window."""
        return self.window, 1.0
