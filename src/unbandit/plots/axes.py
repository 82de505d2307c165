"""Ticks that are known before anything is drawn, so that margins can be made to fit them; numbers written plainly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.naming import short, text_width
from unbandit.plots.style import GRID, INK, SOFT, WIDTH, Line, Look, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox


class Ticks(NamedTuple):
    """Hold an axis: its ends, where its ticks stand and what they say."""

    low: float
    high: float
    values: list[float]
    labels: list[str]
    logarithmic: bool = False


def even_ticks(low: float, high: float, most: int = 7, *, whole: bool = False) -> Ticks:
    """Return round numbers, evenly apart, between two ends; whole ones for rounds.

    Examples
    --------
    >>> even_ticks(-0.12, 0.31, 5).labels
    ['−0.1', '0.0', '0.1', '0.2', '0.3']
    >>> even_ticks(0, 10_000_000, 3).labels
    ['0', '5,000,000', '10,000,000']
    """
    from matplotlib.ticker import MaxNLocator

    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    within = 1e-9 * (high - low)
    places = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], integer=whole).tick_values(low, high)
    values = [float(place) for place in places if low - within <= place <= high + within]
    return Ticks(low, high, values, _written(values))


def _written(values: list[float]) -> list[str]:
    """Write numbers with as many digits as tell them apart."""
    step = min(np.diff(values), default=0.0) if len(values) > 1 else abs(values[0]) if values else 0.0
    largest = max(map(abs, values), default=0.0)
    if step <= 0 or largest >= 1e12 or step < 1e-9:
        return [_minus(f"{value:.6g}") for value in values]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits += round(step * 10**digits, 6) % 1 != 0  # a step of 2.5 needs one digit more
    return [_minus(f"{value + 0.0:,.{digits}f}") for value in values]


def _minus(text: str) -> str:
    positive = text.lstrip("-")
    zero = not positive.strip("0.,")
    return positive if zero or positive == text else "−" + positive


def count_ticks(low: float, high: float, most: int = 7) -> Ticks:
    """Return numbers of rounds or pulls for a logarithmic axis: 1, 2 and 5 times powers of ten, or fewer of them.

    Examples
    --------
    >>> count_ticks(10, 2_000, 8).labels
    ['10', '20', '50', '100', '200', '500', '1,000', '2,000']
    >>> count_ticks(1, 10_000_000, 5).labels
    ['1', '100', '10,000', '1,000,000']
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps, every in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
        values = [float(step * 10**power) for power in range(first, last + 1, every) for step in steps]
        values = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(values) <= most:
            break
    if len(values) < 2:
        values = even_ticks(low, high, 4).values
    return Ticks(low, high, values, [f"{value:,.0f}" for value in values], logarithmic=True)


def span_of(*numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Return an axis' ends that leave room on both sides of all numbers."""
    values = np.concatenate(numbers)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = 0.04 * (high - low) or 0.5 * (abs(high) or 1.0)
    return low - room, high + room


def put_x(axes: Axes, ticks: Ticks, label: str = "", *, grid: bool = True) -> None:
    """Give the axes their horizontal scale."""
    if ticks.logarithmic:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xlim(ticks.low, ticks.high)
    axes.set_xticks(ticks.values, ticks.labels)
    axes.set_xlabel(label)
    if grid:
        axes.grid(axis="x", color=GRID, linewidth=0.6)


def put_y(axes: Axes, ticks: Ticks, label: str = "") -> None:
    """Give the axes their vertical scale."""
    if ticks.logarithmic:
        axes.set_yscale("log")
        axes.minorticks_off()
    axes.set_ylim(ticks.low, ticks.high)
    axes.set_yticks(ticks.values, ticks.labels)
    axes.set_ylabel(label)
    axes.grid(axis="y", color=GRID, linewidth=0.6)


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


NAMED = 40
"""Of more rows than this only some are named."""


class SeveralRows:
    """Lay out rows, from the top; `pitch` is the height of one in points, for whoever chooses how large to draw."""

    def __init__(
        self, names: Sequence[str], numbers: Sequence[str], said: str, *, tall: float = 0.235, top: float = 0.42,
        bottom: float = 0.5,
    ) -> None:  # fmt: skip
        shown = [short(name) for name in names]
        places = named_places(len(shown))
        inside = tall * max(len(places), 1) * (1.0 if len(places) == len(shown) else 1.1)
        left = 0.2 + text_width([shown[place] for place in places])
        right = 0.2 + text_width([said, *(numbers[place] for place in places)], 8)
        self.figure: Figure
        self.axes: Axes
        self.figure, self.axes = frame(inside + top + bottom, left=left, right=right, top=top, bottom=bottom)
        self.count, self.pitch = len(shown), 72 * inside / max(len(shown), 1)
        self.axes.set_ylim(len(shown) - 0.5, -0.5)
        self.axes.set_yticks([])
        across, room = self.axes.get_yaxis_transform(), WIDTH - left - right
        for place in places:
            look: Look = {"transform": across, "va": "center_baseline"}
            self.axes.text(-0.08 / room, place, shown[place], ha="right", **look)
            self.axes.text(1 + 0.1 / room, place, numbers[place], fontsize=8, color=SOFT, **look)
        head: Look = {"transform": self.axes.transAxes, "va": "bottom", "fontsize": 8, "color": SOFT}
        self.axes.text(1 + 0.1 / room, 1 + 0.1 / inside, said, **head)

    def size(self, usual: float) -> float:
        """Return a size of markers or lines, in points, that is smaller where rows are many."""
        return usual * float(min(1.0, np.sqrt(self.pitch / 12)))


def named_places(count: int) -> list[int]:
    """Return which of so many rows are named: all, or some that are evenly apart, the first and the last among them.

    Examples
    --------
    >>> named_places(3), len(named_places(224)), named_places(224)[-1]
    ([0, 1, 2], 40, 223)
    """
    return [int(place) for place in np.unique(np.linspace(0, count - 1, min(count, NAMED)).round())] if count else []


def bars(
    axes: Axes, places: NDArray[Any], low: NDArray[np.float64] | float, high: NDArray[np.float64] | float, **look: Any
) -> None:
    """Draw one horizontal bar a place, all as one line with gaps: a file of 200 bars stays small."""
    if places.size == 0:
        return
    gaps = np.full(places.size, np.nan)
    along = np.column_stack([np.broadcast_to(low, places.shape), np.broadcast_to(high, places.shape), gaps])
    heights = np.column_stack([places, places, gaps])
    axes.plot(along.reshape(-1), heights.reshape(-1), **({"solid_capstyle": "butt"} | look))
