"""Gaussian sites of choices by chance: softmax, Thompson sampling and greedy choices with exploration.

Such a choice has a probability that depends on its comparisons `u`, the differences of values between the chosen offer
and the others. Its site is `exp(slope' u - u' bend u / 2)`. For Thompson sampling and greedy choices it comes from the
cuts `u + noise >= 0`, matched by expectation propagation within the choice (J. Cunningham, P. Hennig and S.
Lacoste-Julien, "Gaussian probabilities and expectation propagation", 2011), and for greedy choices then has the moments
of the mixture with a choice at random; for softmax from gradient and Hessian of
the log probability, averaged over what is known of `u`. In `kernels/linear.py` a site is a product over single linear
functions of the state; so each is factored, `bend = L L'`.
"""

import math
from typing import NamedTuple

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, compiled
from unbandit.kernels.linear import (
    LinearPath,
    PathSites,
    PathTwist,
    add_features,
    add_outer,
    advance,
    cut_moments,
    dot,
    times,
)

SWEEPS = 3  # through the cuts of one choice
SMALL = 1e-12  # a pivot below this share of the largest counts as 0
MOST_BETWEEN = 0.95  # of what would leave no precision along the line between the two parts of a mixture
ALMOST = 1e-6  # the least share of a variance that is left where a site is taken away


class ChanceSites(NamedTuple):
    """What the sites of choices by chance are made of; matrices are laid out one after the other."""

    first: Integers  # per round: where its matrices begin
    noise: Numbers  # covariance of the noise that a choice adds to its comparisons
    bend: Numbers
    slope: Numbers  # per comparison


@compiled
def lay_noise(
    features: Numbers, starts: Integers, chosen: Integers, known: Integers, ridge: float, scale: float,
    first: Integers, noise: Numbers,
) -> None:  # fmt: skip
    """Fill in `scale^2 D A^-1 D'` for every choice, with the differences of features `D`."""
    size = features.shape[1]
    learner, product = np.eye(size) / ridge, np.empty(size)
    received = 0
    for at in range(chosen.size):
        while received < known[at]:
            add_features(learner, features[starts[received] + chosen[received]], product)
            received += 1
        others = starts[at + 1] - starts[at] - 1
        differences, row = np.empty((others, size)), 0
        for offer in range(starts[at], starts[at + 1]):
            if offer != starts[at] + chosen[at]:
                for each in range(size):
                    differences[row, each] = features[starts[at] + chosen[at], each] - features[offer, each]
                row += 1
        for one in range(others):
            times(learner, differences[one], product)
            for other in range(others):
                noise[first[at] + one * others + other] = scale * scale * dot(product, differences[other])


@compiled
def refine_chances(
    path: LinearPath, sites: PathSites, chances: ChanceSites, twist: PathTwist, kind: tuple[int, float], step: float,
    means: Numbers,
) -> tuple[float, float]:  # fmt: skip
    """Go through all states in order, given all choices, and renew the site of each; see `refine_sites`.

    `kind` is 3 for softmax, otherwise 1 or 2, with the temperature, or the probability to explore.
    """
    rounds, size = path.gains.shape
    mean, covariance, product = path.start.copy(), np.zeros((size, size)), np.empty(size)
    largest, log_constants = 0.0, 0.0
    for state in range(rounds + 1):
        for choice in range(path.first_choice[state], path.first_choice[state + 1]):
            first, others = path.first_row[choice], path.first_row[choice + 1] - path.first_row[choice]
            if others == 0:
                continue
            place = chances.first[choice]
            bend = chances.bend[place : place + others * others].reshape((others, others))
            noise = chances.noise[place : place + others * others].reshape((others, others))
            slope = chances.slope[first : first + others]
            centres, spread = np.empty(others), np.empty((others, others))
            new_bend, new_slope = np.zeros((others, others)), np.zeros(others)
            log_mass = 0.0
            if kind[0] == 3:
                _compare(path.rows, first, mean, covariance, centres, spread, product)
                log_mass = _softmax_site(centres, spread, kind[1], new_bend, new_slope)
            # Take the old site away.
            before = dot(path.rows[first], mean)
            for row in range(first, first + others):
                if sites.precision[row] != 0.0:
                    _multiply(sites.rows[row], -sites.precision[row], -sites.pressure[row], mean, covariance, product)
            if kind[0] != 3:
                _compare(path.rows, first, mean, covariance, centres, spread, product)
                floor = kind[1] / (others + 1) if kind[0] == 2 else 0.0
                explores = 1.0 - (1.0 - kind[1]) * path.wins[choice] if kind[0] == 2 else 0.0
                log_mass = _orthant_site(centres, spread, noise, floor, explores, new_bend, new_slope)
            for one in range(others):
                slope[one] += step * (new_slope[one] - slope[one])
                for other in range(others):
                    bend[one, other] += step * (new_bend[one, other] - bend[one, other])
            _factor_site(path.rows, first, bend, slope, sites)
            log_constants += log_mass
            for row in range(first, first + others):
                if sites.precision[row] != 0.0:
                    own = _multiply(
                        sites.rows[row], sites.precision[row], sites.pressure[row], mean, covariance, product
                    )  # fmt: skip
                    log_constants -= own if kind[0] != 3 else 0.0
            variance = times(covariance, path.rows[first], product)
            largest = max(largest, abs(dot(path.rows[first], mean) - before) / math.sqrt(variance + 1e-300))
        for each in range(size):
            means[state, each] = mean[each]
        if state == rounds:
            break
        advance(
            path.gains[state], twist.pull[state], twist.push[state], twist.precision[state], mean, covariance, product
        )  # fmt: skip
    return largest, log_constants


@called
def _compare(
    rows: Numbers, first: int, mean: Numbers, covariance: Numbers, centres: Numbers, spread: Numbers, product: Numbers
) -> None:
    """Fill in expectation and covariance of some comparisons."""
    for one in range(centres.size):
        centres[one] = dot(rows[first + one], mean)
        times(covariance, rows[first + one], product)
        for other in range(centres.size):
            spread[one, other] = dot(product, rows[first + other])


@called
def _multiply(
    row: Numbers, precision: float, pressure: float, mean: Numbers, covariance: Numbers, product: Numbers
) -> float:
    """Multiply a normal density by `exp(pressure u - precision u^2 / 2)`; return the log of what it integrates to.

    A negative precision takes a site away, as far as something is left.
    """
    variance, centre = times(covariance, row, product), dot(row, mean)
    scale = 1.0 + precision * variance
    if scale < ALMOST:
        return 0.0
    moved = (pressure - precision * centre) / scale
    for each in range(mean.size):
        mean[each] += product[each] * moved
    add_outer(covariance, product, -precision / scale)
    level = centre * (pressure - 0.5 * precision * centre)
    push = pressure - precision * centre
    return level + 0.5 * push * push * variance / scale - 0.5 * math.log(scale)


@called
def _softmax_site(centres: Numbers, spread: Numbers, temperature: float, bend: Numbers, slope: Numbers) -> float:
    """Fill in the averaged site of a choice `p = 1 / (1 + sum exp(-u / temperature))`; return the mean of log p / site.

    Averages are over points at `sqrt(n)` deviations in `n` orthogonal directions, and the middle where nothing varies.
    """
    others = centres.size
    factor = np.zeros((others, others))
    factor_matrix(spread, factor)
    root, log_mass = math.sqrt(others), 0.0
    point, shares = np.empty(others), np.empty(others)
    for column in range(others):
        for side in range(2):
            for row in range(others):
                point[row] = centres[row] + (root if side == 0 else -root) * factor[row, column]
            log_mass += log_softmax(point, temperature, shares) / (2 * others)
            weight = 1.0 / (2 * others * temperature)
            for row in range(others):
                slope[row] += weight * shares[row]
                bend[row, row] += weight / temperature * shares[row]
                for other in range(others):
                    bend[row, other] -= weight / temperature * shares[row] * shares[other]
    for row in range(others):
        for other in range(others):
            slope[row] += bend[row, other] * centres[other]
            log_mass += 0.5 * bend[row, other] * (centres[row] * centres[other] + spread[row, other])
        log_mass -= slope[row] * centres[row]
    return log_mass


@called
def log_softmax(comparisons: Numbers, temperature: float, shares: Numbers) -> float:
    """Return the log probability of the chosen offer; fill in the probabilities of the others."""
    lowest = 0.0
    for each in range(comparisons.size):
        lowest = min(lowest, comparisons[each])
    total = math.exp(lowest / temperature)
    for each in range(comparisons.size):
        shares[each] = math.exp((lowest - comparisons[each]) / temperature)
        total += shares[each]
    for each in range(comparisons.size):
        shares[each] /= total
    return lowest / temperature - math.log(total)


@called
def _orthant_site(
    centres: Numbers, spread: Numbers, noise: Numbers, floor: float, explores: float, bend: Numbers, slope: Numbers
) -> float:
    """Fill in the site of `u + noise >= 0`, or of its mixture with a choice at random; return its log probability.

    With precisions `T` and pressures `h` of the cuts, the site of `u` is `bend = (1 + T N)^-1 T` and `slope = (1 + T
    N)^-1 h`. That of a mixture, which has no noise, has the moments of the mixture (`_mixed_site`).
    """
    others = centres.size
    mean, covariance = np.empty(others), np.empty((others, others))
    for row in range(others):
        mean[row] = centres[row]
        for column in range(others):
            covariance[row, column] = spread[row, column] + noise[row, column]
    precision, pressure = np.zeros(others), np.zeros(others)
    unit, product = np.zeros(others), np.empty(others)
    log_mass, impossible = 0.0, False
    for sweep in range(SWEEPS):
        log_cuts = 0.0
        for cut in range(others):
            variance = covariance[cut, cut]
            cavity = 1.0 / max(variance, 1e-300) - precision[cut]
            if variance <= 0.0 or cavity <= 0.0:
                impossible = impossible or (variance <= 0.0 and mean[cut] < -SMALL)
                continue
            own = (mean[cut] / variance - pressure[cut]) / cavity
            log_cut, new_mean, new_variance = cut_moments(own, 1.0 / cavity, 0.0)
            added = 1.0 / new_variance - cavity - precision[cut]
            pushed = new_mean / new_variance - own * cavity - pressure[cut]
            precision[cut] += added
            pressure[cut] += pushed
            unit[cut] = 1.0
            log_mass += _multiply(unit, added, pushed, mean, covariance, product)
            unit[cut] = 0.0
            full, push = cavity + precision[cut], own * cavity + pressure[cut]
            site = 0.5 * push * push / full - 0.5 * own * own * cavity + 0.5 * math.log(cavity / full)
            log_cuts += log_cut - site
        if sweep == SWEEPS - 1:
            log_mass += log_cuts
    if impossible:
        log_mass = -math.inf
    share = 1.0
    if floor > 0.0:
        cut_mass = math.exp(min(log_mass, 0.0))
        share = (1.0 - explores) * cut_mass / ((1.0 - explores) * cut_mass + floor)
        log_mass = math.log((1.0 - explores) * cut_mass + floor)
    elif explores > 0.0:  # never at random; others win ties
        log_mass += math.log(1.0 - explores) if explores < 1.0 else -math.inf
    system = np.zeros((others, 2 * others + 1))
    if floor > 0.0:
        _solve_site(spread, precision, pressure - precision * centres, system)
        _mixed_site(centres, spread, precision, pressure, share, system, bend, slope)
        return log_mass
    _solve_site(noise, precision, pressure, system)
    for row in range(others):
        slope[row] = system[row, 2 * others]
        for column in range(others):
            bend[row, column] = 0.5 * (system[row, others + column] + system[column, others + row])
    return log_mass


@called
def _solve_site(covariance: Numbers, precision: Numbers, pressure: Numbers, system: Numbers) -> None:
    """Solve `(1 + T C) X = (T, h)` by elimination; X stands to the right of the first columns."""
    others = precision.size
    for row in range(others):
        for column in range(others):
            system[row, column] = precision[row] * covariance[row, column] + (1.0 if row == column else 0.0)
        system[row, others + row] = precision[row]
        system[row, 2 * others] = pressure[row]
    _eliminate(system)


@called
def _mixed_site(
    centres: Numbers, spread: Numbers, precision: Numbers, pressure: Numbers, share: float, solved: Numbers,
    bend: Numbers, slope: Numbers,
) -> None:  # fmt: skip
    """Fill in the site with the moments of a mixture: comparisons cut, with the probability `share`, or as they were.

    Before, comparisons are `N(c, S)`; the cuts leave `N(c + S g, S - S G S)`, with `G = (1 + T S)^-1 T` and `g = (1 +
    T S)^-1 (h - T c)`, which are `solved`. The mixture has the mean `c + p S g` and the covariance `S - S D S`, with
    `D = p (G - (1 - p) g g')`; its site has the bend `B = (1 - D S)^-1 D`. Where the two lie far apart the mixture is
    wider than what it was made from, and no site has its covariance: what lies between them counts only as far as `B`
    stays positive, which is where `(1 - p) g' G^-1 g < 1`.
    """
    others = centres.size
    apart = 0.0  # g' G^-1 g
    for row in range(others):
        if precision[row] > 0.0:
            apart += solved[row, 2 * others] * (pressure[row] / precision[row] - centres[row])
    between = min(1.0 - share, MOST_BETWEEN / apart) if apart > 0.0 else 0.0
    for row in range(others):
        slope[row] = share * solved[row, 2 * others]
        for column in range(others):
            own = 0.5 * (solved[row, others + column] + solved[column, others + row])
            bend[row, column] = share * (own - between * solved[row, 2 * others] * solved[column, 2 * others])
    system, mean = np.zeros((others, 2 * others)), centres.copy()
    for row in range(others):
        for column in range(others):
            mean[row] += spread[row, column] * slope[column]
            system[row, column] = 1.0 if row == column else 0.0
            for other in range(others):
                system[row, column] -= bend[row, other] * spread[other, column]
            system[row, others + column] = bend[row, column]
    _eliminate(system)
    for row in range(others):
        for column in range(others):
            bend[row, column] = 0.5 * (system[row, others + column] + system[column, others + row])
    for row in range(others):
        for column in range(others):
            slope[row] += bend[row, column] * mean[column]


@called
def _eliminate(system: Numbers) -> None:
    """Solve a system of equations, whose right sides follow its columns, in place (Gauss and Jordan)."""
    size = system.shape[0]
    for pivot in range(size):
        largest = pivot
        for row in range(pivot + 1, size):
            if abs(system[row, pivot]) > abs(system[largest, pivot]):
                largest = row
        for column in range(pivot, system.shape[1]):
            system[pivot, column], system[largest, column] = system[largest, column], system[pivot, column]
        scale = 1.0 / system[pivot, pivot]
        for column in range(pivot, system.shape[1]):
            system[pivot, column] *= scale
        for row in range(size):
            if row != pivot:
                factor = system[row, pivot]
                for column in range(pivot, system.shape[1]):
                    system[row, column] -= factor * system[pivot, column]


@called
def factor_matrix(matrix: Numbers, factor: Numbers) -> None:
    """Fill in the lower Cholesky factor; what does not vary has zeros."""
    size, scale = matrix.shape[0], 0.0
    for row in range(size):
        scale = max(scale, matrix[row, row])
    for row in range(size):
        for column in range(row + 1):
            rest = matrix[row, column]
            for other in range(column):
                rest -= factor[row, other] * factor[column, other]
            if column < row:
                factor[row, column] = rest / factor[column, column] if factor[column, column] > 0.0 else 0.0
            else:
                factor[row, row] = math.sqrt(rest) if rest > SMALL * scale else 0.0


@called
def _factor_site(rows: Numbers, first: int, bend: Numbers, slope: Numbers, sites: PathSites) -> None:
    """Write `exp(slope' u - u' bend u / 2)` as a product over the functions `L' u`, with `bend = L L'`."""
    others, size = slope.size, rows.shape[1]
    factor, pressure = np.zeros((others, others)), np.zeros(others)
    factor_matrix(bend, factor)
    for one in range(others):
        row = first + one
        if factor[one, one] == 0.0:
            sites.precision[row] = sites.pressure[row] = 0.0
            continue
        rest = slope[one]
        for other in range(one):
            rest -= factor[one, other] * pressure[other]
        pressure[one] = rest / factor[one, one]
        sites.precision[row], sites.pressure[row] = 1.0, pressure[one]
        for each in range(size):
            total = 0.0
            for other in range(one, others):
                total += factor[other, one] * rows[first + other, each]
            sites.rows[row, each] = total
