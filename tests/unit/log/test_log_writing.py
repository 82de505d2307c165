"""Writing: what is written is read back, and what cannot be written changes nothing."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbandit.errors import OutputError, ParameterError
from unbandit.log import ActionLog
from unbandit.log.labels import is_missing_word, is_never_a_label

SUFFIXES = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")
LABELS = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
    | st.sampled_from(["01", "1", "1.0", "a,b", 'say "so"', "two\nlines", "a;b", "tab\tbed", "-", "'", "#", "\u00e4"])
).map(str.strip)
ARMS = st.lists(
    LABELS.filter(lambda label: label and not is_never_a_label(label) and not is_missing_word(label)),
    min_size=2,
    max_size=5,
    unique=True,
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back(suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("written") / f"log{suffix}"

    @settings(deadline=None, max_examples=60)
    @given(ARMS, st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=6), min_size=1, max_size=3))
    def check(arms: list[str], runs: list[list[int]]) -> None:
        log = ActionLog.from_actions([[arms[code % len(arms)] for code in run] for run in runs], arms=arms)
        log.write(path)
        assert ActionLog.read(path, arms=arms) == log

    check()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_tables_of_counts_and_names_are_read_back(suffix: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"run": ["x", "x", "y", "y"], "arm": ["A", "B", "A", "B"], "pulls": [1, 2, 3, 0]})
    named = ActionLog.from_actions([["A", "B"], ["B", "A"]])
    for log in (ActionLog.from_frame(frame), ActionLog.from_counts({"A": 0, "B": 4}), named, named.select(1)):
        log.write(tmp_path / f"log{suffix}")
        assert ActionLog.read(tmp_path / f"log{suffix}", arms=["A", "B"]) == log


def test_the_columns_of_a_frame() -> None:
    assert ActionLog.from_actions(["B", "A"]).to_frame().to_dict(as_series=False) == {
        "round": [1, 2],
        "arm": ["B", "A"],
    }
    assert ActionLog.from_actions([[0, 1], [1]]).to_frame().rows() == [("1", 1, "0"), ("1", 2, "1"), ("2", 1, "1")]
    assert ActionLog.from_counts({"A": 1, "B": 0}).to_frame().rows() == [("A", 1), ("B", 0)]


def test_equal_logs_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        ActionLog.from_actions(["A", "B"]).write(tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


@pytest.mark.parametrize("name", ["log.xlsx", "log", "log.gz", "log.parquet.gz", "csv"])
def test_unknown_formats_are_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"\.csv, \.tsv, \.parquet, \.csv\.gz, \.tsv\.gz") as caught:
        ActionLog.from_actions(["A", "B"]).write(tmp_path / name)
    assert name in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"nowhere.*Nothing was changed"):
        ActionLog.from_actions(["A", "B"]).write(tmp_path / "nowhere" / "log.csv")
    assert list(tmp_path.iterdir()) == []


_FILL_UP = """
import pathlib, resource, signal, sys
import numpy as np
from unbandit.errors import OutputError
from unbandit.log import ActionLog

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = ActionLog.from_actions(np.random.default_rng(1).integers(0, 200, 100_000))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for path in sys.argv[1:]:
    try:
        log.write(path)
    except OutputError as error:
        print(error)
    else:
        print("written")
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit on files here")
def test_a_disk_that_fills_up_changes_nothing(tmp_path: Path) -> None:
    paths = [tmp_path / f"log{suffix}" for suffix in SUFFIXES]
    for path in paths:
        path.write_text("as before")
    done = subprocess.run([sys.executable, "-c", _FILL_UP, *paths], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        assert line.startswith(f"{path}: could not be written")
        assert line.endswith("Nothing was changed.")
        assert path.read_text() == "as before"
    assert sorted(tmp_path.iterdir()) == sorted(paths)
