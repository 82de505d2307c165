"""Sum a study's rows over runs, dealt into folds: what every statistic, and its Monte-Carlo error, is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from unbandit.study.grid import Study, Task

__all__ = ["FOLDS", "NEEDED", "SUMMED", "fold_count", "folded", "unfolded"]

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
