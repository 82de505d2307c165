"""Building blocks of the paper's figures: lettered panels, series with a band of a standard error, theory's slopes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from unbandit.formatting import minus
from unbandit.plots import parts
from unbandit.plots.parts import GRID, Line
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import Measured, measured

STYLE: Any = parts.STYLE | {
    "axes.titlesize": 9, "axes.titlelocation": "left", "axes.axisbelow": True, "axes.grid": True,
    "grid.color": GRID, "grid.linewidth": 0.6, "legend.frameon": False, "legend.fontsize": 8,
    "lines.linewidth": 1.4, "lines.markersize": 4.5, "axes.unicode_minus": True,
}  # fmt: skip
"""The house parts, for figures of several panels."""

THEORY = "#8a8a8a"
"""The colour of what is theory, not measurement."""

ROOM = {"x": 1.5, "y": 3.0}
"""Decades for which ticks at 1, 2 and 5 fit: labels stand side by side on one axis, above each other on the other."""

LINES = (
    Line("#1f3f77", "o", "-"),
    Line("#d1691f", "s", (0, (5, 1.5))),
    Line("#2f9c86", "^", (0, (1.5, 1.2))),
    Line("#a8477f", "D", (0, (6, 1.5, 1, 1.5))),
    Line("#6f6f6f", "v", (0, (3, 1, 1, 1, 1, 1))),
    Line("#7fb2e5", "P", (0, (8, 2))),
)
"""Line styles, in the order in which curves take them: they differ in colour, marker and dash, so also in grey."""


def panels(count: int, *, columns: int = 2, width: float = 3.6, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels of a size in inches, lettered (a), (b), ... if there are two or more."""
    figure, axes = parts.panels(count, columns=columns, width=width, height=height)
    for letter, panel in zip("abcdefghijklmnopqrstuvwxyz", axes if count > 1 else (), strict=False):
        panel.set_title(f"({letter})", fontweight="bold")
    return figure, axes


@dataclass(frozen=True)
class Series:
    """Points of a figure with their standard errors, as a curve of a panel and as rows of the figure's table."""

    panel: str  # its letter
    name: str  # in the table
    x: ArrayLike
    points: Measured
    share: ArrayLike | None = None  # of runs with an estimate at each point; 1 by default
    label: str | None = None  # in the legend

    @classmethod
    def error(cls, panel: str, name: str, arm: Curve, label: str | None = None) -> Series:
        """Return an arm's mean squared error over the horizons."""
        return cls(panel, name, arm.horizon, measured(arm.mse), arm.points[0], label or name)

    @classmethod
    def computed(cls, panel: str, name: str, x: ArrayLike, values: ArrayLike, share: ArrayLike | None = None) -> Series:
        """Return numbers that were computed, not simulated."""
        return cls(panel, name, x, Measured(np.asarray(values, float), np.zeros(np.size(values)), 0), share)

    @property
    def rows(self) -> pl.DataFrame:
        """Return panel, series, x, value, standard error and share of runs with an estimate, one row per point."""
        along = np.asarray(self.x, dtype=float)
        numbers = {
            "x": along,
            "value": np.asarray(self.points.value, dtype=float),
            "error": np.asarray(self.points.error, dtype=float),
            "share": np.broadcast_to(1.0 if self.share is None else np.asarray(self.share, float), along.shape),
        }
        return pl.DataFrame({"panel": [self.panel] * along.size, "curve": [self.name] * along.size} | numbers)

    def draw(self, axes: Axes, line: Line, *, mark_every: int = 1) -> None:
        """Draw a curve with a band of one standard error; points without a value are left out.

        Where the share of runs with an estimate is below `ENOUGH`, the point is hollow and its line pale.
        """
        along = np.asarray(self.x, dtype=float)
        value, error = np.asarray(self.points.value, dtype=float), np.asarray(self.points.error, dtype=float)
        full = np.ones(along.size, bool) if self.share is None else np.asarray(self.share) >= ENOUGH
        look: Any = {"color": line.colour, "marker": line.marker, "markevery": mark_every, "zorder": 3}
        width = np.where(np.isfinite(error), error, 0.0)
        low = np.maximum(value - width, value / 10) if axes.get_yscale() == "log" else value - width
        axes.fill_between(along, low, value + width, color=line.colour, alpha=0.16, linewidth=0, zorder=2)
        axes.plot(along, value, color=line.colour, linestyle=line.dashes, alpha=0.35, zorder=2.5)
        axes.plot(along, np.where(full, value, np.nan), linestyle=line.dashes, label=self.label, **look)
        hollow = np.where(full, np.nan, value)
        if np.isfinite(hollow).any():
            axes.plot(along, hollow, linestyle="none", markerfacecolor="white", **look)


def draw_series(axes: Axes, series: Iterable[Series], panel: str) -> None:
    """Draw the series of one panel, which take the line styles in order."""
    for each, line in zip((each for each in series if each.panel == panel), LINES, strict=False):
        each.draw(axes, line)


def guide(axes: Axes, x: ArrayLike, slope: float, *, through: tuple[float, float], label: str | None = None) -> None:
    """Draw a thin line of a given slope on logarithmic axes, over the range of `x`: theory's shape, not its height."""
    ends = np.array([np.min(x), np.max(x)], dtype=float)
    heights = through[1] * (ends / through[0]) ** slope
    axes.plot(ends, heights, color=THEORY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.5, label=label)


def named_guide(axes: Axes, x: ArrayLike, slope: float, height: float, *, beside: tuple[float, float]) -> None:
    """Draw a line of a given slope that begins at a height, with the slope written beside its end."""
    first, last = float(np.min(x)), float(np.max(x))
    guide(axes, x, slope, through=(first, height))
    look: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 8, "color": THEORY}
    axes.annotate(minus(f"slope {slope:g}"), (last, height * (last / first) ** slope), xytext=beside, **look)


def log_log(axes: Axes, x: str, y: str) -> None:
    """Make both axes logarithmic, with their labels and plain numbers as ticks."""
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)


def plain_ticks(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers, as many as there is room for."""
    axis.set_major_locator(PlainLocator(ROOM[axis.axis_name]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_locator(LogLocator(subs=tuple(range(2, 10)), numticks=50))
    axis.set_minor_formatter(NullFormatter())


class PlainLocator(Locator):
    """Ticks of a logarithmic axis.

    They stand at 1, 2 and 5 times the powers of ten while the axis spans `room` decades or fewer, beyond that at the
    powers of ten alone, and evenly on an axis too short for either.
    """

    def __init__(self, room: float) -> None:
        self._room = room

    def __call__(self) -> list[float]:
        """Return the ticks of the axis as it is now."""
        return self.tick_values(*self.axis.get_view_interval())  # type: ignore[union-attr]

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks between two ends."""
        low, high = sorted((max(vmin, 1e-300), max(vmax, 1e-300)))
        exponents = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        steps = [1, 2, 5] if np.log10(high / low) <= self._room else [1]
        ticks = [tick for tick in np.outer(10.0**exponents, steps).reshape(-1).tolist() if low <= tick <= high]
        if len(ticks) < 2:
            evenly = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
            ticks = [float(tick) for tick in evenly if low <= tick <= high]
        return ticks


def plain(value: float) -> str:
    """Write a tick, without a power of ten between a hundred-thousandth and ten million."""
    if value >= 1:
        return f"{value:,.7g}" if value < 1e7 else f"{value:.0e}"
    return f"{value:.6f}".rstrip("0") if value >= 1e-5 else f"{value:.0e}"
