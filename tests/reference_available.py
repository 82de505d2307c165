"""Rules whose arms arrive late or are withdrawn, in plain Python: what the fast kernels are held against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from reference import largest, rewards_of

from unbandit.demonstrators import EliminationRule, IndexRule
from unbandit.instance import Instance
from unbandit.tape import Stream, Tape

Spans = dict[int, tuple[int, float]]


def reference_available(rule: Any, instance: Instance, horizon: int, spans: Spans, run: int, seed: int) -> list[int]:
    """Play any rule; `spans` has the first and last round of arms that are not there throughout."""
    rule = rule.for_arms(len(instance))
    rewards = rewards_of(instance, horizon, run, seed)

    def there(round: int) -> list[int]:
        limits = [spans.get(arm, (1, math.inf)) for arm in range(len(instance))]
        return [arm for arm, (first, last) in enumerate(limits) if first <= round <= last]

    play = _elimination if isinstance(rule, EliminationRule) else _index if isinstance(rule, IndexRule) else _chance
    return play(rule, rewards, horizon, there, run, seed)


def _mean(rewards: list[float], count: int) -> float:
    total = 0.0
    for reward in rewards[:count]:
        total += reward
    return total * (1 / count)


def _to_open(rule: Any, there: list[int], actions: list[int], known: list[int]) -> list[int]:
    """Return the arms that are pulled before the rule decides: those with the fewest pulls, while one is not known."""
    counts = {arm: actions.count(arm) for arm in there}
    waits = any(known.count(arm) < rule.initial for arm in there)
    return [arm for arm in there if counts[arm] == min(counts.values())] if waits else []


def _index(rule: Any, rewards: Any, horizon: int, there: Any, run: int, seed: int) -> list[int]:
    actions: list[int] = []
    decided, delay = 0, rule.fixed_delay  # the round of the last decision; 0 in an opening
    for round in range(1, horizon + 1):
        arms, known = there(round), actions[: max(round - 1 - delay, 0)]
        new = _to_open(rule, arms, actions, known)
        if not new and decided and round < decided + rule.batch and actions[-1] in arms:
            actions.append(actions[-1])
            continue
        decided = 0 if new else round
        values = [
            rule.index(_mean(rewards[arm], known.count(arm)), known.count(arm), round, horizon) for arm in arms
        ] if not new else [math.inf for _ in new]  # fmt: skip
        actions.append((new or arms)[largest(values, rule.ties, seed, run, round)])
    return actions


def _chance(rule: Any, rewards: Any, horizon: int, there: Any, run: int, seed: int) -> list[int]:
    every, parameters, actions = len(rewards), rule.parameters(horizon), []
    pulls, memory = np.zeros(every, np.int64), np.zeros((every, rule.columns))
    uniforms = Tape(seed).uniform(run, np.arange(every), np.arange(1, horizon + 1)[:, None], Stream.DECISIONS)
    for round in range(1, horizon + 1):
        arms = np.array(there(round))
        new = _to_open(rule, arms.tolist(), actions, actions)
        draws = uniforms[round - 1][[0] if rule.one_draw else arms]
        arm = new[0] if new else int(arms[rule.choose(parameters, pulls[arms], memory[arms], round, draws)])
        reward = rewards[arm][pulls[arm]]
        rule.learn(parameters, pulls, memory, round, arm, reward)
        memory[arm, 0] += reward
        pulls[arm] += 1
        actions.append(arm)
    return actions


def _elimination(rule: Any, rewards: Any, horizon: int, there: Any, run: int, seed: int) -> list[int]:
    """Pull each active arm once an epoch; drop those whose upper bound is at most another's lower bound."""
    actions: list[int] = []
    gone: set[int] = set()
    while len(actions) < horizon:
        now = there(len(actions) + 1)
        active = [arm for arm in now if arm not in gone]
        if not active:
            gone, active = gone - set(now), now
        for arm in active:
            if len(actions) < horizon and arm in there(len(actions) + 1):
                actions.append(arm)
        if len(actions) == horizon:
            break
        tested = [arm for arm in active if arm in there(len(actions) + 1)]
        means = {arm: _mean(rewards[arm], actions.count(arm)) for arm in tested}
        width = {arm: float(rule.width(np.array([float(actions.count(arm))]), horizon)[0]) for arm in tested}
        if tested:
            leader = max(tested, key=lambda arm: means[arm] - width[arm])
            limit = {arm: means[leader] - (width[arm] + width[leader]) for arm in tested}
            gone |= {arm for arm in tested if arm != leader and not means[arm] > limit[arm]}
    return actions


def reference_hesitation(
    actions: list[int], arm: int, other: int, initial: int, until: int, since: int
) -> tuple[int, int, int, int]:
    """Return own count, the other's count and the round of an arm's last turn before the other's last, and that round.

    Turns are pulls after the openings of both; those of the arm also after round `since`. Zeros where there is none.
    """
    rounds = {each: [t + 1 for t, a in enumerate(actions[:until]) if a == each] for each in (arm, other)}
    if min(len(rounds[arm]), len(rounds[other])) < initial:
        return 0, 0, 0, 0
    both = max(rounds[arm][initial - 1], rounds[other][initial - 1])
    ends = [t for t in rounds[other] if t > both]
    if not ends:
        return 0, 0, 0, 0
    own = [t for t in rounds[arm] if t < ends[-1]]
    turns = [t for t in own if t > max(both, since)]
    at = turns[-1] if turns else 0
    return len(own), len([t for t in rounds[other] if t < at]), at, ends[-1]


def reference_decisions(
    actions: list[int], spans: Spans, arms: int, initial: int, batch: int, delay: int
) -> tuple[list[int], int]:
    """Return for each round the round whose decision it follows (0 for openings), and the first that cannot be; or 0.

    A batch goes on from its decision, unless an arm is to be opened or its own arm is withdrawn.
    """
    decided, broken = list[int](), 0
    for round, arm in enumerate(actions, 1):
        before, known = actions[: round - 1], actions[: max(round - 1 - delay, 0)]
        there = [each for each in range(arms) if spans.get(each, (1, math.inf))[0] <= round]
        there = [each for each in there if round <= spans.get(each, (1, math.inf))[1]]
        since = decided[-1] if decided else 0
        if any(known.count(each) < initial for each in there):
            decided.append(0)
            right = before.count(arm) == min(before.count(each) for each in there)
        elif since and round < since + batch and before[-1] in there:
            decided.append(since)
            right = arm == before[-1]
        else:
            decided.append(round)
            right = True
        broken = broken or (0 if right else round)
    return decided, broken


def reference_looks(
    actions: list[int], decided: list[int], arm: int, other: int, both: int, since: int, delay: int
) -> tuple[int, ...]:
    """Return what was known when an arm gave way to another: own count, the other's and the round; the same after that.

    The other's last decision is the one that `after` tells of; before it, the arm was last decided for with `own` known
    rewards, for the first time. An arm pulled again since is told of by the first decision for it after the other's.
    """
    turns = [t for t in range(1, len(actions) + 1) if decided[t - 1] and t > both]
    of_other = [t for t in turns if actions[t - 1] == other]
    of_arm = [t for t in turns if actions[t - 1] == arm and t > since]

    def known(t: int) -> tuple[int, int, int]:
        seen = actions[: max(decided[t - 1] - 1 - delay, 0)]
        return seen.count(arm), seen.count(other), decided[t - 1]

    after = known(of_other[-1]) if of_other else (0, 0, 0)
    later = [t for t in of_arm if of_other and t > of_other[-1]]
    earlier = [t for t in of_arm if of_other and t < of_other[-1] and known(t)[0] > 0]
    same = [t for t in earlier if known(t)[0] == known(earlier[-1])[0]]
    before = known(later[0]) if later else known(same[0]) if same else (0, 0, 0)
    return *before, *after
