"""What demonstrations say about every arm's gap, before any noise level is put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.result import BEST, UNSEEN

__all__ = ["Comparison", "Tests", "Width", "most_pulled"]

Width = Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]]
"""The rule's width `C(n)` of pull counts, one for each place that is marked; see `widths.RuleWidth`."""

Tests = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
"""Whether an elimination rule tests its arms at the end of these epochs."""


Method = Literal["switching", "counts", "naive", "posterior", "bootstrap"]


@dataclass(frozen=True)
class Anchor:
    """Hold one arm's known mean; arm None stands for the best arm, whichever it is."""

    arm: int | None
    value: float


@dataclass
class Comparison:
    """Hold, for each arm, two sample means whose difference the record tells, exactly or up to a bound.

    An interval end is `below - z s` or `above + z s` with `s^2 = sigma_i^2 / own + (slope sigma_best)^2 / other`, the
    upper one with the counts of an earlier comparison where there was one. All arrays have one place an arm, or one row
    a demonstration and one column an arm.

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
    own_above, other_above
        The same of the comparison that `above` comes from: the last one that the arm still won or survived.
    slope
        How far the arm's estimated mean moves with the best arm's: 1 where gaps need no known mean.
    cut
        Of an arm that was eliminated: the smallest gap whose elimination the record was long enough to show; None for
        rules that eliminate none.
    """

    best: NDArray[np.bool_]
    verdict: NDArray[np.int8]
    gap: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]
    own_above: NDArray[np.float64]
    other_above: NDArray[np.float64]
    slope: NDArray[np.float64]
    cut: NDArray[np.float64] | None = None

    @classmethod
    def of_nothing(cls, shape: tuple[int, ...]) -> Comparison:
        """Return the comparison of records that tell nothing."""
        gap, below, above, own, other, own_above, other_above = np.full((7, *shape), np.nan)
        best, verdict = np.zeros(shape, np.bool_), np.full(shape, UNSEEN, np.int8)
        return cls(best, verdict, gap, below, above, own, other, own_above, other_above, np.ones(shape))

    @property
    def steepness(self) -> float | NDArray[np.float64]:
        """Return `slope`, as one number where one was made to stand for all."""
        return self.slope if any(self.slope.strides) else float(self.slope.flat[0])

    def row(self, which: int) -> Comparison:
        """Return one of several demonstrations, one place an arm."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: array[which] for name, array in arrays.items() if array is not None})

    @classmethod
    def joined(cls, parts: Sequence[Comparison]) -> Comparison:
        """Put demonstrations below one another."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(cls) if getattr(parts[0], field.name) is not None]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

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
