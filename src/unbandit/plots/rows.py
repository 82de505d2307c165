"""Figures with one row an arm: names on the left, a number on the right, and whatever is drawn between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.naming import short, text_width
from unbandit.plots.style import SOFT, WIDTH, Look, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["NAMED", "SeveralRows", "bars", "named_places"]

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
