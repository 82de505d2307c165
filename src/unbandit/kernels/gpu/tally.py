"""Around a simulation on a GPU: the order of arms in each run, and the switching rounds of its actions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda

from unbandit.kernels.bandit import arm_order_bits, rank
from unbandit.kernels.gpu.port import kernel, ported
from unbandit.kernels.tally import find_switches_ahead


@lru_cache(maxsize=1)
def shuffled() -> Any:
    """Return the kernel that draws the bits by which arms are ordered, one thread per arm and run."""
    bits_of = ported(arm_order_bits, {})

    @kernel
    def run_all(key: Any, first_run: Any, bits: Any) -> None:
        arm, run = cuda.grid(1) // bits.shape[1], cuda.grid(1) % bits.shape[1]
        if arm < bits.shape[0]:
            bits[arm, run] = bits_of(key[0], key[1], np.uint64(first_run + run), arm)

    return run_all


@lru_cache(maxsize=1)
def arranged() -> Any:
    """Return the kernel that orders arms by their bits: the arm at each position, and the position of each arm."""
    rank_of = ported(rank, {})

    @kernel
    def run_all(bits: Any, order: Any, place: Any) -> None:
        arm, run = cuda.grid(1) // bits.shape[1], cuda.grid(1) % bits.shape[1]
        if arm < bits.shape[0]:
            stands = rank_of(bits[:, run], arm)
            order[stands, run], place[arm, run] = arm, stands

    return run_all


@lru_cache(maxsize=1)
def switches() -> Any:
    """Return the kernel that reads actions (rounds, runs), one demonstration per thread."""
    find = ported(find_switches_ahead, {})

    @kernel
    def run_all(actions: Any, pulls: Any, own: Any, of_best: Any, rounds: Any) -> None:
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best = 0
        for arm in range(1, pulls.shape[0]):
            best = arm if pulls[arm, run] > pulls[best, run] else best
        find(actions[:, run], pulls[:, run], best, own[:, run], of_best[:, run], rounds[:, run])

    return run_all


@lru_cache(maxsize=1)
def packed_switches() -> Any:
    """Return the kernel that reads actions of few arms, four to a word, as `simulate_index.merged` writes them.

    It finds what `find_switches_ahead` finds, but skips whole words in which only the best arm was pulled. Of several
    most-pulled arms the first position counts; an empty `place` means that all arms are as listed.
    """

    @kernel
    def run_all(words: Any, horizon: Any, place: Any, pulls: Any, own: Any, of_best: Any, rounds: Any) -> None:
        run = cuda.grid(1)
        if run >= pulls.shape[1]:
            return
        best, moved, missing = 0, place.shape[1] > 0, -1
        for arm in range(pulls.shape[0]):
            more = pulls[arm, run] - pulls[best, run]
            if more > 0 or (more == 0 and moved and place[arm, run] < place[best, run]):
                best = arm
            own[arm, run], of_best[arm, run], rounds[arm, run] = pulls[arm, run], 0, 0
            missing += 1 if pulls[arm, run] > 0 else 0
        most, after, last, found = pulls[best, run], 0, 0, 0
        at = (horizon - 1) >> 2
        word, all_best = np.int64(words[at, run]), best * 0x01010101
        size = horizon - 4 * at
        while missing > 0 or after == 0:
            before = np.int64(words[max(at - 1, 0), run])  # read ahead
            if word == all_best and size == 4:
                last = 4 * at + 4 if after == 0 else last
                after += 4
            else:
                for back in range(4):
                    t = 4 * at + 3 - back
                    arm = (word >> (8 * (3 - back))) & 255
                    if t >= horizon or (missing == 0 and after > 0):
                        continue
                    if arm == best:
                        last = t + 1 if after == 0 else last
                        after += 1
                    elif after == 0:  # not followed by the best arm
                        own[arm, run] -= 1
                        missing -= 1 if own[arm, run] == 0 else 0
                    elif (found >> arm) & 1 == 0:
                        rounds[arm, run], of_best[arm, run] = t + 1, most - after
                        found |= 1 << arm
                        missing -= 1
            at, word, size = at - 1, before, 4
        rounds[best, run] = last
        for arm in range(pulls.shape[0]):
            own[arm, run] = own[arm, run] if of_best[arm, run] > 0 else 0

    return run_all


@lru_cache(maxsize=1)
def moved() -> Any:
    """Return the kernel that orders four tables with one row per arm by position, run by run."""

    @kernel
    def run_all(place: Any, first: Any, second: Any, third: Any, fourth: Any, into: Any) -> None:
        arm, run = cuda.grid(1) // place.shape[1], cuda.grid(1) % place.shape[1]
        if arm < place.shape[0]:
            stands = place[arm, run]
            into[0, stands, run], into[1, stands, run] = first[arm, run], second[arm, run]
            into[2, stands, run], into[3, stands, run] = third[arm, run], fourth[arm, run]

    return run_all
