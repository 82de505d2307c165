"""The posterior by counting: every sequence of rewards of 0 and 1 that a short record may hide, one after the other.

What the particle filters are held against. The rules are asked in plain Python, round by round.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from unbandit.demonstrators import EliminationRule, IndexRule
from unbandit.kernels.formula import learn, probability

Spans = dict[int, tuple[int, float]]  # the first and last round of arms that are not there throughout


def chance_of_actions(
    rule: Any, actions: list[int], rewards: list[int], arms: int, horizon: int, known: dict[Any, float],
    spans: Spans | None = None,
) -> float:  # fmt: skip
    """Return how likely a rule is to pull these arms, if they give these rewards.

    Probabilities of randomised rules are taken from `known`, and put there: sequences share most of their states.
    """
    if spans is not None:
        return _chance_while_there(rule, actions, rewards, arms, horizon, known, spans)
    if isinstance(rule, EliminationRule):
        return float(_eliminates(rule, actions, rewards, arms, horizon))
    pulls, memory = np.zeros(arms, np.int64), np.zeros((arms, getattr(rule, "columns", 1)))
    parameters = rule.parameters(horizon)
    chance, opening = 1.0, rule.initial * arms + (rule.delay if rule.initial else 0)
    if isinstance(rule, IndexRule) and rule.ties == "random":  # then each turn of the opening has an order of its own
        whole, rest = divmod(opening, arms)
        chance /= math.factorial(arms) ** whole * math.perm(arms, rest)
    for at, arm in enumerate(actions):
        if at > rule.delay:  # the reward of so many rounds ago is known now
            before, reward = actions[at - 1 - rule.delay], float(rewards[at - 1 - rule.delay])
            if not isinstance(rule, IndexRule):
                learn(parameters, pulls, memory, at - rule.delay, before, reward)
            memory[before, 0] += reward
            pulls[before] += 1
        if at >= opening:
            if (at - opening) % rule.batch == 0:
                seen, seen_memory, now = pulls.copy(), memory.copy(), at + 1
                held = None
            if isinstance(rule, IndexRule):
                means = [seen_memory[k, 0] * (1 / seen[k]) for k in range(arms)]
                index = [rule.index(means[k], int(seen[k]), now, horizon) for k in range(arms)]
                tied = [k for k in range(arms) if index[k] == max(index)]
                if held is not None:
                    chance *= arm == held
                else:
                    chance *= (arm in tied) / len(tied) if rule.ties == "random" else arm == tied[0]
                held = arm
            else:
                state = (seen.tobytes(), seen_memory.tobytes(), now, arm)
                if state not in known:
                    known[state] = probability(parameters, seen, seen_memory, now, arm)
                chance *= known[state]
        if chance == 0:
            return 0.0
    return float(chance)


def _chance_while_there(
    rule: Any, actions: list[int], rewards: list[int], arms: int, horizon: int, known: dict[Any, float], spans: Spans
) -> float:
    """Return the same where arms arrive late or are withdrawn: an arm is opened first, and others are not looked at."""
    pulls, memory = np.zeros(arms, np.int64), np.zeros((arms, getattr(rule, "columns", 1)))
    parameters, chance, by_chance = rule.parameters(horizon), 1.0, not isinstance(rule, IndexRule)
    for at, arm in enumerate(actions):
        limits = [spans.get(each, (1, math.inf)) for each in range(arms)]
        there = [each for each, (first, last) in enumerate(limits) if first <= at + 1 <= last]
        fewest = min(pulls[there])
        shown = [each for each in there if pulls[each] == fewest]
        if fewest >= rule.initial and by_chance:
            state = (pulls.tobytes(), memory.tobytes(), at, arm)
            if state not in known:
                known[state] = probability(parameters, pulls[there], memory[there], at + 1, there.index(arm))
            chance *= known[state]
        elif fewest >= rule.initial:
            index = {k: rule.index(memory[k, 0] * (1 / pulls[k]), int(pulls[k]), at + 1, horizon) for k in there}
            shown = [each for each in there if index[each] == max(index.values())]
        if fewest < rule.initial or not by_chance:
            chance *= (arm in shown) / len(shown) if getattr(rule, "ties", "") == "random" else arm == shown[0]
        if chance == 0:
            return 0.0
        if by_chance:
            learn(parameters, pulls, memory, at + 1, arm, float(rewards[at]))
        memory[arm, 0] += rewards[at]
        pulls[arm] += 1
    return float(chance)


def _eliminates(rule: Any, actions: list[int], rewards: list[int], arms: int, horizon: int) -> bool:
    """Tell whether an elimination rule pulls these arms, if they give these rewards."""
    active, given, ends, at, epoch = list(range(arms)), [[] for _ in range(arms)], [], 0, 0
    while at < len(actions):
        for arm in active:
            if at == len(actions):
                return True
            if actions[at] != arm:
                return False
            given[arm].append(rewards[at])
            at += 1
        ends.append(at)
        while epoch < len(ends) and ends[epoch] + rule.delay <= at:  # every test whose rewards are all known
            epoch += 1
            if len(active) > 1 and rule.tests(np.array([epoch]))[0]:
                width = float(rule.width(np.array([float(epoch)]), horizon)[0])
                means = {arm: float(sum(given[arm][:epoch])) * (1 / epoch) for arm in active}
                leader = max(active, key=lambda arm: means[arm])
                active = [arm for arm in active if means[arm] > means[leader] - 2 * width or arm == leader]
    return True


def exact_posterior(
    rule: Any, records: list[list[int]], arms: int, prior: tuple[float, float], horizon: int,
    known: dict[int, int] | None = None, spans: Spans | None = None,
) -> tuple[float, list[float]]:  # fmt: skip
    """Return the logarithm of the records' probability given the known rewards, and every mean's expectation.

    `known` has rewards by their place in all records, put one after the other.
    """
    actions = [arm for record in records for arm in record]
    first, second = prior
    total, given, expected = 0.0, 0.0, np.zeros(arms)
    chances: dict[Any, float] = {}
    for rewards in itertools.product((0, 1), repeat=len(actions)):
        if any(rewards[at] != value for at, value in (known or {}).items()):
            continue
        ones, pulls = np.zeros(arms), np.zeros(arms)
        weight = 1.0
        for arm, reward in zip(actions, rewards, strict=True):
            chance = (first + ones[arm]) / (first + second + pulls[arm])
            weight *= chance if reward else 1 - chance
            ones[arm] += reward
            pulls[arm] += 1
        given += weight
        start = 0
        for record in records:
            own = list(rewards[start : start + len(record)])
            weight *= chance_of_actions(rule, record, own, arms, horizon, chances, spans)
            start += len(record)
        total += weight
        expected += weight * (first + ones) / (first + second + pulls)
    return math.log(total / given) if total else -math.inf, (expected / total).tolist() if total else []
