"""Names and intervals as they are written in pictures and tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

__all__ = ["reach", "short", "text_width"]

LONGEST = 24
"""Characters of a name that are shown."""


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


def reach(low: float | None, high: float | None, write: Callable[[float], str]) -> str:
    """Write an interval, or the one end that is known, with numbers as `write` writes them.

    Examples
    --------
    >>> reach(0.25, 0.5, str), reach(0.25, None, str), reach(None, 0.5, str), reach(None, None, str)
    ('0.25 to 0.5', 'at least 0.25', 'at most 0.5', '')
    """
    if low is not None and high is not None:
        return f"{write(low)} to {write(high)}"
    if low is not None:
        return f"at least {write(low)}"
    return "" if high is None else f"at most {write(high)}"


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
