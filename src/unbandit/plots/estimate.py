"""An estimate as a figure: every arm with its interval, best first, or every arm's error against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import position
from unbandit.errors import ParameterError
from unbandit.plots.axes import (
    MOST_NAMED_ROWS,
    KeyEntry,
    Numbers,
    RowLayout,
    draw_bars,
    even_ticks,
    put_demonstration,
    put_key,
    put_scale,
    span_of,
)
from unbandit.plots.style import INK, PALETTE, SOFT, Look, styled
from unbandit.result import ArmEstimate, Estimate, Quantity, shown_quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXIS_LABELS = {"mean": "value", "gap": "gap to the best arm", "ratio": "ratio of gaps"}

MARKERS = {"best": "D", "estimated": "o", "bounded": ""}
"""Verdicts that are drawn, in this order, with their markers."""


@dataclass(frozen=True)
class ArmRows:
    """Numbers of ranked arms as they are drawn: one member per arm, NaN where there is no number."""

    arms: tuple[str, ...]
    pulls: tuple[str, ...]
    verdicts: NDArray[np.str_]
    point: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, rows: Sequence[ArmEstimate], quantity: Quantity, unit: float) -> ArmRows:
        """Take one quantity of some rows, in units of `unit`."""
        numbers = np.array([(row.value(quantity), *row.interval(quantity)) for row in rows], float).reshape(-1, 3)
        verdicts = np.array([row.verdict for row in rows], dtype=np.str_)
        return cls(tuple(row.arm for row in rows), tuple(f"{row.pulls:,}" for row in rows), verdicts, *unit * numbers.T)


def arms_with_intervals(
    estimate: Estimate,
    *,
    truth: Mapping[str, float] | None = None,
    unit: float = 1.0,
    label: str | None = None,
    demonstration: object = None,
) -> Figure:
    """Draw every arm, best first: its estimate, its interval or bound, and the truth where it is known.

    Parameters
    ----------
    estimate
        The estimate to draw.
    truth
        The mean of each arm, or its gap where the estimate has no means (see `shown_quantity`).
    unit
        Factor by which all values are multiplied, to show them in their own unit.
    label
        Label of the horizontal axis.
    demonstration
        Name of the demonstration to draw; default the first.
    """
    which = position("demonstration", demonstration, estimate.demonstrations)
    quantity = shown_quantity(estimate)
    rows = ArmRows.of(estimate.ranked(estimate.demonstrations[which]), quantity, unit)
    known = np.array([place for place, arm in enumerate(rows.arms) if arm in (truth or {})], int)
    true = np.array([unit * (truth or {})[rows.arms[place]] for place in known], float)
    with styled():
        layout = RowLayout(rows.arms, rows.pulls, "pulls")
        span = span_of(rows.point, rows.low, rows.high, true)
        put_scale(layout.axes, "x", even_ticks(*span), label or AXIS_LABELS[quantity])
        entries = []
        for verdict, marker in MARKERS.items():
            look: Look = {"color": PALETTE[verdict], "marker": marker}
            if _draw_intervals(layout, rows, rows.verdicts == verdict, look):
                line: Look = {} if verdict == "best" else {"linestyle": "-", "linewidth": 1.6}
                entries.append(KeyEntry(look | {"markersize": 5} | line, verdict))
        if known.size:
            look = {"color": PALETTE["truth"], "marker": "|", "markersize": 10, "markeredgewidth": 1.5}
            fitted = {"markersize": layout.size(10), "markeredgewidth": layout.size(1.5)}
            layout.axes.plot(true, known, **(look | fitted), linestyle="none", zorder=4)
            entries.append(KeyEntry(look, "truth (hidden)"))
        if layout.count <= MOST_NAMED_ROWS:
            for place in np.flatnonzero(rows.verdicts == "unseen").tolist():
                layout.axes.text(0.01, place, "never pulled", transform=layout.axes.get_yaxis_transform(),
                                 va="center_baseline", fontsize=8, color=SOFT)  # fmt: skip
        if layout.count > 1:
            put_key(layout.axes, entries)
        put_demonstration(layout.figure, estimate.demonstrations, which)
    return layout.figure


def errors(
    estimate: Estimate,
    truth: Mapping[str, float],
    *,
    unit: float = 1.0,
    label: str | None = None,
    demonstration: object = None,
) -> Figure:
    """Draw how far every estimate is from the truth, with its interval: which contain the truth, and which do not.

    Arms without a number, arms whose truth is not given, and a best arm without an interval are left out.

    Parameters
    ----------
    truth
        The mean of each arm, or its gap where the estimate has no means (see `shown_quantity`).
    unit, label, demonstration
        As for `arms_with_intervals`.
    """
    which = position("demonstration", demonstration, estimate.demonstrations)
    quantity = shown_quantity(estimate)
    ranked = [row for row in estimate.ranked(estimate.demonstrations[which]) if row.arm in truth]
    ranked = [
        row
        for row in ranked
        if row.interval(quantity) != (None, None) or (row.verdict != "best" and row.value(quantity) is not None)
    ]
    if not ranked:
        raise ParameterError(
            "expected the true value of some arm that has an estimate or a bound; got none.", parameter="truth"
        )
    rows = ArmRows.of(ranked, quantity, unit)
    true = unit * np.array([truth[arm] for arm in rows.arms], float)
    rows = replace(rows, point=rows.point - true, low=rows.low - true, high=rows.high - true)
    interval = np.isfinite(rows.low) | np.isfinite(rows.high)
    missed = interval & ((rows.low > 0) | (rows.high < 0))
    held, total = interval & ~missed, f"{interval.sum():,}"
    with styled():
        layout = RowLayout(rows.arms, rows.pulls, "pulls")
        span = span_of(rows.point, rows.low, rows.high, np.zeros(1))
        put_scale(layout.axes, "x", even_ticks(*span), label or f"estimated {quantity}, less the true one")
        layout.axes.axvline(0, color=INK, linewidth=0.9, zorder=1.5)
        entries = []
        for chosen, verdict, marker, meaning in (
            (held, "estimated", "o", f"{held.sum():,} of {total} hold the truth"),
            (missed, "truth", "X", f"{missed.sum():,} of {total} do not"),
            (~interval, "bounded", "o", "without an interval"),
        ):
            look: Look = {"color": PALETTE[verdict], "marker": marker}
            if _draw_intervals(layout, rows, chosen, look):
                line: Look = {"linestyle": "-", "linewidth": 1.6} if (chosen & interval).any() else {}
                entries.append(KeyEntry(look | {"markersize": 5} | line, meaning))
        put_key(layout.axes, entries)
        put_demonstration(layout.figure, estimate.demonstrations, which)
    return layout.figure


def _draw_intervals(layout: RowLayout, rows: ArmRows, chosen: NDArray[np.bool_], look: Look) -> bool:
    """Draw some rows: intervals, dots, and bounds that point to where the value may be; return whether any was drawn.

    An interval without a dot ends in two strokes.
    """
    axes, places, line = layout.axes, np.arange(chosen.size), layout.size(1.6)
    colour, marker = look["color"], look["marker"]
    low, high, point = (np.isfinite(values) & chosen for values in (rows.low, rows.high, rows.point))
    both = low & high
    draw_bars(axes, places[both], rows.low[both], rows.high[both], color=colour, linewidth=line, zorder=2)
    stroke: Look = {"color": colour, "marker": "|", "linestyle": "none", "zorder": 2}
    stroke |= {"markersize": layout.size(6), "markeredgewidth": line}
    for known, other, values, edge, head in zip(
        (low, high), (high, low), (rows.low, rows.high), reversed(axes.get_xlim()), "><", strict=True
    ):
        open_end, closed = known & ~other, known & ~point
        draw_bars(axes, places[open_end], values[open_end], edge, color=colour, linewidth=line,
                  linestyle=(0, (2, 1.5)))  # fmt: skip
        if closed.any():
            axes.plot(values[closed], places[closed], **stroke)
        if open_end.any():
            ends: Look = {"color": colour, "linestyle": "none", "markersize": layout.size(5), "zorder": 2}
            axes.plot(np.full(open_end.sum(), edge), places[open_end], marker=head, clip_on=False, **ends)
    if point.any():
        axes.plot(rows.point[point], places[point], color=colour, marker=marker or "o", linestyle="none",
                  markersize=layout.size(5), zorder=3)  # fmt: skip
    return bool((low | high | point).any())
