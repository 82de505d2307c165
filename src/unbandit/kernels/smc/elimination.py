"""Filter the hidden rewards behind an elimination rule's actions, from test to test.

At a test the arms that stay have sample means within twice the width of each other, and those that go lie below the
largest by as much. Arms are drawn one after the other, those that stay first, each within what those before it leave.

An arm that goes later must have come down by then: its rewards are drawn towards the mean that its last test asks for,
below the leading one, and the factor that this brings is taken back at the next test.

Which of several arms that stay is the leading one the record hardly tells. Resampling would settle it by chance, so
heirs exchange the sums of such arms at random.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, compiled, inlined
from unbandit.kernels.rng import philox, uniform_from_word
from unbandit.kernels.smc.cloud import Belief, Cloud, keep, posterior_mean, resample, shift_level
from unbandit.kernels.smc.proposal import log_twist, truncated_normal, twisted_proposal

OUT, STAYS, GOES, OPEN = 0, 1, 2, 3
DRAWS, EXCHANGES = np.uint64(8), np.uint64(9)  # the tape's streams
CAUTION = 2.0
"""How much wider than expected the goal of a guided arm is taken: its rivals are not known."""
BOUND = 8.0
"""The most that a guiding factor costs, as a logarithm: where the leading arm changes, the goal was wrong."""


class EliminationTests(NamedTuple):
    """Hold what a demonstration of an elimination rule shows.

    Attributes
    ----------
    epoch, width
        At the end of which epoch each test was made, and the width then.
    fate
        Of each arm at each test (tests x arms): `OUT` before it, `STAYS`, `GOES`, or `OPEN` where the record ends.
    last
        For each arm the epoch at whose end it went; 0 for an arm that did not.
    drop, play
        How far below the leading arm it was by then, about, and the variance of that: it was not yet so at the test
        before.
    known, known_sum
        How many rewards of each arm are known between a test and the one before it, and their sum.
    """

    epoch: NDArray[np.int64]
    width: NDArray[np.float64]
    fate: NDArray[np.int8]
    last: NDArray[np.int64]
    drop: NDArray[np.float64]
    play: NDArray[np.float64]
    known: NDArray[np.int64]
    known_sum: NDArray[np.float64]


@compiled
def filter_elimination(
    tests: EliminationTests, belief: Belief, cloud: Cloud, shifts: bool, alike: NDArray[np.bool_],
    pulls: NDArray[np.int64], table: NDArray[np.float64],
) -> int:  # fmt: skip
    """Move a cloud from test to test; return 0, or the first test (from 1) that no particle survives.

    `alike` marks arms of which the observer knew the same beforehand. Fills `pulls` with how many rewards of each arm
    are behind its sum.
    """
    number, arms = cloud.sums.shape
    ancestors, line, guides = np.empty(number, np.int64), np.arange(number), np.zeros(number)
    order = _staying_first(tests.last)
    pulls[:], mark = 0, 0
    for test in range(tests.epoch.size):
        for arm in range(arms):
            cloud.before[arm] -= tests.known[test, arm]
            for particle in range(number):
                cloud.past[particle, arm] -= tests.known_sum[test, arm]
                cloud.sums[particle, arm] += tests.known_sum[test, arm]
        for particle in range(number):
            cloud.weights[particle] -= guides[particle]
            weight = _draw_all(tests, belief, cloud, order, pulls, test, particle, table)
            guides[particle] = _led(tests, belief, cloud, test, particle)
            cloud.weights[particle] += weight + guides[particle]
        for arm in range(arms):
            if tests.fate[test, arm] != OUT:
                pulls[arm] = tests.epoch[test]
        alive, drawn_anew = resample(cloud, test, ancestors)
        if not alive:
            return test + 1
        if drawn_anew:
            cloud.sums[:] = cloud.sums[ancestors]
            line[:] = line[ancestors]
            guides[:] = guides[ancestors]
            for particle in range(number):
                _permute(tests, cloud, alike, test, particle)
        while mark < cloud.marks.size and cloud.marks[mark] == test:
            keep(cloud, mark, line)
            mark += 1
    if shifts and pulls.max() > 0:
        for particle in range(number):
            shift_level(belief, cloud, pulls, cloud.sums[particle], particle, tests.epoch.size, table)
    return 0


@inlined
def _permute(tests: EliminationTests, cloud: Cloud, alike: NDArray[np.bool_], test: int, particle: int) -> None:
    """Exchange the sums of arms that have stayed so far and never go: the record does not tell them apart."""
    arms = tests.last.size
    for arm in range(arms - 1, 0, -1):
        if not alike[arm] or tests.fate[test, arm] != STAYS or tests.last[arm] > 0:
            continue
        place = np.uint64(particle * arms + arm)
        word, _ = philox(np.uint64(test), place, cloud.name, EXCHANGES, cloud.key[0], cloud.key[1])
        partners = 0
        for other in range(arm + 1):
            partners += 1 if alike[other] and tests.fate[test, other] == STAYS and tests.last[other] == 0 else 0
        skip = int(uniform_from_word(word) * partners)
        for other in range(arm + 1):
            if alike[other] and tests.fate[test, other] == STAYS and tests.last[other] == 0:
                if skip == 0:
                    mine, its = cloud.sums[particle, arm], cloud.sums[particle, other]
                    cloud.sums[particle, arm], cloud.sums[particle, other] = its, mine
                    break
                skip -= 1


@called
def _staying_first(last: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the arms in the order in which they are drawn: those that never go, then the others, the latest first."""
    keys = np.where(last == 0, -np.int64(2**62), -last)
    return np.argsort(keys, kind="mergesort")


@inlined
def _goal(
    tests: EliminationTests, belief: Belief, cloud: Cloud, particle: int, arm: int, leader: int, epoch: int
) -> tuple[float, float]:  # fmt: skip
    """Return where an arm's sample mean must be when it goes, as far as the leading arm tells, and its variance."""
    total = cloud.past[particle, leader] + cloud.sums[particle, leader]
    mean, variance = posterior_mean(belief, leader, cloud.before[leader] + epoch, total)
    left, end = tests.last[arm] - epoch, 1.0 / tests.last[arm]
    goal = end * (cloud.sums[particle, leader] + left * mean) - tests.drop[arm]
    return goal, CAUTION * end * end * (left * left * variance + left * belief.sigma * belief.sigma) + tests.play[arm]


@inlined
def _led(tests: EliminationTests, belief: Belief, cloud: Cloud, test: int, particle: int) -> float:
    """Return the logarithm of a particle's guiding factor: how well the arms that go later lie for it."""
    epoch, factor, leader = tests.epoch[test], 0.0, -1
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
            goal, slack = _goal(tests, belief, cloud, particle, arm, leader, epoch)
            total = cloud.past[particle, arm] + cloud.sums[particle, arm]
            mean, variance = posterior_mean(belief, arm, cloud.before[arm] + epoch, total)
            left, end = tests.last[arm] - epoch, 1.0 / tests.last[arm]
            off = end * (cloud.sums[particle, arm] + left * mean) - goal
            uncertain = end * end * (left * left * variance + left * belief.sigma * belief.sigma) + slack
            factor -= min(0.5 * off * off / uncertain, BOUND)
    return factor


@inlined
def _draw_all(
    tests: EliminationTests, belief: Belief, cloud: Cloud, order: NDArray[np.int64], pulls: NDArray[np.int64],
    test: int, particle: int, table: NDArray[np.float64],
) -> float:  # fmt: skip
    """Draw the sums of all active arms up to a test; return the logarithm of the weight."""
    epoch, width = tests.epoch[test], tests.width[test]
    largest, smallest, winner = -math.inf, math.inf, -1
    weight, leader = 0.0, -1
    for fate in (STAYS, OPEN, GOES):
        for arm in order:
            if tests.fate[test, arm] != fate:
                continue
            low, high = -math.inf, smallest + 2.0 * width  # of the new mean
            if fate == STAYS:
                low = largest - 2.0 * width
            elif fate == GOES:
                high = largest - 2.0 * width
            goal, slack = math.nan, 0.0
            if fate == STAYS and tests.last[arm] > 0 and leader >= 0:
                goal, slack = _goal(tests, belief, cloud, particle, arm, leader, epoch)
            closed = width == 0.0 and fate == GOES and arm < winner  # of equal means the lower arm's stays
            gained, mass = _draw(
                belief, cloud, particle, arm, test, pulls[arm], epoch, tests.known[test, arm], low, high, closed, goal,
                slack, tests.last[arm] - epoch, table,
            )  # fmt: skip
            weight += mass
            cloud.sums[particle, arm] += gained
            mean = cloud.sums[particle, arm] * (1.0 / epoch)
            if mean > largest:
                largest, winner = mean, arm
            if fate == STAYS:
                smallest = min(smallest, mean)
                if tests.last[arm] == 0 and (leader < 0 or cloud.sums[particle, arm] > cloud.sums[particle, leader]):
                    leader = arm
    return weight


@inlined
def _draw(
    belief: Belief, cloud: Cloud, particle: int, arm: int, test: int, before: int, epoch: int, seen: int, low: float,
    high: float, closed: bool, goal: float, slack: float, left: int, table: NDArray[np.float64],
) -> tuple[float, float]:  # fmt: skip
    """Draw what an arm gained since the test before; return it, and the logarithm of its weight."""
    base, hidden = cloud.sums[particle, arm], epoch - before - seen
    known, total = cloud.before[arm] + before + seen, cloud.past[particle, arm] + base
    where = np.uint64(particle * cloud.sums.shape[1] + arm)
    word, _ = philox(np.uint64(test), where, cloud.name, DRAWS, cloud.key[0], cloud.key[1])
    uniform = uniform_from_word(word)
    if belief.bernoulli:
        return _discrete(belief, arm, known, total, base, hidden, epoch, low, high, closed, uniform)
    if hidden == 0:
        return 0.0, 0.0 if low * epoch < base <= high * epoch else -math.inf
    mean, variance = posterior_mean(belief, arm, known, total)
    centre, weight = hidden * mean, 0.0
    deviation = math.sqrt(hidden * hidden * variance + hidden * belief.sigma * belief.sigma)
    way = twisted_proposal(
        belief, arm, known, total, base, hidden, epoch, max(left, 0), 0.0 if math.isnan(goal) else goal, slack
    )
    if not math.isnan(goal):
        centre, deviation, weight = way.centre, way.deviation, way.weight
    drawn, mass = truncated_normal(
        (low * epoch - base - centre) / deviation, (high * epoch - base - centre) / deviation, uniform, table
    )
    gained = centre + deviation * drawn
    if not math.isnan(goal):
        weight -= log_twist(way, gained, goal)
    return gained, weight + mass


@inlined
def _discrete(
    belief: Belief, arm: int, known: float, total: float, base: float, hidden: int, epoch: int, low: float, high: float,
    closed: bool, uniform: float,
) -> tuple[float, float]:  # fmt: skip
    """Draw how many of some rewards were 1, among the numbers that fit; return it, and their log probability."""
    ones, zeros = belief.first[arm] + total, belief.second[arm] + known - total
    mass, drawn, chance = 0.0, 0, 1.0
    for at in range(hidden):
        chance *= (zeros + at) / (ones + zeros + at)
    for outcome in range(hidden + 1):
        if outcome > 0:
            last = outcome - 1
            chance *= (hidden - last) / outcome * (ones + last) / (zeros + hidden - last - 1.0)
        mean = (base + outcome) * (1.0 / epoch)
        if low < mean <= high and not (closed and mean == high) and chance > 0.0:
            mass += chance
            if uniform * mass < chance:
                drawn, uniform = outcome, uniform * mass / chance
            else:
                uniform = (uniform * mass - chance) / (mass - chance)
    return drawn, math.log(mass) if mass > 0.0 else -math.inf
