"""A folder of results: whose it is, what is in it, and what is said when that does not fit."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys

import polars as pl
import pytest
from shell import contents

from unbandit import Instance, OutputError, ParameterError, ResumeError
from unbandit.study import ShrinkingGap, Study, StudyResult
from unbandit.study.results import ResultsFolder

STUDY = Study(["two-armed", ShrinkingGap(0.5)], ["ucb", "sae"], [100, 200], runs=10)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "results"


def test_a_new_folder_says_what_it_holds(place):
    with ResultsFolder(place / "deep" / "down", STUDY).open() as finished:
        assert finished == set()
    said = (place / "deep" / "down" / "study.json").read_text()
    assert json.loads(said) == STUDY.identity
    assert '\n  "horizons": [100, 200],\n' in said
    assert len(said.splitlines()) < 40


def test_the_same_study_is_at_home_again(place):
    STUDY.run(place)
    before = contents(place)
    again = Study([Instance([1.0, 0.5], name="two-armed"), ShrinkingGap(0.5)], ["ucb", "sae"], [100, 200], 10)
    assert again.run(place).study == STUDY
    assert contents(place) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"runs": 20}, "runs: the folder has 10, asked for 20"),
        ({"seed": 7}, "seed: the folder has 1, asked for 7"),
        ({"level": 0.9}, "level: the folder has 0.95, asked for 0.9"),
        ({"horizons": [100, 300]}, "horizons: the folder has 200, asked for 300"),
        ({"horizons": [200, 100]}, "horizons: the folder has them in another order"),
        ({"horizons": range(100, 200)}, "horizons: the folder has 200, asked for 101, 102, 103, 104 and 95 more"),
        ({"rules": ["ucb"]}, "rules: the folder has sae:alpha=0.25,scale=1.4142135623730951, asked for no other"),
        ({"estimators": ["counts"]}, "estimators: the folder has bracket, asked for counts"),
        ({"instances": ["two-armed"]}, "instances: the folder has shrinking-gap beta=0.5, asked for no other"),
        (
            {"instances": [Instance([1.0, 0.4], 2.0, name="two-armed"), ShrinkingGap(0.5)]},
            "instances: the folder has two-armed with other noise, means",
        ),
        ({"runs": 20, "seed": 7}, "runs: the folder has 10, asked for 20; seed: the folder has 1, asked for 7"),
    ],
    ids=str,
)  # fmt: skip
def test_another_study_is_refused_and_told_apart(place, change, said):
    STUDY.run(place)
    before = contents(place)
    with pytest.raises(ResumeError) as refused:
        dataclasses.replace(STUDY, **change).run(place)
    assert str(refused.value).startswith(f"{place}: it has another study (")
    assert said in str(refused.value)
    assert str(refused.value).endswith("Use another folder, or delete this one.")
    assert contents(place) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"code": "0123456789ab"}, "(made by other code than this version's)"),
        ({"polars": "1.0.0"}, f"(polars: the folder has 1.0.0, asked for {pl.__version__})"),
    ],
    ids=str,
)
def test_parts_of_other_code_are_not_mixed_in(place, change, said):
    STUDY.run(place)
    (place / "study.json").write_text(json.dumps(STUDY.identity | change))
    with pytest.raises(ResumeError) as refused:
        STUDY.run(place)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "made", [{"schema": "unbandit.study/1", "version": "0.5.0"}, {"version": "0.0.1", "code": "0123456789ab"}], ids=str
)
def test_a_folder_of_another_version_is_refused_with_that_version(place, made):
    STUDY.run(place)
    (place / "study.json").write_text(json.dumps(STUDY.identity | made))
    before = contents(place)
    with pytest.raises(ResumeError) as refused:
        STUDY.run(place)
    assert str(refused.value) == (
        f"{place}: it was made by unbandit {made['version']}, and this version cannot continue it. "
        "Use another folder, or delete this one."
    )
    assert contents(place) == before


DEEP = ('{"schema": ' + levels * "[" + levels * "]" + "}" for levels in (900, 5_000))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "other/1"}', "\xff", *DEEP])
def test_a_study_that_cannot_be_read_is_refused(place, text):
    place.mkdir()
    (place / "study.json").write_text(text, encoding="latin-1")
    with pytest.raises(ResumeError, match=r"study\.json: (could not be read as a study|expected a study with schema)"):
        STUDY.run(place)
    assert (place / "study.json").read_text(encoding="latin-1") == text


def test_a_folder_with_other_things_is_refused(place):
    place.mkdir()
    (place / "holiday.jpg").touch()
    with pytest.raises(ResumeError, match=r'without study\.json, which contains "holiday\.jpg"'):
        STUDY.run(place)
    assert contents(place) == {"holiday.jpg": b""}


def test_an_empty_folder_and_what_a_kill_left_in_it_are_taken(place):
    place.mkdir()
    (place / ".study.json.abc123.part").write_text("{")
    STUDY.run(place)
    (place / "parts" / ".00003.parquet.abc123.part").write_bytes(b"PAR1")
    (place / ".summary.csv.abc123.part").touch()
    before = contents(place)
    STUDY.run(place)
    assert set(before) - set(contents(place)) == {".summary.csv.abc123.part", "parts/.00003.parquet.abc123.part"}
    assert not any(".part" in name for name in contents(place) if not name.startswith("parts/0"))


def test_notes_beside_the_parts_are_left_alone(place):
    STUDY.run(place)
    (place / "notes.txt").write_text("mine")
    STUDY.run(place)
    assert (place / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["00008.parquet", "0.parquet", "000000.parquet", "part.parquet", "00000.csv", "-1.parquet"]
)
def test_a_part_of_another_study_is_refused(place, name):
    STUDY.run(place)
    (place / "parts" / name).touch()
    with pytest.raises(ResumeError, match=f"{name}: expected only parts of this study; got another file"):
        STUDY.run(place)


@pytest.mark.parametrize("kept", [0, 4, 100, -1], ids=lambda kept: f"[:{kept}]")
def test_a_cut_part_is_made_again(place, kept):
    STUDY.run(place)
    part, whole = place / "parts" / "00003.parquet", contents(place)
    part.write_bytes(part.read_bytes()[:kept])
    assert ResultsFolder(place, STUDY).finished() == set(range(8)) - {3}
    result = STUDY.run(place, say=(said := []).append)
    assert result.scan().collect().height == 2 * 2 * 2 * 10 * 2
    assert said == [f"{place}: 1 part was cut or altered, and will be redone."]
    assert contents(place) == whole
    STUDY.run(place, say=said.append)
    assert len(said) == 1


@pytest.mark.parametrize("at", [5, 200, -300, -100, -1], ids=str)
def test_a_part_with_one_bit_altered_is_made_again(place, at):
    STUDY.run(place)
    whole = contents(place)
    for name in ("00003.parquet", "00006.parquet"):
        data = bytearray((place / "parts" / name).read_bytes())
        data[at] ^= 4
        (place / "parts" / name).write_bytes(data)
    result = StudyResult(STUDY, place)
    for reading in (lambda: list(result.parts()), result.scan, result.summary):
        with pytest.raises(
            ResumeError, match=r"00003\.parquet: expected a part as it was written; its checksum does not"
        ):
            reading()
    STUDY.run(place, say=(said := []).append)
    assert said == [f"{place}: 2 parts were cut or altered, and will be redone."]
    assert contents(place) == whole


def test_what_the_system_refuses_is_said(tmp_path, place):
    place.write_text("a file")
    with pytest.raises(OutputError, match="results: expected a folder; got a file"):
        STUDY.run(place)
    with pytest.raises(OutputError, match="below: could not be used: Not a directory"):
        STUDY.run(place / "below")
    other = tmp_path / "other"
    with ResultsFolder(other, STUDY).open():
        pass
    (other / "parts").rmdir()
    (other / "parts").write_text("a file")
    for doing in (STUDY.run, lambda path: ResultsFolder(path, STUDY).finished()):
        with pytest.raises(OutputError, match="parts: expected a folder; got a file"):
            doing(other)
        with pytest.raises(OutputError, match="results: expected a folder; got a file"):
            doing(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="could not be used: Permission denied"):
            STUDY.run(tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)


def test_names_that_mean_something_to_globs_are_plain_names(tmp_path):
    place = tmp_path / "a[1]*?{b}"
    rows = STUDY.run(place).scan().collect()
    assert STUDY.run(place).scan().collect().equals(rows)
    assert rows.height == sum(part.height for part in STUDY.run(place).parts())


HOLDING = """
import pathlib, sys, time
from unbandit.study import Study
from unbandit.study.results import ResultsFolder
from unbandit.study import StudyResult

path, runs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
folder = ResultsFolder(path, Study("two-armed", "ucb", [100, 200], runs=runs))
print("ready", flush=True)
sys.stdin.readline()
try:
    with folder.open():
        print("held", flush=True)
        time.sleep(60)
except Exception as error:
    print(error, flush=True)
"""


@pytest.fixture
def holding(place):
    """Return a function that starts a process which, once told, holds the folder until it is killed."""
    started = []

    def start(runs: int = 10) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDING, str(place), str(runs)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def tell(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


def test_another_process_is_kept_out_until_it_dies(place, holding):
    study = Study("two-armed", "ucb", [100, 200], runs=10)
    study.run(place)
    (place / "parts" / "00001.parquet").unlink()
    tell(other := holding())
    assert other.stdout.readline() == "held\n"
    before = contents(place)
    with pytest.raises(ResumeError, match=r"another run is working in this folder\. Wait until it ends"):
        study.run(place)
    assert ResultsFolder(place, study).finished() == {0}  # who only looks is not kept out
    assert contents(place) == before
    other.kill()
    other.wait()
    assert study.run(place).scan().select(pl.len()).collect().item() == 40


def test_of_two_studies_that_begin_in_a_new_folder_one_is_refused(place, holding):
    processes = [holding(runs) for runs in (10, 20)]
    for process in processes:
        tell(process)
    said = sorted(process.stdout.readline() for process in processes)
    assert said == [f"{place}: another run is working in this folder. Wait until it ends, or stop it.\n", "held\n"]
    assert list(contents(place)) == ["study.json"]


def test_the_same_process_holds_a_folder_once(place):
    folder = ResultsFolder(place, STUDY)
    with folder.open():
        ResultsFolder(place, STUDY).finished()  # files of the folder are opened and closed meanwhile
        for _ in range(2):
            with pytest.raises(ResumeError, match="another run is working"):
                STUDY.run(place)
    assert set(contents(place)) == {"study.json"}
    STUDY.run(place)


@pytest.mark.parametrize(("number", "goes"), [(errno.ENOLCK, True), (errno.EOPNOTSUPP, True), (errno.EIO, False)])
def test_a_file_system_without_locks(place, monkeypatch, number, goes):
    def refusing(handle: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refusing)
    if goes:
        STUDY.run(place)
        assert len(contents(place)) == 1 + len(STUDY.tasks)
    else:
        with pytest.raises(OutputError, match="could not be used: Input/output error"):
            STUDY.run(place)


def test_looking_changes_nothing(tmp_path, place):
    folder = ResultsFolder(place, STUDY)
    assert folder.finished() == set()
    assert not place.exists()
    place.mkdir()
    (place / ".study.json.abc123.part").write_text("{")
    assert folder.finished() == set()
    assert list(contents(place)) == [".study.json.abc123.part"]
    STUDY.run(place)
    (place / "parts" / "00002.parquet").unlink()
    before = contents(place)
    assert folder.finished() == {0, 1, *range(3, 8)}
    with pytest.raises(ResumeError, match="runs: the folder has 10, asked for 20"):
        ResultsFolder(place, dataclasses.replace(STUDY, runs=20)).finished()
    assert contents(place) == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "holiday.jpg").touch()
    with pytest.raises(ResumeError, match=r'contains "holiday\.jpg"'):
        ResultsFolder(tmp_path / "other", STUDY).finished()


def test_a_part_of_another_study_under_a_right_name_is_refused(tmp_path, place):
    STUDY.run(place)
    whole = contents(place)
    dataclasses.replace(STUDY, seed=2).run(tmp_path / "other")
    part = place / "parts" / "00000.parquet"
    part.write_bytes((tmp_path / "other" / "parts" / "00000.parquet").read_bytes())
    with pytest.raises(ResumeError, match=r"00000\.parquet: expected a part of this study; got one of another. Delete"):
        STUDY.run(place)
    part.write_bytes((place / "parts" / "00001.parquet").read_bytes())
    with pytest.raises(ResumeError, match=r"00000\.parquet: expected part 0 of the study; got another of its parts"):
        STUDY.run(place)
    pl.read_parquet(part).write_parquet(part)  # the right rows, written by other hands
    with pytest.raises(ResumeError, match=r"00000\.parquet: expected a part of this study"):
        ResultsFolder(place, STUDY).finished()
    part.unlink()
    STUDY.run(place)
    assert contents(place) == whole


def test_part_names_sort_as_numbers_do(place):
    long = Study("two-armed", "ucb", 10**7, runs=400_000)
    assert ResultsFolder(place, long).part(7) == "parts/000007.parquet"
    assert ResultsFolder(place, STUDY).part(7) == "parts/00007.parquet"


def test_threads_or_an_executor(place):
    with pytest.raises(ParameterError, match="threads: expected a whole number from 1"):
        STUDY.run(place, threads=0)
    assert not place.exists()
