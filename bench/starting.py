"""How long the command takes from the prompt to the answer, on a second start."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.report import Row, number, seconds
from bench.setting import Effort
from bench.timing import best_seconds

COMMANDS = (("--help", 0.5), ("demo", 10.0))


def compare(effort: Effort) -> list[Row]:
    return [_row(argument, limit, effort.repeats) for argument, limit in COMMANDS]


def _row(argument: str, limit: float, repeats: int) -> Row:
    title = f"`unbandit {argument}`, second start"
    with tempfile.TemporaryDirectory() as folder:
        try:
            time = best_seconds({"start": partial(_start, argument, folder)}, repeats)["start"]
        except OSError as error:
            return Row(title, f"did not start: {error.strerror}", "", "", f"under {limit:g} s", False)
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip().splitlines()
            return Row(title, f"failed: {said[-1] if said else error}", "", "", f"under {limit:g} s", False)
    return Row(title, seconds(time), f"the limit of {limit:g} s", number(time / limit), "at most 1", time < limit)


def _start(argument: str, folder: str) -> None:
    program = Path(sys.executable).parent / "unbandit"
    subprocess.run([program, argument], check=True, capture_output=True, text=True, cwd=folder)
