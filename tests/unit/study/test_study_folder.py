"""A folder of results: whose it is, what is in it, and what is said when that does not fit."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from unbandit import Instance, OutputError, ParameterError, ResumeError
from unbandit.study import ShrinkingGap, Study
from unbandit.study.folder import Folder

STUDY = Study(["two-armed", ShrinkingGap(0.5)], ["ucb", "sae"], [100, 200], runs=10)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "results"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_new_folder_says_what_it_holds(place):
    Folder(place / "deep" / "down", STUDY).claim()
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
        ({"estimators": ["counts"]}, "estimators: the folder has switching, asked for counts"),
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
    assert str(refused.value).endswith("Take another folder, or delete this one.")
    assert contents(place) == before


def test_parts_of_another_version_are_not_mixed_in(place):
    STUDY.run(place)
    written = place / "study.json"
    written.write_text(json.dumps(STUDY.identity | {"version": "0.0.1"}))
    with pytest.raises(ResumeError, match=r"version: the folder has 0\.0\.1, asked for "):
        STUDY.run(place)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "other/1"}', "\xff"])
def test_a_study_that_cannot_be_read_is_refused(place, text):
    place.mkdir()
    (place / "study.json").write_text(text, encoding="latin-1")
    with pytest.raises(ResumeError, match=r"study\.json: (could not be read as a study|expected a study with schema)"):
        STUDY.run(place)
    assert (place / "study.json").read_text(encoding="latin-1") == text


def test_a_folder_with_other_things_is_refused(place):
    place.mkdir()
    (place / "holiday.jpg").touch()
    with pytest.raises(ResumeError, match=r'without study\.json, in which there is "holiday\.jpg"'):
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
    with pytest.raises(ResumeError, match=f"{name}: expected parts of this study alone; got another file"):
        STUDY.run(place)


@pytest.mark.parametrize("kept", [0, 4, 100, -1], ids=lambda kept: f"[:{kept}]")
def test_a_cut_part_is_named_and_can_be_made_again(place, kept):
    STUDY.run(place)
    part, whole = place / "parts" / "00003.parquet", contents(place)
    part.write_bytes(part.read_bytes()[:kept])
    with pytest.raises(ResumeError, match=r"00003\.parquet: expected a whole Parquet file; .* Delete it"):
        STUDY.run(place)
    part.unlink()
    STUDY.run(place)
    assert contents(place) == whole


def test_what_the_system_refuses_is_said(tmp_path, place):
    place.write_text("a file")
    with pytest.raises(OutputError, match="results: expected a folder; got a file"):
        STUDY.run(place)
    with pytest.raises(OutputError, match="below: could not be used: Not a directory"):
        STUDY.run(place / "below")
    other = tmp_path / "other"
    Folder(other, STUDY).claim()
    (other / "parts").rmdir()
    (other / "parts").write_text("a file")
    with pytest.raises(OutputError, match="parts: expected a folder; got a file"):
        STUDY.run(other)


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


def test_another_process_is_kept_out_until_it_dies(place):
    STUDY.run(place)
    (place / "parts" / "00002.parquet").unlink()
    holding = (
        "import sys, time, fcntl\n"
        f"file = open({str(place / 'study.json')!r}, 'r+b')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ResumeError, match="another process is at work on this study"):
            STUDY.run(place)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert STUDY.run(place).scan().select(pl.len()).collect().item() == 160


def test_part_names_sort_as_numbers_do(place):
    long = Study("two-armed", "ucb", 10**7, runs=400_000)
    assert Folder(place, long).part(7).name == "000007.parquet"
    assert Folder(place, STUDY).part(7).name == "00007.parquet"


def test_threads_or_an_executor(place):
    with pytest.raises(ParameterError, match="threads: expected a whole number from 1"):
        STUDY.run(place, threads=0)
    assert not place.exists()
