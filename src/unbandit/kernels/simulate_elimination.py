"""Simulations of successive elimination: pull every active arm once per epoch, then drop the clearly worse ones."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.arrivals import drawn_delay
from unbandit.kernels.bandit import REWARDS, Bandit, arrange, draw_opening, inverse_of, reward, reward_from_word
from unbandit.kernels.compile import Integers, Marks, Numbers, called, compiled, inlined
from unbandit.kernels.formula import width_value
from unbandit.kernels.rng import philox

ONE = np.uint64(1)


class EliminationState(NamedTuple):
    """Working arrays of a simulation, one place per arm."""

    totals: Numbers  # the sum of an arm's rewards
    spare: Numbers  # its reward in the next even epoch: a block of random bits serves two epochs
    active: Integers  # the arms that are still active, in their order
    ahead: Integers  # for an arm just eliminated, the number of arms before it that stay; -1 for others
    order: Integers  # the order of the first epoch, and so of all; empty if arms are as listed


@inlined
def _epoch(bandit: Bandit, parameters: Any, name: np.uint64, epoch: int, left: int, state: EliminationState) -> int:
    """Pull the first `left` of the active arms once each, and keep those that pass the test; return how many.

    An arm goes if its sample mean is at most the largest one less twice the width. The first arm with the largest mean
    always stays; at an infinite width, which stands for no test, all do.
    """
    totals, spare, active, ahead, _ = state
    inverse = inverse_of(bandit.inverse, np.uint64(epoch))
    width = width_value(parameters, np.uint64(epoch))
    largest, leader = -np.inf, 0
    for position in range(left):
        arm = active[position]
        if epoch & 1:
            first, second = philox(np.uint64(epoch) >> ONE, np.uint64(arm), name, REWARDS, bandit.key[0], bandit.key[1])
            reward = reward_from_word(first, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)
            spare[arm] = reward_from_word(second, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)
        else:
            reward = spare[arm]
        totals[arm] += reward
        mean = totals[arm] * inverse
        if mean > largest:
            largest, leader = mean, arm
    kept = 0
    for position in range(left):
        arm = active[position]
        active[kept] = arm
        if totals[arm] * inverse > largest - 2 * width or arm == leader:
            kept += 1
        else:
            ahead[arm] = kept
    return kept


@inlined
def play_elimination(
    bandit: Bandit, parameters: Any, name: np.uint64, state: EliminationState, actions: NDArray[Any]
) -> None:
    """Fill `actions` with demonstration `name`."""
    arms, horizon = bandit.means.size, actions.size
    for arm in range(arms):
        state.totals[arm], state.active[arm] = 0.0, state.order[arm] if state.order.size > 0 else arm
    left, t, epoch = arms, 0, 0
    while left > 1 and t + left <= horizon:
        epoch += 1
        for position in range(left):
            actions[t + position] = state.active[position]
        t += left
        left = _epoch(bandit, parameters, name, epoch, left, state)
    for later in range(t, horizon):  # one arm left, or an epoch cut short, which has no test
        actions[later] = state.active[(later - t) % left]


@inlined
def play_delayed_elimination(
    bandit: Bandit, parameters: Any, name: np.uint64, delay: int, delays: Numbers, ready: Integers,
    state: EliminationState, actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` with demonstration `name`, every reward being known `delay` rounds late, or after random `delays`.

    The test of an epoch is made at the end of the first one by which all its rewards are known: that of epoch `tested +
    1` when `T(tested + 1) <= t - delay`, where `T(e)` is the round in which epoch `e` ended. Of random delays `ready`
    has for each epoch how many rounds are over when its last reward arrives, arms that are gone by then included.
    """
    arms, horizon = bandit.means.size, actions.size
    totals, _, active, last, order = state  # `last` has the last epoch of an arm that is gone, 0 for others
    for arm in range(arms):
        totals[arm], active[arm], last[arm] = 0.0, order[arm] if order.size > 0 else arm, 0
    left, t, epoch, tested, ended = arms, 0, 0, 0, 0
    while left > 1 and t + left <= horizon:
        epoch += 1
        for position in range(left):
            actions[t + position] = active[position]
        if delays.size > 0:
            ready[epoch] = 0
            for s in range(t, t + left):
                ready[epoch] = max(ready[epoch], s + 1 + drawn_delay(bandit, name, delays, s))
        t += left
        while left > 1 and tested < epoch:
            following = ended
            for arm in range(arms):
                following += 1 if last[arm] == 0 or last[arm] > tested else 0
            if (ready[tested + 1] > t) if delays.size > 0 else (following > t - delay):
                break
            ended, tested = following, tested + 1
            inverse, width = inverse_of(bandit.inverse, np.uint64(tested)), width_value(parameters, np.uint64(tested))
            largest, leader = -np.inf, 0
            for position in range(left):
                arm = active[position]
                totals[arm] += reward(bandit, name, np.uint64(arm), np.uint64(tested - 1))
                if totals[arm] * inverse > largest:
                    largest, leader = totals[arm] * inverse, arm
            kept = 0
            for position in range(left):
                arm = active[position]
                active[kept] = arm
                if totals[arm] * inverse > largest - 2 * width or arm == leader:
                    kept += 1
                else:
                    last[arm] = epoch
            left = kept
    for later in range(t, horizon):
        actions[later] = active[(later - t) % left]


@inlined
def count_elimination(
    bandit: Bandit, parameters: Any, name: np.uint64, horizon: int, state: EliminationState, pulls: NDArray[Any],
    gone: Marks,
) -> None:  # fmt: skip
    """Fill in the pulls of each arm, and whether the actions show that it was eliminated.

    They show it once its turn has come again and another arm was pulled instead: one round after the arms that stay
    and come before it have been pulled in the next epoch.
    """
    arms = bandit.means.size
    for arm in range(arms):
        state.totals[arm], state.active[arm] = 0.0, state.order[arm] if state.order.size > 0 else arm
        state.ahead[arm], gone[arm] = -1, False
    left, t, epoch = arms, 0, 0
    while left > 1 and t + left <= horizon:
        epoch += 1
        t, before = t + left, left
        for position in range(left):
            pulls[state.active[position]] = epoch
        left = _epoch(bandit, parameters, name, epoch, left, state)
        if left < before:
            for arm in range(arms):
                gone[arm] |= state.ahead[arm] >= 0 and t + state.ahead[arm] < horizon
                state.ahead[arm] = -1
    for position in range(left):
        rest = horizon - t - position  # of the rounds that are left, this arm has every `left`-th
        pulls[state.active[position]] = epoch + (rest + left - 1) // left if rest > 0 else epoch


@called
def _new_state(arms: int, shuffled: bool) -> EliminationState:
    order = np.empty(arms if shuffled else 0, np.int64)
    return EliminationState(np.empty(arms), np.empty(arms), np.empty(arms, np.int64), np.empty(arms, np.int64), order)


@compiled
def eliminate(
    bandit: Bandit, parameters: Any, first_run: int, delay: int, delays: Numbers, shuffled: bool, actions: NDArray[Any]
) -> None:
    """Fill `actions` (runs x horizon) with the demonstrations `first_run`, `first_run + 1`, ...

    `delays` is the distribution of random delays (`Arrivals.cumulative`), empty where the delay is fixed.
    If `shuffled`, every run draws the order of its arms.
    """
    state = _new_state(bandit.means.size, shuffled)
    ready = np.zeros(actions.shape[1] + 1 if delays.size > 0 else 0, np.int64)
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        draw_opening(bandit, name, state.order)
        if delay > 0 or delays.size > 0:
            play_delayed_elimination(bandit, parameters, name, delay, delays, ready, state, actions[run])
        else:
            play_elimination(bandit, parameters, name, state, actions[run])


@compiled
def count_eliminations(
    bandit: Bandit, parameters: Any, first_run: int, horizon: int, shuffled: bool, pulls: Integers, gone: Marks
) -> None:
    """Fill in, one row per run, the pulls of each arm, and whether the actions show that it was eliminated."""
    state = _new_state(bandit.means.size, shuffled)
    for run in range(pulls.shape[0]):
        arrange(bandit, run)
        draw_opening(bandit, np.uint64(first_run + run), state.order)
        count_elimination(bandit, parameters, np.uint64(first_run + run), horizon, state, pulls[run], gone[run])
