"""Ray and Dask against plain threads: the same study, of about a minute, on all cores of this machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from bench.one_core import THREAD_SETTINGS
from bench.report import Row, cores, seconds
from bench.setting import RULE, Effort, instance_of

ARMS, HORIZON, RUNS = 4, 5_000, 1_600_000
SLOWER = 1.1
NAMES = {"ray": ("Ray", "ray"), "dask": ("Dask", "distributed")}


def compare(effort: Effort) -> list[Row]:
    """Time each executor in a process of its own, in turn; the parts must be the same, byte by byte.

    The time is from the call to the finished folder: a cluster's start and end are in it.
    """
    runs = effort.of(RUNS, at_least=2_000)
    names = [name for name, (_, module) in NAMES.items() if find_spec(module)]
    best: dict[str, float] = {}
    digests = set()
    for _ in range(min(effort.repeats, 2)):
        for name in ("threads", *names):
            took, digest = _timed(name, runs)
            best[name] = min(best.get(name, took), took)
            digests.add(digest)
    assert len(digests) == 1, "the parts differ"
    title = f"A study of {runs:,} runs, K={ARMS}, T={HORIZON:,}, on {cores()} cores"
    return [
        Row.at_most(
            f"{title}: {NAMES[name][0]}, its start and end included",
            seconds(best[name]),
            f"plain threads, {seconds(best['threads'])}",
            best[name] / best["threads"],
            SLOWER,
        )
        for name in names
    ]


def _timed(name: str, runs: int) -> tuple[float, str]:
    """Have the study done in a fresh process that may use every core; return its time, and a digest of its parts."""
    everything = {key: value for key, value in os.environ.items() if key not in THREAD_SETTINGS}
    command = [sys.executable, "-m", "bench.clusters", name, str(runs)]
    root = Path(__file__).parent.parent
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=root, env=everything, preexec_fn=_all_cores
    )
    took, digest = done.stdout.split()
    return float(took), digest


def _all_cores() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(cores()))


def _main(name: str, runs: int) -> None:
    from unbandit.study.grid import Study

    with tempfile.TemporaryDirectory() as home:
        Study(instance_of(ARMS), RULE, HORIZON, 2).run(Path(home) / "first")  # the kernels are there from now on
        study, folder = Study(instance_of(ARMS), RULE, HORIZON, runs), Path(home) / "all"
        begun = time.perf_counter()
        study.run(folder, executor=name, threads=cores())
        took = time.perf_counter() - begun
        state = hashlib.sha256()
        for part in sorted((folder / "parts").iterdir()):
            state.update(part.read_bytes())
    print(f"{took:.3f}", state.hexdigest())


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
