"""Procedures 1 and 2 on simulated runs on a GPU, one thread per run: what an estimator says of each arm."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numba import cuda

from unbandit.kernels.gpu.port import Formulas, kernel, meanings_of, ported
from unbandit.kernels.procedures import (
    BEST,
    ESTIMATED,
    UNSEEN,
    compare_eliminated_arm,
    compare_index_arm,
    gap_interval,
    half_width,
    known_deviation,
    naive_gap,
    reward_deviation,
    width_value,
)

NAN = float("nan")


def _interval(assumed: Any, compared: Any) -> tuple[float, float]:
    """Return the ends of a gap's interval; the best arm's mean is known."""
    of_arm = reward_deviation(assumed, assumed.known_mean - compared.gap, compared.own)
    low, high, _, _ = gap_interval(assumed, compared, of_arm, known_deviation(assumed), 0.0)
    return low, high


@lru_cache(maxsize=64)
def by_switching(formulas: Formulas) -> Any:
    """Return the kernel for index rules: at switching rounds, or with `counts_only` at the end.

    Counts are (positions, runs), answers (arms, runs): `order` has the arm at each position. Answers are gap, low, high
    and verdict of each arm, and for each run whether the best arm was found, and was pulled most.
    """
    compare, interval_of = ported(compare_index_arm, meanings_of(formulas, None)), ported(_interval, {})

    @kernel
    def run_all(
        parameters: Any, assumed: Any, counts_only: Any, gaps: Any, order: Any, pulls: Any, own: Any, of_best: Any,
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
                continue
            if counts_only:
                then, other, round = count, most, ended - 1
            else:
                then, other, round = own[place, run], of_best[place, run], rounds[place, run]
            compared = compare(
                parameters, assumed, assumed.known_mean, count, then, other, round, most, ended, counts_only
            )
            gap[arm, run], verdict[arm, run] = compared.gap, compared.verdict
            low[arm, run], high[arm, run] = interval_of(assumed, compared)
        found[run] = kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all


@lru_cache(maxsize=1)
def by_elimination() -> Any:
    """Return the kernel for elimination rules, by visible eliminations or, with `counts_only`, by pulls alone."""
    compare, interval_of = ported(compare_eliminated_arm, {width_value: half_width}), ported(_interval, {})

    @kernel
    def run_all(
        widths: Any, latest: Any, assumed: Any, counts_only: Any, gaps: Any, order: Any, pulls: Any, gone: Any,
        gap: Any, low: Any, high: Any, verdict: Any, found: Any, kept: Any,
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
            compared = compare(widths, count, latest[max(count - 1, 0)], left, active, most)
            gap[arm, run], verdict[arm, run] = compared.gap, compared.verdict
            low[arm, run], high[arm, run] = interval_of(assumed, compared)
        found[run] = 1 if active == 1 and gaps[order[alone, run]] == 0.0 else 0
        kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all


@lru_cache(maxsize=1)
def by_pulls() -> Any:
    """Return the kernel for the naive estimator."""
    gap_of = ported(naive_gap, {})

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
            low[arm, run] = high[arm, run] = NAN
            if place == best:
                gap[arm, run], verdict[arm, run] = 0.0, BEST
            elif pulls[place, run] == 0:
                gap[arm, run], verdict[arm, run] = NAN, UNSEEN
            else:
                gap[arm, run], verdict[arm, run] = gap_of(pulls[place, run], horizon, constant), ESTIMATED
        found[run] = kept[run] = 1 if gaps[order[best, run]] == 0.0 else 0

    return run_all
