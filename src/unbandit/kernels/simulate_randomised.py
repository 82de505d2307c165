"""Simulations of randomised rules, round by round: the rule draws an arm from its own probabilities, and learns."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit, arrange, reward
from unbandit.kernels.compile import Integers, Numbers, compiled, inlined
from unbandit.kernels.formula import choose, learn
from unbandit.kernels.rng import philox, uniform_from_word

ONE = np.uint64(1)
DECISIONS = np.uint64(1)  # the tape's stream 1


class RandomisedOptions(NamedTuple):
    """How a randomised rule decides. Each round draws anew from what the rule saw at its last look at the record."""

    columns: int  # how many numbers an arm remembers
    draws_needed: int  # how many uniform numbers a decision takes
    initial: int  # pulls of each arm, in turn, before the rule decides
    batch: int  # rounds from one look to the next
    delay: int = 0  # rounds by which the reward of a pull is known later than in the next one


class RandomisedState(NamedTuple):
    """Working arrays of a simulation, one row per arm: what is known now, the draws, and what was at the last look."""

    pulls: Integers
    memory: Numbers
    draws: Numbers
    seen_pulls: Integers
    seen_memory: Numbers


@inlined
def play_by_chance(
    bandit: Bandit, parameters: Any, name: np.uint64, options: RandomisedOptions, state: RandomisedState,
    actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`."""
    pulls, memory, draws, seen_pulls, seen_memory = state
    arms, columns = memory.shape
    delay, seen_round, chosen = options.delay, 0, 0
    opening = options.initial * arms + delay if options.initial > 0 else 0
    for arm in range(arms):
        pulls[arm], draws[arm] = 0, 0.0
        for column in range(columns):
            memory[arm, column] = 0.0
    for t in range(actions.size):
        if t > delay:  # the reward of `delay + 1` rounds ago becomes known
            learnt = np.int64(actions[t - 1 - delay]) if delay > 0 else np.int64(chosen)
            gained = reward(bandit, name, np.uint64(learnt), np.uint64(pulls[learnt]))
            learn(parameters, pulls, memory, t - delay, learnt, gained)
            memory[learnt, 0] += gained
            pulls[learnt] += 1
        if t < opening:
            chosen = t % arms
        else:
            if (t - opening) % options.batch == 0:
                seen_round = t + 1
                for arm in range(arms):
                    seen_pulls[arm] = pulls[arm]
                    for column in range(columns):
                        seen_memory[arm, column] = memory[arm, column]
            for at in range(options.draws_needed):
                first, second = philox(
                    np.uint64(t) >> ONE, np.uint64(at), name, DECISIONS, bandit.key[0], bandit.key[1]
                )
                draws[at] = uniform_from_word(second if t & 1 else first)
            chosen = choose(parameters, seen_pulls, seen_memory, seen_round, draws)
        actions[t] = chosen


@compiled
def draw_actions(
    bandit: Bandit, parameters: Any, first_run: int, options: RandomisedOptions, actions: NDArray[Any]
) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ..."""
    arms = bandit.means.size
    state = RandomisedState(
        np.empty(arms, np.int64), np.empty((arms, options.columns)), np.empty(arms),
        np.empty(arms, np.int64), np.empty((arms, options.columns)),
    )  # fmt: skip
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        play_by_chance(bandit, parameters, np.uint64(first_run + run), options, state, actions[run])
