"""The paper's sketches: exploration over time, intervals around the switching round, exploration against estimation.

The first two need logs and hidden rewards, which studies do not keep, so they replay a few runs of a small bandit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unbandit.datasets.registry import two_armed
from unbandit.demonstrators import SAE, UCB, Demonstrator
from unbandit.kernels.tally import read_epochs
from unbandit.paper.claims import Claim
from unbandit.paper.figure import PaperFigure, Results, Size
from unbandit.paper.panels import LINES, curve, guide, log_log, panels, points, thousands
from unbandit.paper.replay import PlayedRun, hidden_means, play, runs_played
from unbandit.plots import INK
from unbandit.study import Study
from unbandit.study.monte_carlo import Measured, measured, replicates, share, slope

HORIZON = 5_000
RULES: dict[str, SAE | UCB] = {"UCB": UCB(alpha=0.25), "SAE": SAE(alpha=0.25)}

BINS = 40
"""Stretches of rounds of the exploration sketch."""

LATE, QUARTER = BINS // 10, BINS // 4
BEFORE = 100
"""Rounds up to an arm's last pull in which its share is taken."""

AROUND = 150
"""Rounds drawn on either side of the switching round."""

SMALL = 0.2
"""Share of the estimate's whole error that the formula may miss and still be called about right."""

FORMULAS = {"SAE": "2C(n)", "UCB": "C(n₂) − C(n₁)"}
SUBTRACTED = {"SAE": "2C(n)", "UCB": "C(n₂) + C(n₁)"}
"""What is subtracted from the difference of the sample means, sign included."""

ALPHAS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


class SketchExploration(PaperFigure):
    """How often each rule pulls the worse of two arms: both explore less and less, one smoothly, one all at once."""

    name = "sketch-exploration"
    title = "Exploration falls with time"
    section = "sketches (a) and (b) of the introduction"
    caption = (
        "The share of rounds that went to the worse of two arms (means 1 and 1/2, unit variance, alpha 0.25, T = "
        "5,000), in 40 stretches of 125 rounds: the mean over all runs with a band of one standard error, and one run,"
        " the first, in grey. (a) UCB. (b) SAE, which pulls both in turn until it drops one for good, in every run at "
        "another time. At most 1,000 runs are looked into."
    )
    alt = (
        "Two panels of the share of rounds on the worse arm against the round, the mean of all runs and one run in "
        "grey, for UCB and for SAE."
    )

    def draw(self, results: Results) -> Figure:
        """Draw both rules side by side."""
        figure, axes = panels(2)
        for panel, line, rule in zip(axes, LINES, RULES, strict=False):
            shares = _shares(rule, results)[0]
            panel.stairs(shares[0], np.linspace(0, HORIZON, BINS + 1), color="#b9b9b9", linewidth=0.9, label="one run")
            label = f"{rule}, mean of {len(shares):,} runs"
            curve(panel, _middles(), measured(_means(shares)), line, label, mark_every=3)
            panel.set(xlabel="round", ylabel="share of rounds on the worse arm", ylim=(-0.02, 0.65), xlim=(0, HORIZON))
            thousands(panel.xaxis)
            panel.legend(loc="upper right")
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return the share in every stretch of rounds."""
        drawn = zip("ab", RULES, strict=True)
        return pl.concat(
            points(panel, rule, _middles(), measured(_means(_shares(rule, results)[0]))) for panel, rule in drawn
        )

    def claims(self, results: Results) -> list[Claim]:
        """Compare the first quarter with the last, the last tenth with nothing, and the rules with each other."""
        shares = {rule: _shares(rule, results)[0] for rule in RULES}
        late = {rule: _tried_late(each) for rule, each in shares.items()}
        tried = "share of runs that pull the worse arm in the last tenth of the rounds"
        stops = [_shares(rule, results)[1] for rule in ("SAE", "UCB")]
        return [
            *(
                Claim.below(
                    f"{rule} explores less as time goes on",
                    "share of rounds on the worse arm, last quarter less first quarter; below 0",
                    measured(replicates(_last_less_first_quarter, each)),
                    0.0,
                )
                for rule, each in shares.items()
            ),
            Claim.above("UCB comes back to bad arms until the end", f"{tried}; above 1/2", late["UCB"], 0.5),
            Claim.below("SAE gives a bad arm up for good", f"{tried}; below 1/2", late["SAE"], 0.5),
            Claim.above(
                "SAE stops exploring all at once, UCB little by little",
                f"share of the worse arm in the {BEFORE} rounds up to its last pull, SAE less UCB; above 0",
                measured(replicates(lambda sae, ucb: sae.mean() - ucb.mean(), *stops)),
                0.0,
            ),
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


def _middles() -> NDArray[np.float64]:
    width = HORIZON / BINS
    return np.asarray((np.arange(BINS) + 0.5) * width)


def _means(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return replicates(lambda kept: kept.mean(axis=0), shares)


def _last_less_first_quarter(shares: NDArray[np.float64]) -> float:
    return float(shares[:, -QUARTER:].mean() - shares[:, :QUARTER].mean())


def _tried_late(shares: NDArray[np.float64]) -> Measured:
    return share(int((shares[:, -LATE:] > 0).any(axis=1).sum()), len(shares))


SWITCH_COLUMNS = {
    **dict.fromkeys(("run", "switching_round", "pulls_dropped", "pulls_kept"), pl.Int64),
    **dict.fromkeys(("hidden_difference", "estimate", "gap"), pl.Float64),
}


@dataclass(frozen=True)
class Switch:
    """What happened around the switching round of a run.

    Attributes
    ----------
    run
        Its number.
    kept, dropped, gap
        The places of the two arms, and the true gap between them.
    before, after
        Rounds played when the dropped arm was last worth a pull, and when it no longer was.
    pulls, means
        After every round, from round 0 on, of both arms: arrays of (horizon + 1, 2).
    estimate
        The procedure's estimate of the gap.
    """

    run: int
    kept: int
    dropped: int
    gap: float
    before: int
    after: int
    pulls: NDArray[np.int64]
    means: NDArray[np.float64]
    estimate: float

    @classmethod
    def of(cls, played: PlayedRun, dropped: int, *around: Any) -> Switch:
        """Fill in what follows from the run and the arm that it gave up."""
        gap = float(played.instance.means[1 - dropped] - played.instance.means[dropped])
        return cls(played.run, 1 - dropped, dropped, gap, *around)

    @property
    def row(self) -> tuple[float, ...]:
        """Return the run's numbers, in the order of `SWITCH_COLUMNS`."""
        pulls, means = self.pulls[self.after].tolist(), self.means[self.after].tolist()
        difference = means[self.kept] - means[self.dropped]
        return self.run, self.after, pulls[self.dropped], pulls[self.kept], difference, self.estimate, self.gap


class SketchSwitching(PaperFigure):
    """Why the procedures work: at the switching round two confidence bounds were all but equal."""

    name = "sketch-switching"
    title = "Confidence intervals around the switching round"
    section = "the sketches beside Procedures 1 and 2"
    caption = (
        "One run of each rule, the first that gave an arm up (two arms, means 1 and 1/2, unit variance, alpha 0.25, T "
        "= 5,000), with its hidden rewards played again. (a, b) Sample means and confidence intervals of both arms "
        "just before and just after the last pull of the arm given up. SAE gives it up when its interval falls clear "
        "of the other one, so the sample means are 2C(n) apart; UCB when its upper end falls below the other one, so "
        "they are C(n₂) − C(n₁) apart. (c, d) The same, closely: the difference of the sample means less that formula,"
        " around the switching round. The estimate is the formula at that round."
    )
    alt = (
        "Four panels. The upper two show the confidence intervals of two arms before and after the switching round, "
        "for SAE and for UCB; the lower two the difference of the sample means less the formula, round by round, with "
        "the switching round marked."
    )

    def draw(self, results: Results) -> Figure:
        """Draw the intervals above, the crossing below."""
        figure, axes = panels(4)
        for at, rule in enumerate(FORMULAS):
            shown = _switches(rule, results)[0]
            if shown is None:
                axes[at].text(0.5, 0.5, f"no run of {rule} gave an arm up", ha="center", transform=axes[at].transAxes)
                continue
            _draw_intervals(axes[at], rule, shown)
            _draw_crossing(axes[at + 2], rule, shown)
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
            what = (
                "root mean square of (hidden difference less formula), as a share of the estimate's whole error, over "
                f"the {len(rows):,} of {runs_played(results.size):,} runs with an estimate; below {SMALL:g}"
            )
            says = f"when {rule} gives an arm up, its sample means are about {formula} apart"
            claims.append(Claim.below(says, what, measured(replicates(_missed, *columns)), SMALL))
        return claims


def _switches(rule: str, results: Results) -> tuple[Switch | None, pl.DataFrame]:
    """Return the first run that gave an arm up, whole, and the numbers of all that did."""
    return results.once(rule, lambda: _switched(rule, results.size))


def _switched(rule: str, size: Size) -> tuple[Switch | None, pl.DataFrame]:
    first, rows = None, []
    switch = {"SAE": _elimination, "UCB": _last_return}[rule]
    for played in play(RULES[rule], two_armed(), HORIZON, runs=runs_played(size), seed=size.seed):
        found = switch(played, size.seed)
        if found is not None:
            first = first or found
            rows.append(found.row)
    return first, pl.DataFrame(rows, schema=SWITCH_COLUMNS, orient="row")


def _elimination(played: PlayedRun, seed: int) -> Switch | None:
    """Find the test that SAE's eliminated arm failed (Procedure 1); None while both are active."""
    passed, _ = read_epochs(played.actions, 2)
    if not passed.any():
        return None
    dropped = int(passed.argmax())
    pulls, means = hidden_means(played, seed)
    epochs = int(pulls[-1, dropped])
    estimate = 2 * float(_width("SAE", epochs))
    return Switch.of(played, dropped, 2 * (epochs - 1), 2 * epochs, pulls, means, estimate)


def _last_return(played: PlayedRun, seed: int) -> Switch | None:
    """Find UCB's last return to the less-pulled arm from which it came back (Procedure 2); None if there is none."""
    pulls, means = hidden_means(played, seed)
    kept = int(pulls[-1].argmax())
    last_of_kept = int(np.flatnonzero(played.actions == kept)[-1])
    returns = np.flatnonzero(played.actions[:last_of_kept] != kept)
    if returns.size < 2 or pulls[returns[-1], kept] == 0:
        return None
    at = int(returns[-1])
    estimate = float(_width("UCB", pulls[at + 1, 1 - kept]) - _width("UCB", pulls[at + 1, kept]))
    return Switch.of(played, 1 - kept, at, at + 1, pulls, means, estimate)


def _width(rule: str, pulls: NDArray[np.int64] | np.int64 | int) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return RULES[rule].width(np.asarray(pulls, dtype=np.float64), HORIZON)


def _missed(difference: NDArray[np.float64], estimate: NDArray[np.float64], gap: NDArray[np.float64]) -> float:
    if difference.size == 0:
        return float("nan")
    return float(np.sqrt(np.mean((difference - estimate) ** 2) / np.mean((estimate - gap) ** 2)))


def _draw_intervals(axes: Axes, rule: str, switch: Switch) -> None:
    """Draw both arms' intervals before and after; a dotted line shows the bounds that meet."""
    for place, moment in enumerate((switch.before, switch.after)):
        for shift, line, arm, label in (
            (-0.16, LINES[0], switch.kept, "the arm kept"),
            (0.16, LINES[1], switch.dropped, "the arm given up"),
        ):
            mean, width = switch.means[moment, arm], float(_width(rule, switch.pulls[moment, arm]))
            axes.errorbar(
                [place + shift], [mean], yerr=[width], color=line.colour, marker=line.marker, capsize=6,
                linewidth=1.6, label=label if place == 0 else None,
            )  # fmt: skip
        dropped = switch.means[moment, switch.dropped] + float(_width(rule, switch.pulls[moment, switch.dropped]))
        axes.plot([place - 0.35, place + 0.35], [dropped] * 2, color=INK, linewidth=0.8, linestyle=":")
    counts = [switch.pulls[moment, [switch.kept, switch.dropped]] for moment in (switch.before, switch.after)]
    names = ("before the last pull", "after it")
    ticks = [f"{name}\nn₁ = {one:,}\nn₂ = {two:,}" for name, (one, two) in zip(names, counts, strict=True)]
    axes.set_xticks([0, 1], ticks)
    axes.set(xlim=(-0.6, 1.6), ylabel="sample mean ± C(n)")
    axes.set_title(f"{axes.get_title(loc='left')} {rule}, run {switch.run}", loc="left", fontweight="bold")
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.25)
    axes.legend(loc="upper center", ncols=2, handlelength=1.2, columnspacing=1.2)


def _draw_crossing(axes: Axes, rule: str, switch: Switch) -> None:
    """Draw the hidden difference of the sample means less the formula, around the switching round."""
    if rule == "SAE":
        rounds = np.arange(max(2, switch.after - 2 * AROUND), switch.after + 1, 2)
        formula = 2 * _width(rule, switch.pulls[rounds, switch.dropped])
    else:
        rounds = np.arange(max(2, switch.after - AROUND), min(HORIZON, switch.after + AROUND) + 1)
        formula = _width(rule, switch.pulls[rounds, switch.dropped]) - _width(rule, switch.pulls[rounds, switch.kept])
    difference = switch.means[rounds, switch.kept] - switch.means[rounds, switch.dropped]
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.plot(rounds, difference - formula, color=LINES[2].colour, linewidth=1.1)
    here = int(np.flatnonzero(rounds == switch.after)[0])
    axes.plot([switch.after], [(difference - formula)[here]], "o", color=LINES[1].colour)
    axes.axvline(switch.after, color=LINES[1].colour, linewidth=0.8, linestyle=":", label=f"τ = {switch.after:,}")
    axes.set(xlabel="round", ylabel=f"difference of means\n− {SUBTRACTED[rule]}")
    thousands(axes.xaxis)
    axes.legend(loc="best")


class SketchTradeoff(PaperFigure):
    """The error of the estimate against the regret, one point per alpha."""

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
        return [Claim.below("a demonstrator that explores more is easier to learn from", what, fitted, 0.0)]


def _of(results: Results, name: str) -> NDArray[np.float64]:
    """Return one quantity's replicates over the alphas: an array of (folds + 1, alphas)."""
    folds, instance = results["alphas"], two_armed()
    worse = instance.arms[1]
    curves = [folds.curve(instance=instance.name, rule=str(UCB(alpha=alpha)), arm=worse) for alpha in ALPHAS]
    return np.concatenate([getattr(each, name) for each in curves], axis=1)


FIGURES = (SketchExploration(), SketchSwitching(), SketchTradeoff())
