"""Look for signs that demonstrations were not made the way the estimator assumes: which ones, and which of their arms.

Every check is asked of many demonstrations at once, or of one; `telling` has the words for what is found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.demonstrators.width import RegretWidth
from unbandit.estimators.compare import Reading
from unbandit.result import ESTIMATED

__all__ = [
    "FEW_PULLS",
    "active",
    "among_many",
    "any_arm",
    "between_decisions",
    "broken",
    "few_pulls",
    "late",
    "near_best",
    "not_reconsidered",
    "odd_opening",
    "short_horizon",
    "short_record",
    "tied",
]

FEW_PULLS = 10
"""Below this many pulls at the switching round, an index moves far at one pull: the point is rather too small."""

FAR_OFF = 2.5
"""By how many standard deviations the gaps at the switching round and at the end may differ."""

MANY_ACTIVE = 8
"""From this many active arms on, a comparison with the largest sample mean is worth a warning."""

MANY_RIVALS = 4
"""From this many nearly equal ones on, plain 95% intervals are too short (tests/statistical shows it)."""

CLOSE = 6
"""From this many arms on that are too close to the most-pulled one, it is likely the luckiest of several."""

Marks = NDArray[np.bool_]
Counts = NDArray[np.int64]


def any_arm(marks: Marks) -> Marks:
    """Tell for each demonstration whether any of its arms is marked; quickly where none is in any.

    Examples
    --------
    >>> any_arm(np.array([[False, True], [False, False]])).tolist()
    [True, False]
    """
    return np.asarray(marks.any(axis=-1) if marks.any() else np.zeros(marks.shape[:-1], np.bool_))


def odd_opening(seen: Reading) -> Marks:
    """Mark demonstrations whose first K rounds do not pull every arm once, in any order, though they might have."""
    first = seen.tallies.first
    odd = any_arm((first == 0) | (first > first.shape[-1]))
    return np.asarray(odd & ~short_record(seen))


def short_record(seen: Reading) -> Marks:
    """Mark demonstrations that end before every arm has been pulled once, each of them at most once."""
    first = seen.tallies.first
    short = seen.lengths < first.shape[-1]
    return np.asarray(short & (np.count_nonzero(first, axis=-1) == seen.lengths)) if short.any() else short


def late(seen: Reading) -> Marks:
    """Mark arms that are first pulled after the first K rounds."""
    return np.asarray(seen.tallies.first > seen.tallies.first.shape[-1])


def tied(seen: Reading) -> Marks:
    """Mark arms that share the highest pull count with others."""
    pulls, best = seen.tallies.pulls, seen.comparison.best
    others = (pulls == np.take_along_axis(pulls, best.argmax(axis=-1)[..., None], axis=-1)) & ~best
    return np.asarray(others | (best & any_arm(others)[..., None]))


def few_pulls(seen: Reading) -> Marks:
    """Mark arms whose switching round came after so few pulls that their sample mean moves in steps."""
    with np.errstate(invalid="ignore"):
        return np.asarray((seen.comparison.verdict == ESTIMATED) & (seen.comparison.own < FEW_PULLS))


def near_best(seen: Reading) -> Marks:
    """Mark arms within two deviations of the most-pulled one, if there are so many that it may just be the luckiest."""
    result = seen.comparison
    if result.gap.shape[-1] <= CLOSE:
        return np.zeros(result.gap.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        close = result.gap < 2 * seen.deviation
    rivals = close & (result.verdict == ESTIMATED)
    return np.asarray(rivals & (rivals.sum(axis=-1, keepdims=True) >= CLOSE))


def not_reconsidered(seen: Reading) -> Marks:
    """Mark arms to which the rule would have come back, and the record never returns.

    An index rule's best arm loses its bonus as it is pulled, so every other arm's turn comes again. The gap at the
    switching round and the gap at the end must therefore agree, but for noise.
    """
    result = seen.comparison
    assert seen.at_the_end is not None
    with np.errstate(invalid="ignore"):
        off = (seen.at_the_end - result.gap) / seen.deviation
        return np.asarray((result.verdict == ESTIMATED) & (result.own >= FEW_PULLS) & (off > FAR_OFF))


def between_decisions(seen: Reading) -> Marks:
    """Mark arms whose gap lies between two of the rule's decisions, some way apart."""
    with np.errstate(invalid="ignore"):
        return np.asarray((seen.comparison.verdict == ESTIMATED) & (seen.comparison.gap > seen.comparison.below))


def active(seen: Reading) -> Marks:
    """Mark arms of an elimination rule that were still active at the end, if there are several."""
    best = seen.comparison.best
    return np.asarray(best & (best.sum(axis=-1, keepdims=True) > 1))


def broken(seen: Reading) -> Marks:
    """Mark demonstrations that no elimination rule explains."""
    return np.asarray(seen.tallies.turns[1] > 0)


def among_many(seen: Reading) -> tuple[Marks, Counts, Counts]:
    """Mark arms that were compared with the largest of many sample means when they were eliminated.

    Returns them with how many arms were active then, and how many of those are rivals: their own gap is within two
    standard deviations of a sample mean. The more of them, the more the largest is too large by chance.
    """
    result, pulls = seen.comparison, seen.tallies.pulls
    gaps = np.where(np.isnan(result.gap), 0.0, result.gap)  # an arm still active may be the best
    with np.errstate(divide="ignore"):
        near = 2 * seen.sigma / np.sqrt(pulls)
    stayed, rivals = np.zeros(pulls.shape, np.int64), np.zeros(pulls.shape, np.int64)
    for arm in range(pulls.shape[-1]):
        later = pulls[..., [arm]] >= pulls
        stayed += later
        rivals += later & (gaps[..., [arm]] < near)
    gone = result.verdict == ESTIMATED
    return gone & ((stayed >= MANY_ACTIVE) | (rivals >= MANY_RIVALS)), stayed, rivals


def short_horizon(seen: Reading) -> Marks:
    """Mark demonstrations whose horizon is too short for Theorem 2, at the estimated gaps."""
    result, rule = seen.comparison, seen.rule
    estimated = result.verdict == ESTIMATED
    if not isinstance(rule, RegretWidth) or not estimated.any():
        return np.zeros(estimated.shape[:-1], np.bool_)
    with np.errstate(invalid="ignore"):
        usable = estimated & (result.gap > 0)
    endless = any_arm(estimated & ~usable)
    at_gap_1 = theory.kappa(1.0, seen.horizon, rule.alpha, rule.factor)
    asked = 16 * at_gap_1 * (1 / np.where(usable, np.square(result.gap), np.inf)).sum(axis=-1)
    return np.asarray(endless | (seen.horizon < asked))
