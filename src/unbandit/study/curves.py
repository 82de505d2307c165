"""What a study found at each point of its grid: errors, coverage, regret and verdicts, with their replicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import parse_rule
from unbandit.errors import ParameterError
from unbandit.study.grid import StudyGrid
from unbandit.study.monte_carlo import measured
from unbandit.study.rows import SUMMED, fold_count, read_sums, sum_rows

ENOUGH = 0.95  # share of runs with an estimate from which on they are not a selection of the runs
FIGURES = 6  # significant figures of the summary: more than the Monte-Carlo error leaves

Replicates = NDArray[np.float64]


class StudyCurves:
    """The sums of a study's rows over the runs of each fold, `count` of them; built by `StudyResult.curves()`.

    Statistics come from `curve` (over horizons) or `over_arms`.
    """

    def __init__(self, study: StudyGrid, parts: Iterable[pl.DataFrame]) -> None:
        """Sum the parts of a study, given in the order of its tasks."""
        self.study, self.count = study, fold_count(study)
        read = read_sums if study.keep == "sums" else sum_rows
        shape = (len(study.estimators), len(SUMMED), self.count)
        sums = [np.zeros((*shape, len(cell.instance))) for cell in study.cells]
        for task, part in zip(study.tasks, parts, strict=True):
            sums[task.cell] += read(study, task, part)
        self._sums = [of_cell.swapaxes(0, 1) for of_cell in sums]  # statistics first
        self._runs = np.array([len(range(fold, study.runs, self.count)) for fold in range(self.count)], np.float64)

    def __repr__(self) -> str:
        return f"<StudyCurves: {self.study.runs:,} runs in {self.count} folds of {self.study!r}>"

    def keys(self) -> Iterator[dict[str, str]]:
        """Yield every combination of instance, rule, estimator and arm: the arguments of `curve`."""
        arms = {cell.instance_name: cell.instance.arms for cell in self.study.cells}
        for given, rule, estimator in product(self.study.instances, self.study.rules, self.study.estimators):
            for arm in arms[given.name]:
                yield {"instance": given.name, "rule": str(rule), "estimator": str(estimator), "arm": arm}

    def curve(
        self, *, arm: object, instance: str | None = None, rule: object = None, estimator: str | None = None
    ) -> Curve:
        """Return the statistics of one arm over the horizons; name instance and rule where there are several.

        By default by the first of the study's estimators.
        """
        numbers = sorted(self._cells(instance, rule), key=lambda number: self.study.cells[number].horizon)
        cells, which = [self.study.cells[number] for number in numbers], self._estimator(estimator)
        places = [checks.position("arm", str(arm), cell.instance.arms) for cell in cells]
        gaps = np.array([cell.instance.gaps[place] for cell, place in zip(cells, places, strict=True)])
        at_place = zip(numbers, places, strict=True)
        sums = np.stack([self._sums[number][:, which, :, place] for number, place in at_place], axis=-1)
        return self._curve(np.array([cell.horizon for cell in cells]), gaps, sums)

    def over_arms(
        self, *, horizon: int, instance: str | None = None, rule: object = None, estimator: str | None = None
    ) -> Curve:
        """Return the statistics of every arm at one horizon, in the order of the instance; see `curve`."""
        (cell,) = [at for at in self._cells(instance, rule) if self.study.cells[at].horizon == horizon]
        faced = self.study.cells[cell].instance
        return self._curve(np.array(faced.arms), faced.gaps, self._sums[cell][:, self._estimator(estimator)])

    def _curve(self, along: NDArray[Any], gaps: NDArray[np.float64], sums: NDArray[np.float64]) -> Curve:
        named = dict(zip(SUMMED, sums, strict=True))
        return Curve(along, gaps, named | {"runs": np.broadcast_to(self._runs[:, None], sums.shape[1:])})

    def _cells(self, instance: str | None, rule: object) -> list[int]:
        """Return the positions of the cells of one instance and one rule; a rule may be given as its text."""
        text = None if rule is None else str(parse_rule(rule) if isinstance(rule, str) else rule)
        wanted = (
            _one("instance", instance, [given.name for given in self.study.instances]),
            _one("rule", text, [str(each) for each in self.study.rules]),
        )
        cells = enumerate(self.study.cells)
        return [number for number, cell in cells if (cell.instance_name, str(cell.rule)) == wanted]

    def _estimator(self, text: str | None) -> int:
        known = [str(estimator) for estimator in self.study.estimators]
        return 0 if text is None else known.index(_one("estimator", text, known))


def _one(parameter: str, given: str | None, known: list[str]) -> str:
    """Return the one that is meant; if there is only one, it need not be named."""
    if given is None and len(known) == 1:
        return known[0]
    if given not in known:
        value = "none of them" if given is None else f'"{given}"'
        raise ParameterError(f"expected one of {', '.join(known)}; got {value}.", parameter=parameter)
    return given


class _Ratio:
    """A statistic of a `Curve`: one of its sums divided by another."""

    def __init__(self, of: str, to: str) -> None:
        self._of, self._to = of, to

    def __get__(self, curve: Curve, owner: type[Curve]) -> Replicates:
        return curve.ratio(self._of, self._to)


@dataclass(frozen=True)
class Curve:
    """Statistics at each of some points, as replicates: arrays of (folds + 1, points)."""

    along: NDArray[Any]  # the points: horizons, or the arms' names
    gap: NDArray[np.float64]  # the true one
    sums: dict[str, NDArray[Any]]  # by name, (folds, points)

    @property
    def horizon(self) -> NDArray[np.float64]:
        """Return the horizons."""
        return np.asarray(self.along, np.float64)

    def replicates(self, name: str) -> Replicates:
        """Return a sum over all runs, and over all runs but those of each fold."""
        by_fold = self.sums[name].astype(np.float64)
        whole = by_fold.sum(axis=0, keepdims=True)
        return np.concatenate([whole, whole - by_fold])

    def ratio(self, of: str, to: str) -> Replicates:
        """Return one sum divided by another, NaN where the divisor is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            below = self.replicates(to)
            return np.asarray(np.where(below > 0, self.replicates(of) / below, np.nan))

    @property
    def runs(self) -> NDArray[np.float64]:
        """Return the number of runs at each point."""
        return np.asarray(self.replicates("runs")[0])

    mse = _Ratio("squared", "points")  # the mean squared error of the estimated gap, over all runs that have one
    mean_error = _Ratio("error", "points")  # the mean error of the estimated gap: its bias
    mean_absolute_error = _Ratio("absolute", "points")  # the mean absolute error of the estimated gap
    mse_kept = _Ratio("kept_squared", "kept_points")  # the same over runs that `kept` counts: selected by the truth
    kept = _Ratio("kept", "runs")  # the share of runs whose most-pulled arm is the best one
    points = _Ratio("points", "runs")  # the share of runs in which the arm has an estimated gap
    estimated = _Ratio("estimated", "runs")  # the share of runs with the verdict estimated
    bounded = _Ratio("bounded", "runs")  # the share of runs with the verdict bounded
    coverage = _Ratio("held", "intervals")  # the share of intervals, of estimated arms, that contain the true gap
    found = _Ratio("found", "runs")  # the share of runs that found the best arm
    regret = _Ratio("regret", "runs")  # the mean regret
    pulls = _Ratio("pulls", "runs")  # the mean number of pulls of the arm

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Return at which points nearly all runs have an estimate, so that a claim may rest on them."""
        return np.asarray((self.points[0] >= ENOUGH) & np.isfinite(self.mse).all(axis=0))


def summary(curves: StudyCurves) -> pl.DataFrame:
    """Return one row for each instance, rule, horizon, estimator and arm, in the study's order.

    Columns: the arm's true gap and the number of runs; the share of runs in which it was estimated; the root mean
    squared error of its gap with its Monte-Carlo error; how often the interval of an estimated gap contained the true
    one; the share of runs in which the best arm was found; the mean regret.
    """
    tables = []
    for cell, estimator in product(curves.study.cells, map(str, curves.study.estimators)):
        curve = curves.over_arms(instance=cell.instance_name, rule=cell.rule, horizon=cell.horizon, estimator=estimator)
        rmse = measured(np.sqrt(curve.mse))
        columns = {
            "instance": cell.instance_name, "rule": str(cell.rule), "horizon": cell.horizon, "estimator": estimator,
            "arm": cell.instance.arms, "gap": curve.gap, "runs": curve.runs.astype(np.int64),
            "estimated": curve.estimated[0], "rmse": rmse.value, "rmse_error": rmse.error,
            "coverage": curve.coverage[0], "found": curve.found[0], "regret": curve.regret[0],
        }  # fmt: skip
        tables.append(pl.DataFrame(columns))
    return pl.concat(tables).with_columns(pl.selectors.float().fill_nan(None).round_sig_figs(FIGURES))


def pool_arms(table: pl.DataFrame) -> pl.DataFrame:
    """Pool a summary over arms: one row for each cell and estimator, in the order of the table.

    Coverage is that of all intervals together. The error is the largest among the arms that are estimated in nearly all
    runs: that of any other arm is the error of a selection of runs.
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
