"""How the answer settled: the estimates as the log grew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from unbandit.plots.naming import short
from unbandit.plots.style import GRID, LINES, frame, plain, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.estimators.settling import Settling

__all__ = ["settling"]


def settling(growth: Settling, *, truth: Mapping[str, float] | None = None) -> Figure:
    """Draw the estimates of up to eight arms as the log grew, with their intervals.

    Parameters
    ----------
    truth
        The mean (or gap, where there are no means) of each arm, drawn as a dashed line.
    """
    with styled():
        figure, axes = frame(3.8)
        axes.set_xscale("log")
        order = np.argsort(-growth.columns.pulls[-1], kind="stable")[:8]
        for arm, line in zip(order, LINES, strict=False):
            point, low, high = (getattr(growth.columns, growth.quantity + end)[:, arm] for end in ("", "_low", "_high"))
            axes.fill_between(growth.rounds, low, high, color=line.colour, alpha=0.15, linewidth=0)
            axes.plot(growth.rounds, point, color=line.colour, marker=line.marker, markersize=3,
                      label=short(growth.arms[arm]))  # fmt: skip
            if truth is not None and growth.arms[arm] in truth:
                axes.axhline(truth[growth.arms[arm]], color=line.colour, linestyle="--", linewidth=0.8)
        axes.xaxis.set_major_formatter(lambda value, _: plain(value))
        axes.set_xlabel("rounds of the log")
        axes.set_ylabel(growth.quantity)
        axes.grid(color=GRID, linewidth=0.6)
        axes.legend(frameon=False)
    return figure
