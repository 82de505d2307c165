"""`unbandit estimate` of several files, folders and patterns, and `--follow`: a log that grows, kills and Ctrl-C."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import shell

import unbandit as ub
from unbandit.log.growth import GrowingLog

refused, unbandit = shell.refused, shell.unbandit

ASKED = ["--rule", "ucb:alpha=0.25", "--sigma", "1", "--best-mean", "1"]
QUICK = ["--every", "0.05", "--until-idle", "0.2"]


@pytest.fixture(scope="module")
def log():
    return ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.6, 0.3], 1.0, ["b", "a", "c"]), 3_000, seed=5)


def lines(log):
    return [f"{log.arms[code]}\n" for code in log.actions]


def expected(log):
    return ub.estimate(log, "ucb:alpha=0.25", sigma=1.0, best_mean=1.0).to_dict()


def test_several_files_a_folder_and_a_pattern_are_one_log(unbandit, log, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    frame = log.to_frame()
    for part in range(12):
        frame[part * 250 : (part + 1) * 250].write_parquet(folder / f"part-{part}.parquet")
    files = sorted(folder.iterdir())  # as a shell sorts them: part-10 before part-2
    for given in ([folder], [f"{folder}/part-*.parquet"], files):
        done = unbandit("estimate", *given, *ASKED, "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["arms"] == expected(log)["arms"]


def test_what_is_large_is_scanned_and_said_so(unbandit, log, tmp_path, monkeypatch):
    monkeypatch.setattr("unbandit.log.formats.memory", lambda: 1000)
    log.write(tmp_path / "log.parquet")
    done = unbandit("estimate", "log.parquet", *ASKED)
    assert done.code == 0
    assert "note: the log is large, so it is scanned" in done.err
    answer = unbandit("estimate", "log.parquet", *ASKED, "--json")
    assert json.loads(answer.out)["arms"] == expected(log)["arms"]
    record = ub.estimate("log.parquet", "ucb:alpha=0.25", sigma=1.0, best_mean=1.0)
    assert record.to_dict()["arms"] == expected(log)["arms"]
    draws = unbandit("estimate", "log.parquet", *ASKED, "--method", "bootstrap", "--resamples", "100", "--json")
    assert json.loads(draws.out)["method"] == "bootstrap"  # which reads the log into memory


def test_a_report_takes_one_log(refused, log, tmp_path):
    for name in "ab":
        log.write(tmp_path / f"{name}.csv")
    assert "LOG: expected one file, or a folder; got 2: a.csv, b.csv" in refused(2, "report", "a.csv", "b.csv", *ASKED)


def test_following_ends_when_nothing_comes(unbandit, log, tmp_path):
    log.write(tmp_path / "log.csv")
    done = unbandit("estimate", "log.csv", *ASKED, "--follow", *QUICK)
    assert done.code == 0
    assert done.out.count("after 3,000 rounds") == 1
    assert "\x1b" not in done.out
    assert "best" in done.out
    done = unbandit("estimate", "log.csv", *ASKED, "--follow", *QUICK, "--json", "-o", "table.csv")
    (line,) = done.out.splitlines()
    assert json.loads(line) == expected(log)
    assert pl.read_csv(tmp_path / "table.csv")["arm"].to_list() == ["b", "a", "c"]


def test_following_says_how_the_log_is_read_in_text_and_in_json(unbandit, tmp_path):
    rows = (f"{at};{arm};0,5" for at, arm in enumerate(["1", "01"] * 5 + ["1"] * 5, 1))
    (tmp_path / "log.csv").write_text("\n".join(["round;arm;reward", *rows, ""]))
    texts = ("read with semicolons between cells", 'arms "1" and "01" differ in how a number is written only')
    said = unbandit("estimate", "log.csv", *ASKED, "--follow", *QUICK).err
    done = unbandit("estimate", "log.csv", *ASKED, "--follow", *QUICK, "--json", "-o", "answer.json").out
    for answer in (json.loads(done), json.loads((tmp_path / "answer.json").read_text())):
        notes = [(each["code"], each["message"]) for each in answer["notes"]]
        for code, text in zip(("layout", "reading"), texts, strict=True):
            assert said.count(text) == sum(each[0] == code and text in each[1] for each in notes) == 1


def test_a_log_that_tells_nothing_yet_is_waited_for_and_then_refused(unbandit, tmp_path):
    (tmp_path / "log.csv").write_text("arm\nA\nA\n")
    done = unbandit("estimate", "log.csv", *ASKED, "--follow", *QUICK)
    assert done.code == 3
    assert 'waiting: column "arm": expected two arms or more; got only "A"' in done.err


@pytest.mark.parametrize(
    ("code", "options", "said"),
    [
        (2, ["--every", "1"], "--every: expected only with --follow"),
        (2, ["--snapshot", "x"], "--snapshot: expected only with --follow"),
        (2, ["--until-idle", "1"], "--until-idle: expected only with --follow"),
        (2, ["--follow", "--every", "0"], "--every: expected a number of seconds above 0"),
        (2, ["--follow", "--sensitivity"], "--sensitivity: expected without --follow"),
        (
            2,
            ["--follow", "--availability", "arms.csv"],
            "--availability: expected without --follow: following a log",
        ),
        (2, ["--follow", "--method", "bootstrap"], "method: bootstrap looks at rounds one by one"),
        (2, ["--follow", "--snapshot", "no/where"], "--snapshot: expected a file in an existing folder"),
        (
            3,
            ["--follow", "--snapshot", "log.csv"],
            "log.csv: expected a snapshot of unbandit; got another kind of file",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(refused, tmp_path, code, options, said):
    (tmp_path / "log.csv").write_text("arm\nA\nB\n")
    assert said in refused(code, "estimate", "log.csv", *ASKED, *options)


def test_standard_input_and_several_files_cannot_be_followed(refused, tmp_path):
    (tmp_path / "log.csv").write_text("arm\nA\nB\n")
    assert "--follow: expected a file or a folder" in refused(2, "estimate", "-", *ASKED, "--follow")
    assert "LOG: expected one file" in refused(2, "estimate", "log.csv", "log.csv", *ASKED, "--follow")


def started(folder, *options, stdout=subprocess.PIPE):
    """Start following; a shell that runs the tests in the background ignores Ctrl-C, and its children would too."""
    command = [shell.SCRIPT, "estimate", "log.csv", *ASKED, "--follow", "--json", *options]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, preexec_fn=heed)


def test_killed_at_any_moment_it_goes_on_from_the_snapshot(unbandit, log, tmp_path):
    """Write, kill, write, kill; in the end the answer is that of the whole log, and it went on where it was."""
    chance, path, snapshot = random.Random(1), tmp_path / "log.csv", tmp_path / "state"
    data = "".join(["arm\n", *lines(log)]).encode()
    path.write_bytes(b"")
    written, offsets = 0, [0]
    for until in (1_000, 3_000, 5_000):
        process = started(tmp_path, "--every", "0.02", "--snapshot", "state", stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 600
            kill = None  # some moment after it has written a snapshot of its own
            while (kill is None or time.monotonic() < kill) and time.monotonic() < deadline:
                size = min(chance.randrange(1, 60), until - written)
                with path.open("ab") as file:
                    file.write(data[written : written + size])
                written += size
                if kill is None and snapshot.exists() and _offset(snapshot) > offsets[-1]:
                    kill = time.monotonic() + chance.random() * 0.1
                time.sleep(0.002)
            assert process.poll() is None
        finally:
            process.kill()
            process.communicate()
        offsets.append(_offset(snapshot))
    with path.open("ab") as file:
        file.write(data[written:])
    done = unbandit("estimate", "log.csv", *ASKED, "--follow", "--json", *QUICK, "--snapshot", "state")
    assert done.code == 0, done.err
    assert json.loads(done.out.splitlines()[-1]) == expected(log)
    assert 0 < offsets[1] < offsets[2] < offsets[3] < len(data)


def _offset(snapshot: Path) -> int:
    from unbandit.log.snapshot import read_snapshot

    (file,) = read_snapshot(snapshot)[0]["position"]["files"].values()
    return file["read"]["offset"]


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_control_c_ends_with_130_and_the_last_table(log, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("".join(["arm\n", *lines(log)[:2_000]]))
    process = started(tmp_path, "--every", "30")
    first = process.stdout.readline()
    assert json.loads(first)["demonstrations"] == 1
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert out == ""  # the last table stands there already
    assert "Traceback" not in err


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("every", ["0.000001", "30"])
def test_control_c_within_a_piece_loses_no_rows(unbandit, log, tmp_path, monkeypatch, added, every):
    """Stop before or after the third piece was counted; then go on from the snapshot, if there is one."""
    (tmp_path / "log.csv").write_text("".join(["arm\n", *lines(log)]))
    add, calls = GrowingLog.add, []

    def interrupted(self, runs):
        calls.append(runs)
        if len(calls) < 3 or added:
            add(self, runs)
        if len(calls) == 3:
            raise KeyboardInterrupt

    asked = ["estimate", "log.csv", *ASKED, "--follow", "--json", "--snapshot", "state"]
    with monkeypatch.context() as patch:
        patch.setattr("unbandit.log.follower.BLOCK", 1_000)
        patch.setattr(GrowingLog, "add", interrupted)
        done = unbandit(*asked, "--every", every)
    assert (done.code, done.out) == (130, "")
    assert "stopped while rows were being read" in done.err
    assert len(calls) == 3
    assert (tmp_path / "state").exists() == (every != "30")
    done = unbandit(*asked, *QUICK)
    assert json.loads(done.out) == expected(log)
