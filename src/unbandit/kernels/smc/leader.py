"""Filter the hidden rewards behind a rule that asks only which sample mean is the largest (epsilon-greedy).

The probability of an action jumps where the *leader*, the arm with the largest sample mean, changes, and is constant
elsewhere. A normal reward makes its arm the leader exactly if it exceeds a threshold, so the next action has one
probability above it and another below. The reward is drawn from its predictive distribution times these two numbers,
and its particle weighted by their average: no better proposal exists without a look further ahead. Rewards of 0 and 1
are both tried.

That look is a Gaussian twisting function (`kernels/smc/twist.py`). Most changes of the leader are plain from the
actions (`most_likely_leaders`), and just before one, the two sample means were about as close as a single reward can
move them. Each such *meeting* is a site: an arm that will lead a thousand rounds later is drawn towards the leader's
mean from the start. Sites enter as in `filter_twisted`, and are divided out where they stand: the evidence stays
unbiased.
"""

import math
from typing import Any

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.formula import probability
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.smc.cloud import (
    NONE,
    PARTICLES,
    Cloud,
    Steps,
    assign,
    gibbs_level,
    keep_sums,
    resample,
    uniform,
)
from unbandit.kernels.smc.twist import Sites, Twist, propose_outcome
from unbandit.kernels.special import normal_cdf


@compiled
def leader_chances(parameters: Any, steps: Steps, batch: int, arms: int) -> Numbers:
    """Return the log probability of the actions that each decision judges, by the arm that leads: (steps, arms).

    Rows of rounds in which the rule does not look at the record are 0.
    """
    chances, memory = np.zeros((steps.arm.size, arms)), np.zeros((arms, 1))
    pulls, seen, decision = np.zeros(arms, np.int64), np.zeros(arms, np.int64), 0
    for step in range(steps.arm.size):
        if step >= steps.opening:
            if (step - steps.opening) % batch == 0:
                decision = step
                assign(seen, pulls)
            for leader in range(arms):
                memory[leader, 0] = 1.0
                chance = probability(parameters, seen, memory, decision + 1, steps.arm[step])
                chances[decision, leader] += math.log(chance) if chance > 0.0 else -math.inf
                memory[leader, 0] = 0.0
        pulls[steps.arm[step]] += 1
    return chances


@compiled
def most_likely_leaders(steps: Steps, chances: Numbers, changing: float) -> Integers:
    """Return the sequence of leaders that explains the actions best, one per step from the opening on (Viterbi).

    The leader may change to the arm that was just pulled, or from it to any other; one change has the log probability
    `changing`.
    """
    length, arms = chances.shape
    value, new, came_from = np.zeros(arms), np.zeros(arms), np.zeros((length, arms), np.int64)
    for step in range(steps.opening, length):
        pulled = steps.arm[step - 1] if step > steps.opening else NONE
        for leader in range(arms):
            best, source = value[leader], leader
            for other in range(arms):
                possible = pulled != NONE and other != leader and (pulled in (leader, other))
                if possible and value[other] + changing > best:
                    best, source = value[other] + changing, other
            new[leader], came_from[step, leader] = best + chances[step, leader], source
        for leader in range(arms):
            value[leader] = new[leader]
    leaders, leader = np.full(length, NONE), np.argmax(value)
    for step in range(length - 1, steps.opening - 1, -1):
        leaders[step] = leader
        leader = came_from[step, leader]
    return leaders


def no_twist(arms: int) -> tuple[Numbers, Sites, Twist]:
    """Return the deviations, sites and twist of a filter that looks no further than the next action."""
    sites = Sites(np.zeros((0, arms)), np.zeros((0, arms)), np.zeros((0, arms, arms)))
    return np.zeros(0), sites, Twist(np.zeros((0, arms)), np.zeros(0), np.zeros(0))


@compiled
def filter_leader(
    steps: Steps, cloud: Cloud, chances: Numbers, batch: int, random_ties: bool, shifts: bool, first: int,
    deviations: Numbers, sites: Sites, twist: Twist,
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first round that no particle survives.

    `chances` are those of `leader_chances`. `first` is the demonstration's first round in the twist, which was made for
    these `deviations` of rewards; an empty twist looks no further than the next action. `shifts` says that actions do
    not depend on the common level of all rewards.
    """
    number, arms = cloud.sums.shape
    belief, sums, past, log_weights = cloud.belief, cloud.sums, cloud.past, cloud.log_weights
    twisted, separate = twist.push.size > 0, twist.pull.shape[1] > arms
    pulls, base, share, noise = np.zeros(arms, np.int64), np.empty(arms), np.empty(arms), belief.sigma * belief.sigma
    mark, factors = 0, np.zeros(arms)
    for step in range(steps.arm.size):
        at, arm, after = first + step, steps.arm[step], pulls[steps.arm[step]] + 1
        following = step + 1
        looks = following < steps.arm.size and following >= steps.opening and (following - steps.opening) % batch == 0
        known = steps.rewards[step]
        hidden = math.isnan(known)
        if not hidden:  # to the observer from the start; the rule sees it now
            cloud.before[arm] -= 1.0
            for particle in range(number):
                past[particle, arm] -= known
        # The observer's expectation of a mean is M = base + share (sum of all rewards); a reward is M + deviation e.
        for each in range(arms):
            factors[each] = math.exp(chances[following, each]) if looks and random_ties else 0.0
            behind = cloud.before[each] + pulls[each]
            if belief.bernoulli:
                share[each] = 1.0 / (belief.first[each] + belief.second[each] + behind)
                base[each] = belief.first[each] * share[each]
            else:
                share[each] = belief.second[each] / (noise + behind * belief.second[each])
                base[each] = belief.first[each] * (1.0 - share[each] * behind)
        deviation = deviations[at] if twisted and hidden else math.sqrt(noise * (1.0 + share[arm]))
        precision = twist.precision[at] if twisted else 1.0
        narrow = 1.0 / math.sqrt(precision)
        if twisted and sites.bend[at, arm, arm] > 0.0:
            _divide_site(sites, at, sums, log_weights)
        for particle in range(number):
            # The innovation e, by itself or with the twist: N(pressure / precision, 1 / precision).
            reward, pressure = known, 0.0
            mean = base[arm] + share[arm] * (past[particle, arm] + sums[particle, arm])
            if twisted and hidden:
                pressure = twist.push[at] - twist.pull[at, arm] * mean
                for each in range(arms):
                    pressure -= twist.pull[at, each] * sums[particle, each]
                    if separate:
                        expected = base[each] + share[each] * (past[particle, each] + sums[particle, each])
                        pressure -= twist.pull[at, arms + each] * expected
            drawn_by = uniform(cloud.rng, PARTICLES, step, particle) if hidden else 0.5
            above, below, equal, top, rival = 0.0, 0.0, 0.0, -math.inf, 0
            if looks:
                # The leader of all other arms, and what the new sample mean must exceed.
                tied, factor = 1, 0.0
                for each in range(arms):
                    if each != arm and pulls[each] > 0:
                        other = sums[particle, each] / pulls[each]
                        if other > top:
                            top, rival, tied, factor = other, each, 1, factors[each]
                        elif other == top:
                            tied += 1
                            factor += factors[each]
                above, below = chances[following, arm], chances[following, rival]
                equal = above if arm < rival else below
                if random_ties:
                    below, equal = math.log(factor / tied), math.log((factor + factors[arm]) / (tied + 1))
            if hidden and not belief.bernoulli:
                centre = pressure / precision
                needed = top * after - sums[particle, arm] if looks else 0.0
                threshold = ((needed - mean) / deviation - centre) / narrow
                standard, log_weight = _two_sided(threshold, above, below, drawn_by, cloud.table)
                log_weights[particle] += log_weight
                reward = mean + deviation * (centre + narrow * standard)
            elif hidden:
                low = _compare(sums[particle, arm] / after, top, above, below, equal)
                high = _compare((sums[particle, arm] + 1.0) / after, top, above, below, equal)
                reward, log_weight = propose_outcome(mean, deviation, pressure, precision, low, high, drawn_by)
                log_weights[particle] += log_weight
            elif looks:  # as the rule compares: a tie of rounded rewards is a tie of means
                log_weights[particle] += _compare((sums[particle, arm] + known) / after, top, above, below, equal)
            sums[particle, arm] += reward
        pulls[arm] = after
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled and shifts and not twisted:
            _gibbs_levels(cloud, pulls, step)
        mark = keep_sums(cloud, step, mark)
    if shifts:
        _gibbs_levels(cloud, pulls, steps.arm.size)
    return 0


@inlined
def _compare(own: float, top: float, above: float, below: float, equal: float) -> float:
    """Return what belongs to a sample mean above, below or at the largest of the others."""
    return above if own > top else below if own < top else equal


@called
def _two_sided(threshold: float, above: float, below: float, drawn_by: float, table: Numbers) -> tuple[float, float]:
    """Draw a standard normal whose density is multiplied by a factor above a threshold and by another below.

    The factors are given by their logs. Returns the draw, and the log of the average factor.
    """
    if above == below:
        return normal_quantile(drawn_by, table), above
    largest = max(above, below)
    tail = normal_cdf(-abs(threshold))
    over, under = (tail, 1.0 - tail) if threshold > 0.0 else (1.0 - tail, tail)
    high, low = math.exp(above - largest) * over, math.exp(below - largest) * under
    total = high + low
    if not total > 0.0:
        return threshold, -math.inf
    left = drawn_by * total
    if left < high:
        drawn = -normal_quantile(min(max(left / high * over, 1e-300), 1.0 - 1e-16), table)
        drawn = max(drawn, threshold)
    else:
        drawn = normal_quantile(min(max((left - high) / low * under, 1e-300), 1.0 - 1e-16), table)
        drawn = min(drawn, threshold)
    return drawn, largest + math.log(total)


@called
def _divide_site(sites: Sites, at: int, sums: Numbers, log_weights: Numbers) -> None:
    """Divide each particle's weight by the site that stands here."""
    arms = sums.shape[1]
    for particle in range(sums.shape[0]):
        for row in range(arms):
            off = sums[particle, row] - sites.centre[at, row]
            product = 0.0
            for column in range(arms):
                product += sites.bend[at, row, column] * (sums[particle, column] - sites.centre[at, column])
            log_weights[particle] += off * (0.5 * product - sites.slope[at, row])


@called
def _gibbs_levels(cloud: Cloud, pulls: Integers, step: int) -> None:
    """Shift all rewards of each particle by a number drawn from its conditional distribution."""
    for particle in range(cloud.sums.shape[0]):
        gibbs_level(cloud, pulls, cloud.sums[particle], particle, step)
