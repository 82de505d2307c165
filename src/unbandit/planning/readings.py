"""Simulate runs, read each as an outsider would, and keep what planning needs of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.estimators.intervals import Anchor, Noise, ends, quantile
from unbandit.estimators.many import compare_many
from unbandit.instance import Gaussian, Instance
from unbandit.result import ESTIMATED
from unbandit.study.folding import FOLDS
from unbandit.study.seeds import cell_seed
from unbandit.tape import Tape

__all__ = ["Readings", "read_runs", "without_each_fold"]

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Readings:
    """Hold what was read from simulated runs: (runs, arms), the arms in the order of the instance.

    Attributes
    ----------
    pulls
        `n_i`.
    error
        Of the estimated gap; NaN where there is no estimate.
    reach
        Half the length of the gap's interval; infinite where there is none.
    regret, found
        Of each run: its regret, and whether one arm was found best and is.
    """

    pulls: Numbers
    error: Numbers
    reach: Numbers
    regret: Numbers
    found: NDArray[np.bool_]


def read_runs(
    instance: Instance, rule: Demonstrator, horizon: int, runs: int, seed: int, level: float, threads: int | None = None
) -> Readings:
    """Simulate runs whose arms stand in an order of their own each, and estimate their gaps by the closed form.

    The noise and the best mean are taken as known to the outsider.
    """
    own_seed = cell_seed(seed, instance.name, instance, rule, horizon)
    orders = Tape(own_seed).orders(np.arange(runs), len(instance))
    evidence = rule.evidence(instance, horizon, runs=runs, seed=own_seed, threads=threads, orders=orders)
    known = Anchor(None, instance.best_mean)
    comparison = compare_many(evidence, rule, "switching", horizon, 1.0, known)
    noise = Noise(instance.sigma if isinstance(instance.noise, Gaussian) else None)
    low, high = ends(comparison, noise, known, quantile(level))
    reach = np.where((comparison.verdict == ESTIMATED) & np.isfinite(high - low), (high - low) / 2, np.inf)
    gaps = instance.gaps[orders]
    alone = comparison.best.sum(axis=1) == 1
    places = np.argsort(orders, axis=1)

    def by_arm(values: NDArray[np.generic]) -> Numbers:
        return np.asarray(np.take_along_axis(values, places, axis=1), np.float64)

    return Readings(
        by_arm(evidence.pulls),
        by_arm(comparison.gap - gaps),
        by_arm(reach),
        np.asarray((evidence.pulls * gaps).sum(axis=1), np.float64),
        alone & (comparison.best & (gaps == 0)).any(axis=1),
    )


def without_each_fold(runs: int) -> NDArray[np.bool_]:
    """Return which runs stand behind each replicate: all of them, then all but one fold's (see `study.jackknife`).

    Examples
    --------
    >>> without_each_fold(3).astype(int).tolist()
    [[1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    folds = min(FOLDS, runs)
    return np.asarray(np.arange(runs) % folds != np.arange(-1, folds)[:, None])
