"""Does the leading candidate reproduce the record? Simulate it at means drawn from its posterior, and compare.

The record is compared in a few numbers: how often the arms were pulled, the most-pulled first, how often the rule
switched from one arm to another, and how long it stayed. Each has a two-sided tail probability. All of them together
are judged by the number that is furthest from the simulated ones, in their standard deviations: how far the furthest
number of a record lies out is itself simulated, so that looking at several numbers raises no more false alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError
from unbandit.identification.evidence import CLOUDS, IdentificationRequest, LogEvidence
from unbandit.inference import Posterior, infer
from unbandit.instance import Bernoulli, Gaussian, Instance

FITS = 0.005
"""Below this probability the record is taken as one that the candidate does not make."""

SIMULATIONS, FEWEST = 400, 100
ROUNDS = 20_000_000
"""So many rounds are simulated at most, unless fewer than the fewest simulations would be left."""

DEMONSTRATIONS = 10
"""Of more demonstrations than this, the first ones are checked."""

RANKS = 5
"""Of more arms than this, not all ranks are compared."""


@dataclass(frozen=True)
class Statistic:
    """Hold one number of the record beside the simulated ones.

    Attributes
    ----------
    name, observed
        What it is, and what the record has.
    low, median, high
        Of the simulated ones: the ends of the middle 95%, and the median.
    tail
        Two-sided: how probable a number is that is as far out, or further.
    """

    name: str
    observed: float
    low: float
    median: float
    high: float
    tail: float


@dataclass(frozen=True)
class PredictiveCheck:
    """Hold how a record compares with simulations of a candidate.

    Attributes
    ----------
    candidate
        Whose simulations they are.
    statistics
        Number by number.
    probability
        That a record of the candidate has a number as far out as this one has, or further.
    simulations
        How many there were.
    """

    candidate: str
    statistics: tuple[Statistic, ...]
    probability: float
    simulations: int

    @property
    def fits(self) -> bool:
        """Return whether the candidate reproduces the record."""
        return self.probability >= FITS


def predictive_check(
    question: IdentificationRequest, name: str, rules: Sequence[Demonstrator], weights: Sequence[LogEvidence],
    shares: NDArray[np.float64],
) -> PredictiveCheck:  # fmt: skip
    """Simulate a candidate, its guesses in proportion to their weights, and compare."""
    demonstrations = range(min(len(question.log), DEMONSTRATIONS))
    length = sum(question.horizons[which] for which in demonstrations)
    number = int(np.clip(ROUNDS // length, FEWEST, SIMULATIONS))
    arms = len(question.log.arms)
    observed = np.mean([numbers_of(question.log.demonstration(which), arms) for which in demonstrations], axis=0)
    simulated = np.mean(
        [_simulated(question, which, rules, weights, shares, number) for which in demonstrations], axis=0
    )
    centre, spread = simulated.mean(axis=0), simulated.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far, simulated_far = (
            np.nan_to_num(np.abs(rows - centre) / spread, nan=0.0, posinf=np.inf).max(axis=-1)
            for rows in (observed, simulated)
        )
    names = _names(arms)
    tails = (1 + np.minimum((simulated <= observed).sum(axis=0), (simulated >= observed).sum(axis=0))) / (number + 1)
    low, median, high = np.quantile(simulated, (0.025, 0.5, 0.975), axis=0)
    rows = zip(names, observed, low, median, high, np.minimum(1.0, 2 * tails), strict=True)
    return PredictiveCheck(
        name,
        tuple(Statistic(label, *(float(value) for value in values)) for label, *values in rows),
        float((1 + (simulated_far >= far).sum()) / (number + 1)),
        number,
    )


def numbers_of(actions: NDArray[np.integer], arms: int) -> NDArray[np.float64]:
    """Return what a demonstration is compared in, in the order of their names.

    Examples
    --------
    >>> dict(zip(_names(2), numbers_of(np.array([0, 1, 1, 1, 0, 1]), 2).tolist(), strict=True))
    {'pulls, rank 1': 4.0, 'pulls, rank 2': 2.0, 'switches': 3.0, 'switches, later half': 2.0, 'longest run': 3.0, \
'runs of one pull': 3.0}
    """
    pulls = np.sort(np.bincount(actions, minlength=arms))[::-1]
    changes = np.flatnonzero(actions[1:] != actions[:-1]) + 1
    runs = np.diff(changes, prepend=0, append=actions.size)
    later = (changes >= actions.size // 2).sum()
    return np.array([*pulls[_ranks(arms)], changes.size, later, runs.max(), (runs == 1).sum()], np.float64)


def _ranks(arms: int) -> list[int]:
    """Return which of the arms, by pulls, are compared."""
    return list(range(arms)) if arms <= RANKS else [0, 1, 2, arms // 2, arms - 1]


def _names(arms: int) -> list[str]:
    ranks = [f"pulls, rank {rank + 1}" for rank in _ranks(arms)]
    return [*ranks, "switches", "switches, later half", "longest run", "runs of one pull"]


def _simulated(
    question: IdentificationRequest, which: int, rules: Sequence[Demonstrator], weights: Sequence[LogEvidence],
    shares: NDArray[np.float64], number: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the numbers of simulated demonstrations, one row each."""
    noise = Bernoulli() if question.sigma is None else Gaussian(question.sigma)
    length, arms = int(question.log.lengths[which]), len(question.log.arms)
    rows, run = [], which * number
    for at, part in enumerate(allotted(shares, number).tolist()):
        drawn = drawn_means(question, which, rules[at], weights[at], part) if part else ()
        for means in drawn:
            instance = Instance(means, noise)
            played = rules[at].demonstrate(
                instance, question.horizons[which], seed=question.seed, threads=1, first_run=run
            )
            rows.append(numbers_of(played.demonstration(0)[:length], arms))
            run += 1
    return np.array(rows)


ENOUGH = 400
"""Particles of a cloud from which a few hundred sets of means are drawn, unless all of them die."""

LEAST = 0.001
"""Guesses that hold less of the probability than this are left out."""


def allotted(shares: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """Part a number in proportion to shares, every share's part being off by less than one.

    Examples
    --------
    >>> allotted(np.array([0.5, 0.1, 0.4]), 4).tolist()
    [2, 0, 2]
    """
    kept = np.where(shares >= LEAST, shares, 0.0)
    ends = np.floor(np.cumsum(kept / kept.sum()) * number + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)


def mixed_posterior(
    question: IdentificationRequest, which: int, rules: Sequence[Demonstrator], shares: NDArray[np.float64], name: str,
    draws: int = 1_000,
) -> Posterior:  # fmt: skip
    """Return the posterior of one demonstration's means, averaged over guesses at the rule's parameters.

    Its evidence, path and surprise are the heaviest guess's.
    """
    parts = allotted(shares, draws)
    single, horizon = question.log.select(which), [question.horizons[which]]
    found = {
        at: infer(
            single, rules[at], question.prior, question.sigma, horizon, particles=question.particles, clouds=CLOUDS,
            draws=draws, seed=question.seed, threads=question.threads,
        )
        for at in np.flatnonzero(parts).tolist()
    }  # fmt: skip
    heaviest = found[int(parts.argmax())]
    if len(found) == 1:
        return heaviest
    means = np.concatenate([posterior.means[:, : parts[at]] for at, posterior in found.items()], axis=1)
    order = np.random.default_rng([question.seed, 4]).permutation(draws)
    notices = {notice.code: notice for posterior in found.values() for notice in posterior.warnings}
    return replace(heaviest, rule=name, means=means[:, order], warnings=tuple(notices.values()))


def drawn_means(
    question: IdentificationRequest, which: int, rule: Demonstrator, weight: LogEvidence, number: int
) -> NDArray[np.float64]:
    """Draw sets of means of one demonstration under one rule, (draws, arms); where it tells nothing, from the prior."""
    arms = len(question.log.arms)
    if rule.reveals == "nothing" or question.log.lengths[which] < arms:
        return question.prior.draw(np.random.default_rng([question.seed, 5, which]), (number, arms))

    def drawn(particles: int) -> NDArray[np.float64]:
        found = infer(
            question.log.select(which), rule, question.prior, question.sigma, [question.horizons[which]],
            particles=particles, clouds=CLOUDS, draws=-(-number // CLOUDS), seed=question.seed,
            threads=question.threads,
        )  # fmt: skip
        return found.draws[:number]

    try:
        return drawn(ENOUGH)
    except InferenceError:  # all of these died, and those of the race did not
        return drawn(weight.particles)
