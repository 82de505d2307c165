"""Every arm, best first: its estimate, its interval or bound, its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.naming import place_of
from unbandit.plots.axes import NAMED, SeveralRows, Sign, bars, even_ticks, key, put_x, span_of, tell_demonstration
from unbandit.plots.style import INK, PALETTE, SOFT, Look, styled
from unbandit.result import Quantity, shown_quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.result import ArmEstimate, Estimate

AXIS = {"mean": "value", "gap": "gap to the best arm", "ratio": "ratio of gaps"}
"""What an axis is called that shows a quantity."""

DRAWN = ("best", "estimated", "bounded")
MARKERS = {"best": "D", "estimated": "o", "bounded": ""}


@dataclass(frozen=True)
class Rows:
    """Hold what is drawn of ranked arms: one place an arm, NaN where there is no number."""

    arms: tuple[str, ...]
    pulls: tuple[str, ...]
    verdicts: NDArray[np.str_]
    point: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[ArmEstimate], quantity: Quantity, unit: float) -> Rows:
        """Take one quantity of some rows, in its own unit."""
        columns = [
            unit * np.array([np.nan if (value := getattr(row, name, None)) is None else value for row in rows], float)
            for name in (quantity, f"{quantity}_low", f"{quantity}_high")
        ]
        verdicts = np.array([row.verdict for row in rows], dtype=np.str_)
        return cls(tuple(row.arm for row in rows), tuple(f"{row.pulls:,}" for row in rows), verdicts, *columns)


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
        What is drawn.
    truth
        The mean (or gap, where the estimate has no means: see `shown_quantity`) of each arm.
    unit
        What a value of 1 stands for, to show values in their own unit.
    label
        Of the horizontal axis.
    demonstration
        The name of the demonstration that is drawn; by default the first.
    """
    which = place_of(estimate.demonstrations, demonstration)
    quantity = shown_quantity(estimate)
    rows = Rows.of(estimate.ranked(estimate.demonstrations[which]), quantity, unit)
    known = np.array([place for place, arm in enumerate(rows.arms) if arm in (truth or {})], int)
    true = np.array([unit * (truth or {})[rows.arms[place]] for place in known], float)
    with styled():
        layout = SeveralRows(rows.arms, rows.pulls, "pulls")
        put_x(layout.axes, even_ticks(*span_of(rows.point, rows.low, rows.high, true)), label or AXIS[quantity])
        signs = []
        for verdict in DRAWN:
            look: Look = {"color": PALETTE[verdict], "marker": MARKERS[verdict]}
            if draw_intervals(layout, rows, rows.verdicts == verdict, look):
                size = {"markersize": 5, "linestyle": "-", "linewidth": 1.6}
                signs.append(Sign(look | (size if verdict != "best" else {"markersize": 5}), verdict))
        if known.size:
            look = {"color": PALETTE["truth"], "marker": "|", "markersize": 10, "markeredgewidth": 1.5}
            fitted = {"markersize": layout.size(10), "markeredgewidth": layout.size(1.5)}
            layout.axes.plot(true, known, **(look | fitted), linestyle="none", zorder=4)
            signs.append(Sign(look, "truth (hidden)"))
        if layout.count <= NAMED:
            for place in np.flatnonzero(rows.verdicts == "unseen").tolist():
                layout.axes.text(0.01, place, "never pulled", transform=layout.axes.get_yaxis_transform(),
                                 va="center_baseline", fontsize=8, color=SOFT)  # fmt: skip
        if layout.count > 1:
            key(layout.axes, signs)
        tell_demonstration(layout.figure, estimate.demonstrations, which)
    return layout.figure


def draw_intervals(layout: SeveralRows, rows: Rows, here: NDArray[np.bool_], look: Look) -> bool:
    """Draw some of the rows: intervals, dots, and bounds that point to where the value may be.

    An interval without a dot ends in two strokes. Returns whether there was anything to draw.
    """
    axes, places, line = layout.axes, np.arange(here.size), layout.size(1.6)
    colour, marker = look["color"], look["marker"]
    low, high, point = (np.isfinite(values) & here for values in (rows.low, rows.high, rows.point))
    both = low & high
    bars(axes, places[both], rows.low[both], rows.high[both], color=colour, linewidth=line, zorder=2)
    stroke: Look = {"color": colour, "marker": "|", "linestyle": "none", "zorder": 2}
    stroke |= {"markersize": layout.size(6), "markeredgewidth": line}
    for known, other, values, edge, head in zip(
        (low, high), (high, low), (rows.low, rows.high), reversed(axes.get_xlim()), "><", strict=True
    ):
        open_end, closed = known & ~other, known & ~point
        bars(axes, places[open_end], values[open_end], edge, color=colour, linewidth=line, linestyle=(0, (2, 1.5)))
        if closed.any():
            axes.plot(values[closed], places[closed], **stroke)
        if open_end.any():
            ends: Look = {"color": colour, "linestyle": "none", "markersize": layout.size(5), "zorder": 2}
            axes.plot(np.full(open_end.sum(), edge), places[open_end], marker=head, clip_on=False, **ends)
    if point.any():
        axes.plot(rows.point[point], places[point], color=colour, marker=marker or "o", linestyle="none",
                  markersize=layout.size(5), zorder=3)  # fmt: skip
    return bool((low | high | point).any())


def errors(
    estimate: Estimate,
    truth: Mapping[str, float],
    *,
    unit: float = 1.0,
    label: str | None = None,
    demonstration: object = None,
) -> Figure:
    """Draw how far every estimate is from the truth, with its interval: which hold the truth, and which do not.

    Arms without a number, and those whose truth is not given, are left out; so is a best arm that has no interval.

    Parameters
    ----------
    truth
        The mean (or gap, where the estimate has no means: see `shown_quantity`) of each arm.
    unit
        What a value of 1 stands for, to show values in their own unit.
    label
        Of the horizontal axis.
    demonstration
        The name of the demonstration that is drawn; by default the first.
    """
    which = place_of(estimate.demonstrations, demonstration)
    quantity = shown_quantity(estimate)
    ranked = [row for row in estimate.ranked(estimate.demonstrations[which]) if row.arm in truth]
    known = Rows.of(ranked, quantity, unit)
    interval = np.isfinite(known.low) | np.isfinite(known.high)
    told = interval | (np.isfinite(known.point) & (known.verdicts != "best"))
    if not told.any():
        raise ParameterError(
            "expected the true value of some arm that has an estimate or a bound; got none.", parameter="truth"
        )
    rows = Rows.of([row for row, tells in zip(ranked, told, strict=True) if tells], quantity, unit)
    true = unit * np.array([truth[arm] for arm in rows.arms], float)
    rows = replace(rows, point=rows.point - true, low=rows.low - true, high=rows.high - true)
    interval, missed = interval[told], (rows.low > 0) | (rows.high < 0)
    with styled():
        layout = SeveralRows(rows.arms, rows.pulls, "pulls")
        usual = f"estimated {quantity}, less the true one"
        put_x(layout.axes, even_ticks(*span_of(rows.point, rows.low, rows.high, np.zeros(1))), label or usual)
        layout.axes.axvline(0, color=INK, linewidth=0.9, zorder=1.5)
        held, total, signs = interval & ~missed, f"{interval.sum():,}", []
        for here, colour, marker, meaning in (
            (held, PALETTE["estimated"], "o", f"{held.sum():,} of {total} hold the truth"),
            (interval & missed, PALETTE["truth"], "X", f"{(interval & missed).sum():,} of {total} do not"),
            (~interval, PALETTE["bounded"], "o", "without an interval"),
        ):
            look: Look = {"color": colour, "marker": marker}
            if draw_intervals(layout, rows, here, look):
                line: Look = {"linestyle": "-", "linewidth": 1.6} if (here & interval).any() else {}
                signs.append(Sign(look | {"markersize": 5} | line, meaning))
        key(layout.axes, signs)
        tell_demonstration(layout.figure, estimate.demonstrations, which)
    return layout.figure
