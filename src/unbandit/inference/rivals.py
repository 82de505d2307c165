"""Rivals of a rule: what else may have made a record.

A rule is tested against the others of its kind with their usual parameters, and against itself with rewards that
scatter less or more, with a leading arm that gets better or worse, or in batches; `random_choices` stands for every
rule that chooses at random. A rule that chooses at random is tested against all index rules, whose logs are so regular
that simulations alone hardly notice, against choices that depend on no reward (`odds_of_rivals`): means that are
all alike let most rules look like those; and against itself with other numbers (`odds_of_numbers`), with its
beginning missing (`settled_from_the_start`), or with an arm withdrawn (`withdrawals`).
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule, rules
from unbandit.errors import InferenceError, NotIdentifiable, ParameterError
from unbandit.fit import IF
from unbandit.inference.clouds import evidence_without_clouds, one_look_ahead, run_filters
from unbandit.inference.decisions import Decisions, Predictions, predict, without_rule
from unbandit.inference.filter import log_mean
from unbandit.inference.prior import NormalPrior, Prior, belief_of, usual_prior
from unbandit.inference.steps import opening_chance
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.kernels.smc.cloud import Belief
from unbandit.log import ActionLog
from unbandit.log.availability import Availability

FACTORS = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)  # standard deviations of a reward, times the assumed one
NUMBERS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)  # numbers of a rule that chooses at random, times the one given
FALLS = (2.0, -2.0)  # of the most-pulled arm, in units of its lead
RANDOM, UNIFORM = "choices at random", "uniform"
MEMORIES = {f"{RANDOM}, {memory:.0f} rounds remembered": memory for memory in (50.0, 400.0)} | {RANDOM: math.inf}

ROUGHLY = Gaussian(0.5)  # rewards of 0 and 1, as index rules are asked about them
RIVAL_PARTICLES = 24
QUICK, THOROUGH, OWN_CLOUDS = 50, 400, 4  # particles and clouds of the rule that is tested
CHANCE_CLOUDS = 2  # the same of an index rule, with as many particles as usual
ROOM = 5.0  # nats that the rule may be behind because its means, and its evidence, are not known exactly
BEGINNINGS, FOLLOWING = (4, 8, 16, 32, 64), 4  # rounds per arm; and how many times as many are compared with them
SETTLED = 7.0  # nats by which a log looks as if it began in mid-run, beyond which that is said (as measured)
FEWEST_NATS, MOST_SILENT = 5.0, 3  # of an arm's silence, to be asked about at all; and of how many arms
WITHDRAWN = 6.0  # nats and those of the number of arms, beyond which an arm is said to be withdrawn (as measured)
NEARLY_AS_PROBABLE = 3.0  # nats behind the most probable rival, within which others are named


class Rival(NamedTuple):
    """Another rule, or the same with other rewards, that may have made a record."""

    name: str
    rule: IndexRule
    noise: Noise
    drift: tuple[int, float] | None = None  # an arm, and by how much its mean changes up to the horizon


def predicts(rule: Demonstrator, noise: Noise, there: Availability | None = None) -> bool:
    """Return whether decisions of a rule can be predicted one by one: of an index that is the mean plus an offset.

    Rewards must not be late: then a decision shows nothing about the last rewards. Nor may arms be (`there`): a new one
    is pulled many times in a row, and when that ends shows its mean more sharply than particles foresee.
    """
    if there is not None and (there.arrives or getattr(rule, "batch", 1) > 1):
        return False
    return isinstance(rule, IndexRule) and rule.shifts and rule.delay == 0 and isinstance(noise, Gaussian)


def rivals_of(rule: IndexRule, noise: Gaussian, log: ActionLog, gap: float, *, batched: bool = True) -> list[Rival]:
    """Return other index rules with usual parameters, and the rule itself under other circumstances.

    These are other noise, a drifting arm and, if `batched`, batches of rounds where the record looks like it. `gap` is
    by how much the most-pulled arm is better than the next.
    """
    arms, found = len(log.arms), list[Rival]()
    for each in rules().values():
        if not (issubclass(each, IndexRule) and each.proposed) or each.name == rule.name:
            continue
        usual = usual_parameters(each, noise, log)
        if isinstance(usual, IndexRule) and predicts(usual, noise):
            found.append(Rival(str(usual), usual.for_arms(arms), noise))
    for sigma in (noise.sigma * factor for factor in FACTORS):
        found.append(Rival(f"{rule}{IF}rewards have a standard deviation of {sigma:.3g}", rule, Gaussian(sigma)))
    if batched and rule.batch == 1 and (size := batch_of(log, rule.initial)) > 1:
        slower = rule.model_copy(update={"batch": size})
        found.append(Rival(str(slower), slower, noise))
    leader = int(log.pulls[0].argmax())
    for fall in FALLS:
        name = f'{rule}{IF}arm "{log.arms[leader]}" gets {"worse" if fall > 0 else "better"} over time'
        found.append(Rival(name, rule, noise, (leader, -fall * gap)))
    return found


def weights_of(rule: IndexRule, rivals: Sequence[Rival]) -> dict[str, float]:
    """Return how probable each rival is before anything is seen: half for other rules, half for other circumstances.

    Choices at random count as other rules.
    """
    others = [each.name for each in rivals if each.rule.name != rule.name]
    same = [each.name for each in rivals if each.rule.name == rule.name]
    half = 0.5 if others else 0.25
    weights = dict.fromkeys(same, (1 - half) / len(same)) | dict.fromkeys(MEMORIES, 0.2 * half / len(MEMORIES))
    return weights | {name: 0.8 * half / len(others) for name in others}


def batch_of(log: ActionLog, initial: int = 1) -> int:
    """Return the largest batch of rounds that a log may have been decided in: what all its stretches are multiples of.

    The last stretch may be cut off. One that has no end says nothing.
    """
    after = log.demonstration(0)[initial * len(log.arms) :]
    ends = np.flatnonzero(np.diff(after)) + 1
    return int(np.gcd.reduce(np.diff(ends, prepend=0))) if ends.size > 1 else 1


def usual_parameters(rule: type[Demonstrator], noise: Noise, log: ActionLog) -> Demonstrator | None:
    """Return a rule with its default parameters, where these suit the noise, or else the first guess at them."""
    tried = [guess for guess, _ in rule.guesses(noise, log)]
    with suppress(ParameterError):
        tried.insert(0, rule())
    return next((each for each in tried if isinstance(noise, Bernoulli) or not each.bernoulli_only), None)


def random_choices(decisions: Decisions) -> Mapping[str, Predictions]:
    """Predict as one who chooses at random, with a shorter and a longer memory."""
    return {name: without_rule(decisions, memory) for name, memory in MEMORIES.items()}


class Odds(NamedTuple):
    """How much more probable choices are under rivals, all together, than under the rule that is tested."""

    log_ratio: float
    names: tuple[str, ...]  # the most probable rivals
    same_rule: bool = False  # whether rivals are the rule itself with other numbers: what room they need is taken off

    @property
    def room(self) -> float:
        """Return by how many nats the rule may be behind, though it made the log."""
        return 0.0 if self.same_rule else ROOM

    @property
    def p_value(self) -> float:
        """Return the probability, at most, that a log of the rule has such odds: 1 / r at a ratio of r, with room."""
        return math.exp(min(self.room - self.log_ratio, 0.0))


def _without_rewards(log: ActionLog) -> dict[str, float]:
    """Return the log probability of all rounds but the first, one per arm, by choices that depend on no reward.

    They are uniform, or prefer some arms, for ever or for a while.
    """
    arms, actions = len(log.arms), log.demonstration(0).astype(np.int64)
    after = Decisions(actions[arms:], actions[arms - 1 : -1], np.zeros(actions.size - arms, np.int64), arms)
    uniform = {UNIFORM: -after.chosen.size * math.log(arms)}
    return uniform | {name: each.log_evidence for name, each in random_choices(after).items()}


def _together(log_evidence: Mapping[str, float]) -> Odds:
    """Return the log evidence of rivals together, to be compared with a rule's, and the names of the best."""
    ordered = sorted(log_evidence, key=lambda name: -log_evidence[name])
    near = [name for name in ordered if log_evidence[name] > log_evidence[ordered[0]] - NEARLY_AS_PROBABLE]
    names = dict.fromkeys(RANDOM if name.startswith(RANDOM) else name for name in near)
    return Odds(float(np.logaddexp.reduce([*log_evidence.values()])), tuple(names))


def odds_of_chance(
    log: ActionLog, rule: IndexRule, noise: Noise, prior: Prior, horizon: int, seed: int, threads: int,
    there: Availability | None = None,
) -> Odds:  # fmt: skip
    """Compare an index rule with choices that depend on no reward, where its decisions cannot be predicted one by one.

    Such a rule leaves nothing to chance but rewards: a log of another rule is mostly impossible under it.

    Raises
    ------
    InferenceError
        If no particle explains the log.
    """
    blind, belief = _without_rewards(log), belief_of(prior, len(log.arms), noise, None)
    odds = _together({name: value - math.log(len(blind)) for name, value in blind.items()})
    given = log, rule, belief, [horizon], None, CHANCE_CLOUDS, seed, threads
    own = run_filters(*given, keep_paths=False, there=there).evidences
    return odds._replace(log_ratio=odds.log_ratio - log_mean(own)[0] - float(np.ptp(own)))


def odds_of_rivals(
    log: ActionLog, rule: RandomisedRule, noise: Noise, prior: Prior, horizon: int, seed: int, threads: int,
    there: Availability | None = None,
) -> Odds | None:  # fmt: skip
    """Compare a rule that chooses at random with others, by the probability of a log.

    These are choices that depend on no reward and, with half of the weight, index rules with the parameters that
    `identify` tries first. Any prediction of the actions may stand against the rule's own, so normal rewards do for
    index rules where the log's are 0 and 1. All predict the rounds after the first, one per arm: by which convention a
    log opens says nothing about the rest. Few particles may miss much of the rule's own probability: before the odds
    are against it, more are asked. None where they find none at all. `there` says up to which rounds arms could be
    pulled.
    """
    gaussian = noise if isinstance(noise, Gaussian) else ROUGHLY
    wide = usual_prior(noise, None) if gaussian is noise else NormalPrior(0.0, gaussian.sigma)
    kinds = [
        [(each, weight) for each, weight in kind.guesses(gaussian, log) if predicts(each, gaussian)]
        for kind in rules().values()
        if issubclass(kind, IndexRule) and kind.proposed
    ]
    kinds = [kind for kind in kinds if kind]
    rivals = [(each, math.log(0.5 * weight / len(kinds))) for kind in kinds for each, weight in kind]

    def by_rival(each: IndexRule) -> float:
        try:
            given = log, each.for_arms(len(log.arms)), gaussian, wide, horizon, RIVAL_PARTICLES
            return predict(*given, seed=seed, evidence_only=True, there=there).log_evidence
        except InferenceError:  # it opens otherwise
            return -math.inf

    found = checks.in_threads(by_rival, [(each,) for each, _ in rivals], threads)
    by_name = {str(each): value + weight for value, (each, weight) in zip(found, rivals, strict=True)}
    blind = _without_rewards(log)
    by_name |= {name: value + math.log(0.5 / len(blind)) for name, value in blind.items()}
    together, belief = _together(by_name), belief_of(prior, len(log.arms), noise, None)
    odds, usual = together._replace(log_ratio=-math.inf), (rule, belief, [horizon])
    try:
        first = np.array([opening_chance(log, 0, rule, there)])
        if getattr(rule, "initial", 0) == 0:
            given = log.select(0, len(log.arms)), *usual, THOROUGH, OWN_CLOUDS, seed, threads
            first = run_filters(*given, keep_paths=False, tolerant=True, there=there).evidences
        first = first[np.isfinite(first)]
        for particles in (QUICK, THOROUGH):
            quick = one_look_ahead(log, *usual, seed, there) if particles == QUICK else None
            given = log, *usual, particles, OWN_CLOUDS, seed, threads
            own = run_filters(*given, keep_paths=False, tolerant=True, look_ahead=quick, there=there).evidences
            finite = own[np.isfinite(own)]
            if finite.size < 2 or not first.size:
                return None
            after = log_mean(finite)[0] - log_mean(first)[0]
            odds = odds._replace(log_ratio=together.log_ratio - after - float(np.ptp(finite)))
            if odds.log_ratio <= ROOM and np.ptp(finite) <= ROOM:
                break
    except InferenceError:
        return None
    return odds


def numbers_of(rule: RandomisedRule, prior: Prior) -> list[tuple[RandomisedRule, Prior, float]]:
    """Return a rule with other numbers, one at a time, each with a prior of the means and how many nats of room it has.

    With another `unit` both the gaps and the prior's deviation are multiplied: then the comparison hardly depends on
    how well that deviation was chosen, only on how much chance there is in what the rule does. Other numbers, and all
    of rewards of 0 and 1, may look better because the means are less usual than the prior has it, and get room for it.
    """
    found = list[tuple[RandomisedRule, Prior, float]]()
    for name in (each for each in rule.fits if rule.in_force(each) is not None):
        for factor in NUMBERS:
            own, room = prior, ROOM
            if name == rule.unit and isinstance(prior, NormalPrior):
                own, room = NormalPrior(prior.mean, factor * prior.deviation), 0.0
            with suppress(ParameterError):  # a probability, for one, ends at 1
                other = type(rule)(**{**rule.model_dump(exclude_none=True), name: factor * rule.in_force(name)})
                found.append((other, own, room))
    return found


def odds_of_numbers(
    log: ActionLog, rule: RandomisedRule, noise: Noise, prior: Prior, horizon: int, seed: int, threads: int,
    there: Availability | None = None,
) -> Odds | None:  # fmt: skip
    """Compare a rule that chooses at random with itself with other numbers; None where its own probability is unknown.

    Few particles, or none, find which numbers are more probable; before the odds are against the rule, more are asked.
    """
    belief, others = belief_of(prior, len(log.arms), noise, None), numbers_of(rule, prior)
    if not others:
        return None

    def behind(found: Sequence[tuple[float, float]], rooms: Sequence[float]) -> list[float]:
        """Return by how many nats the rule, whose evidence and error come first, is behind each of the others."""
        (own, error), *rest = found
        return [value - room - own - error for (value, _), room in zip(rest, rooms, strict=True)]

    def roughly(one: RandomisedRule, believed: Belief) -> tuple[float, float]:
        quick = None
        with suppress(InferenceError):
            quick = None if there is not None else evidence_without_clouds(log, one, believed, [horizon])
        if quick is not None and math.isfinite(quick):  # it breaks down where choices leave next to nothing to chance
            return quick, 0.0
        return carefully(one, believed, QUICK)

    def carefully(one: RandomisedRule, believed: Belief, particles: int = THOROUGH) -> tuple[float, float]:
        given = log, one, believed, [horizon], particles, OWN_CLOUDS, seed, 1
        try:
            own = run_filters(*given, keep_paths=False, tolerant=True, there=there).evidences
        except InferenceError:
            return -math.inf, 0.0
        finite = own[np.isfinite(own)]
        return (log_mean(finite)[0], float(np.ptp(finite))) if finite.size > 1 else (-math.inf, 0.0)

    asked = [(rule, belief), *((one, belief_of(own, len(log.arms), noise, None)) for one, own, _ in others)]
    found = checks.in_threads(roughly, asked, threads)
    if not math.isfinite(found[0][0]):
        return None
    ratios, share = behind(found, [room for *_, room in others]), math.log(len(others))
    best = int(np.argmax(ratios))
    together = float(np.logaddexp.reduce(ratios)) - share
    if together > 0:
        found = checks.in_threads(carefully, [asked[0], asked[1 + best]], threads)
        if not math.isfinite(found[0][0]):
            return None
        together = behind(found, [others[best][2]])[0] - share
    return Odds(together, (str(others[best][0]),), same_rule=True)


def settled_from_the_start(
    log: ActionLog, rule: RandomisedRule, noise: Noise, prior: Prior, horizon: int, seed: int, threads: int | None
) -> float:
    """Return by how many nats the first rounds of a log look like those after them, and not like a run's beginning.

    A rule that has learnt nothing yet prefers no arm. The probability of the first rounds under the rule is held
    against that of choices with the arms' shares in the rounds after them, for several lengths; the largest ratio
    counts. Few particles may miss much of the rule's: before the answer is `SETTLED`, more are asked.
    """
    arms, actions = len(log.arms), log.demonstration(0)
    belief, found = belief_of(prior, arms, noise, None), -math.inf
    for rounds in (each * arms for each in BEGINNINGS if each * arms * (1 + FOLLOWING) <= actions.size):
        counts = np.bincount(actions[rounds : rounds * (1 + FOLLOWING)], minlength=arms) + 0.5
        as_later = float(np.log(counts / counts.sum())[actions[:rounds]].sum())
        for particles in (QUICK, THOROUGH):
            given = log.select(0, rounds), rule, belief, [horizon], particles, OWN_CLOUDS, seed, threads
            try:
                own = log_mean(run_filters(*given, keep_paths=False, tolerant=True).evidences)[0]
            except InferenceError:
                return -math.inf  # it is not known
            if as_later - own <= SETTLED:
                break
        found = max(found, as_later - own)
    return found


class Silence(NamedTuple):
    """An arm that is not pulled again after some round, and how much more probable that is if it was withdrawn then."""

    arm: int
    pulls: int
    round: int  # of its last pull
    nats: float

    def is_odd(self, arms: int, demonstrations: int = 1) -> bool:
        """Return whether a silence is no chance, though it is the longest of all arms and demonstrations."""
        return self.nats > WITHDRAWN + math.log(arms * demonstrations)


def longest_silences(actions: NDArray[np.integer], arms: int) -> list[Silence]:
    """Return the arms that fall silent most suddenly, at most `MOST_SILENT`, the most sudden one first.

    As if an arm had been pulled at one rate since its pull `j`, until its last one, `n`, in round `t_n` of `T`, the
    silence has the log probability `-(n - j) log((T - t_j) / (t_n - t_j))`, for that `j` which makes most of it.

    Examples
    --------
    >>> longest_silences(np.array([0, 1, 0, 1, 0, 1, *[1] * 94]), 2)[0][:3]
    (0, 3, 5)
    """
    found, length = list[Silence](), actions.size
    for arm in range(arms):
        rounds = np.flatnonzero(actions == arm) + 1
        if not 0 < rounds.max(initial=0) < length:
            continue
        before, last = np.append(0, rounds[:-1]), int(rounds[-1])
        nats = (rounds.size - np.arange(rounds.size)) * np.log((length - before) / (last - before))
        found.append(Silence(arm, rounds.size, last, float(nats.max())))
    return sorted((each for each in found if each.nats >= FEWEST_NATS), key=lambda each: -each.nats)[:MOST_SILENT]


def withdrawals(
    log: ActionLog, rule: RandomisedRule, noise: Noise, prior: Prior, horizon: int, seed: int, threads: int | None, *,
    own: float | None = None, anchor: tuple[int, float] | None = None,
) -> list[Silence]:  # fmt: skip
    """Return arms that fall silent, and how much more probable the log is if each was withdrawn after its last pull.

    That the log of a rule is `r` times as probable if arm `i` was withdrawn after its pull `n` happens with a
    probability of at most `1 / r`, for every `i` and `n`. Rewards that made the rule turn from the arm explain the
    silence as far as they are probable. `own` is the log probability with all arms, by the many particles of a
    posterior; without it, few are asked, and more before an arm looks withdrawn. No arm where the rule's choices among
    fewer arms are not known, or no particle explains them.
    """
    arms, length = len(log.arms), int(log.lengths[0])
    silences, belief = longest_silences(log.demonstration(0), arms), belief_of(prior, arms, noise, anchor)

    def evidence(there: Availability | None, particles: int = QUICK) -> NDArray[np.float64]:
        quick = one_look_ahead(log, rule, belief, [horizon], seed, there) if particles == QUICK else None
        given = log, rule, belief, [horizon], particles, OWN_CLOUDS, seed, threads
        return run_filters(*given, keep_paths=False, tolerant=True, look_ahead=quick, there=there).evidences

    def gone(silence: Silence) -> Availability:
        last = np.where(np.arange(arms) == silence.arm, silence.round, length)
        return Availability(log.arms, np.ones(arms, np.int64), last)

    try:
        if silences:
            rule.check_availability()
        values = [log_mean(evidence(gone(each)))[0] for each in silences]
        if silences and own is None:
            few = evidence(None)
            own = log_mean(few)[0]
            if max(values) - own > WITHDRAWN or not np.isfinite(few).all():
                own = log_mean(evidence(None, THOROUGH))[0]
    except (InferenceError, NotIdentifiable):
        return []
    found = [each._replace(nats=value - (own or 0.0)) for each, value in zip(silences, values, strict=True)]
    return sorted(found, key=lambda each: -each.nats)
