"""The style that all figures share, and figures as bytes: equal figures give equal bytes."""

from __future__ import annotations

import base64
import io
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
SOFT = "#6b6b6b"
"""The colour of remarks, pull counts and arms that are not singled out."""

GRID = "#e6e6e6"

PALETTE = {"best": "#b5651d", "estimated": "#1f5a7a", "bounded": "#7a8b99", "unseen": "#b8b8b8", "truth": "#d1495b"}
"""One colour per verdict, distinct in hue and in lightness."""

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

FIXED: Any = {
    "text.parse_math": False,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Lucida Grande", "Verdana", "Arial"],
}
"""Settings that make figures look the same whatever the user has set."""

Numbers = NDArray[np.float64]

Look = dict[str, Any]  # keyword arguments of Matplotlib that say how something is drawn
WIDTH = 7.2  # width of a figure with one panel, in inches


class Line(NamedTuple):
    """Appearance of a curve."""

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
"""Curves take these in order; they differ in colour, lightness, marker and dash."""

_STYLE_LOCK = threading.RLock()  # matplotlib's settings and Python's warning filters are shared by all threads

_NO_METADATA: dict[str, Any] = {"Date": None, "Creator": None, "Format": None, "Type": None}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the shared style: dollar signs are plain text, and missing glyphs raise no warning."""
    import matplotlib as mpl

    with _STYLE_LOCK, mpl.rc_context(STYLE | FIXED), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(Glyph |Matplotlib currently does not support)")
        yield


def frame(height: float, *, left: float, right: float, top: float, bottom: float = 0.5) -> tuple[Figure, Axes]:
    """Return a figure with one panel, from its height and margins in inches.

    Margins computed from the text they hold are faster than a layout engine, which draws twice.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=150)
    across, along = WIDTH - left - right, height - top - bottom
    axes = figure.add_axes((left / WIDTH, bottom / height, across / WIDTH, along / height))
    axes.set_axisbelow(True)
    return figure, axes


def panels(count: int, *, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels of a size in inches, row by row, laid out by Matplotlib."""
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for each in axes[:count]:
        each.set_axisbelow(True)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format its file name ends in; nothing is left behind if that fails."""
    kind = Path(path).suffix[1:].lower()
    with styled(), written_whole(path) as temporary:
        figure.savefig(temporary, format=kind, metadata=_NO_METADATA if kind == "svg" else None)


def svg(figure: Figure) -> str:
    """Return a figure as the text of an SVG file, in which names stay text.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> svg(ActionLog.from_actions("ABAA").plot())[:20]
    '<?xml version="1.0" '
    """
    text = io.StringIO()
    with styled():
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return text.getvalue()


def png(figure: Figure, dpi: int = 150) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    data = io.BytesIO()
    with styled():
        figure.savefig(data, format="png", dpi=dpi)
    return data.getvalue()


def address(figure: Figure, *, as_dots: bool = False) -> str:
    """Return a `data:` address that holds the figure: as SVG, or as PNG where it has very many lines."""
    kind, data = ("png", png(figure)) if as_dots else ("svg+xml", svg(figure).encode("utf-8"))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
