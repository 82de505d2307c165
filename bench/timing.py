"""Time several ways of doing a thing against each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


def best_seconds(
    calls: Mapping[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Call each once to warm up, then all of them in turn, `repeats` times; return the shortest time of each.

    In turn, so that a slow minute of the machine falls on all alike. What runs in this process alone, on one core, may
    be timed by `time.process_time`, which leaves out what others have the core for.
    """
    for call in calls.values():
        call()
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best
