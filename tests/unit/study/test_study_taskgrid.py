"""Work of another kind than a grid: the same folder, the same resuming, the same executors, with no code of its own."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from shell import contents

from unbandit import ResumeError
from unbandit.study import Study
from unbandit.study.dispatch import run, run_task
from unbandit.study.results import Result
from unbandit.study.taskgrid import Task, TaskGrid, Tasks


@dataclass(frozen=True, eq=False)
class Squares(TaskGrid):
    """Work that needs no bandit: the squares of the numbers of two cells."""

    runs: tuple[int, ...] = (7, 3)

    @property
    def tasks(self) -> Tasks:
        return Tasks([(10, 2), (20, 2)], self.runs)

    @property
    def rounds(self) -> int:
        return sum(task.rounds for task in self.tasks)

    def describe(self) -> dict[str, Any]:
        return {"schema": "squares/1", "runs": list(self.runs)}

    def rows(self, task: Task) -> pl.DataFrame:
        numbers = range(task.first_run, task.last_run)
        return pl.DataFrame({"cell": [task.cell] * len(numbers), "square": [number**2 for number in numbers]})


def test_each_cell_has_its_own_number_of_runs():
    tasks = Squares().tasks
    assert [(task.cell, task.first_run, task.last_run) for task in tasks] == [
        (0, 0, 2), (0, 2, 4), (0, 4, 6), (0, 6, 7), (1, 0, 2), (1, 2, 3),
    ]  # fmt: skip
    assert Squares().rounds == 7 * 10 + 3 * 20


def test_it_is_done_whole_and_read_again(tmp_path):
    result = Result(Squares(), run(Squares(), tmp_path))
    rows = result.scan().collect()
    assert rows["square"].to_list() == [0, 1, 4, 9, 16, 25, 36, 0, 1, 4]
    assert [part.height for part in result.parts(["square"])] == [2, 2, 2, 1, 2, 1]


def test_what_is_there_is_not_done_again(tmp_path):
    run(Squares(), tmp_path / "whole")
    run(Squares(), tmp_path / "stopped")
    for number in (1, 4):
        (tmp_path / "stopped" / "parts" / f"0000{number}.parquet").unlink()
    with pytest.raises(ResumeError, match="4 of 6 parts are there"):
        Result(Squares(), tmp_path / "stopped").scan()
    kept = (tmp_path / "stopped" / "parts" / "00000.parquet").stat().st_mtime_ns
    run(Squares(), tmp_path / "stopped", threads=2)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")
    assert (tmp_path / "stopped" / "parts" / "00000.parquet").stat().st_mtime_ns == kept


@pytest.mark.processes
def test_other_processes_do_it_too(tmp_path):
    run(Squares(), tmp_path / "here")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        run(Squares(), tmp_path / "there", executor=processes)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_folder_is_of_one_kind_of_work(tmp_path):
    run(Squares(), tmp_path)
    with pytest.raises(ResumeError, match=r"runs: the folder has 7, asked for 8"):
        run(Squares((8, 3)), tmp_path)
    with pytest.raises(ResumeError, match=r'expected a study with schema "unbandit\.study/2"; got \'squares/1\''):
        Study("two-armed", "ucb", 100, runs=2).run(tmp_path)


def test_equal_descriptions_are_equal_work(tmp_path):
    assert Squares() == pickle.loads(pickle.dumps(Squares()))
    assert len({Squares(), Squares(), Squares((1, 1))}) == 2
    assert Squares() != "squares"
    run(Squares(), tmp_path)
    assert run_task(Squares(), 5, tmp_path).rounds == 20
