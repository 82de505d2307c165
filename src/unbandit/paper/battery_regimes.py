"""One charging protocol in two temperature regimes: the same lifetime, another gap, another error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unbandit.datasets import battery, lifetimes
from unbandit.datasets.choice import random_order
from unbandit.instance import Instance
from unbandit.paper.battery import CHOICE, guides, twenty, variance_adjusted
from unbandit.paper.claim import FAILS, HOLDS, Claim, below
from unbandit.paper.comparing import ratio, used
from unbandit.paper.drawing import LINES, Line, curve, log_log, panels
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.table import points
from unbandit.plots import INK
from unbandit.study import Study, spaced
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import Measured, computed, measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "BatteryRegimes", "four_protocols"]

HORIZONS = spaced(500, 5_000, 10)
LOOKS: dict[str, Line] = {"low": LINES[0], "high": LINES[1]}
RANGES = {"low": (901, 962), "high": (573, 1_208)}
"""Shortest and longest lifetime of each regime in cycles, as the paper gives them."""

BINS = {"low": np.arange(900.5, 965, 3).tolist(), "high": np.arange(569.5, 1_230, 30).tolist()}
"""Edges between whole numbers of cycles: every bin holds as many of them."""

ROLES = ("followed", "best", "by lot", "by lot")


class BatteryRegimes(Picture):
    """Show the lifetimes of the low and the high regime, and the error of one protocol in both."""

    name = "battery-regimes"
    title = "Battery lifetimes: the same protocol in two regimes"
    section = "battery figure, panel (b), and the appendix's battery figure, panels (a) to (d)"
    caption = (
        "(a) Lifetimes of the twenty protocols of the battery picture in both regimes, as shares of 1,208 cycles, in "
        "the order of the high regime. Rings mark four of them: the one whose lifetimes in the two regimes differ "
        "least, the best of the high regime, and two that a shuffle of the others (seed 1) puts first. Had the first "
        "one been the best of the four in either regime, the next in line would have taken its place. The choice of "
        "the four and the horizons are ours. (b) and (c) All 224 lifetimes in each regime, in cycles. (d) UCB (alpha "
        "0.25, width 5 sigma) searches among the four: the mean squared error of the protocol marked as followed. "
        f"Bands are one standard error; a point is hollow where fewer than {ENOUGH:.0%} of the runs have an estimate; "
        "the thin lines have theory's slope −alpha, and the slope −1 of rounds that all protocols still share."
    )
    alt = (
        "Four panels: the lifetimes of twenty protocols as points, one colour a regime, four of them ringed; a "
        "histogram of all 224 lifetimes for each regime; and the followed protocol's mean squared error against the "
        "horizon, one curve a regime."
    )

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for the four protocols in both regimes."""
        instances = [_four(regime) for regime in LOOKS]
        rule = variance_adjusted(instances[0])  # sigma is the same in all regimes
        return {"four": Study(instances, rule, HORIZONS, size.runs_of(250), size.seed)}

    def draw(self, results: Results) -> Figure:
        """Draw lifetimes by protocol, two histograms, and the error in both regimes."""
        figure, axes = panels(4)
        _draw_lifetimes(axes[0])
        for panel, regime in zip(axes[1:3], LOOKS, strict=True):
            cycles = lifetimes(regime)
            panel.hist(cycles, BINS[regime], color=LOOKS[regime].colour, alpha=0.85, edgecolor="white", linewidth=0.5)
            panel.set(xlabel=f"lifetime in the {regime} regime (cycles)", ylabel="protocols")
            panel.xaxis.set_major_formatter("{x:,.0f}")
            panel.set_yticks([0, 5, 10, 15, 20])
            panel.grid(visible=False, axis="x")
        log_log(axes[3], "horizon T", "MSE of the normalised lifetime")
        for regime, found in _followed(results).items():
            name = f"{regime} (gap {found.gap[0]:.3f})"
            curve(axes[3], found.horizon, measured(found.mse), LOOKS[regime], name, share=found.points[0])
        guides(axes[3], HORIZONS, [found.mse[0] for found in _followed(results).values()])
        axes[3].legend(loc="lower left")
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return lifetimes, with 1 as the share of those ringed and 0 of the others, and errors."""
        rows = []
        for panel, regime in zip("bc", LOOKS, strict=True):
            instance, cycles = twenty(regime), lifetimes(regime)
            marked = [float(arm in four_protocols()) for arm in _by_lifetime()]
            rows.append(points("a", regime, np.arange(1, 21), _without_error(_means(instance)), share=marked))
            rows.append(points(panel, regime, np.arange(cycles.size), _without_error(cycles)))
        for regime, found in _followed(results).items():
            rows.append(points("d", regime, found.horizon, measured(found.mse), share=found.points[0]))
        return pl.concat(rows)

    def claims(self, results: Results) -> list[Claim]:
        """Compare the regimes' ranges, the followed protocol's gaps, and its errors."""
        ends = {regime: (int(lifetimes(regime).min()), int(lifetimes(regime).max())) for regime in LOOKS}
        wider = np.ptp(lifetimes("high")) / np.ptp(lifetimes("low"))
        said = "; ".join(f"{regime} {low:,} to {high:,} cycles" for regime, (low, high) in ends.items())
        found = _followed(results)
        low, high = found["low"], found["high"]
        gaps, both = computed(low.gap[0] / high.gap[0]), low.usable & high.usable
        smaller, because = below(gaps, 1.0)
        easier = measured(ratio(low.mse, high.mse, both))
        return [
            Claim(
                "the regimes' lifetimes differ widely: 901 to 962 cycles in low, 573 to 1,208 in high",
                "shortest and longest of the 224 lifetimes, computed from the physics; the value is the width of "
                "the high range over that of the low one",
                computed(wider),
                HOLDS if ends == RANGES else FAILS,
                f"{said}; computed, so there is no error",
            ),
            Claim(
                f"the followed protocol ({four_protocols()[0]}) has the smaller gap in the low regime",
                "its gap in low over its gap in high, below 1",
                gaps,
                smaller,
                f"{because}: {low.gap[0]:.4f} against {high.gap[0]:.4f}; computed, so there is no error",
            ),
            Claim(
                "its lifetime is easier to estimate in the low regime",
                f"MSE in low over MSE in high, geometric mean over T, below 1; {used(low, both)}",
                easier,
                *below(easier, 1.0),
            ),
        ]

    def selection(self, results: Results) -> list[Selection]:
        """Compare all runs with those whose most-pulled arm is the best one, at both ends."""
        return [
            row for regime, found in _followed(results).items() for row in Selection.ends(f"{regime} regime", found)
        ]


def four_protocols() -> tuple[str, str, str, str]:
    """Return the protocol that is followed, the best of the high regime, and two drawn by lot.

    The first is the one whose lifetimes in the two regimes differ least, the next in line if it is the best of the four
    in either regime: a best arm has no gap to estimate.

    Examples
    --------
    >>> len(set(four_protocols()))
    4
    """
    low, high = twenty("low"), twenty("high")
    lot = [high.arms[place] for place in random_order(len(high), CHOICE)]
    for place in np.argsort(np.abs(low.means - high.means), kind="stable"):
        first = high.arms[place]
        others = [arm for arm in lot if arm not in (first, high.best)]
        four = (first, high.best, others[0], others[1])
        if all(_value(regime, first) < max(_value(regime, arm) for arm in four) for regime in (low, high)):
            return four
    raise AssertionError("one of twenty protocols is not the best")


def _value(instance: Instance, arm: str) -> float:
    return float(instance.means[instance.arms.index(arm)])


def _four(regime: str) -> Instance:
    everything = battery(regime)
    return battery(regime, arms=[everything.arms.index(arm) for arm in four_protocols()])


def _followed(results: Results) -> dict[str, Curve]:
    first = four_protocols()[0]
    return {regime: results["four"].curve(arm=first, instance=f"battery-{regime}") for regime in LOOKS}


def _by_lifetime() -> list[str]:
    """Return the twenty protocols, the shortest-lived of the high regime first."""
    high = twenty("high")
    return [high.arms[place] for place in np.argsort(high.means, kind="stable")]


def _means(instance: Instance) -> np.ndarray:
    return np.array([_value(instance, arm) for arm in _by_lifetime()])


def _without_error(values: np.ndarray) -> Measured:
    """Return numbers that were computed, not simulated."""
    return Measured(values, np.zeros_like(values), 0)


def _draw_lifetimes(axes: Axes) -> None:
    order = _by_lifetime()
    places = [order.index(arm) + 1 for arm in four_protocols()]
    tops = np.zeros(len(order))
    for regime, line in LOOKS.items():
        means = _means(twenty(regime))
        axes.plot(range(1, 21), means, line.marker, color=line.colour, label=f"{regime} regime")
        axes.plot(places, means[np.array(places) - 1], "o", markersize=9, color=INK, fillstyle="none", linewidth=0.8)
        tops = np.maximum(tops, means)
    for place, role in zip(places, ROLES, strict=True):
        beside: Any = {"xytext": (-7, 4), "ha": "right"} if place > 3 else {"xytext": (-4, 8), "ha": "left"}
        axes.annotate(role, (place, tops[place - 1]), textcoords="offset points", fontsize=8, **beside)
    axes.set(xlabel="protocol, by its lifetime in the high regime", ylabel="normalised lifetime")
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.legend(loc="lower right")


PICTURES = (BatteryRegimes(),)
