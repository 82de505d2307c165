"""The paper's simulations: UCB and SAE on a few arms, a gap that shrinks with the horizon, and the naive estimator.

The main figure, for UCB and for SAE, shows regret, error, both against each other, and error arm by arm. For SAE two
further panels, which the paper does not have, show how many runs stand behind each point: an arm still in play has no
estimate.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unbandit import theory
from unbandit.datasets import linear, two_armed
from unbandit.demonstrators import SAE, UCB
from unbandit.formatting import minus
from unbandit.instance import Bernoulli, Instance
from unbandit.paper.claims import (
    FEWEST_HORIZONS,
    Claim,
    Mask,
    distance,
    error_falls,
    error_slope,
    mean_ratio,
    regret_slope,
    used,
    within_range,
)
from unbandit.paper.figure import PROCEDURES, PaperFigure, Results, Selection, Size
from unbandit.paper.panels import LINES, Series, draw_series, guide, log_log, panels, plain_ticks
from unbandit.plots.parts import Line
from unbandit.study import Study
from unbandit.study.curves import Curve
from unbandit.study.grid import ShrinkingGap, spaced
from unbandit.study.monte_carlo import computed, measured, slope

ALPHAS = (0.15, 0.25)
ALPHA_OF_FOUR = 0.25
PAPER = (500, 5_000)  # the first and the last horizon of the paper's figure
CLOSE_TO_MINUS_ONE = 0.1  # how far from -1 a slope may be and still be called very close to it
ON_ONE_CURVE = 1.25  # by what factor two curves may differ and still be said to collapse
NEARLY_LINEAR = 0.2  # how far from 1 an exponent may be and still be called nearly linear

BETAS = (0.05, 0.5)
NAIVE_CONSTANTS = (0.2, 0.75, 1.0, 1.5)
BRACKET = "bracket"
METHODS = (PROCEDURES, BRACKET)  # the paper's, which the claims are about, and this package's default beside them
ESTIMATORS = (PROCEDURES, *(f"naive:constant={constant}" for constant in NAIVE_CONSTANTS))

Named = tuple[str, Curve]  # a curve and the parameter it belongs to: `α = 0.25`


class FourPanels(PaperFigure):
    """Regret and estimation error of one demonstrator: two arms at two alphas, and four arms at one.

    A concrete figure sets `rule`, `paper_runs`, and the ranges of horizons: the paper's and, since arms of an
    elimination rule are only resolved beyond it, a further one.
    """

    rule: type[UCB | SAE]
    paper_runs: int
    ranges: tuple[tuple[int, int], ...] = (PAPER,)
    bernoulli: bool = False
    shares: bool = False

    @property
    def instances(self) -> tuple[Instance, Instance]:
        """Return the two-armed and the four-armed bandit."""
        if not self.bernoulli:
            return two_armed(), linear(4)
        # Into the middle, where Theorem 1 applies and all arms have noise: two keep their gap, four halve theirs.
        two = Instance([0.75, 0.25], Bernoulli(), name="two-armed Bernoulli")
        return two, Instance(0.25 + linear(4).means / 2, Bernoulli(), name="linear Bernoulli")

    def studies(self, size: Size) -> dict[str, Study]:
        runs, (two, four) = size.runs_of(self.paper_runs, 5_000, synthetic=True), self.instances
        horizons = sorted({horizon for start, stop in self.ranges for horizon in spaced(start, stop, 10)})
        rules = [self.rule(alpha=alpha) for alpha in ALPHAS]
        return {
            "two": Study(two, rules, horizons, runs, size.seed, METHODS),
            "four": Study(four, self.rule(alpha=ALPHA_OF_FOUR), horizons, runs, size.seed, METHODS),
        }

    def _by_alpha(self, results: Results, estimator: str = PROCEDURES) -> dict[float, Curve]:
        """Return the worse of two arms at each alpha, the smaller alpha first."""
        return {
            alpha: results["two"].curve(arm="1", rule=self.rule(alpha=alpha), estimator=estimator) for alpha in ALPHAS
        }

    def _by_gap(self, results: Results) -> list[Curve]:
        """Return the suboptimal ones of four arms, the smallest gap first."""
        return [results["four"].curve(arm=arm, estimator=PROCEDURES) for arm in ("1", "2", "3")]

    def series(self, results: Results) -> list[Series]:
        series = list[Series]()
        for alpha, arm in self._by_alpha(results).items():
            name, label = f"alpha {alpha}", f"α = {alpha}"
            fitted = measured(slope(np.log(arm.regret), np.log(arm.mse), within_range(arm, *PAPER))).value
            against = label if np.isnan(fitted) else minus(f"{label}, best fit {fitted:.2f}")
            series.append(Series("a", name, arm.horizon, measured(arm.regret), label=label))
            series.append(Series.error("b", name, arm, label))
            series.append(Series("c", name, arm.regret[0], measured(arm.mse), arm.points[0], against))
            series += _shares("e", name, label, arm) if self.shares else []
        for alpha, arm in self._by_alpha(results, BRACKET).items():
            series.append(Series.error("b", f"alpha {alpha}, bracket", arm, f"α = {alpha}, bracket"))
        for arm in self._by_gap(results):
            name = f"gap {fraction(arm.gap[0])}"
            series.append(Series.error("d", name, arm))
            series += _shares("f", name, name, arm) if self.shares else []
        return series

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(6 if self.shares else 4, columns=3 if self.shares else 2)
        series, alphas = self.series(results), self._by_alpha(results)
        for panel, letter, x in zip(axes, "abcd", ("horizon T", "horizon T", "mean regret", "horizon T"), strict=False):
            log_log(panel, x, "mean regret" if letter == "a" else "mean squared error")
            draw_series(panel, series, letter)
        for alpha, arm in alphas.items():
            _guide(axes[0], arm.horizon, arm.regret[0], alpha)
            _guide(axes[1], arm.horizon, arm.mse[0], -alpha)
        last, smallest = alphas[ALPHAS[-1]], self._by_gap(results)[0]
        _guide(axes[2], last.regret[0], last.mse[0], theory.tradeoff_slope(2), "slope −1")
        _guide(axes[3], smallest.horizon, smallest.mse[0], -ALPHA_OF_FOUR)
        for panel, letter in zip(axes[4:], "ef", strict=False):
            _draw_shares(panel, [each for each in series if each.panel == letter])
        for panel in axes:
            panel.legend(loc="center right" if panel in axes[4:] else "best")
        return figure

    def claims(self, results: Results) -> list[Claim]:
        alphas, arms = self._by_alpha(results), self._by_gap(results)
        claims = list(bound_claims(alphas, PAPER[1], self.bernoulli))
        for start, stop in self.ranges:
            beyond = "" if (start, stop) == PAPER else f" (T to {stop:,})"
            made = panel_claims(alphas, arms, start, stop)
            claims += [replace(claim, says=claim.says + beyond, ours=bool(beyond)) for claim in made]
        return claims

    def selection(self, results: Results) -> list[Selection]:
        """Return the effect of the authors' selection of runs, at each end of the paper's range."""
        return [
            Selection.at(f"two arms, α = {alpha}, T = {horizon:,}", arm, np.flatnonzero(arm.along == horizon))
            for alpha, arm in self._by_alpha(results).items()
            for horizon in PAPER
        ]


def bound_claims(alphas: dict[float, Curve], longest: int, bernoulli: bool) -> Iterator[Claim]:
    """Ask, beyond the paper's claims, how the measured numbers compare with its bounds at their own constants."""
    for alpha, arm in alphas.items():
        gap = float(arm.gap[0])
        limits = np.array([theory.regret_upper_bound([gap], horizon, alpha) for horizon in arm.horizon])
        binding = limits < gap * arm.horizon  # elsewhere no demonstrator could break the bound
        largest = measured(np.where(binding.any(), (arm.regret / limits)[:, binding].max(axis=1, initial=0.0), np.nan))
        says = f"the regret lies below the bound of Proposition 1 (α = {alpha})"
        what = (
            f"regret over the bound, largest of the {binding.sum()} horizons where the bound is below gap × T, below 1"
        )
        yield Claim.below(says, what, largest, 1.0, ours=True)
        says = f"the horizons are as long as Theorem 2 asks for (α = {alpha})"
        what = f"longest horizon of the paper, {longest:,}, over what the theorem asks for there, above 1"
        length = computed(longest / theory.horizon_required([gap], longest, alpha))
        yield Claim.above(says, what, length, 1.0, ours=True)
        if bernoulli:
            last = int(np.flatnonzero(arm.along == longest)[0])
            error = measured(arm.mean_absolute_error[:, last] / theory.lower_bound(arm.pulls[:, last]))
            says = f"the error of the procedure lies above the bound of Theorem 1 (α = {alpha})"
            what = (
                f"mean absolute error over the bound, at T = {longest:,}, above 1: how far the bound is from what is "
                "reached here"
            )
            yield Claim.above(says, what, error, 1.0, ours=True)


def panel_claims(alphas: dict[float, Curve], arms: list[Curve], start: int, stop: int) -> Iterator[Claim]:
    """Test what is said of panels (a) to (d), over the horizons from `start` to `stop`."""
    named = {f"α = {alpha}": arm for alpha, arm in alphas.items()}
    masks = [within_range(arm, start, stop) for arm in named.values()]
    small, large = named.items()
    low, high = small[1], large[1]
    every, both = (low.horizon >= start) & (low.horizon <= stop), masks[0] & masks[1]
    for name, arm in named.items():
        what = f"slope of log regret on log T, below 1; {used(arm, every)}"
        yield Claim.below(f"(a) the regret grows slower than T ({name})", what, regret_slope(arm, every), 1.0)
    yield more_regret("(a) a larger α pays more regret", small, large, every)
    for (name, arm), where in zip(named.items(), masks, strict=True):
        yield error_falls(f"(b) the error falls with T ({name})", arm, where)
    what = f"MSE at {large[0]} over that at {small[0]}, geometric mean, below 1; {used(low, both)}"
    yield Claim.below("(b) a larger α leaves a smaller error", what, mean_ratio(high.mse, low.mse, both), 1.0)
    yield falls_faster("(b) the error falls faster for a larger α", small, large, both)
    for (name, arm), where in zip(named.items(), masks, strict=True):
        says = f"(c) the slope of error against regret is very close to −1 ({name})"
        what = f"slope of log MSE on log regret, within {CLOSE_TO_MINUS_ONE} of −1; {used(arm, where)}"
        enough = where if where.sum() >= FEWEST_HORIZONS else np.zeros_like(where)
        fitted = measured(slope(np.log(arm.regret), np.log(arm.mse), enough))
        yield Claim.within(says, what, fitted, (-1 - CLOSE_TO_MINUS_ONE, -1 + CLOSE_TO_MINUS_ONE))
    horizons = "; ".join(dict.fromkeys(used(arm, where) for arm, where in zip((low, high), masks, strict=True)))
    what = f"MSE at {large[0]} over that at {small[0]} at equal regret, within a factor of {ON_ONE_CURVE}; {horizons}"
    regrets, errors = (
        (of_low[:, masks[0]], of_high[:, masks[1]])
        for of_low, of_high in ((low.regret, high.regret), (low.mse, high.mse))
    )
    apart = measured(distance(regrets, errors))
    yield Claim.within("(c) against regret, the two curves are one", what, apart, (1 / ON_ONE_CURVE, ON_ONE_CURVE))
    for near, far in pairwise(arms):
        where = within_range(near, start, stop) & within_range(far, start, stop)
        says = f"(d) gap {fraction(far.gap[0])} is harder to estimate than gap {fraction(near.gap[0])}"
        what = f"ratio of their MSE, geometric mean, above 1; {used(near, where)}"
        yield Claim.above(says, what, mean_ratio(far.mse, near.mse, where), 1.0)
    where = np.logical_and.reduce([within_range(arm, start, stop) for arm in arms])
    says = "(d) the squared error grows nearly linearly with the gap"
    what = f"slope of log MSE (mean over T) on log gap, within {NEARLY_LINEAR} of 1; {used(arms[0], where)}"
    yield Claim.within(says, what, measured(_power_of_gap(arms, where)), (1 - NEARLY_LINEAR, 1 + NEARLY_LINEAR))


def more_regret(says: str, small: Named, large: Named, where: Mask) -> Claim:
    """Claim that the larger parameter has the larger regret."""
    what = f"regret at {large[0]} over that at {small[0]}, geometric mean, above 1; {used(small[1], where)}"
    return Claim.above(says, what, mean_ratio(large[1].regret, small[1].regret, where), 1.0)


def falls_faster(says: str, small: Named, large: Named, where: Mask) -> Claim:
    """Claim that the error falls faster with the horizon for the larger parameter."""
    what = f"slope of log MSE on log T at {large[0]} less that at {small[0]}, below 0; {used(small[1], where)}"
    return Claim.below(says, what, measured(error_slope(large[1], where) - error_slope(small[1], where)), 0.0)


def _power_of_gap(arms: list[Curve], where: Mask) -> NDArray[np.float64]:
    """Return the exponent of the gap in the mean squared error, as replicates."""
    if where.sum() < FEWEST_HORIZONS:
        return np.full(len(arms[0].mse), np.nan)
    heights = np.stack([np.log(arm.mse[:, where]).mean(axis=1) for arm in arms], axis=1)
    return slope(np.log([arm.gap[0] for arm in arms]), heights)


def fraction(gap: float) -> str:
    """Write a gap as a fraction of small numbers: `1/3`."""
    return str(Fraction(float(gap)).limit_denominator(12))


def _shares(panel: str, name: str, label: str, arm: Curve) -> list[Series]:
    """Return the shares of runs in which an arm is estimated and in which it is only bounded."""
    return [
        Series(panel, f"{name}, estimated", arm.horizon, measured(arm.estimated), label=label),
        Series(panel, f"{name}, bounded", arm.horizon, measured(arm.bounded)),
    ]


def _draw_shares(axes: Axes, series: list[Series]) -> None:
    """Draw the share of runs in which an arm is estimated and, thin, in which it is only bounded."""
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set(xlabel="horizon T", ylabel="share of runs", ylim=(-0.03, 1.03))
    for estimated, bounded, line in zip(series[::2], series[1::2], LINES, strict=False):
        estimated.draw(axes, line)
        axes.plot(bounded.x, bounded.points.value, color=line.colour, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=2)


def _guide(axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], power: float, label: str | None = None) -> None:
    """Draw theory's slope a little below a curve, through the middle of its points."""
    there = np.flatnonzero(np.isfinite(y) & (y > 0))
    if there.size:
        middle = there[there.size // 2]
        guide(axes, x, power, through=(float(x[middle]), float(y[middle]) * 0.8), label=label)


class UCBFigure(FourPanels):
    """UCB's regret and estimation error."""

    name = "ucb"
    title = "UCB: regret and error"
    section = "Figure 4 of the paper, panels (a) to (d)"
    rule = UCB
    paper_runs = 100


class SAEFigure(FourPanels):
    """SAE's regret and estimation error, and how many of its arms have been eliminated at all."""

    name = "sae"
    title = "SAE: regret, error, and what is still open"
    section = "Figure 6 of the paper, panels (a) to (d)"
    rule = SAE
    paper_runs = 250
    ranges = (PAPER, (5_000, 50_000))
    shares = True


def with_bernoulli_rewards(figure: PaperFigure | type[PaperFigure]) -> str:
    """Return which figure of the paper another one repeats with the rewards of its theorems."""
    numbered = figure.section.split(" of ")[0]
    return f"not in the paper: its {numbered} for rewards of 0 and 1, for which its bounds are proved"


class BernoulliPanels(FourPanels):
    """One of the figures above with rewards of 0 and 1."""

    full_only = True
    bernoulli = True

    def __init__(self, figure: FourPanels) -> None:
        rule = figure.name.upper()
        self.name, self.title, self.alt = f"{figure.name}-bernoulli", f"{rule} with Bernoulli rewards", figure.alt
        self.section = with_bernoulli_rewards(figure)
        self.rule, self.paper_runs = figure.rule, figure.paper_runs
        self.ranges, self.shares = figure.ranges, figure.shares
        self.caption = (
            f"As for {rule} above, with rewards of 0 and 1. All means move into the middle half, where the bounds are "
            "proved: the two arms keep their gap and have means 3/4 and 1/4, the four are drawn together to 3/4, 7/12, "
            "5/12 and 1/4."
        )


class GapDecay(PaperFigure):
    """Regret and error where the gap is `T^-beta`: harder for the demonstrator, easier for the observer."""

    name = "gap-decay"
    title = "A gap that shrinks with the horizon"
    section = "Figure 7 of the paper, panels (a) and (b)"
    bernoulli = False

    @property
    def families(self) -> list[ShrinkingGap]:
        """Return the instances at each beta."""
        return [ShrinkingGap(beta, bernoulli=self.bernoulli) for beta in BETAS]

    def studies(self, size: Size) -> dict[str, Study]:
        runs = size.runs_of(100, 1_000, synthetic=True)
        return {"betas": Study(self.families, UCB(alpha=0.25), spaced(*PAPER, 10), runs, size.seed, PROCEDURES)}

    def followed(self, results: Results) -> dict[str, Curve]:
        """Return the worse arm's curve at each beta."""
        return {f"β = {family.beta}": results["betas"].curve(arm="1", instance=family.name) for family in self.families}

    def series(self, results: Results) -> list[Series]:
        series = list[Series]()
        for label, arm in self.followed(results).items():
            name = label.replace("β =", "beta")
            series.append(Series("a", name, arm.horizon, measured(arm.regret), label=label))
            series.append(Series.error("b", name, arm, label))
        return series

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(2)
        for panel, letter, y in zip(axes, "ab", ("mean regret", "mean squared error"), strict=True):
            log_log(panel, "horizon T", y)
            draw_series(panel, self.series(results), letter)
        *_, steep = self.followed(results).values()
        guide(axes[1], steep.horizon, -1.0, through=(steep.horizon[5], steep.mse[0, 5] * 0.6), label="slope −1")
        for panel in axes:
            panel.legend()
        return figure

    def claims(self, results: Results) -> list[Claim]:
        arms = self.followed(results)
        small, large = arms.items()
        every, both = np.ones(len(small[1].along), bool), small[1].usable & large[1].usable
        claims = []
        for name, arm in arms.items():
            says = f"(a) the regret grows with T, as the gap shrinks ({name})"
            what = f"slope of log regret on log T, above 0; {used(arm, every)}"
            claims.append(Claim.above(says, what, regret_slope(arm, every), 0.0))
        return [
            *claims,
            more_regret("(a) at a given T, the regret is larger for the larger β", small, large, every),
            *(error_falls(f"(b) the error falls with T ({name})", arm) for name, arm in arms.items()),
            falls_faster("(b) the error falls faster for the larger β", small, large, both),
        ]


class GapDecayBernoulli(GapDecay):
    """The same for rewards of 0 and 1."""

    name = "gap-decay-bernoulli"
    title = "A gap that shrinks, with Bernoulli rewards"
    section = with_bernoulli_rewards(GapDecay)
    full_only = True
    bernoulli = True


class Naive(PaperFigure):
    """The naive estimator with four constants beside Procedure 2: why knowing the rule matters."""

    name = "naive"
    title = "The naive estimator beside Procedure 2"
    section = "Figure 8 of the paper, panels (a) to (e)"

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for the paper's ten horizons, evenly spaced, and for ten that go further."""
        ranges = {"paper": spaced(500, 1_000, 10, "linear"), "further": spaced(500, 50_000, 10)}
        runs, rule = size.runs_of(50, 1_000, synthetic=True), UCB(alpha=0.25)
        return {name: Study(two_armed(), rule, at, runs, size.seed, ESTIMATORS) for name, at in ranges.items()}

    def series(self, results: Results) -> list[Series]:
        curves = [*_by_estimator(results, "paper").items(), *_by_estimator(results, "further").items()]
        return [
            Series.error(panel, name, arm, _label(name))
            for panel, (name, arm) in zip("abcdefffff", curves, strict=True)
        ]

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(6, columns=3, width=3.2, height=2.7)
        series = self.series(results)
        for panel in axes:
            log_log(panel, "horizon T", "mean squared error")
        for panel, each, line in zip(axes[:5], series, LINES, strict=False):
            panel.set_xscale("linear")
            panel.xaxis.set_major_formatter("{x:,.0f}")
            if each.name != PROCEDURES:
                series[0].draw(panel, Line("#9a9a9a", "", "-"))
            each.draw(panel, line)
            panel.legend(loc="lower left")  # in (f), the colours are those of the others
        draw_series(axes[5], series, "f")
        for panel in axes:
            panel.set_ylim(0.001, 0.4)
        return figure

    def claims(self, results: Results) -> list[Claim]:
        paper, further = _by_estimator(results, "paper"), _by_estimator(results, "further")
        beyond = error_falls("the error of Procedure 2 falls with T (to 50,000)", further[PROCEDURES])
        claims = [error_falls("the error of Procedure 2 falls with T", paper[PROCEDURES]), replace(beyond, ours=True)]
        for name in ESTIMATORS[1:]:
            far = further[name]
            says = f"the error of the naive estimator does not go to 0 ({_label(name)})"
            what = f"logarithm of its MSE at T = {far.along[-1]:,} over that at T = {far.along[0]:,}, above 0"
            claims.append(Claim.above(says, what, measured(np.log(far.mse[:, -1] / far.mse[:, 0])), 0.0))
        for name in ESTIMATORS[1:]:
            near, both = paper[name], paper[name].usable & paper[PROCEDURES].usable
            says = f"the naive estimator is worse than Procedure 2 at the paper's horizons ({_label(name)})"
            what = f"MSE over that of Procedure 2, geometric mean, above 1; {used(near, both)}"
            claims.append(Claim.above(says, what, mean_ratio(near.mse, paper[PROCEDURES].mse, both), 1.0, ours=True))
        return claims


def _by_estimator(results: Results, study: str) -> dict[str, Curve]:
    """Return the worse arm's curve for each estimator."""
    return {name: results[study].curve(arm="1", estimator=name) for name in ESTIMATORS}


def _label(estimator: str) -> str:
    return "Procedure 2" if estimator == PROCEDURES else f"C₀ = {estimator.partition('=')[2]}"


FIGURES = (
    UCBFigure(), BernoulliPanels(UCBFigure()), SAEFigure(), BernoulliPanels(SAEFigure()), GapDecay(),
    GapDecayBernoulli(), Naive(),
)  # fmt: skip
