"""The evidence of a log as a surface over some numbers of a rule: where it is computed, and the density that it leaves.

It is computed on a grid that narrows around its top; of two numbers, along the principal axes of what lies near the
top. A smooth surface through the points, a quadratic trend and a Gaussian process for what it leaves over, averages the
Monte-Carlo errors; what is left of them widens the density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

CLOUDS = 3  # of an evidence near the top; their differences show the Monte-Carlo error
ROUNDS = 5  # grids after the first, at most
WINDOW, LEAST = 8.0, 25.0  # nats below the top, up to which values count, and to which smaller ones are cut
DENSE = {1: 401, 2: 61}  # places along each number at which the density is known
MOST_VARIANCE = 1.0  # of the surface, as far as it widens the density
LENGTHS, AMPLITUDES, ERRORS = (0.4, 0.8, 1.6), (0.05, 0.5, 2.0, 8.0, 20.0), (1.0, 1.5, 2.5)
"""Lengths and sizes of what is left over the trend, and factors of the Monte-Carlo error: the likeliest are taken."""
LEAST_ERROR = 0.03  # of a log evidence
FAR, FEWEST_NEAR = 12.0, 9  # nats below the top of values that show its shape, and how many must
FLATTEST = 0.5  # bend of the evidence over half of their range, below which there is no top
REACH = 4.2  # deviations to which the density of two numbers goes
MOST_STEPS = 14  # towards a top, and around it
STENCIL = np.array(list(product((-1.0, 0.0, 1.0), repeat=2)))
LAID = np.array([(x, y) for x, y in product((-3.2, -1.6, 0.0, 1.6, 3.2), repeat=2) if abs(x) + abs(y) < 6])
"""Places around the best one, in steps, and around a top, in deviations along its principal axes."""
FLAT, FARTHEST = (100.0, 1.0, 0.3), 4.0  # deviations beforehand of a correction's terms, and where it ends


def narrowed(
    evidence: Callable[[Numbers, int], float], known: Mapping[tuple[float, ...], float], lines: Sequence[Numbers],
    fine: int, enough: int, again: Callable[[dict[tuple[float, ...], float]], None] | None = None,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """Compute the evidence on a grid, given by its lines along each number, and on narrower ones around its top.

    `known` has what was computed before, at least the ends. Grids have about `fine` places along each number, and are
    not narrowed any further after `enough` of them lie near the top; `again` corrects the first one. Returns all places
    in the smallest box that has those within the window below the top, and their log evidences; none where no place
    explains the log.
    """
    values, free = dict(known), len(lines)
    for turn in range(ROUNDS + 1):
        centre = np.array([line.mean() for line in lines])
        for x in sorted(product(*lines), key=lambda x: float(np.abs(np.array(x) - centre).sum())):
            if x not in values:
                values[x] = evidence(np.array(x), 1 if turn == 0 else CLOUDS)
        if turn == 0 and again is not None:
            again(values)
        top = max(values.values())
        if top == -math.inf:
            return np.empty((0, free)), np.empty(0)
        near = np.array([x for x, value in values.items() if value > top - WINDOW])
        if turn == ROUNDS or ((turn > 0 or known) and len(near) >= enough):
            break
        ends = []
        for at in range(free):
            tried = np.unique([x[at] for x in values])
            below, above = tried[tried < near[:, at].min()], tried[tried > near[:, at].max()]
            low = below[-1] if below.size else near[:, at].min()
            high = above[0] if above.size else near[:, at].max()
            ends.append((low, high))
        count = fine + turn % 2  # other places where the ends are the same
        lines = [np.linspace(low, high, count + 2)[1:-1] for low, high in ends]
    within = [x for x in values if (near.min(axis=0) <= np.array(x)).all() and (np.array(x) <= near.max(axis=0)).all()]
    return np.array(within), np.array([max(values[x], top - LEAST) for x in within])


def surveyed(
    evidence: Callable[[Numbers, int], float], lines: Sequence[Numbers],
    again: Callable[[dict[tuple[float, ...], float]], None] | None = None,
) -> tuple[Numbers, Numbers] | None:  # fmt: skip
    """Compute the evidence of two numbers along the principal axes of what lies near its top.

    Numbers that make up for each other lie near the top on a narrow ridge, of which a grid along the numbers themselves
    sees little. After a coarse grid, smaller and smaller steps are tried around its best place; once a quadratic
    function through what is near the top has a top itself, places are laid around it. `again` corrects the first grid.
    Returns places and their log evidences; None where there is no such top, or no place explains the log.
    """
    lows, highs = (np.array([line[at] for line in lines]) for at in (0, -1))
    values = {x: evidence(np.array(x), 1) for x in product(*lines)}
    if again is not None:
        again(values)
    step, before = np.array([line[1] - line[0] for line in lines]) / 2, None
    for _ in range(MOST_STEPS):
        xs, found = np.array(list(values)), np.array(list(values.values()))
        if found.max() == -math.inf:
            return None
        shape = _top(xs, found, lows, highs)
        if before is not None and shape is not None and _alike(before, shape):
            near = found > found.max() - FAR
            return xs[near], found[near]
        around, ways = (xs[found.argmax()], np.diag(step)) if shape is None else shape
        offsets = STENCIL if shape is None else LAID
        for place in np.clip(around + offsets @ ways, lows, highs):
            if (x := tuple(place.tolist())) not in values:
                values[x] = evidence(place, CLOUDS)
        if shape is None and (around == np.array(max(values, key=lambda x: values[x]))).all():
            step = step / 2
        before = shape
    return None


def _top(xs: Numbers, values: Numbers, lows: Numbers, highs: Numbers) -> tuple[Numbers, Numbers] | None:
    """Return the top of a quadratic function through what is near the best place, and a deviation along each axis."""
    near = values > values.max() - FAR
    scale = np.maximum(np.ptp(xs[near], axis=0) / 2, 1e-12)
    terms = quadratic_terms((xs[near] - xs[values.argmax()]) / scale)
    if len(terms) < FEWEST_NEAR or np.linalg.matrix_rank(terms) < terms.shape[1]:
        return None
    weight = np.exp((values[near] - values.max()) / FAR)
    _, first, second, *bends = np.linalg.lstsq(terms * weight[:, None], values[near] * weight, rcond=None)[0]
    precision = -np.array([[2 * bends[0], bends[1]], [bends[1], 2 * bends[2]]])
    if np.linalg.eigvalsh(precision).min() <= FLATTEST:
        return None
    covariance = np.linalg.inv(precision)
    offset = covariance @ [first, second]
    if (np.abs(offset) > 2).any():
        return None
    lengths, vectors = np.linalg.eigh(covariance * np.outer(scale, scale))
    return np.clip(xs[values.argmax()] + offset * scale, lows, highs), (vectors * np.sqrt(lengths)).T


def _alike(one: tuple[Numbers, Numbers], other: tuple[Numbers, Numbers]) -> bool:
    """Return whether two tops are at about the same place, and about as wide."""
    inverse = np.linalg.inv(one[1])
    ratios = np.linalg.eigvalsh(inverse.T @ other[1].T @ other[1] @ inverse)
    away = np.abs((other[0] - one[0]) @ inverse).max()
    return bool(away < 0.75 and ratios.min() > 0.5 and ratios.max() < 2)


@dataclass(frozen=True, eq=False)
class Correction:
    """By how much log evidences are to be raised: a quadratic function, little bent, through a few differences."""

    centre: Numbers
    ways: Numbers  # a deviation along each principal axis, (axes, numbers)
    coefficients: Numbers
    covariance: Numbers
    left: float  # of the differences around it, the root of their mean square

    @classmethod
    def fitted(cls, centre: Numbers, ways: Numbers, at: Numbers, differences: Numbers, error: float) -> Correction:
        """Fit it to differences with errors: its slopes and bends are small beforehand."""
        empty = np.zeros(0)
        terms = cls(centre, ways, empty, empty, 0.0)._terms(at)
        free = at.shape[1]
        loose = np.array([FLAT[0], *[FLAT[1]] * free, *[FLAT[2]] * (terms.shape[1] - 1 - free)])
        covariance: Numbers = np.linalg.inv(terms.T @ terms / error**2 + np.diag(loose**-2.0)).astype(np.float64)
        coefficients = covariance @ terms.T @ differences / error**2
        left = math.sqrt(float(np.mean(np.square(differences - terms @ coefficients))))
        return cls(centre, ways, coefficients, covariance, left)

    def __call__(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """Return the correction at some places, and its variance."""
        terms = self._terms(places)
        return terms @ self.coefficients, np.einsum("ij,jk,ik->i", terms, self.covariance, terms)

    def _terms(self, places: Numbers) -> Numbers:
        lengths = np.maximum(np.square(self.ways).sum(axis=1), 1e-24)
        deviations = (places - self.centre) @ self.ways.T / lengths
        return quadratic_terms(np.clip(deviations, -FARTHEST, FARTHEST))


def evidence_density(
    xs: Numbers, values: Numbers, error: float, limits: tuple[Numbers, Numbers] | None = None,
    correction: Correction | None = None,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """Return places within the range of the points, and the density there, up to a factor.

    Of two numbers whose evidence has a top, places are around that, within the limits of the numbers. A correction is
    added to the log evidences.
    """
    low, high = xs.min(axis=0), xs.max(axis=0)
    centre, ways = (low + high) / 2, np.diag(np.maximum((high - low) / 2, 1e-12))
    shape = None if limits is None or xs.shape[1] == 1 else _top(xs, values, *limits)
    if shape is not None:
        centre, ways = shape[0], shape[1] * REACH
    count = DENSE[xs.shape[1]]
    places = centre + np.array(list(product(np.linspace(-1, 1, count), repeat=xs.shape[1]))) @ ways
    if shape is not None and limits is not None:
        places = places[((limits[0] <= places) & (places <= limits[1])).all(axis=1)]
    inverse = np.linalg.inv(ways)
    mean, variance = _surface((xs - centre) @ inverse, values, (places - centre) @ inverse, error)
    if correction is not None:
        more, uncertain = correction(places)
        mean, variance = mean + more, variance + uncertain
    log_density = mean + np.minimum(variance, MOST_VARIANCE) / 2
    return places, np.exp(log_density - log_density.max())


def _surface(at: Numbers, values: Numbers, places: Numbers, error: float) -> tuple[Numbers, Numbers]:
    """Return the mean and the variance of a smooth function at some places, given its values with errors at others.

    Errors are at least as large as clouds differ by (`error`): by the values alone, a few errors pass for a narrow top.

    Universal kriging: a quadratic trend and a Gaussian process, whose sizes maximise the restricted likelihood.
    """
    best, answer = -math.inf, (np.zeros(len(places)), np.zeros(len(places)))
    trend, elsewhere = quadratic_terms(at), quadratic_terms(places)
    apart = np.square(at[:, None] - at[None]).sum(axis=2)
    across = np.square(places[:, None] - at[None]).sum(axis=2)
    errors = [max(error, LEAST_ERROR) * factor for factor in ERRORS]
    for length, amplitude, error in product(LENGTHS, AMPLITUDES, errors):
        kernel = amplitude**2 * np.exp(-apart / (2 * length**2))
        factor = np.linalg.cholesky(kernel + error**2 * np.eye(len(at)))
        solved = np.linalg.solve(factor, np.column_stack([trend, values]))
        design, target = solved[:, :-1], solved[:, -1]
        information = design.T @ design
        coefficients = np.linalg.solve(information, design.T @ target)
        left = target - design @ coefficients
        likelihood = -np.log(np.diag(factor)).sum() - np.linalg.slogdet(information)[1] / 2 - left @ left / 2
        if likelihood > best:
            best = likelihood
            near = amplitude**2 * np.exp(-across / (2 * length**2))
            reach = np.linalg.solve(factor, near.T)
            rest = elsewhere - reach.T @ design
            mean = elsewhere @ coefficients + reach.T @ left
            spread = np.einsum("ij,ji->i", rest, np.linalg.solve(information, rest.T))
            answer = mean, np.maximum(amplitude**2 - np.square(reach).sum(axis=0), 0.0) + spread
    return answer


def quadratic_terms(at: Numbers) -> Numbers:
    """Return the terms of a quadratic function."""
    free = at.shape[1]
    products = [at[:, one] * at[:, other] for one in range(free) for other in range(one, free)]
    return np.column_stack([np.ones(len(at)), at, *products])


def spread_quantiles(x: Numbers, weights: Numbers, count: int) -> Numbers:
    """Return equally likely places that have together the mean and the deviation of all: quantiles, a little apart."""
    points = np.array([quantile(x, weights, (at + 0.5) / count) for at in range(count)])
    deviation = math.sqrt(float(weights @ np.square(x - weights @ x)))
    return np.asarray(points.mean() + (points - points.mean()) * deviation / max(float(points.std()), 1e-12))


def quantile(x: Numbers, weights: Numbers, share: float) -> float:
    """Return a quantile of places with weights."""
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share, below, x[order]))


def principal_axes(places: Numbers, weights: Numbers) -> tuple[Numbers, Numbers]:
    """Return the mean of places with weights, and one deviation along each of their principal axes, (axes, numbers)."""
    centre = weights @ places
    offsets = places - centre
    values, vectors = np.linalg.eigh((weights[:, None] * offsets).T @ offsets)
    return centre, np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)
