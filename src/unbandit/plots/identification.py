"""An identification as a figure: how far each candidate is behind, and whether the leading one fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unbandit.formatting import label as short
from unbandit.plots.style import INK, PALETTE, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.identification.check import PredictiveCheck
    from unbandit.identification.result import Identification

FURTHEST = 3.0  # largest distance at which a statistic of the record is drawn, in half the length of the bar

LONGEST_NAME = 34


def draw_identification(answer: Identification) -> Figure:
    """Draw the candidates' evidence beside the predictive check of the leading one."""
    rows = max(len(answer.candidates), len(answer.check.statistics))
    with styled():
        figure, (left, right) = panels(2, columns=2, width=5.1, height=max(2.6, 0.28 * rows + 1.3))
        _draw_evidence(left, answer)
        _draw_check(right, answer.check)
    return figure


def _draw_evidence(axes: Axes, answer: Identification) -> None:
    """Draw how many nats each candidate is behind, with its Monte-Carlo error."""
    from matplotlib.ticker import FuncFormatter

    best = answer.leading.evidence.value
    for place, candidate in enumerate(answer.candidates):
        evidence = candidate.evidence
        if not candidate.possible:
            axes.text(0.3, place, "ruled out", va="center", color=INK, transform=axes.get_yaxis_transform())
            continue
        colour = PALETTE["estimated" if candidate.name in answer.left else "bounded"]
        axes.hlines(place, max(best - evidence.high, 0.0), best - evidence.low, color=colour, linewidth=1.6)
        axes.plot(best - evidence.value, place, "o", color=colour, markersize=4.5)
    axes.set_xscale("symlog", linthresh=10)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(-0.5, axes.get_xlim()[1] * 1.5)
    axes.axvline(math.log(20), color=INK, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.set_xlabel("log evidence behind the leading candidate\n(dashed: 20 times less likely)")
    _name_rows(axes, [short(each.name, LONGEST_NAME) for each in answer.candidates])


def _draw_check(axes: Axes, check: PredictiveCheck) -> None:
    """Draw each statistic of the record against the middle 95% of the simulated ones, all on one scale."""
    for place, row in enumerate(check.statistics):
        half, middle = max((row.high - row.low) / 2, 0.5), (row.high + row.low) / 2
        at = float(np.clip((row.observed - middle) / half, -FURTHEST, FURTHEST))
        axes.hlines(place, (row.low - middle) / half, (row.high - middle) / half, color=PALETTE["bounded"],
                    linewidth=5, alpha=0.5)  # fmt: skip
        axes.plot((row.median - middle) / half, place, "|", color=PALETTE["bounded"], markersize=9, markeredgewidth=1.6)
        axes.plot(at, place, "D" if abs(at) > 1 else "o", color=INK, markersize=4.5)
    axes.set_xlim(-FURTHEST * 1.1, FURTHEST * 1.1)
    axes.set_xticks([-1, 1], ["2.5%", "97.5%"])
    fits = "reproduces" if check.fits else "does not reproduce"
    title = f"{short(check.candidate, LONGEST_NAME)}\n{fits} the record (p = {check.probability:.2g})"
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("the record (point) among simulations (bar)")
    _name_rows(axes, [row.name for row in check.statistics])


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name rows from the top by text: tick labels are made when a figure is drawn, outside the style."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks([])
    for place, name in enumerate(names):
        axes.annotate(name, (0, place), (-5, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                      ha="right", va="center_baseline")  # fmt: skip
