"""A number of an index rule fitted to a long log by simulation: how often the rule goes back and forth between arms.

Particles that predict every decision of a long log miss more of its probability than one value of a number differs from
the next. Simulations cost the same for every decision. Under each value the gaps are about those at which the pulls of
the log leave all indices equal; they are drawn around these, as nobody knows them. What counts are pulls, visits and
single visits of each arm, and changes between arms in parts of the log, as logarithms. First the value is looked for on
a grid, by how far the log's features are from simulated ones; then the value is regressed on the features of
simulations nearby, where that is linear (M. A. Beaumont, W. Zhang and D. J. Balding, 2002). What the regression leaves
over is the uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, IndexRule
from unbandit.errors import InferenceError
from unbandit.inference.predictive import offsets_over_means
from unbandit.instance import Noise
from unbandit.log import ActionLog

Numbers = NDArray[np.float64]

LONG, MOST_SIMULATED_ARMS = 10_000, 10  # rounds from which on a log is long, and arms up to which it is simulated
PARTS = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0)  # of a log, in which changes are counted
EARLY = 8  # of which part the first pulls are counted
AROUND = 0.3  # deviation of the logarithm of a gap around the one that the pulls suggest
GRIDS = ((25, 20, 10.0), (21, 24, 5.0))  # values, simulations at each, and nats below the top up to which values count
NEARBY = (500, 700)  # simulations of a regression
NEAR, SHRUNK = 3.0, 0.1  # steps of a grid by which simulations count less, and share by which features are apart
DEVIATIONS = 5.0  # to both sides, between which the next simulations are
RECENTRED = 3  # times that a regression may leave its range
UNLIKE = 10.0  # squared deviations per feature from which on a log is like no simulation
RIDGE, SLACK = 1e-6, 1e-3  # of a regression, and the weight of simulations that are far away
SIMULATIONS = sum(size * each for size, each, _ in GRIDS) + sum(NEARBY)


class SimulatedNumber(NamedTuple):
    """The number's place, and its standard deviation."""

    centre: float
    deviation: float


def is_long(log: ActionLog, rule: Demonstrator) -> bool:
    """Return whether a log is too long to predict all its decisions, so that a number is fitted in another way."""
    return isinstance(rule, IndexRule) and int(log.lengths.min()) >= LONG


def fit_by_simulation(
    log: ActionLog, rule_at: Callable[[float], IndexRule], limits: tuple[float, float], noise: Noise, horizon: int,
    seed: int, count: Callable[[], None],
) -> SimulatedNumber | None:  # fmt: skip
    """Return the place of a number, given a log's first demonstration; None where simulations do not show it.

    `rule_at` has the rule at a place; `count` is called for every simulation.

    Raises
    ------
    InferenceError
        If the log is like no simulation.
    """
    actions, arms = log.demonstration(0), len(log.arms)
    pulls, generator = log.pulls[0].astype(np.int64), np.random.default_rng([seed, 13])
    own, best = _features(actions, arms), int(pulls.argmax())
    pulled, played, own_seed = np.maximum(pulls, 1), 0, (seed + 1) * 1_000_003 % 2**31

    def simulated(places: Sequence[float]) -> Numbers:
        nonlocal played
        rows = []
        for place in places:
            rule = rule_at(place)
            offsets = offsets_over_means(rule, horizon, pulled, np.full(arms, actions.size))
            gaps = np.maximum(offsets - offsets[best], 0.0) * np.exp(AROUND * generator.standard_normal(arms))
            run = rule.demonstrate_at(
                -gaps[None], noise, horizon, length=actions.size, seed=own_seed, threads=1, first_run=played
            )
            rows.append(_features(run[0], arms))
            played += 1
            count()
        return np.array(rows)

    low, high = limits
    for size, each, below in GRIDS:
        line = np.linspace(low, high, size)
        found = simulated(np.repeat(line, each).tolist()).reshape(size, each, -1)
        fits = _suits(found, own)
        best_at, apart = int(fits.argmax()), np.flatnonzero(fits < fits.max() - below)
        first, last = (
            apart[apart < best_at].max(initial=0),
            apart[apart > best_at].min(initial=size - 1),
        )
        low, high = float(line[first]), float(line[last])
    turn, left, found_at = 0, RECENTRED, SimulatedNumber(math.nan, math.nan)
    while turn < len(NEARBY):
        places = generator.uniform(low, high, NEARBY[turn])
        off = simulated(places.tolist()) - own
        found_at = _regressed(places, off)
        outside = not low <= found_at.centre <= high
        left -= outside
        if left < 0 or not math.isfinite(found_at.deviation):
            return None
        turn += 0 if outside else 1
        reach = DEVIATIONS * found_at.deviation
        low, high = (min(max(found_at.centre + way * reach, limits[0]), limits[1]) for way in (-1, 1))
        if high <= low:
            return None
    centre, covariance = off.mean(axis=0), np.cov(off.T) + SLACK * np.eye(own.size)
    if centre @ np.linalg.solve(covariance, centre) > UNLIKE * own.size:
        raise InferenceError("the log is like no simulation.")
    return found_at


def _suits(found: Numbers, own: Numbers) -> Numbers:
    """Return how well a log suits the simulations at each place, (places, simulations, features), as a log density.

    It is normal; its covariance at a place is from simulations there and at places nearby.
    """
    off, size = found - found.mean(axis=1, keepdims=True), len(found)
    fits = np.empty(size)
    for at in range(size):
        shares = np.repeat(np.exp(-np.abs(np.arange(size) - at) / NEAR), found.shape[1])
        flat = off.reshape(-1, own.size)
        covariance = (flat * shares[:, None]).T @ flat / shares.sum() * found.shape[1] / (found.shape[1] - 1)
        covariance += np.diag(SHRUNK * np.diag(covariance) + SLACK)
        away = own - found[at].mean(axis=0)
        fits[at] = -0.5 * (away @ np.linalg.solve(covariance, away) + np.linalg.slogdet(covariance)[1])
    return fits


def _features(actions: NDArray[np.integer], arms: int) -> Numbers:
    """Return the features of a run, as logarithms."""
    changes = actions[1:] != actions[:-1]
    ends = np.round(np.array(PARTS) * changes.size).astype(np.int64)
    single = changes[:-1] & changes[1:]
    counts = [
        np.diff(np.append(0, np.cumsum(changes))[ends]),
        np.bincount(actions, minlength=arms),
        np.bincount(actions[: actions.size // EARLY], minlength=arms),
        np.bincount(actions[1:][changes], minlength=arms),
        np.bincount(actions[1:-1][single], minlength=arms),
    ]
    return np.asarray(np.log(np.concatenate(counts) + 0.5))


def _regressed(places: Numbers, off: Numbers) -> SimulatedNumber:
    """Regress places on how far features are from those of the log; simulations that suggest others count little."""
    kept = off.std(axis=0) > 1e-9
    columns = np.column_stack([np.ones(places.size), off[:, kept] / off[:, kept].std(axis=0)])
    weights, centre, deviation = np.ones(places.size), math.nan, math.nan
    for _ in range(2):
        weighed = columns * weights[:, None]
        ridge = RIDGE * places.size * np.diag([0.0] + [1.0] * int(kept.sum()))
        solved = np.linalg.solve(weighed.T @ columns + ridge, weighed.T @ places)
        expected = columns @ solved
        counted = weights.sum() ** 2 / np.square(weights).sum()
        share = max(1 - columns.shape[1] / counted, 0.1)  # what the regression left of the degrees of freedom
        deviation = math.sqrt(float(weights @ np.square(places - expected)) / weights.sum() / share)
        centre = float(solved[0])
        weights = np.exp(-0.5 * np.square((expected - centre) / (3 * deviation))) + SLACK
    return SimulatedNumber(centre, deviation)
