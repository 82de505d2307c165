"""The picture of how the time grows: one panel for rounds, runs and arms each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unbandit.plots.parts import GRID, LINES, WIDTH, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.growth import Curve

PANELS = {
    "rounds": ("rounds of a demonstration, T", "time of one"),
    "runs": ("demonstrations of 2,000 rounds", "time of all"),
    "arms": ("arms of 100 pulls each, K", "time of a round"),
}
SYMBOLS = {"rounds": "T", "runs": "runs", "arms": "K"}


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Write the picture, in the format that its name says."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(WIDTH * 1.45, 4.2), dpi=100)
        panels = figure.subplots(1, len(PANELS))
        for axes, (name, labels) in zip(panels, PANELS.items(), strict=True):
            _panel(axes, [curve for curve in curves if curve.panel == name], *labels)
        figure.subplots_adjust(left=0.08, right=0.985, top=0.97, bottom=0.42, wspace=0.34)
    save(figure, path)


def _panel(axes: Axes, curves: Sequence[Curve], across: str, along: str) -> None:
    """Draw times as points, and the fitted power of each curve as a line through them."""
    axes.set_axisbelow(True)
    axes.grid(color=GRID)
    for curve, look in zip(curves, LINES, strict=False):
        slope, error = curve.exponent()
        sizes, seconds = curve.fitted_part()
        level = np.exp(np.log(seconds).mean() - slope * np.log(sizes).mean())
        power = f"{SYMBOLS[curve.panel]} to the power {slope:.3f} ± {error:.3f}".replace("-", "−")
        axes.loglog(sizes, level * sizes**slope, color=look.colour, linestyle=look.dashes, linewidth=1)
        axes.loglog([], [], color=look.colour, linestyle=look.dashes, marker=look.marker, markersize=4,
                    label=f"{curve.name}:\n{power}")  # fmt: skip
        axes.loglog(curve.sizes, curve.seconds, color=look.colour, linestyle="none", marker=look.marker, markersize=4)
    axes.set_xlabel(across)
    axes.set_ylabel(along)
    _ticks(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(-0.2, -0.2), frameon=False, fontsize=7.5, handlelength=2.6)


def _ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    said: tuple[Callable[[float], str], ...] = (_amount, _time)
    for axis, say in zip((axes.xaxis, axes.yaxis), said, strict=True):
        axis.set_major_locator(LogLocator(numticks=6))
        axis.set_major_formatter(FuncFormatter(lambda value, _, say=say: say(value)))
        axis.set_minor_formatter(NullFormatter())


def _amount(value: float) -> str:
    """Write a power of ten for a tick.

    >>> _amount(10), _amount(1e6), _amount(1e9)
    ('10', '1 M', '1 G')
    """
    unit, name = next(((unit, name) for unit, name in ((1e9, " G"), (1e6, " M")) if value >= unit), (1, ""))
    return f"{value / unit:,.0f}{name}"


def _time(value: float) -> str:
    """Write a power of ten of seconds for a tick.

    >>> _time(1e-8), _time(1e-3), _time(10)
    ('10 ns', '1 ms', '10 s')
    """
    units = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    unit, name = next(((unit, name) for unit, name in units if value >= unit * 0.99), units[-1])
    return f"{value / unit:,.0f} {name}"
