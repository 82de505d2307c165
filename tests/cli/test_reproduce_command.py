"""`unbandit reproduce`: pictures, claims and a page from the shell."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import shell

from unbandit.paper.figure import figures

refused, unbandit, script = shell.refused, shell.unbandit, shell.script

ASKED = ["sketch-tradeoff", "--runs", "3"]


def test_verdicts_are_counted_and_files_named(unbandit, tmp_path):
    done = unbandit("reproduce", *ASKED)
    assert done.code == 0
    *_, counted, listing, page = done.out.strip().splitlines()
    assert page == "The page: reproduction/index.html"
    assert listing == "All claims: reproduction/claims.md"
    counts = re.fullmatch(r"The paper's claims: (\d) holds?, (\d) do(?:es)? not hold, (\d) cannot be tested", counted)
    assert sum(map(int, counts.groups())) == 1
    assert done.err.splitlines() == [
        "reproduction/sketch-tradeoff.png, .svg, .parquet: The tradeoff between exploration and estimation"
    ]
    text = (tmp_path / "reproduction" / "index.html").read_text(encoding="utf-8")
    assert "unbandit reproduce sketch-tradeoff --runs 3" in text


def test_what_does_not_hold_is_printed(unbandit):
    done = unbandit("reproduce", "gap-decay", "--runs", "20")
    first, *others = done.out.splitlines()
    assert first == "What does not hold:"
    assert any("at a given T, the regret is larger" in line for line in others)
    assert not any("the error falls" in line for line in others)


def test_the_papers_numbers_of_runs_are_kept(unbandit, tmp_path):
    assert unbandit("reproduce", "sketch-tradeoff", "--runs", "paper").code == 0
    text = (tmp_path / "reproduction" / "index.html").read_text(encoding="utf-8")
    assert "unbandit reproduce sketch-tradeoff --runs paper" in text
    assert "<dd>the paper&#39;s, for each picture</dd>" in text or "<dd>the paper's, for each picture</dd>" in text
    assert "; 100 runs" in text
    assert unbandit("reproduce", "sketch-exploration", "--runs", "1e1", "-o", "ten").code == 0
    assert "<dd>10 for every picture</dd>" in (tmp_path / "ten" / "index.html").read_text(encoding="utf-8")


def test_what_was_asked_is_said_on_the_page(unbandit, tmp_path):
    asked = ["-o", "my folder", "--runs", "2", "--full", "--seed", "7", "--threads", "1"]
    assert unbandit("reproduce", "sketch-exploration", *asked).code == 0
    text = (tmp_path / "my folder" / "index.html").read_text(encoding="utf-8")
    assert "unbandit reproduce sketch-exploration --runs 2 --full --seed 7 -o &#39;my folder&#39; --threads 1" in text


def test_pictures_are_listed(unbandit, tmp_path):
    done = unbandit("reproduce", "--list")
    assert (done.code, done.err) == (0, "")
    shown = [line.split()[0] for line in done.out.splitlines()[2:] if line.strip()]
    assert [name for name in shown if name in figures()] == list(figures())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (2, ["nobody"], 'got "nobody"'),
        (2, ["sketch-tradeof"], 'Did you mean "sketch-tradeoff"?'),
        (2, [*ASKED[:2], "1"], "runs: expected a whole number from 2"),
        (2, [*ASKED, "--threads", "0"], "threads"),
        (2, [*ASKED, "--seed", "-1"], "seed"),
        (2, [*ASKED[:2], "many"], "--runs: expected a whole number from 2, or paper"),
        (2, [*ASKED[:2], "-5"], "runs: expected a whole number from 2"),
        (3, [*ASKED, "-o", "file"], "expected a folder; got a file"),
        (3, [*ASKED, "-o", "file/below"], "expected a folder; got a file"),
        (3, [*ASKED, "-o", "/proc/nothing"], "/proc/nothing: could not be created"),
    ],
)
def test_refused_before_any_work(refused, code, arguments, message):
    Path("file").write_text("x")
    assert message in refused(code, "reproduce", *arguments)


def test_a_folder_with_other_numbers_is_refused(unbandit, refused):
    unbandit("reproduce", *ASKED)
    said = refused(3, "reproduce", "sketch-tradeoff", "--runs", "4")
    assert "runs: the folder has 3, asked for 4" in said


@pytest.mark.skipif(shutil.which("bash") is None, reason="sets a limit by bash")
def test_no_room_leaves_finished_parts_intact(script, unbandit, tmp_path):
    assert unbandit("reproduce", *ASKED).code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "reproduction").rglob("*") if path.is_file()}
    limited = subprocess.run(
        ["bash", "-c", f"ulimit -f 10; exec {script.path} reproduce {' '.join(ASKED)}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert limited.returncode == 3
    assert "could not be written" in limited.stderr
    assert "Traceback" not in limited.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "reproduction").rglob("*") if path.is_file()} == before


def test_an_interrupted_command_says_that_it_can_go_on(script, tmp_path):
    # on the CPU: a GPU, which so many rounds are worth, does them in one part
    asked = [script.path, "reproduce", "sketch-tradeoff", "--runs", "400000", "--threads", "1", "--device", "cpu"]
    with subprocess.Popen(asked, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        parts = tmp_path / "reproduction" / "parts"
        until = time.monotonic() + 600
        while not list(parts.rglob("0*.parquet")) and time.monotonic() < until and running.poll() is None:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=600)
    assert (running.returncode, out) == (130, ""), err
    assert "kept in reproduction. Run the same command to resume." in err
    assert "Traceback" not in err
    assert list(parts.rglob("0*.parquet"))
    assert not list(parts.rglob("*.part"))
