"""The posterior predictive check of the leading candidate, and its posterior averaged over unknown parameters.

The candidate is simulated at means drawn from its posterior, and the record compared as in `inference.predictive`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError
from unbandit.fit import Statistic
from unbandit.identification.evidence import CLOUDS, Contender, Guess, IdentificationRequest
from unbandit.inference import Posterior, infer
from unbandit.inference.predictive import Values, compare, statistics_of

FITS = 0.005  # below this probability the candidate is judged not to make such records

MOST_SIMULATIONS, FEWEST_SIMULATIONS = 400, 100
MOST_ROUNDS = 20_000_000  # rounds simulated at most, unless fewer than the fewest simulations would be left
MOST_DEMONSTRATIONS = 10  # of more demonstrations than this, the first ones are checked

PARTICLES_FOR_MEANS = 400
"""Particles of a cloud from which a few hundred sets of means are drawn, unless the cloud collapses."""

SMALLEST_SHARE = 0.001  # guesses with a smaller share of the probability are left out


@dataclass(frozen=True)
class PredictiveCheck:
    """A record compared with simulations of a candidate."""

    candidate: str
    statistics: tuple[Statistic, ...]
    probability: float  # that a record of the candidate has a statistic as far out as this record has, or further
    simulations: int

    @property
    def fits(self) -> bool:
        """Return whether the candidate reproduces the record."""
        return self.probability >= FITS


def predictive_check(request: IdentificationRequest, candidate: Contender) -> PredictiveCheck:
    """Simulate a candidate, its guesses in proportion to their shares, and compare."""
    demonstrations = range(min(len(request.log), MOST_DEMONSTRATIONS))
    length = sum(request.horizons[which] for which in demonstrations)
    number = int(np.clip(MOST_ROUNDS // length, FEWEST_SIMULATIONS, MOST_SIMULATIONS))
    arms = len(request.log.arms)
    own = [statistics_of(request.log.demonstration(which)[None], arms) for which in demonstrations]
    played = [_simulated(request, which, candidate, number) for which in demonstrations]
    statistics, probability = compare(_averaged(own), _averaged(played))
    return PredictiveCheck(candidate.name, statistics, 1.0 if probability is None else probability, number)


def _averaged(values: Sequence[Values]) -> Values:
    """Average statistics over demonstrations: those that all of them have, whatever their lengths."""
    common = [name for name in values[0] if all(name in each for each in values)]
    return {name: np.mean([each[name] for each in values], axis=0) for name in common}


def _simulated(request: IdentificationRequest, which: int, candidate: Contender, number: int) -> Values:
    """Return the statistics of simulated demonstrations."""
    length, horizon = int(request.log.lengths[which]), request.horizons[which]
    played, run = [], which * number
    for guess, part in zip(candidate.guesses, _allotted(candidate, number).tolist(), strict=True):
        if part:
            means = _drawn_means(request, which, guess, part)
            played.append(
                guess.rule.demonstrate_at(
                    means,
                    request.noise,
                    horizon,
                    length=length,
                    seed=request.seed,
                    threads=request.threads,
                    first_run=run,
                )
            )
            run += part
    return statistics_of(np.concatenate(played), len(request.log.arms))


def _drawn_means(request: IdentificationRequest, which: int, guess: Guess, number: int) -> NDArray[np.float64]:
    """Draw sets of means of one demonstration under one rule, (draws, arms); from the prior if it reveals nothing."""
    arms = len(request.log.arms)
    if guess.rule.reveals == "nothing" or request.log.lengths[which] < arms:
        return request.prior.draw(np.random.default_rng([request.seed, 5, which]), (number, arms))
    draws = -(-number // CLOUDS)
    try:
        return _posterior(request, which, guess.rule, PARTICLES_FOR_MEANS, draws).draws[:number]
    except InferenceError:  # this cloud collapsed, and those of the last heat did not
        return _posterior(request, which, guess.rule, guess.evidence.particles, draws).draws[:number]


def mixed_posterior(request: IdentificationRequest, which: int, candidate: Contender, draws: int) -> Posterior:
    """Return the posterior of one demonstration's means, averaged over guesses at the rule's parameters.

    Its evidence, path and surprise are the heaviest guess's.
    """
    parts = _allotted(candidate, draws)
    posteriors = {
        at: _posterior(request, which, candidate.guesses[at].rule, request.particles, draws)
        for at in np.flatnonzero(parts).tolist()
    }
    heaviest = posteriors[int(parts.argmax())]
    if len(posteriors) == 1:
        return heaviest
    means = np.concatenate([posterior.means[:, : parts[at]] for at, posterior in posteriors.items()], axis=1)
    order = np.random.default_rng([request.seed, 4]).permutation(draws)
    notices = {notice.code: notice for posterior in posteriors.values() for notice in posterior.warnings}
    return replace(heaviest, rule=candidate.name, means=means[:, order], warnings=tuple(notices.values()))


def _posterior(
    request: IdentificationRequest, which: int, rule: Demonstrator, particles: int | None, draws: int
) -> Posterior:
    return infer(
        request.log.select(which), rule, request.prior, request.noise, [request.horizons[which]], particles=particles,
        clouds=CLOUDS, draws=draws, seed=request.seed, threads=request.threads,
    )  # fmt: skip


def _allotted(candidate: Contender, number: int) -> NDArray[np.int64]:
    """Split a number among a candidate's guesses in proportion to their shares; each part is off by less than one."""
    shares = np.array([guess.share for guess in candidate.guesses])
    kept = np.where(shares >= SMALLEST_SHARE, shares, 0.0)
    ends = np.floor(np.cumsum(kept / kept.sum()) * number + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)
