"""Studies on real clusters: a head and several nodes, all processes of this machine, some of which die."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import bucket_files
import nodes
import pytest
import shell
from nodes import QUIET, kill, once, parts, until
from shell import contents
from slow_work import TEXT, Elsewhere, Slow

from unbandit import ClusterError
from unbandit.clusters import Cluster
from unbandit.study import Study
from unbandit.study.dispatch import run

script = shell.script

WAIT = 20


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Study:
    path = tmp_path_factory.mktemp("described") / "study.toml"
    path.write_text(TEXT)
    return Study.read(path)


@pytest.fixture(scope="module")
def alone(study, tmp_path_factory) -> dict[str, bytes]:
    """What threads leave."""
    folder = tmp_path_factory.mktemp("alone")
    study.run(folder, threads=2)
    return contents(folder)


@pytest.fixture(scope="module", params=["dask", "ray"])
def running(request):
    """A head, and two nodes that do one thing at a time."""
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[request.param], reason=f"{request.param}: not installed")
    logs = Path(tempfile.mkdtemp(prefix=request.param))  # a short name, for sockets are made in it
    cluster = (nodes.DaskNodes if request.param == "dask" else nodes.RayNodes)(logs)
    cluster.name = request.param
    with pytest.MonkeyPatch.context() as patch:
        for key, value in QUIET.items():
            patch.setenv(key, value)
        known = logs / "known"
        known.mkdir()
        bucket_files.install(known)
        patch.syspath_prepend(str(known))
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(Path(nodes.__file__).parent), os.environ.get("PYTHONPATH", "")])
        )
        try:
            cluster.top = cluster.head()
            cluster.until_up(cluster.top)
            cluster.workers = [cluster.node()]
            until_there_are(cluster, 1)
            cluster.workers.append(cluster.node())
            until_there_are(cluster, 2)
            yield cluster
        finally:
            cluster.close()
            shutil.rmtree(logs, ignore_errors=True)


def until_there_are(cluster, count: int) -> None:
    """Wait for so many workers."""
    with Cluster(cluster.name, cluster.address, wait=60) as found:
        until(lambda: found.workers >= count, said=cluster.said)


@pytest.mark.faults
def test_a_worker_dies_in_the_middle(running, study, alone, tmp_path):
    killing = once(lambda: parts(tmp_path) >= 6, lambda: kill(running.workers[0]))
    run(Slow(study), tmp_path, executor=running.name, address=running.address, wait=WAIT)
    killing.join()
    assert contents(tmp_path) == alone


def test_workers_with_other_code_are_refused(running, study, tmp_path):
    other = Elsewhere(study, home=os.getpid())
    with pytest.raises(ClusterError) as refused:
        run(other, tmp_path, executor=running.name, address=running.address, wait=WAIT)
    said = str(refused.value)
    assert (
        "expected a worker with the same code as where the study was started; got other code (polars: the study has "
        in said
    )
    assert (
        "the worker has 0.1). Install the same versions of unbandit and polars on every worker. 0 of 48 parts" in said
    )
    assert parts(tmp_path) == 0


def test_parts_go_to_an_object_store(running, study, alone, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    fsspec.register_implementation("bucket", bucket_files.Bucket, clobber=True)
    address = f"bucket://{tmp_path}/all"
    result = study.run(address, executor=running.name, address=running.address, wait=WAIT)
    assert contents(tmp_path / "all") == alone
    assert result.summary().height == 3 * 8 * (2 + 4)


def test_the_papers_pictures_are_the_same(running, script, tmp_path):
    if running.name == "ray":
        pytest.skip("once is enough: it is the same seam")
    asked = ("reproduce", "sketch-tradeoff", "--runs", 3)
    done = script(*asked, "-o", "cluster", "--executor", running.name, "--address", running.address)
    assert done.returncode == 0, done.stderr
    assert script(*asked, "-o", "threads").returncode == 0
    there, here = contents(tmp_path / "cluster"), contents(tmp_path / "threads")
    assert set(there) == set(here)
    assert {name for name in here if there[name] != here[name]} == {"index.html"}
    assert f"--executor {running.name} --address {running.address}" in there["index.html"].decode()


@pytest.mark.faults
def test_the_head_is_lost_and_comes_back(running, study, alone, script, tmp_path):
    folder = tmp_path / "all"
    killing = once(lambda: parts(folder) >= 6, lambda: kill(running.top))
    with pytest.raises(ClusterError) as lost:
        run(Slow(study), folder, executor=running.name, address=running.address, wait=5)
    killing.join()
    for worker in running.workers:
        kill(worker)  # it may go on with what it has in hand, and Ray takes its head for running
    said = re.search(r" (\d+) of 48 parts are kept in (.*): the same command resumes from there\.$", str(lost.value))
    assert 6 <= int(said[1]) <= parts(folder) < len(study.tasks)
    assert said[2] == str(folder)
    name = {"dask": "Dask", "ray": "Ray"}[running.name]
    assert str(lost.value).startswith(f"lost the {name} head at {running.address}")
    before = contents(folder)

    (tmp_path / "study.toml").write_text(TEXT)
    command = ("study", "study.toml", "-o", "all", "--executor", running.name, "--address", running.address)
    refused = script(*command, "--wait", 2)  # the head is still away
    assert (refused.returncode, refused.stdout) == (3, "")
    assert f"the {name} head at {running.address}" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert contents(folder) == before

    running.top = running.head()
    running.until_up(running.top)
    running.workers = [running.node()]
    until_there_are(running, 1)
    done = script(*command)
    assert done.returncode == 0, done.stderr
    left = contents(folder)
    assert left.pop("summary.csv")
    assert left == alone
    # A worker that is killed while it writes leaves a part under a temporary name; resuming removes it.
    kept = {name: content for name, content in before.items() if not name.endswith(".part")}
    assert kept.items() <= left.items()


@pytest.mark.faults
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_head_that_does_not_answer_changes_nothing(name, study, tmp_path):
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[name], reason=f"{name}: not installed")
    began = time.monotonic()
    with pytest.raises(
        ClusterError, match=r"(cannot connect to the \w+ head at .*:1|head at .*:1 did not answer within 2 s)"
    ):
        study.run(tmp_path / "new", executor=name, address="127.0.0.1:1", wait=2)
    assert time.monotonic() - began < 40
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_cluster_of_its_own(name, study, alone, script, tmp_path):
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[name], reason=f"{name}: not installed")
    (tmp_path / "study.toml").write_text(TEXT)
    done = script("study", "study.toml", "-o", "all", "--executor", name, "--threads", 2)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "all: 48 parts, and summary.csv\n"
    left = contents(tmp_path / "all")
    assert left.pop("summary.csv")
    assert left == alone


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_cluster_of_its_own_cannot_be_reached_from_other_computers(name):
    psutil = pytest.importorskip("psutil")
    with Cluster(name, workers=1) as cluster:
        assert cluster.submit(abs, -3).result() == 3
        driver = psutil.Process(cluster._driver.pid)
        ports = [port for each in (driver, *driver.children(recursive=True)) for port in each.net_connections("inet")]
    listening = {port.laddr.ip.removeprefix("::ffff:") for port in ports if port.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


@pytest.mark.faults
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_the_library_retries_what_a_dying_worker_had_in_hand(name, study, alone, tmp_path):
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[name], reason=f"{name}: not installed")
    poison = tmp_path / "poison"
    poison.touch()
    run(Slow(study, 0.0, str(poison), once=True), tmp_path / "all", executor=name, threads=2, wait=120)
    assert not poison.exists()
    assert contents(tmp_path / "all") == alone


@pytest.mark.faults
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_task_that_kills_every_worker_is_named_in_the_end(name, study, alone, tmp_path):
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[name], reason=f"{name}: not installed")
    poison = tmp_path / "poison"
    poison.touch()
    with pytest.raises(ClusterError, match=r"^workers died repeatedly while doing task.* \d+ of 48 parts are kept in "):
        run(Slow(study, 0.0, str(poison)), tmp_path / "all", executor=name, threads=2, wait=120)
    poison.unlink()
    run(study, tmp_path / "all")
    assert contents(tmp_path / "all") == alone
