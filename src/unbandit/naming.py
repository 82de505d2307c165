"""Things that are asked for by name: which of several demonstrations is meant."""

from __future__ import annotations

from collections.abc import Sequence

from unbandit.errors import ParameterError

__all__ = ["place_of"]


def place_of(demonstrations: Sequence[str], asked: object) -> int:
    """Return the place of a demonstration that is asked for by its name; of None, the first.

    Examples
    --------
    >>> place_of(("monday", "tuesday"), "tuesday"), place_of(("monday", "tuesday"), None)
    (1, 0)
    """
    if asked is None:
        return 0
    if str(asked) not in demonstrations:
        listed = ", ".join(demonstrations[:12]) + (", ..." if len(demonstrations) > 12 else "")
        raise ParameterError(f'expected one of {listed}; got "{asked}".', parameter="demonstration")
    return demonstrations.index(str(asked))
