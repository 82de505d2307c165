"""Ticks that are known before anything is drawn, so that margins can be made to fit them; numbers written plainly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unbandit.plots.style import GRID

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Ticks", "count_ticks", "even_ticks", "put_x", "put_y"]


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
