"""The posterior as an estimator: of a record that no equation inverts, and a second opinion on one that is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import whole
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.errors import Notice, NotIdentifiable, ParameterError, option
from unbandit.estimators.procedures import Anchor
from unbandit.estimators.request import (
    Answer,
    Request,
    as_log,
    check_numbers,
    horizons,
    known_mean,
    reward_noise,
)
from unbandit.inference import BetaPrior, NormalPrior, Posterior, Prior, infer, parse_prior, usual_prior
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log import ActionLog
from unbandit.result import BEST, ESTIMATED, UNSEEN

REPLICATES = {"clouds": 1, "draws": 500}
"""Of a posterior that is one of many in a bootstrap."""


def posterior(
    log: ActionLog | str | os.PathLike[str] | Any,
    rule: Demonstrator | str,
    *,
    prior: Prior | str | None = None,
    sigma: float | None = None,
    bernoulli: bool = False,
    best_mean: float | None = None,
    anchor: Mapping[Any, float] | None = None,
    horizon: int | None = None,
    pool: bool = False,
    particles: int | None = None,
    clouds: int = 4,
    draws: int = 1_000,
    seed: int = 0,
    threads: int | None = None,
) -> Posterior:
    """Draw from the posterior of every arm's mean, given which arm was pulled and such rewards as are known.

    Sequential Monte Carlo over the hidden sums of rewards; the means are integrated out.

    Parameters
    ----------
    log, rule, sigma, bernoulli, best_mean, anchor, horizon
        As for `estimate`. A known best mean is taken as that of the most-pulled arm, and no other arm is better.
    prior
        On every mean: a `NormalPrior` or, for rewards of 0 and 1, a `BetaPrior`, or its text. By default normal around
        0 (or the mean that is known) with a deviation of twice sigma, but at least 1; or Beta(1, 1).
    pool
        Take all demonstrations as of one instance; a log of several is refused without it.
    particles, clouds, draws
        Particles of each cloud (by default 250 to 4,000, fewer for a longer record), independent clouds, draws of each.
    threads
        By default one per core; the result does not depend on it.

    Examples
    --------
    >>> import unbandit as ub
    >>> rule = ub.Thompson(sigma=0.5)
    >>> log = rule.demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), horizon=300, seed=1)
    >>> found = ub.posterior(log, rule, sigma=0.5, particles=200, seed=1)
    >>> found.means.shape, float(found.beats("0", "2")) > 0.9
    ((4, 1000, 3), True)
    """
    record = as_log(log, "posterior")
    assumed = (parse_rule(rule) if isinstance(rule, str) else rule).for_arms(len(record.arms))
    check_numbers(best_mean, anchor, 0.95, sigma, bernoulli, "known", None, assumed)
    if len(record) > 1 and not pool:
        raise ParameterError(
            f"the log has {len(record)} demonstrations.",
            parameter="pool",
            count=len(record),
            remedy=f"Give {option('pool', True)} if they are of one instance, or select one of them.",
        )
    check_pool(record, pool)
    noise, found = reward_noise(assumed, sigma, bernoulli, "known")
    known = known_mean(best_mean, anchor, record.arms)
    answer = infer(
        record, assumed, settled_prior(prior, noise, known), noise, horizons(horizon, record).tolist(),
        anchor=_placed(known, record.pulls.sum(axis=0)), is_best=best_mean is not None,
        particles=None if particles is None else whole("particles", particles), clouds=whole("clouds", clouds),
        draws=whole("draws", draws), seed=seed, threads=threads,
    )  # fmt: skip
    return replace(answer, warnings=(*found, *answer.warnings, *_from_the_prior(record, assumed, noise, known)))


def _from_the_prior(record: ActionLog, rule: Demonstrator, noise: Noise, known: Anchor | None) -> list[Notice]:
    """Say what in the answer comes from the prior alone."""
    if rule.reveals == "best":
        text = "The record shows which arm the rule judged best, no values: means and gaps are little but the prior's."
        return [Notice("values-from-prior", text)]
    free = isinstance(noise, Gaussian) and known is None and record.rewards is None
    if getattr(rule, "shifts", True) and free:
        text = "The actions show how the means differ, not their common level: that is the prior's. Read the gaps."
        return [Notice("level-from-prior", text)]
    return []


def settled_prior(prior: Prior | str | None, noise: Noise, known: Anchor | None) -> Prior:
    """Return the prior: the one given, read where it is a text, or the default."""
    if prior is None:
        return usual_prior(noise, None if known is None else known.value)
    if not isinstance(prior, str | NormalPrior | BetaPrior):
        raise ParameterError(f"expected a NormalPrior, a BetaPrior or a text; got {prior!r}.", parameter="prior")
    return parse_prior(prior) if isinstance(prior, str) else prior


def check_pool(record: ActionLog, pool: bool) -> None:
    """Refuse to pool a single demonstration."""
    if len(record) == 1 and pool:
        raise ParameterError("expected two demonstrations or more to pool; got 1.", parameter="pool")


def _placed(known: Anchor | None, pulls: NDArray[np.int64]) -> tuple[int, float] | None:
    """Return which arm's mean is known: of the best one, the most-pulled arm's."""
    if known is None:
        return None
    return (int(pulls.argmax()) if known.arm is None else known.arm), known.value


def inferred(request: Request, prior: Prior, particles: int | None, seed: int, pool: bool) -> Answer:
    """Answer from posteriors, one a demonstration or one of all: expectations and central intervals."""
    check_pool(request.whole, pool)
    names = (", ".join(request.log.demonstrations),) if pool else request.log.demonstrations
    pulls = request.log.pulls.sum(axis=0, keepdims=True) if pool else request.log.pulls
    answer = Answer(names, pulls)
    answer.make_room("gap", "gap_low", "gap_high", "mean", "mean_low", "mean_high")
    for which, name in enumerate(names):
        record = request.whole if pool else request.whole.select(which)
        rounds = request.horizons.tolist() if pool else [int(request.horizons[which])]
        found = _infer(request, record, rounds, prior, particles, seed)
        here = name if len(names) > 1 else None
        answer.warnings += [replace(notice, demonstration=here) for notice in found.warnings]
        _refuse_values(request, found)
        answer.put(which, *_row(found, request.level))
        answer.posteriors.append(found)
        answer.notes += [replace(notice, demonstration=here) for notice in _notes(request, found)]
    answer.notes.append(Notice("prior", f"The prior on every mean is {prior}; change it with {option('prior')}."))
    answer.notes += _from_the_prior(request.whole, request.rule, request.noise, request.anchor)
    return answer


def bootstrapped_posterior(
    request: Request, prior: Prior, particles: int | None, resamples: int, seed: int
) -> Answer:  # fmt: skip
    """Give the posterior's expectations intervals by simulation: how far estimates stray when it is played at them."""
    answer = inferred(request, prior, particles, seed, pool=False)
    tail = (1 - request.level) / 2
    instead = f"Use {option('method', 'posterior')}."
    for which, means in enumerate(answer.numbers["mean"]):
        if np.isnan(means).any():
            raise NotIdentifiable(
                "An arm was never pulled, so there is no estimate of it to simulate at.", remedy=instead
            )
        if request.log.rewards is not None:
            raise NotIdentifiable("Some rewards are known, and simulated records would have none.", remedy=instead)
        within = np.clip(means, 0, 1) if isinstance(request.noise, Bernoulli) else means
        instance = Instance(within, request.noise, request.log.arms)
        horizon, length = int(request.horizons[which]), int(request.log.lengths[which])
        logs = request.rule.demonstrate(instance, horizon, runs=resamples, seed=seed)
        drawn = []
        for run in range(resamples):
            again = ActionLog.from_codes(np.ascontiguousarray(logs.demonstration(run)[:length]), request.log.arms)
            found = _infer(request, again, [horizon], prior, particles or 250, seed + run, **REPLICATES)
            drawn.append([found.draws.mean(axis=0), found.gaps.reshape(-1, means.size).mean(axis=0)])
        strayed = np.array(drawn) - np.array([means, instance.gaps])
        for name, centre, off in (("mean", means, strayed[:, 0]), ("gap", answer.numbers["gap"][which], strayed[:, 1])):
            low, high = centre - np.quantile(off, [1 - tail, tail], axis=0)
            known = ~np.isnan(answer.numbers[f"{name}_low"][which])
            answer.numbers[f"{name}_low"][which, known] = low[known]
            answer.numbers[f"{name}_high"][which, known] = high[known]
    said = f"Intervals are read off {resamples:,} simulations at the posterior's expectations, from seed {seed}."
    answer.notes.append(Notice("bootstrap", said))
    return answer


def _infer(
    request: Request, record: ActionLog, rounds: list[int], prior: Prior, particles: int | None, seed: int,
    **options: Any,
) -> Posterior:  # fmt: skip
    anchor = _placed(request.anchor, record.pulls.sum(axis=0))
    is_best = request.anchor is not None and request.anchor.arm is None
    return infer(
        record, request.rule, prior, request.noise, rounds, anchor=anchor, is_best=is_best, particles=particles,
        seed=seed, **options,
    )  # fmt: skip


def _refuse_values(request: Request, found: Posterior) -> None:
    """Say what a rule reveals that judges once which arm is best, and nothing else."""
    if request.rule.reveals != "best":
        return
    at = int(found.probability_best.argmax())
    raise NotIdentifiable(
        f"{request.rule.name}: its record shows which arm it judged best and nothing of what any arm was worth. It "
        f'settled on "{found.arms[at]}", which under the prior {found.prior} is the best with probability '
        f"{found.probability_best[at]:.2f}."
    )


def _row(found: Posterior, level: float) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int8], NDArray[np.bool_]]:
    """Return numbers, verdicts and which arms may be best."""
    chance, seen = found.probability_best, found.pulls > 0
    row = found.summary(level)
    verdict = np.where(seen, ESTIMATED, UNSEEN).astype(np.int8)
    candidates = (chance >= 1 - level) & seen
    first = int(np.where(seen, chance, -1.0).argmax())
    if chance[first] >= level:
        candidates = np.arange(chance.size) == first
        verdict[first], row["gap"][first] = BEST, 0.0
        row["gap_low"][first] = row["gap_high"][first] = np.nan
    for values in row.values():
        values[~seen] = np.nan
    return row, verdict, candidates


def _notes(request: Request, found: Posterior) -> list[Notice]:
    """Say how sure the best arm is, and how probable the record was."""
    at = int(found.probability_best.argmax())
    best = f'"{found.arms[at]}" is the best arm with probability {found.probability_best[at]:.3g}.'
    evidence = (
        f"The logarithm of the record's probability under {request.rule} is {found.log_evidence:.1f} "
        f"(Monte-Carlo error {found.log_evidence_error:.1f})."
    )
    return [Notice("probability-best", best, arm=found.arms[at]), Notice("evidence", evidence)]
