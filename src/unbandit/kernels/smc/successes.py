"""Filter the hidden rewards of 0 and 1 behind an index rule's actions.

The comparisons are those of `index`: until an arm is pulled again, its index is compared with every other arm's in the
round in which the first of the two is pulled next. But all particles share the pull counts, so that an arm's index is a
function of its number of successes, of which a cloud holds few: each comparison is a look at two tables. A reward is
drawn among those that agree with all comparisons, and its particle weighted by their probability. Where rewards come
late, the comparisons are those of `late`, by the same tables.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbandit.kernels.compile import Integers, Marks, Numbers, called, compiled, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.simulate_available import Spans, is_there
from unbandit.kernels.smc.cloud import (
    NEVER,
    NONE,
    PARTICLES,
    ArmPrior,
    Cloud,
    Rng,
    Steps,
    keep_sums,
    prior_of,
    resample,
    uniform,
)
from unbandit.kernels.smc.index import absorb, neighbours, penalty, wins
from unbandit.kernels.smc.late import Turns, later_turn
from unbandit.kernels.smc.proposal import no_ones, one_more, reservoir

MOST_MARKED = 4_000_000  # particles times outcomes of a batch that are compared at once


class IndexTable(NamedTuple):
    """Indices after some pulls and before some round, by the number of successes; computed when first asked for."""

    values: Numbers
    computed: Integers  # the round and the pulls for which each value was computed, as one number; -1: not yet


class Candidates(NamedTuple):
    """The arm whose rewards are drawn in a step, and the numbers of successes that some particles may draw."""

    arm: int
    after: int  # the arm's pulls after the step
    outcomes: int  # how many numbers of successes there are: from 0 to that of the hidden rewards
    first: int  # the first of the particles
    fits: Marks  # by particle, from the first on, and outcome: whether it agrees with the comparisons so far


@compiled
def filter_successes(
    parameters: Any, steps: Steps, cloud: Cloud, uses_round: bool, random_ties: bool, most_relaxed: int
) -> int:
    """Move a cloud through a demonstration; return 0, or the first step (from 1) that no particle survives.

    Arguments and end are those of `filter_index`.
    """
    (number, arms), size = cloud.sums.shape, steps.rewards.size + 1
    pulls, next_round = np.zeros(arms, np.int64), np.full(arms, NONE)
    own, its = _empty_table(size), _empty_table(size)
    most = 0
    for step in range(steps.arm.size):
        most = max(most, steps.count[step])
    block = min(number, max(1, MOST_MARKED // (most + 1)))
    fits, tied = np.ones((block, most + 1), np.bool_), np.zeros(number, np.int64)
    mark, relaxed_steps = 0, 0
    for step in range(steps.arm.size):
        arm = steps.arm[step]
        if random_ties and steps.decides[step]:
            _weigh_ties(parameters, cloud, steps.spans, pulls, own, its, tied, arm, steps.round[step])
        seen = absorb(steps, cloud, step)
        after, hidden = pulls[arm] + steps.count[step], steps.count[step] - seen
        known = cloud.before[arm] + pulls[arm] + seen
        for first in range(0, number, block):
            last = min(first + block, number)
            for particle in range(last - first):
                for outcome in range(hidden + 1):
                    fits[particle, outcome] = True
            if steps.binding[step]:
                candidates = Candidates(arm, after, hidden + 1, first, fits[: last - first])
                _compare(
                    parameters, steps, cloud, candidates, pulls, next_round, own, its, step, uses_round, random_ties
                )
            cloud.relaxed[step] += _draw(
                cloud.sums, cloud.past, cloud.log_weights, fits, prior_of(cloud.belief, arm), arm, hidden, known,
                cloud.rng, step, first, last,
            )  # fmt: skip
        pulls[arm] = after
        if steps.binding[step]:
            next_round[arm] = steps.next_round[step]
        relaxed_steps += 1 if cloud.relaxed[step] == number else 0
        if relaxed_steps > most_relaxed or not resample(cloud, step)[0]:
            return step + 1
        mark = keep_sums(cloud, step, mark)
    return 0


@compiled
def filter_late_successes(
    parameters: Any, steps: Steps, cloud: Cloud, turns: Turns, uses_round: bool, random_ties: bool, most_relaxed: int
) -> int:
    """Move a cloud through a demonstration, reward by reward; return 0, or the first step that no particle survives.

    Arguments and end are those of `filter_late_index`.
    """
    (number, arms), size = cloud.sums.shape, steps.rewards.size + 1
    pulls, start, end = np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.full(arms, NEVER)
    own, its = _empty_table(size), _empty_table(size)
    fits, tied = np.ones((number, 2), np.bool_), np.zeros(number, np.int64)
    mark, relaxed_steps = 0, 0
    for step in range(steps.arm.size):
        arm, chosen = steps.arm[step], turns.chosen[step]
        if random_ties and chosen != NONE:
            _weigh_ties(parameters, cloud, steps.spans, pulls, own, its, tied, chosen, step + turns.delay + 1)
        seen = absorb(steps, cloud, step)
        known = cloud.before[arm] + pulls[arm] + seen
        start[arm], end[arm] = step + 1, turns.arrival[step]
        for particle in range(number):
            fits[particle, 0] = fits[particle, 1] = True
        candidates = Candidates(arm, pulls[arm] + 1, 2 - seen, 0, fits)
        _compare_late(parameters, cloud, candidates, turns, pulls, start, end, own, its, uses_round, random_ties)
        cloud.relaxed[step] = _draw(
            cloud.sums, cloud.past, cloud.log_weights, fits, prior_of(cloud.belief, arm), arm, 1 - seen, known,
            cloud.rng, step, 0, number,
        )  # fmt: skip
        pulls[arm] += 1
        relaxed_steps += 1 if cloud.relaxed[step] == number else 0
        if relaxed_steps > most_relaxed or not resample(cloud, step)[0]:
            return step + 1
        mark = keep_sums(cloud, step, mark)
    return 0


# --- Proposals ---


@called
def _draw(
    sums: Numbers, past: Numbers, log_weights: Numbers, fits: Marks, prior: ArmPrior, arm: int, hidden: int,
    known: float, rng: Rng, step: int, first: int, last: int,
) -> int:  # fmt: skip
    """Draw for some particles how many hidden rewards were 1, among the numbers that fit.

    Weights particles by the probability of these numbers; returns for how many none fits.
    """
    relaxed = 0
    for particle in range(first, last):
        draw, total = uniform(rng, PARTICLES, step, particle), past[particle, arm] + sums[particle, arm]
        ones, zeros = prior.first + total, prior.second + known - total
        mass, drawn, chance = 0.0, 0, no_ones(ones, zeros, hidden)
        for outcome in range(hidden + 1):
            if outcome > 0:
                chance = one_more(chance, outcome, ones, zeros, hidden)
            if fits[particle - first, outcome] and chance > 0.0:
                drawn, draw, mass = reservoir(drawn, draw, mass, outcome, chance)
        if mass > 0.0:
            log_weights[particle] += math.log(mass)
        else:
            drawn = hidden if draw * (ones + zeros) < ones else 0
            log_weights[particle] += penalty(0.0)
            relaxed += 1
        sums[particle, arm] += drawn
    return relaxed


# --- Comparisons ---


@called
def _compare(
    parameters: Any, steps: Steps, cloud: Cloud, candidates: Candidates, pulls: Integers, next_round: Integers,
    own: IndexTable, its: IndexTable, step: int, uses_round: bool, random_ties: bool,
) -> None:  # fmt: skip
    """Mark the outcomes that agree with every comparison until the arm is pulled again.

    Where the index ignores the round, idle arms stay sorted by the round of their next pull: the two neighbours in that
    order decide, and an arm that is the last of them is above all that are never pulled again.
    """
    arm, own_round, gone = candidates.arm, steps.next_round[step], steps.spans.last
    upper, lower = neighbours(next_round, arm, own_round)
    for other in range(pulls.size):
        other_round = next_round[other]
        if other == arm or other_round == NONE or (other_round == NEVER and own_round == NEVER):
            continue
        at = np.int64(1)
        if uses_round:
            at = min(own_round, other_round)
            if at > gone[arm] or at > gone[other]:
                continue
        elif other not in (upper, lower) and (lower != NONE or other_round != NEVER):
            continue
        last = candidates.first + candidates.fits.shape[0]
        tabulate(parameters, own, cloud.sums, candidates.first, last, arm, candidates.outcomes, candidates.after, at)
        tabulate(parameters, its, cloud.sums, candidates.first, last, other, 1, pulls[other], at)
        _rule_out(cloud.sums, candidates, other, own.values, its.values, other_round < own_round, random_ties)


@called
def _compare_late(
    parameters: Any, cloud: Cloud, candidates: Candidates, turns: Turns, pulls: Integers, start: Integers,
    end: Integers, own: IndexTable, its: IndexTable, uses_round: bool, random_ties: bool,
) -> None:  # fmt: skip
    """Mark the outcomes that agree with all decisions beside the present sample means of the others."""
    arm, sums, number = candidates.arm, cloud.sums, cloud.sums.shape[0]
    for other in range(pulls.size):
        if other == arm or pulls[other] == 0:
            continue
        begin, final = max(start[arm], start[other]), min(end[arm], end[other])
        for side in range(2):
            decided = arm if side == 0 else other
            turn = turns.first[begin, decided]
            while turn <= final and turn != NEVER:
                at = turn + turns.delay + 1 if uses_round else np.int64(1)
                tabulate(parameters, own, sums, 0, number, arm, candidates.outcomes, candidates.after, at)
                tabulate(parameters, its, sums, 0, number, other, 1, pulls[other], at)
                _rule_out(sums, candidates, other, own.values, its.values, side == 1, random_ties)
                turn = later_turn(turns.last, decided, turn, final) if uses_round else NEVER


@inlined
def _empty_table(size: int) -> IndexTable:
    """Return a table without any index."""
    return IndexTable(np.zeros(size), np.full(size, -1))


@called
def tabulate(
    parameters: Any, table: IndexTable, sums: Numbers, first: int, last: int, arm: int, outcomes: int, pulls: int,
    at: int,
) -> None:  # fmt: skip
    """Compute an arm's index before a round for the numbers of successes that particles hold, and for some more."""
    values, computed = table.values, table.computed
    name = at * values.size + pulls
    for particle in range(first, last):
        for successes in range(np.int64(sums[particle, arm]), np.int64(sums[particle, arm]) + outcomes):
            if computed[successes] != name:
                values[successes] = index_value(parameters, successes * (1.0 / pulls), pulls, at)
                computed[successes] = name


@called
def _rule_out(
    sums: Numbers, candidates: Candidates, other: int, own: Numbers, its: Numbers, is_others_turn: bool,
    random_ties: bool,
) -> None:  # fmt: skip
    """Rule the outcomes out by which the wrong one of two arms would have been pulled."""
    arm, outcomes, first, fits = candidates.arm, candidates.outcomes, candidates.first, candidates.fits
    for row in range(fits.shape[0]):
        value, base = its[np.int64(sums[first + row, other])], np.int64(sums[first + row, arm])
        for outcome in range(outcomes):
            mine = own[base + outcome]
            if is_others_turn:
                right = wins(value, other, mine, arm, random_ties)
            else:
                right = wins(mine, arm, value, other, random_ties)
            fits[row, outcome] = fits[row, outcome] and right


@called
def _weigh_ties(
    parameters: Any, cloud: Cloud, spans: Spans, pulls: Integers, own: IndexTable, its: IndexTable, tied: Integers,
    arm: int, now: int,
) -> None:  # fmt: skip
    """Where ties are broken at random, divide each weight by the number of arms that share the largest index."""
    sums, number = cloud.sums, cloud.sums.shape[0]
    tabulate(parameters, own, sums, 0, number, arm, 1, pulls[arm], now)
    for particle in range(number):
        tied[particle] = 1
    for other in range(pulls.size):
        if other == arm or not is_there(spans, other, now):
            continue
        tabulate(parameters, its, sums, 0, number, other, 1, pulls[other], now)
        for particle in range(number):
            value = own.values[np.int64(sums[particle, arm])]
            tied[particle] += 1 if its.values[np.int64(sums[particle, other])] == value else 0
    for particle in range(number):
        cloud.log_weights[particle] -= math.log(tied[particle])
