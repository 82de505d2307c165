"""Names: which demonstration is meant, and how an arm's name is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from unbandit.errors import ParameterError

__all__ = ["place_of", "short", "text_width"]

LONGEST = 24
"""Characters of a name that are shown."""


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
        raise ParameterError(f'demonstration: expected one of {listed}; got "{asked}".')
    return list(demonstrations).index(str(asked))


def short(name: str, longest: int = LONGEST) -> str:
    """Cut a long name, and take out what would not be a letter on paper.

    Examples
    --------
    >>> short("a" * 30)
    'aaaaaaaaaaaaaaaaaaaaaaa…'
    >>> short("two" + chr(10) + "lines" + chr(0))
    'two lines�'
    """
    cut = name if len(name) <= longest else name[: longest - 1] + "…"
    return "".join(_shown(letter) for letter in cut)


def _shown(letter: str) -> str:
    if letter.isprintable() or letter == "\u200d":  # the joiner of emoji
        return letter
    kind = unicodedata.category(letter)
    if kind in ("Zs", "Zl", "Zp") or letter in "\t\n\r\v\f":
        return " "
    return "" if kind == "Cf" else "\ufffd"  # marks that turn the direction of what follows are left out


def text_width(texts: Sequence[str], size: float = 9.0) -> float:
    """Return about how many inches the longest of some texts takes, in a font of so many points."""
    return max((sum(map(_advance, text)) for text in texts), default=0.0) * size / 72


def _advance(letter: str) -> float:
    """Return about how wide a letter is, in units of the font's size."""
    if letter in "iljI.,:;'|!ftr()[] -":
        return 0.4
    if letter in "mwMW@%" or unicodedata.east_asian_width(letter) in "WF":
        return 1.15
    return 0.72 if letter.isupper() else 0.64
