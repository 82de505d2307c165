"""What demonstrations say about every arm's gap, before any noise level is put in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unbandit.result import BEST, UNSEEN, Notice

__all__ = ["Comparison", "Width", "most_pulled"]

Width = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""The rule's width `C(n)`, its horizon put in."""


@dataclass
class Comparison:
    """Hold, for each arm, two sample means whose difference the record tells, exactly or up to a bound.

    An interval end is `below - z s` or `above + z s` with `s^2 = sigma_i^2 / own + sigma_best^2 / other`. All arrays
    have one place an arm, or one row a demonstration and one column an arm.

    Attributes
    ----------
    best
        Which arms may be best: one, or several where the record leaves it open.
    verdict
        One of `result.VERDICTS`, as its number.
    gap
        The point, NaN where there is none.
    below, above
        What the interval's ends start from: the point for an estimated arm, NaN where there is no end.
    own, other
        How many rewards stand behind the arm's sample mean, and behind that of the arm it was compared with.
    """

    best: NDArray[np.bool_]
    verdict: NDArray[np.int8]
    gap: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]
    warnings: list[Notice] = field(default_factory=list)
    notes: list[Notice] = field(default_factory=list)

    @classmethod
    def of_nothing(cls, shape: tuple[int, ...]) -> Comparison:
        """Return the comparison of records that tell nothing."""
        gap, below, above, own, other = np.full((5, *shape), np.nan)
        return cls(np.zeros(shape, np.bool_), np.full(shape, UNSEEN, np.int8), gap, below, above, own, other)

    def settle(self, best: NDArray[np.bool_]) -> None:
        """Take these arms, one a demonstration, as the best."""
        self.best[best], self.verdict[best], self.gap[best] = True, BEST, 0.0


def most_pulled(pulls: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the most-pulled arm of each demonstration, the first of them if several are tied.

    Examples
    --------
    >>> most_pulled(np.array([[1, 3, 3], [4, 2, 0]])).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    marks = np.zeros(pulls.shape, np.bool_)
    np.put_along_axis(marks, pulls.argmax(axis=-1)[..., None], True, axis=-1)
    return marks
