"""Procedures 1 and 2 on tallies, and their two-sided reading: what demonstrations say about every arm's gap.

The formulas are in `kernels.procedures`, `kernels.bracket` and `kernels.intervals`; here a rule, its horizons and its
counts are laid out for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.demonstrators import AdditiveIndexRule, Demonstrator, EliminationRule, IndexRule, RecentIndexRule
from unbandit.demonstrators.elimination import expected_tests, tested_epochs
from unbandit.demonstrators.widths import RegretWidth, has_power_width
from unbandit.errors import InferenceError, Notice, NotIdentifiable, option
from unbandit.instance import Gaussian, Noise
from unbandit.kernels import comparison as kernels
from unbandit.kernels.comparison import COUNTS_ONLY, ONE_SIDED, TWO_SIDED, PowerWidths
from unbandit.kernels.formula import SparseWidths
from unbandit.kernels.intervals import fill_intervals
from unbandit.kernels.procedures import BEST_ARM, COLUMNS, NO_ARM, Assumptions
from unbandit.log import ActionLog
from unbandit.log.tallies import LookRule, Need, Record, Tallies
from unbandit.result import ESTIMATED, NUMBERS, UNSEEN, Columns

if TYPE_CHECKING:
    from unbandit.inference import Posterior
    from unbandit.log.availability import Availability

Method = Literal["bracket", "switching", "counts", "naive", "posterior", "bootstrap"]

IN_ORDER = ("bracket", "switching")  # the closed forms that need the order of the rounds, the default first
READINGS = {"switching": ONE_SIDED, "bracket": TWO_SIDED, "counts": COUNTS_ONLY}

Horizon = int | NDArray[np.int64]  # `T`: one for all demonstrations, or one for each of them
SMALLER_ERROR = 50  # how many times smaller the error of a bound is made where luck may have caused it
FEWEST_CHANGES, BY_CHANCE = 4, 1e-6  # changes of arm that show no batch yet, and how seldom chance makes more do
BACK, BLOCK = 64, 1 << 16  # epochs that are looked at backwards from one, and together

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Anchor:
    """One arm's known mean; arm None stands for the best arm, whichever it is."""

    arm: int | None
    value: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """What demonstrations say about every arm's gap: (demonstrations, arms), or one place per arm."""

    best: Marks  # which arms may be best: one, or several where the record leaves it open
    verdict: NDArray[np.int8]  # one of `result.VERDICTS`, as its number
    numbers: Numbers  # those of `kernels.procedures.Compared`, one table each
    at_the_end: Numbers  # how much larger an index rule's gap is by the last round (`surplus_at_the_end`)

    @classmethod
    def empty(cls, shape: tuple[int, int], *, at_the_end: bool = False) -> Comparison:
        """Return room for the loops to fill in."""
        end = shape if at_the_end else (0, 0)
        return cls(np.empty(shape, np.bool_), np.empty(shape, np.int8), np.empty((len(COLUMNS), *shape)), np.empty(end))

    @property
    def gap(self) -> Numbers:
        """Return the points, NaN where there is none."""
        return self._column("gap")

    @property
    def below(self) -> Numbers:
        """Return what the lower ends start from."""
        return self._column("below")

    @property
    def above(self) -> Numbers:
        """Return what the upper ends start from."""
        return self._column("above")

    @property
    def own(self) -> Numbers:
        """Return how many rewards are behind each arm's sample mean."""
        return self._column("own")

    @property
    def other(self) -> Numbers:
        """Return how many rewards are behind the sample mean that it was compared with."""
        return self._column("other")

    @property
    def slope(self) -> Numbers:
        """Return how far each arm's estimated mean moves with the best arm's."""
        return self._column("slope")

    def _column(self, name: str) -> Numbers:
        return np.asarray(self.numbers[COLUMNS.index(name)])

    def row(self, which: int) -> Comparison:
        """Return one of several demonstrations, one place per arm."""
        end = self.at_the_end[which] if self.at_the_end.size else self.at_the_end
        return Comparison(self.best[which], self.verdict[which], self.numbers[:, which], end)

    def part(self, start: int, stop: int) -> Comparison:
        """Return some demonstrations, as a comparison of their own."""
        rows, end = slice(start, stop), self.at_the_end
        numbers = np.ascontiguousarray(self.numbers[:, rows])
        return Comparison(self.best[rows], self.verdict[rows], numbers, end[rows] if end.size else end)

    def put(self, rows: Counts, part: Comparison) -> None:
        """Put some demonstrations in their places."""
        self.best[rows], self.verdict[rows], self.numbers[:, rows] = part.best, part.verdict, part.numbers
        if self.at_the_end.size:
            self.at_the_end[rows] = part.at_the_end

    @classmethod
    def joined(cls, parts: Sequence[Comparison]) -> Comparison:
        """Put demonstrations below one another."""
        tables = ([part.best, part.verdict, part.numbers, part.at_the_end] for part in parts)
        return cls(*(np.concatenate(each, axis=-2) for each in zip(*tables, strict=True)))


@dataclass(frozen=True, eq=False)
class AvailableReading:
    """What demonstrations say where arms arrive late or are withdrawn, and the arm that each gap is to.

    `references` is -1 where there is no such arm, or none that is known: elimination rules do not show which arm was
    the best of those left. `broken` has the first round that the rule does not explain (of an index rule: its batch,
    delay or opening), and the arm whose turn it was; 0 for none.
    """

    comparison: Comparison
    references: Counts
    broken: Counts


def can_compare(rule: Demonstrator, method: Method) -> bool:
    """Return whether a method can read demonstrations of a rule: the naive one needs pull counts alone."""
    if isinstance(rule, RecentIndexRule):
        return method == "bracket"
    late = isinstance(rule, IndexRule) and rule.is_late and method in ("switching", "counts")
    known = method == "naive" or isinstance(rule, EliminationRule | IndexRule)
    return rule.reveals == "values" and known and not late


def check_comparable(rule: Demonstrator, method: Method) -> None:
    """Refuse a rule that a method cannot read, and say why."""
    if can_compare(rule, method):
        return
    if rule.reveals == "nothing":
        raise NotIdentifiable(
            f"{rule.name}: the rule's choices do not depend on rewards, so they reveal nothing about values."
        )
    if rule.reveals == "best":
        raise NotIdentifiable(
            f"{rule.name}: the rule's choices show which arm it judged best, and no values: every other arm is pulled "
            "the same number of times, whatever its value."
        )
    if isinstance(rule, RecentIndexRule):
        raise NotIdentifiable(
            f"{rule.name}: the rule forgets, and keeps returning to every arm: neither all pulls of an arm nor a last "
            f"turn from it show its gap, as method {method} needs.",
            remedy=f"Use {option('method', 'bracket')}, on one demonstration or on each, with its rounds.",
        )
    if isinstance(rule, IndexRule):
        raise NotIdentifiable(
            f"{rule.name}: with a delay of {rule.delay} rounds the rule compares rewards that it knew, and method "
            f"{method} reads counts of all pulls.",
            remedy=f"Use {option('method', 'bracket')}, with a log of rounds.",
        )
    raise NotIdentifiable(
        f"{rule.name}: the rule draws its arms at random, so no round shows two arms of equal value as method "
        f"{method} needs.",
        remedy=f"Use {option('method', 'posterior')}.",
    )


def needed(rule: Demonstrator, method: Method) -> Need:
    """Return what must be counted for a method to read a rule's demonstrations."""
    if method not in IN_ORDER or isinstance(rule, RecentIndexRule):
        return "counts"
    return "epochs" if isinstance(rule, EliminationRule) else "switching"


def compare(
    tallies: Tallies, rule: Demonstrator, method: Method, horizon: Horizon, constant: float = 1.0,
    anchor: Anchor | None = None, noise: Noise | None = None, *, at_the_end: bool = False,
) -> Comparison:  # fmt: skip
    """Return what demonstrations, of a log or of a simulation, say about every arm's gap.

    The constant is that of the naive estimator; only rules whose index does not rise one for one with the mean need the
    anchor. The points of a bracket rest on the noise where it is known; without it they are halfway between both sides.
    With `at_the_end`, how far an index rule's last round differs from an arm's last turn is filled in too.
    """
    check_comparable(rule, method)
    if isinstance(rule, RecentIndexRule):
        raise NotIdentifiable(f"{rule.name}: the rule forgets, so counts alone are not enough: its rounds are needed.")
    horizon, rule = _common(horizon), rule.for_arms(tallies.pulls.shape[1])
    kept = at_the_end and method in IN_ORDER and isinstance(rule, IndexRule)
    if method == "naive":
        return compare_naive(tallies.pulls, horizon, constant)
    result = Comparison.empty(tallies.pulls.shape, at_the_end=kept)
    if isinstance(horizon, int) or _is_power(rule, horizon):
        work: Callable[..., None] = _procedure_1 if isinstance(rule, EliminationRule) else _procedure_2
        work(tallies, rule, method, horizon, assumptions(rule, anchor, noise), result)
        return result
    order = np.argsort(horizon, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(horizon[order])) + 1):
        one = int(horizon[rows[0]])
        part = compare(tallies.at(rows), rule, method, one, constant, anchor, noise, at_the_end=at_the_end)
        result.put(rows, part)
    return result


def compare_naive(pulls: Counts, horizon: Horizon, constant: float) -> Comparison:
    """Return the naive estimate, which needs no rule: `constant sqrt(ln T / n_i)`."""
    result = Comparison.empty(pulls.shape)
    horizons = np.ascontiguousarray(np.broadcast_to(np.asarray(horizon, np.float64), len(pulls)))
    kernels.compare_naive.for_work(pulls.size)(
        horizons, float(constant), _fixed(pulls), result.best, result.verdict, result.numbers
    )
    return result


def compare_rounds(
    log: Record, start: int, stop: int, rule: RecentIndexRule, noise: Noise, pulls: Counts
) -> Comparison:  # fmt: skip
    """Return what the rounds of some demonstrations of a rule that forgets say about every arm's gap."""
    from unbandit.kernels.recent import compare_recent

    if not isinstance(log, ActionLog) or log.actions is None:
        raise NotIdentifiable(
            f"{rule.name}: the rule forgets, so all its rounds are needed from the first on; a log that is scanned, "
            "followed, begun in mid-run or misses rounds does not have them.",
            remedy="Read the whole log into memory.",
        )
    actions, offsets = log.actions, log.offsets
    for which in range(start, stop):
        _check_batch(log.demonstration(which)[len(log.arms) :], rule, len(log.arms))
    result = Comparison.empty((stop - start, len(log.arms)))
    codes, places = actions.view(f"u{actions.itemsize}"), np.ascontiguousarray(offsets[start : stop + 1], np.int64)
    compare_recent(
        rule.parameters(0), noise.deviation, codes, places, _fixed(pulls), result.best, result.verdict, result.numbers
    )
    return result


def _check_batch(actions: NDArray[Any], rule: RecentIndexRule, opening: int) -> None:
    """Refuse rounds after the opening that no rule with this batch plays, or that show a longer batch."""
    changes = np.flatnonzero(np.diff(actions)) + 1
    shown = int(np.gcd.reduce(np.diff(changes))) if changes.size > 1 else 1  # whatever the opening was
    if changes.size > FEWEST_CHANGES and (changes.size - 1) * np.log(shown / rule.batch) > -np.log(BY_CHANCE):
        begins = changes[0] % shown == 0
        raise NotIdentifiable(
            f"{rule.name}: the log changes its arm {changes.size:,} times after the opening, and always a multiple of "
            f"{shown} rounds after the time before, as a rule with batch={shown} does; got batch={rule.batch}.",
            remedy=f"Give batch={shown}, or the batch that made the log."
            if begins
            else f"With batch={shown} it would change at other rounds: the log has another opening, or none.",
        )
    if (within := changes[changes % rule.batch != 0]).size:
        at = opening + int(within[0]) + 1
        raise InferenceError(
            f"{rule.name}: a rule that decides every {rule.batch} rounds from round {opening + 1:,} on would not have "
            f"changed its arm in round {at:,}.",
            round=at,
            remedy="Check the batch.",
        )


def assumptions(
    rule: Demonstrator | None = None, anchor: Anchor | None = None, noise: Noise | None = None, z: float = 0.0
) -> Assumptions:
    """Return what is assumed besides the counts, as the kernels take it; `z` is for intervals alone."""
    index, error = rule if isinstance(rule, IndexRule) else None, NormalDist().cdf(-z)
    return Assumptions(
        initial=index.initial if index else 1,
        batch=index.batch if index else 1,
        shifts=bool(index.shifts) if index else True,
        anchor=NO_ARM if anchor is None else BEST_ARM if anchor.arm is None else anchor.arm,
        known_mean=float("nan") if anchor is None else float(anchor.value),
        sigma=float(noise.sigma) if isinstance(noise, Gaussian) else float("nan"),
        noise_known=noise is not None,
        z=float(z),
        wider=NormalDist().inv_cdf(1 - error / SMALLER_ERROR),
        log_error=float(np.log(error)),
    )


def most_pulled(pulls: Counts) -> Marks:
    """Mark the most-pulled arm of each demonstration, the first of them if several are tied."""
    marks = np.zeros(pulls.shape, np.bool_)
    np.put_along_axis(marks, pulls.argmax(axis=-1)[..., None], True, axis=-1)
    return marks


def without_a_mean(rule: IndexRule, *, counts_only: bool = False) -> NotIdentifiable:
    """Return the refusal of a rule whose gaps depend on where the means lie, where none is known."""
    known = f"give {option('best_mean')}, or the mean of any one arm as {option('anchor')}"
    instead = "" if counts_only else f". If you know none, use {option('method', 'posterior')}"
    return NotIdentifiable(
        f"{rule.name}: this rule's index does not rise one for one with the mean, so its choices give no gap without "
        f"one known mean; {known}{instead}."
    )


def _procedure_2(
    tallies: Tallies, rule: IndexRule, method: Method, horizon: Horizon, assumed: Assumptions, result: Comparison
) -> None:
    """Equate the indices of arm and best arm: at the switching rounds, at both sides of them, or from final counts."""
    if not rule.shifts and assumed.anchor == NO_ARM:
        raise without_a_mean(rule, counts_only=method == "counts")
    if rule.is_late and tallies.looks is None:
        text = f"{rule.name}: what a rule with a delay knew at its decisions is not in these counts."
        raise NotIdentifiable(text, remedy="Give the rounds, or leave the delay out.")
    pulls, counts_only = _fixed(tallies.pulls), method == "counts"
    own, of_best, rounds = (pulls,) * 3 if counts_only else (_fixed(each) for each in tallies.at_switching)
    last = _fixed(np.empty((0, 0), np.int64) if counts_only or tallies.last is None else tallies.last)

    looks = None if tallies.looks is None else _fixed(tallies.looks)

    def counts() -> Sequence[Counts]:
        if looks is not None:
            return [looks[..., at] for at in (0, 1, 3, 4, 6, 7, 8, 9)]
        opening = np.minimum(pulls, rule.initial)
        before = np.maximum(own - rule.batch, rule.initial)
        most = pulls.max(axis=-1, keepdims=True)
        return own, before, of_best, pulls, opening, np.maximum(most - rule.batch, of_best)

    additive = isinstance(rule, AdditiveIndexRule)
    parameters = _widths(rule, horizon, pulls, counts) if additive else rule.parameters(int(horizon))
    kernels.compare_index.for_work(pulls.size)(
        parameters, assumed, READINGS[method], pulls, last, own, of_best, rounds, looks, result.best, result.verdict,
        result.numbers, result.at_the_end,
    )  # fmt: skip


def _procedure_1(
    tallies: Tallies, rule: EliminationRule, method: Method, horizon: Horizon, assumed: Assumptions, result: Comparison
) -> None:
    """Read off when arms were eliminated; by counts alone, if pulled at least twice less than the most-pulled one."""
    pulls, most = tallies.pulls, tallies.pulls.max(axis=-1, keepdims=True)
    gone = (pulls > 0) & (pulls < most - 1) if method == "counts" else tallies.eliminated
    epochs = np.maximum(pulls - 1, 0)
    if rule.is_late:
        if rule.random_delay is None:
            failed, epochs = tested_epochs(pulls, pulls, rule.delay), tested_epochs(pulls, epochs, rule.delay)
        else:
            first, failed = expected_tests(pulls, gone, rule.random_delay)
            failed, epochs = latest_test(rule.tests, failed), np.where(gone, np.maximum(first - 1, 0), epochs)
        if (gone & (failed == 0)).any():
            text = f"{rule.name}: with a delay of {rule.delay} rounds an arm went before a reward of it was known."
            raise NotIdentifiable(text, remedy="Check the delay.")
        pulls = np.where(gone, failed, pulls)
        epochs = np.where(gone, np.minimum(epochs, failed - 1), epochs)
    before = epochs if rule._width_is_plain() else latest_test(rule.tests, epochs)

    def half_pulls() -> Sequence[Counts]:
        return 2 * pulls, 2 * before, pulls + most, 2 * np.maximum(most - 1, pulls)

    parameters = _widths(rule, horizon, pulls, half_pulls, parts=2)
    kernels.compare_elimination.for_work(pulls.size)(
        parameters, assumed, READINGS[method], _fixed(pulls), _fixed(before), np.ascontiguousarray(gone), result.best,
        result.verdict, result.numbers,
    )  # fmt: skip


def _widths(
    rule: Any, horizon: Horizon, pulls: Counts, counts: Callable[[], Sequence[Counts]], *, parts: int = 1
) -> Any:
    """Return a rule's widths as the kernels take them: a table where that is short, else those of the counts there are.

    Counts are of pulls, or of parts of a pull; those of 0 are never looked up.
    """
    most = int(pulls.max(initial=0))
    if isinstance(horizon, int) and most < pulls.size:
        return np.concatenate(([np.nan], rule.width(np.arange(1, parts * (most + 1) + 1) / parts, horizon)))
    if _is_power(rule, horizon):
        growth = np.broadcast_to(parts * theory.growth(horizon, rule.alpha), len(pulls))
        return PowerWidths(float(rule.factor), np.ascontiguousarray(growth, np.float64))
    different = np.unique(np.concatenate([each.reshape(-1) for each in counts()]))
    different = different[different > 0]
    return SparseWidths(different, rule.width(different / parts, int(horizon)))


def _is_power(rule: Demonstrator, horizon: Horizon) -> bool:
    return isinstance(rule, RegretWidth) and has_power_width(rule, int(np.max(horizon)))


def _common(horizon: Horizon) -> Horizon:
    """Return the one horizon of all demonstrations as a number; where they differ, each as it is."""
    if isinstance(horizon, int | np.integer):
        return int(horizon)
    return int(horizon[0]) if horizon.size and (horizon == horizon[0]).all() else horizon


def _fixed(array: Counts) -> Counts:
    """Return a view that cannot be written to, as counts of a log are: kernels are compiled for one kind only."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def latest_test(tests: Callable[[Counts], Marks], epochs: Counts) -> Counts:
    """Return for each of some epochs the latest one up to it that ended in a test; 0 where none did.

    Where it is far back, all epochs are looked at, a block after the other, since there may be billions.
    """
    asked, places = np.unique(epochs, return_inverse=True)
    found = np.where(asked > 0, -1, 0)
    for back in range(BACK):  # most rules test at every epoch, or at regular intervals
        tested = (found < 0) & (asked > back) & tests(np.maximum(asked - back, 1))
        found[tested] = asked[tested] - back
        if (found >= 0).all():
            break
    so_far = 0
    for start in range(0, int(asked[found < 0].max(initial=-1)) + 1, BLOCK):
        numbers = np.arange(start, start + BLOCK)
        up_to = np.maximum.accumulate(np.where((numbers > 0) & tests(numbers), numbers, so_far))
        block = (found < 0) & (asked >= start) & (asked < start + BLOCK)
        found[block], so_far = up_to[asked[block] - start], int(up_to[-1])
    return found[places].reshape(epochs.shape)


# Intervals


class Intervals(NamedTuple):
    """Intervals of every arm's gap and mean: arrays of (demonstrations, arms), NaN where there is no number.

    `deviation` is the standard deviation of each gap, `deviation_above` that of the comparison behind its upper end.
    Means follow from one that is known; without one they have no rows.
    """

    low: Numbers
    high: Numbers
    deviation: Numbers
    deviation_above: Numbers
    mean: Numbers
    mean_low: Numbers
    mean_high: Numbers


def quantile(level: float) -> float:
    """Return `z`, the normal quantile of a two-sided interval."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def intervals(comparison: Comparison, noise: Noise, anchor: Anchor | None, z: float) -> Intervals:
    """Return the intervals of gaps, and from one known mean those of means, at `z` standard deviations.

    A bound is not let below 0, an estimate's end is.
    """
    demonstrations, arms = comparison.verdict.shape
    ends, means = np.empty((4, demonstrations, arms)), np.empty((3, 0 if anchor is None else demonstrations, arms))
    assumed = assumptions(anchor=anchor, noise=noise, z=z)
    fill_intervals.for_work(comparison.best.size)(
        assumed, comparison.best, comparison.verdict, comparison.numbers, ends, means
    )
    return Intervals(*ends, *means)


def ratios(comparison: Comparison, reference: int | None) -> tuple[Numbers, Counts]:
    """Count every gap in units of one arm's gap: a common factor falls out.

    Returns the ratios, NaN where the reference arm has no estimated gap above 0, and for each demonstration the
    reference arm: the one given, or the one whose gap is known best; -1 where there is none.
    """
    with np.errstate(invalid="ignore"):
        usable = (comparison.verdict == ESTIMATED) & (comparison.gap > 0)
    variance = 1 / comparison.own + 1 / comparison.other  # in units of sigma squared
    variance = np.where(np.isnan(variance), 1.0, variance)  # naive gaps have none: a common one
    known_best = np.where(usable, variance, np.inf).argmin(axis=-1)
    units = np.where(usable.any(axis=-1), known_best, -1)
    if reference is not None:
        units = np.full(units.shape, reference)
    place = np.maximum(units, 0)[..., None]
    counted = np.take_along_axis(usable, place, axis=-1) & (units >= 0)[..., None]
    unit = np.where(counted, np.take_along_axis(comparison.gap, place, axis=-1), np.nan)
    return np.asarray(comparison.gap / unit), units


# The question and the answer


@dataclass(frozen=True)
class Request:
    """A record, the rule that is assumed to have made it, and what is known besides."""

    log: Record
    rule: Demonstrator  # for this many arms
    method: Method
    horizons: Counts  # `T` of each demonstration
    noise: Noise
    anchor: Anchor | None
    level: float = 0.95
    noise_known: bool = True  # otherwise it was assumed, or widths are known up to a factor only
    constant: float = 1.0  # of the naive estimator
    scale: Literal["known", "unknown"] = "known"  # of the rule's width
    reference: int | None = None  # the arm that ratios are counted in, if one was given
    availability: Availability | None = None  # of arms that were not there in all rounds
    available: AvailableReading | None = None  # what closed forms read there

    @property
    def z(self) -> float:
        """Return the normal quantile of the level."""
        return quantile(self.level)

    @property
    def known_noise(self) -> Noise | None:
        """Return the noise where points may rest on it."""
        return self.noise if self.noise_known else None

    @cached_property
    def lengths(self) -> Counts:
        """Return the number of rounds of each demonstration."""
        return self.log.lengths

    @cached_property
    def tallies(self) -> Tallies:
        """Return what the method counts."""
        check_comparable(self.rule, self.method)
        if self.availability is not None:
            return self.log.tallied("counts")
        tallies = self.log.tallied(needed(self.rule, self.method))
        looks = self.rule.look_rule()
        if looks is None or self.method not in IN_ORDER:
            return tallies
        with_looks: Callable[[Tallies, LookRule], Tallies] | None = getattr(self.log, "with_looks", None)
        if with_looks is None:
            raise NotIdentifiable(
                f"{self.rule.name}: what a rule with a delay knew is read round by round, and a "
                f"{type(self.log).__name__} does not keep rounds.",
                remedy="Read the log into memory, or leave the delay out.",
            )
        return with_looks(tallies, looks)

    def compare(self, start: int, stop: int) -> Comparison:
        """Read the demonstrations from `start` up to `stop` by a closed form."""
        if self.available is not None:
            return self.available.comparison.part(start, stop)
        tallies, horizons = self.tallies.part(start, stop), self.horizons[start:stop]
        if isinstance(self.rule, RecentIndexRule):
            return compare_rounds(self.log, start, stop, self.rule, self.noise, tallies.pulls)
        return compare(
            tallies, self.rule, self.method, horizons, self.constant, self.anchor, self.known_noise, at_the_end=True
        )

    def intervals(self, comparison: Comparison) -> Intervals:
        """Return the intervals of a comparison at this noise and level."""
        return intervals(comparison, self.noise, self.anchor, self.z)


class Answer:
    """Numbers, verdicts and notices as they come about: one row per demonstration, or one row in all.

    A quantity that is not asked for has no number anywhere.
    """

    def __init__(self, demonstrations: Sequence[str], pulls: Counts, quantities: Sequence[str] = NUMBERS[:6]) -> None:
        self.demonstrations, self.pulls = demonstrations, pulls
        self.numbers = {name: np.empty(pulls.shape) for name in quantities}
        self.verdict = np.full(pulls.shape, UNSEEN, np.int8)
        self.best = np.zeros(pulls.shape, np.bool_)
        self.apart = np.zeros(pulls.shape, np.bool_)  # arms whose gap is to another arm than those of the rest
        self.warnings: list[Notice] = []
        self.notes: list[Notice] = []
        self.posteriors: list[Posterior] = []
        self.changed: dict[str, Any] = {}  # parameters in which the rule that explains the record is another

    def put(
        self, rows: int | slice, numbers: Mapping[str, Numbers], verdict: NDArray[np.int8], best: Marks
    ) -> None:  # fmt: skip
        """Put one row, or some, in their places."""
        for name, values in numbers.items():
            self.numbers[name][rows] = values
        self.verdict[rows], self.best[rows] = verdict, best

    @property
    def columns(self) -> Columns:
        """Return the numbers of an estimate; one NaN stands for all of a quantity that is missing."""
        nothing = np.broadcast_to(np.nan, self.pulls.shape)
        numbers = {name: self.numbers.get(name, nothing) for name in NUMBERS}
        return Columns(pulls=self.pulls, verdict=self.verdict, **numbers)
