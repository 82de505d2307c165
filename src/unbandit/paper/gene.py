"""Gene knock-down: the same gene among 100, 200 and 400 others, and among all 12,979."""

from dataclasses import replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unbandit.datasets import gene
from unbandit.datasets.gene import GENES, TRACKED_RANK, means_by_rank
from unbandit.instance import Instance
from unbandit.paper.battery import variance_adjusted
from unbandit.paper.claims import Claim, error_falls, mean_ratio, number, used
from unbandit.paper.figure import PROCEDURES, PaperFigure, Results, Size
from unbandit.paper.panels import LINES, Series, draw_series, guide, log_log, named_guide, panels
from unbandit.study import Study, spaced
from unbandit.study.curves import Curve
from unbandit.study.monte_carlo import Measured, Share, measured, share

ALPHA = 0.25
COUNTS = (100, 200, 400)
HORIZONS = spaced(2_000, 50_000, 10)
CHOICE = 1  # seed of the choice of genes: the same ones whatever the seed of the runs

HARDLY = (0.8, 1.25)
"""By what factor errors may differ, up to a quarter, and still be said hardly to depend on the number of arms."""

TRACKED = str(TRACKED_RANK)

ALL_HORIZONS = spaced(100_000, 1_000_000, 5)
BINS = 36  # groups of ranks that are drawn as one point each: even steps of log(rank / (12,980 - rank))

TICKS = (2, 10, 100, 1_000, 6_490, 11_980, 12_880, 12_970, 12_979)


class Gene(PaperFigure):
    """The error of one gene's value among more and more others."""

    name = "gene"
    title = "Gene knock-down: one gene among 100, 200 and 400"
    section = "Figure 11 of the paper, panels (a) and (b)"

    def studies(self, size: Size) -> dict[str, Study]:
        instances = [chosen(count) for count in COUNTS]
        rule = variance_adjusted(instances[0], ALPHA)  # sigma is the same for all
        return {"counts": Study(instances, rule, HORIZONS, size.runs_of(100, 200), size.seed, PROCEDURES)}

    def followed(self, results: Results) -> dict[str, Curve]:
        """Return the followed gene's curve among each number of arms."""
        return {f"K = {count}": results["counts"].curve(arm=TRACKED, instance=f"gene K={count}") for count in COUNTS}

    def series(self, results: Results) -> list[Series]:
        means = means_by_rank()
        errors = [Series.error("b", name, arm) for name, arm in self.followed(results).items()]
        return [Series.computed("a", "mean", np.arange(1, means.size + 1), means), *errors]

    def draw(self, results: Results) -> Figure:
        figure, (left, right) = panels(2)
        means, *errors = self.series(results)
        left.plot(means.x, means.points.value, color=LINES[0].colour)
        left.plot(TRACKED_RANK, means.points.value[-1], "o", markersize=8, color=LINES[0].colour, fillstyle="none")
        left.set(xlabel="rank", ylabel="mean (original scale)", xticks=[1, 4_000, 8_000, 12_000])
        left.xaxis.set_major_formatter("{x:,.0f}")
        log_log(right, "horizon T", f"MSE of the mean of gene {TRACKED_RANK:,}")
        draw_series(right, errors, "b")
        least = float(np.nanmin([each.points.value for each in errors]))
        guide(right, HORIZONS, -ALPHA, through=(HORIZONS[-1], least * 0.75), label=f"slope −{ALPHA}")
        right.set_xticks([2_000, 5_000, 10_000, 20_000, 50_000])
        right.legend()
        return figure

    def claims(self, results: Results) -> list[Claim]:
        arms = self.followed(results)
        claims = [
            error_falls(f"the error of the followed gene falls with T ({name})", arm) for name, arm in arms.items()
        ]
        gaps = ", ".join(f"{arm.gap[0]:.4f} at {name}" for name, arm in arms.items())
        (_, fewest), *larger = arms.items()
        for name, arm in larger:
            claims += _hardly_apart(arm, fewest, f"({name} against {COUNTS[0]})", gaps)
        return claims


def chosen(count: int) -> Instance:
    """Return the followed gene and `count - 1` others, named after their number: `gene K=100`."""
    instance = gene(arms=count, seed=CHOICE)
    return Instance(instance.means, instance.noise, instance.arms, f"gene K={count}")


def _hardly_apart(many: Curve, few: Curve, which: str, gaps: str) -> list[Claim]:
    """Test that two errors are nearly the same: where horizons are ours, a mean over them depends on our choice."""
    both, limits = many.usable & few.usable, f"within {HARDLY[0]} to {HARDLY[1]}"
    ratios = np.where(both, many.mse / few.mse, np.nan)
    over_all = mean_ratio(many.mse, few.mse, both)
    shown = ", ".join(f"{number(ratios[0, at])} at T = {few.along[at]:,}" for at in (0, len(HORIZONS) // 2, -1))
    what = (
        f"ratio of their MSE, geometric mean over T, {limits}; {used(few, both)}; the horizons are ours, the paper "
        f"gives none; the followed gene's gap is {gaps}"
    )
    says = "the error hardly depends on the number of arms"
    claim = Claim.within(f"{says} {which}", what, over_all, HARDLY)
    claim = replace(claim, because=f"{claim.because}; the ratio is {shown}")
    what = f"ratio of their MSE at T = {few.along[-1]:,}, {limits}; the horizon is ours, the paper gives none"
    alone = f"{says}, at the longest horizon alone {which}"
    return [claim, Claim.within(alone, what, measured(ratios[:, -1]), HARDLY, ours=True)]


class GeneAll(PaperFigure):
    """The error of every gene, by rank, when one demonstrator searches all of them, which the paper never ran."""

    name = "gene-all"
    title = "Gene knock-down: all 12,979 genes in one bandit"
    section = "not in the paper: its Figure 11 with all genes in one bandit"
    full_only = True
    needs_rows = True

    def studies(self, size: Size) -> dict[str, Study]:
        instance = gene()
        return {
            "all": Study(
                instance, variance_adjusted(instance, ALPHA), ALL_HORIZONS, size.runs_of(20), size.seed, PROCEDURES
            )
        }

    def followed(self, results: Results) -> dict[str, Curve]:
        """Return the curve of the gene that the paper follows."""
        return {f"gene {TRACKED_RANK:,}": results["all"].curve(arm=TRACKED)}

    def series(self, results: Results) -> list[Series]:
        series, ranks = list[Series](), _ranks()
        for horizon in ALL_HORIZONS:
            error, pulls, share = _by_rank(results, horizon)
            series.append(Series("a", f"T = {horizon}", ranks, error, share, f"T = {horizon:,}"))
            series.append(Series("b", f"T = {horizon}", ranks, pulls))
        return series + [Series.error("c", name, arm) for name, arm in self._by_horizon(results).items()]

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(3, columns=3, height=3.1)
        series = self.series(results)
        for panel, letter, label in zip(axes, "ab", ("RMSE of the mean", "mean pulls"), strict=False):
            log_log(panel, "rank (both ends stretched)", label)
            panel.set_xscale("linear")
            panel.set_xticks(_stretched(TICKS), [f"{rank:,}" for rank in TICKS], rotation=45, ha="right", fontsize=7.5)
            for each, line in zip((each for each in series if each.panel == letter), LINES, strict=False):
                replace(each, x=_stretched(each.x)).draw(panel, line._replace(marker="none"))
        axes[0].legend(fontsize=7, loc="lower right")
        log_log(axes[2], "horizon T", "mean squared error of the mean")
        draw_series(axes[2], series, "c")
        top = float(np.nanmax([each.points.value[0] for each in series if each.panel == "c"]))
        named_guide(axes[2], ALL_HORIZONS, -ALPHA, top * 1.3, beside=(0, 10))
        axes[2].legend(loc="upper right", bbox_to_anchor=(1.0, 0.86))
        return figure

    def claims(self, results: Results) -> list[Claim]:
        arms, first, last = self._by_horizon(results), ALL_HORIZONS[0], ALL_HORIZONS[-1]
        falls = [error_falls(f"the error falls with T: {name}", arm) for name, arm in arms.items()]
        cells, runs = {horizon: _at(results, horizon) for horizon in ALL_HORIZONS}, results["all"].study.runs
        found = {horizon: share(cell.replicates("found")[0, 0], runs) for horizon, cell in cells.items()}
        return [
            *(replace(claim, ours=True) for claim in falls),
            _in_most_runs("the best of 12,979 genes is the most-pulled one", "that found it", found, last),
            _in_most_runs(
                "no gene is left without an estimate", "in which every gene has an estimate", _complete(results), first
            ),
        ]

    def _by_horizon(self, results: Results) -> dict[str, Curve]:
        """Return the error over the horizons: of all suboptimal genes together, and of the last rank."""
        cells = [_at(results, horizon) for horizon in ALL_HORIZONS]
        sums = {
            name: np.stack([cell.sums[name][:, 1:].sum(axis=1) for cell in cells], axis=1) for name in cells[0].sums
        }
        gaps = np.array([cell.gap[1:].mean() for cell in cells])
        return {"mean of all but the best": Curve(np.array(ALL_HORIZONS), gaps, sums)} | self.followed(results)


def _at(results: Results, horizon: int) -> Curve:
    return results["all"].over_arms(horizon=horizon)


def _stretched(rank: ArrayLike) -> NDArray[np.float64]:
    """Return where a rank stands on the axis: both ends of the curve of means are steep."""
    place = np.asarray(rank, dtype=np.float64)
    return np.asarray(np.log(place / (GENES + 1 - place)))


def _groups() -> NDArray[np.int64]:
    """Return the group of every rank from 2 on."""
    places = _stretched(np.arange(2, GENES + 1))
    edges = np.linspace(places[0], places[-1], BINS + 1)[1:-1]
    return np.unique(np.searchsorted(edges, places), return_inverse=True)[1]


def _ranks() -> NDArray[np.float64]:
    """Return the middle rank of every group."""
    groups, ranks = _groups(), np.arange(2.0, GENES + 1)
    return np.array([np.median(ranks[groups == group]) for group in range(groups.max() + 1)])


def _binned(at: Curve, of: str, to: str) -> NDArray[np.float64]:
    """Return one sum over another within each group; replicates of shape (folds + 1, groups)."""
    groups = _groups()
    first = [int(np.flatnonzero(groups == group)[0]) for group in range(groups.max() + 1)]
    over, under = (np.add.reduceat(at.replicates(name)[:, 1:], first, axis=1) for name in (of, to))
    return np.asarray(over / np.where(under > 0, under, np.nan))


def _by_rank(results: Results, horizon: int) -> tuple[Measured, Measured, NDArray[np.float64]]:
    """Return root mean squared error, mean pulls, and the share of runs with an estimate, of every group."""
    at = _at(results, horizon)
    error = measured(np.sqrt(_binned(at, "squared", "points")))
    return error, measured(_binned(at, "pulls", "runs")), _binned(at, "points", "runs")[0]


def _complete(results: Results) -> dict[int, Share]:
    """Return the share of runs, at each horizon, in which every gene has an estimate.

    The genes of one run share its rounds: what is counted are runs, which are independent.
    """
    without = pl.col("estimate").null_count()
    rows = results.studies["all"].scan().group_by("horizon", "run").agg(without).collect()
    complete = {at: rows.filter(horizon=at)["estimate"] == 0 for at in ALL_HORIZONS}
    return {at: share(float(runs.sum()), runs.len()) for at, runs in complete.items()}


def _in_most_runs(says: str, which: str, shares: dict[int, Share], horizon: int) -> Claim:
    """Claim that a share of runs is above one half at one horizon; the reason lists the shares at all horizons."""
    what = f"share of runs {which} at T = {horizon:,}, above 1/2"
    claim = Claim.above(f"in most runs {says}", what, shares[horizon], 0.5, ours=True)
    listed = ", ".join(f"{found.value:.0%} at T = {at:,}" for at, found in shares.items())
    return replace(claim, because=f"{claim.because}; {listed}")


FIGURES = (Gene(), GeneAll())
