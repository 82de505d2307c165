"""Do what is not yet done of a study, and read what is. Any `Work` counts as a study here.

The seam is small: `executor.submit(perform, study, number, folder)` must give a future with `result`, `cancel` and
`add_done_callback`. Threads do for one machine, for the kernels let go of the interpreter; a process pool does as well,
or a cluster (`clusters`), if its workers see the folder. Who does a task writes its part: nothing large comes back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import polars as pl

from unbandit.errors import ClusterError, ResumeError
from unbandit.study.executors import WAIT, Cluster, Submits, check_reach, chosen
from unbandit.study.folder import Folder
from unbandit.study.folding import NEEDED, SUMMED
from unbandit.study.folds import Folds
from unbandit.study.grid import Study
from unbandit.study.handing import FOREIGN, Say, hand_out, perform
from unbandit.study.packing import Receipt
from unbandit.study.progress import Progress, Silent
from unbandit.study.scanning import scanned
from unbandit.study.summary import summary
from unbandit.study.work import Work

__all__ = ["FOREIGN", "WAIT", "Receipt", "Result", "StudyResult", "Submits", "perform", "run"]

Done = TypeVar("Done", bound=Work)


@dataclass(frozen=True)
class Result(Generic[Done]):
    """Hold a finished study of any kind: the folder with its parts, and ways to read them."""

    study: Done
    folder: Path | str

    def scan(self) -> pl.LazyFrame:
        """Return all rows, to be read as far as they are needed."""
        place = self._whole()
        if place.look() != set(range(len(self.study.tasks))):
            number = min(place.broken)
            place.read(number)  # it says what is wrong
        return scanned(place)

    def parts(self, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
        """Give the rows task by task, all columns or some, so that no more than one part is held at a time."""
        place, names = self._whole(), None if columns is None else tuple(columns)
        return (place.read(number, names) for number in range(len(self.study.tasks)))

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


def run(
    study: Work, folder: str | os.PathLike[str], *, executor: Submits | str | None = None, address: str | None = None,
    wait: float = WAIT, threads: int | None = None, progress: Progress | None = None, say: Say = lambda sentence: None,
) -> Path | str:  # fmt: skip
    """Do what is not yet done of a study, and return its folder; see `Study.run`."""
    hands = chosen(executor, address=address, wait=wait, threads=threads)
    place, told = Folder(folder, study), progress if progress is not None else Silent()
    check_reach(hands, place)
    with ExitStack() as stack:
        before = place.look()  # whatever is refused changes nothing
        if len(before) < len(study.tasks) and not isinstance(hands, Cluster):
            study.check()
        if isinstance(executor, str) and isinstance(hands, Cluster) and len(before) < len(study.tasks):
            stack.enter_context(hands)
        done, tasks = stack.enter_context(place.held()), study.tasks
        if place.broken:
            many = len(place.broken)
            said = "1 part was cut or altered, and is" if many == 1 else f"{many:,} parts were cut or altered, and are"
            say(f"{place.path}: {said} made again.")
        # the longest first, so that no worker is left alone with a long one at the end
        missing = sorted(set(range(len(tasks))) - done, key=lambda number: (-tasks[number].rounds, number))
        told.begin(study.rounds, study.rounds - sum(tasks[number].rounds for number in missing))
        stack.callback(told.end)
        if missing:
            try:
                hand_out(
                    min(hands, len(missing)) if isinstance(hands, int) else hands, study, missing, place, told, say
                )
            except (KeyboardInterrupt, ClusterError) as stopped:
                kept = f"{len(place.present()):,} of {len(tasks):,} parts are kept in {place.path}"
                if isinstance(stopped, ClusterError):
                    raise ClusterError(f"{stopped} {kept}: the same command goes on from there.") from stopped
                stopped.add_note(f"{kept}: the same call goes on from there.")
                raise
        place.clear()
    return place.path
