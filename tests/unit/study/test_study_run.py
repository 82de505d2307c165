"""Having a study done: the same bytes whoever does it, and a good end whatever happens."""

from __future__ import annotations

import io
import multiprocessing
import pickle
import re
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from shell import contents

from unbandit import OutputError, ParameterError, ResumeError
from unbandit.progress import SWITCH, Bar, Progress, progress_on
from unbandit.study import ShrinkingGap, Study, StudyResult, dispatch

STUDY = Study(
    ["two-armed", "linear", ShrinkingGap(0.5)], ["ucb", "sae"], [100, 150, 200], runs=25,
    estimators=["switching", "counts", "naive:constant=0.75"],
)  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    STUDY.run(folder, threads=1)
    return folder


class Plain:
    """An executor that does things at once, and whose futures have what the seam asks for and no more."""

    class Promise:
        def __init__(self, value: object) -> None:
            self.value = value

        def result(self) -> object:
            return self.value

        def cancel(self) -> bool:
            return False

        def add_done_callback(self, call) -> None:
            call(self)

    def submit(self, function, *arguments):
        return self.Promise(function(*arguments))


class Counting(ThreadPoolExecutor):
    """Threads that count how many tasks are handed out at a time."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.open, self.most, self.lock = 0, 0, threading.Lock()

    def submit(self, function, /, *arguments):
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
        future = super().submit(function, *arguments)
        future.add_done_callback(self.close)
        return future

    def close(self, future: Future) -> None:
        with self.lock:
            self.open -= 1


class Told:
    """Progress that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def begin(self, rounds: int, done: int) -> None:
        self.said.append(("begin", rounds, done))

    def advance(self, rounds: int) -> None:
        self.said.append(rounds)

    def end(self) -> None:
        self.said.append("end")


def test_rows_hold_the_grid(done):
    rows = STUDY.run(done).scan().collect()
    assert rows.columns[:11] == [
        "instance", "rule", "horizon", "estimator", "run", "arm", "position", "pulls", "gap", "estimate", "low",
    ]  # fmt: skip
    assert rows.height == 2 * 3 * 25 * 3 * (2 + 4 + 2)
    assert rows.n_unique(["instance", "rule", "horizon", "estimator", "run", "arm"]) == rows.height
    pulled = rows.group_by("instance", "rule", "horizon", "estimator", "run").agg(pl.col("pulls").sum())
    assert (pulled["pulls"] == pulled["horizon"]).all()
    assert set(rows["run"]) == set(range(25))


def test_two_threads_give_the_same_bytes(done, tmp_path):
    STUDY.run(tmp_path, threads=2)
    assert contents(tmp_path) == contents(done)


def test_any_executor_gives_the_same_bytes(done, tmp_path):
    STUDY.run(tmp_path / "plain", executor=Plain())
    assert contents(tmp_path / "plain") == contents(done)
    with ThreadPoolExecutor(2) as threads:
        STUDY.run(tmp_path / "threads", executor=threads)
    assert contents(tmp_path / "threads") == contents(done)


@pytest.mark.processes
def test_processes_give_the_same_bytes(done, tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        STUDY.run(tmp_path, executor=processes)
    assert contents(tmp_path) == contents(done)


def test_cutting_a_cell_into_tasks_changes_no_row(tmp_path, monkeypatch):
    whole = STUDY.run(tmp_path / "whole").scan().collect()
    monkeypatch.setattr("unbandit.study.taskgrid.TASK_ROWS", 30)
    cut = Study(STUDY.instances, STUDY.rules, STUDY.horizons, STUDY.runs, 1, STUDY.estimators)
    assert len(cut.tasks) > 100
    rows = cut.run(tmp_path / "cut").scan().collect()
    keys = ["instance", "rule", "horizon", "estimator", "run", "arm"]
    assert rows.sort(keys).equals(whole.sort(keys))


def test_a_cells_rows_do_not_depend_on_the_grid(done, tmp_path):
    alone = Study("linear", "sae", 150, runs=10, estimators="switching").run(tmp_path).scan().collect()
    rows = pl.read_parquet(done / "parts" / "*.parquet").filter(
        (pl.col("instance") == "linear") & pl.col("rule").str.starts_with("sae"),
        (pl.col("horizon") == 150) & (pl.col("estimator") == "switching") & (pl.col("run") < 10),
    )
    assert alone.equals(rows)


def test_only_what_is_missing_is_done(done, tmp_path):
    STUDY.run(tmp_path)
    parts = sorted((tmp_path / "parts").iterdir())
    for part in parts[::3]:
        part.unlink()
    kept = {part: part.stat().st_mtime_ns for part in parts if part.exists()}
    told = Told()
    STUDY.run(tmp_path, progress=told, threads=1)
    assert contents(tmp_path) == contents(done)
    assert {part: part.stat().st_mtime_ns for part in kept} == kept
    redone = sum(STUDY.tasks[number].rounds for number in range(0, len(parts), 3))
    assert told.said[0] == ("begin", STUDY.rounds, STUDY.rounds - redone)
    assert sum(told.said[1:-1]) == redone
    assert told.said[-1] == "end"
    told.said.clear()
    STUDY.run(tmp_path, progress=told)
    assert told.said == [("begin", STUDY.rounds, STUDY.rounds), "end"]


def test_few_tasks_are_under_way_at_a_time(tmp_path, monkeypatch):
    many = Study("two-armed", "ucb", range(2, 302), runs=2)
    monkeypatch.setattr(dispatch, "run_task", lambda study, number, folder: dispatch.Receipt(1))
    with Counting(2) as threads:
        many.run(tmp_path, executor=threads)
    assert 2 <= threads.most <= dispatch.TASKS_IN_HAND


def test_the_first_error_ends_the_study_well(tmp_path, monkeypatch):
    begun, ended, real = [], [], dispatch.run_task

    def failing(study, number, folder):
        begun.append(number)
        if len(begun) == 3:
            raise OutputError("the disk is full.")
        time.sleep(0.05)
        receipt = real(study, number, folder)
        ended.append(number)
        return receipt

    monkeypatch.setattr(dispatch, "run_task", failing)
    told = Told()
    with pytest.raises(OutputError, match="the disk is full"):
        STUDY.run(tmp_path, threads=2, progress=told)
    assert len(begun) <= 11 < len(STUDY.tasks)  # eight are under way at a time
    assert len(ended) == len(begun) - 1
    assert len(list((tmp_path / "parts").iterdir())) == len(ended)
    assert told.said[-1] == "end"
    time.sleep(0.1)
    assert len(ended) == len(begun) - 1  # nothing goes on behind the caller's back
    monkeypatch.undo()
    STUDY.run(tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == len(STUDY.tasks)


def test_an_interrupt_keeps_what_is_done_and_says_so(done, tmp_path, monkeypatch):
    class Interrupted(Told):
        def advance(self, rounds: int) -> None:
            super().advance(rounds)
            if len(self.said) == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        STUDY.run(tmp_path, threads=1, progress=(told := Interrupted()))
    kept = len(list((tmp_path / "parts").iterdir()))
    assert 3 <= kept <= 6  # four are under way at a time
    (note,) = stopped.value.__notes__
    assert note == f"{kept} of 18 parts are kept in {tmp_path}: the same call resumes from there."
    assert told.said[-1] == "end"
    STUDY.run(tmp_path)
    assert contents(tmp_path) == contents(done)


@pytest.mark.processes
def test_errors_come_back_from_other_processes(tmp_path):
    STUDY.run(tmp_path / "study")
    error = OutputError("x: could not be written: No space left on device. Nothing was changed.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        future = processes.submit(dispatch.run_task, STUDY, 0, str(tmp_path / "nowhere"))
        with pytest.raises(OutputError, match=r"00000\.parquet: could not be written: No such file"):
            future.result()


def test_an_executor_that_counts_as_empty_is_used(done, tmp_path):
    class Empty(Plain):
        asked = 0

        def __len__(self) -> int:
            return 0

        def submit(self, function, *arguments):
            self.asked += 1
            return super().submit(function, *arguments)

    STUDY.run(tmp_path, executor=(empty := Empty()))
    assert empty.asked == len(STUDY.tasks)
    assert contents(tmp_path) == contents(done)


def test_an_unfinished_study_is_not_read(done, tmp_path):
    STUDY.run(tmp_path)
    for number in (3, 7, 11):
        (tmp_path / "parts" / f"000{number:02d}.parquet").unlink()
    result = StudyResult(STUDY, tmp_path)
    said = re.escape(f"{tmp_path}: 15 of 18 parts are there: run the study to its end.")
    for reading in (result.scan, result.parts, result.curves, result.summary):
        with pytest.raises(ResumeError, match=said):
            reading()
    with pytest.raises(ResumeError, match="0 of 18 parts are there"):
        StudyResult(STUDY, tmp_path / "nowhere").scan()
    STUDY.run(tmp_path)
    assert result.scan().collect().equals(StudyResult(STUDY, done).scan().collect())


def test_an_executor_has_workers_of_its_own(tmp_path):
    with pytest.raises(ParameterError, match="leave threads or executor out"):
        STUDY.run(tmp_path / "new", executor=Plain(), threads=2)
    assert not (tmp_path / "new").exists()


def test_the_summary_lists_every_arm_in_the_studys_order(done):
    result = STUDY.run(done)
    table = result.summary()
    assert table.height == 2 * 3 * 3 * (2 + 4 + 2)
    keys = ["instance", "rule", "horizon", "estimator", "arm"]
    rows = result.scan().collect()
    assert table.select(keys).equals(rows.select(keys).unique(maintain_order=True))
    first = table.filter(instance="two-armed", horizon=200, estimator="switching", arm="1").row(0, named=True)
    behind = rows.filter(
        pl.col("rule") == first["rule"],
        (pl.col("instance") == "two-armed") & (pl.col("horizon") == 200) & (pl.col("estimator") == "switching"),
        pl.col("arm") == "1",
    )
    error = (behind["estimate"] - behind["gap"]).drop_nulls()
    assert first["rmse"] == pytest.approx((error**2).mean() ** 0.5, rel=1e-5)
    assert first["regret"] == pytest.approx(behind["regret"].mean(), rel=1e-5)
    assert first["estimated"] == pytest.approx((behind["verdict"] == "estimated").mean(), rel=1e-5)
    assert first["found"] == pytest.approx(behind["found"].mean(), rel=1e-5)
    assert first["runs"] == 25


def test_the_bar_says_speed_and_what_is_left(monkeypatch):
    monkeypatch.setenv(SWITCH, "")
    out, now = io.StringIO(), [0.0]
    console = Console(file=out, force_terminal=True, width=120, get_time=lambda: now[0])
    bar = progress_on(console)
    assert isinstance(bar, Bar)
    bar.begin(4_000_000, 1_000_000)
    for _ in range(3):
        now[0] += 0.25
        bar.advance(500_000)
    bar.end()
    assert "2 million rounds/s" in out.getvalue()
    assert "62%" in out.getvalue()
    assert "0:00:01" in out.getvalue()


def test_the_bars_twin_is_silent():
    out = io.StringIO()
    quiet = Progress()
    quiet.begin(10, 0)
    quiet.advance(10)
    quiet.end()
    assert out.getvalue() == ""


def test_a_bar_for_nothing_is_not_drawn():
    out = io.StringIO()
    bar = Bar(Console(file=out, force_terminal=True))
    bar.begin(10, 10)
    bar.end()
    assert out.getvalue() == ""
