"""Around the simulation on a GPU: the order of arms in each run, and the switching rounds of what was played."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda

from unbandit.kernels.gpu.porting import kernel, ported
from unbandit.kernels.ordering import arm_bits, rank_of
from unbandit.kernels.switches import find_switches

__all__ = ["arranged", "switches"]


@lru_cache(maxsize=1)
def arranged() -> Any:
    """Return the kernel that draws each run's order of arms: (arms, runs), from bits of the same shape."""
    bits_of, rank = ported(arm_bits, {}), ported(rank_of, {})

    @kernel
    def run_all(key: Any, first_run: Any, bits: Any, order: Any) -> None:
        run = cuda.grid(1)
        if run >= order.shape[1]:
            return
        for arm in range(order.shape[0]):
            bits[arm, run] = bits_of(key[0], key[1], np.uint64(first_run + run), arm)
        for arm in range(order.shape[0]):
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
