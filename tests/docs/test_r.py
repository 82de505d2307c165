"""The page for users of R: its blocks run in R as they stand, in an empty folder; without R only names are checked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents_shown import ROOT, blocks

import unbandit

PAGE = ROOT / "docs" / "r.md"
INSTALLING, *SNIPPETS = [block.text for block in blocks(PAGE) if block.kind == "r"]


@pytest.fixture
def run_r(tmp_path):
    """Return a function that runs lines of R in an empty folder, where "unbandit" is the environment of this Python."""
    if (program := shutil.which("Rscript")) is None:
        pytest.skip("R is not installed")
    if sys.prefix == sys.base_prefix:
        pytest.skip("this Python runs in no virtual environment, and the page uses one")
    environments = tmp_path / "environments"
    environments.mkdir()
    (environments / "unbandit").symlink_to(sys.prefix)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    variables = {key: value for key, value in os.environ.items() if key != "RETICULATE_PYTHON"}
    variables |= {"WORKON_HOME": str(environments), "PATH": path}
    folder = tmp_path / "empty"
    folder.mkdir()

    def run(lines: str, needs: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        listed = subprocess.run([program, "-e", f"cat(nzchar(system.file(package = '{needs}')))"], capture_output=True)
        if listed.stdout != b"TRUE":
            pytest.skip(f"the R package {needs} is not installed")
        done = subprocess.run(
            [program, "-e", lines], cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done, folder

    return run


def test_the_blocks_for_reticulate_run_in_r(run_r):
    done, folder = run_r("".join(SNIPPETS[:2]), "reticulate")
    assert done.returncode == 0, done.stderr
    answer = unbandit.estimate(unbandit.ActionLog.read(folder / "choices.csv"), "ucb1", sigma=0.5)
    shown = [line.split() for line in done.stdout.splitlines()]
    assert ["arm", "gap", "gap_low", "gap_high", "verdict"] in shown
    for label, gap, verdict in answer.to_frame().select("arm", "gap", "verdict").iter_rows():
        (row,) = [words for words in shown if len(words) == 6 and words[1] == label]
        assert (float(row[2]), row[-1]) == (pytest.approx(gap, abs=1e-6), verdict)
    assert "<h1" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_block_for_json_runs_in_r_and_stops_where_the_command_refuses(run_r, tmp_path):
    log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    log.write(tmp_path / "empty" / "choices.csv")
    done, _ = run_r(SNIPPETS[2], "jsonlite")
    assert done.returncode == 0, done.stderr
    answer = unbandit.estimate(log, "ucb1", sigma=0.5)
    for label, verdict in answer.to_frame().select("arm", "verdict").iter_rows():
        assert re.search(rf"^\d+ +{label} .* {verdict}$", done.stdout, re.MULTILINE)
    refused, _ = run_r(SNIPPETS[2].replace('"ucb1"', '"no-such-rule"'), "jsonlite")
    assert refused.returncode != 0
    assert "no-such-rule" in refused.stderr
    assert "unbandit failed" in refused.stderr


def test_the_page_calls_what_there_is():
    assert 'packages = "/path/to/unbandit"' in INSTALLING
    called = re.findall(r"ub\$(\w+)(?:\$(\w+))?", PAGE.read_text(encoding="utf-8"))
    assert len(called) >= 6
    for name, method in called:
        assert hasattr(getattr(unbandit, name), method) if method else hasattr(unbandit, name)
    answer = unbandit.estimate(unbandit.ActionLog.from_actions("AB" + "AAAB" * 20), "ucb", sigma=0.2)
    (columns,) = set(re.findall(r'c\(("arm", "gap"[^)]*)\)', "".join(SNIPPETS)))
    assert set(re.findall(r"\w+", columns)) <= set(answer.to_frame().columns) & set(answer.to_dict()["arms"][0])
    assert {"check", "warnings", "arms"} <= set(answer.to_dict())
