"""Words in figures: names at the ends of curves, a key above the axes, remarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.naming import short, text_width
from unbandit.plots.style import INK, SOFT, WIDTH, Line, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

__all__ = ["Sign", "key", "label_ends", "remark", "spread", "tell_demonstration"]

LINE_HEIGHT = 11.5 / 72
"""Inches from one line of text to the next."""


class Sign(NamedTuple):
    """Hold one entry of a key: what it looks like, and what it means."""

    look: Look
    meaning: str


def key(axes: Axes, signs: Sequence[Sign], *, right: bool = False) -> None:
    """Explain signs above the axes, side by side; quicker than a legend, which is laid out by measuring it."""
    from matplotlib.lines import Line2D

    figure, box, height = _placed(axes)
    wide = [0.3 + text_width([sign.meaning], 8.5) for sign in signs]
    at = box.x1 * WIDTH - sum(wide) if right else box.x0 * WIDTH
    level = box.y1 + 0.15 / height
    for sign, width in zip(signs, wide, strict=True):
        look: Look = {"linestyle": "none", "markevery": [1], "transform": figure.transFigure} | sign.look
        drawn = Line2D([(at + step) / WIDTH for step in (0.03, 0.1, 0.17)], [level] * 3, **look)
        figure.add_artist(drawn)
        figure.text((at + 0.24) / WIDTH, level, sign.meaning, va="center_baseline", fontsize=8.5, color=INK)
        at += width


def remark(axes: Axes, *lines: str) -> None:
    """Say something above the axes: the first of several lines in ink, what is below it softly."""
    figure, box, height = _placed(axes)
    for place, line in enumerate(reversed(lines)):
        first = 0 < place == len(lines) - 1
        level = box.y1 + (0.1 + place * 0.165) / height
        figure.text(box.x0, level, line, fontsize=9 if first else 8, color=INK if first else SOFT)


def _placed(axes: Axes) -> tuple[Figure, Bbox, float]:
    """Return the figure, where the axes stand in it, and its height in inches."""
    figure = cast("Figure", axes.figure)
    return figure, axes.get_position(), figure.get_figheight()


def tell_demonstration(figure: Figure, demonstrations: Sequence[str], which: int) -> None:
    """Say which demonstration it is, where there are several."""
    if len(demonstrations) > 1:
        name = f'demonstration "{short(demonstrations[which])}", {which + 1:,} of {len(demonstrations):,}'
        figure.text(0.12 / WIDTH, 0.08 / figure.get_figheight(), name, fontsize=7.5, color=SOFT)


def label_ends(axes: Axes, heights: NDArray[np.float64], names: Sequence[str], lines: Sequence[Line]) -> None:
    """Name curves to the right of the axes, where they end; names that would overlap are moved, each with a leader.

    `heights` are the curves' last values, NaN where there is none: such a curve is not named.
    """
    from matplotlib.transforms import blended_transform_factory

    known = np.flatnonzero(np.isfinite(heights))
    if known.size == 0:
        return
    _, box, height = _placed(axes)
    tall, across = box.height * height, box.width * WIDTH
    ends = axes.transAxes.inverted().transform(axes.transData.transform([(1, heights[at]) for at in known]))[:, 1]
    places = spread(np.clip(ends, 0.0, 1.0), LINE_HEIGHT / tall, 0.0, 1.0)
    both = blended_transform_factory(axes.transAxes, axes.transAxes)
    for at, end, place in zip(known.tolist(), np.clip(ends, 0.0, 1.0), places, strict=True):
        look: Look = {"color": lines[at].colour, "linewidth": 1.2, "transform": both, "clip_on": False}
        leader = [1.0, 1.0 + 0.05 / across, 1.0 + 0.17 / across, 1.0 + 0.22 / across]
        axes.plot(leader, [end, end, place, place], **look)
        axes.text(1.0 + 0.26 / across, place, names[at], transform=both, va="center_baseline", color=INK)


def spread(wanted: NDArray[np.float64], apart: float, low: float, high: float) -> NDArray[np.float64]:
    """Move places so that any two are `apart`, each as little as may be, and all between `low` and `high` if they fit.

    Examples
    --------
    >>> spread(np.array([0.0, 0.1, 5.0]), 1.0, 0.0, 10.0).tolist()
    [0.0, 1.0, 5.0]
    >>> spread(np.array([9.5, 9.5, 9.5]), 1.0, 0.0, 10.0).tolist()
    [8.0, 9.0, 10.0]
    """
    order = np.argsort(wanted, kind="stable")
    steps = apart * np.arange(wanted.size)
    slack = wanted[order].astype(np.float64) - steps
    # Least squares under an order: pool neighbours that stand in each other's way at their average.
    pools: list[tuple[float, int]] = []
    for value in slack:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, few), (second, more) = pools[-2:]
            pools[-2:] = [((first * few + second * more) / (few + more), few + more)]
    moved = np.concatenate([np.full(count, value) for value, count in pools])
    moved = np.clip(moved, low, max(high - float(steps[-1]), low))
    result = np.empty(wanted.size, np.float64)
    result[order] = moved + steps
    return result
