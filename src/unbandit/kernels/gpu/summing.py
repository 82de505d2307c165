"""Sum up on a GPU what was appraised, fold by fold: the sums that a study keeps, without its rows.

Which runs are added up together, and in which order, depends on their numbers alone: the bits of a sum do not depend on
how many runs the GPU's memory could take at a time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, float64

from unbandit.kernels.gpu.porting import SIMULATED, kernel
from unbandit.kernels.procedures import BOUNDED, ESTIMATED

__all__ = ["STATISTICS", "THREADS", "chunk_of", "placed", "summed"]

STATISTICS = (
    *("points", "error", "absolute", "squared", "estimated", "bounded", "intervals", "held", "pulls", "regret"),
    *("found", "kept", "kept_points", "kept_squared"),
)
"""What is summed, in this order; see `study.rows.SUMMED`."""

THREADS = 8 if SIMULATED else 64
MANY = len(STATISTICS)


@lru_cache(maxsize=1)
def placed() -> Any:
    """Return the kernel that puts pulls in the order of the instance's arms, and finds each run's regret."""

    @kernel
    def run_all(gaps: Any, order: Any, pulls: Any, by_arm: Any, regret: Any) -> None:
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        lost = 0.0
        for place in range(pulls.shape[0]):
            arm = order[place, run]
            by_arm[arm, run] = pulls[place, run]
            lost += pulls[place, run] * gaps[arm]
        regret[run] = lost

    return run_all


@lru_cache(maxsize=1)
def summed() -> Any:
    """Return the kernel: one block a (fold, arm, chunk of runs); it fills (chunks, statistics, folds, arms)."""

    @kernel
    def run_all(
        first_run: Any, chunk: Any, gaps: Any, pulls: Any, regret: Any, gap: Any, low: Any, high: Any, verdict: Any,
        found: Any, kept: Any, sums: Any,
    ) -> None:  # fmt: skip
        parts = cuda.shared.array((MANY, THREADS), float64)
        me, fold, arm, part = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z
        folds, runs = sums.shape[2], gap.shape[1]
        own = cuda.local.array(MANY, float64)
        for at in range(MANY):
            own[at] = 0.0
        begin, end = part * chunk, min((part + 1) * chunk, runs)
        first = begin + (fold - (first_run + begin) % folds + folds) % folds  # the chunk's first run of this fold
        truth = gaps[arm]
        for run in range(first + me * folds, end, THREADS * folds):
            estimate, below, above, said = gap[arm, run], low[arm, run], high[arm, run], verdict[arm, run]
            if estimate == estimate:
                error = estimate - truth
                own[0] += 1.0
                own[1] += error
                own[2] += abs(error)
                own[3] += error * error
                if kept[run]:
                    own[12] += 1.0
                    own[13] += error * error
            if said == BOUNDED:
                own[5] += 1.0
            if said == ESTIMATED:
                own[4] += 1.0
                if below == below and above == above:
                    own[6] += 1.0
                    if below <= truth and truth <= above:
                        own[7] += 1.0
            own[8] += pulls[arm, run]
            own[9] += regret[run]
            own[10] += found[run]
            own[11] += kept[run]
        for at in range(MANY):
            parts[at, me] = own[at]
        cuda.syncthreads()
        for at in range(me, MANY, THREADS):
            total = 0.0
            for other in range(THREADS):
                total += parts[at, other]
            sums[part, at, fold, arm] = total

    return run_all


def chunk_of(horizon: int, arms: int) -> int:
    """Return how many runs are added up together: fewer of longer runs, and of more arms, to fit a small GPU's memory.

    Examples
    --------
    >>> chunk_of(5_000, 2), chunk_of(10**6, 2), chunk_of(5_000, 12_979), chunk_of(10**9, 2)
    (4096, 268, 206, 20)
    """
    return int(np.clip(2**28 // (horizon + 100 * arms), 20, 4096))
