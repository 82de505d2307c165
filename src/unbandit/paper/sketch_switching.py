"""The confidence intervals around the switching round: what the two procedures read off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.datasets.registry import two_armed
from unbandit.demonstrators import SAE, UCB
from unbandit.kernels.tally import read_epochs
from unbandit.paper.claim import Claim, below
from unbandit.paper.drawing import LINES, panels, thousands
from unbandit.paper.picture import Picture, Results, Size
from unbandit.paper.replay import Played, hidden_means, play, replicates, runs_played
from unbandit.plots import INK
from unbandit.study.monte_carlo import measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "SketchSwitching"]

HORIZON = 5_000
AROUND = 150
SMALL = 0.2
RULES: dict[str, SAE | UCB] = {"SAE": SAE(alpha=0.25), "UCB": UCB(alpha=0.25)}
FORMULAS = {"SAE": "2C(n)", "UCB": "C(n₂) − C(n₁)"}
LESS = {"SAE": "2C(n)", "UCB": "C(n₂) + C(n₁)"}
"""What is taken off the difference of the sample means, sign and all."""


@dataclass(frozen=True)
class Switch:
    """Hold what happened around a run's switching round.

    Attributes
    ----------
    run
        Its number.
    kept, dropped
        The places of the two arms.
    before, after
        Rounds played when the dropped arm was last found worth a pull, and when it was found so no more.
    pulls, means
        After every round, from round 0 on, of both arms: arrays of (horizon + 1, 2).
    estimate, gap
        What the procedure says of the gap, and the truth.
    """

    run: int
    kept: int
    dropped: int
    before: int
    after: int
    pulls: NDArray[np.int64]
    means: NDArray[np.float64]
    estimate: float
    gap: float

    @property
    def row(self) -> dict[str, float]:
        """Return the run's numbers, without the record of its rounds."""
        own, other = (self.after, self.dropped), (self.after, self.kept)
        return {
            "run": self.run,
            "switching_round": self.after,
            "pulls_dropped": int(self.pulls[own]),
            "pulls_kept": int(self.pulls[other]),
            "hidden_difference": float(self.means[other] - self.means[own]),
            "estimate": self.estimate,
            "gap": self.gap,
        }


class SketchSwitching(Picture):
    """Show why the procedures work: at the switching round two confidence bounds were all but equal."""

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
        for at, rule in enumerate(RULES):
            shown = _switches(rule, results)[0]
            if shown is None:
                axes[at].text(0.5, 0.5, f"no run of {rule} gave an arm up", ha="center", transform=axes[at].transAxes)
                continue
            _draw_intervals(axes[at], rule, shown)
            _draw_crossing(axes[at + 2], rule, shown)
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return, for every run, the counts and the hidden difference at its switching round, estimate and truth."""
        return pl.concat(_switches(rule, results)[1].select(pl.lit(rule).alias("rule"), pl.all()) for rule in RULES)

    def claims(self, results: Results) -> list[Claim]:
        """Compare what the formula misses of the hidden difference with the estimate's whole error."""
        found = []
        for rule, formula in FORMULAS.items():
            rows = _switches(rule, results)[1]
            columns = [rows[name].to_numpy() for name in ("hidden_difference", "estimate", "gap")]
            share = measured(replicates(_missed, *columns))
            says = f"when {rule} gives an arm up, its sample means are about {formula} apart"
            what = (
                "root mean square of (hidden difference less formula), as a share of the estimate's whole error, over "
                f"the {len(rows):,} of {runs_played(results.size):,} runs with an estimate; below {SMALL:g}"
            )
            found.append(Claim(says, what, share, *below(share, SMALL)))
        return found


def _switches(rule: str, results: Results) -> tuple[Switch | None, pl.DataFrame]:
    """Return the first run that gave an arm up, whole, and the numbers of all that did."""
    return results.once(rule, lambda: _played(rule, results.size))


def _played(rule: str, size: Size) -> tuple[Switch | None, pl.DataFrame]:
    first, rows = None, []
    switch = {"SAE": _elimination, "UCB": _last_return}[rule]
    for played in play(RULES[rule], two_armed(), HORIZON, runs=runs_played(size), seed=size.seed):
        found = switch(played, size.seed)
        if found is not None:
            first = first or found
            rows.append(found.row)
    return first, pl.DataFrame(rows, schema=_SCHEMA)


def _elimination(played: Played, seed: int) -> Switch | None:
    """Find the test that SAE's eliminated arm failed (Procedure 1); None while both are active."""
    passed, _ = read_epochs(played.actions, np.arange(2), 2)
    if not passed.any():
        return None
    dropped = int(passed.argmax())
    pulls, means = hidden_means(played, seed)
    epochs = int(pulls[-1, dropped])
    estimate = 2 * float(_width("SAE", epochs))
    return _switch(played, dropped, (2 * (epochs - 1), 2 * epochs), pulls, means, estimate)


def _last_return(played: Played, seed: int) -> Switch | None:
    """Find UCB's last return to the less-pulled arm from which it came back (Procedure 2); None if there is none."""
    pulls, means = hidden_means(played, seed)
    kept = int(pulls[-1].argmax())
    last_of_kept = int(np.flatnonzero(played.actions == kept)[-1])
    returns = np.flatnonzero(played.actions[:last_of_kept] != kept)
    if returns.size < 2 or pulls[returns[-1], kept] == 0:
        return None
    at = int(returns[-1])
    estimate = float(_width("UCB", pulls[at + 1, 1 - kept]) - _width("UCB", pulls[at + 1, kept]))
    return _switch(played, 1 - kept, (at, at + 1), pulls, means, estimate)


def _switch(
    played: Played, dropped: int, moments: tuple[int, int], pulls: NDArray[np.int64], means: NDArray[np.float64],
    estimate: float,
) -> Switch:  # fmt: skip
    gap = float(played.instance.means[1 - dropped] - played.instance.means[dropped])
    return Switch(played.run, 1 - dropped, dropped, *moments, pulls, means, estimate, gap)


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
    axes.set(xlabel="round", ylabel=f"difference of means\n− {LESS[rule]}")
    thousands(axes.xaxis)
    axes.legend(loc="best")


_SCHEMA = {
    "run": pl.Int64,
    "switching_round": pl.Int64,
    "pulls_dropped": pl.Int64,
    "pulls_kept": pl.Int64,
    "hidden_difference": pl.Float64,
    "estimate": pl.Float64,
    "gap": pl.Float64,
}

PICTURES = (SketchSwitching(),)
