"""Figures from answers and logs, one file a picture, in one restrained house style."""

from unbandit.plots.against_truth import errors
from unbandit.plots.arms import arms_with_intervals
from unbandit.plots.bars import BAR_STYLE, interval_bar
from unbandit.plots.density import densities
from unbandit.plots.growing import settling
from unbandit.plots.hesitating import hesitation
from unbandit.plots.output import address, png, save, svg
from unbandit.plots.paths import hidden_paths
from unbandit.plots.pulls import cumulative_pulls
from unbandit.plots.quantity import shown_quantity
from unbandit.plots.style import INK, PALETTE, STYLE
from unbandit.plots.which_arm_when import timeline

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
