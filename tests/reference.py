"""The paper's algorithms in plain Python, a dozen lines each: what the fast kernels are held against.

Written from the readings fixed for Algorithms 1 and 2, without a look at the kernels. Everything is a list of Python
floats; the tape alone is shared, since a demonstration is defined by it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unbandit.demonstrators.base import laid_out
from unbandit.instance import Instance
from unbandit.log.tallies import tally
from unbandit.tape import Stream, Tape


def rewards_of(instance: Instance, horizon: int, run: int, seed: int) -> list[list[float]]:
    """Return every reward that a run could meet: one list an arm, in order of its pulls."""
    arms = np.arange(len(instance))[:, None]
    return Tape(seed).reward(instance, run, arms, np.arange(1, horizon + 1)).tolist()


def largest(values: list[float], ties: str, seed: int, run: int, round: int) -> int:
    """Return the position of the largest value; ties go to the lowest arm or, with one draw a round, to any."""
    first = values.index(max(values))
    if ties == "lowest" or values.count(values[first]) == 1:
        return first
    tied = [arm for arm, value in enumerate(values) if value == values[first]]
    uniform = float(Tape(seed).uniform(run, 0, round, Stream.TIES))
    return tied[int(uniform * len(tied))]


def opening_of(rule: Any, arms: int, run: int, seed: int) -> list[int]:
    """Return the order in which a rule opens that is no index rule: as listed, or drawn."""
    bits = Tape(seed).words(run, np.arange(arms), 1, Stream.OPENINGS).tolist()
    return sorted(range(arms), key=lambda arm: bits[arm] if rule.opening == "random" else arm)


def delays_of(rule: Any, horizon: int, run: int, seed: int) -> list[int]:
    """Return by how many rounds the reward of each round is late: the same number, or one drawn for each."""
    if rule.random_delay is None:
        return [rule.delay] * horizon
    below = rule.random_delay.cumulative.tolist()
    draws = Tape(seed).uniform(run, 0, np.arange(1, horizon + 1), Stream.DELAYS).tolist()
    return [next(delay for delay, chance in enumerate(below) if draw < chance) for draw in draws]


def reference_ucb(rule: Any, instance: Instance, horizon: int, run: int = 0, seed: int = 0) -> list[int]:
    """Play Algorithm 2: pull the arm with the largest sample mean plus width, infinite before the first pull."""
    rewards, arms = rewards_of(instance, horizon, run, seed), range(len(instance))
    widths = [math.inf, *rule.width(np.arange(1.0, horizon + 1), horizon).tolist()]
    pulls, totals, index, actions = [0 for _ in arms], [0.0 for _ in arms], [math.inf for _ in arms], []
    for round in range(1, horizon + 1):
        arm = largest(index, rule.ties, seed, run, round)
        totals[arm] += rewards[arm][pulls[arm]]
        pulls[arm] += 1
        index[arm] = totals[arm] * (1 / pulls[arm]) + widths[pulls[arm]]
        actions.append(arm)
    return actions


def reference_sae(rule: Any, instance: Instance, horizon: int, run: int = 0, seed: int = 0) -> list[int]:
    """Play Algorithm 1: pull each active arm once an epoch, then drop those `2 C(epoch)` or more below the largest.

    The first arm with the largest mean stays in any case. Some rules test at some epochs only.
    """
    rule = rule.for_arms(len(instance))
    if rule.delay:
        return _delayed_sae(rule, instance, horizon, run, seed)
    rewards, active = rewards_of(instance, horizon, run, seed), opening_of(rule, len(instance), run, seed)
    widths = rule.width(np.arange(1.0, horizon + 1), horizon).tolist()
    totals, actions, epoch = [0.0 for _ in active], [], 0
    while len(actions) < horizon:
        actions += active
        if len(active) == 1 or len(actions) > horizon:  # nothing left to test, or an epoch cut short: no test
            continue
        for arm in active:
            totals[arm] += rewards[arm][epoch]
        means = {arm: totals[arm] * (1 / (epoch + 1)) for arm in active}
        leader = max(active, key=lambda arm: means[arm])
        if rule.tests(np.array([epoch + 1]))[0]:
            active = [arm for arm in active if arm == leader or means[arm] > means[leader] - 2 * widths[epoch]]
        epoch += 1
    return actions[:horizon]


def _delayed_sae(rule: Any, instance: Instance, horizon: int, run: int, seed: int) -> list[int]:
    """Play Algorithm 1 with late rewards: after every epoch, make each test whose rewards have all arrived."""
    rewards, active = rewards_of(instance, horizon, run, seed), opening_of(rule, len(instance), run, seed)
    widths = rule.width(np.arange(1.0, horizon + 1), horizon).tolist()
    delays = delays_of(rule, horizon + len(instance), run, seed)
    actions, ends = [], []  # how many rounds are over when the rewards of each epoch have arrived
    tested = 0
    while len(actions) < horizon:
        begin = len(actions)
        actions += active
        ends.append(max(round + 1 + delays[round] for round in range(begin, len(actions))))
        if len(active) == 1 or len(actions) > horizon:
            continue
        while len(active) > 1 and tested < len(ends) and ends[tested] <= len(actions):
            tested += 1
            means = {}
            for arm in active:
                total = 0.0
                for reward in rewards[arm][:tested]:
                    total += reward
                means[arm] = total * (1 / tested)
            leader = max(active, key=lambda arm: means[arm])
            if rule.tests(np.array([tested]))[0]:
                limit = means[leader] - 2 * widths[tested - 1]
                active = [arm for arm in active if arm == leader or means[arm] > limit]
    return actions[:horizon]


def reference_index(rule: Any, instance: Instance, horizon: int, run: int = 0, seed: int = 0) -> list[int]:
    """Play any index rule by asking it for the index of every arm, every `batch` rounds after the opening.

    The opening goes round the arms until `initial` rewards of each are known; of those that have had fewest pulls, any
    is as good as another. The reward of a round is known after its delay; of an arm's, the first to arrive come first.
    """
    rule = rule.for_arms(len(instance))
    rewards, arms = rewards_of(instance, horizon, run, seed), range(len(instance))
    delays, opening, actions = delays_of(rule, horizon, run, seed), None, list[int]()
    for round in range(1, horizon + 1):
        known = [arm for at, arm in enumerate(actions) if at + delays[at] + 1 < round]
        if opening is None and all(known.count(arm) >= rule.initial for arm in arms):
            opening = round - 1
        if opening is None:
            arm = largest([-actions.count(arm) for arm in arms], rule.ties, seed, run, round)
        elif (round - 1 - opening) % rule.batch == 0:
            index = []
            for each in arms:
                total, count = 0.0, known.count(each)
                for reward in rewards[each][:count]:
                    total += reward
                index.append(rule.index(total * (1 / count), count, round, horizon))
            arm = largest(index, rule.ties, seed, run, round)
        actions.append(arm)
    return actions


def reference_recent(rule: Any, instance: Instance, horizon: int, run: int = 0, seed: int = 0) -> list[int]:
    """Play an index rule that forgets: every round looks at all rewards of the window, or fades all of them."""
    rewards, arms, record = rewards_of(instance, horizon, run, seed), range(len(instance)), []
    window, discount = rule.memory
    faded_pulls, faded_totals, arm = [0.0 for _ in arms], [0.0 for _ in arms], 0
    for round in range(1, horizon + 1):
        pulls, totals = faded_pulls, faded_totals
        if window:
            recent = [[reward for arm, reward in record[-window:] if arm == each] for each in arms]
            pulls, totals = [float(len(each)) for each in recent], [math.fsum(each) for each in recent]
        growth = rule.exploration * math.log(max(sum(pulls), 1.0))
        index = [totals[arm] / pulls[arm] + math.sqrt(growth / pulls[arm]) if pulls[arm] else math.inf for arm in arms]
        if round <= len(arms) or (round - 1 - len(arms)) % rule.batch == 0:
            arm = largest(index, rule.ties, seed, run, round)
        reward = rewards[arm][sum(1 for each, _ in record if each == arm)]
        record.append((arm, reward))
        faded_pulls = [discount * faded_pulls[each] + (each == arm) for each in arms]
        faded_totals = [discount * faded_totals[each] + (reward if each == arm else 0.0) for each in arms]
    return [arm for arm, _ in record]


def reference_switching(actions: list[int], arms: int) -> tuple[list[int], list[int], list[int]]:
    """Read off the definition: the round of `i`'s last pull that is followed by one of the best, and both counts then.

    The counts are 0 where the best arm had not been pulled by then: such an arm was never reconsidered.
    """
    best = max(range(arms), key=actions.count)
    rounds, own, of_best = [0] * arms, [0] * arms, [0] * arms
    for round, arm in enumerate(actions, 1):
        if arm != best and best in actions[round:]:
            rounds[arm], of_best[arm] = round, actions[:round].count(best)
            own[arm] = actions[:round].count(arm) if of_best[arm] else 0
    return rounds, own, of_best


def reference_counts(actions: list[int], arms: int) -> tuple[list[int], list[int], list[int]]:
    """Count pulls, and find the round of each arm's first and of its last; 0 where there is none."""
    turns = [[round for round, pulled in enumerate(actions, 1) if pulled == arm] for arm in range(arms)]
    first, last = ([pick(each, default=0) for each in turns] for pick in (min, max))
    return [len(each) for each in turns], first, last


def reference_epochs(actions: list[int], arms: int) -> tuple[list[int], int, int]:
    """Pull the arms in turn, in the order of their first pulls, and note whose turn passes when another is pulled."""
    waiting, passed, broken = list(dict.fromkeys(actions)), [0] * arms, 0
    for round, arm in enumerate(actions, 1):
        if passed[arm]:
            broken = broken or round
            continue
        while waiting[0] != arm:
            passed[waiting.pop(0)] = round
        waiting.append(waiting.pop(0))
    return passed, broken, actions[broken - 1] if broken else 0


def switching_read(actions: np.ndarray[Any, Any], arms: int) -> list[np.ndarray[Any, Any]]:
    """Read one demonstration by the package's own kernel: pulls, switching rounds, and both counts then."""
    found = tally(actions, np.array([0, actions.size]), arms, "switching")
    pulls, _, last = found.counted
    own, of_best, rounds = found.at_switching
    rounds = rounds.copy()
    assert rounds[0, pulls[0].argmax()] == last[0, pulls[0].argmax()]
    rounds[0, pulls[0].argmax()] = 0
    return [part[0] for part in (pulls, rounds, own, of_best)]


def simulated(
    rule: Any, instance: Instance, horizon: int, runs: int = 1, seed: int = 0, first_run: int = 0
) -> np.ndarray[Any, Any]:
    """Simulate runs `first_run`, `first_run + 1`, ... by the package's own kernels, as an array runs x horizon."""
    rule, actions = rule.for_arms(len(instance)), np.empty((runs, horizon), np.min_scalar_type(len(instance) - 1))
    rule._simulate(laid_out(instance, horizon, seed), rule.parameters(horizon), first_run, actions)
    return actions
