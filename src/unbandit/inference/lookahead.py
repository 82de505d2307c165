"""A look at the whole log for rules that see rewards of 0 and 1, in two ways.

For Thompson sampling with Beta draws it is learnt. A cloud of particles that looks at no action to come goes through
the log and records the states that it visits. From these `fit_lookahead` learns, from the last round to the first, how
probable the rest of the log is from a state; with it the clouds of the posterior propose each reward given all actions.
A log with too many rounds and arms for that is filtered by more particles.

For EXP3 it is computed around hidden paths of high density (`kernels/smc/outlook.py`): Gauss-Newton steps lead there
from rewards as expected, and from the paths of some particles of a small cloud.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbandit.demonstrators import RandomisedRule
from unbandit.inference.twist import deviations_of, transitions_of
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.smc.bernoulli import Lookahead, Visits, fit_lookahead
from unbandit.kernels.smc.cloud import Belief, Steps
from unbandit.kernels.smc.outlook import Outlook, innovations_of, play_path, solve_outlook
from unbandit.progress import current_work

VISITORS = 1_000  # particles whose states are recorded, where there is room for them
MOST_VISITED = 40_000_000  # numbers in the record of a log
FEWEST_PER_TERM = 12  # particles per term of the fitted functions, at least
MOST_COORDINATES = 8  # of a state from which a look-ahead is learnt: with ten, it found less than clouds without

MOST_OUTLOOK = 10_000_000  # numbers in the bends around a path
MOST_PATHS, FAR_BEHIND = 3, 8.0  # whose look-aheads are added, and by how much evidence one may be behind the best
SHARES = (1.0, 0.6)  # of the sites' curvature that are tried
SAME, SAME_MEANS = 0.5, 0.1  # difference of the evidence, and of every mean at the end, within which two paths are one
MOST_STEPS, MOST_HALVINGS, SETTLED = 40, 8, 0.01  # of the climb to a path; it ends when a step gains less


@dataclass(frozen=True, eq=False)
class BernoulliLog:
    """A log as the filter of Bernoulli Thompson sampling reads it: with or without a look-ahead."""

    successes: float  # of the rule's prior
    failures: float
    arms: Integers  # pulled in each round, of all demonstrations
    firsts: tuple[int, ...]  # the first round of each demonstration
    pairs: Integers  # coordinates whose products are terms of a look-ahead
    separate: bool  # whether the rule's success shares differ from what the observer knows
    lookahead: Lookahead

    @property
    def log_start(self) -> float:
        """Return the log of the look-ahead before the first round."""
        return float(self.lookahead.constant[0]) if self.lookahead.constant.size else 0.0

    def visitors(self) -> int:
        """Return how many particles are recorded so that a look-ahead can be learnt; 0 if it would take too many."""
        if self.lookahead.centre.shape[1] > MOST_COORDINATES:
            return 0
        width = self.lookahead.centre.shape[1] + (4 if self.separate else 2) + 2
        number = min(VISITORS, MOST_VISITED // (width * max(self.arms.size, 1)))
        return number if number >= FEWEST_PER_TERM * (1 + self.lookahead.centre.shape[1] + len(self.pairs)) else 0

    def visits(self, particles: int) -> Visits:
        """Return room for the states of some particles."""
        rounds, coordinates = self.arms.size if particles else 0, self.lookahead.centre.shape[1]
        shapes = ((coordinates,), (4 if self.separate else 2,), (), ())
        return Visits(*(np.zeros((rounds, particles, *shape), np.float32) for shape in shapes))

    def learn(self, visits: Visits) -> Lookahead:
        """Fit a look-ahead to the states that were visited."""
        lookahead = _lookahead(self.arms.size + 1, self.lookahead.centre.shape[1])
        fit_lookahead(self.arms, visits, self.pairs, lookahead)
        return lookahead


def bernoulli_log(prior: tuple[float, float], readings: Sequence[Steps], arms: int) -> BernoulliLog:
    """Read all demonstrations of a log as one path, without a look-ahead as yet."""
    pulled = np.concatenate([each.arm for each in readings])
    separate = len(readings) > 1 or not all(np.isnan(each.rewards).all() for each in readings)
    coordinates = arms * (2 if separate else 1)
    pairs = np.column_stack(np.tril_indices(coordinates))
    firsts = tuple(np.cumsum([0, *(each.arm.size for each in readings[:-1])]).tolist())
    return BernoulliLog(*prior, pulled, firsts, pairs, separate, _lookahead(0, coordinates))


def half_each(first: Visits, second: Visits) -> Visits:
    """Return every other state of some visits, and all states of others."""
    return Visits(*(np.concatenate([one[:, ::2], other], axis=1) for one, other in zip(first, second, strict=True)))


def _lookahead(rounds: int, coordinates: int) -> Lookahead:
    """Return a look-ahead that sees nothing."""
    centre, scale, lowest, highest, slope = (np.zeros((rounds, coordinates)) for _ in range(5))
    bend = np.zeros((rounds, coordinates, coordinates))
    return Lookahead(centre, scale, lowest, highest, np.zeros(rounds), slope, bend)


@dataclass(frozen=True, eq=False)
class OutlookLog:
    """A log with a look-ahead around some hidden paths; read by all clouds."""

    outlook: Outlook
    firsts: tuple[int, ...]  # the first round of each demonstration

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
    firsts = tuple(np.cumsum([0, *(each.arm.size for each in readings[:-1])]).tolist())
    logs = []
    for share in SHARES:
        outlook = Outlook(
            *(np.concatenate(parts) for parts in zip(*(each.outlook(share) for each in paths), strict=True))
        )
        outlook.constant[:, -1] = -math.log(len(paths))  # all that is left after the last round has probability 1
        logs.append(OutlookLog(outlook, firsts))
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
