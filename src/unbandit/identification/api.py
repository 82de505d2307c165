"""`identify(log)`: which rule made a log?"""

from __future__ import annotations

import math
import os
import warnings as python_warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, RandomisedRule
from unbandit.errors import AssumptionWarning, Notice, NotIdentifiable, option
from unbandit.estimators.arguments import as_log, check_numbers, horizons, one_demonstration, told_availability
from unbandit.estimators.availability import said_of_filtered
from unbandit.estimators.diagnostics import explaining_refusals, misread, sorted_rows
from unbandit.estimators.posterior import settled_prior
from unbandit.fit import short_name
from unbandit.formatting import joined, short_numbers
from unbandit.identification.candidates import (
    STEP,
    Candidate,
    CandidateSpec,
    assumed_noise,
    candidates_for,
    twin_value,
)
from unbandit.identification.evidence import (
    SMALL,
    Contender,
    Guess,
    IdentificationRequest,
    LogEvidence,
    averaged,
    surprise_of,
)
from unbandit.identification.result import Identification, Surprise, Verdict
from unbandit.identification.selection import SURE, Decision, decide, one_number, successive_halving
from unbandit.identification.signs import DECIDED_BY_OPENING, appeared_late, opening_alone, signs
from unbandit.identification.values import (
    RuleValues,
    arms_from_prior,
    checked_rule,
    gaps_from_prior,
    imprecise_values,
    mixed_values,
    said_of_values,
    values_under,
)
from unbandit.inference import Prior
from unbandit.inference.draws import check_rewards
from unbandit.inference.rivals import RANDOM, ROUGHLY
from unbandit.inference.steps import check_filtered
from unbandit.log import ActionLog
from unbandit.log.availability import Availability, AvailabilityTable
from unbandit.progress import current_work, interruptible

NEXT = (
    f"Name other candidates with {option('candidates')}, also in batches, or give {option('sigma')} (or "
    f"{option('bernoulli')}). `check` tests each rule."
)
WHOLE, COMPARED = 1_000, 0.75  # parts of the work, and the share of it that comparing the candidates takes
MOST_CHECKED = 4  # candidates that are checked and averaged over

ONE_NUMBER = (
    "With two arms, an elimination rule leaves a single number in the log: when it dropped one of them. Any of these "
    "rules may have dropped it then, and the log cannot show which."
)

SURPRISES = 5  # the number of surprising rounds that are named
ROUNDED = 1e-9  # nats by which equal log probabilities differ


def identify(
    log: ActionLog | str | os.PathLike[str] | Any,
    candidates: CandidateSpec | Iterable[CandidateSpec] | Mapping[str, Iterable[CandidateSpec]] | None = None,
    *,
    prior: Prior | str | None = None,
    sigma: float | None = None,
    bernoulli: bool = False,
    horizon: int | None = None,
    particles: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
    demonstration: object = None,
    availability: Availability | AvailabilityTable | None = None,
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
    sigma
        Standard deviation of a reward; 1 by default, with a warning.
    bernoulli
        Whether rewards were 0 or 1; takes the place of sigma.
    horizon
        `T` of the demonstrator, if the log is only the beginning.
    particles
        Per cloud in the last heat; earlier heats have fewer.
    seed
        The same seed gives the same answer, on any number of threads.
    threads
        By default one per core.
    progress
        Called with a line of text at each stage.
    demonstration
        The name of the one demonstration to read, of several.
    availability
        In which rounds arms could be pulled, if not in all, as for `estimate`. Rules that no posterior reads then are
        left out, with a note: those that eliminate arms, that explore first and then commit, or that decide in batches.

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
    record = as_log(one_demonstration(log, demonstration, "identify"), "identify")
    if not record.ordered:
        raise NotIdentifiable("The log holds pull counts without their order, and only the order shows the rule.")
    check_numbers(None, None, 0.95, sigma, bernoulli, "known", None)
    checks.function("progress", progress)
    noise, warnings = assumed_noise(sigma, bernoulli)
    warnings = [*misread(record), *warnings]
    check_rewards(record, noise)
    told = None if availability is None else told_availability(record, availability)
    request = IdentificationRequest(
        log=record,
        horizons=tuple(horizons(horizon, record).tolist()),
        prior=settled_prior(prior, noise, None),
        noise=noise,
        particles=None if particles is None else checks.whole("particles", particles),
        seed=checks.seed(seed),
        threads=None if threads is None else checks.threads(threads),
        there=None if told is None else told.within(int(record.lengths.max())),
    )
    considered, notes = candidates_for(candidates, noise, record, lines=True, there=request.there)
    notes = [*notes, *(appeared_late(record) if told is None else said_of_filtered(record, told))]
    if request.there is not None:
        considered, left_out = _readable(considered)
        notes = [*left_out, *notes]
    if progress is not None:
        progress("Identifying the rule")
    with explaining_refusals(record):
        answer = interruptible(_answer, replace(request, alone=len(considered) == 1), considered, warnings, notes)
    for notice in answer.warnings:
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)
    return answer


def _readable(candidates: Sequence[Candidate]) -> tuple[tuple[Candidate, ...], list[Notice]]:
    """Leave out rules that no filter reads where arms arrive late or are withdrawn; refuse if none is left."""
    kept, refused = list[Candidate](), dict[str, NotIdentifiable]()
    for candidate in candidates:
        found, out = list[tuple[Demonstrator, float]](), dict[str, NotIdentifiable]()
        for rule, weight in candidate.guesses:
            try:
                check_filtered(rule)
                found.append((rule, weight))
            except NotIdentifiable as refusal:
                out[short_numbers(str(rule))] = refusal
        if found:
            kept.append(replace(candidate, guesses=tuple(found)))
        refused |= out if found else dict(zip([candidate.name], out.values(), strict=False))
    if not kept:
        raise next(iter(refused.values()))
    if not refused:
        return tuple(kept), []
    which = "is" if len(refused) == 1 else "are"
    text = f"{joined(list(refused), 'and')} {which} left out: such rules cannot be compared where arms arrive late or "
    return tuple(kept), [Notice("candidate-left-out", f"{text}are withdrawn. The log may still be theirs.")]


def _answer(
    request: IdentificationRequest, candidates: Sequence[Candidate], warnings: list[Notice], notes: list[Notice]
) -> Identification:
    """Compare the candidates, check those that are left, decide, and average the values over them."""

    def reach(share: float) -> None:
        current_work().reach(round(WHOLE * COMPARED * share))

    with current_work().stage("Identifying the rule", WHOLE, in_parts=True):
        candidates, by_guess = successive_halving(request, candidates, reach)
        evidences = [averaged(candidate, guesses) for candidate, guesses in zip(candidates, by_guess, strict=True)]
        if all(each.value == -math.inf for each in evidences):
            reasons = [
                f"{one.name}: {(each.reason or '').rstrip('.')}"
                for one, each in zip(candidates, evidences, strict=True)
            ]
            shown = [each for each in notes if each.code == "appeared-late"] + signs(request.log, request.there)
            late = "".join(f" {notice.text}" for notice in shown)
            raise NotIdentifiable(
                f"None of {len(candidates)} candidates can have made this log. {'; '.join(reasons[:3])}.{late}",
                count=len(candidates),
                remedy=NEXT,
            )
        alike = one_number(request.log, candidates)
        first = decide(evidences, alike)
        contenders = {
            at: _contender(candidates[at], by_guess[at], evidences[at], first.probabilities[at]) for at in first.order
        }
        values: dict[int, RuleValues] = {}
        visited: list[int] = []
        decision = first
        while todo := _to_check(decision, visited):
            for at in todo:
                contenders[at] = _checked(request, contenders[at], values, at)
                visited.append(at)
                current_work().reach(round(WHOLE * (COMPARED + (1 - COMPARED) * min(len(visited) / len(todo), 1.0))))
            decision = _without_misfits(first, contenders, alike)
    return _decided(request, contenders, first, decision, values, warnings, notes)


def _to_check(decision: Decision, visited: Sequence[int]) -> list[int]:
    """Return the probable candidates not yet checked; a misfit makes others probable."""
    probable = [at for at in decision.contenders if decision.probabilities[at] >= SMALL and at not in visited]
    beyond = probable[:1] == [decision.order[0]] and len(visited) < 2 * MOST_CHECKED  # it may be named
    return probable[: max(MOST_CHECKED - len(visited), int(beyond))]


def _without_misfits(first: Decision, contenders: Mapping[int, Contender], alike: Collection[int]) -> Decision:
    """Decide among the candidates that a check did not exclude; as before if it excluded all that were possible."""
    out = {at for at, each in contenders.items() if each.check.verdict == "does not fit"}
    if not out or out.issuperset(first.contenders):
        return first
    nothing = LogEvidence.impossible("")
    return decide([nothing if at in out else contenders[at].evidence for at in range(len(contenders))], alike)


def _checked(
    request: IdentificationRequest, candidate: Contender, values: dict[int, RuleValues], at: int
) -> Contender:  # fmt: skip
    """Check a candidate, at the values that it gives the arms; of several demonstrations each has its own."""
    if len(request.log) == 1:
        values[at] = values_under(request, 0, candidate)
    check, rule = checked_rule(request, candidate, values.get(at))
    if check.verdict == "does not fit" and len(candidate.guesses) > 1:
        said = f"With its most probable parameters, {short_numbers(str(rule))}: {check.reason}"
        check = replace(check, reason=said)
    return replace(candidate, check=check)


def _decided(
    request: IdentificationRequest, contenders: dict[int, Contender], first: Decision, decision: Decision,
    values: dict[int, RuleValues], warnings: list[Notice], notes: list[Notice],
) -> Identification:  # fmt: skip
    """Decide among the candidates that fit, and average the values over them."""
    out = [at for at in first.contenders if contenders[at].check.verdict == "does not fit"]
    fitting = [at for at in first.contenders if at not in out]
    if decision is not first:
        contenders = {
            at: replace(contenders[at], probability=decision.probabilities[at]) for at in decision.order
        }  # fmt: skip
    left = [at for at in (decision.contenders if fitting else first.contenders) if not fitting or at in fitting]
    mixed = [(contenders[at], values[at]) for at in left if fitting and at in values]
    possible = [at for at in left if at == left[0] or contenders[at].probability >= SMALL]
    names = [contenders[at].name for at in possible] if fitting else []
    if decision.clear:
        left = left[:1]
    elif len(possible) > 1 and not decision.alike:
        left = possible
    verdict: Verdict = "identified" if decision.clear else "cannot tell"
    shown = signs(request.log, request.there)
    habits = [each for each in shown if each.code == "shows-habit"]
    if fitting and isinstance(contenders[left[0]].guesses[0].rule, RandomisedRule):
        own = f"{contenders[left[0]].name} is not excluded, and would do so because of rewards. If people chose by "
        own += "habit, its values say nothing about the arms."
        notes += [replace(each, text=f"{each.text} {own}") for each in habits]
    if fitting and request.there is None:  # a greedy rule may explain rows that somebody sorted
        warnings += sorted_rows(request.log)
    if not fitting:
        verdict = "none fits"
        warnings.append(Notice("does-not-reproduce", _none_fits(contenders[first.order[0]], habit=bool(habits))))
        notes = [*notes, *shown]
    elif len(contenders) == 1 and contenders[left[0]].check.verdict == "fits":
        verdict = "fits"
    elif contenders[left[0]].check.verdict != "fits":
        verdict = "cannot tell"
        reason = contenders[left[0]].check.reason or ""
        text = f"It was not checked whether the log looks like one that {contenders[left[0]].name} made. {reason}"
        notes = [*notes, Notice("not-checked", text.strip())]
    ordered = tuple(contenders[at] for at in decision.order)
    sigma_given = not any(each.code == "sigma-assumed" for each in warnings)
    for notice in opening_alone(request, ordered, sigma_given=sigma_given) if verdict != "none fits" else ():
        late = [each for each in notes if each.code == "appeared-late"]
        if late:  # more than a remark: it decides which rules are left
            notes = [each for each in notes if each not in late]
            warnings += [replace(each, text=f"{each.text} {DECIDED_BY_OPENING}") for each in late]
        (warnings if notice.code == "opening-decides" else notes).append(notice)
    notes = [*notes, *_conventions(ordered), *_imprecise(decision, contenders)]
    notes += _collapsed(ordered) + _as_normal(ordered)
    notes += [notice for at in left for notice in _twins(request, contenders[at])]
    notes += imprecise_values(mixed)
    averaged_values = mixed_values(request, mixed) if mixed else None
    silent = [each.name for each, own in mixed if own.posterior is None]
    if silent and len(arms_from_prior(request, averaged_values)) == len(request.log.arms):
        averaged_values = None
        text = f"The log says next to nothing about what the arms were worth: {silent[0]} may have made it, "
        notes.append(Notice("no-values", f"{text}whose choices do not depend on rewards."))
    elif mixed:
        disagreement = said_of_values(request, mixed)
        warnings += [notice for notice in disagreement if notice.code == "rules-disagree"]
        notes += [notice for notice in disagreement if notice.code != "rules-disagree"]
        notes += gaps_from_prior(request, averaged_values)
    elif len(request.log) > 1 and verdict != "none fits":
        one = option("demonstration", request.log.demonstrations[0])
        text = f"Each {request.log.noun} has its own values. Ask for those of one, as in {one}."
        notes.append(Notice("values-by-demonstration", text))
    return Identification(
        verdict=verdict,
        candidates=ordered,
        assured=decision.assured,
        left=tuple(contenders[at].name for at in left),
        averaged=tuple(each.name for each, _ in mixed) or tuple(names[:MOST_CHECKED]),
        surprises=tuple(_surprises(request.log, surprise_of(request, ordered[0].guesses[0]))),
        question=request,
        values=averaged_values,
        best_by_rule={each.name: request.log.arms[own.best] for each, own in mixed if own.best is not None},
        warnings=tuple(warnings),
        notes=tuple(notes),
    )


def _none_fits(leading: Contender, *, habit: bool) -> str:
    """Say that not even the most probable candidate fits, and what to do next; a `habit` is no choice at random."""
    left_out = (leading.name, RANDOM) if habit else (leading.name,)
    instead = [short_name(each) for each in leading.check.instead[:3] if each.partition(":")[0] not in left_out]
    probable = f" More probable: {'; '.join(instead)}." if instead else ""
    return (
        f"Even {leading.name}, the most probable candidate, does not make such logs ({leading.check.chance}). "
        f"{leading.check.reason}{probable} So no values are given: they would hold only if the rule were right. {NEXT}"
    )


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
    return Contender(
        candidate.name, tuple(sorted(guesses, key=lambda guess: -guess.share)), evidence, probability,
        axis=candidate.axis, across=candidate.across, twins=candidate.twins, forms=candidate.forms,
    )  # fmt: skip


def _surprises(log: ActionLog, by_demonstration: Sequence[NDArray[np.float64]]) -> list[Surprise]:
    """Name the least probable rounds, over all demonstrations, of those that are less probable than most."""
    rows = []
    for which, values in enumerate(by_demonstration):
        usual = min(float(np.median(values)), 0.0) - ROUNDED
        for at in np.argsort(values, kind="stable")[:SURPRISES].tolist():
            arm = log.arms[int(log.demonstration(which)[at])]
            if values[at] < usual:
                rows.append(Surprise(at + 1, arm, float(values[at]), log.demonstrations[which]))
    return sorted(rows, key=lambda row: row.log_probability)[:SURPRISES]


def _imprecise(decision: Decision, contenders: Mapping[int, Contender]) -> list[Notice]:
    """Note why rules are left: the log has a single number, or more particles may change the verdict.

    They change nothing where a rule is compared as if rewards were normal (`_as_normal`).
    """
    if decision.alike:
        return [Notice("one-number", ONE_NUMBER)]
    if decision.clear or decision.at_best < SURE or any(contenders[at].normal for at in decision.contenders):
        return []
    text = f"The rules differ by less than the Monte-Carlo error. More {option('particles')} may distinguish them."
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


def _twins(request: IdentificationRequest, candidate: Contender) -> list[Notice]:
    """Note rules of other names that are this one with parameters that are still probable."""
    probable = [guess.rule for guess in candidate.guesses if guess.share >= SMALL]
    if candidate.axis is None or not probable:
        return []
    known = [getattr(rule, candidate.axis) for rule in probable]
    found = []
    for twin in candidate.twins:
        value = twin_value(twin, probable[0], candidate.axis, max(request.horizons), len(request.log.arms))
        if value is not None and min(known) / STEP <= value <= max(known) * STEP:
            found.append(f"{candidate.name} with {candidate.axis} = {value:.3g} is {short_numbers(str(twin))}")
    if not found:
        return []
    text = f"{joined(found, 'and')}: the same rule by another name, compared in the row of {candidate.name}."
    return [Notice("same-rule", text)]


def _as_normal(contenders: Sequence[Contender]) -> list[Notice]:
    """Note candidates that were compared as if rewards of 0 and 1 were normal."""
    found = [each for each in contenders if each.normal and each.probability >= SMALL]
    if not found:
        return []
    names = joined([each.name for each in found], "and")
    varied = [_varied(each) for each in found]
    axes = joined(list(dict.fromkeys(name for names in varied for name in names)) or ["its parameters"], "or")
    example = option("candidates", f"{found[0].guesses[0].rule.name}:{(varied[0] or ['...'])[0]}=...")
    text = (
        f"No rewards of 0 and 1 explain the log under {names} with the values of {axes} that were tried. Such rewards "
    )
    text += "show these numbers to many digits, so the log may still be theirs: they are compared as if rewards were "
    text += f"normal, with a standard deviation of {ROUGHLY.sigma}. If you know the number, give it, as in {example}."
    return [Notice("as-normal", text)]


def _varied(candidate: Contender) -> list[str]:
    """Return the parameter with a line of values, or those by which somebody's own guesses differ."""
    if candidate.axis is not None:
        return [candidate.axis]
    first, kinds = candidate.guesses[0].rule, {type(guess.rule) for guess in candidate.guesses}
    names = type(first).model_fields if len(kinds) == 1 else ()
    return [name for name in names if any(getattr(g.rule, name) != getattr(first, name) for g in candidate.guesses)]


def _collapsed(contenders: Sequence[Contender]) -> list[Notice]:
    """Note candidates that are excluded only because no particle explained the record."""
    excluded = [each for each in contenders if each.evidence.collapsed]
    if not excluded:
        return []
    names = ", ".join(each.name for each in excluded)
    text = f"No particle explained the log under {names}; with more particles one might, if the rule made it."
    return [Notice("emptied", text, round=excluded[0].evidence.round)]
