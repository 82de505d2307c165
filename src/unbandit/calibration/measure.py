"""What a measure of the calibration is, and what is stored of it.

A measure defines the cells that are played, the metrics of the rows of a cell, and its part of the page; the queue, the
folder, the page and the table of coverages follow by themselves. A new one joins by being listed in
`calibration/calibrate.py:MEASURES`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from unbandit._version import __version__
from unbandit.calibration.criteria import Criterion
from unbandit.calibration.settings import CellTrials, Sizes
from unbandit.errors import UnbanditError, first_line
from unbandit.estimators.coverage import SimulatedCoverage
from unbandit.study.results import STUDY, ResultsFolder


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
    unfinished: int = 0  # cells some of whose runs are missing
    left_out: list[str] = field(default_factory=list)  # why folders were not read

    @property
    def criteria(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        return self.measure.criteria(self.metrics) if self.metrics else []

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
    for _, trials, place in sorted(read, key=lambda each: each[0]):
        _read_cells(found, trials, ResultsFolder(place, trials))
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


def _read_cells(found: Findings, trials: CellTrials, place: ResultsFolder) -> None:
    """Take in the metrics of the cells that are finished."""
    finished, numbers = place.finished(), [(task.cell, task.number) for task in trials.tasks]
    found.trials.append(trials)
    for at, cell in enumerate(trials.cells):
        own = [number for which, number in numbers if which == at]
        if finished.issuperset(own):
            rows = pl.concat([place.read(number) for number in own])
            found.metrics.append(found.measure.metrics(cell, rows))
        else:
            found.unfinished += 1
