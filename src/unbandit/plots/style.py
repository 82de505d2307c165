"""The house style: one ink, few colours, and a figure whose margins fit the names that stand in them."""

from __future__ import annotations

import base64
import io
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbandit.files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

OURS: Any = {
    "text.parse_math": False,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Lucida Grande", "Verdana", "Arial"],
}
"""What the figures of this room add, so that they look the same whatever a user has set."""

Look = dict[str, Any]
"""How something is drawn, in the words of the drawing library."""

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

    with _ONE_AT_A_TIME, mpl.rc_context(STYLE | OURS), warnings.catch_warnings():
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


NAMELESS: dict[str, Any] = {"Date": None, "Creator": None, "Format": None, "Type": None}
"""What an SVG file need not say of itself."""


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that its name says, whole or not at all; equal figures give equal files."""
    kind = Path(path).suffix[1:].lower()
    with styled(), written_whole(path) as temporary:
        figure.savefig(temporary, format=kind, metadata=NAMELESS if kind == "svg" else None)


def svg(figure: Figure) -> str:
    """Return a figure as the text of an SVG file; its names are text that the reader's own fonts draw.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> svg(ActionLog.from_actions("ABAA").plot())[:20]
    '<?xml version="1.0" '
    """
    written = io.StringIO()
    with styled():
        figure.savefig(written, format="svg", metadata=NAMELESS)
    return written.getvalue()


def png(figure: Figure, dpi: int = 150) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    written = io.BytesIO()
    with styled():
        figure.savefig(written, format="png", dpi=dpi)
    return written.getvalue()


def address(figure: Figure, *, as_dots: bool = False) -> str:
    """Return a `data:` address that holds the figure itself: an SVG file, or a PNG file of very many lines."""
    kind, data = ("png", png(figure)) if as_dots else ("svg+xml", svg(figure).encode("utf-8"))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
