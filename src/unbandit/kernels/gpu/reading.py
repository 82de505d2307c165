"""Around the simulation on a GPU: the order of arms in each run, and the switching rounds of what was played."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda

from unbandit.kernels.gpu.porting import kernel, ported
from unbandit.kernels.ordering import arm_bits, rank_of
from unbandit.kernels.switches import find_switches

__all__ = ["arranged", "moved", "shuffled", "switches"]


@lru_cache(maxsize=1)
def shuffled() -> Any:
    """Return the kernel that draws the bits by which arms are put in order, one thread an arm and run."""
    bits_of = ported(arm_bits, {})

    @kernel
    def run_all(key: Any, first_run: Any, bits: Any) -> None:
        arm, run = cuda.grid(1) // bits.shape[1], cuda.grid(1) % bits.shape[1]
        if arm < bits.shape[0]:
            bits[arm, run] = bits_of(key[0], key[1], np.uint64(first_run + run), arm)

    return run_all


@lru_cache(maxsize=1)
def arranged() -> Any:
    """Return the kernel that puts arms in the order of their bits: which stands where, and where each stands."""
    rank = ported(rank_of, {})

    @kernel
    def run_all(bits: Any, order: Any, place: Any) -> None:
        arm, run = cuda.grid(1) // bits.shape[1], cuda.grid(1) % bits.shape[1]
        if arm < bits.shape[0]:
            stands = rank(bits[:, run], arm)
            order[stands, run], place[arm, run] = arm, stands

    return run_all


@lru_cache(maxsize=1)
def switches() -> Any:
    """Return the kernel that reads what was played, one thread a demonstration, in the order that it is written in.

    Of several most-pulled arms the one that stands first counts; an empty `place` says that all stand as written.
    """
    find = ported(find_switches, {})

    @kernel
    def run_all(actions: Any, place: Any, pulls: Any, own: Any, of_best: Any, rounds: Any) -> None:
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best, moved = 0, place.shape[1] > 0
        for arm in range(1, pulls.shape[0]):
            more = pulls[arm, run] - pulls[best, run]
            if more > 0 or (more == 0 and moved and place[arm, run] < place[best, run]):
                best = arm
        find(actions[:, run], pulls[:, run], best, own[:, run], of_best[:, run], rounds[:, run])

    return run_all


@lru_cache(maxsize=1)
def moved() -> Any:
    """Return the kernel that puts four tables with one row an arm into the order in which arms stand, run by run."""

    @kernel
    def run_all(place: Any, first: Any, second: Any, third: Any, fourth: Any, into: Any) -> None:
        arm, run = cuda.grid(1) // place.shape[1], cuda.grid(1) % place.shape[1]
        if arm < place.shape[0]:
            stands = place[arm, run]
            into[0, stands, run], into[1, stands, run] = first[arm, run], second[arm, run]
            into[2, stands, run], into[3, stands, run] = third[arm, run], fourth[arm, run]

    return run_all
