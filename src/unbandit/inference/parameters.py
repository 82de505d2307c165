"""Numbers of a rule fitted from a log: how probable the log is under each value, and what that leaves possible.

The logarithm of a log's evidence is computed at some values (`inference.surface`): decisions of an index rule are
predicted one by one (`inference.decisions`), randomised rules are filtered (`inference.clouds`). The prior is flat in
the logarithm of a number, over a wide range. A log under which the end of that range is as probable as anything else
does not show the number: that is refused.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.checks import in_threads
from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule
from unbandit.demonstrators.family import AVERAGED, WHOLE, RuleFamily
from unbandit.errors import InferenceError, NotIdentifiable, ParameterError, option
from unbandit.fit import FittedNumber
from unbandit.formatting import number
from unbandit.inference.clouds import evidence_without_clouds, one_look_ahead, particles_for, run_filters
from unbandit.inference.decisions import Predictions, predict
from unbandit.inference.filter import log_mean
from unbandit.inference.prior import NormalPrior, Prior, belief_of
from unbandit.inference.rivals import predicts
from unbandit.inference.simulations import MOST_SIMULATED_ARMS, SIMULATIONS, fit_by_simulation, is_long
from unbandit.inference.steps import opening_chance, reading_of
from unbandit.inference.surface import (
    CLOUDS,
    DENSE,
    LEAST,
    LEAST_ERROR,
    WINDOW,
    Cells,
    Correction,
    cell_masses,
    evidence_density,
    narrowed,
    of_places,
    principal_axes,
    quadratic_terms,
    quantile,
    spread_out,
    spread_quantiles,
    surveyed,
)
from unbandit.inference.whole_numbers import Setting, settled_whole_numbers, weighed_settings
from unbandit.instance import Noise
from unbandit.log import ActionLog
from unbandit.progress import current_work

Numbers = NDArray[np.float64]

MOST_FREE = 2  # numbers that are fitted at once
REACH = {1: 128.0, 2: 32.0}  # how far the range goes beyond usual values, as a factor, by how many are fitted
COARSE, COARSE_SMOOTH = 13, 9  # values of one number in the first grid, and where its evidence has no errors
FINE, ENOUGH = 9, 9  # values in the grids after it, and near the top, after which it is not narrowed any further
OPEN_END = 3.0  # nats below the top, within which the end of a range must not be
BINS = 31  # of a density, in which its ends are looked at
MOST_SPAN = 25.0  # ratio of the ends of an interval, from which on a log is said not to show a number
PARTICLES, FILTERED = 24, 60  # of a cloud that predicts decisions, and of one that filters
FILTERS = 2  # such clouds that filter under each value near the top
UNCLEAR = 0.5  # deviation of a number's logarithm from which on simulations show nothing
FIRST_ROUNDS, FIRST_ROUNDS_PER_ARM = 2_000, 500  # of a long log, whose decisions are predicted
FEWEST_CLOSE = 5  # pulls per arm beside the most-pulled one, below which a long log shows nothing
FAR = 4.0  # deviations to which a density that is normal is laid out
MORE, AGREE = 4, 2.0  # times as many particles under a setting where clouds differ by more nats
SPOTS, AMONG = np.linspace(-2.4, 2.4, 7)[:, None], 12
"""Where clouds are asked how wrong Laplace's method is: deviations of one number, and how many places of two."""
MOST_LEFT, STEEPEST = 0.4, 1.5  # nats around a smooth function, and per deviation, by which these may differ
PARTS, HALF = 1_000, 150  # parts of the fit that are shown, and places after which half of them are done
ALLOWANCE, SEEN = 3.0, 16  # nats by which a demonstration may have more evidence than anywhere in so many places
ROUNDED = 1e-6  # nats by which the arithmetic may exceed a log probability of 0
MOST_ERROR = 0.7  # Monte-Carlo error of the log evidence of two numbers, in nats, from which on these do not show
SCALED, BY_PRIOR = "temperature", 0.85  # what gaps are in proportion to; and the least share of what a prior leaves
WIDEST = 0.7  # deviation of a number's logarithm up to which a few clouds show all differences

BY_DECISIONS = "decisions, predicted one by one"
BY_FILTER = "evidence, by a particle filter"
BY_BEGINNING = "decisions of the first rounds, predicted one by one"
BY_SIMULATION = "pulls and visits, beside simulations"


@dataclass(frozen=True)
class Axis:
    """A number that is fitted, and the range of values that are considered; `x` is its logarithm, or itself."""

    name: str
    low: float  # of x
    high: float
    open_low: bool  # whether smaller values exist
    open_high: bool
    linear: bool = False

    def value(self, x: float) -> float:
        """Return the number at `x`."""
        return x if self.linear else math.exp(x)


@dataclass(frozen=True, eq=False)
class ParameterPosterior:
    """What a log leaves possible of a rule's numbers.

    Attributes
    ----------
    family
        The rule with its free numbers.
    fitted
        Each number's median and interval; of numbers that appear together only, their combination.
    settings
        What is possible of delays and ties, with probabilities; `fixed` has the first one: the most probable, or the
        median of many. Numbers that are fitted beside them are those under that one.
    """

    family: RuleFamily
    axes: tuple[Axis, ...]
    places: Numbers  # of the density, (places, numbers), in x
    weights: Numbers  # which sum to 1
    fitted: tuple[FittedNumber, ...]
    fixed: Mapping[str, Any]
    settings: tuple[Setting, ...] = (Setting(1.0, {}),)

    @property
    def varies(self) -> bool:
        """Return whether the log leaves more than one value possible of anything."""
        return bool(self.axes) or len(self.settings) > 1

    def under(self, setting: Setting) -> ParameterPosterior:
        """Return what is known under one of the settings."""
        return replace(self, fixed={**self.fixed, **setting.values}, settings=(Setting(1.0, setting.values),))

    def rule_at(self, x: Numbers) -> Demonstrator:
        """Return the rule at a place."""
        rule: Demonstrator = _rule_at(self.family, self.axes, self.fixed, x)
        return rule

    @property
    def medians(self) -> Numbers:
        """Return the median of each number, in x."""
        return np.array([quantile(self.places[:, at], self.weights, 0.5) for at in range(len(self.axes))])

    @property
    def rule(self) -> Demonstrator:
        """Return the rule at the medians."""
        return self.rule_at(self.medians)

    def points(self, count: int) -> Numbers:
        """Return equally likely places, (places, numbers), which have together the mean and the covariance of all.

        Of one number `count` quantiles, a little further apart than they are; of two the centre and both ways along
        the principal axes.
        """
        if len(self.axes) == 1:
            points = spread_quantiles(self.places[:, 0], self.weights, count)[:, None]
        else:
            centre, ways = principal_axes(self.places, self.weights)
            ways = ways * math.sqrt((2 * len(self.axes) + 1) / 2)
            points = np.vstack([centre, centre + ways, centre - ways])
        return np.clip(points, *_limits(self.axes))

    def values(self, places: Numbers) -> Numbers:
        """Return the numbers at some places."""
        return np.where([axis.linear for axis in self.axes], places, np.exp(places))

    def rules(self, count: int) -> list[Demonstrator]:
        """Return the rules at equally likely places and settings."""
        points = self.points(count) if self.axes else np.empty((count, 0))
        ends = np.cumsum([each.probability for each in self.settings])
        which = np.searchsorted(ends / ends[-1], np.random.default_rng(0).permutation(np.arange(count) + 0.5) / count)
        parts = [self.under(each) for each in self.settings]
        return [parts[at].rule_at(point) for at, point in zip(which[: len(points)].tolist(), points, strict=True)]


def fit_family(
    log: ActionLog, family: RuleFamily, noise: Noise, prior: Prior, horizons: Sequence[int], *, level: float = 0.95,
    seed: int = 0, particles: int = PARTICLES, threads: int = 1,
) -> ParameterPosterior:  # fmt: skip
    """Fit a rule's free numbers; demonstrations have instances of their own, so that their evidences multiply.

    Decisions of an index rule are predicted by so many `particles`. The fit is the same on any number of threads.

    Raises
    ------
    NotIdentifiable
        If the evidence cannot be computed, or does not show the numbers.
    """
    axes, held = _axes(family, noise, horizons)
    fixed: dict[str, Any] = dict(held)
    centre = np.array([(axis.low + axis.high) / 2 for axis in axes])
    example = _rule_at(family, axes, fixed, centre)
    averaged = set(AVERAGED) & set(family.free)
    if axes or not averaged:
        _refuse_unpredicted(example, noise)
    if axes and "delay" in averaged:
        raise NotIdentifiable(
            f"{family}: delay is not fitted beside {' and '.join(axis.name for axis in axes)}: {axes[0].name} would be "
            "fitted anew for every delay that is possible, which would take an hour and more.",
            remedy="Give one of them a value.",
        )
    evidence = _Evidence(log, family, axes, fixed, noise, prior, tuple(horizons), seed, particles, threads)
    with current_work().stage("Fitting the rule's numbers", PARTS, in_parts=True):
        whole, shown = settled_whole_numbers(
            log, family, lambda given: _best(replace(evidence, fixed={**evidence.fixed, **given}))
        )
        fixed |= whole
        evidence = replace(evidence, fixed=fixed)
        settings, weighed = weighed_settings(log, family, horizons, level, evidence.under)
        fixed |= settings[0].values
        shown = (*shown, *weighed)
        middle = _rule_at(family, axes, fixed, centre)
        for which, horizon in enumerate(horizons):
            reading_of(log, which, middle.for_arms(len(log.arms)), horizon)  # refuses another opening
        if not axes:
            return ParameterPosterior(family, axes, np.empty((1, 0)), np.ones(1), shown, fixed, settings)
        evidence = replace(evidence, fixed=fixed)
        if len(axes) == 1 and is_long(log, example):
            places, density, method = _of_a_long_log(evidence, axes, level)
        else:
            places, density = _without_clouds(evidence, axes, level) or _by_clouds(evidence, axes)
            method = BY_DECISIONS if evidence.predicted else BY_FILTER
    weights = density / density.sum()
    _refuse_open_ends(family, axes, places, weights, level)
    fitted = tuple(_fitted_number(axis, places[:, at], weights, level, method) for at, axis in enumerate(axes))
    freedom = int(((log.pulls > 0).sum(axis=1) - 1).sum())
    fitted = tuple(
        replace(each, note=_scale_note(places[:, at], weights, prior, freedom)) if each.parameter == SCALED else each
        for at, each in enumerate(fitted)
    )
    numbers = (*_combined(fitted, fixed, horizons[0]), *shown)
    return ParameterPosterior(family, axes, places, weights, numbers, fixed, settings)


def _by_clouds(evidence: _Evidence, axes: tuple[Axis, ...]) -> tuple[Numbers, Numbers]:
    """Return places and how probable they are, by clouds of particles under each value."""
    if len(axes) > 1:
        cells = _surveyed(evidence, axes)
        near = cells.places[cells.values > cells.values.max() - WINDOW]
        if not cells.complete or _error(evidence, near) > MOST_ERROR:
            raise _unclear(evidence.family)
        return cell_masses(cells, _limits(axes))
    xs, values = _narrowed(evidence, axes)
    _refuse_spikes(evidence.family, xs)
    return evidence_density(xs, values, _error(evidence, xs))


def _of_a_long_log(evidence: _Evidence, axes: tuple[Axis, ...], level: float) -> tuple[Numbers, Numbers, str]:
    """Return the same for one number of a long log, and the method.

    Simulations need arms that are tried again and again. Where they show nothing, the decisions of the first rounds are
    predicted: few of them could have gone the other way, so that particles miss little, and hardly any come later.
    """
    arms = len(evidence.log.arms)
    if arms <= MOST_SIMULATED_ARMS:
        with suppress(NotIdentifiable):
            places, density = _by_simulations(evidence, axes[0])
            _refuse_open_ends(evidence.family, axes, places, density / density.sum(), level)
            return places, density, BY_SIMULATION
    rounds = max(FIRST_ROUNDS, FIRST_ROUNDS_PER_ARM * arms)
    method = BY_BEGINNING if rounds < int(evidence.log.lengths.max()) else BY_DECISIONS
    return *_by_clouds(replace(evidence, rounds=rounds, best=None), axes), method


def _by_simulations(evidence: _Evidence, axis: Axis) -> tuple[Numbers, Numbers]:
    """Return places and how probable they are, by simulation of each demonstration (`inference.simulations`)."""
    log, done, every = evidence.log, 0, SIMULATIONS * len(evidence.horizons)
    others = int(log.pulls.sum() - log.pulls.max(axis=1).sum())
    if others < FEWEST_CLOSE * log.pulls.size:
        raise NotIdentifiable(
            f"{evidence.family}: the log does not show {axis.name}: arms beside the most-pulled one have {others} "
            "pulls together, too few to show how long they were worth a try.",
            remedy=_with_value(evidence.family, axis.name),
        )

    def rule_at(x: float) -> Any:
        return _rule_at(evidence.family, (axis,), evidence.fixed, np.array([x])).for_arms(len(log.arms))

    def count() -> None:
        nonlocal done
        done += 1
        current_work().reach(min(round(PARTS * done / every), PARTS))

    try:
        found = [
            fit_by_simulation(
                log.select(at), rule_at, (axis.low, axis.high), evidence.noise, each, evidence.seed + at, count
            )
            for at, each in enumerate(evidence.horizons)
        ]
    except InferenceError:
        raise _unexplained(evidence.family) from None
    known = [each for each in found if each is not None and each.deviation < UNCLEAR]
    if len(known) < len(found):
        raise _unclear(evidence.family)
    precision = np.array([each.deviation**-2 for each in known])
    centre, deviation = precision @ [each.centre for each in known] / precision.sum(), precision.sum() ** -0.5
    places = np.clip(centre + deviation * np.linspace(-FAR, FAR, DENSE), axis.low, axis.high)
    return places[:, None], np.exp(-0.5 * np.square((places - centre) / deviation))


class _Smooth(NamedTuple):
    """What Laplace's method leaves possible."""

    density: Callable[..., tuple[Numbers, Numbers]]  # given a correction, or none
    asked: Numbers  # where clouds are asked how wrong it is
    centre: Numbers
    ways: Numbers  # a deviation along each principal axis


def _without_clouds(evidence: _Evidence, axes: tuple[Axis, ...], level: float = 0.95) -> tuple[Numbers, Numbers] | None:
    """Return the same by Laplace's method, and by clouds where these differ from it.

    It has no Monte-Carlo errors and takes little time; by how much it is wrong changes little from one value to the
    next, so that clouds under a few values show it. None where there is no such method, so much is possible of one
    number that a few values do not show it, or clouds contradict it.
    """
    if evidence.without_clouds(np.array([(axis.low + axis.high) / 2 for axis in axes])) is None:
        return None

    def smooth(x: Numbers, _: int) -> float:
        found = evidence.without_clouds(x)
        return -math.inf if found is None else found

    threads = evidence.threads if len(evidence.horizons) == 1 else 1  # further demonstrations depend on other places
    if len(axes) == 1:
        left = _smooth_line(smooth, axes, threads)
    else:
        left = _smooth_cells(smooth, evidence.family, axes, level, threads)
    if left is None:
        return None
    found = of_places(evidence, left.asked, CLOUDS, evidence.at_once)
    misses = np.array(found) - [smooth(x, 1) for x in left.asked]
    errors = [evidence.variances.get(tuple(x.tolist()), math.nan) for x in left.asked]
    if not np.isfinite(misses).all():
        return None
    error = max(math.sqrt(np.mean(errors)), LEAST_ERROR)
    correction = Correction.fitted(left.centre, left.ways, left.asked, misses, error)
    if correction.left > MOST_LEFT + 2 * error or np.abs(correction.coefficients[1:]).max() > STEEPEST:
        return None
    return left.density(correction)


def _smooth_line(smooth: Callable[[Numbers, int], float], axes: tuple[Axis, ...], threads: int = 1) -> _Smooth | None:
    """Return what an evidence without errors leaves possible of one number; None where that is too much."""
    limits = _limits(axes)
    xs, values = narrowed(smooth, {}, np.linspace(*limits, COARSE_SMOOTH)[:, 0], FINE, ENOUGH, threads=threads)
    if len(values) < ENOUGH:
        return None
    density = partial(evidence_density, xs, values, 0.0)
    places, weights = density()
    centre, ways = principal_axes(places, weights / weights.sum())
    asked = np.clip(centre + SPOTS @ ways, *limits)
    return None if np.abs(ways).max() > WIDEST else _Smooth(density, asked, centre, ways)


def _smooth_cells(
    smooth: Callable[[Numbers, int], float],
    family: RuleFamily,
    axes: tuple[Axis, ...],
    level: float,
    threads: int = 1,
) -> _Smooth | None:
    """Return the same of two numbers; refuse, before clouds are asked, what reaches the end of a range."""
    limits = _limits(axes)
    cells = surveyed(smooth, *limits, threads=threads)
    if cells is None or not cells.complete:
        return None
    density = partial(cell_masses, cells, limits)
    places, weights = density()
    weights = weights / weights.sum()
    _refuse_open_ends(family, axes, places, weights, level)
    return _Smooth(density, spread_out(places, weights, AMONG), *principal_axes(places, weights))


def _best(evidence: _Evidence) -> float:
    """Return the largest log evidence: over the whole range of the numbers, and then around its top."""
    if not evidence.axes:
        return evidence(np.empty(0), CLOUDS)
    try:
        if len(evidence.axes) > 1:
            return float(_surveyed(evidence, evidence.axes).values.max())
        return float(_narrowed(evidence, evidence.axes)[1].max())
    except InferenceError:
        return -math.inf


# What is fitted, and where it is looked for


def _axes(family: RuleFamily, noise: Noise, horizons: Sequence[int]) -> tuple[tuple[Axis, ...], dict[str, float]]:
    """Return the real numbers to look for, and those that are held: they appear together with another only."""
    free, fixed = [name for name in family.free if name not in (*WHOLE, *AVERAGED)], dict[str, float]()
    if "alpha" in free and {"scale", "sigma"} & set(free):
        if len(set(horizons)) > 1:
            raise NotIdentifiable(
                f"{family}: alpha and scale are one factor of the width at one horizon, and these demonstrations have "
                "several.",
                remedy="Give alpha or scale.",
            )
        free.remove("alpha")
        fixed["alpha"] = float(family.kind.model_fields["alpha"].default)
    if len(free) > MOST_FREE or (len(free) > 1 and issubclass(family.kind, IndexRule)):
        most = 1 if issubclass(family.kind, IndexRule) else MOST_FREE
        text = f"{family}: expected {most} number{'' if most == 1 else 's'} to fit at once; got {len(free)}."
        raise ParameterError(text, parameter="rule", value=str(family), remedy="Give the others a value.")
    grid = family.kind.grid(noise)
    return tuple(_axis(family, name, grid.get(name, ()), REACH[len(free)]) for name in free), fixed


def _axis(family: RuleFamily, name: str, usual: Sequence[float], reach: float) -> Axis:
    """Return the range of a number: from far below usual values to far above them, within its limits."""
    low, high = family.limits(name)
    if low is None:
        raise ParameterError(
            f"{family}: expected a value of {name}; only numbers that cannot be negative are fitted.",
            parameter="rule",
            value=str(family),
        )
    if name == "alpha":
        return Axis(name, 0.0, 0.95, open_low=True, open_high=True, linear=True)
    default = family.kind.model_fields[name].default
    known = [each for each in usual if each > 0] or ([default] if isinstance(default, float) and default > 0 else [1.0])
    least, most = min(known) / reach, max(known) * reach
    closed = high is not None and most >= high
    return Axis(name, math.log(max(least, low)), math.log(high if closed and high else most), True, not closed)


def _limits(axes: Sequence[Axis]) -> tuple[Numbers, Numbers]:
    """Return the ends of the ranges."""
    return np.array([axis.low for axis in axes]), np.array([axis.high for axis in axes])


def _rule_at(family: RuleFamily, axes: Sequence[Axis], fixed: Mapping[str, Any], x: Numbers) -> Demonstrator:
    values = {axis.name: axis.value(float(at)) for axis, at in zip(axes, x, strict=True)}
    rule: Demonstrator = family.at({**fixed, **values})
    return rule


def has_evidence(rule: Demonstrator, noise: Noise) -> bool:
    """Return whether the evidence of a log can be computed under a rule, so that its numbers can be fitted."""
    return rule.random_delay is None and (isinstance(rule, RandomisedRule) or predicts(rule, noise))


def _refuse_unpredicted(rule: Demonstrator, noise: Noise) -> None:
    """Refuse rules under which the evidence of a log cannot be computed."""
    if isinstance(rule, RandomisedRule) or predicts(rule, noise):
        return
    why, remedy = "its evidence cannot be computed", "Give them a value."
    if isinstance(rule, IndexRule):
        why = (
            "decisions are predicted for Gaussian rewards only"
            if rule.shifts
            else "its index is not a mean plus a width"
        )
        why = "its rewards are late" if rule.is_late else why
        if rule.shifts and not rule.is_late:
            remedy = f"Give them a value. `identify` finds them, with {option('bernoulli')} and "
            remedy += f"{option('candidates', rule.name)}; or fit them with {option('sigma', 0.5)} in place of "
            remedy += f"{option('bernoulli')}, as an approximation."
    raise NotIdentifiable(f"{rule.name}: its numbers cannot be fitted, because {why}.", remedy=remedy)


# The evidence


@dataclass(eq=False)
class _Evidence:
    """The log evidence of a log as a function of a rule's numbers, with errors that are independent between places."""

    log: ActionLog
    family: RuleFamily
    axes: tuple[Axis, ...]
    fixed: Mapping[str, Any]
    noise: Noise
    prior: Prior
    horizons: tuple[int, ...]
    seed: int
    particles: int = PARTICLES
    threads: int = 1
    rounds: int | None = None  # of each demonstration that are read; by default all
    best: tuple[Predictions, ...] | None = None  # of the most probable value so far, by demonstration
    variances: dict[tuple[float, ...], float] = field(default_factory=dict, init=False)  # of errors, by place
    largest: list[float] = field(default_factory=list, init=False)  # by Laplace's method, of each demonstration so far
    top: float = field(default=-math.inf, init=False)  # of all of them at one place
    seen: int = field(default=0, init=False)  # places of which every demonstration was asked
    computed: int = field(default=0, init=False)  # places

    @property
    def predicted(self) -> bool:
        return issubclass(self.family.kind, IndexRule)

    @property
    def at_once(self) -> int:
        """Return how many places may be computed at once; predictions end early by those of places before."""
        return 1 if self.predicted else self.threads

    def __call__(self, x: Numbers, clouds: int, threads: int = 1) -> float:
        """Return the log evidence at a place; minus infinity where no particle explains the log."""
        self._count()
        try:
            rule = _rule_at(self.family, self.axes, self.fixed, x).for_arms(len(self.log.arms))
            seed = (self.seed + zlib.crc32(x.tobytes())) % 2**64
            if self.predicted:
                value, variance = self._predicted(rule, clouds, seed)
            else:
                value, variance = self._filtered(rule, clouds, seed, threads)
        except (InferenceError, ParameterError):
            return -math.inf
        if clouds > 1 and math.isfinite(value):
            self.variances[tuple(x.tolist())] = variance
        return value

    def without_clouds(self, x: Numbers) -> float | None:
        """Return the log evidence at a place by Laplace's method; None where there is none."""
        self._count()
        rule = _rule_at(self.family, self.axes, self.fixed, x)
        belief, found = belief_of(self.prior, len(self.log.arms), self.noise, None), list[float]()
        for which, horizon in enumerate(self.horizons):
            each = evidence_without_clouds(self.log.select(which, self.rounds), rule, belief, [horizon])
            if each is None:
                return None
            if each > ROUNDED and self.log.rewards is None:  # no choices are more probable than 1: it broke down
                each = self._by_cloud(x, which)
            found.append(each)
            if (most := self._most(found)) is not None:
                return most
        return self._noted(found)

    def _count(self) -> None:
        """Say how far the fit is: how many places it needs is not known, so the rest halves at every so many."""
        self.computed += 1
        current_work().reach(round(PARTS * (1 - 0.5 ** (self.computed / HALF))))

    def _most(self, found: list[float]) -> float | None:
        """Return the most that a place can have, given its first demonstrations, if that is next to nothing.

        Of the others it has hardly more than the most that each has had anywhere.
        """
        left = self.largest[len(found) :]
        most = sum(found) + sum(left) + ALLOWANCE * len(left)
        return most if left and self.seen >= SEEN and most < self.top - LEAST else None

    def _noted(self, found: list[float]) -> float:
        """Return the log evidence of all demonstrations together, and keep the largest ones."""
        total = sum(found)
        if not math.isfinite(total):
            return -math.inf
        self.largest = [max(pair) for pair in zip(self.largest or found, found, strict=True)]
        self.top, self.seen = max(self.top, total), self.seen + 1
        return total

    def _by_cloud(self, x: Numbers, which: int) -> float:
        """Return the log evidence of one demonstration at a place, by a cloud."""
        rule = _rule_at(self.family, self.axes, self.fixed, x).for_arms(len(self.log.arms))
        try:
            return self._filtered_one(rule, which, 1, self.seed)[0]
        except (InferenceError, ParameterError):
            return -math.inf

    def _predicted(self, rule: Demonstrator, clouds: int, seed: int) -> tuple[float, float]:
        assert isinstance(rule, IndexRule)
        total, variance, kept = 0.0, 0.0, []
        for which, horizon in enumerate(self.horizons):
            record = self.log.select(which, self.rounds)
            given = record, rule, self.noise, self.prior, horizon, self.particles
            limit = None if self.best is None else self.best[which]
            first = predict(*given, seed=seed, unless_below=limit, evidence_only=True)
            if first.log_evidence == -math.inf:
                return -math.inf, 0.0
            seeds = [(seed + cloud, given) for cloud in range(1, clouds)]
            every = [first, *in_threads(_evidence_only, seeds, self.threads)]
            found = np.array([each.log_evidence for each in every])
            if not np.isfinite(found).all():
                return -math.inf, 0.0
            mean = float(found.mean())
            total += mean + opening_chance(record, 0, rule)
            variance += float(found.var(ddof=1)) / clouds if clouds > 1 else 0.0
            increments = np.mean([each.increments for each in every], axis=0)
            kept.append(replace(first, log_evidence=mean, increments=increments))
        known = -math.inf if self.best is None else sum(each.log_evidence for each in self.best)
        if sum(each.log_evidence for each in kept) > known:
            self.best = tuple(kept)
        return total, variance

    def _filtered(self, rule: Demonstrator, clouds: int, seed: int, threads: int) -> tuple[float, float]:
        every = range(len(self.horizons))
        found = [self._filtered_one(rule, which, clouds, seed, threads=threads) for which in every]
        total = sum(value for value, _ in found)
        return (total, sum(error**2 for _, error in found)) if math.isfinite(total) else (-math.inf, 0.0)

    def _filtered_one(
        self, rule: Demonstrator, which: int, clouds: int, seed: int, rounds: int | None = None,
        particles: int | None = FILTERED, threads: int = 1,
    ) -> tuple[float, float]:  # fmt: skip
        record, horizons = self.log.select(which, rounds or self.rounds), [self.horizons[which]]
        belief = belief_of(self.prior, len(self.log.arms), self.noise, None)
        found = run_filters(
            record, rule, belief, horizons, particles, min(clouds, FILTERS), seed, threads, keep_paths=False,
            tolerant=True, look_ahead=one_look_ahead(record, rule, belief, horizons, seed),
        )  # fmt: skip
        return log_mean(found.evidences)

    def under(self, values: Mapping[str, Any], rounds: int | None, particles: int | None) -> tuple[float, float]:
        """Return the log evidence of the first `rounds` of each demonstration under some settings, and its error.

        Where other numbers are free, it is the largest one.
        """
        own = replace(self, fixed={**self.fixed, **values})
        if self.axes:
            return _best(own), 0.0
        self._count()
        rule, total, variance = _rule_at(self.family, (), own.fixed, np.empty(0)).for_arms(len(self.log.arms)), 0.0, 0.0
        for which in range(len(self.horizons)):
            value, error = -math.inf, 0.0
            usual = particles_for(int(self.log.lengths[which])) if isinstance(rule, IndexRule) else FILTERED
            for times in (1, MORE):  # few particles may miss a late reward that explains the log
                number = times * (particles or usual)
                with suppress(InferenceError):
                    value, error = self._filtered_one(rule, which, FILTERS, self.seed, rounds, number, self.threads)
                    if error < AGREE:
                        break
            if value == -math.inf:
                return -math.inf, 0.0
            total, variance = total + value, variance + error**2
        return total, math.sqrt(variance)


def _evidence_only(seed: int, given: tuple[Any, ...]) -> Predictions:
    return predict(*given, seed=seed, evidence_only=True)


def _narrowed(evidence: _Evidence, axes: tuple[Axis, ...]) -> tuple[Numbers, Numbers]:
    """Compute the evidence of one number on a grid over the whole range, and on narrower ones around its top.

    Returns places near the top (`narrowed`), and their log evidences.
    """
    line = np.linspace(*_limits(axes), COARSE)[:, 0]
    xs, values = narrowed(evidence, {}, line, FINE, ENOUGH, partial(_ask_again, evidence), evidence.at_once)
    if values.size == 0:
        raise _unexplained(evidence.family)
    return xs, values


def _surveyed(evidence: _Evidence, axes: tuple[Axis, ...]) -> Cells:
    """Compute the evidence of two numbers in cells (`surveyed`)."""
    cells = surveyed(evidence, *_limits(axes), partial(_ask_again, evidence), evidence.at_once)
    if cells is None:
        raise _unexplained(evidence.family)
    return cells


def _error(evidence: _Evidence, xs: Numbers) -> float:
    """Return the Monte-Carlo error of a log evidence, by clouds at the same place; 0 where there is none."""
    variances = [evidence.variances[x] for x in map(tuple, xs.tolist()) if x in evidence.variances]
    return math.sqrt(float(np.mean(variances))) if variances else 0.0


def _unclear(family: RuleFamily) -> NotIdentifiable:
    return NotIdentifiable(
        f"{family}: the log does not show {family.title}: Monte-Carlo errors are larger than what changes from one "
        "value to the next.",
        remedy=f"Give {family.title} a value. Errors grow with the length of a log: its first rounds alone, as a log "
        "of their own, may show more.",
    )


def _unexplained(family: RuleFamily) -> InferenceError:
    return InferenceError(
        f"no value of {family.title} explains the log under {family.kind.name}.",
        remedy="Check the rule: `check` and `identify` try others.",
    )


def _ask_again(evidence: _Evidence, values: dict[tuple[float, ...], float]) -> None:
    """Compute the evidence of all that is near the top by more clouds: the best of many single ones was lucky."""
    evidence.best, asked = None, set[tuple[float, ...]]()
    while left := [x for x, value in values.items() if value > max(values.values()) - WINDOW and x not in asked]:
        asked.add(left[0])
        values[left[0]] = evidence(np.array(left[0]), CLOUDS, evidence.threads)


def _fitted_number(axis: Axis, x: Numbers, weights: Numbers, level: float, method: str) -> FittedNumber:
    middle, low, high = (axis.value(quantile(x, weights, share)) for share in (0.5, 0.5 - level / 2, 0.5 + level / 2))
    return FittedNumber(axis.name, middle, low, high, method)


def _scale_note(x: Numbers, weights: Numbers, prior: Prior, freedom: int) -> str:
    """Say that the prior settled a temperature, where it did.

    Choices show gaps in units of the temperature, and rewards' noise hardly shows the unit. If nothing did, normal gaps
    of the prior's size would leave its logarithm a deviation of about `1 / sqrt(2 f)`, with `f` gaps.
    """
    spread = math.sqrt(float(weights @ np.square(x - weights @ x)))
    if not isinstance(prior, NormalPrior) or spread < BY_PRIOR / math.sqrt(2 * max(freedom, 1)):
        return ""
    return (
        f"The log shows gaps in units of the {SCALED}, and hardly how large both are: that is settled by the prior, "
        f"{prior}. Under a prior twice as wide, {SCALED}, gaps and intervals would be up to about twice as large. "
        f"Give the {SCALED}, or the size of differences between arms that you expect, with {option('prior')}."
    )


def _refuse_spikes(family: RuleFamily, xs: Numbers) -> None:
    """Refuse an evidence that is large at too few places for a smooth surface: errors decided where its top is."""
    trend = quadratic_terms((xs - xs.mean(axis=0)) / np.maximum(xs.std(axis=0), 1e-12))
    if np.linalg.matrix_rank(trend) < trend.shape[1]:
        raise _unclear(family)


def _refuse_open_ends(
    family: RuleFamily, axes: Sequence[Axis], places: Numbers, weights: Numbers, level: float
) -> None:  # fmt: skip
    """Refuse a log under which the end of a range is nearly as probable as anything else."""
    for at, axis in enumerate(axes):
        x, tail = places[:, at], (1 - level) / 2
        low, high = (axis.value(quantile(x, weights, share)) for share in (tail, 1 - tail))
        known = np.linspace(x.min(), x.max(), BINS)
        marginal = np.histogram(x, BINS, weights=weights)[0]
        likely = marginal > marginal.max() * math.exp(-OPEN_END)
        why = None
        if axis.open_low and likely[0] and known[0] - axis.low < known[1] - known[0]:
            why = f"however small it is, the log is about as probable. It is probably at most {number(high)}"
        elif axis.open_high and likely[-1] and axis.high - known[-1] < known[1] - known[0]:
            why = f"however large it is, the log is about as probable. It is probably at least {number(low)}"
        elif not axis.linear and high > MOST_SPAN * low:
            why = f"anything from {number(low)} to {number(high)} is about as probable"
        if why is not None:
            raise NotIdentifiable(
                f"{family}: the log does not show {axis.name}: {why}.",
                remedy=_with_value(family, axis.name, ", or bring a longer log"),
            )


def _with_value(family: RuleFamily, name: str, instead: str = "") -> str:
    """Say how to give a number of a rule a value: an option may have the same name."""
    known = [f"{each}={value}" for each, value in family.known.items()]
    written = [f"{each}={'VALUE' if each == name else 'fit'}" for each in family.free]
    rule = option("rule", f"{family.kind.name}:{','.join([*known, *written])}")
    return f"Give it a value, as in {rule}{instead}."


def _combined(
    fitted: tuple[FittedNumber, ...], fixed: Mapping[str, float], horizon: int
) -> tuple[FittedNumber, ...]:  # fmt: skip
    """Replace what appears together with another number only by the combination that is known, with a sentence."""
    if "alpha" not in fixed:
        return fitted
    one = fitted[0]
    factor = math.sqrt(float(theory.growth(horizon, fixed["alpha"]))) * (5.0 if one.parameter == "sigma" else 1.0)
    name = f"{'5 sigma' if one.parameter == 'sigma' else 'scale'} sqrt((T^alpha - 1) / alpha)"
    note = (
        f"alpha and {one.parameter} are one factor of the width at one horizon: the log shows {name} = "
        f"{number(one.value * factor)}, and not the two apart. The rule is written with alpha={fixed['alpha']:g}."
    )
    return (FittedNumber(name, one.value * factor, one.low * factor, one.high * factor, one.method, note),)
