"""Make the paper's figures: run their studies, draw them, test their claims, and show all of it on one page.

::

    FOLDER/index.html                          the page
    FOLDER/NAME.png, NAME.svg, NAME.parquet    each figure, and the rows behind it
    FOLDER/claims.md, claims.parquet           every claim with its verdict
    FOLDER/reproduction.json                   size and seed, so that figures of different sizes never share a page
    FOLDER/parts/NAME/STUDY/                   the studies, which can be resumed
"""

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl

from unbandit import checks
from unbandit._version import __version__
from unbandit.clusters.cluster import WAIT, Cluster
from unbandit.devices import choose_device
from unbandit.errors import OutputError, ParameterError, ResumeError
from unbandit.files import locked, write_table, written_whole
from unbandit.formatting import counted, duration
from unbandit.paper.figure import PAPER_SIZE, PaperFigure, Results, Size, chosen_figures
from unbandit.paper.page import FinishedFigure, Reproduction, listing, page
from unbandit.paper.panels import STYLE
from unbandit.plots import save
from unbandit.progress import Progress, Shared
from unbandit.study import StudyResult
from unbandit.study.dispatch import SupportsSubmit, choose_executor
from unbandit.study.results import ResultsFolder
from unbandit.study.storage import is_address
from unbandit.study.taskgrid import code, differences

NAME = "reproduction.json"
SCHEMA = "unbandit.reproduction/1"
DEFAULTS = {"device": "cpu", "seed": 1, "o": "reproduction", "executor": "threads"}

NANOSECONDS_PER_ROUND, SECONDS_PER_FIGURE = 14.0, 2.7  # of one core, all figures taken together
LONG_SECONDS = 10.0  # from which on it is said how long it takes


def reproduce(
    names: Sequence[str] = (), folder: str | os.PathLike[str] = "reproduction", *,
    runs: int | Literal["paper"] | None = None, seed: int = 1, full: bool = False, beyond: bool = False,
    device: str = "cpu", threads: int | None = None, executor: SupportsSubmit | str | None = None,
    address: str | None = None, wait: float = WAIT, progress: Progress | None = None,
    say: Callable[[str], None] = lambda sentence: None, ready: Callable[[], None] = lambda: None,
    told: Callable[[FinishedFigure], None] = lambda made: None,
) -> Reproduction:  # fmt: skip
    """Make figures of the paper, and the page that shows them.

    Parameters
    ----------
    names
        Names of the figures; none for all.
    folder
        Where everything goes; created if missing. What was simulated there before is not simulated again.
    runs, full, beyond
        Runs of every figure; `"paper"` for the paper's own numbers. By default each figure has a fixed number of runs,
        chosen so that all of them take about a minute on two cores and decide most claims. Then whether to go beyond
        the paper's sizes, and whether to make the figures of questions that the paper does not ask instead of its own.
    seed
        The same seed gives the same figures, on any number of threads.
    device
        `cpu` or `cuda`; or `auto`, which takes a GPU if there is one and the work is worth it.
    threads, executor, address, wait
        Who simulates: threads, by default one per core, or a cluster whose workers see the folder (see `Study.run`).
    progress
        A progress bar, advanced by the rounds that are done.
    say, ready, told
        Called with each sentence worth knowing about the work; once everything has been checked, before any work; and
        with each finished figure.

    Raises
    ------
    ParameterError, OutputError, ResumeError, ClusterError
        Before anything is simulated or written: an unknown figure, a wrong number, a folder that cannot be written or
        holds other studies.
    """
    began = time.perf_counter()
    size = Size(_checked_runs(runs), checks.seed(seed), full)
    workers = choose_executor(executor, address=address, wait=wait, threads=threads)
    if is_address(folder):
        raise OutputError(f"{os.fspath(folder)}: expected a folder of this machine, for figures and a page.")
    work = [(figure, figure.studies(size)) for figure in chosen_figures(names, full=full, beyond=beyond)]
    chosen, notice = choose_device(device, sum(study.rounds for _, studies in work for study in studies.values()))
    size = replace(size, device=chosen)
    if notice is not None:
        say(notice)
    if chosen == "cuda":
        for figure, studies in work:
            keep = "rows" if figure.needs_rows else "sums"  # no more than it needs
            studies.update({name: study.on("cuda", keep=keep) for name, study in studies.items()})
    target = Path(folder)
    _check_writable(target)
    _check_folder(target, size)
    reproduction = Reproduction(target, size, _asked(names, size, beyond), _where(target, threads, executor, address))
    homes = {target / "parts" / figure.home(name): study for figure, own in work for name, study in own.items()}
    done = 0
    for home, study in homes.items():
        before = ResultsFolder(home, study).finished()  # it refuses another study, and writes nothing
        done += sum(study.tasks[number].rounds for number in before)
        reproduction.parts_before += len(before)
        reproduction.parts += len(study.tasks)
        reproduction.rounds += study.rounds
    with ExitStack() as stack:
        unfinished = reproduction.parts_before < reproduction.parts
        if isinstance(executor, str) and isinstance(workers, Cluster) and unfinished:
            stack.enter_context(workers)  # one for all studies, and before anything is written
        stack.enter_context(_locked_folder(target, size))
        ready()
        if isinstance(workers, int) and chosen == "cpu":
            seconds = NANOSECONDS_PER_ROUND * 1e-9 * (reproduction.rounds - done) / workers
            seconds += SECONDS_PER_FIGURE * len(work)
            if seconds >= LONG_SECONDS:
                left = f"{reproduction.rounds - done:,} rounds to simulate, {counted(len(work), 'picture')} to draw"
                say(f"{left}: about {duration(round(seconds, -1))} on {counted(workers, 'thread')}.")
        bar = progress or Progress()
        bar.begin(reproduction.rounds, done)
        results: dict[Path, StudyResult] = {}  # figures may share a study
        who: dict[str, Any] = {"threads": workers} if isinstance(workers, int) else {"executor": workers}
        try:
            for figure, studies in work:
                own = {name: target / "parts" / figure.home(name) for name in studies}
                for name, home in own.items():
                    if home not in results:
                        results[home] = studies[name].run(home, **who, say=say, progress=Shared(bar))
                finished = Results(size, {name: results[home] for name, home in own.items()}, threads)
                reproduction.made.append(_finished(figure, finished, target))
                told(reproduction.made[-1])
        finally:
            bar.end()
        write_table(lambda: reproduction.claims, target / "claims.parquet")
        reproduction.seconds = time.perf_counter() - began
        for path, text in ((reproduction.listing, listing(reproduction)), (reproduction.page, page(reproduction))):
            with written_whole(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
    return reproduction


def _checked_runs(runs: object) -> int | Literal["paper"] | None:
    """Return a number of runs, or the word for the paper's; None for each figure's default."""
    if runs is None or runs == PAPER_SIZE:
        return None if runs is None else "paper"
    if isinstance(runs, str):
        text = f'expected a whole number from 2, or paper; got "{runs}".'
        remedy = checks.did_you_mean(runs, [PAPER_SIZE])
        raise ParameterError(text, parameter="runs", value=runs, remedy=remedy)
    return checks.whole("runs", runs, 2)


def _finished(figure: PaperFigure, results: Results, folder: Path) -> FinishedFigure:
    """Draw a figure, write its files, and test its claims."""
    claims, table = figure.claims(results), figure.table(results)
    if figure.full_only or figure.beyond:  # the paper does not have it
        claims = [replace(claim, ours=True) for claim in claims]
    png, svg, rows = (folder / f"{figure.name}.{kind}" for kind in ("png", "svg", "parquet"))
    with mpl.rc_context(STYLE):
        drawing = figure.draw(results)
    save(drawing, png)
    drawing.set_layout_engine(None)  # it is laid out now, and need not be drawn twice
    save(drawing, svg)
    write_table(lambda: table, rows)
    runs = tuple(sorted({result.study.runs for result in results.studies.values()}))
    return FinishedFigure(figure, runs, claims, figure.selection(results), (png, svg, rows))


def _check_folder(folder: Path, size: Size) -> None:
    """Refuse a folder that holds other things, or a reproduction of another size; write nothing."""
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    kept = [name for name in there if not (name.startswith(".") and name.endswith(".part"))]  # leftovers of a kill
    if not kept:
        return
    if NAME not in kept:
        refusal = f"{folder}: expected an empty folder or one with a reproduction; got {kept[0]}."
        raise ResumeError(refusal, path=str(folder), remedy=_remedy(folder, size))
    try:
        recorded = checks.shallow(json.loads((folder / NAME).read_text(encoding="utf-8")))
        recorded = {key: recorded[key] for key in _described(size)}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        refusal = f"{folder / NAME}: could not be read."
        raise ResumeError(refusal, path=str(folder / NAME), remedy=_remedy(folder, size)) from None
    before, now = ({key: _written(it[key]) for key in it} for it in (recorded, _described(size)))
    changed = differences(before, now)
    if changed:
        refusal = f"{folder}: it has another reproduction ({'; '.join(changed)})."
        raise ResumeError(refusal, path=str(folder), remedy=_remedy(folder, size))


@contextmanager
def _locked_folder(folder: Path, size: Size) -> Iterator[None]:
    """Create the folder, record its size and seed, and keep other commands out of it meanwhile."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refusal = f"{folder}: could not be created: {error.strerror}."
        raise OutputError(refusal, path=str(folder), remedy="Choose another folder.") from error
    with locked(folder):
        _check_folder(folder, size)
        if not (folder / NAME).exists():
            with written_whole(folder / NAME) as temporary:
                temporary.write_text(json.dumps(_described(size), indent=2) + "\n", encoding="utf-8")
        yield
        for leftover in folder.glob(".*.part"):  # of a command that was killed while it wrote
            leftover.unlink(missing_ok=True)


def _described(size: Size) -> dict[str, Any]:
    return {"schema": SCHEMA, "version": __version__, "code": code()} | asdict(size)


def _written(value: Any) -> str:
    return "the default" if value is None else "yes" if value is True else "no" if value is False else str(value)


def _remedy(folder: Path, size: Size) -> str:
    """Propose another folder, named after what is asked for."""
    words = [folder.absolute().name or "reproduction"]
    words += (["full"] if size.full else []) + ([str(size.runs)] if size.runs is not None else [])
    words += [f"seed-{size.seed}"] if size.seed != 1 else []
    words += [size.device] if size.device != "cpu" else []
    other = "-".join(words) if len(words) > 1 else f"{words[0]}-2"
    return f"Choose another folder, such as {folder.absolute().parent / other}, or delete this one."


def _check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written before any work is done."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        refusal = f"{folder}: expected a folder; got a file, {there}."
        raise OutputError(refusal, path=str(folder), remedy="Choose another name.")
    if not os.access(there, os.W_OK | os.X_OK):
        refusal = f"{folder}: could not be written: you have no permission to write to {there}."
        raise OutputError(refusal, path=str(folder), remedy="Choose another folder.")


def _asked(names: Sequence[str], size: Size, beyond: bool) -> str:
    """Write what gives the same numbers in a shell."""
    options = _options(beyond=beyond and not names, runs=size.runs, full=size.full, device=size.device, seed=size.seed)
    return shlex.join(["unbandit", "reproduce", *names, *options])


def _where(folder: Path, threads: int | None, executor: SupportsSubmit | str | None, address: str | None) -> str:
    """Write how it was asked for besides: what changes no number."""
    named = executor if isinstance(executor, str) else None
    options = _options(o=str(folder), threads=threads, executor=named, address=address)
    return " " + shlex.join(options) if options else ""


def _options(**given: object) -> list[str]:
    """Write options of the command, but for those at their defaults."""
    words = []
    for name, value in given.items():
        if value is not None and value is not False and value != DEFAULTS.get(name):
            words += [f"--{name}" if len(name) > 1 else f"-{name}"] + [str(value)] * (value is not True)
    return words
