"""One task of a study: simulate its runs, estimate them, and keep no log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.estimators.intervals import Noise, ends, quantile
from unbandit.estimators.procedures import Anchor, compare_many, most_pulled
from unbandit.instance import Gaussian
from unbandit.result import VERDICTS
from unbandit.tape import Tape

if TYPE_CHECKING:
    from unbandit.study.grid import Study, Task

__all__ = ["rows"]


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
