"""Figures from answers, in one restrained house style."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.result import ArmEstimate, Estimate

__all__ = ["INK", "PALETTE", "STYLE", "arms_with_intervals", "hidden_paths", "save"]

INK = "#222222"
PALETTE = {"best": "#b5651d", "estimated": "#1f5a7a", "bounded": "#7a8b99", "unseen": "#b8b8b8", "truth": "#d1495b"}
"""One colour a verdict: apart in hue for most eyes, and apart in grey for the rest."""

STYLE: Any = {
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "unbandit",
    "svg.fonttype": "none",
}


def arms_with_intervals(
    estimate: Estimate, *, truth: Mapping[str, float] | None = None, unit: float = 1.0, label: str | None = None
) -> Figure:
    """Draw every arm, best first: its estimate, its interval or bound, and the truth where it is known.

    Parameters
    ----------
    estimate
        Its first demonstration is drawn.
    truth
        The mean (or gap, where the estimate has no means) of each arm.
    unit
        What a value of 1 stands for, to show values in their own unit.
    label
        Of the horizontal axis.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = estimate.ranked(estimate.demonstrations[0])
    quantity = _quantity(rows)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, max(2.2, 0.26 * min(len(rows), 60) + 1.2)), dpi=150, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
        axes = figure.subplots()
        for place, row in enumerate(rows):
            _draw_row(axes, place, row, quantity, unit)
        if truth is not None:
            places = [place for place, row in enumerate(rows) if row.arm in truth]
            values = [truth[rows[place].arm] * unit for place in places]
            axes.scatter(values, places, marker="|", s=90, color=PALETTE["truth"], label="truth (hidden)", zorder=4)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        _name_rows(axes, rows)
        axes.set_xlabel(label or ("value" if quantity == "mean" else quantity))
        axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        handles, names = axes.get_legend_handles_labels()
        unique = dict(zip(names, handles, strict=True))
        if len(rows) > 1:
            axes.legend(unique.values(), unique.keys(), frameon=False, loc="lower center", ncols=len(unique),
                        bbox_to_anchor=(0.5, 1.0))  # fmt: skip
    return figure


def hidden_paths(
    rounds: NDArray[np.int64], bands: NDArray[np.float64], arms: Sequence[str], title: str
) -> Figure:  # fmt: skip
    """Draw the hidden sample mean of each arm over the rounds: the median, and a 95% band around it.

    `bands` has (rounds, arms, 3): lower end, median, upper end. Of more than ten arms ten are drawn, best to worst.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    order = np.argsort(-np.nan_to_num(bands[-1, :, 1], nan=-np.inf)) if len(bands) else np.arange(0)
    shown = order[np.unique(np.linspace(0, order.size - 1, min(order.size, 10)).astype(int))]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.8), dpi=150, layout="constrained")
        axes = figure.subplots()
        for place, arm in enumerate(shown):
            colour = mpl.colormaps["viridis"](0.9 * place / max(len(shown) - 1, 1))
            axes.fill_between(rounds, bands[:, arm, 0], bands[:, arm, 2], color=colour, alpha=0.2, linewidth=0)
            axes.plot(rounds, bands[:, arm, 1], color=colour, linewidth=1.4, label=_short(arms[arm]))
        axes.set_xlabel("round")
        axes.set_ylabel("hidden sample mean")
        axes.set_title(title, fontsize=9, loc="left")
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title="arm")
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that its name says, whole or not at all; equal figures give equal files."""
    import matplotlib as mpl

    kind = Path(path).suffix[1:].lower()
    with mpl.rc_context(STYLE), written_whole(path) as temporary:
        figure.savefig(temporary, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _quantity(rows: list[ArmEstimate]) -> str:
    """Choose what to show: means if there are any, else gaps, else ratios."""
    for name in ("mean", "gap", "ratio"):
        if any(getattr(row, name) is not None and row.verdict != "best" for row in rows):
            return name
    return "mean" if any(row.mean is not None for row in rows) else "gap"


def _draw_row(axes: Axes, place: int, row: ArmEstimate, quantity: str, unit: float) -> None:
    """Draw one arm: a dot with its interval, or an arrow from a bound."""
    colour = PALETTE[row.verdict]
    point = getattr(row, quantity)
    low, high = getattr(row, f"{quantity}_low", None), getattr(row, f"{quantity}_high", None)
    if low is not None and high is not None:
        named = row.verdict if point is None else "_nolegend_"
        axes.hlines(place, low * unit, high * unit, color=colour, linewidth=1.6, zorder=2, label=named)
    elif low is not None or high is not None:
        bound = (low if low is not None else high) * unit  # type: ignore[operator]
        marker = ">" if low is not None else "<"
        axes.plot([bound], [place], marker=marker, color=colour, markersize=5, linestyle="none", label=row.verdict)
    if point is not None:
        marker = "D" if row.verdict == "best" else "o"
        axes.plot([point * unit], [place], marker, color=colour, markersize=4.5, label=row.verdict, zorder=3)


def _name_rows(axes: Axes, rows: list[ArmEstimate]) -> None:
    """Write the arms' names; of more than 60 arms only some, so that they stay legible."""
    places = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), 60)).astype(int))
    axes.set_yticks(places, [_short(rows[place].arm) for place in places])


def _short(name: str) -> str:
    """Cut a long name; a dollar sign is only a dollar sign."""
    return (name if len(name) <= 24 else name[:23] + "…").replace("$", r"\$")
