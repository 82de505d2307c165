"""What the paper's pictures share: lettered panels, curves with a band of one standard error, guides of theory.

Lines differ in colour, marker and dash, so that they stay apart for every eye and in grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from unbandit import plots
from unbandit.study.curves import ENOUGH
from unbandit.study.monte_carlo import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GUIDE", "LINES", "STYLE", "Line", "curve", "guide", "log_log", "panels", "plain_ticks", "thousands"]

STYLE: Any = plots.STYLE | {
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "axes.unicode_minus": True,
}
"""The house style, for figures of several panels."""

GUIDE = "#8a8a8a"
"""The colour of what is theory, not measurement."""

ROOM = {"x": 1.5, "y": 3.0}
"""How many decades have room for ticks at 1, 2 and 5: labels stand side by side on one axis, above each other on the
other."""


@dataclass(frozen=True)
class Line:
    """Hold how a curve looks."""

    colour: str
    marker: str
    dashes: Any = "-"


LINES = (
    Line("#1f3f77", "o"),
    Line("#d1691f", "s", (0, (5, 1.5))),
    Line("#2f9c86", "^", (0, (1.5, 1.2))),
    Line("#a8477f", "D", (0, (6, 1.5, 1, 1.5))),
    Line("#6f6f6f", "v", (0, (3, 1, 1, 1, 1, 1))),
    Line("#7fb2e5", "P", (0, (8, 2))),
)
"""Looks, in the order in which curves take them."""


def panels(count: int, *, columns: int = 2, width: float = 3.6, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels, lettered (a), (b), ... where there are two or more.

    Parameters
    ----------
    width, height
        Of one panel, in inches.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[count:]:
        spare.remove()
    if count > 1:
        for at, panel in enumerate(axes[:count]):
            panel.set_title(f"({chr(ord('a') + at)})", fontweight="bold")
    return figure, axes[:count]


def curve(
    axes: Axes,
    x: ArrayLike,
    measured: Measured,
    line: Line,
    label: str | None = None,
    *,
    share: ArrayLike | None = None,
    mark_every: int = 1,
) -> None:
    """Draw a curve with a band of one standard error.

    Parameters
    ----------
    x, measured
        One point each; the values and errors are arrays. Points without a value are left out.
    share
        The share of runs with an estimate at each point: below `ENOUGH`, the point is hollow and its line pale.
    mark_every
        Mark each so many-th point only, where there are many.
    """
    along = np.asarray(x, dtype=float)
    value, error = np.asarray(measured.value, dtype=float), np.asarray(measured.error, dtype=float)
    full = np.ones(along.size, bool) if share is None else np.asarray(share) >= ENOUGH
    look: Any = {"color": line.colour, "marker": line.marker, "markevery": mark_every, "zorder": 3}
    axes.fill_between(along, *_band(axes, value, error), color=line.colour, alpha=0.16, linewidth=0, zorder=2)
    axes.plot(along, value, color=line.colour, linestyle=line.dashes, alpha=0.35, zorder=2.5)
    solid = np.where(full, value, np.nan)
    axes.plot(along, solid, linestyle=line.dashes, label=label, **look)
    hollow = np.where(full, np.nan, value)
    if np.isfinite(hollow).any():
        axes.plot(along, hollow, linestyle="none", markerfacecolor="white", **look)


def guide(axes: Axes, x: ArrayLike, slope: float, *, through: tuple[float, float], label: str | None = None) -> None:
    """Draw a thin line of a given slope on logarithmic axes: what theory says of the shape, not of the height.

    Parameters
    ----------
    x
        Where it begins and ends.
    through
        A point that it passes through.
    """
    ends = np.array([np.min(x), np.max(x)], dtype=float)
    heights = through[1] * (ends / through[0]) ** slope
    axes.plot(ends, heights, color=GUIDE, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.5, label=label)


def log_log(axes: Axes, x: str, y: str) -> None:
    """Make both axes logarithmic, with their labels and plain numbers as ticks."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)


def plain_ticks(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers, as many as there is room for."""
    axis.set_major_locator(PlainLocator(ROOM[axis.axis_name]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_locator(LogLocator(subs=tuple(range(2, 10)), numticks=50))
    axis.set_minor_formatter(NullFormatter())


class PlainLocator(Locator):
    """Place the ticks of a logarithmic axis.

    They stand at 1, 2 and 5 times the powers of ten while the axis spans `room` decades or fewer, beyond that at the
    powers of ten alone, and evenly on an axis too short for either.

    Examples
    --------
    >>> PlainLocator(1.5).tick_values(400, 6_000)
    [500.0, 1000.0, 2000.0, 5000.0]
    >>> PlainLocator(1.5).tick_values(400, 60_000)
    [1000.0, 10000.0]
    >>> PlainLocator(1.5).tick_values(21, 29)
    [22.0, 24.0, 26.0, 28.0]
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
    """Label a linear axis with thousands set apart."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def plain(value: float) -> str:
    """Write a tick: no power of ten between a hundred-thousandth and a million.

    Examples
    --------
    >>> plain(5000.0), plain(1.5), plain(0.002), plain(1e-7)
    ('5,000', '1.5', '0.002', '1e-07')
    """
    if value >= 1:
        return f"{value:,.7g}" if value < 1e7 else f"{value:.0e}"
    return f"{value:.6f}".rstrip("0") if value >= 1e-5 else f"{value:.0e}"


def _band(axes: Axes, value: NDArray[np.float64], error: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return both ends of the band; on a logarithmic axis the lower one stays within a decade of the curve."""
    wide = np.where(np.isfinite(error), error, 0.0)
    low = value - wide
    if axes.get_yscale() == "log":
        low = np.maximum(low, value / 10)
    return low, value + wide
