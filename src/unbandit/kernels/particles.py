"""A cloud of particles: weights, resampling, and the paths that they took."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.belief import Belief
from unbandit.kernels.compiling import called, inlined
from unbandit.kernels.scalar import normal_from_word, philox, uniform_from_word

__all__ = ["FAR", "NONE", "REDRAWS", "SCATTERING", "Cloud", "Record", "keep", "settle", "shift_level", "two_uniforms"]

PARTICLES, RESAMPLING, SHIFTS = np.uint64(4), np.uint64(5), np.uint64(6)  # the tape's streams
SCATTERING, REDRAWS = np.uint64(7), np.uint64(10)
ZERO = np.uint64(0)

FAR, NONE = np.int64(2**62), np.int64(-1)
"""A round that never comes, and what stands where there is no arm or no round."""


class Record(NamedTuple):
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
def settle(cloud: Cloud, step: int, ancestors: NDArray[np.int64]) -> tuple[bool, bool]:
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
