"""Coverage of the 95% intervals in the studies behind every other figure: of all intervals, and of single arms."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unbandit.formatting import short_numbers
from unbandit.paper.battery import four_protocols, three_at_random, twenty
from unbandit.paper.claims import FAILS, HOLDS, NOTHING, UNTESTED, Claim, Decision
from unbandit.paper.figure import PROCEDURES, PaperFigure, Results, Size, figures
from unbandit.paper.gene import TRACKED
from unbandit.paper.panels import LINES, THEORY, Series, panels
from unbandit.plots.parts import Line
from unbandit.study import Study, StudyResult
from unbandit.study.curves import ENOUGH, Curve, StudyCurves
from unbandit.study.monte_carlo import Measured, exact_interval, measured, share

NOMINAL = 0.95
LIMITS = (0.93, 0.97)  # how far from the nominal 95% a coverage may be, two hundredths, and still be called near it
MOST_SINGLE_ARMS = 20  # up to this many suboptimal arms, each has a curve; of more, only those that a figure plots
MOST_PLOTTED_ARMS = 3  # up to this many suboptimal arms, a figure that names none of them plots each

PLOTTED: dict[str, Callable[[], Sequence[str]]] = {
    "battery": lambda: three_at_random(twenty("high")),
    "battery-regimes": lambda: four_protocols()[:1],
    "gene": lambda: [TRACKED],
    "gene-all": lambda: [TRACKED],
}
"""The arms whose errors a figure plots, where it chooses some of many."""


class Coverage(PaperFigure):
    """How often the 95% intervals hold the truth."""

    name = "coverage"
    title = "Coverage of the 95% intervals, everywhere"
    section = "not in the paper, which gives no intervals"
    full_only = True

    def studies(self, size: Size) -> dict[str, Study]:
        """Ask for the studies of all other figures, under the names of both."""
        return {
            f"{figure.name}/{name}": study
            for figure in figures().values()
            if not isinstance(figure, Coverage)
            for name, study in figure.studies(size).items()
        }

    def home(self, study: str) -> str:
        """Return where a study's parts are: those of the figure that it belongs to."""
        return study

    def draw(self, results: Results) -> Figure:
        by_study = {name: curves for name, curves in _by_study(results).items() if curves}
        figure, axes = panels(len(by_study), columns=4, width=2.85, height=2.6)
        for panel, (name, curves) in zip(axes, by_study.items(), strict=True):
            _draw_curves(panel, curves)
            panel.set_title(name.replace("/", ": "), loc="right", fontsize=8)
        return figure

    def table(self, results: Results) -> pl.DataFrame:
        """Return every point: of all intervals together, and of single arms."""
        return pl.concat(
            Series(name, curve.name, curve.horizon, curve.coverage, curve.given).rows.with_columns(
                pl.Series("held", curve.held), pl.Series("intervals", curve.intervals)
            )
            for name, curves in _by_study(results).items()
            for curve in curves
        )

    def claims(self, results: Results) -> list[Claim]:
        what = (
            "coverage of all intervals given, whatever the arm, and of each suboptimal arm (of more than "
            f"{MOST_SINGLE_ARMS}, those plotted), at every horizon where at least {ENOUGH:.0%} of those that the runs "
            "could give were given; all within 93% to 97% (by intervals that are right all at once in 95% of cases); "
            "the value is the smallest"
        )
        claims = []
        for figure, curves in _by_figure(_by_study(results)).items():
            says = f"the 95% intervals hold the truth in 93% to 97% of cases, at every point of {figure}"
            smallest, decision = inside(curves, *LIMITS)
            claims.append(Claim(says, what, smallest, *decision, ours=True))
        return claims


@dataclass(frozen=True)
class CoverageCurve:
    """The coverage of all intervals of one instance and rule, or of one arm's, over the horizons."""

    cell: str  # instance and rule, as far as the study has several
    arm: str  # empty for all arms together
    plotted: bool  # whether a figure plots it
    horizon: NDArray[np.int64]
    coverage: Measured  # the share of intervals that hold the true gap
    held: NDArray[np.float64]  # how many hold it
    intervals: NDArray[np.float64]  # how many there are
    given: NDArray[np.float64]  # their share of the most that the runs can give
    independent: bool  # whether no run gives two of them

    @property
    def name(self) -> str:
        """Return cell and arm in words."""
        return ", ".join(filter(None, (self.cell, self.arm or "all intervals")))

    @property
    def unselected(self) -> NDArray[np.float64]:
        """Return the coverage; NaN where the intervals given are a selection."""
        return np.where(self.given >= ENOUGH, self.coverage.value, np.nan)

    def ends(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intervals of the coverage: exact if each run gives one; else, as those of a run are correlated, t."""
        if self.independent:
            return exact_interval(self.held, self.intervals, level)
        # if all groups of runs gave the same, nothing is known of the error
        error = np.where(self.coverage.error > 0, self.coverage.error, np.inf)
        return replace(self.coverage, error=error).interval(level)

    def at(self, point: int) -> Measured:
        """Return the coverage at one horizon."""
        if self.independent:
            return share(self.held[point], self.intervals[point])
        return Measured(float(self.coverage.value[point]), float(self.coverage.error[point]), self.coverage.folds)


def coverage_curves(study: Study, folds: StudyCurves, plotted: Collection[str] = ()) -> list[CoverageCurve]:
    """Return the coverage of Procedures 1 and 2 over the horizons, for each instance and rule of a study.

    Of all intervals, then of single suboptimal arms. `plotted` are the arms that a figure plots, if it does not plot
    all.
    """
    if PROCEDURES not in map(str, study.estimators):
        return []
    curves, texts, horizons = list[CoverageCurve](), [str(rule) for rule in study.rules], np.sort(study.horizons)
    for given, rule in product(study.instances, study.rules):
        cells = [folds.over_arms(horizon=at, instance=given.name, rule=rule, estimator=PROCEDURES) for at in horizons]
        name = ", ".join([given.name] * (len(study.instances) > 1) + _own_parts(str(rule), texts))
        arms, worse = cells[0].along.tolist(), np.flatnonzero(cells[0].gap > 0).tolist()
        curves.append(_coverage_curve(name, "", True, horizons, cells, list(range(len(arms)))))
        for place in worse:
            shown = arms[place] in plotted or (not plotted and len(worse) <= MOST_PLOTTED_ARMS)
            if shown or len(worse) <= MOST_SINGLE_ARMS:
                gaps = {float(cell.gap[place]) for cell in cells}
                arm = f"arm {arms[place]}" + (f" (gap {gaps.pop():.2g})" if len(gaps) == 1 else "")
                curves.append(_coverage_curve(name, arm, shown, horizons, cells, [place]))
    return curves


def inside(curves: Sequence[CoverageCurve], low: float, high: float) -> tuple[Measured | None, Decision]:
    """Decide whether coverage lies between two limits at every point with enough intervals; return the smallest.

    The intervals of all m points are right simultaneously with 95%: each has the level 1 - 0.05 / m.
    """
    enough = [curve.given >= ENOUGH for curve in curves]
    count = sum(int(there.sum()) for there in enough)
    if not count:
        return None, (UNTESTED, NOTHING)
    points, outside, undecided = list[tuple[float, str, Measured]](), 0, 0
    for curve, there in zip(curves, enough, strict=True):
        lower, upper = (end[there] for end in curve.ends(1 - 0.05 / count))
        out = (upper < low) | (high < lower)
        outside += int(out.sum())
        undecided += int((~out & ~((low <= lower) & (upper <= high))).sum())
        for point in np.flatnonzero(there).tolist():
            value = curve.at(point)
            points.append((value.value, f"{curve.name}, T = {curve.horizon[point]:,}", value))
    smallest, largest = (extreme(points, key=lambda point: point[:2]) for extreme in (min, max))
    because = (
        f"from {smallest[0]:.1%} ({smallest[1]}) to {largest[0]:.1%} ({largest[1]}); of {count:,} points {outside:,} "
        f"lie outside and {undecided:,} may lie on either side"
    )
    return smallest[2], (FAILS if outside else UNTESTED if undecided else HOLDS, because)


def _by_study(results: Results) -> dict[str, list[CoverageCurve]]:
    """Return the curves of every study, by the names of its figure and its own; none where it gives no intervals."""
    return {name: results.once(name, partial(_curves, name, result)) for name, result in results.studies.items()}


def _curves(name: str, result: StudyResult) -> list[CoverageCurve]:
    plotted = PLOTTED.get(name.partition("/")[0], tuple)
    return coverage_curves(result.study, result.curves(), plotted())


def _by_figure(by_study: dict[str, list[CoverageCurve]]) -> dict[str, list[CoverageCurve]]:
    """Return the curves of every figure, with the study's name if it has several."""
    by_figure, names = dict[str, list[CoverageCurve]](), [name.partition("/")[0] for name in by_study]
    for name, curves in by_study.items():
        figure, _, study = name.partition("/")
        several = [study] * (names.count(figure) > 1)
        for curve in curves:
            cell = ", ".join(filter(None, (*several, curve.cell)))
            by_figure.setdefault(figure, []).append(replace(curve, cell=cell))
    return by_figure


def _own_parts(text: str, texts: Sequence[str]) -> list[str]:
    """Return what distinguishes a rule from the others, in short: `alpha=0.25`."""
    parts = [set(other.replace(":", ",").split(",")) for other in texts]
    own = [part for part in text.replace(":", ",").split(",") if not all(part in others for others in parts)]
    return [short_numbers(part) for part in own]


def _coverage_curve(
    cell: str, arm: str, plotted: bool, horizons: NDArray[np.int64], cells: list[Curve], places: list[int]
) -> CoverageCurve:
    held, intervals = (
        np.stack([each.replicates(of)[:, places].sum(axis=1) for each in cells], axis=1) for of in ("held", "intervals")
    )
    coverage = measured(held / np.where(intervals > 0, intervals, np.nan))
    most = max(1, len(places) - 1)  # the arm found best has none
    given = intervals[0] / (most * np.array([each.runs[0] for each in cells]))
    return CoverageCurve(cell, arm, plotted, horizons, coverage, held[0], intervals[0], given, independent=most == 1)


def _draw_curves(axes: Axes, curves: list[CoverageCurve]) -> None:
    axes.axhspan(*LIMITS, color="#eeeeee", linewidth=0, zorder=0)
    axes.axhline(NOMINAL, color=THEORY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xscale("log")
    together = [curve for curve in curves if not curve.arm]
    lines = {curve.cell: LINES[place % len(LINES)] for place, curve in enumerate(together)}
    own = iter(LINES[1:]) if len(together) == 1 else None
    horizons = curves[0].horizon
    span = np.log(horizons.max() / horizons.min()) or 2.0
    for curve in curves:
        look: Any = {"color": "#b9b9b9", "linewidth": 0.6, "zorder": 1.5}
        if curve.arm and curve.plotted:
            line, label = (next(own), curve.arm) if own else (lines[curve.cell], None)
            look = {"color": line.colour, "linestyle": line.dashes, "linewidth": 0.8, "zorder": 1.8, "label": label}
        if curve.arm:
            axes.plot(curve.horizon, curve.unselected, **look)
    for place, curve in enumerate(together):
        aside = np.exp(span * 0.012 * (place - (len(together) - 1) / 2))  # so that bars stand side by side
        _draw_together(axes, curve, lines[curve.cell], aside)
    values = np.concatenate([curve.unselected if curve.arm else curve.coverage.value for curve in curves])
    least = float(np.min(values, initial=0.9, where=np.isfinite(values)))
    axes.set(xlabel="horizon T", ylabel="coverage", ylim=(max(-0.02, least - 0.04), 1.01))
    middle = int(np.abs(np.log(horizons**2 / (horizons[0] * horizons[-1]))).argmin())
    ticks = np.unique(horizons[[0, middle, -1]])
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks.tolist()], fontsize=8)
    axes.minorticks_off()
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        arms = {curve.arm for curve in curves}
        order = sorted(range(len(names)), key=lambda at: names[at] in arms)  # single arms last
        columns = 2 if max(map(len, names)) <= 22 else 1
        shown: Any = {"handles": [handles[at] for at in order], "labels": [names[at] for at in order]}
        where: Any = {"loc": "upper left", "bbox_to_anchor": (-0.12, -0.28)}
        axes.legend(**shown, **where, fontsize=6, ncols=columns, handlelength=1.6, handletextpad=0.3, columnspacing=0.8)


def _draw_together(axes: Axes, curve: CoverageCurve, line: Line, aside: float) -> None:
    """Draw the line of all intervals, its markers hollow where those given are a selection."""
    value, error, along = curve.coverage.value, curve.coverage.error, curve.horizon * aside
    enough = curve.given >= ENOUGH
    look: Any = {"fmt": line.marker, "color": line.colour, "markersize": 3, "elinewidth": 0.8, "zorder": 3}
    axes.plot(along, value, color=line.colour, linewidth=0.9, alpha=0.6, zorder=2)
    for which, face, name in ((enough, line.colour, curve.cell or curve.name), (~enough, "white", None)):
        axes.errorbar(along[which], value[which], error[which], markerfacecolor=face, label=name, **look)


FIGURES = (Coverage(),)
