"""A look at the whole log for rules that see rewards of 0 and 1, in two ways.

For Thompson sampling with Beta draws it is that of Thompson sampling with normal draws, on the scale of angles (see
`kernels/smc/bernoulli.py`): the same Gaussian approximations of the hidden path, in other coordinates.

For EXP3 it is computed around hidden paths of high density (`kernels/smc/outlook.py`): Gauss-Newton steps lead there
from rewards as expected, and from the paths of some particles of a small cloud.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from unbandit.demonstrators import RandomisedRule, Thompson
from unbandit.inference.twist import TwistedLog, deviations_of, firsts_of, transitions_of
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.smc.cloud import Belief, Steps
from unbandit.kernels.smc.outlook import Outlook, innovations_of, play_path, solve_outlook
from unbandit.kernels.smc.twist import UNRECORDED, Exponents, solve_twist
from unbandit.progress import current_work

FAR = 15.0  # rewards in a rule's prior times what its angle differs by from the observer's
ANGLE_NOISE = 0.5  # standard deviation of a reward of 0 or 1 on the scale of angles

MOST_OUTLOOK = 10_000_000  # numbers in the bends around a path
MOST_PATHS, FAR_BEHIND = 3, 8.0  # whose look-aheads are added, and by how much evidence one may be behind the best
SHARES = (1.0, 0.6)  # of the sites' curvature that are tried
SAME, SAME_MEANS = 0.5, 0.1  # difference of the evidence, and of every mean at the end, within which two paths are one
MOST_STEPS, MOST_HALVINGS, SETTLED = 40, 8, 0.01  # of the climb to a path; it ends when a step gains less


@dataclass(frozen=True, eq=False)
class BetaLog:
    """A log as the filter of Thompson sampling with Beta draws reads it: with or without a look-ahead."""

    successes: float  # of the rule's prior
    failures: float
    firsts: tuple[int, ...]  # the first round of each demonstration
    exponents: Exponents = UNRECORDED
    log_start: float = 0.0  # log of the look-ahead before the first round

    @property
    def size(self) -> int:
        """Return how many numbers it holds, about."""
        return self.exponents.bend.size

    def towards(self, twisted: TwistedLog) -> Self:
        """Return the same with the look-ahead of normal draws, from a twist of `as_angles`."""
        rounds, size = twisted.twist.pull.shape
        shapes = ((rounds + 1,), (rounds + 1, size), (rounds + 1, size, size))
        exponents = Exponents(*map(np.zeros, shapes))
        start = solve_twist(twisted.transitions, twisted.sites, twisted.twist, exponents)
        return replace(self, exponents=exponents, log_start=start)


def beta_log(rule: RandomisedRule, readings: Sequence[Steps]) -> BetaLog:
    """Read all demonstrations of a log as one path, without a look-ahead as yet."""
    assert rule.beta_prior is not None
    return BetaLog(*rule.beta_prior, firsts_of(readings))


def suits_angles(rule: RandomisedRule, belief: Belief) -> bool:
    """Return whether what a reward adds to the rule's angle is about what it adds to the observer's.

    It is not where the rule has a strong prior far from the observer's: its angle moves by other steps.
    """
    assert rule.beta_prior is not None
    weight = sum(rule.beta_prior)
    away = _angle(rule.beta_prior[0] / weight) - _angle(belief.first / (belief.first + belief.second))
    return bool(weight * np.abs(away).max() < FAR)


def as_angles(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], arms: int
) -> tuple[RandomisedRule, Belief, list[Steps], tuple[Numbers, Numbers]]:
    """Return what Beta draws are on the scale of angles: a rule with normal draws, the belief, the readings.

    Last come sums and counts of the known rewards. A known reward moves an angle by what it adds to a share over the
    derivative there, which is taken at the known rewards' own share.
    """
    assert rule.beta_prior is not None
    weight = sum(rule.beta_prior)
    normal = Thompson(
        mean=_angle(rule.beta_prior[0] / weight), deviation=ANGLE_NOISE / math.sqrt(weight), sigma=ANGLE_NOISE,
        batch=rule.batch, delay=rule.delay,
    )  # fmt: skip
    counted = belief.first + belief.second
    beliefs = Belief(False, np.asarray(_angle(belief.first / counted)), ANGLE_NOISE**2 / counted, ANGLE_NOISE)
    arm, rewards = (np.concatenate(each) for each in zip(*((each.arm, each.rewards) for each in readings), strict=True))
    known = ~np.isnan(rewards)
    counts = np.bincount(arm[known], minlength=arms).astype(np.float64)
    shares = (np.bincount(arm[known], weights=rewards[known], minlength=arms) + 0.5) / (counts + 1)
    moved = _angle(shares)[arm] + ANGLE_NOISE * (rewards - shares[arm]) / np.sqrt(shares * (1 - shares))[arm]
    sums = np.bincount(arm[known], weights=moved[known], minlength=arms).astype(np.float64)
    cuts = np.cumsum([each.arm.size for each in readings[:-1]])
    read = [each._replace(rewards=own) for each, own in zip(readings, np.split(moved, cuts), strict=True)]
    return normal, beliefs, read, (sums, counts)


def _angle(share: Any) -> Any:
    return np.arcsin(np.sqrt(share))


@dataclass(frozen=True, eq=False)
class OutlookLog:
    """A log with a look-ahead around some hidden paths; read by all clouds."""

    outlook: Outlook
    firsts: tuple[int, ...]  # the first round of each demonstration

    @property
    def size(self) -> int:
        """Return how many numbers it holds, about."""
        return self.outlook.bend.size

    @property
    def log_start(self) -> float:
        """Return the log of the look-ahead before the first round."""
        return float(np.logaddexp.reduce(self.outlook.constant[:, 0]))


def has_outlook(rule: RandomisedRule, readings: Sequence[Steps], arms: int) -> bool:
    """Return whether the filter of a rule can look at the whole log around some paths."""
    return rule.gains is not None and sum(each.arm.size for each in readings) * (2 * arms) ** 2 <= MOST_OUTLOOK


def outlooks_of(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], horizon: int, known: tuple[Numbers, Numbers],
    starts: Sequence[Numbers],
) -> list[OutlookLog]:  # fmt: skip
    """Return look-aheads around the same paths, with several shares of the curvature.

    `known` has sums and counts of the rewards that are known, and each of `starts` a reward of every round, NaN for one
    as expected, from which the climb to a path begins.
    """
    climbs = sorted(
        (_Climb(rule, belief, readings, horizon, known, each) for each in starts), key=lambda each: -each.value
    )
    paths: list[_Climb] = []
    for each in climbs:
        far_behind = len(paths) > 0 and each.value < paths[0].value - FAR_BEHIND
        if len(paths) < MOST_PATHS and not far_behind and not any(map(each.is_as, paths)):
            paths.append(each)
    logs = []
    for share in SHARES:
        outlook = Outlook(
            *(np.concatenate(parts) for parts in zip(*(each.outlook(share) for each in paths), strict=True))
        )
        outlook.constant[:, -1] = -math.log(len(paths))  # all that is left after the last round has probability 1
        logs.append(OutlookLog(outlook, firsts_of(readings)))
    return logs


class _Climb:
    """A path of high density, found from some rewards."""

    def __init__(
        self, rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], horizon: int,
        known: tuple[Numbers, Numbers], rewards: Numbers,
    ) -> None:  # fmt: skip
        assert rule.gains is not None
        self._parameters, self._columns, self._column = rule.parameters(horizon), rule.columns, rule.gains
        self._transitions = transitions_of(rule, self._parameters, belief, readings, known)
        rounds, size = self._transitions.arm.size, 2 * self._transitions.start.size
        shapes = ((1, rounds + 1, size), (1, rounds + 1), (1, rounds + 1, size), (1, rounds + 1, size, size))
        self._outlook = Outlook(*map(np.zeros, shapes))
        self._innovations, self._aim = np.zeros(rounds), np.zeros(rounds)
        innovations_of(self._transitions, rewards, self._innovations)
        self._climb()
        own = self._transitions.start.size + self._transitions.arm
        means = self._outlook.centre[0, np.arange(rounds), own]
        self._transitions.noise[:] = deviations_of(self._transitions, means)  # now those on the path
        self._climb()
        self.value = float(self.outlook(1.0).constant[0, 0])

    def is_as(self, other: "_Climb") -> bool:
        """Return whether another climb led to the same path."""
        ends = (each._outlook.centre[0, -1, self._transitions.start.size :] for each in (self, other))
        return abs(self.value - other.value) < SAME and float(np.abs(np.subtract(*ends)).max()) < SAME_MEANS

    def outlook(self, share: float) -> Outlook:
        """Return the look-ahead around the path with a share of the sites' curvature."""
        solve_outlook(self._parameters, self._transitions, self._innovations, share, self._outlook, 0, self._aim)
        return Outlook(*(each.copy() for each in self._outlook))

    def _play(self, innovations: Numbers) -> float:
        current_work().end_if_stopped()
        arguments = (self._parameters, self._transitions, self._columns, self._column)
        return float(play_path(*arguments, innovations, self._outlook.centre[0]))

    def _climb(self) -> None:
        """Take Gauss-Newton steps, halving those that lead down."""
        value = self._play(self._innovations)
        for _ in range(MOST_STEPS):
            solve_outlook(self._parameters, self._transitions, self._innovations, 1.0, self._outlook, 0, self._aim)
            step = self._aim - self._innovations
            for halving in range(MOST_HALVINGS):
                trial = self._innovations + 0.5**halving * step
                higher = self._play(trial)
                if higher > value:
                    break
            if not higher > value + SETTLED:
                break
            self._innovations, value = trial, higher
        self._play(self._innovations)


def reward_paths(arm: Integers, marks: Integers, counts: Integers, means: Numbers) -> list[Numbers]:
    """Return rewards of every round behind some paths of sample means, equal between two marks.

    `counts` are the pulls of each arm at the marks, and `means` has the shape (marks, paths, arms).
    """
    interval = np.searchsorted(marks, np.arange(arm.size))
    pulls = np.diff(counts, axis=0, prepend=0)
    sums = np.where(counts[:, None] > 0, means * counts[:, None], 0.0)
    rates = np.diff(sums, axis=0, prepend=0.0) / np.maximum(pulls, 1)[:, None]
    return [rates[interval, path, arm] for path in range(means.shape[1])]
