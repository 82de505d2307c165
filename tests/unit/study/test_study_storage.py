"""Remote storage: the same parts at any address that fsspec supports."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
import shell
from shell import contents

from unbandit import OutputError, ParameterError, ResumeError
from unbandit.study import Study, StudyResult
from unbandit.study.results import ResultsFolder
from unbandit.study.storage import LocalStorage, RemoteStorage, storage_at

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
def shelf(monkeypatch):
    """Have a shelf, and leave nothing in memory."""
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
    assert ResultsFolder(address, STUDY).finished() == set(range(8)) - {2, 5}
    with pytest.raises(ResumeError, match="7 of 8 parts are there"):
        StudyResult(STUDY, address).scan()
    STUDY.run(address, say=(said := []).append)
    assert said == [f"{address}: 1 part was cut or altered, and will be redone."]
    assert held_at(address) == alone


def test_another_study_elsewhere_is_refused(address, alone):
    STUDY.run(address)
    with pytest.raises(
        ResumeError, match=rf"^{address}: it has another study \(runs: the folder has 10, asked for 20\)"
    ):
        Study(["two-armed", "linear"], ["ucb", "sae"], [100, 200], runs=20).run(address)
    assert held_at(address) == alone
    fsspec.filesystem("memory").pipe_file("/other/holiday.jpg", b"")
    with pytest.raises(ResumeError, match=r'without study\.json, which contains "holiday\.jpg"'):
        STUDY.run("memory://other")
    with pytest.raises(OutputError, match=r"holiday\.jpg: expected a folder; got a file"):
        STUDY.run("memory://other/holiday.jpg")


def test_a_store_that_runs_full_keeps_the_finished_parts(tmp_path, alone, monkeypatch):
    address, write = f"shelf://{tmp_path}/results", RemoteStorage.write

    def filling(place, name, data):
        Shelf.full = Shelf.full or name == "parts/00005.parquet"
        write(place, name, data)

    monkeypatch.setattr(RemoteStorage, "write", filling)
    with pytest.raises(OutputError) as full:
        STUDY.run(address, threads=1)
    said = f"{address}/parts/00005.parquet: could not be written: No space left on device. Nothing was changed."
    assert str(full.value) == said
    kept = contents(tmp_path / "results")
    assert kept.items() <= alone.items()
    assert 1 < len(kept) < len(alone)
    monkeypatch.undo()
    STUDY.run(address)
    assert contents(tmp_path / "results") == alone


def test_whatever_a_store_raises_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(Shelf, "broken", RuntimeError("No credentials were found.\nHere is a long story."))
    with pytest.raises(OutputError) as wrong:
        STUDY.run(f"shelf://{tmp_path}/results")
    assert str(wrong.value) == (
        f"shelf://{tmp_path}/results: could not be used: No credentials were found. Use another folder."
    )


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nobody://x", "nobody://x: expected an address that fsspec supports; Protocol not known: nobody"),
        ("memory://", "memory://: expected a folder below it, such as memory:/"),
    ],
)
def test_an_address_that_leads_nowhere(address, said):
    with pytest.raises(ParameterError) as wrong:
        STUDY.run(address)
    assert str(wrong.value).startswith(said)


def test_workers_of_a_cluster_do_not_see_our_memory():
    pytest.importorskip("distributed", reason="Dask is not installed")
    with pytest.raises(ParameterError, match="expected a folder that the cluster's workers see"):
        STUDY.run("memory://bucket/x", executor="dask")
    assert not fsspec.filesystem("memory").store


def test_file_addresses_are_folders_of_this_machine(tmp_path, alone):
    result = STUDY.run(f"file://{tmp_path}/a%20b")
    assert result.folder == tmp_path / "a b"
    assert contents(tmp_path / "a b") == alone
    assert isinstance(storage_at(f"local://{tmp_path}/x"), LocalStorage)
    assert isinstance(storage_at(Path("s3:/bucket")), LocalStorage)


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
    assert said == "unbandit: memory://shell/paper: expected a folder of this machine, for figures and a page.\n"


def test_two_runs_at_once_write_the_same_bytes(address, alone):
    """There is no lock on remote storage, and none is needed."""
    with ThreadPoolExecutor(3) as runs:
        for done in [runs.submit(STUDY.run, address, threads=2) for _ in range(3)]:
            assert done.result().study == STUDY
    assert held_at(address) == alone


def test_of_two_studies_that_begin_at_once_one_is_refused(alone, monkeypatch):
    address, other = "memory://bucket/race", Study("two-armed", "ucb", 100, runs=5)
    create = RemoteStorage.create

    def late(place, name, data):
        with monkeypatch.context() as patch:
            patch.setattr(RemoteStorage, "create", create)
            other.run(address)  # another process comes first
        create(place, name, data)

    monkeypatch.setattr(RemoteStorage, "create", late)
    with pytest.raises(ResumeError, match="it has another study"):
        STUDY.run(address)
    monkeypatch.undo()
    assert other.run(address).scan().collect().height == 10


def test_a_temporary_file_that_another_run_removed_is_written_again(tmp_path, monkeypatch):
    place, moved = RemoteStorage(f"shelf://{tmp_path}"), []

    def removed_once(self, source, target, **options):
        moved.append(source)
        if len(moved) == 1:
            Path(source).unlink()
        return LocalFileSystem.mv(self, source, target, **options)

    monkeypatch.setattr(Shelf, "mv", removed_once, raising=False)
    place.write("00001.parquet", b"whole")
    assert contents(tmp_path) == {"00001.parquet": b"whole"}
    assert len(moved) == 2
