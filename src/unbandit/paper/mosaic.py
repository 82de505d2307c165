"""Draw a number for every charging protocol: a tile for each pair of first rates, a square in it for each third one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.datasets import protocols
from unbandit.plots import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

__all__ = ["best", "corner", "dots", "key", "mosaic"]

ACROSS, DOWN = 3, 2
"""Squares of a tile: six third rates, in lines of three from the upper left."""

GAP = 0.1
"""Left free between tiles, of a tile's width."""

TILE = "#f4f4f4"
"""The colour of a tile, where no protocol is."""

NOTHING = "#bdbdbd"
"""The colour of a protocol without a number."""


def mosaic(axes: Axes, values: NDArray[np.float64], colours: str, norm: Any) -> PatchCollection:
    """Draw one number a protocol, in the order of protocol numbers; grey where there is none."""
    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection

    first, second, _ = _rates()
    tiles = np.unique(np.stack([_places(first), _places(second)], axis=1), axis=0)
    axes.add_collection(PatchCollection(_rectangles(tiles, 1 - GAP, 1 - GAP), facecolor=TILE, linewidth=0))
    squares = _rectangles(_middles(), (1 - GAP) / ACROSS, (1 - GAP) / DOWN)
    cmap = colormaps[colours].with_extremes(bad=NOTHING)
    drawn = PatchCollection(squares, cmap=cmap, norm=norm, edgecolor="white", linewidth=0.3)
    drawn.set_array(np.ma.masked_invalid(values))
    axes.add_collection(drawn)
    names = [[f"{rate:g}" for rate in np.unique(rates)] for rates in (first, second)]
    axes.set_xticks(range(len(names[0])), names[0])
    axes.set_yticks(range(len(names[1])), names[1])
    axes.set(xlim=(-0.55, len(names[0]) - 0.45), ylim=(-0.55, len(names[1]) - 0.45), aspect="equal")
    axes.set(xlabel="first rate, CC1")
    axes.grid(visible=False)
    axes.tick_params(length=0, labelsize=7.5)
    axes.spines[:].set_visible(False)
    return drawn


def best(axes: Axes, which: NDArray[np.bool_]) -> None:
    """Mark the best protocols, which have no gap to estimate: a star on white."""
    middles = _middles()[which]
    axes.plot(*middles.T, "s", markersize=6.5, markerfacecolor="white", markeredgecolor=INK, markeredgewidth=0.6)
    axes.plot(*middles.T, "*", markersize=5, markeredgewidth=0, color=INK)


def dots(axes: Axes, which: NDArray[np.bool_]) -> None:
    """Put a dot on some of the protocols."""
    axes.plot(*_middles()[which].T, "o", markersize=2.2, markeredgewidth=0, color=INK)


def corner(axes: Axes, text: str) -> None:
    """Write into the empty corner: no protocol has two low rates."""
    axes.text(-0.4, -0.45, text, fontsize=7.5, va="bottom", linespacing=1.4)


def key(axes: Axes) -> None:
    """Show in the empty corner which square of a tile is which third rate."""
    from matplotlib.patches import Rectangle

    thirds = np.unique(_rates()[2])
    wide, high, left, bottom = 0.82, 0.62, -0.4, -0.45
    for place, rate in enumerate(thirds):
        x, y = left + wide * (place % ACROSS), bottom + high * (DOWN - 1 - place // ACROSS)
        axes.add_patch(Rectangle((x, y), wide, high, facecolor="none", edgecolor="#8a8a8a", linewidth=0.5))
        axes.text(x + wide / 2, y + high / 2 - 0.03, f"{rate:g}", fontsize=6, ha="center", va="center")
    axes.text(left, bottom + DOWN * high + 0.1, "a tile, by its\nthird rate, CC3", fontsize=7, va="bottom")


def _rates() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    table = protocols()
    return table["cc1"].to_numpy(), table["cc2"].to_numpy(), table["cc3"].to_numpy()


def _places(rates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return each rate's place among those there are."""
    return np.unique(rates, return_inverse=True)[1]


def _rectangles(middles: NDArray[Any], width: float, height: float) -> list[Rectangle]:
    from matplotlib.patches import Rectangle

    return [Rectangle((x - width / 2, y - height / 2), width, height) for x, y in middles]


def _middles() -> NDArray[np.float64]:
    """Return where each protocol's square has its middle; shape (224, 2)."""
    first, second, third = (_places(rates) for rates in _rates())
    column, line = third % ACROSS, third // ACROSS
    x = first + (1 - GAP) * ((column + 0.5) / ACROSS - 0.5)
    y = second + (1 - GAP) * (0.5 - (line + 0.5) / DOWN)
    return np.stack([x, y], axis=1)
