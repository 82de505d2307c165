"""Simulate an index rule that ignores the round on a GPU: few arms, one thread a demonstration, quick.

All that a thread knows of its arms is held in registers, so the arms are compared place by place instead of being
looked up: no loop of the CPU's has that form. What is computed in a round is the CPU's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, float64, int32

from unbandit.kernels.bandit import REWARDS, inverse_of
from unbandit.kernels.formula import index_value
from unbandit.kernels.gpu.porting import Formulas, kernel, meanings_of, ported
from unbandit.kernels.gpu.quantile import ALL_NEAR, POWERS, bring_near, near_coefficients
from unbandit.kernels.scalar import philox, reward_from_word

__all__ = ["MOST", "merged"]

ONE = np.uint64(1)

MOST = 32
"""The most arms that this is quick for."""

LOOKED_UP = range(3, 9)
"""Numbers of arms for which sums are looked up all the same: measured to be quicker there."""

BITS, A_WORD, LOW = np.uint64(5), 12, np.uint64(31)
"""Where each arm stands is packed into three numbers, of 12 arms with 5 bits each."""


def place_of(places: Any, arm: int) -> Any:
    """Return where an arm stands."""
    word = places[0] if arm < A_WORD else places[1] if arm < 2 * A_WORD else places[2]
    return (word >> (BITS * np.uint64(arm % A_WORD))) & LOW


@lru_cache(maxsize=64)
def merged(formulas: Formulas, arms: int, ties: bool) -> Any:
    """Return the kernel; it fills actions (rounds, runs) and pulls (arms, runs), in the order of the instance's arms.

    The threads of a warp then mostly pull the same arm at the same time. Where an arm stands in its run decides which
    rewards it draws, and who wins a tie; that two indices are equal is looked for only where `ties` can be.
    """
    meanings, looked_up = meanings_of(formulas, near_coefficients(ALL_NEAR)), arms in LOOKED_UP
    index_of, inverse, block, draw, fill, stands = (
        ported(function, meanings)
        for function in (meanings[index_value], inverse_of, philox, reward_from_word, bring_near, place_of)
    )

    @kernel
    def run_all(scene: Any, parameters: Any, actions: Any, pulls_out: Any) -> None:
        near = cuda.shared.array((POWERS, ALL_NEAR), float64)
        fill(near, scene.far, cuda.threadIdx.x, cuda.blockDim.x)
        cuda.syncthreads()
        run = cuda.grid(1)
        if run >= pulls_out.shape[1]:
            return
        table, name = (near, scene.far), np.uint64(scene.first_run + run)
        totals, index = cuda.local.array(arms, float64), cuda.local.array(arms, float64)
        pulls = cuda.local.array(arms, int32)
        places_0, places_1, places_2 = np.uint64(0), np.uint64(0), np.uint64(0)
        for arm in range(arms):
            place = arm if scene.place.shape[1] == 0 else scene.place[arm, run]
            shifted = np.uint64(place) << (BITS * np.uint64(arm % A_WORD))
            places_0 |= shifted if arm < A_WORD else np.uint64(0)
            places_1 |= shifted if A_WORD <= arm < 2 * A_WORD else np.uint64(0)
            places_2 |= shifted if arm >= 2 * A_WORD else np.uint64(0)
        places = (places_0, places_1, places_2)
        opening = min(arms, actions.shape[0])
        for t in range(opening):  # the places in turn
            chosen = 0
            for arm in range(arms):
                chosen = arm if stands(places, arm) == t else chosen
            actions[t, run] = chosen
        for arm in range(arms):
            pulls[arm], totals[arm], index[arm] = 0, 0.0, -np.inf
            if stands(places, arm) < opening:
                first, _ = block(np.uint64(0), stands(places, arm), name, REWARDS, scene.key[0], scene.key[1])
                total = draw(first, scene.listed[arm], scene.sigma, scene.bernoulli, table)
                pulls[arm], totals[arm] = 1, total
                index[arm] = index_of(parameters, total * inverse(scene.inverse, ONE), ONE, ONE)
        for t in range(opening, actions.shape[0]):
            chosen, value, n, total = 0, index[0], pulls[0], totals[0]
            for arm in range(1, arms):
                ahead = index[arm] > value
                if ties:
                    ahead |= index[arm] == value and stands(places, arm) < stands(places, chosen)
                if ahead and looked_up:
                    chosen, value = arm, index[arm]
                elif ahead:
                    chosen, value, n, total = arm, index[arm], pulls[arm], totals[arm]
            if looked_up:
                n, total = pulls[chosen], totals[chosen]
            place = stands(places, chosen)
            first, second = block(np.uint64(n) >> ONE, place, name, REWARDS, scene.key[0], scene.key[1])
            total += draw(second if n & 1 else first, scene.listed[chosen], scene.sigma, scene.bernoulli, table)
            n += 1
            sample_mean = total * inverse(scene.inverse, np.uint64(n))
            value = index_of(parameters, sample_mean, np.uint64(n), np.uint64(t + 1))
            if looked_up:
                pulls[chosen], totals[chosen] = n, total
                for arm in range(arms):
                    if arm == chosen:
                        index[arm] = value
            else:
                for arm in range(arms):
                    if arm == chosen:
                        pulls[arm], totals[arm], index[arm] = n, total, value
            actions[t, run] = chosen
        for arm in range(arms):
            pulls_out[arm, run] = pulls[arm]

    return run_all
