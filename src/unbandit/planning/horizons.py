"""How long must a rule run for each gap to be known to within d, and what regret does that cost?

Two answers stand side by side: one from the typical run (`planning.typical`), which is an equation and costs nothing,
and one from simulated runs read by the closed-form estimator, with its Monte-Carlo error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unbandit import checks, datasets, theory
from unbandit.checks import whole
from unbandit.demonstrators import SAE, UCB, Demonstrator, parse_rule
from unbandit.demonstrators.width import RegretWidth
from unbandit.errors import ParameterError
from unbandit.estimators.intervals import quantile
from unbandit.estimators.procedures import check_comparable
from unbandit.instance import Instance
from unbandit.planning.result import CRITERIA, Curves, Need, Plan
from unbandit.planning.runs import read_runs, typical, without_each_fold
from unbandit.study.curves import ENOUGH
from unbandit.study.monte_carlo import measured

Numbers = NDArray[np.float64]

FURTHEST = 1e12
"""The typical run is followed up to this horizon."""

STEP = 1.05
"""From one horizon of the typical run to the next."""

MARGIN = 3.0
"""Simulated horizons begin and end this far before and after those that the typical run asks for."""

ALIKE = 1e-6
"""Below this share of a horizon, its Monte-Carlo error says that all runs are alike."""

HALVINGS, MOST_BETWEEN = 3, 8
"""Where an arm comes to be estimated between two horizons, so often one more is simulated between them; for how many
such places at a time."""


def plan(
    instance: Instance | str,
    rule: Demonstrator | str,
    within: float,
    *,
    level: float = 0.95,
    longest: int = 100_000,
    points: int = 12,
    runs: int = 200,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Plan:
    """Return how long a rule must run for each gap to be known to within a distance, and its regret by then.

    A gap is known to within d when half the length of its interval is at most d in half of the runs (criterion
    `interval`; a run without an estimate counts as endlessly long), or when the root-mean-square error of its estimate
    is at most d (criterion `error`; at least 95% of the runs must have an estimate).

    Parameters
    ----------
    instance
        What is guessed about the arms, or a data set by name.
    rule
        Who will collect, or its text; a rule whose actions have a closed form.
    within
        `d`, in the unit of the rewards.
    level
        Of the intervals.
    longest
        The longest horizon that is simulated.
    points
        How many horizons are simulated.
    runs
        Of each horizon.
    seed
        The same seed gives the same numbers, on any number of threads.
    progress
        Is told each horizon before it is simulated.

    Examples
    --------
    >>> answer = plan("two-armed", "ucb:alpha=0.25", within=0.3, runs=40)
    >>> need = answer.need("1", "interval")
    >>> need.status, abs(need.horizon / need.theory_horizon - 1) < 0.2
    ('reached', True)
    """
    faced = datasets.load(instance) if isinstance(instance, str) else instance
    assumed = parse_rule(rule) if isinstance(rule, str) else rule
    if isinstance(within, bool) or not (isinstance(within, int | float | np.number) and 0 < within < math.inf):
        raise ParameterError(
            f"expected a positive number, in the unit of the rewards; got {within!r}.", parameter="within"
        )
    if not 0 < level < 1:
        raise ParameterError(f"expected a number between 0 and 1; got {level!r}.", parameter="level")
    longest, points, runs, seed = (
        whole("longest", longest),
        whole("points", points),
        checks.whole("runs", runs, 2),
        checks.seed(seed),
    )
    if longest < 16 * len(faced):
        raise ParameterError(
            f"expected {16 * len(faced)} rounds or more, 16 for each of the {len(faced)} arms; got {longest}.",
            parameter="longest",
        )
    if points < 3:
        raise ParameterError(f"expected three horizons or more; got {points}.", parameter="points")
    check_comparable(assumed, "switching")
    z = quantile(level)
    others = np.flatnonzero(np.arange(len(faced)) != faced.means.argmax())
    along, *typical_curves, regrets = _typical_curve(faced, assumed, float(within), z)
    asked = np.array([crossing(along, values, within) for values in typical_curves])
    one = _one_horizon(faced, assumed, runs, seed, level, threads, progress)
    found = _simulated(one, _grid(asked[:, others], len(faced), longest, points), within, others)
    curves = Curves(
        horizons=found.horizons,
        reach=_with_error(found.reach),
        error=_with_error(found.error),
        regret=_with_error(found.regret),
        found=found.found,
        theory_horizons=along,
        theory_reach=typical_curves[0],
        theory_error=typical_curves[1],
        theory_regret=regrets,
    )
    needs = []
    for criterion, values, theory_horizons in zip(CRITERIA, (found.reach, found.error), asked, strict=True):
        reached = np.array([crossing(found.horizons, row, within) for row in values])
        costs = np.array([value_at(found.horizons, row, each) for row, each in zip(found.regret, reached, strict=True)])
        horizon, cost = _with_error(reached), _with_error(costs)
        steps = _steps(found.horizons, values[0], *horizon, within)
        theory_costs = value_at(along, regrets, theory_horizons)
        for arm in others:
            earlier = bool((values[0, :, arm] <= within).all())
            status = "earlier" if earlier else "reached" if np.isfinite(reached[0, arm]) else "not reached"
            horizon_error = np.maximum(horizon[1][arm], steps[arm])
            numbers = (
                theory_horizons[arm], theory_costs[arm], horizon[0][arm], horizon_error, cost[0][arm], cost[1][arm],
            )  # fmt: skip
            known = (float(number) if np.isfinite(number) else None for number in numbers)
            needs.append(Need(faced.arms[arm], float(faced.gaps[arm]), criterion, status, *known))
    order = {arm: place for place, arm in enumerate(faced.arms)}
    needs.sort(key=lambda need: order[need.arm])
    settled = Plan(
        faced.name, str(assumed), faced.best, float(within), level, runs, seed, tuple(faced.arms), tuple(needs), curves
    )
    settled.notes.extend(_notes(faced, assumed, settled))
    return settled


def _typical_curve(instance: Instance, rule: Demonstrator, within: float, z: float) -> tuple[Numbers, ...]:
    """Follow the typical run until all gaps are known, and a little further; or as far as it makes sense.

    Returns the horizons, and at each of them half the intervals' lengths, the errors, and the regret.
    """
    others = np.arange(len(instance)) != instance.means.argmax()
    curve = []
    horizon, last = 2.0 * len(instance), FURTHEST
    while horizon <= last:
        run = typical(instance, rule, horizon)
        curve.append((horizon, run.reach(z), run.deviation, run.regret))
        if (curve[-1][1][others] <= within).all():
            last = min(last, MARGIN**2 * horizon)
        horizon *= STEP
    return tuple(np.array(values) for values in zip(*curve, strict=True))


def _grid(asked: Numbers, arms: int, longest: int, points: int) -> Numbers:
    """Return the horizons to simulate, around those that the typical run asks for."""
    shortest = 2.0 * arms
    first = float(np.clip(asked.min() / MARGIN, shortest, longest / 8))
    last = float(np.clip(asked.max() * MARGIN, 8 * first, longest))
    return np.unique(np.geomspace(first, last, points).round())


@dataclass(frozen=True)
class Replicated:
    """Hold what was simulated, as replicates (see `study.monte_carlo`): (replicates, horizons, arms).

    Attributes
    ----------
    horizons
        In rising order.
    reach, error, regret
        Median of half the interval's length, root-mean-square error, mean regret.
    found
        Share of runs that found the best arm, at each horizon.
    """

    horizons: Numbers
    reach: Numbers
    error: Numbers
    regret: Numbers
    found: Numbers


def _simulated(
    one: Callable[[int], tuple[Numbers, ...]], horizons: Numbers, within: float, others: NDArray[np.intp]
) -> Replicated:
    """Simulate at these horizons, and between those where an arm comes to be estimated."""
    known: dict[int, tuple[Numbers, ...]] = {}
    wanted = {int(horizon) for horizon in horizons}
    for halving in range(HALVINGS + 1):
        for horizon in sorted(wanted - set(known)):
            known[horizon] = one(horizon)
        along = sorted(known)
        reach, error, regret, found = (
            np.stack([known[each][value_at] for each in along], axis=-2) for value_at in range(4)
        )
        done = Replicated(np.array(along, np.float64), reach, error, regret[..., 0], found[0, :, 0])
        jumps = {place for values in (reach, error) for place in _jumps(values[0][:, others], within)}
        middle = {round(math.sqrt(along[place] * along[place + 1])) for place in sorted(jumps)[:MOST_BETWEEN]}
        wanted = middle if halving < HALVINGS else set()
        if not wanted - set(known):
            break
    return done


def _jumps(values: Numbers, within: float) -> list[int]:
    """Return after which horizons a curve falls to the target or below from having no value at all."""
    return [
        int(high[-1])
        for column in values.T
        if (high := np.flatnonzero(~(column <= within))).size
        and high[-1] + 1 < column.size
        and not np.isfinite(column[high[-1]])
    ]


def _one_horizon(
    instance: Instance, rule: Demonstrator, runs: int, seed: int, level: float, threads: int | None,
    progress: Callable[[int], None] | None,
) -> Callable[[int], tuple[Numbers, ...]]:  # fmt: skip
    """Return what simulates one horizon: reach, error, regret and share found, each (replicates, arms or 1)."""
    kept = without_each_fold(runs)
    weights = kept.astype(np.float64)
    sizes = weights.sum(axis=1, keepdims=True)

    def one(horizon: int) -> tuple[Numbers, ...]:
        if progress is not None:
            progress(horizon)
        read = read_runs(instance, rule, horizon, runs, seed, level, threads)
        known = np.isfinite(read.error)
        counted = weights @ known
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.sqrt(weights @ np.where(known, read.error, 0.0) ** 2 / counted)
        return (
            np.array([np.median(read.reach[rows], axis=0) for rows in kept]),
            np.where(counted >= ENOUGH * sizes, error, np.inf),
            weights @ read.regret[:, None] / sizes,
            weights @ read.found[:, None] / sizes,
        )

    return one


def _steps(horizons: Numbers, values: Numbers, reached: Numbers, error: Numbers, within: float) -> Numbers:
    """Return half the distance of the two horizons that a crossing lies between, where no line joins them, else 0.

    None does where the arm comes to be estimated between them, nor where all runs are alike and jump together.
    """
    steps = np.zeros(values.shape[1])
    for arm, column in enumerate(values.T):
        last = int(np.searchsorted(horizons, reached[arm]))
        alike = 0 < last < horizons.size and error[arm] < ALIKE * reached[arm]
        if alike or _jumps(column[:, None], within):
            steps[arm] = (horizons[last] - horizons[last - 1]) / 2
    return steps


def _with_error(replicates: Numbers) -> tuple[Numbers, Numbers]:
    """Return values and their Monte-Carlo errors, NaN where a replicate is not finite."""
    finite = np.isfinite(replicates).all(axis=0)
    error = measured(np.where(finite, replicates, 0.0)).error
    return replicates[0], np.where(finite, error, np.nan)


def _notes(instance: Instance, rule: Demonstrator, settled: Plan) -> list[str]:
    """Say what the table does not."""
    notes, last = [], int(settled.curves.horizons[-1])
    for criterion, said in CRITERIA.items():
        late = [need for need in settled.needs if need.criterion == criterion and need.status == "not reached"]
        if late:
            which = ", ".join(need.arm for need in late[:6]) + (", ..." if len(late) > 6 else "")
            notes.append(
                f"Up to {last:,} rounds, the longest horizon simulated, {said} stays above {settled.within:g} for "
                f"{len(late)} of {len(instance) - 1} arms ({which}): simulate longer, or ask for less."
            )
    missed = 1 - settled.curves.found[-1]
    if missed > 1 - ENOUGH:
        notes.append(f"In {missed:.0%} of the runs of {last:,} rounds the best arm was not found; their errors count.")
    gaps = instance.gaps[instance.gaps > 0]
    if isinstance(rule, UCB | SAE) and gaps.size:
        promised = _promised(gaps, rule)
        said = f"from {promised:,.0f} rounds on" if math.isfinite(promised) else f"at no horizon up to {FURTHEST:.0e}"
        notes.append(f"The paper's Theorem 2 promises, with high probability, that the best arm is found {said}.")
    return notes


def _promised(gaps: Numbers, rule: RegretWidth) -> float:
    """Return the horizon from which on Theorem 2's condition holds."""
    along = np.exp(np.linspace(0.0, math.log(FURTHEST), 2_000))
    holds = np.array([theory.horizon_condition_holds(gaps, each, rule.alpha, rule.factor) for each in along])
    failing = np.flatnonzero(~holds)
    if failing.size == 0:
        return float(along[0])
    return float(along[failing[-1] + 1]) if failing[-1] + 1 < along.size else math.inf


def crossing(horizons: Numbers, values: Numbers, target: float) -> Numbers:
    """Return the horizon from which on a curve stays at or below a target, along the first axis.

    Between two horizons both logarithms are taken as a straight line. It is the first horizon where the whole curve is
    low enough, and infinite where its last point is not.

    Examples
    --------
    >>> horizons = np.array([100.0, 400.0, 1600.0])
    >>> crossing(horizons, np.array([[0.4, 0.1, 0.4], [0.2, 0.1, 0.3], [0.1, 0.1, np.inf]]), 0.2828).round().tolist()
    [200.0, 100.0, inf]
    """
    across = np.asarray(values, np.float64).reshape(len(horizons), -1)
    found = np.empty(across.shape[1])
    for at_column, column in enumerate(across.T):
        high = np.flatnonzero(~(column <= target))
        if high.size == 0:
            found[at_column] = horizons[0]
        elif high[-1] == len(horizons) - 1:
            found[at_column] = np.inf
        else:
            found[at_column] = _between(horizons, column, int(high[-1]), target)
    return found.reshape(np.shape(values)[1:])


def _between(horizons: Numbers, column: Numbers, place: int, target: float) -> float:
    """Return where the line from a point above the target to the next one, not above it, meets the target."""
    above, below = column[place], column[place + 1]
    if not np.isfinite(above) or below <= 0:
        return float(horizons[place + 1])
    share = np.log(above / target) / np.log(above / below)
    return float(horizons[place] * (horizons[place + 1] / horizons[place]) ** share)


def value_at(horizons: Numbers, values: Numbers, wanted: Numbers) -> Numbers:
    """Return a growing curve's value at some horizons, logarithms taken as a straight line; NaN outside.

    Examples
    --------
    >>> value_at(np.array([100.0, 400.0]), np.array([10.0, 20.0]), np.array([200.0, np.inf])).round(1).tolist()
    [14.1, nan]
    """
    with np.errstate(divide="ignore"):
        result = np.exp(np.interp(np.log(wanted), np.log(horizons), np.log(values)))
    return np.where((wanted >= horizons[0]) & (wanted <= horizons[-1]), result, np.nan)
