"""A cloud of particles: hidden reward sums with log weights, resampling, moves, and the paths that were taken.

A particle holds one reward sum per arm. The means are integrated out, because the posterior of a mean `mu_i` given `n`
rewards of sum `S` is conjugate: normal with variance `v s^2 / (s^2 + n v)` around `(m s^2 + v S) / (s^2 + n v)` (prior
mean `m` and variance `v`, noise `s`), or Beta(a + S, b + n - S).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import Integers, Marks, Numbers, called, inlined, new_numbers, new_table
from unbandit.kernels.rng import normal_from_word, philox, uniform_from_word
from unbandit.kernels.simulate_available import Spans
from unbandit.kernels.special import exponential

PARTICLES, RESAMPLING, LEVELS = np.uint64(4), np.uint64(5), np.uint64(6)  # the tape's streams
MOVES, REDRAWS = np.uint64(7), np.uint64(10)

NEVER, NONE = np.int64(2**62), np.int64(-1)  # a round that never comes, and the mark of a missing arm or round
RESAMPLE_BELOW = 0.5  # a cloud is resampled when its effective sample size falls below this share of its particles
MOVE_SHARE = 0.2  # how far `liu_west_move` moves offspring, in standard deviations of the cloud
MOST_CORRELATED = 64  # with more moving numbers than this, `liu_west_move` ignores their correlations


class Belief(NamedTuple):
    """The prior on every mean, and the noise: 0-1 rewards with a Beta prior, or normal rewards with a normal prior."""

    bernoulli: bool
    first: Numbers  # per arm: the mean, or the first Beta parameter
    second: Numbers  # per arm: the variance (0 for a known mean), or the second Beta parameter
    sigma: float  # standard deviation of a normal reward


class ArmPrior(NamedTuple):
    """The prior on one mean, and the noise; see `Belief`."""

    first: Any
    second: Any
    sigma: float


class Rng(NamedTuple):
    """The random numbers of a cloud: the seed's key, and the number of the cloud."""

    key_0: np.uint64
    key_1: np.uint64
    name: np.uint64


class Steps(NamedTuple):
    """One demonstration as the index and randomised filters read it; a step is a round or a batch of rounds.

    Within a stretch of pulls of one arm that another arm ends, `left` is the number of its pulls after this step,
    `rival` the arm that ends it, and `rival_round` the round in which it does. Otherwise `left` is 0.
    """

    arm: Integers
    count: Integers  # of pulls
    round: Integers  # the first one (from 1), in which the rule decided
    next_round: Integers  # in which the rule next decides for this arm; `NEVER` if it does not
    opening: int  # steps before the rule's first decision
    decides: Marks  # whether the rule decides here; an arm that arrives late is opened in mid-run
    binding: Marks  # whether the new state is compared; in the opening only after the arm's last pull
    left: Integers
    rival: Integers
    rival_round: Integers
    rewards: Numbers  # per round; NaN where unknown
    spans: Spans  # the rounds in which each arm can be pulled


class Views(NamedTuple):
    """Which actions a randomised rule draws from its state before each round: the state that holds rewards up to it.

    With a `delay` of `d`, the state before round `s` is looked at in round `s + d`. One number per round.
    """

    judged: Integers  # how many actions
    first: Integers  # the first of them, from 0
    decided: Integers  # the round (from 1) of the look
    spans: Spans  # the rounds in which each arm can be pulled: the rule chooses among those that are there


class Cloud(NamedTuple):
    """Particles, their log weights, and what is recorded on the way.

    `past` and `before` are reward sums and pull counts from earlier demonstrations of the same instance. At each mark,
    `kept_sums`, `kept_ancestors` and `kept_shifts` take the sums, each particle's ancestor at the previous mark, and
    its level shift so far.
    """

    belief: Belief
    sums: Numbers  # reward sums in this demonstration: (particles, arms)
    past: Numbers
    before: Numbers
    log_weights: Numbers  # the weights have mean 1 after each step
    increments: Numbers  # per step: log of the mean weight, that is, the change of the log evidence
    effective_size: Numbers  # per step: effective sample size before resampling
    relaxed: Integers  # per step: the number of particles that violate a comparison
    ancestors: Integers  # each particle's parent at the last resampling
    lineage: Integers  # each particle's ancestor at the last mark
    marks: Integers  # steps after which the sums are kept, ascending
    kept_sums: Numbers
    kept_ancestors: Integers
    kept_shifts: Numbers
    shift: Numbers  # by how much each particle's rewards were shifted so far (see `gibbs_level`)
    rng: Rng
    table: Numbers  # of the normal quantile
    signals: Integers  # particles times steps done so far, of all clouds that share it; not 0 if they are to end


# Functions called for each particle take numbers, not tuples of arrays: numba counts references to every array of a
# tuple at each call, which made the filters up to nine times slower. Arrays are assigned by loops: `a[:] = b` takes up
# to two seconds to compile, for each rule.


@inlined
def prior_of(belief: Belief, arm: int) -> ArmPrior:
    """Return the prior on the mean of one arm."""
    return ArmPrior(belief.first[arm], belief.second[arm], belief.sigma)


@inlined
def posterior_mean(prior: ArmPrior, pulls: Any, total: Any) -> Any:
    """Return expectation and variance of a mean given `pulls` normal rewards of sum `total`."""
    noise = prior.sigma * prior.sigma
    scale = 1.0 / (noise + pulls * prior.second)
    return (prior.first * noise + prior.second * total) * scale, prior.second * noise * scale


@inlined
def predictive_sum(prior: ArmPrior, pulls: float, total: float, number: int) -> tuple[float, float]:
    """Return expectation and deviation of the sum of the next `number` normal rewards, `x ~ N(k m, k^2 v + k s^2)`."""
    mean, variance = posterior_mean(prior, pulls, total)
    return number * mean, math.sqrt(number * number * variance + number * prior.sigma * prior.sigma)


@inlined
def posterior_success(prior: ArmPrior, pulls: float, total: float) -> float:
    """Return the probability that the next reward is 1, given `total` ones among `pulls` rewards."""
    return (prior.first + total) / (prior.first + prior.second + pulls)


@inlined
def two_uniforms(rng: Rng, stream: np.uint64, step: int, place: int) -> tuple[float, float]:
    """Return the random numbers in (0, 1) of a stream at a step and a place (a particle, or a particle and an arm)."""
    first, second = philox(np.uint64(step), np.uint64(place), rng.name, stream, rng.key_0, rng.key_1)
    return uniform_from_word(first), uniform_from_word(second)


@inlined
def uniform(rng: Rng, stream: np.uint64, step: int, place: int) -> float:
    """Return the first of these random numbers."""
    return two_uniforms(rng, stream, step, place)[0]


@inlined
def normal(rng: Rng, stream: np.uint64, step: int, place: int, table: Numbers) -> float:
    """Return the standard normal random number of a stream at a step and a place."""
    word, _ = philox(np.uint64(step), np.uint64(place), rng.name, stream, rng.key_0, rng.key_1)
    return normal_from_word(word, table)


@inlined
def count_pulls(arm: Integers, first: int, number: int, counts: Integers) -> None:
    """Count the pulls of each arm in `number` rounds."""
    for each in range(counts.size):
        counts[each] = 0
    for at in range(first, first + number):
        counts[arm[at]] += 1


@inlined
def take_rows(values: NDArray[Any], who: Integers, rows: NDArray[Any]) -> None:
    """Take the rows of some arms: what a rule sees where only these can be pulled."""
    for place in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            rows[place, column] = values[who[place], column]


@called
def resample(cloud: Cloud, step: int) -> tuple[bool, bool]:
    """Record the step's evidence; resample systematically if the effective sample size is small.

    Returns whether any particle is alive (none where the filter is to end), and whether the cloud was resampled. Sums,
    past, shift and lineage then are those of the offspring; whatever else a filter holds per particle, it takes from
    `cloud.ancestors` itself.
    """
    weights = cloud.log_weights, cloud.increments, cloud.effective_size
    alive, resampled = resample_weights(*weights, cloud.ancestors, cloud.rng, cloud.signals, step)
    if resampled:
        inherit_rows(cloud.sums, cloud.ancestors)
        inherit_rows(cloud.past, cloud.ancestors)
        inherit(cloud.shift, cloud.ancestors)
        inherit(cloud.lineage, cloud.ancestors)
    return alive, resampled


@called
def resample_weights(
    log_weights: Numbers, increments: Numbers, effective_size: Numbers, ancestors: Integers, rng: Rng,
    signals: Integers, step: int,
) -> tuple[bool, bool]:  # fmt: skip
    """Resample as `resample` does, but leave it to the caller to inherit what particles hold."""
    number = log_weights.size
    signals[0] += number
    if signals[1] != 0:
        return False, False
    largest = -math.inf
    for particle in range(number):
        largest = max(largest, log_weights[particle])
    if largest == -math.inf:
        return False, False
    # Evidence: log mean w. Effective sample size: (sum w)^2 / sum w^2.
    total, squares = 0.0, 0.0
    for particle in range(number):
        weight = exponential(log_weights[particle] - largest)
        total += weight
        squares += weight * weight
    log_mean = largest + math.log(total / number)
    increments[step] = log_mean
    effective_size[step] = total * total / squares
    if effective_size[step] >= RESAMPLE_BELOW * number:
        for particle in range(number):
            log_weights[particle] -= log_mean
        return True, False
    # Systematic resampling: offspring k has the ancestor in whose part of the cumulated weights k + U falls.
    offset, cumulated, offspring = uniform(rng, RESAMPLING, step, 0), 0.0, 0
    scale = number / total
    for particle in range(number):
        cumulated += scale * exponential(log_weights[particle] - largest)
        while offspring < number and offspring + offset < cumulated:
            ancestors[offspring] = particle
            offspring += 1
    while offspring < number:  # rounding may leave the last ones without an ancestor
        ancestors[offspring] = ancestors[offspring - 1]
        offspring += 1
    for particle in range(number):
        log_weights[particle] = 0.0
    return True, True


@inlined
def assign(values: NDArray[Any], new: NDArray[Any]) -> None:
    """Assign new values, in place."""
    target, source = values.reshape(-1), new.reshape(-1)
    for at in range(target.size):
        target[at] = source[at]


@called
def inherit(values: NDArray[Any], ancestors: Integers) -> None:
    """Give offspring the values of their ancestors, in place; values have one row per particle."""
    inherit_rows(values.reshape((ancestors.size, -1)), ancestors)


@called
def inherit_rows(rows: NDArray[Any], ancestors: Integers) -> None:
    """Inherit where every particle has one row of numbers.

    Ancestors ascend. So no row is needed after it is overwritten: first those that come from further on, forwards, then
    those that come from before, backwards.
    """
    number = ancestors.size
    for turn in range(2 * number):
        particle = turn if turn < number else 2 * number - 1 - turn
        parent = ancestors[particle]
        if parent > particle if turn < number else parent < particle:
            for column in range(rows.shape[1]):
                rows[particle, column] = rows[parent, column]


@called
def keep_sums(cloud: Cloud, step: int, mark: int) -> int:
    """Keep sums and ancestors if the step is the next mark; return the number of the mark to come."""
    if mark == cloud.marks.size or cloud.marks[mark] != step:
        return mark
    for particle in range(cloud.lineage.size):
        for arm in range(cloud.sums.shape[1]):
            cloud.kept_sums[mark, particle, arm] = cloud.sums[particle, arm]
        cloud.kept_ancestors[mark, particle] = cloud.lineage[particle]
        cloud.kept_shifts[mark, particle] = cloud.shift[particle]
        cloud.lineage[particle] = particle
    return mark + 1


@called
def take_sums(cloud: Cloud, memories: Numbers) -> None:
    """Take the sums of rewards from the first column of what a rule remembers: (particles, arms, columns)."""
    for particle in range(memories.shape[0]):
        for arm in range(memories.shape[1]):
            cloud.sums[particle, arm] = memories[particle, arm, 0]


@inlined
def gibbs_level(cloud: Cloud, pulls: Integers, sums: Numbers, particle: int, step: int) -> float:
    """Shift all of a particle's rewards by a number drawn from its conditional distribution; return the shift.

    For rules that do not see a common shift. A sample mean of `n` rewards has the prior's mean and variance, plus
    `sigma^2 / n`, and differences between rewards of one arm are not touched: the shift is normal.
    """
    belief, precision, pressure = cloud.belief, 0.0, 0.0
    for arm in range(pulls.size):
        behind = cloud.before[arm] + pulls[arm]
        if behind > 0.0:
            own = 1.0 / (belief.second[arm] + belief.sigma * belief.sigma / behind)
            precision += own
            pressure += own * (belief.first[arm] - (cloud.past[particle, arm] + sums[arm]) / behind)
    shift = pressure / precision + normal(cloud.rng, LEVELS, step, particle, cloud.table) / math.sqrt(precision)
    cloud.shift[particle] += shift
    for arm in range(pulls.size):
        cloud.past[particle, arm] += cloud.before[arm] * shift
        sums[arm] += pulls[arm] * shift
    return shift


@called
def liu_west_move(cloud: Cloud, pulls: Integers, memories: Numbers, step: int) -> None:
    """Move offspring apart: towards the centre of the cloud and as much at random, `x' = c + a (x - c) + h L z`.

    Resampling leaves copies, and an arm that is seldom pulled would soon have one value in the whole cloud. With
    `a^2 + h^2 = 1` and `L L'` the covariance, the move keeps mean and covariance (J. Liu and M. West, "Combined
    parameter and state estimation in simulation-based filtering", 2001), but treats the cloud as normal. Sample means,
    whatever else the rule remembers, and the sample means of earlier demonstrations move together.
    """
    number, arms, columns = memories.shape
    size = arms * (columns + 1)
    # Flatten what moves: one row per particle.
    values, centre = new_table(number, size, 0.0), new_numbers(size, 0.0)
    for particle in range(number):
        for arm in range(arms):
            at = arm * (columns + 1)
            values[particle, at] = memories[particle, arm, 0] / max(pulls[arm], 1)
            for column in range(1, columns):
                values[particle, at + column] = memories[particle, arm, column]
            values[particle, at + columns] = cloud.past[particle, arm] / max(cloud.before[arm], 1.0)
    for at in range(size):
        for particle in range(number):
            centre[at] += values[particle, at]
        centre[at] /= number
    factor = _covariance_factor(values, centre)
    shrinkage = math.sqrt(1.0 - MOVE_SHARE * MOVE_SHARE)
    noise = new_numbers(size, 0.0)
    for particle in range(number):
        for at in range(size):
            noise[at] = normal(cloud.rng, MOVES, step, particle * size + at, cloud.table)
        # Move, and write back as sums.
        for arm in range(arms):
            for column in range(columns + 1):
                at = arm * (columns + 1) + column
                moved = centre[at] + shrinkage * (values[particle, at] - centre[at])
                for other in range(at + 1):
                    moved += MOVE_SHARE * factor[at, other] * noise[other]
                if column == columns:
                    cloud.past[particle, arm] = moved * cloud.before[arm]
                elif column == 0:
                    memories[particle, arm, 0] = moved * pulls[arm]
                else:
                    memories[particle, arm, column] = moved


@called
def _covariance_factor(values: Numbers, centre: Numbers) -> Numbers:
    """Return the Cholesky factor of the covariance of some values, with zeros for what does not vary."""
    number, size = values.shape
    factor = new_table(size, size, 0.0)
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
