"""Filter of Thompson sampling with Beta draws: probabilities from shared tables, and a look at the whole log.

The hidden rewards are 0 or 1, so a *look-ahead* needs no special form: any positive function `psi_t(x)` of the state
before round `t` will do, since its expectation over the next reward is a sum of two terms. A reward is proposed in
proportion to its probability times `psi_{t+1}`, and a particle's weight in round `t` is

    p(a_t | x_t) E[psi_{t+1}(x_{t+1}) | x_t] / psi_t(x_t).

The evidence is unbiased and the particles are right whatever the functions are. They should come near the probability
of all actions from round `t` on: `fit_lookahead` goes from the last round to the first and fits the logarithm of
`p(a_t | x) E[psi_{t+1}(x') | x]` at the states that a cloud has visited, by a quadratic function of the angles
`asin sqrt(success share)` (P. Guarniero, A. Johansen and A. Lee, "The iterated auxiliary particle filter", 2017; J.
Heng, A. Bishop, G. Deligiannidis and A. Doucet, "Controlled sequential Monte Carlo", 2020).
"""

import math
from typing import NamedTuple

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.largest_beta import largest_by_tables, lay_tables, pull_tables
from unbandit.kernels.smc.cloud import (
    PARTICLES,
    Cloud,
    Steps,
    count_pulls,
    inherit,
    keep_sums,
    posterior_success,
    prior_of,
    resample,
    uniform,
)

GROWTH = 1.0  # tables serve for this many square roots of an arm's pulls
RIDGE = 1e-3  # how firmly the terms of a round are drawn to those of the following one, relative to their variances
BEYOND = 0.5  # how far beyond the visited values a look-ahead still changes, in standard deviations
POWER = 0.5  # visited states are weighted by this power of `psi`, or a lower one ...
VISITS_PER_TERM = 10.0  # ... so that the effective number of states per term of the regression is at least this
ANGLES = np.arcsin(np.sqrt(np.linspace(0.0, 1.0, 1025)))


class Lookahead(NamedTuple):
    """The logarithm of `psi_t` before each round of a log, a quadratic function of standardised angles.

    The coordinates of a state are the angles of the rule's own success shares, one per arm, and where these differ from
    what the observer knows (several demonstrations, known rewards) as many angles of the observer's shares.
    """

    centre: Numbers  # (rounds + 1, coordinates)
    scale: Numbers  # 1 over the standard deviation; 0 for what does not vary
    lowest: Numbers  # standardised angles are clipped to about what was visited
    highest: Numbers
    constant: Numbers  # (rounds + 1)
    slope: Numbers  # (rounds + 1, coordinates)
    bend: Numbers  # (rounds + 1, coordinates, coordinates), symmetric: `log psi = constant + slope z + z' bend z`


class Visits(NamedTuple):
    """The states that a cloud visited before each round, for `fit_lookahead`."""

    angles: Numbers  # (rounds, particles, coordinates)
    after: Numbers  # (rounds, particles, 2 or 4): the pulled arm's angles after a 0 and a 1: the rule's, the observer's
    success: Numbers  # (rounds, particles): probability that the reward is 1
    log_chances: Numbers  # (rounds, particles): log probability of what is judged in the round


@inlined
def angle(successes: float, pulls: float) -> float:
    """Return about `asin sqrt` of a success share: an angle whose variance hardly depends on the share."""
    place = (successes + 0.5) / (pulls + 1.0) * 1024.0
    cell = np.uint64(place)
    return ANGLES[cell] + (place - np.float64(cell)) * (ANGLES[cell + np.uint64(1)] - ANGLES[cell])


@called
def _expectations(
    lookahead: Lookahead, at: int, arm: int, angles: Numbers, after: Numbers, success: Numbers, mean: Numbers,
    value_0: Numbers, value_1: Numbers,
) -> None:  # fmt: skip
    """Fill in `log psi` before round `at` for states after a reward of 0 and of 1, and the log of its expectation.

    `angles` are those before the reward of `arm`: (states, coordinates).
    """
    number, size = angles.shape
    centre, scale = lookahead.centre[at], lookahead.scale[at]
    lowest, highest = lookahead.lowest[at], lookahead.highest[at]
    constant, slope, bend = lookahead.constant[at], lookahead.slope[at], lookahead.bend[at]
    second = arm + size // 2 if after.shape[1] == 4 else arm  # the observer's coordinate of the arm, if there is one
    z = np.empty(size)
    for state in range(number):
        for row in range(size):
            z[row] = min(max((angles[state, row] - centre[row]) * scale[row], lowest[row]), highest[row])
        value = constant
        z[arm], z[second] = 0.0, 0.0
        by_arm, by_second = slope[arm], slope[second]
        for row in range(size):
            product = slope[row]
            for column in range(row):
                product += 2.0 * bend[row, column] * z[column]
            value += z[row] * (product + bend[row, row] * z[row])
            by_arm += 2.0 * bend[arm, row] * z[row]
            by_second += 2.0 * bend[second, row] * z[row]
        for reward in range(2):
            own = (after[state, reward] - centre[arm]) * scale[arm]
            own = min(max(own, lowest[arm]), highest[arm])
            total = value + own * (by_arm + bend[arm, arm] * own)
            if second != arm:
                seen = (after[state, 2 + reward] - centre[second]) * scale[second]
                seen = min(max(seen, lowest[second]), highest[second])
                total += seen * (by_second + bend[second, second] * seen + 2.0 * bend[arm, second] * own)
            if reward == 0:
                value_0[state] = total
            else:
                value_1[state] = total
        largest = max(value_0[state], value_1[state])
        failure = (1.0 - success[state]) * math.exp(value_0[state] - largest)
        mean[state] = largest + math.log(failure + success[state] * math.exp(value_1[state] - largest))


@compiled
def filter_bernoulli(
    successes: float, failures: float, steps: Steps, cloud: Cloud, batch: int, first: int, values: Numbers,
    lookahead: Lookahead, visits: Visits,
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first round that no particle survives.

    `successes` and `failures` are of the rule's prior. `first` is the demonstration's first round in the log, and
    `values` has each particle's `log psi` there. A look-ahead over no rounds is none; visits are recorded if there is
    room for them.
    """
    number, arms = cloud.sums.shape
    coordinates, looks = lookahead.centre.shape[1], lookahead.centre.shape[0] > 0
    observed, records = coordinates > arms, visits.success.shape[1]
    wins, pulls = np.zeros((number, arms), np.int64), np.zeros(arms, np.int64)
    low, high, counts = np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    tables = lay_tables(successes, failures, pulls, low, high, GROWTH)
    angles, after = np.empty((number, coordinates)), np.empty((number, 4 if observed else 2))
    chances, log_chances, mean = np.empty(number), np.zeros(number), np.zeros(number)
    success, value_0, value_1 = np.empty(number), np.zeros(number), np.zeros(number)
    for particle in range(number):
        for arm in range(arms):
            angles[particle, arm] = angle(0.0, 0.0)
            if observed:
                angles[particle, arms + arm] = angle(cloud.past[particle, arm], cloud.before[arm])
    mark = 0
    for step in range(steps.arm.size):
        at, arm, known = first + step, steps.arm[step], steps.rewards[step]
        hidden = math.isnan(known)
        # The probability of all actions drawn from this state.
        judged = step >= steps.opening and (step - steps.opening) % batch == 0
        for particle in range(number):
            log_chances[particle] = 0.0
        if judged:
            count_pulls(steps.arm, step, min(batch, steps.arm.size - step), counts)
            for each in range(arms):
                if counts[each] > 0:
                    largest_by_tables(tables, wins, each, chances)
                    for particle in range(number):
                        chance = chances[particle]
                        log_chances[particle] += counts[each] * math.log(chance) if chance > 0.0 else -math.inf
        if not hidden:  # to the observer from the start; the rule sees it now
            cloud.before[arm] -= 1.0
            for particle in range(number):
                cloud.past[particle, arm] -= known
        # Both rewards, and the look-ahead after each.
        prior, behind = prior_of(cloud.belief, arm), cloud.before[arm] + pulls[arm]
        for particle in range(number):
            total = cloud.past[particle, arm] + wins[particle, arm]
            success[particle] = posterior_success(prior, behind, total) if hidden else known
            for reward in range(2):
                after[particle, reward] = angle(wins[particle, arm] + reward, pulls[arm] + 1.0)
                if observed:  # a known reward is no news, and one in the past is none that is still to come
                    news = reward if hidden else known
                    after[particle, 2 + reward] = angle(total + news, behind + 1.0)
            if particle < records:
                for row in range(coordinates):
                    visits.angles[at, particle, row] = angles[particle, row]
                for row in range(after.shape[1]):
                    visits.after[at, particle, row] = after[particle, row]
                visits.success[at, particle] = success[particle]
                visits.log_chances[at, particle] = log_chances[particle]
        if looks:
            _expectations(lookahead, at + 1, arm, angles, after, success, mean, value_0, value_1)
            for particle in range(number):
                log_chances[particle] += mean[particle] - values[particle]
                success[particle] *= math.exp(value_1[particle] - mean[particle])
        for particle in range(number):
            cloud.log_weights[particle] += log_chances[particle]
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(wins, cloud.ancestors)
            inherit(angles, cloud.ancestors)
            inherit(after, cloud.ancestors)
            inherit(success, cloud.ancestors)
            inherit(value_0, cloud.ancestors)
            inherit(value_1, cloud.ancestors)
        for particle in range(number):
            reward = 1 if uniform(cloud.rng, PARTICLES, step, particle) < success[particle] else 0
            if not hidden:  # whatever rounding makes of its probability
                reward = int(known)
            wins[particle, arm] += reward
            values[particle] = value_1[particle] if reward == 1 else value_0[particle]
            angles[particle, arm] = after[particle, reward]
            if observed:
                angles[particle, arms + arm] = after[particle, 2 + reward]
        pulls[arm] += 1
        if pulls[arm] > tables.expiry[arm]:
            for each in range(arms):
                low[each], high[each] = wins[0, each], wins[0, each]
                for particle in range(1, number):
                    low[each] = min(low[each], wins[particle, each])
                    high[each] = max(high[each], wins[particle, each])
            tables = lay_tables(successes, failures, pulls, low, high, GROWTH)
        else:
            pull_tables(tables, arm)
        if mark < cloud.marks.size and cloud.marks[mark] == step:
            _take_sums(cloud, wins)
            mark = keep_sums(cloud, step, mark)
    _take_sums(cloud, wins)
    return 0


@called
def _take_sums(cloud: Cloud, wins: Integers) -> None:
    """Take the sums of rewards."""
    for particle in range(wins.shape[0]):
        for arm in range(wins.shape[1]):
            cloud.sums[particle, arm] = wins[particle, arm]


@compiled
def fit_lookahead(arm: Integers, visits: Visits, pairs: Integers, lookahead: Lookahead) -> None:
    """Fill in a look-ahead from the states that a cloud visited.

    `arm` is the one pulled in each round of the log, and `pairs` are the coordinates whose products are terms.
    """
    rounds, number, size = visits.angles.shape
    terms = 1 + size + pairs.shape[0]
    row, gram, right = np.empty(terms), np.empty((terms, terms)), np.empty(terms)
    targets, weights, unused = np.empty(number), np.empty(number), np.empty((2, number))
    for at in range(rounds - 1, -1, -1):
        angles = visits.angles[at]
        _expectations(
            lookahead, at + 1, arm[at], angles, visits.after[at], visits.success[at], targets, unused[0], unused[1]
        )
        for visit in range(number):
            targets[visit] += visits.log_chances[at, visit]
        total = _weigh(targets, VISITS_PER_TERM * terms, weights)
        _standardise(angles, weights, total, at, lookahead)
        centre, scale = lookahead.centre[at], lookahead.scale[at]
        _carry(lookahead, at, pairs, right)
        for term in range(terms):
            right[term] *= RIDGE * total if term > 0 else 0.0
            for other in range(terms):
                gram[term, other] = 0.0
        for visit in range(number):
            weight = weights[visit]
            if weight < 1e-9:
                continue
            row[0] = 1.0
            for each in range(size):
                row[1 + each] = (angles[visit, each] - centre[each]) * scale[each]
            for pair in range(pairs.shape[0]):
                row[1 + size + pair] = row[1 + pairs[pair, 0]] * row[1 + pairs[pair, 1]]
            for term in range(terms):
                weighted = weight * row[term]
                right[term] += weighted * targets[visit]
                for other in range(term + 1):
                    gram[term, other] += weighted * row[other]
        _solve_ridge(gram, right, RIDGE * total)
        lookahead.constant[at] = right[0]
        for each in range(size):
            lookahead.slope[at, each] = right[1 + each]
        for pair in range(pairs.shape[0]):
            one, other, value = pairs[pair, 0], pairs[pair, 1], 0.5 * right[1 + size + pair]
            lookahead.bend[at, one, other] += value
            lookahead.bend[at, other, one] += value


@called
def _carry(lookahead: Lookahead, at: int, pairs: Integers, terms: Numbers) -> None:
    """Fill in the terms that the look-ahead of the following round has in the coordinates of this one.

    With `z = (angle - centre) scale` the following round's `z' = d z + e` for each coordinate.
    """
    size = lookahead.centre.shape[1]
    stretch, offset = np.zeros(size), np.zeros(size)
    slope, bend = lookahead.slope[at + 1], lookahead.bend[at + 1]
    for row in range(size):
        if lookahead.scale[at, row] > 0.0:
            stretch[row] = lookahead.scale[at + 1, row] / lookahead.scale[at, row]
        offset[row] = (lookahead.centre[at, row] - lookahead.centre[at + 1, row]) * lookahead.scale[at + 1, row]
    terms[0] = lookahead.constant[at + 1]
    for row in range(size):
        pull = 0.0
        for column in range(size):
            pull += bend[row, column] * offset[column]
        terms[0] += offset[row] * (slope[row] + pull)
        terms[1 + row] = stretch[row] * (slope[row] + 2.0 * pull)
    for pair in range(pairs.shape[0]):
        one, other = pairs[pair, 0], pairs[pair, 1]
        share = 1.0 if one == other else 2.0
        terms[1 + size + pair] = share * stretch[one] * stretch[other] * bend[one, other]


@called
def _weigh(targets: Numbers, fewest: float, weights: Numbers) -> float:
    """Fill in weights `psi^power`, with a power so low that not too few states count; return their sum."""
    largest, power, total = -math.inf, POWER, 0.0
    for visit in range(targets.size):
        largest = max(largest, targets[visit])
    for _ in range(12):
        total, squares = 0.0, 0.0
        for visit in range(targets.size):
            weights[visit] = math.exp(power * (targets[visit] - largest)) if targets[visit] > largest - 600.0 else 0.0
            total += weights[visit]
            squares += weights[visit] * weights[visit]
        if total * total > fewest * squares:
            break
        power *= 0.6
    return total


@called
def _standardise(angles: Numbers, weights: Numbers, total: float, at: int, lookahead: Lookahead) -> None:
    """Fill in centre, scale and range of the visited angles."""
    number, size = angles.shape
    for row in range(size):
        centre, square, lowest, highest = 0.0, 0.0, math.inf, -math.inf
        for visit in range(number):
            centre += weights[visit] / total * angles[visit, row]
            lowest, highest = min(lowest, angles[visit, row]), max(highest, angles[visit, row])
        for visit in range(number):
            square += weights[visit] / total * (angles[visit, row] - centre) ** 2
        scale = 1.0 / math.sqrt(square) if square > 1e-12 else 0.0
        lookahead.centre[at, row], lookahead.scale[at, row] = centre, scale
        lookahead.lowest[at, row] = (lowest - centre) * scale - BEYOND
        lookahead.highest[at, row] = (highest - centre) * scale + BEYOND


@called
def _solve_ridge(gram: Numbers, right: Numbers, penalty: float) -> None:
    """Solve the normal equations of a ridge regression in place, by a Cholesky factor; the constant has no penalty."""
    size = right.size
    for row in range(size):
        gram[row, row] += penalty if row > 0 else 0.0
        for column in range(row + 1):
            rest = gram[row, column]
            for other in range(column):
                rest -= gram[row, other] * gram[column, other]
            if column < row:
                gram[row, column] = rest / gram[column, column]
            else:
                gram[row, row] = math.sqrt(max(rest, 1e-12))
    for row in range(size):
        for column in range(row):
            right[row] -= gram[row, column] * right[column]
        right[row] /= gram[row, row]
    for row in range(size - 1, -1, -1):
        for below in range(row + 1, size):
            right[row] -= gram[below, row] * right[below]
        right[row] /= gram[row, row]
