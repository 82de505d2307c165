"""The paper's claims: the statistics that test them, and the verdicts.

A claim is decided by the 95% interval of one statistic. It holds if the whole interval lies on the claimed side, does
not hold if the whole interval lies on the other side, and cannot be tested if the interval contains the limit.

Statistics over horizons work on replicates, arrays of (folds + 1, points), and return (folds + 1,): `measured` turns
them into a value with its error. They use only horizons at which nearly all runs have an estimate, and need three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unbandit.formatting import as_precise_as, minus
from unbandit.study.curves import Curve
from unbandit.study.monte_carlo import Measured, measured, slope

HOLDS = "holds"
FAILS = "does not hold"
UNTESTED = "cannot be tested"
VERDICTS = (HOLDS, FAILS, UNTESTED)

Decision: TypeAlias = tuple[str, str]  # a verdict, and the reason for it

Replicates = NDArray[np.float64]
Mask = NDArray[np.bool_]

OPEN = "the interval reaches both sides: more runs are needed"
NOTHING = "there is nothing to measure: too few runs gave an estimate"
SAME = "all groups of runs gave the same, which leaves its error unknown: more runs are needed"

FEWEST_HORIZONS = 3  # horizons that a statistic over them needs


@dataclass(frozen=True)
class Claim:
    """One claim: what the paper says, what tests it, what was measured, and the verdict."""

    says: str  # by the paper, in our words
    statistic: str  # what was computed to test it, and the limit it is compared with
    measured: Measured | None
    verdict: str  # `HOLDS`, `FAILS` or `UNTESTED`
    because: str
    ours: bool = False  # whether we ask this and the paper does not

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict: expected one of {', '.join(VERDICTS)}; got {self.verdict!r}.")

    @classmethod
    def below(cls, says: str, statistic: str, value: Measured, limit: float, *, ours: bool = False) -> Claim:
        """Claim that a statistic is smaller than a limit."""
        return cls(says, statistic, value, *_compared(value, limit, HOLDS, FAILS), ours=ours)

    @classmethod
    def above(cls, says: str, statistic: str, value: Measured, limit: float, *, ours: bool = False) -> Claim:
        """Claim that a statistic is larger than a limit."""
        return cls(says, statistic, value, *_compared(value, limit, FAILS, HOLDS), ours=ours)

    @classmethod
    def within(
        cls, says: str, statistic: str, value: Measured, limits: tuple[float, float], *, ours: bool = False
    ) -> Claim:
        """Claim that a statistic lies between two limits."""
        return cls(says, statistic, value, *_between(value, *limits), ours=ours)


def _compared(value: Measured, limit: float, if_below: str, if_above: str) -> Decision:
    if not _has_interval(value):
        return UNTESTED, _why_unknown(value)
    if value.high < limit:
        return if_below, f"{_subject(value)} lies below {number(limit)}"
    if value.low > limit:
        return if_above, f"{_subject(value)} lies above {number(limit)}"
    return UNTESTED, OPEN if value.folds else f"the value is {number(limit)}"


def _between(value: Measured, low: float, high: float) -> Decision:
    if not _has_interval(value):
        return UNTESTED, _why_unknown(value)
    limits = f"{number(low)} to {number(high)}"
    if low <= value.low and value.high <= high:
        return HOLDS, f"{_subject(value)} lies within {limits}"
    if value.high < low or high < value.low:
        return FAILS, f"{_subject(value)} lies outside {limits}"
    return UNTESTED, OPEN


def every(decisions: Iterable[Decision]) -> Decision:
    """Decide a claim about several statistics: it holds if all do, and does not hold if one does not."""
    given = list(decisions)
    if not given:
        return UNTESTED, NOTHING
    worst = next(verdict for verdict in (FAILS, UNTESTED, HOLDS) if verdict in dict(given))
    return worst, "; ".join(dict.fromkeys(because for verdict, because in given if verdict == worst))


def _has_interval(value: Measured) -> bool:
    """Return whether there is an interval: a simulated value must have an error, a computed one has none."""
    finite = math.isfinite(value.low) and math.isfinite(value.high)
    return finite and (value.low < value.high or not value.folds)


def _why_unknown(value: Measured) -> str:
    return SAME if math.isfinite(value.value) and value.error == 0 else NOTHING


def _subject(value: Measured) -> str:
    return "the whole interval" if value.low < value.high else "the value"


def within_range(curve: Curve, low: float, high: float) -> Mask:
    """Return which points have a horizon from `low` to `high`, and an estimate in nearly all of their runs."""
    return np.asarray((curve.horizon >= low) & (curve.horizon <= high) & curve.usable)


def used(curve: Curve, where: Mask) -> str:
    """Write which of a curve's horizons a statistic rests on."""
    horizons = curve.horizon[where]
    if horizons.size < FEWEST_HORIZONS:
        return f"{horizons.size} of {curve.horizon.size} horizons can be used"
    return f"{horizons.size} horizons, T from {horizons.min():,.0f} to {horizons.max():,.0f}"


def regret_slope(curve: Curve, where: Mask) -> Measured:
    """Return the slope of log regret against log T."""
    return measured(slope(np.log(curve.horizon), np.log(curve.regret), where))


def error_slope(curve: Curve, where: Mask) -> Replicates:
    """Return the slope of log mean squared error against log T."""
    if where.sum() < FEWEST_HORIZONS:
        return np.full(len(curve.mse), np.nan)
    return slope(np.log(curve.horizon), _log(curve.mse), where)


def error_falls(says: str, curve: Curve, where: Mask | None = None) -> Claim:
    """Claim that the error falls with the horizon."""
    there = curve.usable if where is None else where
    what = f"slope of log MSE on log T, below 0; {used(curve, there)}"
    return Claim.below(says, what, measured(error_slope(curve, there)), 0.0)


def mean_ratio(first: Replicates, second: Replicates, where: Mask) -> Measured:
    """Return the geometric mean, over the points, of one curve divided by another."""
    if where.sum() < FEWEST_HORIZONS:
        return measured(np.full(len(first), np.nan))
    return measured(np.exp((_log(first) - _log(second))[:, where].mean(axis=1)))


def distance(x: tuple[Replicates, Replicates], y: tuple[Replicates, Replicates]) -> Replicates:
    """Return the factor by which the second curve lies above the first at equal x, on logarithmic axes.

    Both are fitted by straight lines of one common slope; the factor is the distance between the two lines.
    """
    log_x, log_y = [_log(values) for values in x], [_log(values) for values in y]
    if any(values.shape[1] < FEWEST_HORIZONS for values in log_x):
        return np.full(len(log_x[0]), np.nan)

    def centred(values: Replicates) -> Replicates:
        return np.asarray(values - values.mean(axis=1, keepdims=True))

    products = sum((centred(a) * centred(b)).sum(axis=1) for a, b in zip(log_x, log_y, strict=True))
    squares = sum(np.square(centred(a)).sum(axis=1) for a in log_x)
    heights = [b.mean(axis=1) - products / squares * a.mean(axis=1) for a, b in zip(log_x, log_y, strict=True)]
    return np.asarray(np.exp(heights[1] - heights[0]))


def _log(values: Replicates) -> Replicates:
    """Return logarithms; NaN of what is not positive."""
    return np.log(np.where(values > 0, values, np.nan))


def counted(verdict: str, count: int) -> str:
    """Write how many claims have a verdict: `1 holds`, `7 hold`, `0 do not hold`."""
    several = {HOLDS: "hold", FAILS: "do not hold", UNTESTED: UNTESTED}
    return f"{count:,} {verdict if count == 1 else several[verdict]}"


def written(value: Measured) -> str:
    """Write a value with its standard error, both to the error's first two digits: `−1.250 ± 0.031`."""
    if not math.isfinite(value.value):
        return "-"
    if not (math.isfinite(value.error) and value.error > 0):
        return number(value.value)
    return f"{as_precise_as(value.error, value.value)} ± {as_precise_as(value.error, value.error)}"


def interval(value: Measured) -> str:
    """Write the 95% interval, as precisely as the value: `−0.65 to −0.20`."""
    if not _has_interval(value):
        return "-"
    return f"{as_precise_as(value.error, value.low)} to {as_precise_as(value.error, value.high)}"


def number(value: float) -> str:
    """Write a number to three digits, small ones too without a power of ten: `−0.5`, `12,346`, `0.0000812`."""
    if math.isnan(value):
        return "–"
    if 1e-7 < abs(value) < 1e-3:
        return minus(f"{value:.{2 - math.floor(math.log10(abs(value)))}f}".rstrip("0"))
    return minus(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")
