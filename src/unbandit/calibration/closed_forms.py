"""Coverage of the closed forms: studies of every rule that can be inverted, and how often their intervals hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import polars as pl

from unbandit.calibration.metrics import least_error
from unbandit.calibration.settings import BERNOULLI, CELLS
from unbandit.demonstrators import parse_rule
from unbandit.estimators.procedures import can_compare
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.study import Study, StudyResult
from unbandit.study.monte_carlo import FOLDS, Measured, measured

SIGMAS = (0.5, 1.0)
"""Noise of Gaussian rewards, whose best arm is 1 better than the worst."""

TIMES = 10
"""How many times the runs of the posterior's cells: closed forms take no time, so their errors can be smaller."""

COLUMNS = ("instance", "rule", "horizon", "run", "gap", "low", "high", "verdict", "found")

_given = pl.col("low").is_not_null() | pl.col("high").is_not_null()
_held = (pl.col("low").is_null() | (pl.col("low") <= pl.col("gap"))) & (
    pl.col("high").is_null() | (pl.col("gap") <= pl.col("high"))
)


@dataclass(frozen=True)
class CoverageMetrics:
    """Coverage of one rule's intervals, for one instance and horizon.

    Attributes
    ----------
    instance, rule, horizon, runs
        The cell.
    estimated, bounded
        Share of the intervals that hold the true gap, of arms with these verdicts; NaN if there are none.
    intervals, bounds
        Number of each.
    found
        Share of the runs that found the best arm; intervals are of all runs.
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


def has_closed_form(text: str) -> bool:
    """Return whether a closed form can invert a rule's records."""
    return can_compare(parse_rule(text), "switching")


def closed_form_studies(text: str, runs: int | None = None, seed: int = 1) -> dict[str, Study]:
    """Return the studies of one rule, one for each number of runs, on arms at even distances, shuffled in every run.

    `runs` replaces each cell's own number.
    """
    studies = {}
    for usual, group in groupby(sorted(CELLS, key=lambda cell: cell[2]), key=lambda cell: cell[2]):
        cells = [(arms, horizon) for arms, horizon, _ in group]
        numbers, horizons = dict.fromkeys(arms for arms, _ in cells), dict.fromkeys(horizon for _, horizon in cells)
        if text in BERNOULLI:
            instances = [_even(arms, 0.9, 0.1, Bernoulli()) for arms in numbers]
        else:
            instances = [_even(arms, 1.0, 0.0, Gaussian(sigma)) for arms in numbers for sigma in SIGMAS]
        count = TIMES * usual if runs is None else runs
        name = f"{'-and-'.join(str(arms) for arms in numbers)}-arms"
        studies[name] = Study(instances, parse_rule(text), tuple(horizons), count, seed)
    return studies


def _even(arms: int, best: float, worst: float, noise: Noise) -> Instance:
    label = f"sigma {noise.sigma:g}" if isinstance(noise, Gaussian) else "Bernoulli"
    return Instance(np.linspace(best, worst, arms), noise, name=f"{arms} arms, {label}")


def coverage_metrics(result: StudyResult) -> Iterator[CoverageMetrics]:
    """Yield the coverage in every cell of a finished study."""
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
        yield CoverageMetrics(
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
        coverage = measured(held / given)
    return replace(coverage, error=float(np.fmax(coverage.error, least)))
