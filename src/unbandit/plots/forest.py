"""The forest plot of a population: every participant on one axis, the population, and how far pooling moved each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit import formatting
from unbandit.formatting import label as short
from unbandit.plots import parts
from unbandit.plots.parts import INK, MOST_NAMED_ROWS, PALETTE, SOFT, Look, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbandit.hierarchy.result import Population

ROW, FEWEST_ROWS, TALLEST = 0.19, 6, 12.0  # inches per participant, and rows and height of a panel
POPULATION_ROWS = 2.0  # rows that the population takes below the participants


def forest(answer: Population, *, ax: Any = None) -> Any:
    """Draw the parameters of every participant, in order of the first one, with one panel per parameter.

    A dark dot with its interval is the participant's value with pooling; an open circle is what the participant's
    choices say alone, and the line between both is the shrinkage. The diamond below is a typical participant with its
    interval, the band the range of 95% of the population. On fewer axes that are given than there are parameters, the
    first of these are drawn.
    """
    people, count = len(answer.participants), len(answer.parameters)
    order = np.argsort(answer.intervals(0)[1], kind="stable")
    rows = max(people, FEWEST_ROWS) + POPULATION_ROWS
    inside = min(ROW * rows, TALLEST)
    named = parts.evenly(range(people), MOST_NAMED_ROWS).tolist()
    names = [short(answer.participants[order[place]], 9 if parts.is_narrow() else 18) for place in named]
    left, right, gap, top, bottom = 0.2 + parts.text_width([*names, "population"]), 0.2, 0.4, 0.42, 0.5
    wide = parts.width()
    height, width = inside + top + bottom, (wide - left - right - gap * (count - 1)) / count
    with styled():
        places = [
            ((left + at * (width + gap)) / wide, bottom / height, width / wide, inside / height) for at in range(count)
        ]
        figure = parts.own_figure(height)
        drawn = [figure.add_axes(place) for place in places] if ax is None else parts.given_axes(ax, count)
        for at, axes in enumerate(drawn):
            axes.set_axisbelow(True)
            axes.set_ylim(people + POPULATION_ROWS - 0.5, -0.7)
            _draw_parameter(axes, answer, at, order, small=inside / rows < 0.12)
            axes.set_yticks([])
            if at == 0:
                for row, name in zip([*named, people + 0.7], [*names, "population"], strict=True):
                    where: Look = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center_baseline"}
                    look: Look = {"fontsize": 8, "color": PALETTE["best"] if row >= people else INK}
                    axes.text(-0.08 / width, row, name, **where, **look)
        _explain(drawn, f"pooled, {formatting.share(answer.level)} interval")
    return figure if ax is None else ax


def _draw_parameter(axes: Axes, answer: Population, at: int, order: NDArray[np.intp], *, small: bool) -> None:
    """Draw one parameter of all participants, and of the population below them."""
    parameter, row = answer.parameters[at], answer.population[at]
    low, value, high = answer.intervals(at)[:, order]
    alone = answer.intervals(at, alone=True)[1, order]
    centre, spread = np.median(answer.draws.centre[:, at]), row.spread_high if row.spread is None else row.spread
    ends = parameter.value(centre + np.array([-1.96, 1.96]) * spread)
    places = np.arange(value.size)
    size = 2.2 if small else 4.0
    said = f"{parameter.name}: {formatting.share(row.shrinkage, 2)} shrinkage"
    if parameter.scale == "log odds":
        parts.put_scale(axes, "x", parts.even_ticks(0.0, 1.0, 6), said)
    else:
        numbers = np.concatenate([low, high, alone, ends])
        spare = 1.08
        ticks = parts.log_ticks(float(numbers.min()) / spare, float(numbers.max()) * spare, 6)
        parts.put_scale(axes, "x", ticks, said)
    axes.axvspan(float(ends[0]), float(ends[1]), color=PALETTE["best"], alpha=0.1, linewidth=0, zorder=0)
    axes.axvline(row.value, color=PALETTE["best"], linewidth=0.8, zorder=1)
    parts.draw_bars(axes, places, low, high, color=PALETTE["estimated"], linewidth=1.0 if small else 1.6, zorder=2)
    parts.draw_bars(axes, places, value, alone, color=SOFT, linewidth=0.7, zorder=3)
    hollow: Look = {"marker": "o", "markersize": size, "markerfacecolor": "white", "color": SOFT}
    axes.plot(alone, places, linestyle="none", zorder=4, markeredgewidth=0.7, **hollow)
    axes.plot(value, places, linestyle="none", marker="o", markersize=size, color=PALETTE["estimated"], zorder=5)
    below = np.array([value.size + 0.7])
    parts.draw_bars(axes, below, row.low, row.high, color=PALETTE["best"], linewidth=2.4, zorder=5)
    axes.plot([row.value], below, marker="D", markersize=6, color=PALETTE["best"], zorder=6)
    axes.axhline(value.size - 0.2, color=parts.GRID, linewidth=0.8)


def _explain(axes: Sequence[Axes], pooled: str) -> None:
    """Write the key, above all axes that stand in the first row."""
    first, last = axes[0].bbox, [each.bbox for each in axes if each.bbox.y0 == axes[0].bbox.y0][-1]
    parts.put_key(
        axes[0],
        [
            ({"color": PALETTE["estimated"], "marker": "o", "markersize": 4.5, "linestyle": "-"}, pooled),
            ({"color": SOFT, "marker": "o", "markersize": 4.5, "markerfacecolor": "white"}, "on their own"),
            ({"color": PALETTE["best"], "marker": "D", "markersize": 5, "linestyle": "-"}, "typical participant"),
            ({"color": PALETTE["best"], "linewidth": 7, "alpha": 0.15, "linestyle": "-"}, "95% of participants"),
        ],
        (last.x1 - first.x0) / axes[0].figure.dpi,
    )
