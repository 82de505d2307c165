"""The tradeoff: a demonstrator that explores more costs more, and tells more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.datasets.registry import two_armed
from unbandit.demonstrators import UCB
from unbandit.paper.claim import Claim, below
from unbandit.paper.drawing import LINES, curve, guide, log_log, panels
from unbandit.paper.picture import Picture, Results, Size
from unbandit.paper.table import points
from unbandit.study import Study
from unbandit.study.monte_carlo import measured, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["PICTURES", "SketchTradeoff"]

HORIZON = 5_000
ALPHAS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


class SketchTradeoff(Picture):
    """Show the error of the estimate against the regret, one point an alpha."""

    name = "sketch-tradeoff"
    title = "The tradeoff between exploration and estimation"
    section = "sketch (c) of the introduction"
    caption = (
        "UCB on two arms (means 1 and 1/2, unit variance, T = 5,000) with eight exponents alpha, from 0 to 0.5, "
        "written beside the points: mean squared error of the worse arm's gap against mean regret. Bands and bars are "
        "one standard error; the thin line has the slope −1 of the two-armed corollary."
    )
    alt = (
        "Eight points on logarithmic axes, one for each alpha: mean squared error of the estimate against mean regret."
    )

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for UCB at every alpha."""
        rules = [UCB(alpha=alpha) for alpha in ALPHAS]
        return {"alphas": Study([two_armed()], rules, [HORIZON], size.runs_of(100, synthetic=True), size.seed)}

    def draw(self, results: Results) -> Figure:
        """Draw mean squared error against regret."""
        figure, (axes,) = panels(1, width=4.8, height=3.4)
        regret, mse = measured(_of(results, "regret")), measured(_of(results, "mse"))
        log_log(axes, "mean regret", "mean squared error of the gap")
        curve(axes, regret.value, mse, LINES[0], "UCB, one point an alpha")
        axes.errorbar(regret.value, mse.value, xerr=regret.error, fmt="none", ecolor=LINES[0].colour, elinewidth=0.9)
        for place, (alpha, x, y) in enumerate(zip(ALPHAS, regret.value, mse.value, strict=True)):
            aside = (0, 8) if place % 2 else (0, -15)
            axes.annotate(f"{alpha:g}", (x, y), xytext=aside, textcoords="offset points", fontsize=8, ha="center")
        middle = len(ALPHAS) // 2
        guide(axes, regret.value, -1.0, through=(regret.value[middle], mse.value[middle]), label="slope −1")
        axes.legend()
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return regret and error at every alpha."""
        regret, mse = measured(_of(results, "regret")), measured(_of(results, "mse"))
        return points("", "UCB", regret.value, mse).with_columns(
            pl.Series("alpha", ALPHAS), pl.Series("x_error", regret.error)
        )

    def claims(self, results: Results) -> list[Claim]:
        """Fit the slope of the error against the regret."""
        fitted = measured(slope(np.log(_of(results, "regret")), np.log(_of(results, "mse"))))
        what = "slope of log mean squared error against log mean regret over the eight alphas; below 0"
        return [Claim("a demonstrator that explores more is easier to learn from", what, fitted, *below(fitted, 0.0))]


def _of(results: Results, name: str) -> NDArray[np.float64]:
    """Return one quantity's replicates over the alphas: an array of (folds + 1, alphas)."""
    folds, instance = results["alphas"], two_armed()
    worse = instance.arms[1]
    curves = [folds.curve(instance=instance.name, rule=str(UCB(alpha=alpha)), arm=worse) for alpha in ALPHAS]
    return np.concatenate([getattr(each, name) for each in curves], axis=1)


PICTURES = (SketchTradeoff(),)
