"""Simulate any randomised rule, round by round: let it draw an arm from its own probabilities, and learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit, arrange, reward
from unbandit.kernels.compiling import compiled
from unbandit.kernels.formula import choose, learn
from unbandit.kernels.scalar import philox, uniform_from_word

__all__ = ["draw_actions"]

ONE = np.uint64(1)
DECISIONS = np.uint64(1)  # the tape's stream 1


@compiled
def draw_actions(
    bandit: Bandit,
    parameters: Any,
    first_run: int,
    columns: int,
    draws_needed: int,
    initial: int,
    batch: int,
    actions: NDArray[Any],
) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ...

    Every arm is first pulled `initial` times, in turn. From then on the rule looks at its record every `batch` rounds,
    and each round draws anew from what it saw there. `columns` is how many numbers an arm remembers, `draws_needed` how
    many uniform numbers a decision takes.
    """
    arms, (runs, horizon) = bandit.means.size, actions.shape
    opening = initial * arms
    pulls, memory, draws = np.empty(arms, np.int64), np.empty((arms, columns)), np.zeros(arms)
    seen_pulls, seen_memory = np.empty(arms, np.int64), np.empty((arms, columns))
    for run in range(runs):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        pulls[:], memory[:] = 0, 0.0
        seen_round = 0
        for t in range(horizon):
            if t < opening:
                chosen = t % arms
            else:
                if (t - opening) % batch == 0:
                    seen_pulls[:], seen_memory[:], seen_round = pulls, memory, t + 1
                for at in range(draws_needed):
                    first, second = philox(np.uint64(t) >> ONE, np.uint64(at), name, DECISIONS, *bandit.key)
                    draws[at] = uniform_from_word(second if t & 1 else first)
                chosen = choose(parameters, seen_pulls, seen_memory, seen_round, draws)
            gained = reward(bandit, name, np.uint64(chosen), np.uint64(pulls[chosen]))
            learn(parameters, pulls, memory, t + 1, chosen, gained)
            memory[chosen, 0] += gained
            pulls[chosen] += 1
            actions[run, t] = chosen
