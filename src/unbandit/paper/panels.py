"""Building blocks of the paper's figures: lettered panels, curves with a band of one standard error, slopes of theory.

The rows behind a curve (`points`, `error_points`) stand beside what draws it (`curve`, `error_curve`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from unbandit import plots
from unbandit.plots.style import GRID, Line
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import Measured, measured

STYLE: Any = plots.STYLE | {
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "axes.unicode_minus": True,
}
"""The house style, for figures of several panels."""

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
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[count:]:
        spare.remove()
    if count > 1:
        for letter, panel in zip("abcdefghijklmnopqrstuvwxyz", axes[:count], strict=False):
            panel.set_title(f"({letter})", fontweight="bold")
    return figure, axes[:count]


def curve(
    axes: Axes,
    x: ArrayLike,
    points: Measured,
    line: Line,
    label: str | None = None,
    *,
    share: ArrayLike | None = None,
    mark_every: int = 1,
) -> None:
    """Draw a curve with a band of one standard error; points without a value are left out.

    Where the share of runs with an estimate is below `ENOUGH`, the point is hollow and its line pale.
    """
    along = np.asarray(x, dtype=float)
    value, error = np.asarray(points.value, dtype=float), np.asarray(points.error, dtype=float)
    full = np.ones(along.size, bool) if share is None else np.asarray(share) >= ENOUGH
    look: Any = {"color": line.colour, "marker": line.marker, "markevery": mark_every, "zorder": 3}
    width = np.where(np.isfinite(error), error, 0.0)
    low = np.maximum(value - width, value / 10) if axes.get_yscale() == "log" else value - width
    axes.fill_between(along, low, value + width, color=line.colour, alpha=0.16, linewidth=0, zorder=2)
    axes.plot(along, value, color=line.colour, linestyle=line.dashes, alpha=0.35, zorder=2.5)
    axes.plot(along, np.where(full, value, np.nan), linestyle=line.dashes, label=label, **look)
    hollow = np.where(full, np.nan, value)
    if np.isfinite(hollow).any():
        axes.plot(along, hollow, linestyle="none", markerfacecolor="white", **look)


def points(panel: str, name: str, x: ArrayLike, points: Measured, *, share: ArrayLike | None = None) -> pl.DataFrame:
    """Return the rows behind a curve: panel, curve, x, value, standard error, share of runs with an estimate."""
    along = np.asarray(x, dtype=float)
    return pl.DataFrame(
        {
            "panel": [panel] * along.size,
            "curve": [name] * along.size,
            "x": along,
            "value": np.asarray(points.value, dtype=float),
            "error": np.asarray(points.error, dtype=float),
            "share": np.ones(along.size) if share is None else np.asarray(share, dtype=float),
        }
    )


def error_curve(axes: Axes, arm: Curve, line: Line, label: str) -> None:
    """Draw an arm's mean squared error against the horizon."""
    curve(axes, arm.horizon, measured(arm.mse), line, label, share=arm.points[0])


def error_points(panel: str, name: str, arm: Curve) -> pl.DataFrame:
    """Return the rows behind `error_curve`."""
    return points(panel, name, arm.horizon, measured(arm.mse), share=arm.points[0])


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
    end = (last, height * (last / first) ** slope)
    axes.annotate(f"slope {slope:g}".replace("-", "−"), end, xytext=beside, **look)


def log_log(axes: Axes, x: str, y: str) -> None:
    """Make both axes logarithmic, with their labels and plain numbers as ticks."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set(xlabel=x, ylabel=y)
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


def thousands(axis: Any) -> None:
    """Label a linear axis with thousands separated."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def plain(value: float) -> str:
    """Write a tick, without a power of ten between a hundred-thousandth and ten million."""
    if value >= 1:
        return f"{value:,.7g}" if value < 1e7 else f"{value:.0e}"
    return f"{value:.6f}".rstrip("0") if value >= 1e-5 else f"{value:.0e}"
