"""The evidence of a log as a surface over some numbers of a rule: where it is computed, and the density that it leaves.

Of one number it is computed on a grid that narrows around its top. A smooth curve through the points, a quadratic
trend and a Gaussian process for what it leaves over, averages the Monte-Carlo errors; what is left of them widens the
density.
Of two numbers it is computed in cells that are smaller where more of the evidence is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator

from unbandit.checks import in_threads

Numbers = NDArray[np.float64]

CLOUDS = 3  # of an evidence near the top; their differences show the Monte-Carlo error
ROUNDS = 5  # grids after the first, at most
ALONE = 3  # lines in turn around a single place that explains the log, after which no closer one is tried
WINDOW, LEAST = 8.0, 25.0  # nats below the top, up to which values count, and to which smaller ones are cut
DENSE, WITHIN = 401, 5  # places along one number at which its density is known, and along each side of a cell of two
MOST_VARIANCE = 1.0  # of the surface, as far as it widens the density
LENGTHS, AMPLITUDES, ERRORS = (0.4, 0.8, 1.6), (0.05, 0.5, 2.0, 8.0, 20.0), (1.0, 1.5, 2.5)
"""Lengths and sizes of what is left over the trend, and factors of the Monte-Carlo error: the likeliest are taken."""
LEAST_ERROR = 0.03  # of a log evidence
FIRST, MOST_CELLS = 8, 400  # cells along each of two numbers at first, and of all, at most
HEAVY = 0.06  # share of the evidence from which on a cell is cut
NOTABLE = 0.01  # and from which on larger cells beside it are
TURNS, REACH = 3, 6.0  # surveys along principal axes, at most, and the deviations to which they go
NEAR, FEWEST_NEAR = 5.0, 15  # nats below the top of cells that show its shape, and how many must
NEIGHBOURS = 30  # cells that a place between them is interpolated from
STENCIL = np.array(list(product((-1.0, 0.0, 1.0), repeat=2)))  # nine cells in place of one; the fifth has its centre
MIDDLE = 4
MOST_OF_IT = 0.98  # of the weight, among which places are chosen
FLAT, FARTHEST = (100.0, 1.0, 0.3), 4.0  # deviations beforehand of a correction's terms, and where it ends


def narrowed(
    evidence: Callable[[Numbers, int], float], known: Mapping[tuple[float, ...], float], line: Numbers, fine: int,
    enough: int, again: Callable[[dict[tuple[float, ...], float]], None] | None = None, threads: int = 1,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """Compute the evidence of one number at the places of a line, and on narrower ones around its top.

    `known` has what was computed before, at least the ends. Lines have about `fine` places, and are not narrowed any
    further after `enough` of them lie near the top; `again` corrects the first one. Returns all places between the
    outermost ones within the window below the top, (places, 1), and their log evidences; none where no place explains
    the log. Where lines
    around a single known place that explains it find no other, none closer by is tried.
    """
    values, alone = dict(known), 0
    for turn in range(ROUNDS + 1):
        new = [(x,) for x in sorted(line.tolist(), key=lambda x: abs(x - line.mean())) if (x,) not in values]
        found = of_places(evidence, [np.array(x) for x in new], 1 if turn == 0 else CLOUDS, threads)
        values.update(zip(new, found, strict=True))
        if turn == 0 and again is not None:
            again(values)
        top = max(values.values())
        if top == -math.inf:
            return np.empty((0, 1)), np.empty(0)
        near = [x for (x,), value in values.items() if value > top - WINDOW]
        least, most = min(near), max(near)
        alone += sum(value > -math.inf for value in values.values()) == 1
        if turn == ROUNDS or (known and alone == ALONE) or ((turn > 0 or known) and len(near) >= enough):
            break
        low = max((x for (x,) in values if x < least), default=least)
        high = min((x for (x,) in values if x > most), default=most)
        count = fine + turn % 2  # other places where the ends are the same
        line = np.linspace(low, high, count + 2)[1:-1]
    within = [x for x in values if least <= x[0] <= most]
    return np.array(within), np.array([max(values[x], top - LEAST) for x in within])


class Cells(NamedTuple):
    """Parallelograms that fill a range of two numbers, smaller where more of the evidence is."""

    centres: Numbers  # (cells, 2), in steps along both ways
    halves: Numbers  # half of each side, likewise
    values: Numbers  # log evidences at the centres
    origin: Numbers
    ways: Numbers  # (ways, numbers)
    complete: bool = True  # whether no cell has so much of the evidence that it should be cut further

    @property
    def places(self) -> Numbers:
        """Return the centres as numbers."""
        return np.asarray(self.origin + self.centres @ self.ways)

    @property
    def shares(self) -> Numbers:
        """Return about how much of the evidence each cell has."""
        mass = np.exp(self.values - self.values.max()) * self.halves.prod(axis=1)
        return np.asarray(mass / mass.sum())

    @property
    def on_the_edge(self) -> float:
        """Return how much of the evidence is in cells at the edge of the range."""
        ends = np.abs(self.centres) + self.halves
        return float(self.shares[(ends > ends.max(axis=0) - 1e-9).any(axis=1)].sum())


def surveyed(
    evidence: Callable[[Numbers, int], float], lows: Numbers, highs: Numbers,
    again: Callable[[dict[tuple[float, ...], float]], None] | None = None, threads: int = 1,
) -> Cells | None:  # fmt: skip
    """Compute the evidence of two numbers over their whole range, and more closely where more of it is.

    Numbers that make up for each other lie on a narrow, bent ridge that may reach the end of the range. So there is no
    search for a top: cells that have much of the evidence are cut into nine, and so are larger ones that touch those
    that have some, so that a ridge is followed from cell to cell. A ridge that is too narrow for that is surveyed again
    along the principal axes of what was found. `again` corrects the first cells. None where no place explains the log.
    """
    found = _cut(evidence, (lows + highs) / 2, np.diag((highs - lows) / 2), again, threads)
    for _ in range(TURNS):
        if found is None or found.complete:
            break
        centre, ways = principal_axes(found.places, found.shares)
        least = np.sqrt(np.square(found.halves @ found.ways).sum(axis=1).min())
        lengths = np.sqrt(np.square(ways).sum(axis=1, keepdims=True))
        ways = ways * REACH * np.maximum(lengths, least) / np.maximum(lengths, 1e-12)

        def within(x: Numbers, clouds: int) -> float:
            return evidence(x, clouds) if (lows <= x).all() and (x <= highs).all() else -math.inf

        turned = _cut(within, centre, ways, None, threads)
        found = turned._replace(complete=turned.complete and turned.on_the_edge < NOTABLE) if turned else None
    return found


def _cut(
    evidence: Callable[[Numbers, int], float], origin: Numbers, ways: Numbers,
    again: Callable[[dict[tuple[float, ...], float]], None] | None, threads: int,
) -> Cells | None:  # fmt: skip
    """Fill the range from -1 to 1 along both ways with cells, and cut those that have much of the evidence."""
    half = np.full(2, 1 / FIRST)
    centres = half * (2 * np.array(list(product(range(FIRST), repeat=2))) + 1) - 1
    places = list(origin + centres @ ways)
    known = dict(zip(map(tuple, np.array(places).tolist()), of_places(evidence, places, 1, threads), strict=True))
    if again is not None:
        again(known)
    cells = Cells(centres, np.tile(half, (len(centres), 1)), np.array(list(known.values())), origin, ways)
    while True:
        if cells.values.max() == -math.inf:
            return None
        shares = cells.shares
        cut = shares > HEAVY
        if not cut.any() and (cells.values > cells.values.max() - NEAR).sum() < FEWEST_NEAR:
            cut = shares == shares.max()
        for one in np.flatnonzero(shares > NOTABLE):
            apart = np.abs(cells.centres - cells.centres[one]) / (cells.halves + cells.halves[one])
            cut |= (apart < 1.01).all(axis=1) & (cells.halves[:, 0] > 1.5 * cells.halves[one, 0])
        if not cut.any():
            return cells
        left = (MOST_CELLS - len(cells.values)) // (len(STENCIL) - 1)
        if left < 1:
            return cells._replace(complete=False)
        cut[np.flatnonzero(cut)[np.argsort(-shares[cut], kind="stable")[left:]]] = False
        smaller = cells.halves[cut] / 3
        around = (cells.centres[cut][:, None] + 2 * STENCIL * smaller[:, None]).reshape(-1, 2)
        found = np.repeat(cells.values[cut], len(STENCIL))
        new = np.flatnonzero(np.arange(len(found)) % len(STENCIL) != MIDDLE)
        found[new] = of_places(evidence, list((origin + around @ ways)[new]), CLOUDS, threads)
        cells = cells._replace(
            centres=np.vstack([cells.centres[~cut], around]),
            halves=np.vstack([cells.halves[~cut], np.repeat(smaller, len(STENCIL), axis=0)]),
            values=np.concatenate([cells.values[~cut], found]),
        )


def of_places(
    evidence: Callable[[Numbers, int], float], places: Iterable[Numbers], clouds: int, threads: int
) -> list[float]:
    """Compute the evidence of places that do not depend on each other."""
    return in_threads(evidence, [(each, clouds) for each in places], threads)


def cell_masses(
    cells: Cells, limits: tuple[Numbers, Numbers], correction: Correction | None = None
) -> tuple[Numbers, Numbers]:
    """Return places within the cells that have nearly all of the evidence, and how much each has, up to a factor.

    Between their centres the log evidence is a smooth function through those nearby. A correction is added to it.
    Places beyond the limits of the numbers are left out.
    """
    inside = cells.values > cells.values.max() - WINDOW
    offsets = np.array(list(product((np.arange(WITHIN) + 0.5) * 2 / WITHIN - 1, repeat=2)))
    at = (cells.centres[inside][:, None] + offsets * cells.halves[inside][:, None]).reshape(-1, 2)
    areas = np.repeat(cells.halves[inside].prod(axis=1), len(offsets))
    places = cells.origin + at @ cells.ways
    possible = ((limits[0] <= places) & (places <= limits[1])).all(axis=1)
    at, areas, places = at[possible], areas[possible], places[possible]
    floor = cells.values.max() - LEAST
    between = RBFInterpolator(cells.centres, np.maximum(cells.values, floor), neighbors=NEIGHBOURS, kernel="cubic")
    return places, _widened(places, between(at) + np.log(areas), np.zeros(len(places)), correction)


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
    xs: Numbers, values: Numbers, error: float, correction: Correction | None = None
) -> tuple[Numbers, Numbers]:
    """Return places within the range of the points of one number, and the density there, up to a factor.

    A correction is added to the log evidences.
    """
    low, high = xs.min(), xs.max()
    places = np.linspace(low, high, DENSE)[:, None]
    centre, half = (low + high) / 2, max((high - low) / 2, 1e-12)
    mean, variance = _surface((xs - centre) / half, values, (places - centre) / half, error)
    return places, _widened(places, mean, variance, correction)


def _widened(places: Numbers, mean: Numbers, variance: Numbers, correction: Correction | None) -> Numbers:
    """Return the density that log evidences with errors leave, up to a factor."""
    if correction is not None:
        more, uncertain = correction(places)
        mean, variance = mean + more, variance + uncertain
    log_density = mean + np.minimum(variance, MOST_VARIANCE) / 2
    return np.asarray(np.exp(log_density - log_density.max()))


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


def spread_out(places: Numbers, weights: Numbers, count: int) -> Numbers:
    """Return some places, apart from each other, among those that together have nearly all of the weight."""
    order = np.argsort(-weights)
    probable = order[np.cumsum(weights[order]) - weights[order] < MOST_OF_IT]
    at = places[probable] @ np.linalg.pinv(principal_axes(places, weights)[1])
    chosen = [int(np.square(at - weights[probable] @ at / weights[probable].sum()).sum(axis=1).argmin())]
    while len(chosen) < min(count, len(at)):
        apart = np.square(at[:, None] - at[chosen]).sum(axis=2).min(axis=1)
        chosen.append(int(apart.argmax()))
    return np.asarray(places[probable[chosen]])
