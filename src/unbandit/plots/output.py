"""From a figure to bytes: equal figures give equal ones."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbandit.files import written_whole
from unbandit.plots.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["address", "png", "save", "svg"]

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
