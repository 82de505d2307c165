"""Put what was found in demonstrations into words: one notice each, or of many alike one for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.demonstrators import Demonstrator, EliminationRule
from unbandit.demonstrators.width import RegretWidth
from unbandit.estimators import checks
from unbandit.estimators.comparison import Method
from unbandit.estimators.compare import Reading
from unbandit.result import ESTIMATED, Notice

__all__ = ["MOST", "Check", "checks_of", "demonstrations_behind", "told"]

MOST = 20
"""Of so many demonstrations, at most, each has a notice of its own; of more, one notice tells how many they are."""

Arms = tuple[str, ...]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Check:
    """Hold a thing to look for: which demonstrations show it, and what is to be said of one of them."""

    code: str
    kind: Literal["warning", "note"]
    found: Callable[[Reading], Marks]
    tell: Callable[[Reading, Arms], Notice]


def checks_of(rule: Demonstrator, method: Method, ordered: bool) -> list[Check]:
    """Return what is looked for in demonstrations that are read so, in the order in which it is said."""
    opening = [OPENING, SHORT_RECORD, LATE_ARM] if ordered else []
    theorem: list[Check] = [SHORT_HORIZON] if isinstance(rule, RegretWidth) else []
    if method == "naive":
        return [*opening, TIED_BEST]
    if isinstance(rule, EliminationRule):
        read = [*opening, ORDER_BROKEN] if method == "switching" else []
        return [*read, UNRESOLVED, MANY_ACTIVE, COARSE, *theorem]
    read = [NOT_RECONSIDERED] if method == "switching" else []
    return [*read, NEAR_BEST, *opening, TIED_BEST, FEW_PULLS, COARSE, *theorem]


def told(places: NDArray[np.int64], names: Sequence[str], tell: Callable[[int], Notice]) -> list[tuple[int, Notice]]:
    """Return a notice for each demonstration in these places, with its place; of very many one for all of them.

    Examples
    --------
    >>> names = [f"run {at}" for at in range(1_000)]
    >>> told(np.arange(5, 505), names, lambda at: Notice("x", "It is so."))[0][1].message
    'In 500 of 1,000 demonstrations, the first being "run 5": It is so.'
    """
    if places.size <= MOST:
        named = [names[at] if len(names) > 1 else None for at in places.tolist()]
        return [(at, replace(tell(at), demonstration=name)) for at, name in zip(places.tolist(), named, strict=True)]
    first = int(places[0])
    notice = tell(first)
    where = f'In {places.size:,} of {len(names):,} demonstrations, the first being "{names[first]}"'
    return [(first, replace(notice, message=f"{where}: {notice.message}", round=None, arm=None))]


def _any(marked: Callable[[Reading], Marks]) -> Callable[[Reading], Marks]:
    """Look for demonstrations that have such an arm."""
    return lambda seen: checks.any_arm(marked(seen))


def _more(count: int, words: str = "more") -> str:
    return f" (and {count - 1} {words})" if count > 1 else ""


def _quoted(arms: Arms, places: NDArray[np.int64]) -> str:
    return ", ".join(f'"{arms[at]}"' for at in places[:6]) + (", ..." if places.size > 6 else "")


def _short_record(seen: Reading, arms: Arms) -> Notice:
    said = (
        f"The record ends in round {seen.lengths}, before all {len(arms)} arms have been pulled once: it says next to "
        "nothing about any arm."
    )
    return Notice("short-record", said, round=int(seen.lengths))


def _opening(seen: Reading, arms: Arms) -> Notice:
    # With fewer than K arms in the first K rounds, some round among them repeats an arm: the first is the one after
    # the unbroken stretch of new arms.
    first, count = seen.tallies.first, len(arms)
    fresh = np.sort(first[(first > 0) & (first <= count)])
    repeat = int(np.flatnonzero(np.append(fresh, 0) != np.arange(1, fresh.size + 2))[0]) + 1
    said = (
        f"The opening is not one pull of every arm: round {repeat} repeats an arm before all {count} have been "
        "pulled. The rule assumed would have pulled every arm once first; the estimates may be off."
    )
    return Notice("opening", said, round=repeat)


def _late_arm(seen: Reading, arms: Arms) -> Notice:
    first, late = seen.tallies.first, np.flatnonzero(checks.late(seen))
    at = late[np.argmin(first[late])]
    others = _more(late.size, "more arms after it")
    said = f'Arm "{arms[at]}" appears only in round {first[at]}{others}: does the log start in mid-run?'
    return Notice("late-arm", said, round=int(first[at]), arm=arms[at])


def _tied_best(seen: Reading, arms: Arms) -> Notice:
    tied, pulls = np.flatnonzero(checks.tied(seen)), seen.tallies.pulls
    said = (
        f"The most-pulled arm is tied: {_quoted(arms, tied)} have {pulls.max()} pulls each. The first of them is taken "
        "as the best; gaps are to that arm."
    )
    last = int(seen.tallies.last[tied].max()) if seen.ordered else None
    return Notice("tied-best", said, round=last, arm=arms[tied[0]])


def _few_pulls(seen: Reading, arms: Arms) -> Notice:
    few = np.flatnonzero(checks.few_pulls(seen))
    at = few[np.argmin(seen.comparison.own[few])]
    said = (
        f'Arm "{arms[at]}"{_more(few.size)} had fewer than {checks.FEW_PULLS} pulls when the rule last turned from it: '
        "the gap is rather too small, which the interval allows for."
    )
    return Notice("few-pulls", said, arm=arms[at])


def _near_best(seen: Reading, arms: Arms) -> Notice:
    best = arms[int(seen.comparison.best.argmax())]
    said = (
        f'{np.count_nonzero(checks.near_best(seen))} arms are too close to "{best}", the most-pulled one, to tell '
        "apart: it may be the luckiest of them rather than the best. Where they are nearly equal, their gaps are too "
        "large, and 95% intervals of these arms hold the truth in about 85% to 90% of cases."
    )
    return Notice("near-best", said, arm=best)


def _not_reconsidered(seen: Reading, arms: Arms) -> Notice:
    strange, last = np.flatnonzero(checks.not_reconsidered(seen)), seen.tallies.last
    at = strange[np.argmin(last[strange])]
    said = (
        f'After round {last[at]} the record never returns to arm "{arms[at]}"{_more(strange.size)}, though by its end '
        "the rule assumed would have. Another rule, or other parameters, may have made it; do not trust the estimates."
    )
    return Notice("not-reconsidered", said, round=int(last[at]), arm=arms[at])


def _coarse(seen: Reading, arms: Arms) -> Notice:
    said = (
        "The rule decides in batches or tests rarely: a gap lies between two of its decisions, the point halfway, and"
    )
    return Notice("coarse", f"{said} the interval, which takes in both, is rather too long.")


def _unresolved(seen: Reading, arms: Arms) -> Notice:
    active = np.flatnonzero(checks.active(seen))
    said = (
        f"{active.size} arms were still active when the record ended ({_quoted(arms, active)}): none of them is known "
        "to be best. Gaps are to the unknown best among them."
    )
    return Notice("unresolved", said)


def _order_broken(seen: Reading, arms: Arms) -> Notice:
    _, broken, arm = seen.tallies.turns
    said = (
        f'The order of an elimination rule is broken in round {broken}: arm "{arms[int(arm)]}" is pulled again after '
        "its turn had passed. The record was made by another rule, or rows are missing; do not trust the estimates."
    )
    return Notice("order-broken", said, round=int(broken), arm=arms[int(arm)])


def _many_active(seen: Reading, arms: Arms) -> Notice:
    marks, stayed, rivals = checks.among_many(seen)
    found, passed = np.flatnonzero(marks), seen.tallies.passed if seen.method == "switching" else None
    at = int(found[np.argmin((-stayed if passed is None else passed)[found])])
    close = f", {rivals[at]} of them too close to the best to tell apart" if rivals[at] > 1 else ""
    said = (
        f'Arm "{arms[at]}"{_more(found.size)} was eliminated while {stayed[at]} arms were active{close}: it was '
        "compared with the largest of their sample means. Where several are nearly equal, that is too large by chance, "
        "the gap is overestimated and the interval too short."
    )
    return Notice("many-active", said, round=None if passed is None else int(passed[at]), arm=arms[at])


def _short_horizon(seen: Reading, arms: Arms) -> Notice:
    gaps = seen.comparison.gap[seen.comparison.verdict == ESTIMATED]
    asked = "An estimated gap is 0 or less, for which the paper's Theorem 2 would ask for an endless horizon"
    if (gaps > 0).all():
        assert isinstance(seen.rule, RegretWidth)
        required = theory.horizon_required(gaps, float(seen.horizon), seen.rule.alpha, seen.rule.factor)
        asked = (
            f"The horizon {seen.horizon:,} is below the {required:,.0f} rounds that the paper's Theorem 2 asks for at "
            "the estimated gaps"
        )
    promise = "its error bound is not promised here. The intervals do not rest on it."
    return Notice("short-horizon", f"{asked}: {promise}")


OPENING = Check("opening", "warning", checks.odd_opening, _opening)
SHORT_RECORD = Check("short-record", "warning", checks.short_record, _short_record)
LATE_ARM = Check("late-arm", "warning", _any(checks.late), _late_arm)
TIED_BEST = Check("tied-best", "warning", _any(checks.tied), _tied_best)
NEAR_BEST = Check("near-best", "warning", _any(checks.near_best), _near_best)
NOT_RECONSIDERED = Check("not-reconsidered", "warning", _any(checks.not_reconsidered), _not_reconsidered)
ORDER_BROKEN = Check("order-broken", "warning", checks.broken, _order_broken)
UNRESOLVED = Check("unresolved", "warning", _any(checks.active), _unresolved)
MANY_ACTIVE = Check("many-active", "warning", _any(lambda seen: checks.among_many(seen)[0]), _many_active)
FEW_PULLS = Check("few-pulls", "note", _any(checks.few_pulls), _few_pulls)
COARSE = Check("coarse", "note", _any(checks.between_decisions), _coarse)
SHORT_HORIZON = Check("short-horizon", "note", checks.short_horizon, _short_horizon)


def demonstrations_behind(notice: Notice, total: int) -> int:
    """Return how many demonstrations a notice speaks of: one, or as many as it says, or where it names none, all.

    Examples
    --------
    >>> demonstrations_behind(Notice("opening", 'In 1,500 of 2,000 demonstrations, the first being "7": ...'), 2_000)
    1500
    """
    told = re.match(r"In ([\d,]+) of [\d,]+ demonstrations, the first being ", notice.message)
    if told:
        return int(told[1].replace(",", ""))
    return 1 if notice.demonstration is not None else total
