"""The table that a study ends with: what was found for each arm, estimator and cell."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl

from unbandit.study.folds import ENOUGH, Folds, measured

__all__ = ["over_arms", "summary"]

FIGURES = 6
"""Significant figures kept: more than the Monte-Carlo error leaves."""


def summary(folds: Folds) -> pl.DataFrame:
    """Return one row for each instance, rule, horizon, estimator and arm, in the study's order.

    Columns: the arm's true gap and the runs; the share of runs in which it was estimated; the root of the mean squared
    error of its gap with its Monte-Carlo error; how often the interval of an estimated gap held the true one; the share
    of runs whose best arm was found; the mean regret.
    """
    tables = []
    for cell, estimator in product(folds.study.cells, map(str, folds.study.estimators)):
        known = {"instance": cell.instance_name, "rule": str(cell.rule), "horizon": cell.horizon}
        found = folds.over_arms(instance=cell.instance_name, rule=cell.rule, horizon=cell.horizon, estimator=estimator)
        rmse = measured(np.sqrt(found.mse))
        tables.append(
            pl.DataFrame(
                known
                | {
                    "estimator": estimator,
                    "arm": cell.instance.arms,
                    "gap": found.gap,
                    "runs": found.runs.astype(np.int64),
                    "estimated": found.estimated[0],
                    "rmse": rmse.value,
                    "rmse_error": rmse.error,
                    "coverage": found.coverage[0],
                    "found": found.found[0],
                    "regret": found.regret[0],
                }
            )
        )
    return pl.concat(tables).with_columns(pl.selectors.float().fill_nan(None).round_sig_figs(FIGURES))


def over_arms(table: pl.DataFrame) -> pl.DataFrame:
    """Sum a summary up: one row for each cell and estimator, in the order of the table.

    Coverage is that of all intervals together; the error is the largest of those arms that are estimated in nearly all
    runs, for the others' is that of a selection.
    """
    known, covered = pl.col("estimated") >= ENOUGH, pl.col("estimated").filter(pl.col("coverage").is_not_null())
    pooled = (pl.col("coverage") * pl.col("estimated")).sum() / covered.sum()
    worst = pl.col("rmse").filter(known).arg_max()
    return table.group_by("instance", "rule", "horizon", "estimator", maintain_order=True).agg(
        pl.col("estimated").mean(),
        pooled.fill_nan(None).alias("coverage"),
        pl.col("rmse", "rmse_error").filter(known).get(worst, null_on_oob=True),
        pl.col("found", "regret").first(),
    )
