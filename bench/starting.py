"""How long the command takes from the prompt to the answer: on a second start, and on the first of all.

On the first, no kernel is compiled yet. That is timed once, in processor time, which is the time on one idle core.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import unbandit as ub
from bench.report import Row, number, seconds
from bench.setting import Effort
from bench.timing import best_seconds

COMMANDS = (("--help", 0.3), ("demo", 10.0))
FIRST = (
    ("estimate", "ucb1", 10.0),
    ("estimate", "ucb:alpha=0.25", 10.0),
    ("estimate", "thompson:sigma=0.5", 10.0),
    ("posterior", "ucb1", 20.0),
    ("posterior", "thompson:sigma=0.5", 20.0),
    ("posterior", "softmax:temperature=0.2", 20.0),
)
ROUNDS = 2_000


def compare(effort: Effort) -> list[Row]:
    second = [_row(argument, limit, effort.repeats) for argument, limit in COMMANDS]
    return second + [_first_row(*each) for each in FIRST]


def _first_row(command: str, rule: str, limit: float) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        instance = ub.Instance([1.0, 0.8, 0.6, 0.3], 0.5)
        ub.parse_rule(rule).demonstrate(instance, ROUNDS, seed=1).write(Path(folder) / "log.csv")
        arguments = [command, "log.csv", "--rule", rule, "--sigma", "0.5"]
        before = _time_of_children()
        _start(*arguments, folder=folder, environment={"NUMBA_CACHE_DIR": str(Path(folder) / "empty")})
        time = _time_of_children() - before
    title = f"`unbandit {command}` of {ROUNDS:,} rounds, first start, {rule.partition(':')[0]}"
    return Row(title, seconds(time), f"the limit of {limit:g} s", number(time / limit), "at most 1", time < limit)


def _time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _row(argument: str, limit: float, repeats: int) -> Row:
    title = f"`unbandit {argument}`, second start"
    with tempfile.TemporaryDirectory() as folder:
        try:
            time = best_seconds({"start": partial(_start, argument, folder=folder)}, repeats)["start"]
        except OSError as error:
            return Row(title, f"did not start: {error.strerror}", "", "", f"under {limit:g} s", False)
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip().splitlines()
            return Row(title, f"failed: {said[-1] if said else error}", "", "", f"under {limit:g} s", False)
    return Row(title, seconds(time), f"the limit of {limit:g} s", number(time / limit), "at most 1", time < limit)


def _start(*arguments: str, folder: str, environment: dict[str, str] | None = None) -> None:
    program, given = Path(sys.executable).parent / "unbandit", os.environ | (environment or {})
    subprocess.run([program, *arguments], check=True, capture_output=True, text=True, cwd=folder, env=given)
