"""Filter the hidden rewards behind an index rule's actions, looking ahead.

An index rule decides without randomness, so a particle's guess at a reward is either right or impossible. What the rest
of the record says about it is known beforehand: until arm `a` is pulled again, its index is compared with every other
arm's, at the round in which the first of the two is pulled next, and the one pulled there was not smaller. So each new
reward is drawn from the interval that these comparisons leave, and its particle weighed by the interval's probability.

Where the index ignores the round, idle arms stay sorted by when they are pulled next, and the two neighbours in that
order decide; arms never pulled again lie below all others.

If the index rises one for one with the mean, the actions say nothing of the level that all rewards share. A cloud would
soon hold the level of one ancestor, so each resampling draws every particle's level anew, given all else.

An arm pulled again and again stays ahead until another's turn comes, and must then just fall behind. Particles are
guided there: within such a stretch rewards are drawn towards the mean that its end asks for, and each particle carries
a factor for how well it lies, roughly the probability that a random walk crosses in time, which is taken back after.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, compiled, inlined
from unbandit.kernels.formula import index_value, mean_value
from unbandit.kernels.rng import philox, uniform_from_word
from unbandit.kernels.smc.cloud import (
    NEVER,
    NONE,
    REDRAWS,
    Belief,
    Cloud,
    Steps,
    keep,
    posterior_mean,
    resample,
    shift_level,
    two_uniforms,
)
from unbandit.kernels.smc.proposal import log_twist, truncated_normal, twisted_proposal

FEW = 32
"""Of more arms than this, the last rewards are not drawn anew."""


@compiled
def filter_index(
    parameters: Any, record: Steps, belief: Belief, cloud: Cloud, uses_round: bool, random_ties: bool, shifts: bool,
    table: NDArray[np.float64],
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first step (from 1) that no particle survives."""
    number, arms = cloud.sums.shape
    pulls, following = np.zeros(arms, np.int64), np.full(arms, NONE)
    index, ancestors, line = np.full((number, arms), np.nan), np.empty(number, np.int64), np.arange(number)
    floor, floor_arm = np.full(number, -math.inf), np.full(number, np.int64(arms))
    guides = np.zeros(number)
    sweeping = not belief.bernoulli and arms <= FEW
    caps, last = np.full((number, arms), math.inf), np.zeros((number, arms))
    single = np.zeros(arms, np.bool_)  # whether an arm's last step hid one reward
    memo = Memo(*room(arms, record.rewards.size + 2 if belief.bernoulli else 0))
    mark = 0
    for step in range(record.arm.size):
        arm, count = record.arm[step], record.count[step]
        after = pulls[arm] + count
        upper, lower = _neighbours(following, arm, record.following[step])
        if random_ties and step >= record.opening:
            _weigh_ties(parameters, record, cloud, pulls, arm, step)
        absorbed = _absorb(record, cloud, step)
        if sweeping and step >= record.opening:
            _lower_caps(parameters, record, cloud, pulls, caps, step)
        for particle in range(number):
            weight, guides[particle] = -guides[particle], 0.0
            sum_low, sum_high = -math.inf, math.inf
            if record.binding[step] and not belief.bernoulli:
                if uses_round:
                    mine = record.following[step]
                    mean_low, mean_high = _all_bounds(parameters, cloud, pulls, following, particle, arm, mine, after)
                else:
                    mean_low, mean_high = -math.inf, math.inf
                    if upper != NONE:
                        mean_high = mean_value(parameters, index[particle, upper], after, 1)
                    if lower != NONE:
                        mean_low = mean_value(parameters, index[particle, lower], after, 1)
                    elif record.following[step] != NEVER and floor[particle] > -math.inf:
                        mean_low = mean_value(parameters, floor[particle], after, 1)
                sum_low = mean_low * after - cloud.sums[particle, arm]
                sum_high = mean_high * after - cloud.sums[particle, arm]
            hidden, known = count - absorbed, before_step(cloud, pulls, arm) + absorbed
            total = cloud.past[particle, arm] + cloud.sums[particle, arm]
            first, _ = two_uniforms(cloud, step, particle)
            if hidden == 0 and not belief.bernoulli:
                gained, off = 0.0, max(sum_low, -sum_high)
                if off > 0.0:
                    weight += _price(off / belief.sigma)
                    cloud.paid[step] += 1
            elif not belief.bernoulli and record.ahead[step] > 0:
                rival = record.rival[step]
                value = index[particle, rival]
                if uses_round:
                    its = _mean(cloud, pulls, particle, rival)
                    value = index_value(parameters, its, pulls[rival], record.until[step])
                goal = mean_value(parameters, value, after + record.ahead[step], record.until[step])
                base, left = cloud.sums[particle, arm], record.ahead[step]
                way = twisted_proposal(belief, arm, known, total, base, hidden, after, left, goal, 0.0)
                drawn, mass = truncated_normal((sum_low - way.centre) / way.deviation, math.inf, first, table)
                gained = way.centre + way.deviation * drawn
                headway = math.log((max(gained - sum_low, 0.0) + belief.sigma) / after)
                guides[particle] = headway + log_twist(way, gained, goal)
                weight += mass + way.weight + headway
            elif not belief.bernoulli:
                mean, variance = posterior_mean(belief, arm, known, total)
                deviation = math.sqrt(hidden * hidden * variance + hidden * belief.sigma * belief.sigma)
                low, high = (sum_low - hidden * mean) / deviation, (sum_high - hidden * mean) / deviation
                if low < high:
                    drawn, mass = truncated_normal(low, high, first, table)
                else:  # what two arms' turns ask for cannot be: a mean between, at a price
                    drawn, mass = 0.5 * (low + high), _price(low - high)
                    cloud.paid[step] += 1
                gained = hidden * mean + deviation * drawn
                weight += mass
            else:
                gained, mass = draw_ones(
                    parameters, record, belief, cloud, pulls, following, index, floor, floor_arm, memo,
                    uses_round, random_ties, particle, step, upper, lower, hidden, known, first,
                )  # fmt: skip
                if mass == -math.inf:
                    mass = _price(0.0)
                    cloud.paid[step] += 1
                weight += mass
            cloud.sums[particle, arm] += gained
            last[particle, arm], caps[particle, arm] = gained, math.inf
            if record.binding[step] and not uses_round:
                if belief.bernoulli:
                    held = cloud.sums[particle, arm]
                    value = remembered(parameters, memo.mine, memo.mine_at, arm, held, after, 1, step)
                else:
                    value = index_value(parameters, cloud.sums[particle, arm] * (1.0 / after), after, 1)
                index[particle, arm] = value
                if record.following[step] == NEVER and (
                    value > floor[particle] or (value == floor[particle] and arm < floor_arm[particle])
                ):
                    floor[particle], floor_arm[particle] = value, arm
            cloud.weights[particle] += weight
        pulls[arm] = after
        single[arm] = count - absorbed == 1
        if record.binding[step]:
            following[arm] = record.following[step]
        alive, drawn_anew = resample(cloud, step, ancestors)
        if not alive:
            return step + 1
        if drawn_anew:
            cloud.sums[:] = cloud.sums[ancestors]
            index[:] = index[ancestors]
            floor[:], floor_arm[:], line[:] = floor[ancestors], floor_arm[ancestors], line[ancestors]
            guides[:], caps[:], last[:] = guides[ancestors], caps[ancestors], last[ancestors]
            if sweeping and record.ahead[step] == 0:
                _refresh(parameters, belief, cloud, pulls, following, caps, last, single, step, table)
                if not uses_round:
                    _reindex(parameters, cloud, pulls, following, index, floor, floor_arm)
            if shifts and record.ahead[step] == 0:
                _draw_levels(belief, cloud, pulls, index, floor, caps, last, step, table)
        while mark < cloud.marks.size and cloud.marks[mark] == step:
            keep(cloud, mark, line)
            mark += 1
    if sweeping:
        _draw_last(belief, cloud, pulls, caps, last, single, record.arm.size, table)
    if shifts:
        _draw_levels(belief, cloud, pulls, index, floor, caps, last, record.arm.size, table)
    return 0


@called
def _draw_levels(
    belief: Belief, cloud: Cloud, pulls: NDArray[np.int64], index: NDArray[np.float64], floor: NDArray[np.float64],
    caps: NDArray[np.float64], last: NDArray[np.float64], step: int, table: NDArray[np.float64],
) -> None:  # fmt: skip
    """Shift all rewards of each particle, and with them every index, by one number."""
    for particle in range(cloud.sums.shape[0]):
        shift = shift_level(belief, cloud, pulls, cloud.sums[particle], particle, step, table)
        floor[particle] += shift
        index[particle] += shift
        caps[particle] += shift
        last[particle] += shift


@called
def _lower_caps(
    parameters: Any, record: Steps, cloud: Cloud, pulls: NDArray[np.int64], caps: NDArray[np.float64], step: int
) -> None:
    """Note what this decision says of the idle arms: their means are at most what would have won it."""
    arm, now = record.arm[step], record.round[step]
    for particle in range(cloud.sums.shape[0]):
        value = index_value(parameters, _mean(cloud, pulls, particle, arm), pulls[arm], now)
        for other in range(pulls.size):
            if other != arm:
                bound = mean_value(parameters, value, pulls[other], now)
                caps[particle, other] = min(caps[particle, other], bound)


@inlined
def _redraw(
    belief: Belief, cloud: Cloud, pulls: NDArray[np.int64], last: NDArray[np.float64], particle: int, arm: int,
    low: float, high: float, step: int, table: NDArray[np.float64],
) -> None:  # fmt: skip
    """Draw an arm's last reward anew, given all else, its mean being between two bounds."""
    base = cloud.sums[particle, arm] - last[particle, arm]
    known = cloud.before[arm] + pulls[arm] - 1.0
    mean, variance = posterior_mean(belief, arm, known, cloud.past[particle, arm] + base)
    deviation = math.sqrt(variance + belief.sigma * belief.sigma)
    place = np.uint64(particle * pulls.size + arm)
    word, _ = philox(np.uint64(step), place, cloud.name, REDRAWS, cloud.key[0], cloud.key[1])
    bottom, top = (low * pulls[arm] - base - mean) / deviation, (high * pulls[arm] - base - mean) / deviation
    if bottom < top:
        drawn, _ = truncated_normal(bottom, top, uniform_from_word(word), table)
        last[particle, arm] = mean + deviation * drawn
        cloud.sums[particle, arm] = base + last[particle, arm]


@called
def _draw_last(
    belief: Belief, cloud: Cloud, pulls: NDArray[np.int64], caps: NDArray[np.float64], last: NDArray[np.float64],
    single: NDArray[np.bool_], step: int, table: NDArray[np.float64],
) -> None:  # fmt: skip
    """At the end, draw the last reward of each arm anew: after it the arm never won, and that is all there is.

    For an arm given up early this is most of what is hidden of it, and the cloud holds few values of it by now.
    """
    for arm in range(pulls.size):
        for particle in range(cloud.sums.shape[0] if single[arm] else 0):
            high = caps[particle, arm]
            _redraw(belief, cloud, pulls, last, particle, arm, -math.inf, high, step, table)


@called
def _refresh(
    parameters: Any, belief: Belief, cloud: Cloud, pulls: NDArray[np.int64], following: NDArray[np.int64],
    caps: NDArray[np.float64], last: NDArray[np.float64], single: NDArray[np.bool_], step: int,
    table: NDArray[np.float64],
) -> None:  # fmt: skip
    """On the way, draw the last rewards of all arms anew within what was and will be compared, one after the other."""
    for particle in range(cloud.sums.shape[0]):
        for arm in range(pulls.size):
            if single[arm] and following[arm] != NONE:
                low, high = _all_bounds(
                    parameters, cloud, pulls, following, particle, arm, following[arm], pulls[arm]
                )  # fmt: skip
                _redraw(
                    belief, cloud, pulls, last, particle, arm, low, min(high, caps[particle, arm]), step, table
                )  # fmt: skip


@called
def _reindex(
    parameters: Any, cloud: Cloud, pulls: NDArray[np.int64], following: NDArray[np.int64], index: NDArray[np.float64],
    floor: NDArray[np.float64], floor_arm: NDArray[np.int64],
) -> None:  # fmt: skip
    """Compute every index anew, and the largest of the arms that are never pulled again."""
    for particle in range(cloud.sums.shape[0]):
        floor[particle], floor_arm[particle] = -math.inf, pulls.size
        for arm in range(pulls.size):
            if following[arm] == NONE:
                continue
            value = index_value(parameters, _mean(cloud, pulls, particle, arm), pulls[arm], 1)
            index[particle, arm] = value
            if following[arm] == NEVER and value > floor[particle]:
                floor[particle], floor_arm[particle] = value, arm


@inlined
def before_step(cloud: Cloud, pulls: NDArray[np.int64], arm: int) -> float:
    """Return how many rewards of an arm a particle has behind it, earlier demonstrations included."""
    return cloud.before[arm] + pulls[arm]


@called
def _neighbours(following: NDArray[np.int64], arm: int, mine: int) -> tuple[int, int]:
    """Return the arm pulled next before this one will be, and the next after it; `NONE` where there is none.

    Arms never pulled again are no neighbours; for an arm that is one itself, the last of the others is.
    """
    upper, lower = NONE, NONE
    for other in range(following.size):
        if other == arm or following[other] == NONE or following[other] == NEVER:
            continue
        if following[other] < mine:
            if upper == NONE or following[other] > following[upper]:
                upper = other
        elif lower == NONE or following[other] < following[lower]:
            lower = other
    return upper, lower


@called
def _absorb(record: Steps, cloud: Cloud, step: int) -> int:
    """Let the rule see the step's known rewards, which the observer has taken in beforehand; return how many."""
    absorbed, arm = 0, record.arm[step]
    for at in range(record.round[step] - 1, record.round[step] - 1 + record.count[step]):
        if not math.isnan(record.rewards[at]):
            cloud.before[arm] -= 1.0
            absorbed += 1
            for particle in range(cloud.sums.shape[0]):
                cloud.past[particle, arm] -= record.rewards[at]
                cloud.sums[particle, arm] += record.rewards[at]
    return absorbed


@inlined
def _price(off: float) -> float:
    """Return the logarithm of the weight of a particle that misses its interval by so many deviations.

    Where the index grows with the round, what one particle holds of two idle arms may leave a third no room. To drop
    such particles would empty the cloud; they are kept where there is none without the fault, and counted.
    """
    return -10.0 - 20.0 * off


@inlined
def _mean(cloud: Cloud, pulls: NDArray[np.int64], particle: int, arm: int) -> float:
    return cloud.sums[particle, arm] * (1.0 / pulls[arm])


@inlined
def _all_bounds(
    parameters: Any, cloud: Cloud, pulls: NDArray[np.int64], following: NDArray[np.int64], particle: int, arm: int,
    mine: int, after: int,
) -> tuple[float, float]:  # fmt: skip
    """Compare an arm with every other at the round where one of the two is pulled next; return its mean's bounds."""
    low, high = -math.inf, math.inf
    for other in range(pulls.size):
        if other == arm or following[other] == NONE or (following[other] == NEVER and mine == NEVER):
            continue
        at = min(mine, following[other])
        value = index_value(parameters, _mean(cloud, pulls, particle, other), pulls[other], at)
        bound = mean_value(parameters, value, after, at)
        if following[other] < mine:
            high = min(high, bound)
        else:
            low = max(low, bound)
    return low, high


@called
def _weigh_ties(
    parameters: Any, record: Steps, cloud: Cloud, pulls: NDArray[np.int64], arm: int, step: int
) -> None:  # fmt: skip
    """Where ties are broken at random: weigh each particle by how many arms shared the largest index."""
    for particle in range(cloud.sums.shape[0]):
        value, tied = index_value(parameters, _mean(cloud, pulls, particle, arm), pulls[arm], record.round[step]), 1
        for other in range(pulls.size):
            if other != arm:
                its = index_value(parameters, _mean(cloud, pulls, particle, other), pulls[other], record.round[step])
                tied += 1 if its == value else 0
        cloud.weights[particle] -= math.log(tied)


MEMO = 4_000_000
"""How many indices are remembered within a step at most."""


class Memo(NamedTuple):
    """Hold indices within a step: many particles agree on how often an arm gave 1, and an index may take long.

    Attributes
    ----------
    mine, its
        By other arm and reward sum: the index of the arm pulled, and of the other, when the two are next compared.
    mine_at, its_at
        In which step (from 1) each was filled in.
    """

    mine: NDArray[np.float64]
    its: NDArray[np.float64]
    mine_at: NDArray[np.int64]
    its_at: NDArray[np.int64]


@called
def room(arms: int, sums: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Make room for a memo; none where it would be too large."""
    size = sums if arms * sums <= MEMO else 0
    shape = (arms, size)
    return np.empty(shape), np.empty(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64)


@inlined
def remembered(
    parameters: Any, values: NDArray[np.float64], filled: NDArray[np.int64], other: int, total: float, pulls: int,
    at: int, step: int,
) -> float:  # fmt: skip
    """Return an index of an arm with so many rewards of 1, computed once a step."""
    key = np.int64(total)
    if values.shape[1] == 0:
        return index_value(parameters, total * (1.0 / pulls), pulls, at)
    if filled[other, key] != step + 1:
        values[other, key] = index_value(parameters, total * (1.0 / pulls), pulls, at)
        filled[other, key] = step + 1
    return values[other, key]


@inlined
def _goes_first(mine: float, arm: int, its: float, other: int, random_ties: bool) -> bool:
    """Tell whether an index wins over another, equal ones going to the lower arm or to any."""
    return mine > its or (mine == its and (random_ties or arm < other))


@inlined
def _fits(
    parameters: Any, record: Steps, cloud: Cloud, pulls: NDArray[np.int64], following: NDArray[np.int64],
    index: NDArray[np.float64], floor: NDArray[np.float64], floor_arm: NDArray[np.int64], memo: Memo, uses_round: bool,
    random_ties: bool, particle: int, step: int, upper: int, lower: int, total: float,
) -> bool:  # fmt: skip
    """Tell whether a sum agrees with every later comparison until the arm is pulled again."""
    arm, mine = record.arm[step], record.following[step]
    after = pulls[arm] + record.count[step]
    if uses_round:
        for other in range(pulls.size):
            if other == arm or following[other] == NONE or (following[other] == NEVER and mine == NEVER):
                continue
            at = min(mine, following[other])
            own = arm if at == mine else other  # compared at its own next turn, it has one index for all others
            value = remembered(parameters, memo.mine, memo.mine_at, own, total, after, at, step)
            held = cloud.sums[particle, other]
            its = remembered(parameters, memo.its, memo.its_at, other, held, pulls[other], at, step)
            first = _goes_first(value, arm, its, other, random_ties)
            second = _goes_first(its, other, value, arm, random_ties)
            if not (second if following[other] < mine else first):
                return False
        return True
    value = remembered(parameters, memo.mine, memo.mine_at, arm, total, after, 1, step)
    if upper != NONE and not _goes_first(index[particle, upper], upper, value, arm, random_ties):
        return False
    if lower != NONE:
        return _goes_first(value, arm, index[particle, lower], lower, random_ties)
    if mine != NEVER and floor[particle] > -math.inf:
        return _goes_first(value, arm, floor[particle], floor_arm[particle], random_ties)
    return True


@inlined
def draw_ones(
    parameters: Any, record: Steps, belief: Belief, cloud: Cloud, pulls: NDArray[np.int64],
    following: NDArray[np.int64], index: NDArray[np.float64], floor: NDArray[np.float64], floor_arm: NDArray[np.int64],
    memo: Memo, uses_round: bool, random_ties: bool, particle: int, step: int, upper: int, lower: int, hidden: int,
    known: float, uniform: float,
) -> tuple[float, float]:  # fmt: skip
    """Draw how many of a step's rewards were 1, among the numbers that fit; return it, and their log probability."""
    arm = record.arm[step]
    total = cloud.past[particle, arm] + cloud.sums[particle, arm]
    ones, zeros = belief.first[arm] + total, belief.second[arm] + known - total
    mass, drawn, chance = 0.0, 0, 1.0
    for at in range(hidden):
        chance *= (zeros + at) / (ones + zeros + at)
    for outcome in range(hidden + 1):  # the beta-binomial probabilities, one from the other
        if outcome > 0:
            last = outcome - 1
            chance *= (hidden - last) / outcome * (ones + last) / (zeros + hidden - last - 1.0)
        fits = not record.binding[step] or _fits(
            parameters, record, cloud, pulls, following, index, floor, floor_arm, memo, uses_round, random_ties,
            particle, step, upper, lower, cloud.sums[particle, arm] + outcome,
        )  # fmt: skip
        if fits and chance > 0.0:
            mass += chance
            if uniform * mass < chance:
                drawn, uniform = outcome, uniform * mass / chance
            else:
                uniform = (uniform * mass - chance) / (mass - chance)
    if mass > 0.0:
        return drawn, math.log(mass)
    return hidden if uniform * (ones + zeros) < ones else 0, -math.inf
