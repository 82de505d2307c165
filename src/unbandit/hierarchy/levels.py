"""Two levels: every participant's parameters are draws from a normal population, whose centre and spread are not known.

The participants are independent given the population. Each one's parameters are summed out over the nodes of the grid,
so that only centres and spreads are left to draw: by importance sampling from a heavy-tailed distribution around their
mode, which is fitted again to its own draws. Participants follow exactly, given each draw of the population.

Participants who share the arms' hidden values are independent given these. So the evidence of all choices is computed
for a number of values, and a smooth function through it says how probable all others are: a quadratic one with a
Gaussian process for what it misses. More values are drawn from what is known so far, until these are predicted well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from unbandit.errors import InferenceError
from unbandit.hierarchy.likelihood import SMALLEST_SPREAD, FreeParameter, Numbers, node_grid

SPREAD = 1.0  # scale of the half-normal prior on a spread
TAILS = 5  # degrees of freedom of the distribution that populations are drawn from
ROUNDS, TRIED, DRAWS = 4, 2_000, 4_000  # times that it is fitted again, draws in each, and draws that are kept
CHUNK = 250  # draws whose sums over the grid are in memory at a time
WIDER = 1.3  # times the deviations of the draws before
QUICK_TRIED, QUICK_DRAWS = 500, 1_000  # draws where the population is nearly known from before

NOISE, PER_NAT = 0.15, 0.1  # deviation of an evidence, and what is added for each nat below the most probable values
REACHES, SIZES = (1.5, 2.5, 4.0), (0.3, 1.0, 3.0, 10.0)  # of the Gaussian process: in deviations, and in nats
VAGUE = 100.0  # deviation of the terms of a quadratic function, in nats
UNKNOWN = 3.0  # nats of uncertainty from which on values are too far from those that were tried
BROADER = 1.2, 3.0  # times the deviations that are known so far, of the values that are tried next: some and others
CANDIDATES, MAY_BE = 300, 6.0  # of these others, and nats by which they may be less probable
PREDICTED, MOST_MISSED = 0.5, 1.0  # nats by which new values may be missed: then it ends, or it is refused
BLURRED = 0.1  # squared deviations by which values need not be drawn from the nearest that were tried
FEWEST_BATCHES, MOST_BATCHES = 3, 9


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
    mode: Numbers
    covariance: Numbers


def draw_states(
    log_density: Callable[[Numbers], Numbers], mode: Numbers, covariance: Numbers, generator: np.random.Generator,
    *, rounds: int = ROUNDS, tried: int = TRIED, draws: int = DRAWS,
) -> States:  # fmt: skip
    """Draw by importance sampling from a heavy-tailed distribution that is fitted to its own draws."""

    def weighted(number: int) -> tuple[Numbers, Numbers, float]:
        proposal = multivariate_t(mode, covariance, df=TAILS)
        states = proposal.rvs(number, random_state=generator).reshape(number, -1)
        log_weights = log_density(states) - proposal.logpdf(states)
        total = logsumexp(log_weights)
        return states, np.exp(log_weights - total), float(total - np.log(number))

    for _ in range(rounds):
        states, weights, _ = weighted(tried)
        mode = weights @ states
        off = states - mode
        covariance = (off * weights[:, None]).T @ off * WIDER**2 + 1e-6 * np.eye(mode.size)
    states, weights, log_mass = weighted(2 * draws)
    places = (np.arange(draws) + generator.random()) / draws
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)
    size = float(1 / np.square(weights).sum())
    return States(states[generator.permutation(chosen)], size, log_mass, mode, covariance)


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
        states = self.populations(generator)
        together, alone = self.people(states.drawn, generator), self.alone(len(states.drawn), generator)
        d = len(self._nodes)
        centre, spread = states.drawn[:, :d], np.exp(states.drawn[:, d:])
        return PopulationDraws(centre, spread, together, alone, states.effective_size, self.evidence_of(states))

    def alone(self, number: int, generator: np.random.Generator) -> Numbers:
        """Draw every participant's parameters given the own choices alone, without a population."""
        usual = np.array([each.usual for each in self._parameters])
        broad = np.concatenate([usual[:, 0], np.log(np.hypot(usual[:, 1], SPREAD))])
        return self.people(np.tile(broad, (number, 1)), generator)

    def only(self, asked: Sequence[int]) -> Hierarchy:
        """Return some of the participants."""
        found = copy(self)
        found._likelihood, found.largest = self._likelihood[list(asked)], self.largest[list(asked)]
        return found

    def log_evidence(self, seed: int) -> float:
        """Return the log evidence of all choices, the population being unknown."""
        return self.evidence_of(self.populations(np.random.default_rng([seed, 11])))

    def evidence_of(self, states: States) -> float:
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

    def populations(self, generator: np.random.Generator, before: States | None = None) -> States:
        """Draw centres and logarithms of spreads; quickly, if they are nearly as they were found before."""
        if before is None:
            return draw_states(self._log_density, *self._mode(), generator)
        known = before.mode, before.covariance * WIDER**2
        return draw_states(self._log_density, *known, generator, rounds=2, tried=QUICK_TRIED, draws=QUICK_DRAWS)

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

    def people(self, states: Numbers, generator: np.random.Generator) -> Numbers:
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


class Values:
    """What all choices say about values that participants share.

    Parameters
    ----------
    evidence
        Of all choices, at some coordinates of the values: (values, coordinates).
    log_prior
        Of these coordinates.
    centre, deviation
        Where the prior has them.
    """

    def __init__(
        self, evidence: Callable[[Numbers], Numbers], log_prior: Callable[[Numbers], Numbers], centre: Numbers,
        deviation: Numbers,
    ) -> None:  # fmt: skip
        self._evidence, self._log_prior = evidence, log_prior
        self._middle, self._factor = centre, np.diag(deviation)  # of the scale on which the process is smooth
        self.places, self.heights = np.zeros((0, centre.size)), np.zeros(0)

    def settle(self, generator: np.random.Generator, few: Callable[[Numbers], Numbers] | None = None) -> States:
        """Try values until new ones are predicted well; return draws. `few` is the evidence of some participants.

        That shows first roughly where the values lie.

        Raises
        ------
        InferenceError
            If they are not.
        """
        size = self._middle.size
        terms = 1 + size + size * (size + 1) // 2
        states: States | None = None
        known, missed = self, np.inf
        if few is not None:  # where the values lie, roughly
            known = Values(few, self._log_prior, self._middle, np.diag(self._factor))
            states = known._approach(generator, terms)
            self._middle, self._factor = known._middle, known._factor
        for batch in range(MOST_BATCHES):
            tried = (self if batch else known)._next(generator, states, max(6, 2 + (terms // 2 if batch else terms)))
            expected = self._predicted(tried)[0] if batch else np.full(len(tried), np.inf)
            self._try(tried)
            if batch:
                missed = self._missed(expected)
            states = self._draw(generator)
            if batch + 1 >= FEWEST_BATCHES and missed < PREDICTED:
                break
        if states is None or not missed < MOST_MISSED:
            raise InferenceError(
                f"the probability of the choices given shared values could not be read: {missed:.1f} nats are missed.",
                remedy="Give more particles, or a narrower prior, or check the rule.",
            )
        return states._replace(effective_size=states.effective_size * float(np.exp(-(missed**2))))

    def _missed(self, expected: Numbers) -> float:
        """Return by how many nats the evidences of the last values were missed, above all of the probable ones."""
        off, drops = self.heights[-len(expected) :] - expected, self._drops()[-len(expected) :]
        if drops.min() > MAY_BE:
            return np.inf
        shares = np.exp(-0.5 * drops)
        return float(np.sqrt(np.cov(off, aweights=shares)))

    def _approach(self, generator: np.random.Generator, terms: int) -> States:
        """Find out roughly where the values lie."""
        self._try(self._next(generator, None, terms + 4))
        for _ in range(3):
            self._try(self._next(generator, self._draw(generator), terms // 2 + 3))
        return self._draw(generator)

    def _next(self, generator: np.random.Generator, states: States | None, number: int) -> Numbers:
        """Return values to be tried: some as they are known to lie, others at the ends of where they still may lie."""
        if states is None:
            return np.asarray(self._middle + generator.standard_normal((number, self._middle.size)) @ self._factor.T)
        chosen = states.drawn[generator.choice(len(states.drawn), CANDIDATES + number // 2, replace=False)]
        middle = states.drawn.mean(axis=0)
        near, far = (middle + times * (chosen - middle) for times in BROADER)
        expected, deviation = self._predicted(far)
        hopes = expected + np.minimum(deviation, UNKNOWN) + self._log_prior(far)
        far = far[hopes > np.sort(hopes)[-number] - MAY_BE]
        tried = near[: number // 2]
        for _ in range(number - len(tried)):
            known = self._away(np.concatenate([self.places, tried]))
            squares = np.square(self._away(far)[:, None] - known).sum(axis=2).min(axis=1)
            tried = np.concatenate([tried, far[[int(squares.argmax())]]])
        return np.asarray(tried)

    def _try(self, places: Numbers) -> None:
        found = self._evidence(places)
        self.places, self.heights = np.concatenate([self.places, places]), np.concatenate([self.heights, found])

    def _drops(self) -> Numbers:
        total = self.heights + self._log_prior(self.places)
        return np.asarray(total.max() - total)

    def _draw(self, generator: np.random.Generator) -> States:
        """Draw values from what is known."""
        self._fit()

        def log_density(places: Numbers) -> Numbers:
            expected, deviation = self._predicted(places)
            return np.where(deviation < UNKNOWN, expected + self._log_prior(places), -np.inf)

        start, factor = self.places[self._drops().argmin()], self._factor
        states = draw_states(log_density, start, factor @ factor.T, generator)
        self._middle = states.drawn.mean(axis=0)
        covariance = np.cov(states.drawn.T).reshape(start.size, -1) + 1e-9 * np.eye(start.size)
        self._factor = np.asarray(np.linalg.cholesky(covariance))
        self._fit()
        return states

    def spread_over(
        self, drawn: Numbers, kept: Sequence[tuple[Numbers, Hierarchy, States]], generator: np.random.Generator
    ) -> tuple[Numbers, Numbers]:
        """Draw populations and participants given each draw of the values, from those at the nearest that were tried.

        What changes with the values, on average, is added for what they are apart.
        """
        centres = self._away(np.array([place for place, *_ in kept]))
        away = self._away(drawn)
        squares = np.square(away[:, None] - centres).sum(axis=2)
        nearest = (squares + BLURRED * generator.exponential(size=squares.shape)).argmin(axis=1)
        states = np.empty((len(drawn), kept[0][2].drawn.shape[1]))
        people: Numbers | None = None
        for at in np.unique(nearest).tolist():
            _, hierarchy, found = kept[at]
            own = nearest == at
            states[own] = found.drawn[generator.choice(len(found.drawn), int(own.sum()))]
            some = hierarchy.people(states[own], generator)
            people = np.empty((len(drawn), *some.shape[1:])) if people is None else people
            people[own] = some
        assert people is not None
        both, apart = np.concatenate([states, people.reshape(len(people), -1)], axis=1), away - centres[nearest]
        slopes = np.linalg.lstsq(np.c_[np.ones(len(away)), centres[nearest]], both, rcond=None)[0][1:]
        both = both + apart @ slopes
        return both[:, : states.shape[1]], both[:, states.shape[1] :].reshape(people.shape)

    def _fit(self) -> None:
        """Fit the quadratic function and the process, whose reach and size make the evidences as likely as possible."""
        away, noise, heights = self._away(self.places), NOISE + PER_NAT * self._drops(), self.heights
        terms, self._known = _quadratic(away), away
        squares = np.square(away[:, None] - away).sum(axis=2)
        self._top = float(self.heights.max())
        best = -np.inf
        for reach in REACHES:
            for size in SIZES:
                covariance = size**2 * np.exp(-0.5 * squares / reach**2) + np.diag(noise**2)
                covariance += terms @ terms.T * VAGUE**2
                covariance += 1e-11 * np.diag(np.diag(covariance))  # of those far away
                factor = np.linalg.cholesky(covariance)
                solved = np.linalg.solve(factor, heights - self._top)
                likely = float(-0.5 * solved @ solved - np.log(np.diag(factor)).sum())
                if likely > best:
                    best, self._scale = likely, (reach, size)
                    self._solver, self._weights = factor, np.linalg.solve(factor.T, solved)

    def _away(self, places: Numbers) -> Numbers:
        return np.asarray(np.linalg.solve(self._factor, (places - self._middle).T).T)

    def _predicted(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """Return the log evidence at some values, and its uncertainty."""
        away, (reach, size) = self._away(places), self._scale
        terms = _quadratic(away)
        squares = np.square(away[:, None] - self._known).sum(axis=2)
        cross = size**2 * np.exp(-0.5 * squares / reach**2) + VAGUE**2 * terms @ _quadratic(self._known).T
        alone = size**2 + VAGUE**2 * np.square(terms).sum(axis=1)
        rest = alone - np.square(np.linalg.solve(self._solver, cross.T)).sum(axis=0)
        return self._top + cross @ self._weights, np.sqrt(np.maximum(rest, 0.0))


def _quadratic(away: Numbers) -> Numbers:
    """Return the terms of a quadratic function."""
    pairs = [away[:, one] * away[:, other] for one, other in combinations_with_replacement(range(away.shape[1]), 2)]
    return np.stack([np.ones(len(away)), *away.T, *pairs], axis=1)


def _chosen(weights: Numbers, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw a position along the last axis, in proportion to weights."""
    sums = np.cumsum(weights, axis=-1)
    places = generator.random(sums.shape[:-1]) * sums[..., -1]
    return np.asarray(np.minimum((sums < places[..., None]).sum(axis=-1), weights.shape[-1] - 1))
