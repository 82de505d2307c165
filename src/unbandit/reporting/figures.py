"""Which pictures tell something about a log, and what to say of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unbandit import plots
from unbandit.demonstrators import Demonstrator, EliminationRule, RandomisedRule
from unbandit.errors import NotIdentifiable
from unbandit.estimators.learning_curve import LearningCurve, learning_curve
from unbandit.estimators.request import DRAWING
from unbandit.estimators.switching_moment import SwitchingMoment, switching_moment, switching_rounds
from unbandit.formatting import counted, interval, number, quoted, share
from unbandit.inference import Posterior
from unbandit.log import ActionLog
from unbandit.reporting.table import told
from unbandit.reporting.truth import held, in_terms_of
from unbandit.result import VERDICTS, ArmEstimate, Estimate, Quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY_ARMS = 300
"""A picture of more rows than this is smaller as dots than as lines."""

FEWEST_ROUNDS = 10
"""Of a shorter record there is nothing to follow over the rounds."""


@dataclass(frozen=True)
class Picture:
    """Hold a picture and its words.

    Attributes
    ----------
    name, title, caption
        For anchors, headings, and what it shows in general.
    alt
        What it shows of this log.
    address
        A `data:` address that holds the picture itself.
    width, height
        In the units of a page, 96 to the inch.
    """

    name: str
    title: str
    caption: str
    alt: str
    address: str
    width: int
    height: int


@dataclass(frozen=True)
class Matter:
    """Hold all that pictures are drawn from.

    Attributes
    ----------
    log, rule, options
        What was asked.
    answer, shown, rows
        The estimate, the quantity shown first, and the first demonstration's rows, best first.
    means
        The true means; empty where they are not known.
    """

    log: ActionLog
    rule: Demonstrator
    options: Mapping[str, Any]
    answer: Estimate
    shown: Quantity
    rows: Sequence[ArmEstimate]
    means: Mapping[str, float]

    @property
    def followed(self) -> bool:
        """Tell whether there are rounds to follow."""
        return self.log.ordered and int(self.log.lengths[0]) >= FEWEST_ROUNDS

    @property
    def drawn(self) -> Estimate:
        """Return the answer as pictures are to show it: without means whose level is only believed."""
        return told(self.answer)

    @cached_property
    def truth(self) -> dict[str, float]:
        """Return the true values in terms of the quantity shown."""
        return in_terms_of(self.means, self.shown, self.answer)


def draw(matter: Matter, tell: Callable[[str, float], None]) -> list[Picture]:
    """Draw the pictures that this log allows; those that it does not are left out."""
    made = []
    for at, maker in enumerate(MAKERS):
        tell("Drawing the pictures", at / len(MAKERS))
        made += list(maker(matter))
    return made


def _arms(matter: Matter) -> Iterator[Picture]:
    figure = plots.arms_with_intervals(matter.drawn, truth=matter.truth or None)
    yield _picture(
        figure,
        "arms-drawn",
        "Every arm with its interval",
        "Each row is an arm, the best on top. A dot is the estimate, the line its interval; an arrow says that only "
        "one end is known." + (" Red marks are the truth." if matter.truth else ""),
        of_arms(matter.rows, matter.shown, matter.truth),
        as_dots=len(matter.rows) > MANY_ARMS,
    )


def _errors(matter: Matter) -> Iterator[Picture]:
    if not any(_has_error(row, matter.shown, matter.truth) for row in matter.rows):
        return
    figure = plots.errors(matter.drawn, matter.truth)
    yield _picture(
        figure,
        "errors",
        "Error against the truth",
        "How far each estimate is from the truth, which is the line at 0. "
        + ("" if matter.shown == "ratio" else "An interval that reaches across the line holds the truth."),
        of_errors(matter.rows, matter.shown, matter.truth),
        as_dots=len(matter.rows) > MANY_ARMS,
    )


def _has_error(row: ArmEstimate, shown: Quantity, truth: Mapping[str, float]) -> bool:
    """Tell whether there is a number to hold against the truth; the best arm's own gap is none."""
    return held(row, shown, truth) is not None or (
        row.arm in truth and row.verdict != "best" and row.value(shown) is not None
    )


def _timeline(matter: Matter) -> Iterator[Picture]:
    if not matter.followed:
        return
    yield _picture(
        plots.timeline(matter.log),
        "timeline",
        "Which arm when",
        "All that the log says: each row is an arm, time runs to the right, and the stronger a stretch is coloured the "
        "more of its rounds went to that arm.",
        of_timeline(matter.log, 0),
    )


def _pulls(matter: Matter) -> Iterator[Picture]:
    if not matter.followed:
        return
    switching = {} if isinstance(matter.rule, RandomisedRule) else switching_rounds(matter.log, matter.rule)
    marked = " A mark is the round in which the rule last turned from an arm to a better one." if switching else ""
    yield _picture(
        plots.cumulative_pulls(matter.log, switching=switching),
        "pulls",
        "How pulls added up",
        "How often each arm had been pulled by each round, on a logarithmic scale. A curve that has gone flat is an "
        f"arm that is no longer pulled.{marked}",
        of_pulls(matter.log, 0, switching),
    )


def _hesitation(matter: Matter) -> Iterator[Picture]:
    """Show when the best arm's closest rival was last as promising to the rule as the best arm itself."""
    shifts = getattr(matter.rule, "shifts", True) or matter.shown == "mean"
    if not matter.followed or isinstance(matter.rule, RandomisedRule) or matter.shown == "ratio" or not shifts:
        return
    if matter.options.get("pool"):
        return
    try:
        moment = switching_moment(matter.log, matter.rule, estimate=matter.answer)
    except NotIdentifiable:  # the record shows no such moment
        return
    told_by = (
        "Where the curves meet the arm was dropped: that moment gives the gap away."
        if moment.equal and isinstance(matter.rule, EliminationRule)
        else "Where the curves meet it held both for equally promising: that moment gives the gap away."
        if moment.equal
        else "Around the round that is marked it last wavered between them. The curves need not meet there, for the "
        "estimate is not read off this one moment."
    )
    yield _picture(
        plots.switching_moment(moment),
        "hesitation",
        "A moment of hesitation",
        f"What the rule made of two arms as the rounds went by. {told_by} The averages behind them are hidden, and put "
        "at the estimate.",
        of_hesitation(moment),
    )


def _settling(matter: Matter) -> Iterator[Picture]:
    if not matter.followed or matter.answer.method in DRAWING or matter.options.get("pool"):
        return
    try:
        growth = learning_curve(matter.log, matter.rule, **matter.options)
    except NotIdentifiable:  # of this demonstration alone nothing follows
        return
    if growth.rounds.size < 2 or not np.isfinite(getattr(growth.columns, growth.quantity)).any():
        return
    truth = in_terms_of(matter.means, growth.quantity, growth.answer)  # of one demonstration less may be known
    yield _picture(
        plots.learning_curve(growth, truth=truth or None),
        "settling",
        "How the answer settled",
        "The same estimate from the first rounds of the log only, and from more and more of them. Where curves have "
        "come to rest, a longer log would change little." + (" Dashed lines are the truth." if truth else ""),
        of_settling(growth),
    )


def _posterior(matter: Matter) -> Iterator[Picture]:
    for posterior in matter.answer.posteriors[:1]:
        gaps = matter.shown != "mean"
        yield _picture(
            plots.densities(posterior, gaps=gaps, truth=matter.truth or None),
            "densities",
            f"How plausible each {'gap' if gaps else 'mean'} is",
            "A hill for each arm: the higher, the more plausible. Narrow hills are well known, wide ones are not.",
            of_densities(posterior, matter.answer.level, gaps=gaps),
        )
        if len(posterior.path_rounds) > 1:
            title = "the rule's hidden averages"
            yield _picture(
                plots.hidden_paths(posterior.path_rounds, posterior.path, posterior.arms, title),
                "paths",
                "What the rule saw, and the log hides",
                "The average of each arm's rewards so far, as far as the choices give it away: a line in the middle of "
                "what is plausible, and a band that holds 95% of it.",
                of_paths(posterior),
            )


MAKERS: tuple[Callable[[Matter], Iterator[Picture]], ...] = (
    _arms, _errors, _timeline, _pulls, _hesitation, _settling, _posterior
)  # fmt: skip


def _picture(figure: Figure, name: str, title: str, caption: str, alt: str, *, as_dots: bool = False) -> Picture:
    """Put a figure into an address."""
    address = plots.address(figure, as_dots=as_dots)
    wide, high = figure.get_size_inches()
    return Picture(name, title, caption, alt, address, round(wide * 96), round(high * 96))


SINGLED_OUT = 8
"""Of more arms than this a picture with one line an arm names only some."""


def of_arms(rows: Sequence[ArmEstimate], shown: Quantity, truth: Mapping[str, float]) -> str:
    """Describe the arms with their intervals: how many of which verdict, and those at both ends."""
    verdicts = Counter(row.verdict for row in rows)
    kinds = ", ".join(f"{verdicts[name]:,} {name}" for name in VERDICTS if verdicts[name])
    said = f"Chart of {counted(len(rows), 'arm')}, best first, each with its {shown}: {kinds}."
    told = [row for row in rows if row.value(shown) is not None]
    top = "Topmost" if told[:1] == list(rows[:1]) else "Highest with a value"
    for where, row in ((top, told[:1]), ("Lowest with a value", told[1:][-1:])):
        for one in row:
            reach = interval(*one.interval(shown))
            said += f" {where} is {quoted(one.arm)} at {number(one.value(shown) or 0.0)}{reach and f' ({reach})'}."
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
        if row.verdict == "estimated" and row.arm in truth and (value := row.value(shown)) is not None
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
