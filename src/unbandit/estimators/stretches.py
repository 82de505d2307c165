"""Estimates by stretch: what each part of a log says about every gap, and whether an arm's value drifted.

A rule's averages go on from stretch to stretch, so a stretch is a log that begins in mid-run with known pulls: it is
read at the last hesitation within it. Where no value changes, two stretches differ by noise alone, and simulations of
the rule at the estimate show by how much.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule, parse_rule
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import AssumptionWarning, Notice, NotIdentifiable, ParameterError, option
from unbandit.estimators.api import estimate
from unbandit.estimators.arguments import as_log, as_record, is_thinned, known_mean, reward_noise, shows_part
from unbandit.estimators.check import DRIFTED
from unbandit.estimators.diagnostics import said_of_left
from unbandit.estimators.procedures import Answer, Request, compare, quantile
from unbandit.formatting import interval, number, quoted, simulated
from unbandit.inference.check import AnsweredMeans
from unbandit.inference.predictive import ALARM, shown_how, which_moved, who_drifted
from unbandit.log import ActionLog
from unbandit.log.partial import PartialLog
from unbandit.log.tallies import Record
from unbandit.result import BEST, BOUNDED, ESTIMATED, Columns, Estimate, Quantity, shown_quantity
from unbandit.tables import Finding, as_written_by, read_whole

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

SCHEMA = "unbandit.stretches/1"

SIMULATIONS = 399  # of the rule, without drift
ROUNDS_PER_ARM = 10  # that a stretch must have
MOST_SIMULATED_ROUNDS = 20_000_000
NOT_WANTED = ("pool", "kept", "availability", "starting_pulls", "resamples", "seed", "prior", "particles", "constant")

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]


class Drift(NamedTuple):
    """The two stretches between which an arm's value moved most, compared with the others'.

    Each limits how far the arm that shows it is below the later best arm, and the two limits contradict each other:
    one is the least, the other the most. Where a stretch shows the gap itself, the limit is that.
    """

    arm: str
    shown_by: str  # the arm whose gap moved: the same or, if others moved alike, the one that did most
    compared_with: str  # the best arm of the later stretch
    before: int  # position of the earlier stretch
    after: int  # and of the later one
    limit_before: float  # of the gap to the later best arm, in the earlier stretch
    limit_after: float  # and in the later one
    distance: float  # between the two limits, in standard deviations
    p_value: float  # of simulations without drift, the share that differ as much
    decided: bool = True  # whether a third arm tells which of the two moved, `shown_by` or `compared_with`
    left_after: int | None = None  # the round of the last pull of `shown_by`, if the last stretch has none


@dataclass(frozen=True, eq=False, repr=False)
class Stretches(Finding):
    """Estimates from successive stretches of a log.

    Attributes
    ----------
    first
        The first round of each stretch.
    last
        The last round of each stretch.
    columns
        The numbers, as arrays of (stretches, arms): the gaps of the rule's averages since the log began, at the last
        hesitation within each stretch.
    answer
        The estimate from the whole log.
    furthest
        Where stretches differ most; None if too little is known of any arm, or nothing of the rewards' noise.
    """

    rule: str
    arms: tuple[str, ...]
    demonstration: str
    first: Counts
    last: Counts
    columns: Columns
    answer: Estimate
    furthest: Drift | None

    def __repr__(self) -> str:
        found = ""
        if self.furthest is not None and self.drifted:
            arm, shown_by, other = self.furthest[:3]
            found = f", drift of {quoted(arm) if self.furthest.decided else f'{quoted(shown_by)} to {quoted(other)}'}"
        return f"<Stretches: {self.first.size} of {self.last[-1]:,} rounds, {len(self.arms)} arms{found}>"

    @property
    def drifted(self) -> bool:
        """Return whether stretches differ by more than chance makes them."""
        return self.furthest is not None and self.furthest.p_value <= ALARM

    @property
    def quantity(self) -> Quantity:
        """Return what is known of the arms: their means, else their gaps."""
        return shown_quantity(self.answer)

    def to_frame(self) -> polars.DataFrame:
        """Return a table, one row per stretch and arm."""
        return self.columns.frame(self.arms, {"first": self.first, "last": self.last})

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Return a warning with the arm and the stretches, if an arm drifted."""
        if self.furthest is None or not self.drifted:
            return ()
        found = self.furthest
        fell = found.limit_before > found.limit_after
        ends = (found.before, found.limit_before, fell), (found.after, found.limit_after, not fell)
        said = " and ".join(
            f"{_below(limit, is_least=is_least)} {quoted(found.compared_with)} in rounds {self.first[at]:,} to "
            f"{self.last[at]:,}"
            for at, limit, is_least in ends
        )
        arm = found.arm if found.decided else None
        text = (
            f"{who_drifted(arm, found.shown_by, found.compared_with)}: {shown_how(arm, found.shown_by)} was {said}, "
            f"{found.distance:.1f} standard deviations apart. "
            f"Without drift stretches differ so much in {simulated(found.p_value, SIMULATIONS)}. The estimates of the "
            "whole log average over it: do not rely on them."
        )
        if found.left_after is not None:
            text += said_of_left([(found.shown_by, found.left_after)])
        return (Notice("drift", text, round=int(self.first[found.after]), arm=arm),)

    @property
    def notes(self) -> tuple[Notice, ...]:
        """Return why stretches were not compared, if they were not."""
        if self.furthest is not None:
            return ()
        text = (
            "Stretches were not tested for drift: the rewards' standard deviation is not known, no arm shows a gap in "
            "two of them, or the log is too long to be simulated many times."
        )
        return (Notice("drift-not-tested", text),)

    def written(self, stretch: int, arm: int) -> str:
        """Write what a stretch says about an arm."""
        point, low, high = (
            float(getattr(self.columns, self.quantity + end)[stretch, arm]) for end in ("", "_low", "_high")
        )
        reach = interval(None if np.isnan(low) else low, None if np.isnan(high) else high)
        if np.isnan(point):
            return reach or "-"
        return f"{number(point)} ({reach})" if reach else number(point)

    def to_dict(self) -> dict[str, Any]:
        """Return the table, the alarm and the answer from the whole log, ready for JSON."""
        found = None if self.furthest is None else self.furthest._asdict()
        said = {
            "drifted": None if found is None else self.drifted,
            "furthest": found,
            "rows": self.to_frame().to_dicts(),
        }
        return {"schema": SCHEMA, "demonstration": self.demonstration, **said, "answer": self.answer.to_dict()}

    @classmethod
    @as_written_by("Stretches")
    def from_json(cls, text: str | bytes) -> Stretches:
        """Return the stretches that `to_json` wrote."""
        said = read_whole(text, SCHEMA, "answer", "Stretches")
        answer, rows, drift = Estimate.from_dict(said["answer"]), said["rows"], said["furthest"]
        step = len(answer.arms)
        first, last = (np.array([row[name] for row in rows[::step]], np.int64) for name in ("first", "last"))
        columns, furthest = Columns.read(rows, (first.size, step)), None if drift is None else Drift(**drift)
        return cls(answer.rule, answer.arms, said["demonstration"], first, last, columns, answer, furthest)

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw the estimates of up to eight arms, by stretch; on `ax`, which is returned, or a new figure."""
        from unbandit import plots

        return plots.stretches(self, ax=ax)


def _below(gap: float, *, is_least: bool) -> str:
    """Write a limit of a gap: the least or the most by which an arm is below another, or above it."""
    if gap < 0:
        return f"at {'most' if is_least else 'least'} {number(-gap)} above"
    return f"at {'least' if is_least else 'most'} {number(gap)} below"


def stretches(
    log: ActionLog | str | os.PathLike[str] | Any, rule: Demonstrator | str, *, windows: int = 4,
    demonstration: object = None, **options: Any,
) -> Stretches:  # fmt: skip
    """Estimate from successive stretches of a log, and say whether an arm's value drifted from one to another.

    Parameters
    ----------
    log
        As for `estimate`.
    rule
        As for `estimate`; an index rule, which returns to every arm.
    windows
        How many stretches, of equal length.
    demonstration
        The name of the one to take from a log of several.
    options
        Of `estimate`, of those that method `bracket` has.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.5, 0.3], 0.5), horizon=4_000, seed=7)
    >>> ub.stretches(log, "ucb:alpha=0.25", sigma=0.5)
    <Stretches: 4 of 4,000 rounds, 3 arms>
    """
    record, assumed = as_record(log), parse_rule(rule)
    check_stretches(record, assumed, windows, options, demonstration)
    record, fitted = as_log(record, "stretches"), assumed.for_arms(len(record.arms))
    assert isinstance(fitted, IndexRule)
    which = checks.position("demonstration", demonstration, record.demonstrations)
    whole, length = record.select(which), int(record.lengths[which])
    cuts = np.linspace(0, length, windows + 1).round().astype(np.int64)
    horizon = length if options.get("horizon") is None else options["horizon"]
    asked = options | {"horizon": horizon, "check": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        answer = estimate(whole, fitted, **asked)
        columns = [_of_stretch(_part(whole, *ends), fitted, asked) for ends in pairwise(cuts.tolist())]
    stacked = {field.name: np.vstack([getattr(one, field.name) for one in columns]) for field in fields(Columns)}
    furthest = _furthest(whole, fitted, answer, cuts, horizon, options)
    return Stretches(
        answer.rule, record.arms, record.demonstrations[which], cuts[:-1] + 1, cuts[1:], Columns(**stacked), answer,
        furthest,
    )  # fmt: skip


def with_stretches(answer: Estimate, found: Stretches) -> Estimate:
    """Return an answer with the notices of its stretches; where both tell of drift, one of the two.

    That is what the stretches say, unless they name two arms and the check says of one of them that it drifted.
    """
    if not found.drifted or found.furthest is None:
        return replace(answer, notes=(*answer.notes, *found.notes))
    drift = found.furthest
    named = {each.arm for each in answer.warnings if each.code in DRIFTED}
    by_check = next((arm for arm in drift[1:3] if arm in named), None)
    if not drift.decided and by_check is not None:
        found = replace(found, furthest=drift._replace(arm=by_check, decided=True))
    own = (each for each in answer.warnings if each.code not in DRIFTED)
    return replace(answer, warnings=(*found.notices, *own), notes=(*answer.notes, *found.notes))


def check_stretches(
    record: Record, rule: Demonstrator | RuleFamily, windows: int, options: Mapping[str, Any],
    demonstration: object = None,
) -> None:  # fmt: skip
    """Refuse, before anything is estimated, what does not show an arm's gap again and again."""
    windows = checks.whole("windows", windows, 2)
    if not record.ordered:
        raise ParameterError("stretches: expected a log with rounds; this one holds counts, which have no order.")
    if shows_part(record):
        what = "misses rounds" if is_thinned(record) else "begins in mid-run"
        text = f"stretches: the log {what}, and drift is told from noise by simulations of whole runs."
        raise NotIdentifiable(text, remedy=f"Leave {option('windows')} out.")
    assumed = rule.example if isinstance(rule, RuleFamily) else rule
    if not isinstance(assumed, IndexRule) or assumed.is_late:
        why, remedy = "this one does not show an arm's gap in each", f"Leave {option('windows')} out."
        if isinstance(assumed, EliminationRule):
            why = "an arm that this one has dropped shows nothing in later stretches"
        elif isinstance(assumed, RandomisedRule):
            why = "this one is read by posteriors, and simulations to hold drift against would need hundreds of them"
            remedy += f" The later half can be read alone: give the pulls before it with {option('starting_pulls')}."
        raise NotIdentifiable(
            f"{assumed.name}: stretches are compared for index rules without a delay, which keep comparing every arm; "
            f"{why}.",
            remedy=remedy,
        )
    for name in NOT_WANTED:
        if options.get(name) is not None and options[name] is not False:
            why = ": gaps would be to other arms in each stretch" if name == "availability" else ""
            text = f"expected without {option('windows')}{why}; leave one of them out."
            raise ParameterError(text, parameter=name)
    if options.get("method") not in (None, "bracket"):
        text = "stretches are read by method bracket; leave it out."
        raise ParameterError(text, parameter="method", value=options["method"])
    if options.get("scale", "known") != "known":
        text = "without the width's scale stretches cannot be compared with simulations; leave it out."
        raise ParameterError(text, parameter="scale")
    if demonstration is None and len(record) > 1:
        text = f"expected one demonstration, since each has stretches of its own; this log has {len(record):,}."
        remedy = f"Choose one, as in {option('demonstration', record.demonstrations[0])}."
        raise ParameterError(text, parameter="windows", remedy=remedy)
    length = int(record.lengths[checks.position("demonstration", demonstration, record.demonstrations)])
    if length < windows * ROUNDS_PER_ARM * len(record.arms):
        fewest = ROUNDS_PER_ARM * len(record.arms)
        text = f"{length:,} rounds make no {windows} stretches of {fewest} rounds or more."
        remedy = "Give fewer." if length >= 2 * fewest else f"Leave {option('windows')} out: the log is too short."
        raise ParameterError(text, parameter="windows", value=windows, remedy=remedy)


def _part(runs: ActionLog, start: int, stop: int) -> PartialLog:
    """Return a stretch of runs of equal length, with the pulls before it."""
    assert runs.actions is not None
    actions, arms = runs.actions.reshape(len(runs), -1), len(runs.arms)
    first = np.arange(len(runs))[:, None] * arms
    before = np.bincount((actions[:, :start] + first).reshape(-1), minlength=len(runs) * arms)
    rows = ActionLog.from_codes(np.ascontiguousarray(actions[:, start:stop]), runs.arms)
    return PartialLog(rows, before.reshape(-1, arms))


def _of_stretch(part: PartialLog, rule: Demonstrator, asked: Mapping[str, Any]) -> Columns:
    """Estimate from a stretch; no numbers where nothing follows from it."""
    try:
        return estimate(part, rule, **asked).columns
    except NotIdentifiable:
        return Answer(part.demonstrations, np.zeros((1, len(part.arms)), np.int64), ()).columns


# Whether stretches differ by more than noise


class _Readings(NamedTuple):
    """Limits of the gaps of several runs, equal where they are known, and the arm that they are to.

    Arrays of (stretches, runs, arms), the last one without arms.
    """

    low: Numbers
    high: Numbers
    deviation: Numbers
    best: Counts


def _furthest(
    whole: ActionLog, rule: IndexRule, answer: Estimate, cuts: Counts, horizon: int, options: Mapping[str, Any]
) -> Drift | None:
    """Return where stretches differ most, and how often simulations without drift differ as much."""
    noise, assumed = reward_noise(rule, options.get("sigma"), bool(options.get("bernoulli")))
    numbers, length = answer.columns, int(whole.lengths[0])
    ends = (numbers.gap[0], numbers.gap_low[0], numbers.gap_high[0])
    means = AnsweredMeans(*ends, quantile(answer.level), numbers.mean[0] if np.isfinite(numbers.mean).any() else None)
    if assumed or not means.says_anything or SIMULATIONS * length > 10 * MOST_SIMULATED_ROUNDS:
        return None
    anchor = known_mean(options.get("best_mean"), options.get("anchor"), whole.arms)
    request = Request(whole, rule, "bracket", np.array([horizon]), noise, anchor)
    read = _read(request, whole, cuts, horizon)
    shifts, distances, falls = _compared(read)
    if not np.isfinite(distances).any():
        return None
    few, simulated = max(1, MOST_SIMULATED_ROUNDS // length), []
    drawn = means.draw(SIMULATIONS, noise, np.random.default_rng(7))
    for first in range(0, SIMULATIONS, few):
        runs = rule.demonstrate_at(drawn[first : first + few], noise, horizon, length=length, seed=1, first_run=first)
        again = _compared(_read(request, ActionLog.from_codes(runs, whole.arms), cuts, horizon))[1]
        simulated.append(again.max(axis=(0, 2)))
    pair, _, arm = np.unravel_index(int(distances.argmax()), distances.shape)
    chance = (1 + int((np.concatenate(simulated) >= distances.max()).sum())) / (SIMULATIONS + 1)
    before, after = _pairs(cuts.size - 1)[int(pair)]
    best, at = int(read.best[after, 0]), (0, int(arm))
    fell = shifts[int(pair)][at] > 0
    of_best = (read.high if fell else read.low)[before, 0, best]
    earlier, later = (read.low, read.high) if fell else (read.high, read.low)
    limits = float(earlier[before][at] - of_best), float(later[after][at])
    shown, far = float(shifts[int(pair)][at]), float(distances.max())
    moved = which_moved(falls[:, int(pair), 0], int(arm), best, shown, abs(shown) / far)
    last = int(whole.tallied("counts").counted[2][0, int(arm)])
    return Drift(
        whole.arms[int(arm) if moved is None else moved], whole.arms[int(arm)], whole.arms[best], before, after,
        *limits, far, chance, moved is not None, last if last <= cuts[-2] else None,
    )  # fmt: skip


def _pairs(windows: int) -> list[tuple[int, int]]:
    return [(before, after) for before in range(windows) for after in range(before + 1, windows)]


def _read(request: Request, runs: ActionLog, cuts: Counts, horizon: int) -> _Readings:
    """Read every stretch of some runs.

    An arm that the rule turned from before a stretch has at least the gap of that moment. One that it chose after the
    best arm's last pull has at most the gap of its own last one.
    """
    low, high, deviations, best = [], [], [], []
    for ends in pairwise(cuts.tolist()):
        part, horizons = _part(runs, *ends), np.full(len(runs), horizon)
        asked = Request(part, request.rule, "bracket", horizons, request.noise, request.anchor)
        comparison = asked.compare(0, len(runs))
        known, is_best = comparison.verdict == ESTIMATED, comparison.verdict == BEST
        least = np.where(known | (comparison.verdict == BOUNDED), comparison.below, -np.inf)
        most, returned = np.where(known, comparison.below, np.inf), _returned(asked)
        lower = returned < most
        low.append(np.where(is_best, 0.0, np.where(lower & known, -np.inf, least)))
        high.append(np.where(is_best, 0.0, np.where(lower, returned, most)))
        deviations.append(np.where(is_best, 0.0, asked.intervals(comparison).deviation))
        best.append(comparison.best.argmax(axis=1))
    return _Readings(*map(np.array, (low, high, deviations, best)))


def _returned(asked: Request) -> Numbers:
    """Return the most that a gap can be of arms pulled after the best one's last pull; infinity for others."""
    tallies, rows = asked.tallies, np.arange(len(asked.log))
    pulls, last, top = tallies.pulls, tallies.last, tallies.pulls.argmax(axis=1)
    most = pulls[rows, top][:, None]
    later = last > last[rows, top][:, None]
    every = pulls.copy()
    every[rows, top] += 1
    counts = replace(tallies, pulls=every, own=pulls, of_best=np.broadcast_to(most, pulls.shape), rounds=last)
    read = compare(counts, asked.rule, "bracket", asked.horizons, anchor=asked.anchor)
    return np.where(later & (read.verdict == ESTIMATED), read.above, np.inf)


def _compared(read: _Readings) -> tuple[Numbers, Numbers, Numbers]:
    """Return by how much arms moved at least between two stretches, against the later best arm, and in deviations.

    Both are (pairs, runs, arms); 0, and minus infinity, where the two do not contradict each other. The last array
    holds the least and the most by which gaps to that arm fell, and their deviation: (3, pairs, runs, arms).
    """
    windows, runs, arms = read.low.shape
    pairs, every = _pairs(windows), np.arange(runs)
    shifts, distances, *falls = np.empty((5, len(pairs), runs, arms))
    for at, (before, after) in enumerate(pairs):
        best = read.best[after]
        of_best = (each[before, every, best][:, None] for each in read[:3])
        best_low, best_high, best_deviation = of_best
        with np.errstate(invalid="ignore", divide="ignore"):  # gaps to the later best arm
            fell = read.low[before] - best_high - read.high[after]
            rose = read.low[after] - (read.high[before] - best_low)
            variance = read.deviation[before] ** 2 + best_deviation**2 + read.deviation[after] ** 2
            falls[0][at], falls[1][at], falls[2][at] = fell, -rose, np.sqrt(variance)
            shifts[at] = np.where(fell > 0, fell, np.where(rose > 0, -rose, 0.0))
            far = np.abs(shifts[at]) / falls[2][at]
        shifts[at][~np.isfinite(shifts[at])] = 0.0
        distances[at] = np.where(np.isfinite(far) & (far > 0), far, -np.inf)
    return shifts, distances, np.stack(falls)
