"""The common level of all indices, from several known means: found robustly, with the arms that are off it.

By the end of a record all indices of an index rule stand near one level, so an arm's count and any one known mean give
all other means. A system that holds arms back breaks that for these arms: their known means lie above the level. From
several known means the level is that of the largest group that agree; arms off it are named and not used.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import IndexRule
from unbandit.errors import Notice, NotIdentifiable, ParameterError
from unbandit.estimators.diagnostics import Diagnosis, PlacedNotices
from unbandit.estimators.procedures import Anchor, Answer, Comparison, Request
from unbandit.formatting import quoted
from unbandit.instance import Gaussian
from unbandit.result import BEST, BOUNDED, ESTIMATED

DISAGREE = 0.001  # the error at which known means are said to disagree, over all of them
MOST_CENTRES = 99  # levels that are tried as the centre of a group
FEWEST_FOR_FACTOR = 3  # known means from which on it can be seen that a wider or narrower width fits them better
ROUNDING = 1e-12  # relative difference of widths that may come from rounding alone
MOST_NAMED = 4

Numbers = NDArray[np.float64]
Marks = NDArray[np.bool_]


class Levels(NamedTuple):
    """The level that each known mean implies, as the mean of the most-pulled arm if that stood at the level."""

    arms: NDArray[np.int64]
    known: Numbers  # the means that were given
    implied: Numbers
    deviation: Numbers  # of `implied`, since a sample mean strays from a known mean
    step: Numbers  # by how much one pull moves the arm's index
    width: Numbers  # how much further above its mean an arm's index is than the most-pulled arm's

    def of(self, marks: Marks) -> "Levels":
        """Return some of them."""
        return Levels(self.arms[marks], *(each[marks] for each in self[1:]))

    def combined(self) -> tuple[float, float]:
        """Return one level, weighted by precision, and its standard deviation."""
        weight = 1 / (np.square(self.deviation) + np.square(self.step) / 12)
        return float((weight * self.implied).sum() / weight.sum()), float(1 / np.sqrt(weight.sum()))

    def near(self, level: float, deviation: float, step: float, reach: float) -> Marks:
        """Mark those that agree with a level, up to noise and one pull."""
        allowed = reach * np.hypot(self.deviation, deviation) + np.maximum(self.step, step)
        return np.asarray(np.abs(self.implied - level) <= allowed)

    def largest_group(self) -> Marks:
        """Mark the largest group that agree; of equal ones the lower, since arms are held back rather than pushed."""
        reach = NormalDist().inv_cdf(1 - DISAGREE / (2 * self.implied.size))
        order = np.argsort(self.implied, kind="stable")
        centres = order[np.unique(np.linspace(0, order.size - 1, MOST_CENTRES).round().astype(np.int64))]
        groups = [self.near(self.implied[at], self.deviation[at], self.step[at], reach) for at in centres]
        first = max(groups, key=np.count_nonzero)
        again = self.near(*self.of(first).combined(), 0.0, reach)
        return again if np.count_nonzero(again) >= np.count_nonzero(first) else first

    def factor(self) -> tuple[float, float]:
        """Return how much wider than assumed the rule's width fits the known means best, and its standard error.

        Weighted least squares of `known = level - factor * width`; NaN where they do not show it.
        """
        if self.implied.size < FEWEST_FOR_FACTOR:
            return np.nan, np.nan
        weight = 1 / (np.square(self.deviation) + np.square(self.step))
        from_mean = self.width - np.average(self.width, weights=weight)
        squares = (weight * np.square(from_mean)).sum()
        if not squares > weight.sum() * (ROUNDING * np.abs(self.width).max()) ** 2:
            return np.nan, np.nan
        factor = -(weight * from_mean * self.known).sum() / squares
        return float(factor), float(1 / np.sqrt(squares))

    def all_agree_with(self, factor: float) -> bool:
        """Return whether all agree once the width is so many times as wide."""
        return factor > 0 and bool(self._replace(implied=self.known + factor * self.width).largest_group().all())


class Found(NamedTuple):
    """What one demonstration says: its levels, the group that the answer rests on, and the next."""

    levels: Levels
    group: Marks
    other: Marks  # empty of marks where all agree
    unused: list[int]  # arms whose mean is known and whose count says nothing


def estimate_from_several(request: Request, anchors: Sequence[Anchor]) -> tuple[Answer, dict[str, Answer]]:
    """Read every demonstration from several known means; also from those that disagree with the others, by label."""
    first = replace(request, anchor=anchors[0])
    diagnosis, answers = Diagnosis(first), [_blank_answer(request), _blank_answer(request)]
    comparison = Comparison.joined(diagnosis.read(lambda _, part: part))
    notices: PlacedNotices = []
    found = [_find(request, anchors, comparison, which) for which in range(len(request.log))]
    if not any(each.levels.arms.size for each in found):
        raise NotIdentifiable(
            "None of the arms whose mean was given has an estimated gap. So nothing else follows; choose arms with "
            "verdict estimated."
        )
    for which, each in enumerate(found):
        for answer, group in zip(answers, (each.group, each.other if each.other.any() else each.group), strict=True):
            if each.levels.arms.size:
                _put(request, answer, which, comparison, each.levels, group)
            else:
                answer.put(which, {}, comparison.verdict[which], comparison.best[which])
        notices += [(which, notice) for notice in _notices(request, each, which)]
    for answer in answers:
        diagnosis.report(answer, warnings=notices)
    differ = [each for each in found if each.other.any()]
    if not differ:
        answers[0].notes.append(_agreement(found))
        return answers[0], {}
    label = "with the other known means where they disagree"
    if len(found) == 1:
        label = f"from the mean of {_names(request, differ[0].levels.of(differ[0].other))} instead"
    return answers[0], {label: answers[1]}


def _blank_answer(request: Request) -> Answer:
    names = ("gap", "gap_low", "gap_high", "mean", "mean_low", "mean_high")
    answer = Answer(request.log.demonstrations, request.tallies.pulls, names)
    for values in answer.numbers.values():
        values[:] = np.nan
    return answer


def _shifts(request: Request) -> bool:
    assert isinstance(request.rule, IndexRule)
    return bool(request.rule.shifts)


def _find(request: Request, anchors: Sequence[Anchor], comparison: Comparison, which: int) -> Found:
    """Return the level that each known mean implies, and which of them agree."""
    top, pulls = int(comparison.best[which].argmax()), request.tallies.pulls[which]
    placed: dict[int, Anchor] = {}
    for anchor in anchors:
        arm = top if anchor.arm is None else anchor.arm
        if placed.setdefault(arm, anchor).value != anchor.value:
            name = quoted(request.log.arms[arm])
            text = f"the most-pulled arm, {name}, is given two means: {placed[arm].value:g} and {anchor.value:g}."
            raise ParameterError(text, parameter="anchor", value=anchor.value, remedy="Leave one of them out.")
    rows, unused, row = [], [], comparison.row(which)
    for arm, anchor in placed.items():
        if not _shifts(request):  # the gap depends on the mean that is known
            row = replace(request, anchor=replace(anchor, arm=arm)).compare(which, which + 1).row(0)
        if row.verdict[arm] not in (BEST, ESTIMATED) or np.isnan(row.gap[arm]):
            unused.append(arm)
            continue
        noise, value = request.noise, anchor.value
        spread = noise.sigma if isinstance(noise, Gaussian) else np.sqrt(value * (1 - value))
        step = 0.0 if arm == top else max(float(row.above[arm] - row.gap[arm]), 0.0)
        slope = max(float(row.slope[arm]), 1e-9)
        gap = 0.0 if arm == top else float(row.gap[arm])
        deviation = max(float(spread), 1e-9) / np.sqrt(pulls[arm]) / slope
        rows.append((arm, value, value + gap, deviation, step, gap))
    columns = np.array(rows, np.float64).reshape(-1, 6).T
    levels = Levels(columns[0].astype(np.int64), *columns[1:])
    group = levels.largest_group() if levels.arms.size else np.zeros(0, np.bool_)
    other = np.zeros_like(group)
    if not group.all():
        other[~group] = levels.of(~group).largest_group()
    return Found(levels, group, other, unused)


def _put(
    request: Request, answer: Answer, which: int, comparison: Comparison, levels: Levels, group: Marks
) -> None:  # fmt: skip
    """Fill in one demonstration's numbers from the level of a group of known means."""
    level, level_deviation = levels.of(group).combined()
    at_level = replace(request, anchor=Anchor(None, level))
    part = comparison.part(which, which + 1) if _shifts(request) else at_level.compare(which, which + 1)
    row, ends = part.row(0), at_level.intervals(part)
    gap_low, gap_high, below, above = ends.low[0], ends.high[0], ends.deviation[0], ends.deviation_above[0]
    top, z, verdict, best = int(row.best.argmax()), request.z, row.verdict.copy(), row.best.copy()
    # The most-pulled arm's own noise is part of a gap; here the level's takes its place.
    noise, count = request.noise, request.tallies.pulls[which, top]
    of_top = noise.sigma if isinstance(noise, Gaussian) else float(np.sqrt(np.clip(level * (1 - level), 0, None)))
    own = [np.sqrt(np.maximum(each**2 - (row.slope * of_top) ** 2 / count, 0.0)) for each in (below, above)]
    reach = [z * np.hypot(each, row.slope * level_deviation) for each in own]
    mean = level - row.gap
    mean_high, mean_low = level - row.below + reach[0], level - row.above - reach[1]
    bounded = verdict == BOUNDED
    mean_high[bounded] = (level - gap_low + z * level_deviation)[bounded]
    mean_low[bounded] = np.nan
    mean[top] = level
    mean_low[top], mean_high[top] = level + np.array([-z, z]) * np.hypot(of_top / np.sqrt(count), level_deviation)
    arms = levels.arms
    mean[arms] = levels.known
    mean_low[arms] = mean_high[arms] = np.nan
    # Gaps are from the arm whose mean is largest: a known mean above the level's, or the most-pulled arm.
    gap, first = row.gap.copy(), int(np.nanargmax(mean))
    first = top if mean[first] <= mean[top] else first
    known = np.isin(np.arange(mean.size), arms)
    if known[first]:
        gap, gap_low, gap_high = mean[first] - mean, mean[first] - mean_high, mean[first] - mean_low
    else:
        gap[known] = mean[first] - mean[known]
        gap_low[known], gap_high[known] = (gap[known] + sign * (mean_high[first] - level) for sign in (-1, 1))
    verdict[top], verdict[first] = ESTIMATED, BEST
    best[top], best[first] = False, True
    gap[first], gap_low[first], gap_high[first] = 0.0, np.nan, np.nan
    numbers = {"gap": gap, "gap_low": gap_low, "gap_high": gap_high}
    answer.put(which, numbers | {"mean": mean, "mean_low": mean_low, "mean_high": mean_high}, verdict, best)


# What is said


def _names(request: Request, levels: Levels) -> str:
    shown = [quoted(request.log.arms[arm]) for arm in levels.arms[:MOST_NAMED]]
    left = levels.arms.size - len(shown)
    return ", ".join(shown) + (f" and {left:,} more" if left else "")


def _notices(request: Request, found: Found, which: int) -> list[Notice]:
    """Say which known means do not fit the others."""
    levels, group = found.levels, found.group
    name = request.log.demonstrations[which] if len(request.log) > 1 else None
    if not levels.arms.size:
        text = "None of the arms whose mean was given has an estimated gap: no mean follows."
        return [Notice("no-anchor", text, demonstration=name)]
    notices = [] if group.all() else _disagreement(request, found, name)
    if found.unused:
        arm = request.log.arms[found.unused[0]]
        more = f" (and {len(found.unused) - 1:,} more)" if len(found.unused) > 1 else ""
        text = f"The anchor {quoted(arm)}{more} has no estimated gap: its mean is not used."
        notices.append(Notice("no-anchor", text, arm=arm, demonstration=name))
    factor, error = levels.of(group).factor()
    if abs(factor - 1) > NormalDist().inv_cdf(1 - DISAGREE / 2) * error:
        z = NormalDist().inv_cdf(0.975)
        text = (
            f"The means given as known fit a width {factor:.3g} times as large as the rule's ({factor - z * error:.3g} "
            f"to {factor + z * error:.3g}). All gaps are then wrong by about that factor: check the rule's parameters."
        )
        notices.append(Notice("width-factor", text, demonstration=name))
    return notices


def _disagreement(request: Request, found: Found, name: str | None) -> list[Notice]:
    """Say which known means disagree with the others, and which arms seem to have been held back."""
    levels, arms = found.levels, request.log.arms
    agreeing, rest = levels.of(found.group), levels.of(found.other)
    (level, _), (other, _) = agreeing.combined(), rest.combined()
    larger = agreeing.arms.size > rest.arms.size
    text = (
        f"The means given as known do not agree. From {_names(request, agreeing)} the most-pulled arm would have a "
        f"mean of {level:.4g}, from {_names(request, rest)} one of {other:.4g}. The answer is based on the former, "
        f"{'the larger group' if larger else 'the lower, neither being the larger group'}; the answer from the latter "
        "is given beside it."
    )
    factor, _ = levels.factor()
    if levels.all_agree_with(factor):
        text += f" They would agree if the rule's width were {factor:.3g} times as large: check its parameters too."
    notices = [Notice("anchors-disagree", text, arm=arms[rest.arms[0]], demonstration=name)]
    above = levels.of(~found.group & (levels.implied > level))
    if above.arms.size:
        most = float(above.implied.max() - level)
        text = (
            f"Pulled less often than the known mean calls for: {_names(request, above)}, up to {most:.4g} above the "
            "common level. Something other than the rule may have held them back, such as a limit on how often one arm "
            "is shown. They are not used to find the level, and their gaps come from their known means."
        )
        notices.append(Notice("above-level", text, arm=arms[above.arms[0]], demonstration=name))
    return notices


def _agreement(found: Sequence[Found]) -> Notice:
    """Say how many known means the common level rests on."""
    count = min(each.levels.arms.size for each in found)
    return Notice("common-level", f"The common level is based on {count:,} known means, which agree with each other.")
