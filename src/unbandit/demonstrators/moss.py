"""MOSS of Audibert and Bubeck: the width vanishes once an arm has had its even share of the rounds."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.index import AdditiveIndexRule
from unbandit.demonstrators.widths import EvenShare


class MOSS(EvenShare, AdditiveIndexRule):
    """Pull the arm with the largest sample mean plus scale sqrt(max(ln(T / (K n)), 0) / n).

    `K`, the number of arms, comes from the instance or the log (`for_arms`); as a parameter it is needed only to
    compute the width itself.

    Examples
    --------
    >>> MOSS().for_arms(10).width(np.array([1.0, 50.0, 100.0]), horizon=1_000).round(3).tolist()
    [2.146, 0.118, 0.0]
    """

    name: ClassVar[str] = "moss"
    fits: ClassVar[tuple[str, ...]] = ("scale",)
    title: ClassVar[str] = "MOSS"
    examples: ClassVar[Examples] = ({}, {"scale": 0.5}, {"scale": 3, "ties": "random", "batch": 2})

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `scale sqrt(max(ln(T / (K n)), 0) / n)`."""
        return np.asarray(self.scale * np.sqrt(np.maximum(np.log(horizon / (self.known_arms * pulls)), 0) / pulls))
