"""The hidden sample mean of every arm, round by round, as the posterior has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.arms import span_of
from unbandit.plots.labelling import label_ends, remark
from unbandit.plots.naming import short, text_width
from unbandit.plots.scales import even_ticks, put_x, put_y
from unbandit.plots.style import LINES, frame, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["hidden_paths"]


def hidden_paths(
    rounds: NDArray[np.int64], bands: NDArray[np.float64], arms: Sequence[str], title: str
) -> Figure:  # fmt: skip
    """Draw the hidden sample mean of each arm over the rounds: the median, and a 95% band around it.

    `bands` has (rounds, arms, 3): lower end, median, upper end. Of more than eight arms eight are drawn, best to worst.
    """
    order = np.argsort(-np.nan_to_num(bands[-1, :, 1], nan=-np.inf), kind="stable") if len(bands) else np.arange(0)
    shown = order[np.unique(np.linspace(0, order.size - 1, min(order.size, len(LINES))).round().astype(int))]
    drawn = bands[:, shown]
    with styled():
        up = even_ticks(*span_of(drawn.ravel()), 6)
        along = even_ticks(float(rounds[0]), float(rounds[-1]), whole=True) if len(rounds) else even_ticks(0, 1)
        names = [short(arms[arm]) for arm in shown]
        figure, axes = frame(3.6, left=0.45 + text_width(up.labels), right=0.4 + text_width(names))
        put_x(axes, along, "round")
        put_y(axes, up, "hidden sample mean")
        for at, line in zip(range(len(shown)), LINES, strict=False):
            low, middle, high = drawn[:, at].T
            axes.fill_between(rounds, low, high, color=line.colour, alpha=0.13, linewidth=0)
            axes.plot(rounds, middle, color=line.colour, linestyle=line.dashes, linewidth=1.4, zorder=3)
        if len(bands):
            label_ends(axes, drawn[-1, :, 1], names, LINES)
        fewer = f"; {len(shown)} of {len(arms):,} arms" if len(shown) < len(arms) else ""
        remark(axes, f"{short(title, 60)}: median and 95% band{fewer}")
    return figure
