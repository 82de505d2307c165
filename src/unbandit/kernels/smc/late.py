"""Filter the hidden normal rewards behind the actions of an index rule that learns of its rewards late.

A step is the arrival of a reward. With a `delay` of `d`, the decision of round `t` is made from the *state* after
`t - d - 1` arrivals. An arm's sample mean stays for all states from one arrival of its rewards to the next; in the
meantime there may be several decisions, for the arm or against it. Two arms are compared at the decisions for either of
them in the states that their present sample means share; each new reward is proposed from the interval that these
comparisons leave. Where the index grows with the round, the first and the last of these decisions are compared: in
between, the difference of two indices grows or falls.

Rewards of 0 and 1 are filtered in `successes`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbandit.kernels.compile import Integers, Marks, Numbers, called, compiled, inlined
from unbandit.kernels.formula import index_value, mean_value
from unbandit.kernels.smc.cloud import (
    NEVER,
    NONE,
    PARTICLES,
    Cloud,
    Steps,
    gibbs_level,
    inherit,
    keep_sums,
    prior_of,
    resample,
    uniform,
)
from unbandit.kernels.smc.index import (
    MOST_REDRAWN,
    Comparisons,
    Pull,
    absorb,
    add_comparison,
    bounds_by,
    new_comparisons,
    offset_between,
    penalty,
    propose_normal,
    propose_twisted,
    redraw,
    sample_mean,
)


class Turns(NamedTuple):
    """The decisions of a demonstration by the state that they are made from, and when rewards arrive.

    The state `k` holds the first `k` rewards, and decides in round `k + delay + 1`.
    """

    chosen: Integers  # per state: the arm; `NONE` where nothing is decided
    first: Integers  # per state and arm: the first state from this one on that decides for the arm; `NEVER`
    last: Integers  # per state and arm: the last one up to this one; `NONE`
    arrival: (
        Integers  # per step: the next step with a reward of the same arm, up to which its sample mean stays; `NEVER`
    )
    delay: int


class SharedStates(NamedTuple):
    """Each arm's sample mean, and the states that have it."""

    sums: Numbers  # of the cloud: (particles, arms)
    pulls: Integers  # rewards of each arm that have arrived
    start: Integers  # per arm: the first state with its sample mean
    end: Integers  # and the last one
    uses_round: bool  # whether the rule's index depends on the round


class PastBounds(NamedTuple):
    """What decisions said of the arms' sample means, beside those of other arms that have changed since."""

    low: Numbers  # per particle and arm
    high: Numbers
    drawn: Numbers  # the last reward of each arm
    single: Marks  # per arm: whether that is hidden


@compiled
def filter_late_index(
    parameters: Any, steps: Steps, cloud: Cloud, turns: Turns, uses_round: bool, random_ties: bool, shifts: bool,
    level: bool, most_relaxed: int,
) -> int:  # fmt: skip
    """Move a cloud through a demonstration, reward by reward; return 0, or the first step that no particle survives.

    Arguments as for `filter_index`.
    """
    number, arms = cloud.sums.shape
    sums = cloud.sums
    pulls, start, end = np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.full(arms, NEVER)
    log_twists = np.zeros(number)
    state = SharedStates(sums, pulls, start, end, uses_round)
    bounds = (np.full((number, arms), -math.inf), np.full((number, arms), math.inf))
    past = PastBounds(*bounds, np.zeros((number, arms)), np.zeros(arms, np.bool_))
    redraws, moves_level = arms <= MOST_REDRAWN, shifts and level
    compared = new_comparisons(4 * arms)
    other, above, places, share, offset = compared.other, compared.above, compared.at, compared.share, compared.offset
    mark, relaxed_steps = 0, 0
    for step in range(steps.arm.size):
        arm, left = steps.arm[step], steps.left[step]
        if random_ties and turns.chosen[step] != NONE:
            _weigh_ties(parameters, cloud, state, turns, step)
        if redraws and pulls[arm] > 0:
            _remember(parameters, state, turns, past, arm, step, shifts)
        seen = absorb(steps, cloud, step)
        prior, after = prior_of(cloud.belief, arm), pulls[arm] + 1
        known = cloud.before[arm] + pulls[arm] + seen
        start[arm], end[arm] = step + 1, turns.arrival[step]
        pull = Pull(after, 1 - seen, known)
        comparisons = _compare(parameters, state, turns, compared, arm, after, shifts)
        rival, at = steps.rival[step], steps.rival_round[step]
        ahead = offset_between(parameters, pulls[rival], after + left, at) if shifts and left > 0 else 0.0
        for particle in range(number):
            base, drawn_by = sums[particle, arm], uniform(cloud.rng, PARTICLES, step, particle)
            total = cloud.past[particle, arm] + base
            log_weight = -log_twists[particle]  # the twisting factor of the previous step is divided out
            log_twists[particle] = 0.0
            relaxed, gained, log_mass = False, 0.0, 0.0
            low, high = bounds_by(
                parameters, sums, pulls, other, above, places, share, offset, comparisons, shifts, particle, after
            )
            low, high = low * after - base, high * after - base
            if seen == 1:
                relaxed = max(low, -high) > 0.0
                if relaxed:
                    log_mass = penalty(max(low, -high) / prior.sigma)
            elif left > 0:  # within a stretch: twisted towards the mean at which the rival takes over
                goal = sample_mean(sums, pulls, particle, rival) + ahead
                if not shifts:
                    value = index_value(parameters, sample_mean(sums, pulls, particle, rival), pulls[rival], at)
                    goal = mean_value(parameters, value, after + left, at)
                gained, log_mass, log_twists[particle] = propose_twisted(
                    prior, pull, base, total, low, left, goal, drawn_by, cloud.table
                )
            else:
                gained, log_mass, relaxed = propose_normal(prior, pull, total, low, high, drawn_by, cloud.table)
            cloud.log_weights[particle] += log_weight + log_mass
            cloud.relaxed[step] += 1 if relaxed else 0
            sums[particle, arm] += gained
            past.drawn[particle, arm] = gained
            past.low[particle, arm], past.high[particle, arm] = -math.inf, math.inf
        pulls[arm] = after
        past.single[arm] = seen == 0
        relaxed_steps += 1 if cloud.relaxed[step] == number else 0
        if relaxed_steps > most_relaxed:
            return step + 1
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(log_twists, cloud.ancestors)
            inherit(past.low, cloud.ancestors)
            inherit(past.high, cloud.ancestors)
            inherit(past.drawn, cloud.ancestors)
            if redraws and left == 0:
                _gibbs_last(parameters, cloud, state, turns, past, compared, step, shifts)
            if moves_level and left == 0:
                _gibbs_levels(cloud, state, past, step)
        mark = keep_sums(cloud, step, mark)
    if redraws:
        _gibbs_last(parameters, cloud, state, turns, past, compared, steps.arm.size, shifts)
    if moves_level:
        _gibbs_levels(cloud, state, past, steps.arm.size)
    return 0


# --- Comparisons ---


@inlined
def later_turn(last: Integers, arm: int, turn: int, final: int) -> int:
    """Return the last decision for an arm up to a state, if it comes after `turn`; otherwise `NEVER`."""
    later = last[min(final, last.shape[0] - 1), arm]
    return later if later > turn else NEVER


@called
def _compare(
    parameters: Any, state: SharedStates, turns: Turns, compared: Comparisons, arm: int, after: int, shifts: bool
) -> int:
    """Compare an arm with the present sample means of the others at all decisions; return how many there are."""
    number, pulls = 0, state.pulls
    for other in range(pulls.size):
        if other == arm or pulls[other] == 0:
            continue
        begin, final = max(state.start[arm], state.start[other]), min(state.end[arm], state.end[other])
        for side in range(2):
            decided = arm if side == 0 else other
            turn = turns.first[begin, decided]
            while turn <= final and turn != NEVER:
                at = turn + turns.delay + 1
                number = add_comparison(parameters, compared, number, other, side == 1, pulls[other], after, at, shifts)
                turn = later_turn(turns.last, decided, turn, final) if state.uses_round else NEVER
    return number


@called
def _weigh_ties(parameters: Any, cloud: Cloud, state: SharedStates, turns: Turns, step: int) -> None:
    """Where ties are broken at random, divide each weight by the number of arms that share the largest index."""
    arm, at, sums, pulls = turns.chosen[step], step + turns.delay + 1, state.sums, state.pulls
    for particle in range(sums.shape[0]):
        value, tied = index_value(parameters, sample_mean(sums, pulls, particle, arm), pulls[arm], at), 1
        for other in range(pulls.size):
            if other != arm:
                its = index_value(parameters, sample_mean(sums, pulls, particle, other), pulls[other], at)
                tied += 1 if its == value else 0
        cloud.log_weights[particle] -= math.log(tied)


@called
def _remember(
    parameters: Any, state: SharedStates, turns: Turns, past: PastBounds, arm: int, step: int, shifts: bool
) -> None:
    """Keep what decisions say of the other arms, beside the sample mean of an arm that changes in this step."""
    sums, pulls = state.sums, state.pulls
    for other in range(pulls.size):
        if other == arm or pulls[other] == 0:
            continue
        begin = max(state.start[arm], state.start[other])
        for side in range(2):
            decided = arm if side == 0 else other
            turn = turns.first[begin, decided]
            while turn <= step and turn != NEVER:
                at = turn + turns.delay + 1
                offset = offset_between(parameters, pulls[arm], pulls[other], at) if shifts else 0.0
                for particle in range(sums.shape[0]):
                    bound = sample_mean(sums, pulls, particle, arm)
                    if shifts:
                        bound += offset
                    else:
                        bound = mean_value(parameters, index_value(parameters, bound, pulls[arm], at), pulls[other], at)
                    if side == 0:
                        past.high[particle, other] = min(past.high[particle, other], bound)
                    else:
                        past.low[particle, other] = max(past.low[particle, other], bound)
                turn = later_turn(turns.last, decided, turn, step) if state.uses_round else NEVER


# --- Gibbs moves ---


@called
def _gibbs_levels(cloud: Cloud, state: SharedStates, past: PastBounds, step: int) -> None:
    """Shift all rewards of each particle, and with them every bound, by a number drawn from its conditional."""
    for particle in range(cloud.sums.shape[0]):
        shift = gibbs_level(cloud, state.pulls, cloud.sums[particle], particle, step)
        for arm in range(state.pulls.size):
            past.low[particle, arm] += shift
            past.high[particle, arm] += shift
            past.drawn[particle, arm] += shift


@called
def _gibbs_last(
    parameters: Any, cloud: Cloud, state: SharedStates, turns: Turns, past: PastBounds, compared: Comparisons,
    step: int, shifts: bool,
) -> None:  # fmt: skip
    """Redraw the last reward of each arm in turn, within all past and coming comparisons."""
    sums, pulls = state.sums, state.pulls
    other, above, at, share, offset = compared.other, compared.above, compared.at, compared.share, compared.offset
    for arm in range(pulls.size):
        if not past.single[arm] or pulls[arm] == 0:
            continue
        after = pulls[arm]
        number = _compare(parameters, state, turns, compared, arm, after, shifts)
        for particle in range(sums.shape[0]):
            low, high = bounds_by(
                parameters, sums, pulls, other, above, at, share, offset, number, shifts, particle, after
            )
            low, high = max(low, past.low[particle, arm]), min(high, past.high[particle, arm])
            redraw(cloud, pulls, past.drawn, particle, arm, low, high, step)
