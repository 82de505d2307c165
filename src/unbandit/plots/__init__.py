"""Figures of estimates, logs, posteriors, identifications and plans, one file per subject, all in one style."""

from unbandit.plots.estimate import (
    arms_with_intervals,
    coefficients,
    demonstrations,
    errors,
    learning_curve,
    sensitivity,
    stretches,
    switching_moment,
)
from unbandit.plots.log import choice_shares, cumulative_pulls, timeline
from unbandit.plots.notebook import BAR_STYLE, interval_bar
from unbandit.plots.parts import INK, PALETTE, STYLE, address, narrow, png, save, svg, whole_height
from unbandit.plots.posterior import densities, hidden_paths
from unbandit.result import shown_quantity

__all__ = [
    "BAR_STYLE",
    "INK",
    "PALETTE",
    "STYLE",
    "address",
    "arms_with_intervals",
    "choice_shares",
    "coefficients",
    "cumulative_pulls",
    "demonstrations",
    "densities",
    "errors",
    "hidden_paths",
    "interval_bar",
    "learning_curve",
    "narrow",
    "png",
    "save",
    "sensitivity",
    "shown_quantity",
    "stretches",
    "svg",
    "switching_moment",
    "timeline",
    "whole_height",
]
