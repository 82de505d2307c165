"""A demonstration over bridges in plain Python: every sum of rewards is drawn, then the rule plays as ever."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.instance import Instance
from unbandit.tape import Stream, Tape


def full_walk(tape: Tape, run: int, arm: int, length: int) -> NDArray[np.float64]:
    """Return the walk at 0, 1, ..., `length`: the powers of two one after the other, then all middles."""
    normal, walk = {}, {0: 0.0}
    ends = [1 << power for power in range(length.bit_length() + 1)]
    for n, value in enumerate(tape.normal(run, arm, np.arange(1, ends[-1] + 1), Stream.BRIDGES).tolist(), 1):
        normal[n] = value
    walk[1] = normal[1]
    for end in ends[:-1]:
        walk[2 * end] = walk[end] + math.sqrt(end) * normal[2 * end]
        half = end // 2
        while half:
            for middle in range(end + half, 2 * end, 2 * half):
                ends_mean = 0.5 * (walk[middle - half] + walk[middle + half])
                walk[middle] = ends_mean + math.sqrt(half / 2) * normal[middle]
            half //= 2
    return np.array([walk[n] for n in range(length + 1)])


def tape_of_indices(
    rule: Any, instance: Instance, horizon: int, run: int, seed: int, arm: int, length: int
) -> NDArray[np.float64]:
    """Return an arm's index after 1, 2, ..., `length` pulls."""
    pulls = np.arange(1.0, length + 1)
    walk = full_walk(Tape(seed), run, arm, length)[1:]
    return instance.means[arm] + instance.sigma * (walk * (1 / pulls)) + rule.width(pulls, horizon)


def reference_over_bridges(
    rule: Any, instance: Instance, horizon: int, run: int = 0, seed: int = 0, length: int | None = None
) -> list[int]:
    """Pull the arm with the largest index, the lowest of several, infinite before the first pull."""
    arms, rounds = range(len(instance)), length or horizon
    tapes = [tape_of_indices(rule, instance, horizon, run, seed, arm, rounds).tolist() for arm in arms]
    pulls, index, actions = [0 for _ in arms], [math.inf for _ in arms], []
    for _ in range(rounds):
        arm = index.index(max(index))
        index[arm] = tapes[arm][pulls[arm]]
        pulls[arm] += 1
        actions.append(arm)
    return actions
