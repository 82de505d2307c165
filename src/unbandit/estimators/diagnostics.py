"""Diagnostics: signs that a record was not made the way the estimator assumes, or does not say much.

A diagnostic is a predicate, asked of many demonstrations at once or of one, and the sentence for one that shows it. Of
very many demonstrations that show the same, one notice says how many they are.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.checks import in_threads, threads
from unbandit.demonstrators import Demonstrator, EliminationRule, RecentIndexRule
from unbandit.demonstrators.widths import RegretWidth
from unbandit.errors import MISREAD, InferenceError, LogError, Notice, NotIdentifiable, option
from unbandit.estimators.arguments import is_thinned, shows_part
from unbandit.estimators.procedures import IN_ORDER, Answer, Comparison, Request
from unbandit.formatting import counted, joined, quoted
from unbandit.instance import Bernoulli, Noise
from unbandit.log.columns import noun_of
from unbandit.log.tallies import Record
from unbandit.result import BEST, ESTIMATED, UNSEEN

MOST_NOTICES = 20  # demonstrations that have a notice each; of more, one notice says how many they are
CELLS = 1 << 15  # demonstrations times arms of a block: what is computed on the way stays in a core's own memory
FEW_PULLS = 10  # with fewer at the switching round, an index moves far at one pull: the point is rather too small
FAR_OFF = 2.5  # by which the gap at the end may exceed the one at an arm's last turn, in deviations of the latter
MANY_ACTIVE = 8  # active arms from which on a comparison with the largest sample mean is worth a warning
MANY_RIVALS = 4  # nearly equal arms from which on plain 95% intervals are too short (tests/statistical shows it)
MANY_CLOSE = 6  # arms too close to the most-pulled one from which on it is likely the luckiest of several

LEFT_AFTER = 0.75  # share of a log after which an arm that drifted, and is not pulled any more, may be withdrawn
MOST_LATE = 3  # arms that a proposed table lists
ROUNDING = 1e-9  # by which a number may be beyond what is possible
FEW_BESIDE = 3  # pulls per arm beside the most-pulled one, up to which a rule that settled early looks like sorted rows

BEGINNING = (
    f"If the log begins in mid-run, give the pulls before it with {option('starting_pulls')}. If rounds are missing at "
    f"random, give the share that was kept with {option('kept')}."
)

Result = TypeVar("Result")
Marks = NDArray[np.bool_]
Counts = NDArray[np.int64]
PlacedNotices = list[tuple[int, Notice]]  # notices, each with the position of the demonstration that it is about


class Reading:
    """Demonstrations of a request with what they say: one row each; or one of them, one place per arm."""

    def __init__(self, request: Request, where: slice | int, comparison: Comparison) -> None:
        self.rule, self.method, self.sigma = request.rule, request.method, request.noise.deviation
        self.ordered, self.arms = request.log.ordered, request.log.arms
        names = request.log.demonstrations
        self.alone = names[where] if isinstance(where, int) and len(names) > 1 else None  # one of several
        self.lengths: Any = request.lengths[where]
        self.horizon: Any = request.horizons[where]
        self.tallies = request.tallies.at(where)
        self.pulls = self.tallies.pulls
        self.comparison, self.gap = comparison, comparison.gap
        self.estimated = np.asarray(comparison.verdict == ESTIMATED)

    @property
    def first(self) -> Counts:
        """Return the round of each arm's first pull."""
        return self.tallies.counted[1]

    @property
    def last(self) -> Counts:
        """Return the round of each arm's last pull."""
        return self.tallies.counted[2]

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """Return the standard deviation of each gap."""
        result = self.comparison
        return np.asarray(self.sigma * np.sqrt(1 / result.own + np.square(result.slope) / result.other))


def any_arm(marks: Marks) -> Marks:
    """Return for each demonstration whether any of its arms is marked; quickly where none is in any."""
    return np.asarray(marks.any(axis=-1) if marks.any() else np.zeros(marks.shape[:-1], np.bool_))


def _and_more(marked: Counts, where: str = "") -> str:
    return f" (and {counted(marked.size - 1, 'more arm')}{where})" if marked.size > 1 else ""


def _names(arms: Sequence[str], places: Counts) -> str:
    return ", ".join(quoted(arms[at]) for at in places[:6]) + (", ..." if places.size > 6 else "")


class Diagnostic(ABC):
    """A predicate, which marks demonstrations or their arms, and the notice for one that shows it."""

    code: ClassVar[str]
    kind: ClassVar[Literal["warnings", "notes"]] = "warnings"

    @abstractmethod
    def marks(self, seen: Reading) -> Marks:
        """Mark demonstrations, or their arms."""

    @abstractmethod
    def notice(self, seen: Reading) -> Notice:
        """Return what is said about one demonstration."""

    def marked(self, seen: Reading) -> Counts:
        """Return the arms of one demonstration that are marked."""
        return np.flatnonzero(self.marks(seen))


# The beginning of the record


class _ShortRecord(Diagnostic):
    """The record ends before every arm has been pulled once, each of them at most once."""

    code = "short-record"

    def marks(self, seen: Reading) -> Marks:
        short = seen.lengths < len(seen.arms)
        return np.asarray(short & (np.count_nonzero(seen.first, axis=-1) == seen.lengths)) if short.any() else short

    def notice(self, seen: Reading) -> Notice:
        text = (
            f"The log ends in round {seen.lengths:,}, before all {len(seen.arms)} arms have been pulled once: it "
            "reveals almost nothing about any arm."
        )
        return Notice(self.code, text, round=int(seen.lengths))


class _OddOpening(Diagnostic):
    """The first K rounds do not pull every arm once, in any order, though they might have."""

    code = "opening"

    def marks(self, seen: Reading) -> Marks:
        odd = any_arm((seen.first == 0) | (seen.first > len(seen.arms)))
        return np.asarray(odd & ~_ShortRecord().marks(seen))

    def notice(self, seen: Reading) -> Notice:
        # With fewer than K arms in the first K rounds, some round among them repeats an arm: the first is the one after
        # the unbroken stretch of new arms.
        new = np.sort(seen.first[(seen.first > 0) & (seen.first <= len(seen.arms))])
        repeat = int(np.flatnonzero(np.append(new, 0) != np.arange(1, new.size + 2))[0]) + 1
        text = (
            f"The opening is not one pull of every arm: round {repeat:,} repeats an arm before all {len(seen.arms)} "
            "have been pulled. The assumed rule would have pulled every arm once first; the estimates may be wrong."
            f"{'' if _LateArm().marks(seen).any() else f' {BEGINNING}'}"
        )
        return Notice(self.code, text, round=repeat)


class _LateArm(Diagnostic):
    """An arm is first pulled after the first K rounds."""

    code = "late-arm"

    def marks(self, seen: Reading) -> Marks:
        return np.asarray(seen.first > len(seen.arms))

    def notice(self, seen: Reading) -> Notice:
        return late_arm(seen.arms, seen.first, self.marked(seen), seen.alone)


def late_arm(arms: Sequence[str], first: Counts, late: Counts, alone: str | None) -> Notice:
    """Say which arm is the first of those that appear late, and what to do."""
    at = late[np.argmin(first[late])]
    others = _and_more(late, " after it")
    added = "the arm was" if late.size == 1 else "arms were"
    spans = [(arms[each], int(first[each]), None) for each in late[np.argsort(first[late])]]
    text = (
        f"Arm {quoted(arms[at])} appears only in round {first[at]:,}{others}: if rows are missing, do not trust the "
        f"estimates. {BEGINNING} If {added} added then, {table_with(spans, alone)}"
    )
    return Notice("late-arm", text, round=int(first[at]), arm=arms[at])


def table_with(spans: Sequence[tuple[str, int | None, int | None]], alone: str | None = None) -> str:
    """Say which table to give where arms were there from some first round, or up to some last one.

    A table holds for all demonstrations, so one of several is read `alone`.

    Examples
    --------
    >>> from unbandit.errors import phrase
    >>> phrase(table_with([("B", None, 200)]))
    'give availability a table with the lines `arm,first,last` and `B,,200`.'
    """
    lines = [f"`{_cell(arm)},{first or ''},{last or ''}`" for arm, first, last in spans[:MOST_LATE]]
    more = " and so on" if len(spans) > MOST_LATE else ""
    add = "" if alone is None else f"add {option('demonstration', alone)}, and "
    return f"{add}give {option('availability')} a table with the lines {joined(['`arm,first,last`', *lines])}{more}."


def _cell(label: str) -> str:
    """Write a label as a cell of CSV."""
    return '"' + label.replace('"', '""') + '"' if label != label.strip() or {*label} & {*',"\r\n'} else label


def left_early(record: Record, demonstration: str, arms: Sequence[str]) -> str:
    """Say of arms that are not pulled in the last quarter of a demonstration that they may have been withdrawn."""
    which = record.demonstrations.index(demonstration)
    pulls, _, last = (each[which] for each in record.tallied("counts").counted)
    left = [at for at, arm in enumerate(record.arms) if arm in arms and pulls[at] > 0]
    left = [at for at in left if last[at] <= LEFT_AFTER * int(record.lengths[which])]
    alone = demonstration if len(record.demonstrations) > 1 else None
    return said_of_left([(record.arms[at], int(last[at])) for at in left], alone)


def said_of_left(left: Sequence[tuple[str, int]], alone: str | None = None) -> str:
    """Say of arms, with the rounds of their last pulls, that they may have been withdrawn; begins with a blank."""
    if not left:
        return ""
    names = joined(f"arm {quoted(arm)} is never pulled after round {last:,}" for arm, last in left)
    may = "it may have been" if len(left) == 1 else "they may have been"
    table = table_with([(arm, None, last) for arm, last in left], alone)
    return f" {names[0].upper()}{names[1:]}: {may} withdrawn. If so, {table}"


def misread(record: Record, rule: Demonstrator | None = None) -> list[Notice]:
    """Return the warnings of how a log was read.

    A rule that decides for a batch of rounds at once leaves their order open: times that only these share say enough.
    """
    warnings = [each for each in record.reading if each.code in MISREAD]
    is_open = longest_tie(record) > max(getattr(rule, "batch", 1), 1)
    return [each for each in warnings if each.code != "times-tied" or is_open]


def longest_tie(record: Record) -> float:
    """Return how many rows of a demonstration share one time, at most; without times, any number may."""
    log_times, offsets = getattr(record, "times", None), getattr(record, "offsets", None)
    if log_times is None or offsets is None:
        return math.inf
    starts = np.concatenate(([0], np.flatnonzero(np.diff(log_times.times)) + 1, offsets))
    return int(np.diff(np.unique(starts)).max())


@contextmanager
def explaining_refusals(record: Record, rule: Demonstrator | None = None) -> Iterator[None]:
    """Have what refuses a log say also what is doubtful about how it was read, which may be why."""
    try:
        yield
    except (InferenceError, LogError, NotIdentifiable) as error:
        error.at(notices=tuple(misread(record, rule)))
        raise


def sorted_rows(record: Record, fewest: int = 3) -> list[Notice]:
    """Say that all rounds of every arm stand together, as where somebody sorted the rows by arm: the order is lost.

    In some demonstration there must be `fewest` arms. Of two arms, a rule may have left one for good. Rows that have
    numbers or times may have got them afterwards; there, arms that have as many rounds each may be a plan.
    """
    rows = record.rows if shows_part(record) else record
    if not rows.ordered:
        return []
    placed = getattr(rows, "is_numbered", False) or getattr(rows, "times", None) is not None
    pulls, first, last = rows.tallied("counts").counted
    beside, seen = int((pulls.sum(axis=1) - pulls.max(axis=1)).sum()), pulls > 0
    apart = (seen & (last - first + 1 != pulls)).any()
    if apart or seen.sum(axis=1).max(initial=0) < fewest or beside <= FEW_BESIDE * seen.sum():
        return []
    if placed:
        before = np.where(last < last.max(axis=1, keepdims=True), pulls, 0)  # without the arm that comes last
        if not any(np.unique(each[each > 0]).size > 1 for each in before):
            return []
    text = "All rounds of an arm stand together. If the rows are sorted by arm, the order of the choices is lost: "
    text += (
        "numbers or times that were added later do not bring it back. Give the rows in their original order."
        if placed
        else f"give the rows in their original order, or name a column of rounds or times, with {option('columns')}."
    )
    return [Notice("shows-sorted", text)]


# Which arm is best


class _TiedBest(Diagnostic):
    """Several arms share the highest pull count."""

    code = "tied-best"

    def marks(self, seen: Reading) -> Marks:
        pulls, best = seen.pulls, seen.comparison.best
        others = (pulls == np.take_along_axis(pulls, best.argmax(axis=-1)[..., None], axis=-1)) & ~best
        return np.asarray(others | (best & any_arm(others)[..., None]))

    def notice(self, seen: Reading) -> Notice:
        tied = self.marked(seen)
        text = (
            f"The most-pulled arm is tied: {_names(seen.arms, tied)} have {seen.pulls.max():,} pulls each. The first "
            "of them is taken as the best; gaps are to that arm."
        )
        last = int(seen.last[tied].max()) if seen.ordered else None
        return Notice(self.code, text, round=last, arm=seen.arms[tied[0]])


class _NearBest(Diagnostic):
    """So many arms are within two deviations of the most-pulled one that it may just be the luckiest of them."""

    code = "near-best"
    consequence: ClassVar[str] = (
        "Where they are nearly equal, their gaps are too large, and 95% intervals of these arms hold the truth in "
        "about 85% to 90% of cases."
    )

    def marks(self, seen: Reading) -> Marks:
        if len(seen.arms) <= MANY_CLOSE:
            return np.zeros(seen.gap.shape, np.bool_)
        with np.errstate(invalid="ignore"):
            rivals = (seen.gap < 2 * seen.deviation) & seen.estimated
        return np.asarray(rivals & (rivals.sum(axis=-1, keepdims=True) >= MANY_CLOSE))

    def notice(self, seen: Reading) -> Notice:
        best = seen.arms[int(seen.comparison.best.argmax())]
        text = (
            f"{self.marked(seen).size} arms are too close to {quoted(best)}, the most-pulled one, to distinguish: it "
            f"may be the luckiest rather than the best. {self.consequence}"
        )
        return Notice(self.code, text, arm=best)


class _CloseToBest(_NearBest):
    """The same, where the intervals allow for it."""

    code, kind = "close-to-best", "notes"
    consequence = "The intervals allow for that."


class _Unresolved(Diagnostic):
    """Several arms of an elimination rule were still active at the end."""

    code = "unresolved"

    def marks(self, seen: Reading) -> Marks:
        best = seen.comparison.best
        return np.asarray(best & (best.sum(axis=-1, keepdims=True) > 1))

    def notice(self, seen: Reading) -> Notice:
        active = self.marked(seen)
        text = (
            f"{active.size} arms were still active when the log ended ({_names(seen.arms, active)}): none of them "
            "is known to be best. Gaps are to the unknown best among them."
        )
        return Notice(self.code, text)


# How an arm was given up


class _FewPulls(Diagnostic):
    """An arm's switching round came after so few pulls that its sample mean moves in steps."""

    code, kind = "few-pulls", "notes"

    def marks(self, seen: Reading) -> Marks:
        with np.errstate(invalid="ignore"):
            return np.asarray(seen.estimated & (seen.comparison.own < FEW_PULLS))

    def notice(self, seen: Reading) -> Notice:
        few = self.marked(seen)
        at = few[np.argmin(seen.comparison.own[few])]
        text = (
            f"Arm {quoted(seen.arms[at])}{_and_more(few)} had fewer than {FEW_PULLS} pulls when the rule last turned "
            "from it. Its gap is probably somewhat too small; the interval allows for that."
        )
        return Notice(self.code, text, arm=seen.arms[at])


class _NotReconsidered(Diagnostic):
    """The rule would have come back to an arm, and the record never returns to it.

    An index rule's best arm loses its bonus as it is pulled, so every other arm's turn comes again. The gap when the
    arm's turn last came and the gap at the end must therefore agree, but for noise.
    """

    code = "not-reconsidered"

    def marks(self, seen: Reading) -> Marks:
        result = seen.comparison
        with np.errstate(invalid="ignore"):
            off = result.at_the_end > FAR_OFF * seen.sigma
            return np.asarray(seen.estimated & (result.own >= FEW_PULLS) & off)

    def notice(self, seen: Reading) -> Notice:
        strange = self.marked(seen)
        strange = strange[np.argsort(seen.last[strange])]
        at, spans = strange[0], [(seen.arms[each], None, int(seen.last[each])) for each in strange]
        text = (
            f"After round {seen.last[at]:,} the log never returns to arm {quoted(seen.arms[at])}{_and_more(strange)}, "
            "although by its end the assumed rule would have. Another rule, or other parameters, may have made it; do "
            f"not trust the estimates. If {'the arm was' if strange.size == 1 else 'arms were'} withdrawn, "
            f"{table_with(spans, seen.alone)}"
        )
        return Notice(self.code, text, round=int(seen.last[at]), arm=seen.arms[at])


class _OrderBroken(Diagnostic):
    """No elimination rule explains the order of the pulls."""

    code = "order-broken"

    def marks(self, seen: Reading) -> Marks:
        return np.asarray(seen.tallies.turns[1] > 0)

    def notice(self, seen: Reading) -> Notice:
        broken, arm = int(seen.tallies.turns[1]), seen.arms[int(seen.tallies.turns[2])]
        text = (
            f"The order of an elimination rule is broken in round {broken:,}: arm {quoted(arm)} is pulled again after "
            "its turn had passed. The log was made by another rule, or rows are missing; do not trust the estimates. "
            f"If rounds are missing at random, give the share that was kept with {option('kept')}."
        )
        return Notice(self.code, text, round=broken, arm=arm)


class _ManyActive(Diagnostic):
    """An arm was compared with the largest of many sample means when it was eliminated."""

    code = "many-active"

    def marks(self, seen: Reading) -> Marks:
        stayed, rivals = self._counts(seen)
        return seen.estimated & ((stayed >= MANY_ACTIVE) | (rivals >= MANY_RIVALS))

    def _counts(self, seen: Reading) -> tuple[Counts, Counts]:
        """Return how many arms were active then, and how many of those are rivals of the best.

        A rival's own gap is within two standard deviations of a sample mean. The more of them, the more the largest is
        too large by chance.
        """
        pulls = seen.pulls
        gaps = np.where(np.isnan(seen.gap), 0.0, seen.gap)  # an arm still active may be the best
        with np.errstate(divide="ignore"):
            near = 2 * seen.sigma / np.sqrt(pulls)
        stayed, rivals = np.zeros((2, *pulls.shape), np.int64)
        for arm in range(len(seen.arms)):
            later = pulls[..., [arm]] >= pulls
            stayed += later
            rivals += later & (gaps[..., [arm]] < near)
        return stayed, rivals

    def notice(self, seen: Reading) -> Notice:
        marked, (stayed, rivals) = self.marked(seen), self._counts(seen)
        passed = seen.tallies.passed if seen.method in IN_ORDER else None
        at = int(marked[np.argmin((-stayed if passed is None else passed)[marked])])
        close = f", {rivals[at]} of them too close to the best to tell apart" if rivals[at] > 1 else ""
        text = (
            f"Arm {quoted(seen.arms[at])}{_and_more(marked)} was eliminated while {stayed[at]} arms were "
            f"active{close}: it was compared with the largest of their sample means. Where several are nearly equal, "
            "that is too large by chance, the gap is overestimated and the interval too short."
        )
        return Notice(self.code, text, round=None if passed is None else int(passed[at]), arm=seen.arms[at])


class _Coarse(Diagnostic):
    """A gap lies between two of the rule's decisions, some way apart."""

    code, kind = "coarse", "notes"

    def marks(self, seen: Reading) -> Marks:
        with np.errstate(invalid="ignore"):
            return np.asarray(seen.estimated & (seen.gap > seen.comparison.below))

    def notice(self, seen: Reading) -> Notice:
        text = (
            "The rule decides in batches or tests rarely: a gap lies between two of its decisions, the point halfway, "
            "and the interval, which covers both, is somewhat too long."
        )
        return Notice(self.code, text)


class _ShortHorizon(Diagnostic):
    """The horizon is too short for Theorem 2, at the estimated gaps."""

    code, kind = "short-horizon", "notes"

    def marks(self, seen: Reading) -> Marks:
        rule, estimated = seen.rule, seen.estimated
        assert isinstance(rule, RegretWidth)
        if not estimated.any():
            return np.zeros(estimated.shape[:-1], np.bool_)
        with np.errstate(invalid="ignore"):
            usable = estimated & (seen.gap > 0)
        endless = any_arm(estimated & ~usable)
        at_gap_1 = theory.kappa(1.0, seen.horizon, rule.alpha, rule.factor)
        required = 16 * at_gap_1 * (1 / np.where(usable, np.square(seen.gap), np.inf)).sum(axis=-1)
        return np.asarray(endless | (seen.horizon < required))

    def notice(self, seen: Reading) -> Notice:
        rule, gaps = seen.rule, seen.gap[seen.estimated]
        assert isinstance(rule, RegretWidth)
        text = "An estimated gap is 0 or less, for which the paper's Theorem 2 would ask for an endless horizon"
        if (gaps > 0).all():
            required = theory.horizon_required(gaps, float(seen.horizon), rule.alpha, rule.factor)
            text = (
                f"The horizon {seen.horizon:,} is below the {required:,.0f} rounds that the paper's Theorem 2 asks for "
                "at the estimated gaps"
            )
        return Notice(self.code, f"{text}: its error bound is not guaranteed here. The intervals do not depend on it.")


def _diagnostics(request: Request) -> list[Diagnostic]:
    """Return what is looked for in demonstrations that are read so, in the order of the notices."""
    in_order, two_sided = request.method in IN_ORDER, request.method == "bracket"
    begins, gapless = request.log.ordered and not shows_part(request.log), not is_thinned(request.log)
    opening = [_OddOpening(), _ShortRecord(), _LateArm()] if begins else []
    if request.availability is not None:  # arms are opened when they come, and each is compared while it is there
        return [] if isinstance(request.rule, EliminationRule) else [_NotReconsidered()]
    theorem: list[Diagnostic] = [_ShortHorizon()] if isinstance(request.rule, RegretWidth) else []
    if request.method == "naive":
        return [*opening, _TiedBest()]
    if isinstance(request.rule, EliminationRule):
        order = [*opening, _OrderBroken()] if in_order and gapless else []
        coarse = [] if two_sided else [_Coarse()]
        return [*order, _Unresolved(), _ManyActive(), *coarse, *theorem]
    follows = in_order and gapless and not isinstance(request.rule, RecentIndexRule)
    returns = [_NotReconsidered()] if follows else []
    unresolved = [] if gapless else [_Unresolved()]
    if two_sided:  # which allows for the lucky, for steps of a few pulls, and for batches
        return [*returns, _CloseToBest(), *opening, _TiedBest(), *unresolved, *theorem]
    return [*returns, *unresolved, _NearBest(), *opening, _TiedBest(), _FewPulls(), _Coarse(), *theorem]


class Diagnosis:
    """What shows in the demonstrations of a request, found as they are read."""

    def __init__(self, request: Request) -> None:
        self.request, self.diagnostics = request, _diagnostics(request)
        self.marks = {each.code: np.zeros(len(request.log), np.bool_) for each in self.diagnostics}
        self._kept: dict[int, Reading] = {}

    def read(self, use: Callable[[slice, Comparison], Result]) -> list[Result]:
        """Read all demonstrations in blocks, on threads, and pass on what each block says."""

        def read(start: int, stop: int) -> Result:
            comparison = self.request.compare(start, stop)
            seen = Reading(self.request, slice(start, stop), comparison)
            for each in self.diagnostics:
                marks = each.marks(seen)
                self.marks[each.code][start:stop] = marks if marks.ndim == 1 else any_arm(marks)
            if stop - start == 1:
                self._kept[start] = Reading(self.request, start, comparison.row(0))
            return use(slice(start, stop), comparison)

        count, rows = len(self.request.log), max(1, CELLS // len(self.request.log.arms))
        return in_threads(read, [(at, min(at + rows, count)) for at in range(0, count, rows)], threads())

    def count(self, code: str) -> int:
        """Return in how many demonstrations something shows."""
        return int(np.count_nonzero(self.marks.get(code, False)))

    def report(self, answer: Answer, **others: PlacedNotices) -> None:
        """Add notices to an answer: by demonstration, within each in the order of the diagnostics, then the others.

        Others, too, are given as `warnings` and `notes`.
        """
        notices: dict[str, PlacedNotices] = {"warnings": [], "notes": []}
        for each in self.diagnostics:
            places = np.flatnonzero(self.marks[each.code])
            notices[each.kind] += notices_of(places, self.request.log.demonstrations, partial(self._notice, each))
        for kind, placed in notices.items():
            ordered = sorted(placed + others.get(kind, []), key=itemgetter(0))
            getattr(answer, kind).extend(notice for _, notice in ordered)

    def _notice(self, diagnostic: Diagnostic, which: int) -> Notice:
        if which not in self._kept:
            self._kept[which] = Reading(self.request, which, self.request.compare(which, which + 1).row(0))
        return diagnostic.notice(self._kept[which])


# Values that no arm can have


class PossibleValues(NamedTuple):
    """Values between two limits that a gap or a mean can have, and why no others."""

    name: str
    low: float
    high: float
    why: str

    def excess(self, numbers: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return by how much each number is out of its limits, below 0 where it is within.

        Where there is no point, the end that is nearest to the limits counts.
        """
        point = numbers[self.name]
        low, high = (
            np.where(np.isnan(point), numbers.get(f"{self.name}_{end}", np.nan), point) for end in ("low", "high")
        )
        return np.asarray(np.fmax(low - self.high, self.low - high))

    def notice(self, numbers: Mapping[str, NDArray[np.float64]], arms: Sequence[str], which: int) -> Notice:
        """Name the arm of a demonstration that is furthest out of its limits."""
        row = {name: values[which] for name, values in numbers.items()}
        excess = self.excess(row)
        marked = np.flatnonzero(excess > ROUNDING)
        at = int(marked[np.argmax(excess[marked])])
        point = float(row[self.name][at])
        low, high = (float(row.get(f"{self.name}_{end}", row[self.name])[at]) for end in ("low", "high"))
        shown, still = f"{point:.4g}", " Its interval does hold possible values." if low < self.high < point else ""
        if np.isnan(point):
            shown = f"at least {low:.4g}" if low > self.high else f"at most {high:.4g}"
        elif point < self.low < high:
            still = " Its interval does hold possible values."
        text = (
            f"The {self.name} of arm {quoted(arms[at])} is {shown}{_and_more(marked)}, which is impossible: {self.why}."
            f"{still} The rule, one of its parameters or a mean that was given is likely wrong."
        )
        return Notice("impossible-value", text, arm=arms[at])


def possible_values(rule: Demonstrator, noise: Noise) -> list[PossibleValues]:
    """Return the limits of gaps and means, where the range of rewards is known.

    A rule's `reward_range` is taken at its word, unless rewards are said to scatter more than any in that range can.

    >>> from unbandit import LilUCB, UCB
    >>> from unbandit.instance import Gaussian
    >>> [(each.name, each.low, each.high) for each in possible_values(UCB(), Bernoulli())]
    [('gap', -inf, 1.0), ('mean', 0.0, 1.0)]
    >>> [each.high for each in possible_values(LilUCB(reward_range=2), Gaussian(0.5))]
    [2.0]
    """
    if isinstance(noise, Bernoulli):
        of_mean = PossibleValues("mean", 0.0, 1.0, "rewards of 0 and 1 average between 0 and 1")
        return [PossibleValues("gap", -np.inf, 1.0, "rewards of 0 and 1 cannot differ by more than 1"), of_mean]
    span = getattr(rule, "reward_range", None)
    if span is None or noise.deviation > span / 2:
        return []
    why = f"rewards in a range of {span:.4g}, as the rule has it, cannot differ by more"
    return [PossibleValues("gap", -np.inf, float(span), why)]


def impossible_values(
    rule: Demonstrator, noise: Noise, numbers: Mapping[str, NDArray[np.float64]], arms: Sequence[str],
    demonstrations: Sequence[str],
) -> list[Notice]:  # fmt: skip
    """Warn of gaps and means that no rewards of the known range can have; numbers are (demonstrations, arms)."""
    notices: list[Notice] = []
    for possible in possible_values(rule, noise):
        if possible.name in numbers:
            with np.errstate(invalid="ignore"):
                places = np.flatnonzero(any_arm(possible.excess(numbers) > ROUNDING))
            notice_of = partial(possible.notice, numbers, arms)
            notices += [notice for _, notice in notices_of(places, demonstrations, notice_of)]
    return notices


def say_open_best(answer: Answer, arms: tuple[str, ...]) -> None:
    """Note where no arm is told from the best one, as the intervals of all others that were pulled reach 0.

    Notes about demonstrations stay in their order.
    """
    low, best = answer.numbers["gap_low"], answer.verdict == BEST
    with np.errstate(invalid="ignore"):
        close, others = low <= 0, ~best & (answer.verdict != UNSEEN)
    places = np.flatnonzero((best.sum(axis=-1) == 1) & others.any(axis=-1) & (close | ~others).all(axis=-1))

    def notice_of(at: int) -> Notice:
        reach = "intervals of all other arms reach" if others[at].sum() > 1 else "interval of the other arm reaches"
        text = (
            f"The most-pulled arm is taken to be the best, but the log does not show it: the {reach} 0. A gap below "
            "0 is that of a better arm."
        )
        return Notice("open-best", text, arm=arms[int(best[at].argmax())])

    found = [notice for _, notice in notices_of(places, answer.demonstrations, notice_of)]
    if found:
        place = {each: at for at, each in enumerate((*answer.demonstrations, None))}
        answer.notes = sorted([*answer.notes, *found], key=lambda each: place.get(each.demonstration, len(place)))


def notices_of(places: Counts, names: Sequence[str], notice_of: Callable[[int], Notice]) -> PlacedNotices:
    """Return a notice for each demonstration in these places, with its place; of very many one for all of them.

    >>> names = [f"run {at}" for at in range(1_000)]
    >>> notices_of(np.arange(5, 505), names, lambda at: Notice("x", "It is so."))[0][1].message
    'In 500 of 1,000 demonstrations, the first being "run 5": It is so.'
    """
    if places.size <= MOST_NOTICES:
        several = len(names) > 1
        return [(at, replace(notice_of(at), demonstration=names[at] if several else None)) for at in places.tolist()]
    first = int(places[0])
    notice = notice_of(first)
    where = f'In {places.size:,} of {counted(len(names), noun_of(names))}, the first being "{names[first]}"'
    return [(first, replace(notice, text=f"{where}: {notice.text}", round=None, arm=None, count=places.size))]


def demonstrations_behind(notice: Notice, total: int) -> int:
    """Return how many demonstrations a notice speaks of: one, or as many as it counts, or where it names none, all."""
    if notice.count is not None:
        return notice.count
    return 1 if notice.demonstration is not None else total
