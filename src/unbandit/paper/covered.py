"""How often the intervals of a study held the truth: arm by arm, horizon by horizon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbandit.paper.claim import FAILS, HOLDS, NOTHING, UNTESTED, Decision
from unbandit.study.folds import Curve, Measured, measured

if TYPE_CHECKING:
    from unbandit.study import Study
    from unbandit.study.folds import Folds

__all__ = ["Trail", "exact_interval", "inside", "trails"]

ESTIMATOR = "switching"
FEW, MANY = 3, 20
"""Up to so many suboptimal arms each is drawn for itself; beyond so many, none is even followed for itself."""

ENOUGH = 0.5
"""A point counts where at least this share of the runs gave an interval."""


@dataclass(frozen=True)
class Trail:
    """Hold the coverage of one arm, or of all suboptimal arms together, over the horizons.

    Attributes
    ----------
    name
        What it is of, as far as the study holds several.
    single, bold
        Whether it is of one arm; whether it is drawn with weight.
    horizon, coverage
        The points, and the share of intervals that hold the true gap, with its standard error.
    held, intervals, share
        How many of the intervals do, how many there are, and how many that is to a run.
    """

    name: str
    single: bool
    bold: bool
    horizon: NDArray[np.int64]
    coverage: Measured
    held: NDArray[np.float64]
    intervals: NDArray[np.float64]
    share: NDArray[np.float64]

    def ends(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intervals of the coverage: exact for one arm; for several, which err together, Student's."""
        from scipy.special import stdtrit

        if self.single:
            return exact_interval(self.held, self.intervals, level)
        reach = stdtrit(self.coverage.folds - 1, 0.5 + level / 2) * self.coverage.error
        return self.coverage.value - reach, self.coverage.value + reach


def trails(study: Study, folds: Folds) -> list[Trail]:
    """Return the coverage of Procedures 1 and 2 over the horizons, for each instance and rule of a study."""
    if ESTIMATOR not in [str(estimator) for estimator in study.estimators]:
        return []
    found, texts = list[Trail](), [str(rule) for rule in study.rules]
    for given in study.instances:
        for rule in study.rules:
            horizons = np.array(sorted(study.horizons))
            cells = [folds.over_arms(horizon=at, instance=given.name, rule=rule) for at in horizons.tolist()]
            name = ", ".join([given.name] * (len(study.instances) > 1) + _own_parts(str(rule), texts))
            found += _of_cells(name, horizons, cells)
    return found


def exact_interval(
    held: ArrayLike, intervals: ArrayLike, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact (Clopper-Pearson) interval of a share; from 0 to 1 where there is nothing.

    Examples
    --------
    >>> low, high = exact_interval([95, 0, 5, 0], [100, 5, 5, 0], 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.887, 0.0, 0.478, 0.0], [0.984, 0.522, 1.0, 1.0])
    """
    from scipy.special import betaincinv

    hits, misses = np.asarray(held, np.float64), np.asarray(intervals, np.float64) - np.asarray(held, np.float64)
    tail = (1 - level) / 2
    low = betaincinv(np.maximum(hits, 1), misses + 1, tail)
    high = betaincinv(hits + 1, np.maximum(misses, 1), 1 - tail)
    return np.where(hits > 0, low, 0.0), np.where(misses > 0, high, 1.0)


def inside(followed: Sequence[Trail], low: float, high: float) -> tuple[Measured | None, Decision]:
    """Decide whether coverage lies between two limits at every point with enough intervals; return the smallest.

    All intervals together are right with 95%: with m points, each has the level 1 - 0.05 / m.
    """
    enough = [trail.share >= ENOUGH for trail in followed]
    count = sum(int(there.sum()) for there in enough)
    if not count:
        return None, (UNTESTED, NOTHING)
    points, outside, open_still = list[tuple[float, float, str]](), 0, 0
    for trail, there in zip(followed, enough, strict=True):
        lower, upper = (end[there] for end in trail.ends(1 - 0.05 / count))
        out = (upper < low) | (high < lower)
        outside += int(out.sum())
        open_still += int((~out & ~((low <= lower) & (upper <= high))).sum())
        values, errors = trail.coverage.value[there], trail.coverage.error[there]
        where = [f"{trail.name}, T = {horizon:,}".removeprefix(", ") for horizon in trail.horizon[there].tolist()]
        points += zip(values.tolist(), errors.tolist(), where, strict=True)
    smallest, largest = min(points), max(points)
    seen = (
        f"from {smallest[0]:.1%} ({smallest[2]}) to {largest[0]:.1%} ({largest[2]}); of {count:,} points {outside:,} "
        f"lie outside and {open_still:,} may lie on either side"
    )
    verdict = FAILS if outside else UNTESTED if open_still else HOLDS
    return Measured(smallest[0], smallest[1], followed[0].coverage.folds), (verdict, seen)


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


def _of_cells(name: str, horizons: NDArray[np.int64], cells: list[Curve]) -> Iterator[Trail]:
    """Give the trails of one instance and rule: of each arm where there are few, else of all together."""
    worse = np.flatnonzero(cells[0].gap > 0)
    if worse.size <= MANY:
        for place in worse.tolist():
            gap = f"gap {cells[0].gap[place]:.2g}" if worse.size > 1 else ""
            yield _trail(", ".join(filter(None, (name, gap))), horizons, cells, [place], bold=worse.size <= FEW)
    if worse.size > FEW:
        yield _trail(name or f"all {worse.size:,} arms", horizons, cells, worse.tolist(), bold=True)


def _trail(name: str, horizons: NDArray[np.int64], cells: list[Curve], arms: list[int], *, bold: bool) -> Trail:
    held, intervals, runs = (
        np.stack([cell.replicates(of)[:, arms].sum(axis=1) for cell in cells], axis=1)
        for of in ("held", "intervals", "runs")
    )
    coverage = measured(held / np.where(intervals > 0, intervals, np.nan))
    return Trail(name, len(arms) == 1, bold, horizons, coverage, held[0], intervals[0], intervals[0] / runs[0])
