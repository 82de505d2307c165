"""What a measure of the calibration is, what is stored of it, and its criteria: goals, and whether runs decide them.

A measure defines the cells that are played, the metrics of the rows of a cell, and its part of the page; the queue, the
folder, the page and the table of coverages follow by themselves. A new one joins by being listed in
`calibration/calibrate.py:MEASURES`.
"""

import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

import polars as pl

from unbandit._version import __version__
from unbandit.calibration.settings import CellTrials, Sizes, played
from unbandit.errors import UnbanditError, first_line
from unbandit.estimators.coverage import SimulatedCoverage
from unbandit.formatting import markdown_table
from unbandit.study.monte_carlo import FOLDS, LEVEL, Measured, Share
from unbandit.study.results import STUDY, ResultsFolder

Verdict = Literal["met", "not decided", "missed", "not measured"]
MET: Verdict = "met"
OPEN: Verdict = "not decided"
MISSED: Verdict = "missed"
UNKNOWN: Verdict = "not measured"
FEWEST_QUOTED = 100  # runs of a cell, for reports to quote how often its intervals held
MARKS: dict[Verdict | None, str] = {MET: " ✓", OPEN: " ~", MISSED: " ✗", UNKNOWN: "", None: ""}


@dataclass(frozen=True)
class Score:
    """One measured number with its verdict, and its place in the criterion's table."""

    row: str  # rule
    column: str  # cell
    measured: Measured
    text: str  # the number as it is written
    verdict: Verdict | None  # None if the criterion does not apply


@dataclass(frozen=True)
class Criterion:
    """One criterion, and every score that it applies to."""

    key: str
    measure: str  # what is measured
    goal: str
    note: str = ""  # what a reader of its table has to know
    rows: str = "rule"  # what the rows of its table are
    charted: str = ""  # whose intervals these are, if their coverage stands in the chart
    scores: Sequence[Score] = ()
    only_misses: bool = False  # whether a score can miss the goal, but not meet it

    @property
    def span(self) -> str:
        """Return the smallest and the largest score that were judged, as they are written."""
        judged = [score for score in self.scores if score.verdict not in (None, UNKNOWN)] or self.scores
        shown = sorted(judged, key=lambda score: score.measured.value)
        shown = [score for score in shown if math.isfinite(score.measured.value)]
        return " to ".join(dict.fromkeys((shown[0].text, shown[-1].text))) if shown else "-"

    @property
    def counted(self) -> str:
        """Return how many scores have which verdict: `2 met, 1 missed`."""
        counts = Counter(score.verdict for score in self.scores)
        order = (MET, OPEN, MISSED, UNKNOWN)
        known = any(math.isfinite(score.measured.value) for score in self.scores)
        otherwise = "no goal" if not self.only_misses else "none missed" if known else UNKNOWN
        return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in order if counts[verdict]) or otherwise


def judge(value: Measured, low: float = -math.inf, high: float = math.inf) -> Verdict:
    """Return whether a number lies between its limits, as far as the runs decide.

    A goal is met if all of the number's 95% interval lies within the limits, and missed if all of it lies outside.
    A share of independent runs has an exact interval, so that not even 12 of 12 runs decide more than they can; fewer
    than 20 runs decide nothing else, since their error is hardly known.

    Examples
    --------
    >>> from unbandit.study.monte_carlo import share
    >>> [judge(share(held, runs), low=0.93) for held, runs in ((12, 12), (300, 300), (9, 12), (240, 300))]
    ['not decided', 'met', 'not decided', 'missed']
    """
    if not math.isfinite(value.value):
        return UNKNOWN
    if not isinstance(value, Share) and 0 < value.folds < FOLDS:
        return OPEN
    below, above = value.interval(LEVEL)
    if low <= below and above <= high:
        return MET
    return MISSED if above < low or below > high else OPEN


def percent(value: Measured) -> str:
    """Write a share with its error, `94.8 ± 0.5%`; of independent runs with its exact interval, `1.0% (0.1 to 3.6)`."""
    if not math.isfinite(value.value):
        return "-"
    if isinstance(value, Share):
        low, high = value.interval(LEVEL)
        return f"{100 * value.value:.1f}% ({100 * low:.1f} to {100 * high:.1f})"
    return f"{_with_error(100 * value.value, 100 * value.error, 1)}%"


def times(value: Measured) -> str:
    """Write a ratio with its error: `1.03 ± 0.02`, `1.046 ± 0.002`, `0.0012 ± 0.0002`."""
    digits = 4 if value.value < 0.1 else 3 if value.error < 0.005 else 2
    return _with_error(value.value, value.error, digits) if math.isfinite(value.value) else "-"


def _with_error(value: float, error: float, digits: int) -> str:
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if math.isfinite(error) else "")


def grid(heading: str, entries: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lay out (row, column, text) entries as a table in Markdown."""
    table: dict[str, dict[str, str]] = {}
    for row, column, text in entries:
        table.setdefault(row, {})[column] = text
    columns = list(dict.fromkeys(column for texts in table.values() for column in texts))
    cells = [(f"`{row}`", *(texts.get(column, "") for column in columns)) for row, texts in table.items()]
    return markdown_table((heading, *columns), cells)


class Measure(ABC):
    """One thing that is measured."""

    name: ClassVar[str]  # in the shell, and of its folder
    title: ClassVar[str]  # of its part of the page
    about: ClassVar[str]  # what is measured, in a sentence

    @abstractmethod
    def trials(self, sizes: Sizes) -> Iterator[tuple[str, CellTrials]]:
        """Yield what is played, with the text of the rule that it is about: the cells, and the rows of each run."""

    @abstractmethod
    def metrics(self, cell: Any, rows: pl.DataFrame) -> Any:
        """Return the metrics of one cell, all of whose rows are given."""

    @abstractmethod
    def criteria(self, metrics: Sequence[Any]) -> list[Criterion]:
        """Return what is to be reached with what was measured, given the metrics of at least one cell."""

    def remarks(self, metrics: Sequence[Any], criteria: Sequence[Criterion]) -> Iterator[str]:
        """Yield more lines of the page, in Markdown; by default none."""
        yield from ()

    def coverages(self, metrics: Sequence[Any]) -> Iterator[SimulatedCoverage]:
        """Yield how often intervals held, for the table that reports quote; by default nothing."""
        yield from ()


@dataclass
class Findings:
    """What a folder holds of one measure: of this version, and of cells all of whose runs are there."""

    measure: Measure
    metrics: list[Any] = field(default_factory=list)
    trials: list[CellTrials] = field(default_factory=list)  # that the metrics are of
    unfinished: int = 0  # cells some of whose runs are missing, in every folder that has some
    left_out: list[str] = field(default_factory=list)  # why folders were not read
    quotable: list[Any] = field(default_factory=list)  # the metrics of cells with enough runs of what users get

    @property
    def criteria(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        return self.measure.criteria(self.metrics) if self.metrics else []

    @property
    def coverages(self) -> list[SimulatedCoverage]:
        """Return how often intervals held, for reports to quote."""
        return [*self.measure.coverages(self.quotable)]

    @property
    def runs(self) -> str:
        """Return how many runs a cell has, or from how many to how many."""
        numbers = sorted({cell.runs for each in self.trials for cell in each.cells})
        return " to ".join(f"{number:,}" for number in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else ""

    def settings(self, key: str) -> list[Any]:
        """Return the values of a setting, by which the stored trials may differ."""
        return list(dict.fromkeys(each.identity[key] for each in self.trials if key in each.identity))


def stored(folder: Path, measure: Measure) -> Findings:
    """Read what is stored of a measure, whatever command wrote it; refuse parts that were altered."""
    found, home = Findings(measure), folder / measure.name
    places = {place.name: place for place in home.iterdir() if (place / STUDY).is_file()} if home.is_dir() else {}
    known = [trials for _, trials in measure.trials(Sizes())]
    read: list[tuple[int, CellTrials, Path]] = []
    for name, place in sorted(places.items()):
        written_by = _trials_of(place, measure, known)
        if isinstance(written_by, str):
            found.left_out.append(f"{measure.name}/{name}: {written_by}")
        else:
            read.append((*written_by, place))
    begun: set[str] = set()
    finished: set[str] = set()
    for _, trials, place in sorted(read, key=lambda each: each[0]):
        begun.update(played(cell.described) for cell in trials.cells)
        finished.update(played(cell.described) for cell in _read_cells(found, trials, ResultsFolder(place, trials)))
    found.unfinished = len(begun - finished)
    return found


def _trials_of(place: Path, measure: Measure, known: Sequence[CellTrials]) -> tuple[int, CellTrials] | str:
    """Return the trials that a folder was written by, with their place among those known, or why it is left out."""
    try:
        saved = json.loads((place / STUDY).read_text(encoding="utf-8"))
        kind, version = saved["schema"].partition("/")[0], saved["version"]
        if kind != f"unbandit.calibration.{measure.name}":
            return "another measure"
        if version != __version__:
            return f"measured by unbandit {version}"
        for at, each in enumerate(known):
            if (trials := each.as_stored(saved)) is not None:
                return at, trials
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UnbanditError) as error:
        return f"cannot be read ({first_line(error)})"
    return "other cells than this version measures"


def _read_cells(found: Findings, trials: CellTrials, place: ResultsFolder) -> Iterator[Any]:
    """Take in the metrics of the cells that are finished, and yield these."""
    finished, numbers = place.finished(), [(task.cell, task.number) for task in trials.tasks]
    found.trials.append(trials)
    defaults = {each.name: each.default for each in fields(trials)}
    as_users_get = all(getattr(trials, name) == defaults[name] for name in ("particles", "clouds") if name in defaults)
    for at, cell in enumerate(trials.cells):
        own = [number for which, number in numbers if which == at]
        if finished.issuperset(own):
            rows = pl.concat([place.read(number) for number in own])
            found.metrics.append(found.measure.metrics(cell, rows))
            if cell.runs >= FEWEST_QUOTED and as_users_get:
                found.quotable.append(found.metrics[-1])
            yield cell
