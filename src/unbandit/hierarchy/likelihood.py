"""How probable a participant's choices are, as a function of the rule's free parameters.

Parameters are read on a scale without limits: the log odds of a number between 0 and 1, the logarithm of any other
positive number. There the logarithm of the probability is smooth, so that a few dozen evaluations show all of it: they
are made on a lattice that is refined where the probability is large, and a smooth function goes through them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator
from scipy.special import expit, logit

from unbandit.demonstrators import Demonstrator, EpsilonGreedy, LearningSoftmax, RandomisedRule, Softmax, Thompson
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.formatting import joined
from unbandit.inference.clouds import FilterResult, LookAhead, one_look_ahead, readings_of, run_filters
from unbandit.inference.draws import draw_means
from unbandit.inference.filter import CloudCollapsed, log_mean
from unbandit.inference.steps import Reading
from unbandit.kernels.smc.cloud import Belief
from unbandit.log import ActionLog

Numbers = NDArray[np.float64]
Place = tuple[int, ...]  # of a node along each parameter

FREE: Mapping[type[RandomisedRule], tuple[str, ...]] = {
    LearningSoftmax: ("rate", "temperature"),
    Softmax: ("temperature",),
    EpsilonGreedy: ("epsilon",),
    Thompson: ("sigma",),
}
"""The parameters that may differ between people, for each rule for which that was tried."""

REACH = {"log odds": (-4.6, 4.6), "logarithm": (math.log(0.05), math.log(40.0))}  # of the scale that is searched
USUAL = {
    "log odds": (0.0, 1.75),
    "logarithm": (math.log(0.5), 1.5),
}  # prior of the population's centre: mean, deviation
PARTICLES = 40  # of a cloud, for the probability of a participant's choices
CLOUDS, AGREE = 3, 0.5  # clouds for each, and the nats within which they must agree
MORE = (1, 5, 20)  # times as many particles, until they do
FAR, LESS = 8.0, 4.0  # nats below the largest value so far at which they need not, and where half as much will do

COARSE = {1: 7, 2: 4}  # points of the first lattice along each parameter, by the number of parameters
LEVELS = {1: 3, 2: 4}  # times that its spacing is halved, at most
NEAR, NEARER = 4.0, 2.5  # nats below the maximum up to which points of a finer lattice, and still finer, are evaluated
ENOUGH = {1: 5, 2: 16}  # points this near the maximum that show the function well enough
EXACT = 3  # times as many where all rewards are known: the function is steeper, and an evaluation takes little time
SMALLEST_SPREAD = 0.6  # of the distance between two nodes: below it the sum over nodes no longer is the integral
STRAIGHT = LookAhead()  # no look at the future, where nothing is hidden
DEEPEST = 1e4  # nats below the maximum at which points are no longer distinguished
ABOVE = 0.3  # nats above the largest known value that it may have between points
BEND = 5.0  # nats below the maximum from which on only their logarithm counts


@dataclass(frozen=True)
class FreeParameter:
    """A parameter of a rule that differs between people, and the scale on which it is read."""

    name: str
    scale: str  # "log odds" or "logarithm"
    unit: float  # by which a positive number is divided before its logarithm is taken

    def coordinate(self, value: float | Numbers) -> Numbers:
        """Return where a value lies on the scale."""
        return np.asarray(logit(value) if self.scale == "log odds" else np.log(np.asarray(value) / self.unit))

    def value(self, coordinate: float | Numbers) -> Numbers:
        """Return the value at a place on the scale."""
        return np.asarray(expit(coordinate) if self.scale == "log odds" else self.unit * np.exp(coordinate))

    @property
    def usual(self) -> tuple[float, float]:
        """Return mean and standard deviation of the prior on the population's centre."""
        return USUAL[self.scale]

    def nodes(self, size: int) -> Numbers:
        """Return evenly spaced places on the scale, from one end of what is searched to the other."""
        return np.linspace(*REACH[self.scale], size)


def rule_of_people(rule: Demonstrator | RuleFamily | str) -> Demonstrator:
    """Return the rule that people choose by; numbers to be fitted are those that it is not given.

    Examples
    --------
    >>> rule_of_people("q-learning:temperature=0.2,rate=fit") == rule_of_people("q-learning:temperature=0.2")
    True
    """
    found = rule_or_family(rule)
    return found.kind(**found.known) if isinstance(found, RuleFamily) else found


def free_parameters(rule: RandomisedRule, unit: float) -> tuple[FreeParameter, ...]:
    """Return the parameters that may differ between people: those that the rule was not given.

    Raises
    ------
    NotIdentifiable
        If there are none.
    """
    known = next((names for kind, names in FREE.items() if type(rule) is kind), ())
    if isinstance(rule, Thompson) and rule.noise == "bernoulli":
        known = ()
    if not known:
        rules = joined([kind.name for kind in FREE])
        raise NotIdentifiable(
            f"{rule.name}: it has no parameter that is known to differ between people in a way that choices show.",
            remedy=f"Rules with such parameters are {rules}.",
        )
    free = [name for name in known if name not in rule.model_fields_set]
    if not free:
        raise NotIdentifiable(
            f"{rule.name}: {joined(known)} {'is' if len(known) == 1 else 'are'} given, so nothing is left to estimate.",
            remedy=f"Leave out what differs between people, as in {rule.name}.",
        )
    limits = {
        name: any(getattr(each, "le", None) == 1 for each in type(rule).model_fields[name].metadata) for name in free
    }
    return tuple(
        FreeParameter(name, "log odds", 1.0) if limits[name] else FreeParameter(name, "logarithm", unit)
        for name in free
    )


def node_grid(parameters: Sequence[FreeParameter]) -> tuple[Numbers, ...]:
    """Return the places along each parameter at which every participant's function is tabulated."""
    d = len(parameters)
    return tuple(each.nodes((COARSE[d] - 1) * 2 ** LEVELS[d] + 1) for each in parameters)


def smallest_spreads(parameters: Sequence[FreeParameter]) -> list[float]:
    """Return the smallest spread of each parameter in a population that the nodes resolve."""
    return [SMALLEST_SPREAD * float(each[1] - each[0]) for each in node_grid(parameters)]


@dataclass(frozen=True, eq=False)
class Participant:
    """One person's choices, and how probable they are at each value of the parameters."""

    log: ActionLog  # of this demonstration alone
    rule: RandomisedRule
    parameters: tuple[FreeParameter, ...]
    belief: Belief
    horizon: int
    particles: int
    seed: int

    def rule_at(self, coordinates: Sequence[float]) -> RandomisedRule:
        """Return the rule with its free parameters at some place."""
        values = {each.name: float(each.value(at)) for each, at in zip(self.parameters, coordinates, strict=True)}
        return type(self.rule)(**(self.rule.model_dump(exclude_none=True) | values))

    def log_probability(self, coordinates: Sequence[float], least: float = -math.inf) -> float:
        """Return the logarithm of the probability of all choices; minus infinity if no particle explains them."""
        return float(np.median(self.log_probabilities(coordinates, least)))

    def log_probabilities(self, coordinates: Sequence[float], least: float = -math.inf) -> Numbers:
        """Return the logarithm of the probability of all choices, by each cloud.

        Where all rewards are known it is exact, since all particles are the same: one is enough. Otherwise all clouds
        must agree, with ever more particles, unless it is clearly less than `least`.
        """
        found = self._settled(coordinates, least)
        return np.array([-math.inf]) if found is None else found.evidences

    def _settled(self, coordinates: Sequence[float], least: float) -> FilterResult | None:
        """Send clouds through the choices until they agree; None if all collapse."""
        rule, found = self.rule_at(coordinates), None
        look = self._look(rule)
        for times in (1,) if self.rewards_known else MORE:
            try:
                found = self._filtered(rule, 1 if self.rewards_known else times * self.particles, look)
            except CloudCollapsed:
                continue
            look = found.look_ahead
            below = max(least + FAR - float(np.median(found.evidences)), 0.0)
            agree = AGREE * (1 + below / LESS)
            if np.ptp(found.evidences) < agree or float(found.evidences.max()) < least:
                break
        return found

    def rough_log_probability(self, coordinates: Sequence[float]) -> float:
        """Return about the same by one pass, which may fall short; minus infinity if no particle explains them."""
        with suppress(InferenceError):
            rule, number = self.rule_at(coordinates), 1 if self.rewards_known else self.particles
            evidences = self._filtered(rule, number, self._look(rule)).evidences
            if (finite := evidences[np.isfinite(evidences)]).size:
                return log_mean(finite)[0] + math.log(finite.size / evidences.size)
        return -math.inf

    def draw_values(self, coordinates: Numbers, draws: int) -> Numbers:
        """Draw the arms' means given the choices, at each place of the parameters: (places, draws, arms).

        They are NaN at a place where no particle explains the choices.
        """
        rows = draws if self.rewards_known else -(-draws // CLOUDS) * CLOUDS
        drawn = np.full((len(coordinates), rows, len(self.log.arms)), np.nan)
        for at, place in enumerate(coordinates):
            with suppress(CloudCollapsed):
                rule = self.rule_at(place.tolist())
                passes = self._filtered(rule, self.particles, self._look(rule)).passes
                share = -(-rows // len(passes))  # more from each where some collapsed
                drawn[at] = np.concatenate(
                    [
                        draw_means(own[-1], self.belief, share, self.seed, CLOUDS * at + cloud)
                        for cloud, own in enumerate(passes)
                    ]
                )[:rows]
        return drawn

    def _look(self, rule: RandomisedRule) -> LookAhead | None:
        """Return how clouds look at all choices; it serves clouds of any size."""
        if self.rewards_known:
            return STRAIGHT
        return one_look_ahead(self.log, rule, self.belief, [self.horizon], self.seed, readings=self._readings)

    def _filtered(self, rule: RandomisedRule, particles: int, look: LookAhead | None) -> FilterResult:
        """Send clouds through the choices; one where nothing is hidden."""
        clouds = 1 if self.rewards_known else CLOUDS
        return run_filters(
            self.log, rule, self.belief, [self.horizon], particles, clouds, self.seed, 1,
            keep_paths=False, tolerant=True, look_ahead=look, readings=self._readings,
        )  # fmt: skip

    @cached_property
    def _readings(self) -> list[Reading]:
        """Return the choices as filters read them, whatever the free parameters."""
        return readings_of(self.log, self.rule.for_arms(len(self.log.arms)), [self.horizon])

    @property
    def rewards_known(self) -> bool:
        """Return whether every reward is in the log."""
        return self.log.rewards is not None and not np.isnan(self.log.rewards).any()

    def table(self) -> Numbers:
        """Return the logarithm of the probability of the choices at every node of the grid."""
        more, nodes = EXACT if self.rewards_known else 1, node_grid(self.parameters)
        return tabulate(self.log_probability, nodes, more * ENOUGH[len(self.parameters)])


def tabulate(function: Callable[[Sequence[float], float], float], nodes: Sequence[Numbers], enough: int) -> Numbers:
    """Return a smooth function of one or two coordinates at all nodes, from evaluations at some of them.

    `function` takes a place, and a value below which it need not be precise. The lattice is refined until so many of
    its points as are `enough` have nearly the largest value.

    Raises
    ------
    InferenceError
        If it is minus infinity everywhere.
    """
    d = len(nodes)
    shape = tuple(each.size for each in nodes)
    known: dict[tuple[int, ...], float] = {}

    def evaluate(places: Sequence[tuple[int, ...]]) -> None:
        for place in places:
            least = max(known.values(), default=-math.inf) - FAR
            known[place] = function([float(nodes[axis][at]) for axis, at in enumerate(place)], least)

    step = 2 ** LEVELS[d]
    evaluate(list(product(*(range(0, size, step) for size in shape))))
    if max(known.values()) == -math.inf:
        raise InferenceError("no particle explains the choices, whatever the parameters.")
    for level in range(LEVELS[d]):
        if len(_near(known, step, NEAR)) >= enough:
            break
        step //= 2
        within = NEARER if level else NEAR
        while around := _neighbours(_near(known, step, within), step, shape) - known.keys():
            evaluate(sorted(around))
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    return _smooth(known, grid.reshape(-1, d), 2 ** LEVELS[d]).reshape(shape)


def _near(known: Mapping[Place, float], spacing: int, within: float) -> list[Place]:
    """Return the points of a lattice whose value is nearly the largest one."""
    least = max(known.values()) - within
    return [at for at, value in known.items() if value > least and all(axis % spacing == 0 for axis in at)]


def _neighbours(places: Sequence[Place], spacing: int, shape: Place) -> set[Place]:
    """Return the neighbours of some points in a lattice, along each axis."""
    moves = [
        tuple(sign * spacing * (axis == other) for other in range(len(shape)))
        for axis in range(len(shape))
        for sign in (-1, 1)
    ]
    found = {tuple(at + by for at, by in zip(place, move, strict=True)) for place in places for move in moves}
    return {place for place in found if all(0 <= at < size for at, size in zip(place, shape, strict=True))}


def _smooth(known: Mapping[Place, float], places: NDArray[np.int64], unit: int) -> Numbers:
    """Return at some places what goes smoothly through the points that are known.

    Far below the maximum a logarithm falls ever more steeply; its distance from the maximum is read on a scale that is
    linear at first and then logarithmic, where it is smooth.
    """
    points, values = np.array(list(known), np.float64) / unit, np.array(list(known.values()))
    largest = float(values.max())
    drops = np.log1p((largest - np.maximum(values, largest - DEEPEST)) / BEND)
    found = RBFInterpolator(points, drops, kernel="cubic", degree=2)(places / unit)
    return np.asarray(largest - BEND * np.expm1(np.clip(found, math.log1p(-ABOVE / BEND), math.log1p(DEEPEST / BEND))))
