"""Filter of Thompson sampling with Beta draws: probabilities from shared tables, and a look at the whole log.

The hidden rewards are 0 or 1, so a *look-ahead* needs no special form: any positive function `psi_t(x)` of the state
before round `t` will do, since its expectation over the next reward is a sum of two terms. A reward is proposed in
proportion to its probability times `psi_{t+1}`, and a particle's weight in round `t` is

    p(a_t | x_t) E[psi_{t+1}(x_{t+1}) | x_t] / psi_t(x_t).

The evidence is unbiased and the particles are right whatever the functions are. They should come near the probability
of all actions from round `t` on. On the scale of the angle `asin sqrt(success share)` a Beta draw is nearly normal,
with a variance `1 / (4 n)` that does not depend on the share, and so is what a reward adds. Which draw is the largest
is the same on any scale: so on this one the rule is Thompson sampling with normal draws, whose twisting function
(`kernels/smc/twist.py`) serves as `psi`. Its scores are sums of rewards of normal noise 1/2, which a mean of `angle`
after `n` rewards stands for.
"""

import math

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.largest_beta import BetaTables, largest_by_tables, lay_tables, pull_tables
from unbandit.kernels.simulate_available import arms_there
from unbandit.kernels.smc.cloud import (
    PARTICLES,
    Cloud,
    Steps,
    Views,
    count_pulls,
    inherit,
    keep_sums,
    posterior_success,
    prior_of,
    resample,
    uniform,
)
from unbandit.kernels.smc.twist import Exponents

GROWTH = 1.0  # tables serve for this many square roots of an arm's pulls
ANGLES = np.arcsin(np.sqrt(np.linspace(0.0, 1.0, 1025)))


@inlined
def angle(successes: float, pulls: float) -> float:
    """Return about `asin sqrt` of a success share: an angle whose variance hardly depends on the share."""
    place = successes / pulls * 1024.0
    cell = min(np.uint64(place), np.uint64(1023))
    return ANGLES[cell] + (place - np.float64(cell)) * (ANGLES[cell + np.uint64(1)] - ANGLES[cell])


@called
def _expectations(
    exponents: Exponents, at: int, arm: int, scores: Numbers, after: Numbers, success: Numbers, mean: Numbers,
    value_0: Numbers, value_1: Numbers, work: Numbers,
) -> None:  # fmt: skip
    """Fill in `log psi` before round `at` for states after a reward of 0 and of 1, and the log of its expectation.

    `scores` are those before the reward of `arm`: (coordinates, particles). The probability of `success` becomes that
    which the look-ahead gives it.
    """
    size, number = scores.shape
    constant, slope, bend = exponents.constant[at], exponents.slope[at], exponents.bend[at]
    second = arm + size // 2 if after.shape[0] == 4 else arm  # the observer's coordinate of the arm, if there is one
    value, by_arm, by_second, product = work[0], work[1], work[2], work[3]
    for particle in range(number):
        value[particle], by_arm[particle], by_second[particle] = constant, slope[arm], slope[second]
    for row in range(size):
        if row in (arm, second):
            continue
        own, z = bend[row, row], scores[row]
        for particle in range(number):
            product[particle] = slope[row] + own * z[particle]
        for column in range(row):
            if column not in (arm, second):
                factor, other = 2.0 * bend[row, column], scores[column]
                for particle in range(number):
                    product[particle] += factor * other[particle]
        for particle in range(number):
            value[particle] += z[particle] * product[particle]
            by_arm[particle] += 2.0 * bend[arm, row] * z[particle]
            by_second[particle] += 2.0 * bend[second, row] * z[particle]
    own, mixed, seen = bend[arm, arm], 2.0 * bend[arm, second], bend[second, second]
    for particle in range(number):
        low, high = after[0, particle], after[1, particle]
        low_value = value[particle] + low * (by_arm[particle] + own * low)
        high_value = value[particle] + high * (by_arm[particle] + own * high)
        if second != arm:
            low_seen, high_seen = after[2, particle], after[3, particle]
            low_value += low_seen * (by_second[particle] + seen * low_seen + mixed * low)
            high_value += high_seen * (by_second[particle] + seen * high_seen + mixed * high)
        value_0[particle], value_1[particle] = low_value, high_value
        failure, chance = 1.0 - success[particle], success[particle]
        if low_value > high_value:
            chance *= math.exp(high_value - low_value)
        else:
            failure *= math.exp(low_value - high_value)
        total = failure + chance
        mean[particle] = max(low_value, high_value) + math.log(total)
        success[particle] = chance / total


@compiled
def filter_bernoulli(
    successes: float, failures: float, steps: Steps, views: Views, cloud: Cloud, first: int, values: Numbers,
    exponents: Exponents,
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first round that no particle survives.

    `successes` and `failures` are of the rule's prior, and `views` say which actions it draws from which state. `first`
    is the demonstration's first round in the log, and `values` has each particle's `log psi` there. Exponents of no
    rounds look at nothing. They have one coordinate per arm, the score that the rule's success share stands for, and
    where what the observer knows differs from that (several demonstrations, known rewards) as many angles of the
    observer's shares.
    """
    number, arms = cloud.sums.shape
    coordinates, looks = exponents.slope.shape[1], exponents.constant.size > 0
    observed = coordinates > arms
    wins, pulls = np.zeros((number, arms), np.int64), np.zeros(arms, np.int64)
    counts, who, among = np.zeros(arms, np.int64), np.empty(arms, np.int64), np.arange(arms)
    tables = _tables_of(successes, failures, pulls, wins, among)
    scores, after = np.zeros((coordinates, number)), np.zeros((4 if observed else 2, number))
    chances, log_chances, mean = np.empty(number), np.zeros(number), np.zeros(number)
    success, value_0, value_1 = np.empty(number), np.zeros(number), np.zeros(number)
    work, weight = np.empty((4, number)), successes + failures
    start = weight * angle(successes, weight)
    if observed:
        for arm in range(arms):
            prior = prior_of(cloud.belief, arm)
            for particle in range(number):
                seen, behind = prior.first + cloud.past[particle, arm], prior.first + prior.second + cloud.before[arm]
                scores[arms + arm, particle] = angle(seen, behind)
    mark = 0
    for step in range(steps.arm.size):
        at, arm, known = first + step, steps.arm[step], steps.rewards[step]
        hidden = math.isnan(known)
        # The probability of all actions drawn from this state.
        there = arms_there(views.spans, views.decided[step], who) if views.judged[step] > 0 else 0
        for particle in range(number):
            log_chances[particle] = 0.0
        if there > 1:
            count_pulls(steps.arm, views.first[step], views.judged[step], counts)
            if not np.array_equal(among, who[:there]):
                among = who[:there].copy()
                tables = _tables_of(successes, failures, pulls, wins, among)
            for each in among:
                if counts[each] > 0:
                    largest_by_tables(tables, wins, each, among, chances)
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
        if looks:
            grown = pulls[arm] + 1.0 + weight
            for particle in range(number):
                for reward in range(2):
                    share = angle(successes + wins[particle, arm] + reward, grown)
                    after[reward, particle] = grown * share - start
                    if observed:  # a known reward is no news, and one in the past is none that is still to come
                        news = reward if hidden else known
                        seen = prior.first + cloud.past[particle, arm] + wins[particle, arm] + news
                        after[2 + reward, particle] = angle(seen, prior.first + prior.second + behind + 1.0)
            _expectations(exponents, at + 1, arm, scores, after, success, mean, value_0, value_1, work)
            for particle in range(number):
                if not hidden:
                    mean[particle] = value_1[particle] if known == 1.0 else value_0[particle]
                log_chances[particle] += mean[particle] - values[particle]
        for particle in range(number):
            cloud.log_weights[particle] += log_chances[particle]
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(wins, cloud.ancestors)
            inherit(success, cloud.ancestors)
            if looks:
                inherit(value_0, cloud.ancestors)
                inherit(value_1, cloud.ancestors)
                for row in range(coordinates):
                    inherit(scores[row], cloud.ancestors)
                for row in range(after.shape[0]):
                    inherit(after[row], cloud.ancestors)
        for particle in range(number):
            reward = 1 if uniform(cloud.rng, PARTICLES, step, particle) < success[particle] else 0
            if not hidden:  # whatever rounding makes of its probability
                reward = int(known)
            wins[particle, arm] += reward
            if looks:
                values[particle] = value_1[particle] if reward == 1 else value_0[particle]
                scores[arm, particle] = after[reward, particle]
                if observed:
                    scores[arms + arm, particle] = after[2 + reward, particle]
        pulls[arm] += 1
        if pulls[arm] > tables.expiry[arm]:
            tables = _tables_of(successes, failures, pulls, wins, among)
        else:
            pull_tables(tables, arm)
        if mark < cloud.marks.size and cloud.marks[mark] == step:
            _take_sums(cloud, wins)
            mark = keep_sums(cloud, step, mark)
    _take_sums(cloud, wins)
    return 0


@called
def _tables_of(successes: float, failures: float, pulls: Integers, wins: Integers, among: Integers) -> BetaTables:
    """Lay tables for all numbers of successes that particles have."""
    low, high = wins[0].copy(), wins[0].copy()
    for particle in range(1, wins.shape[0]):
        for arm in range(pulls.size):
            low[arm] = min(low[arm], wins[particle, arm])
            high[arm] = max(high[arm], wins[particle, arm])
    return lay_tables(successes, failures, pulls, low, high, GROWTH, among)


@called
def _take_sums(cloud: Cloud, wins: Integers) -> None:
    """Take the sums of rewards."""
    for particle in range(wins.shape[0]):
        for arm in range(wins.shape[1]):
            cloud.sums[particle, arm] = wins[particle, arm]
