"""The rows of one task of a study: simulate its runs and estimate them, without keeping a log.

A study that keeps sums has, instead of one row per run, the sums over each fold of runs: a few hundred numbers for a
million runs of a cell; on a GPU they are summed where they were simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.demonstrators import EliminationRule
from unbandit.demonstrators.base import laid_out
from unbandit.devices import checked_device, within_memory
from unbandit.estimators.procedures import Anchor, assumptions, compare, intervals, most_pulled, quantile
from unbandit.result import VERDICTS
from unbandit.study.grid import Cell, StudyGrid
from unbandit.study.monte_carlo import FOLDS
from unbandit.study.taskgrid import Task
from unbandit.tape import Tape

if TYPE_CHECKING:
    from unbandit.kernels.gpu.sums import Tests


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
"""What is summed over runs, from the columns of a part; a missing number adds nothing."""

NEEDED = frozenset(name for values in SUMMED.values() for name in values.meta.root_names())
"""The columns of a part that these sums need."""

_gpu = Lock()  # one task at a time uses the GPU: each takes all the memory there is


def rows(study: StudyGrid, task: Task) -> pl.DataFrame:
    """Simulate the runs of a task and return one row for each estimator, run and arm, in that order.

    Every run shuffles its arms, so that no estimator can profit from the position of the best one. Columns: instance,
    rule, horizon, estimator, run, arm, position (in the run's order, from 0), pulls, gap (the true one), estimate, low,
    high (of the gap; null where there is none), verdict, and of the run: regret, found (exactly one arm was declared
    best, and it is), most_pulled_is_best.
    """
    cell = study.cells[task.cell]
    instance, runs = cell.instance, np.arange(task.first_run, task.last_run)
    orders = Tape(cell.seed).orders(runs, len(instance))
    evidence = cell.rule.evidence(
        instance, cell.horizon, runs=runs.size, seed=cell.seed, threads=1, first_run=task.first_run, orders=orders,
        device=study.device,
    )  # fmt: skip
    positions = np.argsort(orders, axis=1)  # of each arm of the instance
    gaps = instance.gaps[orders]
    regret = (evidence.pulls * gaps).sum(axis=1)
    first_is_best = (most_pulled(evidence.pulls) & (gaps == 0)).any(axis=1)
    arms = len(instance)

    def arm_by_arm(values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Flatten a table with one column per position, in the order of the instance's arms."""
        return np.asarray(np.take_along_axis(values, positions, axis=1)).reshape(-1)

    same = {
        "run": np.repeat(runs, arms),
        "arm": pl.Series(instance.arms).gather(np.tile(np.arange(arms, dtype=np.uint32), runs.size)),
        "position": positions.reshape(-1).astype(np.int32),
        "pulls": arm_by_arm(evidence.pulls),
        "gap": np.tile(instance.gaps, runs.size),
    }
    # The noise and the best mean are known, as the paper has it.
    known = Anchor(None, instance.best_mean)
    tables = []
    for estimator in study.estimators:
        factor = estimator.constant if estimator.constant is not None else np.sqrt(2) * instance.sigma
        comparison = compare(evidence, cell.rule, estimator.method, cell.horizon, factor, known, instance.noise)
        low, high, *_ = intervals(comparison, instance.noise, known, quantile(study.level))
        alone = comparison.best.sum(axis=1) == 1
        found = alone & (comparison.best & (gaps == 0)).any(axis=1)
        codes = arm_by_arm(comparison.verdict).astype(np.uint32)
        of_estimator = {
            "estimate": arm_by_arm(comparison.gap),
            "low": arm_by_arm(low),
            "high": arm_by_arm(high),
            "verdict": pl.Series(VERDICTS).gather(codes),
            "regret": np.repeat(regret, arms),
            "found": np.repeat(found, arms),
            "most_pulled_is_best": np.repeat(first_is_best, arms),
        }
        tables.append(_table(cell, {"estimator": str(estimator)} | same | of_estimator))
    return pl.concat(tables)


def _table(cell: Cell, columns: dict[str, Any]) -> pl.DataFrame:
    names = {"instance": cell.instance_name, "rule": str(cell.rule), "horizon": cell.horizon}
    return pl.DataFrame(names | columns, nan_to_null=True, schema_overrides={"horizon": pl.Int64})


def fold_count(study: StudyGrid) -> int:
    """Return how many folds a study's runs are divided into: run `r` belongs to fold `r % folds`."""
    return min(FOLDS, study.runs)


def sum_rows(study: StudyGrid, task: Task, part: pl.DataFrame) -> NDArray[np.float64]:
    """Sum the rows of a task over runs: (estimators, statistics, folds, arms)."""
    estimators, count = len(study.estimators), fold_count(study)
    arms = len(study.cells[task.cell].instance)
    sums = np.zeros((estimators, len(SUMMED), count, arms))
    summed = part.select(values.cast(pl.Float64).fill_null(0.0).alias(name) for name, values in SUMMED.items())
    # rows are ordered by estimator, then by run, then by arm
    shape = (estimators, task.last_run - task.first_run, arms)
    for at, column in enumerate(summed):
        table = column.to_numpy().reshape(shape)
        for fold in range(count):
            sums[:, at, fold] = table[:, (fold - task.first_run) % count :: count].sum(axis=1)
    return sums


def read_sums(study: StudyGrid, task: Task, part: pl.DataFrame) -> NDArray[np.float64]:
    """Read the sums of a task of a study that keeps sums: (estimators, statistics, folds, arms)."""
    shape = (len(study.estimators), fold_count(study), len(study.cells[task.cell].instance))
    return np.stack([part[name].to_numpy().reshape(shape) for name in SUMMED], axis=1)


def sums(study: StudyGrid, task: Task) -> pl.DataFrame:
    """Simulate the runs of a task and return one row for each estimator, fold and arm, in that order.

    Columns: instance, rule, horizon, estimator, fold, arm, and the sums over the fold's runs (`SUMMED`).
    """
    cell = study.cells[task.cell]
    if study.device == "cuda":
        with _gpu, within_memory():
            summed = _on_gpu(study, task, cell)
    else:
        summed = sum_rows(study, task, rows(study, task))
    estimators, folds, arms = len(study.estimators), fold_count(study), len(cell.instance)
    names = np.array([str(estimator) for estimator in study.estimators], dtype=object)
    columns = {
        "estimator": np.repeat(names, folds * arms).tolist(),
        "fold": np.tile(np.repeat(np.arange(folds), arms), estimators),
        "arm": list(cell.instance.arms) * (folds * estimators),
    }
    # (estimators, statistics, folds, arms): one column per statistic
    columns |= {name: summed[:, at].reshape(-1) for at, name in enumerate(SUMMED)}
    return _table(cell, columns)


def _on_gpu(study: StudyGrid, task: Task, cell: Cell) -> NDArray[np.float64]:
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
    known = Anchor(None, instance.best_mean)  # as the noise is, as the paper has it
    assumed = assumptions(rule, known, instance.noise, quantile(study.level))
    return scored(
        stage, instance.gaps, assumed, tests, estimators, cell.horizon, task.first_run,
        task.last_run - task.first_run, fold_count(study),
    )  # fmt: skip


def _tests(rule: EliminationRule, horizon: int) -> Tests:
    """Return an elimination rule's widths, and its tests, as tables."""
    from unbandit.kernels.gpu.sums import Tests

    halves, epochs = np.arange(1, 2 * horizon + 3) / 2, np.arange(horizon + 1)
    widths = np.concatenate([[np.inf], rule.width(halves, horizon)])
    tested = (epochs > 0) & rule.tests(epochs)
    return Tests(widths, np.maximum.accumulate(np.where(tested, epochs, 0)))
