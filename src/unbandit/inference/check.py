"""Does a rule fit a record? The check behind every answer.

Two tests, each with a small error of its own. The *predictive* one simulates the rule at means drawn from their
posterior and compares statistics of the record (`predictive`): it notices whatever is out of the ordinary. The
*evidence* one asks whether another rule makes the record far more probable (`rivals`): it tells close kin apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, EliminationRule
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.fit import Check, FitVerdict, Statistic, not_checked
from unbandit.inference import rivals
from unbandit.inference.draws import draw_means
from unbandit.inference.filter import FilterResult
from unbandit.inference.predictive import arms_to_compare, compare, statistics_of
from unbandit.inference.prior import Prior, belief_of
from unbandit.instance import Bernoulli, Noise
from unbandit.kernels.smc.cloud import Belief
from unbandit.log import ActionLog

DOES_NOT_FIT = 0.01  # at this probability or a smaller one
SIMULATIONS = 399
SHARES = {"evidence": 0.75, "predictive": 0.25}  # of the error probability that each test may use
PARTICLES, ELIMINATION_PARTICLES = 200, 2_000  # of the first cloud
SURE = 4  # times as many, in two clouds, before anything is held against the rule
AGAINST = -math.log(DOES_NOT_FIT * SHARES["evidence"])  # nats that a rival must be ahead
GREY = 3.0  # nats around that where few particles cannot decide
HOPELESS = 0.3  # nats per round behind the best rival that more particles do not make up for
FILTERED = 3_000  # rounds that the filters read
MOST_ROUNDS = 20_000  # rounds that are compared with simulations
MOST_WORK = 20_000_000  # particles x rounds x arms of one filter, roughly
MOST_CHECKED = 20  # of more demonstrations, as many are checked, evenly spread


def check_log(
    log: ActionLog, rule: Demonstrator, noise: Noise, prior: Prior, horizons: Sequence[int], *,
    anchor: tuple[int, float] | None = None, seed: int = 0, threads: int | None = None,
) -> Check:  # fmt: skip
    """Check every demonstration, or of many some, and summarise."""
    several = len(log)
    chosen = np.unique(np.linspace(0, several - 1, min(several, MOST_CHECKED)).round().astype(int)).tolist()
    found = [
        _in_any_convention(log.select(which), rule, noise, prior, horizons[which], anchor, seed, threads)
        for which in chosen
    ]
    return found[0] if several == 1 else _together(found, [log.demonstrations[which] for which in chosen], several)


def _together(found: list[Check], names: list[str], several: int) -> Check:
    """Summarise the checks of several demonstrations: the smallest probability, times their number."""
    known = [(each.p_value, at) for at, each in enumerate(found) if each.p_value is not None]
    if not known:
        return found[0]
    smallest, at = min(known)
    together = min(1.0, smallest * len(known))
    failed = tuple(name for name, each in zip(names, found, strict=True) if each.verdict == "does not fit")
    verdict: FitVerdict = "does not fit" if together <= DOES_NOT_FIT else "fits"
    of = f"{len(known):,} of {several:,} demonstrations were checked" if len(known) < several else ""
    reason = f"{names[at]}: {found[at].reason}" if verdict == "does not fit" else None
    text = ". ".join(part for part in (reason, of) if part) or None
    worst = found[at]
    return Check(
        verdict, together, worst.simulations, text, worst.statistics, worst.instead if verdict != "fits" else (),
        len(known), failed,
    )  # fmt: skip


def _in_any_convention(
    log: ActionLog, rule: Demonstrator, noise: Noise, prior: Prior, horizon: int, anchor: tuple[int, float] | None,
    seed: int, threads: int | None,
) -> Check:  # fmt: skip
    """Check one demonstration; where the rule does not fit, also as other implementations play it."""
    found = _check_one(log, rule, noise, prior, horizon, anchor, seed, threads)
    for other in rule.conventions(noise) if found.verdict == "does not fit" else ():
        again = _check_one(log, other, noise, prior, horizon, anchor, seed, threads)
        if again.verdict == "fits":
            parts = (f"it fits as {other}", again.reason)
            return replace(again, reason="; ".join(part for part in parts if part))
    return found


def _check_one(
    log: ActionLog, rule: Demonstrator, noise: Noise, prior: Prior, horizon: int, anchor: tuple[int, float] | None,
    seed: int, threads: int | None,
) -> Check:  # fmt: skip
    """Check one demonstration."""
    arms, length = len(log.arms), int(log.lengths[0])
    rule = rule.for_arms(arms)
    if length < 2 * arms:
        return not_checked(f"{length} rounds of {arms} arms are too few to compare.")
    kept, read = min(length, max(MOST_ROUNDS, 4 * arms)), min(length, max(FILTERED, 4 * arms))
    start = log.select(0, read)
    try:
        own, behind, weighed = _evidence(start, rule, noise, prior, horizon, anchor, seed, threads)
    except NotIdentifiable as refusal:
        return not_checked(str(refusal))
    except InferenceError as refusal:
        return Check("does not fit", 0.0, 0, str(refusal), checked=1, failed=(log.demonstrations[0],))
    by_evidence = math.exp(-max(0.0, min(behind, 700.0)))
    belief = belief_of(prior, arms, noise, anchor)
    statistics, predictive = _predicted(log.select(0, kept), rule, noise, horizon, own, belief, seed, threads)
    value = min(1.0, by_evidence / SHARES["evidence"], predictive / SHARES["predictive"])
    fits = value > DOES_NOT_FIT
    whole = None if kept == length else f"the first {kept:,} of {length:,} rounds were checked"
    reason = whole if fits else _difference(statistics, by_evidence < predictive, behind, weighed[0].name)
    near = tuple(each.name for each in weighed if each.value > weighed[0].value - math.log(20))
    return Check(
        "fits" if fits else "does not fit", value, SIMULATIONS, reason, statistics, () if fits else near, 1,
        () if fits else (log.demonstrations[0],),
    )  # fmt: skip


def _evidence(
    log: ActionLog, rule: Demonstrator, noise: Noise, prior: Prior, horizon: int, anchor: tuple[int, float] | None,
    seed: int, threads: int | None,
) -> tuple[FilterResult, float, list[rivals.Weighed]]:  # fmt: skip
    """Return the rule's clouds, by how much its rivals are ahead, and the rivals.

    Few particles find most records far more, or far less, probable than a rival does; only for the others, and before
    anything is held against the rule, many are used.
    """
    arms, length = len(log.arms), int(log.lengths[0])
    scarce = MOST_WORK // (length * arms)
    most = ELIMINATION_PARTICLES if isinstance(rule, EliminationRule) else PARTICLES
    particles = int(np.clip(scarce, 50, most))

    def filtered(rule: Demonstrator, noise: Noise, more: int) -> FilterResult:
        return rivals.clouds_of(
            log, rule, noise, prior, horizon, more * particles, clouds=1 if more == 1 else 2, seed=seed,
            threads=threads, anchor=anchor,
        )  # fmt: skip

    own = filtered(rule, noise, 1)
    weighed = rivals.weigh(log, rule, noise, prior, horizon, seed, threads)
    evidence, first = float(np.max(own.evidences)), weighed[0]
    if AGAINST - 2 * GREY < first.value - evidence < HOPELESS * length:
        own = filtered(rule, noise, SURE)
        evidence = max(evidence, float(np.max(own.evidences)))
        if first.rival is not None and first.value - evidence < GREY + AGAINST:
            again = filtered(first.rival.rule, first.rival.noise, SURE)
            weighed[0] = replace(first, value=max(first.value, float(np.max(again.evidences)) + first.log_weight))
    return own, weighed[0].value - evidence, weighed


def _predicted(
    log: ActionLog, rule: Demonstrator, noise: Noise, horizon: int, own: FilterResult, belief: Belief, seed: int,
    threads: int | None,
) -> tuple[tuple[Statistic, ...], float]:  # fmt: skip
    """Simulate the rule at means drawn from their posterior, and compare."""
    clouds = len(own.passes)
    draws = [draw_means(each[-1], belief, -(-SIMULATIONS // clouds), seed, at) for at, each in enumerate(own.passes)]
    means: NDArray[np.float64] = np.concatenate(draws)[:SIMULATIONS]
    if isinstance(noise, Bernoulli):
        means = np.clip(means, 0.0, 1.0)
    actions = log.demonstration(0)
    played = rule.demonstrate_at(means, noise, horizon, length=actions.size, seed=seed + 1, threads=threads)
    chosen = arms_to_compare(actions, len(log.arms))
    return compare(statistics_of(actions[None], log.arms, chosen), statistics_of(played, log.arms, chosen))


def _difference(statistics: tuple[Statistic, ...], by_evidence: bool, behind: float, rival: str) -> str:
    """Say what looks different."""
    first = statistics[0]
    outside = not first.low <= first.observed <= first.high
    parts = []
    if outside:
        parts.append(f"{first.name}: {first.observed:g}, where this rule has {first.low:g} to {first.high:g}")
    if by_evidence or not outside:
        times = f"10^{behind / math.log(10):.0f}" if behind > 20 else f"{math.exp(behind):.0f}"
        parts.append(f"the order of the choices is {times} times more probable under {rival}")
    return "; ".join(parts)
