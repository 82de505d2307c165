"""Do a study's tasks: hand them to an executor, take in what is done, stop well. Any `Work` counts as a study here.

The seam is small: `executor.submit(perform, study, number, folder)` must give a future with `result`, `cancel` and
`add_done_callback`. Threads do for one machine, for the kernels let go of the interpreter; a process pool does as well,
or a cluster's executor, if its workers see the folder. Who does a task writes its part: nothing large comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import polars as pl

from unbandit.demonstrators.base import whole
from unbandit.errors import ParameterError, ResumeError
from unbandit.study.folder import Folder
from unbandit.study.folding import NEEDED, SUMMED
from unbandit.study.folds import Folds
from unbandit.study.grid import Study
from unbandit.study.progress import Progress, Silent
from unbandit.study.summary import summary
from unbandit.study.work import Work

__all__ = ["Receipt", "Result", "StudyResult", "Submits", "perform", "run"]

Done = TypeVar("Done", bound=Work)

FOREIGN = 64
"""Tasks handed out at a time to an executor whose number of workers we do not know."""


class Submits(Protocol):
    """Stand for any executor."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Start a call somewhere, and return its future."""


class Receipt(NamedTuple):
    """Say what a task came to."""

    rounds: int


@dataclass(frozen=True)
class Result(Generic[Done]):
    """Hold a finished study of any kind: the folder with its parts, and ways to read them."""

    study: Done
    folder: Path

    def scan(self) -> pl.LazyFrame:
        """Return all rows, to be read as far as they are needed."""
        return pl.scan_parquet(self._whole().parts, glob=False)

    def parts(self, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
        """Give the rows task by task, all columns or some, so that no more than one part is held at a time."""
        place = self._whole()
        tables = (pl.scan_parquet(place.part(number), glob=False) for number in range(len(self.study.tasks)))
        return ((table if columns is None else table.select(columns)).collect() for table in tables)

    def _whole(self) -> Folder:
        """Return the folder, if the study in it has come to its end."""
        place = Folder(self.folder, self.study)
        kept, parts = len(place.present()), len(self.study.tasks)
        if kept < parts:
            raise ResumeError(f"{self.folder}: {kept:,} of {parts:,} parts are there: run the study to its end.")
        return place


class StudyResult(Result[Study]):
    """Hold a finished study of instances, rules and horizons, and sum it up."""

    def folds(self) -> Folds:
        """Return the rows summed up, in groups of runs from which every statistic has its Monte-Carlo error."""
        return self._folds

    @cached_property
    def _folds(self) -> Folds:
        columns = SUMMED if self.study.keep == "sums" else NEEDED
        return Folds(self.study, self.parts(list(columns)))

    def summary(self) -> pl.DataFrame:
        """Return a row for each cell, estimator and arm: errors, coverage, regret."""
        return summary(self.folds())


def perform(study: Work, number: int, folder: str | os.PathLike[str]) -> Receipt:
    """Do one task and write its part; it needs nothing but its arguments, so that it can be done anywhere."""
    task = study.tasks[number]
    Folder(folder, study).write(number, study.rows(task))
    return Receipt(task.rounds)


def run(
    study: Work, folder: str | os.PathLike[str], *, executor: Submits | None = None, threads: int | None = None,
    progress: Progress | None = None,
) -> Path:  # fmt: skip
    """Do what is not yet done of a study, and return its folder; see `Study.run`."""
    if executor is not None and threads is not None:
        raise ParameterError("threads: an executor has workers of its own; leave threads or executor out.")
    workers = os.cpu_count() or 1 if threads is None else whole("threads", threads)
    place, told = Folder(folder, study), progress if progress is not None else Silent()
    with ExitStack() as stack:
        done, tasks = stack.enter_context(place.held()), study.tasks
        # the longest first, so that no worker is left alone with a long one at the end
        missing = sorted(set(range(len(tasks))) - done, key=lambda number: (-tasks[number].rounds, number))
        told.begin(study.rounds, study.rounds - sum(tasks[number].rounds for number in missing))
        stack.callback(told.end)
        if missing:
            most = FOREIGN
            if executor is None:
                most = 4 * workers
                executor = stack.enter_context(ThreadPoolExecutor(min(workers, len(missing)), "study"))
            try:
                _do(executor, most, study, missing, os.fspath(place.path), told)
            except KeyboardInterrupt as stopped:
                kept = len(place.present())
                stopped.add_note(
                    f"{kept:,} of {len(tasks):,} parts are kept in {place.path}: the same call goes on from there."
                )
                raise
        place.clear()
    return place.path


def _do(executor: Submits, most: int, study: Work, missing: Iterable[int], folder: str, told: Progress) -> None:
    """Keep at most so many tasks under way until all are done; at the first error start no more, and raise it."""
    ended: SimpleQueue[Future[Receipt]] = SimpleQueue()
    left, under_way = iter(missing), set[Future[Receipt]]()
    try:
        while True:
            for number in islice(left, most - len(under_way)):
                future = executor.submit(perform, study, number, folder)
                under_way.add(future)
                future.add_done_callback(ended.put)
            if not under_way:
                return
            future = ended.get()
            under_way.discard(future)
            told.advance(future.result().rounds)
    except BaseException:
        for future in under_way:
            future.cancel()
        for future in under_way:  # those at work end first, so that nothing is written behind the caller's back
            with suppress(Exception):
                future.result()
        raise
