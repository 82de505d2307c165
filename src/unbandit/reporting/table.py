"""Which of an answer's numbers to show first: means, gaps or ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from unbandit.formatting import interval, number, shown
from unbandit.plots import interval_bar
from unbandit.reporting.truth import held
from unbandit.result import ArmEstimate, Estimate, Quantity, shown_quantity

BELIEVED = frozenset({"level-from-prior", "values-from-prior"})
"""Notes that say the level of the means is not the record's: then the gaps come first."""


def quantity(answer: Estimate) -> Quantity:
    """Choose means where the record tells them, else gaps, else ratios.

    Examples
    --------
    >>> import unbandit
    >>> log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> quantity(unbandit.estimate(log, "ucb", sigma=1.0)), quantity(unbandit.estimate(log, "ucb", scale="unknown"))
    ('gap', 'ratio')
    """
    return shown_quantity(told(answer))


def told(answer: Estimate) -> Estimate:
    """Return the answer without means whose level is only believed; as it is where the record tells them."""
    if not any(note.code in BELIEVED for note in answer.notes):
        return answer
    columns = answer.columns
    nothing = np.full(columns.mean.shape, np.nan)
    return replace(answer, columns=replace(columns, mean=nothing, mean_low=nothing, mean_high=nothing))


ALL, FIRST, LAST = 200, 100, 20
"""Above so many arms, only the first and the last ones are shown."""

MOST_TABLES = 5
"""Of more demonstrations than this, the first ones are shown."""


@dataclass(frozen=True)
class Line:
    """Hold one row of the table, as it is written."""

    rank: int
    arm: str
    verdict: str
    pulls: str
    value: str
    interval: str
    bar: Markup
    gap: str
    truth: str
    held: str


@dataclass(frozen=True)
class RankedTable:
    """Hold one demonstration's table.

    Attributes
    ----------
    demonstration
        Its name; None where there is only one.
    first, last, left_out
        The rows shown, from the top and from the bottom, and how many between them are not.
    span
        The values that the ends of the bars stand for; None where there are no bars.
    has_intervals, has_gaps, has_truth
        Whether there are intervals, whether gaps stand beside the means, and the truth beside the values.
    """

    demonstration: str | None
    first: tuple[Line, ...]
    last: tuple[Line, ...]
    left_out: int
    span: tuple[str, str] | None
    has_intervals: bool
    has_gaps: bool
    has_truth: bool


def ranked_table(
    rows: Sequence[ArmEstimate], quantity: Quantity, truth: Mapping[str, float] | None, demonstration: str | None = None
) -> RankedTable:
    """Lay out ranked rows; of many arms the first and the last."""
    many = len(rows) > ALL
    chosen = [*enumerate(rows[:FIRST] if many else rows, 1)]
    below = [*enumerate(rows[-LAST:], len(rows) - LAST + 1)] if many else []
    span = _span([row for _, row in (*chosen, *below)], quantity)
    lines = [_line(rank, row, quantity, span, truth) for rank, row in (*chosen, *below)]
    return RankedTable(
        demonstration=demonstration,
        first=tuple(lines[: len(chosen)]),
        last=tuple(lines[len(chosen) :]),
        left_out=len(rows) - len(lines),
        span=None if span is None else (number(span[0]), number(span[1])),
        has_intervals=any(line.interval for line in lines),
        has_gaps=quantity == "mean" and any(line.gap for line in lines),
        has_truth=bool(truth),
    )


def _span(rows: Sequence[ArmEstimate], quantity: Quantity) -> tuple[float, float] | None:
    """Return the smallest and the largest number that a bar must show."""
    values = [value for row in rows for value in (row.value(quantity), *row.interval(quantity)) if value is not None]
    return (min(values), max(values)) if values and min(values) < max(values) else None


def _line(
    rank: int, row: ArmEstimate, quantity: Quantity, span: tuple[float, float] | None, truth: Mapping[str, float] | None
) -> Line:
    """Write one row."""
    value, (low, high) = row.value(quantity), row.interval(quantity)
    bar = Markup("")
    if span is not None and (value, low, high) != (None, None, None):
        bar = Markup(interval_bar(low, value, high, span, row.verdict))
    holds = held(row, quantity, truth) if truth else None
    return Line(
        rank=rank,
        arm=shown(row.arm),
        verdict=row.verdict,
        pulls=f"{row.pulls:,}",
        value="" if value is None else number(value),
        interval=interval(low, high),
        bar=bar,
        gap="" if row.gap is None else number(row.gap),
        truth=number(truth[row.arm]) if truth and row.arm in truth else "",
        held="" if holds is None else "yes" if holds else "no",
    )
