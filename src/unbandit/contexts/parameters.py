"""The number of a linear rule that nobody knows, fitted from a log: alpha, v, epsilon or the temperature.

The evidence on a grid of values says which are probable. The Gaussian approximation finds the part of the grid that
counts, clouds of particles compute the evidence there, and their states are mixed in proportion to it. The number is
flat beforehand in its logarithm.
"""

import math
from dataclasses import replace

import numpy as np

from unbandit.contexts.clouds import PathClouds, run_clouds
from unbandit.contexts.expectation import (
    Approximation,
    ChoiceRecord,
    approximate,
    log_rewards,
    path_of,
    readings,
    rough_evidence,
)
from unbandit.errors import NotIdentifiable
from unbandit.fit import FittedNumber
from unbandit.formatting import number
from unbandit.kernels.compile import Numbers
from unbandit.kernels.simulate_linear import GREEDY, SOFTMAX, THOMPSON, UCB

FARTHEST, CELLS = 60.0, 24  # the grid reaches so many times beyond the usual number, both ways, in so many cells
COUNTS = 9.0  # nats below the largest evidence up to which a value counts
NODES = 9  # values at which clouds compute the evidence
FEWEST = 250  # particles of a cloud at one of them
WIDER = (3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)  # times the prior's deviation
CLEARLY = 3.0  # nats by which a wider prior must explain a log better
COARSELY = 4  # of the grid of a number that is fitted, every so many


def fit_strength(
    record: ChoiceRecord, name: str, *, sigma: float, prior: float, level: float, particles: int, clouds: int,
    seed: int, threads: int | None,
) -> tuple[PathClouds, Approximation, FittedNumber]:  # fmt: skip
    """Fit a number of a rule; return clouds mixed over it, the approximation at its best value, and the number.

    Raises
    ------
    NotIdentifiable
        Where values at an end of the grid are as probable as others: the log does not show the number.
    """
    grid = _grid(record, sigma, prior)
    candidates = [
        (each, np.array([rough_evidence(replace(each, strength=value), sigma, prior) for value in grid]))
        for each in readings(record, sigma)
    ]
    record, rough = max(candidates, key=lambda candidate: candidate[1].max() - candidate[0].reluctance)
    if not np.isfinite(rough).any():
        text = f"No value of {name} explains the first choices of the log with these features."
        remedy = f"Check the rule, and that no feature is missing, or give {name} a value to see where."
        raise NotIdentifiable(text, remedy=remedy)
    counts = np.flatnonzero(rough > rough.max() - COUNTS)
    first, last = int(counts[0]), int(counts[-1])
    open_above = last == grid.size - 1 and record.kind != GREEDY
    if first == 0 or open_above:
        end = "small" if first == 0 else "large"
        text = f"The log does not show {name}: however {end} it is, the choices are about as probable."
        raise NotIdentifiable(text, remedy=f"Give {name} a value.")
    nodes = np.exp(np.linspace(math.log(grid[first - 1]), math.log(grid[min(last + 1, grid.size - 1)]), NODES))
    share = max(particles // 4, FEWEST)
    found, approximations = [], []
    for value in nodes:
        at = replace(record, strength=float(value))
        approximations.append(approximate(at, path_of(at, sigma=sigma, prior=prior)))
        found.append(run_clouds(approximations[-1], particles=share, clouds=clouds, seed=seed, threads=threads))
    evidences = np.array([each.log_evidence[0] if not any(each.died) else -math.inf for each in found])
    if not np.isfinite(evidences).any():
        text = f"No particle explains the log with these features, whatever {name} is."
        remedy = f"Check the rule, and that no feature is missing, or give {name} a value to see where."
        raise NotIdentifiable(text, remedy=remedy)
    weights = np.exp(evidences - evidences.max())
    weights /= weights.sum()
    best = int(evidences.argmax())
    return _mixed(found, weights, nodes, share, seed), approximations[best], _number(name, nodes, weights, level)


def likeliest(record: ChoiceRecord, sigma: float, prior: float) -> tuple[float, float]:
    """Return the value of a rule's number that makes a record most probable, roughly, and the log evidence.

    The usual value, and minus infinity, if the rule cannot have made the record.
    """
    grid = _grid(record, sigma, prior)
    values: dict[int, float] = {}
    places, top = range(0, grid.size, COARSELY), 0
    for _ in range(2):
        for at in (at for at in places if 0 <= at < grid.size and at not in values):
            values[at] = rough_evidence(replace(record, strength=float(grid[at])), sigma, prior)
        top = max(values, key=lambda at: values[at])
        places = range(top - COARSELY + 1, top + COARSELY)
    usual = top if math.isfinite(values[top]) else grid.size // 2
    return float(number(float(grid[usual]), 3)), values[top]


def wider_prior(record: ChoiceRecord, sigma: float, prior: float, *, fitted: bool) -> float | None:
    """Return a wider deviation of coefficients beforehand, if that makes the choices clearly more probable.

    If the rule's number is `fitted`, it may be any. None for rules whose evidence cannot be compared in this way: with
    few choices by chance, or with greedy ones, the approximation may be far off.
    """
    if record.kind not in (UCB, THOMPSON):
        return None

    def evidence(deviation: float) -> float:
        strengths = _grid(record, sigma, deviation)[::COARSELY] if fitted else np.array([record.strength])
        found = max(rough_evidence(replace(record, strength=float(each)), sigma, deviation) for each in strengths)
        return found + log_rewards(record, sigma, deviation)

    tried, values = [prior], [evidence(prior)]
    for times in WIDER:
        tried.append(times * prior)
        values.append(evidence(tried[-1]))
        if math.isfinite(values[-2]) and values[-1] <= values[-2]:
            break
    best = int(np.argmax(values))
    if not (math.isfinite(values[0]) and values[best] > values[0] + CLEARLY):
        return None
    wider = min(best + 1, len(values) - 1)  # one that is too wide does less harm than one that is too narrow
    return tried[wider if values[wider] > values[best] - CLEARLY else best]


def _grid(record: ChoiceRecord, sigma: float, prior: float) -> Numbers:
    """Return values around what is usual for a rule, evenly spaced in their logarithm."""
    scale = prior * math.sqrt(float(np.square(record.vectors).sum(axis=1).mean()))
    usual = 0.1 if record.kind == GREEDY else 0.2 * scale if record.kind == SOFTMAX else 2 * sigma
    most = 0.95 / usual if record.kind == GREEDY else FARTHEST
    return np.asarray(usual * np.exp(np.linspace(-math.log(FARTHEST), math.log(most), CELLS + 1)))


def _mixed(found: list[PathClouds], weights: Numbers, nodes: Numbers, particles: int, seed: int) -> PathClouds:
    """Mix clouds at several values in proportion to their weights."""
    generator = np.random.default_rng([seed, 9])
    alive = [at for at in range(nodes.size) if weights[at] > 0]
    clouds = min(len(found[at].states) for at in alive)
    number_of = particles * 4
    states = []
    for cloud in range(clouds):
        places = np.searchsorted(np.cumsum(weights), (np.arange(number_of) + generator.random()) / number_of)
        places = np.minimum(places, alive[-1])
        within = generator.integers(0, particles, number_of)
        states.append(np.array([found[at].states[cloud, row] for at, row in zip(places, within, strict=True)]))
        generator.shuffle(states[-1])
    by_cloud = np.array([each.evidences for each in found])
    evidences = np.logaddexp.reduce(by_cloud, axis=0) - math.log(nodes.size)
    smallest = min(found[at].effective_size for at in alive)
    return PathClouds(np.array(states), evidences, smallest, (0,) * clouds)


def _number(name: str, nodes: Numbers, weights: Numbers, level: float) -> FittedNumber:
    """Return median and central interval of the number, its density being linear between the values."""
    places = np.log(nodes)
    fine = np.linspace(places[0], places[-1], 2_000)
    logs = np.interp(fine, places, np.log(np.maximum(weights, 1e-300)))  # of the density
    cumulated = np.cumsum(np.exp(logs - logs.max()))
    ends = np.interp(np.array([0.5, 0.5 - level / 2, 0.5 + level / 2]) * cumulated[-1], cumulated, fine)
    value, low, high = (float(number(each, 4)) for each in np.exp(ends))
    return FittedNumber(name, value, low, high, "evidence of the choices")
