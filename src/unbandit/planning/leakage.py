"""`leak`: how much a record of actions reveals, counted in rewards that one would have had to see.

Whoever publishes which arm was pulled when, or cannot hide it, hides no more than this. For each arm:

- The outsider knows the rule, the horizon, the noise and the best arm's mean, and estimates the arm's mean by the
  closed form; `MSE_i` is the mean squared error over the runs that have an estimate, a share `p_i` of them.
- Someone who sees `m` of the arm's own rewards knows its mean with a mean squared error of `sigma_i^2 / m`.
- The record therefore is worth `m_i = p_i sigma_i^2 / MSE_i` rewards: *equivalent observed rewards*. A run without an
  estimate counts as revealing nothing, although it may give a bound.

`m_i / n_i`, with the arm's pulls `n_i`, is the share of what the rule itself learnt about the arm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit import checks, datasets
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.estimators.procedures import check_comparable, most_pulled
from unbandit.instance import Instance
from unbandit.planning.result import ArmLeak, Leak
from unbandit.planning.runs import arm_deviations, read_runs, without_each_fold
from unbandit.study.grid import cell_seed
from unbandit.study.monte_carlo import Measured, measured, share


def leak(
    instance: Instance | str,
    rule: Demonstrator | str,
    horizon: int,
    *,
    runs: int = 400,
    seed: int = 1,
    threads: int | None = None,
) -> Leak:
    """Return how much the record of a rule reveals about each arm, as equivalent observed rewards.

    Parameters
    ----------
    instance
        What the rule faces, or a data set by name.
    rule
        The rule, or its text.
    horizon, runs
        `T`, and the number of runs simulated.
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
    faced = datasets.load(instance) if isinstance(instance, str) else instance
    played = parse_rule(rule) if isinstance(rule, str) else rule
    horizon, runs, seed = checks.whole("horizon", horizon), checks.whole("runs", runs, 2), checks.seed(seed)
    about = (faced.name, str(played), horizon, runs, seed, played.reveals)
    if played.reveals != "values":
        pulls, found_best = _pulls(faced, played, horizon, runs, seed, threads)
        rows = [_row(faced, arm, float(pulls[arm])) for arm in range(len(faced))]
        if played.reveals != "best":
            return Leak(*about, None, None, tuple(rows))
        found = share(float(found_best.sum()), runs)
        return Leak(*about, found.value, found.error, tuple(rows))
    check_comparable(played, "switching")
    read = read_runs(faced, played, horizon, runs, seed, 0.95, threads)
    kept = without_each_fold(runs).astype(np.float64)
    known = np.isfinite(read.error)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (kept @ known) / kept.sum(axis=1, keepdims=True)
        mse = (kept @ np.where(known, read.error, 0.0) ** 2) / (kept @ known)
        worth = np.where(shares > 0, shares * arm_deviations(faced) ** 2 / mse, 0.0)
        pulls = (kept @ read.pulls) / kept.sum(axis=1, keepdims=True)
        of_pulls = worth / pulls
    found = share(float(read.found.sum()), runs)
    rows = [
        _row(faced, arm, float(pulls[0, arm]), float(shares[0, arm]),
             *(_measured(values[:, arm]) for values in (np.sqrt(mse), worth, of_pulls)))
        for arm in range(len(faced))
    ]  # fmt: skip
    return Leak(*about, found.value, found.error, tuple(rows))


def _pulls(
    instance: Instance, rule: Demonstrator, horizon: int, runs: int, seed: int, threads: int | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return mean pulls, and in which runs the most-pulled arm is the best, for a rule that reveals no values."""
    own_seed = cell_seed(seed, instance.name, instance, rule, horizon)
    pulls = rule.demonstrate(instance, horizon, runs=runs, seed=own_seed, threads=threads).pulls
    return pulls.mean(axis=0), (most_pulled(pulls) & (instance.gaps == 0)).any(axis=1)


def _row(
    instance: Instance, arm: int, pulls: float, estimated: float = 0.0, rmse: Measured | None = None,
    worth: Measured | None = None, of_pulls: Measured | None = None,
) -> ArmLeak:  # fmt: skip
    """Lay out one arm; without measurements nothing is revealed."""
    about = (instance.arms[arm], float(instance.means[arm]), float(instance.gaps[arm]), pulls)
    if arm == instance.means.argmax():
        return ArmLeak(*about, estimated, None, None, None, None, None, None)
    if rmse is None or worth is None or of_pulls is None:
        return ArmLeak(*about, 0.0, None, None, 0.0, 0.0, 0.0, 0.0)
    numbers = (each for pair in (rmse, worth, of_pulls) for each in (pair.value, pair.error))
    known = (float(number) if np.isfinite(number) else None for number in numbers)
    return ArmLeak(*about, estimated, *known)


def _measured(replicates: NDArray[np.float64]) -> Measured:
    if np.isfinite(replicates).all():
        return measured(replicates)
    return Measured(float(replicates[0]), float("nan"), len(replicates) - 1)
