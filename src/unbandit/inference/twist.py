"""The Gaussian approximation around the most probable hidden path, by which the twisted filter sees the whole log.

The mode comes from Newton's method with a line search: the log probability of the actions is concave in the hidden
rewards, and all rewards are normal a priori. Sites that are averaged over the approximation fit it as a whole and not
at its mode alone (M. Opper and C. Archambeau, "The variational Gaussian approximation revisited", 2009). Averaging is
not repeated until it settles: particles are better drawn from too wide an approximation than from the closest one,
whose tails are too thin. So there are several to choose from.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbandit.demonstrators import RandomisedRule
from unbandit.inference.steps import views_of
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.formula import learn
from unbandit.kernels.smc.cloud import Belief, Steps
from unbandit.kernels.smc.leader import most_likely_leaders
from unbandit.kernels.smc.twist import (
    UNRECORDED,
    Sites,
    Transitions,
    Twist,
    expand_sites,
    factor_covariances,
    follow_twist,
    predict_actions,
    solve_twist,
)
from unbandit.progress import current_work

TOO_LARGE = 1e100  # a score at which no probability can be expanded
LAPLACE_ABOVE = 10.0  # by how much Laplace's method may exceed the log of 1
MOST_NEWTON_STEPS, MOST_HALVINGS = 40, 8
SETTLED = 0.01  # Newton's method ends when a step raises the log probability by less
AVERAGES = 2  # how often sites are averaged over the approximation before
MODE_SHARES, AVERAGE_SHARE = (0.05, 0.25), 0.7  # of the curvature at the mode, and of the averaged one, that are used
MOST_DIRECTIONS = 10  # in which a site is averaged
MOST_PREDICTED = 2_000_000_000  # rounds times the cube of a state's size up to which normal states predict the rounds
MOST_TWISTED = 10_000_000  # numbers in the sites; a longer log with more arms is filtered without a look at its future

CHANGING = (1e-3, 1e-5)  # probability that a reward changes the leader, to tell changes from exploration
LEAD = 0.63  # expectation of a lead that one reward turns, in units of what it moves a sample mean by
COIN = 0.5  # standard deviation of a reward of 0 or 1, about
WIDTHS = (1.5, 5.0)  # standard deviation of a site, in the same unit


@dataclass(frozen=True, eq=False)
class TwistedLog:
    """A log with the twist of all its rounds; read by all clouds."""

    transitions: Transitions
    sites: Sites
    twist: Twist
    log_start: float  # log of the twisting function at the beginning
    firsts: tuple[int, ...]  # the first round of each demonstration

    @property
    def size(self) -> int:
        """Return how many numbers it holds, about."""
        return self.sites.bend.size


def firsts_of(readings: Sequence[Steps]) -> tuple[int, ...]:
    """Return the first round of each demonstration in a log that is read as one path."""
    return tuple(np.cumsum([0, *(each.arm.size for each in readings[:-1])]).tolist())


def can_twist(rule: RandomisedRule, readings: Sequence[Steps], arms: int, *, betas: bool = False) -> bool:
    """Return whether the filter of a rule can look at the whole log; `betas` if it reads Beta draws by tables."""
    separate = betas and (len(readings) > 1 or not all(np.isnan(each.rewards).all() for each in readings))
    size = arms * (2 if separate else 1)  # `Exponents` have coordinates of the observer too
    return (betas or rule.score is not None) and sum(each.arm.size for each in readings) * size**2 <= MOST_TWISTED


def twist_log(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], horizon: int, known: tuple[Numbers, Numbers],
    seed: int,
) -> list[TwistedLog]:  # fmt: skip
    """Approximate the hidden path behind all demonstrations, in several ways: which is best, a small cloud shows.

    `known` has sums and counts of the rewards that are known.
    """
    fit = _climbed(rule, belief, readings, horizon, known)
    twists = [fit.twisted(share, firsts_of(readings)) for share in MODE_SHARES]
    return [*twists, fit.averaged(seed, firsts_of(readings))]


def averaged_twist(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], horizon: int, known: tuple[Numbers, Numbers],
    seed: int,
) -> TwistedLog:  # fmt: skip
    """Return the last of these approximations alone, which is mostly best."""
    return _climbed(rule, belief, readings, horizon, known).averaged(seed, firsts_of(readings))


def laplace_evidence(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], horizon: int, known: tuple[Numbers, Numbers]
) -> float:
    """Return the log evidence of all demonstrations by Laplace's method: without chance, and mostly a little small.

    NaN where that is no probability: numbers were too large to expand at.
    """
    value = _climbed(rule, belief, readings, horizon, known).integral()
    return value if value < LAPLACE_ABOVE else math.nan


def _climbed(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], horizon: int, known: tuple[Numbers, Numbers]
) -> "_Fit":
    """Return the sites at the most probable path."""
    parameters = rule.parameters(horizon)
    transitions = transitions_of(rule, parameters, belief, readings, known)
    fit = _Fit(parameters, transitions, transitions.decided)
    fit.climb()
    if belief.bernoulli:  # the variance of a reward is that at the mode
        transitions.noise[:] = deviations_of(transitions, fit.means)
        fit.climb()
    return fit


def predict_log(rule: RandomisedRule, twisted: TwistedLog, readings: Sequence[Steps], horizon: int) -> Numbers:
    """Return the log probability of each round given those before it, by normal approximations; 0 where none is judged.

    Also for logs on which clouds of particles that do not look ahead go astray; but the error of each round adds up, so
    that their sum shows whether they can be trusted. NaN where that would take too long.
    """
    log_chances = np.full(twisted.transitions.arm.size, np.nan)
    if log_chances.size * twisted.twist.pull.shape[1] ** 3 > MOST_PREDICTED:
        return log_chances
    rounds, size = twisted.transitions.decided, twisted.twist.pull.shape[1]
    predict_actions(rule.parameters(horizon), twisted.transitions, rounds, size, log_chances)
    return log_chances


def transitions_of(
    rule: RandomisedRule, parameters: Any, belief: Belief, readings: Sequence[Steps], known: tuple[Numbers, Numbers]
) -> Transitions:
    """Return how the scores of a rule and the expectations of the means move in each round.

    After `n` rewards of an arm `M = (prior mean + share_0 sum) / ...` has the share `1 / (n_0 + n)`, where the prior
    counts as `n_0` rewards: `sigma^2` over its variance, or the sum of the Beta parameters.
    """
    arm = np.concatenate([each.arm for each in readings])
    rewards = np.concatenate([each.rewards for each in readings])
    sums, counts = known
    if belief.bernoulli:
        prior_mean, prior_share = belief.first / (belief.first + belief.second), 1 / (belief.first + belief.second)
    else:
        prior_mean, prior_share = belief.first, belief.second / belief.sigma**2
    hidden = np.isnan(rewards)
    behind = counts[arm].astype(np.float64)  # rewards behind each expectation, before the round
    for each in range(counts.size):
        own = (arm == each) & hidden
        behind[own] += np.arange(own.sum())
    share = prior_share[arm] / (1 + behind * prior_share[arm])
    keeps, gain, shift = _moves(rule, parameters, counts.size)
    start = (prior_mean + prior_share * sums) / (1 + counts * prior_share)
    views = [views_of(each, rule) for each in readings]
    firsts = np.cumsum([0, *(each.arm.size for each in readings[:-1])])
    transitions = Transitions(
        arm=arm,
        begins=np.concatenate([np.arange(each.arm.size) == 0 for each in readings]),
        judged=np.concatenate([each.judged for each in views]),
        looks=np.concatenate([each.first + first for each, first in zip(views, firsts, strict=True)]),
        decided=np.concatenate([each.decided for each in views]),
        keeps=np.full(arm.size, keeps),
        gains=np.full(arm.size, gain),
        shifts=np.full(arm.size, shift),
        base=prior_mean[arm] / (1 + behind * prior_share[arm]),
        share=share,
        learns=prior_share[arm] / (1 + (behind + 1) * prior_share[arm]),
        noise=np.where(hidden, belief.sigma * np.sqrt(1 + share), 0.0),
        known=np.where(hidden, 0.0, rewards),
        start=start,
        separate=(rule.score or 0) != 0 or len(readings) > 1 or not hidden.all(),
        spans=readings[0].spans,
    )
    if belief.bernoulli:
        transitions.noise[:] = deviations_of(transitions, start[arm])
    return transitions


def _moves(rule: RandomisedRule, parameters: Any, arms: int) -> tuple[float, float, float]:
    """Return `f`, `g` and `h` of `score' = f score + g reward + h`, from what the rule learns of three rewards."""
    column, after = rule.score or 0, []
    if column == 0:
        return 1.0, 1.0, 0.0
    for score, reward in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
        memory = np.zeros((arms, rule.columns))
        memory[0, column] = score
        learn(parameters, np.ones(arms, np.int64), memory, arms + 1, 0, reward)
        after.append(float(memory[0, column]))
    return after[1] - after[0], after[2] - after[0], after[0]


def deviations_of(transitions: Transitions, means: Numbers) -> Numbers:
    """Return the standard deviation of rewards of 0 and 1 with these means, which may leave the interval a little."""
    least = 0.5 * transitions.learns
    inside = np.clip(means, least, 1 - least)
    return np.asarray(np.where(transitions.noise == 0, 0.0, np.sqrt(inside * (1 - inside))))


class _Fit:
    """Sites along a path, and the path that they imply."""

    def __init__(self, parameters: Any, transitions: Transitions, rounds: Integers) -> None:
        horizon, arms = transitions.arm.size, transitions.start.size
        self.parameters, self.transitions, self.rounds = parameters, transitions, rounds
        self.sites = Sites(np.zeros((horizon, arms)), np.zeros((horizon, arms)), np.zeros((horizon, arms, arms)))
        pull = np.zeros((horizon, arms * (2 if transitions.separate else 1)))
        self.twist = Twist(pull, np.zeros(horizon), np.ones(horizon))
        self.means = np.zeros(horizon)
        self._innovations = np.zeros(horizon)

    def climb(self) -> None:
        """Move to the most probable path by Newton's method, halving steps that lead down."""
        scores = self._solve()  # before there are any sites, the path without innovations
        innovations = self._innovations.copy()
        value = self._expand(scores, innovations)
        for _ in range(MOST_NEWTON_STEPS):
            target, aim = self._solve(), self._innovations
            for halving in range(MOST_HALVINGS):
                step = 0.5**halving
                trial, tried = scores + step * (target - scores), innovations + step * (aim - innovations)
                higher = self._expand(trial, tried)
                if higher > value:
                    break
            if not math.isfinite(higher):  # numbers too large to expand at: stay
                self._expand(scores, innovations)
                break
            gain, scores, innovations, value = higher - value, trial, tried, higher
            if gain < SETTLED:
                break

    def twisted(self, share: float, firsts: tuple[int, ...]) -> TwistedLog:
        """Return the approximation with a share of the sites' curvature, around the same path."""
        centre = self._solve()
        slope = self.sites.slope - np.einsum("tij,tj->ti", self.sites.bend, centre - self.sites.centre)
        sites, twist = Sites(centre, slope, share * self.sites.bend), Twist(*(each.copy() for each in self.twist))
        start = solve_twist(self.transitions, sites, twist, UNRECORDED)
        return TwistedLog(self.transitions, sites, twist, start, firsts)

    def averaged(self, seed: int, firsts: tuple[int, ...]) -> TwistedLog:
        """Return the approximation by sites that are averaged over the one before."""
        generator = np.random.default_rng([seed, 4])
        for _ in range(AVERAGES):
            self.average(generator)
        return self.twisted(AVERAGE_SHARE, firsts)

    def integral(self) -> float:
        """Return the log of what the actions' probability, expanded at the path that the sites imply, integrates to."""
        log_chances = np.empty(self._innovations.size)
        expand_sites(self.parameters, self.transitions, self._solve(), self.rounds, self.sites, log_chances)
        integral = solve_twist(self.transitions, self.sites, self.twist, UNRECORDED)
        if not math.isfinite(integral):
            self._make_concave()
            integral = solve_twist(self.transitions, self.sites, self.twist, UNRECORDED)
        return float(log_chances.sum()) + integral

    def _solve(self) -> Numbers:
        """Solve for the approximation that the sites imply; return the scores along its path."""
        centre = self._implied()
        if not np.isfinite(centre).all():
            self._make_concave()
            centre = self._implied()
        return centre

    def _implied(self) -> Numbers:
        solve_twist(self.transitions, self.sites, self.twist, UNRECORDED)
        centre = np.empty_like(self.sites.centre)
        self._follow(np.zeros(self._innovations.size), centre, self._innovations)
        return centre

    def _make_concave(self) -> None:
        """Take out what rounding adds where beliefs about arms differ in width by many orders."""
        if not np.isfinite(self.sites.bend).all():
            return
        values, directions = np.linalg.eigh(self.sites.bend)
        self.sites.bend[:] = (directions * np.maximum(values, 0.0)[:, None, :]) @ directions.transpose(0, 2, 1)

    def average(self, generator: np.random.Generator) -> None:
        """Average the sites over the approximation that they imply, around its path.

        At `sqrt(K)` deviations to both sides in orthogonal directions: exact for polynomials of third degree.
        """
        centre, factors = self._solve(), np.zeros_like(self.sites.bend)
        factor_covariances(self.transitions, self.twist, factors)
        arms = centre.shape[1]
        directions = np.eye(arms)
        if arms > MOST_DIRECTIONS:
            directions = np.linalg.qr(generator.standard_normal((arms, MOST_DIRECTIONS)))[0]
        slope, bend = np.zeros_like(self.sites.slope), np.zeros_like(self.sites.bend)
        for direction in directions.T:
            away = math.sqrt(arms) * factors @ direction
            for path in (centre + away, centre - away):
                self._expand(path, self._innovations)
                slope += self.sites.slope / (2 * len(directions.T))
                bend += self.sites.bend / (2 * len(directions.T))
        for part, average in zip(self.sites, (centre, slope, bend), strict=True):
            part[:] = average

    def _expand(self, scores: Numbers, innovations: Numbers) -> float:
        """Lay the sites at a path; return its log density, but for a constant."""
        current_work().end_if_stopped()
        if not (np.abs(scores) < TOO_LARGE).all():
            return -math.inf
        log_chances = np.empty(innovations.size)
        expand_sites(self.parameters, self.transitions, scores, self.rounds, self.sites, log_chances)
        return float(log_chances.sum() - 0.5 * innovations @ innovations)

    def _follow(self, noise: Numbers, scores: Numbers, innovations: Numbers) -> None:
        follow_twist(self.transitions, self.twist, noise, scores, self.means, innovations)


# Greedy rules: where the leader changed, as far as the actions show it
#
# Just before the leader changes from arm `a` to arm `b`, `a` leads by less than one reward moves a sample mean. Which
# of the two was pulled is often not plain: the first pull of `b` may have been exploration, which made it the leader,
# or the first as the leader. So a lead is measured by what a reward of the arm with fewer pulls moves its mean by,
# about `j = sigma / n` after `n` pulls. A lead `D` that one normal reward turns has density `Phi(-D / j)`: mean 0.63 j
# and standard deviation 0.52 j. A site is wider, since the actions do not say for certain that the leader changed, and
# when: narrow sites leave explanations out, and clouds agree on too little evidence.


def can_meet(rule: RandomisedRule, readings: Sequence[Steps], arms: int) -> bool:
    """Return whether the changes of a rule's leader can be read from the actions, and a twist built from them."""
    return rule.batch == 1 and sum(each.arm.size for each in readings) * arms * arms <= MOST_TWISTED


def twist_leaders(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], chances: Sequence[Numbers], horizon: int,
    known: tuple[Numbers, Numbers],
) -> list[TwistedLog]:  # fmt: skip
    """Return twists towards the meetings of a log: towards more or fewer of them, and with wider and narrower sites.

    There is none if the leader never changes.
    """
    transitions = transitions_of(rule, rule.parameters(horizon), belief, readings, known)
    twists: list[TwistedLog] = []
    tried: set[tuple[int, ...]] = {()}
    for changing in CHANGING:
        judged = np.zeros_like(transitions.judged)
        meetings = _meetings(belief, readings, chances, math.log(changing), judged)
        places = tuple(np.flatnonzero(judged).tolist())
        for width in WIDTHS if places not in tried else ():
            sites, moves = meetings._replace(bend=meetings.bend / width**2), transitions._replace(judged=judged)
            pull = np.zeros((judged.size, meetings.slope.shape[1] * (2 if transitions.separate else 1)))
            twist = Twist(pull, np.zeros(judged.size), np.ones(judged.size))
            start = solve_twist(moves, sites, twist, UNRECORDED)
            twists.append(TwistedLog(moves, sites, twist, start, firsts_of(readings)))
        tried.add(places)
    return twists


def _meetings(
    belief: Belief, readings: Sequence[Steps], chances: Sequence[Numbers], changing: float, judged: Integers
) -> Sites:
    """Return a site of unit width for each change of the leader, and mark its round as judged."""
    length, arms, at = judged.size, belief.first.size, 0
    sites = Sites(np.zeros((length, arms)), np.zeros((length, arms)), np.zeros((length, arms, arms)))
    for steps, chance in zip(readings, chances, strict=True):
        leaders = most_likely_leaders(steps, chance, changing)
        counts = np.cumsum(np.eye(arms, dtype=np.int64)[steps.arm], axis=0)
        for step in np.flatnonzero(leaders[:-1] != leaders[1:]):
            if step < max(steps.opening, 1):
                continue
            old, new, pulls = leaders[step], leaders[step + 1], counts[step - 1]
            jump = (COIN if belief.bernoulli else belief.sigma) / counts[step, [old, new]].min()
            lead = np.zeros(arms)
            lead[old], lead[new] = 1 / pulls[old], -1 / pulls[new]
            judged[at + step] = 1
            sites.centre[at + step, old] = LEAD * jump * pulls[old]
            sites.bend[at + step] = np.outer(lead, lead) / jump**2
        at += steps.arm.size
    return sites
