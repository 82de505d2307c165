"""Coverage of the closed forms: all intervals that a study gave, whatever the run found, verdict by verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unbandit.calibration.measures import least_error
from unbandit.instance import Instance
from unbandit.study.monte_carlo import Measured, measured
from unbandit.study.rows import FOLDS
from unbandit.study.study import StudyResult

__all__ = ["Covered", "covered"]

COLUMNS = ("instance", "rule", "horizon", "run", "gap", "low", "high", "verdict", "found")

_given = pl.col("low").is_not_null() | pl.col("high").is_not_null()
_held = (pl.col("low").is_null() | (pl.col("low") <= pl.col("gap"))) & (
    pl.col("high").is_null() | (pl.col("gap") <= pl.col("high"))
)


@dataclass(frozen=True)
class Covered:
    """Hold what was found of one rule's intervals, in one instance and horizon.

    Attributes
    ----------
    instance, rule, horizon, runs
        Where.
    estimated, bounded
        Share of the intervals that hold the true gap, of arms with these verdicts; NaN where there are none.
    intervals, bounds
        How many there are of each.
    found
        Share of the runs that found the best arm: intervals are of all runs.
    """

    instance: Instance
    rule: str
    horizon: int
    runs: int
    estimated: Measured
    bounded: Measured
    intervals: int
    bounds: int
    found: float


def covered(result: StudyResult) -> Iterator[Covered]:
    """Give the coverage in every cell of a finished study."""
    study = result.study
    folds, keys = min(FOLDS, study.runs), ("instance", "rule", "horizon")
    summed = pl.concat(
        part.group_by(*keys, (pl.col("run") % folds).alias("fold"), maintain_order=True).agg(
            *(
                (chosen & (pl.col("verdict") == verdict)).sum().alias(f"{verdict} {name}")
                for verdict in ("estimated", "bounded")
                for name, chosen in (("given", _given), ("held", _given & _held))
            ),
            pl.col("found").sum(),
            pl.len(),
        )
        for part in result.parts(COLUMNS)
    )
    by_fold = summed.group_by(*keys, "fold").sum().sort("fold")
    for cell in study.cells:
        rows = by_fold.filter(instance=cell.instance_name, rule=str(cell.rule), horizon=cell.horizon)
        yield Covered(
            cell.instance, str(cell.rule), cell.horizon, study.runs, _share(rows, "estimated"), _share(rows, "bounded"),
            int(rows["estimated given"].sum()), int(rows["bounded given"].sum()),
            float(rows["found"].sum()) / float(rows["len"].sum()),
        )  # fmt: skip


def _share(rows: pl.DataFrame, verdict: str) -> Measured:
    """Return the share of a verdict's intervals that hold, with its error by leaving out a fold of runs at a time."""
    given, held = (rows[f"{verdict} {name}"].to_numpy().astype(np.float64) for name in ("given", "held"))
    if not given.sum():
        return Measured(np.nan, np.nan, 0)
    least = least_error(held.sum(), given.sum())
    given, held = (np.array([column.sum(), *(column.sum() - column)]) for column in (given, held))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = measured(held / given)
    return replace(found, error=float(np.fmax(found.error, least)))
