"""The landscape of battery lifetimes: how well a search for the best protocol reveals all 224 of them.

A map has a tile for each pair of first and second charging rates, and in it a square for each third rate.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from unbandit.datasets import battery, lifetimes, protocols
from unbandit.datasets.battery import LONGEST_LIFETIME
from unbandit.demonstrators import UCB
from unbandit.instance import Instance
from unbandit.paper.battery import variance_adjusted
from unbandit.paper.claims import FAILS, HOLDS, NOTHING, UNTESTED, Claim, Decision, every, interval
from unbandit.paper.figure import PROCEDURES, PaperFigure, Results, Selection, Size
from unbandit.paper.panels import Series, panels, plain_ticks
from unbandit.plots import INK
from unbandit.study import Study
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import measured

ALPHA = 0.001
HORIZONS = (25_000, 45_000, 70_000)
SPANS = ((25_000, 70_000), (25_000, 45_000), (45_000, 70_000))
MISSED = 0.05  # how often one or more of the simultaneous intervals of all protocols may miss
ACROSS, DOWN = 3, 2  # squares of a tile: six third rates, in lines of three from the upper left
GAP = 0.1  # left free between tiles, of a tile's width

TILE = "#f4f4f4"
"""The colour of a tile, where no protocol is."""

NO_NUMBER = "#bdbdbd"
"""The colour of a protocol without a number."""


class BatteryLandscape(PaperFigure):
    """The error of every protocol of one regime at three horizons, at two widths of the demonstrator."""

    alt = (
        "Two rows of four maps. Each map has a tile for each pair of first and second charging rates, split into "
        "squares for the third. Three maps a row show the error by colour at T = 25,000, 45,000 and 70,000, the fourth "
        "by what factor it changed from the first to the last."
    )

    def __init__(self, regime: str, full_only: bool = True) -> None:
        self.regime, self.full_only = regime, full_only
        self.name = "battery-landscape" if regime == "high" else f"battery-landscape-{regime}"
        self.title = f"Battery lifetimes: all 224 protocols of the {regime} regime"
        self.section = "Figure 10 of the paper" + ("" if regime == "high" else ", in another regime")
        spread = float(lifetimes(regime).std())
        self.caption = (
            f"The root mean squared error, in cycles, of each protocol's lifetime in the {regime} regime, read off UCB "
            "with alpha 0.001 after 25,000, 45,000 and 70,000 rounds: above with the width 5 sigma that the paper "
            "states, below with sqrt 2, which its released code uses. A tile stands for the first two charging rates, "
            "a square in it for the third. A star marks the best protocol, whose lifetime is taken as known; grey "
            f"squares have an estimate in fewer than {ENOUGH:.0%} of the runs. To compare with: the lifetimes "
            f"themselves have a standard deviation of {spread:.0f} cycles. The last map of a row divides the mean "
            "squared error after 70,000 rounds by that after 25,000: purple stands for a smaller one, orange for a "
            "larger one, and a dot for a ratio whose interval, of those that are right all at once, lies above 1. All "
            "runs count; in each map of errors stands the share of them whose most-pulled arm is the best."
        )

    @property
    def instance(self) -> Instance:
        """Return all protocols of the regime."""
        return battery(self.regime)

    @property
    def rules(self) -> dict[str, UCB]:
        """Return the demonstrator at both widths."""
        return {"5σ": variance_adjusted(self.instance, ALPHA), "√2": UCB(alpha=ALPHA)}

    def studies(self, size: Size) -> dict[str, Study]:
        return {
            "all": Study(
                self.instance, list(self.rules.values()), HORIZONS, size.runs_of(100, 1_000), size.seed, PROCEDURES
            )
        }

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(8, columns=4, width=2.95, height=2.5)
        for scale, line in zip(self.rules, (axes[:4], axes[4:]), strict=True):
            errors = {horizon: self._cycles(results, scale, horizon) for horizon in HORIZONS}
            norm = LogNorm(*_limits(np.stack(list(errors.values()))))
            for panel, horizon in zip(line, HORIZONS, strict=False):
                found = float(self._at(results, scale, horizon).found[0, 0])
                shown = mosaic(panel, errors[horizon], "viridis", norm)
                panel.set_title(f"T = {horizon:,}", loc="center")
                words = f"width {scale}\nbest found\nin {found:.0%} of runs"  # no protocol has two low rates
                panel.text(-0.4, -0.45, words, fontsize=7.5, va="bottom", linespacing=1.4)
                star(panel, self.instance.gaps == 0)
            line[0].set_ylabel("second rate, CC2")
            _bar(figure, line[:3], shown, "RMSE of the lifetime (cycles)")
            self._draw_change(figure, line[3], results, scale)
        return figure

    def _draw_change(self, figure: Figure, panel: Axes, results: Results, scale: str) -> None:
        changes, compared = self._changes(results, scale, SPANS[0])
        shown = np.where(compared, np.exp(changes[0]), np.nan)
        reach = _limits(np.exp(np.abs(np.log(shown))))[1]
        drawn = mosaic(panel, shown, "PuOr_r", LogNorm(1 / reach, reach))
        risen = self.instance.gaps > 0
        risen[risen] = _simultaneous(self._suboptimal_changes(results, scale, SPANS[0]))[0] > 0
        panel.plot(*_middles()[risen].T, "o", markersize=2.2, markeredgewidth=0, color=INK)
        star(panel, self.instance.gaps == 0)
        panel.set_title("70,000 over 25,000", loc="center")
        key(panel)
        _bar(figure, [panel], drawn, "MSE, last over first")

    def series(self, results: Results) -> list[Series]:
        """Return the error of every protocol on every map; x is the protocol's number."""
        series, letters, numbers = list[Series](), iter("abcdefgh"), np.arange(protocols().height)
        for scale in self.rules:
            for horizon in HORIZONS:
                at = self._at(results, scale, horizon)
                error = measured(np.sqrt(at.mse) * LONGEST_LIFETIME)
                series.append(Series(next(letters), f"{scale}, T = {horizon}", numbers, error, at.points[0]))
            changes, compared = self._changes(results, scale, SPANS[0])
            factors = measured(np.exp(changes))
            series.append(Series(next(letters), f"{scale}, 70,000 over 25,000", numbers, factors, compared))
        return series

    def table(self, results: Results) -> pl.DataFrame:
        """Return the rows of every map, with the protocols' rates."""
        rates = protocols()
        return pl.concat(pl.concat([each.rows, rates], how="horizontal") for each in self.series(results))

    def claims(self, results: Results) -> list[Claim]:
        means = [self._mean(results, scale) for scale in self.rules]
        return means + [self._everywhere(results, scale, span) for scale in self.rules for span in SPANS]

    def _mean(self, results: Results, scale: str) -> Claim:
        says = f"protocols' lifetimes are known better the longer the log (width {scale})"
        what = (
            "MSE after 70,000 rounds over that after 25,000, geometric mean over the suboptimal protocols (shown), the "
            "same from 25,000 to 45,000 and from 45,000 to 70,000; all below 1"
        )
        claims, decisions = [], []
        for first, last in SPANS:
            changes, compared = self._changes(results, scale, (first, last))
            ratio = measured(np.exp(changes[:, compared].mean(axis=1) if compared.any() else changes[:, 0] * np.nan))
            claims.append(Claim.below(says, what, ratio, 1.0))
            decisions.append((claims[-1].verdict, f"{first:,} to {last:,}: {interval(ratio)}"))
        verdict, because = every(decisions)
        return replace(claims[0], verdict=verdict, because=because)

    def _everywhere(self, results: Results, scale: str, span: tuple[int, int]) -> Claim:
        changes = self._suboptimal_changes(results, scale, span)
        says = f"the error falls for every single protocol from T = {span[0]:,} to {span[1]:,} (width {scale})"
        what = (
            f"MSE at the longer horizon over that at the shorter one, of each of {changes.shape[1]} suboptimal "
            "protocols, with intervals that are right all at once in 95% of cases (of log ratios, by Student's t with "
            f"{len(changes) - 2} degrees of freedom at {MISSED / 2} / {changes.shape[1]} on each side); holds if every "
            "upper end is below 1, does not hold if any lower end is above 1"
        )
        return Claim(says, what, None, *_decided(changes))

    def selection(self, results: Results) -> list[Selection]:
        """Return the effect of the authors' selection of runs on errors averaged over the protocols."""
        worse, where = np.flatnonzero(self.instance.gaps > 0), "mean over all protocols"
        return [
            Selection.at(f"{where}, width {scale}, T = {horizon:,}", self._at(results, scale, horizon), worse)
            for scale in self.rules
            for horizon in HORIZONS
        ]

    def _at(self, results: Results, scale: str, horizon: int) -> Curve:
        return results.once((scale, horizon), lambda: results["all"].over_arms(horizon=horizon, rule=self.rules[scale]))

    def _cycles(self, results: Results, scale: str, horizon: int) -> NDArray[np.float64]:
        """Return what is drawn: the error in cycles of every suboptimal protocol with enough estimates."""
        at = self._at(results, scale, horizon)
        return np.where(at.usable & (at.gap > 0), np.sqrt(at.mse[0]) * LONGEST_LIFETIME, np.nan)

    def _changes(
        self, results: Results, scale: str, span: tuple[int, int]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the replicates of log MSE(last) / MSE(first) of all protocols, of shape (folds + 1, 224), and a mask.

        The mask is true for suboptimal protocols with enough estimates at both horizons.
        """
        first, last = (self._at(results, scale, horizon) for horizon in span)
        before, after = (np.log(np.where(at.mse > 0, at.mse, np.nan)) for at in (first, last))
        return after - before, first.usable & last.usable & (first.gap > 0)

    def _suboptimal_changes(self, results: Results, scale: str, span: tuple[int, int]) -> NDArray[np.float64]:
        """Return the changes of all suboptimal protocols; NaN of those with too few estimates."""
        changes, compared = self._changes(results, scale, span)
        return np.where(compared, changes, np.nan)[:, self.instance.gaps > 0]


def _simultaneous(changes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both ends of simultaneous 95% intervals; NaN where there is no interval.

    Each misses with at most 5% divided by their number (Bonferroni), however the protocols of a run are correlated.
    """
    change = measured(changes)
    known = replace(change, error=np.where(change.error > 0, change.error, np.nan))
    return known.interval(1 - MISSED / changes.shape[1])


def _decided(changes: NDArray[np.float64]) -> Decision:
    """Decide whether all fall, from the replicates of the log of each protocol's ratio."""
    low, high = _simultaneous(changes)
    count, known = changes.shape[1], int(np.isfinite(low).sum())
    if not known:
        return UNTESTED, NOTHING
    fall, surely, rise = (int(which.sum()) for which in (changes[0] < 0, high < 0, low > 0))
    missing = f"; {count - known} have too few estimates" if known < count else ""
    verdict = FAILS if rise else HOLDS if surely == count else UNTESTED
    return verdict, f"{fall} of {count} fall, {surely} of them significantly; {rise} rise significantly{missing}"


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and the largest number; any two where there are none."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (1.0, 10.0)


def _bar(figure: Figure, axes: list[Axes], drawn: PatchCollection, label: str) -> None:
    """Put a scale of colours beside some maps."""
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8, aspect=16, pad=0.02)
    bar.set_label(label)
    bar.outline.set_visible(False)
    plain_ticks(bar.ax.yaxis)


def mosaic(axes: Axes, values: NDArray[np.float64], colours: str, norm: Any) -> PatchCollection:
    """Draw one number per protocol, in the order of protocol numbers; grey where there is none."""
    (first, across), (second, up), _ = _rates()
    tiles = np.unique(np.stack([across, up], axis=1), axis=0)
    axes.add_collection(PatchCollection(_rectangles(tiles, 1 - GAP, 1 - GAP), facecolor=TILE, linewidth=0))
    squares = _rectangles(_middles(), (1 - GAP) / ACROSS, (1 - GAP) / DOWN)
    cmap = colormaps[colours].with_extremes(bad=NO_NUMBER)
    drawn = PatchCollection(squares, cmap=cmap, norm=norm, edgecolor="white", linewidth=0.3)
    drawn.set_array(np.ma.masked_invalid(values))
    axes.add_collection(drawn)
    axes.set_xticks(range(first.size), [f"{rate:g}" for rate in first])
    axes.set_yticks(range(second.size), [f"{rate:g}" for rate in second])
    axes.set(xlim=(-0.55, first.size - 0.45), ylim=(-0.55, second.size - 0.45), aspect="equal")
    axes.set(xlabel="first rate, CC1")
    axes.grid(visible=False)
    axes.tick_params(length=0, labelsize=7.5)
    axes.spines[:].set_visible(False)
    return drawn


def star(axes: Axes, which: NDArray[np.bool_]) -> None:
    """Mark the best protocols, which have no gap to estimate: a star on white."""
    middles = _middles()[which]
    axes.plot(*middles.T, "s", markersize=6.5, markerfacecolor="white", markeredgecolor=INK, markeredgewidth=0.6)
    axes.plot(*middles.T, "*", markersize=5, markeredgewidth=0, color=INK)


def key(axes: Axes) -> None:
    """Show in the empty corner which square of a tile is which third rate."""
    wide, high, left, bottom = 0.82, 0.62, -0.4, -0.45
    for place, rate in enumerate(_rates()[2][0]):
        x, y = left + wide * (place % ACROSS), bottom + high * (DOWN - 1 - place // ACROSS)
        axes.add_patch(Rectangle((x, y), wide, high, facecolor="none", edgecolor="#8a8a8a", linewidth=0.5))
        axes.text(x + wide / 2, y + high / 2 - 0.03, f"{rate:g}", fontsize=6, ha="center", va="center")
    axes.text(left, bottom + DOWN * high + 0.1, "a tile, by its\nthird rate, CC3", fontsize=7, va="bottom")


def _rates() -> list[tuple[NDArray[np.float64], NDArray[np.intp]]]:
    """Return, for the first, second and third rate, the rates there are and each protocol's place among them."""
    return [np.unique(protocols()[name].to_numpy(), return_inverse=True) for name in ("cc1", "cc2", "cc3")]


def _rectangles(middles: NDArray[Any], width: float, height: float) -> list[Rectangle]:
    return [Rectangle((x - width / 2, y - height / 2), width, height) for x, y in middles]


def _middles() -> NDArray[np.float64]:
    """Return where each protocol's square has its middle; shape (224, 2)."""
    first, second, third = (places for _, places in _rates())
    column, line = third % ACROSS, third // ACROSS
    x = first + (1 - GAP) * ((column + 0.5) / ACROSS - 0.5)
    y = second + (1 - GAP) * (0.5 - (line + 0.5) / DOWN)
    return np.stack([x, y], axis=1)


FIGURES = (BatteryLandscape("high", full_only=False), BatteryLandscape("low"), BatteryLandscape("medium"))
