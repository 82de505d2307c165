"""`unbandit study`: a whole grid from a file, in a folder that survives everything."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import shell
from shell import contents

refused, script, unbandit = shell.refused, shell.script, shell.unbandit

SMALL = """
rules = ["ucb:alpha=0.25", "sae"]
horizons = {from = 100, to = 400, points = 3}
runs = 20
estimators = ["switching", "naive:constant=0.75"]

[[instances]]
dataset = "two-armed"

[[instances]]
name = "close"
means = [1.0, 0.9, 0.5]
sigma = 0.5
arms = ["A", "B", "C"]
"""

# 48 tasks, done in a second
LONG = """
instances = ["two-armed", "linear"]
rules = ["ucb:alpha=0.15", "ucb:alpha=0.25"]
horizons = {from = 200, to = 400, points = 12, spacing = "linear"}
runs = 20
"""

# the command, which takes half a minute because every part stays unfinished for a while: there is time to disturb it
SLOWLY = """
import time
import polars
from unbandit.cli.app import main

write = polars.DataFrame.write_parquet

def slowly(*given, **options):
    write(*given, **options)
    time.sleep(0.5)

polars.DataFrame.write_parquet = slowly
main()
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "study.toml").write_text(SMALL)
    return "study.toml"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, bytes]:
    """What the long study leaves when nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "study.toml").write_text(LONG)
    subprocess.run([shell.SCRIPT, "study", "study.toml", "-o", "all"], cwd=folder, check=True, capture_output=True)
    return contents(folder / "all")


@pytest.fixture
def begun(tmp_path):
    """Return a function that starts the long study, slowed down, and returns when so many parts are there."""
    (tmp_path / "study.toml").write_text(LONG)
    started = []

    def start(parts: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SLOWLY, "study", "study.toml", "-o", "all", "--threads", "1"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True)
        started.append(process)
        limit = time.monotonic() + 600
        while len(list((tmp_path / "all" / "parts").glob("*.parquet"))) < parts:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < limit
            time.sleep(0.005)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_study_ends_with_a_table(unbandit, file):
    done = unbandit("study", file, "-o", "results")
    assert done.code == 0
    assert done.out.startswith("Study: 2 instances x 2 rules x 3 horizons, 20 runs each, estimated by switching, naive")
    headings = [line for line in done.out.splitlines() if line.startswith(("two-armed", "close"))]
    both = ["switching", "naive:constant=0.75"]
    assert headings == [f"{instance}, {estimator}" for instance in ("two-armed", "close") for estimator in both]
    shown = ("horizon", "rule", "arm", "gap", "estimated", "RMSE", "coverage", "found", "regret", "±")
    assert all(name in done.out for name in shown)
    assert len([line for line in done.out.splitlines() if "scale=1.414 " in line]) == 2 * 3 * 2 * (1 + 2)
    assert done.out.endswith("Everything, arm by arm: results/summary.csv\n")
    assert done.err == "results: 12 parts, and summary.csv\n"
    table = pl.read_csv("results/summary.csv")
    assert table.height == 60
    assert table.columns == [
        "instance", "rule", "horizon", "estimator", "arm",
        "gap", "runs", "estimated", "rmse", "rmse_error", "coverage", "found", "regret",
    ]  # fmt: skip
    assert set(table.filter(instance="close")["arm"]) == {"A", "B", "C"}
    assert set(table["horizon"]) == {100, 200, 400}
    assert pl.read_parquet("results/parts/*.parquet").height == 2 * 3 * 20 * 2 * (2 + 3)
    assert json.loads(Path("results/study.json").read_text())["runs"] == 20


def test_of_many_arms_there_is_one_line_a_cell(unbandit, tmp_path):
    Path("many.toml").write_text(
        'rules = ["ucb", "sae"]\nhorizons = [300, 100]\nruns = 4\n[[instances]]\ndataset = "battery-high"\n'
    )
    done = unbandit("study", "many.toml", "-o", "results")
    lines = [line.split()[:2] for line in done.out.splitlines() if "scale=1.414 " in line]
    rules = ["ucb:alpha=0.25,scale=1.414", "sae:alpha=0.25,scale=1.414"]
    assert lines == [[horizon, rule] for horizon in ("100", "300") for rule in rules]
    assert "the RMSE is the largest among arms estimated in nearly all runs" in done.out
    assert pl.read_csv("results/summary.csv").height == 2 * 2 * 224


def test_the_same_command_again_does_nothing_anew(unbandit, file):
    first = unbandit("study", file, "-o", "results")
    before = {path: path.stat().st_mtime_ns for path in Path("results/parts").iterdir()}
    held = contents(Path("results"))
    again = unbandit("study", file, "-o", "results", "--threads", 1)
    assert (again.code, again.out) == (0, first.out)
    assert {path: path.stat().st_mtime_ns for path in Path("results/parts").iterdir()} == before
    assert contents(Path("results")) == held


def test_threads_do_not_change_a_byte(unbandit, file):
    unbandit("study", file, "-o", "one", "--threads", 1)
    unbandit("study", file, "-o", "two", "--threads", 2)
    assert contents(Path("one")) == contents(Path("two"))


def test_runs_and_seed_take_the_place_of_the_files(unbandit, file):
    done = unbandit("study", file, "-o", "deep/down", "--runs", 3, "--seed", 9)
    assert done.code == 0
    said = json.loads(Path("deep/down/study.json").read_text())
    assert (said["runs"], said["seed"]) == (3, 9)
    assert set(pl.read_csv("deep/down/summary.csv")["runs"]) == {3}


def test_the_example_of_the_help_runs(unbandit):
    shown = unbandit("study", "--help").out
    assert "Example:  unbandit study study.toml -o results" in shown
    text = shown[shown.index("rules =") : shown.index("Rows are written to")]
    Path("study.toml").write_text(text)
    assert unbandit("study", "study.toml", "-o", "results", "--runs", 2).code == 0


def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(begun, unbandit, tmp_path, undisturbed):
    for parts in (1, 3):
        process = begun(parts)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "all" / "parts").glob("*.parquet")}
    assert 0 < len(kept) < 48
    assert not (tmp_path / "all" / "summary.csv").exists()
    assert unbandit("study", "study.toml", "-o", "all").code == 0
    assert contents(tmp_path / "all") == undisturbed
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_interrupted_it_says_what_is_kept_and_goes_on(begun, unbandit, tmp_path, undisturbed):
    process = begun(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, "")
    kept = len(list((tmp_path / "all" / "parts").iterdir()))
    assert 1 <= kept < 48
    assert err == f"Stopped: {kept} of 48 parts are kept in all. Run the same command to resume.\n"
    assert unbandit("study", "study.toml", "-o", "all").code == 0
    assert contents(tmp_path / "all") == undisturbed


def test_a_second_process_is_kept_out(begun, unbandit):
    begun(1).send_signal(signal.SIGSTOP)  # it waits, and holds the folder
    done = unbandit("study", "study.toml", "-o", "all")
    assert (done.code, done.out) == (3, "")
    assert done.err == ("unbandit: all: another run is working in this folder. Wait until it ends, or stop it.\n")


def test_a_disk_that_fills_up_keeps_the_finished_parts(script, unbandit, tmp_path):
    # a limit on the size of a file stands in for a full disk; a part of the second instance is beyond it
    text = 'instances = ["two-armed", "battery-high"]\nrules = ["ucb"]\nhorizons = [300, 301, 302]\nruns = 100\n'
    (tmp_path / "study.toml").write_text(text)
    assert unbandit("study", "study.toml", "-o", "again").code == 0  # compiled kernels could not be kept either
    limit = 16_384
    full = script(
        "study", "study.toml", "-o", "all", "--threads", 1,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert (full.returncode, full.stdout) == (3, "")
    assert full.stderr.startswith("unbandit: all/parts/0000")
    assert "could not be written: " in full.stderr
    assert "File too large" in full.stderr
    assert len(full.stderr.splitlines()) == 1
    kept = contents(tmp_path / "all")
    assert unbandit("study", "study.toml", "-o", "all").code == 0
    assert contents(tmp_path / "all") == contents(tmp_path / "again")
    assert kept
    assert kept.items() <= contents(tmp_path / "all").items()
    assert max(len(data) for name, data in kept.items()) <= limit < max(map(len, contents(tmp_path / "all").values()))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["study.toml", "-o", "results", "--runs", 1], "runs: expected a whole number from 2 to 2^32 - 1; got 1"),
        (["study.toml", "-o", "results", "--seed", -1], "seed: expected a whole number from 0"),
        (["study.toml", "-o", "results", "--threads", 0], "threads: expected a whole number from 1"),
        (["study.toml", "-o", "results", "--executor", "spark"], 'one of threads, ray, dask; got "spark"'),
        (["study.toml", "-o", "results", "--address", "head:1"], "address: threads run on this machine"),
        (["study.toml", "-o", "foo://results"], "foo://results: expected an address that fsspec supports"),
        (["study.toml", "-o", "memory://"], "expected a folder below it, such as memory:"),
        (["study.toml"], "output"),
        ([], "FILE"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_option_ends_with_2(refused, file, options, said):
    assert said in refused(2, "study", *options)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("sae", "thomson", "rules: expected one of "),
        ("runs = 20", "runs = 1", "runs: expected a whole number from 2 to 2^32 - 1; got 1."),
        ("sigma = 0.5", "sigma = -1", "instance 2: sigma: expected a positive number; got -1"),
        ("rules =", "rules", "expected a TOML file; got a mistake in it: "),
    ],
)
def test_a_wrong_file_ends_with_3(refused, tmp_path, right, wrong, said):
    (tmp_path / "bad.toml").write_text(SMALL.replace(right, wrong))
    assert refused(3, "study", "bad.toml", "-o", "results").startswith(f"unbandit: bad.toml: {said}")


def test_a_file_that_is_not_there_ends_with_3(refused):
    message = refused(3, "study", "none.toml", "-o", "results")
    assert message.startswith("unbandit: none.toml: expected a TOML file; it could not be read: No such file")


def test_a_folder_that_does_not_fit_ends_with_3(unbandit, refused, file, tmp_path):
    unbandit("study", file, "-o", "results")
    message = refused(3, "study", file, "-o", "results", "--runs", 30)
    assert message == (
        "unbandit: results: it has another study (runs: the folder has 20, asked for 30). "
        "Use another folder, or delete this one.\n"
    )
    assert "without study.json" in refused(3, "study", file, "-o", ".")
    assert "study.toml: expected a folder; got a file" in refused(3, "study", file, "-o", "study.toml")
    assert "could not be used: Not a directory" in refused(3, "study", file, "-o", "study.toml/below")
    (tmp_path / "results" / "study.json").write_text("{")
    assert "study.json: could not be read as a study" in refused(3, "study", file, "-o", "results")


def test_a_part_that_was_cut_is_made_again(unbandit, file, tmp_path):
    first = unbandit("study", file, "-o", "results")
    whole = contents(tmp_path / "results")
    (tmp_path / "results" / "parts" / "00001.parquet").write_bytes(b"PAR1")
    again = unbandit("study", file, "-o", "results")
    assert (again.code, again.out) == (0, first.out)
    assert again.err.splitlines() == [
        "results: 1 part was cut or altered, and will be redone.",
        "results: 12 parts, and summary.csv",
    ]
    assert contents(tmp_path / "results") == whole


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_ends_with_3(refused, file, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "could not be used: Permission denied" in refused(3, "study", file, "-o", "locked/results")
