"""The calibration as a page, made of what a folder holds: a chart of coverage, every criterion with its scores."""

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unbandit._version import __version__
from unbandit.calibration.measure import GOAL, MARKS, Criterion, averaged, grid
from unbandit.calibration.record import Findings
from unbandit.formatting import capitalise, markdown_table
from unbandit.plots import parts
from unbandit.study.monte_carlo import LEVEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTRODUCTION = """\
# How far the answers can be trusted

{chart}Measured by unbandit {version}. Logs are simulated, so the truth behind them is known; the methods see only
which arm was pulled. No run is left out, whatever it found.
"""

EXPLANATION = """\
To measure it again: `make calibrate`. It can be stopped at any time and resumes where it stopped; the same seed gives
the same figures on any number of cores, but for time and memory. To look at one rule:
`{look}`.

Figures are given with one Monte-Carlo error; shares of independent runs with their exact 95% interval in brackets.
✓: the goal is met, the whole 95% interval lies within it. ~: these runs do not decide it. ✗: it is missed, the whole
interval lies outside. No mark: no goal applies.
"""

CHART = (
    "Share of the 95% intervals that hold the truth, by rule: the average over all cells with its 95% Monte-Carlo "
    "interval; small marks are single cells. The band is the goal, 93% to 97%; (0/1) marks rewards of 0 and 1."
)
LEFT_OUT_SHOWN = 5


def page(found: Sequence[Findings], picture: str | None = None) -> str:
    """Return the page, in Markdown; `picture` is the address of the chart."""
    chart = f"![{CHART}]({picture})\n\n*{CHART}*\n\n" if picture else ""
    look = shlex.join(["unbandit", "calibrate", "posterior", "--rule", "ucb", "--runs", "50", "-o", "look"])
    lines = [
        INTRODUCTION.format(chart=chart, version=__version__),
        *_measures(found),
        "",
        EXPLANATION.format(look=look),
    ]
    criteria = [each for own in found for each in own.criteria]
    if criteria:
        rows = [(each.key, each.measure, each.goal, each.span, each.counted) for each in criteria]
        lines += markdown_table(("figures", "measure", "goal", "measured", "cells"), rows)
    for own in found:
        lines += _section(own)
    return "\n".join(lines) + "\n"


def _measures(found: Sequence[Findings]) -> Iterator[str]:
    """Yield a table of what was measured, with which settings, and of what is missing."""
    rows: list[tuple[str, ...]] = []
    for own in found:
        measure = f"[{own.measure.title}](#{own.measure.title.lower().replace(' ', '-')})"
        if not own.cells:
            rows.append((measure, own.measure.about, "**not measured**", _why_missing(own), "", ""))
            continue
        unfinished = f", {own.unfinished:,} cells unfinished" if own.unfinished else ""
        numbers = [", ".join(map(str, own.settings(key))) for key in ("seed", "code")]
        rows.append((measure, own.measure.about, f"{own.runs}{unfinished}", _work(own), *numbers))
    yield from markdown_table(("measured", "what", "runs per cell", "settings", "seed", "code"), rows)


def _work(own: Findings) -> str:
    """Write the settings by which posteriors may differ from those that users get."""
    sizes = own.settings("particles")
    if not sizes:
        return "as users get them"
    texts = []
    if sizes != [None]:
        texts.append(f"{', '.join(str(size or 'default') for size in sizes)} particles")
    if clouds := own.settings("clouds"):
        texts.append(f"{', '.join(map(str, clouds))} clouds")
    return f"{'as users get them: default particles, ' if sizes == [None] else ''}{', '.join(texts)}".rstrip(", ")


def _why_missing(own: Findings) -> str:
    if own.unfinished:
        return f"{own.unfinished:,} cells unfinished"
    more = f" and {len(own.left_out) - LEFT_OUT_SHOWN} more" if len(own.left_out) > LEFT_OUT_SHOWN else ""
    return "; ".join(own.left_out[:LEFT_OUT_SHOWN]) + more


def _section(own: Findings) -> Iterator[str]:
    """Yield what a page says about one measure."""
    yield from ("", f"## {own.measure.title}", "")
    if not own.cells:
        yield f"Not measured yet: {own.measure.about}. To measure it: `unbandit calibrate {own.measure.name}`."
        return
    yield f"Measured: {own.measure.about}. Runs per cell: {own.runs}."
    criteria = own.criteria
    for criterion in criteria:
        yield from ("", f"### {capitalise(criterion.key)}", "")
        yield f"{capitalise(criterion.measure)}.{_goal(criterion.goal)}"
        if criterion.note:
            yield criterion.note
        yield ""
        scores = [(score.row, score.column, f"{score.text}{MARKS[score.verdict]}") for score in criterion.scores]
        yield from grid(criterion.rows, scores)
    yield from own.measure.remarks(own.metrics, criteria)


def _goal(goal: str) -> str:
    """Return the sentence about a goal, if there is one: `no goal: a property of the rule` says why there is none."""
    return "" if goal == "no goal" else f" {capitalise(goal)}." if goal.startswith("no goal") else f" Goal: {goal}."


def short_labels(names: Sequence[str]) -> list[str]:
    """Shorten the names of rules to what distinguishes them: a parameter stays where rules of one name differ in it.

    >>> short_labels(["ucb:alpha=0.25", "sae:alpha=0.25,scale=1.4", "sae:alpha=0.25,scale=0.4", "ucb, Bernoulli"])
    ['ucb', 'sae scale=1.4', 'sae scale=0.4', 'ucb (0/1)']
    """
    split = [(*rule.partition(":")[::2], noise) for rule, _, noise in (name.partition(", ") for name in names)]
    labels = []
    for rule, parameters, noise in split:
        alike = [set(other.split(",")) for name, other, noisy in split if (name, noisy) == (rule, noise)]
        own = [each for each in parameters.split(",") if each and not all(each in other for other in alike)]
        labels.append(" ".join([rule, *own, *([noise.replace("Bernoulli", "(0/1)")] if noise else [])]))
    return labels


def coverage_chart(criteria: Sequence[Criterion]) -> "Figure | None":
    """Draw the coverage of every rule with its Monte-Carlo interval; None if nothing was measured that has one."""
    charted = [
        (each.charted, {score.row: [own for own in each.scores if own.row == score.row] for score in each.scores})
        for each in criteria
        if each.charted
    ]
    names = list(dict.fromkeys(name for _, rows in charted for name in rows))
    if not names:
        return None
    with parts.styled():
        layout = parts.RowLayout(short_labels(names), [""] * len(names), "", row_height=0.1 + 0.09 * len(charted))
        lowest, entries = GOAL[0], []
        for at, (label, rows) in enumerate(charted):
            line, offset = parts.LINES[at], (at - (len(charted) - 1) / 2) / (len(charted) + 1)
            look: parts.Look = {"color": line.colour, "marker": line.marker, "markersize": 5, "linestyle": "none"}
            for place, name in enumerate(names):
                cells = [own.measured for own in rows.get(name, ()) if math.isfinite(own.measured.value)]
                if not cells:
                    continue
                values, mean, height = [each.value for each in cells], averaged(cells), place + offset
                ends = mean.interval(LEVEL)
                layout.axes.plot(
                    values, [height] * len(values), "|", color=line.colour, alpha=0.35, markersize=5, zorder=2
                )
                layout.axes.plot(ends, [height] * 2, color=line.colour, linewidth=1.6, zorder=3)
                layout.axes.plot([mean.value], [height], **look, zorder=4)
                lowest = min(lowest, *values, ends[0])
            entries.append((look, label))
        ticks = parts.even_ticks(max(0.0, lowest - 0.01), 1.0)
        shown = ticks._replace(labels=[f"{100 * value:.3g}%" for value in ticks.values])
        parts.put_scale(layout.axes, "x", shown, "95% intervals that hold the truth")
        layout.axes.axvspan(*GOAL, color=parts.GRID, alpha=0.6, linewidth=0, zorder=0.5)
        layout.axes.axvline(0.95, color=parts.SOFT, linewidth=0.9, linestyle=(0, (3, 2)), zorder=1)
        parts.put_key(layout.axes, entries)
    return layout.figure
