"""Coverage of the intervals, in the studies behind every other picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.paper.battery import three_at_random, twenty
from unbandit.paper.battery_regimes import four_protocols
from unbandit.paper.claim import Claim
from unbandit.paper.covered import FOR_THEMSELVES, Trail, inside, trails
from unbandit.paper.drawing import GUIDE, LINES, Line, panels
from unbandit.paper.gene import TRACKED
from unbandit.paper.picture import Picture, Results, Size
from unbandit.paper.registry import pictures
from unbandit.paper.table import points
from unbandit.study import Study
from unbandit.study.curves import ENOUGH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "Coverage"]

NOMINAL = 0.95
LIMITS = (0.93, 0.97)
"""How far from the nominal 95% a coverage may be, two hundredths, and still be said to be near it."""

PLOTTED: dict[str, Callable[[], Sequence[str]]] = {
    "battery": lambda: three_at_random(twenty("high")),
    "battery-regimes": lambda: four_protocols()[:1],
    "gene": lambda: [TRACKED],
    "gene-all": lambda: [TRACKED],
}
"""The arms whose errors a picture plots, where it chooses some of many."""


class Coverage(Picture):
    """Show how often the 95% intervals hold the truth."""

    name = "coverage"
    title = "Coverage of the 95% intervals, everywhere"
    section = "not in the paper, which gives no intervals"
    full_only = True
    caption = (
        "How often the 95% interval of a gap holds the true one, against the horizon; a panel for each study behind "
        "another picture, with the names of both. Lines with markers count every interval that was given, whatever the "
        "arm: also that of the best arm, whose true gap is 0, in runs that took another for the best. Thin lines in "
        "colour are of single arms, those that the picture plots, in the colour of their line with markers or, where "
        "there is one such line only, in colours of their own; pale ones are of the other suboptimal arms, where there "
        f"are up to {FOR_THEMSELVES}. A single arm has no interval in the runs that took it for the best. Bars are one "
        "standard error; the dashed line is the nominal 95%, the grey band 93% to 97%; markers are hollow, and thin "
        f"lines are not drawn, where fewer than {ENOUGH:.0%} of the intervals that the runs could give were given, so "
        "that those given are a selection."
    )
    alt = (
        "A small panel for each study: the share of 95% intervals that hold the true gap against the horizon, one line "
        "with markers for each instance and rule, thin lines for single arms, and a grey band from 93% to 97%."
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
        """Draw one panel a study."""
        followed = {name: walked for name, walked in _followed(results).items() if walked}
        figure, axes = panels(len(followed), columns=4, width=2.85, height=2.6)
        for panel, (name, walked) in zip(axes, followed.items(), strict=True):
            _draw_trails(panel, walked)
            panel.set_title(name.replace("/", ": "), loc="right", fontsize=8)
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point: of all intervals together, and of single arms."""
        return pl.concat(
            points(name, trail.name, trail.horizon, trail.coverage, share=trail.given).with_columns(
                pl.Series("held", trail.held), pl.Series("intervals", trail.intervals)
            )
            for name, walked in _followed(results).items()
            for trail in walked
        )

    def claims(self, results: Results) -> list[Claim]:
        """Test that coverage is near its nominal value everywhere."""
        claims = []
        for picture, walked in _by_picture(_followed(results)).items():
            smallest, decision = inside(walked, *LIMITS)
            claims.append(
                Claim(
                    f"the 95% intervals hold the truth in 93% to 97% of cases, at every point of {picture}",
                    "coverage of all intervals given, whatever the arm, and of each suboptimal arm (of more than "
                    f"{FOR_THEMSELVES}, those plotted), at every horizon where at least {ENOUGH:.0%} of those that the "
                    "runs could give were given; all within 93% to 97% (by intervals that are right all at once in 95% "
                    "of cases); the value is the smallest",
                    smallest,
                    *decision,
                    ours=True,
                )
            )
        return claims


def _followed(results: Results) -> dict[str, list[Trail]]:
    """Return the trails of every study, by the names of its picture and its own; none where it gives no intervals."""

    def made() -> dict[str, list[Trail]]:
        return {
            name: trails(result.study, result.folds(), PLOTTED.get(name.partition("/")[0], tuple)())
            for name, result in results.studies.items()
        }

    return results.once("trails", made)


def _by_picture(followed: dict[str, list[Trail]]) -> dict[str, list[Trail]]:
    """Return the trails of every picture, with the study's name where it has several."""
    found, studies = dict[str, list[Trail]](), [name.partition("/")[0] for name in followed]
    for name, walked in followed.items():
        picture, _, study = name.partition("/")
        several = [study] * (studies.count(picture) > 1)
        for trail in walked:
            cell = ", ".join(filter(None, (*several, trail.cell)))
            found.setdefault(picture, []).append(replace(trail, cell=cell))
    return found


def _draw_trails(axes: Axes, walked: list[Trail]) -> None:
    axes.axhspan(*LIMITS, color="#eeeeee", linewidth=0, zorder=0)
    axes.axhline(NOMINAL, color=GUIDE, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xscale("log")
    together = [trail for trail in walked if not trail.arm]
    looks = {trail.cell: LINES[place % len(LINES)] for place, trail in enumerate(together)}
    own = iter(LINES[1:]) if len(together) == 1 else None
    span = np.log(walked[0].horizon.max() / walked[0].horizon.min()) or 2.0
    for trail in walked:
        if trail.arm:
            line = (next(own) if own else looks[trail.cell]) if trail.plotted else None
            _draw_arm(axes, trail, line, named=own is not None)
    for place, trail in enumerate(together):
        aside = np.exp(span * 0.012 * (place - (len(together) - 1) / 2))  # so that bars stand side by side
        _draw_together(axes, trail, looks[trail.cell], aside)
    values = np.concatenate([_known(trail) if trail.arm else trail.coverage.value for trail in walked])
    least = float(np.min(values, initial=0.9, where=np.isfinite(values)))
    axes.set(xlabel="horizon T", ylabel="coverage", ylim=(max(-0.02, least - 0.04), 1.01))
    horizons = walked[0].horizon
    middle = int(np.abs(np.log(horizons**2 / (horizons[0] * horizons[-1]))).argmin())
    ticks = np.unique(horizons[[0, middle, -1]])
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks.tolist()], fontsize=8)
    axes.minorticks_off()
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        arms = {trail.arm for trail in walked}
        order = sorted(range(len(names)), key=lambda at: names[at] in arms)  # single arms last
        columns = 2 if max(map(len, names)) <= 22 else 1
        shown: Any = {"handles": [handles[at] for at in order], "labels": [names[at] for at in order]}
        where: Any = {"loc": "upper left", "bbox_to_anchor": (-0.12, -0.28)}
        axes.legend(**shown, **where, fontsize=6, ncols=columns, handlelength=1.6, handletextpad=0.3, columnspacing=0.8)


def _draw_together(axes: Axes, trail: Trail, line: Line, aside: float) -> None:
    """Draw the line of all intervals, its markers hollow where those given are a selection."""
    value, error, along = trail.coverage.value, trail.coverage.error, trail.horizon * aside
    enough = trail.given >= ENOUGH
    look: Any = {"fmt": line.marker, "color": line.colour, "markersize": 3, "elinewidth": 0.8, "zorder": 3}
    axes.plot(along, value, color=line.colour, linewidth=0.9, alpha=0.6, zorder=2)
    for which, face, name in ((enough, line.colour, trail.cell or trail.name), (~enough, "white", None)):
        axes.errorbar(along[which], value[which], error[which], markerfacecolor=face, label=name, **look)


def _draw_arm(axes: Axes, trail: Trail, line: Line | None, *, named: bool) -> None:
    """Draw the line of one arm; pale where no picture plots it."""
    if line is None:
        axes.plot(trail.horizon, _known(trail), color="#b9b9b9", linewidth=0.6, zorder=1.5)
    else:
        look: Any = {"color": line.colour, "linestyle": line.dashes, "linewidth": 0.8, "zorder": 1.8}
        axes.plot(trail.horizon, _known(trail), label=trail.arm if named else None, **look)


def _known(trail: Trail) -> NDArray[np.float64]:
    """Return the coverage where it is not of a selection, else NaN."""
    return np.where(trail.given >= ENOUGH, trail.coverage.value, np.nan)


PICTURES = (Coverage(),)
