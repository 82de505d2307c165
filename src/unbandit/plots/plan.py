"""A plan and a leak as figures: what a horizon buys, and how many observed rewards a record is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unbandit.formatting import label as short
from unbandit.plots import parts
from unbandit.plots.parts import INK, LINES, PALETTE, SOFT, Look, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbandit.planning.result import Leak, Plan

MOST_ROWS = 60
MOST_CURVES = 6

DASHED: Look = {"color": INK, "linewidth": 0.9, "linestyle": (0, (4, 2))}


def draw_plan(plan: Plan, *, ax: Any = None) -> Any:
    """Draw half the interval's length, the error and the regret over the horizon: theory as lines, runs as points.

    On fewer than three axes that are given, the first of these.
    """
    from matplotlib.lines import Line2D

    curves = plan.curves
    gaps = {need.arm: need.gap for need in plan.needs}
    ranked = sorted((at for at, arm in enumerate(plan.arms) if arm in gaps), key=lambda at: gaps[plan.arms[at]])
    low, high = curves.horizons[0], curves.horizons[-1]
    # theory beyond the simulated horizons would only compress the rest
    near = (curves.theory_horizons >= low / 1.2) & (curves.theory_horizons <= high * 1.2)

    def draw(axes: Axes, theory: Any, values: Any, errors: Any, colour: str, marker: str, label: str) -> None:
        shown, finite = np.where(np.isfinite(theory), theory, np.nan)[near], np.isfinite(values)
        axes.plot(curves.theory_horizons[near], shown, color=colour, linewidth=1.2, zorder=2)
        bars = np.minimum(1.96 * np.nan_to_num(errors[finite]), 0.9 * values[finite])
        axes.errorbar(curves.horizons[finite], values[finite], bars, color=colour, marker=marker, markersize=4,
                      linestyle="none", elinewidth=1.0, label=label, zorder=3)  # fmt: skip

    with styled():
        figure, drawn = panels(3, columns=3, width=3.4, height=3.4, ax=ax)
        known = (
            (curves.theory_reach, curves.reach, "half the interval's length (median)"),
            (curves.theory_error, curves.error, "root-mean-square error"),
        )
        for axes, (theory, (values, errors), label) in zip(drawn, known, strict=False):
            for at, line in zip(parts.evenly(ranked, MOST_CURVES).tolist(), LINES[1:], strict=False):
                name = f"arm {short(plan.arms[at], 16)}"
                draw(axes, theory[:, at], values[:, at], errors[:, at], line.colour, line.marker, name)
            axes.axhline(plan.within, zorder=1, **DASHED)
            axes.set_ylabel(label)
        for axes in drawn[2:]:
            draw(axes, curves.theory_regret, *curves.regret, INK, "o", "simulated")
            axes.set_ylabel("regret")
        for axes in drawn:
            axes.set(xscale="log", yscale="log")
            parts.put_scale(axes, "x", parts.log_ticks(low / 1.3, high * 1.3, 5), "horizon, in rounds")
            parts.put_scale(axes, "y", parts.log_ticks(*axes.get_ylim(), 6), axes.get_ylabel())
        handles, names = drawn[0].get_legend_handles_labels()
        handles += [Line2D([], [], color=INK, linewidth=1.2), Line2D([], [], **DASHED)]
        names += ["typical run (theory)", f"within {plan.within:g}"]
        if ax is None:
            figure.legend(handles, names, frameon=False, loc="outside upper center", ncols=len(names))
            return figure
        drawn[0].legend(handles, names, frameon=False, fontsize=8)
    return ax


def draw_leak(leak: Leak, *, ax: Axes | None = None) -> Any:
    """Draw each arm's pulls, and the number of observed rewards that the record is worth for its gap."""
    ranked = sorted(leak.arms, key=lambda row: row.gap)
    rows = [ranked[at] for at in parts.evenly(range(len(ranked)), MOST_ROWS)]
    pulls = np.array([row.pulls for row in rows], float)
    worth = np.array([row.equivalent or np.nan for row in rows], float)
    error = np.array([row.equivalent_error or 0.0 for row in rows], float)
    low, high = np.maximum(worth - 1.96 * error, worth / 20), worth + 1.96 * error
    places, known = np.arange(len(rows)), np.isfinite(worth)
    numbers = np.concatenate([pulls[pulls > 0], low[known], high[known]])
    first, last = (float(numbers.min()), float(numbers.max())) if numbers.size else (1.0, 10.0)
    pull_look: Look = {"color": PALETTE["bounded"], "marker": "|", "markersize": 11, "markeredgewidth": 1.6}
    worth_look: Look = {"color": PALETTE["estimated"], "marker": "o", "markersize": 4.5}
    with styled():
        layout = parts.RowLayout(
            [row.arm for row in rows], [f"{row.pulls:,.0f}" for row in rows], "pulls", row_height=0.3, ax=ax
        )
        axes = layout.axes
        ticks = parts.log_ticks(min(first / 1.6, last / 8), last * 1.15)  # room for the words at the left
        parts.put_scale(axes, "x", ticks, "rewards of the arm")
        axes.plot(pulls, places, linestyle="none", zorder=2, **pull_look)
        parts.draw_bars(
            axes, places[known], low[known], high[known], color=PALETTE["estimated"], linewidth=1.6, zorder=2
        )
        axes.plot(worth[known], places[known], linestyle="none", zorder=3, **worth_look)
        for place, row in enumerate(rows):
            if not row.equivalent:
                words = "best: no gap to learn" if row.equivalent is None else "none"
                axes.annotate(words, (row.pulls, place), (-9, 0), textcoords="offset points", ha="right",
                              va="center_baseline", fontsize=7.5, color=SOFT)  # fmt: skip
        entries = [(pull_look, "pulls")]
        if known.any():
            entries.append((worth_look | {"linestyle": "-"}, "equivalent observed rewards"))
        parts.put_key(axes, entries)
    return layout.drawn
