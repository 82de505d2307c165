"""Filter the hidden normal rewards behind an index rule's actions, looking ahead.

An index rule decides without randomness, so a guess at a reward is either right or impossible. What the rest of the
record says about it is known in advance: until arm `a` is pulled again, its index is compared with every other arm's,
in the round in which the first of the two is pulled next, and the one pulled there was not smaller. So each new reward
is proposed from the interval that these comparisons leave, and its particle weighted by the interval's probability.
Where the index ignores the round, idle arms stay sorted by the round of their next pull, and the two neighbours in that
order decide; arms never pulled again lie below all others. Two arms are compared only while both are there.

Within a stretch of one arm the proposal is twisted towards the mean that its end requires; each particle carries a
factor, roughly the probability that a random walk crosses in time, which is divided out at the next step.

Which arms are compared, and when, is the same for all particles. Where the index rises with the mean one for one, so is
the difference of two indices but for the sample means: no formula is evaluated for a particle.

Rewards of 0 and 1 are filtered in `successes`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import (
    Integers,
    Marks,
    Numbers,
    called,
    compiled,
    inlined,
    new_integers,
    new_marks,
    new_numbers,
    new_table,
)
from unbandit.kernels.formula import index_value, mean_value
from unbandit.kernels.simulate_available import is_there
from unbandit.kernels.smc.cloud import (
    NEVER,
    NONE,
    PARTICLES,
    REDRAWS,
    ArmPrior,
    Cloud,
    Steps,
    gibbs_level,
    inherit,
    keep_sums,
    predictive_sum,
    prior_of,
    resample,
    uniform,
)
from unbandit.kernels.smc.proposal import log_twist, truncated_normal, twisted_proposal

MOST_REDRAWN = 32  # with more arms than this, last rewards are not redrawn


class ComparisonState(NamedTuple):
    """What the comparisons need from step to step."""

    sums: Numbers  # of the cloud: (particles, arms)
    pulls: Integers  # per arm: `n_i`
    next_round: Integers  # per arm: of its next pull; `NEVER`, or `NONE` before its state is first compared
    index: Numbers  # per particle and arm, where the index ignores the round
    floor: Numbers  # per particle: the largest index of the arms that are never pulled again
    last_round: Integers  # per arm: the last one in which it can be pulled
    uses_round: bool  # whether the rule's index depends on the round; all arms are compared, also where some are gone


class LastRewards(NamedTuple):
    """What redrawing the last reward of each arm needs."""

    cap: Numbers  # per particle and arm: the upper bound of an idle arm's mean
    drawn: Numbers  # per particle and arm: the reward sum of its last step
    single: NDArray[np.bool_]  # per arm: whether its last step hid exactly one reward


class Comparisons(NamedTuple):
    """How one arm compares with others: each bounds its sample mean from one side."""

    other: Integers  # the other arm
    above: Marks  # whether the other arm's index was not smaller
    at: Integers  # the round
    share: Numbers  # one over the other arm's pulls
    offset: Numbers  # the bound minus the other arm's sample mean, of an index that shifts with the mean


class Pull(NamedTuple):
    """A step in the making."""

    after: int  # the arm's pulls after the step
    hidden: int  # the number of unknown rewards
    known: float  # the observer's rewards of the arm before them


@compiled
def filter_index(
    parameters: Any, steps: Steps, cloud: Cloud, uses_round: bool, random_ties: bool, shifts: bool, level: bool,
    most_relaxed: int,
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first step (from 1) that no particle survives.

    It also ends, with that step, where more than `most_relaxed` steps were relaxed for every particle: an impossible
    record costs no more than the rounds up to there. `shifts` says that the index rises with the mean one for one, and
    `level` that no known reward shows the level of all means.
    """
    number, arms = cloud.sums.shape
    belief, sums, past = cloud.belief, cloud.sums, cloud.past
    pulls, next_round = new_integers(arms, 0), new_integers(arms, NONE)
    index, log_twists = new_table(number, arms, math.nan), new_numbers(number, 0.0)
    floor, gone = new_numbers(number, -math.inf), steps.spans.last
    state = ComparisonState(sums, pulls, next_round, index, floor, gone, uses_round)
    last = LastRewards(new_table(number, arms, math.inf), new_table(number, arms, 0.0), new_marks(arms))
    redraws, moves_level = arms <= MOST_REDRAWN, shifts and level
    compared = new_comparisons(arms)
    other, above, at, share, offset = compared.other, compared.above, compared.at, compared.share, compared.offset
    mark, relaxed_steps = 0, 0
    for step in range(steps.arm.size):
        arm, own_round, left, binding = steps.arm[step], steps.next_round[step], steps.left[step], steps.binding[step]
        # What this decision says before its rewards are drawn.
        if random_ties and steps.decides[step]:
            _weigh_ties(parameters, steps, cloud, state, step)
        seen = absorb(steps, cloud, step)
        if redraws and steps.decides[step]:
            _lower_caps(parameters, steps, state, last, step, shifts)
        prior, after = prior_of(belief, arm), pulls[arm] + steps.count[step]
        known, hidden = cloud.before[arm] + pulls[arm] + seen, steps.count[step] - seen
        upper, lower = neighbours(next_round, arm, own_round)
        pull = Pull(after, hidden, known)
        comparisons = 0
        if binding and uses_round:
            comparisons = _compare(parameters, state, compared, arm, own_round, after, shifts)
        # Of an index that shifts: what is added to the sample mean, and what is missing at the end of a stretch.
        rival, rival_round = steps.rival[step], steps.rival_round[step]
        width = index_value(parameters, 0.0, after, 1) if shifts and not uses_round else 0.0
        ahead = 0.0
        if shifts and left > 0:
            ahead = mean_value(parameters, 0.0, after + left, rival_round)
            if uses_round:
                ahead = offset_between(parameters, pulls[rival], after + left, rival_round)
        for particle in range(number):
            base, drawn_by = sums[particle, arm], uniform(cloud.rng, PARTICLES, step, particle)
            total = past[particle, arm] + base
            log_weight = -log_twists[particle]  # the twisting factor of the previous step is divided out
            log_twists[particle] = 0.0
            # Bounds of the sum of the hidden rewards, by all comparisons until the arm is pulled again.
            low, high = -math.inf, math.inf
            if binding:
                if uses_round:
                    low, high = bounds_by(
                        parameters, sums, pulls, other, above, at, share, offset, comparisons, shifts, particle, after
                    )
                else:
                    if upper != NONE:
                        high = _mean_at(parameters, index[particle, upper], after, width, shifts)
                    if lower != NONE:
                        low = _mean_at(parameters, index[particle, lower], after, width, shifts)
                    elif own_round != NEVER and floor[particle] > -math.inf:
                        low = _mean_at(parameters, floor[particle], after, width, shifts)
                low, high = low * after - base, high * after - base
            # Proposal within the bounds, and its weight: w *= P(low < x < high).
            relaxed = False
            if hidden == 0:
                gained, log_mass, relaxed = 0.0, 0.0, max(low, -high) > 0.0
                if relaxed:
                    log_mass = penalty(max(low, -high) / prior.sigma)
            elif left > 0:  # within a stretch: twisted towards the mean at which the rival takes over
                value = sample_mean(sums, pulls, particle, rival) if uses_round else index[particle, rival]
                goal = value + ahead
                if not shifts:
                    if uses_round:
                        value = index_value(parameters, value, pulls[rival], rival_round)
                    goal = mean_value(parameters, value, after + left, rival_round)
                gained, log_mass, log_twists[particle] = propose_twisted(
                    prior, pull, base, total, low, left, goal, drawn_by, cloud.table
                )
            else:
                gained, log_mass, relaxed = propose_normal(prior, pull, total, low, high, drawn_by, cloud.table)
            cloud.log_weights[particle] += log_weight + log_mass
            cloud.relaxed[step] += 1 if relaxed else 0
            sums[particle, arm] += gained
            last.drawn[particle, arm] = gained
            last.cap[particle, arm] = math.inf
            # New index of the arm; the largest one of arms never pulled again is the floor.
            if binding and not uses_round:
                mean = sums[particle, arm] * (1.0 / after)
                index[particle, arm] = mean + width if shifts else index_value(parameters, mean, after, 1)
                if own_round == NEVER:
                    floor[particle] = max(floor[particle], index[particle, arm])
        pulls[arm] = after
        last.single[arm] = hidden == 1
        if binding:
            next_round[arm] = own_round
        relaxed_steps += 1 if cloud.relaxed[step] == number else 0
        if relaxed_steps > most_relaxed:
            return step + 1
        # Resample, and redraw within the offspring what the comparisons leave free.
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(log_twists, cloud.ancestors)
            inherit(index, cloud.ancestors)
            inherit(floor, cloud.ancestors)
            inherit(last.cap, cloud.ancestors)
            inherit(last.drawn, cloud.ancestors)
            if redraws and left == 0:
                _gibbs_last(parameters, cloud, state, last, compared, step, shifts)
                if not uses_round:
                    _recompute_indices(parameters, state, shifts)
            if moves_level and left == 0:
                _gibbs_levels(cloud, state, last, step)
        mark = keep_sums(cloud, step, mark)
    if redraws:
        _gibbs_final(cloud, state, last, steps.arm.size)
    if moves_level:
        _gibbs_levels(cloud, state, last, steps.arm.size)
    return 0


# --- Proposals: the sum of the hidden rewards, its log weight, and whether a bound is violated ---


@inlined
def propose_normal(
    prior: ArmPrior, pull: Pull, total: float, low: float, high: float, drawn_by: float, table: Numbers
) -> tuple[float, float, bool]:
    """Propose from the predictive distribution, within the bounds."""
    centre, deviation = predictive_sum(prior, pull.known, total, pull.hidden)
    low, high = (low - centre) / deviation, (high - centre) / deviation
    if low < high:
        drawn, log_mass = truncated_normal(low, high, drawn_by, table)
        return centre + deviation * drawn, log_mass, False
    # Two arms' turns contradict each other: the middle, with a penalty.
    return centre + deviation * (0.5 * (low + high)), penalty(low - high), True


@inlined
def propose_twisted(
    prior: ArmPrior, pull: Pull, base: float, total: float, low: float, left: int, goal: float, drawn_by: float,
    table: Numbers,
) -> tuple[float, float, float]:  # fmt: skip
    """Propose twisted towards a goal; return also the log of the twisting factor, headway included."""
    twist = twisted_proposal(prior, pull.known, total, base, pull.hidden, pull.after, left, goal, 0.0)
    drawn, log_mass = truncated_normal((low - twist.centre) / twist.deviation, math.inf, drawn_by, table)
    gained = twist.centre + twist.deviation * drawn
    headway = math.log((max(gained - low, 0.0) + prior.sigma) / pull.after)
    return gained, log_mass + twist.log_weight + headway, headway + log_twist(twist, gained, goal)


@inlined
def penalty(off: float) -> float:
    """Return the log weight of a particle that misses its interval by `off` deviations.

    Where the index grows with the round, what a particle holds of two idle arms may leave a third no room. Dropping
    such particles would empty the cloud; they are kept with a penalty, and counted as relaxed.
    """
    return -10.0 - 20.0 * off


# --- Comparisons ---


@inlined
def sample_mean(sums: Numbers, pulls: Integers, particle: int, arm: int) -> float:
    """Return an arm's sample mean, as a particle has it."""
    return sums[particle, arm] * (1.0 / pulls[arm])


@called
def new_comparisons(most: int) -> Comparisons:
    """Return room for comparisons."""
    numbers = new_numbers(most, 0.0), new_numbers(most, 0.0)
    return Comparisons(new_integers(most, 0), new_marks(most), new_integers(most, 0), *numbers)


@inlined
def offset_between(parameters: Any, pulls: int, after: int, at: int) -> float:
    """Return how much smaller a sample mean of `after` rewards is than one of `pulls`, where their indices are equal.

    For an index that rises with the mean one for one.
    """
    return mean_value(parameters, index_value(parameters, 0.0, pulls, at), after, at)


@called
def add_comparison(
    parameters: Any, compared: Comparisons, number: int, other: int, above: bool, pulls: int, after: int, at: int,
    shifts: bool,
) -> int:  # fmt: skip
    """Add a comparison with another arm after `number` others; return how many there are now."""
    compared.other[number], compared.above[number], compared.at[number] = other, above, at
    compared.share[number] = 1.0 / pulls
    if shifts:
        compared.offset[number] = offset_between(parameters, pulls, after, at)
    return number + 1


@inlined
def bounds_by(
    parameters: Any, sums: Numbers, pulls: Integers, other: Integers, above: Marks, at: Integers, share: Numbers,
    offset: Numbers, number: int, shifts: bool, particle: int, after: int,
) -> tuple[float, float]:  # fmt: skip
    """Return the bounds of an arm's sample mean after `after` rewards, by a number of comparisons."""
    low, high = -math.inf, math.inf
    for place in range(number):
        bound = sums[particle, other[place]] * share[place]
        if shifts:
            bound += offset[place]
        else:
            value = index_value(parameters, bound, pulls[other[place]], at[place])
            bound = mean_value(parameters, value, after, at[place])
        if above[place]:
            high = min(high, bound)
        else:
            low = max(low, bound)
    return low, high


@called
def _compare(
    parameters: Any, state: ComparisonState, compared: Comparisons, arm: int, own_round: int, after: int, shifts: bool
) -> int:
    """Compare an arm with every other in the round where one of the two is pulled next; return how many there are."""
    number, last_round = 0, state.last_round
    for other in range(state.pulls.size):
        other_round = state.next_round[other]
        if other == arm or other_round == NONE or (other_round == NEVER and own_round == NEVER):
            continue
        at = min(own_round, other_round)
        if at > last_round[arm] or at > last_round[other]:
            continue
        above = other_round < own_round
        number = add_comparison(parameters, compared, number, other, above, state.pulls[other], after, at, shifts)
    return number


@inlined
def _mean_at(parameters: Any, value: float, pulls: int, width: float, shifts: bool) -> float:
    """Return the mean at which an index that ignores the round has a value; `width` is that of an index that shifts."""
    return value - width if shifts else mean_value(parameters, value, pulls, 1)


@inlined
def wins(mine: float, arm: int, its: float, other: int, random_ties: bool) -> bool:
    """Return whether an index can win over another; equal ones go to the lower arm, or to any."""
    return mine > its or (mine == its and (random_ties or arm < other))


@called
def neighbours(next_round: Integers, arm: int, own_round: int) -> tuple[int, int]:
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
def _weigh_ties(parameters: Any, steps: Steps, cloud: Cloud, state: ComparisonState, step: int) -> None:
    """Where ties are broken at random, divide each weight by the number of arms that share the largest index."""
    arm, now, sums, pulls = steps.arm[step], steps.round[step], state.sums, state.pulls
    for particle in range(sums.shape[0]):
        value, tied = index_value(parameters, sample_mean(sums, pulls, particle, arm), pulls[arm], now), 1
        for other in range(pulls.size):
            if other != arm and is_there(steps.spans, other, now):
                its = index_value(parameters, sample_mean(sums, pulls, particle, other), pulls[other], now)
                tied += 1 if its == value else 0
        cloud.log_weights[particle] -= math.log(tied)


# --- State ---


@called
def absorb(steps: Steps, cloud: Cloud, step: int) -> int:
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


@called
def _recompute_indices(parameters: Any, state: ComparisonState, shifts: bool) -> None:
    """Recompute every index, and the largest of the arms that are never pulled again."""
    sums, pulls, next_round = state.sums, state.pulls, state.next_round
    for particle in range(sums.shape[0]):
        state.floor[particle] = -math.inf
    for arm in range(pulls.size):
        if next_round[arm] == NONE:
            continue
        width = index_value(parameters, 0.0, pulls[arm], 1) if shifts else 0.0
        for particle in range(sums.shape[0]):
            mean = sample_mean(sums, pulls, particle, arm)
            value = mean + width if shifts else index_value(parameters, mean, pulls[arm], 1)
            state.index[particle, arm] = value
            if next_round[arm] == NEVER:
                state.floor[particle] = max(state.floor[particle], value)


@called
def _lower_caps(
    parameters: Any, steps: Steps, state: ComparisonState, last: LastRewards, step: int, shifts: bool
) -> None:  # fmt: skip
    """Bound the means of the idle arms by what would have won this decision."""
    arm, now, sums, pulls, cap = steps.arm[step], steps.round[step], state.sums, state.pulls, last.cap
    for other in range(pulls.size):
        if other == arm or not is_there(steps.spans, other, now):
            continue
        offset = offset_between(parameters, pulls[arm], pulls[other], now) if shifts else 0.0
        for particle in range(sums.shape[0]):
            bound = sample_mean(sums, pulls, particle, arm)
            if shifts:
                bound += offset
            else:
                bound = mean_value(parameters, index_value(parameters, bound, pulls[arm], now), pulls[other], now)
            cap[particle, other] = min(cap[particle, other], bound)


# --- Gibbs moves ---


@called
def _gibbs_levels(cloud: Cloud, state: ComparisonState, last: LastRewards, step: int) -> None:
    """Shift all rewards of each particle, and with them every index, by a number drawn from its conditional."""
    for particle in range(cloud.sums.shape[0]):
        shift = gibbs_level(cloud, state.pulls, cloud.sums[particle], particle, step)
        state.floor[particle] += shift
        for arm in range(state.pulls.size):
            state.index[particle, arm] += shift
            last.cap[particle, arm] += shift
            last.drawn[particle, arm] += shift


@called
def _gibbs_last(
    parameters: Any, cloud: Cloud, state: ComparisonState, last: LastRewards, compared: Comparisons, step: int,
    shifts: bool,
) -> None:  # fmt: skip
    """On the way, redraw the last reward of each arm in turn, within all past and coming comparisons."""
    sums, pulls, cap = state.sums, state.pulls, last.cap
    other, above, at, share, offset = compared.other, compared.above, compared.at, compared.share, compared.offset
    for arm in range(pulls.size):
        if not last.single[arm] or state.next_round[arm] == NONE:
            continue
        after = pulls[arm]
        number = _compare(parameters, state, compared, arm, state.next_round[arm], after, shifts)
        for particle in range(sums.shape[0]):
            low, high = bounds_by(
                parameters, sums, pulls, other, above, at, share, offset, number, shifts, particle, after
            )
            redraw(cloud, pulls, last.drawn, particle, arm, low, min(high, cap[particle, arm]), step)


@called
def _gibbs_final(cloud: Cloud, state: ComparisonState, last: LastRewards, step: int) -> None:
    """At the end, redraw the last reward of each arm, of which only its cap is known: the arm did not win again.

    For an arm given up early this is most of what is hidden, and the cloud holds few values of it by now.
    """
    for arm in range(state.pulls.size):
        for particle in range(cloud.sums.shape[0] if last.single[arm] else 0):
            redraw(cloud, state.pulls, last.drawn, particle, arm, -math.inf, last.cap[particle, arm], step)


@inlined
def redraw(
    cloud: Cloud, pulls: Integers, drawn: Numbers, particle: int, arm: int, low: float, high: float, step: int
) -> None:
    """Draw an arm's last reward from its conditional, its sample mean being between two bounds, if there is room."""
    base, prior = cloud.sums[particle, arm] - drawn[particle, arm], prior_of(cloud.belief, arm)
    known, total = cloud.before[arm] + pulls[arm] - 1.0, cloud.past[particle, arm] + base
    mean, deviation = predictive_sum(prior, known, total, 1)
    bottom, top = (low * pulls[arm] - base - mean) / deviation, (high * pulls[arm] - base - mean) / deviation
    if bottom < top:
        drawn_by = uniform(cloud.rng, REDRAWS, step, particle * pulls.size + arm)
        standard, _ = truncated_normal(bottom, top, drawn_by, cloud.table)
        drawn[particle, arm] = mean + deviation * standard
        cloud.sums[particle, arm] = base + drawn[particle, arm]
