"""Simulations on a GPU, one demonstration per thread: the CPU's own loops, on arrays of each thread; and their tallies.

Actions are kept as (rounds, runs) and counts as (arms, runs), so that the threads of a warp write side by side.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, float64, int64

from unbandit.kernels.arrivals import Arrivals
from unbandit.kernels.bandit import Bandit, arm_order_bits, inverse_of, rank, reward
from unbandit.kernels.compile import inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.gpu import port
from unbandit.kernels.gpu.port import ALL_NEAR, POWERS, Formulas, kernel, lowest_bit, ported
from unbandit.kernels.simulate_elimination import EliminationState, count_elimination, play_elimination
from unbandit.kernels.simulate_index import IndexState, play_largest_index
from unbandit.kernels.simulate_randomised import RandomisedState, play_by_chance
from unbandit.kernels.tally import find_switches_ahead

MOST_ARMS_IN_LOCAL_MEMORY = 64
"""Up to this number of arms, a thread works in its own local memory; beyond, in a part of one large array."""


FEWEST_ROUNDS_OF_A_BOUND, ROUNDS_PER_BOUND = 4, 400
"""A bound is computed for the next few rounds: for four, and for one more per 400 rounds before."""

ROUNDING, ONE = 1e-9, np.uint64(1)  # by what share a bound is raised, as an index may round differently in each round


@inlined
def _add_last_pull(known: Any, actions: Any, pulls: Any) -> None:
    """Fill in the pulls of every arm: those whose reward became known, and the last one."""
    for arm in range(pulls.size):
        pulls[arm] = known[arm]
    pulls[actions[actions.size - 1]] += 1


def _no_arrivals(numbers: Any, counts: Any) -> Arrivals:
    """Return that no delay is random: such rules are not played on a GPU."""
    return Arrivals(numbers[:0], counts[:0], counts[:0], counts[:0])


def by_index(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, pulls: Any
) -> None:
    """Play any index rule; `options` are `IndexOptions`."""
    arms = bandit.means.size
    state = IndexState(counts, numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms])
    play_largest_index(bandit, parameters, name, options, state, _no_arrivals(numbers, counts), actions)
    _add_last_pull(counts, actions, pulls)


@inlined
def _known_index(bandit: Bandit, parameters: Any, totals: Any, pulls: Any, arm: int, round: int) -> float:
    """Return an arm's index before a round."""
    n = np.uint64(pulls[arm])
    return index_value(parameters, totals[arm] * inverse_of(bandit.inverse, n), n, np.uint64(round))


def by_rising_index(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, pulls: Any
) -> None:
    """Play an index rule whose indices rise with the round, for up to 64 arms, each pulled once at first.

    An index of a later round is a bound until then. Only arms whose bound reaches the largest index are computed.
    """
    arms, horizon = bandit.means.size, actions.size
    totals, bounds = numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms]
    opening, until = min(arms, horizon), 0
    for arm in range(arms):
        counts[arm], totals[arm] = 0, 0.0
        if arm < opening:
            counts[arm], totals[arm] = 1, reward(bandit, name, np.uint64(arm), np.uint64(0))
            actions[arm] = arm
    for t in range(opening, horizon):
        if t >= until:
            until = min(t + FEWEST_ROUNDS_OF_A_BOUND + t // ROUNDS_PER_BOUND, horizon)
            for arm in range(arms):
                later = _known_index(bandit, parameters, totals, counts, arm, until)
                bounds[arm] = later + ROUNDING * abs(later)
        chosen, largest, second = 0, bounds[0], -np.inf
        for arm in range(1, arms):
            bound = bounds[arm]
            if bound > largest:
                chosen, largest, second = arm, bound, largest
            else:
                second = max(second, bound)
        value = _known_index(bandit, parameters, totals, counts, chosen, t + 1)
        if second >= value:
            waiting = np.uint64(0)
            for arm in range(arms):
                if bounds[arm] >= value and arm != chosen:
                    waiting |= ONE << np.uint64(arm)
            while waiting > np.uint64(0):  # the threads of a warp each take one of their own
                arm = lowest_bit(waiting)
                waiting &= waiting - ONE
                other = _known_index(bandit, parameters, totals, counts, arm, t + 1)
                if other > value or (other == value and arm < chosen):
                    chosen, value = arm, other
        actions[t] = chosen
        totals[chosen] += reward(bandit, name, np.uint64(chosen), np.uint64(counts[chosen]))
        counts[chosen] += 1
        later = _known_index(bandit, parameters, totals, counts, chosen, until)
        bounds[chosen] = later + ROUNDING * abs(later)
    for arm in range(arms):
        pulls[arm] = counts[arm]


def by_chance(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, pulls: Any
) -> None:
    """Play any randomised rule; `options` are `RandomisedOptions`."""
    arms, columns = bandit.means.size, options.columns
    draws, memory = numbers[arms : 2 * arms], numbers[2 * arms : (2 + columns) * arms].reshape(arms, columns)
    seen = numbers[(2 + columns) * arms : (2 + 2 * columns) * arms].reshape(arms, columns)
    state = RandomisedState(counts[:arms], memory, draws, counts[arms : 2 * arms], seen, counts[:0])
    play_by_chance(bandit, parameters, name, options, state, _no_arrivals(numbers, counts), actions)
    _add_last_pull(counts, actions, pulls)


def _elimination_state(arms: int, numbers: Any, counts: Any) -> EliminationState:
    totals, spare = numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms]
    return EliminationState(totals, spare, counts[:arms], counts[arms : 2 * arms], counts[:0])


def eliminations(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, unused: Any
) -> None:
    """Play an elimination rule."""
    play_elimination(bandit, parameters, name, _elimination_state(bandit.means.size, numbers, counts), actions)


def counted_eliminations(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, pulls: Any, gone: Any
) -> None:
    """Play an elimination rule and count; `options` holds the horizon."""
    state = _elimination_state(bandit.means.size, numbers, counts)
    count_elimination(bandit, parameters, name, options[0], state, pulls, gone)


def workspace(play: Any, arms: int, columns: int = 0) -> tuple[int, int]:
    """Return how many numbers, and how many counts, a thread needs to work in."""
    return (3 + 2 * columns) * arms, (1 if play in (by_index, by_rising_index) else 2) * arms


@lru_cache(maxsize=64)
def one_per_thread(play: Any, formulas: Formulas, arms: int, columns: int = 0) -> Any:
    """Return the kernel that plays one demonstration per thread by one of the functions above.

    It takes a scene, the rule's parameters, options, two arrays to fill with one column per run, and for many arms two
    arrays to work in, of numbers and of counts, sized by `workspace`, again with one row per run.
    """
    in_local_memory = arms <= MOST_ARMS_IN_LOCAL_MEMORY
    numbers_needed, counts_needed = workspace(play, arms, columns) if in_local_memory else (1, 1)
    meanings = port.meanings_of(formulas)
    play_one, fill = ported(play, meanings), ported(port.bring_near, {})

    @kernel
    def run_all(
        scene: Any, parameters: Any, options: Any, first: Any, second: Any, all_numbers: Any, all_counts: Any
    ) -> None:
        near = cuda.shared.array((POWERS, ALL_NEAR), float64)
        fill(near, scene.far, cuda.threadIdx.x, cuda.blockDim.x)
        cuda.syncthreads()
        run = cuda.grid(1)
        if run >= second.shape[1]:
            return
        if in_local_memory:
            numbers, counts = cuda.local.array(numbers_needed, float64), cuda.local.array(counts_needed, int64)
        else:
            numbers, counts = all_numbers[run], all_counts[run]
        means = numbers[:arms]
        for arm in range(arms):
            means[arm] = scene.listed[arm] if scene.order.shape[1] == 0 else scene.listed[scene.order[arm, run]]
        bandit = Bandit(
            means, scene.listed, scene.sigma, scene.bernoulli, scene.inverse, scene.key, (near, scene.far),
            first.shape[0], scene.listed, scene.order,
        )  # fmt: skip
        name = np.uint64(scene.first_run + run)
        play_one(bandit, parameters, name, options, numbers, counts, first[:, run], second[:, run])

    return run_all


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


def most_pulled(pulls: Any, run: int) -> int:
    """Return the position of a run's most-pulled arm, the first of several."""
    best = 0
    for place in range(pulls.shape[0]):
        best = place if pulls[place, run] > pulls[best, run] else best
    return best


@lru_cache(maxsize=1)
def switches() -> Any:
    """Return the kernel that reads actions (rounds, runs), one demonstration per thread."""
    find, best_of = ported(find_switches_ahead, {}), ported(most_pulled, {})

    @kernel
    def run_all(actions: Any, pulls: Any, own: Any, of_best: Any, rounds: Any) -> None:
        run = cuda.grid(1)
        if run < pulls.shape[1]:
            best = best_of(pulls, run)
            find(actions[:, run], pulls[:, run], best, own[:, run], of_best[:, run], rounds[:, run])

    return run_all


@lru_cache(maxsize=1)
def packed_switches() -> Any:
    """Return the kernel that reads actions of few arms, four to a word, as `simulate_index.merged` writes them.

    It finds what `find_switches_ahead` finds, but skips whole words in which only the best arm was pulled. `pulls` and
    the three tables to work in have one row per arm; `into` is filled with all four by position. Of several most-pulled
    arms the first position counts; an empty `place` means that all arms are as listed.
    """

    @kernel
    def run_all(
        words: Any, horizon: Any, place: Any, pulls: Any, own: Any, of_best: Any, rounds: Any, into: Any
    ) -> None:
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
            stands = place[arm, run] if moved else arm
            into[0, stands, run] = pulls[arm, run]
            into[1, stands, run] = own[arm, run] if of_best[arm, run] > 0 else 0
            into[2, stands, run], into[3, stands, run] = of_best[arm, run], rounds[arm, run]

    return run_all
