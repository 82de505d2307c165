"""Metrics from the rows of trials, each with its Monte-Carlo error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.calibration.settings import TrialSetting
from unbandit.calibration.trials import CANNOT_TELL, RANKS, RIGHT, WRONG
from unbandit.study.monte_carlo import Measured, Share, measured, replicates, share

BINS = 20
"""Number of bins into which ranks are counted."""

FEWEST = 5
"""Fewest ranks that a bin must be expected to hold for the test to be worth anything."""


@dataclass(frozen=True)
class PosteriorMetrics:
    """Metrics of the posterior in one cell.

    Attributes
    ----------
    setting
        The cell.
    runs, failed, warned
        Number of runs, of those without a posterior, and of those with a warning.
    coverage, gap_coverage
        Share of the intervals that hold the true mean, and the true gap, averaged over arms.
    lowest
        The same of that arm, by its place, whose intervals of the mean hold least often.
    uniform
        P-value of uniform ranks; NaN for too few runs.
    against_oracle
        Root of the mean squared error of the gaps, divided by that of an observer who sees the rewards.
    against_naive
        Mean squared error of the gaps, divided by that of the naive estimator.
    """

    setting: TrialSetting
    runs: int
    failed: int
    warned: int
    coverage: Measured
    gap_coverage: Measured
    lowest: Share
    uniform: float
    against_oracle: Measured
    against_naive: Measured


def posterior_metrics(setting: TrialSetting, rows: pl.DataFrame) -> PosteriorMetrics:
    """Return the metrics of one cell; runs without a posterior are counted, and do not enter the others."""
    rows = rows.sort("run", "arm")
    answered = rows.filter(pl.col("failure").is_null())
    failed = (rows.height - answered.height) // setting.arms

    def table(values: pl.Expr) -> NDArray[np.float64]:
        """Lay out a column with one row per run, and one column per arm."""
        column = answered.select(values.cast(pl.Float64)).to_series()
        return column.to_numpy().reshape(-1, setting.arms)

    held = table(pl.col("mean").is_between("mean_low", "mean_high"))
    gap_held = table(pl.col("gap").is_between("gap_low", "gap_high"))
    errors = [(pl.col(name) - pl.col("gap")) ** 2 for name in ("gap_estimate", "oracle_gap", "naive_gap")]
    ranks, own, seen, plain = map(table, (pl.col("rank"), *errors))
    pulled = ~np.isnan(plain)
    places = np.arange(len(ranks)) % setting.arms  # one arm per run, for those of one run err together
    return PosteriorMetrics(
        setting,
        runs=rows.height // setting.arms,
        failed=failed,
        warned=answered.filter(pl.col("warnings").is_not_null())["run"].n_unique(),
        coverage=_average(held),
        gap_coverage=_average(gap_held),
        lowest=_lowest(held),
        uniform=rank_test(ranks[np.arange(len(ranks)), places]),
        against_oracle=ratio(own, seen, root=True),
        against_naive=ratio(np.where(pulled, own, 0.0), np.where(pulled, plain, 0.0)),
    )


def _average(held: NDArray[np.float64]) -> Measured:
    """Return a share averaged over arms; its error is that of a mean over runs, whatever arms have in common."""
    if not held.size:
        return Measured(np.nan, np.nan, 0)
    by_run = held.mean(axis=1)
    error = float(by_run.std(ddof=1) / np.sqrt(by_run.size)) if by_run.size > 1 else 0.0
    return Measured(float(by_run.mean()), max(error, least_error(held.sum(), held.size)), by_run.size)


def least_error(held: float, among: float) -> float:
    """Return the least error of a share: that of independent cases, with two more that held and two that did not.

    So a share of 1 is not taken as known.
    """
    added = (held + 2) / (among + 4)
    return float(np.sqrt(added * (1 - added) / (among + 4)))


def _lowest(held: NDArray[np.float64]) -> Share:
    """Return the share of the arm that has the smallest."""
    if not held.size:
        return Share(np.nan, np.nan, 0, 0, 0)
    return share(float(held.sum(axis=0).min()), len(held))


def rank_test(ranks: NDArray[np.float64]) -> float:
    """Return the p-value of independent ranks being uniform: chi-square in 20 bins."""
    from scipy.special import chdtrc

    expected = ranks.size / BINS
    if expected < FEWEST:
        return float("nan")
    counts = np.bincount((ranks * BINS // (RANKS + 1)).astype(int), minlength=BINS)
    return float(chdtrc(BINS - 1, ((counts - expected) ** 2 / expected).sum()))


def holm(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values adjusted for their number, by Holm's step-down method; NaN values do not count."""
    known = np.flatnonzero(~np.isnan(chances))
    order = known[np.argsort(chances[known])]
    adjusted = np.full(chances.shape, np.nan)
    steps = chances[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def ratio(above: NDArray[np.float64], below: NDArray[np.float64], *, root: bool = False) -> Measured:
    """Return the ratio of two sums over runs (rows), or its root, with its error by leaving out folds of runs."""
    if not below.sum() > 0:
        return Measured(np.nan, np.nan, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients = replicates(lambda top, bottom: top.sum() / bottom.sum(), above, below)
    return measured(np.sqrt(quotients) if root else quotients)


@dataclass(frozen=True)
class IdentifyMetrics:
    """How often the rule that made a record was found.

    Attributes
    ----------
    setting
        Whose records they are.
    right, wrong, cannot_tell
        Shares of them.
    taken_for
        What the wrong ones were taken for, and how often.
    """

    setting: TrialSetting
    right: Share
    wrong: Share
    cannot_tell: Share
    taken_for: dict[str, int]


def identify_metrics(setting: TrialSetting, rows: pl.DataFrame) -> IdentifyMetrics:
    """Return what the records of one rule were taken for."""
    right, wrong, neither = (
        share(rows.filter(outcome=outcome).height, rows.height) for outcome in (RIGHT, WRONG, CANNOT_TELL)
    )
    mistaken = rows.filter(outcome=WRONG).select(
        pl.when(pl.col("verdict") == "identified").then("leading").otherwise(pl.lit("none of them")).alias("for")
    )
    counted = mistaken.group_by("for").len().sort("len", "for", descending=[True, False])
    return IdentifyMetrics(setting, right, wrong, neither, dict(counted.iter_rows()))
