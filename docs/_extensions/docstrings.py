"""Smooth over two places where our docstrings and the reader of numpydoc disagree.

A colon in the docstring of an attribute is a colon: what stands before it is no type. And several attributes that share
a description ("rule, method") are listed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

COLON, STAND_IN = ":", "\ue000"
BEFORE_NUMPYDOC, AFTER_NUMPYDOC = 400, 600

SHARED = re.compile(r":ivar (\w+(?:, \w+)+):(.*)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at docstrings before and after they are read as numpydoc."""
    app.connect("autodoc-process-docstring", hide, priority=BEFORE_NUMPYDOC)
    app.connect("autodoc-process-docstring", show, priority=AFTER_NUMPYDOC)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def hide(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Put something else in the place of an attribute's colons."""
    if what in ("attribute", "data", "property"):
        lines[:] = [line.replace(COLON, STAND_IN) for line in lines]


def show(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Put the colons back, and part attributes that share a description."""
    lines[:] = [line.replace(STAND_IN, COLON) for line in parted(lines)]


def parted(lines: list[str]) -> Iterator[str]:
    """Repeat a description for each of the attributes that it is of.

    Examples
    --------
    >>> list(parted([":ivar low, high: The ends", "                 of it."]))
    [':ivar low: The ends', '                 of it.', ':ivar high: The ends', '                 of it.']
    """
    for at, line in enumerate(lines):
        yield line if (shared := SHARED.match(line)) is None else f":ivar {shared[1].split(', ')[0]}:{shared[2]}"
        if shared is not None:
            more = list(takewhile(lambda other: other.startswith(" "), lines[at + 1 :]))
            for name in shared[1].split(", ")[1:]:
                yield from more
                yield f":ivar {name}:{shared[2]}"
