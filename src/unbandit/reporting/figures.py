"""The figures of a report: which ones a log allows, their captions, and texts for readers who cannot see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import plots
from unbandit.demonstrators import Demonstrator, EliminationRule, RandomisedRule, RecentIndexRule
from unbandit.errors import NotIdentifiable
from unbandit.estimators.arguments import DRAWING
from unbandit.estimators.learning_curve import LearningCurve, learning_curve
from unbandit.estimators.stretches import Stretches
from unbandit.estimators.switching_moment import SwitchingMoment, switching_moment, switching_rounds
from unbandit.formatting import counted, interval, number, plural, probability, quoted, share
from unbandit.log import ActionLog
from unbandit.log.availability import Availability
from unbandit.reporting.page import rewards_in
from unbandit.reporting.sentence import reported_estimate, settled
from unbandit.reporting.truth import intervals_with_truth
from unbandit.result import VERDICTS, ArmEstimate, Estimate, Quantity, true_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.inference import Posterior

MANY_ARMS = 300  # a figure with more rows than this is smaller as PNG than as SVG
FEWEST_ROUNDS = 10  # a shorter record has no figures over rounds

MOST_DESCRIBED_CURVES = 8
PART_OF_A_RUN = {
    "mid-run",
    "begins-late",
    "thinned",
    "missing-rounds",
}  # notes about logs whose first row is not the first round
HOW_A_LOG_WAS_READ = PART_OF_A_RUN | {"availability", "gap-to"}  # notes that the shell repeats


@dataclass(frozen=True)
class ReportFigure:
    """A figure as a `data:` address, with its size in CSS pixels; `caption` is about its kind, `alt` about this log.

    `narrow` is the same figure drawn for a phone.
    """

    name: str
    title: str
    caption: str
    alt: str
    address: str
    width: int
    height: int
    narrow: str


@dataclass(frozen=True)
class FigureData:
    """What figures are drawn from; `rows` are the first demonstration's, best first, `means` the true ones if known.

    `answer`, `rows`, `means` and `stretches` are in the unit of the report.
    """

    log: ActionLog
    rule: Demonstrator
    options: Mapping[str, Any]
    answer: Estimate
    quantity: Quantity
    rows: Sequence[ArmEstimate]
    means: Mapping[str, float]
    stretches: Stretches | None = None
    availability: Availability | None = None  # where arms arrived late or were withdrawn
    estimated: Estimate | None = None  # the answer in the units of the rewards, where it is shown in others

    @property
    def factor(self) -> float:
        """Return by how much values are multiplied."""
        return 1.0 if self.answer.unit is None else self.answer.unit.factor

    @property
    def in_unit(self) -> str:
        """Return the name of the unit as it stands after a quantity."""
        return "" if self.answer.unit is None or self.quantity == "ratio" else f", in {self.answer.unit.name}"

    @cached_property
    def truth(self) -> dict[str, float]:
        """Return the true values of the quantity shown."""
        return true_values(self.means, self.quantity, self.answer, self.rivals)

    @property
    def rivals(self) -> NDArray[np.bool_] | None:
        """Return for each arm the arms that its gap is to the best of; None for all."""
        return None if self.availability is None else self.availability.rivals(int(self.log.lengths[0]))


def draw_figures(
    data: FigureData, progress: Callable[[str, float], None], *, most: int | None = None
) -> list[ReportFigure]:
    """Draw the figures that this log allows; for one page the first, with at most `most` rows, or none."""
    makers: list[Callable[[FigureData], ReportFigure | None]] = [_demonstrations, _arms, _errors]
    if len(data.log) > 1:
        together = len(data.answer.demonstrations) == 1
        makers.insert(2 if together else 1, lambda data: draw_shares(data.log, data.log.noun))
    if data.log.ordered and int(data.log.lengths[0]) >= FEWEST_ROUNDS:
        whole = not PART_OF_A_RUN & {notice.code for notice in data.answer.notes}
        over_rounds = [_pulls, _switching_moment, _learning_curve] if data.availability is None else [_pulls]
        makers += [_stretches, lambda data: _timeline(data.log, data.availability), *(over_rounds if whole else [])]
    if data.answer.posteriors:
        makers += [_densities, _paths]
    if most is not None:
        first = _arms if len(data.answer.demonstrations) == 1 else _demonstrations
        makers = [partial(first, most=most)] if most else []
    figures = []
    for at, maker in enumerate(makers):
        progress("Drawing the figures", at / len(makers))
        figures.append(maker(data))
    return [figure for figure in figures if figure is not None]


def draw_believed(data: FigureData) -> list[ReportFigure]:
    """Draw what is believed of the arms, whichever of several rules made the log; and what the log says in any case."""
    believed = [_arms(data), _densities(data)] if data.answer.posteriors else []
    return believed + draw_choices(data.log, data.availability)


def draw_choices(log: ActionLog, there: Availability | None = None) -> list[ReportFigure]:
    """Draw which arm was chosen when: what a log says whatever rule made it."""
    first = _timeline(log, there) if log.ordered and int(log.lengths[0]) >= FEWEST_ROUNDS else None
    return [figure for figure in (draw_shares(log, log.noun), first) if figure is not None]


def draw_shares(log: ActionLog, thing: str) -> ReportFigure | None:
    """Draw a small panel for each of several demonstrations, with the same axes; None of one, or of a short log."""
    if len(log) < 2 or not log.ordered or int(log.lengths.min()) < FEWEST_ROUNDS:
        return None
    total = log.pulls.sum(axis=0)
    first = int(total.argmax())
    shares = log.pulls[:, first] / log.lengths
    from unbandit.plots.log import MOST_PANELS

    drawn = min(len(log), MOST_PANELS)
    fewer = "" if drawn == len(log) else f" {drawn:,} of {len(log):,} are drawn, evenly spread."
    return as_figure(
        lambda: plots.choice_shares(log),
        "shares-drawn",
        f"The choices of every {thing}",
        f"One panel per {thing}, all with the same axes. A line is the share of choices that went to an arm, in "
        f"each tenth of the rounds.{fewer}",
        f"Small panels of {counted(drawn, thing)}. {quoted(log.arms[first])} was pulled most: in "
        f"{_percent(float(shares.min()))} to {_percent(float(shares.max()))} of the rounds of each.",
    )


def as_figure(
    draw: Callable[[], Figure], name: str, title: str, caption: str, alt: str, *, as_dots: bool = False
) -> ReportFigure:
    """Return a figure as reports show it, drawn for a page and for a phone."""
    figure = draw()
    width, height = figure.get_size_inches()
    address = plots.address(figure, as_dots=as_dots)
    with plots.narrow():
        figure = draw()
        narrow = plots.address(figure, as_dots=as_dots, box=plots.whole_height(figure))
    return ReportFigure(name, title, caption, alt, address, round(width * 96), round(height * 96), narrow)


def _arms(data: FigureData, most: int | None = None) -> ReportFigure:
    return as_figure(
        lambda: plots.arms_with_intervals(reported_estimate(data.answer), truth=data.truth or None, most=most),
        "arms-drawn",
        "Every arm with its interval",
        "Each row is an arm, the best on top. A dot is the estimate, the line its interval; an arrow says that only "
        "one end is known." + (" Red marks are the truth." if data.truth else ""),
        _describe_arms(data.rows[:most], data.quantity, data.truth, data.in_unit),
        as_dots=len(data.rows[:most]) > MANY_ARMS,
    )


def _demonstrations(data: FigureData, most: int | None = None) -> ReportFigure | None:
    answer = reported_estimate(data.answer)
    if len(answer.demonstrations) == 1:
        return None
    return as_figure(
        lambda: plots.demonstrations(answer, most=most, settled=settled(data.answer)),
        "demonstrations-drawn",
        f"All {plural(answer.noun)} on one axis",
        f"One row per {answer.noun}. A mark is an arm's estimate, the line its interval; the shape and the colour say "
        "which arm. The right-hand column names the best arm, or says that it is open.",
        f"Chart of {counted(len(answer.demonstrations), answer.noun)} on one axis, each with its arms' values.",
        as_dots=len(answer.demonstrations) * len(answer.arms) > MANY_ARMS,
    )


def _describe_arms(
    rows: Sequence[ArmEstimate], quantity: Quantity, truth: Mapping[str, float], in_unit: str = ""
) -> str:
    verdicts = Counter(row.verdict for row in rows)
    kinds = ", ".join(f"{verdicts[name]:,} {name}" for name in VERDICTS if verdicts[name])
    text = f"Chart of {counted(len(rows), 'arm')}, best first, each with its {quantity}{in_unit}: {kinds}."
    valued = [row for row in rows if row.value(quantity) is not None]
    top = "Topmost" if valued[:1] == list(rows[:1]) else "Highest with a value"
    for where, some in ((top, valued[:1]), ("Lowest with a value", valued[1:][-1:])):
        for row in some:
            reach = interval(*row.interval(quantity))
            text += f" {where} is {quoted(row.arm)} at {number(row.value(quantity))}{reach and f' ({reach})'}."
    held = intervals_with_truth(rows, quantity, truth)
    return text + (f" Red marks show the truth: it lies inside {_of(held)} intervals." if held else "")


def _errors(data: FigureData) -> ReportFigure | None:
    rows, quantity, truth = data.rows, data.quantity, data.truth
    held = intervals_with_truth(rows, quantity, truth)
    errors = {
        row.arm: value - truth[row.arm]
        for row in rows
        if row.verdict != "best" and row.arm in truth and (value := row.value(quantity)) is not None
    }
    if not held and not errors:
        return None
    alt = "Chart of every estimate less the truth."
    if held:
        alt += f" {_of(held)} intervals reach across zero, and so hold the truth."
    if errors:
        furthest = max(errors, key=lambda arm: abs(errors[arm]))
        average = float(np.mean([abs(error) for error in errors.values()]))
        alt += f" The largest error is {number(errors[furthest], 3)}, of {quoted(furthest)}; the mean absolute error is"
        alt += f" {number(average, 3)}."
    return as_figure(
        lambda: plots.errors(reported_estimate(data.answer), truth),
        "errors",
        "Error against the truth",
        "How far each estimate is from the truth, which is the line at 0. "
        + ("" if quantity == "ratio" else "An interval that reaches across the line holds the truth."),
        alt,
        as_dots=len(rows) > MANY_ARMS,
    )


def _stretches(data: FigureData) -> ReportFigure | None:
    found = data.stretches
    if found is None:
        return None
    alt = f"Estimates of every arm in {found.first.size} stretches of the log. "
    alt += " ".join(notice.message for notice in (*found.notices, *found.notes)) or "No drift shows."
    return as_figure(
        lambda: plots.stretches(found),
        "stretches",
        "Stretch by stretch",
        "What each stretch of the log says of every arm, at the rule's last hesitation within it. The rule's averages "
        "go on from one stretch to the next, so an arm that changed moves slowly.",
        alt,
    )


def _timeline(log: ActionLog, there: Availability | None = None) -> ReportFigure:
    arms, codes, pulls = log.arms, log.demonstration(0), log.pulls[0]
    first, second = np.argsort(-pulls, kind="stable")[:2]
    recent = float(np.mean(codes[-max(codes.size // 10, 1) :] == first))
    return as_figure(
        lambda: plots.timeline(log, availability=there),
        "timeline",
        "Which arm when",
        "The whole log: one row per arm, time from left to right. Darker means that more of the rounds went to that "
        "arm." + (" Grey: it could not be pulled." if there else ""),
        f"Chart of which of {counted(len(arms), 'arm')} was pulled when, over {counted(codes.size, 'round')}. "
        f"{quoted(arms[first])} was pulled most: {_percent(pulls[first] / codes.size)} of all rounds, and "
        f"{_percent(recent)} of the last tenth. Then comes {quoted(arms[second])} with "
        f"{_percent(pulls[second] / codes.size)}.",
    )


def _pulls(data: FigureData) -> ReportFigure:
    without = data.availability is not None or isinstance(data.rule, RandomisedRule | RecentIndexRule)
    switching = {} if without else switching_rounds(data.log, data.rule)
    marked = " A mark is the round in which the rule last turned from an arm to a better one." if switching else ""
    return as_figure(
        lambda: plots.cumulative_pulls(data.log, switching=switching),
        "pulls",
        "How pulls added up",
        "How often each arm had been pulled by each round, on a logarithmic scale. A curve that has gone flat is an "
        f"arm that is no longer pulled.{marked}",
        _describe_pulls(data.log, switching),
    )


def _describe_pulls(log: ActionLog, switching: Mapping[str, int]) -> str:
    pulls = log.pulls[0]
    order = np.argsort(-pulls, kind="stable")
    ends = ", ".join(f"{quoted(log.arms[at])} at {pulls[at]:,}" for at in order[:3])
    text = f"Curves of how often each arm had been pulled, round by round. At the end {ends}"
    text += f" and the least-pulled arm at {pulls[order[-1]]:,}." if order.size > 3 else "."
    if switching:
        by_round = sorted(switching, key=lambda arm: switching[arm])
        times = [f"in round {switching[arm]:,} ({quoted(arm)})" for arm in by_round]
        earliest = f"the earliest {times[0]}, the latest " if len(times) > 1 else ""
        text += f" Marks show the last turn from an arm: {earliest}{times[-1]}."
    return text


def _switching_moment(data: FigureData) -> ReportFigure | None:
    """Show when the best arm's closest rival was last as promising to the rule as the best arm itself."""
    shifts = getattr(data.rule, "shifts", True) or data.quantity == "mean"
    if isinstance(data.rule, RandomisedRule) or data.quantity == "ratio" or not shifts or data.options.get("pool"):
        return None
    try:
        moment = switching_moment(data.log, data.rule, estimate=data.estimated or data.answer)
    except NotIdentifiable:  # the record shows no such moment
        return None
    scaled = {name: data.factor * getattr(moment, name) for name in ("gap", "own", "other")}
    moment = replace(moment, **scaled, best_mean=moment.best_mean and data.factor * moment.best_mean)
    if not moment.equal:
        meaning = (
            "The marked round is the last in which it chose the lesser arm. The curves need not meet there: the "
            "estimate does not rest on this one moment."
        )
    elif isinstance(data.rule, EliminationRule):
        meaning = "Where the curves meet the arm was dropped: that moment reveals the gap."
    else:
        meaning = "Where the curves meet the rule found both equally promising: that moment reveals the gap."
    return as_figure(
        lambda: _labelled(plots.switching_moment(moment), "y", data),
        "hesitation",
        "A moment of hesitation",
        f"How promising the rule found two arms, round by round. {meaning} The sample means behind the curves are "
        "hidden; they are drawn as estimated.",
        _describe_moment(moment),
    )


def _describe_moment(moment: SwitchingMoment) -> str:
    own, other = number(moment.own[moment.here]), number(moment.other[moment.here])
    there = f"they meet, at {own}" if moment.equal else f"the first is at {own}, the second at {other}"
    kind = "index" if moment.kind == "index" else "bound"
    return (
        f"Two falling or rising lines, one for {quoted(moment.arm)} and one for {quoted(moment.best)}: the {kind} that "
        f"the rule gave each, from round {moment.rounds[0]:,} to {moment.rounds[-1]:,}. In round {moment.round:,} "
        f"{there}."
    )


def _learning_curve(data: FigureData) -> ReportFigure | None:
    if data.answer.method in DRAWING or data.options.get("pool"):
        return None
    try:
        curve = learning_curve(data.log, data.rule, **data.options)
    except NotIdentifiable:  # this demonstration alone does not suffice
        return None
    if data.answer.unit is not None:
        curve = replace(curve, columns=curve.columns.times(data.factor), answer=curve.answer.in_unit(data.answer.unit))
    if curve.rounds.size < 2 or not np.isfinite(getattr(curve.columns, curve.quantity)).any():
        return None
    truth = true_values(data.means, curve.quantity, curve.answer)  # one demonstration may show another quantity
    return as_figure(
        lambda: plots.learning_curve(curve, truth=truth or None),
        "settling",
        "How the answer settled",
        "The same estimate from the first rounds of the log only, and from more and more of them. Where curves have "
        "levelled off, a longer log would change little." + (" Dashed lines are the truth." if truth else ""),
        _describe_curve(curve),
    )


def _describe_curve(curve: LearningCurve) -> str:
    """Describe how the estimates of the closest and the furthest arm moved; of many arms, the furthest only."""
    values = np.asarray(getattr(curve.columns, curve.quantity))
    behind = -values[-1] if curve.quantity == "mean" else values[-1]
    estimated = curve.columns.verdict[-1] == VERDICTS.index("estimated")
    ranked = [arm for arm in np.argsort(behind, kind="stable") if np.isfinite(values[-1, arm]) and estimated[arm]]
    text = (
        f"Lines of the estimated {curve.quantity} after {curve.rounds[0]:,} to {curve.rounds[-1]:,} rounds of the "
        f"log{', with bands for their intervals' if curve.quantity != 'ratio' else ''}."
    )
    few = len(curve.arms) <= MOST_DESCRIBED_CURVES
    for arm in ranked[:1] + ranked[1:][-1:] if few else ranked[-1:]:
        known = np.flatnonzero(np.isfinite(values[:, arm]))
        first, middle = int(known[0]), int(known[known.size // 2])
        text += (
            f" {quoted(curve.arms[arm])} is put at {number(values[first, arm], 3)} after {curve.rounds[first]:,} "
            f"rounds, at {number(values[middle, arm], 3)} after {curve.rounds[middle]:,}, and at "
            f"{number(values[-1, arm], 3)} at the end."
        )
    return text


def _densities(data: FigureData) -> ReportFigure:
    posterior, gaps, level = _posterior(data), data.quantity != "mean", data.answer.level
    low, high = posterior.interval(level, gaps=gaps)
    chance = posterior.probability_best
    alt = f"Curves that show how plausible each {'gap' if gaps else 'mean'} is, one per arm."
    for arm in np.argsort(-chance, kind="stable")[:3].tolist():
        alt += (
            f" {quoted(posterior.arms[arm])}: {share(level)} between {number(low[arm], 3)} and {number(high[arm], 3)}, "
            f"best with probability {probability(chance[arm])}."
        )
    return as_figure(
        lambda: _labelled(plots.densities(posterior, gaps=gaps, truth=data.truth or None, unit=data.factor), "x", data),
        "densities",
        f"How plausible each {'gap' if gaps else 'mean'} is",
        "One curve per arm: the higher, the more plausible. Narrow curves mean well-known values.",
        alt,
    )


def _paths(data: FigureData) -> ReportFigure | None:
    posterior = _posterior(data)
    if len(posterior.path_rounds) < 2:
        return None
    known = rewards_in(data.log.rewards)
    hidden = {"no": ", which the rule saw and the log hides,", "some": ", which the log hides in part,", "all": ""}
    alt = f"Bands in which each arm's average reward{hidden[known]} moved over the rounds."
    for arm in np.argsort(-posterior.pulls, kind="stable")[:3].tolist():
        low, middle, high = posterior.path[-1, arm]
        if np.isfinite(middle):
            reach = f"({number(low, 3)} to {number(high, 3)})"
            alt += f" {quoted(posterior.arms[arm])} ends near {number(middle, 3)} {reach}."
    bands = posterior.path_rounds, posterior.path, posterior.arms
    title, caption = PATHS[known]
    drawn = "the rule's averages" if known == "all" else "the rule's hidden averages"
    return as_figure(
        lambda: _labelled(plots.hidden_paths(*bands, drawn, hidden=known != "all"), "y", data),
        "paths",
        title,
        caption,
        alt,
    )


PLAUSIBLE = "a line in the middle of what is plausible, and a band that holds 95% of it."
PATHS = {
    "no": (
        "What the rule saw, and the log hides",
        f"The average of each arm's rewards so far, as far as the choices reveal it: {PLAUSIBLE}",
    ),
    "some": (
        "What the rule saw, and the log hides in part",
        "The average of each arm's rewards so far, as far as the choices and the rewards in the log reveal it: "
        f"{PLAUSIBLE}",
    ),
    "all": ("What the rule saw", "The average of each arm's rewards so far, from the rewards in the log."),
}
"""Title and caption of the figure of averages, by how many rewards are in the log."""


def _posterior(data: FigureData) -> Posterior:
    """Return the first demonstration's posterior with its draws and its path in the unit of the report."""
    posterior = data.answer.posteriors[0]
    return replace(posterior, means=data.factor * posterior.means, path=data.factor * posterior.path)


def _labelled(figure: Figure, axis: Literal["x", "y"], data: FigureData) -> Figure:
    """Return a figure with the unit at the axis of its values."""
    axes = figure.axes[0]
    axes.set(**{f"{axis}label": getattr(axes, f"get_{axis}label")() + data.in_unit})
    return figure


def _of(held: Sequence[bool]) -> str:
    return f"{sum(held):,} of {len(held):,}"


def _percent(part: float) -> str:
    """Write a share; small ones are not nothing, and nearly all is not all."""
    if part in (0.0, 1.0):
        return f"{part:.0%}"
    return "less than 1%" if part < 0.01 else "more than 99%" if part > 0.99 else f"{part:.0%}"
