"""The posterior as an estimator: of a record that no equation inverts, and a second opinion on one that is."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import RandomisedRule, Thompson
from unbandit.errors import HARMLESS, InferenceError, Notice, NotIdentifiable, ParameterError, option
from unbandit.estimators.availability import said_of_filtered
from unbandit.estimators.diagnostics import late_arm
from unbandit.estimators.procedures import Anchor, Answer, Request
from unbandit.formatting import probability, short_numbers
from unbandit.inference import BetaPrior, NormalPrior, Posterior, Prior, infer_by_conventions, parse_prior, usual_prior
from unbandit.inference.conventions import Convention
from unbandit.inference.hidden import infer_hidden
from unbandit.inference.result import gaps_of
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log import ActionLog
from unbandit.log.partial import PartialLog, ThinnedLog
from unbandit.progress import interruptible
from unbandit.result import BEST, ESTIMATED, UNSEEN

LATE_PULLS, LATE_LOOKS = 50, 3  # rounds per arm, and batches, after which its first pull is late
REPLICATES = {"clouds": 1, "draws": 500}  # of a posterior that is one of many in a bootstrap


def from_the_prior(request: Request) -> list[Notice]:
    """Say what in the answer comes from the prior alone."""
    if request.rule.reveals == "best":
        text = "The log shows which arm the rule judged best, but no values: means and gaps come mainly from the prior."
        return [Notice("values-from-prior", text)]
    free = isinstance(request.noise, Gaussian) and request.anchor is None and request.log.rewards is None
    if getattr(request.rule, "shifts", True) and free:
        text = "The actions show how the means differ; their common level comes from the prior. Use the gaps."
        return [Notice("level-from-prior", text)]
    return []


def late_arms(request: Request) -> list[Notice]:
    """Warn of arms that Thompson sampling, whose first choices are nearly even, pulled very late: were they there?"""
    log, rule = request.log, request.rule
    if not isinstance(rule, Thompson) or not isinstance(log, ActionLog) or request.availability is not None:
        return []
    number = len(log.arms)
    patience = number * max(LATE_PULLS, LATE_LOOKS * rule.batch)
    found = []
    for which, firsts in enumerate(log.tallied("counts").counted[1]):
        late = np.flatnonzero(firsts > patience)
        if late.size:
            where = log.demonstrations[which] if len(log) > 1 else None
            found.append(replace(late_arm(log.arms, firsts, late, where), demonstration=where))
    return found


def settled_prior(prior: Prior | str | None, noise: Noise, known: Anchor | None) -> Prior:
    """Return the prior: the one given, read where it is a text, or the default."""
    if prior is None:
        return usual_prior(noise, None if known is None else known.value)
    if not isinstance(prior, str | NormalPrior | BetaPrior):
        text = f"expected a NormalPrior, a BetaPrior or a text; got {checks.brief(prior)}."
        raise ParameterError(text, parameter="prior")
    return parse_prior(prior) if isinstance(prior, str) else prior


def inferred(request: Request, prior: Prior, particles: int | None, seed: int, pool: bool) -> Answer:
    """Answer from posteriors, one a demonstration or one of all: expectations and central intervals."""
    log = request.log
    assert isinstance(log, ActionLog | PartialLog | ThinnedLog)
    names = (", ".join(log.demonstrations),) if pool else log.demonstrations
    answer = Answer(names, log.pulls.sum(axis=0, keepdims=True) if pool else log.pulls)
    if not isinstance(log, ActionLog):
        tasks = [(request, log, which, prior, particles, seed) for which in range(len(names))]
        posteriors = checks.in_parts("Reading demonstrations", _infer_part, tasks)
    else:
        records = [log] if pool else [log.select(which) for which in range(len(names))]
        rounds = [request.horizons.tolist()] if pool else [[int(horizon)] for horizon in request.horizons]
        demonstrations = list(zip(records, rounds, strict=True))
        posteriors, convention = _by_one_convention(request, demonstrations, prior, particles, seed)
        answer.changed = convention.changed
    for which, (name, found) in enumerate(zip(names, posteriors, strict=True)):
        here = name if len(names) > 1 else None
        for notice in found.warnings:
            said = answer.notes if notice.code in HARMLESS else answer.warnings
            said.append(replace(notice, demonstration=here))
        _refuse_values(request, found)
        answer.put(which, *posterior_row(found, request.level))
        if found.rivals is not None and request.availability is not None:
            answer.apart[which] = (found.rivals != request.availability.at(int(log.lengths[which]))).any(axis=1)
        answer.posteriors.append(found)
        answer.notes += [replace(notice, demonstration=here) for notice in _notes(found, request.level)]
    answer.notes.append(Notice("prior", f"The prior on every mean is {prior}; change it with {option('prior')}."))
    answer.notes += from_the_prior(request)
    answer.warnings += late_arms(request)
    if request.availability is not None and isinstance(log, ActionLog):
        answer.notes += said_of_filtered(log, request.availability)
    return answer


def _infer_part(
    request: Request, log: ThinnedLog | PartialLog, which: int, prior: Prior, particles: int | None, seed: int
) -> Posterior:
    """Infer one demonstration of a log of which some miss rounds; one that does not, as if it were alone."""
    own = log.select(which)
    if isinstance(own, ActionLog):
        return infer_request(request, own, [int(request.horizons[which])], prior, particles, seed)[0]
    return infer_hidden_request(request, log, which, prior, particles, seed)


def infer_hidden_request(
    request: Request, log: ThinnedLog | PartialLog, which: int, prior: Prior, particles: int | None, seed: int,
    **options: Any,
) -> Posterior:  # fmt: skip
    """Infer one demonstration that misses rounds or begins in mid-run."""
    known, rule = request.anchor, request.rule
    if known is not None and known.arm is None:
        text = "not possible here: the arm seen most often may not be the one pulled most, as the log misses rounds."
        if isinstance(log, PartialLog):
            text = "not possible here: the log begins in mid-run, and a posterior takes the mean of one arm by name."
        remedy = f"Give the mean of one arm with {option('anchor')}."
        raise ParameterError(text, parameter="best_mean", value=known.value, remedy=remedy)
    assert isinstance(rule, RandomisedRule)
    placed = None if known is None or known.arm is None else (known.arm, known.value)
    return interruptible(
        infer_hidden, log, which, rule, prior, request.noise, int(request.horizons[which]), anchor=placed,
        particles=particles, seed=seed, **options,
    )  # fmt: skip


def _by_one_convention(
    request: Request, demonstrations: Sequence[tuple[ActionLog, list[int]]], prior: Prior, particles: int | None,
    seed: int,
) -> tuple[list[Posterior], Convention]:  # fmt: skip
    """Infer each demonstration; where one of them shows another convention of the rule, one is found for all.

    It is the one that explains most of them and, of those, under which all together are most probable. A demonstration
    that it does not explain keeps the one that does.
    """
    tasks = [(request, record, rounds, prior, particles, seed) for record, rounds in demonstrations]
    pairs = checks.in_parts("Reading demonstrations", infer_request, tasks)
    first = pairs[0][1]
    if all(convention == first for _, convention in pairs):
        return [found for found, _ in pairs], first
    best: tuple[tuple[int, float], list[Posterior | None], Convention] | None = None
    for rule in (request.rule, *request.rule.conventions(request.noise)):
        own, convention = replace(request, rule=rule), Convention(request.rule, rule)
        row: list[Posterior | None] = []
        for (record, rounds), (found, shown) in zip(demonstrations, pairs, strict=True):
            row.append(found if shown == convention else None)
            if row[-1] is None:
                with suppress(InferenceError):
                    again, used = infer_request(own, record, rounds, prior, particles, seed)
                    row[-1] = again if used.used == rule else None
        explained = [each.log_evidence for each in row if each is not None]
        merit = len(explained), sum(explained) - convention.handicap
        if best is None or merit > best[0]:
            best = merit, row, convention
    assert best is not None
    _, row, convention = best
    return [one or found for one, (found, _) in zip(row, pairs, strict=True)], convention


def bootstrapped_posterior(
    request: Request, prior: Prior, particles: int | None, resamples: int, seed: int
) -> Answer:  # fmt: skip
    """Give the posterior's expectations intervals by simulation: how far estimates stray when it is played at them."""
    answer = inferred(request, prior, particles, seed, pool=False)
    tail = (1 - request.level) / 2
    instead = f"Use {option('method', 'posterior')}."
    for which, means in enumerate(answer.numbers["mean"]):
        if np.isnan(means).any():
            text = "An arm was never pulled, so there is no estimate of it to simulate at."
            raise NotIdentifiable(text, remedy=instead)
        if request.log.rewards is not None:
            raise NotIdentifiable("Some rewards are known, and simulated logs would have none.", remedy=instead)
        within = np.clip(means, 0, 1) if isinstance(request.noise, Bernoulli) else means
        instance = Instance(within, request.noise, request.log.arms)
        horizon, length = int(request.horizons[which]), int(request.log.lengths[which])
        logs = request.rule.demonstrate(
            instance, horizon, runs=resamples, seed=seed, availability=request.availability
        )  # fmt: skip
        tasks = [
            (request, logs.demonstration(run)[:length], horizon, prior, particles or 250, seed + run)
            for run in range(resamples)
        ]
        drawn = checks.in_parts("Reading simulations", _replicate, tasks)
        strayed = np.array(drawn) - np.array([means, gaps_of(instance.means, answer.posteriors[which].rivals)])
        for name, centre, off in (("mean", means, strayed[:, 0]), ("gap", answer.numbers["gap"][which], strayed[:, 1])):
            low, high = centre - np.quantile(off, [1 - tail, tail], axis=0)
            known = ~np.isnan(answer.numbers[f"{name}_low"][which])
            answer.numbers[f"{name}_low"][which, known] = low[known]
            answer.numbers[f"{name}_high"][which, known] = high[known]
    said = f"Intervals are read off {resamples:,} simulations at the posterior's expectations, from seed {seed}."
    answer.notes.append(Notice("bootstrap", said))
    return answer


def _replicate(
    request: Request, actions: NDArray[Any], horizon: int, prior: Prior, particles: int, seed: int
) -> NDArray[np.float64]:
    """Return the posterior's expectations of means and gaps, given a simulated record."""
    record = ActionLog.from_codes(np.ascontiguousarray(actions), request.log.arms)
    found, _ = infer_request(request, record, [horizon], prior, particles, seed, **REPLICATES)
    return np.array([found.draws.mean(axis=0), found.gaps.reshape(-1, len(record.arms)).mean(axis=0)])


def infer_request(
    request: Request, record: ActionLog, rounds: list[int], prior: Prior, particles: int | None, seed: int,
    **options: Any,
) -> tuple[Posterior, Convention]:  # fmt: skip
    """Draw from the posterior given a record; a known best mean is that of the most-pulled arm.

    Returns also the convention that it is for (`infer_by_conventions`).
    """
    is_best = request.anchor is not None and request.anchor.arm is None
    return interruptible(
        infer_by_conventions, record, request.rule, prior, request.noise, rounds,
        anchor=placed_anchor(request, record), is_best=is_best,
        particles=particles, seed=seed, there=request.availability, **options,
    )  # fmt: skip


def placed_anchor(request: Request, record: ActionLog) -> tuple[int, float] | None:
    """Return the arm whose mean is known, and that mean; a known best mean is that of the most-pulled arm."""
    if request.anchor is None:
        return None
    known = request.anchor.arm
    return int(record.pulls.sum(axis=0).argmax()) if known is None else known, request.anchor.value


def _refuse_values(request: Request, found: Posterior) -> None:
    """Say what a rule reveals that judges once which arm is best, and nothing else."""
    if request.rule.reveals != "best":
        return
    at = int(found.probability_best.argmax())
    raise NotIdentifiable(
        f"{request.rule.name}: its log shows which arm it judged best and nothing of what any arm was worth. It "
        f'settled on "{found.arms[at]}", which under the prior {found.prior} is the best with probability '
        f"{found.probability_best[at]:.2f}."
    )


def posterior_row(
    found: Posterior, level: float
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int8], NDArray[np.bool_]]:
    """Return numbers, verdicts and which arms may be best.

    One rule: an arm is best if it is so with a probability of at least `level`. Otherwise the arms that may be best are
    the most probable ones, as many as reach that probability together.
    """
    seen, row = found.pulls > 0, found.moments(level)
    chance = found.probability_best
    if found.rivals is not None:  # of several arms, each may be the best of those that were there
        chance = (found.gaps == 0).mean(axis=(0, 1))
    verdict = np.where(seen, ESTIMATED, UNSEEN).astype(np.int8)
    candidates = (chance >= 1 - level) & seen
    first = int(np.where(seen, chance, -1.0).argmax())
    surely = (chance >= level) & seen
    if found.rivals is None:
        surely &= np.arange(chance.size) == first
        candidates = surely if surely.any() else credible_set(np.where(seen, chance, 0.0), level)
    verdict[surely], row["gap"][surely] = BEST, 0.0
    row["gap_low"][surely] = row["gap_high"][surely] = np.nan
    for values in row.values():
        values[~seen] = np.nan
    return row, verdict, candidates


def credible_set(chance: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Return the most probable arms, as few as have the level together, or all that are possible.

    >>> credible_set(np.array([0.857, 0.049, 0.047, 0.047]), 0.95).tolist()
    [True, True, True, False]
    """
    order = np.argsort(-chance, kind="stable")
    before = np.cumsum(chance[order]) - chance[order]
    chosen = np.zeros(chance.size, np.bool_)
    chosen[order[(before < level) & (chance[order] > 0)]] = True
    return chosen


def best_notice(found: Posterior, level: float) -> Notice:
    """Say how sure the best arm is; one that is best with less than the level has a gap."""
    at = int(found.probability_best.argmax())
    chance = found.probability_best[at]
    text = f'"{found.arms[at]}" is the best arm with probability {probability(chance)}.'
    text += "" if chance >= level else " Its own gap is above 0 because another arm may be better."
    return Notice("probability-best", text, arm=found.arms[at])


def _notes(found: Posterior, level: float) -> list[Notice]:
    """Say how sure the best arm is, and how probable the record was."""
    evidence = (
        f"The log-probability of these choices under {short_numbers(found.rule)} is {found.log_evidence:.1f} "
        f"(Monte-Carlo error {found.log_evidence_error:.1f})."
    )
    return [best_notice(found, level), Notice("evidence", evidence)]
