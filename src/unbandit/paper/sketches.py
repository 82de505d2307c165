"""The paper's sketches: exploration over time, intervals around the switching round, exploration against estimation.

The first two need logs and hidden rewards, which studies do not keep, so they replay a few runs of a small bandit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unbandit.datasets import two_armed
from unbandit.demonstrators import SAE, UCB, Demonstrator
from unbandit.estimators import estimate
from unbandit.estimators.switching_moment import switching_rounds
from unbandit.instance import Instance
from unbandit.log import ActionLog
from unbandit.paper.claims import Claim
from unbandit.paper.figure import PROCEDURES, PaperFigure, Results, Size
from unbandit.paper.panels import LINES, Series, guide, log_log, panels
from unbandit.plots import INK
from unbandit.study import Study
from unbandit.study.monte_carlo import measured, replicates, share, slope
from unbandit.tape import Tape

MOST_RUNS = 1_000  # most runs to play: logs are kept here, and rewards replayed one run at a time
BLOCK = 200  # runs whose actions are held at a time

HORIZON = 5_000
RULES: dict[str, SAE | UCB] = {"UCB": UCB(alpha=0.25), "SAE": SAE(alpha=0.25)}

BINS = 40  # stretches of rounds of the exploration sketch

LATE, QUARTER = BINS // 10, BINS // 4
BEFORE = 100  # rounds up to an arm's last pull in which its share is taken
AROUND = 150  # rounds drawn on either side of the switching round
SMALL = 0.2  # share of the estimate's whole error that the formula may miss and still be called about right

FORMULAS = {"SAE": "2C(n)", "UCB": "C(n₂) − C(n₁)"}
SUBTRACTED = {"SAE": "2C(n)", "UCB": "C(n₂) + C(n₁)"}
"""What is subtracted from the difference of the sample means, sign included."""

ALPHAS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class PlayedRun:
    """One run of a two-armed bandit: its arms in the order of this run (shuffled in every run), number and actions."""

    instance: Instance
    run: int
    actions: NDArray[Any]

    @property
    def worse(self) -> int:
        """Return the place of the arm with the smaller mean."""
        return int(self.instance.means.argmin())

    def hidden_means(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return both arms' pulls and sample means after every round, from round 0 on: arrays of (horizon + 1, 2).

        The rewards are those that the demonstrator saw; the observer never does. A mean of no rewards is 0.
        """
        horizon = self.actions.size
        pulls, means = np.zeros((horizon + 1, 2), np.int64), np.zeros((horizon + 1, 2))
        for arm in (0, 1):
            pulls[1:, arm] = np.cumsum(self.actions == arm)
            count = np.arange(1, pulls[-1, arm] + 1)
            rewards = Tape(seed).reward(self.instance, self.run, arm, count) if count.size else np.empty(0)
            running = np.concatenate([[0.0], np.cumsum(rewards) / count])
            means[:, arm] = running[pulls[:, arm]]
        return pulls, means


def runs_played(size: Size) -> int:
    """Return how many runs a sketch plays: 300, or as many as were asked for, up to `MOST_RUNS`."""
    return min(size.runs_of(100, 300), MOST_RUNS)


def play(rule: Demonstrator, instance: Instance, horizon: int, *, runs: int, seed: int) -> Iterator[PlayedRun]:
    """Play a rule on two arms, listed in a different order in every run."""
    listed = (instance, instance.reordered([1, 0]))
    for first in range(0, runs, BLOCK):
        count = min(BLOCK, runs - first)
        logs = [rule.demonstrate(each, horizon, runs=count, seed=seed, first_run=first) for each in listed]
        blocks = [np.asarray(log.actions).reshape(count, horizon) for log in logs]
        for at, order in enumerate(Tape(seed).orders(np.arange(first, first + count), 2)):
            which = int(order[0])
            yield PlayedRun(listed[which], first + at, blocks[which][at])


class SketchExploration(PaperFigure):
    """How often each rule pulls the worse of two arms: both explore less and less, one smoothly, one all at once."""

    name = "sketch-exploration"
    title = "Exploration falls with time"
    section = "Figure 1 of the paper, panels (a) and (b), which are sketches there"

    def series(self, results: Results) -> list[Series]:
        middles, series = (np.arange(BINS) + 0.5) * (HORIZON / BINS), list[Series]()
        for panel, rule in zip("ab", RULES, strict=True):
            shares = _shares(rule, results)[0]
            means = measured(replicates(lambda kept: kept.mean(axis=0), shares))
            series.append(Series(panel, rule, middles, means, label=f"{rule}, mean of {len(shares):,} runs"))
        return series

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(2)
        for panel, line, each in zip(axes, LINES, self.series(results), strict=False):
            first = _shares(each.name, results)[0][0]
            panel.stairs(first, np.linspace(0, HORIZON, BINS + 1), color="#b9b9b9", linewidth=0.9, label="one run")
            each.draw(panel, line, mark_every=3)
            panel.set(xlabel="round", ylabel="share of rounds on the worse arm", ylim=(-0.02, 0.65), xlim=(0, HORIZON))
            panel.xaxis.set_major_formatter("{x:,.0f}")
            panel.legend(loc="upper right")
        return figure

    def claims(self, results: Results) -> list[Claim]:
        claims, late = [], {}
        for rule in RULES:
            shares = _shares(rule, results)[0]
            what = "share of rounds on the worse arm, last quarter less first quarter; below 0"
            change = measured(replicates(lambda kept: kept[:, -QUARTER:].mean() - kept[:, :QUARTER].mean(), shares))
            claims.append(Claim.below(f"{rule} explores less as time goes on", what, change, 0.0))
            late[rule] = share(int((shares[:, -LATE:] > 0).any(axis=1).sum()), len(shares))
        tried = "share of runs that pull the worse arm in the last tenth of the rounds"
        what = f"share of the worse arm in the {BEFORE} rounds up to its last pull, SAE less UCB; above 0"
        stops = [_shares(rule, results)[1] for rule in ("SAE", "UCB")]
        sooner = measured(replicates(lambda sae, ucb: sae.mean() - ucb.mean(), *stops))
        return [
            *claims,
            Claim.above("UCB comes back to bad arms until the end", f"{tried}; above 1/2", late["UCB"], 0.5),
            Claim.below("SAE gives a bad arm up for good", f"{tried}; below 1/2", late["SAE"], 0.5),
            Claim.above("SAE stops exploring all at once, UCB little by little", what, sooner, 0.0),
        ]


def _shares(rule: str, results: Results) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each run's share on the worse arm: in every stretch of rounds, and just before its last pull."""
    return results.once(rule, lambda: _explored(RULES[rule], results.size))


def _explored(rule: Demonstrator, size: Size) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    runs = runs_played(size)
    shares, stops = np.empty((runs, BINS)), np.empty(runs)
    for played in play(rule, two_armed(), HORIZON, runs=runs, seed=size.seed):
        worse = played.actions == played.worse
        shares[played.run] = worse.reshape(BINS, -1).mean(axis=1)
        last = int(np.flatnonzero(worse)[-1]) + 1
        stops[played.run] = worse[max(0, last - BEFORE) : last].mean()
    return shares, stops


SWITCH_COLUMNS = {
    **dict.fromkeys(("run", "switching_round", "pulls_dropped", "pulls_kept"), pl.Int64),
    **dict.fromkeys(("hidden_difference", "estimate", "gap"), pl.Float64),
}


@dataclass(frozen=True)
class Switch:
    """What happened around the switching round of a run."""

    played: PlayedRun
    dropped: int  # the place of the arm that it gave up
    before: int  # rounds played when that arm was last worth a pull
    after: int  # rounds played when it no longer was
    pulls: NDArray[np.int64]  # of both arms after every round, from round 0 on: (horizon + 1, 2)
    means: NDArray[np.float64]  # likewise
    estimate: float  # of the gap, by the rule's procedure

    @property
    def kept(self) -> int:
        """Return the place of the other arm."""
        return 1 - self.dropped

    @property
    def row(self) -> tuple[float, ...]:
        """Return the run's numbers, in the order of `SWITCH_COLUMNS`."""
        pulls, means = self.pulls[self.after].tolist(), self.means[self.after]
        difference, gap = (float(of[self.kept] - of[self.dropped]) for of in (means, self.played.instance.means))
        return self.played.run, self.after, pulls[self.dropped], pulls[self.kept], difference, self.estimate, gap


class SketchSwitching(PaperFigure):
    """Why the procedures work: at the switching round two confidence bounds were all but equal."""

    name = "sketch-switching"
    title = "Confidence intervals around the switching round"
    section = "Figures 2 and 3 of the paper, the sketches beside Procedures 1 and 2"

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(4)
        for at, rule in enumerate(FORMULAS):
            shown = _switches(rule, results)[0]
            if shown is None:
                axes[at].text(0.5, 0.5, f"no run of {rule} gave an arm up", ha="center", transform=axes[at].transAxes)
                continue
            with np.errstate(divide="ignore"):
                widths = RULES[rule].width(shown.pulls.astype(np.float64), HORIZON)
            _draw_intervals(axes[at], rule, shown, widths)
            _draw_crossing(axes[at + 2], rule, shown, widths)
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return, for every run, the counts and the hidden difference at its switching round, estimate and truth."""
        return pl.concat(_switches(rule, results)[1].select(pl.lit(rule).alias("rule"), pl.all()) for rule in FORMULAS)

    def claims(self, results: Results) -> list[Claim]:
        """Compare what the formula misses of the hidden difference with the estimate's whole error."""
        claims = []
        for rule, formula in FORMULAS.items():
            rows = _switches(rule, results)[1]
            columns = [rows[name].to_numpy() for name in ("hidden_difference", "estimate", "gap")]
            says = f"when {rule} gives an arm up, its sample means are about {formula} apart"
            what = (
                "root mean square of (hidden difference less formula), as a share of the estimate's whole error, over "
                f"the {len(rows):,} of {runs_played(results.size):,} runs with an estimate; below {SMALL:g}"
            )
            claims.append(Claim.below(says, what, measured(replicates(_missed, *columns)), SMALL))
        return claims


def _switches(rule: str, results: Results) -> tuple[Switch | None, pl.DataFrame]:
    """Return the first run that gave an arm up, whole, and the numbers of all that did."""
    return results.once(rule, lambda: _switched(rule, results.size))


def _switched(rule: str, size: Size) -> tuple[Switch | None, pl.DataFrame]:
    runs = play(RULES[rule], two_armed(), HORIZON, runs=runs_played(size), seed=size.seed)
    first, rows = None, []
    for switch in filter(None, (_switch(rule, played, size.seed) for played in runs)):
        first = first or switch
        rows.append(switch.row)
    return first, pl.DataFrame(rows, schema=SWITCH_COLUMNS, orient="row")


def _switch(rule: str, played: PlayedRun, seed: int) -> Switch | None:
    """Find the arm that a run gave up, when, and what the rule's procedure estimates; None if it gave none up."""
    log = ActionLog.from_codes(played.actions[None], played.instance.arms)
    gaps = {
        row.arm: row.gap
        for row in estimate(log, RULES[rule], sigma=1.0, method=PROCEDURES, check=False)
        if row.verdict == "estimated"
    }
    for arm, last in switching_rounds(log, RULES[rule]).items():
        if (gap := gaps.get(arm)) is not None:
            step = 2 if rule == "SAE" else 1  # SAE tests both arms when it has pulled both
            after = -(-last // step) * step
            return Switch(played, log.arms.index(arm), after - step, after, *played.hidden_means(seed), gap)
    return None


def _missed(difference: NDArray[np.float64], estimate: NDArray[np.float64], gap: NDArray[np.float64]) -> float:
    if difference.size == 0:
        return float("nan")
    return float(np.sqrt(np.mean((difference - estimate) ** 2) / np.mean((estimate - gap) ** 2)))


def _draw_intervals(axes: Axes, rule: str, switch: Switch, widths: NDArray[np.float64]) -> None:
    """Draw both arms' intervals before and after; a dotted line shows the bounds that meet."""
    arms = ((-0.16, LINES[0], switch.kept, "the arm kept"), (0.16, LINES[1], switch.dropped, "the arm given up"))
    ticks = []
    for place, (name, at) in enumerate((("before the last pull", switch.before), ("after it", switch.after))):
        for shift, line, arm, label in arms:
            axes.errorbar([place + shift], switch.means[at, [arm]], widths[at, [arm]], color=line.colour,
                          marker=line.marker, capsize=6, linewidth=1.6, label=None if place else label)  # fmt: skip
        upper = switch.means[at, switch.dropped] + widths[at, switch.dropped]
        axes.plot([place - 0.35, place + 0.35], [upper] * 2, color=INK, linewidth=0.8, linestyle=":")
        ticks.append(f"{name}\nn₁ = {switch.pulls[at, switch.kept]:,}\nn₂ = {switch.pulls[at, switch.dropped]:,}")
    axes.set_xticks([0, 1], ticks)
    axes.set(xlim=(-0.6, 1.6), ylabel="sample mean ± C(n)")
    axes.set_title(f"{axes.get_title(loc='left')} {rule}, run {switch.played.run}", loc="left", fontweight="bold")
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.25)
    axes.legend(loc="upper center", ncols=2, handlelength=1.2, columnspacing=1.2)


def _draw_crossing(axes: Axes, rule: str, switch: Switch, widths: NDArray[np.float64]) -> None:
    """Draw the hidden difference of the sample means less the formula, around the switching round."""
    if rule == "SAE":
        rounds = np.arange(max(2, switch.after - 2 * AROUND), switch.after + 1, 2)
        formula = 2 * widths[rounds, switch.dropped]
    else:
        rounds = np.arange(max(2, switch.after - AROUND), min(HORIZON, switch.after + AROUND) + 1)
        formula = widths[rounds, switch.dropped] - widths[rounds, switch.kept]
    difference = switch.means[rounds, switch.kept] - switch.means[rounds, switch.dropped]
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.plot(rounds, difference - formula, color=LINES[2].colour, linewidth=1.1)
    axes.plot([switch.after], (difference - formula)[rounds == switch.after], "o", color=LINES[1].colour)
    axes.axvline(switch.after, color=LINES[1].colour, linewidth=0.8, linestyle=":", label=f"τ = {switch.after:,}")
    axes.set(xlabel="round", ylabel=f"difference of means\n− {SUBTRACTED[rule]}")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="best")


class SketchTradeoff(PaperFigure):
    """The error of the estimate against the regret, one point per alpha."""

    name = "sketch-tradeoff"
    title = "The tradeoff between exploration and estimation"
    section = "Figure 1 of the paper, panel (c), which is a sketch there"

    def studies(self, size: Size) -> dict[str, Study]:
        rules = [UCB(alpha=alpha) for alpha in ALPHAS]
        return {
            "alphas": Study(
                [two_armed()], rules, [HORIZON], size.runs_of(100, 1_000, synthetic=True), size.seed, PROCEDURES
            )
        }

    def series(self, results: Results) -> list[Series]:
        regret, mse = measured(_of(results, "regret")), measured(_of(results, "mse"))
        return [Series("", "UCB", regret.value, mse, label="UCB, one point an alpha")]

    def draw(self, results: Results) -> Figure:
        figure, (axes,) = panels(1, width=4.8, height=3.4)
        (series,) = self.series(results)
        regret, mse = measured(_of(results, "regret")), series.points.value
        log_log(axes, "mean regret", "mean squared error of the gap")
        series.draw(axes, LINES[0])
        axes.errorbar(regret.value, mse, xerr=regret.error, fmt="none", ecolor=LINES[0].colour, elinewidth=0.9)
        for place, (alpha, x, y) in enumerate(zip(ALPHAS, regret.value, mse, strict=True)):
            aside = (0, 8) if place % 2 else (0, -15)
            axes.annotate(f"{alpha:g}", (x, y), xytext=aside, textcoords="offset points", fontsize=8, ha="center")
        middle = len(ALPHAS) // 2
        guide(axes, regret.value, -1.0, through=(regret.value[middle], mse[middle]), label="slope −1")
        axes.legend()
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return regret and error at every alpha."""
        error = measured(_of(results, "regret")).error
        return super().table(results).with_columns(pl.Series("alpha", ALPHAS), pl.Series("x_error", error))

    def claims(self, results: Results) -> list[Claim]:
        fitted = measured(slope(np.log(_of(results, "regret")), np.log(_of(results, "mse"))))
        what = "slope of log mean squared error against log mean regret over the eight alphas; below 0"
        return [Claim.below("a demonstrator that explores more is easier to learn from", what, fitted, 0.0)]


def _of(results: Results, name: str) -> NDArray[np.float64]:
    """Return one quantity's replicates over the alphas: an array of (folds + 1, alphas)."""
    curves = [results["alphas"].curve(rule=UCB(alpha=alpha), arm="1") for alpha in ALPHAS]
    return np.concatenate([getattr(each, name) for each in curves], axis=1)


FIGURES = (SketchExploration(), SketchSwitching(), SketchTradeoff())
