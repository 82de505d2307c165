"""Simulations on a GPU of index rules that ignore the round: of few arms, and counts of many arms.

**Few arms** (`merged`): one demonstration per thread. Arms are numbered as the instance lists them, so that the threads
of a warp mostly pull the same one at the same time; an arm's position in its run decides which rewards it draws, and
who wins a tie. Four rounds' actions are packed into a word.

**Many arms** (`counted_by_levels`): a block of threads per demonstration, by the method of `kernels.counts`: each arm
advances on its own to a common level, so the threads never wait for each other's arms.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, float64, int32, int64

from unbandit.kernels.bandit import REWARDS, Bandit, inverse_of, reward_from_word
from unbandit.kernels.counts import FEW_LEFT, comes_after, pull_again
from unbandit.kernels.formula import index_value
from unbandit.kernels.gpu import port
from unbandit.kernels.gpu.port import ALL_NEAR, MOST_NEAR, POWERS, Formulas, kernel, ported
from unbandit.kernels.rng import philox
from unbandit.kernels.simulate_index import next_level

ONE = np.uint64(1)
MOST_MERGED_ARMS = 32  # the most arms for which this is the fastest way

LOOKED_UP = range(2, 9)
"""Numbers of arms whose sums are looked up by the arm; sums of more arms do not fit, and all are compared."""


def threads_per_block(arms: int) -> int:
    """Return the number of threads of a block: fewer for more arms. Measured on an H200."""
    return 640 if arms in LOOKED_UP else 576


BITS, A_WORD, LOW = np.uint64(5), 12, np.uint64(31)
"""The positions of arms are packed into three words, of 12 arms with 5 bits each."""


def place_of(places: Any, arm: int) -> Any:
    """Return the position of an arm."""
    word = places[0] if arm < A_WORD else places[1] if arm < 2 * A_WORD else places[2]
    return (word >> (BITS * np.uint64(arm % A_WORD))) & LOW


@lru_cache(maxsize=64)
def merged(formulas: Formulas, arms: int, ties: bool) -> Any:
    """Return the kernel that takes a scene, parameters and the horizon, and fills words and pulls.

    Words are (a quarter of the rounds, runs), pulls (arms, runs). Ties are looked for only if `ties` are possible.
    """
    looked_up = arms in LOOKED_UP
    meanings = port.meanings_of(formulas, port.near_coefficients(ALL_NEAR))
    index_of, inverse, block, draw, fill, stands = (
        ported(function, meanings)
        for function in (meanings[index_value], inverse_of, philox, reward_from_word, port.bring_near, place_of)
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
        # --- the opening: the positions in turn ---
        for t in range(opening):
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
        # --- then the arm with the largest index, the first position winning a tie ---
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


NUMBERS, COUNTS = 9, 3
"""How many numbers and counts a group keeps per arm: state, the state before a step, means, levels."""


@lru_cache(maxsize=64)
def counted_by_levels(formulas: Formulas, group: int) -> Any:
    """Return the kernel for groups of `group` threads, a power of 2.

    It takes a scene, parameters, the guide (`level_guide`), the horizon, three arrays (arms, runs) to fill as
    `count_by_levels` does, and two arrays to work in: (blocks, NUMBERS, arms) and (blocks, COUNTS, arms).
    """
    meanings = port.meanings_of(formulas, port.near_coefficients(MOST_NEAR))
    index_of, inverse, block, draw, pull, after, choose_level, fill = (
        ported(function, meanings)
        for function in (
            *(meanings[index_value], inverse_of, philox, reward_from_word),
            *(pull_again, comes_after, next_level, port.bring_near),
        )
    )
    stretch = 2 * group

    @kernel
    def run_all(
        scene: Any, parameters: Any, guide: Any, horizon: Any, pulls_out: Any, own_out: Any, of_best_out: Any,
        all_numbers: Any, all_counts: Any,
    ) -> None:  # fmt: skip
        near = cuda.shared.array((POWERS, MOST_NEAR), float64)
        told = cuda.shared.array(group, int64)
        values = cuda.shared.array(group, float64)  # one line each: the simulator distinguishes arrays by line
        path = cuda.shared.array(stretch, float64)
        me = cuda.threadIdx.x
        fill(near, scene.far, me, group)
        cuda.syncthreads()
        table, arms, runs = (near, scene.far), scene.listed.size, pulls_out.shape[1]
        numbers, counts = all_numbers[cuda.blockIdx.x], all_counts[cuda.blockIdx.x]
        totals, lowest, last, before, means = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
        kept_totals, kept_lowest, kept_last, kept_before = numbers[5], numbers[6], numbers[7], numbers[8]
        pulls, kept_pulls, so_far = counts[0], counts[1], counts[2]
        bandit = Bandit(
            means, scene.listed, scene.sigma, scene.bernoulli, scene.inverse, scene.key, table, horizon, scene.listed,
            scene.order,
        )  # fmt: skip
        for run in range(cuda.blockIdx.x, runs, cuda.gridDim.x):
            name = np.uint64(scene.first_run + run)
            for arm in range(me, arms, group):
                means[arm] = scene.listed[arm] if scene.order.shape[1] == 0 else scene.listed[scene.order[arm, run]]
                pulls[arm], totals[arm] = 0, 0.0
                lowest[arm], last[arm], before[arm] = np.inf, np.inf, np.inf
            left, level, step, trust = horizon, np.inf, 0, 1.0
            # --- advance all arms from level to level until nearly all pulls are made ---
            while left > FEW_LEFT and trust > 0.01:
                target = horizon - left + trust * left
                aim = choose_level(guide, level, float(horizon - left), target, arms, step, scene.sigma)
                made = 0
                for arm in range(me, arms, group):  # advance the thread's own arms to that level
                    n, total, minimum, newer, older = pulls[arm], totals[arm], lowest[arm], last[arm], before[arm]
                    kept_pulls[arm], kept_totals[arm], kept_lowest[arm] = n, total, minimum
                    kept_last[arm], kept_before[arm] = newer, older
                    stop = min(n + left - made + 1, horizon)
                    made -= n
                    while minimum > aim and n < stop:
                        total, index = pull(bandit, parameters, name, np.uint64(arm), np.uint64(n), total)
                        n += 1
                        newer, older, minimum = minimum, newer, min(minimum, index)
                    made += n
                    pulls[arm], totals[arm], lowest[arm], last[arm], before[arm] = n, total, minimum, newer, older
                told[me] = made
                cuda.syncthreads()
                made = 0
                for other in range(group):
                    made += told[other]
                cuda.syncthreads()
                if made > left:  # too many: undo the step, and aim nearer
                    for arm in range(me, arms, group):
                        pulls[arm], totals[arm], lowest[arm] = kept_pulls[arm], kept_totals[arm], kept_lowest[arm]
                        last[arm], before[arm] = kept_last[arm], kept_before[arm]
                    trust *= 0.5
                else:
                    level, left, step = aim, left - made, step + 1
            # --- the last few pulls, one stretch at one level after the other ---
            while left > 0:
                values[me], told[me] = -np.inf, arms
                for arm in range(me, arms, group):
                    if lowest[arm] > values[me]:
                        values[me], told[me] = lowest[arm], arm
                cuda.syncthreads()
                level, chosen = values[0], told[0]
                for other in range(1, group):
                    if values[other] > level or (values[other] == level and told[other] < chosen):
                        level, chosen = values[other], told[other]
                cuda.syncthreads()
                if chosen % group == me:
                    while left > 0 and lowest[chosen] == level:  # a stretch at one level
                        n, total = pulls[chosen], totals[chosen]
                        totals[chosen], index = pull(bandit, parameters, name, np.uint64(chosen), np.uint64(n), total)
                        pulls[chosen], before[chosen], last[chosen] = n + 1, last[chosen], level
                        lowest[chosen] = min(level, index)
                        left -= 1
                    told[0] = left
                cuda.syncthreads()
                left = told[0]
                cuda.syncthreads()
            # --- the most-pulled arm ---
            told[me] = me if me < arms else 0
            for arm in range(me, arms, group):
                pulls_out[arm, run] = pulls[arm]
                if pulls[arm] > pulls[told[me]]:
                    told[me] = arm
            cuda.syncthreads()
            best = told[0]
            for other in range(1, min(group, arms)):
                rival = told[other]
                if pulls[rival] > pulls[best] or (pulls[rival] == pulls[best] and rival < best):
                    best = rival
            cuda.syncthreads()
            end = last[best]
            # --- each arm's switching round `tau_i`: its pulls, and its level, kept in `kept_last` ---
            for arm in range(me, arms, group):
                own, level = pulls[arm], last[arm]
                if after(level, arm, end, best):
                    own, level = own - 1, before[arm]
                    if own > 0 and after(level, arm, end, best):
                        most, own, level, minimum, total = own, 0, np.inf, np.inf, 0.0
                        while own < most and not after(minimum, arm, end, best):
                            total, index = pull(bandit, parameters, name, np.uint64(arm), np.uint64(own), total)
                            own += 1
                            level, minimum = minimum, min(minimum, index)
                own = 0 if arm == best else own
                kept_pulls[arm], kept_last[arm], so_far[arm] = own, level, 0
            cuda.syncthreads()
            # --- the best arm's pulls before it: replay the best arm, a stretch at a time; only thread 0 adds up ---
            total, minimum, begin = 0.0, np.inf, 0
            while begin < pulls[best]:
                place = begin // 2 + me
                first, second = block(np.uint64(place), np.uint64(best), name, REWARDS, scene.key[0], scene.key[1])
                path[2 * me] = draw(first, means[best], scene.sigma, scene.bernoulli, table)
                path[2 * me + 1] = draw(second, means[best], scene.sigma, scene.bernoulli, table)
                cuda.syncthreads()
                if me == 0:
                    for at in range(stretch):
                        total += path[at]
                        path[at] = total
                cuda.syncthreads()
                for at in range(2 * me, 2 * me + 2):
                    count = np.uint64(min(begin + at + 1, pulls[best]))  # the rest is not used
                    path[at] = index_of(parameters, path[at] * inverse(scene.inverse, count), count, ONE)
                cuda.syncthreads()
                if me == 0:
                    for at in range(stretch):
                        level, minimum = minimum, min(minimum, path[at])
                        path[at] = level
                cuda.syncthreads()
                size = min(stretch, pulls[best] - begin)
                for arm in range(me, arms, group):
                    if kept_pulls[arm] > 0 and so_far[arm] == begin:
                        low, high = 0, size
                        while low < high:
                            middle = (low + high) // 2
                            if after(kept_last[arm], arm, path[middle], best):
                                low = middle + 1
                            else:
                                high = middle
                        so_far[arm] = begin + low
                begin += size
                cuda.syncthreads()
            for arm in range(me, arms, group):
                own_out[arm, run] = kept_pulls[arm] if so_far[arm] > 0 else 0
                of_best_out[arm, run] = so_far[arm]
            cuda.syncthreads()

    return run_all
