"""LilUCB with the width that the New Yorker's caption contests were run with."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.index import AdditiveIndexRule
from unbandit.instance import Noise


class LilUCB(AdditiveIndexRule):
    """Pull the arm with the largest sample mean plus R sqrt(2 ln(4 n^2 / delta) / n), whatever the horizon.

    `R` is the range of the rewards: the contests' labels run from 1 to 3, so it is 2 there.

    Examples
    --------
    >>> LilUCB(reward_range=2).width(np.array([1.0, 100.0]), horizon=1_000).round(3).tolist()
    [5.921, 1.043]
    """

    name: ClassVar[str] = "lilucb"
    fits: ClassVar[tuple[str, ...]] = ("reward_range",)
    title: ClassVar[str] = "LilUCB"
    aliases: ClassVar[tuple[str, ...]] = ("lil-ucb",)
    examples: ClassVar[Examples] = (
        {},
        {"reward_range": 0.2},
        {"reward_range": 2, "delta": 0.5, "batch": 3},
        {"reward_range": 0.1, "initial": 3},
    )

    reward_range: float = Field(1.0, gt=0, description="range of the rewards, R")
    delta: float = Field(0.05, gt=0, le=1, description="error probability of the confidence bound")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return ranges in units of the noise, and error probabilities."""
        return {"reward_range": [noise.deviation * factor for factor in (1.0, 2.0, 4.0)], "delta": (0.05, 0.1)}

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `R sqrt(2 ln(4 n^2 / delta) / n)`."""
        return np.asarray(self.reward_range * np.sqrt(2 * np.log(4 * pulls**2 / self.delta) / pulls))
