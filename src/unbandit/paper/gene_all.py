"""All 12,979 knocked-down genes in one bandit, which the paper never ran."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from unbandit.datasets import gene
from unbandit.datasets.gene import GENES
from unbandit.paper.battery import named_guide, variance_adjusted
from unbandit.paper.claim import Claim, Decision, above
from unbandit.paper.comparing import falling
from unbandit.paper.drawing import LINES, Line, curve, log_log, panels
from unbandit.paper.gene import ALPHA, TRACKED
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.table import points
from unbandit.study import Study, spaced
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import Measured, Share, measured, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "GeneAll"]

HORIZONS = spaced(100_000, 1_000_000, 5)
BINS = 36
"""Groups of ranks that are drawn as one point each: even steps of log(rank / (12,980 - rank))."""

TICKS = (2, 10, 100, 1_000, 6_490, 11_980, 12_880, 12_970, 12_979)


class GeneAll(Picture):
    """Show the error of every gene, by rank, when one demonstrator searches them all."""

    name = "gene-all"
    title = "Gene knock-down: all 12,979 genes in one bandit"
    section = "not in the paper: its gene figure without leaving any gene out"
    full_only = True
    needs_rows = True
    caption = (
        "UCB (alpha 0.25, width 5 sigma) looks for the best of all 12,979 genes. (a) Root mean squared error of a "
        "gene's mean, scaled to [0, 1], and (b) how often the gene was tried, against its rank, in 36 groups of ranks; "
        "both ends of the axis are stretched, and rank 1, the best, is left out. (c) Mean squared error against the "
        "horizon: the mean over all genes but the best, and the gene of the last rank, which the paper follows. Alpha "
        "and the horizons are ours. Bands are one standard error; a curve is pale and its point hollow where fewer "
        f"than {ENOUGH:.0%} of the runs have an estimate; the thin line has theory's slope −alpha, once gaps decide "
        "how often a gene is tried."
    )
    alt = (
        "Three panels: root mean squared error against the rank, one curve for each of five horizons; the mean number "
        "of pulls against the rank, likewise; and mean squared error against the horizon, one curve for the mean of "
        "all genes but the best and one for the gene of the last rank."
    )

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for all genes."""
        instance = gene()
        return {"all": Study(instance, variance_adjusted(instance, ALPHA), HORIZONS, size.runs_of(20), size.seed)}

    def draw(self, results: Results) -> Figure:
        """Draw error and pulls by rank, and the error against the horizon."""
        figure, axes = panels(3, columns=3, height=3.1)
        for panel, label in zip(axes, ("RMSE of the mean", "mean pulls"), strict=False):
            log_log(panel, "rank (both ends stretched)", label)
            panel.set_xscale("linear")
            panel.set_xticks(_stretched(TICKS), [f"{rank:,}" for rank in TICKS], rotation=45, ha="right", fontsize=7.5)
        for horizon, line in zip(HORIZONS, LINES, strict=False):
            along, small = _stretched(_ranks()), Line(line.colour, "none", line.dashes)
            error, pulls = _by_rank(results, horizon)
            there = _binned(_at(results, horizon), "points", "runs")[0]
            curve(axes[0], along, error, small, f"T = {horizon:,}", share=there)
            curve(axes[1], along, pulls, small)
        axes[0].legend(fontsize=7, loc="lower right")
        log_log(axes[2], "horizon T", "mean squared error of the mean")
        drawn = _by_horizon(results)
        for (name, found), line in zip(drawn.items(), LINES, strict=False):
            curve(axes[2], HORIZONS, measured(found.mse), line, name, share=found.points[0])
        top = float(np.nanmax([found.mse[0, 0] for found in drawn.values()]))
        named_guide(axes[2], HORIZONS, -ALPHA, top * 1.3, beside=(0, 10))
        axes[2].legend(loc="upper right", bbox_to_anchor=(1.0, 0.86))
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn; of a rank's errors with the share of its runs that have an estimate."""
        rows = []
        for horizon in HORIZONS:
            (error, pulls), there = _by_rank(results, horizon), _binned(_at(results, horizon), "points", "runs")[0]
            rows.append(points("a", f"T = {horizon}", _ranks(), error, share=there))
            rows.append(points("b", f"T = {horizon}", _ranks(), pulls))
        for name, found in _by_horizon(results).items():
            rows.append(points("c", name, HORIZONS, measured(found.mse), share=found.points[0]))
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Test what would be expected from the paper: errors fall, the best gene is found, no gene is left out."""
        falls = [falling(f"the error falls with T: {name}", found) for name, found in _by_horizon(results).items()]
        best, whole = _found(results), _whole(results)
        return [
            *(replace(claim, ours=True) for claim in falls),
            Claim(
                "in most runs the best of 12,979 genes is the most-pulled one",
                f"share of runs that found it at T = {HORIZONS[-1]:,}, above 1/2",
                best[HORIZONS[-1]],
                *_above_half(best, HORIZONS[-1]),
                ours=True,
            ),
            Claim(
                "in most runs no gene is left without an estimate",
                f"share of runs in which every gene has an estimate at T = {HORIZONS[0]:,}, above 1/2",
                whole[HORIZONS[0]],
                *_above_half(whole, HORIZONS[0]),
                ours=True,
            ),
        ]

    def selection(self, results: Results) -> list[Selection]:
        """Compare all runs with those whose most-pulled arm is the best one, for the followed gene."""
        return Selection.ends("gene 12,979", results["all"].curve(arm=TRACKED))


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


def _by_rank(results: Results, horizon: int) -> tuple[Measured, Measured]:
    """Return root mean squared error and mean pulls of every group."""
    at = _at(results, horizon)
    return measured(np.sqrt(_binned(at, "squared", "points"))), measured(_binned(at, "pulls", "runs"))


def _by_horizon(results: Results) -> dict[str, Curve]:
    """Return the error over the horizons: of all suboptimal genes together, and of the last rank."""
    cells = [_at(results, horizon) for horizon in HORIZONS]
    sums = {name: np.stack([cell.sums[name][:, 1:].sum(axis=1) for cell in cells], axis=1) for name in cells[0].sums}
    gaps = np.array([cell.gap[1:].mean() for cell in cells])
    return {
        "mean of all but the best": Curve(np.array(HORIZONS), gaps, sums),
        f"gene {int(TRACKED):,}": results["all"].curve(arm=TRACKED),
    }


def _found(results: Results) -> dict[int, Share]:
    """Return the share of runs, at each horizon, that found the best gene."""
    return {at: share(_at(results, at).replicates("found")[0, 0], results["all"].study.runs) for at in HORIZONS}


def _whole(results: Results) -> dict[int, Share]:
    """Return the share of runs, at each horizon, in which every gene has an estimate.

    The genes of one run share its rounds: what is counted are runs, which are independent.
    """
    without = pl.col("estimate").null_count()
    rows = results.studies["all"].scan().group_by("horizon", "run").agg(without).collect()
    complete = {at: rows.filter(horizon=at)["estimate"] == 0 for at in HORIZONS}
    return {at: share(float(runs.sum()), runs.len()) for at, runs in complete.items()}


def _above_half(shares: dict[int, Share], horizon: int) -> Decision:
    """Decide whether most runs are so at one horizon; tell the shares of all."""
    verdict, because = above(shares[horizon], 0.5)
    return verdict, f"{because}; " + ", ".join(f"{found.value:.0%} at T = {at:,}" for at, found in shares.items())


PICTURES = (GeneAll(),)
