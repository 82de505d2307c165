"""The result of a calibration, and its page: the table of criteria, then every score behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from unbandit._version import __version__
from unbandit.calibration.closed_forms import CoverageMetrics
from unbandit.calibration.costs import Timing
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
from unbandit.calibration.metrics import IdentifyMetrics, PosteriorMetrics
from unbandit.calibration.settings import CLOUDS, short
from unbandit.formatting import markdown_table

MARKS: dict[Verdict | None, str] = {REACHED: " ✓", NEARLY: " ~", MISSED: " ✗", UNKNOWN: "", None: ""}


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
        criteria = posterior_criteria(self.posteriors) if self.posteriors else []
        criteria += closed_form_criteria(self.closed_forms) if self.closed_forms else []
        return [*criteria, *identify_criteria(self.identified), *timing_criteria(self.timings)]

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
    return "\n".join(_lines(done)) + "\n"


def _lines(done: Calibration) -> Iterator[str]:
    criteria = done.criteria
    yield "# How far the answers can be trusted"
    yield ""
    more = ", ".join(f"{times} times as many for `{short(text)}`" for text, times in CLOUDS.items())
    yield f"Written by `{done.asked}` of unbandit {__version__}, seed {done.seed}. Posteriors have"
    yield f"{done.clouds} cloud(s) of {done.particles:,} particles ({more}),"
    yield "where users get four clouds of 250 to 4,000 by default: here are thousands of posteriors. Rules whose"
    yield "posterior takes long have a part of the runs; the table at the end has the number of each."
    yield "Records are simulated, so the truth behind them is known; the methods see only which arm was pulled. No run"
    yield "is left out, whatever it found."
    yield ""
    yield "To measure all of it again: `make calibrate`. It may be stopped at any moment and goes on where it stopped;"
    yield "the same seed gives the same figures on any number of cores, but for time and memory. To look at one rule:"
    yield "`unbandit calibrate posterior --rule ucb --runs 50 -o look`."
    yield ""
    yield "Figures are given with one Monte-Carlo error. ✓: the goal is reached. ~: it is missed by less than two"
    yield "Monte-Carlo errors, so more runs would tell. ✗: it is not reached. No mark: no goal speaks of it."
    yield ""
    yield from markdown_table(
        ("measure", "to reach", "measured", "figures"),
        [(criterion.measure, criterion.reach, criterion.span, criterion.counted) for criterion in criteria],
    )
    for criterion in criteria:
        yield ""
        yield f"## {criterion.key[0].upper()}{criterion.key[1:]}"
        yield ""
        yield f"{criterion.measure[0].upper()}{criterion.measure[1:]}. To reach: {criterion.reach}."
        if criterion.note:
            yield criterion.note
        yield ""
        yield from _scores(criterion)
        reasons = list(_reasons(criterion))
        if reasons:
            yield ""
            yield from reasons
    yield from _runs(done)
    yield from _failures(done)


def _scores(criterion: Criterion) -> list[str]:
    """Lay out the scores of a criterion: one row per rule, one column per cell."""
    columns = list(dict.fromkeys(score.column for score in criterion.scores))
    shown = {(score.row, score.column): f"{score.text}{MARKS[score.verdict]}" for score in criterion.scores}
    rows = dict.fromkeys(score.row for score in criterion.scores)
    cells = [(f"`{row}`", *(shown.get((row, column), "") for column in columns)) for row in rows]
    return markdown_table((criterion.rows, *columns), cells)


def _reasons(criterion: Criterion) -> Iterator[str]:
    """Say why a criterion is missed, where that is known."""
    missing = dict.fromkeys(
        score.row.partition(":")[0].partition(",")[0] for score in criterion.scores if score.verdict == MISSED
    )
    for name in missing:
        if (criterion.key, name) in REASONS:
            yield f"- `{name}`: {REASONS[criterion.key, name]}"


def _runs(done: Calibration) -> Iterator[str]:
    """List how many runs stand behind the figures of the posterior."""
    if not done.posteriors:
        return
    cells = [(each.setting.cell, each) for each in done.posteriors]
    columns = list(dict.fromkeys(cell for cell, _ in cells))
    counted: dict[str, dict[str, str]] = {}
    for cell, each in cells:
        counted.setdefault(short(each.setting.rule), {})[cell] = f"{each.runs:,}"
    yield ""
    yield "## Runs behind the figures of the posterior"
    yield ""
    rows = [(f"`{rule}`", *(found.get(column, "") for column in columns)) for rule, found in counted.items()]
    yield from markdown_table(("rule", *columns), rows)


def _failures(done: Calibration) -> Iterator[str]:
    """List where runs ended without a posterior, or with a warning."""
    thin = [each for each in done.posteriors if each.failed or each.warned]
    if not thin:
        return
    yield ""
    yield "## Where the tool warns or gives up"
    yield ""
    yield "A posterior that cannot be trusted comes with a warning (`clouds-differ`), or not at all."
    yield ""
    rows = [
        (f"`{short(each.setting.rule)}`", each.setting.cell, f"{each.runs:,}",
         f"{each.warned:,}", f"{each.failed:,}")
        for each in thin
    ]  # fmt: skip
    yield from markdown_table(("rule", "cell", "runs", "with a warning", "without a posterior"), rows)
