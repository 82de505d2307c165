"""Simulate any randomised rule, round by round: let it draw an arm from its own probabilities, and learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit, arrange, reward
from unbandit.kernels.compile import compiled, inlined
from unbandit.kernels.formula import choose, learn
from unbandit.kernels.rng import philox, uniform_from_word

ONE = np.uint64(1)
DECISIONS = np.uint64(1)  # the tape's stream 1


@inlined
def play_by_chance(
    bandit: Bandit, parameters: Any, name: np.uint64, draws_needed: int, initial: int, batch: int,
    pulls: NDArray[np.int64], memory: NDArray[np.float64], draws: NDArray[np.float64],
    seen_pulls: NDArray[np.int64], seen_memory: NDArray[np.float64], actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`; the five arrays before it, one row an arm, are for its working.

    Every arm is first pulled `initial` times, in turn. From then on the rule looks at its record every `batch` rounds,
    and each round draws anew from what it saw there. `draws_needed` is how many uniform numbers a decision takes.
    """
    arms, columns = memory.shape
    opening, seen_round = initial * arms, 0
    for arm in range(arms):
        pulls[arm], draws[arm] = 0, 0.0
        for column in range(columns):
            memory[arm, column] = 0.0
    for t in range(actions.size):
        if t < opening:
            chosen = t % arms
        else:
            if (t - opening) % batch == 0:
                seen_round = t + 1
                for arm in range(arms):
                    seen_pulls[arm] = pulls[arm]
                    for column in range(columns):
                        seen_memory[arm, column] = memory[arm, column]
            for at in range(draws_needed):
                first, second = philox(
                    np.uint64(t) >> ONE, np.uint64(at), name, DECISIONS, bandit.key[0], bandit.key[1]
                )
                draws[at] = uniform_from_word(second if t & 1 else first)
            chosen = choose(parameters, seen_pulls, seen_memory, seen_round, draws)
        gained = reward(bandit, name, np.uint64(chosen), np.uint64(pulls[chosen]))
        learn(parameters, pulls, memory, t + 1, chosen, gained)
        memory[chosen, 0] += gained
        pulls[chosen] += 1
        actions[t] = chosen


@compiled
def draw_actions(
    bandit: Bandit, parameters: Any, first_run: int, columns: int, draws_needed: int, initial: int, batch: int,
    actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ...

    `columns` is how many numbers an arm remembers.
    """
    arms = bandit.means.size
    pulls, memory, draws = np.empty(arms, np.int64), np.empty((arms, columns)), np.empty(arms)
    seen_pulls, seen_memory = np.empty(arms, np.int64), np.empty((arms, columns))
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        play_by_chance(
            bandit, parameters, name, draws_needed, initial, batch, pulls, memory, draws, seen_pulls, seen_memory,
            actions[run],
        )  # fmt: skip
