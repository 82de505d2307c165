"""Around the simulation on a GPU: the order of arms in each run, and the switching rounds of what was played."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda

from unbandit.kernels.gpu.porting import kernel, ported
from unbandit.kernels.ordering import arm_bits, rank_of
from unbandit.kernels.switches import find_switches

__all__ = ["arranged", "shuffled", "switches"]


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
    """Return the kernel that puts arms in the order of their bits: (arms, runs), which arm stands where."""
    rank = ported(rank_of, {})

    @kernel
    def run_all(bits: Any, order: Any) -> None:
        arm, run = cuda.grid(1) // bits.shape[1], cuda.grid(1) % bits.shape[1]
        if arm < bits.shape[0]:
            order[rank(bits[:, run], arm), run] = arm

    return run_all


@lru_cache(maxsize=1)
def switches() -> Any:
    """Return the kernel that reads what was played, one thread a demonstration."""
    find = ported(find_switches, {})

    @kernel
    def run_all(actions: Any, pulls: Any, own: Any, of_best: Any, rounds: Any) -> None:
        run = cuda.grid(1)
        if run < pulls.shape[1]:
            find(actions[:, run], pulls[:, run], own[:, run], of_best[:, run], rounds[:, run])

    return run_all
