"""Gene knock-down: the same gene among 100, 200 and 400 others, and among all 12,979."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unbandit.datasets import gene
from unbandit.datasets.gene import TRACKED_RANK, means_by_rank
from unbandit.instance import Instance
from unbandit.paper.battery import variance_adjusted
from unbandit.paper.claim import Claim, number, within
from unbandit.paper.comparing import falling, ratio, used
from unbandit.paper.drawing import LINES, curve, guide, log_log, panels
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.table import points
from unbandit.study import Study, spaced
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import Measured, measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ALPHA", "PICTURES", "TRACKED", "Gene"]

ALPHA = 0.25
COUNTS = (100, 200, 400)
HORIZONS = spaced(2_000, 50_000, 10)
CHOICE = 1
"""Seed of the choice of genes: the same ones whatever the seed of the runs."""

HARDLY = (0.8, 1.25)
"""By what factor errors may differ, up to a quarter, and still be said hardly to depend on the number of arms."""

TRACKED = str(TRACKED_RANK)


class Gene(Picture):
    """Show the error of one gene's value among more and more others."""

    name = "gene"
    title = "Gene knock-down: one gene among 100, 200 and 400"
    section = "the gene figure, panels (a) and (b)"
    caption = (
        "(a) The means of all 12,979 knocked-down genes on their original scale, in descending order; the ring is "
        "the last one, which is followed. (b) UCB (alpha 0.25, width 5 sigma) looks for the best of K genes: the "
        "followed one and K − 1 others drawn at random, where the smaller choices are part of the larger. Shown is the "
        "mean squared error of the followed gene's mean, scaled to [0, 1]. Alpha, the horizons and the way in "
        "which the others are drawn are ours, as the paper does not give them. Bands are one standard error; a point "
        f"is hollow where fewer than {ENOUGH:.0%} of the runs have an estimate; the thin line has theory's slope "
        "−alpha."
    )
    alt = (
        "Two panels: the sorted means of all genes against their rank, the last one ringed; and the mean squared error "
        "of the ringed gene against the horizon, one curve for each of 100, 200 and 400 arms."
    )

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for the three choices of genes."""
        instances = [chosen(count) for count in COUNTS]
        rule = variance_adjusted(instances[0], ALPHA)  # sigma is the same for all
        return {"counts": Study(instances, rule, HORIZONS, size.runs_of(100), size.seed)}

    def draw(self, results: Results) -> Figure:
        """Draw the sorted means, and one curve a number of arms."""
        figure, (left, right) = panels(2)
        means = means_by_rank()
        left.plot(np.arange(1, means.size + 1), means, color=LINES[0].colour)
        left.plot(TRACKED_RANK, means[-1], "o", markersize=8, color=LINES[0].colour, fillstyle="none")
        left.set(xlabel="rank", ylabel="mean (original scale)", xticks=[1, 4_000, 8_000, 12_000])
        left.xaxis.set_major_formatter("{x:,.0f}")
        log_log(right, "horizon T", f"MSE of the mean of gene {TRACKED_RANK:,}")
        drawn = _followed(results)
        for (count, found), line in zip(drawn.items(), LINES, strict=False):
            curve(right, found.horizon, measured(found.mse), line, f"K = {count}", share=found.points[0])
        least = float(np.nanmin([found.mse[0] for found in drawn.values()]))
        guide(right, HORIZONS, -ALPHA, through=(HORIZONS[-1], least * 0.75), label=f"slope −{ALPHA}")
        right.set_xticks([2_000, 5_000, 10_000, 20_000, 50_000])
        right.legend()
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn."""
        means = means_by_rank()
        rows = [points("a", "mean", np.arange(1, means.size + 1), Measured(means, np.zeros_like(means), 0))]
        for count, found in _followed(results).items():
            rows.append(points("b", f"K = {count}", found.horizon, measured(found.mse), share=found.points[0]))
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Test that the error falls at every K, and that K hardly matters: over all horizons, and at the longest."""
        found = _followed(results)
        gaps = ", ".join(f"{arm.gap[0]:.4f} at K = {count}" for count, arm in found.items())
        few, claims = found[COUNTS[0]], list[Claim]()
        for count, arm in found.items():
            claims.append(falling(f"the error of the followed gene falls with T (K = {count})", arm))
        for count in COUNTS[1:]:
            claims += _hardly_apart(found[count], few, f"(K = {count} against {COUNTS[0]})", gaps)
        return claims

    def selection(self, results: Results) -> list[Selection]:
        """Compare all runs with those whose most-pulled arm is the best one, at both ends."""
        return [row for count, found in _followed(results).items() for row in Selection.ends(f"K = {count}", found)]


def chosen(count: int) -> Instance:
    """Return the followed gene and `count - 1` others, under a name that says how many there are.

    Examples
    --------
    >>> chosen(100).name, len(chosen(100)), TRACKED in chosen(100).arms
    ('gene K=100', 100, True)
    """
    instance = gene(arms=count, seed=CHOICE)
    return Instance(instance.means, instance.noise, instance.arms, f"gene K={count}")


def _hardly_apart(many: Curve, few: Curve, which: str, gaps: str) -> list[Claim]:
    """Test that two errors are nearly the same: where horizons are ours, a mean over them depends on our choice."""
    both, limits = many.usable & few.usable, f"within {HARDLY[0]} to {HARDLY[1]}"
    ratios = np.where(both, many.mse / few.mse, np.nan)
    over_all, at_last = measured(ratio(many.mse, few.mse, both)), measured(ratios[:, -1])
    verdict, because = within(over_all, *HARDLY)
    shown = ", ".join(f"{number(ratios[0, at])} at T = {few.along[at]:,}" for at in (0, len(HORIZONS) // 2, -1))
    return [
        Claim(
            f"the error hardly depends on the number of arms {which}",
            f"ratio of their MSE, geometric mean over T, {limits}; {used(few, both)}; the horizons are ours, the paper "
            f"gives none; the followed gene's gap is {gaps}",
            over_all,
            verdict,
            f"{because}; the ratio is {shown}",
        ),
        Claim(
            f"the error hardly depends on the number of arms, at the longest horizon alone {which}",
            f"ratio of their MSE at T = {few.along[-1]:,}, {limits}; the horizon is ours, the paper gives none",
            at_last,
            *within(at_last, *HARDLY),
            ours=True,
        ),
    ]


def _followed(results: Results) -> dict[int, Curve]:
    return {count: results["counts"].curve(arm=TRACKED, instance=f"gene K={count}") for count in COUNTS}


PICTURES = (Gene(),)
