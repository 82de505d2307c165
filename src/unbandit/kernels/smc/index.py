"""Filter the hidden rewards behind an index rule's actions, looking ahead.

An index rule decides without randomness, so a guess at a reward is either right or impossible. What the rest of the
record says about it is known in advance: until arm `a` is pulled again, its index is compared with every other arm's,
in the round in which the first of the two is pulled next, and the one pulled there was not smaller. So each new reward
is proposed from the interval that these comparisons leave, and its particle weighted by the interval's probability.

Where the index ignores the round, idle arms stay sorted by the round of their next pull, and the two neighbours in that
order decide; arms never pulled again lie below all others.

If the index rises one for one with the mean, the actions say nothing about the level that all rewards share. A cloud
would soon hold the level of one ancestor, so each resampling draws every particle's level from its conditional.

An arm pulled again and again stays ahead until another's turn comes, and must then just fall behind. Within such a
stretch the proposal is twisted towards the mean that its end requires, and each particle carries a twisting factor,
roughly the probability that a random walk crosses in time, which is divided out at the next step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, compiled, inlined
from unbandit.kernels.formula import index_value, mean_value
from unbandit.kernels.smc.cloud import (
    NEVER,
    NONE,
    REDRAWS,
    Cloud,
    Steps,
    gibbs_level,
    keep_sums,
    posterior_mean,
    resample,
    two_uniforms,
    uniform,
)
from unbandit.kernels.smc.proposal import log_twist, no_ones, one_more, reservoir, truncated_normal, twisted_proposal

MOST_REDRAWN = 32
"""With more arms than this, last rewards are not redrawn."""

MOST_REMEMBERED = 4_000_000
"""The largest number of indices remembered within a step."""


class Memo(NamedTuple):
    """Indices computed within a step: many particles agree on an arm's number of ones, and an index may be slow.

    Attributes
    ----------
    own, other
        By other arm and reward sum: the index of the arm pulled, and of the other, when the two are next compared.
    own_step, other_step
        The step (from 1) in which each was computed.
    """

    own: NDArray[np.float64]
    other: NDArray[np.float64]
    own_step: NDArray[np.int64]
    other_step: NDArray[np.int64]


class IndexState(NamedTuple):
    """What the filter carries from step to step beside the cloud.

    Attributes
    ----------
    pulls, next_round
        Per arm: `n_i`, and the round of its next pull (`NEVER`, or `NONE` before its state is first compared).
    index
        Per particle and arm, where the index ignores the round.
    floor, floor_arm
        Per particle: the largest index of the arms that are never pulled again, and that arm.
    log_twist
        Per particle: log of the twisting factor, to be divided out at the next step.
    cap, last
        Per particle and arm: the upper bound of an idle arm's mean, and the reward sum of its last step.
    single
        Per arm: whether its last step hid exactly one reward.
    memo
        Indices computed within the step, for rewards of 0 and 1.
    uses_round, random_ties
        Of the rule: whether the index depends on the round, and whether ties are broken at random.
    """

    pulls: NDArray[np.int64]
    next_round: NDArray[np.int64]
    index: NDArray[np.float64]
    floor: NDArray[np.float64]
    floor_arm: NDArray[np.int64]
    log_twist: NDArray[np.float64]
    cap: NDArray[np.float64]
    last: NDArray[np.float64]
    single: NDArray[np.bool_]
    memo: Memo
    uses_round: bool
    random_ties: bool


class Pull(NamedTuple):
    """A step in the making: how many rewards it hides, what is known, and the arm's neighbours in the order of turns.

    Attributes
    ----------
    step, arm, after
        Which step, which arm, and the arm's pulls after it.
    hidden, known
        The number of unknown rewards, and the observer's rewards of the arm before them.
    upper, lower
        The arms pulled next before and after this one will be; `NONE` where there is none.
    """

    step: int
    arm: int
    after: int
    hidden: int
    known: float
    upper: int
    lower: int


@compiled
def filter_index(
    parameters: Any, steps: Steps, cloud: Cloud, uses_round: bool, random_ties: bool, shifts: bool
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first step (from 1) that no particle survives."""
    number, arms = cloud.sums.shape
    bernoulli = cloud.belief.bernoulli
    state = IndexState(
        np.zeros(arms, np.int64), np.full(arms, NONE), np.full((number, arms), np.nan), np.full(number, -math.inf),
        np.full(number, np.int64(arms)), np.zeros(number), np.full((number, arms), math.inf), np.zeros((number, arms)),
        np.zeros(arms, np.bool_), _memo(arms, steps.rewards.size + 2 if bernoulli else 0), uses_round, random_ties,
    )  # fmt: skip
    redraws = not bernoulli and arms <= MOST_REDRAWN
    mark = 0
    for step in range(steps.arm.size):
        arm, next_round = steps.arm[step], steps.next_round[step]
        after = state.pulls[arm] + steps.count[step]
        # What this decision says before its rewards are drawn.
        if random_ties and step >= steps.opening:
            _weigh_ties(parameters, steps, cloud, state, step)
        seen = _absorb(steps, cloud, step)
        if redraws and step >= steps.opening:
            _lower_caps(parameters, steps, cloud, state, step)
        # Propose each particle's reward sum within the bounds of all later comparisons: w *= P(bounds).
        hidden, known = steps.count[step] - seen, cloud.before[arm] + state.pulls[arm] + seen
        upper, lower = _neighbours(state.next_round, arm, next_round)
        pull = Pull(step, arm, after, hidden, known, upper, lower)
        for particle in range(number):
            log_weight = -state.log_twist[particle]
            state.log_twist[particle] = 0.0
            if bernoulli:
                gained, log_mass = _propose_ones(parameters, steps, cloud, state, pull, particle)
            else:
                gained, log_mass = _propose_normal(parameters, steps, cloud, state, pull, particle)
            cloud.log_weights[particle] += log_weight + log_mass
            cloud.sums[particle, arm] += gained
            state.last[particle, arm] = gained
            state.cap[particle, arm] = math.inf
            if steps.binding[step] and not uses_round:
                _update_index(parameters, cloud, state, pull, next_round, particle)
        state.pulls[arm] = after
        state.single[arm] = hidden == 1
        if steps.binding[step]:
            state.next_round[arm] = next_round
        # Resample, and redraw within the offspring what the comparisons leave free.
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            _follow(cloud, state)
            if redraws and steps.left[step] == 0:
                _gibbs_last(parameters, cloud, state, step)
                if not uses_round:
                    _recompute_indices(parameters, cloud, state)
            if shifts and steps.left[step] == 0:
                _gibbs_levels(cloud, state, step)
        mark = keep_sums(cloud, step, mark)
    if redraws:
        _gibbs_final(cloud, state, steps.arm.size)
    if shifts:
        _gibbs_levels(cloud, state, steps.arm.size)
    return 0


# --- Proposals ---


@inlined
def _propose_normal(
    parameters: Any, steps: Steps, cloud: Cloud, state: IndexState, pull: Pull, particle: int
) -> tuple[float, float]:  # fmt: skip
    """Propose the sum of a step's hidden rewards; return it, and the log of the weight that it brings."""
    belief, step, arm, hidden = cloud.belief, pull.step, pull.arm, pull.hidden
    base = cloud.sums[particle, arm]
    # Bounds of the sum: low < x < high.
    mean_low, mean_high = -math.inf, math.inf
    if steps.binding[step]:
        mean_low, mean_high = _bounds(parameters, cloud, state, pull, steps.next_round[step], particle)
    low, high = mean_low * pull.after - base, mean_high * pull.after - base
    total = cloud.past[particle, arm] + base
    first, _ = two_uniforms(cloud, step, particle)
    # Nothing hidden: the known rewards agree, or a penalty is due.
    if hidden == 0:
        off = max(low, -high)
        if off > 0.0:
            cloud.relaxed[step] += 1
            return 0.0, _penalty(off / belief.sigma)
        return 0.0, 0.0
    # Within a stretch: twisted towards the mean at which the rival takes over.
    if steps.left[step] > 0:
        rival, rival_round = steps.rival[step], steps.rival_round[step]
        value = state.index[particle, rival]
        if state.uses_round:
            value = index_value(parameters, _mean(cloud, state, particle, rival), state.pulls[rival], rival_round)
        goal = mean_value(parameters, value, pull.after + steps.left[step], rival_round)
        left = steps.left[step]
        twist = twisted_proposal(belief, arm, pull.known, total, base, hidden, pull.after, left, goal, 0.0)
        drawn, log_mass = truncated_normal((low - twist.centre) / twist.deviation, math.inf, first, cloud.table)
        gained = twist.centre + twist.deviation * drawn
        headway = math.log((max(gained - low, 0.0) + belief.sigma) / pull.after)
        state.log_twist[particle] = headway + log_twist(twist, gained, goal)
        return gained, log_mass + twist.log_weight + headway
    # Otherwise: the predictive distribution N(hidden mean, hidden^2 variance + hidden sigma^2), within the bounds.
    mean, variance = posterior_mean(belief, arm, pull.known, total)
    deviation = math.sqrt(hidden * hidden * variance + hidden * belief.sigma * belief.sigma)
    low, high = (low - hidden * mean) / deviation, (high - hidden * mean) / deviation
    if low < high:
        drawn, log_mass = truncated_normal(low, high, first, cloud.table)
    else:  # two arms' turns contradict each other: the middle, with a penalty
        drawn, log_mass = 0.5 * (low + high), _penalty(low - high)
        cloud.relaxed[step] += 1
    return hidden * mean + deviation * drawn, log_mass


@inlined
def _propose_ones(
    parameters: Any, steps: Steps, cloud: Cloud, state: IndexState, pull: Pull, particle: int
) -> tuple[float, float]:  # fmt: skip
    """Propose how many of a step's hidden rewards were 1, among the numbers that fit; return it and its log weight."""
    belief, step, arm, hidden = cloud.belief, pull.step, pull.arm, pull.hidden
    drawn_by, _ = two_uniforms(cloud, step, particle)
    total = cloud.past[particle, arm] + cloud.sums[particle, arm]
    ones, zeros = belief.first[arm] + total, belief.second[arm] + pull.known - total
    mass, drawn, chance = 0.0, 0, no_ones(ones, zeros, hidden)
    for outcome in range(hidden + 1):
        if outcome > 0:
            chance = one_more(chance, outcome, ones, zeros, hidden)
        fits = not steps.binding[step] or _fits(
            parameters, cloud, state, pull, steps.next_round[step], particle, cloud.sums[particle, arm] + outcome
        )
        if fits and chance > 0.0:
            drawn, drawn_by, mass = reservoir(drawn, drawn_by, mass, outcome, chance)
    if mass > 0.0:
        return drawn, math.log(mass)
    cloud.relaxed[step] += 1
    return hidden if drawn_by * (ones + zeros) < ones else 0, _penalty(0.0)


@inlined
def _penalty(off: float) -> float:
    """Return the log weight of a particle that misses its interval by `off` deviations.

    Where the index grows with the round, what a particle holds of two idle arms may leave a third no room. Dropping
    such particles would empty the cloud; they are kept with a penalty, and counted as relaxed.
    """
    return -10.0 - 20.0 * off


# --- Comparisons ---


@inlined
def _bounds(
    parameters: Any, cloud: Cloud, state: IndexState, pull: Pull, next_round: int, particle: int
) -> tuple[float, float]:  # fmt: skip
    """Return the bounds of the arm's mean that all comparisons until its next pull leave."""
    if state.uses_round:
        return _all_bounds(parameters, cloud, state, particle, pull.arm, next_round, pull.after)
    low, high = -math.inf, math.inf
    if pull.upper != NONE:
        high = mean_value(parameters, state.index[particle, pull.upper], pull.after, 1)
    if pull.lower != NONE:
        low = mean_value(parameters, state.index[particle, pull.lower], pull.after, 1)
    elif next_round != NEVER and state.floor[particle] > -math.inf:
        low = mean_value(parameters, state.floor[particle], pull.after, 1)
    return low, high


@inlined
def _all_bounds(
    parameters: Any, cloud: Cloud, state: IndexState, particle: int, arm: int, next_round: int, after: int
) -> tuple[float, float]:  # fmt: skip
    """Compare an arm with every other in the round where one of the two is pulled next; return its mean's bounds."""
    low, high = -math.inf, math.inf
    for other in range(state.pulls.size):
        other_round = state.next_round[other]
        if other == arm or other_round == NONE or (other_round == NEVER and next_round == NEVER):
            continue
        at = min(next_round, other_round)
        value = index_value(parameters, _mean(cloud, state, particle, other), state.pulls[other], at)
        bound = mean_value(parameters, value, after, at)
        if other_round < next_round:
            high = min(high, bound)
        else:
            low = max(low, bound)
    return low, high


@inlined
def _fits(
    parameters: Any, cloud: Cloud, state: IndexState, pull: Pull, next_round: int, particle: int, total: float
) -> bool:  # fmt: skip
    """Return whether a reward sum agrees with every comparison until the arm is pulled again."""
    arm, step, ties, memo = pull.arm, pull.step, state.random_ties, state.memo
    if state.uses_round:
        for other in range(state.pulls.size):
            other_round = state.next_round[other]
            if other == arm or other_round == NONE or (other_round == NEVER and next_round == NEVER):
                continue
            at = min(next_round, other_round)
            key = arm if at == next_round else other  # compared at its own next turn, it has one index for all others
            value = _remembered(parameters, memo.own, memo.own_step, key, total, pull.after, at, step)
            held, pulls = cloud.sums[particle, other], state.pulls[other]
            its = _remembered(parameters, memo.other, memo.other_step, other, held, pulls, at, step)
            first = _wins(value, arm, its, other, ties)
            second = _wins(its, other, value, arm, ties)
            if not (second if other_round < next_round else first):
                return False
        return True
    value = _remembered(parameters, memo.own, memo.own_step, arm, total, pull.after, 1, step)
    if pull.upper != NONE and not _wins(state.index[particle, pull.upper], pull.upper, value, arm, ties):
        return False
    if pull.lower != NONE:
        return _wins(value, arm, state.index[particle, pull.lower], pull.lower, ties)
    if next_round != NEVER and state.floor[particle] > -math.inf:
        return _wins(value, arm, state.floor[particle], state.floor_arm[particle], ties)
    return True


@inlined
def _wins(mine: float, arm: int, its: float, other: int, random_ties: bool) -> bool:
    """Return whether an index can win over another; equal ones go to the lower arm, or to any."""
    return mine > its or (mine == its and (random_ties or arm < other))


@called
def _memo(arms: int, sums: int) -> Memo:
    """Allocate a memo; an empty one where it would be too large."""
    shape = (arms, sums if arms * sums <= MOST_REMEMBERED else 0)
    return Memo(np.empty(shape), np.empty(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64))


@inlined
def _remembered(
    parameters: Any, values: NDArray[np.float64], computed: NDArray[np.int64], other: int, total: float, pulls: int,
    at: int, step: int,
) -> float:  # fmt: skip
    """Return the index of an arm with `total` ones, computed once per step."""
    key = np.int64(total)
    if values.shape[1] == 0:
        return index_value(parameters, total * (1.0 / pulls), pulls, at)
    if computed[other, key] != step + 1:
        values[other, key] = index_value(parameters, total * (1.0 / pulls), pulls, at)
        computed[other, key] = step + 1
    return values[other, key]


@called
def _neighbours(next_round: NDArray[np.int64], arm: int, own_round: int) -> tuple[int, int]:
    """Return the arm whose next pull is the last before this one's, and that whose is the first after; else `NONE`.

    Arms never pulled again are no neighbours; an arm that is one itself has the last of the others.
    """
    upper, lower = NONE, NONE
    for other in range(next_round.size):
        if other == arm or next_round[other] == NONE or next_round[other] == NEVER:
            continue
        if next_round[other] < own_round:
            if upper == NONE or next_round[other] > next_round[upper]:
                upper = other
        elif lower == NONE or next_round[other] < next_round[lower]:
            lower = other
    return upper, lower


@called
def _weigh_ties(parameters: Any, steps: Steps, cloud: Cloud, state: IndexState, step: int) -> None:
    """Where ties are broken at random, divide each weight by the number of arms that share the largest index."""
    arm, now, pulls = steps.arm[step], steps.round[step], state.pulls
    for particle in range(cloud.sums.shape[0]):
        value, tied = index_value(parameters, _mean(cloud, state, particle, arm), pulls[arm], now), 1
        for other in range(pulls.size):
            if other != arm:
                its = index_value(parameters, _mean(cloud, state, particle, other), pulls[other], now)
                tied += 1 if its == value else 0
        cloud.log_weights[particle] -= math.log(tied)


# --- State ---


@called
def _absorb(steps: Steps, cloud: Cloud, step: int) -> int:
    """Let the rule see the step's known rewards, which the observer knew from the start; return their number."""
    absorbed, arm = 0, steps.arm[step]
    for at in range(steps.round[step] - 1, steps.round[step] - 1 + steps.count[step]):
        if not math.isnan(steps.rewards[at]):
            cloud.before[arm] -= 1.0
            absorbed += 1
            for particle in range(cloud.sums.shape[0]):
                cloud.past[particle, arm] -= steps.rewards[at]
                cloud.sums[particle, arm] += steps.rewards[at]
    return absorbed


@inlined
def _mean(cloud: Cloud, state: IndexState, particle: int, arm: int) -> float:
    return cloud.sums[particle, arm] * (1.0 / state.pulls[arm])


@inlined
def _update_index(
    parameters: Any, cloud: Cloud, state: IndexState, pull: Pull, next_round: int, particle: int
) -> None:  # fmt: skip
    """Store the arm's new index, and raise the floor if the arm is never pulled again."""
    arm, total, memo = pull.arm, cloud.sums[particle, pull.arm], state.memo
    if cloud.belief.bernoulli:
        value = _remembered(parameters, memo.own, memo.own_step, arm, total, pull.after, 1, pull.step)
    else:
        value = index_value(parameters, total * (1.0 / pull.after), pull.after, 1)
    state.index[particle, arm] = value
    floor = state.floor[particle]
    if next_round == NEVER and (value > floor or (value == floor and arm < state.floor_arm[particle])):
        state.floor[particle], state.floor_arm[particle] = value, arm


@called
def _recompute_indices(parameters: Any, cloud: Cloud, state: IndexState) -> None:
    """Recompute every index, and the largest of the arms that are never pulled again."""
    for particle in range(cloud.sums.shape[0]):
        state.floor[particle], state.floor_arm[particle] = -math.inf, state.pulls.size
        for arm in range(state.pulls.size):
            if state.next_round[arm] == NONE:
                continue
            value = index_value(parameters, _mean(cloud, state, particle, arm), state.pulls[arm], 1)
            state.index[particle, arm] = value
            if state.next_round[arm] == NEVER and value > state.floor[particle]:
                state.floor[particle], state.floor_arm[particle] = value, arm


@called
def _follow(cloud: Cloud, state: IndexState) -> None:
    """Give offspring the state of their ancestors."""
    ancestors = cloud.ancestors
    state.index[:] = state.index[ancestors]
    state.floor[:] = state.floor[ancestors]
    state.floor_arm[:] = state.floor_arm[ancestors]
    state.log_twist[:] = state.log_twist[ancestors]
    state.cap[:] = state.cap[ancestors]
    state.last[:] = state.last[ancestors]


@called
def _lower_caps(parameters: Any, steps: Steps, cloud: Cloud, state: IndexState, step: int) -> None:
    """Bound the means of the idle arms by what would have won this decision."""
    arm, now, pulls = steps.arm[step], steps.round[step], state.pulls
    for particle in range(cloud.sums.shape[0]):
        value = index_value(parameters, _mean(cloud, state, particle, arm), pulls[arm], now)
        for other in range(pulls.size):
            if other != arm:
                bound = mean_value(parameters, value, pulls[other], now)
                state.cap[particle, other] = min(state.cap[particle, other], bound)


# --- Gibbs moves ---


@called
def _gibbs_levels(cloud: Cloud, state: IndexState, step: int) -> None:
    """Shift all rewards of each particle, and with them every index, by a number drawn from its conditional."""
    for particle in range(cloud.sums.shape[0]):
        shift = gibbs_level(cloud, state.pulls, cloud.sums[particle], particle, step)
        state.floor[particle] += shift
        state.index[particle] += shift
        state.cap[particle] += shift
        state.last[particle] += shift


@inlined
def _gibbs_reward(
    cloud: Cloud, state: IndexState, particle: int, arm: int, low: float, high: float, step: int
) -> None:  # fmt: skip
    """Draw an arm's last reward from its conditional, its sample mean being between two bounds."""
    belief, pulls = cloud.belief, state.pulls[arm]
    base = cloud.sums[particle, arm] - state.last[particle, arm]
    known = cloud.before[arm] + pulls - 1.0
    mean, variance = posterior_mean(belief, arm, known, cloud.past[particle, arm] + base)
    deviation = math.sqrt(variance + belief.sigma * belief.sigma)
    drawn_by = uniform(cloud, REDRAWS, step, particle * state.pulls.size + arm)
    bottom, top = (low * pulls - base - mean) / deviation, (high * pulls - base - mean) / deviation
    if bottom < top:
        drawn, _ = truncated_normal(bottom, top, drawn_by, cloud.table)
        state.last[particle, arm] = mean + deviation * drawn
        cloud.sums[particle, arm] = base + state.last[particle, arm]


@called
def _gibbs_last(parameters: Any, cloud: Cloud, state: IndexState, step: int) -> None:
    """On the way, redraw the last reward of each arm in turn, within all past and coming comparisons."""
    for particle in range(cloud.sums.shape[0]):
        for arm in range(state.pulls.size):
            next_round = state.next_round[arm]
            if state.single[arm] and next_round != NONE:
                low, high = _all_bounds(parameters, cloud, state, particle, arm, next_round, state.pulls[arm])
                high = min(high, state.cap[particle, arm])
                _gibbs_reward(cloud, state, particle, arm, low, high, step)


@called
def _gibbs_final(cloud: Cloud, state: IndexState, step: int) -> None:
    """At the end, redraw the last reward of each arm, of which only its cap is known: the arm did not win again.

    For an arm given up early this is most of what is hidden, and the cloud holds few values of it by now.
    """
    for arm in range(state.pulls.size):
        for particle in range(cloud.sums.shape[0] if state.single[arm] else 0):
            _gibbs_reward(cloud, state, particle, arm, -math.inf, state.cap[particle, arm], step)
