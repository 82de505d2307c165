"""Batches, pickled studies, and clusters that lose workers: without a cluster."""

from __future__ import annotations

import json
import os
import pickle
from concurrent.futures import Future

import polars as pl
import pytest

from unbandit import ClusterError, MissingExtra, OutputError, ParameterError
from unbandit.clusters import Cluster, LostWorker
from unbandit.clusters.backends import call_to_outcome
from unbandit.study import Study, dispatch
from unbandit.study.dispatch import (
    FIRST_BATCH_ROUNDS,
    MOST_TASKS_PER_BATCH,
    Batches,
    PickledStudy,
    WorkerProcesses,
    pickle_study,
    run,
    unpickle_study,
)
from unbandit.study.taskgrid import Task

STUDY = Study(["two-armed", "linear"], ["ucb", "sae"], [100, 150, 200], runs=10)


class Losing(Cluster):
    """A cluster of one, in this process, that loses some of its calls for good."""

    def __init__(self, lost: set[int], workers: int = 3) -> None:
        self.wait, self.workers, self.calls, self.lost = 0.3, workers, [], lost

    def submit(self, function, /, *arguments):
        future = Future()
        number, call = len(self.calls), pickle.dumps((function, arguments))
        self.calls.append(list(arguments[1]))
        if number in self.lost:
            future.set_exception(LostWorker("node 3 died"))
            return future
        kind, value = pickle.loads(call_to_outcome(call))
        future.set_result(value) if kind == "done" else future.set_exception(value)
        return future


def tasks(*rounds: int) -> list[Task]:
    return [Task(number, 0, 0, 1, each) for number, each in enumerate(rounds)]


def taken(batches: Batches, workers: int) -> list[list[int]]:
    found = []
    while batches:
        found.append(batches.next(workers))
    return found


def test_every_task_is_in_one_batch():
    many = tasks(*(10**7 // (1 + number) for number in range(5_000)))
    found = taken(Batches(many, range(5_000)), 4)
    assert sorted(number for batch in found for number in batch) == list(range(5_000))
    assert max(map(len, found)) <= MOST_TASKS_PER_BATCH
    assert sum(many[number].rounds for number in found[0]) <= FIRST_BATCH_ROUNDS


def test_batches_take_about_a_second_and_grow_smaller_towards_the_end():
    batches = Batches(tasks(*[900_000] * 1_000), range(1_000))  # a million with what each costs besides
    first = batches.next(2)
    assert len(first) == 20
    batches.learn(first, seconds=0.2)  # a hundred a second
    assert len(batches.next(2)) == 102
    assert len(batches.next(100)) == 4  # all are to have some
    sizes = [len(batch) for batch in taken(batches, 2)]
    assert sizes[0] == 102
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    slow = Batches(tasks(*[20_000] * 100), range(100))  # trials of a posterior: some seconds each
    slow.learn([0], seconds=3.0)
    assert set(map(len, taken(slow, 2))) == {1}


def test_large_clusters_have_longer_batches():
    def size(workers: int) -> int:
        batches = Batches(tasks(*[900_000] * 50_000), range(50_000))
        batches.learn(range(100), seconds=1.0)
        return len(batches.next(workers))

    assert (size(1), size(50), size(100)) == (101, 150, 200)


def test_tasks_that_kill_their_workers_are_named(tmp_path):
    with pytest.raises(ClusterError) as died:
        run(STUDY, tmp_path, executor=Losing(set(range(100)), workers=1))
    said = str(died.value)
    assert said.startswith("workers died repeatedly while doing task")
    assert "(node 3 died). They may have too little memory. 0 of 12 parts are kept in " in said
    assert said.endswith(f"{tmp_path}: the same command resumes from there.")
    run(STUDY, tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == 12


def test_a_cluster_that_loses_workers_says_so(tmp_path):
    class Shrinking(Losing):
        def submit(self, function, /, *arguments):
            self.workers = max(1, self.workers - 1)
            return super().submit(function, *arguments)

    run(STUDY, tmp_path, executor=Shrinking(set()), say=(said := []).append)
    assert said == ["The cluster went from 3 to 1 workers; their tasks are retried."]


def test_a_cluster_without_workers_is_given_up(tmp_path):
    class Empty(Losing):
        def submit(self, function, /, *arguments):
            return Future()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "SECONDS_TO_STOP", 0.1)
        with pytest.raises(ClusterError, match=r"^the cluster has had no workers for 0.3 s\. 0 of 12 parts are kept"):
            run(STUDY, tmp_path, executor=Empty(set(), workers=0))


def test_workers_that_write_elsewhere_are_found_out(tmp_path):
    class Away(Losing):
        def submit(self, function, /, study, numbers, folder):
            return super().submit(function, study, numbers, str(tmp_path / "away"))

    STUDY.run(tmp_path / "away")
    with pytest.raises(ClusterError, match=r"the workers wrote 12 parts to their own .*here. Use a folder that"):
        run(STUDY, tmp_path / "here", executor=Away(set()))


def test_what_a_worker_cannot_write_is_said(tmp_path):
    class Full(Losing):
        def submit(self, function, /, study, numbers, folder):
            return super().submit(function, study, numbers, str(tmp_path / "nowhere"))

    with pytest.raises(OutputError, match=r"nowhere/parts/\d+\.parquet: could not be written: No such file"):
        run(STUDY, tmp_path / "here", executor=Full(set()))


def test_a_study_on_its_way_is_the_same_at_the_other_end():
    there = unpickle_study(pickle.loads(pickle.dumps(pickle_study(STUDY))))
    assert there == STUDY
    assert there.digest == STUDY.digest
    assert unpickle_study(pickle_study(STUDY)) is there  # opened once


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("polars", "0.1"), "(polars: the study has 0.1, the worker has "),
        (("code", "0123456789ab"), "(made by other code than this version's)"),
        (("version", "0.0.1"), "(version: the study has 0.0.1, the worker has "),
    ],
)
def test_other_code_at_the_other_end_is_refused(change, said):
    own = pickle_study(STUDY)
    other = PickledStudy(own.data, json.dumps(STUDY.identity | dict([change])), own.rules_by_value)
    with pytest.raises(ClusterError) as refused:
        unpickle_study(other)
    assert said in str(refused.value)
    assert str(refused.value).endswith("Install the same versions of unbandit and polars on every worker.")


def test_what_can_be_asked_for(tmp_path):
    with pytest.raises(ParameterError, match='expected one of threads, ray, dask; got "spark"'):
        STUDY.run(tmp_path / "new", executor="spark")
    with pytest.raises(ParameterError, match="address: threads run on this machine"):
        STUDY.run(tmp_path / "new", address="head:8786")
    with pytest.raises(ParameterError, match="address: the executor has its own"):
        STUDY.run(tmp_path / "new", executor=Losing(set()), address="head:8786")
    assert not (tmp_path / "new").exists()
    assert len(list((STUDY.run(tmp_path / "new", executor="threads", threads=2).folder / "parts").iterdir())) == 12


def test_a_library_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("unbandit.clusters.cluster.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"executor=.dask. needs .* pip install '\.\[dask\]'"):
        STUDY.run(tmp_path / "new", executor="dask")
    assert not (tmp_path / "new").exists()


def test_wrong_settings_of_a_cluster(monkeypatch):
    monkeypatch.setattr("unbandit.clusters.cluster.find_spec", lambda name: object())
    with pytest.raises(ParameterError, match=r"wait: expected a positive number; got 0\.0"):
        Cluster("dask", wait=0.0)
    with pytest.raises(ParameterError, match="threads: the cluster at an address has its own workers"):
        Cluster("ray", "head:6379", workers=2)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert Cluster("ray").address == "head:6379"


def test_libraries_start_no_threads_in_a_process_per_core(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    with WorkerProcesses(1) as pool:
        assert pool.submit(pl.thread_pool_size).result() == 1
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "POLARS_MAX_THREADS" not in os.environ
