"""Simulations on a GPU, one demonstration per thread: the CPU's own loops, on arrays of each thread.

Actions are kept as (rounds, runs) and counts as (arms, runs), so that the threads of a warp write side by side.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, float64, int64

from unbandit.kernels.bandit import Bandit
from unbandit.kernels.gpu.port import (
    ALL_NEAR,
    POWERS,
    Formulas,
    bring_near,
    kernel,
    meanings_of,
    near_coefficients,
    ported,
)
from unbandit.kernels.simulate_elimination import EliminationState, count_elimination, play_elimination
from unbandit.kernels.simulate_index import IndexState, play_largest_index
from unbandit.kernels.simulate_randomised import RandomisedState, play_by_chance

MOST_ARMS_IN_LOCAL_MEMORY = 64
"""Up to this number of arms, a thread works in its own local memory; beyond, in a part of one large array."""


def by_index(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, pulls: Any
) -> None:
    """Play any index rule; `options` are `IndexOptions`."""
    arms = bandit.means.size
    state = IndexState(counts, numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms])
    play_largest_index(bandit, parameters, name, options, state, actions)
    for arm in range(arms):
        pulls[arm] = counts[arm]


def by_chance(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, pulls: Any
) -> None:
    """Play any randomised rule; `options` are `RandomisedOptions`."""
    arms, columns = bandit.means.size, options.columns
    draws, memory = numbers[arms : 2 * arms], numbers[2 * arms : (2 + columns) * arms].reshape(arms, columns)
    seen = numbers[(2 + columns) * arms : (2 + 2 * columns) * arms].reshape(arms, columns)
    state = RandomisedState(counts[:arms], memory, draws, counts[arms : 2 * arms], seen)
    play_by_chance(bandit, parameters, name, options, state, actions)
    for arm in range(arms):
        pulls[arm] = counts[arm]


def eliminations(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, unused: Any
) -> None:
    """Play an elimination rule."""
    arms = bandit.means.size
    state = EliminationState(
        numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms], counts[:arms], counts[arms : 2 * arms]
    )  # fmt: skip
    play_elimination(bandit, parameters, name, state, actions)


def counted_eliminations(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, pulls: Any, gone: Any
) -> None:
    """Play an elimination rule and count; `options` holds the horizon."""
    arms = bandit.means.size
    state = EliminationState(
        numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms], counts[:arms], counts[arms : 2 * arms]
    )  # fmt: skip
    count_elimination(bandit, parameters, name, options[0], state, pulls, gone)


def workspace(play: Any, arms: int, columns: int = 0) -> tuple[int, int]:
    """Return how many numbers, and how many counts, a thread needs to work in."""
    return (3 + 2 * columns) * arms, (1 if play is by_index else 2) * arms


@lru_cache(maxsize=64)
def one_a_thread(play: Any, formulas: Formulas, arms: int, columns: int = 0) -> Any:
    """Return the kernel that plays one demonstration per thread by one of the functions above.

    It takes a scene, the rule's parameters, options, two arrays to fill with one column per run, and for many arms two
    arrays to work in, of numbers and of counts, sized by `workspace`, again with one row per run.
    """
    in_local_memory = arms <= MOST_ARMS_IN_LOCAL_MEMORY
    numbers_needed, counts_needed = workspace(play, arms, columns) if in_local_memory else (1, 1)
    play_one, fill = ported(play, meanings_of(formulas, near_coefficients(ALL_NEAR))), ported(bring_near, {})

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
