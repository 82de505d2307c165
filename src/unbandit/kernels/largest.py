"""The probability that one of several draws is the largest: the likelihood of an action of Thompson sampling.

**Normal draws.** In units of the arm's deviation it is the integral of `density(z) * product of Phi(offset_k + slope_k
z)` over the other arms. Where the arm is the narrowest (the slopes are small), the product changes slowly and a few
Gauss-Hermite nodes are exact to many digits. Otherwise its factors are steps, and no fixed nodes will do: the integrand
is log-concave and has one peak, so panels of Gauss-Legendre nodes are laid from the peak outwards, none longer than the
narrowest arm that still changes there. Relative error below 1e-3; see the tests.

**Beta draws.** The integral of one density times the others' distribution functions, on the scale of log odds. Beta
distribution functions are expensive and densities cheap: so panels go from left to right, and the distribution
functions are carried along, each density being integrated up to every node of a panel. They are computed directly at
the first panel alone. Where the arm is by far the narrowest, five nodes and a Taylor series of every other distribution
function suffice. Adaptive quadrature of a library cannot run inside a kernel.
"""

import math

import numpy as np

from unbandit.kernels.compile import Numbers, called, inlined
from unbandit.kernels.special import (
    HALF_LOG_TWO_PI,
    beta_cdf,
    exponential,
    hazard,
    log_beta,
    log_normal_cdf,
    log_share,
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


TRAPEZOID = 0.2  # the step of the rule that `expand_largest_of_normals` uses where the integrand is steep


@called
def expand_largest_of_normals(centres: Numbers, roots: Numbers, arm: int, slope: Numbers, bend: Numbers) -> float:
    """Return the log of `largest_of_normals`; fill in its gradient and negative Hessian with respect to the centres.

    With `u_k = offset_k + slope_k z` and the hazard `h(u)`, under the integrand as a density of `z` the gradient with
    respect to the offsets is `E h(u_k)`, and the Hessian `E[h(u_k) h(u_l)]` (on the diagonal `-E[u_k h(u_k)]`) minus
    the product of the gradients. Also where the probability is too small a number.
    """
    arms, others = centres.size, 0
    who, work, second = np.empty(arms, np.int64), np.empty((4, arms)), np.zeros((arms, arms))
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
        largest, total = -math.inf, 0.0
        for at in range(nodes.shape[0]):
            product = _product(offsets, slopes, others, nodes[at, 0])
            if product > 0.0:
                nodes[at, 1] += math.log(product)
            else:
                for other in range(others):
                    nodes[at, 1] += log_normal_cdf(offsets[other] + slopes[other] * nodes[at, 0])
            largest = max(largest, nodes[at, 1])
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
        nodes = np.empty((table.shape[0], 2))
        for at in range(table.shape[0]):
            nodes[at, 0], nodes[at, 1] = table[at, 0], math.log(table[at, 1])
        return nodes
    peak, width = _normal_peak(offsets, slopes, others)
    width /= 3.0  # z = peak + width sinh(t): to the right the integrand falls like a normal density, or faster
    left, right = -2.6, math.asinh(6.0 / width)
    number = int((right - left) / TRAPEZOID) + 2
    step = (right - left) / (number - 1)
    nodes = np.empty((number, 2))
    for at in range(number):
        t = left + at * step
        z = peak + width * math.sinh(t)
        nodes[at, 0] = z
        nodes[at, 1] = math.log(step * width * math.cosh(t)) - 0.5 * z * z - HALF_LOG_TWO_PI
    return nodes


NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
BETA_LONGEST = 4.3  # the length of a panel, in deviations of the narrowest arm that changes within it
STEEPEST = 4.5  # the most by which the logarithm of another arm's density may rise in a panel
BETA_OVER = 4.0  # deviations above an arm from which on it no longer changes
BETA_DEPTH = 10.0  # the first panel begins where the integrand is below its peak by about exp(-BETA_DEPTH)
BETA_ENOUGH = 1e-4  # right of the peak, panels end where the rest is a smaller share
CERTAIN = 1.0 - 1e-5  # a larger distribution function counts as 1
NARROW = 0.2  # the largest ratio of deviations for which few nodes suffice
MOST_BETA_PANELS = 400


def _integrals() -> Numbers:
    """Return the matrix that maps a function's values at the nodes to its integrals from -1 to each node."""
    powers = np.arange(NODES.size)
    to_coefficients = np.linalg.inv(NODES[:, None] ** powers)
    return ((NODES[:, None] ** (powers + 1) - (-1.0) ** (powers + 1)) / (powers + 1)) @ to_coefficients


INTEGRALS = _integrals()


@inlined
def largest_of_betas(a: Numbers, b: Numbers, arm: int) -> float:
    """Return the probability that a draw from Beta(a[arm], b[arm]) is larger than one from each of the others."""
    arms = a.size
    work = np.empty((4, arms))
    centres, roots, norms, heights = work[0], work[1], work[2], work[3]
    widest, lowest = 0.0, math.inf
    for each in range(arms):
        centres[each] = math.log(a[each] / b[each])
        roots[each] = math.sqrt(a[each] * b[each] / (a[each] + b[each]))
        norms[each] = log_beta(a[each], b[each])
    for each in range(arms):
        if each != arm:
            widest = max(widest, roots[each])
            lowest = min(lowest, (centres[arm] - centres[each]) * roots[each])
    if roots[arm] > 5.0 and widest < NARROW * roots[arm] and lowest > -2.0:
        return _narrow_beta(a, b, norms, arm, centres[arm], 1.0 / roots[arm])
    peak = _beta_peak(a, b, centres, roots, arm)
    edge = _beginning(a, b, centres, roots, arm, peak)
    for each in range(arms):
        heights[each] = beta_cdf(a[each], b[each], norms[each], edge) if each != arm else 0.0
    return _along(a, b, centres, roots, norms, heights, arm, edge, peak)


@inlined
def _narrow_beta(a: Numbers, b: Numbers, norms: Numbers, arm: int, centre: float, deviation: float) -> float:
    """Integrate over a narrow density: the other distribution functions by a Taylor series at its middle."""
    nodes, total, certain, x = FEW.shape[0], 0.0, 0.0, 1.0 / (1.0 + math.exp(-centre))
    log_x = math.log(x)
    values = np.empty(nodes)
    for at in range(nodes):  # a normal density, corrected by the ratio of the two
        z = FEW[at, 0]
        d = deviation * z
        exponent = (a[arm] + b[arm]) * (log_share(centre + d) - log_x) - b[arm] * d + 0.5 * z * z
        values[at] = FEW[at, 1] * math.exp(exponent)
        certain += values[at]
    for other in range(a.size):
        if other != arm:
            height = beta_cdf(a[other], b[other], norms[other], centre)
            if height > CERTAIN:
                continue
            density = math.exp((a[other] + b[other]) * log_x - b[other] * centre - norms[other])
            count = (a[other] + b[other]) * x * (1.0 - x)
            rise = a[other] - (a[other] + b[other]) * x
            second, third = rise * rise - count, rise**3 - 3.0 * rise * count - count * (1.0 - 2.0 * x)
            for at in range(nodes):
                d = deviation * FEW[at, 0]
                series = 1.0 + d * (rise / 2.0 + d * (second / 6.0 + d * third / 24.0))
                values[at] *= height + density * d * series
    for at in range(nodes):
        total += values[at]
    return total / certain


@inlined
def _rise(a: Numbers, b: Numbers, centres: Numbers, roots: Numbers, arm: int, y: float) -> tuple[float, float]:
    """Return about how fast the integrand's logarithm rises at `y`, and how fast that rise falls off."""
    x = 1.0 / (1.0 + math.exp(-y))
    total = a[arm] + b[arm]
    rise, bend = a[arm] - total * x, total * x * (1.0 - x)
    for other in range(a.size):
        if other != arm:
            u = (y - centres[other]) * roots[other]
            if u < 6.0:
                rate = hazard(u)
                rise += min(rate * roots[other], a[other])
                bend += roots[other] * roots[other] * rate * (u + rate)
    return rise, bend


@inlined
def _beta_peak(a: Numbers, b: Numbers, centres: Numbers, roots: Numbers, arm: int) -> float:
    """Return about where the integrand is largest."""
    y = centres[arm]
    for _ in range(30):
        rise, bend = _rise(a, b, centres, roots, arm, y)
        y += min(max(rise / bend, -3.0), 3.0)
        if rise * rise < 0.2 * bend:
            break
    return y


@inlined
def _length(a: Numbers, b: Numbers, centres: Numbers, roots: Numbers, arm: int, y: float) -> float:
    """Return how long a panel to the right of `y` may be."""
    length, x = BETA_LONGEST / roots[arm], exponential(log_share(y))
    for each in range(roots.size):
        if (y - centres[each]) * roots[each] < BETA_OVER:
            length = min(length, BETA_LONGEST / roots[each])
            if each != arm:
                rise = a[each] - (a[each] + b[each]) * x
                length = min(length, STEEPEST / max(rise, 1e-9))
    return length


@inlined
def _beginning(a: Numbers, b: Numbers, centres: Numbers, roots: Numbers, arm: int, peak: float) -> float:
    """Go to the left of the peak until the integrand has fallen far enough."""
    y, depth, step = peak, 0.0, 0.5 * _length(a, b, centres, roots, arm, peak)
    while depth < BETA_DEPTH:
        rise, _ = _rise(a, b, centres, roots, arm, y - 0.5 * step)
        rise = max(rise, 1e-3)
        if depth + rise * step > BETA_DEPTH + 1.0:
            step *= 0.7
            continue
        depth += rise * step
        y -= step
    return y


@inlined
def _along(
    a: Numbers, b: Numbers, centres: Numbers, roots: Numbers, norms: Numbers, heights: Numbers, arm: int, edge: float,
    peak: float,
) -> float:  # fmt: skip
    """Integrate from the first panel's left edge on; `heights` are the distribution functions there."""
    nodes, total = NODES.size, 0.0
    work = np.empty((4, nodes))
    logs, places, values, densities = work[0], work[1], work[2], work[3]
    for _ in range(MOST_BETA_PANELS):
        length = _length(a, b, centres, roots, arm, edge)
        half = 0.5 * length
        for at in range(nodes):
            y = edge + half * (1.0 + NODES[at])
            places[at], logs[at] = y, log_share(y)
            values[at] = exponential((a[arm] + b[arm]) * logs[at] - b[arm] * y - norms[arm])
        for other in range(a.size):
            if other == arm or heights[other] > CERTAIN:
                continue
            for at in range(nodes):
                exponent = (a[other] + b[other]) * logs[at] - b[other] * places[at] - norms[other]
                densities[at] = half * exponential(exponent)
            added = 0.0
            for at in range(nodes):
                height = heights[other]
                for source in range(nodes):
                    height += INTEGRALS[at, source] * densities[source]
                values[at] *= min(max(height, 0.0), 1.0)
                added += WEIGHTS[at] * densities[at]
            heights[other] += added
        added = 0.0
        for at in range(nodes):
            added += WEIGHTS[at] * values[at]
        added *= half
        total += added
        edge += length
        fall = (a[arm] + b[arm]) * exponential(log_share(edge)) - a[arm]  # of the logarithm, from here on at least
        if edge > peak and values[nodes - 1] < BETA_ENOUGH * total * fall:
            break
    return min(total, 1.0)
