"""Names, numbers and lists as people read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import partial

from unbandit.plots.naming import reach

__all__ = ["LONGEST", "counted", "interval", "listed", "number", "quoted", "share", "shortened", "shown"]

LONGEST = 80
"""Longer names are cut in the middle: their ends often tell them apart."""

ENDING = 20
LONGEST_MESSAGE = 2_000

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_ISOLATE, _END = "\u2068", "\u2069"


def shown(name: str, longest: int = LONGEST) -> str:
    """Return a name fit to be shown: cut where it is very long, without characters that only machines know.

    Examples
    --------
    >>> shown("B, large"), shown("tab\\there")
    ('B, large', 'tab here')
    >>> len(shown("x" * 100_000))
    80
    """
    if len(name) > longest:
        ending = min(ENDING, longest // 4)
        name = f"{name[: longest - ending - 1]}…{name[-ending:]}"
    return _CONTROLS.sub(lambda found: " " if found[0] in "\t\n\r" else "\ufffd", name)


def quoted(name: str) -> str:
    """Put a name in quotes; one that is written from right to left keeps to itself.

    Examples
    --------
    >>> quoted("A")
    '"A"'
    >>> [f"{ord(letter):04x}" for letter in quoted("אב")]
    ['0022', '2068', '05d0', '05d1', '2069', '0022']
    """
    name = shown(name)
    if any(unicodedata.bidirectional(letter) in ("R", "AL", "AN", "RLE", "RLO", "RLI") for letter in name):
        name = f"{_ISOLATE}{name}{_END}"
    return f'"{name}"'


def listed(names: Sequence[str], most: int = 4) -> str:
    """List names in a sentence; of many the first ones.

    Examples
    --------
    >>> listed(["A", "B", "C"])
    '"A", "B" and "C"'
    >>> listed([str(at) for at in range(9)], most=2)
    '"0", "1" and 7 more'
    """
    if len(names) > most + 1:
        return ", ".join(map(quoted, names[:most])) + f" and {len(names) - most:,} more"
    *first, last = map(quoted, names)
    return f"{', '.join(first)} and {last}" if first else last


def counted(count: int, thing: str, things: str | None = None) -> str:
    """Write how many there are.

    Examples
    --------
    >>> counted(1, "round"), counted(5_000, "round"), counted(2, "arm that", "arms that")
    ('1 round', '5,000 rounds', '2 arms that')
    """
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def number(value: float, digits: int = 4) -> str:
    """Write a number with so many digits that count, and a minus sign that is one.

    Examples
    --------
    >>> number(0.123456), number(-0.5), number(-0.0), number(1234.5), number(0.00001)
    ('0.1235', '−0.5', '0', '1,234', '1e−05')
    """
    value += 0.0  # no minus before a zero
    written = f"{value:,.0f}" if 1_000 <= abs(value) < 1_000_000 else f"{value:.{digits}g}"
    return written.replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 4) -> str:
    """Write an interval, or the one end that is known.

    Examples
    --------
    >>> interval(0.25, 0.5), interval(0.25, None), interval(None, 0.5), interval(None, None)
    ('0.25 to 0.5', 'at least 0.25', 'at most 0.5', '')
    """
    return reach(low, high, partial(number, digits=digits))


def share(level: float) -> str:
    """Write a level as a percentage.

    Examples
    --------
    >>> share(0.95), share(0.999)
    ('95%', '99.9%')
    """
    return f"{level * 100:.10g}%"


def shortened(message: str, arms: Sequence[str]) -> str:
    """Cut the very long names in a message, and a message that is long for another reason.

    Examples
    --------
    >>> len(shortened('Arm "' + "x" * 100_000 + '" is late.', ["x" * 100_000]))
    95
    """
    if len(message) > LONGEST:
        for arm in arms:
            if len(arm) > LONGEST:
                message = message.replace(arm, shown(arm))
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return shown(message, longest=LONGEST_MESSAGE)
