"""Numbers, shares, intervals, names and lists as text, for tables, messages, reports, figures and pages."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from unbandit.errors import CONTROL

LONGEST_NAME = 80
"""Characters of a name in running text; a longer one is cut in the middle, since names often differ at their ends."""

LONGEST_LABEL = 24  # characters of a name in a figure or a narrow table
BEYOND_DOUBT = 46.0  # nats from which on nobody needs to know how many: more than 10^19 times

LONGEST_MESSAGE = 2_000


class Unit(NamedTuple):
    """Unit in which values are shown: its name, and how many of it one unit of the log's rewards is."""

    name: str
    factor: float

    def __str__(self) -> str:
        return f"{self.name}={repr(self.factor).removesuffix('.0')}"

    def given(self, value: float) -> str:
        """Write a number of the log's rewards, and what it is in this unit."""
        return f"{number(value)} ({number(self.factor * value)} {self.name})"


_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"


def minus(text: str) -> str:
    """Put a proper minus sign in place of hyphens."""
    return text.replace("-", "−")


def number(value: float | None, digits: int = 4, missing: str = "-") -> str:
    """Write a number to some significant digits, with thousands separated and a proper minus sign."""
    if value is None or math.isnan(value):
        return missing
    value += 0.0  # no minus before a zero
    return minus(f"{value:,.0f}" if 1_000 <= abs(value) < 1_000_000 else f"{value:.{digits}g}")


def short_numbers(text: str) -> str:
    """Write numbers of many decimals in a text to four digits: `scale=1.4142135623730951` as `scale=1.414`."""
    return re.sub(r"\d+\.\d{5,}", lambda digits: f"{float(digits[0]):.4g}", text)


def json_number(value: float) -> float | None:
    """Return a number as JSON has it: null where it is not finite."""
    return float(value) if math.isfinite(value) else None


def fixed(value: float | None, digits: int, missing: str = "-") -> str:
    """Write a number to a fixed number of decimals, with a proper minus sign."""
    return missing if value is None or math.isnan(value) else minus(f"{round(value, digits) + 0.0:,.{digits}f}")


def as_precise_as(error: float, value: float) -> str:
    """Write a number to the second digit of its error; to three digits where there is no error."""
    if not error > 1e-9 * max(1.0, abs(value)):
        return number(value, 3)
    return fixed(value, max(0, 1 - math.floor(math.log10(error))))


def with_error(value: float | None, error: float | None, missing: str = "-") -> str:
    """Write a number with its standard error."""
    if value is None or not math.isfinite(value):
        return missing
    return f"{value:.3g} ± {error:.2g}" if error and math.isfinite(error) else f"{value:.3g}"


def share(value: float | None, digits: int = 10, missing: str = "-") -> str:
    """Write a share as a percentage.

    >>> share(0.95), share(0.9971, 2), share(None)
    ('95%', '100%', '-')
    """
    return missing if value is None or math.isnan(value) else f"{float(f'{value * 100:.{digits}g}'):.{digits + 1}g}%"


def column_share(value: float) -> str:
    """Write a share as a percentage among others of its column: all have one decimal.

    >>> column_share(0.125), column_share(0.0), column_share(0.0001)
    ('12.5%', '0.0%', '<0.1%')
    """
    return "<0.1%" if 0 < value < 0.0005 else f"{value * 100:.1f}%"


def probability(value: float) -> str:
    """Write a probability to three decimals, never as certain."""
    if value < 0.0005:
        return "below 0.001"
    return "above 0.999" if value > 0.9995 else f"{value:.3f}"


def simulated(p_value: float, number: int) -> str:
    """Write in how many of some simulations something is as far out, the log being counted among them.

    >>> simulated(0.0025, 399), simulated(0.005, 399), simulated(0.0, 399)
    ('none of 399 simulations', '1 of 399 simulations', 'none of 399 simulations')
    """
    return f"{max(round(p_value * (number + 1)) - 1, 0) or 'none'} of {number:,} simulations"


def times(logarithm: float) -> str:
    """Write how many times more probable something is, given the natural logarithm of it; large ones as a power of 10.

    >>> times(0.0), times(math.log(20)), times(math.log(4_700)), times(100.0)
    ('1', '20', '4,700', '10^43')
    """
    tens = logarithm / math.log(10)
    if tens >= 6:
        return f"10^{tens:,.0f}"
    ratio = math.exp(logarithm)
    return f"{float(f'{ratio:.2g}'):,.{0 if ratio >= 9.95 or ratio == 1 else 1}f}"


def more_probable(logarithm: float) -> str:
    """Write how much more probable something is, given the natural logarithm of the ratio, after "makes it".

    >>> more_probable(math.log(900)), more_probable(800.0)
    ('900 times as probable', 'more probable, beyond any doubt')
    """
    if logarithm > BEYOND_DOUBT:
        return "more probable, beyond any doubt"
    return f"{times(logarithm)} times as probable"


def interval(low: float | None, high: float | None, write: Callable[[float], str] = number) -> str:
    """Write an interval, or the one end that is known; nothing where both are one value, which was given.

    >>> interval(0.5, 1.0), interval(0.5, None), interval(1.0, 1.0)
    ('0.5 to 1', 'at least 0.5', '')
    """
    if low is not None and low == high:
        return ""
    if low is not None and high is not None:
        return f"{write(low)} to {write(high)}"
    if low is not None:
        return f"at least {write(low)}"
    return "" if high is None else f"at most {write(high)}"


def counted(count: int, thing: str, things: str | None = None) -> str:
    """Write how many there are of a thing."""
    return f"{count:,} {thing if count == 1 else things or plural(thing)}"


def plural(noun: str) -> str:
    """Return the plural of what a user may call a person, an animal or a run.

    >>> [plural(noun) for noun in ("subject", "person", "mouse", "city", "class")]
    ['subjects', 'people', 'mice', 'cities', 'classes']
    """
    if noun in (others := {"person": "people", "child": "children", "mouse": "mice", "series": "series"}):
        return others[noun]
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def size(count: int) -> str:
    """Write a number of bytes."""
    for unit, amount in (("GB", 1024**3), ("MB", 1024**2), ("kB", 1024)):
        if count >= amount:
            return f"{count / amount:.3g} {unit}"
    return f"{count} bytes"


def duration(seconds: float) -> str:
    """Write a time."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s".removesuffix(" 0 s") if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table in Markdown, as lines."""
    lines = (headings, ["---"] * len(headings), *rows)
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines]


def shown(name: str, longest: int = LONGEST_NAME) -> str:
    """Make a name fit for running text: cut in the middle where it is long, without characters that nobody sees."""
    if len(name) > longest:
        ending = min(20, longest // 4)
        name = f"{name[: longest - ending - 1]}…{name[-ending:]}"
    return CONTROL.sub(lambda match: _printable(match[0]), name)


def label(name: str, longest: int = LONGEST_LABEL) -> str:
    """Make a name fit for a figure: cut at its end, without characters that have no shape."""
    cut = name if len(name) <= longest else name[: longest - 1] + "…"
    return "".join(map(_printable, cut))


def _printable(letter: str) -> str:
    if letter.isprintable() or letter == "\u200d":  # the joiner of emoji
        return letter
    kind = unicodedata.category(letter)
    if kind in ("Zs", "Zl", "Zp") or letter in "\t\n\r\v\f":
        return " "
    return "" if kind == "Cf" else "\ufffd"  # marks that turn the direction of what follows are left out


def quoted(name: str) -> str:
    """Put a name in quotes; a right-to-left name is isolated from the text around it."""
    name = shown(name)
    if any(unicodedata.bidirectional(letter) in ("R", "AL", "AN", "RLE", "RLO", "RLI") for letter in name):
        name = f"{_ISOLATE}{name}{_END_ISOLATE}"
    return f'"{name}"'


def listed(names: Sequence[str], most: int = 4) -> str:
    """List names in a sentence, quoted; of many the first ones."""
    if len(names) > most + 1:
        return ", ".join(map(quoted, names[:most])) + f" and {len(names) - most:,} more"
    return joined(map(quoted, names))


def ordinal(place: int) -> str:
    """Write a place in an order: "third", "25th"."""
    if place <= 5:
        return ("first", "second", "third", "fourth", "fifth")[place - 1]
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place:,}{ending}"


def capitalise(words: str) -> str:
    """Return a text with a capital first letter."""
    return words[:1].upper() + words[1:]


def joined(words: Iterable[str], last: str = "and") -> str:
    """Join words as a sentence does."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def by_reason(reasons: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Join the names that share a reason, in the order in which reasons first appear.

    >>> by_reason([("ucb", "too late"), ("sae", "too early"), ("moss", "too late")])
    {'ucb, moss': 'too late', 'sae': 'too early'}
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons:
        names.setdefault(reason, []).append(name)
    return {", ".join(each): reason for reason, each in names.items()}


def shortened(message: str, names: Sequence[str]) -> str:
    """Cut the very long names within a message, and the message itself where it is still too long."""
    if len(message) > LONGEST_NAME:
        for name in names:
            if len(name) > LONGEST_NAME:
                message = message.replace(name, shown(name))
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return shown(message, longest=LONGEST_MESSAGE)
