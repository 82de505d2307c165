"""The study engine: what it adds to the simulation, the memory it takes, and the whole reproduction."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.memory import peak
from bench.report import Row, number, seconds
from bench.setting import RULE, Effort, instance_of
from bench.timing import best_seconds
from unbandit.study import Study

ARMS, HORIZON, RUNS = 4, 5_000, 10_000
REPRODUCE = 60.0
MEMORY = 1e9


def compare(effort: Effort) -> list[Row]:
    return [_engine(effort), _memory(effort), _reproduce(effort)]


def _engine(effort: Effort) -> Row:
    """Compare a study, estimates and Parquet parts included, with simulating alone."""
    runs = effort.of(RUNS, at_least=2)
    times = best_seconds(
        {
            "study": partial(_study, runs),
            "alone": partial(RULE.evidence, instance_of(ARMS), HORIZON, runs=runs, threads=1),
        },
        effort.repeats,
    )
    title = f"A study, K={ARMS}, T={HORIZON:,}, {runs:,} runs: simulated, estimated, written"
    ratio = times["study"] / times["alone"]
    return Row(title, seconds(times["study"]), f"simulating alone, {seconds(times['alone'])}", number(ratio))


def _study(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Study(instance_of(ARMS), RULE, HORIZON, runs).run(folder, threads=1).curves()


def _memory(effort: Effort) -> Row:
    runs = effort.of(40 * RUNS, at_least=2)
    command = [sys.executable, "-m", "bench.reproducing", str(runs)]
    root = Path(__file__).parent.parent
    held = int(subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout)
    title = f"Memory of a study of {runs:,} runs, K={ARMS}, T=500"
    return Row.at_most(title, f"{number(held / 1e6)} MB", "the limit of 1 GB", held / MEMORY, 1)


def _reproduce(effort: Effort) -> Row:
    """Time the command with the paper's numbers of runs, on the one core that the benchmark keeps to."""
    time = best_seconds({"all": _command}, min(effort.repeats, 2))["all"]
    title = "`unbandit reproduce`, the paper's numbers of runs, on one core"
    limit = f"the limit of {REPRODUCE:g} s"
    return Row.at_most(title, seconds(time), limit, time / REPRODUCE, 1)


def _command() -> None:
    program = Path(sys.executable).parent / "unbandit"
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "reproduce", "--runs", "paper"]
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        Study(instance_of(ARMS), RULE, 500, int(sys.argv[1])).run(home).curves()
    print(peak())
