"""What a measure of the calibration is, what is stored of it, and its criteria: goals, and whether runs decide them.

A measure defines the cells that are played, the metrics of the rows of a cell, and its part of the page; the queue, the
folder, the page and the table of coverages follow by themselves. A new one joins by being listed in
`calibration/calibrate.py:KINDS`.
"""

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import polars as pl

from unbandit.calibration.settings import CellTrials, Sizes
from unbandit.estimators.coverage import SimulatedCoverage
from unbandit.formatting import counted, markdown_table
from unbandit.study.monte_carlo import FOLDS, LEVEL, Measured, Share

Verdict = Literal["met", "not decided", "missed", "not measured"]
MET: Verdict = "met"
OPEN: Verdict = "not decided"
MISSED: Verdict = "missed"
UNKNOWN: Verdict = "not measured"
GOAL = (0.93, 0.97)  # for the coverage of 95% intervals
FALSE_ALARMS = 0.02  # share of logs of the right rule that a check may flag, at most
MARKS: dict[Verdict | None, str] = {MET: "", OPEN: " ~", MISSED: " ✗", UNKNOWN: " ·", None: " ·"}


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
    def judged(self) -> list[Score]:
        """Return the scores with a verdict; of a criterion that scores can only miss, all that were measured."""
        known = [each for each in self.scores if each.verdict == MISSED or math.isfinite(each.measured.value)]
        return [each for each in known if self.only_misses or each.verdict not in (None, UNKNOWN)]

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


def averaged(cells: Iterable[Measured]) -> Measured:
    """Return the average over cells, all of which were played with seeds of their own; NaN over none.

    >>> averaged([Measured(0.94, 0.03, 300), Measured(0.96, 0.04, 300)])
    Measured(value=0.95, error=0.025, folds=300)
    """
    known = [each for each in cells if math.isfinite(each.value)]
    if not known:
        return Measured(math.nan, math.nan, 0)
    number, folds = len(known), min(each.folds for each in known)
    return Measured(sum(each.value for each in known) / number, math.hypot(*(e.error for e in known)) / number, folds)


def by_row(scores: Iterable[Score], low: float, high: float) -> list[Score]:
    """Return the shares of each row, a rule, averaged over its cells, and whether that lies between its limits."""
    rows: dict[str, list[Measured]] = {}
    for each in scores:
        rows.setdefault(each.row, []).append(each.measured)
    means = {row: averaged(cells) for row, cells in rows.items()}
    return [
        Score(row, "all cells", mean, f"{percent(mean)} of {counted(len(rows[row]), 'cell')}", judge(mean, low, high))
        for row, mean in means.items()
    ]


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
    sizes = [re.fullmatch(r"K=(\d+), T=([\d,]+)", column) for column in columns]
    if all(sizes):  # some rules may miss some, so the first row does not have the order
        columns.sort(key=lambda column: [int(number) for number in re.findall(r"\d+", column.replace(",", ""))])
    cells = [(f"`{row}`", *(texts.get(column, "") for column in columns)) for row, texts in table.items()]
    return markdown_table((heading, *columns), cells)


class Measure(ABC):
    """One thing that is measured."""

    name: ClassVar[str]  # in the shell, and of its folder
    title: ClassVar[str]  # of its part of the page
    about: ClassVar[str]  # what is measured, in a sentence
    metrics_type: ClassVar[type]  # of the metrics of a cell: a dataclass whose first field is the cell

    @abstractmethod
    def trials(self, sizes: Sizes) -> Iterator[tuple[str, CellTrials]]:
        """Yield what is played, with the text of the rule that it is about: the cells, and the rows of each run."""

    @abstractmethod
    def metrics(self, cell: Any, rows: pl.DataFrame, /) -> Any:
        """Return the metrics of one cell, all of whose rows are given."""

    @abstractmethod
    def criteria(self, metrics: Sequence[Any], /) -> list[Criterion]:
        """Return what is to be reached with what was measured, given the metrics of at least one cell."""

    def remarks(self, metrics: Sequence[Any], criteria: Sequence[Criterion]) -> Iterator[str]:
        """Yield more lines of the page, in Markdown; by default none."""
        yield from ()

    def coverages(self, metrics: Sequence[Any]) -> Iterator[SimulatedCoverage]:
        """Yield how often intervals held, for the table that reports quote; by default nothing."""
        yield from ()
