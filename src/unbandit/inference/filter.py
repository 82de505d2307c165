"""Run particle filters over a log: a few independent clouds, whose differences show the Monte-Carlo error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule
from unbandit.errors import InferenceError
from unbandit.inference.leader import can_meet, twist_leaders
from unbandit.inference.lookahead import (
    BernoulliLog,
    OutlookLog,
    bernoulli_log,
    half_each,
    has_outlook,
    outlooks_of,
    reward_paths,
)
from unbandit.inference.steps import Reading, number_of_steps, opening_chance, reading_of, work_of
from unbandit.inference.twist import TwistedLog, can_twist, predict_log, twist_log
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.rng import QUANTILE_TABLE
from unbandit.kernels.smc.bernoulli import Visits, filter_bernoulli
from unbandit.kernels.smc.cloud import Belief, Cloud, Rng, Steps
from unbandit.kernels.smc.elimination import OUT, EliminationTests, filter_elimination
from unbandit.kernels.smc.index import filter_index
from unbandit.kernels.smc.leader import filter_leader, leader_chances, no_twist
from unbandit.kernels.smc.outlook import filter_outcomes
from unbandit.kernels.smc.randomised import filter_randomised
from unbandit.kernels.smc.twist import filter_twisted
from unbandit.log import ActionLog
from unbandit.progress import current_work
from unbandit.tape import Tape

WORK = 1_500_000  # particles times steps of a cloud, roughly, where the number of particles is not given
POOLED_WORK = 20_000_000  # the same, at most, for all demonstrations of an instance together
FEWEST_PARTICLES, MOST_PARTICLES = 250, 4_000  # of a cloud, where their number is not given
TWISTED_SHARE = 2 / 3  # of this number, where particles see the whole log: the small clouds before them take the rest
QUICK_PER_ARM, MOST_FEWEST = 100, 1_000  # particles per arm at least, where a probability costs little, and their most
PILOT_PARTICLES = 200  # of clouds that see no action before its round, beside those that look ahead
TWIST_PARTICLES = 100  # of the clouds that show which Gaussian approximation of the hidden path is best
BERNOULLI_SHARE, MOST_BERNOULLI = 1.2, 2_000  # of this number, and the most, for the largest of Beta draws
AGREE = 2.0  # log evidence within which small clouds by two approximations agree, so that both must be good
CLEARLY_MORE = 1.0  # log evidence by which clouds must be ahead that do not look at the future
NEARLY_AS_GOOD = 0.5  # log evidence by which an approximation may be behind the best, and still serve half the clouds
MOST_PILOTED = 10_000  # rounds times arms up to which a small cloud without a look at the future predicts rounds
CLOSE = 2.0  # log evidence by which it may miss that of the others
ASTRAY, ASTRAY_PER_ROUND = 5.0, 0.005  # log evidence by which predictions of all rounds are off that say nothing
STARTS = 4  # paths of a small cloud from which climbs to probable paths begin
OUTLOOK_PER_ARM = 50  # particles per arm at least, where clouds look around paths
STRAIGHT_SHARE = 1.25  # times as many for a randomised rule whose particles look one action ahead and no further
MOST_TABLED = 20_000  # rounds up to which Beta draws are tabulated: tables grow with the number of possible successes
MOST_CHANCES = 20_000_000  # rounds times arms up to which a greedy rule's probabilities are laid out by its leader
LEADER_SHARE = 4  # times as many particles for a greedy rule, whose probabilities take little time
TRIES = 16  # candidates for each reward, where a rule's decisions jump with its sample means

MOST_RELAXED = 0.005
"""The largest share of steps (at least one) without an exact particle, where indices grow with the round."""

MOST_MARKS, MOST_KEPT = 100, 4_000_000
"""The largest number of marks at which sums are kept, and of numbers that a cloud keeps."""


class CloudCollapsed(InferenceError):
    """No particle of a cloud explains the record: the rule cannot have made it, or more particles are needed."""


@dataclass(frozen=True, eq=False)
class FilterPass:
    """One cloud after one demonstration."""

    cloud: Cloud
    pulls: Integers  # the number of rewards behind each arm's sum
    rounds: Integers  # of each step
    judged: Integers  # the round whose action each step's weights judge: where a rule is looked ahead, the next one
    length: int  # of the demonstration
    counts: Integers  # pulls of each arm at each of the cloud's marks
    relaxed: tuple[int, ...]  # rounds whose choice no particle explains exactly

    def without_particles(self) -> "FilterPass":
        """Return the pass with what each step showed alone, to save memory."""
        names = ("sums", "past", "log_weights", "ancestors", "lineage", "shift")
        empty = {name: getattr(self.cloud, name)[:0].copy() for name in names}
        return replace(self, cloud=self.cloud._replace(**empty))

    def path(self) -> Numbers:
        """Return the sample means that each particle's ancestors had at the marks: (marks, particles, arms), or NaN."""
        cloud = self.cloud
        path, lineage = np.full_like(cloud.kept_sums, np.nan), np.arange(cloud.sums.shape[0])
        for mark in range(cloud.marks.size - 1, -1, -1):
            pulled = self.counts[mark] > 0
            means = cloud.kept_sums[mark][lineage][:, pulled] / self.counts[mark][pulled]
            path[mark][:, pulled] = means + (cloud.shift - cloud.kept_shifts[mark, lineage])[:, None]
            lineage = cloud.kept_ancestors[mark, lineage]
        return path


@dataclass(frozen=True, eq=False)
class LookAhead:
    """How clouds look at the whole log, and what is expected of each round without such a look.

    There may be two twists, which the clouds take in turn: an error that all clouds of one twist make shows only
    between the two.
    """

    twists: tuple[TwistedLog, ...]  # none where clouds that do not look at the future find clearly more
    predictions: Numbers  # log probability of each round given those before it: by normal states, or a small cloud


@dataclass(frozen=True, eq=False)
class FilterResult:
    """All clouds at the end of a log."""

    passes: tuple[tuple[FilterPass, ...], ...]  # per cloud, by demonstration; collapsed clouds are left out
    evidences: Numbers  # log evidence by each cloud; minus infinity by a collapsed one
    look_ahead: LookAhead | None = None  # for rules whose filter can look at the whole log
    twisted: bool = False  # whether particles were drawn given all actions

    @property
    def relaxed(self) -> tuple[int, ...]:
        """Return the rounds whose choice no particle of some cloud explains exactly."""
        return tuple(sorted({at for passes in self.passes for each in passes for at in each.relaxed}))

    @property
    def surprise(self) -> Numbers:
        """Return the log probability of each round given those before; 0 between steps, NaN where it is not known.

        Clouds that see the whole log cannot say it, and small ones that do not may be lost on long logs of many arms.
        Predictions are used unless they miss the evidence of the whole log.
        """
        if not self.twisted or self.look_ahead is None:
            return np.asarray(np.mean([_by_round(passes) for passes in self.passes], axis=0))
        predictions = self.look_ahead.predictions
        evidence = log_mean(np.array([_log_evidence(passes) for passes in self.passes]))[0]
        right = abs(predictions.sum() - evidence) < ASTRAY + ASTRAY_PER_ROUND * predictions.size
        return predictions if right else np.full_like(predictions, np.nan)


def _by_round(passes: tuple[FilterPass, ...]) -> Numbers:
    """Return the change of the log evidence of one cloud in each round of all demonstrations."""
    values = [np.zeros(each.length) for each in passes]
    for row, each in zip(values, passes, strict=True):
        np.add.at(row, each.judged - 1, each.cloud.increments)
        if each.judged.size and each.judged[0] == 2:  # there the first two rounds are judged together
            row[:2] = row[1] / 2
    return np.concatenate(values)


def particles_for(*steps: int) -> int:
    """Return the default number of particles of a cloud: fewer for a longer record, so that the work stays the same.

    Several demonstrations have the particles of the longest, but fewer if all of them together are too much work.
    """
    work = min(WORK // max(1, *steps), POOLED_WORK // max(sum(steps), 1))
    return int(min(max(work, FEWEST_PARTICLES), MOST_PARTICLES))


def run_filters(
    log: ActionLog, rule: Demonstrator, belief: Belief, horizons: Sequence[int], particles: int | None, clouds: int,
    seed: int, threads: int | None, *, keep_paths: bool = True, tolerant: bool = False, relaxing: bool = False,
    look_ahead: LookAhead | None = None,
) -> FilterResult:  # fmt: skip
    """Send clouds through all demonstrations of a log, one after the other, as of one instance.

    If `tolerant`, one cloud that explains the record is enough; `relaxing` keeps clouds of an index
    rule even if no particle explains a round exactly: such particles were kept with a penalty.
    `look_ahead` is that of another run over the same log; otherwise small clouds choose it.

    Raises
    ------
    InferenceError
        If the rule cannot have made the record, or if a cloud collapsed; where that is tolerated, if all did.
    """
    rule = rule.for_arms(len(log.arms))
    readings = [reading_of(log, which, rule, horizon) for which, horizon in enumerate(horizons)]
    number = particles or particles_for(*map(work_of, readings))
    task = _Filter(log, rule, belief, tuple(horizons), tuple(readings), number, seed, keep_paths, relaxing)
    steps = [reading for reading in readings if isinstance(reading, Steps)]
    if isinstance(rule, RandomisedRule) and task.draws_betas:
        assert rule.beta_prior is not None
        read = bernoulli_log(rule.beta_prior, steps, len(log.arms))
        task, pilot = _looking_ahead(replace(task, bernoulli=read), read, clouds, fewer=particles is None)
        look_ahead = LookAhead((), _by_round(pilot)) if pilot else None
    elif isinstance(rule, RandomisedRule) and can_twist(rule, steps, len(log.arms)):
        look_ahead = look_ahead or _look_ahead(task, rule, steps, clouds)
        if look_ahead.twists and particles is None:
            fewest = min(max(FEWEST_PARTICLES, QUICK_PER_ARM * len(log.arms) * rule.quick), MOST_FEWEST)
            number = max(fewest, int(TWISTED_SHARE * number))
        task = replace(task, twists=look_ahead.twists, particles=number)
    elif isinstance(rule, RandomisedRule) and task.follows_leader:
        task, pilot = _towards_meetings(task, rule, steps, clouds, more=particles is None)
        look_ahead = LookAhead((), _by_round(pilot) if pilot else np.full(int(log.lengths.sum()), np.nan))
    elif isinstance(rule, RandomisedRule) and task.divides_rewards and has_outlook(rule, steps, len(log.arms)):
        task, pilot = _around_paths(task, rule, steps, clouds, default=particles is None)
        look_ahead = LookAhead((), _by_round(pilot) if pilot else np.full(int(log.lengths.sum()), np.nan))
    elif isinstance(rule, RandomisedRule) and particles is None:
        task = replace(task, particles=int(STRAIGHT_SHARE * number))
    with current_work().stage("Filtering", clouds * task.particles * sum(map(number_of_steps, readings))):
        outcomes = checks.in_threads(task.run, [(cloud,) for cloud in range(clouds)], checks.threads(threads))
    passes = tuple(outcome for outcome in outcomes if not isinstance(outcome, CloudCollapsed))
    collapsed = [outcome for outcome in outcomes if isinstance(outcome, CloudCollapsed)]
    if collapsed and not (tolerant and passes):
        raise collapsed[0]
    opening = sum(opening_chance(log, which, rule) for which in range(len(log)))
    evidences = [_log_evidence(own) + opening for own in passes]
    return FilterResult(passes, np.array(evidences + [-math.inf] * len(collapsed)), look_ahead, task.looks_ahead)


def _look_ahead(task: "_Filter", rule: RandomisedRule, steps: list[Steps], clouds: int) -> LookAhead:
    """Choose how clouds look at the whole log.

    A poor approximation misses where particles should be, and the evidence falls short: so the best one is that by
    which two small clouds find most, the worse of them. They are not used any further: the evidence stays unbiased.
    Where clouds without a look at the future find clearly more, the worse of two than the best of all others, as with
    choices that leave next to nothing to chance, there is none; they are not asked if two approximations agree.

    Rounds are predicted by one more such cloud if it finds about as much, which is exact but for its Monte-Carlo error;
    otherwise by normal states, which make rare actions too probable.
    """
    horizon = max(task.horizons)
    twists = twist_log(rule, task.belief, steps, horizon, task.known_rewards(), task.seed)
    small = replace(task, particles=min(task.particles, TWIST_PARTICLES), keep_paths=False)
    found = np.array(
        [[_log_evidence(replace(small, twists=(each,)).run(clouds + at)) for at in (0, 1)] for each in twists]
    )
    found[np.isnan(found)] = -math.inf
    worse = found.min(axis=1)
    best, second = (int(at) for at in np.argsort(-worse)[:2])
    if not worse[second] > float(found.max()) - AGREE:
        straight = replace(small, particles=min(task.particles, PILOT_PARTICLES))
        if min(_log_evidence(straight.run(clouds + at)) for at in (2, 3)) > float(found.max()) + CLEARLY_MORE:
            return LookAhead((), np.zeros(0))
    nearly = worse[second] > worse[best] - NEARLY_AS_GOOD
    chosen = (twists[best], twists[second]) if nearly else (twists[best],)
    if sum(each.arm.size for each in steps) * len(task.log.arms) <= MOST_PILOTED:
        pilot = replace(small, particles=min(task.particles, PILOT_PARTICLES)).run(clouds + 2)
        if not isinstance(pilot, CloudCollapsed) and abs(_log_evidence(pilot) - worse[best]) < CLOSE:
            return LookAhead(chosen, _by_round(pilot))
    return LookAhead(chosen, predict_log(rule, twists[0], steps, horizon))


def _looking_ahead(
    task: "_Filter", log: BernoulliLog, clouds: int, *, fewer: bool
) -> tuple["_Filter", tuple[FilterPass, ...]]:
    """Let the filter of Beta draws look at the whole log, as `_look_ahead` does; return it, and the cloud that did not.

    That cloud shows how probable the rest of the log is from each state. A second look-ahead is learnt from what it
    visited and from a cloud that looks ahead by the first one; two small clouds each show which is better. Where clouds
    that do not look ahead find clearly more, the filter stays as it is.
    """
    if fewer:
        task = replace(task, particles=min(int(BERNOULLI_SHARE * task.particles), MOST_BERNOULLI))
    visitors = log.visitors()
    if visitors == 0:
        return task, ()
    straight, visits = replace(task, particles=visitors, keep_paths=False), log.visits(visitors)
    pilot = replace(straight, visits=visits).run(clouds)
    if isinstance(pilot, CloudCollapsed):
        return task, ()
    learnt = replace(log, lookahead=log.learn(visits))
    second, candidates = log.visits(visitors // 2), [learnt]
    again = replace(straight, particles=visitors // 2, bernoulli=learnt, visits=second).run(clouds + 1)
    if not isinstance(again, CloudCollapsed):
        candidates.append(replace(log, lookahead=log.learn(half_each(visits, second))))
    small = replace(straight, particles=min(task.particles, PILOT_PARTICLES))
    tried = [replace(small, bernoulli=each) for each in candidates]
    found = np.array([[_log_evidence(each.run(clouds + at)) for at in (2, 3)] for each in tried])
    found[np.isnan(found)] = -math.inf
    clearly = float(found.max()) + CLEARLY_MORE
    if _log_evidence(pilot) > clearly and _log_evidence(straight.run(clouds + 4)) > clearly:
        return task, pilot
    return replace(task, bernoulli=candidates[int(found.min(axis=1).argmax())]), pilot


def _around_paths(
    task: "_Filter", rule: RandomisedRule, steps: list[Steps], clouds: int, *, default: bool
) -> tuple["_Filter", tuple[FilterPass, ...]]:
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
    found = np.array([[_log_evidence(each.run(clouds + at)) for at in (1, 2)] for each in tried])
    found[np.isnan(found)] = -math.inf
    clearly, by_pilot = float(found.max()) + CLEARLY_MORE, _log_evidence(pilot)
    if by_pilot > clearly and _log_evidence(replace(straight, keep_paths=False).run(clouds + 3)) > clearly:
        return replace(task, particles=int(STRAIGHT_SHARE * task.particles) if default else task.particles), ()
    if default:
        task = replace(task, particles=max(task.particles, min(OUTLOOK_PER_ARM * len(task.log.arms), MOST_FEWEST)))
    worse = found.min(axis=1)
    nearly = [
        outlooks[at] for at in np.argsort(-worse) if at == worse.argmax() or worse[at] > worse.max() - NEARLY_AS_GOOD
    ]
    task = replace(task, outlooks=tuple(nearly))
    return task, () if isinstance(pilot, CloudCollapsed) else pilot


def _towards_meetings(
    task: "_Filter", rule: RandomisedRule, steps: list[Steps], clouds: int, *, more: bool
) -> tuple["_Filter", tuple[FilterPass, ...]]:
    """Let the filter of a greedy rule look at all changes of its leader, if small clouds find more evidence by it."""
    task = replace(task, particles=LEADER_SHARE * task.particles if more else task.particles)
    if not can_meet(rule, steps, len(task.log.arms)):
        return task, ()
    chances = [task.leader_chances(each, horizon) for each, horizon in zip(steps, task.horizons, strict=True)]
    twists = twist_leaders(rule, task.belief, steps, chances, max(task.horizons), task.known_rewards())
    straight = replace(task, particles=min(task.particles, PILOT_PARTICLES), keep_paths=False)
    tried = [straight, *(replace(straight, twists=(each,)) for each in twists)]
    found = np.array([[_log_evidence(each.run(clouds + at)) for at in (1, 2)] for each in tried if twists])
    found[np.isnan(found)] = -math.inf
    if not twists or found.min(axis=1).argmax() == 0:
        return task, ()
    pilot = straight.run(clouds)
    best = tried[int(found.min(axis=1).argmax())].twists
    return replace(task, twists=best), () if isinstance(pilot, CloudCollapsed) else pilot


def _log_evidence(passes: tuple[FilterPass, ...] | CloudCollapsed) -> float:
    """Return the log evidence by one cloud, but for the opening."""
    return -math.inf if isinstance(passes, CloudCollapsed) else sum(each.cloud.increments.sum() for each in passes)


def log_mean(values: Numbers) -> tuple[float, float]:
    """Return the log of the mean of numbers given by their logs, and its standard error.

    The error is from the scatter of the numbers, or of their logs where that is larger: with few clouds that differ
    much, the mean is the largest one's and hardly an estimate.
    """
    largest = values.max()
    shares = np.exp(values - largest)
    value = float(largest + np.log(shares.mean()))
    if values.size == 1:
        return value, math.nan
    finite = values[np.isfinite(values)]
    scatter = finite.std(ddof=1) / math.sqrt(finite.size) if finite.size > 1 else 0.0
    return value, float(max(relative_error(values), scatter))


def relative_error(values: Numbers) -> float:
    """Return the relative standard error of the mean of numbers given by their logs."""
    shares = np.exp(values - values.max())
    return float(shares.std(ddof=1) / shares.mean() / math.sqrt(shares.size))


def systematic(log_weights: Numbers, number: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Draw particles in proportion to their weights, with one random number for all."""
    weights = np.exp(log_weights - log_weights.max())
    places = (np.arange(number) + generator.random()) / number
    chosen = np.searchsorted(np.cumsum(weights / weights.sum()), places)
    return np.asarray(np.minimum(chosen, weights.size - 1))


def new_cloud(
    belief: Belief, past: Numbers, before: Numbers, steps: int, marks: Integers, seed: int, name: int
) -> Cloud:  # fmt: skip
    """Return a cloud before its first step; `past` and `before` are reward sums and counts known already."""
    (number, arms), work = past.shape, current_work()
    work.end_if_stopped()
    return Cloud(
        belief=belief, sums=np.zeros((number, arms)), past=past, before=before, log_weights=np.zeros(number),
        increments=np.zeros(steps), effective_size=np.full(steps, float(number)), relaxed=np.zeros(steps, np.int64),
        ancestors=np.zeros(number, np.int64), lineage=np.arange(number), marks=marks,
        kept_sums=np.zeros((marks.size, number, arms)), kept_ancestors=np.zeros((marks.size, number), np.int64),
        kept_shifts=np.zeros((marks.size, number)), shift=np.zeros(number),
        rng=Rng(*Tape(seed).key, np.uint64(name)), table=QUANTILE_TABLE, signals=work.signals,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Filter:
    """A log, cut into steps or tests, and the rule whose filter reads them."""

    log: ActionLog
    rule: Demonstrator
    belief: Belief
    horizons: tuple[int, ...]
    readings: tuple[Reading, ...]
    particles: int
    seed: int
    keep_paths: bool
    relaxing: bool = False
    twists: tuple[TwistedLog, ...] = ()  # the clouds take them in turn
    bernoulli: BernoulliLog | None = None
    outlooks: tuple[OutlookLog, ...] = ()  # in turn likewise
    visits: Visits | None = None  # where the states that a cloud visits are recorded

    @property
    def looks_ahead(self) -> bool:
        """Return whether particles are drawn given all actions."""
        learnt = self.bernoulli is not None and self.bernoulli.lookahead.constant.size > 0
        return learnt or bool(self.twists or self.outlooks)

    def run(self, cloud: int) -> tuple[FilterPass, ...] | CloudCollapsed:
        """Send one cloud through all demonstrations; the sums at the end of one are the past of the next.

        Returns the error where it collapsed.
        """
        sums, before = self.known_rewards()
        past = np.tile(sums, (self.particles, 1))
        log_weights = np.zeros(self.particles)
        twisted = self.twists[cloud % len(self.twists)] if self.twists else None
        means = None if twisted is None else np.tile(twisted.transitions.start, (self.particles, 1))
        looks = self.outlooks[cloud % len(self.outlooks)] if self.outlooks else self.bernoulli
        values = None if looks is None else np.full(self.particles, looks.log_start)
        passes: list[FilterPass] = []
        for which, (reading, horizon) in enumerate(zip(self.readings, self.horizons, strict=True)):
            name = cloud * len(self.readings) + which
            state = self._cloud(reading, past, before, name, keep=self.keep_paths and which == 0)
            if values is not None:
                state.log_weights[:] = log_weights
                if isinstance(looks, OutlookLog):
                    pulls, died, rounds = self._filter_outcomes(which, state, values, looks)
                else:
                    pulls, died, rounds = self._filter_bernoulli(which, state, values)
            elif means is not None and twisted is not None:
                state.log_weights[:] = log_weights
                pulls, died, rounds = self._filter_twisted(which, state, means, horizon, twisted)
            else:
                pulls, died, rounds = self._filter(reading, state, horizon)
            current_work().end_if_stopped()
            judged = self._judged(reading, rounds)
            relaxed = np.flatnonzero(state.relaxed == self.particles)
            too_many = relaxed.size > self._most_relaxed(rounds.size)
            if died or too_many:
                return CloudCollapsed(
                    f"none of {self.particles} particles explains the record so far under {self.rule}.",
                    round=int(judged[relaxed[0] if too_many else died - 1]) if rounds.size else died,
                    remedy="Another rule or other parameters made it, or it takes more particles.",
                )
            if len(passes) > 1:  # of particles, only those of the first and the last demonstration are looked at
                passes[-1] = passes[-1].without_particles()
            length, counts = int(self.log.lengths[which]), _counts(reading, state)
            passes.append(FilterPass(state, pulls, rounds, judged, length, counts, tuple(judged[relaxed].tolist())))
            past, before, log_weights = state.past + state.sums, state.before + pulls, state.log_weights
            if means is None and values is None:
                generator = np.random.default_rng([self.seed, name, 1])
                past = past[systematic(log_weights, self.particles, generator)]
        return tuple(passes)

    def _most_relaxed(self, steps: int) -> int:
        """Return how many steps without an exact particle are accepted."""
        if self.relaxing:
            return steps
        grows = isinstance(self.rule, IndexRule) and self.rule.uses_round
        return max(1, int(MOST_RELAXED * steps)) if grows else 0

    def known_rewards(self) -> tuple[Numbers, Numbers]:
        """Sum and count the known rewards: the observer learns from them at once, the rule sees each in its round."""
        log, arms = self.log, len(self.log.arms)
        if log.rewards is None or log.actions is None:
            return np.zeros(arms), np.zeros(arms)
        known = ~np.isnan(log.rewards)
        counts = np.bincount(log.actions[known], minlength=arms).astype(np.float64)
        return np.bincount(log.actions[known], weights=log.rewards[known], minlength=arms).astype(np.float64), counts

    def _cloud(self, reading: Reading, past: Numbers, before: Numbers, name: int, *, keep: bool) -> Cloud:
        number, arms = past.shape
        steps = number_of_steps(reading)
        kept = min(MOST_MARKS, max(2, MOST_KEPT // (number * arms)), steps) if keep else 0
        marks = np.unique(np.linspace(0, steps - 1, kept).astype(np.int64)) if kept else np.zeros(0, np.int64)
        return new_cloud(self.belief, past.copy(), before.copy(), steps, marks, self.seed, name)

    def _filter(self, reading: Reading, cloud: Cloud, horizon: int) -> tuple[Integers, int, Integers]:
        """Run the kernel of the rule's kind; return the pulls behind the sums, the step it died in, and all rounds."""
        rule, belief = self.rule, self.belief
        number, arms = cloud.sums.shape
        level = not belief.bernoulli and self.log.rewards is None  # a known reward shows where the level is
        if isinstance(reading, EliminationTests):
            pulls = np.zeros(arms, np.int64)
            alike = (belief.first == belief.first[0]) & (belief.second == belief.second[0]) & (cloud.before == 0)
            died = filter_elimination(reading, cloud, level, alike, pulls)
            active = (reading.fate != OUT).sum(axis=1)
            return pulls, died, np.cumsum(np.diff(reading.epoch, prepend=0) * active)
        pulls = np.bincount(reading.arm, weights=reading.count, minlength=arms).astype(np.int64)
        if isinstance(rule, IndexRule):
            shifts, ties = rule.shifts and level, rule.ties == "random"
            most_relaxed = self._most_relaxed(reading.arm.size)
            died = filter_index(rule.parameters(horizon), reading, cloud, rule.uses_round, ties, shifts, most_relaxed)
            return pulls, died, reading.round
        assert isinstance(rule, RandomisedRule)
        if self.follows_leader:
            chances, shifts = self.leader_chances(reading, horizon), rule.shifts and level
            died = filter_leader(reading, cloud, chances, rule.batch, shifts, 0, *no_twist(arms))
            return pulls, died, reading.round
        memories = np.zeros((number, arms, rule.columns))
        tries = 2 if belief.bernoulli else 1 if rule.smooth else TRIES
        died = filter_randomised(
            rule.parameters(horizon), reading, cloud, memories, rule.batch, tries, rule.smooth, rule.shifts and level
        )
        return pulls, died, reading.round

    def _filter_twisted(
        self, which: int, cloud: Cloud, means: Numbers, horizon: int, twisted: TwistedLog
    ) -> tuple[Integers, int, Integers]:
        """Run the twisted filter over a demonstration; the particles' expectations `means` are moved on."""
        rule, reading = self.rule, self.readings[which]
        assert isinstance(rule, RandomisedRule)
        assert isinstance(reading, Steps)
        number, arms = cloud.sums.shape
        first, sites, twist = twisted.firsts[which], twisted.sites, twisted.twist
        if self.follows_leader:
            shifts = rule.shifts and self.log.rewards is None and which == len(self.readings) - 1
            died = filter_leader(reading, cloud, self.leader_chances(reading, horizon), 1, shifts, first, sites, twist)
        else:
            memories = np.zeros((number, arms, rule.columns))
            died = filter_twisted(
                rule.parameters(horizon), reading, cloud, memories, means, first, rule.score or 0, twisted.transitions,
                sites, twist,
            )  # fmt: skip
        if which == 0:
            cloud.increments[0] += twisted.log_start
        return np.bincount(reading.arm, minlength=arms), died, reading.round

    def _filter_bernoulli(self, which: int, cloud: Cloud, values: Numbers) -> tuple[Integers, int, Integers]:
        """Run the filter of Beta draws over a demonstration; the particles' look-ahead `values` are moved on."""
        rule, reading, log = self.rule, self.readings[which], self.bernoulli
        assert isinstance(rule, RandomisedRule)
        assert isinstance(reading, Steps)
        assert log is not None
        visits = log.visits(0) if self.visits is None else self.visits
        died = filter_bernoulli(
            log.successes, log.failures, reading, cloud, rule.batch, log.firsts[which], values, log.lookahead, visits
        )
        if which == 0:
            cloud.increments[0] += log.log_start
        return np.bincount(reading.arm, minlength=cloud.sums.shape[1]), died, reading.round

    def _filter_outcomes(
        self, which: int, cloud: Cloud, values: Numbers, log: OutlookLog
    ) -> tuple[Integers, int, Integers]:
        """Run the filter of a rule that divides rewards over a demonstration, with a look around some paths."""
        rule, reading = self.rule, self.readings[which]
        assert isinstance(rule, RandomisedRule)
        assert isinstance(reading, Steps)
        assert rule.gains is not None
        number, arms = cloud.sums.shape
        memories, parameters = np.zeros((number, arms, rule.columns)), rule.parameters(self.horizons[which])
        died = filter_outcomes(
            parameters, reading, cloud, memories, rule.batch, rule.gains, log.firsts[which], values, log.outlook
        )
        if which == 0:
            cloud.increments[0] += log.log_start
        return np.bincount(reading.arm, minlength=arms), died, reading.round

    @property
    def divides_rewards(self) -> bool:
        """Return whether a kernel can look at the whole log around paths of rewards that are divided by chances."""
        rule = self.rule
        if not (isinstance(rule, RandomisedRule) and rule.gains is not None and self.belief.bernoulli):
            return False
        return _plays_as_declared(rule, "gains")

    @property
    def follows_leader(self) -> bool:
        """Return whether a kernel can read a greedy rule's leader; ties have probability 0 unless rewards are known."""
        rule, rounds = self.rule, int(self.log.lengths.max())
        if not (isinstance(rule, RandomisedRule) and rule.greedy and rule.initial > 0 and not self.belief.bernoulli):
            return False
        known = self.log.rewards is not None
        fits = rounds * len(self.log.arms) <= MOST_CHANCES and _plays_as_declared(rule, "greedy")
        return fits and (not known or getattr(rule, "ties", "lowest") == "lowest")

    @property
    def draws_betas(self) -> bool:
        """Return whether a kernel can compute a rule's probabilities from tables of Beta draws."""
        rule, rounds = self.rule, int(self.log.lengths.sum())
        if not (isinstance(rule, RandomisedRule) and rule.beta_prior is not None and self.belief.bernoulli):
            return False
        return rounds <= MOST_TABLED and _plays_as_declared(rule, "beta_prior")

    def leader_chances(self, reading: Steps, horizon: int) -> Numbers:
        """Return the log probability of a demonstration's actions, by the arm that leads at each decision."""
        assert isinstance(self.rule, RandomisedRule)
        return leader_chances(self.rule.parameters(horizon), reading, self.rule.batch, len(self.log.arms))

    def _judged(self, reading: Reading, rounds: Integers) -> Integers:
        """Return the round whose action each step's weights judge."""
        rule = self.rule
        looks_at_all = self.bernoulli is not None or bool(self.outlooks)
        other = looks_at_all or (bool(self.twists) and not self.follows_leader)
        if not isinstance(rule, RandomisedRule) or not isinstance(reading, Steps) or other:
            return rounds
        ahead = (rounds >= reading.opening) & (rounds < rounds.size)
        if rule.batch > 1:
            ahead &= ((rounds - reading.opening) % rule.batch == 0) & self.follows_leader
        return np.where(ahead, rounds + 1, rounds)


def _plays_as_declared(rule: RandomisedRule, name: str) -> bool:
    """Return whether a rule chooses as the class that declares something of it: a subclass may choose otherwise."""
    declares = next(each for each in type(rule).__mro__ if name in each.__dict__)
    return type(rule).probability is getattr(declares, "probability", None)


def _counts(reading: Reading, cloud: Cloud) -> Integers:
    """Return each arm's pulls at the cloud's marks."""
    arms = cloud.sums.shape[1]
    if isinstance(reading, EliminationTests):
        pulls = np.where(reading.fate != OUT, reading.epoch[:, None], 0)
        return np.asarray(np.maximum.accumulate(pulls, axis=0)[cloud.marks])
    rows = [np.bincount(reading.arm[: mark + 1], reading.count[: mark + 1], arms) for mark in cloud.marks]
    return np.array(rows, np.int64).reshape(len(rows), arms)
