"""The posterior predictive check of the leading candidate, and its posterior averaged over unknown parameters.

The candidate is simulated at means drawn from its posterior, and the record compared in a few statistics: how often the
arms were pulled, the most-pulled first, how often the rule switched between arms, and how long it stayed. Each has a
two-sided tail probability. All together are judged by the statistic furthest from the simulated ones, in their standard
deviations; how far the furthest one of a record lies out is itself simulated, so that looking at several statistics
raises no more false alarms.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError
from unbandit.fit import Statistic
from unbandit.identification.evidence import CLOUDS, Contender, Guess, IdentificationRequest
from unbandit.inference import Posterior, infer
from unbandit.instance import Instance

FITS = 0.005  # below this probability the candidate is judged not to make such records

MOST_SIMULATIONS, FEWEST_SIMULATIONS = 400, 100
MOST_ROUNDS = 20_000_000  # rounds simulated at most, unless fewer than the fewest simulations would be left
MOST_DEMONSTRATIONS = 10  # of more demonstrations than this, the first ones are checked
MOST_RANKS = 5  # with more arms than this, not all ranks are compared

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
    own = [statistics_of(request.log.demonstration(which), len(request.log.arms)) for which in demonstrations]
    observed = np.mean([list(row.values()) for row in own], axis=0)
    simulated = np.mean([_simulated(request, which, candidate, number) for which in demonstrations], axis=0)
    centre, spread = simulated.mean(axis=0), simulated.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far, simulated_far = (
            np.nan_to_num(np.abs(rows - centre) / spread, nan=0.0, posinf=np.inf).max(axis=-1)
            for rows in (observed, simulated)
        )
    tails = (1 + np.minimum((simulated <= observed).sum(axis=0), (simulated >= observed).sum(axis=0))) / (number + 1)
    low, median, high = np.quantile(simulated, (0.025, 0.5, 0.975), axis=0)
    columns = np.column_stack([observed, low, median, high, np.minimum(1.0, 2 * tails)]).tolist()
    statistics = tuple(Statistic(name, *values) for name, values in zip(own[0], columns, strict=True))
    probability = float((1 + (simulated_far >= far).sum()) / (number + 1))
    return PredictiveCheck(candidate.name, statistics, probability, number)


def statistics_of(actions: NDArray[np.integer], arms: int) -> dict[str, float]:
    """Return the statistics of a demonstration by their names."""
    ranks = range(arms) if arms <= MOST_RANKS else (0, 1, 2, arms // 2, arms - 1)
    pulls = np.sort(np.bincount(actions, minlength=arms))[::-1]
    changes = np.flatnonzero(actions[1:] != actions[:-1]) + 1
    runs = np.diff(changes, prepend=0, append=actions.size)
    return {f"pulls, rank {rank + 1}": float(pulls[rank]) for rank in ranks} | {
        "switches": float(changes.size),
        "switches, later half": float((changes >= actions.size // 2).sum()),
        "longest run": float(runs.max()),
        "runs of one pull": float((runs == 1).sum()),
    }


def _simulated(request: IdentificationRequest, which: int, candidate: Contender, number: int) -> NDArray[np.float64]:
    """Return the statistics of simulated demonstrations, one row each."""
    length, arms = int(request.log.lengths[which]), len(request.log.arms)
    rows, run = [], which * number
    for guess, part in zip(candidate.guesses, _allotted(candidate, number).tolist(), strict=True):
        for means in _drawn_means(request, which, guess, part) if part else ():
            played = guess.rule.demonstrate(
                Instance(means, request.noise), request.horizons[which], seed=request.seed, threads=1, first_run=run
            )
            rows.append(list(statistics_of(played.demonstration(0)[:length], arms).values()))
            run += 1
    return np.array(rows)


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
