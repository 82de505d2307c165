"""The paper's main figure, for UCB and for SAE: regret, error, both against each other, and error arm by arm.

Two arms at two exponents alpha fill panels (a) to (c), four arms at one alpha panel (d). For SAE two further panels,
which the paper does not have, show how many runs stand behind each point: an arm still in play has no estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unbandit import theory
from unbandit.datasets import linear, two_armed
from unbandit.demonstrators import SAE, UCB
from unbandit.instance import Bernoulli, Instance
from unbandit.paper.claims import (
    FEWEST_HORIZONS,
    Claim,
    distance,
    error_falls,
    error_slope,
    mean_ratio,
    regret_slope,
    used,
    within_range,
)
from unbandit.paper.figure import PaperFigure, Results, Selection, Size
from unbandit.paper.panels import (
    LINES,
    curve,
    error_curve,
    error_points,
    guide,
    log_log,
    panels,
    plain_ticks,
    points,
)
from unbandit.study import Study
from unbandit.study.curves import Curve
from unbandit.study.grid import spaced
from unbandit.study.monte_carlo import computed, measured, slope

ALPHAS = (0.15, 0.25)
ALPHA_OF_FOUR = 0.25
PAPER = (500, 5_000)
"""The first and the last horizon of the paper's figure."""

CLOSE_TO_MINUS_ONE = 0.1
"""How far from -1 a slope may be and still be called very close to it."""

ON_ONE_CURVE = 1.25
"""By what factor two curves may differ and still be said to collapse."""

NEARLY_LINEAR = 0.2
"""How far from 1 an exponent may be and still be called nearly linear."""

ByAlpha = list[tuple[float, Curve]]
"""The worse of two arms at each alpha, the smaller alpha first."""


class FourPanels(PaperFigure):
    """Regret and estimation error of one demonstrator.

    A concrete figure sets `rule`, `paper_runs`, and the ranges of horizons: the paper's and, since arms of an
    elimination rule are only resolved beyond it, a further one.
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
        # Into the middle, where Theorem 1 applies and all arms have noise: two keep their gap, four halve theirs.
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

    def _by_alpha(self, results: Results) -> ByAlpha:
        """Return the worse of two arms at each alpha."""
        return [(alpha, results["two"].curve(arm="1", rule=self.rule(alpha=alpha))) for alpha in ALPHAS]

    def _by_gap(self, results: Results) -> dict[str, Curve]:
        """Return the suboptimal ones of four arms, the smallest gap first."""
        arms = [results["four"].curve(arm=arm) for arm in ("1", "2", "3")]
        return {f"gap {fraction(arm.gap[0])}": arm for arm in arms}

    def draw(self, results: Results) -> Figure:
        """Draw the four panels, and two more where not every run has an estimate."""
        figure, axes = panels(6 if self.shares else 4, columns=3 if self.shares else 2)
        alphas, arms = self._by_alpha(results), self._by_gap(results)
        log_log(axes[0], "horizon T", "mean regret")
        log_log(axes[1], "horizon T", "mean squared error")
        log_log(axes[2], "mean regret", "mean squared error")
        log_log(axes[3], "horizon T", "mean squared error")
        for (alpha, arm), line in zip(alphas, LINES, strict=False):
            name, regret, mse = f"α = {alpha}", measured(arm.regret), measured(arm.mse)
            curve(axes[0], arm.horizon, regret, line, name)
            error_curve(axes[1], arm, line, name)
            fitted = measured(slope(np.log(arm.regret), np.log(arm.mse), within_range(arm, *PAPER)))
            best_fit = "" if np.isnan(fitted.value) else f", best fit {fitted.value:.2f}".replace("-", "−")
            curve(axes[2], regret.value, mse, line, name + best_fit, share=arm.points[0])
            _guide(axes[0], arm.horizon, regret.value, alpha)
            _guide(axes[1], arm.horizon, mse.value, -alpha)
        _, last = alphas[-1]
        _guide(axes[2], last.regret[0], last.mse[0], theory.tradeoff_slope(2), "slope −1")
        for (name, arm), line in zip(arms.items(), LINES, strict=False):
            error_curve(axes[3], arm, line, name)
        smallest = next(iter(arms.values()))
        _guide(axes[3], smallest.horizon, smallest.mse[0], -ALPHA_OF_FOUR)
        if self.shares:
            _draw_shares(axes[4], {f"α = {alpha}": arm for alpha, arm in alphas})
            _draw_shares(axes[5], arms)
        for panel in axes:
            panel.legend(loc="center right" if panel in axes[4:] else "best")
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn."""
        rows = []
        for alpha, arm in self._by_alpha(results):
            name = f"alpha {alpha}"
            rows.append(points("a", name, arm.horizon, measured(arm.regret)))
            rows.append(error_points("b", name, arm))
            rows.append(points("c", name, arm.regret[0], measured(arm.mse), share=arm.points[0]))
            if self.shares:
                rows += _shares("e", name, arm)
        for name, arm in self._by_gap(results).items():
            rows.append(error_points("d", name, arm))
            if self.shares:
                rows += _shares("f", name, arm)
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Test what the paper says of each panel, over its own horizons and over those beyond."""
        alphas, arms = self._by_alpha(results), list(self._by_gap(results).values())
        claims = list(bound_claims(alphas, PAPER[1], self.bernoulli))
        for start, stop in self.ranges:
            beyond = "" if (start, stop) == PAPER else f" (T to {stop:,})"
            made = panel_claims(alphas, arms, start, stop)
            claims += [replace(claim, says=claim.says + beyond, ours=bool(beyond)) for claim in made]
        return claims

    def selection(self, results: Results) -> list[Selection]:
        """Return the effect of the authors' selection of runs, at each end of the paper's range."""
        return [
            Selection.at(f"two arms, α = {alpha}", arm, int(at))
            for alpha, arm in self._by_alpha(results)
            for at in np.flatnonzero(np.isin(arm.along, PAPER))
        ]


def bound_claims(alphas: ByAlpha, longest: int, bernoulli: bool) -> Iterator[Claim]:
    """Ask, as questions of ours, how the measured numbers compare with the paper's bounds at their own constants."""
    for alpha, arm in alphas:
        gap = float(arm.gap[0])
        limits = np.array([theory.regret_upper_bound([gap], horizon, alpha) for horizon in arm.horizon])
        binding = limits < gap * arm.horizon  # elsewhere no demonstrator could break the bound
        largest = (arm.regret / limits)[:, binding].max(axis=1, initial=0.0)
        yield Claim.below(
            f"the regret lies below the bound of Proposition 1 (α = {alpha})",
            f"regret over the bound, largest of the {binding.sum()} horizons where the bound is below gap × T, below 1",
            measured(np.where(binding.any(), largest, np.nan)),
            1.0,
            ours=True,
        )
        yield Claim.above(
            f"the horizons are as long as Theorem 2 asks for (α = {alpha})",
            f"longest horizon of the paper, {longest:,}, over what the theorem asks for there, above 1",
            computed(longest / theory.horizon_required([gap], longest, alpha)),
            1.0,
            ours=True,
        )
        if bernoulli:
            last = int(np.flatnonzero(arm.along == longest)[0])
            yield Claim.above(
                f"the error of the procedure lies above the bound of Theorem 1 (α = {alpha})",
                f"mean absolute error over the bound, at T = {longest:,}, above 1: how far the bound is from what is "
                "reached here",
                measured(arm.mean_absolute_error[:, last] / theory.lower_bound(arm.pulls[:, last])),
                1.0,
                ours=True,
            )


def panel_claims(alphas: ByAlpha, arms: list[Curve], start: int, stop: int) -> Iterator[Claim]:
    """Test what is said of panels (a) to (d), over the horizons from `start` to `stop`."""
    (_, low), (_, high) = alphas
    every = (low.horizon >= start) & (low.horizon <= stop)
    masks = [within_range(arm, start, stop) for _, arm in alphas]
    both = masks[0] & masks[1]
    for alpha, arm in alphas:
        yield Claim.below(
            f"(a) the regret grows slower than T (α = {alpha})",
            f"slope of log regret on log T, below 1; {used(arm, every)}",
            measured(regret_slope(arm, every)),
            1.0,
        )
    yield Claim.above(
        "(a) a larger α pays more regret",
        f"regret at α = 0.25 over that at α = 0.15, geometric mean, above 1; {used(low, every)}",
        mean_ratio(high.regret, low.regret, every),
        1.0,
    )
    for (alpha, arm), where in zip(alphas, masks, strict=True):
        yield error_falls(f"(b) the error falls with T (α = {alpha})", arm, where)
    yield Claim.below(
        "(b) a larger α leaves a smaller error",
        f"MSE at α = 0.25 over that at α = 0.15, geometric mean, below 1; {used(low, both)}",
        mean_ratio(high.mse, low.mse, both),
        1.0,
    )
    yield Claim.below(
        "(b) the error falls faster for a larger α",
        f"slope of log MSE on log T at α = 0.25 less that at α = 0.15, below 0; {used(low, both)}",
        measured(error_slope(high, both) - error_slope(low, both)),
        0.0,
    )
    for (alpha, arm), where in zip(alphas, masks, strict=True):
        enough = where if where.sum() >= FEWEST_HORIZONS else np.zeros_like(where)
        yield Claim.within(
            f"(c) the slope of error against regret is very close to −1 (α = {alpha})",
            f"slope of log MSE on log regret, within {CLOSE_TO_MINUS_ONE} of −1; {used(arm, where)}",
            measured(slope(np.log(arm.regret), np.log(arm.mse), enough)),
            (-1 - CLOSE_TO_MINUS_ONE, -1 + CLOSE_TO_MINUS_ONE),
        )
    regrets = (low.regret[:, masks[0]], high.regret[:, masks[1]])
    errors = (low.mse[:, masks[0]], high.mse[:, masks[1]])
    yield Claim.within(
        "(c) against regret, the two curves are one",
        f"MSE at α = 0.25 over that at α = 0.15 at equal regret, within a factor of {ON_ONE_CURVE}; "
        + "; ".join(dict.fromkeys(used(arm, where) for (_, arm), where in zip(alphas, masks, strict=True))),
        measured(distance(regrets, errors)),
        (1 / ON_ONE_CURVE, ON_ONE_CURVE),
    )
    for near, far in pairwise(arms):
        where = within_range(near, start, stop) & within_range(far, start, stop)
        yield Claim.above(
            f"(d) gap {fraction(far.gap[0])} is harder to estimate than gap {fraction(near.gap[0])}",
            f"ratio of their MSE, geometric mean, above 1; {used(near, where)}",
            mean_ratio(far.mse, near.mse, where),
            1.0,
        )
    where = np.logical_and.reduce([within_range(arm, start, stop) for arm in arms])
    yield Claim.within(
        "(d) the squared error grows nearly linearly with the gap",
        f"slope of log MSE (mean over T) on log gap, within {NEARLY_LINEAR} of 1; {used(arms[0], where)}",
        measured(_power_of_gap(arms, where)),
        (1 - NEARLY_LINEAR, 1 + NEARLY_LINEAR),
    )


def _power_of_gap(arms: list[Curve], where: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the exponent of the gap in the mean squared error, as replicates."""
    if where.sum() < FEWEST_HORIZONS:
        return np.full(len(arms[0].mse), np.nan)
    heights = np.stack([np.log(arm.mse[:, where]).mean(axis=1) for arm in arms], axis=1)
    return slope(np.log([arm.gap[0] for arm in arms]), heights)


def fraction(gap: float) -> str:
    """Write a gap as a fraction of small numbers: `1/3`."""
    return str(Fraction(float(gap)).limit_denominator(12))


def _shares(panel: str, name: str, arm: Curve) -> list[pl.DataFrame]:
    """Return the rows behind a panel of shares."""
    kinds = {"estimated": arm.estimated, "bounded": arm.bounded}
    return [points(panel, f"{name}, {kind}", arm.horizon, measured(share)) for kind, share in kinds.items()]


def _guide(axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], power: float, label: str | None = None) -> None:
    """Draw theory's slope a little below a curve, through the middle of its points."""
    there = np.flatnonzero(np.isfinite(y) & (y > 0))
    if there.size:
        middle = there[there.size // 2]
        guide(axes, x, power, through=(float(x[middle]), float(y[middle]) * 0.8), label=label)


def _draw_shares(axes: Axes, arms: dict[str, Curve]) -> None:
    """Draw the share of runs in which an arm is estimated and, thin, in which it is only bounded."""
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set(xlabel="horizon T", ylabel="share of runs", ylim=(-0.03, 1.03))
    for (name, arm), line in zip(arms.items(), LINES, strict=False):
        curve(axes, arm.horizon, measured(arm.estimated), line, name)
        axes.plot(arm.horizon, arm.bounded[0], color=line.colour, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=2)


class UCBFigure(FourPanels):
    """UCB's regret and estimation error."""

    name = "ucb"
    title = "UCB: regret and error"
    section = "the main text's figure of simulations with UCB, (a) to (d)"
    rule = UCB
    paper_runs = 100
    caption = (
        "Procedure 2 on UCB. (a) Mean regret against the horizon and (b) mean squared error of the worse arm's gap, on"
        " two arms with means 1 and 1/2 and unit variance; (c) the same errors against the regret; (d) the error of "
        "each suboptimal arm among four with means 1, 2/3, 1/3, 0 and variance 1/4, at α = 0.25 (our choice). All runs"
        " count, also those whose most-pulled arm is not the best. Bands are one standard error; thin lines have the "
        "slopes of theory: α in (a), −α in (b) and (d), −1 in (c)."
    )
    alt = (
        "Four panels on logarithmic axes: mean regret against the horizon and mean squared error against the horizon, "
        "one curve for each alpha; the same errors against the regret; mean squared error against the horizon for "
        "three arms."
    )


class SAEFigure(FourPanels):
    """SAE's regret and estimation error, and how many of its arms have been eliminated at all."""

    name = "sae"
    title = "SAE: regret, error, and what is still open"
    section = "the appendix's figure of simulations with SAE, (a) to (d)"
    rule = SAE
    paper_runs = 250
    ranges = (PAPER, (5_000, 50_000))
    shares = True
    caption = (
        "Procedure 1 on SAE, in the setting of the UCB figure, with horizons up to 50,000 where the paper stops at "
        "5,000. (a) to (d) as there; (e) and (f), which the paper does not have, show in what share of runs the arm "
        "has an estimate, having been seen to be eliminated, and, thin, in what share it is only bounded, being still "
        "in play. Points are hollow and lines pale where fewer than 95% of the runs have an estimate: there the error "
        "is that of a selection, and no claim rests on it. Slopes of best fit are over the paper's horizons."
    )
    alt = (
        "Six panels: mean regret and mean squared error against the horizon, and against each other, for two alphas; "
        "mean squared error for three arms; and the shares of runs in which an arm is estimated or only bounded."
    )


class BernoulliPanels(FourPanels):
    """One of the figures above with rewards of 0 and 1."""

    section = "not in the paper: the same figure for rewards of 0 and 1, for which its bounds are proved"
    full_only = True
    bernoulli = True

    def __init__(self, figure: FourPanels) -> None:
        rule = figure.name.upper()
        self.name, self.title, self.alt = f"{figure.name}-bernoulli", f"{rule} with Bernoulli rewards", figure.alt
        self.rule, self.paper_runs, self.ranges, self.shares = (
            figure.rule, figure.paper_runs, figure.ranges, figure.shares
        )  # fmt: skip
        self.caption = (
            f"As for {rule} above, with rewards of 0 and 1. All means move into the middle half, where the bounds are "
            "proved: the two arms keep their gap and have means 3/4 and 1/4, the four are drawn together to 3/4, 7/12, "
            "5/12 and 1/4."
        )


FIGURES = (UCBFigure(), BernoulliPanels(UCBFigure()), SAEFigure(), BernoulliPanels(SAEFigure()))
