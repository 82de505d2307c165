"""What an observer believes about an arm's mean once the sum of its rewards is given: the mean integrates out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, inlined
from unbandit.kernels.rng import normal_from_word, philox, uniform_from_word


class Belief(NamedTuple):
    """Hold the prior on every mean, and the noise.

    Attributes
    ----------
    bernoulli
        Rewards are 0 or 1, with a Beta prior; otherwise normal, with a normal prior.
    first, second
        One number an arm: the prior's mean and variance (0 for a mean that is known), or its two Beta parameters.
    sigma
        The standard deviation of a normal reward.
    """

    bernoulli: bool
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    sigma: float


@inlined
def posterior_mean(belief: Belief, arm: int, pulls: float, total: float) -> tuple[float, float]:
    """Return expectation and variance of a mean, after so many normal rewards of this sum."""
    noise, prior = belief.sigma * belief.sigma, belief.second[arm]
    scale = 1.0 / (noise + pulls * prior)
    return (belief.first[arm] * noise + prior * total) * scale, prior * noise * scale


@inlined
def posterior_success(belief: Belief, arm: int, pulls: float, total: float) -> float:
    """Return the probability that the next reward is 1, after so many of which `total` were."""
    return (belief.first[arm] + total) / (belief.first[arm] + belief.second[arm] + pulls)


PARTICLES, RESAMPLING, SHIFTS = np.uint64(4), np.uint64(5), np.uint64(6)  # the tape's streams
MOVES, REDRAWS = np.uint64(7), np.uint64(10)
ZERO = np.uint64(0)

NEVER, NONE = np.int64(2**62), np.int64(-1)
"""A round that never comes, and what stands where there is no arm or no round."""


class Steps(NamedTuple):
    """Hold one demonstration as a filter reads it: step by step, a step being a round or a batch of them.

    Attributes
    ----------
    arm, count
        Which arm a step pulls, and how often.
    round
        The step's first round (from 1), which is when the rule decided.
    following
        The round in which the rule next decides for this arm again; `FAR` if it never does.
    opening
        How many steps lie before the rule's first decision.
    binding
        Whether the arm's state after the step is ever compared; not so within the opening, before its last pull there.
    ahead, rival, until
        Where the arm is pulled on for a while and then another one's turn comes: how many pulls are left of that
        stretch, which arm ends it, and in which round. Otherwise `ahead` is 0.
    rewards
        Of every round; NaN where unknown.
    """

    arm: NDArray[np.int64]
    count: NDArray[np.int64]
    round: NDArray[np.int64]
    following: NDArray[np.int64]
    opening: int
    binding: NDArray[np.bool_]
    ahead: NDArray[np.int64]
    rival: NDArray[np.int64]
    until: NDArray[np.int64]
    rewards: NDArray[np.float64]


class Cloud(NamedTuple):
    """Hold particles: hidden reward sums with their weights, and what is written down about them on the way.

    Attributes
    ----------
    sums
        The reward sum of each arm in this demonstration, one row a particle.
    past, before
        Reward sums and pull counts from earlier demonstrations of the same instance.
    weights
        Logarithms; their mean is 1 in natural numbers.
    increments
        By how much each step changed the logarithm of the evidence.
    size, paid
        The effective sample size after each step, before resampling, and how many particles could not explain it.
    marks
        Steps after which the sums are kept, ascending.
    kept, lines
        The sums at the marks, and of each particle there which one of the mark before it comes from.
    shift, shifts
        By how much each particle's rewards were shifted so far, now and at the marks.
    key, name
        Of the random numbers: the seed's key, and the cloud's number.
    """

    sums: NDArray[np.float64]
    past: NDArray[np.float64]
    before: NDArray[np.float64]
    weights: NDArray[np.float64]
    increments: NDArray[np.float64]
    size: NDArray[np.float64]
    paid: NDArray[np.int64]
    marks: NDArray[np.int64]
    kept: NDArray[np.float64]
    lines: NDArray[np.int64]
    shift: NDArray[np.float64]
    shifts: NDArray[np.float64]
    key: tuple[np.uint64, np.uint64]
    name: np.uint64


@inlined
def two_uniforms(cloud: Cloud, step: int, particle: int) -> tuple[float, float]:
    """Return a particle's two random numbers for a step."""
    first, second = philox(np.uint64(step), np.uint64(particle), cloud.name, PARTICLES, cloud.key[0], cloud.key[1])
    return uniform_from_word(first), uniform_from_word(second)


@called
def resample(cloud: Cloud, step: int, ancestors: NDArray[np.int64]) -> tuple[bool, bool]:
    """Write the step's evidence down and, if few particles carry the weight, draw their heirs into `ancestors`.

    Returns whether any particle is alive, and whether heirs were drawn (systematically: one random number for all).
    """
    number, weights = cloud.weights.size, cloud.weights
    largest = -math.inf
    for particle in range(number):
        largest = max(largest, weights[particle])
    if largest == -math.inf:
        return False, False
    total, squares = 0.0, 0.0
    for particle in range(number):
        share = math.exp(weights[particle] - largest)
        total += share
        squares += share * share
    mean = largest + math.log(total / number)
    cloud.increments[step], cloud.size[step] = mean, total * total / squares
    if cloud.size[step] >= 0.5 * number:
        for particle in range(number):
            weights[particle] -= mean
        return True, False
    word, _ = philox(np.uint64(step), ZERO, cloud.name, RESAMPLING, cloud.key[0], cloud.key[1])
    offset, so_far, heir = uniform_from_word(word), 0.0, 0
    for particle in range(number):
        so_far += math.exp(weights[particle] - mean)
        while heir < number and heir + offset < so_far:
            ancestors[heir] = particle
            heir += 1
    while heir < number:  # rounding left the last ones over
        ancestors[heir] = ancestors[heir - 1]
        heir += 1
    weights[:] = 0.0
    cloud.shift[:] = cloud.shift[ancestors]
    cloud.past[:] = cloud.past[ancestors]
    return True, True


@called
def keep(cloud: Cloud, mark: int, line: NDArray[np.int64]) -> None:
    """Keep the sums at a mark, and where each particle there comes from."""
    for particle in range(line.size):
        for arm in range(cloud.sums.shape[1]):
            cloud.kept[mark, particle, arm] = cloud.sums[particle, arm]
        cloud.lines[mark, particle], cloud.shifts[mark, particle] = line[particle], cloud.shift[particle]
        line[particle] = particle


@inlined
def shift_level(
    belief: Belief, cloud: Cloud, pulls: NDArray[np.int64], sums: NDArray[np.float64], particle: int, step: int,
    table: NDArray[np.float64],
) -> float:  # fmt: skip
    """Shift all of a particle's rewards by a number drawn given all else, where the rule does not see it; return it.

    A sample mean of `n` rewards has the prior's mean and variance, plus `sigma^2 / n`; what the rewards of an arm
    differ by among themselves is not touched. So the shift is normal.
    """
    precision, pressure = 0.0, 0.0
    for arm in range(pulls.size):
        behind = cloud.before[arm] + pulls[arm]
        if behind > 0.0:
            own = 1.0 / (belief.second[arm] + belief.sigma * belief.sigma / behind)
            precision += own
            pressure += own * (belief.first[arm] - (cloud.past[particle, arm] + sums[arm]) / behind)
    word, _ = philox(np.uint64(step), np.uint64(particle), cloud.name, SHIFTS, cloud.key[0], cloud.key[1])
    drawn = pressure / precision + normal_from_word(word, table) / math.sqrt(precision)
    cloud.shift[particle] += drawn
    for arm in range(pulls.size):
        cloud.past[particle, arm] += cloud.before[arm] * drawn
        sums[arm] += pulls[arm] * drawn
    return drawn


MOVE_SHARE = 0.2
"""How far heirs are moved, in standard deviations of the cloud."""

MOST_CORRELATED = 64
"""From this many moving numbers on, their correlations are left out."""


@called
def liu_west_move(
    cloud: Cloud, pulls: NDArray[np.int64], memories: NDArray[np.float64], step: int, table: NDArray[np.float64]
) -> None:
    """Move heirs apart: a little towards the centre of the cloud and as much at random, so that its shape stays.

    All that differs between particles moves together: sample means, whatever else the rule remembers, and the sample
    means from earlier demonstrations. Arms are taken as uncorrelated where they are many.
    """
    number, arms, columns = memories.shape
    size = arms * (columns + 1)
    values, centre = np.zeros((number, size)), np.zeros(size)
    for particle in range(number):
        for arm in range(arms):
            at = arm * (columns + 1)
            values[particle, at] = memories[particle, arm, 0] / max(pulls[arm], 1)
            for column in range(1, columns):
                values[particle, at + column] = memories[particle, arm, column]
            values[particle, at + columns] = cloud.past[particle, arm] / max(cloud.before[arm], 1.0)
        centre += values[particle]
    centre /= number
    factor = _covariance_factor(values, centre)
    keep_share = math.sqrt(1.0 - MOVE_SHARE * MOVE_SHARE)
    noise = np.empty(size)
    for particle in range(number):
        for at in range(size):
            where = np.uint64(particle * size + at)
            word, _ = philox(np.uint64(step), where, cloud.name, MOVES, cloud.key[0], cloud.key[1])
            noise[at] = normal_from_word(word, table)
        for arm in range(arms):
            for column in range(columns + 1):
                at = arm * (columns + 1) + column
                moved = centre[at] + keep_share * (values[particle, at] - centre[at])
                for other in range(at + 1):
                    moved += MOVE_SHARE * factor[at, other] * noise[other]
                if column == columns:
                    cloud.past[particle, arm] = moved * cloud.before[arm]
                elif column == 0:
                    memories[particle, arm, 0] = moved * pulls[arm]
                else:
                    memories[particle, arm, column] = moved


@called
def _covariance_factor(values: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangle whose square is the covariance of some values; what does not vary gets zeros."""
    number, size = values.shape
    factor = np.zeros((size, size))
    for row in range(size):
        for column in range(row if size > MOST_CORRELATED else 0, row + 1):
            covariance = 0.0
            for particle in range(number):
                covariance += (values[particle, row] - centre[row]) * (values[particle, column] - centre[column])
            covariance /= number
            for other in range(column):
                covariance -= factor[row, other] * factor[column, other]
            if column < row:
                factor[row, column] = covariance / factor[column, column] if factor[column, column] > 0.0 else 0.0
            else:
                scale = 1e-12 * (centre[row] * centre[row]) + 1e-300
                factor[row, row] = math.sqrt(covariance) if covariance > scale else 0.0
    return factor
