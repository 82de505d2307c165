"""A gap that shrinks with the horizon: harder for the demonstrator, easier for who watches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unbandit.demonstrators import UCB
from unbandit.paper.claim import Claim, above, below
from unbandit.paper.comparing import fall, falling, growth_of_regret, ratio, used
from unbandit.paper.drawing import LINES, curve, guide, log_log, panels
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.table import points
from unbandit.study import Study
from unbandit.study.curves import Curve
from unbandit.study.grid import ShrinkingGap, spaced
from unbandit.study.monte_carlo import measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "GapDecay"]

BETAS = (0.05, 0.5)
HORIZONS = spaced(500, 5_000, 10)


class GapDecay(Picture):
    """Show regret and error where the gap is `T^-beta`."""

    name = "gap-decay"
    title = "A gap that shrinks with the horizon"
    section = "the appendix's picture of the role of the gap, (a) and (b)"
    bernoulli = False
    caption = (
        "UCB with α = 0.25 (our choice) on two arms with unit variance whose gap is T^−β: at β = 0.05 it hardly "
        "shrinks, at β = 0.5 it falls from 0.045 to 0.014 over these horizons. (a) Mean regret. (b) Mean squared error "
        "of the gap. Bands are one standard error; the thin line in (b) has the slope −1 of an average of T "
        "independent rewards. All runs count, also those whose most-pulled arm is the worse one."
    )
    alt = (
        "Two panels on logarithmic axes, one curve for each beta: mean regret and mean squared error against the "
        "horizon."
    )

    @property
    def families(self) -> list[ShrinkingGap]:
        """Return the instances at each beta."""
        return [ShrinkingGap(beta, bernoulli=self.bernoulli) for beta in BETAS]

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for UCB on both families of instances."""
        runs = size.runs_of(100, synthetic=True)
        return {"betas": Study(self.families, UCB(alpha=0.25), HORIZONS, runs, size.seed)}

    def _curves(self, results: Results) -> list[Curve]:
        """Return the worse arm's curve at each beta."""
        return [results["betas"].curve(arm="1", instance=family.name) for family in self.families]

    def draw(self, results: Results) -> Figure:
        """Draw regret and error against the horizon."""
        figure, (left, right) = panels(2)
        log_log(left, "horizon T", "mean regret")
        log_log(right, "horizon T", "mean squared error")
        for beta, found, line in zip(BETAS, self._curves(results), LINES, strict=False):
            curve(left, found.horizon, measured(found.regret), line, f"β = {beta}")
            curve(right, found.horizon, measured(found.mse), line, f"β = {beta}", share=found.points[0])
        steep = self._curves(results)[-1]
        guide(right, steep.horizon, -1.0, through=(steep.horizon[5], steep.mse[0, 5] * 0.6), label="slope −1")
        left.legend()
        right.legend()
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn."""
        rows = []
        for beta, found in zip(BETAS, self._curves(results), strict=True):
            rows.append(points("a", f"beta {beta}", found.horizon, measured(found.regret)))
            rows.append(points("b", f"beta {beta}", found.horizon, measured(found.mse), share=found.points[0]))
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Test how regret and error go with the horizon and with beta."""
        slow, fast = self._curves(results)
        every, found = np.ones(len(HORIZONS), bool), []
        for beta, arm in zip(BETAS, (slow, fast), strict=True):
            grows = measured(growth_of_regret(arm, every))
            found.append(
                Claim(
                    f"(a) the regret grows with T, as the gap shrinks (β = {beta})",
                    f"slope of log regret on log T, above 0; {used(arm, every)}",
                    grows,
                    *above(grows, 0.0),
                )
            )
        more = measured(ratio(fast.regret, slow.regret, every))
        found.append(
            Claim(
                "(a) at a given T, the regret is larger for the larger β",
                f"regret at β = 0.5 over that at β = 0.05, geometric mean, above 1; {used(slow, every)}",
                more,
                *above(more, 1.0),
            )
        )
        for beta, arm in zip(BETAS, (slow, fast), strict=True):
            found.append(falling(f"(b) the error falls with T (β = {beta})", arm))
        both = slow.usable & fast.usable
        steeper = measured(fall(fast, both) - fall(slow, both))
        found.append(
            Claim(
                "(b) the error falls faster for the larger β",
                f"slope of log MSE on log T at β = 0.5 less that at β = 0.05, below 0; {used(slow, both)}",
                steeper,
                *below(steeper, 0.0),
            )
        )
        return found

    def selection(self, results: Results) -> list[Selection]:
        """Compare all runs with those whose most-pulled arm is the best one, at both ends."""
        curves = zip(BETAS, self._curves(results), strict=True)
        return [row for beta, found in curves for row in Selection.ends(f"β = {beta}", found)]


class GapDecayBernoulli(GapDecay):
    """Show the same for rewards of 0 and 1."""

    name = "gap-decay-bernoulli"
    title = "A gap that shrinks, with Bernoulli rewards"
    section = "not in the paper: the same picture for rewards of 0 and 1, for which its bounds are proved"
    full_only = True
    bernoulli = True
    caption = (
        "As for the shrinking gap above, with rewards of 0 and 1: the two means lie half a gap above and half a gap "
        "below 1/2."
    )


PICTURES = (GapDecay(), GapDecayBernoulli())
