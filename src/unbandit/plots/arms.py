"""Every arm, best first: its estimate, its interval or bound, its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.naming import place_of, short, text_width
from unbandit.plots.style import GRID, PALETTE, SOFT, frame, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.result import ArmEstimate, Estimate

__all__ = ["Rows", "arms_with_intervals", "name_rows", "rows_frame", "shown_quantity"]

Quantity = Literal["mean", "gap", "ratio"]

NAMED = 40
"""Of more arms than this only some are named."""

MARKERS = {"best": "D", "estimated": "o", "bounded": "|", "unseen": ""}


@dataclass(frozen=True)
class Rows:
    """Hold what is drawn of ranked arms: one place an arm, NaN where there is no number."""

    arms: tuple[str, ...]
    pulls: tuple[int, ...]
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
        return cls(tuple(row.arm for row in rows), tuple(row.pulls for row in rows), verdicts, *columns)


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
        The mean (or gap, where the estimate has no means) of each arm.
    unit
        What a value of 1 stands for, to show values in their own unit.
    label
        Of the horizontal axis.
    demonstration
        The name of the demonstration that is drawn; by default the first.
    """
    name = estimate.demonstrations[place_of(estimate.demonstrations, demonstration)]
    ranked, quantity = estimate.ranked(name), shown_quantity(estimate)
    rows = Rows.of(ranked, quantity, unit)
    with styled():
        figure, axes = rows_frame(rows.arms, rows.pulls)
        known = [place for place, arm in enumerate(rows.arms) if truth is not None and arm in truth]
        values = np.array([truth[rows.arms[place]] * unit for place in known] if truth is not None else [])
        _limit(axes, rows, values)
        for verdict in ("best", "estimated", "bounded"):
            _draw(axes, rows, verdict)
        if known:
            axes.plot(values, known, "|", color=PALETTE["truth"], markersize=10, markeredgewidth=1.4,
                      label="truth (hidden)", zorder=4)  # fmt: skip
        axes.set_xlabel(label or ("value" if quantity == "mean" else quantity))
        axes.grid(axis="x", color=GRID, linewidth=0.6)
        handles, names = axes.get_legend_handles_labels()
        if len(rows.arms) > 1 and handles:
            axes.legend(handles, names, frameon=False, loc="lower left", ncols=len(names), borderaxespad=0.2,
                        bbox_to_anchor=(0.0, 1.0), handletextpad=0.4, columnspacing=1.6)  # fmt: skip
    return figure


def shown_quantity(estimate: Estimate) -> Quantity:
    """Return what a picture of an answer shows: means if there are any, else gaps, else ratios.

    Examples
    --------
    >>> import unbandit as ub
    >>> shown_quantity(ub.estimate(ub.ActionLog.from_actions("ABABAA"), "ucb", sigma=1.0))
    'gap'
    """
    columns = estimate.columns
    others = columns.verdict != 0
    names: tuple[Quantity, ...] = ("mean", "gap", "ratio")
    for name in names:
        if np.isfinite(getattr(columns, name)[others]).any():
            return name
    return "mean" if np.isfinite(columns.mean).any() else "gap"


def rows_frame(arms: Sequence[str], pulls: Sequence[int]) -> tuple[Figure, Axes]:
    """Return a figure with one row an arm: names on the left, pull counts on the right."""
    count = len(arms)
    height = 0.95 + 0.235 * min(count, NAMED) + (0.9 if count > NAMED else 0.0)
    names, counts = [short(arm) for arm in arms], [f"{number:,}" for number in pulls]
    left = 0.3 + text_width([names[place] for place in named_places(count)])
    figure, axes = frame(max(height, 1.6), left=left, right=0.3 + text_width(["pulls", *counts], 8))
    axes.set_ylim(count - 0.4, -0.6)
    name_rows(axes, names, counts)
    return figure, axes


def named_places(count: int) -> list[int]:
    """Return which of so many rows are named: all, or some that are evenly apart."""
    return [int(place) for place in np.unique(np.linspace(0, count - 1, min(count, NAMED)).round())]


def name_rows(axes: Axes, names: Sequence[str], counts: Sequence[str]) -> None:
    """Write the names of the rows on the left, and their pull counts on the right."""
    places = named_places(len(names))
    axes.set_yticks(places, [names[place] for place in places])
    axes.tick_params(axis="y", length=0)
    right = axes.get_yaxis_transform()
    for place in places:
        axes.text(1.015, place, counts[place], transform=right, va="center", fontsize=8, color=SOFT)
    axes.text(1.015, 1.0, "pulls", transform=axes.transAxes, va="bottom", fontsize=8, color=SOFT)


def _limit(axes: Axes, rows: Rows, truth: NDArray[np.float64]) -> None:
    """Leave room on both sides of all that is drawn."""
    values = np.concatenate([rows.point, rows.low, rows.high, truth])
    values = values[np.isfinite(values)]
    if values.size == 0:
        axes.set_xlim(0, 1)
        return
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or 0.5 * (abs(high) or 1.0)
    axes.set_xlim(low - room, high + room)


def _draw(axes: Axes, rows: Rows, verdict: str) -> None:
    """Draw the arms of one verdict: dots, intervals, and bounds that point to where the value may be."""
    here = rows.verdicts == verdict
    if not (here & np.isfinite(np.vstack([rows.point, rows.low, rows.high])).any(axis=0)).any():
        return
    colour, places = PALETTE[verdict], np.arange(here.size)
    left, right = axes.get_xlim()
    both = here & np.isfinite(rows.low) & np.isfinite(rows.high)
    axes.hlines(places[both], rows.low[both], rows.high[both], color=colour, linewidth=1.6, zorder=2)
    for known, other, edge, marker in ((rows.low, rows.high, right, ">"), (rows.high, rows.low, left, "<")):
        only = here & np.isfinite(known) & ~np.isfinite(other)
        if only.any():
            axes.hlines(places[only], known[only], edge, color=colour, linewidth=1.2, linestyle=":", zorder=2)
            axes.plot(np.full(only.sum(), edge), places[only], marker, color=colour, markersize=4, clip_on=False)
            axes.plot(known[only], places[only], "|", color=colour, markersize=7, markeredgewidth=1.4)
    marker = MARKERS[verdict]
    axes.plot(rows.point[here], places[here], marker, color=colour, markersize=5, zorder=3, label=verdict)
