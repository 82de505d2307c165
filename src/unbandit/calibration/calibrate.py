"""`calibrate(folder)`: every measure, in a folder that can be resumed.

::

    FOLDER/MEASURE/RULE/      trials of one measure and rule
    FOLDER/measured.jsonl     the metrics of every cell; put there before, cells of other folders are on the page too
    FOLDER/figures.csv        every figure, with its error and whether it reaches its goal
    FOLDER/coverage.csv       how often intervals held, for reports to quote
    FOLDER/calibration.md     all of it for people, with calibration.png
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from unbandit import checks
from unbandit.calibration.closed_forms import ClosedForms
from unbandit.calibration.contexts import Contexts
from unbandit.calibration.identify import Identify
from unbandit.calibration.logs import Logs
from unbandit.calibration.measure import Criterion, Measure
from unbandit.calibration.misfits import Misfits, rule_text
from unbandit.calibration.page import coverage_chart, page
from unbandit.calibration.parameters import Fits
from unbandit.calibration.population import Populations
from unbandit.calibration.posterior import Posteriors, Sampler
from unbandit.calibration.record import RECORD, Findings, read_findings
from unbandit.calibration.settings import Sizes
from unbandit.calibration.speed import Timings
from unbandit.errors import ParameterError
from unbandit.estimators.coverage import coverages_csv
from unbandit.files import write_table, written_whole
from unbandit.plots import save
from unbandit.progress import Progress
from unbandit.study.dispatch import run_together
from unbandit.study.results import ResultsFolder

KINDS = (ClosedForms, Posteriors, Sampler, Identify, Misfits, Logs, Fits, Populations, Contexts, Timings)
MEASURES: dict[str, Measure] = {kind.name: kind() for kind in KINDS}
"""Everything that is measured, by name, in the order of the page."""

PAGE, CHART, FIGURES, COVERAGES = "calibration.md", "calibration.png", "figures.csv", "coverage.csv"


@dataclass
class Calibration:
    """What a folder holds, measure by measure."""

    folder: Path
    found: list[Findings]

    @property
    def page(self) -> Path:
        """Return the path of the page."""
        return self.folder / PAGE

    @property
    def criteria(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        return [criterion for each in self.found for criterion in each.criteria]

    @property
    def figures(self) -> pl.DataFrame:
        """Return every score as a row."""
        rows = [
            (criterion.key, score.row, score.column, score.measured.value, score.measured.error, score.verdict)
            for criterion in self.criteria
            for score in criterion.scores
        ]
        texts, numbers = ("figures", "whose", "cell"), ("value", "error")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64) | {"verdict": pl.String}
        table = pl.DataFrame(rows, schema=schema, orient="row")
        return table.with_columns(pl.col(numbers).fill_nan(None).round_sig_figs(6))

    def write(self) -> None:
        """Write the page with its chart, and both tables; refuse a folder that holds no measure, and write nothing."""
        if not any(each.cells for each in self.found):
            why = "; ".join(text for each in self.found for text in each.left_out[:1]) or "nothing is finished in it"
            text = f"expected a folder that holds a measure; this one has none ({why})."
            remedy = "Name the folder that calibrate wrote to, or measure something first."
            raise ParameterError(text, owner=str(self.folder), value=str(self.folder), remedy=remedy)
        with suppress(OSError):  # the next line says why the folder cannot be used
            self.folder.mkdir(parents=True, exist_ok=True)
        write_table(lambda: self.figures, self.folder / FIGURES)
        chart = coverage_chart(self.criteria)
        if chart is not None:
            save(chart, self.folder / CHART)
        rows = [row for each in self.found for row in each.coverages]
        texts = {COVERAGES: coverages_csv(rows), PAGE: page(self.found, None if chart is None else CHART)}
        texts[RECORD] = "".join(f"{line}\n" for each in self.found for line in each.lines)
        for name, text in texts.items():
            with written_whole(self.folder / name) as temporary:
                temporary.write_text(text, encoding="utf-8")


def read_calibration(folder: str | os.PathLike[str]) -> Calibration:
    """Read what is stored in a folder, of every measure, without measuring anything."""
    checks.path("folder", folder)
    return Calibration(Path(folder), [read_findings(Path(folder), measure) for measure in MEASURES.values()])


def calibrate(
    folder: str | os.PathLike[str] = "calibration", *, measures: Sequence[str] = (), rules: Sequence[str] = (),
    runs: int | None = None, seed: int = 1, particles: int | None = None, clouds: int | None = None,
    threads: int | None = None, progress: Progress | None = None,
    say: Callable[[str], None] = lambda sentence: None, ready: Callable[[], None] = lambda: None,
) -> Calibration:  # fmt: skip
    """Measure how far the answers can be trusted, and write it down.

    Parameters
    ----------
    folder
        Where everything goes; created if missing. What was measured there before is not measured again, and stands on
        the page with what is measured now.
    measures
        Any of `closed-forms`, `posterior`, `sampler`, `identify`, `check`, `logs`, `fit`, `population`, `contexts`,
        `timing`; none for all.
    rules
        Names of rules; none for all. Records are checked against these, whichever rule made them.
    runs
        Runs of every cell, instead of its own number: for a first look.
    seed
        The same seed gives the same figures, on any number of processes.
    particles, clouds
        Size of every posterior; by default what users get.
    threads
        Processes that work at the same time; default one per core.
    progress, say, ready
        What shows how much is done; called with each sentence worth knowing about the work; and called once everything
        has been checked, before any work.

    Raises
    ------
    ParameterError, OutputError, ResumeError
        Before anything is simulated or written: an unknown name, a wrong number, a folder that cannot be used or holds
        another calibration.
    """
    sizes = Sizes(
        runs=None if runs is None else checks.whole("runs", runs, 2),
        seed=checks.seed(seed),
        particles=None if particles is None else checks.whole("particles", particles),
        clouds=None if clouds is None else checks.whole("clouds", clouds),
    )
    checks.threads(threads)
    every = [(name, text, trials) for name, measure in MEASURES.items() for text, trials in measure.trials(sizes)]
    known = tuple(dict.fromkeys(_rule_name(text) for _, text, _ in every))
    chosen, chosen_rules = _chosen("measure", measures, tuple(MEASURES)), _chosen("rule", rules, known)
    home = Path(folder)
    places = [
        ResultsFolder(home / name / re.sub("[:=, ]", "-", text), trials)
        for name, text, trials in every
        if name in chosen and _rule_name(text) in chosen_rules
    ]
    for place in places:
        place.finished()  # refuses a folder that does not fit, and writes nothing
    ready()
    run_together(places, processes=threads, progress=progress or Progress(), say=say)
    done = read_calibration(home)
    done.write()
    return done


def _rule_name(text: str) -> str:
    """Return the name of the rule that plays or reads some trials."""
    return rule_text(text).partition(":")[0]


def _chosen(what: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return those that are named, in the order known; all where none is."""
    for name in given:
        if name not in known:
            text = f'expected one of {", ".join(known)}; got "{name}".'
            raise ParameterError(text, owner=what, value=name, remedy=checks.did_you_mean(name, known))
    return tuple(name for name in known if not given or name in given)
