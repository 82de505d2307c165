"""Folders elsewhere: the same parts at any address that fsspec knows, and one run at a time."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest
import shell

from unbandit import OutputError, ParameterError, ResumeError
from unbandit.study import Study, storage
from unbandit.study.results import Folder
from unbandit.study.storage import LEASE, Lease, Local, Remote, storage_at
from unbandit.study.study import StudyResult

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

from fsspec.implementations.local import LocalFileSystem  # noqa: E402

unbandit, refused = shell.unbandit, shell.refused

STUDY = Study(["two-armed", "linear"], ["ucb", "sae"], [100, 200], runs=10)


class Shelf(LocalFileSystem):
    """A file system elsewhere, whose files are in a folder here: it renames, and can run full."""

    protocol = "shelf"
    cachable = False
    full = False
    broken: Exception | None = None

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(str(path).removeprefix("shelf://"))

    def pipe_file(self, path, value, mode="overwrite", **options):
        if Shelf.broken is not None:
            raise Shelf.broken
        if Shelf.full and path.endswith(".part"):
            Path(path).write_bytes(value[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().pipe_file(path, value, mode=mode, **options)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Let nobody wait long for a lease, have a shelf, and leave nothing in memory."""
    monkeypatch.setattr(storage, "SETTLING", 0.01)
    monkeypatch.setattr(Shelf, "full", False)
    monkeypatch.setattr(Shelf, "broken", None)
    fsspec.register_implementation("shelf", Shelf, clobber=True)
    yield
    fsspec.filesystem("memory").store.clear()


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("alone")
    STUDY.run(folder)
    return contents(folder)


@pytest.fixture(params=["memory", "shelf"])
def address(request, tmp_path) -> str:
    return "memory://bucket/deep/results" if request.param == "memory" else f"shelf://{tmp_path}/deep/results"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def held_at(address: str) -> dict[str, bytes]:
    files, root = fsspec.core.url_to_fs(address)
    return {path.removeprefix(root).lstrip("/"): files.cat_file(path) for path in sorted(files.find(root))}


def test_parts_elsewhere_are_the_same_bytes(address, alone):
    result = STUDY.run(address)
    assert held_at(address) == alone
    assert result.folder == address
    STUDY.run(address)
    assert held_at(address) == alone


def test_rows_elsewhere_are_read_as_far_as_needed(address, tmp_path):
    there, here = STUDY.run(address), STUDY.run(tmp_path / "here")
    assert there.scan().collect().equals(here.scan().collect())
    asked = pl.col("estimate").mean()
    few = [
        result.scan().filter(pl.col("pulls") > 50).group_by("arm").agg(asked).sort("arm") for result in (there, here)
    ]
    assert few[0].collect().equals(few[1].collect())
    assert there.scan().head(30).collect().equals(here.scan().head(30).collect())
    assert there.scan().select(pl.len()).collect().item() == here.scan().select(pl.len()).collect().item()
    assert there.summary().equals(here.summary())


def test_only_what_is_missing_or_altered_is_done_elsewhere(address, alone):
    STUDY.run(address)
    files, root = fsspec.core.url_to_fs(address)
    files.rm_file(f"{root}/parts/00002.parquet")
    files.pipe_file(f"{root}/parts/00005.parquet", alone["parts/00005.parquet"][:-20])
    files.pipe_file(f"{root}/parts/.00005.parquet.abc123.part", b"PAR1")
    assert Folder(address, STUDY).look() == set(range(8)) - {2, 5}
    with pytest.raises(ResumeError, match="7 of 8 parts are there"):
        StudyResult(STUDY, address).scan()
    STUDY.run(address, say=(said := []).append)
    assert said == [f"{address}: 1 part was cut or altered, and is made again."]
    assert held_at(address) == alone


def test_another_study_elsewhere_is_refused(address, alone):
    STUDY.run(address)
    with pytest.raises(
        ResumeError, match=rf"^{address}: it has another study \(runs: the folder has 10, asked for 20\)"
    ):
        Study(["two-armed", "linear"], ["ucb", "sae"], [100, 200], runs=20).run(address)
    assert held_at(address) == alone
    fsspec.filesystem("memory").pipe_file("/other/holiday.jpg", b"")
    with pytest.raises(ResumeError, match=r'without study\.json, in which there is "holiday\.jpg"'):
        STUDY.run("memory://other")
    with pytest.raises(OutputError, match=r"holiday\.jpg: expected a folder; got a file"):
        STUDY.run("memory://other/holiday.jpg")


def test_a_store_that_runs_full_keeps_the_finished_parts(tmp_path, alone, monkeypatch):
    address, write = f"shelf://{tmp_path}/results", Remote.write

    def filling(place, name, data):
        Shelf.full = Shelf.full or name == "parts/00005.parquet"
        write(place, name, data)

    monkeypatch.setattr(Remote, "write", filling)
    with pytest.raises(OutputError) as full:
        STUDY.run(address, threads=1)
    said = f"{address}/parts/00005.parquet: could not be written: No space left on device. Nothing was changed."
    assert str(full.value) == said
    kept = contents(tmp_path / "results")
    assert kept.items() <= alone.items()
    assert 1 < len(kept) < len(alone)
    monkeypatch.undo()
    monkeypatch.setattr(storage, "SETTLING", 0.01)
    STUDY.run(address)
    assert contents(tmp_path / "results") == alone


def test_whatever_a_store_raises_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(Shelf, "broken", RuntimeError("No credentials were found.\nHere is a long story."))
    with pytest.raises(OutputError) as wrong:
        STUDY.run(f"shelf://{tmp_path}/results")
    assert str(wrong.value) == (
        f"shelf://{tmp_path}/results: could not be used: No credentials were found. Take another folder."
    )


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nobody://x", "nobody://x: expected an address that fsspec knows; Protocol not known: nobody"),
        ("memory://", "memory://: expected a place below, such as memory:/"),
    ],
)
def test_an_address_that_leads_nowhere(address, said):
    with pytest.raises(ParameterError) as wrong:
        STUDY.run(address)
    assert str(wrong.value).startswith(said)


def test_workers_of_a_cluster_do_not_see_our_memory():
    pytest.importorskip("distributed", reason="Dask is not installed")
    with pytest.raises(ParameterError, match="expected a folder that the workers of a cluster see"):
        STUDY.run("memory://bucket/x", executor="dask")
    assert not fsspec.filesystem("memory").store


def test_file_addresses_are_folders_of_this_machine(tmp_path, alone):
    result = STUDY.run(f"file://{tmp_path}/a%20b")
    assert result.folder == tmp_path / "a b"
    assert contents(tmp_path / "a b") == alone
    assert isinstance(storage_at(f"local://{tmp_path}/x"), Local)
    assert isinstance(storage_at(Path("s3:/bucket")), Local)


def test_a_study_in_the_shell_goes_elsewhere(unbandit, refused, tmp_path):
    Path("study.toml").write_text('instances = ["two-armed"]\nrules = ["ucb"]\nhorizons = [100, 200]\nruns = 5\n')
    done = unbandit("study", "study.toml", "-o", "memory://shell/results")
    assert done.code == 0, done.err
    assert done.out.endswith("Everything, arm by arm: memory://shell/results/summary.csv\n")
    assert done.err == "memory://shell/results: 2 parts, and summary.csv\n"
    assert pl.read_csv(held_at("memory://shell/results")["summary.csv"]).height == 4
    assert "runs: the folder has 5, asked for 6" in refused(
        3, "study", "study.toml", "-o", "memory://shell/results", "--runs", 6
    )
    said = refused(3, "reproduce", "sketch-tradeoff", "--runs", 3, "-o", "memory://shell/paper")
    assert said == "unbandit: memory://shell/paper: expected a folder of this machine, for pictures and a page.\n"


def leased(address: str, beat: float = 0.05, patience: float = 0.4) -> Lease:
    return Lease(Remote(address), beat, patience, settling=0.02)


def test_a_second_run_is_kept_out_while_the_first_lives(address):
    Remote(address).make()
    with leased(address).held():
        with pytest.raises(ResumeError) as kept_out, leased(address).held():
            pass
        said = f"{address}: another run is at work in this folder (process {os.getpid()} on "
        assert str(kept_out.value).startswith(said)
        assert Remote(address).names() == []  # the lease is not one of the study's files
    with leased(address).held():
        pass
    assert not held_at(address)


def test_a_lease_that_nobody_renews_is_taken(address):
    place = Remote(address)
    place.make()
    place.write(LEASE, json.dumps({"token": "x", "host": "far away", "pid": 1, "beats": 7}).encode())
    began = time.monotonic()
    with leased(address).held():
        assert time.monotonic() - began >= 0.4
        assert json.loads(place.read(LEASE))["pid"] == os.getpid()
    assert not held_at(address)


def test_the_lease_of_a_dead_process_of_this_machine_is_taken_at_once(address):
    if not storage._boot():
        pytest.skip("this system does not tell one start from another")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    place = Remote(address)
    place.make()
    holder = leased(address)._holder | {"token": "x", "pid": gone.pid}
    place.write(LEASE, json.dumps(holder).encode())
    began = time.monotonic()
    with leased(address, patience=60).held():
        assert time.monotonic() - began < 20


def test_who_lost_its_lease_leaves_the_others_alone(address):
    place = Remote(address)
    place.make()
    with leased(address).held():
        place.write(LEASE, b'{"token": "another"}')
        time.sleep(0.2)
    assert json.loads(place.read(LEASE)) == {"token": "another"}


def test_of_many_that_come_at_once_one_is_let_in(address):
    Remote(address).make()
    let_in, kept_out, over = [], [], threading.Event()

    def come() -> None:
        try:
            with leased(address, beat=0.02, patience=5).held():
                let_in.append(1)
                over.wait(20)
        except ResumeError:
            kept_out.append(1)

    threads = [threading.Thread(target=come) for _ in range(6)]
    for thread in threads:
        thread.start()
    limit = time.monotonic() + 20
    while len(kept_out) < 5 and time.monotonic() < limit:
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    assert (len(let_in), len(kept_out)) == (1, 5)


def test_a_study_keeps_others_out_of_its_place(address, monkeypatch):
    monkeypatch.setattr(storage, "BEAT", 0.05)
    with Folder(address, STUDY).held(), pytest.raises(ResumeError, match="another run is at work in this folder"):
        STUDY.run(address)
    STUDY.run(address)
