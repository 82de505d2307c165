"""Error against the truth, where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from unbandit.plots.arms import Rows, rows_frame, shown_quantity
from unbandit.plots.naming import place_of
from unbandit.plots.style import GRID, INK, PALETTE, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.result import Estimate

__all__ = ["errors"]


def errors(
    estimate: Estimate, truth: Mapping[str, float], *, unit: float = 1.0, label: str | None = None,
    demonstration: object = None,
) -> Figure:  # fmt: skip
    """Draw how far every estimate is from the truth, with its interval: which hold, and which do not.

    Parameters
    ----------
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
    quantity = shown_quantity(estimate)
    ranked = [row for row in estimate.ranked(name) if row.arm in truth and row.verdict not in ("best", "unseen")]
    rows = Rows.of(ranked, quantity, unit)
    true = unit * np.array([truth[arm] for arm in rows.arms])
    with styled():
        figure, axes = rows_frame(rows.arms, rows.pulls)
        missed = (rows.low > true) | (rows.high < true)
        for here, colour, marker in ((~missed, PALETTE["estimated"], "o"), (missed, PALETTE["truth"], "X")):
            places = np.flatnonzero(here)
            axes.hlines(places, (rows.low - true)[here], (rows.high - true)[here], color=colour)
            axes.plot((rows.point - true)[here], places, marker, color=colour, markersize=5)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_xlabel(label or f"error of the {quantity}")
        axes.grid(axis="x", color=GRID, linewidth=0.6)
    return figure
