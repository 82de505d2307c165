"""One task of a study that keeps sums: what its runs come to, fold by fold, and not a row of any of them.

A million runs of a cell are then a few hundred numbers. On a GPU they are summed where they were simulated.
"""

from __future__ import annotations

from statistics import NormalDist
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.demonstrators import EliminationRule, IndexRule
from unbandit.demonstrators.tables import laid_out
from unbandit.devices import checked_device, within_memory
from unbandit.estimators.intervals import FIFTY, quantile
from unbandit.instance import Gaussian
from unbandit.study.folding import SUMMED, fold_count, folded
from unbandit.study.rows import rows

if TYPE_CHECKING:
    from unbandit.kernels.procedures import Setting, Tests
    from unbandit.study.grid import Cell, Study, Task

__all__ = ["sums"]

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
    from unbandit.kernels.gpu.scoring import Asked, scored

    checked_device("cuda")
    instance, rule = cell.instance, cell.rule._facing(cell.instance)
    stage = rule._staged(laid_out(instance, cell.horizon, cell.seed), cell.horizon, drawn=True)
    usual = float(np.sqrt(2) * instance.sigma)
    estimators = [
        Asked(estimator.method, usual if estimator.constant is None else estimator.constant)
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
