"""The pictures of a plan and of a leak, in the house style."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from unbandit.plots import INK, PALETTE, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from unbandit.planning.leakage import Leak
    from unbandit.planning.result import Plan

LOOKS = (("#1f3f77", "o"), ("#d1691f", "s"), ("#2f9c86", "^"), ("#a8477f", "D"), ("#6f6f6f", "v"), ("#7fb2e5", "P"))
"""Colour and marker of each arm's curve."""

MOST_ROWS = 60

DASHED: Any = {"linewidth": 0.9, "linestyle": (0, (4, 2))}

GRID: Any = {"color": "#e6e6e6", "linewidth": 0.6, "zorder": 0}


def draw_plan(plan: Plan) -> Figure:
    """Draw, over the horizon, half the interval's length, the error, and the regret: theory lines, simulated points."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.2, 3.4), dpi=150, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr, call-arg]
        panels = figure.subplots(1, 3)
        curves = plan.curves
        shown = _spread_out(plan)
        # what the typical run shows beyond the simulated horizons would only squeeze them
        near = (curves.theory_horizons >= curves.horizons[0] / 1.2) & (
            curves.theory_horizons <= curves.horizons[-1] * 1.2
        )
        for axes, theory, simulated, label in (
            (panels[0], curves.theory_reach, curves.reach, "half the interval's length (median)"),
            (panels[1], curves.theory_error, curves.error, "root-mean-square error"),
        ):
            for at, (colour, marker) in zip(shown, LOOKS, strict=False):
                name = f"arm {_short(plan.arms[at])}"
                _curve(axes, curves.theory_horizons[near], theory[near, at], colour)
                _points(axes, curves.horizons, simulated[0][:, at], simulated[1][:, at], colour, marker, name)
            axes.axhline(plan.within, color=INK, zorder=1, **DASHED)
            axes.set_ylabel(label)
        _curve(panels[2], curves.theory_horizons[near], curves.theory_regret[near], INK)
        _points(panels[2], curves.horizons, *curves.regret, INK, "o", "simulated")
        panels[2].set_ylabel("regret")
        for axes in panels:
            axes.set_xscale("log")
            axes.set_xlim(curves.horizons[0] / 1.3, curves.horizons[-1] * 1.3)
            _log_log(axes)
            axes.set_xlabel("horizon, in rounds")
        handles, names = panels[0].get_legend_handles_labels()
        lines = [Line2D([], [], color=INK, linewidth=1.2), Line2D([], [], color=INK, **DASHED)]
        names += ["typical run (theory)", f"within {plan.within:g}"]
        figure.legend([*handles, *lines], names, frameon=False, loc="outside upper center",
                      ncols=len(names))  # fmt: skip
    return figure


def draw_leak(leak: Leak) -> Figure:
    """Draw each arm's pulls, and beside them the rewards that the record is worth."""
    rows = sorted(leak.arms, key=lambda row: row.gap)
    rows = [rows[at] for at in np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(int))]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, max(2.2, 0.3 * len(rows) + 1.3)), dpi=150, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
        axes = figure.subplots()
        places = np.arange(len(rows))
        axes.plot([row.pulls for row in rows], places, "|", markersize=11, markeredgewidth=1.6,
                  color=PALETTE["bounded"], label="pulls")  # fmt: skip
        known = [(place, row) for place, row in zip(places, rows, strict=True) if row.equivalent]
        if known:
            at = [place for place, _ in known]
            values = np.array([row.equivalent for _, row in known])
            errors = np.array([row.equivalent_error or 0.0 for _, row in known])
            low = np.maximum(values - 1.96 * errors, values / 20)
            axes.hlines(at, low, values + 1.96 * errors, color=PALETTE["estimated"], linewidth=1.6)
            axes.plot(values, at, "o", color=PALETTE["estimated"], markersize=4.5, label="equivalent observed rewards")
        axes.set_xscale("log")
        for place, row in zip(places, rows, strict=True):
            said = "best: no gap to learn" if row.equivalent is None else "none" if not row.equivalent else ""
            if said:
                axes.annotate(said, (row.pulls, place), (-9, 0), textcoords="offset points", ha="right", va="center",
                              fontsize=7.5, color=PALETTE["bounded"])  # fmt: skip
        axes.set_yticks(places, [_short(row.arm) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.6)
        axes.set_xlabel("rewards of the arm")
        axes.set_ylabel("arm")
        left, right = axes.get_xlim()
        axes.set_xlim(min(left / 1.6, right / 8), right * 1.15)  # room for the words
        _label(axes.xaxis, room=3.0)
        axes.grid(axis="x", **GRID)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    return figure


def _spread_out(plan: Plan) -> list[int]:
    """Choose the arms to draw: all but the best, or of many those at even ranks of their gaps."""
    gaps = {need.arm: need.gap for need in plan.needs}
    ranked = sorted((at for at, arm in enumerate(plan.arms) if arm in gaps), key=lambda at: gaps[plan.arms[at]])
    places = np.unique(np.linspace(0, len(ranked) - 1, min(len(ranked), len(LOOKS))).round().astype(int))
    return [ranked[place] for place in places]


def _curve(axes: Axes, along: Any, values: Any, colour: str) -> None:
    axes.plot(along, np.where(np.isfinite(values), values, np.nan), color=colour, linewidth=1.2, zorder=2)


def _points(axes: Axes, along: Any, values: Any, errors: Any, colour: str, marker: str, label: str) -> None:
    finite = np.isfinite(values)
    bars = 1.96 * np.nan_to_num(errors[finite])
    axes.errorbar(along[finite], values[finite], np.minimum(bars, 0.9 * values[finite]), color=colour, marker=marker,
                  markersize=4, linestyle="none", elinewidth=1.0, label=label, zorder=3)  # fmt: skip


def _log_log(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.grid(**GRID)
    axes.set_axisbelow(True)
    _label(axes.xaxis, room=1.5)
    _label(axes.yaxis, room=2.0)


def _label(axis: Axis, room: float) -> None:
    """Write plain numbers: 1, 2 and 5 where so many decades are shown, else only the powers of ten."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if np.log10(high / low) > room else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def _short(name: str) -> str:
    return (name if len(name) <= 16 else name[:15] + "…").replace("$", r"\$")
