"""The memory that a simulation takes, against the size of the log it makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from bench.report import Row, number
from bench.setting import RULE, Effort, instance_of

ARMS, HORIZON, RUNS = 20, 2000, 100_000


def compare(effort: Effort) -> list[Row]:
    runs = effort.of(RUNS)
    peak_of_subprocess(1)  # so that the kernels are compiled and kept
    grown, log = peak_of_subprocess(runs) - peak_of_subprocess(1), runs * HORIZON
    title = f"Memory of a simulation, K={ARMS}, T={HORIZON:,}, {runs:,} runs, over that of a single run"
    kind = np.min_scalar_type(ARMS - 1)
    compared = f"the log, {kind}, {number(log / 1e6)} MB"
    return [Row.at_most(title, f"{number(grown / 1e6)} MB", compared, grown / log, 1.1)]


def peak_of_subprocess(runs: int) -> int:
    """Return the most bytes that a fresh process held while it simulated."""
    command = [sys.executable, "-m", "bench.memory", str(runs)]
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
    kept = RULE.demonstrate(instance_of(ARMS), HORIZON, runs=int(sys.argv[1]), threads=1)
    print(peak())
