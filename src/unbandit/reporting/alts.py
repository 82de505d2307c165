"""What a picture shows of this log, for those who do not see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from unbandit.estimators.learning_curve import LearningCurve
from unbandit.estimators.switching_moment import SwitchingMoment
from unbandit.inference import Posterior
from unbandit.log import ActionLog
from unbandit.reporting.quantity import Quantity, ends, point
from unbandit.reporting.truth import held
from unbandit.reporting.written import counted, interval, number, quoted, share
from unbandit.result import VERDICTS, ArmEstimate

__all__ = [
    "of_arms",
    "of_densities",
    "of_errors",
    "of_hesitation",
    "of_paths",
    "of_pulls",
    "of_settling",
    "of_timeline",
]


SINGLED_OUT = 8
"""Of more arms than this a picture with one line an arm names only some."""


def of_arms(rows: Sequence[ArmEstimate], shown: Quantity, truth: Mapping[str, float]) -> str:
    """Describe the arms with their intervals: how many of which verdict, and those at both ends."""
    verdicts = Counter(row.verdict for row in rows)
    kinds = ", ".join(f"{verdicts[name]:,} {name}" for name in VERDICTS if verdicts[name])
    said = f"Chart of {counted(len(rows), 'arm')}, best first, each with its {shown}: {kinds}."
    told = [row for row in rows if point(row, shown) is not None]
    top = "Topmost" if told[:1] == list(rows[:1]) else "Highest with a value"
    for where, row in ((top, told[:1]), ("Lowest with a value", told[1:][-1:])):
        for one in row:
            reach = interval(*ends(one, shown))
            said += f" {where} is {quoted(one.arm)} at {number(point(one, shown) or 0.0)}{reach and f' ({reach})'}."
    judged = [fact for row in rows if (fact := held(row, shown, truth)) is not None]
    return said + (f" Red marks show the truth: it lies inside {_of(judged)} intervals." if judged else "")


def of_timeline(log: ActionLog, which: int) -> str:
    """Describe which arm was pulled when: the most-pulled arm's share, in all and in the last tenth."""
    codes, pulls = log.demonstration(which), log.pulls[which]
    first, second = np.argsort(-pulls, kind="stable")[:2]
    late = codes[-max(codes.size // 10, 1) :]
    recent = float(np.mean(late == first))
    return (
        f"Chart of which of {counted(len(log.arms), 'arm')} was pulled when, over {counted(codes.size, 'round')}. "
        f"{quoted(log.arms[first])} was pulled most: {_percent(pulls[first] / codes.size)} of all rounds, and "
        f"{_percent(recent)} of the last tenth. Then comes {quoted(log.arms[second])} with "
        f"{_percent(pulls[second] / codes.size)}."
    )


def of_pulls(log: ActionLog, which: int, switching: Mapping[str, int]) -> str:
    """Describe how pulls added up, and when the rule last turned from an arm."""
    pulls = log.pulls[which]
    order = np.argsort(-pulls, kind="stable")
    ends = ", ".join(f"{quoted(log.arms[at])} at {pulls[at]:,}" for at in order[:3])
    said = f"Curves of how often each arm had been pulled, round by round. At the end {ends}"
    said += f" and the least-pulled arm at {pulls[order[-1]]:,}." if order.size > 3 else "."
    if switching:
        last = max(switching, key=lambda arm: switching[arm])
        first = min(switching, key=lambda arm: switching[arm])
        latest = f"in round {switching[last]:,} ({quoted(last)})."
        earliest = (
            f"the earliest in round {switching[first]:,} ({quoted(first)}), the latest " if len(switching) > 1 else ""
        )
        said += f" Marks show the last turn from an arm: {earliest}{latest}"
    return said


def of_hesitation(moment: SwitchingMoment) -> str:
    """Describe the two decision values around a switching round."""
    own, other = number(moment.own[moment.here]), number(moment.other[moment.here])
    there = "they meet, at " + own if moment.equal else f"the first is at {own}, the second at {other}"
    how = "index" if moment.kind == "index" else "bound"
    return (
        f"Two falling or rising lines, one for {quoted(moment.arm)} and one for {quoted(moment.best)}: the {how} that "
        f"the rule gave each, from round {moment.rounds[0]:,} to {moment.rounds[-1]:,}. In round {moment.round:,} "
        f"{there}."
    )


def of_settling(growth: LearningCurve) -> str:
    """Describe how the estimates of the closest and the furthest arm moved as the log grew."""
    values = np.asarray(getattr(growth.columns, growth.quantity))
    behind = -values[-1] if growth.quantity == "mean" else values[-1]
    told = [
        arm
        for arm in np.argsort(behind, kind="stable").tolist()
        if np.isfinite(values[-1, arm]) and growth.columns.verdict[-1, arm] == VERDICTS.index("estimated")
    ]
    said = (
        f"Lines of the estimated {growth.quantity} after {growth.rounds[0]:,} to {growth.rounds[-1]:,} rounds of the "
        f"log{', with bands for their intervals' if growth.quantity != 'ratio' else ''}."
    )
    drawn = told[:1] + told[1:][-1:] if len(growth.arms) <= SINGLED_OUT else told[-1:]  # of many, the furthest is shown
    for arm in drawn:
        known = np.flatnonzero(np.isfinite(values[:, arm]))
        first, middle = int(known[0]), int(known[known.size // 2])
        said += (
            f" {quoted(growth.arms[arm])} is put at {number(values[first, arm], 3)} after {growth.rounds[first]:,} "
            f"rounds, at {number(values[middle, arm], 3)} after {growth.rounds[middle]:,}, and at "
            f"{number(values[-1, arm], 3)} at the end."
        )
    return said


def of_densities(posterior: Posterior, level: float, *, gaps: bool) -> str:
    """Describe where the mass of the best arms' densities lies."""
    low, high = posterior.interval(level, gaps=gaps)
    chance = posterior.probability_best
    said = f"Hills that show how plausible each {'gap' if gaps else 'mean'} is, one for an arm."
    for arm in np.argsort(-chance, kind="stable")[:3].tolist():
        said += (
            f" {quoted(posterior.arms[arm])}: {share(level)} between {number(low[arm], 3)} and {number(high[arm], 3)}, "
            f"best with probability {number(chance[arm], 3)}."
        )
    return said


def of_paths(posterior: Posterior) -> str:
    """Describe the hidden sample means: where they end."""
    said = "Bands in which each arm's average reward, which the rule saw and the log hides, moved over the rounds."
    for arm in np.argsort(-posterior.pulls, kind="stable")[:3].tolist():
        low, middle, high = posterior.path[-1, arm]
        if np.isfinite(middle):
            reach = f"({number(low, 3)} to {number(high, 3)})"
            said += f" {quoted(posterior.arms[arm])} ends near {number(middle, 3)} {reach}."
    return said


def of_errors(rows: Sequence[ArmEstimate], shown: Quantity, truth: Mapping[str, float]) -> str:
    """Describe how far the estimates are from the truth."""
    judged = [fact for row in rows if (fact := held(row, shown, truth)) is not None]
    off = {
        row.arm: value - truth[row.arm]
        for row in rows
        if row.verdict == "estimated" and row.arm in truth and (value := point(row, shown)) is not None
    }
    said = "Chart of every estimate less the truth."
    if judged:
        said += f" {_of(judged)} intervals reach across zero, and so hold the truth."
    if off:
        furthest = max(off, key=lambda arm: abs(off[arm]))
        average = float(np.mean([abs(error) for error in off.values()]))
        said += f" The largest error is {number(off[furthest], 3)}, of {quoted(furthest)}; on average errors are "
        said += f"{number(average, 3)} in size."
    return said


def _of(judged: Sequence[bool]) -> str:
    return f"{sum(judged):,} of {len(judged):,}"


def _percent(part: float) -> str:
    """Write a share; small ones are not nothing, and nearly all is not all."""
    if part in (0.0, 1.0):
        return f"{part:.0%}"
    return "less than 1%" if part < 0.01 else "more than 99%" if part > 0.99 else f"{part:.0%}"
