"""Filter the hidden rewards behind an elimination rule's actions, from test to test.

At a test the arms that stay have sample means within twice the width of each other, and those that go lie at least as
far below the largest. Arms are drawn one after the other, those that stay first, each within the bounds that the
earlier ones leave.

An arm that goes later must have come down by then: its proposal is twisted towards the mean that its last test
requires, below the leading arm's, and the twisting factor is divided out at the next test.

The record hardly shows which of several staying arms leads. Resampling would decide it by chance, so offspring exchange
the sums of such arms at random.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, compiled, inlined
from unbandit.kernels.smc.cloud import Cloud, gibbs_level, keep_sums, posterior_mean, resample, uniform
from unbandit.kernels.smc.proposal import log_twist, no_ones, one_more, reservoir, truncated_normal, twisted_proposal

OUT, STAYS, GOES, OPEN = 0, 1, 2, 3
DRAWS, EXCHANGES = np.uint64(8), np.uint64(9)  # the tape's streams

GOAL_CAUTION = 2.0
"""The variance of an arm's goal is multiplied by this, because the rivals to come are unknown."""

MOST_TWISTED = 8.0
"""The largest cost of a twisting factor, as a logarithm: if the leading arm changes, the goal was wrong."""


class EliminationTests(NamedTuple):
    """What a demonstration of an elimination rule shows.

    Attributes
    ----------
    epoch, width
        The epoch at whose end each test was made, and the width then.
    fate
        Of each arm at each test (tests x arms): `OUT` before it, `STAYS`, `GOES`, or `OPEN` where the record ends.
    last
        Per arm: the epoch at whose end it went; 0 if it did not.
    drop, drop_variance
        Per arm: roughly how far below the leading arm it was when it went, and the variance of that.
    known, known_sum
        The number of known rewards of each arm between a test and the previous one, and their sum.
    """

    epoch: NDArray[np.int64]
    width: NDArray[np.float64]
    fate: NDArray[np.int8]
    last: NDArray[np.int64]
    drop: NDArray[np.float64]
    drop_variance: NDArray[np.float64]
    known: NDArray[np.int64]
    known_sum: NDArray[np.float64]


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
    tests: EliminationTests, cloud: Cloud, shifts: bool, alike: NDArray[np.bool_], pulls: NDArray[np.int64]
) -> int:  # fmt: skip
    """Move a cloud from test to test; return 0, or the first test (from 1) that no particle survives.

    `alike` marks the arms about which the observer knew the same beforehand. Fills `pulls` with the number of rewards
    behind each arm's sum.
    """
    number, arms = cloud.sums.shape
    twists = np.zeros(number)
    order = _staying_first(tests.last)
    pulls[:], mark = 0, 0
    for test in range(tests.epoch.size):
        for arm in range(arms):
            cloud.before[arm] -= tests.known[test, arm]
            for particle in range(number):
                cloud.past[particle, arm] -= tests.known_sum[test, arm]
                cloud.sums[particle, arm] += tests.known_sum[test, arm]
        # w *= P(bounds of all arms) psi_t / psi_{t-1}, psi being the twisting factor.
        for particle in range(number):
            cloud.log_weights[particle] -= twists[particle]
            log_weight = _draw_arms(tests, cloud, order, pulls, test, particle)
            twists[particle] = _log_twist(tests, cloud, test, particle)
            cloud.log_weights[particle] += log_weight + twists[particle]
        for arm in range(arms):
            if tests.fate[test, arm] != OUT:
                pulls[arm] = tests.epoch[test]
        alive, resampled = resample(cloud, test)
        if not alive:
            return test + 1
        if resampled:
            twists[:] = twists[cloud.ancestors]
            for particle in range(number):
                _exchange(tests, cloud, alike, test, particle)
        mark = keep_sums(cloud, test, mark)
    if shifts and pulls.max() > 0:
        for particle in range(number):
            gibbs_level(cloud, pulls, cloud.sums[particle], particle, tests.epoch.size)
    return 0


@called
def _staying_first(last: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the arms in the order in which they are drawn: those that never go, then the others, the latest first."""
    keys = np.where(last == 0, -np.int64(2**62), -last)
    return np.argsort(keys, kind="mergesort")


@inlined
def _exchange(tests: EliminationTests, cloud: Cloud, alike: NDArray[np.bool_], test: int, particle: int) -> None:
    """Shuffle the sums of the arms that have stayed so far and never go at random (Fisher-Yates)."""
    arms = tests.last.size
    for arm in range(arms - 1, 0, -1):
        if not _exchangeable(tests, alike, test, arm):
            continue
        partners = 0
        for other in range(arm + 1):
            partners += 1 if _exchangeable(tests, alike, test, other) else 0
        skip = int(uniform(cloud, EXCHANGES, test, particle * arms + arm) * partners)
        for other in range(arm + 1):
            if _exchangeable(tests, alike, test, other):
                if skip == 0:
                    mine, its = cloud.sums[particle, arm], cloud.sums[particle, other]
                    cloud.sums[particle, arm], cloud.sums[particle, other] = its, mine
                    break
                skip -= 1


@inlined
def _exchangeable(tests: EliminationTests, alike: NDArray[np.bool_], test: int, arm: int) -> bool:
    return alike[arm] and tests.fate[test, arm] == STAYS and tests.last[arm] == 0


@inlined
def _goal(tests: EliminationTests, cloud: Cloud, particle: int, arm: int, leader: int, epoch: int) -> Goal:
    """Return the sample mean that an arm must have when it goes, judging from the leading arm."""
    noise, total = cloud.belief.sigma * cloud.belief.sigma, cloud.past[particle, leader] + cloud.sums[particle, leader]
    mean, variance = posterior_mean(cloud.belief, leader, cloud.before[leader] + epoch, total)
    left, end = tests.last[arm] - epoch, 1.0 / tests.last[arm]
    goal = end * (cloud.sums[particle, leader] + left * mean) - tests.drop[arm]
    spread = GOAL_CAUTION * end * end * (left * left * variance + left * noise) + tests.drop_variance[arm]
    return Goal(goal, spread, left)


@inlined
def _log_twist(tests: EliminationTests, cloud: Cloud, test: int, particle: int) -> float:
    """Return the log of a particle's twisting factor: how well the arms that go later lie for it."""
    belief, epoch, factor, leader = cloud.belief, tests.epoch[test], 0.0, -1
    if belief.bernoulli:
        return 0.0
    for arm in range(tests.last.size):
        stays = tests.fate[test, arm] == STAYS and tests.last[arm] == 0
        if stays and (leader < 0 or cloud.sums[particle, arm] > cloud.sums[particle, leader]):
            leader = arm
    if leader < 0:
        return 0.0
    for arm in range(tests.last.size):
        if tests.fate[test, arm] == STAYS and tests.last[arm] > 0:
            goal = _goal(tests, cloud, particle, arm, leader, epoch)
            total = cloud.past[particle, arm] + cloud.sums[particle, arm]
            mean, variance = posterior_mean(belief, arm, cloud.before[arm] + epoch, total)
            left, end = tests.last[arm] - epoch, 1.0 / tests.last[arm]
            off = end * (cloud.sums[particle, arm] + left * mean) - goal.mean
            uncertain = end * end * (left * left * variance + left * belief.sigma * belief.sigma) + goal.variance
            factor -= min(0.5 * off * off / uncertain, MOST_TWISTED)
    return factor


@inlined
def _draw_arms(
    tests: EliminationTests, cloud: Cloud, order: NDArray[np.int64], pulls: NDArray[np.int64], test: int, particle: int
) -> float:  # fmt: skip
    """Draw the sums of all active arms up to a test; return the log weight."""
    epoch, width = tests.epoch[test], tests.width[test]
    largest, smallest, winner = -math.inf, math.inf, -1
    log_weight, leader = 0.0, -1
    for fate in (STAYS, OPEN, GOES):
        for arm in order:
            if tests.fate[test, arm] != fate:
                continue
            # Bounds of the mean: staying arms within 2 C of each other, going ones at least 2 C below the largest.
            low, high = -math.inf, smallest + 2.0 * width
            if fate == STAYS:
                low = largest - 2.0 * width
            elif fate == GOES:
                high = largest - 2.0 * width
            open_end = width == 0.0 and fate == GOES and arm < winner  # of equal means the lower arm's stays
            goal = Goal(math.nan, 0.0, 0)
            if fate == STAYS and tests.last[arm] > 0 and leader >= 0:
                goal = _goal(tests, cloud, particle, arm, leader, epoch)
            bounds = Bounds(low, high, open_end)
            gained, log_mass = _draw(tests, cloud, test, particle, arm, pulls[arm], bounds, goal)
            log_weight += log_mass
            cloud.sums[particle, arm] += gained
            mean = cloud.sums[particle, arm] * (1.0 / epoch)
            if mean > largest:
                largest, winner = mean, arm
            if fate == STAYS:
                smallest = min(smallest, mean)
                if tests.last[arm] == 0 and (leader < 0 or cloud.sums[particle, arm] > cloud.sums[particle, leader]):
                    leader = arm
    return log_weight


@inlined
def _draw(
    tests: EliminationTests, cloud: Cloud, test: int, particle: int, arm: int, before: int, bounds: Bounds, goal: Goal
) -> tuple[float, float]:  # fmt: skip
    """Draw what an arm gained since the previous test; return it, and its log weight."""
    belief, epoch, seen = cloud.belief, tests.epoch[test], tests.known[test, arm]
    base, hidden = cloud.sums[particle, arm], epoch - before - seen
    known, total = cloud.before[arm] + before + seen, cloud.past[particle, arm] + base
    drawn_by = uniform(cloud, DRAWS, test, particle * cloud.sums.shape[1] + arm)
    if belief.bernoulli:
        ones, zeros = belief.first[arm] + total, belief.second[arm] + known - total
        return _draw_ones(ones, zeros, base, hidden, epoch, bounds, drawn_by)
    low, high = bounds.low * epoch, bounds.high * epoch
    if hidden == 0:
        return 0.0, 0.0 if low < base <= high else -math.inf
    # Predictive distribution of the sum: N(hidden mean, hidden^2 variance + hidden sigma^2), within the bounds.
    if math.isnan(goal.mean):
        mean, variance = posterior_mean(belief, arm, known, total)
        centre = hidden * mean
        deviation = math.sqrt(hidden * hidden * variance + hidden * belief.sigma * belief.sigma)
        drawn, log_mass = truncated_normal(
            (low - base - centre) / deviation, (high - base - centre) / deviation, drawn_by, cloud.table
        )
        return centre + deviation * drawn, log_mass
    # The same, twisted towards the goal.
    left = max(goal.left, 0)
    twist = twisted_proposal(belief, arm, known, total, base, hidden, epoch, left, goal.mean, goal.variance)
    centre, deviation = twist.centre, twist.deviation
    drawn, log_mass = truncated_normal(
        (low - base - centre) / deviation, (high - base - centre) / deviation, drawn_by, cloud.table
    )
    gained = centre + deviation * drawn
    return gained, twist.log_weight - log_twist(twist, gained, goal.mean) + log_mass


@inlined
def _draw_ones(
    ones: float, zeros: float, base: float, hidden: int, epoch: int, bounds: Bounds, drawn_by: float
) -> tuple[float, float]:  # fmt: skip
    """Draw how many of some rewards were 1, among the numbers that fit; return it, and its log weight."""
    mass, drawn, chance = 0.0, 0, no_ones(ones, zeros, hidden)
    for outcome in range(hidden + 1):
        if outcome > 0:
            chance = one_more(chance, outcome, ones, zeros, hidden)
        mean = (base + outcome) * (1.0 / epoch)
        fits = bounds.low < mean <= bounds.high and not (bounds.open_end and mean == bounds.high)
        if fits and chance > 0.0:
            drawn, drawn_by, mass = reservoir(drawn, drawn_by, mass, outcome, chance)
    return drawn, math.log(mass) if mass > 0.0 else -math.inf
