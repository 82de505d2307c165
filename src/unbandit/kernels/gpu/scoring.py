"""Simulate, estimate and sum up on a GPU: from instance and rule to the sums of a study, with no log in between."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from unbandit.kernels.gpu.appraising import by_elimination, by_pulls, by_switching
from unbandit.kernels.gpu.memory import in_batches
from unbandit.kernels.gpu.running import Evidence, Stage, blocks
from unbandit.kernels.gpu.summing import STATISTICS, THREADS, chunk_of, placed, summed
from unbandit.kernels.procedures import Setting, Tests

__all__ = ["Asked", "scored"]


class Asked(NamedTuple):
    """Hold one estimator: its method, and the constant of the naive one."""

    method: str
    constant: float


def scored(
    stage: Stage, gaps: NDArray[np.float64], setting: Setting, tests: Tests | None, estimators: list[Asked],
    horizon: int, first_run: int, runs: int, folds: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the sums of `summing.STATISTICS`, as (estimators, statistics, folds, arms).

    Run `r` belongs to fold `r % folds`. The bits depend on the runs alone, not on how many fit into memory at a time.
    """
    chunk = chunk_of(stage.horizon, stage.arms)
    total = np.zeros((len(estimators), len(STATISTICS), folds, stage.arms))
    true_gaps = cuda.to_device(np.ascontiguousarray(gaps))
    on_device = None if tests is None else Tests(*(cuda.to_device(table) for table in tests))

    def work(first: int, last: int) -> None:
        read = stage.evidence(first_run, first, last)
        by_arm, regret = cuda.device_array((stage.arms, last - first), np.int32), cuda.device_array(last - first)
        placed()[blocks(last - first)](true_gaps, read.order, read.pulls, by_arm, regret)
        numbers = [cuda.device_array((stage.arms, last - first)) for _ in range(3)]
        verdict = cuda.device_array((stage.arms, last - first), np.int8)
        marks = [cuda.device_array(last - first, np.int8) for _ in range(2)]  # was the best arm found, and pulled most?
        answers = (*numbers, verdict, *marks)
        chunks = -(-(last - first) // chunk)
        gathered = []
        for asked in estimators:
            _appraise(stage, read, asked, true_gaps, setting, on_device, horizon, answers)
            sums = cuda.device_array((chunks, len(STATISTICS), folds, stage.arms))
            start = summed()[(folds, stage.arms, chunks), THREADS]
            start(first_run + first, chunk, true_gaps, by_arm, regret, *answers, sums)
            gathered.append(sums.copy_to_host())
        for at, sums in enumerate(gathered):  # only now, for a refusal of memory has all of it done again
            for part in sums:  # one after the other, however many came at a time
                total[at] += part

    bytes_a_run = stage.bytes_a_run(actions=not stage.counts_alone()) + 40 * stage.arms + 16
    in_batches(work, runs, bytes_a_run, whole=chunk)
    return total


def _appraise(
    stage: Stage, read: Evidence, asked: Asked, gaps: Any, setting: Setting, tests: Tests | None, horizon: int,
    answers: tuple[Any, ...],
) -> None:  # fmt: skip
    """Let one estimator say what it has to say of every arm."""
    size, counts_only = blocks(read.pulls.shape[1]), asked.method == "counts"
    if asked.method == "naive":
        by_pulls()[size](float(horizon), asked.constant, gaps, read.order, read.pulls, *answers)
    elif tests is not None:
        start = by_elimination()[size]
        start(tests, setting, counts_only, gaps, read.order, read.pulls, read.gone, *answers)
    else:
        start = by_switching(stage.formulas)[size]
        counts = (read.pulls, read.own, read.of_best, read.rounds)
        start(stage.parameters, setting, counts_only, gaps, read.order, *counts, *answers)
