"""The hidden path of a linear demonstrator, and its Gaussian approximation by expectation propagation.

A learner with features `x` knows `A = ridge I + sum x x'` and `b = sum x y`, and values an offer by `x' A^-1 b`. An
observer knows `A`, since the record has the features, and not the rewards `y = x' theta + sigma eps`. With a prior
`theta ~ N(0, tau^2 I)`, his expectation `m_t` of theta given the first `t` rewards is a martingale that each reward
moves along a known direction: with `c = sigma^2 / tau^2` and `Q = (c I + sum x x')^-1`,

    m_{t+1} = m_t + k_t e_t,    k_t = sigma Q x / sqrt(1 + x' Q x),    e_t ~ N(0, 1),

and what the learner knows is a linear function of it, `A^-1 b = m + (c - ridge) A^-1 m`. So a choice compares the
chosen offer with every other by a linear function of the state, `u = g' m`; LinUCB's choice says `u >= bound`.

Rewards that are in the record, of whatever rounds, are known to the observer from the start: they move `m_0` and `Q`,
and not the path. With `G = sum x x'` and `r = sum x y` over those that the learner does not know yet,

    A^-1 b = m + (c - ridge) A^-1 m + A^-1 (G m - r).

The state then has a last number 1 that never moves, which the rows multiply by the constant.

Where the record has them rounded and the learner had them in full, `y = rounded + delta e` with standard normal `e` and
`delta` the step over `sqrt(12)`: what the learner knows has `A^-1 n` more, where `n = delta sum x e` over such rewards
that it knows. `n` is a part of the state, which these rounds move as others move `m`.

If each comparison is replaced by a Gaussian function of `u`, its *site*, then the probability of all later choices
given a state is one too, the *twisting function* `psi_t(m) = exp(-m' L m / 2 + h' m)`. `solve_path` computes it from
the last round to the first; `refine_sites` goes forward and matches the moments of every cut in turn (T. Minka,
"Expectation propagation for approximate Bayesian inference", 2001). Both take `p^2` operations per comparison.
"""

import math
from typing import NamedTuple

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.special import HALF_LOG_TWO_PI, log_normal_cdf

ROUNDING = 1e-9  # the share of an index by which two of them may differ and still count as equal
TOO_FAR = 7.0  # deviations by which a cut may be away and still have a site
FARTHEST = -1e4  # deviations beyond which a cut is taken to be this far
NARROWEST = 1e-18  # variance below which a comparison counts as known


class LinearPath(NamedTuple):
    """How the state moves with each reward, and what each choice compares.

    State `s` holds the first `s` rewards; the choices of rounds `first_choice[s]` to `first_choice[s + 1]` are made
    from it. The comparisons of a round are those with every other offer, in the order of the offers.
    """

    gains: Numbers  # (rounds, coefficients): k
    rows: Numbers  # (comparisons, coefficients): g
    bounds: Numbers  # per comparison: by how much the widths of the other offer exceed those of the chosen one
    widths: Numbers  # per offer: sqrt(x' A^-1 x)
    wins: Numbers  # per round: how probable it is that the chosen one of equal offers wins, if the choice is greedy
    first_row: Integers  # per round, and the end
    first_choice: Integers  # per state, and the end
    covariance: Numbers  # of theta given all rewards: (coefficients, coefficients)
    start: Numbers  # the first state: 0, or what known rewards say, 0 for what rounding took off them, and 1


class PathSites(NamedTuple):
    """Gaussian functions of linear functions `u` of the states, `exp(pressure u - precision u^2 / 2)`.

    There are as many as comparisons, in the same order; those of one choice together stand for its probability.
    """

    rows: Numbers  # (comparisons, coefficients): for cuts those of the comparisons
    precision: Numbers
    pressure: Numbers


class PathTwist(NamedTuple):
    """Each round's innovation given the state `m` before it: `N((push - pull' m) / precision, 1 / precision)`.

    Once with the choices that are made from the state after it, and once with later ones only.
    """

    pull: Numbers  # (rounds, coefficients)
    push: Numbers
    precision: Numbers
    later_pull: Numbers
    later_push: Numbers
    later_precision: Numbers


@compiled
def lay_path(
    features: Numbers, starts: Integers, chosen: Integers, known: Integers, rewards: Numbers, ridge: float,
    alpha: float, sigma: float, prior: float, rounding_error: float, strict: bool, path: LinearPath,
) -> None:  # fmt: skip
    """Fill in a path: `known` is the number of rewards that the learner has in each round, never falling.

    `rewards` are those in the record, NaN where hidden; empty if all are. The learner had them with an error of the
    deviation `rounding_error` taken off. If `strict`, an offer that ties with one before it has not the largest index.
    """
    rounds, size, last = chosen.size, features.shape[1], path.start.size - 1
    ratio = sigma * sigma / (prior * prior)
    learner, observer = np.eye(size) / ridge, np.eye(size) / ratio
    product, difference = np.empty(size), np.empty(size)
    coming, coming_sum = np.zeros((size, size)), np.zeros(size)  # G and r
    for at in range(rewards.size):
        if not math.isnan(rewards[at]):
            own = starts[at] + chosen[at]
            add_features(observer, features[own], product)
            add_outer(coming, features[own], 1.0)
            for each in range(size):
                coming_sum[each] += features[own, each] * rewards[at]
    if rewards.size > 0:
        times(observer, coming_sum, product)
        for each in range(size):
            path.start[each] = product[each]
        path.start[last] = 1.0
    received, row = 0, 0
    for at in range(rounds):
        while received < known[at]:
            own = starts[received] + chosen[received]
            add_features(learner, features[own], product)
            if rewards.size > 0 and not math.isnan(rewards[received]):
                add_outer(coming, features[own], -1.0)
                for each in range(size):
                    coming_sum[each] -= features[own, each] * rewards[received]
            received += 1
        own = starts[at] + chosen[at]
        for offer in range(starts[at], starts[at + 1]):
            path.widths[offer] = math.sqrt(max(times(learner, features[offer], product), 0.0))
        path.first_row[at] = row
        for offer in range(starts[at], starts[at + 1]):
            if offer == own:
                continue
            for each in range(size):
                difference[each] = features[own, each] - features[offer, each]
            times(learner, difference, product)
            length, constant = 0.0, 0.0
            for each in range(size):
                path.rows[row, each] = difference[each] + (ratio - ridge) * product[each]
                if rewards.size > 0:
                    path.rows[row, each] += dot(coming[each], product)
                    constant -= coming_sum[each] * product[each]
                if rounding_error > 0.0:
                    path.rows[row, size + each] = product[each]
                length += path.rows[row, each] * path.rows[row, each]
            if rewards.size > 0:
                path.rows[row, last] = constant
            # Indices that are equal but for rounding are equal: ties are common while nothing is known.
            widths = alpha * (path.widths[offer] + path.widths[own])
            rounding = ROUNDING * (widths + prior * math.sqrt(length) + abs(constant))
            if strict and offer < own:
                rounding = -rounding
            path.bounds[row] = alpha * (path.widths[offer] - path.widths[own]) - rounding
            row += 1
        if rewards.size > 0 and not math.isnan(rewards[at]):
            for each in range(size if rounding_error > 0.0 else 0):
                path.gains[at, size + each] = rounding_error * features[own, each]
            continue  # it moves no expectation
        norm = 1.0 + times(observer, features[own], product)
        for each in range(size):
            path.gains[at, each] = sigma * product[each] / math.sqrt(norm)
        add_features(observer, features[own], product)
    path.first_row[rounds] = row
    state = 0
    for at in range(rounds):
        while state <= known[at]:
            path.first_choice[state] = at
            state += 1
    while state < path.first_choice.size:
        path.first_choice[state] = rounds
        state += 1
    for each in range(size):
        for other in range(size):
            path.covariance[each, other] = sigma * sigma * observer[each, other]


@called
def times(matrix: Numbers, vector: Numbers, product: Numbers) -> float:
    """Fill in a matrix times a vector; return the quadratic form."""
    form = 0.0
    for row in range(vector.size):
        value = 0.0
        for column in range(vector.size):
            value += matrix[row, column] * vector[column]
        product[row] = value
        form += value * vector[row]
    return form


@called
def add_outer(matrix: Numbers, vector: Numbers, factor: float) -> None:
    """Add `factor v v'` to a matrix."""
    for row in range(vector.size):
        scaled = factor * vector[row]
        for column in range(vector.size):
            matrix[row, column] += scaled * vector[column]


@called
def add_features(inverse: Numbers, features: Numbers, product: Numbers) -> None:
    """Turn `B^-1` into `(B + x x')^-1` (Sherman and Morrison)."""
    norm = 1.0 + times(inverse, features, product)
    add_outer(inverse, product, -1.0 / norm)


@inlined
def dot(first: Numbers, second: Numbers) -> float:
    """Return the scalar product of two vectors."""
    total = 0.0
    for each in range(first.size):
        total += first[each] * second[each]
    return total


@compiled
def solve_path(path: LinearPath, sites: PathSites, twist: PathTwist) -> float:
    """Fill in the twist that the sites imply; return the log of the twisting function at the first state.

    Given `psi(m')`, the innovation of a state `m` has the precision `1 + k' L k` and the pressure `k' h - k' L m`.
    Integrating it out leaves `L - L k k' L / precision` and `h - L k k' h / precision`.
    """
    rounds, size = path.gains.shape
    precision, pressure, pull = np.zeros((size, size)), np.zeros(size), np.empty(size)
    log_start = 0.0
    for at in range(rounds - 1, -1, -1):
        gain = path.gains[at]
        twist.later_precision[at] = 1.0 + times(precision, gain, pull)
        twist.later_push[at] = dot(gain, pressure)
        for each in range(size):
            twist.later_pull[at, each] = pull[each]
        first, end = path.first_row[path.first_choice[at + 1]], path.first_row[path.first_choice[at + 2]]
        for row in range(first, end):
            if sites.precision[row] != 0.0 or sites.pressure[row] != 0.0:
                add_outer(precision, sites.rows[row], sites.precision[row])
                for each in range(size):
                    pressure[each] += sites.pressure[row] * sites.rows[row, each]
        norm = 1.0 + times(precision, gain, pull)
        push = dot(gain, pressure)
        twist.precision[at], twist.push[at] = norm, push
        for each in range(size):
            twist.pull[at, each] = pull[each]
            pressure[each] -= pull[each] * push / norm
        add_outer(precision, pull, -1.0 / norm)
        log_start += 0.5 * push * push / norm - 0.5 * math.log(norm)
    return log_start + dot(pressure, path.start) - 0.5 * times(precision, path.start, pull)


@called
def cut_moments(mean: float, variance: float, bound: float) -> tuple[float, float, float]:
    """Return log probability, mean and variance of a normal number above a bound."""
    deviation = math.sqrt(variance)
    away = max((mean - bound) / deviation, FARTHEST)
    log_mass = log_normal_cdf(away)
    ratio = math.exp(-0.5 * away * away - HALF_LOG_TWO_PI - log_mass)  # density over distribution function
    share = max(1.0 - ratio * (away + ratio), 0.1 / (1.0 + away * away))
    return log_mass, mean + deviation * ratio, variance * share


@compiled
def refine_sites(
    path: LinearPath, sites: PathSites, twist: PathTwist, step: float, means: Numbers
) -> tuple[float, float]:
    """Go through all states in order, given all choices; match the moments of each cut.

    The twist must be that of the sites. `step` is the share of the way to the new site. `means` takes the expectation
    of every state. Returns the largest change of an expectation of a comparison, in its deviations, and the log of the
    sites' constants, which `solve_path` leaves out.
    """
    rounds, size = path.gains.shape
    mean, covariance, product = path.start.copy(), np.zeros((size, size)), np.empty(size)
    largest, log_constants = 0.0, 0.0
    for state in range(rounds + 1):
        first, end = path.first_row[path.first_choice[state]], path.first_row[path.first_choice[state + 1]]
        for row in range(first, end):
            variance = times(covariance, path.rows[row], product)
            centre, before = dot(path.rows[row], mean), sites.precision[row]
            if variance < NARROWEST:
                if state > 0 and centre < path.bounds[row]:  # nothing hidden is left to explain it
                    log_constants = -math.inf
                continue
            cavity = 1.0 / variance - before
            if cavity <= 0.0:
                continue
            own_variance = 1.0 / cavity
            own_mean = own_variance * (centre / variance - sites.pressure[row])
            if before == 0.0 and own_mean - path.bounds[row] > TOO_FAR * math.sqrt(own_variance):
                continue
            log_mass, new_mean, new_variance = cut_moments(own_mean, own_variance, path.bounds[row])
            added = step * (1.0 / new_variance - cavity - before)
            pushed = step * (new_mean / new_variance - own_mean * cavity - sites.pressure[row])
            scale = 1.0 / (1.0 + added * variance)
            if not scale > 0.0:
                continue
            moved = (pushed - added * centre) * scale
            largest = max(largest, abs(moved) * math.sqrt(variance))
            sites.precision[row] += added
            sites.pressure[row] += pushed
            for each in range(size):
                mean[each] += product[each] * moved
            add_outer(covariance, product, -added * scale)
            # The site's constant: what the cut has over what the site has under the others.
            full, push = cavity + sites.precision[row], own_mean * cavity + sites.pressure[row]
            site = 0.5 * push * push / full - 0.5 * own_mean * own_mean * cavity + 0.5 * math.log(cavity / full)
            log_constants += log_mass - site
        for each in range(size):
            means[state, each] = mean[each]
        if state == rounds:
            break
        advance(
            path.gains[state], twist.pull[state], twist.push[state], twist.precision[state], mean, covariance, product
        )
    return largest, log_constants


@called
def advance(
    gain: Numbers, pull: Numbers, push: float, precision: float, mean: Numbers, covariance: Numbers, product: Numbers
) -> None:
    """Move a normal state by one innovation: `m' = m + k e`, with `e = (push - pull' m) / precision` and noise."""
    form = times(covariance, pull, product) / (precision * precision) + 1.0 / precision
    moved = (push - dot(pull, mean)) / precision
    for each in range(mean.size):
        mean[each] += gain[each] * moved
        product[each] /= precision
    for each in range(mean.size):
        for other in range(mean.size):
            crossed = gain[each] * product[other] + product[each] * gain[other]
            covariance[each, other] += form * gain[each] * gain[other] - crossed
