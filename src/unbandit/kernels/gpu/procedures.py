"""Appraise simulated runs on a GPU, one thread a run: what an estimator says of each arm, beside the truth."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numba import cuda

from unbandit.kernels.gpu.port import Formulas, kernel, meanings_of, ported
from unbandit.kernels.procedures import BEST, eliminated_arm, index_arm, naive_arm

NAN = float("nan")


@lru_cache(maxsize=64)
def by_switching(formulas: Formulas) -> Any:
    """Return the kernel for index rules: at switching rounds, or with `counts_only` in the end.

    Evidence is laid out as (places, runs), answers as (arms, runs): `order` says which arm stands where. Answers are
    gap, low, high and verdict of each arm, and of each run whether the best arm was found, and was pulled most.
    """
    appraise = ported(index_arm, meanings_of(formulas, None))

    @kernel
    def run_all(
        parameters: Any, setting: Any, counts_only: Any, gaps: Any, order: Any, pulls: Any, own: Any, of_best: Any,
        rounds: Any, gap: Any, low: Any, high: Any, verdict: Any, found: Any, kept: Any,
    ) -> None:  # fmt: skip
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best, total = 0, 0
        for place in range(pulls.shape[0]):
            total += pulls[place, run]
            best = place if pulls[place, run] > pulls[best, run] else best
        most = pulls[best, run]
        ended = max(total - 1, 0) + 1 if counts_only else rounds[best, run] + 1
        for place in range(pulls.shape[0]):
            arm = order[place, run]
            count = pulls[place, run]
            if place == best:
                gap[arm, run], low[arm, run], high[arm, run], verdict[arm, run] = 0.0, NAN, NAN, BEST
            elif counts_only:
                found_gap, below, above, said = appraise(
                    parameters, setting, count, count, most, ended - 1, most, ended, True
                )
                gap[arm, run], low[arm, run], high[arm, run], verdict[arm, run] = found_gap, below, above, said
            else:
                found_gap, below, above, said = appraise(
                    parameters, setting, count, own[place, run], of_best[place, run], rounds[place, run], most, ended,
                    False,
                )  # fmt: skip
                gap[arm, run], low[arm, run], high[arm, run], verdict[arm, run] = found_gap, below, above, said
        found[run] = kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all


@lru_cache(maxsize=1)
def by_elimination() -> Any:
    """Return the kernel for elimination rules, by what showed or, with `counts_only`, by pulls alone."""
    appraise = ported(eliminated_arm, {})

    @kernel
    def run_all(
        tests: Any, setting: Any, counts_only: Any, gaps: Any, order: Any, pulls: Any, gone: Any, gap: Any, low: Any,
        high: Any, verdict: Any, found: Any, kept: Any,
    ) -> None:  # fmt: skip
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best, active, alone = 0, 0, 0
        for place in range(pulls.shape[0]):
            best = place if pulls[place, run] > pulls[best, run] else best
        most = pulls[best, run]
        for place in range(pulls.shape[0]):
            count = pulls[place, run]
            left = count < most - 1 if counts_only else gone[place, run]
            if count > 0 and not left:
                active, alone = active + 1, place
        for place in range(pulls.shape[0]):
            arm, count = order[place, run], pulls[place, run]
            left = count < most - 1 if counts_only else gone[place, run]
            found_gap, below, above, said = appraise(tests, setting, count, left, active, most)
            gap[arm, run], low[arm, run], high[arm, run], verdict[arm, run] = found_gap, below, above, said
        found[run] = 1 if active == 1 and gaps[order[alone, run]] == 0.0 else 0
        kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all


@lru_cache(maxsize=1)
def by_pulls() -> Any:
    """Return the kernel for the naive estimator."""
    appraise = ported(naive_arm, {})

    @kernel
    def run_all(
        horizon: Any, constant: Any, gaps: Any, order: Any, pulls: Any, gap: Any, low: Any, high: Any, verdict: Any,
        found: Any, kept: Any,
    ) -> None:  # fmt: skip
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best = 0
        for place in range(pulls.shape[0]):
            best = place if pulls[place, run] > pulls[best, run] else best
        for place in range(pulls.shape[0]):
            arm = order[place, run]
            found_gap, below, above, said = appraise(pulls[place, run], horizon, constant)
            if place == best:
                found_gap, said = 0.0, BEST
            gap[arm, run], low[arm, run], high[arm, run], verdict[arm, run] = found_gap, below, above, said
        found[run] = kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all
