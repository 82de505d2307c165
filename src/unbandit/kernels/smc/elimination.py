"""Filter the hidden rewards behind an elimination rule's actions, from test to test.

At a test the arms that stay have sample means within twice the width of each other, and those that go lie at least as
far below the largest. Arms are drawn one after the other, those that stay first, each within the bounds that the
earlier ones leave.

The proposal of an arm that goes later is twisted towards the mean that its last test requires, and that of an arm that
never goes towards the leading one: to the end they stay within twice the last width of each other.

The record hardly shows which of several staying arms leads. Resampling would decide it by chance, so offspring exchange
the sums of such arms at random.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.smc.cloud import (
    ArmPrior,
    Cloud,
    gibbs_level,
    inherit,
    keep_sums,
    posterior_mean,
    predictive_sum,
    prior_of,
    resample,
    uniform,
)
from unbandit.kernels.smc.proposal import log_twist, no_ones, one_more, reservoir, truncated_normal, twisted_proposal

OUT, STAYS, GOES, OPEN = 0, 1, 2, 3
DRAWS, EXCHANGES = np.uint64(8), np.uint64(9)  # the tape's streams

GOAL_CAUTION = 2.0  # the variance of an arm's goal is multiplied by this, because the rivals to come are unknown

MOST_TWISTED = 8.0
"""The cost of a twisting factor, as a logarithm, from which on it grows slowly: the goal is wrong if leaders change."""


class EliminationTests(NamedTuple):
    """What a demonstration of an elimination rule shows."""

    epoch: Integers  # at whose end each test was made
    width: Numbers  # at each test
    fate: NDArray[np.int8]  # (tests, arms): `OUT` before the test, `STAYS`, `GOES`, or `OPEN` where the record ends
    last: Integers  # per arm: the epoch at whose end it went; 0 if it did not
    order: Integers  # in which arms are drawn: those that never go, then the others, the latest first
    drop: Numbers  # per arm: roughly how far below the leading arm it was when it went
    drop_variance: Numbers
    known: Integers  # (tests, arms): the number of known rewards since the test before
    known_sum: Numbers


class Bounds(NamedTuple):
    """Where an arm's new sample mean must lie: `low < mean <= high`, or `< high` where that end is open."""

    low: float
    high: float
    open_end: bool


class Goal(NamedTuple):
    """The sample mean that an arm must have when it goes, with its variance, or a mean of NaN; and the pulls left."""

    mean: float
    variance: float
    left: int


@compiled
def filter_elimination(
    tests: EliminationTests, cloud: Cloud, shifts: bool, alike: NDArray[np.bool_], pulls: Integers, phase: Integers,
    by_phase: Numbers,
) -> int:  # fmt: skip
    """Move a cloud from test to test; return 0, or the first test (from 1) that no particle survives.

    `alike` marks the arms about which the observer knew the same beforehand. Fills `pulls` with the number of rewards
    behind each arm's sum. A phase is a stretch of tests of the same arms, and `phase` its number at each test. Fills
    `by_phase`, (particles, phases, arms), with the sums at the end of each, unless it has no phases.
    """
    number, arms = cloud.sums.shape
    twists, log_weights = np.zeros(number), np.zeros(number)
    mark = 0
    for test in range(tests.epoch.size):
        for arm in range(arms):  # known to the observer from the start; the rule sees them now
            cloud.before[arm] -= tests.known[test, arm]
            for particle in range(number):
                cloud.past[particle, arm] -= tests.known_sum[test, arm]
                cloud.sums[particle, arm] += tests.known_sum[test, arm]
        # w *= P(bounds of all arms) psi_t / psi_{t-1}, psi being the twisting factor.
        for particle in range(number):
            cloud.log_weights[particle] -= twists[particle]
        _draw_arms(tests, cloud, pulls, test, log_weights)
        _update_twists(tests, cloud, test, twists)
        for particle in range(number):
            cloud.log_weights[particle] += log_weights[particle] + twists[particle]
        for arm in range(arms):
            if tests.fate[test, arm] != OUT:
                pulls[arm] = tests.epoch[test]
        alive, resampled = resample(cloud, test)
        if not alive:
            return test + 1
        if resampled:
            inherit(twists, cloud.ancestors)
            inherit(by_phase, cloud.ancestors)
            _exchange(tests, cloud, alike, test, by_phase)
        for particle in range(number if by_phase.shape[1] > 0 else 0):
            for arm in range(arms):
                by_phase[particle, phase[test], arm] = cloud.sums[particle, arm]
        mark = keep_sums(cloud, test, mark)
    if shifts and tests.epoch.size > 0:
        for particle in range(number):
            gibbs_level(cloud, pulls, cloud.sums[particle], particle, tests.epoch.size)
    return 0


@called
def _exchange(
    tests: EliminationTests, cloud: Cloud, alike: NDArray[np.bool_], test: int, by_phase: Numbers
) -> None:  # fmt: skip
    """Shuffle in each particle (Fisher-Yates) the sums of the arms that have stayed so far and never go."""
    arms = tests.last.size
    partners, size = np.empty(arms, np.int64), 0
    for arm in range(arms):
        if alike[arm] and tests.fate[test, arm] == STAYS and tests.last[arm] == 0:
            partners[size] = arm
            size += 1
    for particle in range(cloud.sums.shape[0]):
        for at in range(size - 1, -1, -1):
            arm = partners[at]
            if arm > 0:
                other = partners[int(uniform(cloud.rng, EXCHANGES, test, particle * arms + arm) * (at + 1))]
                mine, its = cloud.sums[particle, arm], cloud.sums[particle, other]
                cloud.sums[particle, arm], cloud.sums[particle, other] = its, mine
                for phase in range(by_phase.shape[1]):
                    mine, its = by_phase[particle, phase, arm], by_phase[particle, phase, other]
                    by_phase[particle, phase, arm], by_phase[particle, phase, other] = its, mine


@inlined
def _later(prior: ArmPrior, known: float, total: float, own: float, left: int, end: float) -> tuple[float, float]:
    """Return expectation and variance of an arm's sample mean after `left` more pulls, then `1 / end` in all."""
    mean, variance = posterior_mean(prior, known, total)
    return end * (own + left * mean), end * end * (left * left * variance + left * prior.sigma * prior.sigma)


@called
def _update_twists(tests: EliminationTests, cloud: Cloud, test: int, twists: Numbers) -> None:
    """Compute the log of each particle's twisting factor: how well the arms that go later lie for it.

    They go one after the other at a drop below the same leading arm, whose mean and sum are followed by a Kalman
    filter: an arm that goes shows where the leading arm is when the next one goes.
    """
    belief, epoch = cloud.belief, tests.epoch[test]
    for particle in range(0 if belief.bernoulli else twists.size):
        factor, leader = 0.0, -1
        for arm in range(tests.last.size):
            stays = tests.fate[test, arm] == STAYS and tests.last[arm] == 0
            if stays and (leader < 0 or cloud.sums[particle, arm] > cloud.sums[particle, leader]):
                leader = arm
        if leader < 0:
            twists[particle] = 0.0
            continue
        best, at, prior = cloud.sums[particle, leader], epoch, prior_of(belief, leader)
        mean, variance = posterior_mean(prior, cloud.before[leader] + epoch, cloud.past[particle, leader] + best)
        variance, between, spread, noise = GOAL_CAUTION * variance, 0.0, 0.0, GOAL_CAUTION * prior.sigma * prior.sigma
        for place in range(tests.order.size - 1, -1, -1):  # the first to go comes first
            arm = tests.order[place]
            if tests.fate[test, arm] != STAYS or tests.last[arm] == 0:
                continue
            ahead, end = tests.last[arm] - at, 1.0 / tests.last[arm]
            best += ahead * mean
            spread += ahead * (2.0 * between + ahead * variance + noise)
            between += ahead * variance
            at = tests.last[arm]
            own, known = cloud.sums[particle, arm], cloud.before[arm] + epoch
            total = cloud.past[particle, arm] + own
            later, later_variance = _later(prior_of(belief, arm), known, total, own, at - epoch, end)
            off = end * best - later - tests.drop[arm]
            scatter = end * end * spread + later_variance + tests.drop_variance[arm]
            cost = 0.5 * off * off / scatter
            factor -= _slowly(cost)
            if cost < MOST_TWISTED:
                of_mean, of_sum = end * between / scatter, end * spread / scatter
                mean, best = mean - of_mean * off, best - of_sum * off
                variance -= of_mean * end * between
                between -= of_mean * end * spread
                spread -= of_sum * end * spread
        final = tests.epoch[-1]
        ahead, end = final - at, 1.0 / final
        best += ahead * mean
        spread += ahead * (2.0 * between + ahead * variance + noise)
        for arm in range(tests.last.size if final > epoch else 0):  # those that never go stay close to the end
            if arm != leader and tests.fate[test, arm] == STAYS and tests.last[arm] == 0:
                own, known = cloud.sums[particle, arm], cloud.before[arm] + epoch
                total = cloud.past[particle, arm] + own
                later, later_variance = _later(prior_of(belief, arm), known, total, own, final - epoch, end)
                off = max(end * best - later - 2.0 * tests.width[-1], 0.0)
                cost = 0.5 * off * off / (end * end * spread + later_variance)
                factor -= _slowly(cost)
        twists[particle] = factor


@inlined
def _slowly(cost: float) -> float:
    return cost if cost < MOST_TWISTED else MOST_TWISTED * (1.0 + math.log(cost / MOST_TWISTED))


@inlined
def _goal(
    prior: ArmPrior, known: float, total: float, own: float, left: int, end: float, drop: float, drop_variance: float
) -> Goal:
    """Return the sample mean that an arm must have when it goes: that of the leading arm, less a drop."""
    mean, variance = _later(prior, known, total, own, left, end)
    return Goal(mean - drop, GOAL_CAUTION * variance + drop_variance, left)


@called
def _draw_arms(tests: EliminationTests, cloud: Cloud, pulls: Integers, test: int, log_weights: Numbers) -> None:
    """Draw the sums of all active arms up to a test, and the log weight that each particle gains."""
    belief, sums, epoch, width = cloud.belief, cloud.sums, tests.epoch[test], tests.width[test]
    final = tests.epoch[-1]
    for particle in range(log_weights.size):
        largest, smallest, winner = -math.inf, math.inf, -1
        log_weight, leader = 0.0, -1
        for fate in (STAYS, OPEN, GOES):
            for arm in tests.order:
                if tests.fate[test, arm] != fate:
                    continue
                # Bounds of the mean: staying arms within 2 C of each other, going ones at least 2 C below the largest.
                low, high = -math.inf, smallest + 2.0 * width
                if fate == STAYS:
                    low = largest - 2.0 * width
                elif fate == GOES:
                    high = largest - 2.0 * width
                open_end = width == 0.0 and fate == GOES and arm < winner  # of equal means the lower arm's stays
                # Goal of an arm that goes later, below the arm that leads so far.
                goal = Goal(math.nan, 0.0, np.int64(0))
                if fate == STAYS and tests.last[arm] > 0 and leader >= 0:
                    best = sums[particle, leader]
                    goal = _goal(
                        prior_of(belief, leader), cloud.before[leader] + epoch, cloud.past[particle, leader] + best,
                        best, tests.last[arm] - epoch, 1.0 / tests.last[arm], tests.drop[arm], tests.drop_variance[arm],
                    )  # fmt: skip
                elif fate == STAYS and leader >= 0 and final > epoch:  # it stays close to the end
                    best = sums[particle, leader]
                    goal = _goal(
                        prior_of(belief, leader), cloud.before[leader] + epoch, cloud.past[particle, leader] + best,
                        best, final - epoch, 1.0 / final, 0.0, 4.0 * tests.width[-1] * tests.width[-1],
                    )  # fmt: skip
                # Draw what the arm gained since the previous test.
                base, seen = sums[particle, arm], pulls[arm] + tests.known[test, arm]
                known, total = cloud.before[arm] + seen, cloud.past[particle, arm] + base
                bounds, prior = Bounds(low, high, open_end), prior_of(belief, arm)
                drawn_by = uniform(cloud.rng, DRAWS, test, particle * sums.shape[1] + arm)
                if belief.bernoulli:
                    gained, log_mass = _draw_ones(prior, known, total, base, epoch - seen, epoch, bounds, drawn_by)
                else:
                    gained, log_mass = _draw_normal(
                        prior, known, total, base, epoch - seen, epoch, bounds, goal, drawn_by, cloud.table
                    )
                log_weight += log_mass
                sums[particle, arm] += gained
                mean = sums[particle, arm] * (1.0 / epoch)
                if mean > largest:
                    largest, winner = mean, arm
                if fate == STAYS:
                    smallest = min(smallest, mean)
                    if tests.last[arm] == 0 and (leader < 0 or sums[particle, arm] > sums[particle, leader]):
                        leader = arm
        log_weights[particle] = log_weight


@inlined
def _draw_normal(
    prior: ArmPrior, known: float, total: float, base: float, hidden: int, epoch: int, bounds: Bounds, goal: Goal,
    drawn_by: float, table: Numbers,
) -> tuple[float, float]:  # fmt: skip
    """Draw the sum of some rewards within the bounds, twisted towards the goal; return it, and its log weight."""
    low, high = bounds.low * epoch, bounds.high * epoch
    if hidden == 0:
        return 0.0, 0.0 if low < base <= high else -math.inf
    if math.isnan(goal.mean):
        centre, deviation = predictive_sum(prior, known, total, hidden)
        drawn, log_mass = truncated_normal(
            (low - base - centre) / deviation, (high - base - centre) / deviation, drawn_by, table
        )
        return centre + deviation * drawn, log_mass
    left = max(goal.left, 0)
    twist = twisted_proposal(prior, known, total, base, hidden, epoch, left, goal.mean, goal.variance)
    centre, deviation = twist.centre, twist.deviation
    drawn, log_mass = truncated_normal(
        (low - base - centre) / deviation, (high - base - centre) / deviation, drawn_by, table
    )
    gained = centre + deviation * drawn
    return gained, twist.log_weight - log_twist(twist, gained, goal.mean) + log_mass


@inlined
def _draw_ones(
    prior: ArmPrior, known: float, total: float, base: float, hidden: int, epoch: int, bounds: Bounds, drawn_by: float
) -> tuple[float, float]:
    """Draw how many of some rewards were 1, among the numbers that fit; return it, and its log weight."""
    ones, zeros = prior.first + total, prior.second + known - total
    mass, drawn, chance = 0.0, 0, no_ones(ones, zeros, hidden)
    for outcome in range(hidden + 1):
        if outcome > 0:
            chance = one_more(chance, outcome, ones, zeros, hidden)
        mean = (base + outcome) * (1.0 / epoch)
        fits = bounds.low < mean <= bounds.high and not (bounds.open_end and mean == bounds.high)
        if fits and chance > 0.0:
            drawn, drawn_by, mass = reservoir(drawn, drawn_by, mass, outcome, chance)
    return drawn, math.log(mass) if mass > 0.0 else -math.inf
