"""Beyond the paper: its question for learners with features. Does more exploration leave better estimates?

Nothing here is simulated for a rule without features, so there is no study behind it: learners are played and read
when the figure is drawn, with the same coefficients and contexts at every strength of exploration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.contexts import ContextInstance, LinTS, LinUCB
from unbandit.contexts.posterior import context_posterior
from unbandit.errors import UnbanditError
from unbandit.formatting import minus
from unbandit.paper.claims import Claim, distance
from unbandit.paper.figure import PaperFigure, Results, Size
from unbandit.paper.panels import Series, draw_series, guide, log_log, panels
from unbandit.study.monte_carlo import measured, replicates, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.contexts import LinearRule

FEATURES, ARMS, HORIZON, SIGMA = 3, 5, 200, 0.5
ALPHAS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of LinUCB
SCALES = (0.125, 0.25, 0.5, 1.0, 2.0)  # v of linear Thompson sampling
RUNS = 40  # of each strength
PARTICLES = 300  # of each of four clouds
TOLERANCE = 0.25  # of a slope that is said to be close to -1, as for the paper's own figure

Replicates = NDArray[np.float64]


class Learners(NamedTuple):
    """A rule at several strengths, and what its runs came to: (runs, strengths), NaN where a log was refused."""

    name: str
    symbol: str
    strengths: tuple[float, ...]
    regret: NDArray[np.float64]
    error: NDArray[np.float64]  # squared, summed over coefficients
    angle: NDArray[np.float64]  # between coefficients and estimate, in degrees

    def means(self, values: NDArray[np.float64]) -> Replicates:
        """Return the mean over runs at every strength, as replicates."""
        return replicates(lambda rows: np.nanmean(rows, axis=0), values)

    def slope(self, values: NDArray[np.float64]) -> Replicates:
        """Return the slope of the log of a mean on the log of the strength, as replicates."""
        return slope(np.log(self.strengths), np.log(self.means(values)))

    @property
    def answered(self) -> NDArray[np.float64]:
        """Return the share of logs with an estimate."""
        return np.asarray(np.isfinite(self.error).mean(axis=0))


def played(name: str, symbol: str, rules: tuple[LinearRule, ...], runs: int, seed: int, threads: int) -> Learners:
    """Play every rule with the same coefficients and contexts, and read each of its logs."""
    places = [(run, at) for run in range(runs) for at in range(len(rules))]
    rows = checks.in_threads(lambda run, at: _read(rules[at], run, seed), places, threads)
    table = np.array(rows).reshape(runs, len(rules), 3)
    strengths = tuple(rule.strength for rule in rules)
    return Learners(name, symbol, strengths, table[:, :, 0], table[:, :, 1], table[:, :, 2])


def _read(rule: LinearRule, run: int, seed: int) -> tuple[float, float, float]:
    """Return regret, squared error and angle of one log."""
    generator = np.random.default_rng([seed, run])
    theta = generator.normal(size=FEATURES)
    contexts = generator.normal(size=(HORIZON, ARMS, FEATURES)) / np.sqrt(FEATURES)
    log = rule.demonstrate(ContextInstance(theta, sigma=SIGMA), contexts, seed=seed, first_run=run, threads=1)
    values = contexts @ theta
    regret = float((values.max(axis=1) - values[np.arange(HORIZON), log.chosen]).sum())
    try:
        found = context_posterior(log, rule, sigma=SIGMA, particles=PARTICLES, seed=run, threads=1, check=False)
    except UnbanditError:
        return regret, np.nan, np.nan
    cosine = theta @ found.mean / (np.linalg.norm(theta) * np.linalg.norm(found.mean))
    angle = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return regret, float(np.square(found.mean - theta).sum()), angle


class LinearLearnersFigure(PaperFigure):
    """Exploration, regret and error of learners with features."""

    name = "linear-learners"
    title = "Learners with features: exploration, regret and error"
    section = "not in the paper: its question for learners with features"
    beyond = True

    def learners(self, results: Results) -> tuple[Learners, Learners]:
        """Return both rules with their runs, played once."""
        return results.once("learners", lambda: self._played(results.size, checks.threads(results.threads)))

    def _played(self, size: Size, threads: int) -> tuple[Learners, Learners]:
        runs = size.runs_of(RUNS)
        ucb, thompson = tuple(LinUCB(alpha=each) for each in ALPHAS), tuple(LinTS(v=each) for each in SCALES)
        return (
            played("linucb", "α", ucb, runs, size.seed, threads),
            played("lints", "v", thompson, runs, size.seed, threads),
        )  # fmt: skip

    def series(self, results: Results) -> list[Series]:
        """Return a curve of each rule in every panel."""
        series = list[Series]()
        for each in self.learners(results):
            regret, error, angle = (measured(each.means(values)) for values in (each.regret, each.error, each.angle))
            label, shares = f"{each.name} ({each.symbol})", each.answered
            series.append(Series("a", each.name, each.strengths, regret, label=label))
            series.append(Series("b", each.name, each.strengths, error, shares, label))
            series.append(Series("c", each.name, regret.value, error, shares, self._against_regret(each)))
            series.append(Series("d", each.name, each.strengths, angle, shares, label))
        return series

    def _against_regret(self, each: Learners) -> str:
        fitted = measured(tradeoff(each)).value
        return minus(f"{each.name}, best fit {fitted:.2f}") if np.isfinite(fitted) else each.name

    def draw(self, results: Results) -> Figure:
        """Draw the four panels."""
        figure, axes = panels(4)
        series, strength = self.series(results), "strength of exploration, α or v"
        error = "mean squared error"
        labels = ((strength, "mean regret"), (strength, error), ("mean regret", error), (strength, "angle, degrees"))
        for panel, letter, (x, y) in zip(axes, "abcd", labels, strict=True):
            log_log(panel, x, y)
            draw_series(panel, series, letter)
            if x == strength:
                panel.set_xticks(sorted({*ALPHAS, *SCALES}))
                panel.minorticks_off()
        first = next(each for each in series if each.panel == "c")
        along, heights = np.asarray(first.x, float), np.asarray(first.points.value, float)
        if np.isfinite(heights).all():
            guide(axes[2], along, -1.0, through=(float(along.max()), float(heights.min()) * 0.8), label="slope −1")
        for panel in axes:
            panel.legend(loc="best")
        return figure

    def claims(self, results: Results) -> list[Claim]:
        """Ask what exploration costs and what it leaves."""
        return list(learner_claims(*self.learners(results)))


def tradeoff(each: Learners) -> Replicates:
    """Return the slope of log error on log regret over the strengths, as replicates."""
    return slope(np.log(each.means(each.regret)), np.log(each.means(each.error)))


def learner_claims(ucb: Learners, thompson: Learners) -> Iterator[Claim]:
    """Ask the questions of the figure; the intervals decide."""
    for each in (ucb, thompson):
        name, over = f"({each.name})", f"log {each.symbol}; {len(each.error):,} runs"
        most, least = (f"{each.symbol} = {each.strengths[at]:g}" for at in (-1, 0))
        what = f"slope of log regret on {over}, above 0"
        yield Claim.above(f"(a) more exploration pays more regret {name}", what, measured(each.slope(each.regret)), 0.0)
        regrets = each.means(each.regret)
        what = f"regret at {each.symbol} = {each.strengths[1]:g} over that at {least}, above 1"
        says = f"(a) already the first step up from the least exploration costs regret {name}"
        yield Claim.above(says, what, measured(regrets[:, 1] / regrets[:, 0]), 1.0)
        what = f"slope of log MSE on {over}, below 0"
        says = f"(b) more exploration leaves a smaller error {name}"
        yield Claim.below(says, what, measured(each.slope(each.error)), 0.0)
        errors = each.means(each.error)
        what = f"MSE at {most} over that at {least}, below a half"
        says = f"(b) the most exploration at least halves the error of the least {name}"
        yield Claim.below(says, what, measured(errors[:, -1] / errors[:, 0]), 0.5)
        what = f"slope of log MSE on log regret over {len(each.strengths)} strengths, within {TOLERANCE} of −1"
        says = f"(c) the slope of error against regret is close to −1 {name}"
        yield Claim.within(says, what, measured(tradeoff(each)), (-1 - TOLERANCE, -1 + TOLERANCE))
        what = f"slope of the log of the mean angle on {over}, below 0"
        says = f"(d) more exploration shows the direction better {name}"
        yield Claim.below(says, what, measured(each.slope(each.angle)), 0.0)
    regret = ucb.means(ucb.regret), thompson.means(thompson.regret)
    error = ucb.means(ucb.error), thompson.means(thompson.error)
    what = "MSE of lints over that of linucb at equal regret, above 1; one common slope"
    says = "(c) at equal regret linucb leaves a smaller error than lints"
    yield Claim.above(says, what, measured(distance(regret, error)), 1.0)


FIGURES = (LinearLearnersFigure(),)
