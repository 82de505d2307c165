"""Figures from answers and logs, one file a picture, in one restrained house style."""

from unbandit.plots.estimate import arms_with_intervals, errors
from unbandit.plots.learning_curve import settling
from unbandit.plots.log import cumulative_pulls, timeline
from unbandit.plots.notebook import BAR_STYLE, interval_bar
from unbandit.plots.posterior import densities, hidden_paths
from unbandit.plots.style import INK, PALETTE, STYLE, address, png, save, svg
from unbandit.plots.switching_moment import hesitation
from unbandit.result import shown_quantity

__all__ = [
    "BAR_STYLE",
    "INK",
    "PALETTE",
    "STYLE",
    "address",
    "arms_with_intervals",
    "cumulative_pulls",
    "densities",
    "errors",
    "hesitation",
    "hidden_paths",
    "interval_bar",
    "png",
    "save",
    "settling",
    "shown_quantity",
    "svg",
    "timeline",
]
