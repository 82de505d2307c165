"""Twisted filter of a linear demonstrator: every reward is proposed given all choices, those to come included.

A particle is the expectation `m` of the coefficients given the hidden rewards so far (see `kernels/linear.py`). What
the next choice cuts off is cut off exactly: along the direction in which a reward moves the state, the comparisons
leave an interval. The innovation is drawn from its density times the twisting function of all later choices, within
that interval, and the weight is the probability of the interval over what the sites have in its place.
"""

import math

import numpy as np

from unbandit.kernels.choice_sites import ChanceSites, factor_matrix, log_softmax
from unbandit.kernels.compile import Integers, Numbers, called, compiled, inlined
from unbandit.kernels.linear import LinearPath, PathSites, PathTwist, dot
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.smc.cloud import PARTICLES, Cloud, resample, two_uniforms
from unbandit.kernels.smc.proposal import truncated_normal
from unbandit.kernels.special import normal_cdf

DECISION_NOISE = np.uint64(11)  # a stream of the tape
ORTHANT_DRAWS = 4  # for each probability of several cuts; even, since every second one mirrors the one before


@compiled
def filter_cuts(
    path: LinearPath, sites: PathSites, twist: PathTwist, explores: float, rotated: bool, cloud: Cloud
) -> int:  # fmt: skip
    """Move a cloud whose `sums` are the states through all rewards; return 0, or the state that none survives.

    A choice that may be a random one, with the probability `explores`, cuts off nothing, but makes the interval more
    probable. Then there may be one choice per state only. `rotated` says that sites have other rows than the cuts.
    """
    rounds = path.gains.shape[0]
    number, size = cloud.sums.shape
    slopes, site_slopes = np.empty(path.rows.shape[0] + 1), np.empty(path.rows.shape[0] + 1)
    for at in range(rounds):
        gain = path.gains[at]
        first, end = path.first_row[path.first_choice[at + 1]], path.first_row[path.first_choice[at + 2]]
        bend = 0.0
        for row in range(first, end):
            slopes[row - first] = dot(path.rows[row], gain)
            site_slopes[row - first] = dot(sites.rows[row], gain) if rotated else slopes[row - first]
            bend += sites.precision[row] * site_slopes[row - first] * site_slopes[row - first]
        precision = twist.later_precision[at]
        root = math.sqrt(precision)
        log_norm = 0.5 * math.log(1.0 + bend / precision)
        for particle in range(number):
            state = cloud.sums[particle]
            low, high, level, slope = -math.inf, math.inf, 0.0, 0.0
            for row in range(first, end):
                value, by = 0.0, slopes[row - first]
                for each in range(size):
                    value += path.rows[row, each] * state[each]
                short = path.bounds[row] - value
                if by > 0.0:
                    low = max(low, short / by)
                elif by < 0.0:
                    high = min(high, short / by)
                elif short > 0.0:
                    high = -math.inf
                if rotated:
                    if sites.precision[row] == 0.0:
                        continue
                    value, by = dot(sites.rows[row], state), site_slopes[row - first]
                level += value * (sites.pressure[row] - 0.5 * sites.precision[row] * value)
                slope += by * (sites.pressure[row] - sites.precision[row] * value)
            pressure = twist.later_push[at]
            for each in range(size):
                pressure -= twist.later_pull[at, each] * state[each]
            centre = pressure / precision
            draw, decision = two_uniforms(cloud.rng, PARTICLES, at, particle)
            value, log_mass = truncated_normal((low - centre) * root, (high - centre) * root, draw, cloud.table)
            wins = path.wins[path.first_choice[at + 1]] if end > first else 1.0
            if explores > 0.0 and end > first:
                greedy = (1.0 - explores) * wins * math.exp(log_mass)
                random = explores / (end - first + 1)
                if decision * (greedy + random) >= greedy:
                    value = normal_quantile(draw, cloud.table)
                log_mass = math.log(greedy + random)
            else:
                log_mass += math.log(wins) if wins > 0.0 else -math.inf
            tilt = slope - bend * centre
            by_sites = (
                level + centre * (slope - 0.5 * bend * centre) + 0.5 * tilt * tilt / (precision + bend) - log_norm
            )
            cloud.log_weights[particle] += log_mass - by_sites
            if log_mass > -math.inf:
                innovation = centre + value / root
                for each in range(size):
                    state[each] += gain[each] * innovation
        alive, _ = resample(cloud, at)
        if not alive:
            return at + 1
    return 0


@compiled
def filter_chances(
    path: LinearPath, sites: PathSites, chances: ChanceSites, twist: PathTwist, kind: tuple[int, float],
    cloud: Cloud,
) -> int:  # fmt: skip
    """Move a cloud as `filter_cuts` does, for choices by chance; return 0, or the state that no particle survives.

    A particle is weighted by the probability of a choice over its site. `kind` is that of `refine_chances`.
    """
    rounds = path.gains.shape[0]
    number, size = cloud.sums.shape
    most = 0
    for at in range(rounds):
        most = max(most, path.first_row[path.first_choice[at + 2]] - path.first_row[path.first_choice[at + 1]])
    slopes, site_slopes, values, work = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    order = np.empty(most, np.int64)
    for at in range(rounds):
        gain = path.gains[at]
        first_choice, end_choice = path.first_choice[at + 1], path.first_choice[at + 2]
        first, end = path.first_row[first_choice], path.first_row[end_choice]
        bend = 0.0
        for row in range(first, end):
            slopes[row - first] = dot(path.rows[row], gain)
            site_slopes[row - first] = dot(sites.rows[row], gain)
            bend += sites.precision[row] * site_slopes[row - first] * site_slopes[row - first]
        precision = twist.later_precision[at] + bend
        root = math.sqrt(precision)
        for particle in range(number):
            state = cloud.sums[particle]
            pressure, level, slope = twist.later_push[at], 0.0, 0.0
            for each in range(size):
                pressure -= twist.later_pull[at, each] * state[each]
            for row in range(first, end):
                if sites.precision[row] != 0.0:
                    value = dot(sites.rows[row], state)
                    level += value * (sites.pressure[row] - 0.5 * sites.precision[row] * value)
                    slope += site_slopes[row - first] * (sites.pressure[row] - sites.precision[row] * value)
            draw, _ = two_uniforms(cloud.rng, PARTICLES, at, particle)
            innovation = (pressure + slope) / precision + normal_quantile(draw, cloud.table) / root
            cloud.log_weights[particle] -= level + innovation * (slope - 0.5 * bend * innovation)
            for each in range(size):
                state[each] += gain[each] * innovation
        for choice in range(first_choice, end_choice):
            begin = path.first_row[choice]
            others = path.first_row[choice + 1] - begin
            if others == 0:
                continue
            factor = np.zeros((others, others))
            if kind[0] == 1:
                _order_cuts(path, chances, choice, cloud.sums, order[:others], factor)
            for particle in range(number):
                for row in range(others):
                    values[row] = dot(path.rows[begin + row], cloud.sums[particle])
                if kind[0] == 3:
                    log_chance = log_softmax(values[:others], kind[1], work[:others])
                elif kind[0] == 2:
                    bounds = path.bounds[begin : begin + others]
                    log_chance = _log_greedy(values[:others], bounds, kind[1], path.wins[choice])
                else:
                    log_chance = _log_orthant(values[:others], order, factor, work, cloud, choice, particle)
                cloud.log_weights[particle] += log_chance
        alive, _ = resample(cloud, at)
        if not alive:
            return at + 1
    return 0


@inlined
def _log_greedy(values: Numbers, bounds: Numbers, explores: float, wins: float) -> float:
    """Return the log probability of a choice that is greedy, and then `wins` against equal ones, unless it explores."""
    chance = explores / (values.size + 1)
    greedy = True
    for row in range(values.size):
        greedy = greedy and values[row] >= bounds[row]
    if greedy:
        chance += (1.0 - explores) * wins
    return math.log(chance) if chance > 0.0 else -math.inf


@called
def _order_cuts(
    path: LinearPath, chances: ChanceSites, choice: int, states: Numbers, order: Integers, factor: Numbers
) -> None:
    """Order the cuts of a choice by how much they cut, and factor the covariance of their noise in this order."""
    others, begin, place = order.size, path.first_row[choice], chances.first[choice]
    away, sorted_noise = np.empty(others), np.empty((others, others))
    for row in range(others):
        total = 0.0
        for particle in range(states.shape[0]):
            total += dot(path.rows[begin + row], states[particle])
        variance = chances.noise[place + row * others + row]
        away[row] = total / states.shape[0] / math.sqrt(max(variance, 1e-300))
        order[row] = row
    for one in range(1, others):  # few: sorted by insertion
        at = one
        while at > 0 and away[order[at]] < away[order[at - 1]]:
            order[at], order[at - 1] = order[at - 1], order[at]
            at -= 1
    for one in range(others):
        for other in range(others):
            sorted_noise[one, other] = chances.noise[place + order[one] * others + order[other]]
    factor_matrix(sorted_noise, factor)


@called
def _log_orthant(
    values: Numbers, order: Integers, factor: Numbers, draws: Numbers, cloud: Cloud, choice: int, particle: int
) -> float:
    """Estimate the probability of `values + noise >= 0` without bias, from a few draws; return its log.

    By the simulator of J. Geweke, V. Hajivassiliou and M. Keane: one cut after the other, each drawn given those before
    it. Cuts whose noise is a function of the others' either hold or do not.
    """
    others, total = values.size, 0.0
    for number in range(ORTHANT_DRAWS):
        product, antithetic = 1.0, number % 2 == 1
        for one in range(others):
            rest = values[order[one]]
            for other in range(one):
                rest += factor[one, other] * draws[other]
            own = factor[one, one]
            if own == 0.0:
                draws[one] = 0.0
                if rest < 0.0:
                    product = 0.0
                    break
                continue
            mass = normal_cdf(rest / own)
            product *= mass
            if product == 0.0:
                break
            if one < others - 1:
                place = (particle * (ORTHANT_DRAWS // 2) + number // 2) * others + one
                uniform, _ = two_uniforms(cloud.rng, DECISION_NOISE, choice, place)
                if antithetic:
                    uniform = 1.0 - uniform
                draws[one] = -normal_quantile(max(uniform * mass, 1e-300), cloud.table)
        total += product
    return math.log(total / ORTHANT_DRAWS) if total > 0.0 else -math.inf
