"""One cloud of particles, sent through all demonstrations of a log by the filter of the rule's kind."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule
from unbandit.errors import InferenceError
from unbandit.inference.lookahead import BetaLog, OutlookLog, beta_log
from unbandit.inference.steps import Reading, number_of_steps, turns_of, views_of
from unbandit.inference.twist import TwistedLog
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.rng import QUANTILE_TABLE
from unbandit.kernels.smc.bernoulli import filter_bernoulli
from unbandit.kernels.smc.cloud import Belief, Cloud, Rng, Steps
from unbandit.kernels.smc.elimination import OUT, EliminationTests, filter_elimination
from unbandit.kernels.smc.index import filter_index
from unbandit.kernels.smc.late import filter_late_index
from unbandit.kernels.smc.leader import filter_leader, leader_chances, no_twist
from unbandit.kernels.smc.outlook import filter_outcomes
from unbandit.kernels.smc.randomised import filter_randomised
from unbandit.kernels.smc.successes import filter_late_successes, filter_successes
from unbandit.kernels.smc.twist import filter_twisted
from unbandit.log import ActionLog
from unbandit.log.availability import Availability
from unbandit.progress import current_work
from unbandit.tape import Tape

MOST_TABLED = 20_000  # rounds up to which Beta draws are tabulated: tables grow with the number of possible successes
MOST_CHANCES = 20_000_000  # rounds times arms up to which a greedy rule's probabilities are laid out by its leader
TRIES, GLANCE_TRIES = 16, 4  # candidates for each reward, where a rule's decisions jump with its sample means
GLANCE = 25  # particles up to which a cloud is only a glance at a log: quick, and less precise

MOST_RELAXED = 0.005
"""The largest share of steps (at least one) without an exact particle, where indices grow with the round."""

MOST_MARKS, MOST_KEPT = 100, 4_000_000
"""The largest number of marks at which sums are kept, and of numbers that a cloud keeps."""
MOST_BY_PHASE = 4_000_000  # numbers of a cloud that hold its sums at the end of every phase of an elimination rule


class CloudCollapsed(InferenceError):
    """No particle of a cloud explains the record: the rule cannot have made it, or more particles are needed."""


@dataclass(frozen=True, eq=False)
class FilterPass:
    """One cloud after one demonstration."""

    cloud: Cloud
    pulls: Integers  # the number of rewards behind each arm's sum; where rounds are hidden, of each particle
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


def by_round(passes: tuple[FilterPass, ...]) -> Numbers:
    """Return the change of the log evidence of one cloud in each round of all demonstrations."""
    values = [np.zeros(each.length) for each in passes]
    for row, each in zip(values, passes, strict=True):
        np.add.at(row, each.judged - 1, each.cloud.increments)
        if each.judged.size and each.judged[0] == 2:  # there the first two rounds are judged together
            row[:2] = row[1] / 2
    return np.concatenate(values)


def log_evidence_of(passes: tuple[FilterPass, ...] | CloudCollapsed) -> float:
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
class CloudFilter:
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
    twists: tuple[TwistedLog | BetaLog, ...] = ()  # the clouds take them in turn
    outlooks: tuple[OutlookLog, ...] = ()  # in turn likewise
    there: Availability | None = None  # which arms could be pulled when, if not all in all rounds

    @property
    def looks_ahead(self) -> bool:
        """Return whether particles are drawn given all actions."""
        return bool(self.twists or self.outlooks)

    def run(self, cloud: int) -> tuple[FilterPass, ...] | CloudCollapsed:
        """Send one cloud through all demonstrations; the sums at the end of one are the past of the next.

        Returns the error where it collapsed.
        """
        sums, before = self.known_rewards()
        past = np.tile(sums, (self.particles, 1))
        log_weights = np.zeros(self.particles)
        looks = self._looks_of(cloud)
        means, values = None, None
        if isinstance(looks, TwistedLog):
            means = np.tile(looks.transitions.start, (self.particles, 1))
        elif looks is not None:
            values = np.full(self.particles, looks.log_start)
        passes: list[FilterPass] = []
        for which, (reading, horizon) in enumerate(zip(self.readings, self.horizons, strict=True)):
            name = cloud * len(self.readings) + which
            state = self._cloud(reading, past, before, name, keep=self.keep_paths and which == 0)
            if looks is not None:
                state.log_weights[:] = log_weights
            if isinstance(looks, OutlookLog):
                assert values is not None
                pulls, died, rounds = self._filter_outcomes(which, state, values, looks)
            elif isinstance(looks, BetaLog):
                assert values is not None
                pulls, died, rounds = self._filter_betas(which, state, values, looks)
            elif looks is not None:
                assert means is not None
                pulls, died, rounds = self._filter_twisted(which, state, means, horizon, looks)
            else:
                pulls, died, rounds = self._filter(reading, state, horizon)
            current_work().end_if_stopped()
            judged = self._judged(reading, rounds)
            relaxed = np.flatnonzero(state.relaxed == self.particles)
            too_many = relaxed.size > self._most_relaxed(rounds.size)
            if died or too_many:
                return CloudCollapsed(
                    f"none of {self.particles} particles explains the log so far under {self.rule}.",
                    round=int(judged[relaxed[0] if too_many else died - 1]) if rounds.size else died,
                    remedy="Another rule or other parameters made it, or more particles are needed.",
                )
            if len(passes) > 1:  # of particles, only those of the first and the last demonstration are looked at
                passes[-1] = passes[-1].without_particles()
            length, counts = int(self.log.lengths[which]), _counts(reading, state)
            passes.append(FilterPass(state, pulls, rounds, judged, length, counts, tuple(judged[relaxed].tolist())))
            past, before, log_weights = state.past + state.sums, state.before + pulls, state.log_weights
            if looks is None:
                generator = np.random.default_rng([self.seed, name, 1])
                past = past[systematic(log_weights, self.particles, generator)]
        return tuple(passes)

    def _looks_of(self, cloud: int) -> TwistedLog | BetaLog | OutlookLog | None:
        """Return how a cloud reads the log, where that is with a look at all of it, or by tables of Beta draws."""
        found: tuple[TwistedLog | BetaLog | OutlookLog, ...] = self.outlooks or self.twists
        if found:
            return found[cloud % len(found)]
        if not self.draws_betas:
            return None
        assert isinstance(self.rule, RandomisedRule)
        return beta_log(self.rule, [reading for reading in self.readings if isinstance(reading, Steps)])

    def _most_relaxed(self, steps: int) -> int:
        """Return how many steps without an exact particle are accepted."""
        if self.relaxing:
            return steps
        grows = isinstance(self.rule, IndexRule) and self.rule.uses_round
        return max(1, int(MOST_RELAXED * steps)) if grows else 0

    def known_rewards(self) -> tuple[Numbers, Numbers]:
        """Sum and count the known rewards: the observer learns from them at once, the rule sees each in its round."""
        return known_rewards(self.log)

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
            active = reading.fate != OUT
            phase = np.cumsum((np.diff(active, axis=0, prepend=active[:1]) != 0).any(axis=1))
            phases = int(phase[-1]) + 1 if level and phase.size else 0
            by_phase = np.zeros((number, phases if number * phases * arms <= MOST_BY_PHASE else 0, arms))
            died = filter_elimination(reading, cloud, level, alike, pulls, phase, by_phase)
            if by_phase.size and not died:
                generator = np.random.default_rng([self.seed, int(cloud.rng.name), 6])
                redraw_common(reading, cloud, phase, by_phase, generator)
            rounds = np.cumsum(np.diff(reading.epoch, prepend=0) * active.sum(axis=1)) + rule.fixed_delay
            return pulls, died, np.minimum(rounds, self.log.lengths.max())
        pulls = np.bincount(reading.arm, weights=reading.count, minlength=arms).astype(np.int64)
        if isinstance(rule, IndexRule):
            ties, moves = rule.ties == "random", (rule.shifts, level)
            most_relaxed = self._most_relaxed(reading.arm.size)
            parameters, compares_all = rule.parameters(horizon), rule.uses_round or self.there is not None
            if rule.delay > 0:
                given = parameters, reading, cloud, turns_of(reading, rule, arms), rule.uses_round, ties
                if belief.bernoulli:
                    died = filter_late_successes(*given, most_relaxed)
                else:
                    died = filter_late_index(*given, *moves, most_relaxed)
            elif belief.bernoulli:
                died = filter_successes(parameters, reading, cloud, compares_all, ties, most_relaxed)
            else:
                died = filter_index(parameters, reading, cloud, compares_all, ties, *moves, most_relaxed)
            return pulls, died, reading.round
        assert isinstance(rule, RandomisedRule)
        if self.follows_leader:
            chances, shifts = self.leader_chances(reading, horizon), rule.shifts and level
            died = filter_leader(reading, cloud, chances, rule.batch, self._random_ties, shifts, 0, *no_twist(arms))
            return pulls, died, reading.round
        memories = np.zeros((number, arms, rule.columns))
        jumping = TRIES if number > GLANCE else GLANCE_TRIES
        tries = 2 if belief.bernoulli else 1 if rule.smooth else jumping
        died = filter_randomised(
            rule.parameters(horizon),
            reading,
            cloud,
            memories,
            views_of(reading, rule),
            tries,
            rule.smooth,
            rule.shifts and level,
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
            level = not self.belief.bernoulli and self.log.rewards is None and which == len(self.readings) - 1
            chances, deviations = self.leader_chances(reading, horizon), twisted.transitions.noise
            ties, shifts = self._random_ties, rule.shifts and level
            died = filter_leader(reading, cloud, chances, 1, ties, shifts, first, deviations, sites, twist)
        else:
            memories = np.zeros((number, arms, rule.columns))
            died = filter_twisted(
                rule.parameters(horizon), reading, cloud, memories, means, first, rule.score or 0, twisted.transitions,
                sites, twist,
            )  # fmt: skip
        if which == 0:
            cloud.increments[0] += twisted.log_start
        return np.bincount(reading.arm, minlength=arms), died, reading.round

    def _filter_betas(
        self, which: int, cloud: Cloud, values: Numbers, log: BetaLog
    ) -> tuple[Integers, int, Integers]:  # fmt: skip
        """Run the filter of Beta draws over a demonstration; the particles' look-ahead `values` are moved on."""
        rule, reading = self.rule, self.readings[which]
        assert isinstance(rule, RandomisedRule)
        assert isinstance(reading, Steps)
        views, first = views_of(reading, rule), log.firsts[which]
        died = filter_bernoulli(log.successes, log.failures, reading, views, cloud, first, values, log.exponents)
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
        if not (isinstance(rule, RandomisedRule) and rule.gains is not None and self.belief.bernoulli) or rule.is_late:
            return False
        return _plays_as_declared(rule, "gains") and _plays_as_declared(rule, "gains", "learn")

    @property
    def follows_leader(self) -> bool:
        """Return whether a kernel can read a greedy rule's leader.

        In a batch, ties that are broken at random are broken anew in each round, by different leaders; hidden normal
        rewards have no ties.
        """
        rule, rounds = self.rule, int(self.log.lengths.max())
        if not (isinstance(rule, RandomisedRule) and rule.greedy and rule.initial > 0):
            return False
        if rule.delay > 0 or self.there is not None:
            return False
        fits = rounds * len(self.log.arms) <= MOST_CHANCES and _plays_as_declared(rule, "greedy")
        untied = not self.belief.bernoulli and self.log.rewards is None
        return fits and (untied or rule.batch == 1 or not self._random_ties)

    @property
    def _random_ties(self) -> bool:
        return getattr(self.rule, "ties", "lowest") == "random"

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
        looks_at_all = self.draws_betas or bool(self.outlooks)
        other = looks_at_all or (bool(self.twists) and not self.follows_leader)
        if not isinstance(rule, RandomisedRule) or not isinstance(reading, Steps):
            return rounds
        views = views_of(reading, rule)
        if other:
            return views.decided if rule.delay > 0 else rounds
        following, decided = np.append(views.judged[1:], 0), np.append(views.decided[1:], rounds.size)
        ahead = following > 0 if self.follows_leader else following == 1
        return np.where(ahead, decided, views.decided)


def known_rewards(log: ActionLog) -> tuple[Numbers, Numbers]:
    """Return sum and number of every arm's known rewards."""
    arms = len(log.arms)
    if log.rewards is None or log.actions is None:
        return np.zeros(arms), np.zeros(arms)
    known = ~np.isnan(log.rewards)
    counts = np.bincount(log.actions[known], minlength=arms).astype(np.float64)
    return np.bincount(log.actions[known], weights=log.rewards[known], minlength=arms).astype(np.float64), counts


def redraw_common(
    tests: EliminationTests, cloud: Cloud, phase: Integers, by_phase: Numbers, generator: np.random.Generator
) -> None:
    """Draw anew what the rewards of an epoch have in common, and with it the sums of a cloud.

    Tests compare arms after as many pulls of each, so that no test changes when a number is added to one reward of
    every active arm. Given the differences between arms, what they have in common is normal, and so are the means: both
    are drawn from their conditional distribution, independently for all particles. Resampling leaves few different sums
    of arms that went early; this gives back what they share with the arms that stayed.
    """
    belief, variance = cloud.belief, cloud.belief.sigma**2
    starts = np.flatnonzero(np.diff(phase, prepend=-1))
    active = tests.fate[starts] != OUT
    epochs = np.diff(tests.epoch[np.append(starts[1:], phase.size) - 1], prepend=0)
    share = active / active.sum(axis=1, keepdims=True)
    gained = np.diff(by_phase, axis=1, prepend=0.0)
    apart = np.where(active, gained - (gained * share).sum(axis=2, keepdims=True), 0.0)
    seen = (np.diag(epochs @ active) - (share.T * epochs) @ active + np.diag(cloud.before)) / variance
    told = (apart.sum(axis=1) + cloud.past) / variance
    root = np.sqrt(belief.second)
    factor = np.linalg.cholesky(np.eye(root.size) + root[:, None] * seen * root)
    pull = np.linalg.solve(factor, ((told - seen @ belief.first) * root).T)
    means = belief.first + root * np.linalg.solve(factor.T, pull + generator.standard_normal(pull.shape)).T
    noise = generator.standard_normal((len(means), epochs.size))
    common = epochs * (means @ share.T) + np.sqrt(epochs * variance / active.sum(axis=1)) * noise
    cloud.sums[:] = (apart + common[:, :, None] * active).sum(axis=1)


def _plays_as_declared(rule: RandomisedRule, name: str, what: str = "probability") -> bool:
    """Return whether a rule chooses, or learns, as the class that declares something of it: a subclass may not."""
    declares = next(each for each in type(rule).__mro__ if name in each.__dict__)
    return getattr(type(rule), what) is getattr(declares, what, None)


def _counts(reading: Reading, cloud: Cloud) -> Integers:
    """Return each arm's pulls at the cloud's marks."""
    arms = cloud.sums.shape[1]
    if isinstance(reading, EliminationTests):
        pulls = np.where(reading.fate != OUT, reading.epoch[:, None], 0)
        return np.asarray(np.maximum.accumulate(pulls, axis=0)[cloud.marks])
    rows = [np.bincount(reading.arm[: mark + 1], reading.count[: mark + 1], arms) for mark in cloud.marks]
    return np.array(rows, np.int64).reshape(len(rows), arms)
