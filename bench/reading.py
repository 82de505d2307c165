"""Reading a long Parquet log with text arms, against polars reading the same file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl

from bench.report import Row, seconds
from bench.setting import RULE, Effort, instance_of
from bench.timing import best_seconds
from unbandit import ActionLog

ARMS, ROWS = 20, 10_000_000


def compare(effort: Effort) -> list[Row]:
    rows = effort.of(ROWS)
    instance = instance_of(ARMS, [f"protocol {arm}" for arm in range(ARMS)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        RULE.demonstrate(instance, rows, threads=1).write(path)
        calls = {"unbandit": lambda: ActionLog.read(path), "polars": lambda: pl.read_parquet(path)}
        times = best_seconds(calls, effort.repeats)
    title = f"Reading a Parquet log of {rows:,} rows (round, arm as text), K={ARMS}"
    compared = f"`polars.read_parquet`, {seconds(times['polars'])}"
    return [Row.at_most(title, seconds(times["unbandit"]), compared, times["unbandit"] / times["polars"], 2)]
