"""Simulate on a GPU, one thread a demonstration: the CPU's own loops, around arrays of each thread.

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
from unbandit.kernels.simulate_elimination import count_elimination, play_elimination
from unbandit.kernels.simulate_index import play_largest_index
from unbandit.kernels.simulate_randomised import play_by_chance

__all__ = ["FEW", "by_chance", "by_index", "counted_eliminations", "eliminations", "one_a_thread", "workspace"]

FEW = 64
"""Up to so many arms, a thread works in memory of its own; beyond, in a part of one large array."""


def by_index(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, pulls: Any
) -> None:
    """Play any index rule; options: uses_round, random_ties, initial, batch."""
    arms = bandit.means.size
    totals, index = numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms]
    play_largest_index(
        bandit, parameters, name, options[0] > 0, options[1] > 0, options[2], options[3], counts, totals, index, actions
    )
    for arm in range(arms):
        pulls[arm] = counts[arm]


def by_chance(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, pulls: Any
) -> None:
    """Play any randomised rule; options: columns, draws needed, initial, batch."""
    arms, columns = bandit.means.size, options[0]
    draws, memory = numbers[arms : 2 * arms], numbers[2 * arms : (2 + columns) * arms].reshape(arms, columns)
    seen = numbers[(2 + columns) * arms : (2 + 2 * columns) * arms].reshape(arms, columns)
    play_by_chance(
        bandit, parameters, name, options[1], options[2], options[3], counts[:arms], memory, draws,
        counts[arms : 2 * arms], seen, actions,
    )  # fmt: skip
    for arm in range(arms):
        pulls[arm] = counts[arm]


def eliminations(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, actions: Any, unused: Any
) -> None:
    """Play an elimination rule."""
    arms = bandit.means.size
    totals, spare = numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms]
    play_elimination(bandit, parameters, name, totals, spare, counts[:arms], counts[arms : 2 * arms], actions)


def counted_eliminations(
    bandit: Any, parameters: Any, name: Any, options: Any, numbers: Any, counts: Any, pulls: Any, gone: Any
) -> None:
    """Play an elimination rule and count; options: the horizon."""
    arms = bandit.means.size
    totals, spare = numbers[arms : 2 * arms], numbers[2 * arms : 3 * arms]
    active, ahead = counts[:arms], counts[arms : 2 * arms]
    count_elimination(bandit, parameters, name, options[0], totals, spare, active, ahead, pulls, gone)


def workspace(play: Any, arms: int, columns: int = 0) -> tuple[int, int]:
    """Return how many numbers, and how many counts, a thread needs for its working."""
    return (3 + 2 * columns) * arms, (1 if play is by_index else 2) * arms


@lru_cache(maxsize=64)
def one_a_thread(play: Any, formulas: Formulas, arms: int, columns: int = 0) -> Any:
    """Return the kernel that plays one demonstration a thread by one of the functions above.

    It takes a scene, the rule's parameters, options, two arrays to fill with one column a run, and for more than `FEW`
    arms two arrays to work in, of numbers and of counts, as `workspace` says, again with one column a run.
    """
    own_memory = arms <= FEW
    many_numbers, many_counts = workspace(play, arms, columns) if own_memory else (1, 1)
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
        if own_memory:
            numbers, counts = cuda.local.array(many_numbers, float64), cuda.local.array(many_counts, int64)
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
