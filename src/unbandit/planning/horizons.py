"""`plan`: how long a rule must run for each gap to be known to within d; `leak`: how much its record reveals.

A plan has two answers: one from the typical run (`runs.typical_run`), which is an equation and costs nothing, and one
from simulated runs read by the closed-form estimator, with its Monte-Carlo error.

What a record reveals is counted in rewards that one would have had to see. Whoever publishes which arm was pulled when,
or cannot hide it, hides no more than this. For each arm:

- The outsider knows the rule, the horizon, the noise and the best arm's mean, and estimates the arm's mean by the
  closed form; `MSE_i` is the mean squared error over the runs that have an estimate, a share `p_i` of them.
- Someone who sees `m` of the arm's own rewards knows its mean with a mean squared error of `sigma_i^2 / m`.
- The record therefore is worth `m_i = p_i sigma_i^2 / MSE_i` rewards: *equivalent observed rewards*. A run without an
  estimate counts as revealing nothing, although it may give a bound.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit import checks, datasets, theory
from unbandit.demonstrators import SAE, UCB, Demonstrator, parse_rule
from unbandit.demonstrators.base import linear_rules
from unbandit.demonstrators.rule import Rule, by_any_name
from unbandit.demonstrators.widths import RegretWidth
from unbandit.errors import ParameterError
from unbandit.estimators.procedures import check_comparable, most_pulled, quantile
from unbandit.formatting import json_number
from unbandit.instance import Instance, checked_instance
from unbandit.planning.result import CRITERIA, ArmLeak, Curves, Leak, Need, Numbers, Plan
from unbandit.planning.runs import SimulatedRuns, arm_deviations, read_runs, typical_run, with_error
from unbandit.study.curves import ENOUGH
from unbandit.study.grid import cell_seed
from unbandit.study.monte_carlo import replicates, share

LONGEST_TYPICAL = 1e12  # the typical run is followed up to this horizon
HORIZON_FACTOR = 1.05  # between two horizons of the typical run
MARGIN = 3.0  # simulated horizons begin and end this factor before and after those that the typical run needs
ALIKE = 1e-6  # a relative Monte-Carlo error of a horizon below this means that all runs are alike

HALVINGS, MOST_BETWEEN = 3, 8
"""Where an arm comes to be estimated between two horizons, one more between them is simulated this many times; for at
most this many places at a time."""


def plan(
    instance: Instance | str, rule: Demonstrator | str, within: float, *, level: float = 0.95,
    longest: int = 100_000, points: int = 12, runs: int = 200, seed: int = 1, threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Plan:  # fmt: skip
    """Return how long a rule must run for each gap to be known to within a distance, and its regret by then.

    A gap is known to within d when half the length of its interval is at most d in half of the runs (criterion
    `interval`; without an estimate it is infinite), or when the root-mean-square error of its estimate is at most d
    (criterion `error`; at least 95% of the runs must have an estimate).

    Parameters
    ----------
    instance
        A guess at the arms, or a data set by name.
    rule
        The rule that will collect, or its text; a rule whose actions have a closed form.
    within
        `d`, in the unit of the rewards.
    level
        Of the intervals.
    longest
        The longest horizon that is simulated.
    points
        The number of horizons that are simulated.
    runs
        Simulated runs per horizon.
    seed
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with each horizon before it is simulated.

    Examples
    --------
    >>> answer = plan("two-armed", "ucb:alpha=0.25", within=0.3, runs=40)
    >>> need = answer.need("1", "interval")
    >>> need.status, abs(need.horizon / need.theory_horizon - 1) < 0.2
    ('reached', True)
    """
    faced = datasets.load(instance) if isinstance(instance, str) else checked_instance(instance)
    assumed = rule_of_arms(rule)
    within, level = checks.positive("within", within), checks.level(level)
    longest, points = checks.whole("longest", longest), checks.whole("points", points)
    runs, seed = checks.whole("runs", runs, 2), checks.seed(seed)
    checks.function("progress", progress)
    if longest < 16 * len(faced):
        text = f"expected {16 * len(faced)} rounds or more, 16 for each of the {len(faced)} arms; got {longest}."
        raise ParameterError(text, parameter="longest", value=longest)
    if points < 3:
        raise ParameterError(f"expected three horizons or more; got {points}.", parameter="points", value=points)
    check_comparable(assumed, "bracket")
    others = np.flatnonzero(np.arange(len(faced)) != faced.means.argmax())
    typical = _typical_curve(faced, assumed, within, quantile(level))
    along, *by_criterion, regrets = typical
    wanted = np.array([crossing(along, values, within) for values in by_criterion])

    def simulate(horizon: int) -> tuple[Numbers, ...]:
        if progress is not None:
            progress(horizon)
        return _statistics(read_runs(faced, assumed, horizon, runs, seed, level, threads))

    grid = _grid(wanted[:, others], len(faced), longest, points)
    horizons, reach, error, regret, found = _simulated(simulate, grid, within, others)
    curves = Curves(horizons, with_error(reach), with_error(error), with_error(regret), found, *typical)
    needs: list[Need] = []
    for criterion, values, theory_horizons in zip(CRITERIA, (reach, error), wanted, strict=True):
        expected = (theory_horizons, value_at(along, regrets, theory_horizons))
        needs += _needs(faced, criterion, horizons, values, regret, expected, within, others)
    order = {arm: place for place, arm in enumerate(faced.arms)}
    needs.sort(key=lambda need: order[need.arm])
    answer = Plan(faced.name, str(assumed), faced.best, within, level, runs, seed, faced.arms, tuple(needs), curves)
    answer.notes.extend(_notes(faced, assumed, answer))
    return answer


def _needs(
    instance: Instance, criterion: str, horizons: Numbers, values: Numbers, regret: Numbers,
    expected: tuple[Numbers, Numbers], within: float, others: NDArray[np.intp],
) -> list[Need]:  # fmt: skip
    """Read off by one criterion the horizon that each arm needs, and its regret; `expected` are those of the theory."""
    reached = np.array([crossing(horizons, row, within) for row in values])
    costs = [value_at(horizons, row, each) for row, each in zip(regret, reached, strict=True)]
    horizon, cost = with_error(reached), with_error(np.array(costs))
    steps = _steps(horizons, values[0], *horizon, within)
    needs = []
    for arm in others:
        earlier = bool((values[0, :, arm] <= within).all())
        status = "earlier" if earlier else "reached" if np.isfinite(reached[0, arm]) else "not reached"
        error = np.maximum(horizon[1][arm], steps[arm])
        numbers = (expected[0][arm], expected[1][arm], horizon[0][arm], error, cost[0][arm], cost[1][arm])
        needs.append(Need(instance.arms[arm], float(instance.gaps[arm]), criterion, status, *map(json_number, numbers)))
    return needs


def _typical_curve(instance: Instance, rule: Demonstrator, within: float, z: float) -> tuple[Numbers, ...]:
    """Follow the typical run until all gaps are known, and a little further.

    Returns the horizons, and at each of them half the intervals' lengths, the errors, and the regret.
    """
    others = np.arange(len(instance)) != instance.means.argmax()
    curve = []
    horizon, last = 2.0 * len(instance), LONGEST_TYPICAL
    while horizon <= last:
        run = typical_run(instance, rule, horizon)
        curve.append((horizon, run.reach(z), run.deviation, run.regret))
        if (curve[-1][1][others] <= within).all():
            last = min(last, MARGIN**2 * horizon)
        horizon *= HORIZON_FACTOR
    return tuple(np.array(values) for values in zip(*curve, strict=True))


def _grid(wanted: Numbers, arms: int, longest: int, points: int) -> Numbers:
    """Return the horizons to simulate, around those that the typical run needs."""
    first = float(np.clip(wanted.min() / MARGIN, 2.0 * arms, longest / 8))
    last = float(np.clip(wanted.max() * MARGIN, 8 * first, longest))
    return np.unique(np.geomspace(first, last, points).round())


def _simulated(
    simulate: Callable[[int], tuple[Numbers, ...]], horizons: Numbers, within: float, others: NDArray[np.intp]
) -> tuple[Numbers, ...]:
    """Simulate at these horizons, and between those where an arm comes to be estimated.

    Returns the horizons, reach, error and regret as jackknife replicates (replicates, horizons, arms), and the share of
    runs that found the best arm.
    """
    known: dict[int, tuple[Numbers, ...]] = {}
    wanted = {int(horizon) for horizon in horizons}
    for halving in range(HALVINGS + 1):
        for horizon in sorted(wanted - set(known)):
            known[horizon] = simulate(horizon)
        along = sorted(known)
        reach, error, regret = (np.stack([known[each][at] for each in along], axis=1) for at in range(3))
        jumps = {place for values in (reach, error) for place in _jumps(values[0][:, others], within)}
        middle = {round(math.sqrt(along[place] * along[place + 1])) for place in sorted(jumps)[:MOST_BETWEEN]}
        wanted = middle if halving < HALVINGS else set()
        if not wanted - set(known):
            break
    found = np.array([known[each][3] for each in along])
    return np.array(along, np.float64), reach, error, regret, found


def _jumps(values: Numbers, within: float) -> list[int]:
    """Return after which horizons a curve falls from infinity to the target or below."""
    return [
        int(high[-1])
        for column in values.T
        if (high := np.flatnonzero(~(column <= within))).size
        and high[-1] + 1 < column.size
        and not np.isfinite(column[high[-1]])
    ]


def _statistics(read: SimulatedRuns) -> tuple[Numbers, ...]:
    """Return reach and error, (replicates, arms), regret, (replicates,), and the share of runs that found the best."""
    return (
        replicates(lambda reach: np.median(reach, axis=0), read.reach),
        replicates(_root_mean_square, read.error),
        replicates(np.mean, read.regret),
        read.found.mean(),
    )


def _root_mean_square(errors: Numbers) -> Numbers:
    """Return the error of each arm's estimates; infinite where too few of the runs have one."""
    known = np.isfinite(errors)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.square(np.where(known, errors, 0.0)).sum(axis=0) / known.sum(axis=0))
    return np.where(known.sum(axis=0) >= ENOUGH * len(errors), error, np.inf)


def _steps(horizons: Numbers, values: Numbers, reached: Numbers, error: Numbers, within: float) -> Numbers:
    """Return half the distance of the two horizons around a crossing, where the curve jumps between them, else 0.

    It jumps where the arm comes to be estimated between them, and where all runs are alike and jump together.
    """
    steps = np.zeros(values.shape[1])
    for arm, column in enumerate(values.T):
        last = int(np.searchsorted(horizons, reached[arm]))
        alike = 0 < last < horizons.size and error[arm] < ALIKE * reached[arm]
        if alike or _jumps(column[:, None], within):
            steps[arm] = (horizons[last] - horizons[last - 1]) / 2
    return steps


def _notes(instance: Instance, rule: Demonstrator, answer: Plan) -> list[str]:
    """Say what the table does not."""
    notes, last = [], int(answer.curves.horizons[-1])
    for criterion, quantity in CRITERIA.items():
        late = [need.arm for need in answer.needs if need.criterion == criterion and need.status == "not reached"]
        if late:
            names = ", ".join(late[:6]) + (", ..." if len(late) > 6 else "")
            notes.append(
                f"Up to {last:,} rounds, the longest horizon simulated, {quantity} stays above {answer.within:g} for "
                f"{len(late)} of {len(instance) - 1} arms ({names}): simulate longer runs, or ask for less precision."
            )
    missed = 1 - answer.curves.found[-1]
    if missed > 1 - ENOUGH:
        notes.append(f"In {missed:.0%} of the runs of {last:,} rounds the best arm was not found; their errors count.")
    gaps = instance.gaps[instance.gaps > 0]
    if isinstance(rule, UCB | SAE) and gaps.size:
        promised = _promised(gaps, rule)
        never = f"at no horizon up to {LONGEST_TYPICAL:.0e}"
        when = f"from {promised:,.0f} rounds on" if math.isfinite(promised) else never
        notes.append(f"The paper's Theorem 2 promises, with high probability, that the best arm is found {when}.")
    return notes


def _promised(gaps: Numbers, rule: RegretWidth) -> float:
    """Return the horizon from which on Theorem 2's condition holds."""
    along = np.exp(np.linspace(0.0, math.log(LONGEST_TYPICAL), 2_000))
    holds = np.array([theory.horizon_condition_holds(gaps, each, rule.alpha, rule.factor) for each in along])
    failing = np.flatnonzero(~holds)
    if failing.size == 0:
        return float(along[0])
    return float(along[failing[-1] + 1]) if failing[-1] + 1 < along.size else math.inf


def crossing(horizons: Numbers, values: Numbers, target: float) -> Numbers:
    """Return the horizon from which on a curve stays at or below a target, along the first axis.

    Curves are interpolated linearly on log-log scales. It is the first horizon where the whole curve is low enough, and
    infinite where its last point is not.
    """
    across = np.asarray(values, np.float64).reshape(len(horizons), -1)
    crossings = np.empty(across.shape[1])
    for at, column in enumerate(across.T):
        high = np.flatnonzero(~(column <= target))
        if high.size == 0:
            crossings[at] = horizons[0]
        elif high[-1] == len(horizons) - 1:
            crossings[at] = np.inf
        else:
            crossings[at] = _between(horizons, column, int(high[-1]), target)
    return crossings.reshape(np.shape(values)[1:])


def _between(horizons: Numbers, column: Numbers, place: int, target: float) -> float:
    """Return where the line from a point above the target to the next one meets the target."""
    above, below = column[place], column[place + 1]
    if not np.isfinite(above) or below <= 0:
        return float(horizons[place + 1])
    share = np.log(above / target) / np.log(above / below)
    return float(horizons[place] * (horizons[place + 1] / horizons[place]) ** share)


def value_at(horizons: Numbers, values: Numbers, wanted: Numbers) -> Numbers:
    """Return a curve's value at some horizons, interpolated linearly on log-log scales; NaN outside."""
    with np.errstate(divide="ignore"):
        result = np.exp(np.interp(np.log(wanted), np.log(horizons), np.log(values)))
    return np.where((wanted >= horizons[0]) & (wanted <= horizons[-1]), result, np.nan)


def rule_of_arms(rule: Demonstrator | str) -> Demonstrator:
    """Read a rule as `parse_rule` does; say of one that chooses by features what answers the question instead."""
    try:
        return parse_rule(rule)
    except ParameterError as error:
        named = str(rule).partition(":")[0].strip() if isinstance(rule, str | Rule) else ""
        if by_any_name(named, linear_rules()) is None:
            raise
        text = f'expected a rule whose log shows gaps between arms; got "{rule}", whose log shows coefficients. How '
        text += "well depends on the features of future offers, which are not known here."
        remedy = "Simulate logs of several lengths with simulate, and compare the intervals that estimate gives them."
        raise error.at(text=text, remedy=remedy) from None


def leak(
    instance: Instance | str, rule: Demonstrator | str, horizon: int, *, runs: int = 400, seed: int = 1,
    threads: int | None = None,
) -> Leak:  # fmt: skip
    """Return how much the record of a rule reveals about each arm, as equivalent observed rewards.

    Parameters
    ----------
    instance
        What the rule faces, or a data set by name.
    rule
        The rule, or its text.
    horizon
        `T`, the rounds of each run.
    runs
        The number of runs that are simulated.
    seed
        The same seed gives the same numbers, on any number of threads.

    Examples
    --------
    UCB's actions reveal nearly all that UCB itself knows.

    >>> answer = leak("two-armed", "ucb:alpha=0.25", 5_000, runs=200)
    >>> row = answer["1"]
    >>> 100 < row.equivalent < row.pulls < 200
    True
    >>> leak("two-armed", "uniform", 1_000, runs=20).total
    0.0
    """
    faced = datasets.load(instance) if isinstance(instance, str) else checked_instance(instance)
    played = rule_of_arms(rule)
    horizon, runs, seed = checks.whole("horizon", horizon), checks.whole("runs", runs, 2), checks.seed(seed)
    if played.reveals == "values":
        check_comparable(played, "bracket")
        read = read_runs(faced, played, horizon, runs, seed, 0.95, threads)
        (pulls, estimated, *values), (_, _, *errors) = with_error(
            replicates(partial(_revealed, arm_deviations(faced)), read.error, read.pulls)
        )
        pairs = np.stack([values, errors], axis=1).reshape(6, -1)
        numbers = [[json_number(value) for value in column] for column in pairs.T]
        found_best = read.found
    else:
        own_seed = cell_seed(seed, faced.name, faced, played, horizon)
        counts = played.demonstrate(faced, horizon, runs=runs, seed=own_seed, threads=threads).pulls
        pulls, estimated = counts.mean(axis=0), np.zeros(len(faced))
        numbers = [[None, None, 0.0, 0.0, 0.0, 0.0] for _ in faced.arms]
        found_best = (most_pulled(counts) & (faced.gaps == 0)).any(axis=1)
    numbers[faced.means.argmax()] = [None] * 6
    about = zip(faced.arms, faced.means.tolist(), faced.gaps.tolist(), pulls.tolist(), estimated.tolist(), strict=True)
    rows = tuple(ArmLeak(*arm, *each) for arm, each in zip(about, numbers, strict=True))
    found = share(float(found_best.sum()), runs)
    known = (None, None) if played.reveals == "nothing" else (found.value, found.error)
    return Leak(faced.name, str(played), horizon, runs, seed, played.reveals, known[0], known[1], rows)


def _revealed(deviations: Numbers, errors: Numbers, pulls: Numbers) -> Numbers:
    """Return from some runs, for each arm: `n_i`, `p_i`, the root of `MSE_i`, `m_i` and `m_i / n_i`."""
    known = np.isfinite(errors)
    with np.errstate(invalid="ignore", divide="ignore"):
        estimated = known.mean(axis=0)
        mse = np.square(np.where(known, errors, 0.0)).sum(axis=0) / known.sum(axis=0)
        worth = np.where(estimated > 0, estimated * deviations**2 / mse, 0.0)
        mean_pulls = pulls.mean(axis=0)
        return np.array([mean_pulls, estimated, np.sqrt(mse), worth, worth / mean_pulls])
