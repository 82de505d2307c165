"""The evidence of a log under each candidate: few particles for all, more for those that may still win.

A particle filter's estimate of a probability is unbiased, so by Markov's inequality it exceeds the truth by a factor of
20 in at most one of 20 cases. Ours is unbiased but for two approximations, the moves of offspring and the steps that no
particle explains; the factor leaves room for them. It falls short more easily; `shortfall_bound` limits by how much.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.identification.candidates import Candidate
from unbandit.inference import Prior
from unbandit.inference.clouds import FilterResult, LookAhead, particles_for, run_filters
from unbandit.inference.conventions import Convention
from unbandit.inference.filter import CloudCollapsed, log_mean, relative_error
from unbandit.inference.prior import belief_of
from unbandit.instance import Gaussian, Noise
from unbandit.log import ActionLog

GuessKey = tuple[int, int]  # a candidate's position, and that of one of its guesses

CLOUDS = 4
ERRORS = 2.0  # the ends are this many standard errors away
MARKOV = math.log(20.0)  # an estimate exceeds the truth by this much, as a logarithm, in at most one of 20 cases
AGREE = 2.0  # clouds that differ by less than this, as a logarithm, do not fall short: their scatter shows the error
PARTICLE_FACTOR = 3  # each heat has this many times the particles of the one before
FEWEST_PARTICLES = 50  # particles of the first heat, at least
SLACK = 10.0  # a candidate drops out when it is behind by this much more than the errors allow, as a logarithm
KNOWN = 0.1  # an error, as a logarithm, that more particles need not reduce

FISHER = (2.996, 4.744, 6.296, 7.754, 9.154, 10.513, 11.842, 13.148)
"""Half the 95% points of the chi-square distribution with 2, 4, 6, ... degrees of freedom."""

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

    @property
    def sigma(self) -> float | None:
        """Return the standard deviation of a reward; None for rewards of 0 and 1."""
        return self.noise.sigma if isinstance(self.noise, Gaussian) else None

    @property
    def heats(self) -> list[int]:
        """Return the particles of each heat."""
        heats = [self.particles or PARTICLE_FACTOR * particles_for(int(self.log.lengths.max()))]
        while heats[0] >= PARTICLE_FACTOR * FEWEST_PARTICLES:
            heats.insert(0, heats[0] // PARTICLE_FACTOR)
        return heats


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
    looks: tuple[LookAhead | None, ...] = field(default=(), repr=False, compare=False)  # kept for the next heat

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

    @property
    def weighed(self) -> LogEvidence:
        """Return `evidence`, under its old name."""
        warnings.warn("Guess.weighed is now Guess.evidence.", DeprecationWarning, stacklevel=2)
        return self.evidence


@dataclass(frozen=True)
class Contender:
    """A candidate with what the log says about it."""

    name: str  # as given
    guesses: tuple[Guess, ...]  # its sets of parameters, the most probable first
    evidence: LogEvidence  # averaged over them
    probability: float  # all candidates are equally likely a priori

    @property
    def possible(self) -> bool:
        """Return whether it can have made the log."""
        return self.evidence.value > -math.inf

    @property
    def reason(self) -> str | None:
        """Return why it cannot have made the log."""
        return self.evidence.reason

    @property
    def weighed(self) -> LogEvidence:
        """Return `evidence`, under its old name."""
        warnings.warn("Contender.weighed is now Contender.evidence.", DeprecationWarning, stacklevel=2)
        return self.evidence


def log_evidence(
    request: IdentificationRequest, rule: Demonstrator, particles: int, before: LogEvidence | None = None
) -> LogEvidence:
    """Return the log evidence of one rule; demonstrations have instances of their own, so probabilities multiply.

    `before` is the result with fewer particles; how its clouds look ahead is not chosen again.
    """
    belief = belief_of(request.prior, len(request.log.arms), request.noise, None)
    parts: list[FilterResult] = []
    looks = before.looks if before is not None and before.looks else (None,) * len(request.horizons)
    for which, (horizon, look_ahead) in enumerate(zip(request.horizons, looks, strict=True)):
        try:
            result = run_filters(
                request.log.select(which), rule, belief, [horizon], particles, CLOUDS, request.seed, threads=1,
                keep_paths=False, tolerant=True, look_ahead=look_ahead,
            )  # fmt: skip
        except (InferenceError, NotIdentifiable) as refusal:
            collapsed = isinstance(refusal, CloudCollapsed)
            return LogEvidence.impossible(str(refusal), round=refusal.round, demonstration=which, collapsed=collapsed)
        parts.append(result)
    value = sum(log_mean(part.evidences)[0] for part in parts)
    natural = math.hypot(*(relative_error(part.evidences) for part in parts))
    best, _, third, worst = np.sort(sum(part.evidences for part in parts))[::-1].tolist()
    bests = (*(before.bests if before is not None else ()), best)
    spacings = (*(before.spacings if before is not None else ()), best - third)
    shortfall = shortfall_bound(bests, spacings, float(request.log.lengths.sum()))
    error = natural if best - worst < AGREE else max(natural, shortfall / ERRORS)
    return LogEvidence(
        value=value,
        error=error,
        low=value - min(ERRORS * error, MARKOV),
        high=min(value + ERRORS * error, 0.0),
        bests=bests,
        spacings=spacings,
        surprise=tuple(part.surprise for part in parts),
        particles=particles,
        relaxed=next((part.relaxed[0] for part in parts if part.relaxed), None),
        looks=_kept(tuple(part.look_ahead for part in parts)),
    )


def _kept(looks: tuple[LookAhead | None, ...]) -> tuple[LookAhead | None, ...]:
    """Return how clouds look ahead, or nothing where it takes too much memory to keep."""
    numbers = sum(twisted.sites.bend.size for look in looks if look is not None for twisted in look.twists)
    return looks if numbers <= MOST_KEPT else ()


def averaged(candidate: Candidate, evidences: Sequence[LogEvidence]) -> LogEvidence:
    """Average the probability over a candidate's guesses; a maximum would favour those with many."""
    prior = np.array([weight for _, weight in candidate.guesses])
    value, low, high = (
        _log_sum(np.array([getattr(each, name) for each in evidences]), prior) for name in ("value", "low", "high")
    )
    if value == -math.inf:
        furthest = max(evidences, key=lambda each: (each.demonstration or 0, each.round or 0))
        collapsed = any(each.collapsed for each in evidences)
        where = {"round": furthest.round, "demonstration": furthest.demonstration}
        return LogEvidence.impossible(furthest.reason or "", collapsed=collapsed, **where)
    values, errors = np.array([each.value for each in evidences]), np.array([each.error for each in evidences])
    shares = prior * np.exp(values - value)
    heaviest = evidences[int(shares.argmax())]
    error = float(np.hypot.reduce(shares * errors))
    return LogEvidence(
        value, error, low, high, heaviest.bests, heaviest.spacings, heaviest.surprise, heaviest.particles
    )


def successive_halving(
    request: IdentificationRequest, candidates: Sequence[Candidate], progress: Callable[[str], None] | None = None
) -> tuple[list[Candidate], list[list[LogEvidence]]]:
    """Compute the evidence of every guess, heat by heat, with more particles for those that may still win.

    A guess that does not explain the log is tried by other conventions before it is excluded. Returns the candidates
    with those that explain it, and one list of evidences per candidate, in the order of its guesses.
    """
    entrants, listed = list(candidates), {str(rule) for each in candidates for rule, _ in each.guesses}
    running: list[GuessKey] = [(at, guess) for at, each in enumerate(entrants) for guess in range(len(each.guesses))]
    evidences: dict[GuessKey, LogEvidence] = {}
    for heat, number in enumerate(request.heats, 1):
        stage = f"Heat {heat} of {len(request.heats)}, {len(running)} rules, {CLOUDS} clouds of {number:,} particles"
        if progress is not None:
            progress(stage)
        evidences |= _heat(request, entrants, running, number, evidences, stage)
        added = _by_conventions(request.noise, entrants, running, evidences, listed)
        evidences |= _heat(request, entrants, added, number, evidences, f"{stage}, {len(added)} other conventions")
        running = _still_running(entrants, evidences)
        for key in evidences.keys() - set(running if heat < len(request.heats) else ()):
            evidences[key] = replace(evidences[key], looks=())
        if not running:
            break
    return _explaining(candidates, entrants, evidences)


def _heat(
    request: IdentificationRequest, candidates: Sequence[Candidate], running: Sequence[GuessKey], particles: int,
    before: Mapping[GuessKey, LogEvidence], stage: str,
) -> dict[GuessKey, LogEvidence]:  # fmt: skip
    """Compute the evidence of some guesses."""
    tasks = [(request, candidates[at].guesses[guess][0], particles, before.get((at, guess))) for at, guess in running]
    results = checks.in_parts(stage, log_evidence, tasks, checks.threads(request.threads))
    return dict(zip(running, results, strict=True))


def _by_conventions(
    noise: Noise, candidates: list[Candidate], running: Sequence[GuessKey], evidences: Mapping[GuessKey, LogEvidence],
    listed: set[str],
) -> list[GuessKey]:  # fmt: skip
    """Add the other conventions of guesses that no particle explains, unless they are listed; return where they are."""
    added = []
    for at, guess in running:
        candidate, evidence = candidates[at], evidences[at, guess]
        if candidate.tried(guess) or not (evidence.collapsed or evidence.relaxed is not None):
            continue
        others = [each for each in candidate.guesses[guess][0].conventions(noise) if str(each) not in listed]
        if others:
            listed.update(map(str, others))
            candidates[at] = candidate.by_conventions(guess, others)
            added += [(at, place) for place in range(len(candidate.guesses), len(candidates[at].guesses))]
    return added


def _explaining(
    given: Sequence[Candidate], candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]
) -> tuple[list[Candidate], list[list[LogEvidence]]]:
    """Leave out conventions that do not explain the log; where none does, the guess is as it was given."""
    kept, by_guess = [], []
    for at, (before, after) in enumerate(zip(given, candidates, strict=True)):
        possible = [guess for guess in after.conventions if evidences[at, guess].value > -math.inf]
        shared = [after.conventions[guess].given for guess in possible]
        guesses = [
            later if earlier[0] in shared else earlier
            for earlier, later in zip(before.guesses, after.guesses, strict=False)
        ]
        guesses += [after.guesses[guess] for guess in possible]
        places = {len(before.guesses) + place: after.conventions[guess] for place, guess in enumerate(possible)}
        kept.append(Candidate(before.name, tuple(guesses), places))
        by_guess.append([evidences[at, guess] for guess in (*range(len(before.guesses)), *possible)])
    return kept, by_guess


def _still_running(candidates: Sequence[Candidate], evidences: dict[GuessKey, LogEvidence]) -> list[GuessKey]:
    """Return the guesses that may still hold much of the probability, and are not yet known well.

    Once all of them belong to one candidate it has won, and only the shares of its guesses are left to find.
    """

    def log_prior(key: GuessKey) -> float:
        return math.log(candidates[key[0]].guesses[key[1]][1])

    def reach(key: GuessKey) -> float:
        each = evidences[key]
        return each.high + (each.high - each.value) + SLACK + log_prior(key)

    collapsed = [key for key, each in evidences.items() if each.collapsed]
    best = max(each.low + log_prior(key) for key, each in evidences.items())
    if best == -math.inf:
        return collapsed
    within = [key for key, each in evidences.items() if each.value > -math.inf and reach(key) >= best]
    if len({at for at, _ in within}) > 1:
        return collapsed + [key for key in within if evidences[key].high - evidences[key].low > 2 * ERRORS * KNOWN]
    leading = max(evidences[key].value + log_prior(key) for key in within)
    within = [key for key in within if evidences[key].high + log_prior(key) >= leading - MARKOV]
    return collapsed + [key for key in within if len(within) > 1 and evidences[key].error > KNOWN]


def _log_sum(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the log of a weighted sum of numbers given by their logs."""
    largest = values.max()
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
