"""A study whose tasks take a while, so that there is time to disturb it; its parts are those of the study itself."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from unbandit.study import Study, Task
from unbandit.study.taskgrid import TaskGrid

TEXT = """
instances = ["two-armed", "linear"]
rules = ["ucb:alpha=0.15", "ucb:alpha=0.25", "sae"]
horizons = {from = 200, to = 400, points = 8, spacing = "linear"}
runs = 20
"""


@dataclass(frozen=True, eq=False)
class Slow(TaskGrid):
    """A slow study. While the file `poison` exists, whoever does task 7 dies; `once` removes the file before."""

    study: Study
    seconds: float = 0.15
    poison: str = ""
    once: bool = False

    @property
    def tasks(self):
        return self.study.tasks

    @property
    def rounds(self) -> int:
        return self.study.rounds

    def describe(self):
        return self.study.describe()

    def rows(self, task: Task) -> pl.DataFrame:
        time.sleep(self.seconds)
        if self.poison and task.number == 7 and Path(self.poison).exists():
            if self.once:
                Path(self.poison).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.study.rows(task)


@dataclass(frozen=True, eq=False)
class Elsewhere(Slow):
    """A study that describes itself otherwise in every process but the first: as if other code were there."""

    home: int = 0

    def describe(self):
        said = super().describe()
        return said if os.getpid() == self.home else said | {"polars": "0.1"}
