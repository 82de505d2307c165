"""How likely is one of several normal draws to be the largest? What Thompson sampling is weighed by.

In units of the arm's own deviation it is the integral of `density(z) * product of Phi(offset_k + slope_k z)` over the
others. Where the arm is the narrowest (the slopes are small), the product changes slowly and a few Gauss-Hermite nodes
are exact to many digits. Otherwise its factors are steps, and no fixed nodes will do: the integrand has one peak (it is
log-concave), so panels of Gauss-Legendre nodes are laid from the peak outwards, none longer than the narrowest arm that
still changes there. Relative error below 1e-3 everywhere; see the tests.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined
from unbandit.kernels.normal import hazard, normal_cdf, normal_density

__all__ = ["largest_of_normals"]


def _hermite(nodes: int) -> NDArray[np.float64]:
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return np.column_stack([points, weights / weights.sum()])


FEW, SOME, MANY = _hermite(5), _hermite(7), _hermite(12)
STEEPNESS_OF_FEW, STEEPNESS_OF_SOME, STEEPNESS_OF_MANY = 0.2, 0.4, 0.8  # the largest slopes that they serve
DEEPEST = -3.5  # below this offset the integrand's peak is too far from the nodes' middle

PANEL = np.column_stack(np.polynomial.legendre.leggauss(5))
LONGEST = 4.0  # the length of a panel, in deviations of the narrowest arm that changes within it
OVER = 3.0  # so many deviations above an arm its factor is 1 for all that matters
ENOUGH = 3e-4  # a panel that adds a smaller share is the last
MOST_PANELS = 200


@inlined
def largest_of_normals(centres: NDArray[np.float64], roots: NDArray[np.float64], arm: int) -> float:
    """Return the probability that arm `arm`'s draw is the largest; the arrays are used up.

    Parameters
    ----------
    centres, roots
        Each arm's mean, and one over its deviation.
    """
    centre, deviation, others = centres[arm], 1.0 / roots[arm], 0
    steepness, lowest = 0.0, math.inf
    for other in range(centres.size):
        if other == arm:
            continue
        offset, slope = (centre - centres[other]) * roots[other], deviation * roots[other]
        if offset < 6.0 + 5.0 * slope:  # the others lie out of reach
            centres[others], roots[others] = offset, slope  # never ahead of what is still to be read
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
def _product(offsets: NDArray[np.float64], slopes: NDArray[np.float64], others: int, z: float) -> float:
    product = 1.0
    for other in range(others):
        product *= normal_cdf(offsets[other] + slopes[other] * z)
    return product


@inlined
def _at_nodes(
    offsets: NDArray[np.float64], slopes: NDArray[np.float64], others: int, nodes: NDArray[np.float64]
) -> float:
    total = 0.0
    for at in range(nodes.shape[0]):
        total += nodes[at, 1] * _product(offsets, slopes, others, nodes[at, 0])
    return total


@inlined
def _in_panels(offsets: NDArray[np.float64], slopes: NDArray[np.float64], others: int) -> float:
    """Lay panels to the right and to the left of the peak, until they add nothing."""
    peak, width = _peak(offsets, slopes, others)
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
def _peak(offsets: NDArray[np.float64], slopes: NDArray[np.float64], others: int) -> tuple[float, float]:
    """Return about where the integrand is largest, and a length in which it changes there.

    The logarithm's derivative falls, ever less steeply, and is positive at 0: Newton's steps approach from there.
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
