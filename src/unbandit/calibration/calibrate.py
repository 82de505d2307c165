"""`calibrate(folder)`: every measure, in a folder that can be resumed.

::

    FOLDER/posterior/RULE/        trials of the posterior
    FOLDER/closed-forms/RULE/     trials of the closed forms
    FOLDER/identify/RULE/         trials of `identify`
    FOLDER/check/RULE/            trials of the check, by the rule that records are checked against
    FOLDER/figures.csv            every figure, with its error and whether it reaches its goal
    FOLDER/calibration.md         the same for people
"""

import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from unbandit import checks
from unbandit.calibration import settings
from unbandit.calibration.closed_forms import (
    BERNOULLI_RULES,
    GAUSSIAN_RULES,
    ClosedFormTrials,
    closed_form_cells,
)
from unbandit.calibration.criteria import Calibration
from unbandit.calibration.metrics import closed_form_metrics, identify_metrics, posterior_metrics, timed, timings
from unbandit.calibration.misfits import RIGHT, CheckTrials, check_cells, check_metrics, rule_text, with_bounds
from unbandit.calibration.page import page
from unbandit.calibration.trials import IdentifyTrials, PosteriorTrials, Trials
from unbandit.demonstrators import parse_rule
from unbandit.errors import AssumptionWarning, ParameterError
from unbandit.files import write_table, written_whole
from unbandit.progress import Progress, Shared
from unbandit.study.dispatch import run_together
from unbandit.study.results import Result, ResultsFolder

KINDS = ("closed-forms", "posterior", "identify", "check")  # what is measured, in the order in which it is done

DEFAULTS = {"seed": 1, "particles": 250, "clouds": 2}


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
    progress: Callable[[str], Progress] = lambda label: Progress(),
    say: Callable[[str], None] = lambda sentence: None,
    ready: Callable[[], None] = lambda: None,
) -> Calibration:
    """Measure how far the answers can be trusted, and write it down.

    Parameters
    ----------
    folder
        Where everything goes; created if missing. What was measured there before is not measured again.
    kinds
        Any of `closed-forms`, `posterior`, `identify`, `check`; none for all.
    rules
        Names of rules; none for all. Records are checked against these, whichever rule made them.
    runs
        Runs of every cell, instead of its own number: for a first look.
    main_runs, side_runs, records
        Runs of the posteriors in the main cell and in each of the others, and records of each rule that is to be
        identified, instead of their own numbers: for a shorter measurement.
    seed
        The same seed gives the same figures, on any number of threads.
    particles, clouds
        Size of every posterior.
    threads
        By default one per core.
    timing
        Whether to measure time and memory too.
    progress, say, ready
        Called with the label of each kind, to return its progress bar; with each sentence worth knowing about the
        work; and once everything has been checked, before any work.

    Raises
    ------
    ParameterError, OutputError, ResumeError
        Before anything is simulated or written: an unknown name, a wrong number, a folder that cannot be used or holds
        another calibration.
    """
    known = (*settings.GAUSSIAN, *settings.BERNOULLI, *settings.CANDIDATES)
    names = dict.fromkeys(parse_rule(text).name for text in known)
    chosen_kinds, chosen_rules = _chosen("kind", kinds, KINDS), _chosen("rule", rules, tuple(names))
    asked = {"runs": runs, "main-runs": main_runs, "side-runs": side_runs, "records": records}
    numbers = {name: None if given is None else checks.whole("runs", given, 2) for name, given in asked.items()}
    seed = checks.seed(seed)
    particles, clouds = checks.whole("particles", particles), checks.whole("clouds", clouds)
    numbers |= {"seed": seed, "particles": particles, "clouds": clouds}
    if threads is not None:
        checks.whole("threads", threads)
    done = Calibration(Path(folder), _asked(kinds, rules, numbers, timing), seed, particles, clouds)
    folders = {kind: [*_folders(done, kind, chosen_rules, numbers)] for kind in chosen_kinds}
    finished = {  # refuses folders that do not fit, and writes nothing
        kind: sum(each.study.tasks[number].rounds for each in folders[kind] for number in each.finished())
        for kind in chosen_kinds
    }
    ready()
    with warnings.catch_warnings():  # `identify` warns of each record for itself; here its outcome is counted
        warnings.simplefilter("ignore", AssumptionWarning)
        for kind in chosen_kinds:
            bar = progress(kind.replace("-", " ").capitalize())
            bar.begin(sum(each.study.rounds for each in folders[kind]), finished[kind])
            try:
                run_together(folders[kind], threads=threads, processes=kind == "check", progress=Shared(bar), say=say)
            finally:
                bar.end()
            for each in folders[kind]:
                _take_in(done, each)
    done.checks = [*with_bounds(done.checks)]
    if timing:
        done.timings = [timed(each) for each in timings() if parse_rule(each.text).name in chosen_rules]
    with suppress(OSError):  # the next line says why the folder cannot be used
        done.folder.mkdir(parents=True, exist_ok=True)
    write_table(lambda: done.figures, done.folder / "figures.csv")
    with written_whole(done.page) as temporary:
        temporary.write_text(page(done), encoding="utf-8")
    return done


def _folders(
    done: Calibration, kind: str, rules: Sequence[str], numbers: Mapping[str, int | None]
) -> Iterator[ResultsFolder]:  # fmt: skip
    """Yield the folders of a kind of measure: one for each rule, or two."""
    runs = numbers["runs"]
    texts = {
        "closed-forms": (*GAUSSIAN_RULES, *BERNOULLI_RULES),
        "posterior": (*settings.GAUSSIAN, *settings.BERNOULLI),
        "identify": settings.CANDIDATES,
        "check": RIGHT,
    }
    for text in texts[kind]:
        if parse_rule(rule_text(text)).name not in rules:
            continue
        home = done.folder / kind / re.sub("[:=, ]", "-", text)
        if kind == "posterior":
            cells = settings.posterior_settings(text, runs, numbers["main-runs"], numbers["side-runs"])
            particles = done.particles * settings.CLOUDS.get(text, 1)
            yield ResultsFolder(home, PosteriorTrials(cells, done.seed, particles, done.clouds))
        elif kind == "identify":
            arms, horizon, usual = settings.IDENTIFY_CELL
            cells = (settings.trial_setting(text, arms, horizon, runs or numbers["records"] or usual),)
            yield ResultsFolder(home, IdentifyTrials(cells, done.seed, tuple(map(parse_rule, settings.CANDIDATES))))
        elif kind == "check":
            yield ResultsFolder(
                home, CheckTrials(tuple(cell for cell in check_cells(runs) if cell.read == text), done.seed)
            )
        elif own := closed_form_cells(text, runs):
            yield ResultsFolder(home, ClosedFormTrials(own, done.seed))


def _take_in(done: Calibration, folder: ResultsFolder) -> None:
    """Take in the metrics of finished trials."""
    trials = folder.study
    rows = Result(trials, folder.path).scan().collect()
    if isinstance(trials, ClosedFormTrials):
        done.closed_forms += closed_form_metrics(trials, rows)
        return
    if isinstance(trials, CheckTrials):
        done.checks += check_metrics(trials, rows)
        return
    assert isinstance(trials, Trials)
    for setting in trials.cells:
        own = rows.filter(rule=str(setting.rule), arms=setting.arms, horizon=setting.horizon)
        if isinstance(trials, IdentifyTrials):
            done.identified.append(identify_metrics(setting, own))
        else:
            done.posteriors.append(posterior_metrics(setting, own))


def _chosen(what: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return those that are named, in the order known; all where none is."""
    for name in given:
        if name not in known:
            text = f'expected one of {", ".join(known)}; got "{name}".'
            raise ParameterError(text, owner=what, value=name, remedy=checks.did_you_mean(name, known))
    return tuple(name for name in known if not given or name in given)


def _asked(kinds: Sequence[str], rules: Sequence[str], numbers: Mapping[str, int | None], timing: bool) -> str:
    """Write the shell command that gives the same figures."""
    words = ["unbandit", "calibrate", *kinds, *(word for rule in rules for word in ("--rule", rule))]
    for key, value in numbers.items():
        if value != DEFAULTS.get(key):
            words += [f"--{key}", str(value)]
    return shlex.join([*words, *(["--timing"] * timing)])
