"""One task of a study: simulate its runs, estimate them, and keep no log.

Sum a study's rows over runs, dealt into folds: what every statistic, and its Monte-Carlo error, is made of.

One task of a study that keeps sums: what its runs come to, fold by fold, and not a row of any of them.

A million runs of a cell are then a few hundred numbers. On a GPU they are summed where they were simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.demonstrators import EliminationRule, IndexRule
from unbandit.demonstrators.base import laid_out
from unbandit.devices import checked_device, within_memory
from unbandit.estimators.intervals import FIFTY, Noise, ends, quantile
from unbandit.estimators.procedures import Anchor, compare_many, most_pulled
from unbandit.instance import Gaussian
from unbandit.result import VERDICTS
from unbandit.tape import Tape

if TYPE_CHECKING:
    from unbandit.kernels.procedures import Setting, Tests
    from unbandit.study.grid import Cell, Study
    from unbandit.study.taskgrid import Task


def rows(study: Study, task: Task) -> pl.DataFrame:
    """Simulate the runs of a task and return one row for each estimator, run and arm, in that order.

    Every run has its arms in an order of its own, so that no estimator can profit from where the best one stands.
    Columns: instance, rule, horizon, estimator, run, arm, position (in the run's order, from 0), pulls, gap (the true
    one), estimate, low, high (of the gap; null where there is none), verdict, and of the run: regret, found (one arm
    was found best, and it is), most_pulled_is_best.
    """
    cell = study.cells[task.cell]
    instance, runs = cell.instance, np.arange(task.first_run, task.last_run)
    orders = Tape(cell.seed).orders(runs, len(instance))
    evidence = cell.rule.evidence(
        instance, cell.horizon, runs=runs.size, seed=cell.seed, threads=1, first_run=task.first_run, orders=orders,
        device=study.device,
    )  # fmt: skip
    positions = np.argsort(orders, axis=1)  # where each arm of the instance stands
    gaps = instance.gaps[orders]
    regret = (evidence.pulls * gaps).sum(axis=1)
    first_is_best = (most_pulled(evidence.pulls) & (gaps == 0)).any(axis=1)
    arms = len(instance)

    def arm_by_arm(values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Put a table with one column a position into the order of the instance's arms, as one long column."""
        return np.asarray(np.take_along_axis(values, positions, axis=1)).reshape(-1)

    same = {
        "run": np.repeat(runs, arms),
        "arm": pl.Series(instance.arms).gather(np.tile(np.arange(arms, dtype=np.uint32), runs.size)),
        "position": positions.reshape(-1).astype(np.int32),
        "pulls": arm_by_arm(evidence.pulls),
        "gap": np.tile(instance.gaps, runs.size),
    }
    # The noise and the best mean are known, as the paper has it.
    noise, known = (
        Noise(instance.sigma if isinstance(instance.noise, Gaussian) else None),
        Anchor(None, instance.best_mean),
    )
    tables = []
    for estimator in study.estimators:
        factor = estimator.constant if estimator.constant is not None else np.sqrt(2) * instance.sigma
        comparison = compare_many(evidence, cell.rule, estimator.method, cell.horizon, factor, known)
        low, high = ends(comparison, noise, known, quantile(study.level))
        alone = comparison.best.sum(axis=1) == 1
        found = alone & (comparison.best & (gaps == 0)).any(axis=1)
        codes = arm_by_arm(comparison.verdict).astype(np.uint32)
        columns = same | {
            "estimate": arm_by_arm(comparison.gap),
            "low": arm_by_arm(low),
            "high": arm_by_arm(high),
            "verdict": pl.Series(VERDICTS).gather(codes),
            "regret": np.repeat(regret, arms),
            "found": np.repeat(found, arms),
            "most_pulled_is_best": np.repeat(first_is_best, arms),
        }
        names = {"instance": cell.instance_name, "rule": str(cell.rule), "estimator": str(estimator)}
        table = pl.DataFrame(columns, nan_to_null=True).with_columns(
            *(pl.lit(text, pl.String).alias(name) for name, text in names.items()),
            pl.lit(cell.horizon, pl.Int64).alias("horizon"),
            pl.col("estimate", "low", "high").cast(pl.Float64),
        )
        tables.append(table.select("instance", "rule", "horizon", "estimator", *columns))
    return pl.concat(tables)


FOLDS = 20
"""Groups that runs are dealt into: enough for an error known to about a sixth of itself."""


_error = pl.col("estimate") - pl.col("gap")


_estimated = pl.col("verdict") == "estimated"


_kept = pl.col("most_pulled_is_best")


_interval = _estimated & pl.col("low").is_not_null() & pl.col("high").is_not_null()


SUMMED: Mapping[str, pl.Expr] = {
    "points": pl.col("estimate").is_not_null(),
    "error": _error,
    "absolute": _error.abs(),
    "squared": _error**2,
    "estimated": _estimated,
    "bounded": pl.col("verdict") == "bounded",
    "intervals": _interval,
    "held": _interval & (pl.col("low") <= pl.col("gap")) & (pl.col("gap") <= pl.col("high")),
    "pulls": pl.col("pulls"),
    "regret": pl.col("regret"),
    "found": pl.col("found"),
    "kept": _kept,
    "kept_points": _kept & pl.col("estimate").is_not_null(),
    "kept_squared": pl.when(_kept).then(_error**2),
}
"""What is summed over runs, from the columns of a part; where there is no number, nothing is added."""


NEEDED = frozenset(name for values in SUMMED.values() for name in values.meta.root_names())
"""The columns of a part that are read for it."""


def fold_count(study: Study) -> int:
    """Return how many folds a study's runs are dealt into: run `r` belongs to fold `r % folds`."""
    return min(FOLDS, study.runs)


def folded(study: Study, task: Task, part: pl.DataFrame) -> NDArray[np.float64]:
    """Sum the rows of a task: (estimators, statistics, folds, arms)."""
    estimators, count = len(study.estimators), fold_count(study)
    arms = len(study.cells[task.cell].instance)
    sums = np.zeros((estimators, len(SUMMED), count, arms))
    summed = part.select(values.cast(pl.Float64).fill_null(0.0).alias(name) for name, values in SUMMED.items())
    # rows stand by estimator, then by run, then by arm
    shape = (estimators, task.last_run - task.first_run, arms)
    for at, column in enumerate(summed):
        table = column.to_numpy().reshape(shape)
        for fold in range(count):
            sums[:, at, fold] = table[:, (fold - task.first_run) % count :: count].sum(axis=1)
    return sums


def unfolded(study: Study, task: Task, part: pl.DataFrame) -> NDArray[np.float64]:
    """Read the sums of a task of a study that keeps sums: (estimators, statistics, folds, arms)."""
    shape = (len(study.estimators), fold_count(study), len(study.cells[task.cell].instance))
    return np.stack([part[name].to_numpy().reshape(shape) for name in SUMMED], axis=1)


_gpu = Lock()
"""One task at a time has the GPU: each takes what memory there is."""


def sums(study: Study, task: Task) -> pl.DataFrame:
    """Simulate the runs of a task and return one row for each estimator, fold and arm, in that order.

    Columns: instance, rule, horizon, estimator, fold, arm, and the sums over the fold's runs that statistics are made
    of (`folding.SUMMED`).
    """
    cell = study.cells[task.cell]
    if study.device == "cuda":
        with _gpu, within_memory():
            found = _on_gpu(study, task, cell)
    else:
        found = folded(study, task, rows(study, task))
    estimators, folds, arms = len(study.estimators), fold_count(study), len(cell.instance)
    names = np.array([str(estimator) for estimator in study.estimators], dtype=object)
    columns = {
        "estimator": np.repeat(names, folds * arms).tolist(),
        "fold": np.tile(np.repeat(np.arange(folds), arms), estimators),
        "arm": list(cell.instance.arms) * (folds * estimators),
    }
    # (estimators, statistics, folds, arms): a column for each statistic
    columns |= {name: found[:, at].reshape(-1) for at, name in enumerate(SUMMED)}
    table = pl.DataFrame(columns).with_columns(
        pl.lit(cell.instance_name, pl.String).alias("instance"),
        pl.lit(str(cell.rule), pl.String).alias("rule"),
        pl.lit(cell.horizon, pl.Int64).alias("horizon"),
    )
    return table.select("instance", "rule", "horizon", *columns)


def _on_gpu(study: Study, task: Task, cell: Cell) -> NDArray[np.float64]:
    """Simulate, estimate and sum on the GPU."""
    from unbandit.kernels.gpu.sums import ScoredEstimator, scored

    checked_device("cuda")
    instance, rule = cell.instance, cell.rule._facing(cell.instance)
    stage = rule._staged(laid_out(instance, cell.horizon, cell.seed), cell.horizon, drawn=True)
    usual = float(np.sqrt(2) * instance.sigma)
    estimators = [
        ScoredEstimator(estimator.method, usual if estimator.constant is None else estimator.constant)
        for estimator in study.estimators
    ]
    tests = _tests(rule, cell.horizon) if isinstance(rule, EliminationRule) else None
    return scored(
        stage, instance.gaps, _setting(study, cell, rule), tests, estimators, cell.horizon, task.first_run,
        task.last_run - task.first_run, fold_count(study),
    )  # fmt: skip


def _setting(study: Study, cell: Cell, rule: Any) -> Setting:
    """Return what is known beside the counts: noise and best mean, as the paper has it."""
    from unbandit.kernels.procedures import Setting

    z, normal = quantile(study.level), NormalDist()
    index = isinstance(rule, IndexRule)
    return Setting(
        initial=rule.initial if index else 1,
        batch=rule.batch if index else 1,
        shifts=bool(rule.shifts) if index else True,
        best_mean=float(cell.instance.best_mean),
        sigma=float(cell.instance.sigma) if isinstance(cell.instance.noise, Gaussian) else float("nan"),
        z=z,
        wider=normal.inv_cdf(1 - normal.cdf(-z) / FIFTY),
        error=float(np.log(normal.cdf(-z))),
    )


def _tests(rule: EliminationRule, horizon: int) -> Tests:
    """Return an elimination rule's widths, and its tests, as tables."""
    from unbandit.kernels.procedures import Tests

    halves, epochs = np.arange(1, 2 * horizon + 3) / 2, np.arange(horizon + 1)
    widths = np.concatenate([[np.inf], rule.width(halves, horizon)])
    tested = (epochs > 0) & rule.tests(epochs)
    return Tests(widths, np.maximum.accumulate(np.where(tested, epochs, 0)))
