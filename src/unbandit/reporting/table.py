"""The ranked table of a report: every arm with its value, its interval as numbers and as a bar, and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from unbandit.formatting import interval, number, shown
from unbandit.plots import interval_bar
from unbandit.reporting.truth import holds_truth
from unbandit.result import ArmEstimate, Quantity

MOST_ROWS, FIRST_ROWS, LAST_ROWS = 200, 100, 20
"""Of more arms than the first number, only the first and the last ones are shown."""

MOST_TABLES = 5
"""Of more demonstrations than this, the first ones are shown."""


@dataclass(frozen=True)
class TableRow:
    """One row of the table, as text."""

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
    """Table of one demonstration.

    Attributes
    ----------
    demonstration
        Its name; None where there is only one.
    first, last, left_out
        The rows shown, from the top and from the bottom, and how many between them are not.
    span
        The values at which bars begin and end; None where there are no bars.
    has_intervals, has_gaps, has_truth
        Whether there are intervals, gaps beside the means, and the truth beside the values.
    """

    demonstration: str | None
    first: tuple[TableRow, ...]
    last: tuple[TableRow, ...]
    left_out: int
    span: tuple[str, str] | None
    has_intervals: bool
    has_gaps: bool
    has_truth: bool


def ranked_table(
    rows: Sequence[ArmEstimate], quantity: Quantity, truth: Mapping[str, float], demonstration: str | None = None
) -> RankedTable:
    """Lay out ranked rows; of many arms the first and the last."""
    many, ranked = len(rows) > MOST_ROWS, list(enumerate(rows, 1))
    top, bottom = (ranked[:FIRST_ROWS], ranked[-LAST_ROWS:]) if many else (ranked, [])
    values = [
        value
        for _, row in top + bottom
        for value in (row.value(quantity), *row.interval(quantity))
        if value is not None
    ]
    span = (min(values), max(values)) if values and min(values) < max(values) else None
    lines = [_table_row(rank, row, quantity, span, truth) for rank, row in top + bottom]
    return RankedTable(
        demonstration=demonstration,
        first=tuple(lines[: len(top)]),
        last=tuple(lines[len(top) :]),
        left_out=len(rows) - len(lines),
        span=None if span is None else (number(span[0]), number(span[1])),
        has_intervals=any(line.interval for line in lines),
        has_gaps=quantity == "mean" and any(line.gap for line in lines),
        has_truth=bool(truth),
    )


def _table_row(
    rank: int, row: ArmEstimate, quantity: Quantity, span: tuple[float, float] | None, truth: Mapping[str, float]
) -> TableRow:
    value, (low, high) = row.value(quantity), row.interval(quantity)
    bar = Markup("")
    if span is not None and (value, low, high) != (None, None, None):
        bar = Markup(interval_bar(low, value, high, span, row.verdict))
    held = holds_truth(row, quantity, truth)
    return TableRow(
        rank=rank,
        arm=shown(row.arm),
        verdict=row.verdict,
        pulls=f"{row.pulls:,}",
        value=number(value, missing=""),
        interval=interval(low, high),
        bar=bar,
        gap=number(row.gap, missing=""),
        truth=number(truth.get(row.arm), missing=""),
        held="" if held is None else "yes" if held else "no",
    )
