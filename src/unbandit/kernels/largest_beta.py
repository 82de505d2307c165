"""The probability that one of several Beta draws is the largest: the likelihood of an action of Bernoulli Thompson.

It is the integral of one density times the others' distribution functions, on the scale of log odds `y`, where a Beta
density `g(y) = x^a (1 - x)^b / B(a, b)` has one peak and a concave logarithm. Panels of Gauss-Legendre nodes are laid
wherever the integrand can differ from 0, none longer than the narrowest arms allow. Relative error below 1e-6 for
probabilities above 1e-8; see the tests.

**Tables.** All particles of a cloud share the pull counts and differ in their successes only. So each arm has a table
of densities and distribution functions: rows are the numbers of successes in use, columns the nodes of one grid. A
particle's probability is a sum over nodes of a product of entries, without a special function per particle and round. A
pull of an arm adds a failure to all its rows,

    F(a, b + 1) = F(a, b) + g(a, b) / b,        g(a, b + 1) = g(a, b) (1 - x) (a + b) / b,

and a row for one more success is `F(a + 1, b) = F(a, b) - g(a, b) / a`. A grid serves until an arm has been pulled a
given number of times; then it is laid anew, and the tables are computed from scratch. A row changes in a window of
columns alone: to the left its distribution function is 0, to the right 1.
"""

import math
from typing import NamedTuple

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, inlined
from unbandit.kernels.special import beta_cdf, log_beta

PANEL = np.column_stack(np.polynomial.legendre.leggauss(10))
LONGEST = 5.0  # the length of a panel, in deviations of the two narrowest arms that change within it, taken together
TAIL = 0.6  # its length in the exponential tail of an arm: a share of the distance from the arm's centre
DEPTH = 34.0  # what lies below `exp(-DEPTH)` counts as 0
SURE = 1.0 - 1e-11  # a larger distribution function counts as 1


class BetaTables(NamedTuple):
    """Densities and distribution functions of all arms at the nodes of one grid; the rows of an arm are consecutive."""

    x: Numbers
    rest: Numbers  # 1 - x
    weights: Numbers
    heights: Numbers  # (rows, nodes): distribution functions
    densities: Numbers  # (rows, nodes): of log odds
    begin: Integers  # per row: the first column of its window
    end: Integers  # per row: the first column after its window
    sure: Integers  # per row: the first column from which the distribution function counts as 1
    base: Integers  # per arm: its first row ...
    low: Integers  # ... and the successes of that row
    high: Integers  # successes of the arm's last row, which may be more than there are pulls as yet
    pulls: Integers
    expiry: Integers  # pulls up to which the tables serve
    successes: float  # of the prior
    failures: float


@inlined
def log_shares(y: float) -> tuple[float, float]:
    """Return `log x` and `log(1 - x)` at log odds `y`."""
    small = math.log1p(math.exp(-abs(y)))
    return (-small, -y - small) if y > 0.0 else (y - small, -small)


@inlined
def _log_density(a: float, b: float, norm: float, y: float) -> float:
    log_x, log_rest = log_shares(y)
    return a * log_x + b * log_rest - norm


@called
def _edge(a: float, b: float, direction: float) -> float:
    """Return the log odds left (-1) or right (1) of the centre of Beta(a, b) where its density has all but vanished."""
    norm, centre = log_beta(a, b), math.log(a / b)
    near, far = centre, centre + direction * 8.0 * math.sqrt(1.0 / a + 1.0 / b)
    while _log_density(a, b, norm, far) > -DEPTH:
        near, far = far, far + 2.0 * (far - centre)
    for _ in range(12):
        middle = 0.5 * (near + far)
        if _log_density(a, b, norm, middle) > -DEPTH:
            near = middle
        else:
            far = middle
    return far


@called
def _lay_panels(a_low: Numbers, b_low: Numbers, a_high: Numbers, b_high: Numbers, among: Integers) -> Numbers:
    """Return places and weights of the nodes on which arms between two Beta distributions each are integrated.

    They begin where the distribution function of some arm `among` those that are compared is 0.
    """
    arms = a_low.size
    work = np.empty((4, arms))
    first_centre, last_centre, counts, right = work[0], work[1], work[2], work[3]
    y, upper = -math.inf, -math.inf
    for arm in range(arms):
        first_centre[arm], last_centre[arm] = math.log(a_low[arm] / b_low[arm]), math.log(a_high[arm] / b_high[arm])
        counts[arm] = max(a_low[arm] + b_low[arm], a_high[arm] + b_high[arm])
        right[arm] = _edge(a_high[arm], b_high[arm], 1.0)
        upper = max(upper, right[arm])
    for arm in among:
        y = max(y, _edge(a_low[arm], b_low[arm], -1.0))  # below it, some distribution function is 0
    size, places, weights = 0, np.empty(256), np.empty(256)
    order, length = PANEL.shape[0], 1e3
    while y < upper:
        length = _panel_length(first_centre, last_centre, counts, right, y, 2.0 * length)
        if size + order > places.size:
            places, weights = np.append(places, np.empty(places.size)), np.append(weights, np.empty(weights.size))
        for at in range(order):
            places[size + at] = y + 0.5 * length * (1.0 + PANEL[at, 0])
            weights[size + at] = 0.5 * length * PANEL[at, 1]
        size += order
        y += length
    nodes = np.empty((2, size))
    for at in range(size):
        nodes[0, at], nodes[1, at] = places[at], weights[at]
    return nodes


@called
def _panel_length(
    first_centre: Numbers, last_centre: Numbers, counts: Numbers, right: Numbers, y: float, longest: float
) -> float:
    """Return how long a panel from `y` may be, at most `longest`.

    At `y`, the logarithm of a density of count `n = a + b` has the curvature `n x (1 - x)`, whatever `a` is.
    """
    length, most, second = longest, 1e-9, 0.0
    for arm in range(counts.size):
        if y < right[arm]:
            if counts[arm] > most:
                most, second = counts[arm], most
            else:
                second = max(second, counts[arm])
            away = max(y - last_centre[arm], first_centre[arm] - y)
            if away > 0.0:
                centre = last_centre[arm] if y > last_centre[arm] else first_centre[arm]
                length = min(length, LONGEST / math.sqrt(counts[arm] * _slope(centre)) + TAIL * away)
    while length * length * (most + second) * _slope(min(max(0.0, y), y + length)) > LONGEST * LONGEST:
        length *= 0.8
    return length


@inlined
def _slope(y: float) -> float:
    """Return `x (1 - x)` at log odds `y`."""
    return 1.0 / (2.0 + math.exp(y) + math.exp(-y))


@inlined
def _is_nothing(a: float, b: float, norm: float, log_x: float, log_rest: float) -> bool:
    return a * log_x + b * log_rest - norm < -DEPTH


@called
def lay_tables(
    successes: float, failures: float, pulls: Integers, low: Integers, high: Integers, growth: float, among: Integers
) -> BetaTables:
    """Return tables of Beta(successes + s, failures + n - s) for all arms, `s` from `low` to `high`.

    They serve until an arm has been pulled `2 + growth sqrt(n)` times more, and to compare the arms in `among`.
    """
    arms = pulls.size
    expiry, top, base = np.empty(arms, np.int64), np.empty(arms, np.int64), np.empty(arms, np.int64)
    ends, rows = np.empty((4, arms)), 0
    for arm in range(arms):
        more = np.int64(2.0 + growth * math.sqrt(pulls[arm])) if growth > 0.0 else np.int64(0)
        expiry[arm], top[arm], base[arm] = pulls[arm] + more, high[arm] + more, rows
        rows += top[arm] - low[arm] + 1
        ends[0, arm], ends[1, arm] = successes + low[arm], failures + expiry[arm] - low[arm]
        ends[2, arm], ends[3, arm] = successes + top[arm], failures + expiry[arm] - top[arm]
    nodes = _lay_panels(ends[0], ends[1], ends[2], ends[3], among)
    size = nodes.shape[1]
    x, rest, log_x, log_rest = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for at in range(size):
        log_x[at], log_rest[at] = log_shares(nodes[0, at])
        x[at], rest[at] = math.exp(log_x[at]), math.exp(log_rest[at])
    heights, densities = np.zeros((rows, size)), np.zeros((rows, size))
    begin, end, sure = np.zeros(rows, np.int64), np.full(rows, size), np.full(rows, size)
    for arm in range(arms):
        for count in range(top[arm], low[arm] - 1, -1):
            row, a = base[arm] + count - low[arm], successes + count
            # The window: all columns that count from now until the tables expire.
            b = failures + expiry[arm] - count
            norm, first, centre = log_beta(a, b), 0, math.log(a / b)
            while first < size and nodes[0, first] < centre and _is_nothing(a, b, norm, log_x[first], log_rest[first]):
                first += 1
            begin[row] = first
            if count > pulls[arm]:  # a row to come
                continue
            b = failures + pulls[arm] - count
            norm, last = log_beta(a, b), size
            while last > first and _is_nothing(a, b, norm, log_x[last - 1], log_rest[last - 1]):
                last -= 1
            end[row] = last
            is_first = count == min(top[arm], pulls[arm])
            for at in range(first, last):
                density = math.exp(a * log_x[at] + b * log_rest[at] - norm)
                densities[row, at] = density
                if is_first:
                    heights[row, at] = beta_cdf(a, b, norm, nodes[0, at])
                else:
                    heights[row, at] = min(heights[row + 1, at] + density / (rest[at] * a), 1.0)
                if heights[row, at] > SURE:
                    sure[row] = min(sure[row], at)
            for at in range(last, size):
                heights[row, at] = 1.0
            sure[row] = min(sure[row], last)
    return BetaTables(
        x, rest, nodes[1].copy(), heights, densities, begin, end, sure, base, low.copy(), top, pulls.copy(), expiry,
        successes, failures,
    )  # fmt: skip


@called
def pull_tables(tables: BetaTables, arm: int) -> None:
    """Move the tables of one arm on by a pull, before they expire: a failure in each row, and a row of successes."""
    heights, densities, x, rest = tables.heights, tables.densities, tables.x, tables.rest
    pulls, low, base = tables.pulls[arm], tables.low[arm], tables.base[arm]
    total = tables.successes + tables.failures + pulls
    if pulls < tables.high[arm]:
        row, a = base + pulls - low, tables.successes + pulls
        old_height, old_density, height, density = heights[row], densities[row], heights[row + 1], densities[row + 1]
        for at in range(tables.begin[row + 1], x.size):
            height[at] = max(old_height[at] - old_density[at] / a, 0.0)
            density[at] = old_density[at] * x[at] * (total / a)
    flat_heights, flat_densities, size = heights.reshape(-1), densities.reshape(-1), x.size
    for count in range(low, min(pulls, tables.high[arm]) + 1):
        row, inverse = base + count - low, 1.0 / (tables.failures + pulls - count)
        factor, first = total * inverse, tables.begin[row]
        place, offset = np.uint64(row * size + first), np.uint64(first)
        for at in range(tables.end[row] - first):
            density = flat_densities[place + np.uint64(at)]
            flat_heights[place + np.uint64(at)] += density * inverse
            flat_densities[place + np.uint64(at)] = density * rest[offset + np.uint64(at)] * factor
    tables.pulls[arm] += 1


@called
def largest_by_tables(tables: BetaTables, successes: Integers, arm: int, among: Integers, chances: Numbers) -> None:
    """Fill in for each particle the probability that an arm's draw is the largest `among` some arms, its own too.

    `successes` is (particles, arms).
    """
    size = tables.x.size
    heights, densities, weights = tables.heights.reshape(-1), tables.densities.reshape(-1), tables.weights
    begin, end, sure, product = tables.begin, tables.end, tables.sure, np.empty(size)
    base = tables.base - tables.low
    for particle in range(successes.shape[0]):
        row = base[arm] + successes[particle, arm]
        first = begin[row]
        length = end[row] - first
        place, offset = np.uint64(row * size + first), np.uint64(first)
        for at in range(length):
            product[np.uint64(at)] = weights[offset + np.uint64(at)] * densities[place + np.uint64(at)]
        for other in among:
            if other != arm:
                row = base[other] + successes[particle, other]
                place = np.uint64(row * size + first)
                for at in range(min(length, sure[row] - first)):
                    product[np.uint64(at)] *= heights[place + np.uint64(at)]
        chances[particle] = _total(product, length)


@inlined
def _total(values: Numbers, number: int) -> float:
    """Return the sum of the first values, in four parts that a processor adds at once."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = number - number % 4
    for at in range(0, whole, 4):
        first += values[np.uint64(at)]
        second += values[np.uint64(at + 1)]
        third += values[np.uint64(at + 2)]
        fourth += values[np.uint64(at + 3)]
    for at in range(whole, number):
        first += values[np.uint64(at)]
    return (first + second) + (third + fourth)


@called
def largest_of_betas(a: Numbers, b: Numbers, arm: int) -> float:
    """Return the probability that a draw from Beta(a[arm], b[arm]) is larger than one from each of the others."""
    nodes, arms = _lay_panels(a, b, a, b, np.arange(a.size)), a.size
    norms, right, total = np.empty(arms), np.empty(arms), 0.0
    for each in range(arms):
        norms[each], right[each] = log_beta(a[each], b[each]), _edge(a[each], b[each], 1.0)
    for at in range(nodes.shape[1]):
        y = nodes[0, at]
        if y < right[arm]:
            value = nodes[1, at] * math.exp(_log_density(a[arm], b[arm], norms[arm], y))
            for other in range(arms):
                if other != arm and y < right[other]:
                    value *= beta_cdf(a[other], b[other], norms[other], y)
            total += value
    return min(total, 1.0)
