"""The picture of an identification: how far each candidate is behind, and whether the leading one fits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from unbandit.plots import INK, PALETTE, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbandit.identification.check import PredictiveCheck
    from unbandit.identification.result import Identification

FURTHEST = 3.0
"""How far out a number of the record is drawn, in half the length of the bar."""

LONGEST = 34
"""Letters of a candidate's name that are shown."""


def draw_identification(answer: Identification) -> Figure:
    """Draw the candidates' evidence beside the check of the leading one."""
    rows = max(len(answer.candidates), len(answer.check.statistics))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.2, max(2.6, 0.28 * rows + 1.3)), dpi=150, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
        left, right = figure.subplots(1, 2)
        _draw_evidence(left, answer)
        _draw_check(right, answer.check)
    return figure


def _draw_evidence(axes: Axes, answer: Identification) -> None:
    """Draw how many nats each candidate is behind, with the ends that its Monte-Carlo error leaves."""
    best = answer.leading.weighed.value
    for place, candidate in enumerate(answer.candidates):
        weighed = candidate.weighed
        if not candidate.possible:
            axes.text(0.14, place, "cannot be", va="center", color=INK, transform=axes.get_yaxis_transform())
            continue
        told = candidate.name in answer.left
        colour = PALETTE["estimated" if told else "bounded"]
        axes.hlines(place, max(best - weighed.high, 0.0), best - weighed.low, color=colour, linewidth=1.6)
        axes.plot(best - weighed.value, place, "o", color=colour, markersize=4.5)
    axes.set_yticks(range(len(answer.candidates)), [_short(each.name) for each in answer.candidates])
    axes.set_ylim(len(answer.candidates) - 0.5, -0.5)
    axes.set_xscale("symlog", linthresh=10)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(-0.5, axes.get_xlim()[1] * 1.5)
    axes.axvline(math.log(20), color=INK, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.set_xlabel("log evidence behind the leading candidate\n(dashed: 20 times less likely)")


def _draw_check(axes: Axes, check: PredictiveCheck) -> None:
    """Draw each number of the record against the middle 95% of the simulated ones, all on one scale."""
    for place, row in enumerate(check.statistics):
        half, middle = max((row.high - row.low) / 2, 0.5), (row.high + row.low) / 2
        at = float(np.clip((row.observed - middle) / half, -FURTHEST, FURTHEST))
        axes.hlines(place, (row.low - middle) / half, (row.high - middle) / half, color=PALETTE["bounded"],
                    linewidth=5, alpha=0.5)  # fmt: skip
        axes.plot((row.median - middle) / half, place, "|", color=PALETTE["bounded"], markersize=9, markeredgewidth=1.6)
        axes.plot(at, place, "D" if abs(at) > 1 else "o", color=INK, markersize=4.5)
    axes.set_yticks(range(len(check.statistics)), [row.name for row in check.statistics])
    axes.set_ylim(len(check.statistics) - 0.5, -0.5)
    axes.set_xlim(-FURTHEST * 1.1, FURTHEST * 1.1)
    axes.set_xticks([-1, 1], ["2.5%", "97.5%"])
    fits = "reproduces" if check.fits else "does not reproduce"
    axes.set_title(f"{_short(check.candidate)}\n{fits} the record (p = {check.probability:.2g})", fontsize=9)
    axes.set_xlabel("the record (point) among simulations (bar)")


def _short(name: str) -> str:
    return (name if len(name) <= LONGEST else name[: LONGEST - 1] + "…").replace("$", r"\$")
