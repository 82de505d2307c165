"""The evidence of a log under a rule, by as much work as is asked for.

Decisions of an index rule with normal rewards are predicted one by one (`inference.decisions`), all other rules are
filtered. Both have the same prior of the means, so that their evidences compare.

A particle filter's estimate of a probability is unbiased, so by Markov's inequality it exceeds the truth by a factor of
20 in at most one of 20 cases. Ours is unbiased but for two approximations, the moves of offspring and the steps that no
particle explains; the factor leaves room for them. It falls short more easily; `shortfall_bound` limits by how much.

Where choices depend smoothly on the hidden rewards, Laplace's method finds the evidence without particles, in a
fraction of the time and without going astray: only what is still in question then is filtered.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule, Thompson
from unbandit.demonstrators.widths import width_parameters
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.fit import UNCHECKED, Check
from unbandit.identification.candidates import Candidate
from unbandit.inference import NormalPrior, Prior
from unbandit.inference.clouds import (
    CLOSE,
    PILOT_PARTICLES,
    LookAhead,
    evidence_without_clouds,
    one_look_ahead,
    particles_for,
    run_filters,
)
from unbandit.inference.conventions import Convention
from unbandit.inference.decisions import predict
from unbandit.inference.filter import GLANCE, CloudCollapsed, log_mean, relative_error
from unbandit.inference.prior import belief_of
from unbandit.inference.rivals import ROUGHLY, predicts
from unbandit.inference.steps import opening_chance, reading_of
from unbandit.instance import Gaussian, Noise
from unbandit.log import ActionLog
from unbandit.log.availability import ALWAYS, Availability

CLOUDS = 4

ERRORS = 2.0  # the ends are this many standard errors away
MARKOV = math.log(20.0)  # an estimate exceeds the truth by this much, as a logarithm, in at most one of 20 cases
AGREE = 2.0  # clouds that differ by less than this, as a logarithm, do not fall short: their scatter shows the error
BEGINNING, SHORT = 1 / 6, 250  # the first comparison reads this share of a log, and at least this many rounds
ROUGH_ERROR = 0.75  # of evidence by predictions, as a logarithm, as long as few particles hide their own error
MOST_SCATTER = 2.0  # of the logarithms of few predictions: one that is far behind says nothing about the others
KNOWN, ROUGHLY_KNOWN = 0.25, 2.0  # errors, as logarithms, that need not be reduced any further, or by a first glance
LAPLACE_ERROR, PER_CHOICE = 1.0, 0.005  # of evidence by Laplace's method; added by a round, where no belief is kept
ALIKE = 0.05  # error of the difference between rough evidences of similar guesses
BETWEEN_0_AND_1 = 0.3  # deviation of normal means in place of those between 0 and 1
ASTRAY = 10.0  # nats by which clouds are below all that it allows for, when they went astray
SMALL = 0.03  # the probability from which on a candidate counts as possible: it is named, checked and averaged over

FISHER = (2.996, 4.744, 6.296, 7.754, 9.154, 10.513, 11.842, 13.148)
"""Half the 95% points of the chi-square distribution with 2, 4, 6, ... degrees of freedom."""

JUMPING = 4  # times fewer particles for a rule whose choices jump with its sample means, and that has no leader to read

LAST_PARTICLES = 600  # of each cloud of the last heat, at most, unless their number is given

SEEN, PER_ROUND = 20.0, 0.1  # the largest shortfall of clouds whose rule made the record: altogether, and per round

LARGEST_SHORTFALL = 1e7

MOST_KEPT = 2_000_000  # numbers in how one rule's clouds look ahead that are kept from heat to heat


@dataclass(frozen=True)
class IdentificationRequest:
    """A log and what is known about it."""

    log: ActionLog
    horizons: tuple[int, ...]  # `T` of each demonstration
    prior: Prior
    noise: Noise
    particles: int | None  # per cloud in the last heat; None for as many as the record's length allows
    seed: int
    threads: int | None
    alone: bool = False  # whether a single candidate was given, which has no probability
    there: Availability | None = None  # which arms could be pulled when, if not all in all rounds

    @property
    def sigma(self) -> float | None:
        """Return the standard deviation of a reward; None for rewards of 0 and 1."""
        return self.noise.sigma if isinstance(self.noise, Gaussian) else None

    def limits(self, rounds: int | None) -> Availability | None:
        """Return which arms could be pulled when; None if all could in the first `rounds` rounds, or in all."""
        read = min(int(self.log.lengths.max()), rounds or ALWAYS)
        return None if self.there is None else self.there.within(read)

    @property
    def heats(self) -> list[Heat]:
        """Return how much work each heat is for a candidate; the last one only where nothing is decided before."""
        longest = int(self.log.lengths.max())
        most = self.particles or min(LAST_PARTICLES, particles_for(longest))
        beginning = max(SHORT, round(BEGINNING * longest))
        whole = [
            Heat(None, min(25, most), 24, 2, quick=True, rough=True),
            Heat(None, min(25, most), 24, 2, quick=True, glance=ROUGHLY_KNOWN),
            Heat(None, min(25, most), 24, 2, quick=True, glance=KNOWN),
            Heat(None, min(150, most), 32, 4, quick=True),
            Heat(None, most, 128, 4),
        ]
        return whole if longest < 2 * SHORT else [Heat(beginning, min(25, most), 16, 2, quick=True, rough=True), *whole]


class Heat(NamedTuple):
    """How much work goes into the evidence of each rule."""

    rounds: int | None  # that are read of each demonstration; None for all
    particles: int  # of each cloud of a filter
    predicting: int  # of each cloud that predicts decisions
    predictions: int  # clouds that do so
    quick: bool = False  # whether filters take the first way to look ahead, untried, or that of the heat before
    straight: bool = False  # whether filters do not look ahead, so that the probability of each round is known
    rough: bool = False  # whether Laplace's method takes the place of particles where it can
    glance: float | None = None  # if given, only rough evidence with a larger error is computed again


STRAIGHT = Heat(None, 60, 24, 4, straight=True)  # by which rounds are predicted, if its evidence is that of others


@dataclass(frozen=True)
class LogEvidence:
    """Natural logarithm of the probability of the whole log under a rule; minus infinity if it cannot have made it."""

    value: float
    error: float  # Monte-Carlo
    low: float  # the value is hardly ever too large by more than `MARKOV`
    high: float  # allowing for two errors
    bests: tuple[float, ...] = ()  # the value by the best cloud of each heat
    spacings: tuple[float, ...] = ()  # how far the third best cloud of each heat lay below it
    surprise: tuple[NDArray[np.float64], ...] = ()  # log probability of each round, by demonstration
    particles: int = 0  # per cloud; 0 where none were needed
    reason: str | None = None  # why the rule cannot have made the log
    round: int | None = None  # where it cannot
    demonstration: int | None = None
    collapsed: bool = False  # whether that is only because no particle explains it; with more of them one might
    relaxed: int | None = None  # the first round that no particle of some cloud explains exactly, if there is one
    rounds: int | None = None  # of each demonstration that were read; None for all
    looks: tuple[LookAhead | None, ...] = field(default=(), repr=False, compare=False)  # kept for the next heat
    laplace: float | None = None  # the value by Laplace's method, where it was asked for
    rough: bool = False  # whether that is the value, but for an error that all guesses of a candidate share
    normal: bool = False  # whether rewards of 0 and 1 were taken as normal ones

    @property
    def scatter(self) -> float:
        """Return the error of a difference to the value of a similar guess."""
        return ALIKE if self.rough else self.error

    @classmethod
    def impossible(cls, reason: str, **where: Any) -> LogEvidence:
        """Return the evidence of a rule that cannot have made the log."""
        return cls(-math.inf, 0.0, -math.inf, -math.inf, reason=reason, **where)


@dataclass(frozen=True)
class Guess:
    """A candidate's rule with one set of parameters, and the evidence of the log under it."""

    rule: Demonstrator
    beforehand: float  # the probability of the set among the candidate's own, before the log is read
    share: float  # and after
    evidence: LogEvidence
    convention: Convention | None = None  # if the rule is the one given by another convention


@dataclass(frozen=True)
class Contender:
    """A candidate with what the log says about it."""

    name: str  # as given
    guesses: tuple[Guess, ...]  # its sets of parameters, the most probable first
    evidence: LogEvidence  # averaged over them
    probability: float  # all candidates are equally likely a priori
    check: Check = UNCHECKED  # whether it fits, where it was still possible by its evidence
    axis: str | None = None  # the parameter that has a line of values
    across: str | None = None  # and a second one
    twins: tuple[Demonstrator, ...] = ()  # rules of other names that are this one, with some value of the axis
    forms: tuple[str, ...] = ()  # parameters that take the place of the axis in guesses that have them

    @property
    def normal(self) -> bool:
        """Return whether its most probable guess was compared as if rewards of 0 and 1 were normal."""
        return self.guesses[0].evidence.normal

    @property
    def possible(self) -> bool:
        """Return whether it can have made the log."""
        return self.evidence.value > -math.inf

    @property
    def reason(self) -> str | None:
        """Return why it cannot have made the log, or does not look like it."""
        return self.check.reason if self.check.verdict == "does not fit" else self.evidence.reason


class _Part(NamedTuple):
    """One demonstration under one rule."""

    evidences: NDArray[np.float64]  # by each cloud
    surprise: NDArray[np.float64]
    relaxed: tuple[int, ...] = ()
    look_ahead: LookAhead | None = None


def log_evidence(
    request: IdentificationRequest, rule: Demonstrator, heat: Heat, before: LogEvidence | None = None
) -> LogEvidence:
    """Return the log evidence of one rule; demonstrations have instances of their own, so probabilities multiply.

    `before` is the result with fewer particles; how its clouds look ahead is not chosen again.
    """
    before = before if before is not None and before.rounds == heat.rounds else None
    if heat.rough and (rough := _without_clouds(request, rule, heat)) is not None:
        return rough
    predicted = predicts(rule, request.noise, request.limits(heat.rounds)) and request.log.rewards is None
    parts: list[_Part] = []
    looks = before.looks if before is not None and before.looks else (None,) * len(request.horizons)
    for which, look_ahead in enumerate(looks):
        try:
            parts.append(
                _predicted(request, which, rule, heat) if predicted else
                _filtered(request, which, rule, heat, look_ahead)
            )  # fmt: skip
        except (InferenceError, NotIdentifiable) as refusal:
            collapsed = isinstance(refusal, CloudCollapsed)
            if collapsed and before is not None and before.rough:
                return before
            return LogEvidence.impossible(str(refusal), round=refusal.round, demonstration=which, collapsed=collapsed)
    value = sum(log_mean(part.evidences)[0] for part in parts)
    natural = math.hypot(*(relative_error(part.evidences) for part in parts))
    bests, spacings, error = (), (), natural
    if predicted:
        scatter = math.hypot(*(log_mean(part.evidences)[1] for part in parts))
        error = max(natural, min(scatter, MOST_SCATTER), ROUGH_ERROR if heat.predictions == 2 else 0.0)
    else:
        best, _, third, worst = np.sort(sum(part.evidences for part in parts))[::-1].tolist()
        bests = (*(before.bests if before is not None else ()), best)
        spacings = (*(before.spacings if before is not None else ()), best - third)
        read = np.minimum(request.log.lengths, heat.rounds or request.log.lengths).sum()
        shortfall = shortfall_bound(bests, spacings, float(read))
        error = natural if best - worst < AGREE else max(natural, shortfall / ERRORS)
    laplace = None if before is None else before.laplace
    if before is not None and before.rough and value + ERRORS * error < before.low - ASTRAY:
        return before
    return LogEvidence(
        value=value,
        error=error,
        low=value - min(ERRORS * error, MARKOV),
        high=min(value + ERRORS * error, 0.0),
        laplace=laplace,
        bests=bests,
        spacings=spacings,
        surprise=tuple(part.surprise for part in parts),
        particles=heat.predicting if predicted else _particles(rule, heat),
        relaxed=next((part.relaxed[0] for part in parts if part.relaxed), None),
        rounds=heat.rounds,
        looks=_kept(tuple(part.look_ahead for part in parts)),
    )


def _without_clouds(request: IdentificationRequest, rule: Demonstrator, heat: Heat) -> LogEvidence | None:
    """Return the evidence by Laplace's method; None where it does not serve, as for rewards of 0 and 1."""
    if request.limits(heat.rounds) is not None or not isinstance(request.noise, Gaussian):
        return None
    belief = belief_of(request.prior, len(request.log.arms), request.noise, None)
    value, rounds = 0.0, 0
    for which, horizon in enumerate(request.horizons):
        record = request.log.select(which, heat.rounds)
        try:
            own = evidence_without_clouds(record, rule, belief, [horizon])
        except (InferenceError, NotIdentifiable):
            return None  # clouds will give the reason
        if own is None or not math.isfinite(own):
            return None
        value, rounds = value + own, rounds + int(record.lengths[0])
    error = LAPLACE_ERROR if isinstance(rule, Thompson) else LAPLACE_ERROR + PER_CHOICE * rounds
    return rough_evidence(value, error, value, heat.rounds)


def with_normal_rewards(request: IdentificationRequest) -> IdentificationRequest:
    """Return the same question for normal rewards about as scattered as those of 0 and 1."""
    return replace(request, noise=ROUGHLY, prior=NormalPrior(0.5, BETWEEN_0_AND_1))


def rough_evidence(value: float, error: float, laplace: float, rounds: int | None) -> LogEvidence:
    """Return evidence by Laplace's method, which mostly falls short and exceeds the truth by a few nats at most."""
    low, high = value - min(ERRORS * error, MARKOV), min(value + ERRORS * error, 0.0)
    return LogEvidence(value, error, low, high, rounds=rounds, laplace=laplace, rough=True)


def _filtered(
    request: IdentificationRequest, which: int, rule: Demonstrator, heat: Heat, look_ahead: LookAhead | None
) -> _Part:
    """Filter one demonstration."""
    belief = belief_of(request.prior, len(request.log.arms), request.noise, None)
    record, horizons = request.log.select(which, heat.rounds), [request.horizons[which]]
    known = look_ahead
    if heat.straight:
        look_ahead = LookAhead(tried=PILOT_PARTICLES)
    elif heat.quick and known is None:
        look_ahead = one_look_ahead(record, rule, belief, horizons, request.seed, request.there)
    elif heat.quick and known is not None:
        look_ahead = replace(known, tried=PILOT_PARTICLES)  # by few particles, but they are not asked again here
    found = run_filters(
        record, rule, belief, horizons, _particles(rule, heat), CLOUDS, request.seed, threads=1, keep_paths=False,
        tolerant=True, look_ahead=look_ahead, there=request.there,
    )  # fmt: skip
    surprise = np.zeros(0) if heat.quick and found.twisted else found.surprise  # it would take longer than the clouds
    return _Part(found.evidences, surprise, found.relaxed, known if heat.quick and known else found.look_ahead)


def surprise_of(request: IdentificationRequest, guess: Guess) -> tuple[NDArray[np.float64], ...]:
    """Return the log probability of each round given those before, by demonstration; NaN where it is not known.

    By clouds that do not look ahead, if their evidence is about that of others; otherwise by normal states.
    """
    rule, known = guess.rule, guess.evidence.surprise
    if known and all(each.size for each in known):
        return known
    straight = log_evidence(request, rule, STRAIGHT)
    if abs(straight.value - guess.evidence.value) < CLOSE:
        return straight.surprise
    belief, found = belief_of(request.prior, len(request.log.arms), request.noise, None), list[NDArray[np.float64]]()
    for which, horizon in enumerate(request.horizons):
        given = request.log.select(which), rule, belief, [horizon]
        value = evidence_without_clouds(*given) if request.limits(None) is None else None
        look = one_look_ahead(*given, request.seed) if value is not None else None
        if look is None or value is None:
            return log_evidence(request, rule, request.heats[-2]._replace(quick=False)).surprise
        found.append(look.trusted(value))
    return tuple(found)


def _particles(rule: Demonstrator, heat: Heat) -> int:
    """Return how many particles a cloud has: fewer where each reward takes many tries, for choices that jump."""
    jumps = isinstance(rule, RandomisedRule) and not rule.smooth and not (rule.greedy and rule.initial > 0)
    return max(min(heat.particles, GLANCE), heat.particles // JUMPING) if jumps else heat.particles


def _predicted(request: IdentificationRequest, which: int, rule: Demonstrator, heat: Heat) -> _Part:
    """Predict the decisions of one demonstration one by one, under the same prior as a filter has."""
    assert isinstance(rule, IndexRule)
    record, horizon = request.log.select(which, heat.rounds), request.horizons[which]
    rule = rule.for_arms(len(record.arms))
    there = request.limits(heat.rounds)
    reading_of(record, 0, rule, horizon, there)  # refuses another opening
    if hasattr(rule, "width"):
        width_parameters(rule, horizon)  # refuses widths that are not finite
    given = (record, rule, request.noise, request.prior, horizon, heat.predicting)
    own = zlib.crc32(str(rule).encode())  # errors of neighbouring values shall not add up
    seeds = [(request.seed + own + cloud) % 2**64 for cloud in range(heat.predictions)]
    found = [predict(*given, seed=seed, widths=(1.0,), evidence_only=True, there=there) for seed in seeds]
    evidences = np.array([each.log_evidence for each in found]) + opening_chance(record, 0, rule, there)
    if not np.isfinite(evidences).any():
        raise CloudCollapsed(f"none of the particles explains the log under {rule}.")
    surprise = np.zeros(int(record.lengths[0]))
    increments = [each.increments for each in found if math.isfinite(each.log_evidence)]
    first = rule.initial * len(record.arms)
    starts = np.concatenate([np.arange(min(first, surprise.size)), np.arange(first, surprise.size, rule.batch)])
    surprise[starts] = np.mean(increments, axis=0)
    return _Part(evidences, surprise)


def _kept(looks: tuple[LookAhead | None, ...]) -> tuple[LookAhead | None, ...]:
    """Return how clouds look ahead, or nothing where it takes too much memory to keep."""
    numbers = sum(look.size for look in looks if look is not None)
    return looks if numbers <= MOST_KEPT else ()


def averaged(candidate: Candidate, evidences: Sequence[LogEvidence]) -> LogEvidence:
    """Average the probability over a candidate's guesses; a maximum would favour those with many."""
    prior = np.array([weight for _, weight in candidate.guesses])
    values, errors = np.array([each.value for each in evidences]), np.array([each.error for each in evidences])
    value = _log_sum(values, prior)
    if value == -math.inf:
        furthest = max(evidences, key=lambda each: (each.demonstration or 0, each.round or 0))
        collapsed = any(each.collapsed for each in evidences)
        where = {"round": furthest.round, "demonstration": furthest.demonstration}
        return LogEvidence.impossible(furthest.reason or "", collapsed=collapsed, **where)
    shares = prior * np.exp(values - value)
    heaviest = evidences[int(shares.argmax())]
    rough = np.array([each.rough for each in evidences])  # with one error that they share
    error = math.hypot(*np.where(rough, 0.0, shares * errors), float((shares * errors)[rough].sum()))
    known = (errors <= AGREE / ERRORS) & ~rough  # errors are independent; those that fell short may hide more
    high = value + ERRORS * float(np.hypot.reduce((shares * errors)[known], initial=0.0))
    beyond = _log_sum(np.array([each.high for each in evidences])[~known], prior[~known])
    return LogEvidence(
        value, error, value - min(ERRORS * error, MARKOV), min(float(np.logaddexp(high, beyond)), 0.0),
        heaviest.bests, heaviest.spacings, heaviest.surprise, heaviest.particles,
    )  # fmt: skip


def _log_sum(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the log of a weighted sum of numbers given by their logs."""
    largest = values.max(initial=-math.inf)
    return float(largest + np.log((weights * np.exp(values - largest)).sum())) if largest > -math.inf else -math.inf


def shortfall_bound(bests: Sequence[float], spacings: Sequence[float], rounds: float = math.inf) -> float:
    """Return by how much the last heat's best cloud falls short at most, as a logarithm, in 19 of 20 cases.

    `bests` has the value by the best cloud of each heat, `spacings` how far the third best of the four lay below it. A
    cloud falls short where it loses what only a few of its particles could have kept. Three things limit by how much:

    - How the clouds differ. If shortfalls are exponential, the best of four falls short by more than `r` times its
      distance to the third best with probability `1 / ((1 + 4r/3) (1 + 2r))`, whatever their scale. Heats are
      independent, so these probabilities are combined over all heats by Fisher's method.
    - What more particles gain. If the best of many is the same as the best of few, nothing is left to gain.
    - Experience. On records of 1,000 rounds with 2, 4 or 10 arms, no rule's four clouds of 80 particles fell short of
      its own record by more than 20. A rule that made the record is assumed to fall short by at most 20 and 0.1 per
      round; where clouds fall short by more, as those of an index rule do on random choices, it did not.
    """
    gained = 2 * abs(bests[-1] - max(bests[:-1])) if len(bests) > 1 else math.inf
    return min(gained, _by_spacing(bests, spacings), SEEN + PER_ROUND * rounds)


def _by_spacing(bests: Sequence[float], spacings: Sequence[float]) -> float:
    """Solve for the evidence that all heats together would still fall short of with a probability of 1 in 20."""
    threshold = FISHER[min(len(bests), len(FISHER)) - 1]

    def surprise(evidence: float) -> float:
        total = 0.0
        for best, spacing in zip(bests, spacings, strict=True):
            ratio = max(evidence - best, 0.0) / max(spacing, 1e-9)
            total += math.log1p(4 * ratio / 3) + math.log1p(2 * ratio)
        return total

    low, high = 0.0, 1.0
    while surprise(bests[-1] + high) < threshold and high < LARGEST_SHORTFALL:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if surprise(bests[-1] + middle) < threshold else (low, middle)
    return high
