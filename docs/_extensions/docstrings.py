"""Keep a colon in the docstring of an attribute a colon: numpydoc would take what stands before it for a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

COLON, STAND_IN = ":", "\ue000"
BEFORE_NUMPYDOC, AFTER_NUMPYDOC = 400, 600


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at docstrings before and after they are read as numpydoc."""
    app.connect("autodoc-process-docstring", hide, priority=BEFORE_NUMPYDOC)
    app.connect("autodoc-process-docstring", show, priority=AFTER_NUMPYDOC)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def hide(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Put something else in the place of colons."""
    if what in ("attribute", "data", "property"):
        lines[:] = [line.replace(COLON, STAND_IN) for line in lines]


def show(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Put the colons back."""
    lines[:] = [line.replace(STAND_IN, COLON) for line in lines]
