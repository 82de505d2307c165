"""Decisions predicted one by one, and the test of a rule by what they leave over.

Given the decisions before it, a rule gives each decision a probability. Where the rule is right, what happened minus
what was expected adds up to a martingale, under any weights that depend on the past alone: divided by the square root
of the sum of its conditional variances, it is nearly standard normal. The weights that another rule suggests, the
logarithms of its probabilities over those of the assumed rule, make this the most powerful test against that rule, as
far as the normal law goes. No simulations are needed, and how many weights are tried is accounted for by their
correlations.

Where a record holds few decisions that could have been different, the normal law does not reach. The product of all
probabilities, the evidence, still compares two rules: under the assumed rule, the ratio of another rule's evidence to
its own exceeds `r` with a probability of at most `1 / r`, on average over the prior of the means. The prior's size, the
arm that may drift and the size of a batch are taken from the record itself; calibration shows what that costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import AdditiveIndexRule, IndexRule
from unbandit.inference.filter import new_cloud
from unbandit.inference.prior import Prior, belief_of
from unbandit.inference.steps import steps_of, steps_while_there
from unbandit.instance import Noise
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.smc.cloud import Steps
from unbandit.kernels.smc.decisions import WIDENED, index_offsets, predict_decisions, room_for
from unbandit.log import ActionLog
from unbandit.log.availability import Availability

FEW_ARMS = 5  # up to so many, the probability of every arm is predicted
MOST_WEIGHT = 3.0  # to which logarithms are cut, lest a single decision outweigh all others
LEAST_SPREAD = 2.0  # standard deviation of a sum, below which it is not yet normal
NORMAL_DRAWS = 4_000
TINY = 1e-9
HOPELESS = 25.0  # nats by which another rule falls behind before it is given up
TOLERANCE = 0.03  # relative error of all probabilities together that few particles may make


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions of one demonstration after its opening."""

    chosen: Integers
    before: Integers  # the arm of the decision before
    leader: Integers  # the arm that had been pulled most
    arms: int

    @property
    def again(self) -> NDArray[np.bool_]:
        """Return at which decisions the same arm was taken again."""
        return np.asarray(self.chosen == self.before)


def _nothing() -> Numbers:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The probabilities that a rule, or a model without one, gave each decision."""

    repeats: Numbers  # that the arm before is taken again
    shares: Numbers  # where it was not: of every arm, or of the leader alone
    log_evidence: float = math.nan
    means: Numbers = field(default_factory=_nothing)  # sample means at the end, (particles, arms)
    log_weights: Numbers = field(default_factory=_nothing)  # of the particles
    increments: Numbers = field(default_factory=_nothing)  # of the log evidence, by each step


def _steps(log: ActionLog, initial: int, batch: int, there: Availability | None) -> Steps:
    """Return the steps of a log's first demonstration, whose rewards are not looked at."""
    actions = log.demonstration(0).astype(np.int64)
    hidden = np.full(actions.size, np.nan)
    if there is not None:
        return steps_while_there(actions, hidden, initial, there)
    return steps_of(actions, hidden, log.arms, initial, batch)


def decisions_of(log: ActionLog, initial: int = 1, batch: int = 1, there: Availability | None = None) -> Decisions:
    """Return the decisions of a log's first demonstration; `there` says up to which round arms could be pulled."""
    arms, steps = len(log.arms), _steps(log, initial, batch, there)
    pulls = np.zeros(arms, np.int64)
    leader = np.empty(steps.arm.size, np.int64)
    for step, (arm, count) in enumerate(zip(steps.arm.tolist(), steps.count.tolist(), strict=True)):
        leader[step] = pulls.argmax()
        pulls[arm] += count
    first = steps.opening
    return Decisions(steps.arm[first:], steps.arm[first - 1 : -1], leader[first:], arms)


def predict(
    log: ActionLog, rule: IndexRule, noise: Noise, prior: Prior, horizon: int, particles: int, *, seed: int = 0,
    drift: tuple[int, float] | None = None, unless_below: Predictions | None = None,
    widths: tuple[float, ...] = WIDENED, means: Numbers | None = None, evidence_only: bool = False,
    there: Availability | None = None,
) -> Predictions:  # fmt: skip
    """Let an index rule with normal rewards predict every decision of a log's first demonstration.

    `drift` is an arm and by how much its mean changes, steadily, up to the horizon. Once the record is `HOPELESS` less
    probable than by other predictions (`unless_below`), nothing more is predicted. The prior variance is multiplied by
    one of `widths`, which is learnt from the record. The prior is around `means`, where these are given. If
    `evidence_only`, arms that were not chosen are not asked for: faster, with the same evidence. `there` says up
    to which round each arm could be pulled; none may arrive late.
    """
    arms = len(log.arms)
    rule = rule.for_arms(arms)
    actions = log.demonstration(0).astype(np.int64)
    steps = _steps(log, rule.initial, rule.batch, there)
    number, all_arms = steps.arm.size, arms <= FEW_ARMS
    offsets = np.zeros((number, arms))
    if isinstance(rule, AdditiveIndexRule):  # its widths at these counts, without a table up to the horizon
        added = np.where(steps.arm[:, None] == np.arange(arms), steps.count[:, None], 0)
        pulls = np.cumsum(added, axis=0) - added
        added_width = rule.width(np.arange(1.0, actions.size + 1), horizon)
        offsets[pulls > 0] = added_width[pulls[pulls > 0] - 1]
    else:
        index_offsets.for_work(offsets.size)(rule.parameters(horizon), steps, arms, offsets)
    offsets += 0.0 if means is None else means
    if drift is not None:
        offsets[:, drift[0]] += drift[1] / horizon * _mean_round(steps, drift[0])
    if there is not None:
        offsets[steps.round[:, None] > there.last] = -np.inf
    known = np.zeros((particles, arms)), np.zeros(arms)
    cloud = new_cloud(belief_of(prior, arms, noise, None), *known, number, np.zeros(0, np.int64), seed, 0)
    columns = 0 if evidence_only else arms if all_arms else 1
    repeats, shares = np.full(number, np.nan), np.zeros((number, columns))
    least = np.zeros(0) if unless_below is None else np.cumsum(unless_below.increments) - HOPELESS
    least = least if least.size == number else np.zeros(0)
    each_width = np.array(widths)
    complete = predict_decisions(
        steps.arm, steps.count, steps.opening, offsets, cloud.belief.sigma, cloud.rng, cloud.table, cloud.signals,
        cloud.sums, cloud.log_weights, cloud.ancestors, cloud.increments, cloud.effective_size,
        *room_for(particles, cloud.belief, each_width), each_width, all_arms, least, repeats, shares,
    )  # fmt: skip
    means = cloud.sums / np.maximum(np.bincount(actions, minlength=arms), 1)
    first, evidence = steps.opening, float(cloud.increments.sum()) if complete else -math.inf
    evidence = evidence if math.isfinite(evidence) else -math.inf
    repeats = _nothing() if evidence_only else repeats[first:]
    return Predictions(repeats, shares[first:], evidence, means, cloud.log_weights, cloud.increments)


def _mean_round(steps: Steps, arm: int) -> Numbers:
    """Return before every step the mean of the rounds in which an arm was pulled; 0 before its first pull."""
    counts = np.where(steps.arm == arm, steps.count, 0)
    totals: Numbers = counts * (steps.round + (counts - 1) / 2)
    return np.asarray((np.cumsum(totals) - totals) / np.maximum(np.cumsum(counts) - counts, 1))


def without_rule(decisions: Decisions, memory: float) -> Predictions:
    """Predict that arms are chosen at random, as often as in about the last `memory` decisions."""
    number, arms = decisions.chosen.size, decisions.arms
    repeats, shares = np.empty(number), np.full((number, arms if arms <= FEW_ARMS else 1), np.nan)
    counts, kept, total, half, evidence = np.zeros(arms), 1 - 1 / memory, 0.0, 0.5, 0.0
    for at, (arm, before, leader) in enumerate(
        zip(decisions.chosen.tolist(), decisions.before.tolist(), decisions.leader.tolist(), strict=True)
    ):
        repeats[at] = (counts[before] + half) / (total + arms * half)
        evidence += math.log((counts[arm] + half) / (total + arms * half))
        if arm != before:
            if arms <= FEW_ARMS:
                shares[at] = (counts + half) / (total + arms * half)
            elif leader != before:
                shares[at, 0] = (counts[leader] + half) / (total + arms * half)
        if kept < 1:
            counts *= kept
        counts[arm] += 1
        total = total * kept + 1
    return Predictions(repeats, shares, evidence)


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far the decisions are from what was expected, in each of several directions."""

    names: tuple[str, ...]
    scores: Numbers  # standard normal where the rule is right
    correlations: Numbers
    spreads: Mapping[str, float]  # standard deviations of the sums, also of those that are not yet normal

    def p_value(self, seed: int = 0) -> float:
        """Return the probability that the largest score of a record of the rule is as large."""
        if not self.scores.size:
            return 1.0
        largest, size = float(self.scores.max()), self.scores.size
        one = 0.5 * math.erfc(largest * math.sqrt(0.5))
        if size * one < 1e-4:
            return size * one
        values, vectors = np.linalg.eigh(self.correlations)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = np.random.default_rng([seed, 6]).standard_normal((NORMAL_DRAWS, size)) @ root.T
        return max(one, float(((draws.max(axis=1) >= largest).sum() + 1) / (NORMAL_DRAWS + 1)))


def residuals(
    decisions: Decisions, own: tuple[Predictions, Predictions], others: Mapping[str, Predictions]
) -> Residuals:
    """Compare the decisions with what a rule expected: in general, and where other rules would differ.

    The rule's probabilities are estimates, by two independent clouds. Weights come from one and what is left over from
    the other: errors of the same estimate in both would add up. What the two leave over differs by the clouds' error
    alone, which widens the scores' distribution. A rule that decides at other moments suggests no weights, and nor does
    one that was given up.
    """
    others = {
        name: other
        for name, other in others.items()
        if other.repeats.size == own[0].repeats.size and other.log_evidence != -math.inf
    }
    parts = [_weighted(decisions, own[first], own[1 - first], others) for first in (0, 1)]
    names, totals, variance = parts[0][0], [part[1] for part in parts], (parts[0][2] + parts[1][2]) / 2
    every = np.sqrt(np.diag(variance))
    kept = every > LEAST_SPREAD
    spreads = every[kept]
    by_cloud = [total[kept] / spreads for total in totals]
    error = float(np.mean((by_cloud[0] - by_cloud[1]) ** 2)) / 4 if kept.any() else 0.0
    scores = (by_cloud[0] + by_cloud[1]) / 2 / np.sqrt(1 + error + (TOLERANCE * spreads) ** 2)
    correlations = variance[np.ix_(kept, kept)] / np.outer(spreads, spreads)
    by_name = dict(zip(names, every.tolist(), strict=True))
    return Residuals(tuple(np.array(names)[kept].tolist()), scores, correlations, by_name)


def by_evidence(
    own: tuple[Predictions, Predictions], others: Mapping[str, Predictions], weights: Mapping[str, float],
    found: Residuals,
) -> float:  # fmt: skip
    """Return the probability, at most, that a record of the rule is so much more probable under the others together.

    These are mixed by `weights`, which sum to 1. The probability is `1 / r` at a ratio of `r`, or nearly
    `1 / (r s sqrt(2 pi))` where the logarithm of the ratio has a standard deviation of `s` that is not small (R. R.
    Bahadur and R. Ranga Rao, "On deviations of the sample mean", 1960). The rule's evidence is estimated by two clouds;
    as far as they differ, the ratio may be too large.
    """
    first, second = own[0].log_evidence, own[1].log_evidence
    base = float(np.logaddexp(first, second)) - math.log(2) + (first - second) ** 2 / 2
    shares = np.array([math.log(weights[name]) + other.log_evidence for name, other in others.items()])
    if not shares.size or shares.max() == -math.inf:
        return 1.0
    together = float(np.logaddexp.reduce(shares))
    spread = float(np.exp(shares - together) @ [found.spreads.get(name, 0.0) for name in others])
    return min(1.0, math.exp(min(base - together, 0.0)) / max(1.0, math.sqrt(2 * math.pi) * spread))


def _weighted(
    decisions: Decisions, own: Predictions, twin: Predictions, others: Mapping[str, Predictions]
) -> tuple[list[str], Numbers, Numbers]:
    """Return the directions, the sums of weighted residuals, and their covariance; the twin's probabilities weigh."""
    here = ~np.isnan(own.repeats)
    again, time = decisions.again[here], np.linspace(-0.5, 0.5, here.sum())
    expected, weighed = (np.clip(each.repeats[here], TINY, 1 - TINY) for each in (own, twin))
    place = np.flatnonzero(here & ~decisions.again)
    given, happened = _given_switch(decisions, own, place)
    twin_given, _ = _given_switch(decisions, twin, place)
    names, weights, conditional = [], [], []
    for name, other in others.items():
        theirs = np.clip(other.repeats[here], 1e-6, 1 - 1e-6)
        theirs_given, _ = _given_switch(decisions, other, place)
        known = (twin_given > 0) & (theirs_given > 0)
        ratio = np.zeros_like(given)
        ratio[known] = np.log(theirs_given[known] / twin_given[known])
        names.append(name)
        weights.append(_cut(np.log(theirs / (1 - theirs)) - np.log(weighed / (1 - weighed))))
        conditional.append(_cut(ratio))
    for name, plain in (("staying", np.ones_like(time)), ("staying later", time)):
        for sign, label in ((1, "more"), (-1, "less")):
            names.append(f"{label} {name}")
            weights.append(sign * plain)
            conditional.append(np.zeros_like(given))
    weight, ratio = np.array(weights), np.array(conditional)
    variance = (weight * (expected * (1 - expected))) @ weight.T
    centre = (ratio * given).sum(axis=2)
    off = ((ratio - centre[:, :, None]) * np.sqrt(given)).reshape(len(names), -1)
    total = weight @ (again - expected) + ((ratio * happened).sum(axis=2) - centre).sum(axis=1)
    return names, total, variance + off @ off.T


def _cut(weights: Numbers) -> Numbers:
    return np.clip(weights, -MOST_WEIGHT, MOST_WEIGHT)


def _given_switch(decisions: Decisions, predicted: Predictions, place: Integers) -> tuple[Numbers, Numbers]:
    """Return the probabilities of what was chosen instead of the arm before, given that it was another; and what was.

    Columns are arms, or the leader and all others.
    """
    shares, before = predicted.shares[place], decisions.before[place]
    if decisions.arms <= FEW_ARMS:
        given = np.maximum(shares, TINY)
        given[np.arange(place.size), before] = 0.0
        happened = decisions.chosen[place][:, None] == np.arange(decisions.arms)
        return given / given.sum(axis=1, keepdims=True), happened.astype(np.float64)
    leader = np.clip(shares[:, 0] / np.maximum(1 - predicted.repeats[place], TINY), 1e-6, 1 - 1e-6)
    leads = np.isnan(shares[:, 0])  # it was pulled before, and cannot come next
    given = np.column_stack([np.where(leads, 0.0, leader), np.where(leads, 1.0, 1 - leader)])
    first = decisions.chosen[place] == decisions.leader[place]
    return given, np.column_stack([first & ~leads, ~first | leads]).astype(np.float64)
