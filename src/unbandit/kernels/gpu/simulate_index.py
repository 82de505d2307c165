"""Simulations on a GPU of index rules that ignore the round: of few arms, and counts of many arms.

**Few arms** (`merged`): one demonstration per thread. Arms are numbered as the instance lists them, so that the threads
of a warp mostly pull the same one at the same time; an arm's position in its run decides which rewards it draws, and
who wins a tie. Four rounds' actions are packed into a word.

**Many arms**, by the method of `kernels.counts`: each arm advances on its own from one common level to the next. Of
many demonstrations each has a thread (`counted_alone`), which draws two rewards in every turn, of whatever arm it has
got to. Of few, each has a block of threads (`counted_by_levels`), which never wait for each other's arms.
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

IN_REGISTERS = 8  # the most arms whose sums, pulls and indices are kept in registers


def threads_per_block(arms: int) -> int:
    """Return the number of threads of a block: fewer for more arms. Measured on an H200."""
    return 512 if arms <= IN_REGISTERS else 576


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
    meanings = port.meanings_of(formulas)
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
        opening, word = min(arms, horizon), np.uint32(0)
        # --- the opening: the positions in turn ---
        for t in range(opening):
            chosen = 0
            for arm in range(arms):
                chosen = arm if stands(places, arm) == t else chosen
            word = np.uint32(word | (chosen << (8 * (t & 3))))
            if t & 3 == 3:
                words[t >> 2, run] = word
                word = np.uint32(0)
        for arm in range(arms):
            pulls[arm], totals[arm], index[arm] = 0, 0.0, -np.inf
            if stands(places, arm) < opening:
                first, _ = block(np.uint64(0), stands(places, arm), name, REWARDS, scene.key[0], scene.key[1])
                total = draw(first, scene.listed[arm], scene.sigma, scene.bernoulli, table)
                pulls[arm], totals[arm] = 1, total
                index[arm] = index_of(parameters, total * inverse(scene.inverse, ONE), ONE, ONE)
        # --- then the arm with the largest index, the first position winning a tie ---
        row, shift, t, last = np.int32(opening >> 2), np.int32(8 * (opening & 3)), np.int32(opening), np.int32(horizon)
        while t < last:
            chosen, value, n, total = 0, index[0], pulls[0], totals[0]
            for arm in range(1, arms):
                ahead = index[arm] > value
                if ties:
                    ahead |= index[arm] == value and stands(places, arm) < stands(places, chosen)
                if ahead:
                    chosen, value, n, total = arm, index[arm], pulls[arm], totals[arm]
            place = stands(places, chosen)
            first, second = block(np.uint64(n) >> ONE, place, name, REWARDS, scene.key[0], scene.key[1])
            total += draw(second if n & 1 else first, scene.listed[chosen], scene.sigma, scene.bernoulli, table)
            n += 1
            sample_mean = total * inverse(scene.inverse, np.uint64(n))
            value = index_of(parameters, sample_mean, np.uint64(n), np.uint64(t + 1))
            if arms <= IN_REGISTERS:
                for arm in range(arms):
                    pulls[arm] = n if arm == chosen else pulls[arm]
                    totals[arm] = total if arm == chosen else totals[arm]
                    index[arm] = value if arm == chosen else index[arm]
            else:
                for arm in range(arms):
                    if arm == chosen:
                        pulls[arm], totals[arm], index[arm] = n, total, value
            word, shift, t = np.uint32(word | (np.uint32(chosen) << shift)), np.int32(shift + 8), np.int32(t + 1)
            if shift == 32:
                words[row, run] = word
                word, shift, row = np.uint32(0), np.int32(0), np.int32(row + 1)
        if horizon & 3:
            words[horizon >> 2, run] = word
        for arm in range(arms):
            pulls_out[arm, run] = pulls[arm]

    return run_all


ROOM_ALONE = 8, 4
"""How many numbers and counts a thread keeps per arm, half before and half after a step: the sum of its rewards, its
lowest index, the level of its last pull, and the one before; its pulls, and those before the level of the last."""


@lru_cache(maxsize=64)
def counted_alone(formulas: Formulas) -> Any:
    """Return the kernel that takes a scene, parameters, the guide (`level_guide`) and the horizon.

    It fills three arrays (arms, runs) as `count_by_levels` does, and works in two: (8, arms, threads) and
    (4, arms, threads).
    """
    meanings = port.meanings_of(formulas)
    index_of, inverse, block, draw, after, choose_level, fill = (
        ported(function, meanings)
        for function in (
            *(meanings[index_value], inverse_of, philox, reward_from_word, comes_after, next_level, port.bring_near),
        )
    )

    @kernel
    def run_all(
        scene: Any, parameters: Any, guide: Any, horizon: Any, pulls_out: Any, own_out: Any, of_best_out: Any,
        numbers: Any, counts: Any,
    ) -> None:  # fmt: skip
        near = cuda.shared.array((POWERS, ALL_NEAR), float64)
        fill(near, scene.far, cuda.threadIdx.x, cuda.blockDim.x)
        cuda.syncthreads()
        table, arms, runs, me = (near, scene.far), scene.listed.size, pulls_out.shape[1], cuda.grid(1)
        key_0, key_1, listed_order = scene.key[0], scene.key[1], scene.order.shape[1] == 0
        for run in range(me, runs, cuda.gridsize(1)):
            name = np.uint64(scene.first_run + run)
            for arm in range(arms):
                counts[0, arm, me], counts[1, arm, me], numbers[0, arm, me] = 0, 0, 0.0
                numbers[1, arm, me], numbers[2, arm, me], numbers[3, arm, me] = np.inf, np.inf, np.inf
            # --- advance all arms from level to level until nearly all pulls are made ---
            left, level, step, trust, now = horizon, np.inf, 0, 1.0, 0
            aim = choose_level(guide, level, 0.0, float(horizon), arms, 0, scene.sigma)
            going, arm, made, n, start, stop, began = left > FEW_LEFT, -1, 0, 0, 0, 0, 0
            total, minimum, last, before, mean = 0.0, -np.inf, np.inf, np.inf, 0.0
            while going:
                while going and (minimum <= aim or n >= stop):  # the arm has got there: go on to the next
                    if arm >= 0:
                        counts[2 - 2 * now, arm, me], counts[3 - 2 * now, arm, me] = n, start
                        numbers[4 - 4 * now, arm, me], numbers[5 - 4 * now, arm, me] = total, minimum
                        numbers[6 - 4 * now, arm, me], numbers[7 - 4 * now, arm, me] = last, before
                        made += n - began
                    arm += 1
                    if arm < arms and made <= left:
                        n, start = counts[2 * now, arm, me], counts[2 * now + 1, arm, me]
                        total, minimum = numbers[4 * now, arm, me], numbers[4 * now + 1, arm, me]
                        last, before = numbers[4 * now + 2, arm, me], numbers[4 * now + 3, arm, me]
                        mean = scene.listed[arm] if listed_order else scene.listed[scene.order[arm, run]]
                        began, stop = n, min(n + left - made + 1, horizon)
                    else:
                        if made > left:  # too many: aim nearer, from the same states
                            trust *= 0.5
                        else:
                            now, level, left, step = 1 - now, aim, left - made, step + 1
                        going = left > FEW_LEFT and trust > 0.01
                        if going:
                            target = horizon - left + trust * left
                            aim = choose_level(guide, level, float(horizon - left), target, arms, step, scene.sigma)
                        arm, made, stop, n = -1, 0, 0, 0
                if going:
                    first, second = block(np.uint64(n) >> ONE, np.uint64(arm), name, REWARDS, key_0, key_1)
                    for half in range(n & 1, 2):
                        if minimum > aim and n < stop:
                            total += draw(second if half else first, mean, scene.sigma, scene.bernoulli, table)
                            if minimum < last:
                                before, last, start = last, minimum, n
                            n += 1
                            value = total * inverse(scene.inverse, np.uint64(n))
                            minimum = min(minimum, index_of(parameters, value, np.uint64(n), ONE))
            # --- the last few pulls, one stretch at one level after the other ---
            arm, level, minimum = -1, np.inf, -np.inf
            while left > 0:
                if left > 0 and minimum != level:
                    if arm >= 0:
                        counts[2 * now, arm, me], numbers[4 * now, arm, me] = n, total
                        numbers[4 * now + 1, arm, me] = minimum
                    arm, level = 0, numbers[4 * now + 1, 0, me]
                    for other in range(1, arms):
                        if numbers[4 * now + 1, other, me] > level:
                            arm, level = other, numbers[4 * now + 1, other, me]
                    n, total, minimum = counts[2 * now, arm, me], numbers[4 * now, arm, me], level
                    if level < numbers[4 * now + 2, arm, me]:
                        numbers[4 * now + 3, arm, me] = numbers[4 * now + 2, arm, me]
                        numbers[4 * now + 2, arm, me], counts[2 * now + 1, arm, me] = level, n
                    mean = scene.listed[arm] if listed_order else scene.listed[scene.order[arm, run]]
                if left > 0:
                    first, second = block(np.uint64(n) >> ONE, np.uint64(arm), name, REWARDS, key_0, key_1)
                    total += draw(second if n & 1 else first, mean, scene.sigma, scene.bernoulli, table)
                    n += 1
                    left -= 1
                    value = total * inverse(scene.inverse, np.uint64(n))
                    minimum = min(minimum, index_of(parameters, value, np.uint64(n), ONE))
            if arm >= 0:
                counts[2 * now, arm, me], numbers[4 * now, arm, me] = n, total
                numbers[4 * now + 1, arm, me] = minimum
            # --- the most-pulled arm, and each arm's switching round `tau_i`: its pulls, and the level of the last ---
            best = 0
            for arm in range(arms):
                pulls_out[arm, run] = counts[2 * now, arm, me]
                if counts[2 * now, arm, me] > counts[2 * now, best, me]:
                    best = arm
            end, most = numbers[4 * now + 2, best, me], counts[2 * now, best, me]
            arm, own, n, stop, total, minimum, level = -1, 0, 0, 0, 0.0, -np.inf, np.inf
            going = True
            while going:
                while going and (n >= stop or after(minimum, arm, end, best)):
                    if arm >= 0:
                        if stop > 0:
                            own = n
                        counts[2 - 2 * now, arm, me], numbers[4 - 4 * now, arm, me] = own, level
                    arm += 1
                    going, n, stop = arm < arms, 0, 0
                    if going:
                        own, level = counts[2 * now, arm, me], numbers[4 * now + 2, arm, me]
                        if after(level, arm, end, best):
                            own, level = counts[2 * now + 1, arm, me], numbers[4 * now + 3, arm, me]
                            if own > 0 and after(level, arm, end, best):  # long before: replay the arm
                                stop, total, minimum, level = own, 0.0, np.inf, np.inf
                                mean = scene.listed[arm] if listed_order else scene.listed[scene.order[arm, run]]
                        own = 0 if arm == best else own
                if going:
                    first, second = block(np.uint64(n) >> ONE, np.uint64(arm), name, REWARDS, key_0, key_1)
                    total += draw(second if n & 1 else first, mean, scene.sigma, scene.bernoulli, table)
                    n += 1
                    value = total * inverse(scene.inverse, np.uint64(n))
                    level = minimum
                    minimum = min(minimum, index_of(parameters, value, np.uint64(n), ONE))
            # --- arms in the order of these levels ---
            for arm in range(arms):
                level, rank = numbers[4 - 4 * now, arm, me], 0
                for other in range(arms):
                    above = numbers[4 - 4 * now, other, me]
                    if above > level or (above == level and other < arm):
                        rank += 1
                counts[3 - 2 * now, rank, me] = arm
            # --- the best arm's pulls before each: replay the best arm ---
            at, n, total, minimum, arm = 0, 0, 0.0, np.inf, counts[3 - 2 * now, 0, me]
            level = numbers[4 - 4 * now, arm, me]
            mean = scene.listed[best] if listed_order else scene.listed[scene.order[best, run]]
            first, second = np.uint64(0), np.uint64(0)
            while at < arms:
                while at < arms and (arm == best or n == most or not after(level, arm, minimum, best)):
                    own = counts[2 - 2 * now, arm, me] if arm != best else 0
                    own_out[arm, run] = own if n > 0 else 0
                    of_best_out[arm, run] = n if own > 0 else 0
                    at += 1
                    if at < arms:
                        arm = counts[3 - 2 * now, at, me]
                        level = numbers[4 - 4 * now, arm, me]
                if at < arms:
                    if n & 1 == 0:
                        first, second = block(np.uint64(n) >> ONE, np.uint64(best), name, REWARDS, key_0, key_1)
                    total += draw(second if n & 1 else first, mean, scene.sigma, scene.bernoulli, table)
                    n += 1
                    value = total * inverse(scene.inverse, np.uint64(n))
                    minimum = min(minimum, index_of(parameters, value, np.uint64(n), ONE))

    return run_all


ROOM_IN_A_GROUP = 9, 3
"""How many numbers and counts a group keeps per arm: state, the state before a step, means, levels."""


@lru_cache(maxsize=64)
def counted_by_levels(formulas: Formulas, group: int) -> Any:
    """Return the kernel for groups of `group` threads, a power of 2.

    It takes a scene, parameters, the guide (`level_guide`), the horizon, three arrays (arms, runs) to fill as
    `count_by_levels` does, and two arrays to work in: (blocks, 9, arms) and (blocks, 3, arms).
    """
    meanings = port.meanings_of(formulas)
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
