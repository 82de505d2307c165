"""The hidden sample mean of every arm, round by round, as the posterior has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.naming import short
from unbandit.plots.style import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["hidden_paths"]


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
    with mpl.rc_context(STYLE | {"text.parse_math": False}):
        figure = Figure(figsize=(7.2, 3.8), dpi=150, layout="constrained")
        axes = figure.subplots()
        for place, arm in enumerate(shown):
            colour = mpl.colormaps["viridis"](0.9 * place / max(len(shown) - 1, 1))
            axes.fill_between(rounds, bands[:, arm, 0], bands[:, arm, 2], color=colour, alpha=0.2, linewidth=0)
            axes.plot(rounds, bands[:, arm, 1], color=colour, linewidth=1.4, label=short(arms[arm]))
        axes.set_xlabel("round")
        axes.set_ylabel("hidden sample mean")
        axes.set_title(title, fontsize=9, loc="left")
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title="arm")
    return figure
