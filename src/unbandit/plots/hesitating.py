"""The moment of hesitation: the two decision values around an arm's switching round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unbandit.plots.naming import short
from unbandit.plots.style import GRID, INK, LINES, frame, plain, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.estimators.hesitation import Hesitation

__all__ = ["hesitation"]


def hesitation(moment: Hesitation) -> Figure:
    """Draw the two decision values around the switching round of one arm.

    The sample means that decided are hidden: the values drawn are those at the estimated gap.
    """
    with styled():
        figure, axes = frame(3.4)
        for values, line, name in ((moment.own, LINES[1], moment.arm), (moment.other, LINES[0], moment.best)):
            axes.step(moment.rounds, values, where="post", color=line.colour, linestyle=line.dashes, label=short(name))
        axes.axvline(moment.round, color=INK, linewidth=0.8, linestyle=":")
        axes.xaxis.set_major_formatter(lambda value, _: plain(value))
        axes.set_xlabel("round")
        axes.grid(color=GRID, linewidth=0.6)
        axes.legend(frameon=False)
    return figure
