"""The calibration as a page, made of what a folder holds: a chart of coverage, an overview, every table."""

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unbandit._version import __version__
from unbandit.calibration.measure import GOAL, MARKS, MISSED, OPEN, Criterion, Score, averaged, grid
from unbandit.calibration.record import Findings
from unbandit.formatting import capitalise, markdown_table
from unbandit.plots import parts
from unbandit.study.monte_carlo import LEVEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTRODUCTION = """\
# How far the answers can be trusted

{chart}How often do intervals hold the truth, how large are errors, and are rules recognised? Logs are simulated, so the
truth behind them is known; the methods see only which arm was pulled. No run is left out, whatever it found.

**How to read the tables.** A cell is a rule with K arms and T rounds. Its figure has one Monte-Carlo error; a share of
independent runs has its exact 95% interval in brackets. Intervals are nominal 95%: they should hold the truth in 95% of
the runs, and mostly 93% to 97% is taken as right. Above each table stands what is taken as right in it.

- No sign: the figure is right, with its whole 95% interval.
- ✗: it is outside, with its whole 95% interval.
- ~: the runs do not decide between the two.
- ·: it is not judged, because it comes from very few cases or the range is not meant for this cell.
"""

OVERVIEW = """\
## In short

Every table in one line: its smallest and largest figure, and how many cells are outside. The table shows which ones,
and text beside the tables says why, as far as that is known.
"""

CLOSING = """
## How this page was made

Measured by unbandit {version}, with `make calibrate`. It can be stopped at any time and resumes where it stopped; the
same seed gives the same figures on any number of cores, but for time and memory. To look at one rule:
`{look}`.
"""

CHART = (
    "Share of the 95% intervals that hold the truth, by rule: the average over all cells with its 95% Monte-Carlo "
    "interval; small marks are single cells. The band, 93% to 97%, is taken as right; (0/1) marks rewards of 0 and 1."
)
LEFT_OUT_SHOWN = 5


def page(found: Sequence[Findings], picture: str | None = None) -> str:
    """Return the page, in Markdown; `picture` is the address of the chart."""
    chart = f"![{CHART}]({picture})\n\n*{CHART}*\n\n" if picture else ""
    lines = [INTRODUCTION.format(chart=chart)]
    rows = [_in_short(each) for own in found for each in own.criteria if each.judged]
    if rows:
        headings = ("figures", "what is measured", "taken as right", "smallest to largest", "outside")
        lines += [OVERVIEW, *markdown_table(headings, rows)]
    for own in found:
        lines += _section(own)
    look = shlex.join(["unbandit", "calibrate", "posterior", "--rule", "ucb", "--runs", "50", "-o", "look"])
    lines += [CLOSING.format(version=__version__, look=look), *_measures(found)]
    return "\n".join(lines) + "\n"


def _in_short(criterion: Criterion) -> tuple[str, ...]:
    """Return the row of a table in the overview: what it is, its range, and how many cells are outside."""
    verdicts = [score.verdict for score in criterion.judged]
    missed = verdicts.count(MISSED)
    outside = f"**{missed:,} of {len(verdicts):,}**" if missed else f"none of {len(verdicts):,}"
    undecided = f", {verdicts.count(OPEN):,} not decided" if OPEN in verdicts else ""
    link = f"[{capitalise(criterion.key)}](#{re.sub('[^a-z0-9 -]', '', criterion.key.lower()).replace(' ', '-')})"
    return link, criterion.measure, criterion.goal, criterion.span, outside + undecided


def _measures(found: Sequence[Findings]) -> Iterator[str]:
    """Yield a table of what was measured, with which settings, and of what is missing."""
    rows: list[tuple[str, ...]] = []
    for own in found:
        measure = f"[{own.measure.title}](#{own.measure.title.lower().replace(' ', '-')})"
        if not own.cells:
            rows.append((measure, own.measure.about, "**not measured**", _why_missing(own), ""))
            continue
        unfinished = f", {own.unfinished:,} cells unfinished" if own.unfinished else ""
        seeds = ", ".join(map(str, own.settings("seed")))
        rows.append((measure, own.measure.about, f"{own.runs}{unfinished}", _work(own), seeds))
    yield from markdown_table(("measured", "what", "runs per cell", "settings", "seed"), rows)


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
        yield f"{capitalise(criterion.measure)}.{_range(criterion)}"
        if criterion.note:
            yield criterion.note
        yield ""
        scores = [(score.row, score.column, f"{score.text}{_mark(criterion, score)}") for score in criterion.scores]
        yield from grid(criterion.rows, scores)
    yield from own.measure.remarks(own.metrics, criteria)


def _range(criterion: Criterion) -> str:
    """Return the sentence about what is taken as right; `no goal: a property of the rule` says why nothing is."""
    wanted, _, why = criterion.goal.partition("no goal")
    if not wanted:
        return f" Neither right nor wrong{why}." if why else ""
    said = "Wanted" if criterion.key.startswith("time") else "Taken as right"
    return f" {'Nominal 95%; taken as right' if '95% intervals' in criterion.measure else said}: {wanted}."


def _mark(criterion: Criterion, score: Score) -> str:
    """Return the sign of a cell; none where nothing is judged, or cells can only be outside."""
    is_judged = criterion.judged and (score.verdict == MISSED or math.isfinite(score.measured.value))
    return "" if not is_judged or (criterion.only_misses and score.verdict is None) else MARKS[score.verdict]


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
