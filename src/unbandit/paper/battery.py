"""Battery lifetimes read off a search for the best charging protocol, among twenty of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.datasets import battery
from unbandit.datasets.choice import random_order
from unbandit.demonstrators import UCB
from unbandit.instance import Instance
from unbandit.paper.claim import Claim
from unbandit.paper.comparing import falling
from unbandit.paper.drawing import GUIDE, LINES, curve, guide, log_log, panels
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.table import points
from unbandit.study import Study, spaced
from unbandit.study.curves import ENOUGH, Curve
from unbandit.study.monte_carlo import measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CHOICE", "PICTURES", "Battery", "guides", "named_guide", "three_at_random", "twenty", "variance_adjusted"]

ALPHA = 0.25
HORIZONS = spaced(1_000, 10_000, 10)
CHOICE = 1
"""Seed of every choice of protocols: the same ones whatever the seed of the runs, as in the paper."""


class Battery(Picture):
    """Show the error of three protocols, drawn by lot, against the length of the record."""

    name = "battery"
    title = "Battery lifetimes: twenty charging protocols"
    section = "battery figure, panel (a)"
    caption = (
        "UCB (alpha 0.25, width 5 sigma) looks for the longest-lived of twenty charging protocols of the high "
        "regime, one from each of twenty equal ranges of lifetime. Shown is the mean squared error of the lifetime, as "
        "a share of 1,208 cycles, that its choices reveal for three protocols: those that a shuffle of the nineteen "
        "suboptimal ones (seed 1) puts first. A protocol is named by its first three charging rates. The horizons are "
        "ours, as the paper does not give its own. Bands are one standard error; a point is hollow where fewer than "
        f"{ENOUGH:.0%} of the runs have an estimate. Theory's slope is −alpha (upper thin line), once each protocol's "
        "gap decides how often it is tried; while all protocols still share the rounds, it is −1 (lower thin line)."
    )
    alt = (
        "Three curves on logarithmic axes, one a protocol: the mean squared error of the normalised lifetime against "
        "horizons from 1,000 to 10,000 rounds, with two thin lines of theory's slopes."
    )

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for the twenty protocols of the high regime."""
        instance = twenty("high")
        rule = variance_adjusted(instance)
        return {"twenty": Study(instance, rule, HORIZONS, size.runs_of(250), size.seed)}

    def draw(self, results: Results) -> Figure:
        """Draw one curve a protocol."""
        figure, (axes,) = panels(1, width=4.8, height=3.4)
        log_log(axes, "horizon T", "MSE of the normalised lifetime")
        drawn = _drawn(results)
        for (arm, found), line in zip(drawn.items(), LINES, strict=False):
            name = f"{arm} (gap {found.gap[0]:.2f})"
            curve(axes, found.horizon, measured(found.mse), line, name, share=found.points[0])
        guides(axes, HORIZONS, [found.mse[0] for found in drawn.values()])
        axes.legend(loc="lower left")
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point drawn."""
        return pl.concat(
            points("", arm, found.horizon, measured(found.mse), share=found.points[0])
            for arm, found in _drawn(results).items()
        )

    def claims(self, results: Results) -> list[Claim]:
        """Fit the slope of each protocol's error."""
        return [
            falling(f"the longer the record, the better a protocol's lifetime is known ({arm})", found)
            for arm, found in _drawn(results).items()
        ]

    def selection(self, results: Results) -> list[Selection]:
        """Compare all runs with those whose most-pulled arm is the best one, at both ends."""
        return [row for arm, found in _drawn(results).items() for row in Selection.ends(arm, found)]


def twenty(regime: str) -> Instance:
    """Return the paper's choice of twenty protocols; the same ones in every regime."""
    return battery(regime, arms=20, seed=CHOICE)


def variance_adjusted(instance: Instance, alpha: float = ALPHA) -> UCB:
    """Return UCB with the width that the paper takes where the noise is not 1: five times sigma."""
    return UCB.variance_adjusted(alpha=alpha, sigma=instance.sigma)


def three_at_random(instance: Instance) -> list[str]:
    """Return three suboptimal arms: the first ones of all of them, shuffled.

    Examples
    --------
    >>> len(set(three_at_random(twenty("high"))))
    3
    """
    suboptimal = [arm for arm, gap in zip(instance.arms, instance.gaps, strict=True) if gap > 0]
    return [suboptimal[place] for place in random_order(len(suboptimal), CHOICE)[:3]]


def guides(axes: Axes, horizons: Sequence[int], errors: Sequence[NDArray[np.float64]]) -> None:
    """Draw theory's slope above the curves, and below them that of rounds which all arms still share."""
    top, bottom = (float(extreme([error[0] for error in errors])) for extreme in (np.nanmax, np.nanmin))
    named_guide(axes, horizons, -ALPHA, top * 1.3, beside=(0, 11))
    named_guide(axes, horizons, -1.0, bottom * 0.55, beside=(-8, -4))


def named_guide(
    axes: Axes, horizons: Sequence[int], slope: float, begin: float, *, beside: tuple[float, float]
) -> None:
    """Draw a line of a given slope from a height on, with the slope written beside its end."""
    first, last = float(horizons[0]), float(horizons[-1])
    guide(axes, (first, last), slope, through=(first, begin))
    look: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 8, "color": GUIDE}
    end = (last, begin * (last / first) ** slope)
    axes.annotate(f"slope {slope:g}".replace("-", "−"), end, xytext=beside, **look)


def _drawn(results: Results) -> dict[str, Curve]:
    """Return what was found about the three, the largest gap first."""
    curves = {arm: results["twenty"].curve(arm=arm) for arm in three_at_random(twenty("high"))}
    return dict(sorted(curves.items(), key=lambda drawn: -float(drawn[1].gap[0])))


PICTURES = (Battery(),)
