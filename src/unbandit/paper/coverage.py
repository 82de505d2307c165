"""Coverage of the intervals, at every point of every other picture that rests on a study."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unbandit.paper.claim import Claim
from unbandit.paper.covered import Trail, inside, trails
from unbandit.paper.drawing import GUIDE, LINES, panels
from unbandit.paper.picture import Picture, Results, Size
from unbandit.paper.registry import pictures
from unbandit.paper.table import points
from unbandit.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "Coverage"]

NOMINAL = 0.95
LIMITS = (0.93, 0.97)
"""Between these, coverage is as good as was found before (K = 2 and 4, T from 500 to 50,000)."""

FEW = 0.5


class Coverage(Picture):
    """Show how often the 95% intervals hold the truth."""

    name = "coverage"
    title = "Coverage of the 95% intervals, everywhere"
    section = "not in the paper, which gives no intervals"
    full_only = True
    caption = (
        "How often the 95% interval of a gap holds the true one, against the horizon, in the studies behind every "
        "other picture (named above each panel). With up to three suboptimal arms, each has a line, told apart by "
        "colour; with more there is one bold line for all of them together, and up to twenty have a pale one each "
        "besides. Bars are one standard error; the dashed line is the nominal 95%, the grey band 93% to 97%; a point "
        "is hollow where fewer than half of the runs gave an interval, so that those that did are a selection. All "
        "runs count, also those whose most-pulled arm is not the best."
    )
    alt = (
        "A small panel for each picture: coverage against the horizon, with a band around 95%. Most lines lie in the "
        "band; they fall far below it where horizons are too short for the number of arms."
    )

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for the studies of all other pictures, under the names of both."""
        return {
            f"{picture.name}/{name}": study
            for picture in pictures().values()
            if not isinstance(picture, Coverage)
            for name, study in picture.studies(size).items()
        }

    def home(self, study: str) -> str:
        """Return where a study's parts are: those of the picture that it belongs to."""
        return study

    def draw(self, results: Results) -> Figure:
        """Draw one panel a picture."""
        followed = _followed(results)
        figure, axes = panels(len(followed), columns=4, width=2.85, height=2.6)
        for panel, (picture, walked) in zip(axes, followed.items(), strict=True):
            _draw_trails(panel, walked)
            panel.set_title(picture, loc="right", fontsize=8)
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point: of each arm, or of many together."""
        return pl.concat(
            points(picture, trail.name, trail.horizon, trail.coverage, share=trail.share).with_columns(
                pl.Series("held", trail.held), pl.Series("intervals", trail.intervals)
            )
            for picture, walked in _followed(results).items()
            for trail in walked
        )

    def claims(self, results: Results) -> list[Claim]:
        """Test that coverage is near its nominal value everywhere."""
        claims = []
        for picture, walked in _followed(results).items():
            smallest, decision = inside(walked, *LIMITS)
            claims.append(
                Claim(
                    f"the 95% intervals hold the truth in 93% to 97% of runs, at every point of {picture} (our test)",
                    "coverage of every suboptimal arm, or where there are more than twenty of all together, at every "
                    "horizon where at least half of the runs gave an interval; all within 93% to 97% (95% intervals, "
                    "right all at once); the value is the smallest",
                    smallest,
                    *decision,
                )
            )
        return claims


def _followed(results: Results) -> dict[str, list[Trail]]:
    """Return the trails of every picture; the sums behind them, which are large, are let go one by one."""

    def made() -> dict[str, list[Trail]]:
        found = dict[str, list[Trail]]()
        for name, result in results.studies.items():
            picture, _, study = name.partition("/")
            for trail in trails(result.study, result.folds()):
                found.setdefault(picture, []).append(replace(trail, name=trail.name or study))
        return found

    return results.once("trails", made)


def _draw_trails(axes: Axes, walked: list[Trail]) -> None:
    axes.axhspan(*LIMITS, color="#eeeeee", linewidth=0, zorder=0)
    axes.axhline(NOMINAL, color=GUIDE, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xscale("log")
    bold = [trail for trail in walked if trail.bold]
    span = np.log(max(trail.horizon.max() for trail in walked) / min(trail.horizon.min() for trail in walked)) or 2.0
    for trail in walked:
        if not trail.bold:
            axes.plot(trail.horizon, trail.coverage.value, color="#b9b9b9", linewidth=0.6, zorder=1.5)
    for place, trail in enumerate(bold):
        line = LINES[place % len(LINES)]
        aside = np.exp(span * 0.012 * (place - (len(bold) - 1) / 2))  # so that bars stand side by side
        full = trail.share >= FEW
        look: Any = {"fmt": line.marker, "color": line.colour, "markersize": 3, "elinewidth": 0.8, "zorder": 3}
        axes.plot(trail.horizon * aside, trail.coverage.value, color=line.colour, linewidth=0.9, alpha=0.6, zorder=2)
        for which, face in ((full, line.colour), (~full, "white")):
            at = trail.horizon[which] * aside
            name = trail.name if face != "white" else None
            value, error = trail.coverage.value[which], trail.coverage.error[which]
            axes.errorbar(at, value, error, markerfacecolor=face, label=name, **look)
    values = np.concatenate([trail.coverage.value for trail in bold])
    least = float(np.min(values, initial=0.9, where=np.isfinite(values)))
    axes.set(xlabel="horizon T", ylabel="coverage", ylim=(max(-0.02, least - 0.04), 1.01))
    horizons = np.unique(np.concatenate([trail.horizon for trail in walked]))
    middle = int(np.abs(np.log(horizons**2 / (horizons[0] * horizons[-1]))).argmin())
    ticks = np.unique(horizons[[0, middle, -1]])
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks.tolist()], fontsize=8)
    axes.minorticks_off()
    if len(bold) > 1:
        longest = max(len(trail.name) for trail in bold)
        columns = 3 if longest <= 10 else 2 if longest <= 22 else 1
        where: Any = {"loc": "upper left", "bbox_to_anchor": (-0.12, -0.28)}
        axes.legend(fontsize=6, ncols=columns, handlelength=1, handletextpad=0.3, columnspacing=0.8, **where)


PICTURES = (Coverage(),)
