"""Look for signs that demonstrations were not made the way the estimator assumes: which ones, and which of their arms.

Every check is asked of many demonstrations at once, or of one; `telling` has the words for what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.demonstrators import Demonstrator, EliminationRule
from unbandit.demonstrators.width import RegretWidth
from unbandit.estimators.procedures import Comparison, Method, Reading
from unbandit.estimators.request import Answer, Request
from unbandit.result import ESTIMATED, Notice

FEWEST_PULLS = 10
"""Below this many pulls at the switching round, an index moves far at one pull: the point is rather too small."""

FAR_OFF = 2.5
"""By how many standard deviations the gaps at the switching round and at the end may differ."""

MOST_ACTIVE = 8
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
        return np.asarray((seen.comparison.verdict == ESTIMATED) & (seen.comparison.own < FEWEST_PULLS))


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
        return np.asarray((result.verdict == ESTIMATED) & (result.own >= FEWEST_PULLS) & (off > FAR_OFF))


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
    return gone & ((stayed >= MOST_ACTIVE) | (rivals >= MANY_RIVALS)), stayed, rivals


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


MOST = 20
"""Of so many demonstrations, at most, each has a notice of its own; of more, one notice tells how many they are."""

Arms = tuple[str, ...]


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
    return [(first, replace(notice, text=f"{where}: {notice.text}", round=None, arm=None, count=places.size))]


def _any(marked: Callable[[Reading], Marks]) -> Callable[[Reading], Marks]:
    """Look for demonstrations that have such an arm."""
    return lambda seen: any_arm(marked(seen))


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
    first, places = seen.tallies.first, np.flatnonzero(late(seen))
    at = places[np.argmin(first[places])]
    others = _more(places.size, "more arms after it")
    said = f'Arm "{arms[at]}" appears only in round {first[at]}{others}: does the log start in mid-run?'
    return Notice("late-arm", said, round=int(first[at]), arm=arms[at])


def _tied_best(seen: Reading, arms: Arms) -> Notice:
    places, pulls = np.flatnonzero(tied(seen)), seen.tallies.pulls
    said = (
        f"The most-pulled arm is tied: {_quoted(arms, places)} have {pulls.max()} pulls each. The first of them is "
        "taken as the best; gaps are to that arm."
    )
    last = int(seen.tallies.last[places].max()) if seen.ordered else None
    return Notice("tied-best", said, round=last, arm=arms[places[0]])


def _few_pulls(seen: Reading, arms: Arms) -> Notice:
    few = np.flatnonzero(few_pulls(seen))
    at = few[np.argmin(seen.comparison.own[few])]
    said = (
        f'Arm "{arms[at]}"{_more(few.size)} had fewer than {FEWEST_PULLS} pulls when the rule last turned from it: '
        "the gap is rather too small, which the interval allows for."
    )
    return Notice("few-pulls", said, arm=arms[at])


def _near_best(seen: Reading, arms: Arms) -> Notice:
    best = arms[int(seen.comparison.best.argmax())]
    said = (
        f'{np.count_nonzero(near_best(seen))} arms are too close to "{best}", the most-pulled one, to tell '
        "apart: it may be the luckiest of them rather than the best. Where they are nearly equal, their gaps are too "
        "large, and 95% intervals of these arms hold the truth in about 85% to 90% of cases."
    )
    return Notice("near-best", said, arm=best)


def _not_reconsidered(seen: Reading, arms: Arms) -> Notice:
    strange, last = np.flatnonzero(not_reconsidered(seen)), seen.tallies.last
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
    places = np.flatnonzero(active(seen))
    said = (
        f"{places.size} arms were still active when the record ended ({_quoted(arms, places)}): none of them is known "
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
    marks, stayed, rivals = among_many(seen)
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


OPENING = Check("opening", "warning", odd_opening, _opening)
SHORT_RECORD = Check("short-record", "warning", short_record, _short_record)
LATE_ARM = Check("late-arm", "warning", _any(late), _late_arm)
TIED_BEST = Check("tied-best", "warning", _any(tied), _tied_best)
NEAR_BEST = Check("near-best", "warning", _any(near_best), _near_best)
NOT_RECONSIDERED = Check("not-reconsidered", "warning", _any(not_reconsidered), _not_reconsidered)
ORDER_BROKEN = Check("order-broken", "warning", broken, _order_broken)
UNRESOLVED = Check("unresolved", "warning", _any(active), _unresolved)
MANY_ACTIVE = Check("many-active", "warning", _any(lambda seen: among_many(seen)[0]), _many_active)
FEW_PULLS = Check("few-pulls", "note", _any(few_pulls), _few_pulls)
COARSE = Check("coarse", "note", _any(between_decisions), _coarse)
SHORT_HORIZON = Check("short-horizon", "note", short_horizon, _short_horizon)


def demonstrations_behind(notice: Notice, total: int) -> int:
    """Return how many demonstrations a notice speaks of: one, or as many as it says, or where it names none, all.

    Examples
    --------
    >>> demonstrations_behind(Notice("opening", "...", count=1_500), 2_000)
    1500
    """
    if notice.count is not None:
        return notice.count
    return 1 if notice.demonstration is not None else total


CELLS = 1 << 15
"""Demonstrations times arms of a block: so few that what is computed on the way stays in a core's own memory."""

Said = list[tuple[int, Notice]]
"""Notices, each with the place of the demonstration that it is about."""


class Signs:
    """Read the demonstrations from `start` up to `stop`, by default all of them, and look for what is worth saying."""

    def __init__(self, asked: Request, start: int = 0, stop: int | None = None) -> None:
        self.asked, self.start, self.stop = asked, start, len(asked.log) if stop is None else stop
        self.checks = checks_of(asked.rule, asked.method, asked.log.ordered)
        self.marks = {check.code: np.zeros(self.stop - start, np.bool_) for check in self.checks}
        self._kept: dict[int, Reading] = {}

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Return where blocks begin and end."""
        rows = max(1, CELLS // len(self.asked.log.arms))
        return [(at, min(at + rows, self.stop)) for at in range(self.start, self.stop, rows)]

    def look(self, start: int, stop: int) -> Comparison:
        """Read a block, and mark what shows."""
        seen = self.asked.read(start, stop)
        for check in self.checks:
            self.marks[check.code][start - self.start : stop - self.start] = check.found(seen)
        if stop - start == 1:
            self._kept[start] = seen.row(0)
        return seen.comparison

    def count(self, code: str) -> int:
        """Return in how many demonstrations something shows."""
        return int(np.count_nonzero(self.marks[code])) if code in self.marks else 0

    def tell(self, answer: Answer, notes: Said | None = None) -> None:
        """Say what shows, one demonstration after the other; of each in the order of the checks, then `notes`."""
        found: dict[str, Said] = {"warning": [], "note": []}
        for check in self.checks:
            found[check.kind] += self._said(check)
        for kind, said, kept in (("warning", [], answer.warnings), ("note", notes or [], answer.notes)):
            kept += [notice for _, notice in sorted(found[kind] + said, key=lambda each: each[0])]

    def _said(self, check: Check) -> Said:
        """Put one check into words."""
        places, arms = self.start + np.flatnonzero(self.marks[check.code]), self.asked.log.arms
        return told(places, self.asked.log.demonstrations, lambda at: check.tell(self._one(at), arms))

    def _one(self, which: int) -> Reading:
        """Read one demonstration again, to put it into words."""
        if which not in self._kept:
            self._kept[which] = self.asked.read(which, which + 1).row(0)
        return self._kept[which]


def read_one(asked: Request, which: int, answer: Answer) -> Comparison:
    """Compare the arms of one demonstration, and keep what is worth saying about it."""
    signs = Signs(asked, which, which + 1)
    comparison = signs.look(which, which + 1)
    signs.tell(answer)
    return comparison.row(0)
