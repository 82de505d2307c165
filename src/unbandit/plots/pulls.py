"""How pulls added up, and where the demonstrator switched away from each arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from unbandit.errors import ParameterError
from unbandit.plots.binning import binned, most_pulled_first
from unbandit.plots.naming import place_of, short, text_width
from unbandit.plots.style import GRID, INK, LINES, frame, plain, spread, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.log import ActionLog

__all__ = ["cumulative_pulls"]


def cumulative_pulls(
    log: ActionLog, *, demonstration: object = None, switching: Mapping[str, int] | None = None
) -> Figure:
    """Draw how often each arm had been pulled, round by round, with its switching round marked.

    Parameters
    ----------
    demonstration
        The name of the demonstration that is drawn; by default the first.
    switching
        The switching round of each arm that has one: `unbandit.switching_rounds(log, rule)`.
    """
    if not log.ordered:
        raise ParameterError("cumulative_pulls: expected a log with rounds; this one holds counts, without order.")
    which = place_of(log.demonstrations, demonstration)
    codes, pulls = log.demonstration(which), log.pulls[which]
    order, rows = most_pulled_first(pulls, 8)
    edges, counts = binned(codes, rows, order.size + (pulls.size > order.size), 400)
    sums = np.vstack([np.zeros(counts.shape[1], np.int64), counts.cumsum(axis=0)])
    names = [short(log.arms[arm]) for arm in order]
    with styled():
        figure, axes = frame(3.8, right=0.3 + text_width(names))
        axes.set_yscale("log")
        for at, line in zip(range(order.size), LINES, strict=False):
            axes.plot(edges, np.where(sums[:, at] > 0, sums[:, at], np.nan), color=line.colour, linestyle=line.dashes)
        tops = np.log10(np.maximum(pulls[order[:8]], 1))
        places = spread(tops, 0.06 * max(float(tops.max()), 0.3), 0.0, float(tops.max()))
        for at, line in zip(range(order.size), LINES, strict=False):
            axes.text(codes.size * 1.01, 10 ** places[at], names[at], color=line.colour, va="center")
        for arm, round_ in (switching or {}).items():
            own = int((codes[:round_] == log.arms.index(arm)).sum())
            axes.plot([round_], [own], "o", color=INK, markersize=3)
        axes.xaxis.set_major_formatter(lambda value, _: plain(value))
        axes.yaxis.set_major_formatter(lambda value, _: plain(value))
        axes.set_xlabel("round")
        axes.set_ylabel("pulls so far")
        axes.grid(color=GRID, linewidth=0.6)
    return figure
