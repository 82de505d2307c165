"""Filter the hidden rewards behind a randomised rule's actions where rounds are missing, arms and all.

In a round that was seen, a particle is weighted by the probability of the arm. In a hidden one it draws the arm as the
rule does, and the weight stays. Either way the arm's reward is drawn given the particle's rewards so far. Particles
differ in their hidden arms, so each has its own pull counts.
"""

import math
from typing import Any

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled
from unbandit.kernels.formula import choose, learn, probability
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.smc.cloud import (
    NONE,
    PARTICLES,
    Cloud,
    gibbs_level,
    inherit,
    liu_west_move,
    posterior_success,
    predictive_sum,
    prior_of,
    resample,
    take_sums,
    two_uniforms,
    uniform,
)

HIDDEN_ARMS = np.uint64(26)  # the tape's stream of arms in hidden rounds


@compiled
def filter_hidden(
    parameters: Any, arm: Integers, opening: int, cloud: Cloud, memories: Numbers, pulls: Integers, smooth: bool,
    shifts: bool,
) -> int:  # fmt: skip
    """Move a cloud through a run, round by round; return 0, or the first round that no particle survives.

    `arm` is `NONE` in a hidden round; the rule decides nothing in the first `opening` rounds, whose arms are all known.
    `memories`, (particles, arms, columns), is what the rule remembers, `pulls` has each particle's counts. Offspring
    are moved apart where probabilities are `smooth`.
    """
    number, arms, _ = memories.shape
    bernoulli, draws = cloud.belief.bernoulli, np.empty(arms)
    for step in range(arm.size):
        for particle in range(number):
            memory, own, chosen = memories[particle], pulls[particle], arm[step]
            if chosen == NONE:
                for each in range(arms):
                    draws[each] = uniform(cloud.rng, HIDDEN_ARMS, step, particle * arms + each)
                chosen = np.int64(choose(parameters, own, memory, step + 1, draws))
            elif step >= opening:
                chance = probability(parameters, own, memory, step + 1, chosen)
                cloud.log_weights[particle] += math.log(chance) if chance > 0.0 else -math.inf
            prior, behind = prior_of(cloud.belief, chosen), cloud.before[chosen] + own[chosen]
            total = cloud.past[particle, chosen] + memory[chosen, 0]
            draw, _ = two_uniforms(cloud.rng, PARTICLES, step, particle)
            if bernoulli:
                reward = 1.0 if draw < posterior_success(prior, behind, total) else 0.0
            else:
                mean, deviation = predictive_sum(prior, behind, total, 1)
                reward = mean + deviation * normal_quantile(draw, cloud.table)
            learn(parameters, own, memory, step + 1, chosen, reward)
            memory[chosen, 0] += reward
            own[chosen] += 1
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(memories, cloud.ancestors)
            inherit(pulls, cloud.ancestors)
            if not bernoulli and smooth:
                _move_apart(cloud, pulls, memories, step)
            if not bernoulli and shifts:
                _shift_levels(cloud, pulls, memories, step)
    if shifts and not bernoulli:
        _shift_levels(cloud, pulls, memories, arm.size)
    take_sums(cloud, memories)
    return 0


@called
def _shift_levels(cloud: Cloud, pulls: Integers, memories: Numbers, step: int) -> None:
    """Shift all rewards of each particle by a number drawn from its conditional distribution."""
    for particle in range(memories.shape[0]):
        gibbs_level(cloud, pulls[particle], memories[particle, :, 0], particle, step)


@called
def _move_apart(cloud: Cloud, pulls: Integers, memories: Numbers, step: int) -> None:
    """Move offspring apart by their sample means; their counts stay."""
    number, arms, _ = memories.shape
    for particle in range(number):
        for each in range(arms):
            memories[particle, each, 0] /= max(pulls[particle, each], 1)
    liu_west_move(cloud, np.ones(arms, np.int64), memories, step)
    for particle in range(number):
        for each in range(arms):
            memories[particle, each, 0] *= pulls[particle, each]
