"""Filter the hidden rewards behind a randomised rule's actions where more is hidden: arms, or when rewards came.

In a round that was seen, a particle is weighted by the probability of the arm. In a hidden one it draws the arm as the
rule does, and the weight stays. Either way the arm's reward is drawn given the particle's rewards so far; where
decisions jump with a sample mean, with a look at the next arm. Particles differ in their hidden arms, so each has its
own pull counts. Where a log begins in mid-run these are known: its hidden arms are drawn so that they come true.

Where delays are random, a particle draws the delay of every reward, which depends on nothing else (`filter_arrivals`),
and a reward when it arrives. Of rewards that are on their way only the round and the arm matter.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.arrivals import all_known
from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
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
from unbandit.kernels.smc.randomised import spread

HIDDEN_ARMS = np.uint64(26)  # the tape's stream of arms in hidden rounds
DELAYED, ARRIVED = np.uint64(27), np.uint64(28)  # and those of delays, and of rewards that arrive


@compiled
def filter_hidden(
    parameters: Any, arm: Integers, opening: int, left: Integers, cloud: Cloud, memories: Numbers, pulls: Integers,
    tries: int, smooth: bool, shifts: bool,
) -> int:  # fmt: skip
    """Move a cloud through a run, round by round; return 0, or the first round that no particle survives.

    `arm` is `NONE` in a hidden round; the rule decides nothing in the first `opening` rounds, whose arms are all known.
    `left`, (particles, arms), is how often each arm is to be pulled in the first rounds after these, all hidden; 0
    where that is not known. `memories`, (particles, arms, columns), is what the rule remembers, `pulls` has each
    particle's counts. With more than one of `tries`, a reward is chosen among as many by the next arm that was seen.
    Offspring are moved apart where probabilities are `smooth`.
    """
    number, arms, columns = memories.shape
    bernoulli, draws, ahead = cloud.belief.bernoulli, np.empty(arms), False
    candidates, chances, trial = np.empty(tries), np.empty(tries), np.empty((arms, columns))
    given = 0
    for each in range(arms):
        given += left[0, each]
    shares = np.array([max(count, 1) / max(given, 1) for count in left[0]])
    for step in range(arm.size):
        looks = tries > 1 and step + 1 < arm.size and step + 1 >= opening and arm[step + 1] != NONE
        for particle in range(number):
            memory, own, chosen = memories[particle], pulls[particle], arm[step]
            if chosen == NONE:
                for each in range(arms):
                    draws[each] = uniform(cloud.rng, HIDDEN_ARMS, step, particle * arms + each)
                if step < opening + given:
                    chosen, log_weight = _guided(parameters, own, memory, step + 1, left[particle], shares, draws)
                    cloud.log_weights[particle] += log_weight
                else:
                    chosen = np.int64(choose(parameters, own, memory, step + 1, draws))
            elif step >= opening and not ahead:
                cloud.log_weights[particle] += _log(probability(parameters, own, memory, step + 1, chosen))
            prior, behind = prior_of(cloud.belief, chosen), cloud.before[chosen] + own[chosen]
            total = cloud.past[particle, chosen] + memory[chosen, 0]
            draw, second = two_uniforms(cloud.rng, PARTICLES, step, particle)
            if looks:  # w *= sum_j q_j p(next arm | x_j), and x_j is chosen in proportion to its term
                size = spread(prior, bernoulli, behind, total, math.nan, draw, cloud.table, candidates, chances)
                average = 0.0
                for at in range(size):
                    for row in range(arms):
                        for column in range(columns):
                            trial[row, column] = memory[row, column]
                    learn(parameters, own, trial, step + 1, chosen, candidates[at])
                    trial[chosen, 0] += candidates[at]
                    own[chosen] += 1
                    chances[at] *= probability(parameters, own, trial, step + 2, arm[step + 1])
                    own[chosen] -= 1
                    average += chances[at]
                cloud.log_weights[particle] += _log(average)
                second *= average
                at = 0
                while at + 1 < size and second >= chances[at]:
                    second -= chances[at]
                    at += 1
                reward = candidates[at]
            elif bernoulli:
                reward = 1.0 if draw < posterior_success(prior, behind, total) else 0.0
            else:
                mean, deviation = predictive_sum(prior, behind, total, 1)
                reward = mean + deviation * normal_quantile(draw, cloud.table)
            learn(parameters, own, memory, step + 1, chosen, reward)
            memory[chosen, 0] += reward
            own[chosen] += 1
        ahead = looks
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(memories, cloud.ancestors)
            inherit(pulls, cloud.ancestors)
            inherit(left, cloud.ancestors)
            if not bernoulli and smooth:
                _move_apart(cloud, pulls, memories, step)
            if not bernoulli and shifts:
                _shift_levels(cloud, pulls, memories, step)
    if shifts and not bernoulli:
        _shift_levels(cloud, pulls, memories, arm.size)
    take_sums(cloud, memories)
    return 0


class Waiting(NamedTuple):
    """What each particle waits for, and what its rule saw at its last look; one row per particle."""

    cumulative: Numbers  # the distribution of delays
    arriving: NDArray[np.uint16]  # rewards that arrive in a round, which comes again after as many, by arm
    opened: Integers  # the round in which the opening ended, in one column; -1 before
    seen_pulls: Integers
    seen_memories: Numbers


@compiled
def filter_arrivals(
    parameters: Any, arm: Integers, initial: int, batch: int, cloud: Cloud, memories: Numbers, pulls: Integers,
    waiting: Waiting, smooth: bool, shifts: bool,
) -> int:  # fmt: skip
    """Move a cloud through a run whose rewards are late by random delays; return 0, or the round in which it died.

    The rule opens with the arms in turn until `initial` rewards of each are known, and then looks at what is known
    every `batch` rounds. `pulls`, (particles, arms), counts the rewards that are known.
    """
    number, arms, columns = memories.shape
    bernoulli, rounds = cloud.belief.bernoulli, waiting.arriving.shape[1]
    for step in range(arm.size):
        slot = step % rounds
        for particle in range(number):
            memory, own, arriving = memories[particle], pulls[particle], waiting.arriving[particle]
            seen, seen_pulls = waiting.seen_memories[particle], waiting.seen_pulls[particle]
            # --- rewards arrive ---
            place = particle * rounds
            for each in range(arms):
                for _ in range(np.int64(arriving[slot, each])):
                    draw = uniform(cloud.rng, ARRIVED, step, place)
                    prior, behind = prior_of(cloud.belief, each), cloud.before[each] + own[each]
                    total = cloud.past[particle, each] + memory[each, 0]
                    if bernoulli:
                        reward = 1.0 if draw < posterior_success(prior, behind, total) else 0.0
                    else:
                        mean, deviation = predictive_sum(prior, behind, total, 1)
                        reward = mean + deviation * normal_quantile(draw, cloud.table)
                    learn(parameters, own, memory, step, each, reward)
                    memory[each, 0] += reward
                    own[each] += 1
                    place += 1
                arriving[slot, each] = 0
            # --- the rule decides ---
            if waiting.opened[particle, 0] < 0 and all_known(own, initial):
                waiting.opened[particle, 0] = step
            opened = waiting.opened[particle, 0]
            if opened < 0:
                cloud.log_weights[particle] += 0.0 if arm[step] == step % arms else -math.inf
            else:
                since = (step - opened) % batch
                if since == 0:
                    for each in range(arms):
                        seen_pulls[each] = own[each]
                        for column in range(columns):
                            seen[each, column] = memory[each, column]
                cloud.log_weights[particle] += _log(
                    probability(parameters, seen_pulls, seen, step - since + 1, arm[step])
                )
            # --- the reward sets out ---
            draw, low, high = uniform(cloud.rng, DELAYED, step, particle), 0, waiting.cumulative.size - 1
            while low < high:
                middle = (low + high) // 2
                if draw < waiting.cumulative[middle]:
                    high = middle
                else:
                    low = middle + 1
            if step + 1 + low < arm.size:
                arriving[(step + 1 + low) % rounds, arm[step]] += 1
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(memories, cloud.ancestors)
            inherit(pulls, cloud.ancestors)
            inherit(waiting.arriving, cloud.ancestors)
            inherit(waiting.opened, cloud.ancestors)
            inherit(waiting.seen_pulls, cloud.ancestors)
            inherit(waiting.seen_memories, cloud.ancestors)
            if not bernoulli and smooth:
                _move_apart(cloud, pulls, memories, step)
            if not bernoulli and shifts:
                _shift_levels(cloud, pulls, memories, step)
    if shifts and not bernoulli:
        _shift_levels(cloud, pulls, memories, arm.size)
    take_sums(cloud, memories)
    return 0


@inlined
def _log(chance: float) -> float:
    return math.log(chance) if chance > 0.0 else -math.inf


@called
def _guided(
    parameters: Any, pulls: Integers, memory: Numbers, round: int, left: Integers, shares: Numbers, draws: Numbers
) -> tuple[np.int64, float]:
    """Draw a hidden arm so that every arm gets the pulls it has `left`; return it, and the log weight for doing so.

    Drawn in proportion to `p(a) (r_a / R) / s_a`, with `r_a` pulls left of `R` and `s_a` the arm's share of all of them
    at first. The factors are ratios of multinomial probabilities of what is left, so that their product is a constant.
    """
    total, weight = 0, 0.0
    for each in range(left.size):
        total += left[each]
    drawn = draws[0]
    for each in range(left.size):
        chance = probability(parameters, pulls, memory, round, each) if left[each] > 0 else 0.0
        draws[each] = chance * left[each] / (total * shares[each])
        weight += draws[each]
    rest, chosen, last = drawn * weight, np.int64(-1), np.int64(0)
    for each in range(left.size):
        if left[each] > 0:
            last = np.int64(each)
            if chosen < 0 and rest < draws[each]:
                chosen = np.int64(each)
            rest -= draws[each]
    chosen = last if chosen < 0 else chosen
    left[chosen] -= 1
    return chosen, _log(weight)


@called
def _shift_levels(cloud: Cloud, pulls: Integers, memories: Numbers, step: int) -> None:
    """Shift all rewards of each particle, where it has some, by a number drawn from its conditional distribution."""
    for particle in range(memories.shape[0]):
        known = 0
        for each in range(pulls.shape[1]):
            known += pulls[particle, each]
        if known > 0:
            gibbs_level(cloud, pulls[particle], memories[particle, :, 0], particle, step)


@called
def _move_apart(cloud: Cloud, pulls: Integers, memories: Numbers, step: int) -> None:
    """Move offspring apart by their sample means; their counts stay, and so do arms of which some know no reward."""
    number, arms, columns = memories.shape
    known, kept = np.ones(arms, np.bool_), memories.copy()
    for particle in range(number):
        for each in range(arms):
            known[each] &= pulls[particle, each] > 0
    for particle in range(number):
        for each in range(arms):
            memories[particle, each, 0] /= max(pulls[particle, each], 1)
            for column in range(columns):
                memories[particle, each, column] *= known[each]  # numbers that do not vary do not move
    liu_west_move(cloud, np.ones(arms, np.int64), memories, step)
    for particle in range(number):
        for each in range(arms):
            if known[each]:
                memories[particle, each, 0] *= pulls[particle, each]
            else:
                memories[particle, each] = kept[particle, each]
