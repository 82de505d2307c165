"""Simulate, estimate and sum up on a GPU: from instance and rule to the sums of a study, with no log in between.

Which runs are added up together, and in which order, depends on their numbers alone: the bits of a sum do not depend on
how many runs the GPU's memory could take at a time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float64
from numpy.typing import NDArray

from unbandit.kernels.gpu.port import SIMULATED, kernel
from unbandit.kernels.gpu.procedures import by_elimination, by_pulls, by_switching
from unbandit.kernels.gpu.stage import DeviceCounts, Stage, blocks, in_batches
from unbandit.kernels.procedures import BOUNDED, ESTIMATED, Assumptions, HalfWidths

STATISTICS = (
    *("points", "error", "absolute", "squared", "estimated", "bounded", "intervals", "held", "pulls", "regret"),
    *("found", "kept", "kept_points", "kept_squared"),
)
"""What is summed, in this order; see `study.rows.SUMMED`."""

THREADS = 8 if SIMULATED else 64
MANY = len(STATISTICS)


@lru_cache(maxsize=1)
def placed() -> Any:
    """Return the kernel that orders pulls by the instance's arms, and computes each run's regret."""

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
    """Return the kernel with one block per (fold, arm, chunk of runs); it fills (chunks, statistics, folds, arms)."""

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
    """Return how many runs are added up together: fewer for longer runs and more arms, to fit a small GPU's memory.

    Examples
    --------
    >>> chunk_of(5_000, 2), chunk_of(10**6, 2), chunk_of(5_000, 12_979), chunk_of(10**9, 2)
    (4096, 268, 206, 20)
    """
    return int(np.clip(2**28 // (horizon + 100 * arms), 20, 4096))


class Tests(NamedTuple):
    """An elimination rule's tests.

    Attributes
    ----------
    widths
        The rule's widths.
    latest
        For every epoch, from 0 on, the latest one up to it that ended in a test; 0 where none did.
    """

    widths: HalfWidths
    latest: NDArray[np.int64]


class ScoredEstimator(NamedTuple):
    """An estimator: its method, and the constant of the naive one."""

    method: str
    constant: float


def scored(
    stage: Stage, gaps: NDArray[np.float64], assumed: Assumptions, tests: Tests | None,
    estimators: list[ScoredEstimator], horizon: int, first_run: int, runs: int, folds: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the sums of `STATISTICS`, as (estimators, statistics, folds, arms).

    Run `r` belongs to fold `r % folds`. The bits depend on the runs alone, not on how many fit into memory at a time.
    """
    chunk = chunk_of(stage.horizon, stage.arms)
    total = np.zeros((len(estimators), len(STATISTICS), folds, stage.arms))
    true_gaps = cuda.to_device(np.ascontiguousarray(gaps))
    on_device = (
        None if tests is None else Tests(HalfWidths(cuda.to_device(tests.widths.widths)), cuda.to_device(tests.latest))
    )

    def work(first: int, last: int) -> None:
        read = stage.evidence(first_run, first, last)
        by_arm, regret = cuda.device_array((stage.arms, last - first), np.int32), cuda.device_array(last - first)
        placed()[blocks(last - first)](true_gaps, read.order, read.pulls, by_arm, regret)
        numbers = [cuda.device_array((stage.arms, last - first)) for _ in range(3)]
        verdict = cuda.device_array((stage.arms, last - first), np.int8)
        marks = [cuda.device_array(last - first, np.int8) for _ in range(2)]  # the best arm found; pulled most
        answers = (*numbers, verdict, *marks)
        chunks = -(-(last - first) // chunk)
        gathered = []
        for asked in estimators:
            _appraise(stage, read, asked, true_gaps, assumed, on_device, horizon, answers)
            sums = cuda.device_array((chunks, len(STATISTICS), folds, stage.arms))
            start = summed()[(folds, stage.arms, chunks), THREADS]
            start(first_run + first, chunk, true_gaps, by_arm, regret, *answers, sums)
            gathered.append(sums.copy_to_host())
        for at, sums in enumerate(gathered):  # only now: a batch that runs out of memory is repeated
            for part in sums:  # one by one, however many came at a time
                total[at] += part

    bytes_a_run = stage.bytes_a_run(actions=not stage.counts_alone()) + 40 * stage.arms + 16
    in_batches(work, runs, bytes_a_run, whole=chunk)
    return total


def _appraise(
    stage: Stage, read: DeviceCounts, asked: ScoredEstimator, gaps: Any, assumed: Assumptions, tests: Tests | None,
    horizon: int, answers: tuple[Any, ...],
) -> None:  # fmt: skip
    """Fill in the answers of one estimator."""
    size, counts_only = blocks(read.pulls.shape[1]), asked.method == "counts"
    if asked.method == "naive":
        by_pulls()[size](float(horizon), asked.constant, gaps, read.order, read.pulls, *answers)
    elif tests is not None:
        start = by_elimination()[size]
        start(tests.widths, tests.latest, assumed, counts_only, gaps, read.order, read.pulls, read.gone, *answers)
    else:
        start = by_switching(stage.formulas)[size]
        counts = (read.pulls, read.own, read.of_best, read.rounds)
        start(stage.parameters, assumed, counts_only, gaps, read.order, *counts, *answers)
