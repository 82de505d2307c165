"""Make the pictures: run their studies, draw them, test their claims, and show all of it on one page.

::

    FOLDER/index.html                          the page
    FOLDER/NAME.png, NAME.svg, NAME.parquet    each picture, and the rows behind it
    FOLDER/claims.md, claims.parquet           every claim with its verdict
    FOLDER/reproduction.json                   which size and seed it is of
    FOLDER/parts/NAME/STUDY/                   the studies, which go on where they stopped
"""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from unbandit.clusters.cluster import WAIT, Cluster
from unbandit.devices import settled
from unbandit.errors import OutputError
from unbandit.files import written_whole
from unbandit.log.writing import write_table
from unbandit.paper import place
from unbandit.paper.claim import VERDICTS, Claim
from unbandit.paper.picture import Picture, Results, Selection, Size
from unbandit.paper.registry import chosen
from unbandit.plots import save
from unbandit.study.dispatch import Submits
from unbandit.study.dispatch import chosen as chosen_hands
from unbandit.study.grid import Study, checked_runs, checked_seed
from unbandit.study.progress import Progress, Shared, Silent
from unbandit.study.results import Folder
from unbandit.study.storage import is_address
from unbandit.study.study import StudyResult

__all__ = ["Made", "Reproduction", "reproduce"]


@dataclass(frozen=True)
class Made:
    """Hold a picture that was made.

    Attributes
    ----------
    picture
        Which.
    runs
        Of its studies, where it has any.
    claims, selection
        What was found.
    files
        PNG, SVG and Parquet.
    """

    picture: Picture
    runs: tuple[int, ...]
    claims: list[Claim]
    selection: list[Selection]
    files: tuple[Path, Path, Path]


@dataclass
class Reproduction:
    """Hold everything that was made.

    Attributes
    ----------
    folder, size
        What was asked for.
    asked, where
        The command that asks for it in a shell: what decides the numbers, and what does not.
    made
        The pictures, in the order of the page.
    parts, parts_before
        How many parts the studies have, and how many of them were there already.
    rounds
        How many rounds the studies simulate.
    seconds
        What it took.
    """

    folder: Path
    size: Size
    asked: str
    where: str
    parts: int = 0
    parts_before: int = 0
    rounds: int = 0
    seconds: float = 0.0
    made: list[Made] = field(default_factory=list)

    @property
    def command(self) -> str:
        """Return the exact command."""
        return self.asked + self.where

    @property
    def page(self) -> Path:
        """Return where the page is."""
        return self.folder / "index.html"

    @property
    def listing(self) -> Path:
        """Return where the claims stand as plain text."""
        return self.folder / "claims.md"

    @property
    def verdicts(self) -> dict[str, int]:
        """Return how many of the paper's claims have each verdict."""
        return self._counted(ours=False)

    @property
    def own_verdicts(self) -> dict[str, int]:
        """Return how many questions of ours have each verdict."""
        return self._counted(ours=True)

    def _counted(self, *, ours: bool) -> dict[str, int]:
        counted = Counter(claim.verdict for made in self.made for claim in made.claims if claim.ours == ours)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    @property
    def claims(self) -> pl.DataFrame:
        """Return every claim as a row."""
        rows = [
            {
                "picture": made.picture.name,
                "says": claim.says,
                "statistic": claim.statistic,
                **{name: getattr(claim.measured, name, None) for name in ("value", "error", "low", "high")},
                "verdict": claim.verdict,
                "because": claim.because,
                "ours": claim.ours,
            }
            for made in self.made
            for claim in made.claims
        ]
        texts, numbers = ("picture", "says", "statistic", "verdict", "because"), ("value", "error", "low", "high")
        order = (*texts[:3], *numbers, *texts[3:])
        schema = {name: pl.Float64 if name in numbers else pl.String for name in order} | {"ours": pl.Boolean}
        return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(*numbers).fill_nan(None))


def reproduce(
    names: Sequence[str] = (),
    folder: str | os.PathLike[str] = "reproduction",
    *,
    runs: int | None = None,
    seed: int = 1,
    full: bool = False,
    device: str = "cpu",
    threads: int | None = None,
    executor: Submits | str | None = None,
    address: str | None = None,
    wait: float = WAIT,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    ready: Callable[[], None] = lambda: None,
    told: Callable[[Made], None] = lambda made: None,
) -> Reproduction:
    """Make pictures of the paper, and the page that shows them.

    Parameters
    ----------
    names
        Of the pictures; none for all.
    folder
        Where everything goes; made if it is not there. What was simulated there before is not simulated again.
    runs
        Of every picture; the paper's own numbers where it is not given.
    seed
        The same seed gives the same pictures, on any number of threads.
    full
        Beyond the paper's sizes.
    device
        `cpu` or `cuda`; or `auto`, which takes a GPU if there is one and the work is worth it.
    threads
        By default one a core.
    executor, address, wait
        Who simulates: threads, or a cluster whose workers see the folder (see `Study.run`).
    progress
        Is told of the rounds that are done.
    say
        Is told in a sentence what is worth knowing of the work.
    ready
        Is called once everything has been checked, before any work.
    told
        Is told of every picture that is made.

    Raises
    ------
    ParameterError, OutputError, ResumeError, ClusterError
        Before anything is simulated or written: an unknown picture, a wrong number, a folder that cannot be written or
        holds other studies.
    """
    began = time.perf_counter()
    size = Size(None if runs is None else checked_runs(runs), checked_seed(seed), full)
    hands = chosen_hands(executor, address=address, wait=wait, threads=threads)
    if is_address(folder):
        raise OutputError(f"{os.fspath(folder)}: expected a folder of this machine, for pictures and a page.")
    work = [(picture, picture.studies(size)) for picture in chosen(names, full=full)]
    rounds = sum(study.rounds for _, studies in work for study in studies.values())
    chosen_device, notice = settled(device, rounds)
    size = replace(size, device=chosen_device)
    if notice is not None:
        say(notice)
    if size.device == "cuda":
        work = [(picture, _on_gpu(picture, studies)) for picture, studies in work]
    target = Path(folder)
    _check_writable(target)
    place.check(target, size)
    whole_work = Reproduction(target, size, _asked(names, size), _where(target, threads, executor, address))
    homes = {_home(target, picture, name): study for picture, studies in work for name, study in studies.items()}
    done = 0
    for home, study in homes.items():
        before = Folder(home, study).look()  # it refuses another study, and writes nothing
        done += sum(study.tasks[number].rounds for number in before)
        whole_work.parts_before += len(before)
        whole_work.parts += len(study.tasks)
        whole_work.rounds += study.rounds
    with ExitStack() as stack:
        if isinstance(executor, str) and isinstance(hands, Cluster) and whole_work.parts_before < whole_work.parts:
            stack.enter_context(hands)  # one for all studies, and before anything is written
        stack.enter_context(place.held(target, size))
        ready()
        _work(whole_work, work, done, _doing(hands, say), progress or Silent(), told)
        write_table(lambda: whole_work.claims, target / "claims.parquet")
        whole_work.seconds = time.perf_counter() - began
        _write_texts(whole_work)
    return whole_work


def _work(
    whole_work: Reproduction,
    work: list[tuple[Picture, dict[str, Study]]],
    done: int,
    doing: dict[str, Any],
    bar: Progress,
    told: Callable[[Made], None],
) -> None:
    """Run the studies of each picture, and make it."""
    target = whole_work.folder
    bar.begin(whole_work.rounds, done)
    finished: dict[Path, StudyResult] = {}  # pictures may share a study
    try:
        for picture, studies in work:
            for name, study in studies.items():
                home = _home(target, picture, name)
                if home not in finished:
                    finished[home] = study.run(home, **doing, progress=Shared(bar))
            results = Results(whole_work.size, {name: finished[_home(target, picture, name)] for name in studies})
            whole_work.made.append(_made(picture, results, target))
            told(whole_work.made[-1])
    finally:
        bar.end()


def _on_gpu(picture: Picture, studies: dict[str, Study]) -> dict[str, Study]:
    """Return a picture's studies on a GPU, where they keep no more than it needs."""
    keep = "rows" if picture.needs_rows else "sums"
    return {name: study.on("cuda", keep=keep) for name, study in studies.items()}


def _doing(hands: int | Submits, say: Callable[[str], None]) -> dict[str, Any]:
    """Return who does the studies, as `Study.run` takes it."""
    return ({"threads": hands} if isinstance(hands, int) else {"executor": hands}) | {"say": say}


def _made(picture: Picture, results: Results, folder: Path) -> Made:
    """Draw a picture, write its files, and test its claims."""
    claims, table = picture.claims(results), picture.table(results)
    if picture.full_only:  # the paper does not have it
        claims = [replace(claim, ours=True) for claim in claims]
    png, svg, rows = (folder / f"{picture.name}.{kind}" for kind in ("png", "svg", "parquet"))
    figure = picture.figure(results)
    save(figure, png)
    figure.set_layout_engine("none")  # it is laid out now
    save(figure, svg)
    write_table(lambda: table, rows)
    runs = tuple(sorted({result.study.runs for result in results.studies.values()}))
    return Made(picture, runs, claims, picture.selection(results), (png, svg, rows))


def _write_texts(reproduction: Reproduction) -> None:
    from unbandit.paper.listing import listing
    from unbandit.paper.page import page

    for path, text in ((reproduction.listing, listing(reproduction)), (reproduction.page, page(reproduction))):
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _home(folder: Path, picture: Picture, study: str) -> Path:
    return folder / "parts" / picture.home(study)


def _check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written before any work is done."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise OutputError(f"{folder}: expected a folder; got a file, {there}. Take another name.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"{folder}: could not be written: {there} is not yours to write to. Take another folder.")


def _asked(names: Sequence[str], size: Size) -> str:
    """Write what gives the same numbers in a shell."""
    words = ["unbandit", "reproduce", *names]
    words += ["--runs", str(size.runs)] if size.runs is not None else []
    words += ["--full"] if size.full else []
    words += ["--device", size.device] if size.device != "cpu" else []
    words += ["--seed", str(size.seed)] if size.seed != 1 else []
    return shlex.join(words)


def _where(folder: Path, threads: int | None, executor: Submits | str | None, address: str | None) -> str:
    """Write how it was asked for besides: what changes no number."""
    words = ["-o", str(folder)] if str(folder) != "reproduction" else []
    words += ["--threads", str(threads)] if threads is not None else []
    words += ["--executor", executor] if isinstance(executor, str) and executor != "threads" else []
    words += ["--address", address] if address is not None else []
    return " " + shlex.join(words) if words else ""
