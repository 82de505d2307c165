"""The pictures by name, in the order of the page."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from functools import cache

from unbandit.errors import ParameterError
from unbandit.paper.picture import Picture

__all__ = ["chosen", "pictures"]

FILES = (
    "ucb",
    "sae",
    "gap_decay",
    "naive",
    "battery",
    "battery_regimes",
    "battery_landscape",
    "gene",
    "sketch_exploration",
    "sketch_switching",
    "sketch_tradeoff",
    "gene_all",
    "coverage",
)
"""The files that hold the pictures; each has a tuple `PICTURES`."""


@cache
def pictures() -> dict[str, Picture]:
    """Return every picture by name: those of the paper first, then those that go beyond it."""
    found = [picture for file in FILES for picture in importlib.import_module(f"unbandit.paper.{file}").PICTURES]
    found.sort(key=lambda picture: picture.full_only)
    return {picture.name: picture for picture in found}


def chosen(names: Sequence[str] = (), *, full: bool = False) -> list[Picture]:
    """Return the pictures asked for, in the order of the page; without names all, the larger ones only if `full`.

    Raises
    ------
    ParameterError
        For a name that no picture has; it lists those there are.
    """
    known = pictures()
    for name in names:
        if name not in known:
            parts = [part for part in known if "," in name and part in name.split(",")]
            near = [" ".join(parts)] if parts else difflib.get_close_matches(name.lower(), known, 1)
            meant = f' Did you mean "{near[0]}"?' if near else ""
            raise ParameterError(f'expected one of {", ".join(known)}; got "{name}".{meant}', parameter="picture")
    if names:
        return [picture for picture in known.values() if picture.name in names]
    return [picture for picture in known.values() if full or not picture.full_only]
