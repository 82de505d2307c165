"""Twisted filter of a randomised rule: every reward is proposed given all actions, those to come included.

A rule reads one number of each arm, its *score* `s` (a sum of rewards, or a learnt value), which moves by `s' = f s + h
+ g r` with a reward `r` of the arm. The observer's expectation `M` of a mean moves by `M' = M + k (r - M)`, and before
it is seen `r = M + c e` with a standard normal innovation `e`. All is linear in the innovations. If the log
probability of each round's action is replaced by a quadratic function of the scores, its *site*, then so is the log of
the *twisting function* `psi_t(x)`, the probability of all actions from round `t` on given the state `x`:

    psi_t(x) = site_t(x) E[psi_{t+1}(x') | x].

`solve_twist` computes it from the last round to the first. `filter_twisted` proposes each innovation from its density
times `psi_{t+1}`, and weights a particle by the probability of the action over its site. So the evidence is unbiased
and the particles are right whatever the sites are; the better these are, the more equal the weights (P. Guarniero, A.
Johansen and A. Lee, "The iterated auxiliary particle filter", 2017).

The state has one coordinate per arm if `M` is a function of the sum of rewards, `M = base + share s`; otherwise
(several demonstrations, rewards that are known, learnt values) the expectations follow as further coordinates.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbandit.kernels.compile import (
    Integers,
    Marks,
    Numbers,
    called,
    compiled,
    inlined,
    new_integers,
    new_numbers,
    new_table,
)
from unbandit.kernels.formula import learn, log_expansion, probability
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.simulate_available import Spans, arms_there
from unbandit.kernels.smc.cloud import (
    PARTICLES,
    Cloud,
    Steps,
    count_pulls,
    inherit,
    keep_sums,
    resample,
    take_rows,
    take_sums,
    two_uniforms,
)


class Transitions(NamedTuple):
    """How the state moves in each round of a log; the demonstrations are one path, in which scores begin anew."""

    arm: Integers
    begins: Marks  # whether a demonstration begins here, with all scores at 0
    judged: Integers  # how many actions the rule draws from the state here
    looks: Integers  # the first of them: with prompt rewards that of this round
    decided: Integers  # the round in which the rule looks at the state
    keeps: Numbers  # f
    gains: Numbers  # g
    shifts: Numbers  # h; f, g and h move the score of the round's arm
    base: Numbers
    share: Numbers  # M = base + share s, where the state has no other coordinates
    learns: Numbers  # k
    noise: Numbers  # c; 0 where the reward is known
    known: Numbers  # the reward, where it is known
    start: Numbers  # per arm: M before the first round
    separate: bool  # whether the state has a coordinate for every M
    spans: Spans  # the rounds in which each arm can be pulled


class Sites(NamedTuple):
    """Quadratic functions `slope (s - centre) - (s - centre)' bend (s - centre) / 2`, one per round that is judged."""

    centre: Numbers  # (rounds, arms)
    slope: Numbers
    bend: Numbers  # (rounds, arms, arms)


class Twist(NamedTuple):
    """The innovation of each round given the state `z` that it is added to: `N((push - pull z) / precision, ...)`."""

    pull: Numbers  # (rounds, coordinates)
    push: Numbers
    precision: Numbers


@compiled
def expand_sites(
    parameters: Any, transitions: Transitions, scores: Numbers, rounds: Integers, sites: Sites, log_chances: Numbers
) -> None:
    """Fill in the derivatives at a path of scores as sites, and the log probability of what each round judges.

    `rounds` counts the rounds of each demonstration from 1.
    """
    horizon, arms = scores.shape
    pulls, counts = new_integers(arms, 0), new_integers(arms, 0)
    slope, bend, who = new_numbers(arms, 0.0), new_table(arms, arms, 0.0), new_integers(arms, 0)
    for at in range(horizon):
        if transitions.begins[at]:
            for arm in range(arms):
                pulls[arm] = 0
        for row in range(arms):
            sites.centre[at, row] = scores[at, row]
        count_pulls(transitions.arm, transitions.looks[at], transitions.judged[at], counts)
        there = arms_there(transitions.spans, rounds[at], who)
        arguments = (parameters, pulls, counts, rounds[at], scores[at], who, there)
        log_chances[at] = expand_all(*arguments, sites.slope[at], sites.bend[at], slope, bend)
        pulls[transitions.arm[at]] += 1


@inlined
def expand_all(
    parameters: Any, pulls: Integers, counts: Integers, round: int, scores: Numbers, who: Integers, there: int,
    slope: Numbers, bend: Numbers, one_slope: Numbers, one_bend: Numbers,
) -> float:  # fmt: skip
    """Return the log probability of some pulls of each arm; fill in its gradient and negative Hessian.

    The rule chooses among the arms that are there, of which `who` has the first so many.
    """
    value, arms = 0.0, counts.size
    for row in range(arms):
        slope[row] = 0.0
        for column in range(arms):
            bend[row, column] = 0.0
    if there == 1:
        return value
    seen_slope, seen_bend = one_slope[:there], one_bend[:there, :there]
    seen_pulls, seen = pulls, scores
    if there < arms:
        seen_pulls, seen = new_integers(there, 0), new_numbers(there, 0.0)
        for place in range(there):
            seen_pulls[place], seen[place] = pulls[who[place]], scores[who[place]]
    for place in range(there):
        number = counts[who[place]]
        if number > 0:
            value += number * log_expansion(parameters, seen_pulls, seen, round, place, seen_slope, seen_bend)
            for row in range(there):
                slope[who[row]] += number * seen_slope[row]
                for column in range(there):
                    bend[who[row], who[column]] += number * seen_bend[row, column]
    return value


class Exponents(NamedTuple):
    """The twisting function before each round, `psi(x) = exp(constant + slope x + x' bend x)`; of no rounds if unused.

    After the last round it is 1.
    """

    constant: Numbers  # (rounds + 1)
    slope: Numbers  # (rounds + 1, coordinates)
    bend: Numbers  # (rounds + 1, coordinates, coordinates)


UNRECORDED = Exponents(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0, 0)))


@compiled
def solve_twist(transitions: Transitions, sites: Sites, twist: Twist, exponents: Exponents) -> float:
    """Fill in the twist by a backward information filter; return the log of the twisting function at the beginning.

    With `psi_{t+1}(x) = exp(a + b x - x' Q x / 2)` and `x' = z + d e`, the expectation over `e` takes a rank-one term
    off `Q`; `z` is linear in the state before, in which only coordinates of the round's arm change.
    """
    arms = sites.slope.shape[1]
    size = twist.pull.shape[1]
    matrix, vector, constant = new_table(size, size, 0.0), new_numbers(size, 0.0), 0.0
    for at in range(transitions.arm.size - 1, -1, -1):
        arm, noise = transitions.arm[at], transitions.noise[at]
        by_score, by_mean = transitions.gains[at] * noise, transitions.learns[at] * noise
        # The innovation: pull = Q d, push = b d, precision = 1 + d' Q d.
        pull = twist.pull[at]
        for row in range(size):
            pull[row] = matrix[row, arm] * by_score
            if transitions.separate:
                pull[row] += matrix[row, arms + arm] * by_mean
        push, precision = by_score * vector[arm], by_score * pull[arm]
        if transitions.separate:
            push += by_mean * vector[arms + arm]
            precision += by_mean * pull[arms + arm]
        precision = 1.0 + max(precision, 0.0)
        twist.push[at], twist.precision[at] = push, precision
        constant += 0.5 * push * push / precision - 0.5 * math.log(precision)
        for row in range(size):
            vector[row] -= pull[row] * push / precision
            for column in range(size):
                matrix[row, column] -= pull[row] * pull[column] / precision
        # z = F x + h: first the constant part, then F' Q F.
        keeps, shift, from_mean = _row(transitions, at)
        constant += vector[arm] * shift - 0.5 * matrix[arm, arm] * shift * shift
        for row in range(size):
            vector[row] -= matrix[row, arm] * shift
        if transitions.separate:
            vector[arms + arm] += from_mean * vector[arm]
            for row in range(size):
                matrix[row, arms + arm] += from_mean * matrix[row, arm]
            for column in range(size):
                matrix[arms + arm, column] += from_mean * matrix[arm, column]
        vector[arm] *= keeps
        for row in range(size):
            matrix[row, arm] *= keeps
        for column in range(size):
            matrix[arm, column] *= keeps
        if transitions.judged[at] > 0:
            constant += _add_site(sites, at, matrix, vector)
        if transitions.begins[at]:  # scores are 0
            for row in range(size):
                for column in range(size):
                    if row < arms or column < arms:
                        matrix[row, column] = 0.0
            for row in range(arms):
                vector[row] = 0.0
        if exponents.constant.size > 0:
            exponents.constant[at] = constant
            for row in range(size):
                exponents.slope[at, row] = vector[row]
                for column in range(size):
                    exponents.bend[at, row, column] = -0.5 * matrix[row, column]
    for row in range(arms, size):
        constant += vector[row] * transitions.start[row - arms]
        for column in range(arms, size):
            product = transitions.start[row - arms] * transitions.start[column - arms]
            constant -= 0.5 * matrix[row, column] * product
    return constant


@inlined
def _row(transitions: Transitions, at: int) -> tuple[float, float, float]:
    """Return `f`, `h` and `g` of `z = f s + h + g M`, the score after a reward without innovation."""
    keeps, shift, gain = transitions.keeps[at], transitions.shifts[at], transitions.gains[at]
    if transitions.noise[at] == 0.0:
        return keeps, shift + gain * transitions.known[at], 0.0
    if transitions.separate:
        return keeps, shift, gain
    return keeps + gain * transitions.share[at], shift + gain * transitions.base[at], 0.0


@called
def _add_site(sites: Sites, at: int, matrix: Numbers, vector: Numbers) -> float:
    """Add a site to the exponent, as a function of the scores themselves; return its constant."""
    constant, arms = 0.0, sites.slope.shape[1]
    for row in range(arms):
        centre, product = sites.centre[at, row], 0.0
        for column in range(arms):
            matrix[row, column] += sites.bend[at, row, column]
            product += sites.bend[at, row, column] * sites.centre[at, column]
        vector[row] += sites.slope[at, row] + product
        constant -= centre * (sites.slope[at, row] + 0.5 * product)
    return constant


@compiled
def follow_twist(
    transitions: Transitions, twist: Twist, noise: Numbers, scores: Numbers, means: Numbers, innovations: Numbers
) -> None:
    """Fill in a path of the Gaussian approximation: its mode if `noise` is 0, a draw if it is standard normal.

    `scores` are those before each round, `means` the expectation `M` of its arm, and `innovations` its own.
    """
    arms = scores.shape[1]
    state = new_numbers(twist.pull.shape[1], 0.0)
    for row in range(arms, state.size):
        state[row] = transitions.start[row - arms]
    for at in range(transitions.arm.size):
        arm = transitions.arm[at]
        if transitions.begins[at]:
            for row in range(arms):
                state[row] = 0.0
        for row in range(arms):
            scores[at, row] = state[row]
        if transitions.separate:
            means[at] = state[arms + arm]
        else:
            means[at] = transitions.base[at] + transitions.share[at] * state[arm]
        keeps, shift, from_mean = _row(transitions, at)
        state[arm] = keeps * state[arm] + shift + from_mean * means[at]
        innovation = twist.push[at]
        for row in range(state.size):
            innovation -= twist.pull[at, row] * state[row]
        innovations[at] = innovation / twist.precision[at] + noise[at] / math.sqrt(twist.precision[at])
        state[arm] += transitions.gains[at] * transitions.noise[at] * innovations[at]
        if transitions.separate:
            state[arms + arm] += transitions.learns[at] * transitions.noise[at] * innovations[at]


@compiled
def factor_covariances(transitions: Transitions, twist: Twist, factors: Numbers) -> None:
    """Fill in lower triangles `L_t`, (rounds, arms, arms): the scores before round `t` have the covariance `L_t L_t'`.

    Under the Gaussian approximation; with `d` as in `solve_twist`, `x' = (1 - d pull' / precision) z + d e` for an `e`
    of variance `1 / precision`.
    """
    arms, size = factors.shape[1], twist.pull.shape[1]
    covariance, weighted = new_table(size, size, 0.0), new_numbers(size, 0.0)
    for at in range(transitions.arm.size):
        arm = transitions.arm[at]
        if transitions.begins[at]:
            for row in range(size):
                for column in range(size):
                    if row < arms or column < arms:
                        covariance[row, column] = 0.0
        _factor(covariance, factors[at])
        keeps, _, from_mean = _row(transitions, at)
        _move(covariance, arms, arm, keeps, from_mean)
        # C - d w' - w d' + d d' (1 + pull' w) / precision, with w = C pull / precision.
        noise, precision, pull = transitions.noise[at], twist.precision[at], twist.pull[at]
        by_score, by_mean, spread = transitions.gains[at] * noise, transitions.learns[at] * noise, 1.0
        for row in range(size):
            weighted[row] = 0.0
            for column in range(size):
                weighted[row] += covariance[row, column] * pull[column] / precision
            spread += weighted[row] * pull[row]
        spread /= precision
        for other in range(size):
            covariance[arm, other] -= by_score * weighted[other]
            if transitions.separate:
                covariance[arms + arm, other] -= by_mean * weighted[other]
        for other in range(size):
            covariance[other, arm] -= by_score * weighted[other]
            if transitions.separate:
                covariance[other, arms + arm] -= by_mean * weighted[other]
        covariance[arm, arm] += by_score * by_score * spread
        if transitions.separate:
            covariance[arms + arm, arms + arm] += by_mean * by_mean * spread
            covariance[arm, arms + arm] += by_score * by_mean * spread
            covariance[arms + arm, arm] += by_score * by_mean * spread


@called
def _move(covariance: Numbers, arms: int, arm: int, keeps: float, from_mean: float) -> None:
    """Turn the covariance `C` of a state `x` into `F C F'`, that of `z = F x + h`."""
    size = covariance.shape[0]
    for column in range(size):
        mean = covariance[arms + arm, column] if size > arms else 0.0
        covariance[arm, column] = keeps * covariance[arm, column] + from_mean * mean
    for row in range(size):
        mean = covariance[row, arms + arm] if size > arms else 0.0
        covariance[row, arm] = keeps * covariance[row, arm] + from_mean * mean


@called
def _factor(covariance: Numbers, factor: Numbers) -> None:
    """Fill in the Cholesky factor of the scores' covariance; what does not vary has zeros."""
    for row in range(factor.shape[0]):
        for column in range(row + 1):
            rest = covariance[row, column]
            for other in range(column):
                rest -= factor[row, other] * factor[column, other]
            if column < row:
                factor[row, column] = rest / factor[column, column] if factor[column, column] > 0.0 else 0.0
            else:
                factor[row, row] = math.sqrt(rest) if rest > 1e-10 * covariance[row, row] else 0.0


MOST_STEPS, MOST_HALVINGS = 20, 8  # of Newton's method, for the state at one round
SETTLED = 1e-4  # it ends when a step raises the log probability by less


@compiled
def predict_actions(
    parameters: Any, transitions: Transitions, rounds: Integers, size: int, log_chances: Numbers
) -> None:
    """Fill in the log probability of what each round judges, given all rounds before it and none after.

    A filter whose state is normal, `N(m, P)` with `size` coordinates, and moves as in `solve_twist`. What an action
    adds is by Laplace's method: if `g` and `-B` are gradient and Hessian of its log probability at the scores `m + P
    y`, then the mode has `y = g`, the log probability of the action is `log p - y' P y / 2 - log det(1 + B P) / 2`
    there, and the new covariance is `P - P (1 + B P)^-1 B P`.
    """
    arms = transitions.start.size
    state, covariance = new_numbers(size, 0.0), new_table(size, size, 0.0)
    pulls, counts = new_integers(arms, 0), new_integers(arms, 0)
    work, system = new_table(6, arms, 0.0), new_table(arms, arms + 1 + size, 0.0)
    one_bend = new_table(arms, arms, 0.0)
    scores, trial, y, aim, slope, bend = work[0], work[1], work[2], work[3], work[4], new_table(arms, arms, 0.0)
    who = new_integers(arms, 0)
    for row in range(arms, size):
        state[row] = transitions.start[row - arms]
    for at in range(transitions.arm.size):
        arm = transitions.arm[at]
        if transitions.begins[at]:
            for row in range(arms):
                pulls[row], state[row] = 0, 0.0
                for column in range(size):
                    covariance[row, column] = covariance[column, row] = 0.0
        log_chances[at] = 0.0
        if transitions.judged[at] > 0:
            count_pulls(transitions.arm, transitions.looks[at], transitions.judged[at], counts)
            for row in range(arms):
                scores[row], y[row] = state[row], 0.0
            there, gain = arms_there(transitions.spans, rounds[at], who), 1.0
            arguments = (parameters, pulls, counts, rounds[at])
            value = expand_all(*arguments, scores, who, there, slope, bend, work[5], one_bend)
            for _ in range(MOST_STEPS):
                log_determinant = _condition(system, slope, bend, scores, state, covariance)
                if gain < SETTLED:
                    break
                step, higher = 1.0, -math.inf
                for _ in range(MOST_HALVINGS):
                    penalty = 0.0
                    for row in range(arms):
                        aim[row] = y[row] + step * (system[row, arms] - y[row])
                    for row in range(arms):
                        product = 0.0
                        for column in range(arms):
                            product += covariance[row, column] * aim[column]
                        trial[row] = state[row] + product
                        penalty += 0.5 * aim[row] * product
                    higher = expand_all(*arguments, trial, who, there, slope, bend, work[5], one_bend)
                    higher -= penalty
                    if higher >= value:
                        break
                    step *= 0.5
                gain, value = higher - value, higher
                for row in range(arms):
                    scores[row], y[row] = trial[row], aim[row]
            log_chances[at] = value - 0.5 * log_determinant
            _take_action(system, y, state, covariance)
        # x' = F x + h + d e.
        keeps, shift, from_mean = _row(transitions, at)
        mean = state[arms + arm] if size > arms else 0.0
        state[arm] = keeps * state[arm] + shift + from_mean * mean
        _move(covariance, arms, arm, keeps, from_mean)
        noise = transitions.noise[at]
        by_score, by_mean = transitions.gains[at] * noise, transitions.learns[at] * noise
        covariance[arm, arm] += by_score * by_score
        if size > arms:
            covariance[arm, arms + arm] += by_score * by_mean
            covariance[arms + arm, arm] += by_score * by_mean
            covariance[arms + arm, arms + arm] += by_mean * by_mean
        pulls[arm] += 1


@called
def _condition(
    system: Numbers, slope: Numbers, bend: Numbers, scores: Numbers, state: Numbers, covariance: Numbers
) -> float:
    """Solve `(1 + B P) (y, A) = (g + B (scores - m), B C')`, `C` being the scores' columns of `P`.

    The solution stands right of the first columns of `system`. Returns `log det(1 + B P)`.
    """
    arms, size, log_determinant = slope.size, state.size, 0.0
    for row in range(arms):
        system[row, arms] = slope[row]
        for column in range(arms):
            system[row, arms] += bend[row, column] * (scores[column] - state[column])
        for column in range(size):
            product = 0.0
            for other in range(arms):
                product += bend[row, other] * covariance[other, column]
            system[row, arms + 1 + column] = product
            if column < arms:
                system[row, column] = product + (1.0 if row == column else 0.0)
    for pivot in range(arms):
        largest = pivot
        for row in range(pivot + 1, arms):
            if abs(system[row, pivot]) > abs(system[largest, pivot]):
                largest = row
        for column in range(pivot, system.shape[1]):
            system[pivot, column], system[largest, column] = system[largest, column], system[pivot, column]
        scale = 1.0 / system[pivot, pivot]
        log_determinant -= math.log(abs(scale))
        for column in range(pivot, system.shape[1]):
            system[pivot, column] *= scale
        for row in range(arms):
            if row != pivot:
                factor = system[row, pivot]
                for column in range(pivot, system.shape[1]):
                    system[row, column] -= factor * system[pivot, column]
    return log_determinant


@called
def _take_action(system: Numbers, y: Numbers, state: Numbers, covariance: Numbers) -> None:
    """Move a normal state to its mode given an action: `m + C y`, and `P - C A` with `A` from `_condition`."""
    arms, size = y.size, state.size
    columns = covariance[:, :arms].copy()
    for row in range(size):
        for other in range(arms):
            state[row] += columns[row, other] * y[other]
            for column in range(size):
                covariance[row, column] -= columns[row, other] * system[other, arms + 1 + column]


LANES = 4  # particles that go through a site side by side


@called
def _take_sites(sites: Sites, at: int, memories: Numbers, score: int, away: Numbers, values: Numbers) -> None:
    """Fill in what a site says of each particle's scores, in logarithms up to a constant.

    `away` has room for the scores of `LANES` particles, and `values` that many more places than there are particles.
    """
    number, arms = memories.shape[0], memories.shape[1]
    centre, slope, bend = sites.centre[at], sites.slope[at], sites.bend[at]
    for start in range(0, number, LANES):
        for row in range(arms):
            for lane in range(LANES):
                away[row, lane] = memories[min(start + lane, number - 1), row, score] - centre[row]
        value_0 = value_1 = value_2 = value_3 = 0.0
        for row in range(arms):
            product_0 = product_1 = product_2 = product_3 = 0.0
            for column in range(row):
                factor = bend[row, column]
                product_0 += factor * away[column, 0]
                product_1 += factor * away[column, 1]
                product_2 += factor * away[column, 2]
                product_3 += factor * away[column, 3]
            half, rise = 0.5 * bend[row, row], slope[row]
            value_0 += away[row, 0] * (rise - (product_0 + half * away[row, 0]))
            value_1 += away[row, 1] * (rise - (product_1 + half * away[row, 1]))
            value_2 += away[row, 2] * (rise - (product_2 + half * away[row, 2]))
            value_3 += away[row, 3] * (rise - (product_3 + half * away[row, 3]))
        values[start], values[start + 1], values[start + 2], values[start + 3] = value_0, value_1, value_2, value_3


@compiled
def filter_twisted(
    parameters: Any, steps: Steps, cloud: Cloud, memories: Numbers, means: Numbers, first: int, score: int,
    transitions: Transitions, sites: Sites, twist: Twist,
) -> int:  # fmt: skip
    """Move a cloud through a demonstration; return 0, or the first round that no particle survives.

    `memories` has the shape (particles, arms, columns); its column `score` holds the scores. `means` are the
    particles' expectations `M`, (particles, arms). `first` is the demonstration's first round in the log.
    """
    number, arms, columns = memories.shape
    bernoulli, separate = cloud.belief.bernoulli, transitions.separate
    pulls, counts = new_integers(arms, 0), new_integers(arms, 0)
    away, approximated = new_table(arms, LANES, 0.0), new_numbers(number + LANES, 0.0)
    who, rows = new_integers(arms, 0), new_table(arms, columns, 0.0)
    mark = 0
    for step in range(steps.arm.size):
        at, arm = first + step, steps.arm[step]
        # Weight: p(a_t | memory) / site(scores), for all actions drawn from this state.
        if transitions.judged[at] > 0:
            count_pulls(transitions.arm, transitions.looks[at], transitions.judged[at], counts)
            there = arms_there(transitions.spans, transitions.decided[at], who)
            seen_pulls = pulls
            if there < arms:
                seen_pulls = new_integers(there, 0)
                for place in range(there):
                    seen_pulls[place] = pulls[who[place]]
            _take_sites(sites, at, memories, score, away, approximated)
            for particle in range(number):
                memory, log_weight = memories[particle], 0.0
                seen = memory
                if there < arms:
                    seen = rows[:there]
                    take_rows(memory, who, seen)
                for place in range(there if there > 1 else 0):
                    if counts[who[place]] > 0:
                        chance = probability(parameters, seen_pulls, seen, transitions.decided[at], place)
                        log_weight += counts[who[place]] * (math.log(chance) if chance > 0.0 else -math.inf)
                cloud.log_weights[particle] += log_weight - approximated[particle]
        alive, resampled = resample(cloud, step)
        if not alive:
            return step + 1
        if resampled:
            inherit(memories, cloud.ancestors)
            inherit(means, cloud.ancestors)
        # Proposal: r = M + c e, with e from its density times psi_{t+1}.
        known, noise = transitions.noise[at] == 0.0, transitions.noise[at]
        keeps, shift, from_mean = _row(transitions, at)
        pull, push, precision, share = twist.pull[at], twist.push[at], twist.precision[at], transitions.learns[at]
        deviation = 1.0 / math.sqrt(precision) if not known else 0.0
        for particle in range(number):
            memory, mean = memories[particle], means[particle, arm]
            reward = transitions.known[at]
            if not known:
                pressure = push
                for row in range(arms):
                    pressure -= pull[row] * memory[row, score]
                moved = keeps * memory[arm, score] + shift + from_mean * mean
                pressure -= pull[arm] * (moved - memory[arm, score])
                if separate:
                    for row in range(arms):
                        pressure -= pull[arms + row] * means[particle, row]
                draw, _ = two_uniforms(cloud.rng, PARTICLES, step, particle)
                if bernoulli:
                    reward, log_weight = propose_outcome(mean, noise, pressure, precision, 0.0, 0.0, draw)
                    cloud.log_weights[particle] += log_weight
                else:
                    innovation = pressure / precision + deviation * normal_quantile(draw, cloud.table)
                    reward = mean + noise * innovation
                means[particle, arm] += share * (reward - mean)
            learn(parameters, pulls, memory, step + 1, arm, reward)
            memory[arm, 0] += reward
        pulls[arm] += 1
        if not math.isnan(steps.rewards[step]):  # it counted as past before the rule saw it
            cloud.before[arm] -= 1.0
            for particle in range(number):
                cloud.past[particle, arm] -= reward
        if mark < cloud.marks.size and cloud.marks[mark] == step:
            take_sums(cloud, memories)
            mark = keep_sums(cloud, step, mark)
    take_sums(cloud, memories)
    return 0


@inlined
def propose_outcome(
    mean: float, noise: float, pressure: float, precision: float, after_low: float, after_high: float, draw: float
) -> tuple[float, float]:
    """Draw a reward of 0 or 1 from its probability times the twisting function; return it and its log weight.

    Relative to a reward without innovation, the twisting function is `exp(pressure e - (precision - 1) e^2 / 2)`, and
    `after_low` and `after_high` are logs of what else follows from a 0 and a 1. The weight is the sum over both
    outcomes, divided by the expectation over a normal innovation, which the twist assumes.
    """
    low, high = -mean / noise, (1.0 - mean) / noise
    log_low = after_low + pressure * low - 0.5 * (precision - 1.0) * low * low + math.log1p(-mean)
    log_high = after_high + pressure * high - 0.5 * (precision - 1.0) * high * high + math.log(mean)
    largest = max(log_low, log_high)
    if largest == -math.inf:
        return 0.0, largest
    share = math.exp(log_high - largest)
    total = share + math.exp(log_low - largest)
    log_weight = largest + math.log(total) - 0.5 * pressure * pressure / precision + 0.5 * math.log(precision)
    return (1.0 if draw * total < share else 0.0), log_weight
