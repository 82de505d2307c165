"""Where a log came from: the checksum is of exactly the bytes that were read."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import threading

import pytest

import unbandit as ub
from unbandit.reporting import LogSource
from unbandit.reporting.provenance import BLOCK_SIZE, python_line, read_log, shell_line

DATA = b"arm\nA\nB\nA\nA\n"
SHA = hashlib.sha256(DATA).hexdigest()


def test_a_file(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(DATA)
    assert LogSource.of_file(path) == LogSource(str(path), SHA, len(DATA))
    log, source = read_log(path)
    assert (log.arms, source) == (("A", "B"), LogSource(str(path), SHA, len(DATA)))


def test_a_file_of_many_blocks(tmp_path):
    data = b"x" * (3 * BLOCK_SIZE + 7)
    (tmp_path / "large").write_bytes(data)
    assert LogSource.of_file(tmp_path / "large").checksum == hashlib.sha256(data).hexdigest()


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(DATA)))
    log, source = read_log("-", arms=["A", "B", "C"])
    assert (log.arms, source) == (("A", "B", "C"), LogSource("standard input", SHA, len(DATA)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(DATA,))
    writer.start()
    log, source = read_log(path)
    writer.join()
    assert (log.lengths.tolist(), source.checksum) == ([4], SHA)


def test_a_file_that_changes_meanwhile_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_bytes(DATA)
    honest = LogSource.of_file

    def slow(name):
        path.write_bytes(DATA + b"B\n")
        return honest(name)

    monkeypatch.setattr(LogSource, "of_file", slow)
    with pytest.raises(ub.LogError, match=r"log\.csv: the file changed while it was being read"):
        read_log(path)


def test_what_cannot_be_read_is_said_as_everywhere(tmp_path):
    with pytest.raises(ub.LogError, match="file not found"):
        read_log(tmp_path / "nothing.csv")
    with pytest.raises(ub.LogError, match="the folder has none"):
        read_log(tmp_path)
    with pytest.raises(ub.LogError, match="expected a readable file"):
        LogSource.of_file(tmp_path / "nothing.csv")


def test_a_report_of_a_path_has_its_checksum(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(DATA)
    report = ub.report(path, "ucb", sigma=1.0)
    assert SHA in report.main
    assert "unbandit report log.csv --rule ucb" in report.main


def test_a_command_has_what_differs_from_the_default():
    options = {"anchor": {"B": 0.4}, "best_mean": None, "pool": True, "level": 0.9, "seed": 0, "scale": "known"}
    assert shell_line("my log.csv", ub.UCB1(), options) == (
        "unbandit report 'my log.csv' --rule ucb1:exploration=2.0 --anchor B=0.4 --pool --level 0.9 --seed 0"
    )
    assert python_line(ub.UCB1(), {"sigma": 0.5, "seed": None}) == (
        'unbandit.report(log, "ucb1:exploration=2.0", sigma=0.5).write("report.html")'
    )


@pytest.mark.parametrize(
    ("check", "shell", "python"), [(False, " --no-check", ", check=False"), (True, "", ", check=True"), (None, "", "")]
)
def test_the_command_says_that_nothing_was_checked(check, shell, python):
    assert shell_line("log.csv", ub.Uniform(), {"check": check}) == f"unbandit report log.csv --rule uniform{shell}"
    assert (
        python_line(ub.Uniform(), {"check": check}) == f'unbandit.report(log, "uniform"{python}).write("report.html")'
    )
