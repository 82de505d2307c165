"""The house style: one ink, few colours, and a figure whose margins fit the names that stand in them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "GRID",
    "INK",
    "LINES",
    "PALETTE",
    "SOFT",
    "STYLE",
    "WIDTH",
    "Line",
    "frame",
    "plain",
    "spread",
    "styled",
]

INK = "#222222"
SOFT = "#6b6b6b"
"""The colour of what is said beside: remarks, pull counts, arms that are not singled out."""

GRID = "#e6e6e6"

PALETTE = {"best": "#b5651d", "estimated": "#1f5a7a", "bounded": "#7a8b99", "unseen": "#b8b8b8", "truth": "#d1495b"}
"""One colour a verdict: apart in hue for most eyes, and apart in grey for the rest."""

STYLE: Any = {
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "unbandit",
    "svg.fonttype": "none",
}

WIDTH = 7.2
"""Inches: every figure is as wide."""


@dataclass(frozen=True)
class Line:
    """Hold how a curve looks."""

    colour: str
    marker: str
    dashes: Any


LINES = (
    Line("#b5651d", "D", "-"),
    Line("#1f3f77", "o", "-"),
    Line("#2f9c86", "^", (0, (5, 1.5))),
    Line("#8a2f6b", "s", (0, (1.5, 1.2))),
    Line("#7fa8d9", "v", "-"),
    Line("#5c5c5c", "P", (0, (6, 1.5, 1, 1.5))),
    Line("#c9a227", "X", (0, (5, 1.5))),
    Line("#274c3a", "<", (0, (1.5, 1.2))),
)
"""Looks, in the order in which curves take them: they differ in colour, lightness, marker and dash."""

_ONE_AT_A_TIME = threading.RLock()
"""Matplotlib's settings, and Python's filters of warnings, are shared by all threads."""


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the house style: a dollar sign is only a dollar sign, and a letter that no font has is no news."""
    import matplotlib as mpl

    with _ONE_AT_A_TIME, mpl.rc_context(STYLE | {"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(Glyph |Matplotlib currently does not support)")
        yield


def frame(
    height: float, *, left: float = 0.7, right: float = 0.25, top: float = 0.4, bottom: float = 0.5
) -> tuple[Figure, Axes]:
    """Return a figure and its axes; all in inches, the margins around the axes.

    Margins that fit what stands in them are quicker than a layout that is found by drawing twice.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=150)
    across, along = WIDTH - left - right, height - top - bottom
    axes = figure.add_axes((left / WIDTH, bottom / height, across / WIDTH, along / height))
    axes.set_axisbelow(True)
    return figure, axes


def spread(wanted: NDArray[np.float64], apart: float, low: float, high: float) -> NDArray[np.float64]:
    """Move places as little as needed so that any two are `apart`, and all between `low` and `high` if they fit.

    Examples
    --------
    >>> spread(np.array([0.0, 0.1, 5.0]), 1.0, 0.0, 10.0).tolist()
    [0.0, 1.0, 5.0]
    """
    order = np.argsort(wanted, kind="stable")
    places = wanted[order].astype(np.float64)
    steps = apart * np.arange(places.size)
    places = np.maximum.accumulate(np.maximum(places, low) - steps) + steps
    over = np.minimum.accumulate((np.minimum(places, high) - steps)[::-1])[::-1] + steps
    result = np.empty(places.size, np.float64)
    result[order] = over
    return result


def plain(value: float) -> str:
    """Write a number of rounds or pulls.

    Examples
    --------
    >>> plain(12500.0), plain(0.5)
    ('12,500', '0.5')
    """
    return f"{value:,.0f}" if abs(value) >= 1 or value == 0 else f"{value:g}"
