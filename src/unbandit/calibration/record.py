"""What was measured: the parts in a folder, and the record of cells whose parts are elsewhere.

The record, `measured.jsonl`, has one line per cell with its metrics, so that a page can be made of cells measured at
different times and places. A line stays until its cell is measured anew, with at least as many runs.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from unbandit._version import __version__
from unbandit.calibration.measure import Criterion, Measure
from unbandit.calibration.settings import CellTrials, Sizes, played
from unbandit.errors import ResumeError, UnbanditError, first_line
from unbandit.estimators.coverage import SimulatedCoverage
from unbandit.formatting import counted
from unbandit.study.monte_carlo import Measured, Share, share
from unbandit.study.results import STUDY, ResultsFolder

RECORD = "measured.jsonl"
FEWEST_QUOTED = 100  # runs of a cell, for reports to quote how often its intervals held
KEPT = ("version", "code", "seed", "particles", "clouds")  # of what identifies trials, in a line of the record


@dataclass(frozen=True)
class MeasuredCell:
    """One cell that was measured to the end."""

    trials: CellTrials
    cell: Any
    metrics: Any

    @property
    def quotable(self) -> bool:
        """Return whether reports may quote it: enough runs, of what users get."""
        defaults = {each.name: each.default for each in fields(self.trials)}
        usual = all(
            getattr(self.trials, name) == defaults[name] for name in ("particles", "clouds") if name in defaults
        )
        return usual and self.cell.runs >= FEWEST_QUOTED

    def line(self, measure: str) -> dict[str, Any]:
        """Return its line of the record."""
        identity = self.trials.identity
        settings = {key: identity[key] for key in KEPT if key in identity}
        numbers = {each.name: encode(getattr(self.metrics, each.name)) for each in fields(self.metrics)[1:]}
        return {"measure": measure, **settings, "cell": self.cell.described, "metrics": numbers}


@dataclass
class Findings:
    """What is known of one measure: from this version, and from cells all of whose runs were made."""

    measure: Measure
    cells: list[MeasuredCell] = field(default_factory=list)
    unfinished: int = 0  # cells some of whose runs are missing, in every folder that has some
    left_out: list[str] = field(default_factory=list)  # why folders, and lines of the record, were not read

    @property
    def metrics(self) -> list[Any]:
        """Return the metrics of all cells."""
        return [each.metrics for each in self.cells]

    @property
    def criteria(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        return self.measure.criteria(self.metrics) if self.cells else []

    @property
    def coverages(self) -> list[SimulatedCoverage]:
        """Return how often intervals held, for reports to quote."""
        return [*self.measure.coverages([each.metrics for each in self.cells if each.quotable])]

    @property
    def runs(self) -> str:
        """Return how many runs a cell has, or from how many to how many."""
        numbers = sorted({each.cell.runs for each in self.cells})
        return " to ".join(f"{number:,}" for number in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else ""

    def settings(self, key: str) -> list[Any]:
        """Return the values of a setting, by which cells may differ."""
        return list(dict.fromkeys(each.trials.identity[key] for each in self.cells if key in each.trials.identity))

    @property
    def lines(self) -> Iterator[str]:
        """Yield the lines of the record."""
        for each in self.cells:
            yield json.dumps(each.line(self.measure.name), allow_nan=False)


def read_findings(folder: Path, measure: Measure) -> Findings:
    """Read what is known of a measure, whatever command wrote it; refuse parts that were altered."""
    found, home = Findings(measure), folder / measure.name
    known = [trials for _, trials in measure.trials(Sizes())]
    places = {place.name: place for place in home.iterdir() if (place / STUDY).is_file()} if home.is_dir() else {}
    cells: dict[str, MeasuredCell] = {}
    begun: set[str] = set()

    def take(each: MeasuredCell) -> None:
        """Keep a cell; of two that are the same, the one with more runs."""
        before = cells.get(played(each.cell.described))
        if before is None or before.cell.runs <= each.cell.runs:
            cells[played(each.cell.described)] = each

    for each in _recorded(folder / RECORD, measure, known, found.left_out):
        take(each)
    for name, place in sorted(places.items()):
        trials = _trials_of(place, measure, known)
        if isinstance(trials, str):
            found.left_out.append(f"{measure.name}/{name}: {trials}")
            continue
        begun.update(played(cell.described) for cell in trials.cells)
        for each in _finished(measure, trials, ResultsFolder(place, trials)):
            take(each)
    order = [played(cell.described) for trials in known for cell in trials.cells]
    found.cells = [cells[name] for name in dict.fromkeys(order) if name in cells]
    found.unfinished = len(begun - cells.keys())
    return found


def _finished(measure: Measure, trials: CellTrials, place: ResultsFolder) -> Iterator[MeasuredCell]:
    """Yield the cells of a folder all of whose runs are there."""
    finished, numbers = place.finished(), [(task.cell, task.number) for task in trials.tasks]
    for at, cell in enumerate(trials.cells):
        own = [number for which, number in numbers if which == at]
        if finished.issuperset(own):
            rows = pl.concat([place.read(number) for number in own])
            yield MeasuredCell(trials, cell, measure.metrics(cell, rows))


def _trials_of(place: Path, measure: Measure, known: Sequence[CellTrials]) -> CellTrials | str:
    """Return the trials that a folder was written by, or why it is left out."""
    try:
        saved = json.loads((place / STUDY).read_text(encoding="utf-8"))
        kind, version = saved["schema"].partition("/")[0], saved["version"]
        if kind != f"unbandit.calibration.{measure.name}":
            return "another measure"
        if version != __version__:
            return f"measured by unbandit {version}"
        for each in known:
            if (trials := each.as_stored(saved)) is not None:
                return trials
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UnbanditError) as error:
        return f"cannot be read ({first_line(error)})"
    return "other cells than this version measures"


def _recorded(
    record: Path, measure: Measure, known: Sequence[CellTrials], left_out: list[str]
) -> Iterator[MeasuredCell]:
    """Yield the cells of a measure that the record has, if there is one; add to `left_out` why others are not read."""
    if not record.is_file():
        return
    cells = {played(cell.described): (trials, cell) for trials in known for cell in trials.cells}
    reasons: dict[str, int] = {}
    for number, text in enumerate(record.read_text(encoding="utf-8").splitlines(), start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            if line["measure"] != measure.name:
                continue
            own = cells.get(played(line["cell"]))
            if line["version"] != __version__ or own is None:
                older = line["version"] != __version__
                elsewhere = "of cells that this version does not measure"
                why = f"measured by unbandit {line['version']}" if older else elsewhere
                reasons[why] = reasons.get(why, 0) + 1
                continue
            yield _from_line(measure, line, *own)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            text = f"expected one JSON object per line, as calibrate writes them; line {number}: {first_line(error)}."
            raise ResumeError(text, owner=str(record), value=number) from None
    left_out += [f"{counted(count, 'line')} of {RECORD} {why}" for why, count in reasons.items()]


def _from_line(measure: Measure, line: Mapping[str, Any], trials: CellTrials, cell: Any) -> MeasuredCell:
    cell = replace(cell, runs=line["cell"]["runs"])
    sizes = {each.name: line[each.name] for each in fields(trials) if each.name in line.keys() - {"cells"}}
    own = replace(trials, cells=(cell,), **sizes)
    own.__dict__["_identity_json"] = json.dumps({key: line[key] for key in KEPT if key in line})
    first, *others = fields(measure.metrics_type)
    stored = line["metrics"]
    read = [each for each in others if each.name in stored or each.default is MISSING]  # older lines may lack the rest
    numbers = {each.name: _decoded(stored[each.name], each.type) for each in read}
    return MeasuredCell(own, cell, measure.metrics_type(**{first.name: cell}, **numbers))


def encode(value: Any) -> Any:
    """Return a number of the metrics as JSON has it: NaN is null, and a share is what it is a share of.

    >>> encode({"flagged": share(3, 200), "bound": Measured(0.5, float("nan"), 20), "runs": 7})
    {'flagged': {'held': 3, 'runs': 200}, 'bound': {'value': 0.5, 'error': None, 'folds': 20}, 'runs': 7}
    """
    if isinstance(value, Share):
        return {"held": value.held, "runs": value.runs}
    if isinstance(value, Measured):
        return {name: encode(number) for name, number in asdict(value).items()}
    if isinstance(value, Mapping):
        return {key: encode(each) for key, each in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value


def _decoded(value: Any, kind: Any = None) -> Any:
    if value is None and (kind is float or kind == "float"):
        return math.nan
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"held", "runs"}:
        return share(value["held"], value["runs"])
    if value.keys() == {"value", "error", "folds"}:
        number, error = (math.nan if value[name] is None else value[name] for name in ("value", "error"))
        return Measured(number, error, value["folds"])
    return {key: _decoded(each) for key, each in value.items()}
