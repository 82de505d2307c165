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

from unbandit.kernels.compile import Integers, Numbers, called, compiled, compiled_late, inlined
from unbandit.kernels.formula import index_value, meaning
from unbandit.kernels.smc.cloud import (
    LEVELS,
    PARTICLES,
    ArmPrior,
    Belief,
    Rng,
    Steps,
    inherit_rows,
    posterior_mean,
    resample_weights,
    two_uniforms,
    uniform,
)
from unbandit.kernels.smc.proposal import truncated_normal
from unbandit.kernels.special import CDF_LOWEST, DENSITY, exponential, log_normal_cdf, normal_cdf

FAR = 6.0  # deviations beyond which a normal variable is not looked for
EDGES = 4.0  # deviations around its mean within which an index may come first or not
DEEP = 2.0  # a bound this many deviations below the mean leaves a nearly exponential tail
NODES = 14  # at most, of an integral, with its ends
(FEW_PLACES, FEW_STEPS), (MANY_PLACES, MANY_STEPS) = (np.polynomial.legendre.leggauss(count) for count in (5, 8))
HALVINGS, NEGLIGIBLE = 8, 1e-4  # to find where the others leave room, and the probability of none
EXTREME, SMALLEST = -100.0, 1e-200  # the log of a bound's, and the probability, from which logarithms are used
WIDENED = (0.0005, 0.015, 0.25, 1.0, 4.0, 16.0)  # the prior variance, times these
ASKED = 24  # particles that predict arms which were not chosen


def _plain_offsets(parameters: Any, steps: Steps, arms: int, offsets: Numbers) -> None:
    formula, pulls = meaning(parameters)["index_value"], [0] * arms
    rows = zip(steps.arm.tolist(), steps.count.tolist(), steps.round.tolist(), strict=True)
    for step, (arm, count, round) in enumerate(rows):
        offsets[step] = [formula(parameters, 0.0, number, round) if number else 0.0 for number in pulls]
        pulls[arm] += count


@compiled_late(spared=100_000, plain=_plain_offsets)  # indices
def index_offsets(parameters: Any, steps: Steps, arms: int, offsets: Numbers) -> None:
    """Fill in every arm's index over its sample mean before each step, (steps, arms); 0 before its first pull."""
    pulls = np.zeros(arms, np.int64)
    for step in range(steps.arm.size):
        for arm in range(arms):
            if pulls[arm] > 0:
                offsets[step, arm] = index_value(parameters, 0.0, np.uint64(pulls[arm]), np.uint64(steps.round[step]))
        pulls[steps.arm[step]] += steps.count[step]


@inlined
def _log_cdf(at: float) -> float:
    if at > FAR:
        return 0.0
    return math.log(normal_cdf(at)) if at > CDF_LOWEST else log_normal_cdf(at)


@inlined
def _tail(at: float, near: float) -> float:
    """Return the normal probability beyond `at >= 0`, in units of `exp(-near^2 / 2)`."""
    if at < 5.0:
        return normal_cdf(-at) * (math.exp(0.5 * near * near) if near != 0.0 else 1.0)
    mills = 1.0 / (at + 1.0 / (at + 2.0 / (at + 3.0 / (at + 4.0 / (at + 0.6)))))
    return DENSITY * math.exp(0.5 * (near * near - at * at)) * mills


# Functions that are called for every particle share one array, with a row for each of these: numba counts references
# to every array at every call, which took a quarter of the time.
CENTRE, SPREAD, BOUND, LOG = 0, 1, 2, 3  # of each arm's index; its log probability to lie below the bound
RIVAL_CENTRE, RIVAL_PRECISION, RIVAL_BOUND, RIVAL_LOG, RIVAL_FACTOR = 4, 5, 6, 7, 8  # of those that may come first
EDGE, MASS, PLACE, STEP, VALUE = 9, 10, 11, 12, 13  # of an integral: its intervals, and the node within each
PREDICTED, PRIOR_MEAN, PRIOR_VARIANCE = 14, 15, 16  # each arm's probability to come next; its prior
CHANCE = 17  # of each width
ROWS = 18
# Particles have one row of numbers, with these for each arm, and last the prior's variance, by what it is multiplied.
CENTRES, BOUNDS, LOGS, DEVIATIONS = 0, 1, 2, 3
COLUMNS = 4
PULLS, SEEN, QUESTIONS = 0, 1, 2  # of each arm: its pulls, those whose rewards were drawn; the arms that are asked for


def room_for(particles: int, belief: Belief, widths: Numbers) -> tuple[Numbers, Integers, Numbers]:
    """Return what `predict_decisions` fills in on its way: numbers per particle, counts per arm, room to work in."""
    arms = belief.first.size
    states, work = np.zeros((particles, COLUMNS * arms + 1)), np.zeros((ROWS, max(arms, NODES, widths.size)))
    states[:, BOUNDS * arms : (BOUNDS + 1) * arms] = np.inf
    states[:, -1] = widths[np.arange(particles) % widths.size]
    work[PRIOR_MEAN, :arms], work[PRIOR_VARIANCE, :arms] = belief.first, belief.second
    return states, np.zeros((3, arms), np.int64), work


@inlined
def _below(level: float, work: Numbers, rivals: int) -> float:
    """Return the probability that the rivals' indices lie below a level, given that they lie below their bounds."""
    product = 1.0
    for rival in range(rivals):
        if level < work[RIVAL_BOUND, rival]:
            standard = (level - work[RIVAL_CENTRE, rival]) * work[RIVAL_PRECISION, rival]
            product *= normal_cdf(standard) * work[RIVAL_FACTOR, rival]
    return product


@inlined
def _log_below(level: float, work: Numbers, rivals: int) -> float:
    """Return the logarithm of the same probability, also where the probability itself is too small a number."""
    value = 0.0
    for rival in range(rivals):
        if level < work[RIVAL_BOUND, rival]:
            standard = (level - work[RIVAL_CENTRE, rival]) * work[RIVAL_PRECISION, rival]
            value += log_normal_cdf(standard) - work[RIVAL_LOG, rival]
    return value


@called
def _fill_values(work: Numbers, nodes: int, rivals: int, extreme: bool) -> float:
    """Fill in the probability at each node that no rival is ahead, relative to the largest; return its logarithm."""
    largest = 0.0
    if not extreme:
        for at in range(nodes):
            value = _below(work[PLACE, at], work, rivals)
            work[VALUE, at] = value
            largest = max(largest, value)
    if largest > SMALLEST:
        for at in range(nodes):
            work[VALUE, at] /= largest
        return math.log(largest)
    largest = -math.inf
    for at in range(nodes):
        work[VALUE, at] = _log_below(work[PLACE, at], work, rivals)
        largest = max(largest, work[VALUE, at])
    for at in range(nodes):
        work[VALUE, at] = math.exp(work[VALUE, at] - largest)
    return largest


@called
def _where_others_decide(arm: int, arms: int, work: Numbers) -> tuple[float, float, float]:
    """Return the levels below which another arm is almost surely ahead, and above which none is.

    In between, the second of the three: up to where the arm decides that decides lowest.
    """
    low, sharp, high = -math.inf, -math.inf, -math.inf
    for other in range(arms):
        bound, centre, spread = work[BOUND, other], work[CENTRE, other], work[SPREAD, other]
        if other == arm or spread == 0.0:
            continue
        if bound < centre - DEEP * spread:
            bottom, top = bound - 8.0 * spread * spread / (centre - bound), bound
        else:
            bottom, top = min(centre, bound) - EDGES * spread, min(bound, centre + EDGES * spread)
        if bottom > low:
            low, sharp = bottom, top
        high = max(high, top)
    return low, sharp, high


@called
def _lay_out(start: float, end: float, at: int, few: bool, work: Numbers) -> int:
    """Place the nodes of a Gauss-Legendre sum between two levels, after the first `at`; return how many there are.

    Edges part the range into one interval around each node.
    """
    count, half, middle = 5 if few else 8, 0.5 * (end - start), 0.5 * (start + end)
    for node in range(count):
        work[PLACE, at + node] = middle + half * (FEW_PLACES[node] if few else MANY_PLACES[node])
        work[STEP, at + node] = half * (FEW_STEPS[node] if few else MANY_STEPS[node])
        work[EDGE, at + node] = start if node == 0 else 0.5 * (work[PLACE, at + node - 1] + work[PLACE, at + node])
    work[EDGE, at + count] = end
    return at + count


@called
def comes_first(arm: int, arms: int, work: Numbers) -> tuple[int, float]:
    """Lay out the probability that an arm's index is the largest, over intervals of its index.

    Fills in the ends of the intervals (`EDGE`) and about their shares of the probability (`MASS`, which sum to 1);
    returns how many there are, and the log of the probability that the index is the largest, not yet given its bound.
    Where the others decide, the integral is a Gauss-Legendre sum: of the arm's density times the probability that no
    other is ahead or, where that is mostly so, of its density less that times the probability that one is.
    """
    low, sharp, high = _where_others_decide(arm, arms, work)
    centre, spread, bound = work[CENTRE, arm], work[SPREAD, arm], work[BOUND, arm]
    floor = min(centre, bound) - FAR * spread
    if bound < centre - DEEP * spread:
        floor = bound - 10.0 * spread * spread / (centre - bound)
    ceiling = min(bound, max(centre, low) + FAR * spread)
    decided, largest = 0, 0.0  # nodes where others decide
    if high > floor:
        rivals, steepest, extreme = 0, 10.0 / (ceiling - floor), False
        for other in range(arms):
            theirs, wide, top = work[CENTRE, other], work[SPREAD, other], work[BOUND, other]
            if other != arm and wide > 0.0 and min(top, theirs + FAR * wide) > low:
                log_mass = work[LOG, other]
                work[RIVAL_CENTRE, rivals], work[RIVAL_PRECISION, rivals] = theirs, 1.0 / wide
                work[RIVAL_BOUND, rivals], work[RIVAL_LOG, rivals] = top, log_mass
                work[RIVAL_FACTOR, rivals] = 1.0 if log_mass == 0.0 else math.exp(-max(log_mass, EXTREME))
                extreme |= log_mass < EXTREME
                steepest = max(steepest, (theirs - ceiling) / (wide * wide))
                rivals += 1
        low = max(low, floor)
        if low >= ceiling:  # hardly possible: look where the others leave most room
            low = ceiling - 10.0 / steepest
        high = min(max(high, low), ceiling)
        for _ in range(HALVINGS if rivals > 1 and not extreme else 0):  # several together leave less room than each
            middle = 0.5 * (low + high)
            if _below(middle, work, rivals) > NEGLIGIBLE:
                break
            low = middle
        if low < sharp < low + 0.3 * (high - low):
            decided = _lay_out(low, sharp, 0, True, work)
            decided = _lay_out(sharp, high, decided, True, work)
        else:
            decided = _lay_out(low, high, 0, False, work)
        largest = _fill_values(work, decided, rivals, extreme)
    else:
        low = high = floor
        work[EDGE, 0] = floor
    # The arm's own density, in units of what it is at the point nearest to its centre.
    near, from_below = 0.0, low < centre
    if low > centre:
        near = (low - centre) / spread
    elif ceiling < centre:
        near = (centre - ceiling) / spread
    above = max(_mass(high, ceiling, centre, spread, near, from_below), 0.0) if ceiling > high else 0.0
    factor = 1.0
    if above > 0.0:  # where nobody else is, nothing is in the way
        factor, largest = math.exp(largest), 0.0
    alone, behind = 0.0, 0.0
    for at in range(decided):
        standard = (work[PLACE, at] - centre) / spread
        density = DENSITY * exponential(0.5 * (near * near - standard * standard)) * work[STEP, at] / spread
        ahead = work[VALUE, at] * factor
        work[MASS, at] = density * ahead
        alone += work[MASS, at]
        behind += density * (1.0 - ahead)
    chance, count = alone + above, decided
    if largest > -1e-3 and behind < alone:
        chance = max(_mass(low, ceiling, centre, spread, near, from_below) - behind, 1e-3 * chance)
    total = alone + above
    if ceiling > high or decided == 0:  # where nobody else is
        work[MASS, decided], work[EDGE, decided + 1], count = above, ceiling, decided + 1
    if not total > 0.0:
        return 0, -math.inf
    for at in range(count):
        work[MASS, at] /= total
    return count, (math.log(chance) if chance > 0.0 else -math.inf) + largest - 0.5 * near * near


@inlined
def _mass(start: float, end: float, centre: float, spread: float, near: float, from_below: bool) -> float:
    """Return the arm's own probability between two levels, in units of `exp(-near^2 / 2)`."""
    first, second = (start - centre) / spread, (end - centre) / spread
    if not from_below:
        return _tail(first, near) - _tail(second, near)
    upper = _tail(-second, near) if second < 0.0 else 1.0 - _tail(second, near)
    return upper - (_tail(-first, near) if first < 0.0 else 1.0 - _tail(first, near))


@inlined
def _pending(
    work: Numbers, sigma: float, wide: float, arm: int, counts: Integers, total: float
) -> tuple[float, float]:  # fmt: skip
    """Return centre and deviation of an arm's mean reward, of whose pulls the last are pending.

    The sum of those that were seen is `total`; `wide` multiplies the prior's variance.
    """
    pulls, seen = counts[PULLS, arm], counts[SEEN, arm]
    added, prior = pulls - seen, ArmPrior(work[PRIOR_MEAN, arm], work[PRIOR_VARIANCE, arm] * wide, sigma)
    mean, variance = posterior_mean(prior, float(seen), total)
    return (total + added * mean) / pulls, math.sqrt(added * added * variance + added * sigma * sigma) / pulls


@called
def _redraw_widths(
    rng: Rng, sigma: float, step: int, widths: Numbers, sums: Numbers, states: Numbers, counts: Integers, work: Numbers
) -> None:
    """Draw every particle's width anew, given its rewards: resampling alone would soon leave one width, right or wrong.

    Given the rewards that were seen, actions do not depend on the width; those pending are below their bounds with a
    probability that does.
    """
    number, arms = sums.shape
    for particle in range(number):
        largest = -math.inf
        for at in range(widths.size):
            chance = 0.0
            for arm in range(arms):
                if counts[PULLS, arm] == 0:
                    continue
                total, seen, bound = sums[particle, arm], counts[SEEN, arm], states[particle, BOUNDS * arms + arm]
                if seen > 0:
                    variance = work[PRIOR_VARIANCE, arm] * widths[at] + sigma * sigma / seen
                    away = total / seen - work[PRIOR_MEAN, arm]
                    chance -= 0.5 * (math.log(variance) + away * away / variance)
                if bound < math.inf:
                    centre, spread = _pending(work, sigma, widths[at], arm, counts, total)
                    chance += _log_cdf((bound - centre) / spread)
            work[CHANCE, at] = chance
            largest = max(largest, chance)
        total = 0.0
        for at in range(widths.size):
            work[CHANCE, at] = math.exp(work[CHANCE, at] - largest)
            total += work[CHANCE, at]
        left, at = uniform(rng, LEVELS, step, particle) * total, 0
        while at < widths.size - 1 and left > work[CHANCE, at]:
            left -= work[CHANCE, at]
            at += 1
        if widths[at] == states[particle, COLUMNS * arms]:
            continue
        states[particle, COLUMNS * arms] = widths[at]
        for arm in range(arms):
            if counts[PULLS, arm] > 0:
                centre, spread = _pending(work, sigma, widths[at], arm, counts, sums[particle, arm])
                states[particle, CENTRES * arms + arm], states[particle, DEVIATIONS * arms + arm] = centre, spread
                bound = states[particle, BOUNDS * arms + arm]
                if bound < math.inf:
                    states[particle, LOGS * arms + arm] = _log_cdf((bound - centre) / spread)


@called
def _draw_between(low: float, high: float, draw: float, table: Numbers) -> tuple[float, float]:
    return truncated_normal(low, high, draw, table)


@inlined
def _draw_reward(
    arm: int, count: int, draws: tuple[float, float], table: Numbers, offsets: Numbers, arms: int, row: Numbers,
    pulls: int, work: Numbers,
) -> tuple[float, float]:  # fmt: skip
    """Draw the index of the arm that came first, as `comes_first` has laid it out: an interval, and a number within.

    Lowers the bounds of the others; returns the sum of the arm's rewards, and the log of the particle's weight.
    """
    first, second = draws
    at = 0
    while at < count - 1 and first > work[MASS, at]:
        first -= work[MASS, at]
        at += 1
    while at > 0 and work[MASS, at] <= 0.0:  # rounding may lead to an interval without probability
        at -= 1
    centre, spread = work[CENTRE, arm], work[SPREAD, arm]
    standard, log_mass = _draw_between(
        (work[EDGE, at] - centre) / spread, (work[EDGE, at + 1] - centre) / spread, second, table
    )
    level = centre + spread * standard
    log_weight = log_mass - math.log(work[MASS, at]) - work[LOG, arm]
    for other in range(arms):
        if other != arm and level < work[BOUND, other] and work[SPREAD, other] > 0.0:
            below = _log_cdf((level - work[CENTRE, other]) / work[SPREAD, other])
            log_weight += below - work[LOG, other]
            row[BOUNDS * arms + other], row[LOGS * arms + other] = level - offsets[other], below
    row[BOUNDS * arms + arm], row[LOGS * arms + arm] = math.inf, 0.0
    return (level - offsets[arm]) * pulls, log_weight


@inlined
def _draw_pending(
    arm: int, draws: tuple[float, float], table: Numbers, arms: int, row: Numbers, pulls: int
) -> float:  # fmt: skip
    """Draw what is still pending at the end, below its bound; return the sum of the arm's rewards."""
    centre, spread = row[CENTRES * arms + arm], row[DEVIATIONS * arms + arm]
    standard, _ = _draw_between(-math.inf, (row[BOUNDS * arms + arm] - centre) / spread, draws[1], table)
    return (centre + spread * standard) * pulls


@compiled
def predict_decisions(
    chosen: Integers, count: Integers, opening: int, offsets: Numbers, sigma: float, rng: Rng, table: Numbers,
    signals: Integers, sums: Numbers, log_weights: Numbers, ancestors: Integers, increments: Numbers,
    effective_size: Numbers, states: Numbers, counts: Integers, work: Numbers, widths: Numbers, all_arms: bool,
    least: Numbers, repeats: Numbers, shares: Numbers,
) -> bool:  # fmt: skip
    """Send a cloud through a demonstration, and predict each decision from those before.

    The first arguments are those of `Steps` and `Cloud`, array by array: tuples of so many arrays take seconds to
    compile. `room_for` has made `states`, `counts` and `work`. Where an offset is minus infinity, the arm cannot be
    pulled.

    Where the log evidence so far falls below `least`, which has a number for each step or none at all, the rest is not
    predicted. Returns whether all was.

    Filled in for each step after the opening are the probability that the arm of the step before is taken again
    (`repeats`) and, where it is not, that of every arm or, unless `all_arms`, of the most-pulled one before (`shares`;
    NaN where that is the arm of the step before). Where `shares` has no column, nothing is asked that the evidence does
    not need, and `repeats` is of no use. `increments` add up to the log evidence, and `sums` are reward sums of all
    pulls at the end.
    """
    number, arms = sums.shape
    for step in range(opening):
        counts[PULLS, chosen[step]] += count[step]
    for arm in range(arms):
        pulls = max(counts[PULLS, arm], 1)
        for particle in range(number):
            variance = work[PRIOR_VARIANCE, arm] * states[particle, COLUMNS * arms]
            states[particle, CENTRES * arms + arm] = work[PRIOR_MEAN, arm]
            states[particle, DEVIATIONS * arms + arm] = math.sqrt(variance + sigma * sigma / pulls)
    evidence = 0.0
    for step in range(opening, chosen.size):
        arm, before, leader = chosen[step], chosen[step - 1], 0
        pulls, asks = counts[PULLS, arm], before != arm and shares.shape[1] > 0
        for other in range(arms):
            work[PREDICTED, other] = 0.0
            leader = other if counts[PULLS, other] > counts[PULLS, leader] else leader
        # Besides the arm itself, which others' chances are asked for.
        questions = 0
        for other in range(arms if asks else 0):
            wanted = all_arms or other in (before, leader)
            if wanted and other != arm and counts[PULLS, other] > 0 and offsets[step, other] > -math.inf:
                counts[QUESTIONS, questions] = other
                questions += 1
        counted, asked_weight = 0.0, 0.0
        for particle in range(number if pulls > 0 else 0):  # an arm that was left out in the opening comes first
            for other in range(arms):
                shift = offsets[step, other]
                work[CENTRE, other] = states[particle, CENTRES * arms + other] + shift
                work[BOUND, other] = states[particle, BOUNDS * arms + other] + shift
                work[LOG, other] = states[particle, LOGS * arms + other]
                deviation = states[particle, DEVIATIONS * arms + other]
                work[SPREAD, other] = deviation if counts[PULLS, other] > 0 and shift > -math.inf else 0.0
            weight, nodes = math.exp(log_weights[particle]), 0
            counted += weight
            asking = questions if particle < ASKED else 0
            asked_weight += weight if particle < ASKED else 0.0
            for at in range(asking + 1):
                which = counts[QUESTIONS, at] if at < asking else arm
                nodes, log_chance = comes_first(which, arms, work)
                work[PREDICTED, which] += weight * math.exp(min(log_chance - work[LOG, which], 0.0))
            if nodes == 0:  # it cannot come first
                log_weights[particle] = -math.inf
                continue
            draws = two_uniforms(rng, PARTICLES, step, particle)
            sums[particle, arm], log_weight = _draw_reward(
                arm, nodes, draws, table, offsets[step], arms, states[particle], pulls, work
            )
            log_weights[particle] += log_weight
        if pulls > 0:
            counts[SEEN, arm] = pulls
            for other in range(arms):
                work[PREDICTED, other] /= counted if other == arm else asked_weight
            repeats[step] = work[PREDICTED, before]
            for other in range(shares.shape[1]):
                of_leader = work[PREDICTED, leader] if leader != before else math.nan
                shares[step, other] = math.nan if not asks else work[PREDICTED, other] if all_arms else of_leader
        # The new rewards are pending.
        counts[PULLS, arm] += count[step]
        for particle in range(number):
            wide = states[particle, COLUMNS * arms]
            centre, spread = _pending(work, sigma, wide, arm, counts, sums[particle, arm])
            states[particle, CENTRES * arms + arm], states[particle, DEVIATIONS * arms + arm] = centre, spread
        alive, resampled = resample_weights(log_weights, increments, effective_size, ancestors, rng, signals, step)
        evidence += increments[step]
        if not alive or (least.size > 0 and evidence < least[step]):
            return False
        if resampled:
            inherit_rows(sums, ancestors)
            inherit_rows(states, ancestors)
            if widths.size > 1:
                _redraw_widths(rng, sigma, step, widths, sums, states, counts, work)
    for particle in range(number):
        for arm in range(arms):
            if counts[PULLS, arm] > counts[SEEN, arm]:
                draws = two_uniforms(rng, PARTICLES, chosen.size + arm, particle)
                sums[particle, arm] = _draw_pending(arm, draws, table, arms, states[particle], counts[PULLS, arm])
    return True
