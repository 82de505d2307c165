"""The memory that a simulation takes, against the size of the log it makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from bench.report import Row, number
from bench.setting import RULE, Effort, instance_of

ARMS, HORIZON, RUNS = 20, 2000, 100_000
LONG = 200_000_000


def compare(effort: Effort) -> list[Row]:
    runs, long = effort.of(RUNS), effort.of(LONG, at_least=HORIZON)
    peak_of_subprocess(1, HORIZON)  # so that the kernels are compiled and kept
    least = peak_of_subprocess(1, HORIZON)
    rows = []
    for title, count, horizon in (
        (f"Memory of a simulation, K={ARMS}, T={HORIZON:,}, {runs:,} runs, over that of a single run", runs, HORIZON),
        (f"Memory of one long run, K={ARMS}, T={long:,}, over that of a short one", 1, long),
    ):
        grown, log = peak_of_subprocess(count, horizon) - least, count * horizon
        compared = f"the log, {np.min_scalar_type(ARMS - 1)}, {number(log / 1e6)} MB"
        rows.append(Row.at_most(title, f"{number(grown / 1e6)} MB", compared, grown / log, 1.1))
    return rows


def peak_of_subprocess(runs: int, horizon: int) -> int:
    """Return the most bytes that a fresh process held while it simulated."""
    command = [sys.executable, "-m", "bench.memory", str(runs), str(horizon)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True, cwd=_root()).stdout)


def peak() -> int:
    """Return the most bytes that this process has held; Linux's `ru_maxrss` would count the parent's before exec."""
    try:
        status = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in status if line.startswith("VmHWM")))
    except (OSError, StopIteration):
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else 1024 * largest


def _root() -> Path:
    return Path(__file__).parent.parent


if __name__ == "__main__":
    kept = RULE.demonstrate(instance_of(ARMS), int(sys.argv[2]), runs=int(sys.argv[1]), threads=1)
    print(peak())
