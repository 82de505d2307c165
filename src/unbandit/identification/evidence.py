"""The evidence of a log under each candidate: a glance at its beginning for all, more for those that may still win.

A heat reads some rounds with some particles, and whoever is far behind is out. That may be settled by the beginning of
a log: under the rule that made it, another rule is ever ahead by a factor of `r` with a probability of at most `1 / r`
(Ville's inequality). Decisions of an index rule with normal rewards are predicted one by one (`inference.decisions`),
all other rules are filtered. Both have the same prior of the means, so that their evidences compare.

A particle filter's estimate of a probability is unbiased, so by Markov's inequality it exceeds the truth by a factor of
20 in at most one of 20 cases. Ours is unbiased but for two approximations, the moves of offspring and the steps that no
particle explains; the factor leaves room for them. It falls short more easily; `shortfall_bound` limits by how much.

Where choices depend smoothly on the hidden rewards, Laplace's method finds the evidence without particles, in a
fraction of the time and without going astray: only what is still in question then is filtered.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule, Thompson
from unbandit.demonstrators.widths import width_parameters
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.fit import UNCHECKED, Check
from unbandit.formatting import counted
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

GuessKey = tuple[int, int]  # a candidate's position, and that of one of its guesses

CLOUDS = 4

ERRORS = 2.0  # the ends are this many standard errors away
MARKOV = math.log(20.0)  # an estimate exceeds the truth by this much, as a logarithm, in at most one of 20 cases
AGREE = 2.0  # clouds that differ by less than this, as a logarithm, do not fall short: their scatter shows the error
SLACK = 8.0  # a candidate drops out when it is behind by this much more than the errors allow, as a logarithm
BEGINNING, SHORT = 1 / 6, 250  # the first comparison reads this share of a log, and at least this many rounds
ROUGH_ERROR = 0.75  # of evidence by predictions, as a logarithm, as long as few particles hide their own error
MOST_SCATTER = 2.0  # of the logarithms of few predictions: one that is far behind says nothing about the others
REFINED = 8.0  # nats behind the best, up to which values between those of a grid are tried
COARSELY_REFINED, SHARP = 30.0, 2.0  # the same for lines with few values, and nats from one to the next that are many
KNOWN, ROUGHLY_KNOWN = 0.25, 2.0  # errors, as logarithms, that need not be reduced any further, or by a first glance
LAPLACE_ERROR, PER_CHOICE = 1.0, 0.005  # of evidence by Laplace's method; added by a round, where no belief is kept
ALIGNED, ALIKE = 0.3, 0.05  # less what guesses of a rule share, and of the difference between similar guesses
BETWEEN_0_AND_1 = 0.3  # deviation of normal means in place of those between 0 and 1
ASTRAY = 10.0  # nats by which clouds are below all that it allows for, when they went astray
WITNESS = 10.0  # error of evidence that bounds that of a rule's other guesses, which few particles found less probable
FEW_ROUGH = 3  # guesses of a rule that are filtered first, where its evidence is rough
SMALL = 0.03  # the probability from which on a candidate counts as possible: it is named, checked and averaged over
SURE = 0.95  # the probability that a candidate needs, with the Monte-Carlo error held against it, to be identified

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


LEADING = Heat(None, 25, 24, 2, quick=True)  # of the most probable guess, where its evidence is rough
AS_IF_NORMAL = Heat(None, 25, 24, 2)  # where rewards of 0 and 1 are taken as normal
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
    check: Check = UNCHECKED  # whether it fits, where it was still possible by its evidence
    axis: str | None = None  # the parameter that has a line of values
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

    @property
    def weighed(self) -> LogEvidence:
        """Return `evidence`, under its old name."""
        warnings.warn("Contender.weighed is now Contender.evidence.", DeprecationWarning, stacklevel=2)
        return self.evidence


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
    return _rough(value, error, value, heat.rounds)


def with_normal_rewards(request: IdentificationRequest) -> IdentificationRequest:
    """Return the same question for normal rewards about as scattered as those of 0 and 1."""
    return replace(request, noise=ROUGHLY, prior=NormalPrior(0.5, BETWEEN_0_AND_1))


def _rough(value: float, error: float, laplace: float, rounds: int | None) -> LogEvidence:
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


def successive_halving(
    request: IdentificationRequest, candidates: Sequence[Candidate], progress: Callable[[float], None] | None = None
) -> tuple[list[Candidate], list[list[LogEvidence]]]:
    """Compute the evidence of every guess, heat by heat, with more work for those that may still win.

    A guess that does not explain the log is tried by other conventions before it is excluded, and values between those
    of a grid are tried around the best ones. Returns the candidates with those that explain it, and one list of
    evidences per candidate, in the order of its guesses. `progress` is called with the share of the work that is done.
    """
    entrants, listed = list(candidates), {str(rule) for each in candidates for rule, _ in each.guesses}
    running: list[GuessKey] = [(at, guess) for at, each in enumerate(entrants) for guess in range(len(each.guesses))]
    evidences: dict[GuessKey, LogEvidence] = {}
    heats, before = request.heats, None
    for heat, report in zip(heats, _shares(len(heats), progress), strict=True):
        if before is not None:
            running = _still_running(entrants, evidences, before, heat)
            _drop_others(entrants, evidences, running, before)
            kept = {*running, *_still_running(entrants, evidences, before, heats[-1])}
            for key in evidences.keys() - kept:
                evidences[key] = replace(evidences[key], looks=())
            if not kept:
                break
        evidences |= _heat(request, entrants, running, heat, evidences, report)
        added = _by_conventions(request.noise, entrants, running, evidences, listed)
        evidences |= _heat(request, entrants, added, heat, evidences, report)
        if heat.rough and heat.rounds is None:
            for turn in (1, 2):
                added = _between(entrants, evidences, turn)
                evidences |= _heat(request, entrants, added, heat, evidences, report)
        evidences |= _aligned(entrants, evidences)
        evidences |= _outdone(entrants, evidences, heat)
        before = heat
    evidences |= _heat(request, entrants, _roughly_leading(evidences), LEADING, evidences, lambda share: None)
    evidences |= _aligned(entrants, evidences)
    evidences |= _as_if_normal(request, entrants, evidences)
    return _explaining(entrants, {key: replace(each, looks=()) for key, each in evidences.items()})


def _shares(heats: int, progress: Callable[[float], None] | None) -> Iterator[Callable[[float], None]]:
    """Yield for each heat what turns its share that is done into a share of the whole."""
    ends = (0.25, 0.6, 0.7, 0.75, 0.85, 1.0)[-heats:]
    for begin, end in zip((0.0, *ends), ends, strict=False):

        def report(share: float, begin: float = begin, end: float = end) -> None:
            if progress is not None:
                progress(begin + (end - begin) * share)

        yield report


def _heat(
    request: IdentificationRequest, candidates: Sequence[Candidate], running: Sequence[GuessKey], heat: Heat,
    before: Mapping[GuessKey, LogEvidence], report: Callable[[float], None],
) -> dict[GuessKey, LogEvidence]:  # fmt: skip
    """Compute the evidence of some guesses."""
    costs = [_cost(candidates[at].guesses[guess][0]) for at, guess in running]
    done = [0.0]

    def one(at: int) -> LogEvidence:
        candidate, guess = running[at]
        found = log_evidence(request, candidates[candidate].guesses[guess][0], heat, before.get(running[at]))
        done[0] += costs[at] / sum(costs)
        report(min(done[0], 1.0))
        return found

    results = checks.in_threads(one, [(at,) for at in range(len(running))], checks.threads(request.threads))
    return dict(zip(running, results, strict=True))


def _cost(rule: Demonstrator) -> float:
    """Return about how long a rule takes, compared with others."""
    return 5.0 if isinstance(rule, RandomisedRule) else 1.0


def _between(
    candidates: list[Candidate], evidences: Mapping[GuessKey, LogEvidence], turn: int
) -> list[GuessKey]:  # fmt: skip
    """Add values between those of a grid to candidates that may still win; return where they are.

    Rules that choose at random start from few values, so that the evidence may be far larger between them; in the
    second turn they get more only where it is still sharp.
    """
    added, best = [], max((each.value for each in evidences.values() if each.rounds is None), default=-math.inf)
    for at, candidate in enumerate(candidates):
        known = {
            guess: evidences[at, guess].value
            for guess in range(len(candidate.guesses))
            if evidences[at, guess].rounds is None and evidences[at, guess].value > -math.inf
        }
        random = isinstance(candidate.guesses[0][0], RandomisedRule)
        reach = COARSELY_REFINED if random and turn == 1 else REFINED
        if not known or max(known.values()) <= best - reach:
            continue
        candidates[at] = candidate.refined(known, max(known.values()) - REFINED, SHARP if random and turn == 2 else 0.0)
        added += [(at, place) for place in range(len(candidate.guesses), len(candidates[at].guesses))]
    return added


def _drop_others(
    candidates: Sequence[Candidate], evidences: dict[GuessKey, LogEvidence], running: Sequence[GuessKey], heat: Heat
) -> None:
    """Exclude guesses that were given up before the end of the log, with the reason."""
    if heat.rounds is None or not running:
        return
    best = max(running, key=lambda key: evidences[key].value)
    for key in evidences.keys() - set(running):
        each = evidences[key]
        if each.rounds is not None and each.value > -math.inf:
            tens = (evidences[best].value - each.value) / math.log(10)
            evidences[key] = LogEvidence.impossible(
                f"the first {counted(heat.rounds, 'round')} are 10^{tens:.0f} times as probable under "
                f"{candidates[best[0]].name}."
            )


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
    candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]
) -> tuple[list[Candidate], list[list[LogEvidence]]]:
    """Leave out conventions that do not explain the log; where none does, the guess is as it was given."""
    kept, by_guess = [], []
    for at, candidate in enumerate(candidates):
        left_out = [guess for guess in candidate.conventions if evidences[at, guess].value == -math.inf]
        kept.append(candidate.without(left_out))
        by_guess.append([evidences[at, guess] for guess in range(len(candidate.guesses)) if guess not in left_out])
    return kept, by_guess


def _still_running(
    candidates: Sequence[Candidate], evidences: dict[GuessKey, LogEvidence], heat: Heat, following: Heat
) -> list[GuessKey]:  # fmt: skip
    """Return the guesses that decide between candidates and are not yet known well.

    Where only the beginning has been read, all that may hold much of the probability go on. There are none where the
    log cannot distinguish the candidates, whatever the errors; but clouds that may have fallen short are tried again:
    of each candidate those first that explain the log best.
    """

    def log_prior(key: GuessKey) -> float:
        return math.log(candidates[key[0]].guesses[key[1]][1])

    def reach(key: GuessKey) -> float:
        each = evidences[key]
        return each.high + ERRORS * each.error + SLACK + log_prior(key)

    collapsed = [key for key, each in evidences.items() if each.collapsed]
    best = max(each.low + log_prior(key) for key, each in evidences.items())
    if best == -math.inf:
        return collapsed if following.glance is None else []
    within = [key for key, each in evidences.items() if each.value > -math.inf and reach(key) >= best]
    if heat.rounds is not None:
        return collapsed + within
    decision = decide(_averages(candidates, evidences))
    wide = [key for key in within if evidences[key].error > MOST_SCATTER and key[0] != decision.order[0]]
    running = list[GuessKey]()
    for at in dict.fromkeys(key[0] for key in wide):
        ordered = sorted((key for key in wide if key[0] == at), key=lambda key: -evidences[key].value)
        running += [key for key in ordered if evidences[key].rough][:FEW_ROUGH]
        running += [key for key in ordered if not evidences[key].rough][:1]
    known = KNOWN if following.glance is None else following.glance
    for at in () if decision.clear or decision.at_best < SURE else decision.contenders:
        own = [key for key in evidences if key[0] == at and evidences[key].value > -math.inf]
        reached = np.array([evidences[key].high + log_prior(key) for key in own])
        shares = np.exp(reached - reached.max())
        errors = shares / shares.sum() * [evidences[key].error for key in own]
        small_first = np.argsort(errors, kind="stable")
        left = np.sqrt(np.cumsum(np.square(errors[small_first])))  # in the average, by all that are not computed again
        running += [own[place] for place, error in zip(small_first, left, strict=True) if error > known]
    if following.glance is not None:
        return [key for key in dict.fromkeys(running) if evidences[key].rough]
    return list(dict.fromkeys(collapsed + running))


def _roughly_leading(evidences: Mapping[GuessKey, LogEvidence]) -> list[GuessKey]:
    """Return the best guesses of the most probable candidate if its evidence is rough, which is no answer.

    A few show the error that its guesses share, and by how much they differ in it; one does where that is small.
    """
    best = max(evidences, key=lambda key: evidences[key].value)
    own = [key for key, each in evidences.items() if key[0] == best[0] and each.rough and each.rounds is None]
    own.sort(key=lambda key: -evidences[key].value)
    if best not in own:
        return []
    return own[:FEW_ROUGH] if evidences[best].error > LAPLACE_ERROR else [best]


def _as_if_normal(
    request: IdentificationRequest, candidates: list[Candidate], evidences: Mapping[GuessKey, LogEvidence]
) -> dict[GuessKey, LogEvidence]:  # fmt: skip
    """Return the evidence of index rules as if rewards of 0 and 1 were normal, if none that may win explains the log.

    Such rewards leave an index few values, so that a log shows a rule's number to many digits: no rewards explain it
    with the nearest of those that are tried. All guesses of a candidate are compared in one way, the better one.
    """
    if isinstance(request.noise, Gaussian) or request.log.rewards is not None:
        return {}
    index = {key: each for key, each in evidences.items() if isinstance(_rule(candidates, key), IndexRule)}
    best = max(each.low for each in evidences.values())
    if any(
        each.relaxed is None and each.high + ERRORS * each.error + SLACK >= best > -math.inf for each in index.values()
    ):
        return {}
    normal, limits, found = with_normal_rewards(request), request.limits(None), dict[GuessKey, LogEvidence]()
    asked = [
        key
        for key in index
        if candidates[key[0]].axis is not None and key[1] not in candidates[key[0]].conventions
        if predicts(_rule(candidates, key), ROUGHLY, limits)
    ]
    found |= _heat(normal, candidates, asked, AS_IF_NORMAL, {}, lambda share: None)
    between = _between(candidates, {**dict.fromkeys(evidences, LogEvidence.impossible("")), **found}, 1)
    found |= _heat(normal, candidates, between, AS_IF_NORMAL, {}, lambda share: None)
    best = max((each.value for each in found.values()), default=-math.inf)
    near = [key for key, each in found.items() if each.value > best - REFINED]
    found |= _heat(normal, candidates, near, request.heats[-2], {}, lambda share: None)
    for at in {key[0] for key in found}:
        own = [key for key in evidences if key[0] == at]
        if max(evidences[key].value for key in own) >= max(each.value for key, each in found.items() if key[0] == at):
            found = {key: each for key, each in found.items() if key[0] != at}
        else:
            reason = "no rewards of 0 and 1 explain the log, decision for decision."
            found = {**dict.fromkeys(own, LogEvidence.impossible(reason)), **found}
    return {key: replace(each, normal=each.value > -math.inf) for key, each in found.items()}


def _rule(candidates: Sequence[Candidate], key: GuessKey) -> Demonstrator:
    return candidates[key[0]].guesses[key[1]][0]


def _aligned(
    candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]
) -> dict[GuessKey, LogEvidence]:  # fmt: skip
    """Return rough evidence less the error that it shares with guesses of the same rule that were filtered."""
    rules: dict[tuple[int, type[Demonstrator]], list[GuessKey]] = {}
    for key, each in evidences.items():
        if each.laplace is not None:
            rules.setdefault((key[0], type(_rule(candidates, key))), []).append(key)
    found: dict[GuessKey, LogEvidence] = {}
    for keys in rules.values():
        own = [evidences[key] for key in keys]
        missed = [
            each.value - each.laplace
            for each in own
            if each.laplace is not None and not each.rough and each.error <= AGREE / ERRORS
        ]
        for key, each in zip(keys, own, strict=True):
            if (
                each.laplace is None
                or not each.rough
                or not missed
                or (len(missed) == 1 and each.value != each.laplace)
            ):
                continue
            spread = (max(missed) - min(missed)) / ERRORS if len(missed) > 1 else each.error / ERRORS
            value = each.laplace + float(np.median(missed))
            found[key] = _rough(value, max(ALIGNED, spread), each.laplace, each.rounds)
    return found


def _outdone(
    candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence], heat: Heat
) -> dict[GuessKey, LogEvidence]:
    """Return the guesses that are known well enough, since others of the same candidate are far more probable.

    Where few particles explain a log, their clouds may have fallen short by very much. But a rule's evidence is smooth
    in its parameters: one with sharp evidence that is out of reach bounds those that are further from the log. So does
    the best by few particles that more of them found to be no better.
    """
    found: dict[GuessKey, LogEvidence] = {}
    for at in range(len(candidates)):
        own = {key: each for key, each in evidences.items() if key[0] == at and each.rounds == heat.rounds}
        sharp = max((each.value for each in own.values() if each.error <= AGREE / ERRORS), default=-math.inf)
        witness = max(
            (each for each in own.values() if each.error <= WITNESS and not each.rough),
            key=lambda each: (each.particles, each.value),
            default=None,
        )
        for key, each in own.items():
            if each.rough or each.error <= MOST_SCATTER or each.value == -math.inf or witness is None:
                continue
            if each.value + each.error < sharp:
                found[key] = replace(each, high=each.value + each.error, error=MOST_SCATTER)
            elif each.particles < witness.particles and each.value < witness.value:
                found[key] = replace(each, high=witness.high, error=max(witness.error, MOST_SCATTER))
    return found


def _averages(candidates: Sequence[Candidate], evidences: Mapping[GuessKey, LogEvidence]) -> list[LogEvidence]:
    return [
        averaged(candidate, [evidences[at, guess] for guess in range(len(candidate.guesses))])
        for at, candidate in enumerate(candidates)
    ]


@dataclass(frozen=True)
class Decision:
    """The winner, and by how much it won; candidates are given by their positions."""

    order: tuple[int, ...]  # the most probable first
    probabilities: tuple[float, ...]  # of each candidate
    assured: float  # the probability of the first with the error of each difference held against it
    at_best: float  # the same with the errors in its favour
    contenders: tuple[int, ...]  # those that cannot be distinguished from the first one, itself included
    alike: bool = False  # whether some of these explain the log, whatever it is, so that no evidence can decide

    @property
    def clear(self) -> bool:
        """Return whether the first one is identified."""
        return self.assured >= SURE and not self.alike


def decide(evidences: Sequence[LogEvidence], alike: Collection[int] = ()) -> Decision:
    """Compare candidates that are equally likely a priori; at least one of them must be possible.

    Those that are `alike` are not distinguished from each other, however their evidences differ.
    """
    order = tuple(sorted(range(len(evidences)), key=lambda at: -evidences[at].value))
    first, others = evidences[order[0]], order[1:]
    ratios = [math.exp(each.value - first.value) for each in evidences]
    against, in_favour = dict[int, float](), list[float]()
    for at in others:
        each = evidences[at]
        ahead = each.value - first.value if each.value > -math.inf else -math.inf
        worst = _error_of_difference(first.value - first.low, each.high - each.value) if ahead > -math.inf else 0.0
        best = _error_of_difference(first.high - first.value, each.value - each.low) if ahead > -math.inf else 0.0
        against[at] = math.exp(min(ahead + worst, 700.0))
        in_favour.append(math.exp(min(ahead - best, 700.0)))
    assured, at_best = 1 / (1 + sum(against.values())), 1 / (1 + sum(in_favour))
    same = {at for at in others if order[0] in alike and at in alike and evidences[at].value > -math.inf}
    contenders = tuple(at for at in others if at in same or against[at] > (1 - SURE) / len(evidences))
    probabilities = tuple(each / sum(ratios) for each in ratios)
    return Decision(order, probabilities, assured, at_best, (order[0], *contenders), bool(same))


def one_number(log: ActionLog, candidates: Sequence[Candidate]) -> frozenset[int]:
    """Return the candidates of which a log of two arms shows a single number: when the other arm was dropped.

    An elimination rule whose parameters nobody knows leaves any such number. Which of several left it would be decided
    by how probable their parameters were beforehand, and that is a convention.
    """
    if len(log) > 1 or len(log.arms) > 2:
        return frozenset()
    return frozenset(
        at
        for at, each in enumerate(candidates)
        if len(each.guesses) > 1 and isinstance(each.guesses[0][0], EliminationRule)
    )


def _error_of_difference(first: float, second: float) -> float:
    """Combine how far two ends are away: one standard error, or both of them where clouds may have fallen short."""
    both = math.hypot(first, second)
    return both / ERRORS if both <= AGREE else both


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
