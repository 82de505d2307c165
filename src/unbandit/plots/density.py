"""The posterior of every arm as a density."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from unbandit.plots.naming import short, text_width
from unbandit.plots.style import GRID, PALETTE, frame, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.inference import Posterior

__all__ = ["densities"]


def densities(posterior: Posterior, *, gaps: bool = True, truth: Mapping[str, float] | None = None) -> Figure:
    """Draw the posterior density of every arm's gap, or mean, the best on top.

    Parameters
    ----------
    truth
        The gap, or mean, of each arm where it is known.
    """
    draws = (posterior.gaps if gaps else posterior.means).reshape(-1, len(posterior.arms))
    order = np.argsort(posterior.gaps.reshape(-1, len(posterior.arms)).mean(axis=0))[:12]
    names = [short(posterior.arms[arm]) for arm in order]
    with styled():
        figure, axes = frame(0.95 + 0.4 * len(names), left=0.3 + text_width(names))
        for place, arm in enumerate(order):
            heights, edges = np.histogram(draws[:, arm], bins=60)
            middles = (edges[1:] + edges[:-1]) / 2
            axes.fill_between(middles, place, place - 0.9 * heights / heights.max(), color=PALETTE["estimated"])
            if truth is not None and posterior.arms[arm] in truth:
                axes.plot([truth[posterior.arms[arm]]], [place], "|", color=PALETTE["truth"], markersize=12)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.6, -1)
        axes.set_xlabel("gap" if gaps else "mean")
        axes.grid(axis="x", color=GRID, linewidth=0.6)
    return figure
