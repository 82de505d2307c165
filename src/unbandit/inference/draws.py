"""From clouds of hidden reward sums to draws of every mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError, LogError, Notice, NotIdentifiable
from unbandit.inference.filter import EmptiedError, Filtered, Passage, filtered, log_mean, surprises
from unbandit.inference.prior import CERTAIN, Prior, belief_of
from unbandit.inference.result import Posterior
from unbandit.kernels.smc.cloud import Belief
from unbandit.log import ActionLog

BAND = (0.025, 0.5, 0.975)

FEWEST = 20
"""So many draws must agree with a known best mean."""


def infer(
    log: ActionLog, rule: Demonstrator, prior: Prior, sigma: float | None, horizons: Sequence[int], *,
    anchor: tuple[int, float] | None = None, is_best: bool = False, particles: int | None = None, clouds: int = 4,
    draws: int = 1_000, seed: int = 0, threads: int | None = None,
) -> Posterior:  # fmt: skip
    """Draw from the posterior of every mean; several demonstrations are taken as of one instance.

    Parameters
    ----------
    sigma
        Of the rewards; None for rewards of 0 and 1.
    anchor, is_best
        An arm (its position) and its known mean, and whether it is known to be the best.
    particles, clouds, draws
        Particles of a cloud, clouds, and draws of a cloud.
    """
    if not log.ordered:
        raise NotIdentifiable("The record holds pull counts without their order, and the posterior needs the order.")
    if rule.reveals == "nothing" and log.rewards is None:
        raise NotIdentifiable(f"{rule.name}: its choices do not depend on rewards, so the record says nothing of them.")
    if (short := int(log.lengths.min())) < len(log.arms):
        raise NotIdentifiable(
            f"The record has {short} rounds for {len(log.arms)} arms: not every arm can have been tried even once."
        )
    if sigma is None and log.rewards is not None and not np.isin(log.rewards[~np.isnan(log.rewards)], (0, 1)).all():
        raise LogError("expected rewards of 0 and 1 for Bernoulli rewards; got others. Leave bernoulli out.")
    belief = belief_of(prior, len(log.arms), sigma, anchor)
    found = filtered(log, rule, belief, horizons, particles, clouds, seed, threads)
    means = np.stack(
        [_draw(passages, belief, draws, seed, cloud) for cloud, passages in enumerate(found.passages)]
    )  # fmt: skip
    if anchor is not None and is_best:
        means = _with_best(means, anchor, log.arms, seed)
    evidence, error = log_mean(found.evidences)
    smallest = min(float(p.cloud.effective_size.min(initial=np.inf)) for passages in found.passages for p in passages)
    number = found.passages[0][0].cloud.sums.shape[0]
    rounds, path = _path(found)
    return Posterior(
        rule=str(rule), prior=prior, sigma=sigma, horizon=max(horizons), arms=log.arms, pulls=log.pulls.sum(axis=0),
        means=means, log_evidence=evidence, log_evidence_error=error, evidences=found.evidences,
        effective_size=min(smallest, float(number)), particles=number, surprise=surprises(found), path_rounds=rounds,
        path=path, warnings=tuple(_strained(found) + _few_known(log, rule) + _warnings(means)),
    )  # fmt: skip


def _draw(passages: Sequence[Passage], belief: Belief, draws: int, seed: int, cloud: int) -> NDArray[np.float64]:
    """Draw means from one cloud: a particle in proportion to its weight, then each mean given its sum."""
    generator, last = np.random.default_rng([seed, cloud, 2]), passages[-1]
    weights = np.exp(last.cloud.log_weights - last.cloud.log_weights.max())
    places = (np.arange(draws) + generator.random()) / draws
    chosen = np.minimum(np.searchsorted(np.cumsum(weights / weights.sum()), places), weights.size - 1)
    totals = (last.cloud.past + last.cloud.sums)[generator.permutation(chosen)]
    behind = last.cloud.before + last.pulls
    if belief.bernoulli:
        drawn = generator.beta(belief.first + totals, belief.second + behind - totals)
        known = belief.first + belief.second >= CERTAIN
        return np.where(known, np.round(belief.first / (belief.first + belief.second), 12), drawn)
    noise = belief.sigma**2
    scale = 1 / (noise + behind * belief.second)
    centre = (belief.first * noise + belief.second * totals) * scale
    return np.asarray(centre + np.sqrt(belief.second * noise * scale) * generator.standard_normal(totals.shape))


def _with_best(
    means: NDArray[np.float64], anchor: tuple[int, float], arms: tuple[str, ...], seed: int
) -> NDArray[np.float64]:
    """Keep the draws in which no arm is better than the one whose mean is known to be the best."""
    flat = means.reshape(-1, means.shape[-1])
    agree = flat[(np.delete(flat, anchor[0], axis=1) <= anchor[1]).all(axis=1)]
    if len(agree) < FEWEST:
        raise InferenceError(
            f'best_mean: of {len(flat):,} draws {len(agree)} agree that no arm is better than "{arms[anchor[0]]}", the '
            f"most-pulled one, with mean {anchor[1]}. Give anchor for the arm whose mean is known, or check the rule."
        )
    chosen = np.random.default_rng([seed, 3]).permutation(np.arange(len(flat)) % len(agree))
    return np.asarray(agree[chosen].reshape(means.shape))


def _path(found: Filtered) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return at some rounds the band of every hidden sample mean, in the first demonstration, given it alone."""
    paths = [passages[0].path() for passages in found.passages]
    shares = [np.exp(p[0].cloud.log_weights - p[0].cloud.log_weights.max()) for p in found.passages]
    weights = np.concatenate([share / share.sum() for share in shares])
    first = found.passages[0][0]
    generator = np.random.default_rng(0)
    chosen = generator.choice(weights.size, min(weights.size, 1_000), p=weights / weights.sum())
    values = np.concatenate(paths, axis=1)[:, chosen]
    band = np.moveaxis(np.quantile(values, BAND, axis=1), 0, -1) if values.size else np.zeros((0, values.shape[2], 3))
    return first.rounds[first.cloud.marks], np.asarray(band)


def _strained(found: Filtered) -> list[Notice]:
    """Name the first round whose choice no particle of a cloud explains exactly."""
    rounds = sorted({at for passages in found.passages for passage in passages for at in passage.strained})
    if not rounds:
        return []
    more = f" (and in {len(rounds) - 1} more)" if len(rounds) > 1 else ""
    return [
        Notice(
            "strained",
            f"In round {rounds[0]}{more} no particle explains the choice exactly: the rule may not have made this "
            "record, or it takes more particles.",
            round=rounds[0],
        )
    ]


def _few_known(log: ActionLog, rule: Demonstrator) -> list[Notice]:
    """Warn where the level of all means is known from some rewards alone, which clouds take up badly."""
    if log.rewards is None or not getattr(rule, "shifts", True):
        return []
    known = int(np.count_nonzero(~np.isnan(log.rewards)))
    said = (
        f"The common level of the means rests on {known} known reward(s), and the cloud may hold too few values of it: "
        "trust the gaps more than the means, and compare two seeds."
    )
    return [Notice("level-from-rewards", said)]


def _warnings(means: NDArray[np.float64]) -> list[Notice]:
    """Tell where the computation may have gone thin."""
    notices = []
    inside, centres = means.std(axis=1).mean(axis=0), means.mean(axis=1)
    if means.shape[0] > 1 and (centres.std(axis=0, ddof=1) > 0.5 * np.maximum(inside, 1e-300)).any():
        notices.append(
            Notice(
                "clouds-differ",
                "Independent clouds of particles differ by more than half a standard deviation of the posterior: the "
                "intervals are too short. Ask for more particles.",
            )
        )
    return notices


@dataclass(frozen=True)
class DemonstrationEvidence:
    """Hold how probable a record is under a rule.

    Attributes
    ----------
    log_evidence, error
        Natural logarithm and its Monte-Carlo standard error; minus infinity for a record that the rule cannot make.
    per_cloud
        What each cloud found.
    surprise
        The logarithm of each round's probability given those before it.
    round, reason
        Where and why the rule cannot have made the record.
    emptied
        Whether this is so only because no particle explains it; more of them might.
    """

    log_evidence: float
    error: float
    per_cloud: tuple[float, ...] = ()
    surprise: NDArray[np.float64] | None = None
    round: int | None = None
    reason: str | None = None
    emptied: bool = False


def evidence_of(
    log: ActionLog, which: int, rule: Demonstrator, prior: Prior, sigma: float | None, horizon: int,
    particles: int | None = None, clouds: int = 4, seed: int = 0, threads: int | None = None,
) -> DemonstrationEvidence:  # fmt: skip
    """Return how probable demonstration `which` is under a rule; one that it cannot make is no error here.

    Sigma None stands for rewards of 0 and 1.
    """
    single = log.select(which)
    try:
        found = filtered(
            single, rule, belief_of(prior, len(log.arms), sigma, None), [horizon], particles, clouds, seed, threads,
            marks=False, tolerant=True,
        )  # fmt: skip
    except InferenceError as error:
        text, emptied = str(error), isinstance(error, EmptiedError)
        place = text.partition(":")[0].removeprefix("round ")
        where = int(place) if place.isdigit() else None
        return DemonstrationEvidence(-math.inf, 0.0, round=where, reason=text, emptied=emptied)
    value, error_of = log_mean(found.evidences)
    return DemonstrationEvidence(value, error_of, tuple(found.evidences.tolist()), surprises(found))
