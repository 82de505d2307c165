"""Ray and Dask against plain threads: the same study, of about a minute, on all cores of this machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.one_core import THREAD_SETTINGS
from bench.report import Row, cores, number, seconds
from bench.setting import RULE, Effort, instance_of

ARMS, HORIZON, RUNS = 4, 5_000, 1_200_000
SLOWER = 1.1
NAMES = {"ray": ("Ray", "ray"), "dask": ("Dask", "distributed")}


class Timed(NamedTuple):
    """Seconds that a study took, and that its cluster took to start and to stop; a digest of all its parts."""

    study: float
    around: float
    digest: str


def compare(effort: Effort) -> list[Row]:
    """Time each executor in a process of its own, in turn; the parts must be the same, byte by byte.

    Each has done a tiny study before, so that kernels are loaded. A cluster's start and end are told apart.
    """
    runs = effort.of(RUNS, at_least=2_000)
    names = [name for name, (_, module) in NAMES.items() if find_spec(module)]
    times: dict[str, list[Timed]] = {}
    for _ in range(min(effort.repeats, 2)):
        for name in ("threads", *names):
            times.setdefault(name, []).append(_timed(name, runs))
    assert len({each.digest for found in times.values() for each in found}) == 1, "the parts differ"
    best = {name: min(each.study for each in found) for name, found in times.items()}
    title = f"A study of {runs:,} runs, K={ARMS}, T={HORIZON:,}, on {cores()} cores"
    threads, rows = best["threads"], []
    for name in names:
        called, around = NAMES[name][0], min(each.around for each in times[name])
        against = f"plain threads, {seconds(threads)}"
        rows += [
            Row.at_most(f"{title}: {called}", seconds(best[name]), against, best[name] / threads, SLOWER),
            Row(f"{title}: starting and stopping {called}", seconds(around), against, number(around / threads)),
        ]
    return rows


def _timed(name: str, runs: int) -> Timed:
    """Have the study done in a fresh process that may use every core."""
    everything = {key: value for key, value in os.environ.items() if key not in THREAD_SETTINGS}
    command = [sys.executable, "-m", "bench.clusters", name, str(runs)]
    root = Path(__file__).parent.parent
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=root, env=everything, preexec_fn=_all_cores
    )
    study, around, digest = done.stdout.split()
    return Timed(float(study), float(around), digest)


def _all_cores() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(cores()))


def _main(name: str, runs: int) -> None:
    from unbandit.clusters import Cluster
    from unbandit.study import Study

    few = Study(instance_of(ARMS), RULE, range(100, 100 + 20 * cores()), 2)  # some tasks for every worker
    many = Study(instance_of(ARMS), RULE, HORIZON, runs)
    with tempfile.TemporaryDirectory() as home:
        begun = time.perf_counter()
        with nullcontext() if name == "threads" else Cluster(name, workers=cores()) as cluster:
            by: dict[str, Any] = {"threads": cores()} if cluster is None else {"executor": cluster}
            started = time.perf_counter()
            few.run(Path(home) / "few", **by)  # the kernels are loaded
            warm = time.perf_counter()
            many.run(Path(home) / "many", **by)
            ended = time.perf_counter()
        around = started - begun + time.perf_counter() - ended
        state = hashlib.sha256()
        for part in sorted((Path(home) / "many" / "parts").iterdir()):
            state.update(part.read_bytes())
    print(f"{ended - warm:.3f} {around:.3f} {state.hexdigest()}")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
