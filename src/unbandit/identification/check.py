"""The posterior predictive check of the leading candidate, and its posterior averaged over unknown parameters.

The candidate is simulated at means drawn from its posterior, and the record compared in a few statistics: how often the
arms were pulled, the most-pulled first, how often the rule switched between arms, and how long it stayed. Each has a
two-sided tail probability. All together are judged by the statistic furthest from the simulated ones, in their standard
deviations; how far the furthest one of a record lies out is itself simulated, so that looking at several statistics
raises no more false alarms.
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
from unbandit.instance import Instance

FITS = 0.005
"""Below this probability the candidate is judged not to make such records."""

MOST_SIMULATIONS, FEWEST_SIMULATIONS = 400, 100
MOST_ROUNDS = 20_000_000
"""Rounds simulated at most, unless fewer than the fewest simulations would be left."""

MOST_DEMONSTRATIONS = 10
"""Of more demonstrations than this, the first ones are checked."""

MOST_RANKS = 5
"""With more arms than this, not all ranks are compared."""

PARTICLES_FOR_MEANS = 400
"""Particles of a cloud from which a few hundred sets of means are drawn, unless the cloud collapses."""

SMALLEST_SHARE = 0.001
"""Guesses with a smaller share of the probability are left out."""


@dataclass(frozen=True)
class Statistic:
    """One statistic of the record beside the simulated ones.

    Attributes
    ----------
    name, observed
        Its name, and its value in the record.
    low, median, high
        Of the simulated ones: the ends of the middle 95%, and the median.
    tail
        Two-sided probability of a value as far out, or further.
    """

    name: str
    observed: float
    low: float
    median: float
    high: float
    tail: float


@dataclass(frozen=True)
class PredictiveCheck:
    """A record compared with simulations of a candidate.

    Attributes
    ----------
    candidate
        The name of the simulated candidate.
    statistics
        One by one.
    probability
        That a record of the candidate has a statistic as far out as this record has, or further.
    simulations
        Their number.
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
    request: IdentificationRequest, name: str, rules: Sequence[Demonstrator], evidences: Sequence[LogEvidence],
    shares: NDArray[np.float64],
) -> PredictiveCheck:  # fmt: skip
    """Simulate a candidate, its guesses in proportion to their shares, and compare."""
    demonstrations = range(min(len(request.log), MOST_DEMONSTRATIONS))
    length = sum(request.horizons[which] for which in demonstrations)
    number = int(np.clip(MOST_ROUNDS // length, FEWEST_SIMULATIONS, MOST_SIMULATIONS))
    arms = len(request.log.arms)
    observed = np.mean([statistics_of(request.log.demonstration(which), arms) for which in demonstrations], axis=0)
    simulated = np.mean(
        [_simulated(request, which, rules, evidences, shares, number) for which in demonstrations], axis=0
    )
    centre, spread = simulated.mean(axis=0), simulated.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far, simulated_far = (
            np.nan_to_num(np.abs(rows - centre) / spread, nan=0.0, posinf=np.inf).max(axis=-1)
            for rows in (observed, simulated)
        )
    tails = (1 + np.minimum((simulated <= observed).sum(axis=0), (simulated >= observed).sum(axis=0))) / (number + 1)
    low, median, high = np.quantile(simulated, (0.025, 0.5, 0.975), axis=0)
    rows = zip(_names(arms), observed, low, median, high, np.minimum(1.0, 2 * tails), strict=True)
    return PredictiveCheck(
        name,
        tuple(Statistic(label, *(float(value) for value in values)) for label, *values in rows),
        float((1 + (simulated_far >= far).sum()) / (number + 1)),
        number,
    )


def statistics_of(actions: NDArray[np.integer], arms: int) -> NDArray[np.float64]:
    """Return the statistics of a demonstration, in the order of their names.

    Examples
    --------
    >>> dict(zip(_names(2), statistics_of(np.array([0, 1, 1, 1, 0, 1]), 2).tolist(), strict=True))
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
    return list(range(arms)) if arms <= MOST_RANKS else [0, 1, 2, arms // 2, arms - 1]


def _names(arms: int) -> list[str]:
    ranks = [f"pulls, rank {rank + 1}" for rank in _ranks(arms)]
    return [*ranks, "switches", "switches, later half", "longest run", "runs of one pull"]


def _simulated(
    request: IdentificationRequest, which: int, rules: Sequence[Demonstrator], evidences: Sequence[LogEvidence],
    shares: NDArray[np.float64], number: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the statistics of simulated demonstrations, one row each."""
    length, arms = int(request.log.lengths[which]), len(request.log.arms)
    rows, run = [], which * number
    for at, part in enumerate(_allotted(shares, number).tolist()):
        drawn = _drawn_means(request, which, rules[at], evidences[at], part) if part else ()
        for means in drawn:
            played = rules[at].demonstrate(
                Instance(means, request.noise), request.horizons[which], seed=request.seed, threads=1, first_run=run
            )
            rows.append(statistics_of(played.demonstration(0)[:length], arms))
            run += 1
    return np.array(rows)


def _drawn_means(
    request: IdentificationRequest, which: int, rule: Demonstrator, evidence: LogEvidence, number: int
) -> NDArray[np.float64]:
    """Draw sets of means of one demonstration under one rule, (draws, arms); from the prior if it reveals nothing."""
    arms = len(request.log.arms)
    if rule.reveals == "nothing" or request.log.lengths[which] < arms:
        return request.prior.draw(np.random.default_rng([request.seed, 5, which]), (number, arms))
    draws = -(-number // CLOUDS)
    try:
        return _posterior(request, which, rule, PARTICLES_FOR_MEANS, draws).draws[:number]
    except InferenceError:  # this cloud collapsed, and those of the last heat did not
        return _posterior(request, which, rule, evidence.particles, draws).draws[:number]


def mixed_posterior(
    request: IdentificationRequest, which: int, rules: Sequence[Demonstrator], shares: NDArray[np.float64], name: str,
    draws: int = 1_000,
) -> Posterior:  # fmt: skip
    """Return the posterior of one demonstration's means, averaged over guesses at the rule's parameters.

    Its evidence, path and surprise are the heaviest guess's.
    """
    parts = _allotted(shares, draws)
    posteriors = {
        at: _posterior(request, which, rules[at], request.particles, draws) for at in np.flatnonzero(parts).tolist()
    }
    heaviest = posteriors[int(parts.argmax())]
    if len(posteriors) == 1:
        return heaviest
    means = np.concatenate([posterior.means[:, : parts[at]] for at, posterior in posteriors.items()], axis=1)
    order = np.random.default_rng([request.seed, 4]).permutation(draws)
    notices = {notice.code: notice for posterior in posteriors.values() for notice in posterior.warnings}
    return replace(heaviest, rule=name, means=means[:, order], warnings=tuple(notices.values()))


def _posterior(
    request: IdentificationRequest, which: int, rule: Demonstrator, particles: int | None, draws: int
) -> Posterior:
    return infer(
        request.log.select(which), rule, request.prior, request.noise, [request.horizons[which]], particles=particles,
        clouds=CLOUDS, draws=draws, seed=request.seed, threads=request.threads,
    )  # fmt: skip


def _allotted(shares: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """Split a number in proportion to shares; every part is off by less than one."""
    kept = np.where(shares >= SMALLEST_SHARE, shares, 0.0)
    ends = np.floor(np.cumsum(kept / kept.sum()) * number + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)
