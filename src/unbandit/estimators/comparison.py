"""What one demonstration says about every arm's gap, before any noise level is put in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unbandit.result import UNSEEN, Notice

__all__ = ["Comparison", "Width"]

Width = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""The rule's width `C(n)`, its horizon put in."""


@dataclass
class Comparison:
    """Hold, for each arm, two sample means whose difference the record tells, exactly or up to a bound.

    An interval end is `below - z s` or `above + z s` with `s^2 = sigma_i^2 / own + sigma_best^2 / other`.

    Attributes
    ----------
    best
        The arms found best; several where the record leaves it open.
    verdict
        One of `result.VERDICTS`, as its number.
    gap
        The point, NaN where there is none.
    below, above
        What the interval's ends start from: the point for an estimated arm, NaN where there is no end.
    own, other
        How many rewards stand behind the arm's sample mean, and behind that of the arm it was compared with.
    """

    best: list[int]
    verdict: NDArray[np.int8]
    gap: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]
    warnings: list[Notice] = field(default_factory=list)
    notes: list[Notice] = field(default_factory=list)

    @classmethod
    def of_nothing(cls, arms: int) -> Comparison:
        """Return the comparison of a record that tells nothing."""
        gap, below, above, own, other = np.full((5, arms), np.nan)
        return cls([], np.full(arms, UNSEEN, np.int8), gap, below, above, own, other)
