"""A look at the whole log for Thompson sampling with Beta draws, learnt from a cloud that looks at no action to come.

A cloud of particles goes through the log and records the states that it visits. From these `fit_lookahead` learns,
from the last round to the first, how probable the rest of the log is from a state; with it the clouds of the posterior
propose each reward given all actions. A log with too many rounds and arms for that is filtered by more particles.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbandit.kernels.compile import Integers
from unbandit.kernels.smc.bernoulli import Lookahead, Visits, fit_lookahead
from unbandit.kernels.smc.cloud import Steps

VISITORS = 1_000  # particles whose states are recorded, where there is room for them
MOST_VISITED = 40_000_000  # numbers in the record of a log
FEWEST_PER_TERM = 12  # particles per term of the fitted functions, at least
MOST_PAIRED = 8  # coordinates up to which all products of two are terms
ALWAYS_PAIRED = 2  # with more of them, only squares and products with the coordinates of these most-pulled arms


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
    leading = np.argsort(-np.bincount(pulled, minlength=arms))[:ALWAYS_PAIRED].tolist()
    pairs = [
        (one, other)
        for one in range(coordinates)
        for other in range(one + 1)
        if coordinates <= MOST_PAIRED or one == other or {one % arms, other % arms} & set(leading)
    ]
    firsts = tuple(np.cumsum([0, *(each.arm.size for each in readings[:-1])]).tolist())
    return BernoulliLog(*prior, pulled, firsts, np.array(pairs, np.int64), separate, _lookahead(0, coordinates))


def half_each(first: Visits, second: Visits) -> Visits:
    """Return every other state of some visits, and all states of others."""
    return Visits(*(np.concatenate([one[:, ::2], other], axis=1) for one, other in zip(first, second, strict=True)))


def _lookahead(rounds: int, coordinates: int) -> Lookahead:
    """Return a look-ahead that sees nothing."""
    centre, scale, lowest, highest, slope = (np.zeros((rounds, coordinates)) for _ in range(5))
    bend = np.zeros((rounds, coordinates, coordinates))
    return Lookahead(centre, scale, lowest, highest, np.zeros(rounds), slope, bend)
