"""Logs that do not fit in memory, scanned from Parquet on all cores, against polars on the same files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import unbandit
from bench.memory import peak
from bench.report import Row, cores, number, seconds
from bench.setting import RULE, SIGMA, Effort, instance_of
from bench.timing import best_seconds

ROWS, ARMS = 1_000_000_000, 20
LOGS, ROUNDS, FEW = 1_000_000, 1_000, 4
LONGER, MEMORY = 1.5, 2e9
PART = 50_000_000


def compare(effort: Effort) -> list[Row]:
    return [*_one_long_log(effort), _many_logs(effort)]


def _one_long_log(effort: Effort) -> list[Row]:
    rows = effort.of(ROWS)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log.parquet"
        write_long(path, rows)
        calls = {"ours": lambda: estimate(path), "polars": lambda: count(path)}
        times = best_seconds(calls, min(effort.repeats, 3))
        held = peak_of_subprocess(path)
        size = f"{number(path.stat().st_size / 1e9)} GB"
    title = f"Estimating one Parquet log of {rows:,} rows, K={ARMS}, {size}, {cores()} cores"
    compared = f"polars counting the rows of each arm, {seconds(times['polars'])}"
    return [
        Row.at_most(title, seconds(times["ours"]), compared, times["ours"] / times["polars"], LONGER),
        Row.at_most(f"{title}: memory", f"{number(held / 1e6)} MB", "2 GB", held / MEMORY, 1),
    ]


def _many_logs(effort: Effort) -> Row:
    logs = effort.of(LOGS, at_least=2_000)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "logs.parquet"
        write_many(path, logs)
        calls = {"ours": lambda: estimate(path), "polars": lambda: pl.read_parquet(path)}
        times = best_seconds(calls, min(effort.repeats, 3))
    columns = "demonstration, round, arm"
    title = f"Switching estimates from a Parquet file of {logs:,} logs of {ROUNDS:,} rounds ({columns}), K={FEW}"
    compared = f"`polars.read_parquet`, {seconds(times['polars'])}"
    return Row.at_most(title, seconds(times["ours"]), compared, times["ours"] / times["polars"], LONGER)


def write_long(path: Path, rows: int) -> None:
    """Write which arm was chosen, half the time the first, and a reward that nobody reads."""
    random = np.random.default_rng(1)
    arms = np.concatenate([np.zeros(128, np.uint8), np.arange(128, dtype=np.uint8) % (ARMS - 1) + 1])

    def part(start: int, count: int) -> pl.DataFrame:
        chosen = arms[random.integers(0, 256, count, np.uint8)]
        return pl.DataFrame({"arm": chosen, "reward": random.integers(0, 10_000, count, np.uint16)})

    _write(path, rows, PART, part)


def write_many(path: Path, logs: int) -> None:
    """Write logs of an index rule, one after the other."""

    def part(start: int, count: int) -> pl.DataFrame:
        log = RULE.demonstrate(instance_of(FEW), ROUNDS, runs=count, seed=start)
        columns = {
            "demonstration": np.repeat(np.arange(start, start + count, dtype=np.uint32), ROUNDS),
            "round": np.tile(np.arange(1, ROUNDS + 1, dtype=np.int64), count),
            "arm": log.actions,
        }
        return pl.DataFrame(columns)

    _write(path, logs, PART // ROUNDS, part)


def _write(path: Path, total: int, size: int, part: Callable[[int, int], pl.DataFrame]) -> None:
    """Write a file part by part, so that it need not fit in memory."""
    parts = []
    for start in range(0, total, size):
        parts.append(path.with_name(f"part-{start:012}.parquet"))
        part(start, min(size, total - start)).write_parquet(parts[-1])
    pl.scan_parquet(parts).sink_parquet(path)
    for written in parts:
        written.unlink()


def count(path: Path) -> pl.DataFrame:
    return pl.scan_parquet(path).group_by("arm").len().collect(engine="streaming")


def estimate(path: Path) -> Any:
    """Do what a user does with a file that is too large: scan it, and estimate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", unbandit.AssumptionWarning)
        return unbandit.estimate(unbandit.ActionLog.scan(path), RULE, sigma=SIGMA, check=False)


def peak_of_subprocess(path: Path) -> int:
    """Return the most bytes that a fresh process held while it estimated."""
    command = [sys.executable, "-m", "bench.large_logs", str(path)]
    root = Path(__file__).parent.parent
    return int(subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout)


if __name__ == "__main__":
    estimate(Path(sys.argv[1]))
    print(peak())
