"""Run the command line as a user does, in this process or as the installed script, and look at what it wrote."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("unbandit")

# The keys of an estimate's JSON, in their order, before its arms; and those of an arm.
TOP = [
    "schema",
    "rule",
    "method",
    "horizon",
    "demonstrations",
    "level",
    "sigma",
    "seed",
    "best",
    "check",
    "warnings",
    "notes",
]
ROW = ["arm", "pulls", "gap", "gap_low", "gap_high", "mean", "mean_low", "mean_high", "ratio", "verdict"]


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def unbandit(monkeypatch, capfd, tmp_path):
    """Return a function that runs `unbandit ARGUMENTS` in an empty folder, and gives exit code and both streams."""
    from unbandit.cli.app import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["unbandit", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stopped:
            code = stopped.code or 0
        sys.stdout.flush()
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Outcome(code, out, err)

    return run


@pytest.fixture
def script(tmp_path):
    """Return a function that runs the installed script in an empty folder."""

    def run(*arguments: object, stdin: bytes = b"", **options: object) -> subprocess.CompletedProcess[str]:
        given = {"capture_output": True} | options
        done = subprocess.run(
            [SCRIPT, *map(str, arguments)], input=stdin, cwd=tmp_path, timeout=600, check=False, **given
        )
        out, err = (None if part is None else part.decode() for part in (done.stdout, done.stderr))
        assert err is None or "Traceback" not in err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    run.path = SCRIPT
    return run


@pytest.fixture
def refused(unbandit):
    """Return a function that runs a command which must fail: a code, one line of reason, nothing printed or written."""

    def run(code: int, *arguments: object, **options: object) -> str:
        before = {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")}
        done = unbandit(*arguments, **options)
        assert (done.code, done.out) == (code, ""), done
        usage = done.err.startswith(("Usage: ", "Error: "))
        assert usage or (done.err.startswith("unbandit: ") and len(done.err.strip().splitlines()) == 1), done.err
        assert {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")} == before
        return done.err

    return run
