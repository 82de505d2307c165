"""Draws of every mean of a randomised rule's log of which more than rewards is hidden.

`infer_hidden` reads one that misses rounds or begins in mid-run; `infer_arrivals` one whose rewards are late by random
delays, so that nobody sees which of them the rule knew when.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, RandomisedRule, RecentIndexRule
from unbandit.errors import InferenceError, Notice, NotIdentifiable, option
from unbandit.inference.clouds import FEWEST_PARTICLES, particles_for
from unbandit.inference.draws import agreeing, check_informative, clouds_differ, draw_means, evidence_differs, with_best
from unbandit.inference.filter import TRIES, CloudCollapsed, FilterPass, log_mean, new_cloud
from unbandit.inference.prior import Prior, belief_of
from unbandit.inference.result import Posterior
from unbandit.instance import Noise
from unbandit.kernels.compile import Integers
from unbandit.kernels.smc.cloud import NONE, Belief
from unbandit.kernels.smc.hidden import Waiting, filter_arrivals, filter_hidden
from unbandit.log import ActionLog
from unbandit.log.availability import Availability
from unbandit.log.partial import FAR_OFF, IMPROBABLE, PartialLog, ThinnedLog
from unbandit.progress import current_work

HIDDEN_SHARE, MOST_HIDDEN = 3, 3_000  # times as many particles as of a whole log, as none looks ahead; and their most
BETAS_WORK, FEWEST_BETAS = 600_000, 100  # particles times rounds with Beta draws, which take 40 microseconds each
UNSETTLED, MORE = 0.5, 4  # deviation of the clouds' log evidences that takes so many times as many particles
WAITING_BYTES = 100_000_000  # of the rewards that the particles of a cloud wait for, at most
LEAST_KEPT, LEAST_AFTER = 0.1, 0.5  # shares of a run that must be there: kept at random (as measured), after its start


@dataclass(frozen=True, eq=False)
class HiddenRun:
    """One demonstration that misses rounds, and what a cloud takes it through."""

    log: ThinnedLog | PartialLog
    which: int
    rule: RandomisedRule
    belief: Belief
    horizon: int
    particles: int
    seed: int

    def rounds(self, cloud: int) -> Integers:
        """Return the rounds, from 0, of the rows that were seen.

        Those after the last row decide nothing, and are left out. Where rounds are not numbered every cloud has others,
        drawn given that the opening is the rule's: of later ones as many are missing before each row as chance has it;
        or, where the rows are as many as all rounds leave, any choice of them is as likely as another.
        """
        if isinstance(self.log, PartialLog):
            return int(self.log.before[self.which]) + np.arange(self._actions.size)
        if self.log.numbers is not None:
            return self.log.numbers_of(self.which) - 1
        from scipy.stats import binom  # slow to import, and seldom needed

        assert self.log.kept is not None
        kept, most, actions = self.log.kept, self.log.most, self._actions
        generator, opening = np.random.default_rng([self.seed, cloud, 26]), self.opening
        covered = most is not None and actions.size >= kept * most - FAR_OFF * math.sqrt(most * kept * (1 - kept))
        chances = self._chances_of_opening(actions[:opening], kept)
        begun = chances[-1].copy()
        if covered:
            assert most is not None
            begun *= binom.pmf(actions.size - np.arange(begun.size), max(most - opening, 0), kept)
        likely = binom.cdf(np.flatnonzero(begun).max(initial=-1), opening, kept) > IMPROBABLE
        if opening and not likely:
            raise InferenceError(
                f"the rule opens with {opening} pulls in the arms' order, and the first rows are of other arms, "
                "whichever rounds are missing.",
                round=1,
                remedy="Check initial, or another rule made this log.",
            )
        row = int(generator.choice(begun.size, p=begun / begun.sum()))
        early, later = np.zeros(row, np.int64), actions.size - row
        for place in range(opening - 1, -1, -1):
            if row and actions[row - 1] == place % len(self.log.arms):
                seen, hidden = kept * chances[place, row - 1], (1 - kept) * chances[place, row]
                if generator.random() * (seen + hidden) < seen:
                    row -= 1
                    early[row] = place
        if covered:
            assert most is not None
            others = np.sort(generator.choice(most - opening, later, replace=False, shuffle=False))
        else:
            others = np.cumsum(generator.geometric(kept, later)) - 1
        return np.concatenate([early, opening + others.astype(np.int64)])

    def _chances_of_opening(self, rows: Integers, kept: float) -> NDArray[np.float64]:
        """Return by rounds of the opening, and by rows seen in them, how likely it is to see the first rows so.

        Each round's chances are up to a factor, so that long openings do not make them vanish.
        """
        chances = np.zeros((self.opening + 1, rows.size + 1))
        chances[0, 0] = 1.0
        for place in range(self.opening):
            before, after = chances[place], chances[place + 1]
            after[:] = (1 - kept) * before
            after[1:] += kept * before[:-1] * (rows == place % len(self.log.arms))
            after /= max(float(after.max()), 1e-300)
        return chances

    @property
    def _actions(self) -> Integers:
        assert isinstance(self.log.rows, ActionLog)
        return self.log.rows.demonstration(self.which).astype(np.int64)

    @property
    def opening(self) -> int:
        """Return how many rounds the rule's opening has."""
        return self.rule.initial * len(self.log.arms)

    def arms_of(self, cloud: int) -> Integers:
        """Return the arm of every round, `NONE` where it is hidden; refuse an opening that the rule does not make."""
        places = self.rounds(cloud)
        arms, opening = np.full(int(places[-1]) + 1, NONE), np.arange(min(self.opening, int(places[-1]) + 1))
        arms[places] = self._actions
        turns = opening % len(self.log.arms)
        wrong = np.flatnonzero((arms[: opening.size] != NONE) & (arms[: opening.size] != turns))
        if wrong.size:
            at = int(wrong[0])
            raise InferenceError(
                f'the rule opens with arm "{self.log.arms[turns[at]]}" in this round; the log has '
                f'"{self.log.arms[arms[at]]}".',
                round=at + 1,
                remedy="Check initial, or another rule made this log.",
            )
        arms[: opening.size] = turns
        return arms

    def left(self) -> Integers:
        """Return how often each arm is to be pulled after the opening and before the first row, where that is known."""
        if not isinstance(self.log, PartialLog):
            return np.zeros(len(self.log.arms), np.int64)
        starts, number = self.log.starts[self.which], len(self.log.arms)
        opened = np.bincount(np.arange(min(self.opening, int(starts.sum()))) % number, minlength=number)
        wrong = np.flatnonzero(starts < opened)
        if wrong.size:
            raise InferenceError(
                f"the rule opens with {self.opening} pulls in the arms' order, and of arm "
                f'"{self.log.arms[wrong[0]]}" only {starts[wrong[0]]:,} came before the log.',
                parameter="starting_pulls",
                remedy="Check initial and the counts, or another rule made this log.",
            )
        return np.asarray(starts - opened)

    def run(self, cloud: int) -> FilterPass:
        """Send one cloud through the run."""
        arms, number = self.arms_of(cloud), len(self.log.arms)
        state = new_cloud(
            self.belief, np.zeros((self.particles, number)), np.zeros(number), arms.size, np.zeros(0, np.int64),
            self.seed, cloud,
        )  # fmt: skip
        memories = np.zeros((self.particles, number, self.rule.columns))
        pulls = np.zeros((self.particles, number), np.int64)
        shifts = self.rule.shifts and not self.belief.bernoulli
        tries = 1 if self.rule.smooth else 2 if self.belief.bernoulli else TRIES
        left = np.tile(self.left(), (self.particles, 1))
        given = self.rule.parameters(self.horizon), arms, min(self.opening, arms.size), left, state, memories, pulls
        died = filter_hidden(*given, tries, self.rule.smooth, shifts)
        current_work().end_if_stopped()
        if died:
            raise CloudCollapsed(
                f"none of {self.particles} particles explains the log so far under {self.rule}.",
                round=died,
                remedy="Another rule or other parameters made it, or more particles are needed.",
            )
        rounds = np.arange(1, arms.size + 1)
        return FilterPass(state, pulls, rounds, rounds, arms.size, np.zeros((0, number), np.int64), ())


def check_hidden_posterior(log: ThinnedLog | PartialLog, rule: Demonstrator) -> None:
    """Refuse a log that misses rounds, or begins in mid-run, of which there is no posterior."""
    what = "misses rounds" if isinstance(log, ThinnedLog) else "begins in mid-run"
    if not isinstance(rule, RandomisedRule):
        told = isinstance(log, PartialLog) and log.starting_pulls is not None
        is_read = rule.reveals == "values" and not isinstance(rule, RecentIndexRule) and not rule.is_late
        is_read &= told or int(getattr(rule, "batch", 1)) == 1
        raise NotIdentifiable(
            f"{rule.name}: the log {what}, and under a deterministic rule no particle is left whose"
            " hidden arms and rewards explain what follows: there is no posterior.",
            remedy=f"`estimate` reads it with {option('method', 'bracket')}." if is_read else "Give the whole run.",
        )
    if rule.reveals == "nothing":
        text = f"{rule.name}: its choices do not depend on rewards, so the log reveals nothing about them."
        raise NotIdentifiable(text)
    if rule.gains is not None:
        raise NotIdentifiable(
            f"{rule.name}: the log {what}, and there is then no posterior of a rule that divides rewards by the"
            " probabilities of its arms.",
            remedy="Give the whole run.",
        )
    if rule.batch > 1:
        raise NotIdentifiable(
            f"{rule.name}: the log {what}, and there is then no posterior of a rule that decides in batches.",
            remedy="Give the whole run.",
        )
    if rule.opening == "random":
        raise NotIdentifiable(
            f"{rule.name}: the log {what}, and with opening=random nothing shows which arms they opened.",
            remedy="Give the whole run.",
        )
    if log.rewards is not None:
        raise NotIdentifiable(
            f"The log {what}, and some rewards are known: posteriors read one or the other.",
            remedy="Leave the column of rewards out.",
        )
    seen, total = int(log.rows.lengths.sum()), int(log.lengths.sum())
    kept = log.kept if isinstance(log, ThinnedLog) else None
    share, least = (seen / total, LEAST_AFTER) if kept is None else (kept, LEAST_KEPT)
    if share < least:
        raise NotIdentifiable(
            f"{rule.name}: {seen:,} of {total:,} rounds were seen. A posterior would rest on the hidden ones, which "
            f"chance decided: it takes at least {least:.0%} of all rounds.",
            remedy="Add rows, if there are more.",
        )


def default_particles(rule: RandomisedRule, rounds: int, *, begun: bool) -> int:
    """Return the default number of particles of a cloud; `begun` if the log begins in mid-run.

    With Beta draws a particle takes many times as long: particles differ in their counts, and share no tables.
    """
    number = min(HIDDEN_SHARE * particles_for(rounds), MOST_HIDDEN) * (MORE if begun else 1)
    return number if rule.beta_prior is None else min(number, max(FEWEST_BETAS, BETAS_WORK // rounds))


def infer_hidden(
    log: ThinnedLog | PartialLog, which: int, rule: RandomisedRule, prior: Prior, noise: Noise, horizon: int, *,
    anchor: tuple[int, float] | None = None, particles: int | None = None, clouds: int = 4, draws: int = 1_000,
    seed: int = 0, threads: int | None = None,
) -> Posterior:  # fmt: skip
    """Draw from the posterior of every mean, given one demonstration that misses rounds or begins in mid-run.

    It takes a round to be missing whatever arm was pulled in it. Arguments as for `infer`.
    """
    total, arms = int(log.lengths[which]), log.arms
    begun = isinstance(log, PartialLog)  # what came before shows in nothing but counts
    number = particles or default_particles(rule, total, begun=begun)
    belief = belief_of(prior, len(arms), noise, anchor)
    task = HiddenRun(log, which, rule, belief, horizon, number, seed)
    one_run = begun or log.numbers is not None  # otherwise clouds are of different runs

    def filtered() -> list[FilterPass]:
        with current_work().stage("Reading the rounds", clouds * task.particles * total):
            return checks.in_threads(task.run, [(cloud,) for cloud in range(clouds)], checks.threads(threads))

    passes = filtered()
    again = particles is None and one_run and not begun and rule.beta_prior is None
    if again and np.std([_log_evidence(each) for each in passes]) > UNSETTLED:
        number *= MORE
        task = replace(task, particles=number)
        passes = filtered()
    means = np.stack([draw_means(each, belief, draws, seed, cloud) for cloud, each in enumerate(passes)])
    evidences = np.array([_log_evidence(each) for each in passes]) + _log_guided(task.left())
    evidence, error = log_mean(evidences)
    smallest = min(float(each.cloud.effective_size.min(initial=number)) for each in passes)
    warnings = clouds_differ(list(means), arms, number, None)
    if one_run:
        warnings = [*warnings, *evidence_differs(evidences, smallest, number, by_chance=True)]
    return Posterior(
        rule=str(rule), prior=prior, noise=noise, horizon=horizon, arms=arms, pulls=log.pulls[which], means=means,
        log_evidence=evidence, log_evidence_error=error, evidences=evidences, effective_size=smallest, particles=number,
        judged=partial(np.full, int(log.rows.lengths[which]), math.nan), path_rounds=np.zeros(0, np.int64),
        path=np.zeros((0, len(arms), 3)), warnings=(*warnings, *_said_of_missing(log)),
    )  # fmt: skip


def _log_evidence(each: FilterPass) -> float:
    """Return the log evidence by one cloud."""
    return float(each.cloud.increments.sum())


def _log_guided(left: Integers) -> float:
    """Return the log probability of counts that particles were guided to, where each arm has its share of them."""
    counts, total = [int(count) for count in left if count > 0], int(left.sum())
    each = (count * math.log(count / total) - math.lgamma(count + 1) for count in counts)
    return math.fsum((math.lgamma(total + 1), *each))


def _said_of_missing(log: ThinnedLog | PartialLog) -> list[Notice]:
    """Warn where nobody said that rounds got lost at random."""
    if isinstance(log, PartialLog) or log.kept is not None or log.begins_late:
        return []
    text = "Rounds are missing, and the posterior assumes that this does not depend on the arm. If rounds of some arms "
    text += f"are missing more often, it is wrong. If rounds are missing at random, say so with {option('kept')}."
    return [Notice("missing-at-random", text)]


@dataclass(frozen=True, eq=False)
class LateRun:
    """A demonstration whose rewards are late by random delays, and what a cloud takes it through."""

    log: ActionLog
    rule: RandomisedRule
    belief: Belief
    horizon: int
    particles: int
    seed: int

    @property
    def rounds(self) -> int:
        """Return in how many rounds rewards may be on their way to arrive, the present one included."""
        assert self.rule.random_delay is not None
        return min(self.rule.random_delay.cumulative.size + 1, int(self.log.lengths[0]))

    def run(self, cloud: int) -> FilterPass:
        """Send one cloud through the demonstration."""
        assert self.rule.random_delay is not None
        actions, arms, number = self.log.demonstration(0).astype(np.int64), len(self.log.arms), self.particles
        state = new_cloud(
            self.belief, np.zeros((number, arms)), np.zeros(arms), actions.size, np.zeros(0, np.int64), self.seed, cloud
        )
        memories, pulls = np.zeros((number, arms, self.rule.columns)), np.zeros((number, arms), np.int64)
        waiting = Waiting(
            self.rule.random_delay.cumulative.copy(), np.zeros((number, self.rounds, arms), np.uint16),
            np.full((number, 1), -1), np.zeros_like(pulls), np.zeros_like(memories),
        )  # fmt: skip
        died = filter_arrivals(
            self.rule.parameters(self.horizon), actions, self.rule.initial, self.rule.batch, state, memories, pulls,
            waiting, self.rule.smooth, self.rule.shifts and not self.belief.bernoulli,
        )  # fmt: skip
        current_work().end_if_stopped()
        if died:
            raise CloudCollapsed(
                f"none of {number} particles explains the log so far under {self.rule}.",
                round=died,
                remedy="Another rule or other parameters made it, or more particles are needed.",
            )
        rounds = np.arange(1, actions.size + 1)
        return FilterPass(state, pulls, rounds, rounds, actions.size, np.zeros((0, arms), np.int64), ())


def _refuse_arrivals(log: ActionLog, rule: RandomisedRule) -> None:
    """Refuse a log with random delays of which there is no posterior."""
    assert rule.random_delay is not None
    reason, remedy = None, rule.random_delay.remedy
    if rule.gains is not None:
        reason = "there is then no posterior of a rule that divides rewards by the probabilities of its arms"
    elif len(log) > 1:
        reason, remedy = "demonstrations are then not pooled", f"Leave {option('pool')} out: each is read alone."
    elif log.rewards is not None:
        reason = "nothing shows which of the known rewards the rule knew when"
        remedy = "Leave the column of rewards out."
    elif rule.initial and rule.opening == "random":
        reason = "an opening in random order is then not read"
        remedy = "Leave opening=random out, if the log opens with the arms in the order in which they are listed."
    if reason is not None:
        raise NotIdentifiable(f"{rule.name}: delays are random ({rule.random_delay}), and {reason}.", remedy=remedy)


def infer_arrivals(
    log: ActionLog, rule: RandomisedRule, prior: Prior, noise: Noise, horizons: Sequence[int], *,
    anchor: tuple[int, float] | None = None, is_best: bool = False, particles: int | None = None, clouds: int = 4,
    draws: int = 1_000, seed: int = 0, threads: int | None = None, there: Availability | None = None,
) -> Posterior:  # fmt: skip
    """Draw from the posterior of every mean, given a demonstration whose rewards are late by random delays.

    Arguments as for `infer`.
    """
    varying = rule.random_delay
    assert varying is not None
    assert there is None  # no rule with a random delay is defined where arms come and go
    _refuse_arrivals(log, rule)
    check_informative(log, rule)
    total, arms = int(log.lengths[0]), log.arms
    belief = belief_of(prior, len(arms), noise, anchor)
    rule = rule.for_arms(len(arms))
    task = LateRun(log, rule, belief, horizons[0], 1, seed)
    most = WAITING_BYTES // (task.rounds * len(arms) * np.dtype(np.uint16).itemsize)
    usual = default_particles(rule, total, begun=False)
    if most < (particles or min(usual, FEWEST_PARTICLES)):
        raise NotIdentifiable(
            f"{rule.name}: delays of up to {task.rounds:,} rounds with {len(arms)} arms leave memory for {most:,} "
            "particles of a cloud.",
            parameter="particles",
            value=particles,
            remedy=varying.remedy if particles is None else "Give fewer particles.",
        )
    number = particles or min(usual, most)

    def filtered(number: int) -> list[FilterPass]:
        own = replace(task, particles=number)
        with current_work().stage("Reading the rounds", clouds * number * total):
            return checks.in_threads(own.run, [(cloud,) for cloud in range(clouds)], checks.threads(threads))

    passes = filtered(number)
    again = particles is None and rule.beta_prior is None and MORE * number <= most
    if again and np.std([_log_evidence(each) for each in passes]) > UNSETTLED:
        with suppress(CloudCollapsed):  # then the first answer stands
            passes = filtered(MORE * number)
            number *= MORE
    means = np.stack([draw_means(each, belief, draws, seed, cloud) for cloud, each in enumerate(passes)])
    by_cloud = list(means)
    if anchor is not None and is_best:
        by_cloud = agreeing(means, anchor)
        means = with_best(means, anchor, arms, seed)
    evidences = np.array([_log_evidence(each) for each in passes])
    evidence, error = log_mean(evidences)
    smallest = min(float(each.cloud.effective_size.min(initial=number)) for each in passes)
    return Posterior(
        rule=str(rule), prior=prior, noise=noise, horizon=horizons[0], arms=arms, pulls=log.pulls[0], means=means,
        log_evidence=evidence, log_evidence_error=error, evidences=evidences, effective_size=smallest, particles=number,
        judged=partial(np.full, total, math.nan), path_rounds=np.zeros(0, np.int64),
        path=np.zeros((0, len(arms), 3)),
        warnings=(
            *clouds_differ(by_cloud, arms, number, None),
            *evidence_differs(evidences, smallest, number, by_chance=True),
        ),
    )  # fmt: skip
