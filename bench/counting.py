"""Pull counts and switching counts alone, against the full action log."""

from __future__ import annotations

import time
from functools import partial

from bench.report import Row, rate
from bench.setting import RULE, Effort, instance_of
from bench.timing import best_seconds

CASES = ((224, 2000, 1000), (224, 25_000, 100), (12_979, 1_000_000, 2))  # arms, horizon, runs


def compare(effort: Effort) -> list[Row]:
    return [_row(arms, horizon, effort.of(runs), effort.repeats) for arms, horizon, runs in CASES]


def _row(arms: int, horizon: int, runs: int, repeats: int) -> Row:
    instance = instance_of(arms)
    calls = {
        "counts": partial(RULE.evidence, instance, horizon, runs=runs, threads=1),
        "log": partial(RULE.demonstrate, instance, horizon, runs=runs, threads=1),
    }
    times = best_seconds(calls, repeats, time.process_time)
    counts, log = (horizon * runs / times[name] for name in ("counts", "log"))
    title = f"UCB, counts only, K={arms:,}, T={horizon:,}"
    return Row.at_least(title, rate(counts), f"full log, {rate(log)}", counts / log, 2)
