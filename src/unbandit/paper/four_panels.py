"""The paper's main picture, for any demonstrator: regret, error, both against each other, and error arm by arm.

Two arms at two exponents alpha fill panels (a) to (c), four arms at one alpha panel (d). Two further panels, which the
paper does not have, show how many runs stand behind each point: an arm still in play has no estimate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import theory
from unbandit.datasets import linear, two_armed
from unbandit.demonstrators import SAE, UCB
from unbandit.instance import Bernoulli, Instance
from unbandit.paper.claim import Claim
from unbandit.paper.comparing import within_range
from unbandit.paper.drawing import LINES, curve, guide, log_log, panels, plain_ticks
from unbandit.paper.four_claims import bounds, fraction, of_panels
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.table import points
from unbandit.study import Study
from unbandit.study.curves import Curve
from unbandit.study.grid import spaced
from unbandit.study.monte_carlo import measured, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FourPanels"]

ALPHAS = (0.15, 0.25)
ALPHA_OF_FOUR = 0.25
PAPER = (500, 5_000)
"""The horizons of the paper's picture, from and to."""


class FourPanels(Picture):
    """Show one demonstrator's regret and estimation error.

    A concrete picture sets `rule`, `paper_runs`, and the ranges of horizons: the paper's, and where arms of an
    elimination rule only resolve beyond it, a further one.
    """

    rule: type[UCB | SAE]
    paper_runs: int
    ranges: tuple[tuple[int, int], ...] = (PAPER,)
    bernoulli: bool = False
    shares: bool = False

    @property
    def horizons(self) -> list[int]:
        """Return ten horizons for each range, evenly spaced on a logarithmic axis."""
        return sorted({horizon for start, stop in self.ranges for horizon in spaced(start, stop, 10)})

    @property
    def instances(self) -> tuple[Instance, Instance]:
        """Return the two-armed and the four-armed bandit."""
        if not self.bernoulli:
            return two_armed(), linear(4)
        # Into the middle, where Theorem 1 speaks and all arms have noise: two keep their gap, four halve theirs.
        two = Instance([0.75, 0.25], Bernoulli(), name="two-armed Bernoulli")
        return two, Instance(0.25 + linear(4).means / 2, Bernoulli(), name="linear Bernoulli")

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for two arms at two alphas, and four arms at one."""
        runs, (two, four) = size.runs_of(self.paper_runs, synthetic=True), self.instances
        rules = [self.rule(alpha=alpha) for alpha in ALPHAS]
        return {
            "two": Study(two, rules, self.horizons, runs, size.seed),
            "four": Study(four, self.rule(alpha=ALPHA_OF_FOUR), self.horizons, runs, size.seed),
        }

    def _by_alpha(self, results: Results) -> list[tuple[float, Curve]]:
        """Return the worse of two arms at each alpha."""
        return [(alpha, results["two"].curve(arm="1", rule=self.rule(alpha=alpha))) for alpha in ALPHAS]

    def _by_arm(self, results: Results) -> list[Curve]:
        """Return the suboptimal ones of four arms, the smallest gap first."""
        return [results["four"].curve(arm=arm) for arm in ("1", "2", "3")]

    def draw(self, results: Results) -> Figure:
        """Draw the four panels, and two more where not every run has an estimate."""
        figure, axes = panels(6 if self.shares else 4, columns=3 if self.shares else 2)
        alphas, arms = self._by_alpha(results), self._by_arm(results)
        log_log(axes[0], "horizon T", "mean regret")
        log_log(axes[1], "horizon T", "mean squared error")
        log_log(axes[2], "mean regret", "mean squared error")
        log_log(axes[3], "horizon T", "mean squared error")
        for (alpha, found), line in zip(alphas, LINES, strict=False):
            name, there = f"α = {alpha}", found.points[0]
            regret, mse = measured(found.regret), measured(found.mse)
            curve(axes[0], found.horizon, regret, line, name)
            curve(axes[1], found.horizon, mse, line, name, share=there)
            fitted = measured(slope(np.log(found.regret), np.log(found.mse), within_range(found, *PAPER)))
            best_fit = "" if np.isnan(fitted.value) else f", best fit {fitted.value:.2f}".replace("-", "−")
            curve(axes[2], regret.value, mse, line, name + best_fit, share=there)
            _guide(axes[0], found.horizon, regret.value, alpha)
            _guide(axes[1], found.horizon, mse.value, -alpha)
        _, last = alphas[-1]
        _guide(axes[2], last.regret[0], last.mse[0], theory.tradeoff_slope(2), "slope −1")
        for found, line in zip(arms, LINES, strict=False):
            name = f"gap {fraction(found.gap[0])}"
            curve(axes[3], found.horizon, measured(found.mse), line, name, share=found.points[0])
        _guide(axes[3], arms[0].horizon, arms[0].mse[0], -ALPHA_OF_FOUR)
        if self.shares:
            _draw_shares(axes[4], [(f"α = {alpha}", found) for alpha, found in alphas])
            _draw_shares(axes[5], [(f"gap {fraction(found.gap[0])}", found) for found in arms])
        for panel in axes:
            panel.legend(loc="center right" if panel in axes[4:] else "best")
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn."""
        rows = []
        for alpha, found in self._by_alpha(results):
            name, there = f"alpha {alpha}", found.points[0]
            rows.append(points("a", name, found.horizon, measured(found.regret)))
            rows.append(points("b", name, found.horizon, measured(found.mse), share=there))
            rows.append(points("c", name, found.regret[0], measured(found.mse), share=there))
            if self.shares:
                rows += _shares("e", name, found)
        for found in self._by_arm(results):
            name = f"gap {fraction(found.gap[0])}"
            rows.append(points("d", name, found.horizon, measured(found.mse), share=found.points[0]))
            if self.shares:
                rows += _shares("f", name, found)
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Test what the paper says of each panel, over its own horizons and over those beyond."""
        alphas, arms = self._by_alpha(results), self._by_arm(results)
        found = list(bounds(alphas, PAPER[1], self.bernoulli))
        for start, stop in self.ranges:
            beyond = "" if (start, stop) == PAPER else f" (T to {stop:,})"
            claims = of_panels(alphas, arms, start, stop)
            found += [replace(claim, says=claim.says + beyond, ours=bool(beyond)) for claim in claims]
        return found

    def selection(self, results: Results) -> list[Selection]:
        """Compare all runs with those whose most-pulled arm is the best one, at each end of the paper's range."""
        return [
            Selection.at(f"two arms, α = {alpha}", arm, int(at))
            for alpha, arm in self._by_alpha(results)
            for at in np.flatnonzero(np.isin(arm.along, PAPER))
        ]


def _shares(panel: str, name: str, found: Curve) -> list[pl.DataFrame]:
    """Return the rows behind a panel of shares."""
    kinds = {"estimated": found.estimated, "bounded": found.bounded}
    return [points(panel, f"{name}, {kind}", found.horizon, measured(share)) for kind, share in kinds.items()]


def _guide(axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], power: float, label: str | None = None) -> None:
    """Draw theory's slope a little below a curve, through the middle of its points."""
    there = np.flatnonzero(np.isfinite(y) & (y > 0))
    if there.size:
        middle = there[there.size // 2]
        guide(axes, x, power, through=(float(x[middle]), float(y[middle]) * 0.8), label=label)


def _draw_shares(axes: Axes, curves: list[tuple[str, Curve]]) -> None:
    """Draw the share of runs in which an arm is estimated and, thin, in which it is only bounded."""
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("horizon T")
    axes.set_ylabel("share of runs")
    for (name, found), line in zip(curves, LINES, strict=False):
        curve(axes, found.horizon, measured(found.estimated), line, name)
        axes.plot(found.horizon, found.bounded[0], color=line.colour, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=2)
