"""What the paper says, put to the test.

A claim is decided by the 95% interval of one statistic. It holds if the whole interval lies on the claimed side, does
not hold if the whole interval lies on the other side, and is left open where the interval reaches both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from unbandit.study.monte_carlo import Measured

__all__ = [
    "FAILS",
    "HOLDS",
    "UNTESTED",
    "VERDICTS",
    "Claim",
    "above",
    "below",
    "counted",
    "every",
    "interval",
    "within",
    "written",
]

HOLDS = "holds"
FAILS = "does not hold"
UNTESTED = "cannot be tested"
VERDICTS = (HOLDS, FAILS, UNTESTED)

Decision: TypeAlias = tuple[str, str]
"""A verdict, and the reason for it."""

OPEN = "the interval reaches both sides: more runs would tell"
NOTHING = "there is nothing to measure: too few runs gave an estimate"
SAME = "all groups of runs gave the same, which leaves its error unknown: more runs would tell"


@dataclass(frozen=True)
class Claim:
    """Hold one claim: what the paper says, what tests it, what was measured, and the verdict.

    Parameters
    ----------
    says
        What the paper says, in our words.
    statistic
        What was computed to test it, and what it is compared with.
    measured
        The statistic with its Monte-Carlo error; None where there is none.
    verdict, because
        `HOLDS`, `FAILS` or `UNTESTED`, and the reason: `Claim(says, statistic, slope, *below(slope, 0.0))`.
    ours
        Whether it is a question of ours, which the paper does not speak of.
    """

    says: str
    statistic: str
    measured: Measured | None
    verdict: str
    because: str
    ours: bool = False

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict: expected one of {', '.join(VERDICTS)}; got {self.verdict!r}.")


def below(measured: Measured, limit: float) -> Decision:
    """Decide whether the statistic is smaller than a limit.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> below(SimpleNamespace(value=-1.25, error=0.03, low=-1.31, high=-1.19, folds=20), 0.0)
    ('holds', 'the whole interval lies below 0')
    """
    return _decided(measured, HOLDS, FAILS, limit)


def above(measured: Measured, limit: float) -> Decision:
    """Decide whether the statistic is larger than a limit.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> above(SimpleNamespace(value=0.1, error=0.1, low=-0.11, high=0.31, folds=20), 0.0)
    ('cannot be tested', 'the interval reaches both sides: more runs would tell')
    """
    return _decided(measured, FAILS, HOLDS, limit)


def within(measured: Measured, low: float, high: float) -> Decision:
    """Decide whether the statistic lies between two limits.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> within(SimpleNamespace(value=-1.25, error=0.03, low=-1.31, high=-1.19, folds=20), -1.1, -0.9)
    ('does not hold', 'the whole interval lies outside −1.1 to −0.9')
    """
    if not _known(measured):
        return UNTESTED, _unknown(measured)
    limits = f"{number(low)} to {number(high)}"
    if low <= measured.low and measured.high <= high:
        return HOLDS, f"{_what(measured)} lies within {limits}"
    if measured.high < low or high < measured.low:
        return FAILS, f"{_what(measured)} lies outside {limits}"
    return UNTESTED, OPEN


def every(decisions: Iterable[Decision]) -> Decision:
    """Decide a claim about several statistics: it holds if all do, and does not hold if one does not.

    Examples
    --------
    >>> every([("holds", "a"), ("cannot be tested", "b"), ("does not hold", "c")])
    ('does not hold', 'c')
    >>> every([("holds", "a"), ("holds", "b")])
    ('holds', 'a; b')
    """
    given = list(decisions)
    if not given:
        return UNTESTED, NOTHING
    for verdict in (FAILS, UNTESTED):
        reasons = [because for found, because in given if found == verdict]
        if reasons:
            return verdict, "; ".join(dict.fromkeys(reasons))
    return HOLDS, "; ".join(dict.fromkeys(because for _, because in given))


def counted(verdict: str, count: int) -> str:
    """Write how many claims have a verdict.

    Examples
    --------
    >>> counted(HOLDS, 1), counted(HOLDS, 7), counted(FAILS, 0)
    ('1 holds', '7 hold', '0 do not hold')
    """
    several = {HOLDS: "hold", FAILS: "do not hold", UNTESTED: UNTESTED}
    return f"{count:,} {verdict if count == 1 else several[verdict]}"


def written(measured: Measured) -> str:
    """Write a value with its standard error, both to the error's first two digits.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> written(SimpleNamespace(value=-1.2496, error=0.0312))
    '−1.250 ± 0.031'
    >>> written(SimpleNamespace(value=1234.5, error=100.0))
    '1,234 ± 100'
    """
    if not math.isfinite(measured.value):
        return "-"
    if not (math.isfinite(measured.error) and measured.error > 0):
        return number(measured.value)
    return f"{_as_precise(measured.value, measured.error)} ± {_as_precise(measured.error, measured.error)}"


def interval(measured: Measured) -> str:
    """Write the 95% interval, as precisely as the value.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> interval(SimpleNamespace(low=-0.651, high=-0.2, error=0.1))
    '−0.65 to −0.20'
    """
    if not _known(measured):
        return "-"
    return f"{_as_precise(measured.low, measured.error)} to {_as_precise(measured.high, measured.error)}"


def number(value: float) -> str:
    """Write a number to three digits, with a proper minus sign, and a dash where there is none.

    Examples
    --------
    >>> number(-0.5), number(12345.6), number(0.000081234), number(math.nan)
    ('−0.5', '12,346', '0.0000812', '–')
    """
    if math.isnan(value):
        return "–"
    if 1e-7 < abs(value) < 1e-3:
        return _minus(f"{value:.{2 - math.floor(math.log10(abs(value)))}f}".rstrip("0"))
    return _minus(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")


def _decided(measured: Measured, if_below: str, if_above: str, limit: float) -> Decision:
    if not _known(measured):
        return UNTESTED, _unknown(measured)
    if measured.high < limit:
        return if_below, f"{_what(measured)} lies below {number(limit)}"
    if measured.low > limit:
        return if_above, f"{_what(measured)} lies above {number(limit)}"
    return UNTESTED, OPEN if measured.folds else f"the value is {number(limit)}"


def _known(measured: Measured) -> bool:
    """Tell whether there is an interval: what was simulated must have an error, what was computed has none."""
    there = math.isfinite(measured.low) and math.isfinite(measured.high)
    return there and (measured.low < measured.high or not measured.folds)


def _unknown(measured: Measured) -> str:
    return SAME if math.isfinite(measured.value) and measured.error == 0 else NOTHING


def _what(measured: Measured) -> str:
    """Say what lies there: an interval, or a value that has no error."""
    return "the whole interval" if measured.low < measured.high else "the value"


def _as_precise(value: float, error: float) -> str:
    """Write a number to the second digit of an error; in three digits where that would be very many or none."""
    if not error > 1e-9 * max(1.0, abs(value)):
        return number(value)
    digits = max(0, 1 - math.floor(math.log10(error)))
    return _minus(f"{round(value, digits) + 0.0:,.{digits}f}")  # no minus before a zero


def _minus(text: str) -> str:
    return text.replace("-", "−")
