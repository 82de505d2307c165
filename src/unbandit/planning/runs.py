"""Runs to plan by: the typical run, from an equation, and simulated runs, read as an outsider would.

In the typical run every decision value is at its expectation. The closed-form estimators solve an equation for the
means: at the last moment of hesitation two decision values were equal. Here the same equation is solved for the pulls,
with the means known.

- Index rule: all indices end at one common level, `index(mu_i, n_i) = V`, and the pulls add up to `T`. For an additive
  index this is `C(n_i) - C(n_best) = Delta_i`.
- Elimination rule: an arm goes at the first test with `2 C(n) <= Delta_i`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import AdditiveIndexRule, Demonstrator, EliminationRule, IndexRule
from unbandit.errors import NotIdentifiable
from unbandit.estimators.procedures import Anchor, compare, intervals, quantile
from unbandit.instance import Gaussian, Instance
from unbandit.planning.result import Numbers
from unbandit.result import ESTIMATED
from unbandit.study.grid import cell_seed
from unbandit.study.monte_carlo import measured
from unbandit.tape import Tape

FINE, COARSE = 1_500, 150
"""Pull counts at which an index is tabulated: where one row serves all arms, and where each arm has its own."""

LAST_EPOCH = 1_000_000  # the last epoch considered of an elimination rule that tests only at some

HALVINGS = 60


@dataclass(frozen=True)
class TypicalRun:
    """A run with every decision value at its expectation."""

    pulls: Numbers  # `n_i` at the end: real numbers
    deviation: Numbers  # of each arm's gap at the last comparison; infinite where the arm is left without an estimate
    deviation_before: Numbers  # at the comparison before it
    spread: Numbers  # how far apart the gaps of these two comparisons are
    regret: float

    def reach(self, z: float) -> Numbers:
        """Return half the length of each gap's interval."""
        return np.asarray((self.spread + z * (self.deviation + self.deviation_before)) / 2)


class TypicalCounts(NamedTuple):
    """Pulls per arm: at the end, and of the arm and its rival at the last comparison and the one before.

    An arm that is never compared has 0 own pulls.
    """

    pulls: Numbers
    own: Numbers
    other: Numbers
    before: Numbers
    other_before: Numbers
    spread: Numbers


def typical_run(instance: Instance, rule: Demonstrator, horizon: float) -> TypicalRun:
    """Return the typical run of an index or elimination rule."""
    played = rule.for_arms(len(instance))
    if played.is_late:
        text = f"{rule.name}: there is no equation for the typical run of a rule with late rewards, such as {played}."
        raise NotIdentifiable(text, remedy="Remove the delay, or simulate the rule.")
    if isinstance(played, EliminationRule):
        counts = _eliminated(instance, played, horizon)
    elif isinstance(played, IndexRule):
        counts = _at_one_level(instance, played, horizon)
    else:
        raise NotIdentifiable(
            f"{rule.name}: there is no equation for this rule's typical run; only index and elimination rules have one."
        )
    deviations = arm_deviations(instance)
    best, compared = deviations[instance.means.argmax()], counts.own > 0

    def deviation(own: Numbers, other: Numbers) -> Numbers:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(compared, np.sqrt(deviations**2 / own + best**2 / other), np.inf)

    return TypicalRun(
        counts.pulls,
        deviation(counts.own, counts.other),
        deviation(counts.before, counts.other_before),
        np.where(compared, counts.spread, 0.0),
        float(counts.pulls @ instance.gaps),
    )


def arm_deviations(instance: Instance) -> Numbers:
    """Return the standard deviation of a reward of each arm (`sigma_i`)."""
    if isinstance(instance.noise, Gaussian):
        return np.full(len(instance), instance.sigma)
    return np.asarray(np.sqrt(instance.means * (1 - instance.means)))


def _at_one_level(instance: Instance, rule: IndexRule, horizon: float) -> TypicalCounts:
    """Find the pulls at which all indices are equal and which add up to the horizon."""
    tables = _tabulated(instance, rule, horizon)
    best = int(instance.means.argmax())
    highest, lowest = tables.index(1.0)[best], tables.index(horizon)[best]
    for _ in range(HALVINGS):
        level = (highest + lowest) / 2
        if tables.pulls(level).sum() > horizon:
            lowest = level
        else:
            highest = level
    pulls = tables.pulls(highest)
    pulls[best] += max(0.0, horizon - pulls.sum())  # where a level is shared by many counts, they are the best arm's
    own = np.where(pulls > rule.initial, pulls, 0.0)
    before = np.maximum(pulls - rule.batch, rule.initial)
    other = np.full(len(instance), pulls[best])
    return TypicalCounts(pulls, own, other, before, other, tables.index(before) - tables.index(pulls))


@dataclass(frozen=True)
class IndexTables:
    """The index of every arm over pull counts, with the sample mean at the mean."""

    shift: Numbers  # the number to add to an arm's row
    rows: Numbers  # the distinct rows: (rows, counts), falling along the counts
    which: NDArray[np.intp]  # the row of each arm
    logarithms: Numbers  # of the counts

    def pulls(self, level: float) -> Numbers:
        """Return the pulls at which each arm's index has come down to a level."""
        wanted, counts = level - self.shift, np.empty(self.which.size)
        for at, row in enumerate(self.rows):
            mine = self.which == at
            counts[mine] = np.exp(np.interp(wanted[mine], row[::-1], self.logarithms[::-1]))
        return counts

    def index(self, pulls: float | Numbers) -> Numbers:
        """Return every arm's index after some pulls."""
        logarithms, values = np.broadcast_to(np.log(pulls), self.which.shape), np.empty(self.which.size)
        for at, row in enumerate(self.rows):
            mine = self.which == at
            values[mine] = np.interp(logarithms[mine], self.logarithms, row)
        return values + self.shift


def _tabulated(instance: Instance, rule: IndexRule, horizon: float) -> IndexTables:
    last = int(horizon)
    if isinstance(rule, AdditiveIndexRule):
        counts = np.geomspace(1.0, horizon, FINE)
        rows = rule.width(counts, last)[None]
        return IndexTables(instance.means, rows, np.zeros(len(instance), np.intp), np.log(counts))
    whole = np.unique(np.geomspace(1, horizon, COARSE).round()).astype(np.int64)
    distinct, which = np.unique(instance.means, return_inverse=True)
    rows = np.array([[rule.index(mean, count, last, last) for count in whole.tolist()] for mean in distinct.tolist()])
    rows = np.minimum.accumulate(rows, axis=1)
    return IndexTables(np.zeros(len(instance)), rows, which, np.log(whole.astype(np.float64)))


def _eliminated(instance: Instance, rule: EliminationRule, horizon: float) -> TypicalCounts:
    """Find the epoch at whose end each arm goes, in the order in which they go, until the rounds are used up."""
    gaps = instance.gaps
    lasting, before = _epochs(rule, gaps, horizon)
    pulls, own = np.zeros(gaps.size), np.zeros(gaps.size)
    left, active, epoch = float(horizon), gaps.size, 0.0
    for arm in np.argsort(lasting, kind="stable"):
        # the epochs since the arm before it went, with all that are left
        if not np.isfinite(lasting[arm]) or (lasting[arm] - epoch) * active >= left or active == 1:
            break
        left -= (lasting[arm] - epoch) * active
        epoch, active = lasting[arm], active - 1
        pulls[arm] = own[arm] = lasting[arm]
    pulls[pulls == 0] = epoch + left / active
    earlier = np.where(before > 0, before, own)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = 2 * (rule.width(earlier, int(horizon)) - rule.width(own, int(horizon)))
    return TypicalCounts(pulls, own, own, earlier, earlier, np.where(own > 0, spread, 0.0))


def _epochs(rule: EliminationRule, gaps: Numbers, horizon: float) -> tuple[Numbers, Numbers]:
    """Return the epoch at whose end each arm goes, infinite for none; and the test before, 0 if every epoch has one."""
    counts = np.geomspace(1.0, horizon, FINE)
    widths = 2 * rule.width(counts, int(horizon))
    found = np.exp(np.interp(gaps, widths[::-1], np.log(counts)[::-1], left=np.inf))
    found[gaps <= 0] = np.inf
    epochs = np.where(np.isfinite(found), np.ceil(found - 1e-9), np.inf)
    if rule.batch == 1 and type(rule).tests is EliminationRule.tests:
        return epochs, np.zeros(gaps.size)
    every = np.arange(1, int(min(horizon, LAST_EPOCH)) + 1)
    tested = np.concatenate(([0.0], every[rule.tests(every)], [np.inf]))
    place = np.searchsorted(tested, np.minimum(epochs, np.finfo(float).max))
    return tested[place], tested[np.maximum(place - 1, 0)]


@dataclass(frozen=True)
class SimulatedRuns:
    """What was read from simulated runs: (runs, arms), the arms in the order of the instance."""

    pulls: Numbers
    error: Numbers  # of the estimated gap; NaN where there is no estimate
    reach: Numbers  # half the length of the gap's interval; infinite where there is none
    regret: Numbers  # per run
    found: NDArray[np.bool_]  # per run: whether exactly one arm was found best, and is


def read_runs(
    instance: Instance, rule: Demonstrator, horizon: int, runs: int, seed: int, level: float, threads: int | None = None
) -> SimulatedRuns:
    """Simulate runs, each with its own order of the arms, and estimate their gaps by the closed form.

    The outsider knows the noise and the best mean.
    """
    own_seed = cell_seed(seed, instance.name, instance, rule, horizon)
    orders = Tape(own_seed).orders(np.arange(runs), len(instance))
    evidence = rule.evidence(instance, horizon, runs=runs, seed=own_seed, threads=threads, orders=orders)
    known = Anchor(None, instance.best_mean)
    comparison = compare(evidence, rule, "bracket", horizon, anchor=known, noise=instance.noise)
    low, high, *_ = intervals(comparison, instance.noise, known, quantile(level))
    reach = np.where((comparison.verdict == ESTIMATED) & np.isfinite(high - low), (high - low) / 2, np.inf)
    gaps = instance.gaps[orders]
    alone = comparison.best.sum(axis=1) == 1
    places = np.argsort(orders, axis=1)

    def by_arm(values: NDArray[np.generic]) -> Numbers:
        return np.asarray(np.take_along_axis(values, places, axis=1), np.float64)

    return SimulatedRuns(
        by_arm(evidence.pulls),
        by_arm(comparison.gap - gaps),
        by_arm(reach),
        np.asarray((evidence.pulls * gaps).sum(axis=1), np.float64),
        alone & (comparison.best & (gaps == 0)).any(axis=1),
    )


def with_error(replicates: Numbers) -> tuple[Numbers, Numbers]:
    """Return values and their Monte-Carlo errors, NaN where a replicate is not finite (see `study.monte_carlo`)."""
    finite = np.isfinite(replicates).all(axis=0)
    error = measured(np.where(finite, replicates, 0.0)).error
    return replicates[0], np.where(finite, error, np.nan)
