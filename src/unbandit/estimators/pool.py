"""Several demonstrations of one instance, combined: every comparison with a best arm is an edge between two arms."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unbandit.errors import Notice
from unbandit.estimators.procedures import Comparison, Request, intervals
from unbandit.formatting import counted, plural
from unbandit.log.columns import noun_of
from unbandit.result import BEST, BOUNDED, ESTIMATED, UNSEEN

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Pooled:
    """What all demonstrations together say: one place per arm, NaN where there is no number.

    `deviation` is the standard deviation of each gap; `notices` say how demonstrations were combined.
    """

    best: NDArray[np.bool_]
    verdict: NDArray[np.int8]
    numbers: dict[str, Numbers]
    deviation: Numbers
    notices: list[Notice]

    def as_comparison(self) -> Comparison:
        """Return gaps and their deviations as the comparison of one demonstration, for ratios."""
        whole = Comparison.empty((1, self.best.size))
        whole.gap[0], whole.verdict[0], whole.best[0] = self.numbers["gap"], self.verdict, self.best
        whole.own[0] = whole.other[0] = 2 / np.where(self.deviation > 0, self.deviation, np.nan) ** 2
        return whole


class Edges(NamedTuple):
    """Comparisons between pairs of arms: how much better `first` is than `second`, and with what variance."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    values: Numbers
    variance: Numbers

    def solve(self, arms: int) -> tuple[Numbers, Numbers]:
        """Return the means, up to a constant, by weighted least squares, and their covariance, up to the same."""
        laplacian, right = np.zeros((arms, arms)), np.zeros(arms)
        weight = 1 / self.variance
        for at, other, sign in ((self.first, self.second, 1), (self.second, self.first, -1)):
            np.add.at(laplacian, (at, at), weight)
            np.add.at(laplacian, (at, other), -weight)
            np.add.at(right, at, sign * weight * self.values)
        inverse = np.asarray(np.linalg.pinv(laplacian, hermitian=True), np.float64)
        return inverse @ right, inverse

    def group(self, start: Sequence[int], count: int) -> NDArray[np.bool_]:
        """Return which arms are linked to the first of `start` by comparisons, or to the largest such group of them."""
        graph = coo_array((np.ones(self.first.size), (self.first, self.second)), shape=(count, count))
        _, component = connected_components(graph, directed=False)
        return max((component == component[arm] for arm in start), key=lambda linked: int(linked.sum()))


def pool(request: Request, found: Comparison) -> Pooled:
    """Combine the comparisons of several demonstrations of one instance, one row each, into one.

    Every arm that a demonstration estimates is compared with that demonstration's own best arm. Weighted least squares
    finds the means that agree best with all comparisons, so two arms need never have been compared themselves. An
    elimination rule's demonstration that left several arms active compares with the unknown best among them: it counts
    as compared with the best arm of the others, if that was one of them. Arms that are nowhere estimated have the
    tightest of their bounds, each at an error divided by how many there are.
    """
    arms, anchor, z, ends = request.log.arms, request.anchor, request.z, request.intervals(found)
    count = len(arms)
    estimated = (found.verdict == ESTIMATED) & ~np.isnan(found.gap)
    below, above = (np.where(np.isnan(each), 1.0, each) for each in (ends.deviation, ends.deviation_above))

    def edges(values: Numbers, deviation: Numbers, rows: NDArray[np.bool_], tops: NDArray[np.int64]) -> Edges:
        """Return the comparisons of some demonstrations, each with its own best arm."""
        places = estimated & rows[:, None]
        which, second = np.nonzero(places)
        return Edges(tops[which], second, values[places], deviation[places] ** 2)

    tops = np.where(found.best.sum(axis=1) == 1, found.best.argmax(axis=1), -1)
    open_still = tops < 0
    times = np.bincount(tops[~open_still], minlength=count)
    leaders = np.flatnonzero(times).tolist()
    notices = _leaders_differ(leaders, times, arms, plural(noun_of(request.log.demonstrations)))
    best = count  # a node of its own stands for the unknown best arm
    if leaders:
        settled = edges(found.gap, below, ~open_still, tops)
        group, (means, _) = settled.group(leaders, count), settled.solve(count)
        best = max((top for top in leaders if group[top]), key=lambda top: means[top])
    usable = open_still if best == count else open_still & found.best[:, best]
    left_out = int(open_still.sum() - usable.sum())
    if left_out:
        who, are = counted(left_out, noun_of(request.log.demonstrations)), "is" if left_out == 1 else "are"
        notices.append(Notice("left-out", f'{who} had given up "{arms[best]}" and {are} left out.'))
    # the points, and what the lower and upper ends of their intervals start from
    starts = (found.gap, below), (ends.low + z * below, below), (ends.high - z * above, above)
    tables = [edges(*start, ~open_still | usable, np.where(open_still, best, tops)) for start in starts]
    group, solved = tables[0].group([best], count + 1), [table.solve(count + 1) for table in tables]

    def deviations(arm: int, which: int) -> Numbers:
        """Return the standard deviations of an arm's differences from each, of points or of an end."""
        covariance = solved[which][1]
        variance = covariance[arm, arm] + np.diag(covariance) - 2 * covariance[arm]
        return np.where(group, np.sqrt(np.maximum(variance, 0)), np.nan)[:count]

    gap, gap_below, gap_above = (np.where(group, means[best] - means, np.nan)[:count] for means, _ in solved)
    gap_low, gap_high = gap_below - z * deviations(best, 1), gap_above + z * deviations(best, 2)
    seen = np.where((found.verdict != UNSEEN).any(axis=0), BOUNDED, UNSEEN)
    verdict = np.where(group[:count], ESTIMATED, seen).astype(np.int8)
    marks = np.zeros(count, np.bool_)
    if best < count:
        marks[best], verdict[best] = True, BEST
        gap_low[best] = gap_high[best] = np.nan
    else:
        marks = found.best[open_still].all(axis=0) & (verdict == BOUNDED)
    bounded = verdict == BOUNDED
    gap[bounded] = np.nan
    gap_low[bounded], gap_high[bounded] = (ends[bounded] for ends in _bounds(request, found))
    numbers = {"gap": gap, "gap_low": gap_low, "gap_high": gap_high}
    numbers |= {name: np.full(count, np.nan) for name in ("mean", "mean_low", "mean_high")}
    if anchor is not None and anchor.arm in (None, best):
        for name, of in (("mean", "gap"), ("mean_low", "gap_high"), ("mean_high", "gap_low")):
            numbers[name] = anchor.value - numbers[of]
    elif anchor is not None and anchor.arm is not None and best < count:
        at, reach = anchor.arm, z * deviations(anchor.arm, 2)
        numbers["mean"] = anchor.value + gap[at] - gap
        numbers["mean_low"] = anchor.value + gap_below[at] - gap_above - reach
        numbers["mean_high"] = anchor.value + gap_above[at] - gap_below + reach
        numbers["mean_low"][at] = numbers["mean_high"][at] = np.nan
        numbers["mean_high"][bounded] = numbers["mean_high"][best] - gap_low[bounded]
    return Pooled(marks, verdict, numbers, deviations(best, 0), notices)


def _leaders_differ(leaders: list[int], found: NDArray[np.int64], arms: tuple[str, ...], these: str) -> list[Notice]:
    """Say if demonstrations have different best arms; `found` has in how many of `these` each arm is the best."""
    if len(leaders) < 2:
        return []
    times = ", ".join(f'"{arms[top]}" in {found[top]}' for top in leaders[:6]) + (", ..." if len(leaders) > 6 else "")
    text = (
        f"The most-pulled arm is not the same in all {these}: {times}. They are pooled all the same, through "
        "the arms that they share; the best arm is the one whose pooled mean is largest."
    )
    return [Notice("best-arms-differ", text)]


def _bounds(request: Request, found: Comparison) -> tuple[Numbers, Numbers]:
    """Return the tightest of all bounds, each at an error divided by how many there are."""
    stricter = -NormalDist().inv_cdf(NormalDist().cdf(-request.z) / len(found.gap))
    lows, highs, *_ = intervals(found, request.noise, request.anchor, stricter)
    bounded = found.verdict == BOUNDED
    low = np.where(bounded & ~np.isnan(lows), lows, 0.0).max(axis=0)
    high = np.where(bounded & ~np.isnan(highs), highs, np.inf).min(axis=0)
    return low, np.where(np.isfinite(high), high, np.nan)
