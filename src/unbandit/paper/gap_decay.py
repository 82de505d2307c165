"""A gap that shrinks with the horizon: harder for the demonstrator, easier for the observer."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from unbandit.demonstrators import UCB
from unbandit.paper.claims import Claim, error_falls, error_slope, mean_ratio, regret_slope, used
from unbandit.paper.figure import PaperFigure, Results, Size
from unbandit.paper.panels import LINES, curve, error_curve, error_points, guide, log_log, panels, points
from unbandit.study import Study
from unbandit.study.curves import Curve
from unbandit.study.grid import ShrinkingGap, spaced
from unbandit.study.monte_carlo import measured

BETAS = (0.05, 0.5)
HORIZONS = spaced(500, 5_000, 10)


class GapDecay(PaperFigure):
    """Regret and error where the gap is `T^-beta`."""

    name = "gap-decay"
    title = "A gap that shrinks with the horizon"
    section = "the appendix's figure of the role of the gap, (a) and (b)"
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

    def followed(self, results: Results) -> dict[str, Curve]:
        """Return the worse arm's curve at each beta."""
        return {f"β = {family.beta}": results["betas"].curve(arm="1", instance=family.name) for family in self.families}

    def draw(self, results: Results) -> Figure:
        """Draw regret and error against the horizon."""
        figure, (left, right) = panels(2)
        log_log(left, "horizon T", "mean regret")
        log_log(right, "horizon T", "mean squared error")
        for (name, arm), line in zip(self.followed(results).items(), LINES, strict=False):
            curve(left, arm.horizon, measured(arm.regret), line, name)
            error_curve(right, arm, line, name)
        *_, steep = self.followed(results).values()
        guide(right, steep.horizon, -1.0, through=(steep.horizon[5], steep.mse[0, 5] * 0.6), label="slope −1")
        left.legend()
        right.legend()
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn."""
        rows = []
        for name, arm in self.followed(results).items():
            plain = name.replace("β =", "beta")
            rows += [points("a", plain, arm.horizon, measured(arm.regret)), error_points("b", plain, arm)]
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Test how regret and error change with the horizon and with beta."""
        arms = self.followed(results)
        slow, fast = arms.values()
        every, both = np.ones(len(HORIZONS), bool), slow.usable & fast.usable
        return [
            *(
                Claim.above(
                    f"(a) the regret grows with T, as the gap shrinks ({name})",
                    f"slope of log regret on log T, above 0; {used(arm, every)}",
                    measured(regret_slope(arm, every)),
                    0.0,
                )
                for name, arm in arms.items()
            ),
            Claim.above(
                "(a) at a given T, the regret is larger for the larger β",
                f"regret at β = 0.5 over that at β = 0.05, geometric mean, above 1; {used(slow, every)}",
                mean_ratio(fast.regret, slow.regret, every),
                1.0,
            ),
            *(error_falls(f"(b) the error falls with T ({name})", arm) for name, arm in arms.items()),
            Claim.below(
                "(b) the error falls faster for the larger β",
                f"slope of log MSE on log T at β = 0.5 less that at β = 0.05, below 0; {used(slow, both)}",
                measured(error_slope(fast, both) - error_slope(slow, both)),
                0.0,
            ),
        ]


class GapDecayBernoulli(GapDecay):
    """The same for rewards of 0 and 1."""

    name = "gap-decay-bernoulli"
    title = "A gap that shrinks, with Bernoulli rewards"
    section = "not in the paper: the same figure for rewards of 0 and 1, for which its bounds are proved"
    full_only = True
    bernoulli = True
    caption = (
        "As for the shrinking gap above, with rewards of 0 and 1: the two means lie half a gap above and half a gap "
        "below 1/2."
    )


FIGURES = (GapDecay(), GapDecayBernoulli())
