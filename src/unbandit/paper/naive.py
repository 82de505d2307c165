"""The naive estimator beside Procedure 2: why knowing the rule matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from unbandit.datasets import two_armed
from unbandit.demonstrators import UCB
from unbandit.paper.claims import Claim, error_falls, mean_ratio, used
from unbandit.paper.figure import PaperFigure, Results, Size
from unbandit.paper.panels import LINES, error_curve, error_points, log_log, panels, thousands
from unbandit.plots.style import Line
from unbandit.study import Study
from unbandit.study.curves import Curve
from unbandit.study.grid import spaced
from unbandit.study.monte_carlo import measured

CONSTANTS = (0.2, 0.75, 1.0, 1.5)
PROPOSED = "switching"
ESTIMATORS = (PROPOSED, *(f"naive:constant={constant}" for constant in CONSTANTS))


class Naive(PaperFigure):
    """The error of Procedure 2, and of the naive estimator with four constants."""

    name = "naive"
    title = "The naive estimator beside Procedure 2"
    section = "the appendix's comparison with the naive estimator, (a) to (e)"
    caption = (
        "UCB with α = 0.25 (our choice) on two arms, means 1 and 1/2, unit variance. (a) The mean squared error of "
        "Procedure 2; (b) to (e) that of the naive estimator C₀ √(ln T / n), for four constants C₀, on the same runs, "
        "with Procedure 2 in grey. (f), which the paper does not have, follows all five to a horizon of 50,000, in the"
        " colours of (a) to (e). Bands are one standard error."
    )
    alt = (
        "Six panels of mean squared error against the horizon: one for Procedure 2, four for the naive estimator with "
        "one constant each, and one with all five over a wider range of horizons."
    )

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for the paper's ten horizons, evenly spaced, and for ten that go further."""
        runs, rule = size.runs_of(50, synthetic=True), UCB(alpha=0.25)
        return {
            "paper": Study(two_armed(), rule, spaced(500, 1_000, 10, "linear"), runs, size.seed, ESTIMATORS),
            "further": Study(two_armed(), rule, spaced(500, 50_000, 10), runs, size.seed, ESTIMATORS),
        }

    def draw(self, results: Results) -> Figure:
        """Draw one panel per estimator, and one with all."""
        figure, axes = panels(6, columns=3, width=3.2, height=2.7)
        paper, further = _curves(results, "paper"), _curves(results, "further")
        for panel, (name, arm), line in zip(axes[:5], paper.items(), LINES, strict=False):
            log_log(panel, "horizon T", "mean squared error")
            panel.set_xscale("linear")
            thousands(panel.xaxis)
            if name != PROPOSED:
                error_curve(panel, paper[PROPOSED], Line("#9a9a9a", "", "-"), _label(PROPOSED))
            error_curve(panel, arm, line, _label(name))
        log_log(axes[5], "horizon T", "mean squared error")
        for (name, arm), line in zip(further.items(), LINES, strict=False):
            error_curve(axes[5], arm, line, _label(name))
        for panel in axes:
            panel.set_ylim(0.001, 0.4)
        for panel in axes[:5]:  # the last one's colours are those of the others
            panel.legend(loc="lower left")
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn."""
        curves = [*_curves(results, "paper").items(), *_curves(results, "further").items()]
        return pl.concat(
            error_points(panel, name, arm) for panel, (name, arm) in zip("abcdefffff", curves, strict=True)
        )

    def claims(self, results: Results) -> list[Claim]:
        """Test that Procedure 2's error falls, and that of the naive estimator does not."""
        paper, further = _curves(results, "paper"), _curves(results, "further")
        beyond = error_falls("the error of Procedure 2 falls with T (to 50,000)", further[PROPOSED])
        claims = [error_falls("the error of Procedure 2 falls with T", paper[PROPOSED]), replace(beyond, ours=True)]
        for name in ESTIMATORS[1:]:
            far = further[name]
            claims.append(
                Claim.above(
                    f"the error of the naive estimator does not go to 0 ({_label(name)})",
                    f"logarithm of its MSE at T = {far.along[-1]:,} over that at T = {far.along[0]:,}, above 0",
                    measured(np.log(far.mse[:, -1] / far.mse[:, 0])),
                    0.0,
                )
            )
        for name in ESTIMATORS[1:]:
            both = paper[name].usable & paper[PROPOSED].usable
            claims.append(
                Claim.above(
                    f"the naive estimator is worse than Procedure 2 at the paper's horizons ({_label(name)})",
                    f"MSE over that of Procedure 2, geometric mean, above 1; {used(paper[name], both)}",
                    mean_ratio(paper[name].mse, paper[PROPOSED].mse, both),
                    1.0,
                    ours=True,
                )
            )
        return claims


def _curves(results: Results, study: str) -> dict[str, Curve]:
    """Return the worse arm's curve for each estimator."""
    return {name: results[study].curve(arm="1", estimator=name) for name in ESTIMATORS}


def _label(estimator: str) -> str:
    return "Procedure 2" if estimator == PROPOSED else f"C₀ = {estimator.partition('=')[2]}"


FIGURES = (Naive(),)
