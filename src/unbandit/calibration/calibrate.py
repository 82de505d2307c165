"""One way in: `calibrate(folder)`. Every measure, in a folder that can be left and taken up again.

::

    FOLDER/posterior/RULE/        trials of the posterior
    FOLDER/closed-forms/RULE/     studies of the closed forms
    FOLDER/identify/RULE/         trials of `identify`
    FOLDER/figures.csv            every figure, with its error and whether it reaches its goal
    FOLDER/calibration.md         the same for people
"""

from __future__ import annotations

import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from unbandit.calibration.closed_forms import CoverageMetrics, closed_form_studies, coverage_metrics, has_closed_form
from unbandit.calibration.criteria import (
    Criterion,
    closed_form_criteria,
    identify_criteria,
    posterior_criteria,
    timing_criteria,
)
from unbandit.calibration.metrics import IdentifyMetrics, PosteriorMetrics, identify_metrics, posterior_metrics
from unbandit.calibration.settings import BERNOULLI, CANDIDATES, CLOUDS, GAUSSIAN, identify_settings, posterior_settings
from unbandit.calibration.timing import Timing, timed, timing_requests
from unbandit.calibration.trials import IdentifyTrials, PosteriorTrials, Trials
from unbandit.checks import did_you_mean, whole
from unbandit.demonstrators import parse_rule
from unbandit.errors import AssumptionWarning, OutputError, ParameterError
from unbandit.files import written_whole
from unbandit.log.writing import write_table
from unbandit.study import Study
from unbandit.study.dispatch import run
from unbandit.study.grid import checked_runs, checked_seed
from unbandit.study.progress import Progress, Shared, Silent
from unbandit.study.results import Folder, Result
from unbandit.study.study import StudyResult
from unbandit.study.taskgrid import Work

KINDS = ("closed-forms", "posterior", "identify")
"""What is measured, in the order in which it is done."""


@dataclass
class Calibration:
    """Hold what was measured.

    Attributes
    ----------
    folder
        Where everything is.
    asked
        The command that measures the same again.
    seed, particles, clouds
        Of everything that was drawn, and of the posteriors.
    posteriors, closed_forms, identified, timings
        What was found; empty for what was not asked for.
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
        """Return where all of it can be read."""
        return self.folder / "calibration.md"

    @property
    def goals(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        goals = posterior_criteria(self.posteriors) if self.posteriors else []
        goals += closed_form_criteria(self.closed_forms) if self.closed_forms else []
        return [*goals, *identify_criteria(self.identified), *timing_criteria(self.timings)]

    @property
    def figures(self) -> pl.DataFrame:
        """Return every figure as a row."""
        rows = [
            (goal.key, figure.row, figure.column, figure.measured.value, figure.measured.error, figure.verdict)
            for goal in self.goals
            for figure in goal.figures
        ]
        names = ("goal", "whose", "cell", "value", "error", "verdict")
        kinds = (pl.String, pl.String, pl.String, pl.Float64, pl.Float64, pl.String)
        table = pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")
        return table.with_columns(pl.col("value", "error").fill_nan(None).round_sig_figs(6))


def calibrate(
    folder: str | os.PathLike[str] = "calibration",
    *,
    kinds: Sequence[str] = (),
    rules: Sequence[str] = (),
    runs: int | None = None,
    main_runs: int | None = None,
    side_runs: int | None = None,
    records: int | None = None,
    seed: int = 1,
    particles: int = 250,
    clouds: int = 2,
    threads: int | None = None,
    timing: bool = False,
    progress: Callable[[str], Progress] = lambda label: Silent(),
    say: Callable[[str], None] = lambda sentence: None,
    ready: Callable[[], None] = lambda: None,
) -> Calibration:
    """Measure how far the answers can be trusted, and write it down.

    Parameters
    ----------
    folder
        Where everything goes; made if it is not there. What was measured there before is not measured again.
    kinds
        Which measures: any of `closed-forms`, `posterior`, `identify`; none for all.
    rules
        Names of rules; none for all.
    runs
        Of every cell, instead of its own number: for a first look.
    main_runs, side_runs, records
        For a shorter measurement: runs of the posteriors in the main cell and in each of the others, and records of
        each rule that is to be identified, instead of their own numbers.
    seed
        The same seed gives the same figures, on any number of threads.
    particles, clouds
        Of every posterior.
    threads
        By default one a core.
    timing
        Measure time and memory too.
    progress
        Is asked for a bar for each kind, by its label.
    say
        Is told in a sentence what is worth knowing of the work.
    ready
        Is called once everything has been checked, before any work.

    Raises
    ------
    ParameterError, OutputError, ResumeError
        Before anything is simulated or written: an unknown name, a wrong number, a folder that cannot be used or holds
        another calibration.
    """
    chosen, of = _chosen("kind", kinds, KINDS), _chosen("rule", rules, _names())
    count = None if runs is None else checked_runs(runs)
    seed, particles, clouds = checked_seed(seed), whole("particles", particles), whole("clouds", clouds)
    if threads is not None:
        whole("threads", threads)
    fewer = {"main-runs": main_runs, "side-runs": side_runs, "records": records}
    fewer = {name: None if given is None else checked_runs(given) for name, given in fewer.items()}
    numbers = {"runs": count, **fewer, "seed": seed, "particles": particles, "clouds": clouds}
    asked = _asked(kinds, rules, numbers, timing)
    done = Calibration(Path(folder), asked, seed, particles, clouds)
    work = {kind: dict(_work(kind, of, count, fewer, seed, particles, clouds)) for kind in chosen}
    places = {kind: {name: Folder(done.folder / name, each) for name, each in work[kind].items()} for kind in chosen}
    before = {kind: sum(_done(place) for place in places[kind].values()) for kind in chosen}
    ready()
    with warnings.catch_warnings():  # `identify` warns of each record for itself; here its outcome is counted
        warnings.simplefilter("ignore", AssumptionWarning)
        for kind in chosen:
            bar = progress(kind.replace("-", " ").capitalize())
            bar.begin(sum(each.rounds for each in work[kind].values()), before[kind])
            try:
                for place in places[kind].values():
                    _measure(done, place, threads, Shared(bar), say)
            finally:
                bar.end()
    if timing:
        done.timings = [timed(each) for each in timing_requests() if parse_rule(each.text).name in of]
    _write(done)
    return done


def _work(
    kind: str,
    rules: Sequence[str],
    runs: int | None,
    fewer: dict[str, int | None],
    seed: int,
    particles: int,
    clouds: int,
) -> Iterator[tuple[str, Work]]:
    """Give the works of a kind, by the names of their folders: one for each rule, or two."""
    texts = CANDIDATES if kind == "identify" else (*GAUSSIAN, *BERNOULLI)
    for text in texts:
        if parse_rule(text).name not in rules:
            continue
        home = f"{kind}/{re.sub('[:=,]', '-', text)}"
        if kind == "posterior":
            settings = posterior_settings(text, runs, fewer["main-runs"], fewer["side-runs"])
            yield home, PosteriorTrials(settings, seed, particles * CLOUDS.get(text, 1), clouds)
        elif kind == "identify":
            yield (
                home,
                IdentifyTrials(
                    identify_settings(text, runs or fewer["records"]), seed, tuple(map(parse_rule, CANDIDATES))
                ),
            )
        elif has_closed_form(text):
            for name, study in closed_form_studies(text, runs, seed).items():
                yield f"{home}/{name}", study


def _done(place: Folder) -> int:
    """Return how many rounds are done; refuse a folder that does not fit, and write nothing."""
    tasks = place.study.tasks
    return sum(tasks[number].rounds for number in place.look())


def _measure(done: Calibration, place: Folder, threads: int | None, bar: Progress, say: Callable[[str], None]) -> None:
    """Do one work, and take in what it found."""
    study = place.study
    run(study, place.path, threads=threads, progress=bar, say=say)
    if isinstance(study, Study):
        done.closed_forms += coverage_metrics(StudyResult(study, place.path))
    elif isinstance(study, Trials):
        rows = Result(study, place.path).scan().collect()
        for setting in study.settings:
            own = rows.filter(rule=str(setting.rule), arms=setting.arms, horizon=setting.horizon)
            if isinstance(study, IdentifyTrials):
                done.identified.append(identify_metrics(setting, own))
            else:
                done.posteriors.append(posterior_metrics(setting, own))


def _write(done: Calibration) -> None:
    from unbandit.calibration.page import page

    try:
        done.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refusal = f"{done.folder}: could not be used: {error.strerror}."
        raise OutputError(refusal, path=str(done.folder), remedy="Choose another folder.") from error
    figures = done.figures
    write_table(lambda: figures, done.folder / "figures.csv")
    with written_whole(done.page) as temporary:
        temporary.write_text(page(done), encoding="utf-8")


def _names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(parse_rule(text).name for text in (*GAUSSIAN, *BERNOULLI, *CANDIDATES)))


def _chosen(what: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return those that are named, in the order known; all where none is."""
    for name in given:
        if name not in known:
            text = f'expected one of {", ".join(known)}; got "{name}".'
            raise ParameterError(text, owner=what, value=name, remedy=did_you_mean(name, known))
    return tuple(name for name in known if not given or name in given)


def _asked(kinds: Sequence[str], rules: Sequence[str], numbers: dict[str, int | None], timing: bool) -> str:
    """Write what gives the same figures in a shell."""
    usual = {
        "seed": 1,
        "particles": 250,
        "clouds": 2,
        "runs": None,
        "main-runs": None,
        "side-runs": None,
        "records": None,
    }
    words = ["unbandit", "calibrate", *kinds, *(word for rule in rules for word in ("--rule", rule))]
    words += [word for key, value in numbers.items() if value != usual[key] for word in (f"--{key}", str(value))]
    return shlex.join([*words, *(["--timing"] * timing)])
