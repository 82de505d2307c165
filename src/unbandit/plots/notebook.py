"""An estimate as HTML for notebooks: a short table with interval bars, which reports show too."""

from functools import partial
from html import escape
from itertools import chain, islice

import numpy as np

from unbandit.formatting import fixed, interval, label
from unbandit.result import ArmEstimate, Estimate, Quantity, shown_quantity
from unbandit.tables import LONGEST_CELL, MOST_ROWS, TABLE_STYLE, decimals, grouped

BAR_WIDTH, BAR_HEIGHT, BAR_EDGE = 160, 14, 6


BAR_STYLE = """\
.interval-bar{color:#3d7ea6;vertical-align:middle;overflow:visible}
.interval-bar.best{color:#c0701f}
.interval-bar.bounded{color:#7d8b98}
.interval-bar.unseen{color:#909090}
.interval-bar .ground{opacity:.25}"""
"""Colours of bars for a page without a style sheet, legible on light and on dark backgrounds."""


def interval_bar(
    low: float | None, point: float | None, high: float | None, span: tuple[float, float], verdict: str
) -> str:
    """Return one row's bar as SVG text: a whisker from end to end, a dot at the point, an arrow where an end is open.

    It has class names, `interval-bar` and the verdict, and no style: without a style sheet it takes the colour of the
    text. Screen readers skip it, since the numbers stand beside it.

    Parameters
    ----------
    low, point, high
        None where there is no number.
    span
        The smallest and the largest value of all rows, at which the bar begins and ends.
    verdict
        The arm's verdict; the best arm's point is a diamond.
    """
    first, last = span
    scale = (BAR_WIDTH - 2 * BAR_EDGE) / (last - first) if last > first else 0.0

    def place(value: float) -> float:
        return round(BAR_EDGE + scale * (min(max(value, first), last) - first), 1)

    middle = BAR_HEIGHT / 2
    parts = [f'<path class="ground" d="M{BAR_EDGE} {middle:g}H{BAR_WIDTH - BAR_EDGE}"/>']
    if low is not None or high is not None:
        begin = place(low) if low is not None else float(BAR_EDGE)
        end = place(high) if high is not None else float(BAR_WIDTH - BAR_EDGE)
        parts.append(f'<path class="whisker" stroke-width="2" d="M{begin:g} {middle:g}H{end:g}"/>')
        for at, closed, way in ((begin, low is not None, -1), (end, high is not None, 1)):
            shape = f"M{at:g} {middle - 3:g}V{middle + 3:g}"
            arrow = f"M{at - 4 * way:g} {middle - 3:g}L{at:g} {middle:g}L{at - 4 * way:g} {middle + 3:g}"
            parts.append(f'<path class="{"end" if closed else "open"}" d="{shape if closed else arrow}"/>')
    if point is not None:
        at = place(point)
        diamond = f'<path class="point" fill="currentColor" d="M{at:g} {middle - 4:g}l4 4l-4 4l-4 -4z"/>'
        dot = f'<circle class="point" fill="currentColor" cx="{at:g}" cy="{middle:g}" r="3.2"/>'
        parts.append(diamond if verdict == "best" else dot)
    size = f'width="{BAR_WIDTH}" height="{BAR_HEIGHT}" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}"'
    look = 'fill="none" stroke="currentColor" aria-hidden="true" focusable="false"'
    return f'<svg class="interval-bar {verdict}" {size} {look}>{"".join(parts)}</svg>'


def notebook_table(estimate: Estimate) -> str:
    """Return the estimate as self-contained HTML: ranked rows with bars, then warnings and notes.

    Of many rows the first are shown, and of notices of one kind the first; a line says how many more there are.
    """
    quantity, several = shown_quantity(estimate), len(estimate.demonstrations) > 1
    span = _span(estimate, quantity)
    heads = f"<th scope='col'>{escape(estimate.noun)}</th>" * several
    heads += "<th scope='col'>arm</th><th scope='col'>verdict</th>"
    value: str = "value" if quantity == "mean" else quantity
    value += "" if estimate.unit is None else f" ({escape(estimate.unit.name)})"
    heads += "".join(f"<th scope='col' class='number'>{name}</th>" for name in ("pulls", value))
    heads += f"<th scope='col'>{estimate.level:.0%} interval</th><td></td>"
    ranked = chain.from_iterable(map(estimate.ranked, estimate.demonstrations))  # only those shown are computed
    body = "".join(_row(row, quantity, span, several) for row in islice(ranked, MOST_ROWS))
    caption = escape(f"{estimate.rule}, method {estimate.method}")
    table = f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    left = len(estimate) - MOST_ROWS
    lines = [f"{left:,} more {'row' if left == 1 else 'rows'}: see <code>.to_frame()</code>."] * (left > 0)
    lines += [f"<strong>Warning:</strong> {line}" for line in grouped(estimate.warnings)]
    below = "".join(f"<p>{line}</p>" for line in (*lines, *grouped(estimate.notes)))
    return f"<div class='unbandit-answer'><style>{BAR_STYLE}\n{TABLE_STYLE}</style>{table}{below}</div>"


def _row(row: ArmEstimate, quantity: Quantity, span: tuple[float, float], several: bool) -> str:
    point, (low, high) = row.value(quantity), row.interval(quantity)
    digits = decimals(span[1] - span[0] or abs(span[1]) or 1.0)
    written = interval(low, high, partial(fixed, digits=digits))
    cells = f"<td>{escape(label(row.demonstration, LONGEST_CELL))}</td>" * several
    cells += f"<th scope='row'>{escape(label(row.arm, LONGEST_CELL))}</th><td>{row.verdict}</td>"
    cells += f"<td class='number'>{row.pulls:,}</td><td class='number'>{fixed(point, digits, missing='')}</td>"
    cells += f"<td class='interval'>{written}</td>"
    return f"<tr>{cells}<td>{interval_bar(low, point, high, span, row.verdict)}</td></tr>"


def _span(estimate: Estimate, quantity: Quantity) -> tuple[float, float]:
    """Return the smallest and the largest number of the rows that are shown."""
    few = -(-MOST_ROWS // max(len(estimate.arms), 1))
    columns = [getattr(estimate.columns, quantity + end, None) for end in ("", "_low", "_high")]
    values = np.concatenate([column[:few].reshape(-1) for column in columns if column is not None])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
