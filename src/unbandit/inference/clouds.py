"""All clouds of a posterior: how many particles they have, how they look ahead, and what they find together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from unbandit import checks
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule
from unbandit.inference.filter import (
    GLANCE,
    CloudCollapsed,
    CloudFilter,
    FilterPass,
    by_round,
    log_evidence_of,
    log_mean,
    systematic,
)
from unbandit.inference.lookahead import (
    BetaLog,
    OutlookLog,
    as_angles,
    beta_log,
    has_outlook,
    outlooks_of,
    reward_paths,
    suits_angles,
)
from unbandit.inference.steps import Reading, number_of_steps, opening_chance, reading_of, work_of
from unbandit.inference.twist import (
    TwistedLog,
    averaged_twist,
    can_meet,
    can_twist,
    laplace_evidence,
    predict_log,
    twist_leaders,
    twist_log,
)
from unbandit.kernels.compile import Numbers
from unbandit.kernels.smc.cloud import Belief, Steps
from unbandit.log import ActionLog
from unbandit.log.availability import Availability
from unbandit.progress import current_work

WORK = 1_500_000  # particles times steps of a cloud, roughly, where the number of particles is not given
POOLED_WORK = 20_000_000  # the same, at most, for all demonstrations of an instance together
FEWEST_PARTICLES, MOST_PARTICLES = 250, 4_000  # of a cloud, where their number is not given
TWISTED_SHARE = 2 / 3  # of this number, where particles see the whole log: the small clouds before them take the rest
QUICK_PER_ARM, MOST_FEWEST = 100, 1_000  # particles per arm at least, where a probability costs little, and their most
PILOT_PARTICLES = 200  # of clouds that see no action before its round, beside those that look ahead
TWIST_PARTICLES = 100  # of the clouds that show which Gaussian approximation of the hidden path is best
ELIMINATED, ELIMINATION_WORK = 10, 10_000_000  # particles per squared arm of an elimination rule, and their most work
BETAS_PER_ARM, MOST_BETAS = 50, 2_000  # particles per arm at least, and the most, of Beta draws
BETAS_STRAIGHT = 65  # times as many over the number of arms, where these clouds do not look ahead
SUCCESSES_SHARE = 4  # times as many for index rules that see rewards of 0 and 1, whose indices are tabulated
AGREE = 2.0  # log evidence within which small clouds by two approximations agree, so that both must be good
CLEARLY_MORE = 1.0  # log evidence by which clouds must be ahead that do not look at the future
NEARLY_AS_GOOD = 0.5  # log evidence by which an approximation may be behind the best, and still serve half the clouds
MOST_PILOTED = 10_000  # rounds times arms up to which a small cloud without a look at the future predicts rounds
CLOSE = 2.0  # log evidence by which it may miss that of the others
ASTRAY, ASTRAY_PER_ROUND = 5.0, 0.005  # log evidence by which predictions of all rounds are off that say nothing
STARTS = 4  # paths of a small cloud from which climbs to probable paths begin
OUTLOOK_FEWEST, OUTLOOK_PER_ARM = 600, 60  # particles at least, and per arm, where clouds look around paths
STRAIGHT_SHARE = 1.25  # times as many for a randomised rule whose particles look one action ahead and no further
LEADER_SHARE = 4  # times as many particles for a greedy rule, whose probabilities take little time
AGAIN = 4  # times as many particles for an index rule, where too few explain the log
MANY_LEADERS, LEADER_PARTICLES = 8, 6_000  # arms of such a rule that need twice as many, and up to how many they do


@dataclass(frozen=True, eq=False)
class LookAhead:
    """How clouds look at the whole log, and what is expected of each round without such a look.

    There may be two twists, which the clouds take in turn: an error that all clouds of one twist make shows only
    between the two.
    """

    twists: tuple[TwistedLog | BetaLog, ...] = ()  # none where clouds that do not look at the future find clearly more
    predict: Callable[[], Numbers] = lambda: np.zeros(0)
    outlooks: tuple[OutlookLog, ...] = ()  # the same for a rule that divides rewards
    tried: int = 0  # particles of the small clouds that chose among more than one kind of look

    @property
    def size(self) -> int:
        """Return how many numbers it holds, about."""
        return sum(each.size for each in (*self.twists, *self.outlooks))

    def serves(self, particles: int) -> bool:
        """Return whether clouds of as many particles would choose it by small clouds that are no larger."""
        return self.tried >= min(particles, PILOT_PARTICLES)

    @cached_property
    def predictions(self) -> Numbers:
        """Return the log probability of each round given those before it: by normal states, or a small cloud."""
        return self.predict()

    def trusted(self, evidence: float) -> Numbers:
        """Return the predictions, or NaN where they miss the evidence of the whole log."""
        right = abs(self.predictions.sum() - evidence) < ASTRAY + ASTRAY_PER_ROUND * self.predictions.size
        return self.predictions if right else np.full_like(self.predictions, np.nan)


@dataclass(frozen=True, eq=False)
class FilterResult:
    """All clouds at the end of a log."""

    passes: tuple[tuple[FilterPass, ...], ...]  # per cloud, by demonstration; collapsed clouds are left out
    evidences: Numbers  # log evidence by each cloud; minus infinity by a collapsed one
    look_ahead: LookAhead | None = None  # for rules whose filter can look at the whole log
    twisted: bool = False  # whether particles were drawn given all actions
    resent: bool = False  # whether these are clouds with more particles, where too few explained the log
    parts: int = 1  # how many independent runs a cloud is joined from; `passes` has the first of all clouds first

    @property
    def clouds(self) -> int:
        """Return the number of clouds that did not collapse."""
        return len(self.passes) // self.parts

    @property
    def particles(self) -> int:
        """Return the number of particles of a cloud."""
        return sum(int(passes[0].cloud.sums.shape[0]) for passes in self.passes[:: self.clouds])

    @property
    def smallest(self) -> float:
        """Return the smallest effective size that a cloud had, by those of the runs that it is joined from."""
        sizes = [
            min(float(each.cloud.effective_size.min(initial=self.particles)) for each in own) for own in self.passes
        ]
        by_cloud = np.reshape(sizes, (self.parts, -1)).T
        return min(float(1 / (self.masses(at) ** 2 / own).sum()) for at, own in enumerate(by_cloud))

    def joined(self, other: "FilterResult") -> "FilterResult":
        """Return clouds whose particles are those of this result and of another one with as many clouds.

        Each run estimates the evidence without bias, so that a cloud's is their mean, weighted by particles.
        """
        sizes = np.log([self.particles, other.particles])
        evidences = np.logaddexp(self.evidences + sizes[0], other.evidences + sizes[1]) - np.logaddexp(*sizes)
        return replace(self, passes=self.passes + other.passes, evidences=evidences, parts=self.parts + other.parts)

    def masses(self, cloud: int) -> Numbers:
        """Return the share of each run's particles in the weight of a cloud."""
        own = self.passes[cloud :: self.clouds]
        logs = np.array([log_evidence_of(each) + math.log(each[0].cloud.sums.shape[0]) for each in own])
        shares = np.exp(logs - logs.max())
        return np.asarray(shares / shares.sum())

    @property
    def relaxed(self) -> tuple[int, ...]:
        """Return the rounds whose choice no particle of some cloud explains exactly."""
        return tuple(sorted({at for passes in self.passes for each in passes for at in each.relaxed}))

    @property
    def judged(self) -> Callable[[], Numbers]:
        """Return how to compute the log probability of each round given those before; NaN where it is not known.

        Clouds that see the whole log cannot say it, and small ones that do not may be lost on long logs of many arms.
        Predictions are used unless they miss the evidence of the whole log, and made only when they are asked for.
        """
        if not self.twisted or self.look_ahead is None:
            return partial(np.asarray, np.mean([by_round(passes) for passes in self.passes], axis=0))
        evidence = log_mean(np.array([log_evidence_of(passes) for passes in self.passes]))[0]
        return partial(self.look_ahead.trusted, evidence)

    @property
    def surprise(self) -> Numbers:
        """Return the log probability of each round given those before; 0 between steps, NaN where it is not known."""
        return self.judged()


def particles_for(*steps: int) -> int:
    """Return the default number of particles of a cloud: fewer for a longer record, so that the work stays the same.

    Several demonstrations have the particles of the longest, but fewer if all of them together are too much work.
    """
    work = min(WORK // max(1, *steps), POOLED_WORK // max(sum(steps), 1))
    return int(min(max(work, FEWEST_PARTICLES), MOST_PARTICLES))


def readings_of(
    log: ActionLog, rule: Demonstrator, horizons: Sequence[int], there: Availability | None = None
) -> list[Reading]:
    """Return all demonstrations as filters of a rule read them."""
    return [reading_of(log, which, rule, horizon, there) for which, horizon in enumerate(horizons)]


def run_filters(
    log: ActionLog, rule: Demonstrator, belief: Belief, horizons: Sequence[int], particles: int | None, clouds: int,
    seed: int, threads: int | None, *, keep_paths: bool = True, tolerant: bool = False, relaxing: bool = False,
    look_ahead: LookAhead | None = None, there: Availability | None = None, first: int = 0,
    readings: Sequence[Reading] | None = None,
) -> FilterResult:  # fmt: skip
    """Send clouds through all demonstrations of a log, one after the other, as of one instance.

    If `tolerant`, one cloud that explains the record is enough; `relaxing` keeps clouds of an index
    rule even if no particle explains a round exactly: such particles were kept with a penalty.
    `look_ahead` is that of another run over the same log; otherwise small clouds choose it. `there` says which arms
    could be pulled when. Clouds are numbered from `first`: others draw other numbers. `readings` are those of
    `readings_of`, if they are there already.

    Raises
    ------
    InferenceError
        If the rule cannot have made the record, or if a cloud collapsed; where that is tolerated, if all did. Clouds of
        an index rule are sent again with more particles before that, unless their number was given.
    """
    rule = rule.for_arms(len(log.arms))
    there = None if there is None else there.within(int(log.lengths.max()))
    readings = readings or readings_of(log, rule, horizons, there)
    number = particles or particles_for(*map(work_of, readings))
    if particles is None and isinstance(rule, EliminationRule):  # resampling forgets arms that went
        most = min(MOST_PARTICLES, ELIMINATION_WORK // max(1, sum(map(work_of, readings))))
        number = max(number, min(ELIMINATED * len(log.arms) ** 2, most))
    if particles is None and isinstance(rule, IndexRule) and belief.bernoulli:
        number = min(SUCCESSES_SHARE * number, MOST_PARTICLES)
    task = CloudFilter(
        log, rule, belief, tuple(horizons), tuple(readings), number, seed, keep_paths, relaxing, there=there
    )
    steps = [reading for reading in readings if isinstance(reading, Steps)]
    if isinstance(rule, RandomisedRule) and can_twist(rule, steps, len(log.arms), betas=_has_angles(task)):
        look_ahead = look_ahead or _look_ahead(task, rule, steps, clouds)
        if particles is None:
            number = _twisted_particles(number, rule, len(log.arms), ahead=bool(look_ahead.twists))
        task = replace(task, twists=look_ahead.twists, particles=number)
    elif isinstance(rule, RandomisedRule) and task.draws_betas:
        if particles is None:
            task = replace(task, particles=_twisted_particles(number, rule, len(log.arms), ahead=False))
    elif isinstance(rule, RandomisedRule) and task.follows_leader:
        if look_ahead is None or not look_ahead.serves(number):
            task, pilot = _towards_meetings(task, rule, steps, clouds, more=particles is None)
            look_ahead = _chosen(task, _by_pilot(pilot, int(log.lengths.sum())))
        task = replace(task, twists=look_ahead.twists)
    elif isinstance(rule, RandomisedRule) and task.divides_rewards and has_outlook(rule, steps, len(log.arms)):
        if look_ahead is None or not look_ahead.serves(number):
            task, pilot = _around_paths(task, rule, steps, clouds, default=particles is None)
            look_ahead = _chosen(task, _by_pilot(pilot, int(log.lengths.sum())))
        task = replace(task, outlooks=look_ahead.outlooks)
    elif isinstance(rule, RandomisedRule) and particles is None:
        task = replace(task, particles=int(STRAIGHT_SHARE * number))
    with current_work().stage("Reading the rounds", clouds * task.particles * sum(map(number_of_steps, readings))):
        outcomes = checks.in_threads(task.run, [(first + cloud,) for cloud in range(clouds)], checks.threads(threads))
    passes = tuple(outcome for outcome in outcomes if not isinstance(outcome, CloudCollapsed))
    collapsed = [outcome for outcome in outcomes if isinstance(outcome, CloudCollapsed)]
    if collapsed and not (tolerant and passes):
        if particles is None and not tolerant and isinstance(rule, IndexRule):  # a wrong rule ends early once more
            again = run_filters(
                log, rule, belief, horizons, AGAIN * task.particles, clouds, seed, threads, keep_paths=keep_paths,
                relaxing=relaxing, there=there,
            )  # fmt: skip
            return replace(again, resent=True)
        raise collapsed[0]
    opening = sum(opening_chance(log, which, rule, there) for which in range(len(log)))
    evidences = [log_evidence_of(own) + opening for own in passes]
    return FilterResult(passes, np.array(evidences + [-math.inf] * len(collapsed)), look_ahead, task.looks_ahead)


def _chosen(task: CloudFilter, predict: Callable[[], Numbers]) -> LookAhead:
    """Return how the clouds of a filter look ahead, as small clouds have chosen it."""
    return LookAhead(task.twists, predict, task.outlooks, tried=min(task.particles, PILOT_PARTICLES))


def _by_pilot(pilot: tuple[FilterPass, ...], rounds: int) -> Callable[[], Numbers]:
    """Return how rounds are predicted by a small cloud; NaN without one."""
    return partial(np.asarray, by_round(pilot) if pilot else np.full(rounds, np.nan))


def _twisted_particles(number: int, rule: RandomisedRule, arms: int, *, ahead: bool) -> int:
    """Return the default number of particles of a rule that can look at the whole log, with or without that look."""
    if rule.beta_prior is not None:
        if not ahead:
            return int(max(BETAS_STRAIGHT / arms, STRAIGHT_SHARE) * number)
        return max(min(number, MOST_BETAS), min(BETAS_PER_ARM * arms, MOST_FEWEST))
    if not ahead:
        return number
    fewest = min(max(FEWEST_PARTICLES, QUICK_PER_ARM * arms * rule.quick), MOST_FEWEST)
    return max(fewest, int(TWISTED_SHARE * number))


def _look_ahead(task: CloudFilter, rule: RandomisedRule, steps: list[Steps], clouds: int) -> LookAhead:
    """Choose how clouds look at the whole log.

    A poor approximation misses where particles should be, and the evidence falls short: so the best one is that by
    which two small clouds find most, the worse of them. They are not used any further: the evidence stays unbiased.
    Where clouds without a look at the future find clearly more, the worse of two than the best of all others, as with
    choices that leave next to nothing to chance, there is none; they are not asked if two approximations agree.

    Rounds are predicted by one more such cloud if it finds about as much, which is exact but for its Monte-Carlo error;
    otherwise by normal states, which make rare actions too probable.
    """
    horizon = max(task.horizons)
    normal, belief, read, known = _as_normal(task, rule, steps)
    approximations = twist_log(normal, belief, read, horizon, known, task.seed)
    twists = _towards(task, rule, steps, approximations)
    small = replace(task, particles=min(task.particles, TWIST_PARTICLES), keep_paths=False)
    found = np.array(
        [[log_evidence_of(replace(small, twists=(each,)).run(clouds + at)) for at in (0, 1)] for each in twists]
    )
    found[np.isnan(found)] = -math.inf
    worse = found.min(axis=1)
    best, second = (int(at) for at in np.argsort(-worse)[:2])
    if not worse[second] > float(found.max()) - AGREE:
        straight = replace(small, particles=min(task.particles, PILOT_PARTICLES))
        clearly = float(found.max()) + CLEARLY_MORE
        if all(log_evidence_of(straight.run(clouds + at)) > clearly for at in (2, 3)):
            return LookAhead()
    nearly = worse[second] > worse[best] - NEARLY_AS_GOOD
    chosen = (twists[best], twists[second]) if nearly else (twists[best],)

    def predict() -> Numbers:
        if sum(each.arm.size for each in steps) * len(task.log.arms) <= MOST_PILOTED:
            pilot = replace(small, particles=min(task.particles, PILOT_PARTICLES)).run(clouds + 2)
            if not isinstance(pilot, CloudCollapsed) and abs(log_evidence_of(pilot) - worse[best]) < CLOSE:
                return by_round(pilot)
        return predict_log(normal, approximations[0], read, horizon)

    return LookAhead(chosen, predict)


def _has_angles(task: CloudFilter) -> bool:
    """Return whether a filter of Beta draws can look ahead by angles."""
    return task.draws_betas and isinstance(task.rule, RandomisedRule) and suits_angles(task.rule, task.belief)


def _as_normal(
    task: CloudFilter, rule: RandomisedRule, steps: list[Steps]
) -> tuple[RandomisedRule, Belief, list[Steps], tuple[Numbers, Numbers]]:  # fmt: skip
    """Return rule, belief, readings and known rewards that a Gaussian approximation is made of."""
    if task.draws_betas:
        return as_angles(rule, task.belief, steps, len(task.log.arms))
    return rule, task.belief, steps, task.known_rewards()


def _towards(
    task: CloudFilter, rule: RandomisedRule, steps: list[Steps], twists: Sequence[TwistedLog]
) -> list[TwistedLog | BetaLog]:
    """Return what the filter reads the log by, given Gaussian approximations."""
    return [beta_log(rule, steps).towards(each) for each in twists] if task.draws_betas else list(twists)


def one_look_ahead(
    log: ActionLog, rule: Demonstrator, belief: Belief, horizons: Sequence[int], seed: int,
    there: Availability | None = None, readings: Sequence[Reading] | None = None,
) -> LookAhead | None:  # fmt: skip
    """Return a look at the whole log by the approximation that is mostly best, untried; None where there is none.

    For a single cloud of an evidence that is wanted quickly and may be less precise. Rounds are predicted by normal
    states.
    """
    task, steps = _whole_log(log, rule, belief, horizons, seed, there, readings)
    if task is None or not isinstance(task.rule, RandomisedRule):
        return None
    normal, beliefs, read, known = _as_normal(task, task.rule, steps)
    last = averaged_twist(normal, beliefs, read, max(horizons), known, seed)
    predict = partial(predict_log, normal, last, read, max(horizons))
    return LookAhead(tuple(_towards(task, task.rule, steps, [last])), predict)


def evidence_without_clouds(
    log: ActionLog, rule: Demonstrator, belief: Belief, horizons: Sequence[int]
) -> float | None:
    """Return the log evidence by Laplace's method; None of a rule whose filter cannot look at the whole log."""
    task, steps = _whole_log(log, rule, belief, horizons, 0)
    if task is None or not isinstance(task.rule, RandomisedRule) or task.draws_betas:
        return None
    opening = sum(opening_chance(log, which, task.rule) for which in range(len(log)))
    return laplace_evidence(task.rule, belief, steps, max(horizons), task.known_rewards()) + opening


def _whole_log(
    log: ActionLog, rule: Demonstrator, belief: Belief, horizons: Sequence[int], seed: int,
    there: Availability | None = None, readings: Sequence[Reading] | None = None,
) -> tuple[CloudFilter | None, list[Steps]]:  # fmt: skip
    """Return a filter that can look at the whole log, and what it reads; None where it cannot."""
    rule = rule.for_arms(len(log.arms))
    if not isinstance(rule, RandomisedRule):
        return None, []
    there = None if there is None else there.within(int(log.lengths.max()))
    readings = readings or readings_of(log, rule, horizons, there)
    steps = [reading for reading in readings if isinstance(reading, Steps)]
    task = CloudFilter(log, rule, belief, tuple(horizons), tuple(readings), 1, seed, keep_paths=False, there=there)
    return (task if can_twist(rule, steps, len(log.arms), betas=_has_angles(task)) else None), steps


def _around_paths(
    task: CloudFilter, rule: RandomisedRule, steps: list[Steps], clouds: int, *, default: bool
) -> tuple[CloudFilter, tuple[FilterPass, ...]]:
    """Let the filter of a rule that divides rewards look at the whole log, if small clouds find as much evidence by it.

    Some paths of a small cloud show where climbs to probable paths may begin. Returns the filter, and that cloud.
    """
    straight = replace(task, particles=min(task.particles, PILOT_PARTICLES), keep_paths=True)
    pilot, starts = straight.run(clouds), [np.full(sum(each.arm.size for each in steps), np.nan)]
    if not isinstance(pilot, CloudCollapsed):
        first = pilot[0]
        chosen = systematic(first.cloud.log_weights, STARTS, np.random.default_rng([task.seed, 5]))
        paths = reward_paths(steps[0].arm, first.cloud.marks, first.counts, first.path()[:, chosen])
        starts += [np.concatenate([path, starts[0][path.size :]]) for path in paths if path.size]
    outlooks = outlooks_of(rule, task.belief, steps, max(task.horizons), task.known_rewards(), starts)
    small = replace(straight, particles=min(task.particles, TWIST_PARTICLES), keep_paths=False)
    tried = [replace(small, outlooks=(each,)) for each in outlooks]
    found = np.array([[log_evidence_of(each.run(clouds + at)) for at in (1, 2)] for each in tried])
    found[np.isnan(found)] = -math.inf
    clearly, by_pilot = float(found.max()) + CLEARLY_MORE, log_evidence_of(pilot)
    if by_pilot > clearly and log_evidence_of(replace(straight, keep_paths=False).run(clouds + 3)) > clearly:
        return replace(task, particles=int(STRAIGHT_SHARE * task.particles) if default else task.particles), ()
    if default:
        fewest = max(OUTLOOK_FEWEST, min(OUTLOOK_PER_ARM * len(task.log.arms), MOST_FEWEST))
        task = replace(task, particles=max(task.particles, fewest))
    worse = found.min(axis=1)
    nearly = [
        outlooks[at] for at in np.argsort(-worse) if at == worse.argmax() or worse[at] > worse.max() - NEARLY_AS_GOOD
    ]
    task = replace(task, outlooks=tuple(nearly))
    return task, () if isinstance(pilot, CloudCollapsed) else pilot


def _towards_meetings(
    task: CloudFilter, rule: RandomisedRule, steps: list[Steps], clouds: int, *, more: bool
) -> tuple[CloudFilter, tuple[FilterPass, ...]]:
    """Let the filter of a greedy rule look at all changes of its leader, if small clouds find more evidence by it."""
    if more:
        number = LEADER_SHARE * task.particles
        many = min(2 * number, LEADER_PARTICLES) if len(task.log.arms) >= MANY_LEADERS else number
        task = replace(task, particles=max(number, many))
    if not can_meet(rule, steps, len(task.log.arms)):
        return task, ()
    chances = [task.leader_chances(each, horizon) for each, horizon in zip(steps, task.horizons, strict=True)]
    twists = twist_leaders(rule, task.belief, steps, chances, max(task.horizons), task.known_rewards())
    straight = replace(task, particles=min(task.particles, PILOT_PARTICLES), keep_paths=False)
    tried = [straight, *(replace(straight, twists=(each,)) for each in twists)]
    times = (1, 2) if task.particles > GLANCE else (1,)
    found = np.array([[log_evidence_of(each.run(clouds + at)) for at in times] for each in tried if twists])
    found[np.isnan(found)] = -math.inf
    if not twists or found.min(axis=1).argmax() == 0:
        return task, ()
    pilot = straight.run(clouds)
    best = tried[int(found.min(axis=1).argmax())].twists
    return replace(task, twists=best), () if isinstance(pilot, CloudCollapsed) else pilot
