"""One way in: `identify(log)`."""

from __future__ import annotations

import math
import os
import warnings as python_warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbandit.checks import whole
from unbandit.errors import AssumptionWarning, LogError, Notice, NotIdentifiable, ParameterError
from unbandit.estimators.posterior import settled_prior
from unbandit.estimators.request import as_log, check_numbers, horizons
from unbandit.identification.candidates import Candidate, CandidateSpec, candidates_for
from unbandit.identification.check import FITS, predictive_check
from unbandit.identification.evidence import IdentificationRequest, LogEvidence, averaged, successive_halving
from unbandit.identification.result import Contender, Guess, Identification, Surprise, shares_of
from unbandit.inference import Prior
from unbandit.instance import Bernoulli, Gaussian
from unbandit.log import ActionLog

SURPRISES = 5
"""How many rounds are named."""


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
    """Tell which rule made a log, or that the log cannot tell.

    Every candidate is weighed by how probable it makes the log, the hidden rewards and the means integrated out. A
    parameter that nobody knows is averaged over, not chosen to fit: that would favour rules with many of them.

    Parameters
    ----------
    log
        As for `estimate`, with the order of rounds. Several demonstrations are taken as made by one rule with the same
        parameters, on instances of their own.
    candidates
        Rules, their names or texts, or one text with commas between them; by default every rule that takes such
        rewards. A rule with parameters is taken as it is. A bare name or a class stands for the rule with every
        combination of its own `grid` of parameters, all equally likely; `softmax:temperature=0.1|0.2` for those that
        stand between bars. A mapping from names to lists of rules gives grids of one's own.
    prior
        On every mean, as for `posterior`.
    sigma, bernoulli
        The rewards: their standard deviation (1 with a warning where it is not given), or that they are 0 or 1.
    horizon
        `T` of the demonstrator, if the log is only the beginning.
    particles
        Of each cloud in the last heat of the race; the others have fewer.
    seed, threads
        The same seed gives the same answer, on any number of threads.
    progress
        Is told what is being done.

    Raises
    ------
    NotIdentifiable
        If no candidate can have made the log, or the order of its rounds is not known.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.Uniform().demonstrate(ub.Instance([1.0, 0.0, 0.5], 0.5), horizon=200, seed=1)
    >>> found = ub.identify(log, ["uniform", ub.SAE(), "ucb:alpha=0.25"], sigma=0.5)
    >>> found.winner
    'uniform'
    >>> print(found["ucb:alpha=0.25"].reason)  # doctest: +ELLIPSIS
    round ...: the rule pulls every arm once first, and ...
    """
    record = as_log(log, "identify")
    if not record.ordered:
        raise NotIdentifiable("The record holds pull counts without their order, and a rule is told by the order.")
    check_numbers(None, None, 0.95, sigma, bernoulli, "known", None)
    found: list[Notice] = []
    noise = None if bernoulli else sigma
    if noise is None and not bernoulli:
        noise = 1.0
        said = "The rewards' standard deviation was not given: sigma = 1 is assumed. Give sigma (or bernoulli)."
        found.append(Notice("sigma-assumed", said))
    if noise is None and record.rewards is not None and not np.isin(_known(record), (0, 1)).all():
        raise LogError("expected rewards of 0 and 1 for Bernoulli rewards; got others. Leave bernoulli out.")
    question = IdentificationRequest(
        log=record,
        horizons=tuple(horizons(horizon, record).tolist()),
        prior=settled_prior(prior, Bernoulli() if noise is None else Gaussian(noise), None),
        sigma=noise,
        particles=None if particles is None else whole("particles", particles),
        seed=_seed(seed),
        threads=None if threads is None else whole("threads", threads),
    )
    considered, notes = candidates_for(candidates, noise, record)
    answer = _answer(question, considered, progress, found, notes)
    for notice in answer.warnings:
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)
    return answer


def _answer(
    question: IdentificationRequest, considered: Sequence[Candidate], progress: Callable[[str], None] | None,
    found: list[Notice], notes: list[Notice],
) -> Identification:  # fmt: skip
    """Weigh, decide, and check the leading candidate."""
    by_guess = successive_halving(question, considered, progress)
    weights = [averaged(candidate, guesses) for candidate, guesses in zip(considered, by_guess, strict=True)]
    if all(each.value == -math.inf for each in weights):
        why = "; ".join(f"{one.name}: {each.reason}" for one, each in list(zip(considered, weights, strict=True))[:3])
        raise NotIdentifiable(f"None of {len(considered)} candidates can have made this record. {why}")
    decision = decide(weights)
    contenders = [
        _contender(considered[at], by_guess[at], weights[at], decision.probabilities[at]) for at in decision.order
    ]
    leading = contenders[0]
    if progress is not None:
        progress(f"Simulating {leading.name}")
    shares = np.array([guess.share for guess in leading.guesses])
    rules = [guess.rule for guess in leading.guesses]
    checked = predictive_check(question, leading.name, rules, [guess.weighed for guess in leading.guesses], shares)
    if not checked.fits:
        said = (
            f"Even {leading.name}, the most probable candidate, does not reproduce the record: fewer than {FITS:.1%} "
            "of its own are so far out. Another rule, other parameters, another sigma or another prior made it."
        )
        found.append(Notice("does-not-reproduce", said))
    left = tuple(considered[at].name for at in decision.contenders)
    return Identification(
        verdict="none fits" if not checked.fits else "identified" if decision.clear else "cannot tell",
        candidates=tuple(contenders),
        assured=decision.assured,
        left=left[:1] if decision.clear else left,
        check=checked,
        surprises=tuple(_surprises(question.log, leading.weighed)),
        question=question,
        warnings=tuple(found),
        notes=(*notes, *_thin(leading, weights), *_emptied(contenders)),
    )


def _contender(
    candidate: Candidate, found: Sequence[LogEvidence], weighed: LogEvidence, probability: float
) -> Contender:
    """Put a candidate together with what was found about it."""
    beforehand = np.array([weight for _, weight in candidate.guesses])
    shares = shares_of(beforehand, np.array([each.value for each in found]))
    guesses = [
        Guess(rule, weight, float(share), each)
        for (rule, weight), share, each in zip(candidate.guesses, shares, found, strict=True)
    ]
    return Contender(candidate.name, tuple(sorted(guesses, key=lambda guess: -guess.share)), weighed, probability)


def _surprises(log: ActionLog, weighed: LogEvidence) -> list[Surprise]:
    """Name the least probable rounds, over all demonstrations."""
    rows = []
    for which, values in enumerate(weighed.surprise):
        for at in np.argsort(values, kind="stable")[:SURPRISES].tolist():
            arm = log.arms[int(log.demonstration(which)[at])]
            rows.append(Surprise(at + 1, arm, float(values[at]), log.demonstrations[which]))
    return sorted((row for row in rows if row.log_probability < 0), key=lambda row: row.log_probability)[:SURPRISES]


def _thin(leading: Contender, weights: Sequence[LogEvidence]) -> list[Notice]:
    """Note where more particles would tell more."""
    behind = [each for each in weights if each is not leading.weighed and each.high >= leading.weighed.low]
    if not any(each.high - each.value > 1 for each in (leading.weighed, *behind)) or not behind:
        return []
    return [Notice("more-particles", "The Monte-Carlo error decides here: more particles may tell the rules apart.")]


def _emptied(contenders: Sequence[Contender]) -> list[Notice]:
    """Note candidates that are out only because no particle explained the record."""
    out = [each for each in contenders if each.weighed.emptied]
    names = ", ".join(each.name for each in out)
    said = f"No particle explained the record under {names}; with more particles one might, if the rule made it."
    return [Notice("emptied", said, round=out[0].weighed.round)] if out else []


def _known(log: ActionLog) -> Any:
    assert log.rewards is not None
    return log.rewards[~np.isnan(log.rewards)]


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ParameterError(f"expected a whole number from 0 to 2^64 - 1; got {seed!r}.", parameter="seed")
    return int(seed)


SURE = 0.95
"""The probability that a candidate must have, with the Monte-Carlo error held against it, to be the answer."""


@dataclass(frozen=True)
class Decision:
    """Hold who won, and by how much.

    Attributes
    ----------
    order
        The candidates' positions, the most probable first.
    probabilities
        Of each candidate, all being equally likely beforehand.
    assured
        The probability of the first one if its evidence is taken at the low end and all others' at the high end.
    contenders
        Those that cannot be told from the first one, itself included.
    """

    order: tuple[int, ...]
    probabilities: tuple[float, ...]
    assured: float
    contenders: tuple[int, ...]

    @property
    def clear(self) -> bool:
        """Return whether the first one is the answer."""
        return self.assured >= SURE


def decide(weights: Sequence[LogEvidence]) -> Decision:
    """Compare candidates that are equally likely beforehand; one of them at least must be possible.

    Examples
    --------
    >>> sharp, dull = LogEvidence(-10.0, 0.1, -10.2, -9.8), LogEvidence(-14.0, 2.0, -17.0, -10.0)
    >>> found = decide([dull, sharp])
    >>> found.order, found.clear, found.contenders
    ((1, 0), False, (1, 0))
    >>> decide([LogEvidence(-30.0, 2.0, -33.0, -26.0), sharp]).clear
    True
    """
    order = tuple(sorted(range(len(weights)), key=lambda at: -weights[at].value))
    first, others = weights[order[0]], order[1:]
    behind = [math.exp(each.value - first.value) for each in weights]
    against = {at: math.exp(min(weights[at].high - first.low, 700.0)) for at in others}
    assured = 1 / (1 + sum(against.values()))
    contenders = tuple(at for at in others if against[at] > (1 - SURE) / len(weights))
    return Decision(order, tuple(each / sum(behind) for each in behind), assured, (order[0], *contenders))
