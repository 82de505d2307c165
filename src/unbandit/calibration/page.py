"""The result of a calibration, and its page: the table of criteria, then every score behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from unbandit._version import __version__
from unbandit.calibration.criteria import (
    MISSED,
    NEARLY,
    REACHED,
    REASONS,
    UNKNOWN,
    Criterion,
    Verdict,
    closed_form_criteria,
    identify_criteria,
    posterior_criteria,
    timing_criteria,
)
from unbandit.calibration.metrics import CoverageMetrics, IdentifyMetrics, PosteriorMetrics, Timing
from unbandit.calibration.settings import CLOUDS, short
from unbandit.formatting import markdown_table

MARKS: dict[Verdict | None, str] = {REACHED: " ✓", NEARLY: " ~", MISSED: " ✗", UNKNOWN: "", None: ""}

INTRODUCTION = """\
# How far the answers can be trusted

Written by `{asked}` of unbandit {version}, seed {seed}. Posteriors have
{clouds} cloud(s) of {particles:,} particles ({more}),
where users get four clouds of 250 to 4,000 by default: here are thousands of posteriors. Rules whose
posterior takes long have a part of the runs; the table at the end has the number of each.
Records are simulated, so the truth behind them is known; the methods see only which arm was pulled. No run
is left out, whatever it found.

To measure all of it again: `make calibrate`. It may be stopped at any moment and goes on where it stopped;
the same seed gives the same figures on any number of cores, but for time and memory. To look at one rule:
`unbandit calibrate posterior --rule ucb --runs 50 -o look`.

Figures are given with one Monte-Carlo error. ✓: the goal is reached. ~: it is missed by less than two
Monte-Carlo errors, so more runs would tell. ✗: it is not reached. No mark: no goal speaks of it.
"""


@dataclass
class Calibration:
    """What was measured.

    Attributes
    ----------
    folder
        Where everything is.
    asked
        The command that measures the same again.
    seed, particles, clouds
        Seed of everything drawn at random, and the size of the posteriors.
    posteriors, closed_forms, identified, timings
        The metrics; empty for what was not asked for.
    """

    folder: Path
    asked: str
    seed: int
    particles: int
    clouds: int
    posteriors: list[PosteriorMetrics] = field(default_factory=list)
    closed_forms: list[CoverageMetrics] = field(default_factory=list)
    identified: list[IdentifyMetrics] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)

    @property
    def page(self) -> Path:
        """Return the path of the page."""
        return self.folder / "calibration.md"

    @property
    def criteria(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        return [
            *posterior_criteria(self.posteriors),
            *closed_form_criteria(self.closed_forms),
            *identify_criteria(self.identified),
            *timing_criteria(self.timings),
        ]

    @property
    def figures(self) -> pl.DataFrame:
        """Return every score as a row."""
        rows = [
            (criterion.key, score.row, score.column, score.measured.value, score.measured.error, score.verdict)
            for criterion in self.criteria
            for score in criterion.scores
        ]
        texts, numbers = ("goal", "whose", "cell"), ("value", "error")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64) | {"verdict": pl.String}
        table = pl.DataFrame(rows, schema=schema, orient="row")
        return table.with_columns(pl.col(numbers).fill_nan(None).round_sig_figs(6))


def page(done: Calibration) -> str:
    """Return the page, in Markdown."""
    more = ", ".join(f"{times} times as many for `{short(text)}`" for text, times in CLOUDS.items())
    sizes = {"seed": done.seed, "clouds": done.clouds, "particles": done.particles, "more": more}
    return "\n".join([INTRODUCTION.format(asked=done.asked, version=__version__, **sizes), *_lines(done)]) + "\n"


def _lines(done: Calibration) -> Iterator[str]:
    criteria = done.criteria
    yield from markdown_table(
        ("measure", "to reach", "measured", "figures"),
        [(criterion.measure, criterion.reach, criterion.span, criterion.counted) for criterion in criteria],
    )
    for criterion in criteria:
        yield from ("", f"## {criterion.key[0].upper()}{criterion.key[1:]}", "")
        yield f"{criterion.measure[0].upper()}{criterion.measure[1:]}. To reach: {criterion.reach}."
        if criterion.note:
            yield criterion.note
        yield ""
        yield from _grid(
            criterion.rows,
            [(score.row, score.column, f"{score.text}{MARKS[score.verdict]}") for score in criterion.scores],
        )
        if reasons := list(_reasons(criterion)):
            yield from ("", *reasons)
    if done.posteriors:
        yield from ("", "## Runs behind the figures of the posterior", "")
        cells = [(short(each.setting.rule), each.setting.cell, f"{each.runs:,}") for each in done.posteriors]
        yield from _grid("rule", cells)
    thin = [each for each in done.posteriors if each.failed or each.warned]
    if thin:
        yield from ("", "## Where the tool warns or gives up", "")
        yield from ("A posterior that cannot be trusted comes with a warning (`clouds-differ`), or not at all.", "")
        headings = ("rule", "cell", "runs", "with a warning", "without a posterior")
        counts = [(each, (each.runs, each.warned, each.failed)) for each in thin]
        yield from markdown_table(
            headings,
            [(f"`{short(each.setting.rule)}`", each.setting.cell, *map("{:,}".format, own)) for each, own in counts],
        )


def _grid(heading: str, entries: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lay out (row, column, text) entries as a table."""
    table: dict[str, dict[str, str]] = {}
    for row, column, text in entries:
        table.setdefault(row, {})[column] = text
    columns = list(dict.fromkeys(column for texts in table.values() for column in texts))
    cells = [(f"`{row}`", *(texts.get(column, "") for column in columns)) for row, texts in table.items()]
    return markdown_table((heading, *columns), cells)


def _reasons(criterion: Criterion) -> Iterator[str]:
    """Say why a criterion is missed, where that is known."""
    missed = [score.row for score in criterion.scores if score.verdict == MISSED]
    for name in dict.fromkeys(row.partition(":")[0].partition(",")[0] for row in missed):
        if (criterion.key, name) in REASONS:
            yield f"- `{name}`: {REASONS[criterion.key, name]}"
