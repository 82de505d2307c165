"""Filter the hidden rewards behind a randomised rule's actions: weigh each particle by how likely the action was.

A reward is drawn with an eye on the next action: several candidates are spread over the predictive distribution, one is
taken in proportion to how likely it makes that action, and the particle is weighed by the average. Rewards of 0 and 1
are both tried. Where a decision jumps with a sample mean (epsilon-greedy), this is what keeps the cloud alive.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import compiled, inlined
from unbandit.kernels.formula import learn, probability
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.smc.cloud import (
    Belief,
    Cloud,
    Steps,
    keep,
    liu_west_move,
    posterior_mean,
    posterior_success,
    resample,
    shift_level,
    two_uniforms,
)


@compiled
def filter_randomised(
    parameters: Any, record: Steps, belief: Belief, cloud: Cloud, memories: NDArray[np.float64], batch: int,
    tries: int, smooth: bool, shifts: bool, table: NDArray[np.float64],
) -> int:  # fmt: skip
    """Move a cloud through a demonstration, round by round; return 0, or the first round that no particle survives.

    `memories` has (particles, arms, columns): what the rule remembers, first of all the sums of rewards. Heirs are
    scattered only where probabilities are `smooth`: elsewhere a moved particle might contradict what it was chosen for.
    """
    number, arms, columns = memories.shape
    pulls, seen_pulls = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    seen = memories if batch == 1 else memories.copy()
    ancestors, line = np.empty(number, np.int64), np.arange(number)
    candidates, chances, trial = np.empty(tries), np.empty(tries), np.empty((arms, columns))
    mark, decided = 0, np.int64(1)
    ahead = False  # whether the weights already hold the probability of this round's action
    for step in range(record.arm.size):
        arm, playing = record.arm[step], step >= record.opening
        if playing and (step - record.opening) % batch == 0:
            decided = step + 1
            seen_pulls[:] = pulls
            if batch > 1:
                seen[:] = memories
        foresee = batch == 1 and step + 1 < record.arm.size and step + 1 >= record.opening
        known = not math.isnan(record.rewards[step])
        if known:  # the observer has taken it in beforehand
            cloud.before[arm] -= 1.0
            cloud.past[:, arm] -= record.rewards[step]
        behind = cloud.before[arm] + pulls[arm]
        for particle in range(number):
            memory, weight = memories[particle], 0.0
            if playing and not ahead:
                weight += _log(probability(parameters, seen_pulls, seen[particle], decided, arm))
            total = cloud.past[particle, arm] + memory[arm, 0]
            first, second = two_uniforms(cloud, step, particle)
            spread = _spread(belief, arm, behind, total, record.rewards[step], first, candidates, chances, table)
            chosen = 0
            if foresee:
                then, sum_of_chances = record.arm[step + 1], 0.0
                for at in range(spread):
                    trial[:] = memory
                    learn(parameters, pulls, trial, step + 1, arm, candidates[at])
                    trial[arm, 0] += candidates[at]
                    pulls[arm] += 1
                    chances[at] *= probability(parameters, pulls, trial, step + 2, then)
                    pulls[arm] -= 1
                    sum_of_chances += chances[at]
                weight += _log(sum_of_chances)
                second *= sum_of_chances
            while chosen + 1 < spread and second >= chances[chosen]:
                second -= chances[chosen]
                chosen += 1
            learn(parameters, pulls, memory, step + 1, arm, candidates[chosen])
            memory[arm, 0] += candidates[chosen]
            cloud.weights[particle] += weight
        ahead = foresee
        pulls[arm] += 1
        alive, drawn_anew = resample(cloud, step, ancestors)
        if not alive:
            return step + 1
        if drawn_anew:
            memories[:] = memories[ancestors]
            line[:] = line[ancestors]
            if batch > 1:
                seen[:] = seen[ancestors]
            if not belief.bernoulli and smooth:
                liu_west_move(cloud, pulls, memories, step, table)
            if not belief.bernoulli and shifts:
                for particle in range(number):
                    shift_level(belief, cloud, pulls, memories[particle, :, 0], particle, step, table)
        while mark < cloud.marks.size and cloud.marks[mark] == step:
            cloud.sums[:] = memories[:, :, 0]
            keep(cloud, mark, line)
            mark += 1
    if shifts and not belief.bernoulli:
        for particle in range(number):
            shift_level(belief, cloud, pulls, memories[particle, :, 0], particle, record.arm.size, table)
    cloud.sums[:] = memories[:, :, 0]
    return 0


@inlined
def _log(chance: float) -> float:
    return math.log(chance) if chance > 0.0 else -math.inf


@inlined
def _spread(
    belief: Belief, arm: int, behind: float, total: float, known: float, uniform: float,
    candidates: NDArray[np.float64], chances: NDArray[np.float64], table: NDArray[np.float64],
) -> int:  # fmt: skip
    """Lay out rewards that a particle may have seen, with the share of each; return how many."""
    if not math.isnan(known):
        candidates[0], chances[0] = known, 1.0
        return 1
    if belief.bernoulli:
        chance = posterior_success(belief, arm, behind, total)
        candidates[0], chances[0], candidates[1], chances[1] = 0.0, 1.0 - chance, 1.0, chance
        return 2
    mean, variance = posterior_mean(belief, arm, behind, total)
    deviation = math.sqrt(variance + belief.sigma * belief.sigma)
    for at in range(candidates.size):  # one in each of so many equal parts
        part = (at + uniform) / candidates.size
        candidates[at], chances[at] = mean + deviation * normal_quantile(part, table), 1.0 / candidates.size
    return candidates.size
