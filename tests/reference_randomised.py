"""Randomised rules in plain Python: what the fast kernel is held against."""

from __future__ import annotations

from typing import Any

import numpy as np
from reference import delays_of, opening_of, rewards_of

from unbandit.instance import Instance
from unbandit.tape import Stream, Tape


def reference_randomised(rule: Any, instance: Instance, horizon: int, run: int = 0, seed: int = 0) -> list[int]:
    """Play any randomised rule: in turn at first, then by what it saw at its last look, with one draw an arm."""
    rewards, arms, parameters = rewards_of(instance, horizon, run, seed), len(instance), rule.parameters(horizon)
    pulls, memory, actions = np.zeros(arms, np.int64), np.zeros((arms, rule.columns)), []
    delays, opening = delays_of(rule, horizon, run, seed), None if rule.initial else 0
    uniforms = Tape(seed).uniform(run, np.arange(arms), np.arange(1, horizon + 1)[:, None], Stream.DECISIONS)
    for round in range(1, horizon + 1):
        for source in [at for at in range(1, round) if at + delays[at - 1] + 1 == round]:  # whose rewards arrive
            arrived = actions[source - 1]
            reward = rewards[arrived][pulls[arrived]]
            rule.learn(parameters, pulls, memory, source, arrived, reward)
            memory[arrived, 0] += reward
            pulls[arrived] += 1
        if opening is None and pulls.min() >= rule.initial:
            opening = round - 1
        arm = opening_of(rule, arms, run, seed)[(round - 1) % arms]
        if opening is not None:
            if (round - 1 - opening) % rule.batch == 0:
                seen = pulls.copy(), memory.copy(), round
            arm = rule.choose(parameters, *seen, uniforms[round - 1])
        actions.append(arm)
    return actions
