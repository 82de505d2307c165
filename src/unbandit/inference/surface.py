"""The evidence of a log as a surface over some numbers of a rule: where it is computed, and the density that it leaves.

It is computed on a grid that narrows around its top. A smooth surface through the points, a quadratic trend and a
Gaussian process for what it leaves over, averages the Monte-Carlo errors; what is left of them widens the density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


def evidence_density(xs: Numbers, values: Numbers, error: float) -> tuple[Numbers, Numbers]:
    """Return places within the range of the points, and the density there, up to a factor."""
    low, high = xs.min(axis=0), xs.max(axis=0)
    count = DENSE[xs.shape[1]]
    places = np.array(list(product(*(np.linspace(*ends, count) for ends in zip(low, high, strict=True)))))
    scale = np.maximum((high - low) / 2, 1e-12)
    centre = (low + high) / 2
    mean, variance = _surface((xs - centre) / scale, values, (places - centre) / scale, error)
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
