"""One row's interval as a small bar between a table's numbers, without a drawing library."""

from __future__ import annotations

__all__ = ["BAR_STYLE", "interval_bar"]

WIDE, TALL, EDGE = 160, 14, 6

BAR_STYLE = """\
.interval-bar{color:#3d7ea6;vertical-align:middle;overflow:visible}
.interval-bar.best{color:#c0701f}
.interval-bar.bounded{color:#7d8b98}
.interval-bar.unseen{color:#909090}
.interval-bar .ground{opacity:.25}"""
"""Colours for a page that has none of its own: legible on a light ground and on a dark one."""


def interval_bar(
    low: float | None, point: float | None, high: float | None, span: tuple[float, float], verdict: str
) -> str:
    """Return one row's bar as SVG text: a whisker from end to end, a dot at the point, an arrow where an end is open.

    It has class names and no style of its own (without a style sheet it takes the colour of the text), and screen
    readers pass over it, for the numbers stand beside it.

    Parameters
    ----------
    low, point, high
        None where there is no number.
    span
        The smallest and the largest value of all rows, which the bar's ends stand for.
    verdict
        Becomes the second class name, after `interval-bar`.

    Examples
    --------
    >>> interval_bar(0.2, 0.5, 0.8, (0.0, 1.0), "estimated").startswith('<svg class="interval-bar estimated"')
    True
    """
    first, last = span
    scale = (WIDE - 2 * EDGE) / (last - first) if last > first else 0.0

    def place(value: float) -> float:
        return round(EDGE + scale * (min(max(value, first), last) - first), 1)

    middle = TALL / 2
    parts = [f'<path class="ground" d="M{EDGE} {middle:g}H{WIDE - EDGE}"/>']
    if low is not None or high is not None:
        begin = place(low) if low is not None else float(EDGE)
        end = place(high) if high is not None else float(WIDE - EDGE)
        parts.append(f'<path class="whisker" stroke-width="2" d="M{begin:g} {middle:g}H{end:g}"/>')
        ends = [(begin, low is not None, -1), (end, high is not None, 1)]
        for at, closed, way in ends:
            shape = f"M{at:g} {middle - 3:g}V{middle + 3:g}"
            arrow = f"M{at - 4 * way:g} {middle - 3:g}L{at:g} {middle:g}L{at - 4 * way:g} {middle + 3:g}"
            parts.append(f'<path class="{"end" if closed else "open"}" d="{shape if closed else arrow}"/>')
    if point is not None:
        at = place(point)
        best = f'<path class="point" fill="currentColor" d="M{at:g} {middle - 4:g}l4 4l-4 4l-4 -4z"/>'
        dot = f'<circle class="point" fill="currentColor" cx="{at:g}" cy="{middle:g}" r="3.2"/>'
        parts.append(best if verdict == "best" else dot)
    size = f'width="{WIDE}" height="{TALL}" viewBox="0 0 {WIDE} {TALL}"'
    look = 'fill="none" stroke="currentColor" aria-hidden="true" focusable="false"'
    return f'<svg class="interval-bar {verdict}" {size} {look}>{"".join(parts)}</svg>'
