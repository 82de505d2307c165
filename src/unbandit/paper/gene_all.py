"""All 12,979 knocked-down genes in one bandit, which the paper never ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from unbandit.datasets import gene
from unbandit.datasets.gene import GENES, TRACKED_RANK
from unbandit.paper.battery import named_guide, variance_adjusted
from unbandit.paper.claim import Claim, above, below
from unbandit.paper.drawing import LINES, Line, curve, log_log, panels
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.table import points
from unbandit.study import Study, spaced
from unbandit.study.folds import Curve, Measured, measured, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "GeneAll"]

ALPHA = 0.25
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
    caption = (
        "UCB (alpha 0.25, width 5 sigma) looks for the best of all 12,979 genes. (a) Root mean squared error of a "
        "gene's mean, scaled to [0, 1], and (b) how often the gene was tried, against its rank, in 36 groups of ranks; "
        "both ends of the axis are stretched, and rank 1, the best, is left out. (c) Mean squared error against the "
        "horizon: the mean over all genes but the best, and the gene of the last rank, which the paper follows. Bands "
        "are one standard error; the thin line has theory's slope −alpha, once gaps decide how often a gene is tried."
    )
    alt = (
        "Three panels: the error rises with the rank and is lower for longer horizons; the number of pulls falls with "
        "the rank and grows with the horizon; the mean error and the followed gene's error fall with the horizon."
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
            curve(axes[0], along, error, small, f"T = {horizon:,}")
            curve(axes[1], along, pulls, small)
        axes[0].legend(fontsize=7, loc="lower right")
        log_log(axes[2], "horizon T", "mean squared error of the mean")
        drawn = _by_horizon(results)
        for (name, found), line in zip(drawn.items(), LINES, strict=False):
            curve(axes[2], HORIZONS, measured(found), line, name)
        top = float(np.nanmax([found[0, 0] for found in drawn.values()]))
        named_guide(axes[2], HORIZONS, -ALPHA, top * 1.3, beside=(0, 10))
        axes[2].legend(loc="upper right", bbox_to_anchor=(1.0, 0.86))
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn; of a rank's errors with the share of its runs that have an estimate."""
        rows = []
        for horizon in HORIZONS:
            (error, pulls), share = _by_rank(results, horizon), _binned(_at(results, horizon), "points", "runs")[0]
            rows.append(points("a", f"T = {horizon}", _ranks(), error, share=share))
            rows.append(points("b", f"T = {horizon}", _ranks(), pulls))
        for name, found in _by_horizon(results).items():
            rows.append(points("c", name, HORIZONS, measured(found)))
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Test what would be expected from the paper: errors fall, the best gene is found, no gene is left out."""
        claims = []
        for name, found in _by_horizon(results).items():
            falls = measured(slope(np.log(HORIZONS), np.log(found)))
            claims.append(
                Claim(
                    f"the error falls with T: {name} (our test; the paper has no such picture)",
                    "slope of log MSE on log T, below 0; T from 100,000 to 1,000,000",
                    falls,
                    *below(falls, 0.0),
                )
            )
        shares = {horizon: _at(results, horizon) for horizon in HORIZONS}
        best = measured(shares[HORIZONS[-1]].found[:, 0])
        by_horizon = ", ".join(f"{at.found[0, 0]:.0%} at T = {horizon:,}" for horizon, at in shares.items())
        verdict, because = above(best, 0.5)
        least = measured(np.min([at.points[:, 1:].min(axis=1) for at in shares.values()], axis=0))
        return [
            *claims,
            Claim(
                "the best of 12,979 genes is the most-pulled one (our test)",
                "share of runs that found it at T = 1,000,000, above 1/2",
                best,
                verdict,
                f"{because}; {by_horizon}",
            ),
            Claim(
                "no gene is left without an estimate in most runs (our test)",
                "share of runs with an estimate, the smallest of all genes and horizons, above 1/2",
                least,
                *above(least, 0.5),
            ),
        ]

    def selection(self, results: Results) -> list[Selection]:
        """Compare all runs with those whose most-pulled arm is the best one, for the followed gene."""
        found = results["all"].curve(arm=str(TRACKED_RANK))
        return [Selection.at("gene, all 12,979", found, at) for at in (0, -1)]


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


def _by_horizon(results: Results) -> dict[str, NDArray[np.float64]]:
    """Return the mean squared error over the horizons: of all suboptimal genes together, and of the last rank."""
    errors = np.stack([_at(results, horizon).mse for horizon in HORIZONS], axis=1)
    return {
        "mean of all but the best": np.nanmean(errors[:, :, 1:], axis=2),
        f"gene {TRACKED_RANK:,}": errors[:, :, -1],
    }


PICTURES = (GeneAll(),)
