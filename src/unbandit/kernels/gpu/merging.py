"""Simulate an index rule that ignores the round on a GPU: few arms, one thread a demonstration, quick.

No loop of the CPU's has the form that is quick here; what is computed in a round is the CPU's. Arms are counted in the
order of the instance, so that the threads of a warp mostly pull the same one at the same time. Where an arm stands in
its run decides which rewards it draws, and who wins a tie. Four rounds' actions are packed into a word.
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

__all__ = ["MOST", "merged", "threads"]

ONE = np.uint64(1)
MOST = 32
"""The most arms that this is quick for."""

LOOKED_UP = range(2, 9)
"""Numbers of arms for which sums are looked up by the arm; of more, which do not fit near, all are compared."""


def threads(arms: int) -> int:
    """Return how many threads a block has: fewer of more arms, whose sums must fit near. Measured on an H200."""
    return 640 if arms in LOOKED_UP else 576


BITS, A_WORD, LOW = np.uint64(5), 12, np.uint64(31)
"""Where each arm stands is packed into three numbers, of 12 arms with 5 bits each."""


def place_of(places: Any, arm: int) -> Any:
    """Return where an arm stands."""
    word = places[0] if arm < A_WORD else places[1] if arm < 2 * A_WORD else places[2]
    return (word >> (BITS * np.uint64(arm % A_WORD))) & LOW


@lru_cache(maxsize=64)
def merged(formulas: Formulas, arms: int, ties: bool) -> Any:
    """Return the kernel: it takes a scene, parameters and the horizon, and fills words and pulls.

    Words are (a quarter of the rounds, runs), pulls (arms, runs). That two indices are equal is looked for only where
    `ties` can be.
    """
    looked_up = arms in LOOKED_UP
    meanings = meanings_of(formulas, near_coefficients(ALL_NEAR))
    index_of, inverse, block, draw, fill, stands = (
        ported(function, meanings)
        for function in (meanings[index_value], inverse_of, philox, reward_from_word, bring_near, place_of)
    )

    @kernel
    def run_all(scene: Any, parameters: Any, horizon: Any, words: Any, pulls_out: Any) -> None:
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
        opening, word = min(arms, horizon), 0
        for t in range(opening):  # the places in turn
            chosen = 0
            for arm in range(arms):
                chosen = arm if stands(places, arm) == t else chosen
            word |= chosen << (8 * (t & 3))
            if t & 3 == 3:
                words[t >> 2, run] = word
                word = 0
        for arm in range(arms):
            pulls[arm], totals[arm], index[arm] = 0, 0.0, -np.inf
            if stands(places, arm) < opening:
                first, _ = block(np.uint64(0), stands(places, arm), name, REWARDS, scene.key[0], scene.key[1])
                total = draw(first, scene.listed[arm], scene.sigma, scene.bernoulli, table)
                pulls[arm], totals[arm] = 1, total
                index[arm] = index_of(parameters, total * inverse(scene.inverse, ONE), ONE, ONE)
        for t in range(opening, horizon):
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
            word |= chosen << (8 * (t & 3))
            if t & 3 == 3:
                words[t >> 2, run] = word
                word = 0
        if horizon & 3:
            words[horizon >> 2, run] = word
        for arm in range(arms):
            pulls_out[arm, run] = pulls[arm]

    return run_all
