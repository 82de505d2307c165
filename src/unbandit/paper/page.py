"""The page: pictures, captions and claims in one file that needs no other."""

from __future__ import annotations

import base64
import struct
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

from unbandit._version import __version__
from unbandit.paper.claim import FAILS, HOLDS, UNTESTED, counted, interval, number, written

if TYPE_CHECKING:
    from unbandit.paper.reproduce import Reproduction

__all__ = ["page"]

MARKS = {HOLDS: "✓", FAILS: "✗", UNTESTED: "?"}
DOTS = 150
"""Dots an inch of the pictures."""
LOOKS = {HOLDS: "holds", FAILS: "fails", UNTESTED: "untested"}


def page(reproduction: Reproduction) -> str:
    """Return the page as HTML; all text is escaped, and nothing is fetched from elsewhere."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"written": written, "interval": interval, "number": number}
    environment.filters |= {"embedded": embedded, "inches": inches}
    template = resources.files("unbandit.paper").joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        it=reproduction,
        version=__version__,
        marks=MARKS,
        looks=LOOKS,
        fails=FAILS,
        counted=counted,
        took=took(reproduction.seconds),
        own=", ".join(counted(verdict, count) for verdict, count in reproduction.own_verdicts.items() if count),
    )


def embedded(path: Path) -> str:
    """Return a PNG as an address that holds the picture itself."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def inches(path: Path) -> tuple[float, float]:
    """Return how wide and how high a PNG of ours is on paper, from its header."""
    wide, high = struct.unpack(">II", path.read_bytes()[16:24])
    return round(wide / DOTS, 2), round(high / DOTS, 2)


def took(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> took(3.21), took(75), took(7300)
    ('3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
