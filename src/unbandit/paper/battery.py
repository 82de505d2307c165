"""Battery lifetimes read off a search for the best charging protocol: twenty protocols, and one in two regimes."""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unbandit.datasets import battery, lifetimes
from unbandit.datasets.choice import random_order
from unbandit.demonstrators import UCB
from unbandit.instance import Instance
from unbandit.paper.claims import FAILS, HOLDS, Claim, error_falls, mean_ratio, used
from unbandit.paper.figure import PROCEDURES, PaperFigure, Results, Size
from unbandit.paper.panels import LINES, Series, draw_series, log_log, named_guide, panels
from unbandit.plots import INK
from unbandit.study import Study, spaced
from unbandit.study.curves import Curve
from unbandit.study.monte_carlo import computed

ALPHA = 0.25
HORIZONS = spaced(1_000, 10_000, 10)
CHOICE = 1  # seed of every choice of protocols: the same ones whatever the seed of the runs, as in the paper

REGIME_HORIZONS = spaced(500, 5_000, 10)
REGIME_LINES = {"low": LINES[0], "high": LINES[1]}
RANGES = {"low": (901, 962), "high": (573, 1_208)}
"""Shortest and longest lifetime of each regime in cycles, as the paper gives them."""

BINS = {"low": np.arange(900.5, 965, 3).tolist(), "high": np.arange(569.5, 1_230, 30).tolist()}
"""Edges between whole numbers of cycles: every bin holds equally many of them."""

ROLES = ("followed", "best", "by lot", "by lot")


class Battery(PaperFigure):
    """The error of three protocols, drawn by lot, against the length of the record."""

    name = "battery"
    title = "Battery lifetimes: twenty charging protocols"
    section = "Figure 5 of the paper, panel (a)"

    def studies(self, size: Size) -> dict[str, Study]:
        instance = twenty("high")
        return {
            "twenty": Study(
                instance, variance_adjusted(instance), HORIZONS, size.runs_of(250, 1_000), size.seed, PROCEDURES
            )
        }

    def followed(self, results: Results) -> dict[str, Curve]:
        """Return the curves of the three protocols, the largest gap first."""
        curves = {arm: results["twenty"].curve(arm=arm) for arm in three_at_random(twenty("high"))}
        return dict(sorted(curves.items(), key=lambda named: -float(named[1].gap[0])))

    def series(self, results: Results) -> list[Series]:
        protocols = self.followed(results).items()
        return [Series.error("", name, arm, f"{name} (gap {arm.gap[0]:.2f})") for name, arm in protocols]

    def draw(self, results: Results) -> Figure:
        figure, (axes,) = panels(1, width=4.8, height=3.4)
        _draw_errors(axes, self.series(results), "")
        return figure

    def claims(self, results: Results) -> list[Claim]:
        says = "the longer the log, the better a protocol's lifetime is known"
        return [error_falls(f"{says} ({name})", arm) for name, arm in self.followed(results).items()]


class BatteryRegimes(PaperFigure):
    """The lifetimes of the low and the high regime, and the error of one protocol in both."""

    name = "battery-regimes"
    title = "Battery lifetimes: the same protocol in two regimes"
    section = "Figure 5 of the paper, panel (b), and Figure 9, panels (a) to (d)"

    def studies(self, size: Size) -> dict[str, Study]:
        numbers = [battery().arms.index(arm) for arm in four_protocols()]
        instances = [battery(regime, arms=numbers) for regime in REGIME_LINES]
        rule = variance_adjusted(instances[0])  # sigma is the same in all regimes
        return {"four": Study(instances, rule, REGIME_HORIZONS, size.runs_of(250, 1_000), size.seed, PROCEDURES)}

    def followed(self, results: Results) -> dict[str, Curve]:
        """Return the followed protocol's curve in each regime."""
        first, four = four_protocols()[0], results["four"]
        return {f"{regime} regime": four.curve(arm=first, instance=f"battery-{regime}") for regime in REGIME_LINES}

    def series(self, results: Results) -> list[Series]:
        """Return lifetimes, with 1 as the share of those ringed and 0 of the others, and errors."""
        series, ringed = list[Series](), [float(arm in four_protocols()) for arm in _by_lifetime()]
        for panel, regime in zip("bc", REGIME_LINES, strict=True):
            series.append(Series.computed("a", regime, np.arange(1, 21), _means(regime), ringed))
            series.append(Series.computed(panel, regime, np.arange(lifetimes(regime).size), lifetimes(regime)))
        regimes = zip(REGIME_LINES, self.followed(results).values(), strict=True)
        return series + [Series.error("d", name, arm, f"{name} (gap {arm.gap[0]:.3f})") for name, arm in regimes]

    def draw(self, results: Results) -> Figure:
        figure, axes = panels(4)
        _draw_lifetimes(axes[0])
        for panel, (regime, line) in zip(axes[1:3], REGIME_LINES.items(), strict=True):
            panel.hist(lifetimes(regime), BINS[regime], color=line.colour, alpha=0.85, edgecolor="white", linewidth=0.5)
            panel.set(xlabel=f"lifetime in the {regime} regime (cycles)", ylabel="protocols")
            panel.xaxis.set_major_formatter("{x:,.0f}")
            panel.set_yticks([0, 5, 10, 15, 20])
            panel.grid(visible=False, axis="x")
        _draw_errors(axes[3], self.series(results), "d")
        return figure

    def claims(self, results: Results) -> list[Claim]:
        ends = {regime: (int(lifetimes(regime).min()), int(lifetimes(regime).max())) for regime in REGIME_LINES}
        seen = "; ".join(f"{regime} {low:,} to {high:,} cycles" for regime, (low, high) in ends.items())
        low, high = self.followed(results).values()
        gaps, both = computed(low.gap[0] / high.gap[0]), low.usable & high.usable
        width = computed(np.ptp(lifetimes("high")) / np.ptp(lifetimes("low")))
        what = (
            "shortest and longest of the 224 lifetimes, computed from the physics; the value is the width of the high "
            "range over that of the low one"
        )
        says = "the regimes' lifetimes differ widely: 901 to 962 cycles in low, 573 to 1,208 in high"
        verdict, because = HOLDS if ends == RANGES else FAILS, f"{seen}; computed, so there is no error"
        claims = [Claim(says, what, width, verdict, because)]
        says = f"the followed protocol ({four_protocols()[0]}) has the smaller gap in the low regime"
        claim = Claim.below(says, "its gap in low over its gap in high, below 1", gaps, 1.0)
        because = f"{claim.because}: {low.gap[0]:.4f} against {high.gap[0]:.4f}; computed, so there is no error"
        claims.append(replace(claim, because=because))
        says = "its lifetime is easier to estimate in the low regime"
        what = f"MSE in low over MSE in high, geometric mean over T, below 1; {used(low, both)}"
        return [*claims, Claim.below(says, what, mean_ratio(low.mse, high.mse, both), 1.0)]


def twenty(regime: str) -> Instance:
    """Return the paper's choice of twenty protocols; the same ones in every regime."""
    return battery(regime, arms=20, seed=CHOICE)


def variance_adjusted(instance: Instance, alpha: float = ALPHA) -> UCB:
    """Return UCB with the width that the paper takes if the noise is not 1: five times sigma."""
    return UCB.variance_adjusted(alpha=alpha, sigma=instance.sigma)


def three_at_random(instance: Instance) -> list[str]:
    """Return three suboptimal arms: the first ones of all of them, shuffled."""
    suboptimal = [arm for arm, gap in zip(instance.arms, instance.gaps, strict=True) if gap > 0]
    return [suboptimal[place] for place in random_order(len(suboptimal), CHOICE)[:3]]


def four_protocols() -> tuple[str, str, str, str]:
    """Return the protocol that is followed, the best of the high regime, and two drawn by lot.

    The first is the one whose lifetimes in the two regimes differ least, or the next in line if it is the best of the
    four in either regime: a best arm has no gap to estimate.
    """
    low, high = twenty("low"), twenty("high")
    shuffled = [high.arms[place] for place in random_order(len(high), CHOICE)]
    for place in np.argsort(np.abs(low.means - high.means), kind="stable"):
        first = high.arms[place]
        others = [arm for arm in shuffled if arm not in (first, high.best)]
        four = (first, high.best, others[0], others[1])
        if all(_value(regime, first) < max(_value(regime, arm) for arm in four) for regime in (low, high)):
            return four
    raise AssertionError("one of twenty protocols is not the best")


def _value(instance: Instance, arm: str) -> float:
    return float(instance.means[instance.arms.index(arm)])


def _by_lifetime() -> list[str]:
    """Return the twenty protocols, the shortest-lived of the high regime first."""
    high = twenty("high")
    return [high.arms[place] for place in np.argsort(high.means, kind="stable")]


def _means(regime: str) -> np.ndarray:
    return np.array([_value(twenty(regime), arm) for arm in _by_lifetime()])


def _draw_errors(axes: Axes, series: list[Series], panel: str) -> None:
    """Draw errors with theory's slope above them, and below them that of rounds which all arms still share."""
    log_log(axes, "horizon T", "MSE of the normalised lifetime")
    draw_series(axes, series, panel)
    errors = [each for each in series if each.panel == panel]
    first = [each.points.value[0] for each in errors]
    named_guide(axes, errors[0].x, -ALPHA, float(np.nanmax(first)) * 1.3, beside=(0, 11))
    named_guide(axes, errors[0].x, -1.0, float(np.nanmin(first)) * 0.55, beside=(-8, -4))
    axes.legend(loc="lower left")


def _draw_lifetimes(axes: Axes) -> None:
    order = _by_lifetime()
    places = [order.index(arm) + 1 for arm in four_protocols()]
    tops = np.zeros(len(order))
    for regime, line in REGIME_LINES.items():
        means = _means(regime)
        axes.plot(range(1, 21), means, line.marker, color=line.colour, label=f"{regime} regime")
        axes.plot(places, means[np.array(places) - 1], "o", markersize=9, color=INK, fillstyle="none", linewidth=0.8)
        tops = np.maximum(tops, means)
    for place, role in zip(places, ROLES, strict=True):
        beside: Any = {"xytext": (-7, 4), "ha": "right"} if place > 3 else {"xytext": (-4, 8), "ha": "left"}
        axes.annotate(role, (place, tops[place - 1]), textcoords="offset points", fontsize=8, **beside)
    axes.set(xlabel="protocol, by its lifetime in the high regime", ylabel="normalised lifetime")
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.legend(loc="lower right")


FIGURES = (Battery(), BatteryRegimes())
