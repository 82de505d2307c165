"""How often the intervals of a study held the truth: all that were given, and those of single arms."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.paper.claim import FAILS, HOLDS, NOTHING, UNTESTED, Decision
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import Measured, exact_interval, measured, share

if TYPE_CHECKING:
    from unbandit.study import Study
    from unbandit.study.curves import Folds

__all__ = ["FOR_THEMSELVES", "Trail", "inside", "trails"]

ESTIMATOR = "switching"
FOR_THEMSELVES = 20
"""Up to so many suboptimal arms, each is followed for itself; of more, only those that a picture plots."""

PLOTTED_ALL = 3
"""Up to so many suboptimal arms, a picture that names none of them plots each."""


@dataclass(frozen=True)
class Trail:
    """Hold the coverage of all intervals of one instance and rule, or of one arm's, over the horizons.

    Attributes
    ----------
    cell, arm
        Which instance and rule, as far as the study has several; which arm, empty for all together.
    plotted
        Whether a picture plots the arm.
    horizon, coverage
        The points, and the share of intervals that hold the true gap, with its standard error.
    held, intervals, given
        How many of the intervals do, how many there are, and which share that is of the most that the runs can give.
    independent
        Whether no run gives two of them.
    """

    cell: str
    arm: str
    plotted: bool
    horizon: NDArray[np.int64]
    coverage: Measured
    held: NDArray[np.float64]
    intervals: NDArray[np.float64]
    given: NDArray[np.float64]
    independent: bool

    @property
    def name(self) -> str:
        """Return what it is of, in words."""
        return ", ".join(filter(None, (self.cell, self.arm or "all intervals")))

    def ends(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intervals of the coverage: exact where runs give one each; else, as they err together, Student's."""
        from scipy.special import stdtrit

        if self.independent:
            return exact_interval(self.held, self.intervals, level)
        # where all groups of runs gave the same, nothing is known of the error
        error = np.where(self.coverage.error > 0, self.coverage.error, np.inf)
        reach = stdtrit(self.coverage.folds - 1, 0.5 + level / 2) * error
        return self.coverage.value - reach, self.coverage.value + reach

    def at(self, point: int) -> Measured:
        """Return the coverage at one horizon."""
        if self.independent:
            return share(self.held[point], self.intervals[point])
        return Measured(float(self.coverage.value[point]), float(self.coverage.error[point]), self.coverage.folds)


def trails(study: Study, folds: Folds, plotted: Collection[str] = ()) -> list[Trail]:
    """Return the coverage of Procedures 1 and 2 over the horizons, for each instance and rule of a study.

    Parameters
    ----------
    plotted
        The arms that a picture plots, where it does not plot all.
    """
    if ESTIMATOR not in [str(estimator) for estimator in study.estimators]:
        return []
    found, texts = list[Trail](), [str(rule) for rule in study.rules]
    for given in study.instances:
        for rule in study.rules:
            horizons = np.array(sorted(study.horizons))
            cells = [folds.over_arms(horizon=at, instance=given.name, rule=rule) for at in horizons.tolist()]
            name = ", ".join([given.name] * (len(study.instances) > 1) + _own_parts(str(rule), texts))
            found += _of_cell(name, horizons, cells, plotted)
    return found


def inside(followed: Sequence[Trail], low: float, high: float) -> tuple[Measured | None, Decision]:
    """Decide whether coverage lies between two limits at every point with enough intervals; return the smallest.

    All intervals together are right with 95%: with m points, each has the level 1 - 0.05 / m.
    """
    enough = [trail.given >= ENOUGH for trail in followed]
    count = sum(int(there.sum()) for there in enough)
    if not count:
        return None, (UNTESTED, NOTHING)
    points, outside, open_still = list[tuple[float, str, Measured]](), 0, 0
    for trail, there in zip(followed, enough, strict=True):
        lower, upper = (end[there] for end in trail.ends(1 - 0.05 / count))
        out = (upper < low) | (high < lower)
        outside += int(out.sum())
        open_still += int((~out & ~((low <= lower) & (upper <= high))).sum())
        for point in np.flatnonzero(there).tolist():
            found = trail.at(point)
            points.append((found.value, f"{trail.name}, T = {trail.horizon[point]:,}", found))
    smallest, largest = (extreme(points, key=lambda point: point[:2]) for extreme in (min, max))
    seen = (
        f"from {smallest[0]:.1%} ({smallest[1]}) to {largest[0]:.1%} ({largest[1]}); of {count:,} points {outside:,} "
        f"lie outside and {open_still:,} may lie on either side"
    )
    verdict = FAILS if outside else UNTESTED if open_still else HOLDS
    return smallest[2], (verdict, seen)


def _own_parts(text: str, texts: Sequence[str]) -> list[str]:
    """Return what tells a rule from the others, in short.

    Examples
    --------
    >>> texts = ["ucb:alpha=0.25,scale=1.4142135", "ucb:alpha=0.15,scale=1.4142135"]
    >>> _own_parts(texts[0], texts)
    ['alpha=0.25']
    >>> _own_parts("sae:alpha=0.5", ["sae:alpha=0.5"])
    []
    """
    parts = [set(other.replace(":", ",").split(",")) for other in texts]
    own = [part for part in text.replace(":", ",").split(",") if not all(part in others for others in parts)]
    return [re.sub(r"[0-9]+\.[0-9]{4,}", lambda found: f"{float(found[0]):.4g}", part) for part in own]


def _of_cell(name: str, horizons: NDArray[np.int64], cells: list[Curve], plotted: Collection[str]) -> Iterator[Trail]:
    """Give the trails of one instance and rule: of all intervals, then of single suboptimal arms."""
    arms, worse = cells[0].along.tolist(), np.flatnonzero(cells[0].gap > 0).tolist()
    yield _trail(name, "", True, horizons, cells, list(range(len(arms))))
    for place in worse:
        shown = arms[place] in plotted or (not plotted and len(worse) <= PLOTTED_ALL)
        if shown or len(worse) <= FOR_THEMSELVES:
            yield _trail(name, _named(cells, place), shown, horizons, cells, [place])


def _named(cells: list[Curve], place: int) -> str:
    """Name an arm, with its gap where that is the same at every horizon."""
    gaps = {float(cell.gap[place]) for cell in cells}
    return f"arm {cells[0].along[place]}" + (f" (gap {gaps.pop():.2g})" if len(gaps) == 1 else "")


def _trail(
    cell: str, arm: str, plotted: bool, horizons: NDArray[np.int64], cells: list[Curve], places: list[int]
) -> Trail:
    held, intervals = (
        np.stack([each.replicates(of)[:, places].sum(axis=1) for each in cells], axis=1) for of in ("held", "intervals")
    )
    coverage = measured(held / np.where(intervals > 0, intervals, np.nan))
    most = max(1, len(places) - 1)  # the arm found best has none
    given = intervals[0] / (most * np.array([each.runs[0] for each in cells]))
    return Trail(cell, arm, plotted, horizons, coverage, held[0], intervals[0], given, independent=most == 1)
