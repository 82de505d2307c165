"""How often each rule tries the worse of two arms, as time goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.datasets.registry import two_armed
from unbandit.demonstrators import SAE, UCB, Demonstrator
from unbandit.paper.claim import Claim, above, below
from unbandit.paper.drawing import LINES, curve, panels, thousands
from unbandit.paper.picture import Picture, Results, Size
from unbandit.paper.replay import play, replicates, runs_played
from unbandit.paper.table import points
from unbandit.study.monte_carlo import Measured, measured, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "SketchExploration"]

HORIZON = 5_000
BINS = 40
LATE = BINS // 10
QUARTER = BINS // 4
BEFORE = 100
RULES: dict[str, Demonstrator] = {"UCB": UCB(alpha=0.25), "SAE": SAE(alpha=0.25)}


class SketchExploration(Picture):
    """Show that both rules explore less and less, one smoothly, the other all at once."""

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
            curve(
                panel, _middles(), measured(_means(shares)), line, f"{rule}, mean of {len(shares):,} runs", mark_every=3
            )
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
        found = []
        for rule in RULES:
            shares = _shares(rule, results)[0]
            change = measured(replicates(_last_less_first_quarter, shares))
            what = "share of rounds on the worse arm, last quarter less first quarter; below 0"
            found.append(Claim(f"{rule} explores less as time goes on", what, change, *below(change, 0.0)))
        what = "share of runs that pull the worse arm in the last tenth of the rounds; {} 1/2"
        late = {rule: _tried_late(_shares(rule, results)[0]) for rule in RULES}
        ucb, sae = late["UCB"], late["SAE"]
        found += [
            Claim("UCB comes back to bad arms until the end", what.format("above"), ucb, *above(ucb, 0.5)),
            Claim("SAE gives a bad arm up for good", what.format("below"), sae, *below(sae, 0.5)),
        ]
        stops = [_shares(rule, results)[1] for rule in ("SAE", "UCB")]
        difference = measured(replicates(lambda sae, ucb: sae.mean() - ucb.mean(), *stops))
        what = f"share of the worse arm in the {BEFORE} rounds up to its last pull, SAE less UCB; above 0"
        says = "SAE stops exploring all at once, UCB little by little"
        return [*found, Claim(says, what, difference, *above(difference, 0.0))]


def _shares(rule: str, results: Results) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each run's share on the worse arm: in every stretch of rounds, and just before its last pull."""
    return results.once(rule, lambda: _played(RULES[rule], results.size))


def _played(rule: Demonstrator, size: Size) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


PICTURES = (SketchExploration(),)
