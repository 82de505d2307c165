"""The report on paper: printed by a browser that is installed."""

from __future__ import annotations

import os

__all__ = ["find_browser", "write_pdf"]


def find_browser() -> str:
    """Return the program of an installed browser, or say which to install."""
    raise NotImplementedError


def write_pdf(html: str, path: str | os.PathLike[str]) -> None:
    """Print a page into a PDF; whole, or not at all."""
    raise NotImplementedError
