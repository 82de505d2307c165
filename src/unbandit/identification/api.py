"""`identify(log)`: which rule made a log?"""

import math
import os
import warnings as python_warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbandit import checks
from unbandit.errors import AssumptionWarning, Notice, NotIdentifiable
from unbandit.estimators.arguments import as_log, check_numbers, horizons
from unbandit.estimators.posterior import settled_prior
from unbandit.identification.candidates import Candidate, CandidateSpec, assumed_noise, candidates_for
from unbandit.identification.evidence import (
    Contender,
    Guess,
    IdentificationRequest,
    LogEvidence,
    averaged,
    successive_halving,
)
from unbandit.identification.predictive import FITS, predictive_check
from unbandit.identification.result import Identification, Surprise
from unbandit.inference import Prior
from unbandit.inference.draws import check_rewards
from unbandit.log import ActionLog
from unbandit.progress import interruptible

SURPRISES = 5  # the number of surprising rounds that are named
SURE = 0.95  # the probability that a candidate needs, with the Monte-Carlo error held against it, to be identified


def identify(
    log: ActionLog | str | os.PathLike[str] | Any,
    candidates: str | Iterable[CandidateSpec] | Mapping[str, Iterable[CandidateSpec]] | None = None,
    *,
    prior: Prior | str | None = None,
    sigma: float | None = None,
    bernoulli: bool = False,
    horizon: int | None = None,
    particles: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Identification:
    """Identify which rule made a log, or say that the log cannot distinguish the candidates.

    Candidates are compared by the evidence: the probability of the log, with the hidden rewards and the means
    integrated out. An unknown parameter is averaged over, not fitted, which would favour rules with many parameters.

    Parameters
    ----------
    log
        As for `estimate`, with the order of rounds. Several demonstrations are taken as made by one rule with the same
        parameters, each on its own instance.
    candidates
        Rules, their names or texts, or one text with commas between them; by default every `proposed` rule that takes
        such rewards. A rule with parameters is taken as it is. A bare name or a class stands for the rule with every
        combination of parameters in its `grid`, all equally likely; `softmax:temperature=0.1|0.2` for the values
        between bars. A mapping from names to lists of rules gives grids of your choice.
    prior
        On every mean, as for `posterior`.
    sigma, bernoulli
        The rewards: their standard deviation (default 1, with a warning), or that they are 0 or 1.
    horizon
        `T` of the demonstrator, if the log is only the beginning.
    particles
        Per cloud in the last heat; earlier heats have fewer.
    seed, threads
        The same seed gives the same answer, on any number of threads.
    progress
        Called with a line of text at each stage.

    Raises
    ------
    NotIdentifiable
        If no candidate can have made the log, or the order of its rounds is not known.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.Uniform().demonstrate(ub.Instance([1.0, 0.0, 0.5], 0.5), horizon=200, seed=1)
    >>> answer = ub.identify(log, ["uniform", ub.SAE(), "ucb:alpha=0.25"], sigma=0.5)
    >>> answer.winner
    'uniform'
    >>> print(answer["ucb:alpha=0.25"].reason)  # doctest: +ELLIPSIS
    round ...: the rule pulls every arm once first, and ...
    """
    record = as_log(log, "identify")
    if not record.ordered:
        raise NotIdentifiable("The record holds pull counts without their order, and only the order shows the rule.")
    check_numbers(None, None, 0.95, sigma, bernoulli, "known", None)
    checks.function("progress", progress)
    noise, warnings = assumed_noise(sigma, bernoulli)
    check_rewards(record, noise)
    request = IdentificationRequest(
        log=record,
        horizons=tuple(horizons(horizon, record).tolist()),
        prior=settled_prior(prior, noise, None),
        noise=noise,
        particles=None if particles is None else checks.whole("particles", particles),
        seed=checks.seed(seed),
        threads=None if threads is None else checks.threads(threads),
    )
    considered, notes = candidates_for(candidates, noise, record)
    answer = _answer(request, considered, progress, warnings, notes)
    for notice in answer.warnings:
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)
    return answer


def _answer(
    request: IdentificationRequest, candidates: Sequence[Candidate], progress: Callable[[str], None] | None,
    warnings: list[Notice], notes: list[Notice],
) -> Identification:  # fmt: skip
    """Compare the candidates, decide, and check the leading one."""
    candidates, by_guess = successive_halving(request, candidates, progress)
    evidences = [averaged(candidate, guesses) for candidate, guesses in zip(candidates, by_guess, strict=True)]
    if all(each.value == -math.inf for each in evidences):
        reasons = [f"{one.name}: {each.reason}" for one, each in zip(candidates, evidences, strict=True)]
        raise NotIdentifiable(
            f"None of {len(candidates)} candidates can have made this record. {'; '.join(reasons[:3])}"
        )
    decision = decide(evidences)
    contenders = [
        _contender(candidates[at], by_guess[at], evidences[at], decision.probabilities[at]) for at in decision.order
    ]
    leading = contenders[0]
    if progress is not None:
        progress(f"Simulating {leading.name}")
    check = interruptible(predictive_check, request, leading)
    if not check.fits:
        text = (
            f"Even {leading.name}, the most probable candidate, does not reproduce the record: fewer than {FITS:.1%} "
            "of its own records lie so far out. Another rule, other parameters, another sigma or another prior made it."
        )
        warnings.append(Notice("does-not-reproduce", text))
    left = tuple(candidates[at].name for at in decision.contenders)
    return Identification(
        verdict="none fits" if not check.fits else "identified" if decision.clear else "cannot tell",
        candidates=tuple(contenders),
        assured=decision.assured,
        left=left[:1] if decision.clear else left,
        check=check,
        surprises=tuple(_surprises(request.log, leading.evidence)),
        question=request,
        warnings=tuple(warnings),
        notes=(*notes, *_conventions(contenders), *_imprecise(leading, evidences), *_collapsed(contenders)),
    )


@dataclass(frozen=True)
class Decision:
    """The winner, and by how much it won; candidates are given by their positions."""

    order: tuple[int, ...]  # the most probable first
    probabilities: tuple[float, ...]  # of each candidate
    assured: float  # the probability of the first with its evidence at the low end and all others' at the high end
    contenders: tuple[int, ...]  # those that cannot be distinguished from the first one, itself included

    @property
    def clear(self) -> bool:
        """Return whether the first one is identified."""
        return self.assured >= SURE


def decide(evidences: Sequence[LogEvidence]) -> Decision:
    """Compare candidates that are equally likely a priori; at least one of them must be possible."""
    order = tuple(sorted(range(len(evidences)), key=lambda at: -evidences[at].value))
    first, others = evidences[order[0]], order[1:]
    ratios = [math.exp(each.value - first.value) for each in evidences]
    against = {at: math.exp(min(evidences[at].high - first.low, 700.0)) for at in others}
    assured = 1 / (1 + sum(against.values()))
    contenders = tuple(at for at in others if against[at] > (1 - SURE) / len(evidences))
    return Decision(order, tuple(each / sum(ratios) for each in ratios), assured, (order[0], *contenders))


def _contender(
    candidate: Candidate, evidences: Sequence[LogEvidence], evidence: LogEvidence, probability: float
) -> Contender:
    """Compute the share of each guess: its prior times its evidence, or the prior if none can have made the log."""
    shares = np.array([weight for _, weight in candidate.guesses])
    values = np.array([each.value for each in evidences])
    if np.isfinite(values).any():
        shares = shares * np.exp(values - values[np.isfinite(values)].max())
    shares = shares / shares.sum()
    guesses = [
        Guess(rule, weight, float(share), each, candidate.conventions.get(at))
        for at, ((rule, weight), share, each) in enumerate(zip(candidate.guesses, shares, evidences, strict=True))
    ]
    return Contender(candidate.name, tuple(sorted(guesses, key=lambda guess: -guess.share)), evidence, probability)


def _surprises(log: ActionLog, evidence: LogEvidence) -> list[Surprise]:
    """Name the least probable rounds, over all demonstrations."""
    rows = []
    for which, values in enumerate(evidence.surprise):
        for at in np.argsort(values, kind="stable")[:SURPRISES].tolist():
            arm = log.arms[int(log.demonstration(which)[at])]
            rows.append(Surprise(at + 1, arm, float(values[at]), log.demonstrations[which]))
    return sorted((row for row in rows if row.log_probability < 0), key=lambda row: row.log_probability)[:SURPRISES]


def _imprecise(leading: Contender, evidences: Sequence[LogEvidence]) -> list[Notice]:
    """Note where more particles may change the verdict."""
    first = leading.evidence
    behind = [each for each in evidences if each is not first and each.high >= first.low]
    if not behind or not any(each.high - each.value > 1 for each in (first, *behind)):
        return []
    text = "The Monte-Carlo error decides here: more particles may distinguish the rules."
    return [Notice("more-particles", text)]


def _conventions(contenders: Sequence[Contender]) -> list[Notice]:
    """Note candidates that explain the log only by another convention, as their most probable guess has it."""
    notices: list[Notice] = []
    for each in contenders:
        convention = each.guesses[0].convention
        if each.possible and convention is not None:
            own = next(other.evidence for other in each.guesses if other.rule == convention.given)
            where = own.relaxed if own.round is None else own.round
            notices += convention.notices(where, "It is compared as")
    return notices


def _collapsed(contenders: Sequence[Contender]) -> list[Notice]:
    """Note candidates that are excluded only because no particle explained the record."""
    excluded = [each for each in contenders if each.evidence.collapsed]
    if not excluded:
        return []
    names = ", ".join(each.name for each in excluded)
    text = f"No particle explained the record under {names}; with more particles one might, if the rule made it."
    return [Notice("emptied", text, round=excluded[0].evidence.round)]
