"""Which pictures tell something about a log, and what to say of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unbandit import plots
from unbandit.demonstrators import Demonstrator, EliminationRule, RandomisedRule
from unbandit.errors import NotIdentifiable
from unbandit.estimators.learning_curve import learning_curve
from unbandit.estimators.request import DRAWING
from unbandit.estimators.switching_moment import switching_moment, switching_rounds
from unbandit.log import ActionLog
from unbandit.reporting import alts
from unbandit.reporting.quantity import Quantity, point, told
from unbandit.reporting.truth import held, in_terms_of
from unbandit.result import ArmEstimate, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Matter", "Picture", "draw"]

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
        alts.of_arms(matter.rows, matter.shown, matter.truth),
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
        alts.of_errors(matter.rows, matter.shown, matter.truth),
        as_dots=len(matter.rows) > MANY_ARMS,
    )


def _has_error(row: ArmEstimate, shown: Quantity, truth: Mapping[str, float]) -> bool:
    """Tell whether there is a number to hold against the truth; the best arm's own gap is none."""
    return held(row, shown, truth) is not None or (
        row.arm in truth and row.verdict != "best" and point(row, shown) is not None
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
        alts.of_timeline(matter.log, 0),
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
        alts.of_pulls(matter.log, 0, switching),
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
        plots.hesitation(moment),
        "hesitation",
        "A moment of hesitation",
        f"What the rule made of two arms as the rounds went by. {told_by} The averages behind them are hidden, and put "
        "at the estimate.",
        alts.of_hesitation(moment),
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
        plots.settling(growth, truth=truth or None),
        "settling",
        "How the answer settled",
        "The same estimate from the first rounds of the log only, and from more and more of them. Where curves have "
        "come to rest, a longer log would change little." + (" Dashed lines are the truth." if truth else ""),
        alts.of_settling(growth),
    )


def _posterior(matter: Matter) -> Iterator[Picture]:
    for posterior in matter.answer.posteriors[:1]:
        gaps = matter.shown != "mean"
        yield _picture(
            plots.densities(posterior, gaps=gaps, truth=matter.truth or None),
            "densities",
            f"How plausible each {'gap' if gaps else 'mean'} is",
            "A hill for each arm: the higher, the more plausible. Narrow hills are well known, wide ones are not.",
            alts.of_densities(posterior, matter.answer.level, gaps=gaps),
        )
        if len(posterior.path_rounds) > 1:
            title = "the rule's hidden averages"
            yield _picture(
                plots.hidden_paths(posterior.path_rounds, posterior.path, posterior.arms, title),
                "paths",
                "What the rule saw, and the log hides",
                "The average of each arm's rewards so far, as far as the choices give it away: a line in the middle of "
                "what is plausible, and a band that holds 95% of it.",
                alts.of_paths(posterior),
            )


MAKERS: tuple[Callable[[Matter], Iterator[Picture]], ...] = (
    _arms, _errors, _timeline, _pulls, _hesitation, _settling, _posterior
)  # fmt: skip


def _picture(figure: Figure, name: str, title: str, caption: str, alt: str, *, as_dots: bool = False) -> Picture:
    """Put a figure into an address."""
    address = plots.address(figure, as_dots=as_dots)
    wide, high = figure.get_size_inches()
    return Picture(name, title, caption, alt, address, round(wide * 96), round(high * 96))
