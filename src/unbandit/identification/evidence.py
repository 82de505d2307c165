"""How probable a log is under each candidate: few particles for all, more for those that may still win.

A particle filter's estimate of a probability is right on average, so by Markov's inequality it exceeds the truth by a
factor of 20 in one of 20 cases at most. Ours is so but for two approximations, heirs that are scattered and steps that
no particle explains; the factor leaves room for them. It falls short more easily; how far, `falling_short` says.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import NotIdentifiable
from unbandit.identification.candidates import Candidate
from unbandit.inference import Prior
from unbandit.inference.draws import DemonstrationEvidence, evidence_of
from unbandit.inference.filter import particles_for
from unbandit.log import ActionLog

GuessKey = tuple[int, int]
"""A candidate's position, and that of one of its guesses."""

CLOUDS = 4
ERRORS = 2.0
"""How many standard errors the ends are away."""

MARKOV = math.log(20.0)
"""An estimate is larger than the truth by this much, as a logarithm, in one of 20 cases at most."""

AGREE = 2.0
"""Clouds that differ by less than this, as a logarithm, do not fall short: their scatter tells the error."""

STEP = 3
"""Each heat of the race has so many times the particles of the one before."""

FEWEST = 50
"""Particles of the first heat, at least."""

SLACK = 10.0
"""A candidate leaves the race when it is behind by this much more than the errors allow, as a logarithm."""

KNOWN = 0.1
"""An error, as a logarithm, that more particles need not make smaller."""


@dataclass(frozen=True)
class IdentificationRequest:
    """Hold a log and what is known about it.

    Attributes
    ----------
    log, horizons
        The record, and `T` of each demonstration.
    prior, sigma
        Of the means, and of a reward; sigma None stands for rewards of 0 and 1.
    particles
        Of a cloud in the last heat; None for as many as the record's length allows.
    """

    log: ActionLog
    horizons: tuple[int, ...]
    prior: Prior
    sigma: float | None
    particles: int | None
    seed: int
    threads: int | None

    @property
    def heats(self) -> list[int]:
        """Return the particles of each heat."""
        number = self.particles or STEP * particles_for(int(self.log.lengths.max()))
        heats = [number]
        while heats[0] >= STEP * FEWEST:
            heats.insert(0, heats[0] // STEP)
        return heats


@dataclass(frozen=True)
class LogEvidence:
    """Hold how probable the whole log is under a rule, as natural logarithms.

    Attributes
    ----------
    value, error
        The estimate and its Monte-Carlo error; minus infinity where the rule cannot have made the log.
    low, high
        Where the truth lies, allowing for two errors; the estimate is hardly ever too large by more than `MARKOV`.
    bests, spacings
        What the best cloud of each heat found, and how far the third best lay below it.
    surprise
        Logarithm of each round's probability, demonstration by demonstration.
    particles
        Of each of the clouds that told so; 0 where none were needed.
    reason, round, demonstration
        Why and where the rule cannot have made the log.
    emptied
        Whether this is so only because no particle explains it; more of them might.
    """

    value: float
    error: float
    low: float
    high: float
    bests: tuple[float, ...] = ()
    spacings: tuple[float, ...] = ()
    surprise: tuple[NDArray[np.float64], ...] = ()
    particles: int = 0
    reason: str | None = None
    round: int | None = None
    demonstration: int | None = None
    emptied: bool = False


def impossible(
    reason: str, round: int | None = None, demonstration: int | None = None, emptied: bool = False
) -> LogEvidence:
    """Return what a rule weighs that cannot have made the log."""
    return LogEvidence(-math.inf, 0.0, -math.inf, -math.inf, (), (), (), 0, reason, round, demonstration, emptied)


def log_evidence(
    question: IdentificationRequest, rule: Demonstrator, particles: int, before: LogEvidence | None = None
) -> LogEvidence:
    """Weigh one rule; demonstrations are of instances of their own, so their probabilities multiply.

    `before` is what fewer particles told.
    """
    found: list[DemonstrationEvidence] = []
    for which, horizon in enumerate(question.horizons):
        try:
            evidence = evidence_of(
                question.log, which, rule, question.prior, question.sigma, horizon, particles, CLOUDS, question.seed, 1
            )
        except NotIdentifiable as refusal:
            return impossible(str(refusal))
        if evidence.reason is not None:
            return impossible(evidence.reason, evidence.round, which, evidence.emptied)
        found.append(evidence)
    value = sum(evidence.log_evidence for evidence in found)
    natural = math.hypot(*(_natural(evidence) for evidence in found))
    clouds = np.sum([evidence.per_cloud for evidence in found], axis=0)
    best, _, third, worst = np.sort(clouds)[::-1].tolist()
    bests = (*(before.bests if before is not None else ()), best)
    spacings = (*(before.spacings if before is not None else ()), best - third)
    short = shortfall_bound(bests, spacings, float(question.log.lengths.sum()))
    error = natural if best - worst < AGREE else max(natural, short / ERRORS)
    return LogEvidence(
        value=value,
        error=error,
        low=value - min(ERRORS * error, MARKOV),
        high=min(value + ERRORS * error, 0.0),
        bests=bests,
        spacings=spacings,
        surprise=tuple(evidence.surprise for evidence in found if evidence.surprise is not None),
        particles=particles,
    )


def _natural(evidence: DemonstrationEvidence) -> float:
    """Return the relative standard error of a mean over clouds."""
    shares = np.exp(np.array(evidence.per_cloud) - max(evidence.per_cloud))
    return float(shares.std(ddof=1) / shares.mean() / math.sqrt(shares.size))


def averaged(candidate: Candidate, weights: Sequence[LogEvidence]) -> LogEvidence:
    """Average the probability over a candidate's guesses; a maximum would favour those with many."""
    beforehand = np.array([weight for _, weight in candidate.guesses])
    value, low, high = (
        _log_sum(np.array([getattr(each, name) for each in weights]), beforehand) for name in ("value", "low", "high")
    )
    if value == -math.inf:
        first = max(weights, key=lambda each: (each.demonstration or 0, each.round or 0))  # the one that came furthest
        emptied = any(each.emptied for each in weights)
        return impossible(first.reason or "", first.round, first.demonstration, emptied)
    values, errors = np.array([each.value for each in weights]), np.array([each.error for each in weights])
    shares = beforehand * np.exp(values - value)
    heaviest = weights[int(shares.argmax())]
    error = float(np.hypot.reduce(shares * errors))
    return LogEvidence(
        value, error, low, high, heaviest.bests, heaviest.spacings, heaviest.surprise, heaviest.particles
    )


def successive_halving(
    question: IdentificationRequest, candidates: Sequence[Candidate], told: Callable[[str], None] | None = None
) -> list[list[LogEvidence]]:
    """Weigh every guess of every candidate, and those that may still win with more particles.

    Returns one list a candidate, in the order of its guesses.
    """
    places: list[GuessKey] = [
        (at, guess) for at, candidate in enumerate(candidates) for guess in range(len(candidate.guesses))
    ]
    found: dict[GuessKey, LogEvidence] = {}
    running, heats = places, question.heats
    workers = max(1, min(len(places), question.threads or os.cpu_count() or 1))
    with ThreadPoolExecutor(workers) as pool:
        for heat, number in enumerate(heats):
            if told is not None:
                told(f"Heat {heat + 1} of {len(heats)}: {len(running)} rules, {CLOUDS} clouds of {number:,} particles")
            rules = [candidates[at].guesses[guess][0] for at, guess in running]
            before = [found.get(place) for place in running]
            weights = pool.map(log_evidence, repeat(question), rules, repeat(number), before)
            found |= dict(zip(running, weights, strict=True))
            running = _still_running(candidates, found)
            if not running:
                break
    return [[found[at, guess] for guess in range(len(each.guesses))] for at, each in enumerate(candidates)]


def _still_running(candidates: Sequence[Candidate], found: dict[GuessKey, LogEvidence]) -> list[GuessKey]:
    """Return the guesses that may still hold much of the probability, and are not yet known well.

    Once all of them are one candidate's the race is decided, and only how likely its guesses are is left to know.
    """

    def beforehand(place: GuessKey) -> float:
        return math.log(candidates[place[0]].guesses[place[1]][1])

    def reach(place: GuessKey) -> float:
        each = found[place]
        return each.high + (each.high - each.value) + SLACK + beforehand(place)

    emptied = [place for place, each in found.items() if each.emptied]
    best = max(each.low + beforehand(place) for place, each in found.items())
    if best == -math.inf:
        return emptied
    within = [place for place, each in found.items() if each.value > -math.inf and reach(place) >= best]
    if len({at for at, _ in within}) > 1:
        return emptied + [place for place in within if found[place].high - found[place].low > 2 * ERRORS * KNOWN]
    leading = max(found[place].value + beforehand(place) for place in within)
    within = [place for place in within if found[place].high + beforehand(place) >= leading - MARKOV]
    return emptied + [place for place in within if len(within) > 1 and found[place].error > KNOWN]


def _log_sum(values: NDArray[np.float64], beforehand: NDArray[np.float64]) -> float:
    """Return the logarithm of a weighted sum of numbers given by their logarithms."""
    largest = values.max()
    return float(largest + np.log((beforehand * np.exp(values - largest)).sum())) if largest > -math.inf else -math.inf


FISHER = (2.996, 4.744, 6.296, 7.754, 9.154, 10.513, 11.842, 13.148)
"""Half the 95% points of the chi-square distribution with 2, 4, 6, ... degrees of freedom."""


SEEN, PER_ROUND = 20.0, 0.1
"""What clouds fall short by, at most, if their rule made the record: altogether, and for each round."""

AS_GOOD_AS_INFINITE = 1e7
"""As good as infinite, as a logarithm."""


def shortfall_bound(bests: Sequence[float], spacings: Sequence[float], rounds: float = math.inf) -> float:
    """Return by how much the last heat's best cloud falls short at most, in 19 of 20 cases.

    Parameters
    ----------
    bests
        What the best cloud of each heat found.
    spacings
        How far the third best of its four clouds lay below it.
    rounds
        Of the record.

    Examples
    --------
    >>> round(shortfall_bound([-30.0], [5.0]), 1)
    10.6
    >>> shortfall_bound([-208.0, -205.0], [3_000.0, 12_000.0])  # the same peak, found twice
    6.0
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
    while surprise(bests[-1] + high) < threshold and high < AS_GOOD_AS_INFINITE:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if surprise(bests[-1] + middle) < threshold else (low, middle)
    return high
