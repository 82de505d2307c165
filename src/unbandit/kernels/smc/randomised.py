"""Filter the hidden rewards behind a randomised rule's actions: weight each particle by the action's probability.

Rewards are proposed with a look at the next action: several candidates are spread over the predictive distribution, one
is chosen in proportion to the probability that it gives that action, and the particle's weight is the average of these
probabilities. Rewards of 0 and 1 are both tried. Where a decision jumps with a sample mean (epsilon-greedy), this keeps
the cloud alive.
"""

import math
from typing import Any

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined, new_integers, new_numbers, new_table
from unbandit.kernels.formula import learn, probability
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.simulate_available import arms_there
from unbandit.kernels.smc.cloud import (
    PARTICLES,
    ArmPrior,
    Cloud,
    Steps,
    Views,
    gibbs_level,
    inherit,
    keep_sums,
    liu_west_move,
    posterior_success,
    predictive_sum,
    prior_of,
    resample,
    take_rows,
    take_sums,
    two_uniforms,
)


@compiled
def filter_randomised(
    parameters: Any, steps: Steps, cloud: Cloud, memories: Numbers, views: Views, tries: int, smooth: bool, shifts: bool
) -> int:
    """Move a cloud through a demonstration, round by round; return 0, or the first round that no particle survives.

    `memories` has the shape (particles, arms, columns): what the rule remembers, beginning with the sums of rewards.
    All actions that the rule draws from a state are judged there; a single one by a look ahead from the state before.
    An action is drawn among the arms that can be pulled in its round, as if there were no others.
    Offspring are moved apart only where probabilities are `smooth`; elsewhere a moved particle might contradict what
    it was chosen for.
    """
    number, arms, columns = memories.shape
    bernoulli = cloud.belief.bernoulli
    pulls = new_integers(arms, 0)
    candidates, chances, trials = new_numbers(tries, 0.0), new_numbers(tries, 0.0), np.empty((tries, arms, columns))
    who, rows = np.empty((2, arms), np.int64), new_table(arms, columns, 0.0)  # the arms that are there, now and next
    seen_pulls = np.empty((2, arms), np.int64)
    mark, ahead = 0, False  # whether the weights already contain the probability of what this state decides
    for step in range(steps.arm.size):
        arm, first_action, decided = steps.arm[step], views.first[step], views.decided[step]
        look_ahead = step + 1 < steps.arm.size and views.judged[step + 1] == 1
        known = steps.rewards[step]
        if not math.isnan(known):  # to the observer from the start; the rule sees it now
            cloud.before[arm] -= 1.0
            for particle in range(number):
                cloud.past[particle, arm] -= known
        prior, behind = prior_of(cloud.belief, arm), cloud.before[arm] + pulls[arm]
        there = arms_there(views.spans, decided, who[0])
        following, later = steps.arm[views.first[step + 1]] if look_ahead else arm, 0
        if look_ahead:
            later = arms_there(views.spans, views.decided[step + 1], who[1])
        for each in range(arms):
            seen_pulls[0, each] = pulls[who[0, each]] if each < there else 0
            seen_pulls[1, each] = pulls[who[1, each]] + (who[1, each] == arm) if each < later else 0
        for particle in range(number):
            memory, log_weight = memories[particle], 0.0
            # Weight without look-ahead: w *= p(a | memory) for every action drawn from it.
            if not ahead:
                for at in range(first_action, first_action + views.judged[step]):
                    chance = _chance(
                        parameters, pulls, memory, decided, steps.arm[at], who[0], there, seen_pulls[0], rows
                    )
                    log_weight += _log(chance)
            # Proposal: candidates x_j with shares q_j.
            total = cloud.past[particle, arm] + memory[arm, 0]
            first, second = two_uniforms(cloud.rng, PARTICLES, step, particle)
            size = spread(prior, bernoulli, behind, total, known, first, cloud.table, candidates, chances)
            # Weight with look-ahead: w *= sum_j q_j p(a_{t+1} | memory, x_j); choose x_j in proportion to its term.
            if look_ahead:
                average = 0.0
                for at in range(size):
                    trial = trials[at]
                    for row in range(arms):
                        for column in range(columns):
                            trial[row, column] = memory[row, column]
                    learn(parameters, pulls, trial, step + 1, arm, candidates[at])
                    trial[arm, 0] += candidates[at]
                    pulls[arm] += 1
                    round = views.decided[step + 1]
                    chances[at] *= _chance(
                        parameters, pulls, trial, round, following, who[1], later, seen_pulls[1], rows
                    )
                    pulls[arm] -= 1
                    average += chances[at]
                log_weight += _log(average)
                second *= average
            chosen = 0
            while chosen + 1 < size and second >= chances[chosen]:
                second -= chances[chosen]
                chosen += 1
            if look_ahead:
                for row in range(arms):
                    for column in range(columns):
                        memory[row, column] = trials[chosen, row, column]
            else:
                learn(parameters, pulls, memory, step + 1, arm, candidates[chosen])
                memory[arm, 0] += candidates[chosen]
            cloud.log_weights[particle] += log_weight
        ahead = look_ahead
        pulls[arm] += 1
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(memories, cloud.ancestors)
            if not bernoulli and smooth:
                liu_west_move(cloud, pulls, memories, step)
            if not bernoulli and shifts:
                _gibbs_levels(cloud, pulls, memories, step)
        if mark < cloud.marks.size and cloud.marks[mark] == step:
            take_sums(cloud, memories)
            mark = keep_sums(cloud, step, mark)
    if shifts and not bernoulli:
        _gibbs_levels(cloud, pulls, memories, steps.arm.size)
    take_sums(cloud, memories)
    return 0


@called
def _gibbs_levels(cloud: Cloud, pulls: Integers, memories: Numbers, step: int) -> None:
    """Shift all rewards of each particle by a number drawn from its conditional distribution."""
    for particle in range(memories.shape[0]):
        gibbs_level(cloud, pulls, memories[particle, :, 0], particle, step)


@inlined
def _chance(
    parameters: Any, pulls: Integers, memory: Numbers, round: int, arm: int, who: Integers, there: int,
    seen_pulls: Integers, rows: Numbers,
) -> float:  # fmt: skip
    """Return the probability of an arm among the arms that are there, of which `who` has the first so many."""
    if there == 1:
        return 1.0
    seen, place = memory, arm
    if there < pulls.size:
        pulls, seen, place = seen_pulls[:there], rows[:there], 0
        take_rows(memory, who, seen)
        while who[place] != arm:
            place += 1
    return probability(parameters, pulls, seen, round, place)


@inlined
def _log(chance: float) -> float:
    return math.log(chance) if chance > 0.0 else -math.inf


@inlined
def spread(
    prior: ArmPrior, bernoulli: bool, behind: float, total: float, known: float, uniform: float,
    table: Numbers, candidates: Numbers, chances: Numbers,
) -> int:  # fmt: skip
    """Fill in the rewards that a particle may have seen and the share of each; return their number."""
    if not math.isnan(known):
        candidates[0], chances[0] = known, 1.0
        return 1
    if bernoulli:
        chance = posterior_success(prior, behind, total)
        candidates[0], chances[0], candidates[1], chances[1] = 0.0, 1.0 - chance, 1.0, chance
        return 2
    mean, deviation = predictive_sum(prior, behind, total, 1)
    for at in range(candidates.size):  # one in each of these equally likely parts
        part = (at + uniform) / candidates.size
        candidates[at], chances[at] = mean + deviation * normal_quantile(part, table), 1.0 / candidates.size
    return candidates.size
