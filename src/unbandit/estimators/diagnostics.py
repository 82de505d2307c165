"""Diagnostics: signs that a record was not made the way the estimator assumes, or does not say much.

A diagnostic is a predicate, asked of many demonstrations at once or of one, and the sentence for one that shows it. Of
very many demonstrations that show the same, one notice says how many they are.
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
from unbandit.demonstrators.base import RegretWidth
from unbandit.errors import Notice
from unbandit.estimators.procedures import Comparison, Horizon, Method, compare
from unbandit.estimators.request import Answer, Request
from unbandit.log.tallies import Tallies
from unbandit.result import ESTIMATED

MOST_NOTICES = 20
"""Up to this many demonstrations have a notice each; of more, one notice says how many they are."""

CELLS = 1 << 15
"""Demonstrations times arms of a block: few enough that what is computed on the way stays in a core's own memory."""

FEW_PULLS = 10
"""Below this many pulls at the switching round, an index moves far at one pull: the point is rather too small."""

FAR_OFF = 2.5
"""By how many standard deviations the gaps at the switching round and at the end may differ."""

MANY_ACTIVE = 8
"""From this many active arms on, a comparison with the largest sample mean is worth a warning."""

MANY_RIVALS = 4
"""From this many nearly equal ones on, plain 95% intervals are too short (tests/statistical shows it)."""

MANY_CLOSE = 6
"""From this many arms on that are too close to the most-pulled one, it is likely the luckiest of several."""

Arms = tuple[str, ...]
Marks = NDArray[np.bool_]
Counts = NDArray[np.int64]
PlacedNotices = list[tuple[int, Notice]]
"""Notices, each with the position of the demonstration that it is about."""


@dataclass(frozen=True)
class Reading:
    """Demonstrations with what they say: one row each; or one of them, one place per arm.

    Attributes
    ----------
    rule, method, sigma
        Who is taken to have made them, how they were read, and the standard deviation of a reward.
    ordered
        Whether the order of rounds is known.
    lengths, horizon
        How many rounds each has, and `T`.
    tallies, comparison
        What was counted, and what follows for every arm's gap.
    """

    rule: Demonstrator
    method: Method
    sigma: float
    ordered: bool
    lengths: Counts
    horizon: Horizon
    tallies: Tallies
    comparison: Comparison

    @property
    def pulls(self) -> Counts:
        """Return how often each arm was pulled."""
        return self.tallies.pulls

    @property
    def first(self) -> Counts:
        """Return the round of each arm's first pull."""
        return self.tallies.counted[1]

    @property
    def last(self) -> Counts:
        """Return the round of each arm's last pull."""
        return self.tallies.counted[2]

    @property
    def estimated(self) -> Marks:
        """Return which arms have an estimated gap."""
        return np.asarray(self.comparison.verdict == ESTIMATED)

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """Return the standard deviation of each gap at this noise."""
        result = self.comparison
        return np.asarray(self.sigma * np.sqrt(1 / result.own + np.square(result.slope) / result.other))

    def row(self, which: int) -> Reading:
        """Return one of the demonstrations."""
        return replace(
            self,
            lengths=self.lengths[which],
            horizon=int(np.broadcast_to(self.horizon, self.lengths.shape)[which]),
            tallies=self.tallies.at(which),
            comparison=self.comparison.row(which),
        )


@dataclass(frozen=True)
class Diagnostic:
    """A predicate, which marks demonstrations or their arms, and the notice for one that shows it."""

    code: str
    kind: Literal["warning", "note"]
    marks: Callable[[Reading], Marks]
    notice: Callable[[Reading, Arms], Notice]
    of_arms: bool = True

    def shows(self, seen: Reading) -> Marks:
        """Return which demonstrations show it."""
        return any_arm(self.marks(seen)) if self.of_arms else self.marks(seen)


def any_arm(marks: Marks) -> Marks:
    """Return for each demonstration whether any of its arms is marked; quickly where none is in any."""
    return np.asarray(marks.any(axis=-1) if marks.any() else np.zeros(marks.shape[:-1], np.bool_))


def _quote(name: str) -> str:
    return f'"{name}"'


def _more(count: int, words: str = "more") -> str:
    return f" (and {count - 1} {words})" if count > 1 else ""


# The beginning of the record


def _short_record(seen: Reading) -> Marks:
    """Mark demonstrations that end before every arm has been pulled once, each of them at most once."""
    short = seen.lengths < seen.first.shape[-1]
    return np.asarray(short & (np.count_nonzero(seen.first, axis=-1) == seen.lengths)) if short.any() else short


def _short_record_notice(seen: Reading, arms: Arms) -> Notice:
    text = (
        f"The record ends in round {seen.lengths}, before all {len(arms)} arms have been pulled once: it says next to "
        "nothing about any arm."
    )
    return Notice("short-record", text, round=int(seen.lengths))


def _odd_opening(seen: Reading) -> Marks:
    """Mark demonstrations whose first K rounds do not pull every arm once, in any order, though they might have."""
    odd = any_arm((seen.first == 0) | (seen.first > seen.first.shape[-1]))
    return np.asarray(odd & ~_short_record(seen))


def _odd_opening_notice(seen: Reading, arms: Arms) -> Notice:
    # With fewer than K arms in the first K rounds, some round among them repeats an arm: the first is the one after
    # the unbroken stretch of new arms.
    new = np.sort(seen.first[(seen.first > 0) & (seen.first <= len(arms))])
    repeat = int(np.flatnonzero(np.append(new, 0) != np.arange(1, new.size + 2))[0]) + 1
    text = (
        f"The opening is not one pull of every arm: round {repeat} repeats an arm before all {len(arms)} have been "
        "pulled. The rule assumed would have pulled every arm once first; the estimates may be off."
    )
    return Notice("opening", text, round=repeat)


def _late(seen: Reading) -> Marks:
    """Mark arms that are first pulled after the first K rounds."""
    return np.asarray(seen.first > seen.first.shape[-1])


def _late_notice(seen: Reading, arms: Arms) -> Notice:
    late = np.flatnonzero(_late(seen))
    at = late[np.argmin(seen.first[late])]
    others = _more(late.size, "more arms after it")
    text = f"Arm {_quote(arms[at])} appears only in round {seen.first[at]}{others}: does the log start in mid-run?"
    return Notice("late-arm", text, round=int(seen.first[at]), arm=arms[at])


# Which arm is best


def _tied(seen: Reading) -> Marks:
    """Mark arms that share the highest pull count with others."""
    pulls, best = seen.pulls, seen.comparison.best
    others = (pulls == np.take_along_axis(pulls, best.argmax(axis=-1)[..., None], axis=-1)) & ~best
    return np.asarray(others | (best & any_arm(others)[..., None]))


def _tied_notice(seen: Reading, arms: Arms) -> Notice:
    tied = np.flatnonzero(_tied(seen))
    text = (
        f"The most-pulled arm is tied: {_names(arms, tied)} have {seen.pulls.max()} pulls each. The first of them is "
        "taken as the best; gaps are to that arm."
    )
    return Notice("tied-best", text, round=int(seen.last[tied].max()) if seen.ordered else None, arm=arms[tied[0]])


def _near_best(seen: Reading) -> Marks:
    """Mark arms within two deviations of the most-pulled one, if there are so many that it may just be the luckiest."""
    gap = seen.comparison.gap
    if gap.shape[-1] <= MANY_CLOSE:
        return np.zeros(gap.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        rivals = (gap < 2 * seen.deviation) & seen.estimated
    return np.asarray(rivals & (rivals.sum(axis=-1, keepdims=True) >= MANY_CLOSE))


def _near_best_notice(seen: Reading, arms: Arms) -> Notice:
    best = arms[int(seen.comparison.best.argmax())]
    text = (
        f"{np.count_nonzero(_near_best(seen))} arms are too close to {_quote(best)}, the most-pulled one, to tell "
        "apart: it may be the luckiest of them rather than the best. Where they are nearly equal, their gaps are too "
        "large, and 95% intervals of these arms hold the truth in about 85% to 90% of cases."
    )
    return Notice("near-best", text, arm=best)


def _unresolved(seen: Reading) -> Marks:
    """Mark arms of an elimination rule that were still active at the end, if there are several."""
    best = seen.comparison.best
    return np.asarray(best & (best.sum(axis=-1, keepdims=True) > 1))


def _unresolved_notice(seen: Reading, arms: Arms) -> Notice:
    active = np.flatnonzero(_unresolved(seen))
    text = (
        f"{active.size} arms were still active when the record ended ({_names(arms, active)}): none of them is known "
        "to be best. Gaps are to the unknown best among them."
    )
    return Notice("unresolved", text)


# How an arm was given up


def _few_pulls(seen: Reading) -> Marks:
    """Mark arms whose switching round came after so few pulls that their sample mean moves in steps."""
    with np.errstate(invalid="ignore"):
        return np.asarray(seen.estimated & (seen.comparison.own < FEW_PULLS))


def _few_pulls_notice(seen: Reading, arms: Arms) -> Notice:
    few = np.flatnonzero(_few_pulls(seen))
    at = few[np.argmin(seen.comparison.own[few])]
    text = (
        f"Arm {_quote(arms[at])}{_more(few.size)} had fewer than {FEW_PULLS} pulls when the rule last turned from it: "
        "the gap is rather too small, which the interval allows for."
    )
    return Notice("few-pulls", text, arm=arms[at])


def _not_reconsidered(seen: Reading) -> Marks:
    """Mark arms to which the rule would have come back, and the record never returns.

    An index rule's best arm loses its bonus as it is pulled, so every other arm's turn comes again. The gap at the
    switching round and the gap at the end must therefore agree, but for noise.
    """
    result = seen.comparison
    with np.errstate(invalid="ignore"):
        off = (result.at_the_end - result.gap) / seen.deviation
        return np.asarray(seen.estimated & (result.own >= FEW_PULLS) & (off > FAR_OFF))


def _not_reconsidered_notice(seen: Reading, arms: Arms) -> Notice:
    strange = np.flatnonzero(_not_reconsidered(seen))
    at = strange[np.argmin(seen.last[strange])]
    text = (
        f"After round {seen.last[at]} the record never returns to arm {_quote(arms[at])}{_more(strange.size)}, though "
        "by its end the rule assumed would have. Another rule, or other parameters, may have made it; do not trust the "
        "estimates."
    )
    return Notice("not-reconsidered", text, round=int(seen.last[at]), arm=arms[at])


def _broken(seen: Reading) -> Marks:
    """Mark demonstrations that no elimination rule explains."""
    return np.asarray(seen.tallies.turns[1] > 0)


def _broken_notice(seen: Reading, arms: Arms) -> Notice:
    broken, arm = int(seen.tallies.turns[1]), int(seen.tallies.turns[2])
    text = (
        f"The order of an elimination rule is broken in round {broken}: arm {_quote(arms[arm])} is pulled again after "
        "its turn had passed. The record was made by another rule, or rows are missing; do not trust the estimates."
    )
    return Notice("order-broken", text, round=broken, arm=arms[arm])


def _among_many(seen: Reading) -> tuple[Marks, Counts, Counts]:
    """Mark arms that were compared with the largest of many sample means when they were eliminated.

    Returns them with how many arms were active then, and how many of those are rivals: their own gap is within two
    standard deviations of a sample mean. The more of them, the more the largest is too large by chance.
    """
    result, pulls = seen.comparison, seen.pulls
    gaps = np.where(np.isnan(result.gap), 0.0, result.gap)  # an arm still active may be the best
    with np.errstate(divide="ignore"):
        near = 2 * seen.sigma / np.sqrt(pulls)
    stayed, rivals = np.zeros(pulls.shape, np.int64), np.zeros(pulls.shape, np.int64)
    for arm in range(pulls.shape[-1]):
        later = pulls[..., [arm]] >= pulls
        stayed += later
        rivals += later & (gaps[..., [arm]] < near)
    return seen.estimated & ((stayed >= MANY_ACTIVE) | (rivals >= MANY_RIVALS)), stayed, rivals


def _among_many_notice(seen: Reading, arms: Arms) -> Notice:
    marks, stayed, rivals = _among_many(seen)
    marked, passed = np.flatnonzero(marks), seen.tallies.passed if seen.method == "switching" else None
    at = int(marked[np.argmin((-stayed if passed is None else passed)[marked])])
    close = f", {rivals[at]} of them too close to the best to tell apart" if rivals[at] > 1 else ""
    text = (
        f"Arm {_quote(arms[at])}{_more(marked.size)} was eliminated while {stayed[at]} arms were active{close}: it was "
        "compared with the largest of their sample means. Where several are nearly equal, that is too large by chance, "
        "the gap is overestimated and the interval too short."
    )
    return Notice("many-active", text, round=None if passed is None else int(passed[at]), arm=arms[at])


def _coarse(seen: Reading) -> Marks:
    """Mark arms whose gap lies between two of the rule's decisions, some way apart."""
    with np.errstate(invalid="ignore"):
        return np.asarray(seen.estimated & (seen.comparison.gap > seen.comparison.below))


def _coarse_notice(seen: Reading, arms: Arms) -> Notice:
    text = (
        "The rule decides in batches or tests rarely: a gap lies between two of its decisions, the point halfway, and "
        "the interval, which takes in both, is rather too long."
    )
    return Notice("coarse", text)


# Theorem 2


def _short_horizon(seen: Reading) -> Marks:
    """Mark demonstrations whose horizon is too short for Theorem 2, at the estimated gaps."""
    gap, rule, estimated = seen.comparison.gap, seen.rule, seen.estimated
    if not isinstance(rule, RegretWidth) or not estimated.any():
        return np.zeros(estimated.shape[:-1], np.bool_)
    with np.errstate(invalid="ignore"):
        usable = estimated & (gap > 0)
    endless = any_arm(estimated & ~usable)
    at_gap_1 = theory.kappa(1.0, seen.horizon, rule.alpha, rule.factor)
    required = 16 * at_gap_1 * (1 / np.where(usable, np.square(gap), np.inf)).sum(axis=-1)
    return np.asarray(endless | (seen.horizon < required))


def _short_horizon_notice(seen: Reading, arms: Arms) -> Notice:
    gaps = seen.comparison.gap[seen.estimated]
    text = "An estimated gap is 0 or less, for which the paper's Theorem 2 would ask for an endless horizon"
    if (gaps > 0).all():
        assert isinstance(seen.rule, RegretWidth)
        required = theory.horizon_required(gaps, float(seen.horizon), seen.rule.alpha, seen.rule.factor)
        text = (
            f"The horizon {seen.horizon:,} is below the {required:,.0f} rounds that the paper's Theorem 2 asks for at "
            "the estimated gaps"
        )
    return Notice("short-horizon", f"{text}: its error bound is not promised here. The intervals do not rest on it.")


OPENING = Diagnostic("opening", "warning", _odd_opening, _odd_opening_notice, of_arms=False)
SHORT_RECORD = Diagnostic("short-record", "warning", _short_record, _short_record_notice, of_arms=False)
LATE_ARM = Diagnostic("late-arm", "warning", _late, _late_notice)
TIED_BEST = Diagnostic("tied-best", "warning", _tied, _tied_notice)
NEAR_BEST = Diagnostic("near-best", "warning", _near_best, _near_best_notice)
NOT_RECONSIDERED = Diagnostic("not-reconsidered", "warning", _not_reconsidered, _not_reconsidered_notice)
ORDER_BROKEN = Diagnostic("order-broken", "warning", _broken, _broken_notice, of_arms=False)
UNRESOLVED = Diagnostic("unresolved", "warning", _unresolved, _unresolved_notice)
MANY = Diagnostic("many-active", "warning", lambda seen: _among_many(seen)[0], _among_many_notice)
FEW = Diagnostic("few-pulls", "note", _few_pulls, _few_pulls_notice)
COARSE = Diagnostic("coarse", "note", _coarse, _coarse_notice)
SHORT_HORIZON = Diagnostic("short-horizon", "note", _short_horizon, _short_horizon_notice, of_arms=False)


def diagnostics_for(rule: Demonstrator, method: Method, ordered: bool) -> list[Diagnostic]:
    """Return what is looked for in demonstrations that are read so, in the order of the notices."""
    opening = [OPENING, SHORT_RECORD, LATE_ARM] if ordered else []
    theorem: list[Diagnostic] = [SHORT_HORIZON] if isinstance(rule, RegretWidth) else []
    if method == "naive":
        return [*opening, TIED_BEST]
    if isinstance(rule, EliminationRule):
        order = [*opening, ORDER_BROKEN] if method == "switching" else []
        return [*order, UNRESOLVED, MANY, COARSE, *theorem]
    returns = [NOT_RECONSIDERED] if method == "switching" else []
    return [*returns, NEAR_BEST, *opening, TIED_BEST, FEW, COARSE, *theorem]


class Diagnosis:
    """What shows in the demonstrations from `start` up to `stop`, by default all of a request."""

    def __init__(self, request: Request, start: int = 0, stop: int | None = None) -> None:
        self.request, self.start, self.stop = request, start, len(request.log) if stop is None else stop
        self.diagnostics = diagnostics_for(request.rule, request.method, request.log.ordered)
        self.marks = {each.code: np.zeros(self.stop - start, np.bool_) for each in self.diagnostics}
        self._lengths = request.log.lengths
        self._kept: dict[int, Reading] = {}

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Return where blocks begin and end."""
        rows = max(1, CELLS // len(self.request.log.arms))
        return [(at, min(at + rows, self.stop)) for at in range(self.start, self.stop, rows)]

    def look(self, start: int, stop: int, comparison: Comparison) -> None:
        """Mark what a block of demonstrations shows."""
        seen = self._reading(start, stop, comparison)
        for each in self.diagnostics:
            self.marks[each.code][start - self.start : stop - self.start] = each.shows(seen)
        if stop - start == 1:
            self._kept[start] = seen.row(0)

    def count(self, code: str) -> int:
        """Return in how many demonstrations something shows."""
        return int(np.count_nonzero(self.marks[code])) if code in self.marks else 0

    def report(self, answer: Answer, notes: PlacedNotices | None = None) -> None:
        """Add notices to an answer: by demonstration, within each in the order of the diagnostics, then `notes`."""
        notices: dict[str, PlacedNotices] = {"warning": [], "note": []}
        for each in self.diagnostics:
            notices[each.kind] += self._notices(each)
        notices["note"] += notes or []
        for kind, kept in (("warning", answer.warnings), ("note", answer.notes)):
            kept += [notice for _, notice in sorted(notices[kind], key=lambda placed: placed[0])]

    def _notices(self, diagnostic: Diagnostic) -> PlacedNotices:
        places, arms = self.start + np.flatnonzero(self.marks[diagnostic.code]), self.request.log.arms
        return notices_of(places, self.request.log.demonstrations, lambda at: diagnostic.notice(self._one(at), arms))

    def _reading(self, start: int, stop: int, comparison: Comparison) -> Reading:
        request = self.request
        return Reading(
            request.rule, request.method, request.sigma, request.log.ordered, self._lengths[start:stop],
            request.horizons[start:stop], request.tallies.part(start, stop), comparison,
        )  # fmt: skip

    def _one(self, which: int) -> Reading:
        if which not in self._kept:
            comparison = compare(*self.request.part(which, which + 1), at_the_end=True)
            self._kept[which] = self._reading(which, which + 1, comparison).row(0)
        return self._kept[which]


def notices_of(places: Counts, names: Sequence[str], notice_of: Callable[[int], Notice]) -> PlacedNotices:
    """Return a notice for each demonstration in these places, with its place; of very many one for all of them.

    Examples
    --------
    >>> names = [f"run {at}" for at in range(1_000)]
    >>> notices_of(np.arange(5, 505), names, lambda at: Notice("x", "It is so."))[0][1].message
    'In 500 of 1,000 demonstrations, the first being "run 5": It is so.'
    """
    if places.size <= MOST_NOTICES:
        several = len(names) > 1
        return [(at, replace(notice_of(at), demonstration=names[at] if several else None)) for at in places.tolist()]
    first = int(places[0])
    notice = notice_of(first)
    where = f'In {places.size:,} of {len(names):,} demonstrations, the first being "{names[first]}"'
    return [(first, replace(notice, text=f"{where}: {notice.text}", round=None, arm=None, count=places.size))]


def demonstrations_behind(notice: Notice, total: int) -> int:
    """Return how many demonstrations a notice speaks of: one, or as many as it counts, or where it names none, all."""
    if notice.count is not None:
        return notice.count
    return 1 if notice.demonstration is not None else total


def _names(arms: Arms, places: NDArray[np.int64]) -> str:
    return ", ".join(_quote(arms[at]) for at in places[:6]) + (", ..." if places.size > 6 else "")
