"""One very long demonstration, drawing only the rewards that decide, against drawing every one."""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.report import Row, rate
from bench.setting import RULE, Effort, instance_of
from bench.timing import best_seconds
from unbandit.demonstrators.base import laid_out
from unbandit.kernels.counts import count_by_levels

ARMS, HORIZON = 2, 100_000_000
DEMONSTRATIONS = 100  # of ours, timed together: one takes about a millisecond


def compare(effort: Effort) -> list[Row]:
    """Time pull and switching counts: against the quicker of the two ways that draw every reward."""
    horizon, instance = effort.of(HORIZON), instance_of(ARMS)
    many = effort.of(DEMONSTRATIONS, at_least=10)
    calls = {
        "needed": partial(RULE.evidence, instance, horizon, runs=many, threads=1, draw="needed"),
        "evidence": partial(RULE.evidence, instance, horizon, threads=1),
        "levels": partial(_by_levels, horizon),
    }
    times = best_seconds(calls, min(effort.repeats, 3))
    ours, every = many * horizon / times["needed"], horizon / min(times["evidence"], times["levels"])
    title = f"One UCB demonstration, pull and switching counts, K={ARMS}, T={horizon:,}, drawing what decides"
    return [Row.at_least(title, rate(ours), f"drawing every reward, {rate(every)}", ours / every, 10)]


def _by_levels(horizon: int) -> None:
    """Count without putting a pull in order, which `evidence` does from 64 arms on."""
    found = np.zeros((3, 1, ARMS), np.int64)
    count_by_levels(laid_out(instance_of(ARMS), horizon, 0), RULE.parameters(horizon), 0, *found)
