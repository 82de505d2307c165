"""What the arms were worth, averaged over the rules that are still possible; and whether each of these fits the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator

from unbandit.demonstrators import Demonstrator, EliminationRule, RandomisedRule
from unbandit.demonstrators.family import limits_of
from unbandit.errors import InferenceError, Notice, NotIdentifiable, ParameterError, option
from unbandit.fit import Check, not_checked
from unbandit.formatting import counted, joined, quoted
from unbandit.identification.candidates import axis_of
from unbandit.identification.evidence import (
    ALIKE,
    CLOUDS,
    Contender,
    Guess,
    Heat,
    IdentificationRequest,
    log_evidence,
    with_normal_rewards,
)
from unbandit.inference import Posterior, infer
from unbandit.inference.check import AnsweredMeans, check_log
from unbandit.inference.clouds import one_look_ahead
from unbandit.inference.draws import draws_between
from unbandit.inference.filter import log_mean
from unbandit.inference.prior import BetaPrior, belief_of
from unbandit.inference.result import gaps_of
from unbandit.inference.surface import (
    LEAST,
    WINDOW,
    Correction,
    evidence_density,
    narrowed,
    principal_axes,
    quantile,
    spread_out,
    spread_quantiles,
)

DRAWS = 1_000  # per cloud, of values and for simulations
PARTICLES = 200  # per cloud, unless their number was given; where clouds differ or collapse, as many as a posterior has
SHARED_PARTICLES, FEWEST = 300, 50  # per cloud of several sets of parameters that share the draws, and of each at least
MORE = 3  # times as many for one of several sets, where its clouds differ
MOST_GUESSES = 3  # sets of parameters per rule that are checked
SMALLEST_SHARE = 0.02  # of a rule's probability, from which on a set of its parameters is probable
MOST_LINES = 5  # combinations of a rule's other parameters
MOST_RULES, MOST_CHEAP = 3, 9  # values of a rule's unknown parameter that are averaged; of one whose filter is quick
LINE_HEAT = Heat(None, 75, 24, 2, quick=True)  # for the evidence of more values of a parameter
WIDE, FEWEST_WIDE = 0.2, 3  # deviation of the parameter's logarithm, from which on at least so many values are averaged
SELDOM = 0.25  # of the share of the most probable line of values: for one with less that is not done
MOST_ERROR = 2.0  # of an evidence on such a curve: those that allow for clouds that fell short are larger
FINE, ENOUGH, ANEW = 5, 6, 9  # such values at a time, those near the top that are enough, and from scratch
PRECISE, ENOUGH_PRECISE = 0.1, 4  # errors of evidences of which fewer are enough
ACROSS_PLACES, FEWEST_ACROSS = 41, 3  # of two parameters: places along each, and values of each that show a surface
MOST_MISSED = 1.0  # error of evidence that shows by how much Laplace's method is wrong
WIDEST, APART = 0.7, 6  # deviation of a logarithm from which on places are chosen apart from each other, and how many
LARGE_SHARE = 0.05  # of a rule's probability, from which on a set of its parameters must not fit either
FEW_INSIDE = 0.05  # share of a cloud's draws with all means between 0 and 1, below which those beyond are kept
PROBABLY = 0.8  # the probability that an arm needs to be called the best under one rule
INTERVAL, REACH = (0.025, 0.975), 1.96
PRIOR_DRAWS, OF_PRIOR = 4_000, 2 / 3  # of the prior, and the part of its gaps' interval above which one is the prior's
MOST_NAMED, MOST_ALLOWED = 5, 50.0  # arms in a sentence, and of an error, as a logarithm
DIFFER, BY_EVIDENCE = "clouds-differ", "evidence-differs"  # what asks for more particles; the evidence is known already
AS_NORMAL = "Its numbers are not known to as many digits as rewards of 0 and 1 show."


@dataclass(frozen=True, eq=False)
class RuleValues:
    """The means under one rule that may have made a demonstration, averaged over its unknown parameters."""

    means: NDArray[np.float64]  # (clouds, draws, arms)
    posterior: Posterior | None  # of the most probable parameters; None where the log says nothing about the means
    reason: str | None = None  # why there is none
    by_rule: tuple[tuple[Demonstrator, NDArray[np.float64]], ...] = ()  # the means under each of its sets of parameters

    @property
    def probability_best(self) -> NDArray[np.float64]:
        """Return for each arm the probability that it is the best."""
        flat = self.means.reshape(-1, self.means.shape[-1])
        return np.asarray(np.bincount(flat.argmax(axis=1), minlength=flat.shape[1]) / len(flat))

    @property
    def best(self) -> int | None:
        """Return the arm that is probably the best; None where none is, or the log says nothing about it."""
        chance = self.probability_best
        return int(chance.argmax()) if self.posterior is not None and chance.max() >= PROBABLY else None


def _answered(means: NDArray[np.float64], rivals: NDArray[np.bool_] | None, which: int) -> AnsweredMeans:
    """Return what a check asks for of the only demonstration."""
    draws = means.reshape(-1, means.shape[-1])
    gaps = gaps_of(draws, rivals)
    low, high = np.quantile(gaps, INTERVAL, axis=0)
    return AnsweredMeans(np.median(gaps, axis=0), low, high, REACH, draws.mean(axis=0), draws)


class ParameterCurve(NamedTuple):
    """How probable each value of a parameter is, or of two."""

    places: NDArray[np.float64]  # values, (places, parameters); of two parameters their logarithms
    weights: NDArray[np.float64]  # which sum to 1


@dataclass(frozen=True, eq=False)
class ParameterLine:
    """Some values of a rule's unknown parameter, and what is known of all others."""

    rules: list[Demonstrator]
    shares: list[float]  # of the candidate's probability
    curve: ParameterCurve | None = None  # of all values that are possible, where there is one
    axes: tuple[str, ...] = ()  # the parameter's name, or two

    @property
    def values(self) -> NDArray[np.float64]:
        """Return what each rule has in the place of the curve's parameters."""
        found = np.array([[getattr(rule, axis) for axis in self.axes] for rule in self.rules])
        return np.log(found) if len(self.axes) > 1 else found


def values_under(request: IdentificationRequest, which: int, candidate: Contender, draws: int = DRAWS) -> RuleValues:
    """Return the means of one demonstration under a candidate, averaged over its probable parameters."""
    if candidate.normal:
        request = with_normal_rewards(request)
    lines = probable_lines(request, candidate)
    parts, mixed, found, reason = [], [], None, None
    generator = np.random.default_rng([request.seed, 5, which])
    rules = [rule for line in lines for rule in line.rules]
    shared = len(rules) > 1 and all(isinstance(each, RandomisedRule) and each.smooth for each in rules)
    particles = min(PARTICLES, max(SHARED_PARTICLES // len(rules), FEWEST)) if shared else PARTICLES
    tried = (particles, MORE * PARTICLES) if len(rules) > 1 else (particles,)
    allotted = _allotted(np.array([sum(line.shares) for line in lines]), draws).tolist()
    for line, number in zip(lines, allotted, strict=True):
        own: list[tuple[int, Posterior]] = []
        for at, rule in enumerate(line.rules if number else []):
            try:
                posterior = _posterior(request, which, rule, draws, tried)
                own.append((at, posterior))
                parts.append((rule, posterior.means))
                found = found or posterior
            except (InferenceError, NotIdentifiable) as refusal:
                reason = reason or refusal.text
        if own:
            bounded = isinstance(request.prior, BetaPrior)
            mixed.append(_line_draws(line, own, number, generator, bounded=bounded))
    if found is None:
        return RuleValues(request.prior.draw(generator, (CLOUDS, draws, len(request.log.arms))), None, reason)
    means = np.concatenate(mixed, axis=1)
    return RuleValues(_between_0_and_1(means, generator) if candidate.normal else means, found, by_rule=tuple(parts))


def _between_0_and_1(means: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """Return as many draws of each cloud, of those with all means between 0 and 1; all of them if few are."""
    inside = np.asarray(((means >= 0) & (means <= 1)).all(axis=2))
    if inside.mean(axis=1).min() < FEW_INSIDE:
        return means
    kept = [np.resize(generator.permutation(np.flatnonzero(each)), each.size) for each in inside]
    return np.array([own[which] for own, which in zip(means, kept, strict=True)])


def _line_draws(
    line: ParameterLine, found: Sequence[tuple[int, Posterior]], number: int, generator: np.random.Generator, *,
    bounded: bool,
) -> NDArray[np.float64]:  # fmt: skip
    """Return so many draws of each cloud along a line; intervals of a few values alone would end where these do."""
    means = np.array([posterior.means for _, posterior in found])
    if line.curve is not None and len(found) == len(line.rules) > 1:
        return draws_between(means, line.values, *line.curve, generator, bounded=bounded)[:, :number]
    split = _allotted(np.array([line.shares[at] for at, _ in found]), number).tolist()
    return np.concatenate([own[:, :own_number] for own, own_number in zip(means, split, strict=True)], axis=1)


def probable_lines(request: IdentificationRequest, candidate: Contender) -> list[ParameterLine]:
    """Return a candidate's probable parameters: more sets of them the more probable it is.

    Guesses that differ in the parameter that nobody knows are a line, along which values are equally likely by a smooth
    curve through the evidences: these have errors, which would let a single guess have most of the weight. Lines side
    by side are one surface.
    """
    lines: dict[str, list[Guess]] = {}
    for guess in candidate.guesses:
        axis = axis_of(guess.rule, candidate)
        own = str(guess.rule) if axis is None else f"{axis}: {_but_for((axis, candidate.across), guess.rule)}"
        lines.setdefault(own, []).append(guess)
    most = MOST_CHEAP if _is_quick(candidate.guesses[0].rule) else MOST_RULES
    probable: list[ParameterLine] = []
    shares = {own: sum(guess.share for guess in line) for own, line in lines.items()}
    largest = max(shares.values())
    for own in sorted(lines, key=lambda own: -shares[own])[:MOST_LINES]:
        line, share = lines[own], shares[own]
        if share < SMALLEST_SHARE:
            continue
        count = max(1, math.ceil(most * candidate.probability * share - 1e-9))
        axis = axis_of(line[0].rule, candidate)
        axes = () if axis is None else (axis,)
        surface = _surface_of(line, candidate)
        if surface is not None:
            rules = surface.rules(count > 1)
            both = surface.curve if len(rules) > 1 else None
            probable.append(ParameterLine(rules, [share / len(rules)] * len(rules), both, surface.axes))
            continue
        fewest = FEWEST_WIDE if share >= SELDOM * largest else 1
        along = _along(request, line, axis, count, fewest) if axis is not None and len(line) > 1 else None
        if along is None:
            few = [guess for guess in line if guess.share >= SMALLEST_SHARE * share] or line[:1]
            probable.append(ParameterLine([guess.rule for guess in few], [guess.share for guess in few], axes=axes))
        else:
            rules, curve = along
            probable.append(ParameterLine(rules, [share / len(rules)] * len(rules), curve, axes))
    return probable


class ParameterSurface(NamedTuple):
    """How probable each pair of values of two unknown parameters is."""

    first: Demonstrator  # with the most probable ones of those that were tried
    axes: tuple[str, ...]
    curve: ParameterCurve

    def rules(self, several: bool) -> list[Demonstrator]:
        """Return the rule at the centre, and beside it: both ways along the principal axes, or where these are long."""
        places, weights = self.curve
        centre, ways = principal_axes(places, weights)
        if not several:
            return [self._at(centre)]
        if np.abs(ways).max() > WIDEST:
            return [self._at(place) for place in spread_out(places, weights, APART)]
        ways = ways * math.sqrt((2 * len(ways) + 1) / 2)
        return [self._at(place) for place in np.vstack([centre, centre + ways, centre - ways])]

    def _at(self, place: NDArray[np.float64]) -> Demonstrator:
        inside = np.exp(np.clip(place, self.curve.places.min(axis=0), self.curve.places.max(axis=0)))
        return type(self.first)(**(self.first.model_dump() | dict(zip(self.axes, inside.tolist(), strict=True))))

    def quantiles(self, axis: str) -> list[float]:
        """Return the ends of a 95% interval and the median of one of them."""
        places = self.curve.places[:, self.axes.index(axis)]
        return [math.exp(quantile(places, self.curve.weights, each)) for each in (INTERVAL[0], 0.5, INTERVAL[1])]


def _surface_of(line: Sequence[Guess], candidate: Contender) -> ParameterSurface | None:
    """Return how probable values of two parameters are, by a smooth function through the evidence of guesses.

    None for guesses of a single unknown parameter, and where too few are near the top. Laplace's method has no
    Monte-Carlo errors, and by how much it is wrong changes little: guesses that were filtered show that.
    """
    axis, across = candidate.axis, candidate.across
    if axis is None or across is None:
        return None
    axes = (axis, across)
    rough = all(guess.evidence.laplace is not None for guess in line if guess.evidence.value > -math.inf)
    known = np.array([(guess.evidence.laplace if rough else guess.evidence.value) or 0.0 for guess in line])
    known = np.where([guess.evidence.value > -math.inf for guess in line], known, -math.inf)
    at = np.log([[getattr(guess.rule, name) for name in axes] for guess in line])
    top, errors = known.max(), [guess.evidence.scatter for guess in line]
    near = known > top - WINDOW
    if not np.isfinite(top) or any(np.unique(at[:, each]).size < FEWEST_ACROSS for each in (0, 1)):
        return None
    ends = []
    for column in at.T:  # as far as the neighbours of all that is near the top
        tried = np.unique(column)
        low, high = (int(np.searchsorted(tried, each)) for each in (column[near].min(), column[near].max()))
        ends.append((tried[max(low - 1, 0)], tried[min(high + 1, tried.size - 1)]))
    places = np.array(list(product(*(np.linspace(*each, ACROSS_PLACES) for each in ends))))
    smoothing = 0.0 if rough else float(np.median(np.array(errors)[near])) ** 2
    values = np.maximum(known, top - LEAST)
    between = RBFInterpolator(at, values, kernel="cubic", smoothing=smoothing)(places)
    weights = np.exp(between - between.max())
    asked = [
        (place, guess.evidence.value - guess.evidence.laplace, guess.evidence.error)
        for place, guess in zip(at, line, strict=True)
        if guess.evidence.laplace is not None and not guess.evidence.rough and guess.evidence.error <= MOST_MISSED
    ]
    if rough and asked:
        where, missed, uncertain = (np.array(each) for each in zip(*asked, strict=True))
        axes_of_it = principal_axes(places, weights / weights.sum())
        error = max(float(np.sqrt(np.mean(np.square(uncertain)))), ALIKE)
        more, variance = Correction.fitted(*axes_of_it, where, missed, error)(places)
        between = between + more + np.minimum(variance - variance.min(), 1.0) / 2
        weights = np.exp(between - between.max())
    return ParameterSurface(line[0].rule, axes, ParameterCurve(places, weights / weights.sum()))


def _is_quick(rule: Demonstrator) -> bool:
    """Return whether a rule's filter takes little time and, with few particles, has large errors."""
    return isinstance(rule, EliminationRule)


def _along(
    request: IdentificationRequest, line: Sequence[Guess], axis: str, count: int, fewest: int
) -> tuple[list[Demonstrator], ParameterCurve] | None:
    """Return equally likely values, the central ones first, and their curve; None where it is too sharp.

    `fewest` is their number, at least, where the curve is wide.
    """
    first = line[0].rule
    errors: dict[tuple[float, ...], float]
    errors = {(math.log(getattr(guess.rule, axis)),): guess.evidence.scatter for guess in line}
    nearest = max((guess.evidence for guess in line), key=lambda each: each.value)
    rough = all(guess.evidence.laplace is not None for guess in line if guess.evidence.value > nearest.value - WINDOW)

    def rule_at(x: float) -> Demonstrator:
        return type(first)(**(first.model_dump() | {axis: math.exp(x)}))

    def evidence(x: NDArray[np.float64], clouds: int) -> float:
        try:
            found = log_evidence(request, rule_at(float(x[0])), LINE_HEAT._replace(rough=rough))
            errors[float(x[0]),] = found.scatter
            missed = nearest.value - nearest.laplace if found.rough and nearest.laplace is not None else 0.0
            return found.value + missed
        except ParameterError:
            return -math.inf

    places = sorted((math.log(getattr(guess.rule, axis)), guess.evidence.value) for guess in line)
    if _is_quick(first):  # few particles may have missed all that is probable
        anew = np.linspace(places[0][0], places[-1][0], ANEW).tolist()
        places = [(x, evidence(np.array([x]), 1)) for x in anew]
    known: dict[tuple[float, ...], float] = {(x,): value for x, value in places}
    top = max(known.values())
    if top == -math.inf:
        return None
    precise = np.median([errors.get(x, 0.0) for x, value in known.items() if value > top - WINDOW]) < PRECISE
    enough = ENOUGH_PRECISE if precise else ENOUGH
    xs, values = narrowed(evidence, known, np.array([x for x, _ in places]), FINE, enough)
    if len(xs) < enough:
        return None
    error = float(np.median([errors.get(x, 0.0) for x in map(tuple, xs.tolist())]))
    at, density = evidence_density(xs, values, min(error, MOST_ERROR))
    weights = density / density.sum()
    if float(weights @ np.square(at[:, 0] - weights @ at[:, 0])) > WIDE**2:
        count = max(count, fewest)
    inside = np.clip(spread_quantiles(at[:, 0], weights, count), places[0][0], places[-1][0])
    rules = [rule_at(x) for x in sorted(inside.tolist(), key=lambda x: abs(x - float(np.median(inside))))]
    return rules, ParameterCurve(np.exp(np.clip(at, places[0][0], places[-1][0])), weights)


def _posterior(
    request: IdentificationRequest, which: int, rule: Demonstrator, draws: int, tried: Sequence[int]
) -> Posterior:
    """Return the means under one set of parameters, with few particles where they suffice."""
    record, horizons = request.log.select(which), [request.horizons[which]]
    given = (record, rule, request.prior, request.noise, horizons)
    options: dict[str, Any] = {"clouds": CLOUDS, "draws": draws, "seed": request.seed, "threads": request.threads}
    options["there"] = request.there
    belief = belief_of(request.prior, len(record.arms), request.noise, None)
    look_ahead = one_look_ahead(record, rule, belief, horizons, request.seed, request.there)
    for particles in (request.particles,) if request.particles else tried:
        with suppress(InferenceError):
            found = infer(*given, particles=particles, look_ahead=look_ahead, **options)
            enough = particles in (request.particles, MORE * PARTICLES)
            if enough or all(notice.code != DIFFER for notice in found.warnings):
                return found
    return infer(*given, particles=None, **options)


def _allotted(shares: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """Split a number in proportion to shares; each part is off by less than one."""
    ends = np.floor(np.cumsum(shares / shares.sum()) * number + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)


def checked_rule(
    request: IdentificationRequest, candidate: Contender, values: RuleValues | None
) -> tuple[Check, Demonstrator]:
    """Check whether a candidate fits the log; one whose parameters are unknown does if any probable set of them does.

    Each is checked with the means under it: those under another scale are others. Returns the check, and the rule with
    the parameters that fit best.
    """
    if candidate.normal:
        return not_checked(AS_NORMAL), candidate.guesses[0].rule
    probable = [guess for guess in candidate.guesses[:MOST_GUESSES] if guess.share >= LARGE_SHARE]
    sets: list[tuple[Demonstrator, NDArray[np.float64] | None]]
    sets = [(guess.rule, None if values is None else values.means) for guess in probable or candidate.guesses[:1]]
    if values is not None and values.by_rule:
        sets = list(values.by_rule[:MOST_GUESSES])
    tried: list[tuple[Check, Demonstrator]] = []
    rivals = None if values is None or values.posterior is None else values.posterior.rivals
    for rule, means in sets:
        check = check_log(
            request.log, rule, request.noise, list(request.horizons),
            None if means is None else partial(_answered, means, rivals), seed=request.seed, threads=request.threads,
            availability=request.there, alone=request.alone,
        )  # fmt: skip
        tried.append((check, rule))
        if check.verdict != "does not fit":
            return tried[-1]
    return max(tried, key=lambda each: each[0].p_value or 0.0)


def mixed_values(
    request: IdentificationRequest, rules: Sequence[tuple[Contender, RuleValues]], draws: int = DRAWS
) -> Posterior | None:
    """Average the means over rules in proportion to their probabilities; None where the log says nothing about them.

    The log evidence is that of the rules together, all equally likely before.
    """
    informative = [values.posterior for _, values in rules if values.posterior is not None]
    if not informative:
        return None
    weights = np.array([candidate.probability for candidate, _ in rules])
    parts = [
        values.means[:, np.linspace(0, values.means.shape[1] - 1, part).round().astype(int)]
        for (_, values), part in zip(rules, _allotted(weights, draws).tolist(), strict=True)
    ]
    means = np.concatenate(parts, axis=1)
    order = np.random.default_rng([request.seed, 4]).permutation(means.shape[1])
    notices = {each.code: each for own in informative for each in own.warnings}
    name = " or ".join(candidate.name for candidate, _ in rules)
    found = replace(informative[0], rule=name, means=means[:, order], warnings=tuple(notices.values()))
    if len(rules) == 1 and len(rules[0][1].by_rule) <= 1:
        return found
    found = replace(found, warnings=tuple(each for each in found.warnings if each.code != BY_EVIDENCE))
    values, errors = (np.array([getattr(each.evidence, part) for each, _ in rules]) for part in ("value", "error"))
    evidence, _ = log_mean(values)
    shares = np.exp(values - evidence) / len(rules)
    return replace(  # no cloud and no hidden path is of several rules
        found, log_evidence=evidence, log_evidence_error=float(np.hypot.reduce(shares * errors)),
        evidences=np.full_like(found.evidences, np.nan), effective_size=math.nan,
        judged=partial(np.full, int(request.log.lengths[0]), np.nan),
        path_rounds=found.path_rounds[:0], path=found.path[:0],
    )  # fmt: skip


def imprecise_values(rules: Sequence[tuple[Contender, RuleValues]]) -> list[Notice]:
    """Name the rules under which clouds of particles differ about the values."""
    found = [
        (candidate.name, notice) for candidate, values in rules if values.posterior is not None
        for notice in values.posterior.warnings if notice.code == DIFFER
    ]  # fmt: skip
    return [replace(notice, text=f"Under {name}: {notice.text}") for name, notice in found]


def said_of_values(
    request: IdentificationRequest, rules: Sequence[tuple[Contender, RuleValues]]
) -> list[Notice]:  # fmt: skip
    """Say under which rules the values are, and whether these agree about the best arm."""
    arms = request.log.arms
    best = {candidate.name: arms[values.best] for candidate, values in rules if values.best is not None}
    if len(set(best.values())) > 1:
        text = "; ".join(f"{quoted(arm)} under {name}" for name, arm in best.items())
        return [Notice("rules-disagree", f"The rules that are still probable disagree about the best arm: {text}.")]
    if all(values.posterior is None for _, values in rules):
        reason = next((values.reason for _, values in rules if values.reason), "the log is too short.")
        return [Notice("no-values", f"The log says nothing about what the arms were worth: {reason}")]
    if len(rules) > 1 and len(best) == len(rules):
        text = f"Under every rule that is still probable, {quoted(next(iter(best.values())))} is the best arm."
        return [Notice("rules-agree", text)]
    return []


def arms_from_prior(request: IdentificationRequest, values: Posterior | None) -> list[str]:
    """Return the arms whose gaps are little but the prior's: their intervals are about as wide without the log."""
    if values is None or len(values.arms) < 2:
        return []
    generator = np.random.default_rng([request.seed, 6])
    drawn = request.prior.draw(generator, (PRIOR_DRAWS, len(values.arms)))
    low, high = np.quantile(np.sort(gaps_of(drawn, values.rivals), axis=1)[:, 1:], INTERVAL)
    ends = np.quantile(values.gaps.reshape(-1, len(values.arms)), INTERVAL, axis=0)
    return [arm for arm, width in zip(values.arms, ends[1] - ends[0], strict=True) if width > OF_PRIOR * (high - low)]


def gaps_from_prior(request: IdentificationRequest, values: Posterior | None) -> list[Notice]:
    """Name these arms."""
    named = arms_from_prior(request, values)
    if not named:
        return []
    which, comes, of = "The gaps", "come", "their intervals are"
    if len(named) == 1:
        which, comes, of = "The gap", "comes", "its interval is"
    shown = [quoted(arm) for arm in named[:MOST_NAMED]]
    more = [counted(len(named) - MOST_NAMED, "more arm")] if len(named) > MOST_NAMED else []
    text = (
        f"{which} of {joined([*shown, *more])} {comes} mostly from the prior: {of} nearly as wide as without the log. "
        f"Give a prior that fits what you know, with {option('prior')}."
    )
    return [Notice("gaps-from-prior", text, arm=named[0])]


def said_of_parameters(candidate: Contender) -> str:
    """Write a candidate's probable parameters, like `scale 1.41 (1.19 to 1.68)`: a median with a 95% interval.

    The interval comes from the evidence of each value, which stands for those up to halfway to its neighbours, with
    all other parameters as they are most probable. Of a parameter with a few values alone, the probable ones are named.
    A rule's own sigma is what it believes of the rewards, not what they have. A bare name of which a single rule is
    left has what is unusual about that.
    """
    if not candidate.possible:
        return ""
    first, kind = candidate.guesses[0].rule, type(candidate.guesses[0].rule)
    every = [guess.rule.model_dump() for guess in candidate.guesses]
    if "initial" in kind.model_fields and ":" not in candidate.name:  # what has to be given to `estimate` too
        every += [every[0] | {"initial": kind.model_fields["initial"].default}]
    if len(candidate.guesses) == 1 and ":" not in candidate.name:
        usual = {name: field.default for name, field in kind.model_fields.items() if name not in ("noise", "sigma")}
        every += [every[0] | {name: default for name, default in usual.items() if isinstance(default, float | str)}]
    axis = axis_of(first, candidate)
    form = [guess for guess in candidate.guesses if axis_of(guess.rule, candidate) == axis]
    surface = _surface_around(candidate)
    probable = [guess for guess in form if guess.share >= SMALLEST_SHARE] or form[:1]
    written = []
    for key in kind.model_fields:
        if getattr(first, key) is None or len({str(each[key]) for each in every}) == 1:
            continue
        called = "believed sigma" if key == "sigma" else key
        line = [guess for guess in form if _but_for((axis,), guess.rule) == _but_for((axis,), first)]
        if (surface is not None and key in surface.axes) or (key == axis and len(line) > 1):
            low, middle, high = _axis_quantiles(line, key) if surface is None else surface.quantiles(key)
            written.append(f"{called} {middle:.3g} ({low:.3g} to {high:.3g})")
        else:
            values = dict.fromkeys(getattr(guess.rule, key) for guess in probable)
            written.append(f"{called} {' or '.join(_said_value(value) for value in values)}")
    return ", ".join(written)


def believed_sigma(candidate: Contender) -> list[float] | None:
    """Return low end, median and high end of the noise that a candidate would have believed in; None if it has none."""
    first = candidate.guesses[0].rule
    if axis_of(first, candidate) != "sigma":
        return None
    if (surface := _surface_around(candidate)) is not None:
        return surface.quantiles("sigma")
    line = [guess for guess in candidate.guesses if _but_for(("sigma",), guess.rule) == _but_for(("sigma",), first)]
    return _axis_quantiles(line, "sigma") if len(line) > 1 else None


def _surface_around(candidate: Contender) -> ParameterSurface | None:
    """Return how probable values of two unknown parameters are, all else as in the most probable guess."""
    axes = (candidate.axis, candidate.across)
    own = _but_for(axes, candidate.guesses[0].rule)
    return _surface_of([guess for guess in candidate.guesses if _but_for(axes, guess.rule) == own], candidate)


def _but_for(axes: Sequence[str | None], rule: Demonstrator) -> str:
    """Write all parameters of a rule but some."""
    return str(rule.model_dump(exclude={axis for axis in axes if axis is not None}))


def _said_value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _axis_quantiles(form: Sequence[Guess], axis: str) -> list[float]:
    """Return the ends of a 95% interval and the median of a parameter that has a line of values.

    On a scale of ratios the probability of a value is spread evenly up to halfway to its neighbours; beyond the
    outermost ones by as much, but not beyond what the rule takes. A value that may be as probable as the first one, as
    far as the Monte-Carlo error shows, counts as much.
    """
    shares, top = dict[float, float](), max(guess.evidence.value for guess in form)
    for guess in form:
        place = math.log(getattr(guess.rule, axis))
        allowed = min(guess.evidence.scatter, top - guess.evidence.value, MOST_ALLOWED)
        shares[place] = shares.get(place, 0.0) + guess.share * math.exp(allowed)
    at = np.array(sorted(shares))
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[at[0] - (middle[0] - at[0])], middle, [at[-1] + (at[-1] - middle[-1])]])
    below = np.concatenate([[0.0], np.cumsum([shares[place] for place in at.tolist()])])
    _, most = limits_of(type(form[0].rule), axis)
    ends = np.exp(np.interp([INTERVAL[0], 0.5, INTERVAL[1]], below / below[-1], edges))
    return [float(each) for each in np.minimum(ends, math.inf if most is None else most)]
