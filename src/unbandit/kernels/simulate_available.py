"""Simulations of rules whose arms arrive late or are withdrawn, round by round, on the same tape as all others.

With every arm available throughout they play, action for action, what the loops of each kind play.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit, arrange, inverse_of, reward
from unbandit.kernels.compile import Integers, compiled, inlined
from unbandit.kernels.formula import choose, index_value, learn, width_value
from unbandit.kernels.rng import philox, uniform_from_word
from unbandit.kernels.simulate_index import TIES, IndexOptions
from unbandit.kernels.simulate_randomised import DECISIONS

ZERO, ONE = np.uint64(0), np.uint64(1)


class Spans(NamedTuple):
    """The rounds in which each arm can be pulled: from `first` to `last`, counted from 1."""

    first: Integers
    last: Integers


@inlined
def is_there(spans: Spans, arm: int, round: int) -> bool:
    """Return whether an arm can be pulled in a round."""
    return spans.first[arm] <= round and round <= spans.last[arm]


@inlined
def arms_there(spans: Spans, round: int, who: Integers) -> int:
    """List the arms that can be pulled in a round, in their order; return how many they are."""
    there = 0
    for arm in range(who.size):
        if is_there(spans, arm, round):
            who[there] = arm
            there += 1
    return there


@inlined
def arm_to_open(spans: Spans, pulls: Integers, known: Integers, initial: int, round: int) -> tuple[int, int]:
    """Return how many pulls the arms have that are to be opened now, and the lowest of them; -1 if there is none.

    While of some arm that can be pulled fewer than `initial` rewards are known, the one with the fewest pulls comes.
    """
    waits, fewest, chosen = False, np.int64(0), -1
    for arm in range(pulls.size):
        if is_there(spans, arm, round):
            waits = waits or known[arm] < initial
            if chosen < 0 or pulls[arm] < fewest:
                fewest, chosen = pulls[arm], arm
    return fewest, chosen if waits else -1


@compiled
def pull_available_index(
    bandit: Bandit, parameters: Any, first_run: int, options: IndexOptions, spans: Spans, actions: NDArray[Any]
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with demonstrations of an index rule: a new arm is opened when it appears.

    That ends a batch, and so does the withdrawal of its arm: the rule decides anew.
    """
    arms, delay = bandit.means.size, options.delay
    pulls, known = np.empty(arms, np.int64), np.empty(arms, np.int64)
    totals, index = np.empty(arms), np.empty(arms)
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        for arm in range(arms):
            pulls[arm], known[arm], totals[arm] = 0, 0, 0.0
        chosen, left = -1, 0  # rounds of the batch
        for t in range(actions.shape[1]):
            if t > delay:
                learnt = np.int64(actions[run, t - 1 - delay])
                totals[learnt] += reward(bandit, name, np.uint64(learnt), np.uint64(known[learnt]))
                known[learnt] += 1
            fewest, opened = arm_to_open(spans, pulls, known, options.initial, t + 1)
            if opened < 0 and left > 0 and is_there(spans, chosen, t + 1):
                left -= 1
                pulls[chosen] += 1
                actions[run, t] = chosen
                continue
            chosen, tied, left = -1, 0, 0 if opened >= 0 else options.batch - 1
            for arm in range(arms):
                index[arm] = -np.inf
                if not is_there(spans, arm, t + 1):
                    continue
                if opened >= 0:
                    if pulls[arm] > fewest:
                        continue
                    index[arm] = np.inf
                else:
                    n = np.uint64(known[arm])
                    index[arm] = index_value(
                        parameters, totals[arm] * inverse_of(bandit.inverse, n), n, np.uint64(t + 1)
                    )
                if chosen < 0 or index[arm] > index[chosen]:
                    chosen, tied = arm, 1
                elif index[arm] == index[chosen]:
                    tied += 1
            if options.random_ties and tied > 1:
                first, second = philox(np.uint64(t) >> ONE, ZERO, name, TIES, bandit.key[0], bandit.key[1])
                ahead = np.int64(uniform_from_word(second if t & 1 else first) * tied)  # of the tied arms to skip
                largest = index[chosen]
                while ahead > 0 or index[chosen] != largest:
                    if index[chosen] == largest:
                        ahead -= 1
                    chosen += 1
            pulls[chosen] += 1
            actions[run, t] = chosen


@compiled
def draw_available(
    bandit: Bandit, parameters: Any, first_run: int, initial: int, columns: int, one_draw: bool, spans: Spans,
    actions: NDArray[Any],
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with demonstrations of a randomised rule, which sees the arms that are there.

    Its probabilities are those of a bandit with these arms alone; an arm keeps what was learnt of it.
    """
    arms = bandit.means.size
    pulls, memory = np.empty(arms, np.int64), np.empty((arms, columns))
    seen_pulls, seen_memory, draws, who = (
        np.empty(arms, np.int64), np.empty((arms, columns)), np.empty(arms), np.empty(arms, np.int64),
    )  # fmt: skip
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        name = np.uint64(first_run + run)
        for arm in range(arms):
            pulls[arm] = 0
            for column in range(columns):
                memory[arm, column] = 0.0
        for t in range(actions.shape[1]):
            _, chosen = arm_to_open(spans, pulls, pulls, initial, t + 1)
            if chosen < 0:
                there = 0
                for arm in range(arms):
                    if is_there(spans, arm, t + 1):
                        who[there], seen_pulls[there] = arm, pulls[arm]
                        for column in range(columns):
                            seen_memory[there, column] = memory[arm, column]
                        stream = ZERO if one_draw else np.uint64(arm)
                        first, second = philox(
                            np.uint64(t) >> ONE, stream, name, DECISIONS, bandit.key[0], bandit.key[1]
                        )
                        draws[there] = uniform_from_word(second if t & 1 else first)
                        there += 1
                chosen = who[choose(parameters, seen_pulls[:there], seen_memory[:there], t + 1, draws[:there])]
            gained = reward(bandit, name, np.uint64(chosen), np.uint64(pulls[chosen]))
            learn(parameters, pulls, memory, t + 1, chosen, gained)
            memory[chosen, 0] += gained
            pulls[chosen] += 1
            actions[run, t] = chosen


@compiled
def eliminate_available(
    bandit: Bandit, parameters: Any, first_run: int, spans: Spans, actions: NDArray[Any]
) -> None:  # fmt: skip
    """Fill `actions` (runs x horizon) with demonstrations of an elimination rule: a new arm joins the next epoch.

    Arms have pulls of their own, so an arm goes if its upper bound is at most the largest lower bound: at equal pulls
    that is two widths below the largest mean. Tests compare the arms that can still be pulled in the next epoch. Where
    no arm is left, all that were eliminated and can be pulled come back.
    """
    arms, horizon = bandit.means.size, actions.shape[1]
    pulls, totals, gone = np.empty(arms, np.int64), np.empty(arms), np.empty(arms, np.bool_)
    members = np.empty(arms, np.int64)
    for run in range(actions.shape[0]):
        arrange(bandit, run)
        name, t = np.uint64(first_run + run), 0
        for arm in range(arms):
            pulls[arm], totals[arm], gone[arm] = 0, 0.0, False
        while t < horizon:
            count = 0
            for comeback in range(2):
                for arm in range(arms):
                    if is_there(spans, arm, t + 1) and (comeback == 1 or not gone[arm]):
                        members[count], gone[arm] = arm, False
                        count += 1
                if count > 0:
                    break
            # --- an epoch: every member once, unless it is withdrawn before its turn ---
            whole = True
            for position in range(count):
                arm = members[position]
                if t == horizon:
                    whole = False
                    break
                if spans.last[arm] <= t:
                    continue
                totals[arm] += reward(bandit, name, np.uint64(arm), np.uint64(pulls[arm]))
                pulls[arm] += 1
                actions[run, t] = arm
                t += 1
            if not whole:
                break
            # --- its test ---
            leader, lower, mean_of_leader, width_of_leader = -1, -np.inf, 0.0, 0.0
            for position in range(count):
                arm = members[position]
                if spans.last[arm] > t:
                    n = np.uint64(pulls[arm])
                    mean, width = totals[arm] * inverse_of(bandit.inverse, n), width_value(parameters, n)
                    if leader < 0 or mean - width > lower:
                        leader, lower, mean_of_leader, width_of_leader = arm, mean - width, mean, width
            for position in range(count):
                arm = members[position]
                if spans.last[arm] > t and arm != leader:
                    n = np.uint64(pulls[arm])
                    mean, width = totals[arm] * inverse_of(bandit.inverse, n), width_value(parameters, n)
                    gone[arm] = not mean > mean_of_leader - (width + width_of_leader)
