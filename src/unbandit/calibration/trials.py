"""Trials: play a rule on a bandit whose means are drawn from the prior, and put the record to some method."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit._version import __version__
from unbandit.calibration.settings import Setting
from unbandit.instance import Instance
from unbandit.log import ActionLog
from unbandit.study.grid import checked_seed
from unbandit.study.taskgrid import Task, Tasks, Work, code
from unbandit.tape import Tape

__all__ = ["Trial", "Trials", "play"]

ROUNDS = 20_000
"""About how many rounds of records a task puts to its method: some seconds' work."""

DECIDING = (
    *("kernels", "demonstrators", "inference", "tape.py", "instance.py", "study/taskgrid.py"),
    *("estimators/procedures.py", "calibration/settings.py", "calibration/trials.py"),
)
"""The files, and folders of files, that decide the numbers of every kind of trial."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Hold one record, and the truth behind it.

    Attributes
    ----------
    setting, run
        What was played, and which of its runs this is.
    instance
        The bandit, its means drawn from the prior.
    log
        The record: all that the method may see.
    sums
        What each arm gained in all: hidden from the method.
    seed
        For the method's own randomness; the record's is another.
    """

    setting: Setting
    run: int
    instance: Instance
    log: ActionLog
    sums: NDArray[np.float64]
    seed: int


def play(setting: Setting, seed: int, run: int) -> Trial:
    """Draw a bandit and have the rule play it.

    Examples
    --------
    >>> from unbandit import UCB
    >>> trial = play(Setting(UCB(), arms=3, horizon=100, runs=10), seed=1, run=7)
    >>> trial.log.pulls.sum(), trial.sums.shape
    (np.int64(100), (3,))
    """
    own = setting.seed(seed)
    means = setting.prior.draw(np.random.default_rng([own, run]), setting.arms)
    instance = Instance(means, setting.noise)
    log = setting.rule.demonstrate(instance, setting.horizon, seed=own, first_run=run, threads=1)
    tape = Tape(own)
    pulled = [np.arange(1, pulls + 1) for pulls in log.pulls[0].tolist()]
    sums = [tape.reward(instance, run, arm, numbers).sum() for arm, numbers in enumerate(pulled)]
    return Trial(setting, run, instance, log, np.array(sums), setting.seed(seed, "method", run))


@dataclass(frozen=True, eq=False)
class Trials(Work):
    """Hold trials to be made: all runs of some settings. A kind of trial says what the rows of one are.

    Parameters
    ----------
    settings
        What is played.
    seed
        The same seed gives the same rows, on any number of threads.
    """

    settings: tuple[Setting, ...]
    seed: int = 1
    kind: ClassVar[str]
    """What is done with the records, in a word."""

    deciding: ClassVar[tuple[str, ...]] = ()
    """The files that decide its numbers, beside those of every kind."""

    columns: ClassVar[dict[str, Any]]
    """The columns of its rows, and their types, after those that say what was played."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", tuple(self.settings))
        checked_seed(self.seed)

    @abstractmethod
    def one(self, trial: Trial) -> dict[str, Any]:
        """Put one record to the method, and return the columns of its rows: arrays, or a single value for all rows."""

    @property
    def options(self) -> dict[str, Any]:
        """Return what else determines the numbers, as plain values."""
        return {}

    @cached_property
    def tasks(self) -> Tasks:
        """Return the work, cut into blocks of runs whose sizes depend on the settings alone."""
        cells = [(setting.horizon, max(1, ROUNDS // setting.horizon)) for setting in self.settings]
        return Tasks(cells, [setting.runs for setting in self.settings])

    @property
    def rounds(self) -> int:
        """Return how many rounds there are in all."""
        return sum(setting.runs * setting.horizon for setting in self.settings)

    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, as plain values."""
        return {
            "schema": f"unbandit.calibration.{self.kind}/1",
            "version": __version__,
            "code": code(*DECIDING, *self.deciding),
            "polars": pl.__version__,
            "settings": [setting.described for setting in self.settings],
            "seed": self.seed,
            **self.options,
            "tasks": {"rounds": ROUNDS, "count": len(self.tasks)},
        }

    def rows(self, task: Task) -> pl.DataFrame:
        """Make the trials of a task, one after the other."""
        setting = self.settings[task.cell]
        known = {"rule": pl.String, "arms": pl.Int64, "horizon": pl.Int64, "run": pl.Int64}
        tables = []
        for run in range(task.first_run, task.last_run):
            found = pl.DataFrame(
                self.one(play(setting, self.seed, run)), schema_overrides=self.columns, nan_to_null=True
            )
            said = {"rule": str(setting.rule), "arms": setting.arms, "horizon": setting.horizon, "run": run}
            tables.append(
                found.select(
                    *(pl.lit(value, known[name]).alias(name) for name, value in said.items()),
                    *(pl.col(name).cast(kind) for name, kind in self.columns.items()),
                )
            )
        return pl.concat(tables, rechunk=True)
