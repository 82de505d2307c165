"""Simulate, estimate and sum up on a GPU: from instance and rule to the sums of a study, with no log in between.

Procedures 1 and 2, and their two-sided reading, are the functions of `kernels.procedures` and `kernels.bracket`, one
thread per run. Which runs are added up together, and in which order, depends on their numbers alone: the bits of a sum
do not depend on how many runs the GPU's memory could take at a time.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float64

from unbandit.kernels.bracket import bracket_eliminated_arm, bracket_index_arm
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.formula import table_width, width_value
from unbandit.kernels.gpu.port import SIMULATED, Formulas, kernel, meanings_of, ported
from unbandit.kernels.gpu.stage import DeviceCounts, Stage, blocks, in_batches
from unbandit.kernels.gpu.threads import most_pulled
from unbandit.kernels.intervals import gap_interval, known_deviation, reward_deviation
from unbandit.kernels.procedures import (
    BEST,
    BOUNDED,
    ESTIMATED,
    UNSEEN,
    Assumptions,
    Compared,
    compare_eliminated_arm,
    compare_index_arm,
    naive_gap,
)

STATISTICS = (
    *("points", "error", "absolute", "squared", "estimated", "bounded", "intervals", "held", "pulls", "regret"),
    *("found", "kept", "kept_points", "kept_squared"),
)
"""What is summed, in this order; see `study.rows.SUMMED`."""

THREADS = 8 if SIMULATED else 64
MANY = len(STATISTICS)
NAN = float("nan")


class Answers(NamedTuple):
    """What an estimator says, in the GPU's memory: (arms, runs), and of the last two one place per run."""

    gap: Any
    low: Any
    high: Any
    verdict: Any
    found: Any  # whether the best arm was found
    kept: Any  # whether it was pulled most


def _answer(assumed: Assumptions, compared: Compared, arm: int, run: int, answers: Answers) -> None:
    """Write down an arm's gap, interval and verdict; the best arm's mean is known."""
    of_arm = reward_deviation(assumed, assumed.known_mean - compared.gap, compared.own)
    low, high, _, _ = gap_interval(assumed, compared, of_arm, known_deviation(assumed), 0.0)
    answers.gap[arm, run], answers.verdict[arm, run] = compared.gap, compared.verdict
    answers.low[arm, run], answers.high[arm, run] = low, high


@lru_cache(maxsize=64)
def by_switching(formulas: Formulas, two_sided: bool) -> Any:
    """Return the kernel for index rules: at switching rounds or at both sides of them; with `counts_only` at the end.

    Counts are (positions, runs), answers (arms, runs): `order` has the arm at each position.
    """
    reading = bracket_index_arm if two_sided else compare_index_arm
    compare, answer = ported(reading, meanings_of(formulas)), ported(_answer, {})
    best_of = ported(most_pulled, {})

    @kernel
    def run_all(
        parameters: Any, assumed: Any, counts_only: Any, gaps: Any, order: Any, pulls: Any, own: Any, of_best: Any,
        rounds: Any, answers: Any,
    ) -> None:  # fmt: skip
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best, total = best_of(pulls, run), 0
        for place in range(pulls.shape[0]):
            total += pulls[place, run]
        most = pulls[best, run]
        ended = max(total - 1, 0) + 1 if counts_only else rounds[best, run] + 1
        for place in range(pulls.shape[0]):
            arm, count = order[place, run], pulls[place, run]
            if place == best:
                answers.gap[arm, run], answers.verdict[arm, run] = 0.0, BEST
                answers.low[arm, run], answers.high[arm, run] = NAN, NAN
                continue
            if counts_only:
                then, other, round = count, most, ended - 1
            else:
                then, other, round = own[place, run], of_best[place, run], rounds[place, run]
            compared = compare(
                parameters, assumed, assumed.known_mean, count, then, other, round, most, ended, counts_only
            )
            answer(assumed, compared, arm, run, answers)
        answers.found[run] = answers.kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all


def _one_sided(rule: Any, assumed: Any, pulls: int, before: int, gone: bool, active: int, most: int) -> Compared:
    """Read off Procedure 1, which assumes nothing besides the counts."""
    return compare_eliminated_arm(rule, pulls, before, gone, active, most)


@lru_cache(maxsize=2)
def by_elimination(two_sided: bool) -> Any:
    """Return the kernel for elimination rules, by visible eliminations or, with `counts_only`, by pulls alone."""
    reading = bracket_eliminated_arm if two_sided else _one_sided
    compare, answer = ported(reading, {width_value: table_width}), ported(_answer, {})
    best_of = ported(most_pulled, {})

    @kernel
    def run_all(
        tests: Any, assumed: Any, counts_only: Any, gaps: Any, order: Any, pulls: Any, gone: Any, answers: Any
    ) -> None:
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best, active, alone = best_of(pulls, run), 0, 0
        most = pulls[best, run]
        for place in range(pulls.shape[0]):
            left = pulls[place, run] < most - 1 if counts_only else gone[place, run]
            if pulls[place, run] > 0 and not left:
                active, alone = active + 1, place
        for place in range(pulls.shape[0]):
            count = pulls[place, run]
            left = count < most - 1 if counts_only else gone[place, run]
            compared = compare(tests.widths, assumed, count, tests.latest[max(count - 1, 0)], left, active, most)
            answer(assumed, compared, order[place, run], run, answers)
        answers.found[run] = 1 if active == 1 and gaps[order[alone, run]] == 0.0 else 0
        answers.kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all


@lru_cache(maxsize=1)
def by_pulls() -> Any:
    """Return the kernel for the naive estimator."""
    gap_of, best_of = ported(naive_gap, {}), ported(most_pulled, {})

    @kernel
    def run_all(horizon: Any, constant: Any, gaps: Any, order: Any, pulls: Any, answers: Any) -> None:
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best = best_of(pulls, run)
        for place in range(pulls.shape[0]):
            gap, verdict = NAN, UNSEEN
            if place == best:
                gap, verdict = 0.0, BEST
            elif pulls[place, run] > 0:
                gap, verdict = gap_of(pulls[place, run], horizon, constant), ESTIMATED
            arm = order[place, run]
            answers.gap[arm, run], answers.verdict[arm, run] = gap, verdict
            answers.low[arm, run], answers.high[arm, run] = NAN, NAN
        answers.found[run] = answers.kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all


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
    def run_all(first_run: Any, chunk: Any, gaps: Any, pulls: Any, regret: Any, answers: Any, sums: Any) -> None:
        parts = cuda.shared.array((MANY, THREADS), float64)
        me, fold, arm, part = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z
        folds, runs = sums.shape[2], answers.gap.shape[1]
        own = cuda.local.array(MANY, float64)
        for at in range(MANY):
            own[at] = 0.0
        begin, end = part * chunk, min((part + 1) * chunk, runs)
        first = begin + (fold - (first_run + begin) % folds + folds) % folds  # the chunk's first run of this fold
        truth = gaps[arm]
        for run in range(first + me * folds, end, THREADS * folds):
            estimate, verdict, kept = answers.gap[arm, run], answers.verdict[arm, run], answers.kept[run]
            below, above = answers.low[arm, run], answers.high[arm, run]
            if estimate == estimate:
                error = estimate - truth
                own[0] += 1.0
                own[1] += error
                own[2] += abs(error)
                own[3] += error * error
                if kept:
                    own[12] += 1.0
                    own[13] += error * error
            if verdict == BOUNDED:
                own[5] += 1.0
            if verdict == ESTIMATED:
                own[4] += 1.0
                if below == below and above == above:
                    own[6] += 1.0
                    if below <= truth and truth <= above:
                        own[7] += 1.0
            own[8] += pulls[arm, run]
            own[9] += regret[run]
            own[10] += answers.found[run]
            own[11] += kept
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
    """Return how many runs are added up together: fewer for longer runs and more arms, to fit a small GPU's memory."""
    return int(np.clip(2**28 // (horizon + 100 * arms), 20, 4096))


class Tests(NamedTuple):
    """An elimination rule's tests."""

    widths: Numbers  # the rule's widths of half pulls
    latest: Integers  # for every epoch, from 0 on, the latest one up to it that ended in a test; 0 where none did


class ScoredEstimator(NamedTuple):
    """An estimator: its method, and the constant of the naive one."""

    method: str
    constant: float


def scored(
    stage: Stage, gaps: Numbers, assumed: Assumptions, tests: Tests | None, estimators: list[ScoredEstimator],
    horizon: int, first_run: int, runs: int, folds: int,
) -> Numbers:  # fmt: skip
    """Return the sums of `STATISTICS` as (estimators, statistics, folds, arms); run `r` belongs to fold `r % folds`."""
    chunk = chunk_of(stage.horizon, stage.arms)
    total = np.zeros((len(estimators), len(STATISTICS), folds, stage.arms))
    true_gaps = cuda.to_device(np.ascontiguousarray(gaps))
    on_device = None if tests is None else Tests(*(cuda.to_device(table) for table in tests))

    def work(first: int, last: int) -> None:
        read, shape = stage.evidence(first_run, first, last), (stage.arms, last - first)
        by_arm, regret = cuda.device_array(shape, np.int32), cuda.device_array(last - first)
        placed()[blocks(last - first)](true_gaps, read.order, read.pulls, by_arm, regret)
        gap, low, high = (cuda.device_array(shape) for _ in range(3))
        found, kept = (cuda.device_array(last - first, np.int8) for _ in range(2))
        answers = Answers(gap, low, high, cuda.device_array(shape, np.int8), found, kept)
        chunks = -(-(last - first) // chunk)
        gathered = []
        for estimator in estimators:
            _appraise(stage, read, estimator, true_gaps, assumed, on_device, horizon, answers)
            sums = cuda.device_array((chunks, len(STATISTICS), folds, stage.arms))
            start = summed()[(folds, stage.arms, chunks), THREADS]
            start(first_run + first, chunk, true_gaps, by_arm, regret, answers, sums)
            gathered.append(sums.copy_to_host())
        for at, sums in enumerate(gathered):  # only now: a batch that runs out of memory is repeated
            for part in sums:  # one by one, however many came at a time
                total[at] += part

    bytes_per_run = stage.bytes_per_run(actions=not stage.counts_alone) + 40 * stage.arms + 16
    in_batches(work, runs, bytes_per_run, whole=chunk)
    return total


def _appraise(
    stage: Stage, read: DeviceCounts, estimator: ScoredEstimator, gaps: Any, assumed: Assumptions, tests: Tests | None,
    horizon: int, answers: Answers,
) -> None:  # fmt: skip
    """Fill in the answers of one estimator."""
    size, counts_only = blocks(read.pulls.shape[1]), estimator.method == "counts"
    two_sided = estimator.method == "bracket"
    if estimator.method == "naive":
        by_pulls()[size](float(horizon), estimator.constant, gaps, read.order, read.pulls, answers)
    elif tests is not None:
        by_elimination(two_sided)[size](tests, assumed, counts_only, gaps, read.order, read.pulls, read.gone, answers)
    else:
        counts = (read.pulls, read.own, read.of_best, read.rounds)
        by_switching(stage.formulas, two_sided)[size](
            stage.parameters, assumed, counts_only, gaps, read.order, *counts, answers
        )  # fmt: skip
