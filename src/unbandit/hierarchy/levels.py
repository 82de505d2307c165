"""Two levels: every participant's parameters are draws from a normal population, whose centre and spread are not known.

The participants are independent given the population. Each one's parameters are summed out over the nodes of the grid,
so that only centres and spreads are left to draw: by importance sampling from a heavy-tailed distribution around their
mode, which is fitted again to its own draws. Participants follow exactly, given each draw of the population.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from unbandit.hierarchy.likelihood import SMALLEST_SPREAD, FreeParameter, Numbers, node_grid

SPREAD = 1.0  # scale of the half-normal prior on a spread
TAILS = 5  # degrees of freedom of the distribution that populations are drawn from
ROUNDS, TRIED, DRAWS = 4, 2_000, 4_000  # times that it is fitted again, draws in each, and draws that are kept
CHUNK = 250  # draws whose sums over the grid are in memory at a time
WIDER = 1.3  # times the deviations of the draws before


@dataclass(frozen=True, eq=False)
class PopulationDraws:
    """Draws of the population, and of every participant's parameters, on the parameters' scales."""

    centre: Numbers  # (draws, parameters)
    spread: Numbers  # (draws, parameters)
    people: Numbers  # (draws, participants, parameters)
    alone: Numbers  # (draws, participants, parameters): given each participant's choices alone
    effective_size: float  # of the weighted draws of the population
    log_evidence: float  # of all choices, the population being unknown
    values: Numbers | None = None  # the arms' means, where participants share them: (draws, arms)


class States(NamedTuple):
    """Weighted draws, made equally probable, of a density that is known up to a constant."""

    drawn: Numbers
    effective_size: float
    log_mass: float  # logarithm of the density's integral


def draw_states(
    log_density: Callable[[Numbers], Numbers], mode: Numbers, covariance: Numbers, generator: np.random.Generator
) -> States:
    """Draw by importance sampling from a heavy-tailed distribution that is fitted to its own draws."""

    def weighted(number: int) -> tuple[Numbers, Numbers, float]:
        proposal = multivariate_t(mode, covariance, df=TAILS)
        states = proposal.rvs(number, random_state=generator).reshape(number, -1)
        log_weights = log_density(states) - proposal.logpdf(states)
        total = logsumexp(log_weights)
        return states, np.exp(log_weights - total), float(total - np.log(number))

    for _ in range(ROUNDS):
        states, weights, _ = weighted(TRIED)
        mode = weights @ states
        off = states - mode
        covariance = (off * weights[:, None]).T @ off * WIDER**2 + 1e-6 * np.eye(mode.size)
    states, weights, log_mass = weighted(2 * DRAWS)
    places = (np.arange(DRAWS) + generator.random()) / DRAWS
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)
    size = float(1 / np.square(weights).sum())
    return States(states[generator.permutation(chosen)], size, log_mass)


class Hierarchy:
    """The participants' likelihoods on the nodes of one grid.

    Parameters
    ----------
    tables
        The logarithm of each participant's likelihood at the nodes: (participants, nodes of each parameter).
    parameters
        What they are.
    """

    def __init__(self, tables: Numbers | Sequence[Numbers], parameters: Sequence[FreeParameter]) -> None:
        tables, nodes = np.array(tables), node_grid(parameters)
        flat = tables.reshape(len(tables), -1)
        self.largest = flat.max(axis=1)
        self._likelihood = np.exp(tables - flat.max(axis=1).reshape(-1, *[1] * len(nodes)))
        if len(nodes) == 1:  # a second parameter with a single node
            self._likelihood = self._likelihood[:, :, None]
        self._nodes, self._parameters = tuple(nodes), tuple(parameters)
        self._steps = np.array([each[1] - each[0] for each in nodes])
        self._low = np.log(SMALLEST_SPREAD * self._steps)  # below it no spread is drawn

    def draw(self, seed: int) -> PopulationDraws:
        """Draw populations and participants."""
        generator = np.random.default_rng([seed, 11])
        states = self._populations(generator)
        together, alone = self._people(states.drawn, generator), self._alone(len(states.drawn), generator)
        d = len(self._nodes)
        centre, spread = states.drawn[:, :d], np.exp(states.drawn[:, d:])
        return PopulationDraws(centre, spread, together, alone, states.effective_size, self._evidence_of(states))

    def _alone(self, number: int, generator: np.random.Generator) -> Numbers:
        """Draw every participant's parameters given the own choices alone, without a population."""
        usual = np.array([each.usual for each in self._parameters])
        broad = np.concatenate([usual[:, 0], np.log(np.hypot(usual[:, 1], SPREAD))])
        return self._people(np.tile(broad, (number, 1)), generator)

    def only(self, asked: Sequence[int]) -> Hierarchy:
        """Return some of the participants."""
        found = copy(self)
        found._likelihood, found.largest = self._likelihood[list(asked)], self.largest[list(asked)]
        return found

    def log_evidence(self, seed: int) -> float:
        """Return the log evidence of all choices, the population being unknown."""
        return self._evidence_of(self._populations(np.random.default_rng([seed, 11])))

    def _evidence_of(self, states: States) -> float:
        """Return the log evidence of all choices, given draws of the population."""
        # what the density leaves out: of a normal prior on each centre, and of a half-normal one on each spread
        constants = sum(-np.log(np.pi * SPREAD * each.usual[1]) for each in self._parameters)
        return float(states.log_mass + constants + self.largest.sum())

    # The population

    def _weights(self, centre: Numbers, spread: Numbers) -> list[Numbers]:
        """Return for each parameter the population's probability of each node: (draws, nodes)."""
        weights = []
        for axis, nodes in enumerate(self._nodes):
            exponent = -0.5 * np.square((nodes - centre[:, axis, None]) / spread[:, axis, None])
            share = np.exp(exponent - exponent.max(axis=1, keepdims=True))
            weights.append(share / share.sum(axis=1, keepdims=True))
        if len(weights) == 1:
            weights.append(np.ones((len(centre), 1)))
        return weights

    def _log_density(self, states: Numbers) -> Numbers:
        """Return the log density of populations, up to a constant: centres, then logarithms of spreads."""
        d = len(self._nodes)
        result = np.empty(len(states))
        for start in range(0, len(states), CHUNK):
            part = states[start : start + CHUNK]
            centre, spread = part[:, :d], np.exp(np.maximum(part[:, d:], self._low))
            first, second = self._weights(centre, spread)
            along = np.einsum("igh,sh->sig", self._likelihood, second, optimize=True)
            chances = np.einsum("sig,sg->si", along, first)
            result[start : start + CHUNK] = np.log(np.maximum(chances, 1e-300)).sum(axis=1)
        usual = np.array([each.usual for each in self._parameters])
        centre, log_spread = states[:, :d], states[:, d:]
        result -= 0.5 * np.square((centre - usual[:, 0]) / usual[:, 1]).sum(axis=1)
        result += (log_spread - 0.5 * np.square(np.exp(log_spread) / SPREAD)).sum(axis=1)
        return np.where((log_spread < self._low).any(axis=1), -np.inf, result)

    def _populations(self, generator: np.random.Generator) -> States:
        """Draw centres and logarithms of spreads."""
        return draw_states(self._log_density, *self._mode(), generator)

    def _mode(self) -> tuple[Numbers, Numbers]:
        """Return the most probable population, and the covariance that its curvature there suggests."""
        d = len(self._nodes)
        share = self._likelihood / self._likelihood.sum(axis=(1, 2), keepdims=True)
        ends = [(each.usual[0] - 3, each.usual[0] + 3) for each in self._parameters]
        first = share.sum(axis=2) @ self._nodes[0]
        means = [first] if d == 1 else [first, share.sum(axis=1) @ self._nodes[1]]
        start = [float(np.clip(np.median(each), *limits)) for each, limits in zip(means, ends, strict=True)]
        start += [float(max(np.log(0.5), low + 0.1)) for low in self._low]
        bounds = [*ends, *((float(low) + 1e-3, 1.5) for low in self._low)]

        def loss(state: Numbers) -> float:
            return -float(self._log_density(np.asarray(state)[None])[0])

        found = minimize(loss, start, method="Nelder-Mead", bounds=bounds, options={"xatol": 0.01, "fatol": 0.01})
        size, offsets = 2 * d, 0.1 * np.eye(2 * d)
        at = np.array([min(max(value, low + 0.1), high) for value, (low, high) in zip(found.x, bounds, strict=True)])
        deviations = np.empty(size)
        for axis in range(size):
            around = self._log_density(np.stack([at - offsets[axis], at, at + offsets[axis]]))
            bend = (2 * around[1] - around[0] - around[2]) / 0.01
            deviations[axis] = 1 / np.sqrt(bend) if np.isfinite(bend) and bend > 1 else 1.0
        return found.x, np.diag(np.square(deviations * WIDER))

    # The participants

    def _people(self, states: Numbers, generator: np.random.Generator) -> Numbers:
        """Draw every participant's parameters given each population: a node, and a place around it."""
        d, participants = len(self._nodes), len(self._likelihood)
        centre, spread = states[:, :d], np.exp(states[:, d:])
        people = np.empty((len(centre), participants, d))
        for start in range(0, len(centre), CHUNK):
            part = slice(start, start + CHUNK)
            first, second = self._weights(centre[part], spread[part])
            along = np.einsum("igh,sh->sig", self._likelihood, second, optimize=True)
            nodes = _chosen(along * first[:, None, :], generator)
            places = [nodes]
            if d == 2:
                rest = self._likelihood[np.arange(participants)[None], nodes] * second[:, None, :]
                places.append(_chosen(rest, generator))
            for axis, at in enumerate(places):
                within = self._steps[axis] * (generator.random(at.shape) - 0.5)
                people[part, :, axis] = self._nodes[axis][at] + within
        return people


def _chosen(weights: Numbers, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw a position along the last axis, in proportion to weights."""
    sums = np.cumsum(weights, axis=-1)
    places = generator.random(sums.shape[:-1]) * sums[..., -1]
    return np.asarray(np.minimum((sums < places[..., None]).sum(axis=-1), weights.shape[-1] - 1))
