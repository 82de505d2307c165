"""A study: simulate and estimate a grid of instances, rules and horizons, in a folder that can be resumed."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from functools import cached_property
from typing import Any, Self

import polars as pl

from unbandit.clusters import WAIT
from unbandit.formatting import counted
from unbandit.progress import Progress
from unbandit.study.curves import StudyCurves, summary
from unbandit.study.description import read_description
from unbandit.study.dispatch import SupportsSubmit, run
from unbandit.study.grid import StudyGrid
from unbandit.study.results import Result
from unbandit.study.rows import NEEDED, SUMMED, rows, sums
from unbandit.study.taskgrid import Task
from unbandit.tables import Tabular


class Study(StudyGrid):
    """A grid to simulate and estimate; equal grids are equal studies.

    Parameters
    ----------
    instances
        Instances, data sets by name, or families that return an instance for a horizon (`ShrinkingGap`).
    rules
        Demonstrators, or their text such as ``"ucb:alpha=0.25"``.
    horizons
        `T`, the rounds of a run.
    runs
        Runs of each cell, two or more.
    seed
        The same seed gives the same numbers, on any number of threads.
    estimators
        Any of ``"bracket"``, ``"switching"``, ``"counts"``, ``"naive"``, ``"naive:constant=0.75"``.
    level
        Of the intervals, between 0 and 1.
    device
        `cpu`, or `cuda` for a GPU: the same answers, though not bit for bit.
    keep
        `rows` (one for each estimator, run and arm), or `sums` over runs: everything that statistics are computed from,
        and small for any number of runs.

    Raises
    ------
    ParameterError
        For anything wrong in the grid.
    NotIdentifiable
        For a rule that one of the estimators cannot be applied to.

    Examples
    --------
    >>> study = Study(["two-armed", "linear"], ["ucb:alpha=0.25", "sae"], [500, 5_000], runs=100)
    >>> study
    <Study: 2 instances x 2 rules x 2 horizons, 100 runs each, estimated by bracket>
    >>> len(study.cells), len(study.tasks), study.rounds
    (8, 8, 2200000)
    """

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, runs: int | None = None, seed: int | None = None) -> Self:
        """Read a study from a TOML file; `runs` and `seed` replace those in the file."""
        return read_description(path, cls, runs=runs, seed=seed)

    def on(self, device: str, *, keep: str | None = None) -> Self:
        """Return the same study on another device, keeping rows or sums."""
        return self.replace(device=device, keep=self.keep if keep is None else keep)

    def rows(self, task: Task) -> pl.DataFrame:
        """Simulate and estimate the runs of a task: one row per estimator, run (or fold of runs) and arm."""
        return (sums if self.keep == "sums" else rows)(self, task)

    def run(
        self, folder: str | os.PathLike[str], *, executor: Executor | SupportsSubmit | str | None = None,
        address: str | None = None, wait: float = WAIT, threads: int | None = None,
        progress: Progress | None = None, say: Callable[[str], None] = lambda sentence: None,
    ) -> StudyResult:  # fmt: skip
        """Do the tasks that are not yet done, and save each in the folder as a Parquet part.

        Parameters
        ----------
        folder
            Created if it does not exist. A folder with the same study is resumed; any other is refused. An address such
            as ``s3://bucket/results`` is remote storage that fsspec must support.
        executor
            ``"threads"``, the default; ``"ray"`` or ``"dask"``, a cluster; or anything with
            `submit(function, *arguments)` that returns futures. The parts do not depend on it.
        address
            Of the cluster's head; by default a cluster is started on this machine, and stopped at the end.
        wait
            Seconds that the head has to answer.
        threads
            Threads, or workers of a cluster on this machine; by default one per core.
        progress
            Notified of every finished task.
        say
            Called with a sentence about anything worth knowing: damaged parts that are redone, workers that were lost.

        Raises
        ------
        ClusterError
            If the head cannot be reached or is lost; finished parts are kept, and the same call resumes.
        OutputError
            If the folder cannot be written.
        ResumeError
            If the folder belongs to another study.

        Examples
        --------
        >>> import tempfile
        >>> study = Study("two-armed", "ucb", [100, 200], runs=10)
        >>> result = study.run(tempfile.mkdtemp())
        >>> result.scan().collect().height
        40
        """
        who: dict[str, Any] = {"executor": executor, "address": address, "wait": wait, "threads": threads}
        return StudyResult(self, run(self, folder, **who, progress=progress, say=say))


class StudyResult(Result[Study], Tabular):
    """A finished study of instances, rules and horizons: its rows, curves and summary."""

    def __repr__(self) -> str:
        return f"<StudyResult: {counted(len(self.study.tasks), 'task')} in {self.folder}>"

    def to_frame(self) -> pl.DataFrame:
        """Return all rows; `scan` reads those of a large study lazily."""
        return self.scan().collect()

    def curves(self) -> StudyCurves:
        """Return the rows summed over runs, from which every statistic and its Monte-Carlo error is computed."""
        return self._curves

    @cached_property
    def _curves(self) -> StudyCurves:
        return StudyCurves(self.study, self.parts(list(SUMMED if self.study.keep == "sums" else NEEDED)))

    def summary(self) -> pl.DataFrame:
        """Return one row per cell, estimator and arm: errors, coverage, regret."""
        return summary(self.curves())
