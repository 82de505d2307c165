"""The probability that one of several normal draws is the largest: the likelihood of an action of Thompson sampling.

In units of the arm's deviation it is the integral of `density(z) * product of Phi(offset_k + slope_k z)` over the other
arms. Where the arm is the narrowest (the slopes are small), the product changes slowly and a few
Gauss-Hermite nodes are exact to many digits. Otherwise its factors are steps, and no fixed nodes will do: the integrand
is log-concave and has one peak, so panels of Gauss-Legendre nodes are laid from the peak outwards, none longer than the
narrowest arm that still changes there. Relative error below 1e-3; see the tests.
"""

import math

import numpy as np

from unbandit.kernels.compile import Numbers, called, inlined, new_integers, new_table
from unbandit.kernels.special import (
    HALF_LOG_TWO_PI,
    hazard,
    log_normal_cdf,
    normal_cdf,
    normal_density,
)


def _hermite(nodes: int) -> Numbers:
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return np.column_stack([points, weights / weights.sum()])


FEW, SOME, MANY = _hermite(5), _hermite(7), _hermite(12)
STEEPNESS_OF_FEW, STEEPNESS_OF_SOME, STEEPNESS_OF_MANY = 0.2, 0.4, 0.8  # the largest slopes they are used for
DEEPEST = -3.5  # below this offset the integrand's peak is too far from the nodes' middle

PANEL = np.column_stack(np.polynomial.legendre.leggauss(5))
LONGEST = 4.0  # the length of a panel, in deviations of the narrowest arm that changes within it
OVER = 3.0  # deviations above an arm from which on its factor counts as 1
ENOUGH = 3e-4  # a panel that adds a smaller share is the last
MOST_PANELS = 200
SMALLEST = 1e-200  # a probability below this is computed by its log


@inlined
def largest_of_normals(centres: Numbers, roots: Numbers, arm: int) -> float:
    """Return the probability that arm `arm`'s draw is the largest, given means and inverse deviations (overwritten)."""
    centre, deviation, others = centres[arm], 1.0 / roots[arm], 0
    steepness, lowest = 0.0, math.inf
    for other in range(centres.size):
        if other == arm:
            continue
        offset, slope = (centre - centres[other]) * roots[other], deviation * roots[other]
        if offset < 6.0 + 5.0 * slope:  # the others are out of reach
            centres[others], roots[others] = offset, slope  # never ahead of what is still to read
            others += 1
            steepness += slope * slope
            lowest = min(lowest, offset)
    if others == 0:
        return 1.0
    if others == 1:
        return normal_cdf(centres[0] / math.sqrt(1.0 + steepness))
    steepness = math.sqrt(steepness)
    if lowest > DEEPEST and steepness < STEEPNESS_OF_MANY:
        if steepness < STEEPNESS_OF_FEW:
            return _at_nodes(centres, roots, others, FEW)
        if steepness < STEEPNESS_OF_SOME:
            return _at_nodes(centres, roots, others, SOME)
        return _at_nodes(centres, roots, others, MANY)
    return _in_panels(centres, roots, others)


@inlined
def _product(offsets: Numbers, slopes: Numbers, others: int, z: float) -> float:
    product = 1.0
    for other in range(others):
        product *= normal_cdf(offsets[other] + slopes[other] * z)
    return product


@inlined
def _at_nodes(offsets: Numbers, slopes: Numbers, others: int, nodes: Numbers) -> float:
    total = 0.0
    for at in range(nodes.shape[0]):
        total += nodes[at, 1] * _product(offsets, slopes, others, nodes[at, 0])
    return total


@inlined
def _in_panels(offsets: Numbers, slopes: Numbers, others: int) -> float:
    """Lay panels to the right and to the left of the peak, until they add next to nothing."""
    peak, width = _normal_peak(offsets, slopes, others)
    total = 0.0
    for side in range(2):
        direction = 1.0 if side == 0 else -1.0
        edge, length = peak, width
        for _ in range(MOST_PANELS):
            for other in range(others):
                above = offsets[other] + slopes[other] * edge - OVER
                if direction < 0.0:
                    length = min(length, max(above, LONGEST) / slopes[other])
                elif above < 0.0:
                    length = min(length, LONGEST / slopes[other])
            half, added = 0.5 * length, 0.0
            middle = edge + direction * half
            for at in range(PANEL.shape[0]):
                z = middle + half * PANEL[at, 0]
                added += PANEL[at, 1] * normal_density(z) * _product(offsets, slopes, others, z)
            added *= half
            total += added
            if added <= ENOUGH * total:
                break
            edge += direction * length
            length = min(2.0 * length, LONGEST)
    return total


@inlined
def _normal_peak(offsets: Numbers, slopes: Numbers, others: int) -> tuple[float, float]:
    """Return about where the integrand is largest, and a length in which it changes there.

    The logarithm's derivative falls, ever less steeply, and is positive at 0: Newton steps approach from there.
    """
    z = 0.0
    for _ in range(50):
        rise, bend = -z, 1.0
        for other in range(others):
            u = offsets[other] + slopes[other] * z
            rate = hazard(u)
            rise += slopes[other] * rate
            bend += slopes[other] * slopes[other] * rate * (u + rate)
        z += rise / bend
        if rise * rise < 0.1 * bend:
            break
    return z, 3.0 / math.sqrt(bend)


@called
def log_largest_of_normals(centres: Numbers, roots: Numbers, arm: int) -> float:
    """Return the log of `largest_of_normals`, also where the probability is too small a number; nothing is changed."""
    offsets, slopes = centres.copy(), roots.copy()
    chance = largest_of_normals(offsets, slopes, arm)
    if chance > SMALLEST:
        return math.log(chance)
    others, steepness, lowest = 0, 0.0, math.inf
    for each in range(centres.size):
        if each != arm:
            offsets[others], slopes[others] = (centres[arm] - centres[each]) * roots[each], roots[each] / roots[arm]
            steepness += slopes[others] * slopes[others]
            lowest = min(lowest, offsets[others])
            others += 1
    if others == 1:
        return log_normal_cdf(offsets[0] / math.sqrt(1.0 + steepness))
    nodes = _nodes_of_normals(offsets, slopes, others, math.sqrt(steepness), lowest)
    largest, total = _weigh_nodes(nodes, offsets, slopes, others), 0.0
    for at in range(nodes.shape[0]):
        total += math.exp(nodes[at, 1] - largest)
    return largest + math.log(total)


@called
def _weigh_nodes(nodes: Numbers, offsets: Numbers, slopes: Numbers, others: int) -> float:
    """Add the log of the product of all factors to the nodes' log weights; return the largest."""
    largest = -math.inf
    for at in range(nodes.shape[0]):
        product = _product(offsets, slopes, others, nodes[at, 0])
        if product > 0.0:
            nodes[at, 1] += math.log(product)
        else:
            for other in range(others):
                nodes[at, 1] += log_normal_cdf(offsets[other] + slopes[other] * nodes[at, 0])
        largest = max(largest, nodes[at, 1])
    return largest


TRAPEZOID = 0.2  # the step of the rule that `expand_largest_of_normals` uses where the integrand is steep


@called
def expand_largest_of_normals(centres: Numbers, roots: Numbers, arm: int, slope: Numbers, bend: Numbers) -> float:
    """Return the log of `largest_of_normals`; fill in its gradient and negative Hessian with respect to the centres.

    With `u_k = offset_k + slope_k z` and the hazard `h(u)`, under the integrand as a density of `z` the gradient with
    respect to the offsets is `E h(u_k)`, and the Hessian `E[h(u_k) h(u_l)]` (on the diagonal `-E[u_k h(u_k)]`) minus
    the product of the gradients. Also where the probability is too small a number.
    """
    arms, others = centres.size, 0
    who, work, second = new_integers(arms, 0), new_table(4, arms, 0.0), new_table(arms, arms, 0.0)
    offsets, slopes, rates, first = work[0], work[1], work[2], work[3]
    steepness, lowest = 0.0, math.inf
    for each in range(arms):
        slope[each] = first[each] = 0.0
        for column in range(arms):
            bend[each, column] = 0.0
        offset, ratio = (centres[arm] - centres[each]) * roots[each], roots[each] / roots[arm]
        if each != arm and offset < 6.0 + 5.0 * ratio:
            who[others], offsets[others], slopes[others] = each, offset, ratio
            others += 1
            steepness += ratio * ratio
            lowest = min(lowest, offset)
    if others == 0:
        return 0.0
    if others == 1:
        scale = 1.0 / math.sqrt(1.0 + steepness)
        u = offsets[0] * scale
        rate = hazard(u)
        log_value, first[0], second[0, 0] = log_normal_cdf(u), rate * scale, -u * rate * scale * scale
    else:
        nodes = _nodes_of_normals(offsets, slopes, others, math.sqrt(steepness), lowest)
        largest, total = _weigh_nodes(nodes, offsets, slopes, others), 0.0
        for at in range(nodes.shape[0]):
            weight = math.exp(nodes[at, 1] - largest)
            total += weight
            if weight < 1e-9:
                continue
            for other in range(others):
                u = offsets[other] + slopes[other] * nodes[at, 0]
                rates[other] = hazard(u)
                first[other] += weight * rates[other]
                second[other, other] -= weight * u * rates[other]
                for before in range(other):
                    second[other, before] += weight * rates[other] * rates[before]
        log_value = largest + math.log(total)
        for other in range(others):
            first[other] /= total
            for before in range(other + 1):
                second[other, before] /= total
    for other in range(others):  # by the chain rule: offset_k = (centre_arm - centre_k) root_k
        one, scale = who[other], roots[who[other]]
        slope[one] -= first[other] * scale
        slope[arm] += first[other] * scale
        for another in range(others):
            entry = second[max(other, another), min(other, another)] - first[other] * first[another]
            entry *= -scale * roots[who[another]]
            bend[one, who[another]] += entry
            bend[one, arm] -= entry
            bend[arm, who[another]] -= entry
            bend[arm, arm] += entry
    return log_value


@called
def _nodes_of_normals(offsets: Numbers, slopes: Numbers, others: int, steepness: float, lowest: float) -> Numbers:
    """Return places and log weights, the density included: Gauss-Hermite, or a trapezoid rule around the peak."""
    if lowest > DEEPEST and steepness < STEEPNESS_OF_MANY:
        table = FEW if steepness < STEEPNESS_OF_FEW else SOME if steepness < STEEPNESS_OF_SOME else MANY
        nodes = new_table(table.shape[0], 2, 0.0)
        for at in range(table.shape[0]):
            nodes[at, 0], nodes[at, 1] = table[at, 0], math.log(table[at, 1])
        return nodes
    peak, width = _normal_peak(offsets, slopes, others)
    width /= 3.0  # z = peak + width sinh(t): to the right the integrand falls like a normal density, or faster
    left, right = -2.6, math.asinh(6.0 / width)
    number = int((right - left) / TRAPEZOID) + 2
    step = (right - left) / (number - 1)
    nodes = new_table(number, 2, 0.0)
    for at in range(number):
        t = left + at * step
        z = peak + width * math.sinh(t)
        nodes[at, 0] = z
        nodes[at, 1] = math.log(step * width * math.cosh(t)) - 0.5 * z * z - HALF_LOG_TWO_PI
    return nodes
