"""`leak`: how much a record of actions reveals, counted in rewards that one would have had to see.

Whoever publishes which arm was pulled when, or cannot hide it, hides no more than this. For each arm:

- The outsider knows the rule, the horizon, the noise and the best arm's mean, and estimates the arm's mean by the
  closed form; `MSE_i` is the mean squared error over the runs that have an estimate, a share `p_i` of them.
- Someone who sees `m` of the arm's own rewards knows its mean with a mean squared error of `sigma_i^2 / m`.
- The record therefore is worth `m_i = p_i sigma_i^2 / MSE_i` rewards: *equivalent observed rewards*. A run without an
  estimate counts as revealing nothing, although it may give a bound.
"""

from functools import partial

import numpy as np

from unbandit import checks, datasets
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.estimators.procedures import check_comparable, most_pulled
from unbandit.formatting import json_number
from unbandit.instance import Instance, checked_instance
from unbandit.planning.result import ArmLeak, Leak, Numbers
from unbandit.planning.runs import arm_deviations, read_runs, with_error
from unbandit.study.grid import cell_seed
from unbandit.study.monte_carlo import replicates, share


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
    faced = datasets.load(instance) if isinstance(instance, str) else checked_instance(instance)
    played = parse_rule(rule)
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
