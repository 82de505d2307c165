"""Simulations of randomised rules, round by round: the rule draws an arm from its own probabilities, and learns."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.arrivals import Arrivals, all_known, arrivals_for, forget_arrivals, send_reward
from unbandit.kernels.bandit import Bandit, arrange, draw_opening, reward
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
    order: Integers  # of the opening; empty if arms come as listed


@inlined
def play_by_chance(
    bandit: Bandit, parameters: Any, name: np.uint64, options: RandomisedOptions, state: RandomisedState,
    arrivals: Arrivals | None, actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`; without `arrivals`, their code is not compiled."""
    pulls, memory, draws, seen_pulls, seen_memory, order = state
    arms, columns = memory.shape
    delay, by_chance, seen_round, chosen = options.delay, False, 0, 0
    if arrivals is not None:
        by_chance = arrivals.cumulative.size > 0
        forget_arrivals(arrivals)
    opening = (actions.size if by_chance else options.initial * arms + delay) if options.initial > 0 else 0
    for arm in range(arms):
        pulls[arm], draws[arm] = 0, 0.0
        for column in range(columns):
            memory[arm, column] = 0.0
    for t in range(actions.size):
        # --- the reward of `delay + 1` rounds ago becomes known, or those that arrive now ---
        source = np.int64(t - 1 - delay)
        if arrivals is not None and by_chance:
            source = np.int64(arrivals.first[t])
        while source >= 0:
            learnt = np.int64(actions[source]) if by_chance or delay > 0 else np.int64(chosen)
            gained = reward(bandit, name, np.uint64(learnt), np.uint64(pulls[learnt]))
            learn(parameters, pulls, memory, source + 1, learnt, gained)
            memory[learnt, 0] += gained
            pulls[learnt] += 1
            following = np.int64(-1)
            if arrivals is not None and by_chance:
                following = np.int64(arrivals.following[source])
            source = following
        if arrivals is not None and by_chance and t < opening and all_known(pulls, options.initial):
            opening = t
        if t < opening:
            chosen = order[t % arms] if order.size > 0 else np.int64(t % arms)
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
        if arrivals is not None and by_chance:
            send_reward(bandit, name, arrivals, t)


def room_to_draw(
    arms: int, columns: int, horizon: int, delays: Numbers, *, shuffled: bool
) -> tuple[RandomisedState, Arrivals | None]:
    """Return what a run fills in; `delays` is the distribution of random delays, empty where the delay is fixed.

    If `shuffled`, every run draws the order of its opening.
    """
    state = RandomisedState(
        np.empty(arms, np.int64), np.empty((arms, columns)), np.empty(arms),
        np.empty(arms, np.int64), np.empty((arms, columns)), np.empty(arms if shuffled else 0, np.int64),
    )  # fmt: skip
    return state, arrivals_for(delays, horizon)


@compiled
def draw_actions(
    bandit: Bandit, parameters: Any, first_run: int, options: RandomisedOptions, state: RandomisedState,
    arrivals: Arrivals | None, actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ...; see `room_to_draw`."""
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        draw_opening(bandit, np.uint64(first_run + run), state.order)
        play_by_chance(bandit, parameters, np.uint64(first_run + run), options, state, arrivals, actions[run])
