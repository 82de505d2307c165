"""Look for signs that a record was not made the way the estimator assumes, and say where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.comparison import Comparison
from unbandit.result import ESTIMATED, Notice

__all__ = [
    "broken_order",
    "coarse",
    "eliminated_among_many",
    "few_pulls",
    "near_best",
    "not_reconsidered",
    "opening",
    "several_active",
    "tied_best",
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


def opening(first: NDArray[np.int64], rounds: int, arms: tuple[str, ...]) -> list[Notice]:
    """Check that the first K rounds pull every arm once, in any order.

    `first` is the round of each arm's first pull, 0 if it was never pulled; `rounds` is the record's length.
    """
    count = len(arms)
    late = np.flatnonzero(first > count)
    missing = np.flatnonzero(first == 0)
    if late.size + missing.size == 0:
        return []
    # With fewer than K arms in the first K rounds, some round among them repeats an arm: the first is the one after
    # the unbroken stretch of new arms.
    fresh = np.sort(first[(first > 0) & (first <= count)])
    repeat = int(np.flatnonzero(np.append(fresh, 0) != np.arange(1, fresh.size + 2))[0]) + 1
    if repeat > rounds:
        return [
            Notice(
                "short-record",
                f"The record ends in round {rounds}, before all {count} arms have been pulled once: it says next to "
                "nothing about any arm.",
                round=rounds,
            )
        ]
    found = [
        Notice(
            "opening",
            f"The opening is not one pull of every arm: round {repeat} repeats an arm before all {count} have been "
            "pulled. The rule assumed would have pulled every arm once first; the estimates may be off.",
            round=repeat,
        )
    ]
    if late.size:
        at = late[np.argmin(first[late])]
        others = f" (and {late.size - 1} more arms after it)" if late.size > 1 else ""
        found.append(
            Notice(
                "late-arm",
                f'Arm "{arms[at]}" appears only in round {first[at]}{others}: does the log start in mid-run?',
                round=int(first[at]),
                arm=arms[at],
            )
        )
    return found


def tied_best(pulls: NDArray[np.int64], last: NDArray[np.int64] | None, arms: tuple[str, ...]) -> list[Notice]:
    """Warn if several arms share the highest pull count, so that "most pulled" does not name one.

    `last` is the round of each arm's last pull, if the order is known.
    """
    tied = np.flatnonzero(pulls == pulls.max())
    if tied.size < 2:
        return []
    names = ", ".join(f'"{arms[at]}"' for at in tied[:6]) + (", ..." if tied.size > 6 else "")
    return [
        Notice(
            "tied-best",
            f"The most-pulled arm is tied: {names} have {pulls.max()} pulls each. The first of them is taken as the "
            "best; gaps are to that arm.",
            round=None if last is None else int(last[tied].max()),
            arm=arms[tied[0]],
        )
    ]


def few_pulls(result: Comparison, arms: tuple[str, ...]) -> list[Notice]:
    """Tell of arms whose switching round came after so few pulls that their sample mean moves in steps."""
    few = np.flatnonzero((result.verdict == ESTIMATED) & (result.own < FEW_PULLS))
    if few.size == 0:
        return []
    at = few[np.argmin(result.own[few])]
    others = f" (and {few.size - 1} more)" if few.size > 1 else ""
    return [
        Notice(
            "few-pulls",
            f'Arm "{arms[at]}"{others} had fewer than {FEW_PULLS} pulls when the rule last turned from it: the '
            "gap is rather too small, which the interval allows for.",
            arm=arms[at],
        )
    ]


def near_best(result: Comparison, sigma: float, arms: tuple[str, ...]) -> list[Notice]:
    """Warn if so many arms are within two deviations of the most-pulled one that it may just be the luckiest."""
    with np.errstate(invalid="ignore"):
        close = result.gap < 2 * sigma * np.sqrt(1 / result.own + result.slope**2 / result.other)
    rivals = np.flatnonzero(close & (result.verdict == ESTIMATED))
    if rivals.size < CLOSE:
        return []
    best = arms[int(result.best.argmax())]
    return [
        Notice(
            "near-best",
            f'{rivals.size} arms are too close to "{best}", the most-pulled one, to tell apart: it may be the luckiest '
            "of them rather than the best. Where they are nearly equal, their gaps are too large, and 95% intervals of "
            "these arms hold the truth in about 85% to 90% of cases.",
            arm=best,
        )
    ]


def not_reconsidered(
    result: Comparison, at_the_end: NDArray[np.float64], last: NDArray[np.int64], sigma: float, arms: tuple[str, ...]
) -> list[Notice]:
    """Warn if the rule would have come back to an arm that the record never returns to.

    An index rule's best arm loses its bonus as it is pulled, so every other arm's turn comes again. The gap at the
    switching round and the gap `at_the_end` must therefore agree, but for noise.
    """
    deviation = sigma * np.sqrt(1 / result.own + result.slope**2 / result.other)
    with np.errstate(invalid="ignore"):
        off = np.where(result.own >= FEW_PULLS, (at_the_end - result.gap) / deviation, 0.0)
    strange = np.flatnonzero((result.verdict == ESTIMATED) & (off > FAR_OFF))
    if strange.size == 0:
        return []
    at = strange[np.argmin(last[strange])]
    others = f" (and {strange.size - 1} more)" if strange.size > 1 else ""
    return [
        Notice(
            "not-reconsidered",
            f'After round {last[at]} the record never returns to arm "{arms[at]}"{others}, though by its end the rule '
            "assumed would have. Another rule, or other parameters, may have made it; do not trust the estimates.",
            round=int(last[at]),
            arm=arms[at],
        )
    ]


def coarse(result: Comparison) -> list[Notice]:
    """Tell that a rule decided so rarely that gaps lie between two comparisons, some way apart."""
    with np.errstate(invalid="ignore"):
        between = (result.verdict == ESTIMATED) & (result.gap > result.below)
    if not between.any():
        return []
    said = (
        "The rule decides in batches or tests rarely: a gap lies between two of its decisions, the point halfway, and"
    )
    return [Notice("coarse", f"{said} the interval, which takes in both, is rather too long.")]


def several_active(best: NDArray[np.bool_], arms: tuple[str, ...]) -> list[Notice]:
    """Say that an elimination rule had not decided when the record ended."""
    active = np.flatnonzero(best)
    if active.size < 2:
        return []
    names = ", ".join(f'"{arms[at]}"' for at in active[:6]) + (", ..." if active.size > 6 else "")
    return [
        Notice(
            "unresolved",
            f"{active.size} arms were still active when the record ended ({names}): none of them is known to be best. "
            "Gaps are to the unknown best among them.",
        )
    ]


def broken_order(broken: int, arm: str) -> list[Notice]:
    """Say from which round on no elimination rule explains the record."""
    return [
        Notice(
            "order-broken",
            f'The order of an elimination rule is broken in round {broken}: arm "{arm}" is pulled again after its turn '
            "had passed. The record was made by another rule, or rows are missing; do not trust the estimates.",
            round=broken,
            arm=arm,
        )
    ]


def eliminated_among_many(
    result: Comparison, pulls: NDArray[np.int64], passed: NDArray[np.int64] | None, sigma: float, arms: tuple[str, ...]
) -> list[Notice]:
    """Warn of arms that were compared with the largest of many sample means when they were eliminated.

    Rivals are the arms still active then whose own gap is within two standard deviations of a sample mean: the more of
    them, the more the largest is too large by chance.
    """
    gone = np.flatnonzero(result.verdict == ESTIMATED)
    gaps = np.where(np.isnan(result.gap), 0.0, result.gap)  # an arm still active may be the best
    order = np.argsort(-pulls, kind="stable")
    found: list[tuple[int, int, int]] = []
    for arm in gone.tolist():
        later = order[: np.searchsorted(-pulls[order], -pulls[arm], side="right")]
        rivals = int(np.count_nonzero(gaps[later] < 2 * sigma / np.sqrt(pulls[arm])))
        if later.size >= MANY_ACTIVE or rivals >= MANY_RIVALS:
            found.append((arm, later.size, rivals))
    if not found:
        return []
    at, active, rivals = min(found, key=lambda item: -item[1] if passed is None else int(passed[item[0]]))
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    close = f", {rivals} of them too close to the best to tell apart" if rivals > 1 else ""
    return [
        Notice(
            "many-active",
            f'Arm "{arms[at]}"{others} was eliminated while {active} arms were active{close}: it was compared with the '
            "largest of their sample means. Where several are nearly equal, that is too large by chance, the gap is "
            "overestimated and the interval too short.",
            round=None if passed is None else int(passed[at]),
            arm=arms[at],
        )
    ]
