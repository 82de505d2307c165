"""Predict each decision of an index rule from the decisions before it.

An arm's last reward shows only when the arm is pulled again: until then its index is known to lie below that of every
arm that was preferred. So a particle leaves that reward *pending*, as a normal variable with an upper bound, and draws
it when the arm comes next. In between, each decision lowers the bounds, with the probability that an index lies below
the new bound given that it lay below the old one. The probability that an arm comes next is that its index is the
largest: an integral over one normal variable, times the distribution functions of the others.

Rewards are drawn in the order in which their indices come first, so no reward has to fit between two that were drawn
before it: a hundred particles are enough for hundreds of arms. This is for indices `mean + offset` with normal rewards,
where the offset depends on pull counts and the round alone.
"""

import math
from typing import Any

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.smc.cloud import (
    PARTICLES,
    ArmPrior,
    Cloud,
    Steps,
    inherit,
    posterior_mean,
    prior_of,
    resample,
    two_uniforms,
)
from unbandit.kernels.smc.proposal import truncated_normal
from unbandit.kernels.special import ROOT_HALF, log_normal_cdf

DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
FAR = 6.0  # deviations beyond which a normal variable is not looked for
EDGE = 4.0  # deviations around its mean within which an index may come first or not
DEEP = 2.0  # a bound this many deviations below the mean leaves a nearly exponential tail
NODES = 14  # at most, of an integral, with its ends
(FEW_PLACES, FEW_STEPS), (MANY_PLACES, MANY_STEPS) = (np.polynomial.legendre.leggauss(count) for count in (5, 8))
HALVINGS, NEGLIGIBLE = 8, -9.0  # to find where the others leave room, and the log probability of none
WIDENED = (0.0005, 0.015, 0.25, 1.0, 4.0, 16.0)  # the prior variance, times these
ASKED = 24  # particles that predict arms which were not chosen


@compiled
def index_offsets(parameters: Any, steps: Steps, arms: int, offsets: Numbers) -> None:
    """Fill in every arm's index over its sample mean before each step, (steps, arms); 0 before its first pull."""
    pulls = np.zeros(arms, np.int64)
    for step in range(steps.arm.size):
        for arm in range(arms):
            if pulls[arm] > 0:
                offsets[step, arm] = index_value(parameters, 0.0, np.uint64(pulls[arm]), np.uint64(steps.round[step]))
        pulls[steps.arm[step]] += steps.count[step]


@inlined
def _cdf(at: float) -> float:
    return 0.5 * math.erfc(-at * ROOT_HALF)


@inlined
def _log_cdf(at: float) -> float:
    if at > FAR:
        return 0.0
    return math.log(_cdf(at)) if at > -5.0 else log_normal_cdf(at)


@inlined
def _tail(at: float, near: float) -> float:
    """Return the normal probability beyond `at >= 0`, in units of `exp(-near^2 / 2)`."""
    if at < 5.0:
        return 0.5 * math.erfc(at * ROOT_HALF) * (math.exp(0.5 * near * near) if near != 0.0 else 1.0)
    mills = 1.0 / (at + 1.0 / (at + 2.0 / (at + 3.0 / (at + 4.0 / (at + 0.6)))))
    return DENSITY * math.exp(0.5 * (near * near - at * at)) * mills


@called
def _others_below(
    level: float, heights: Numbers, spreads: Numbers, bounds: Numbers, logs: Numbers, rivals: Integers, number: int
) -> float:  # fmt: skip
    """Return the log probability that the rivals' indices lie below a level, given that they lie below their bounds."""
    value, product = 0.0, 1.0
    for at in range(number):
        other = rivals[at]
        if level < bounds[other]:
            standard = (level - heights[other]) / spreads[other]
            if standard > -5.0:
                product *= 0.5 * math.erfc(-standard * ROOT_HALF)
            else:
                value += log_normal_cdf(standard)
            value -= logs[other]
    return value + math.log(product) if product < 1.0 else value


@called
def _where_others_decide(
    arm: int, pulls: Integers, heights: Numbers, spreads: Numbers, bounds: Numbers
) -> tuple[float, float, float]:  # fmt: skip
    """Return the levels below which another arm is almost surely ahead, and above which none is.

    In between, the second of the three: up to where the arm decides that decides lowest.
    """
    low, sharp, high = -math.inf, -math.inf, -math.inf
    for other in range(pulls.size):
        if other == arm or pulls[other] == 0:
            continue
        bound, centre, spread = bounds[other], heights[other], spreads[other]
        if bound < centre - DEEP * spread:
            bottom, top = bound - 8.0 * spread * spread / (centre - bound), bound
        else:
            bottom, top = min(centre, bound) - EDGE * spread, min(bound, centre + EDGE * spread)
        if bottom > low:
            low, sharp = bottom, top
        high = max(high, top)
    return low, sharp, high


@called
def _lay_out(start: float, end: float, at: int, few: bool, places: Numbers, steps: Numbers, edges: Numbers) -> int:
    """Place the nodes of a Gauss-Legendre sum between two levels, after the first `at`; return how many there are.

    `edges` part the range into one interval around each node.
    """
    count, half, middle = 5 if few else 8, 0.5 * (end - start), 0.5 * (start + end)
    for node in range(count):
        places[at + node] = middle + half * (FEW_PLACES[node] if few else MANY_PLACES[node])
        steps[at + node] = half * (FEW_STEPS[node] if few else MANY_STEPS[node])
        edges[at + node] = start if node == 0 else 0.5 * (places[at + node - 1] + places[at + node])
    edges[at + count] = end
    return at + count


@called
def _comes_first(
    arm: int, pulls: Integers, heights: Numbers, spreads: Numbers, bounds: Numbers, logs: Numbers, rivals: Integers,
    edges: Numbers, masses: Numbers, places: Numbers, steps: Numbers, values: Numbers,
) -> tuple[int, float]:  # fmt: skip
    """Lay out the probability that an arm's index is the largest, over intervals of its index.

    Fills in the ends of the intervals (`edges`) and about their shares of the probability (`masses`, which sum to 1);
    returns how many there are, and the log of the probability that the index is the largest, not yet given its bound.
    Where the others decide, the integral is a Gauss-Legendre sum: of the arm's density times the probability that no
    other is ahead or, where that is mostly so, of its density less that times the probability that one is.
    """
    low, sharp, high = _where_others_decide(arm, pulls, heights, spreads, bounds)
    centre, spread, bound = heights[arm], spreads[arm], bounds[arm]
    floor = min(centre, bound) - FAR * spread
    if bound < centre - DEEP * spread:
        floor = bound - 10.0 * spread * spread / (centre - bound)
    ceiling = min(bound, max(centre, low) + FAR * spread)
    number = 0
    for other in range(pulls.size):
        if other != arm and pulls[other] > 0 and min(bounds[other], heights[other] + FAR * spreads[other]) > low:
            rivals[number] = other
            number += 1
    decided, largest = 0, 0.0  # nodes where others decide
    if high > floor:
        low = max(low, floor)
        if low >= ceiling:  # hardly possible: look where the others leave most room
            steepest = 10.0 / (ceiling - floor)
            for at in range(number):
                other = rivals[at]
                steepest = max(steepest, (heights[other] - ceiling) / (spreads[other] * spreads[other]))
            low = ceiling - 10.0 / steepest
        high = min(max(high, low), ceiling)
        for _ in range(HALVINGS if number > 1 else 0):  # several arms together leave less room than each of them
            middle = 0.5 * (low + high)
            if _others_below(middle, heights, spreads, bounds, logs, rivals, number) > NEGLIGIBLE:
                break
            low = middle
        if low < sharp < low + 0.3 * (high - low):
            decided = _lay_out(low, sharp, 0, True, places, steps, edges)
            decided = _lay_out(sharp, high, decided, True, places, steps, edges)
        else:
            decided = _lay_out(low, high, 0, False, places, steps, edges)
        largest = -math.inf
        for at in range(decided):
            values[at] = _others_below(places[at], heights, spreads, bounds, logs, rivals, number)
            largest = max(largest, values[at])
    else:
        low = high = floor
        edges[0] = floor
    # The arm's own density, in units of what it is at the point nearest to its centre.
    near, from_below = 0.0, low < centre
    if low > centre:
        near = (low - centre) / spread
    elif ceiling < centre:
        near = (centre - ceiling) / spread
    above = max(_mass(high, ceiling, centre, spread, near, from_below), 0.0) if ceiling > high else 0.0
    largest = 0.0 if above > 0.0 else largest  # where nobody else is, nothing is in the way
    alone, behind = 0.0, 0.0
    for at in range(decided):
        standard = (places[at] - centre) / spread
        density = DENSITY * math.exp(0.5 * (near * near - standard * standard)) * steps[at] / spread
        ahead = math.exp(values[at] - largest)
        masses[at] = density * ahead
        alone += masses[at]
        behind += density * (1.0 - ahead)
    chance, count = alone + above, decided
    if largest > -1e-3 and behind < alone:
        chance = max(_mass(low, ceiling, centre, spread, near, from_below) - behind, 1e-3 * chance)
    total = alone + above
    if ceiling > high or decided == 0:  # where nobody else is
        masses[decided], edges[decided + 1], count = above, ceiling, decided + 1
    for at in range(count):
        masses[at] /= total
    return count, (math.log(chance) if chance > 0.0 else -math.inf) + largest - 0.5 * near * near


@called
def _mass(start: float, end: float, centre: float, spread: float, near: float, from_below: bool) -> float:
    """Return the arm's own probability between two levels, in units of `exp(-near^2 / 2)`."""
    first, second = (start - centre) / spread, (end - centre) / spread
    if not from_below:
        return _tail(first, near) - _tail(second, near)
    upper = _tail(-second, near) if second < 0.0 else 1.0 - _tail(second, near)
    return upper - (_tail(-first, near) if first < 0.0 else 1.0 - _tail(first, near))


@compiled
def predict_decisions(
    steps: Steps, offsets: Numbers, cloud: Cloud, all_arms: bool, repeats: Numbers, shares: Numbers
) -> None:
    """Send a cloud through a demonstration, and predict each decision from those before.

    Filled in for each step after the opening are the probability that the arm of the step before is taken again
    (`repeats`) and, where it is not, that of every arm or, unless `all_arms`, of the most-pulled one before (`shares`;
    NaN where that is the arm of the step before). `cloud.increments` add up to the log evidence, and `cloud.sums` are
    reward sums of all pulls at the end.
    """
    number, arms = cloud.sums.shape
    sums, belief, noise = cloud.sums, cloud.belief, cloud.belief.sigma * cloud.belief.sigma
    pulls, seen = np.zeros(arms, np.int64), np.zeros(arms, np.int64)  # all pulls, and those whose rewards were drawn
    centres, bounds, logs = np.zeros((number, arms)), np.full((number, arms), math.inf), np.zeros((number, arms))
    heights, ceilings, deviations = np.zeros(arms), np.zeros(arms), np.zeros((number, arms))
    widened = np.empty(number)  # the prior's variance, per particle: what it is, is learnt
    for particle in range(number):
        widened[particle] = WIDENED[particle % len(WIDENED)]
    edges, masses, places = np.zeros(NODES), np.zeros(NODES), np.zeros(NODES)
    weights, values, predicted = np.zeros(NODES), np.zeros(NODES), np.zeros(arms)
    rivals, asked = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    for step in range(steps.opening):
        pulls[steps.arm[step]] += steps.count[step]
    for arm in range(arms):
        prior = prior_of(belief, arm)
        for particle in range(number):
            centres[particle, arm] = prior.first
            deviations[particle, arm] = math.sqrt(prior.second * widened[particle] + noise / max(pulls[arm], 1))
    for step in range(steps.opening, steps.arm.size):
        arm, before, leader, offset = steps.arm[step], steps.arm[step - 1], 0, offsets[step]
        for other in range(arms):
            predicted[other] = 0.0
            leader = other if pulls[other] > pulls[leader] else leader
        # Besides the arm itself, which others' chances are asked for.
        questions = 0
        for other in range(arms if before != arm else 0):
            wanted = all_arms or other in (before, leader)
            if wanted and other != arm and pulls[other] > 0:
                asked[questions] = other
                questions += 1
        counted, asked_weight = 0.0, 0.0
        for particle in range(number):
            if pulls[arm] == 0:  # it was left out in the opening, and comes first
                break
            for other in range(arms):
                heights[other] = centres[particle, other] + offset[other]
                ceilings[other] = bounds[particle, other] + offset[other]
            own, spreads = logs[particle], deviations[particle]
            weight, count = math.exp(cloud.log_weights[particle]), 0
            counted += weight
            asking = questions if particle < ASKED else 0
            asked_weight += weight if particle < ASKED else 0.0
            for at in range(asking + 1):
                which = asked[at] if at < asking else arm
                count, log_chance = _comes_first(
                    which, pulls, heights, spreads, ceilings, own, rivals, edges, masses, places, weights, values
                )
                predicted[which] += weight * math.exp(min(log_chance - own[which], 0.0))
            # Draw the arm's index: an interval, and a normal variable within it.
            first, second = two_uniforms(cloud.rng, PARTICLES, step, particle)
            at = 0
            while at < count - 1 and first > masses[at]:
                first -= masses[at]
                at += 1
            while at > 0 and masses[at] <= 0.0:  # rounding may lead to an interval without probability
                at -= 1
            centre, spread = heights[arm], spreads[arm]
            standard, log_mass = truncated_normal(
                (edges[at] - centre) / spread, (edges[at + 1] - centre) / spread, second, cloud.table
            )
            level = centre + spread * standard
            log_weight = log_mass - math.log(masses[at]) - own[arm]
            for other in range(arms):
                if other != arm and pulls[other] > 0 and level < ceilings[other]:
                    below = _log_cdf((level - heights[other]) / spreads[other])
                    log_weight += below - own[other]
                    bounds[particle, other], own[other] = level - offset[other], below
            cloud.log_weights[particle] += log_weight
            sums[particle, arm] = (level - offset[arm]) * pulls[arm]
            bounds[particle, arm], own[arm] = math.inf, 0.0
        if pulls[arm] > 0:
            seen[arm] = pulls[arm]
            for other in range(arms):
                predicted[other] /= counted if other == arm else asked_weight
            repeats[step] = predicted[before]
            if before == arm:
                for other in range(shares.shape[1]):
                    shares[step, other] = math.nan
            elif all_arms:
                for other in range(arms):
                    shares[step, other] = predicted[other]
            else:
                shares[step, 0] = predicted[leader] if leader != before else math.nan
        # The new rewards are pending.
        pulls[arm] += steps.count[step]
        prior, added = prior_of(belief, arm), pulls[arm] - seen[arm]
        for particle in range(number):
            wide = ArmPrior(prior.first, prior.second * widened[particle], prior.sigma)
            mean, variance = posterior_mean(wide, float(seen[arm]), sums[particle, arm])
            centres[particle, arm] = (sums[particle, arm] + added * mean) / pulls[arm]
            deviations[particle, arm] = math.sqrt(added * added * variance + added * noise) / pulls[arm]
        alive, resampled = resample(cloud, step)
        if not alive:
            return
        if resampled:
            inherit(centres, cloud.ancestors)
            inherit(bounds, cloud.ancestors)
            inherit(logs, cloud.ancestors)
            inherit(deviations, cloud.ancestors)
            inherit(widened, cloud.ancestors)
    # What is still pending is drawn, below its bound.
    for particle in range(number):
        for arm in range(arms):
            if pulls[arm] > seen[arm]:
                _, second = two_uniforms(cloud.rng, PARTICLES, steps.arm.size + arm, particle)
                centre, spread = centres[particle, arm], deviations[particle, arm]
                standard, _ = truncated_normal(
                    -math.inf, (bounds[particle, arm] - centre) / spread, second, cloud.table
                )
                sums[particle, arm] = (centre + spread * standard) * pulls[arm]
