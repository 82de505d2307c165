"""One way in: `estimate(log, rule)`, and `posterior(log, rule)` for draws instead of numbers."""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, RandomisedRule
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import HARMLESS, MISREAD, AssumptionWarning, Notice, NotIdentifiable, ParameterError, option
from unbandit.estimators.arguments import (
    DRAWING,
    as_log,
    asked_record,
    check_choices,
    check_hidden,
    check_numbers,
    check_pool,
    check_several,
    check_types,
    guessed_numbers,
    horizons,
    is_thinned,
    known_mean,
    known_means,
    meant_rule,
    one_demonstration,
    reward_noise,
    shows_part,
    told_availability,
    usable_method,
)
from unbandit.estimators.check import beside_doubts, checked, late_start, said_of, withdrawn_arms
from unbandit.estimators.diagnostics import (
    Diagnosis,
    PlacedNotices,
    explaining_refusals,
    impossible_values,
    misread,
    notices_of,
    say_open_best,
    sorted_rows,
)
from unbandit.estimators.procedures import Answer, Comparison, Method, Request, ratios
from unbandit.fit import with_sigma
from unbandit.formatting import counted, plural
from unbandit.instance import Gaussian
from unbandit.log import ActionLog
from unbandit.log.columns import noun_of
from unbandit.log.tallies import Record
from unbandit.result import BEST, Estimate, integers, marked

if TYPE_CHECKING:
    from unbandit.inference import Posterior, Prior
    from unbandit.log.availability import Availability, AvailabilityTable
    from unbandit.log.partial import StartingPulls

Numbers = NDArray[np.float64]


def estimate(
    log: ActionLog | str | os.PathLike[str] | Any,
    rule: Demonstrator | RuleFamily | str,
    *,
    method: Method | None = None,
    best_mean: float | None = None,
    anchor: Mapping[Any, float] | None = None,
    scale: Literal["known", "unknown"] = "known",
    reference: object = None,
    horizon: int | None = None,
    level: float = 0.95,
    sigma: float | None = None,
    bernoulli: bool = False,
    constant: float | None = None,
    pool: bool = False,
    resamples: int | None = None,
    seed: int | None = None,
    prior: Prior | str | None = None,
    particles: int | None = None,
    starting_pulls: StartingPulls | None = None,
    kept: float | None = None,
    availability: Availability | AvailabilityTable | None = None,
    check: bool | None = None,
    demonstration: object = None,
) -> Estimate:
    """Estimate the value of every arm from which arm was pulled.

    Parameters
    ----------
    log
        An `ActionLog`, the path of one, or anything that `ActionLog.from_actions` takes. Closed forms read any record
        that can be tallied (`unbandit.log.tallies.Record`).
    rule
        The demonstrator that made it, or its text such as ``"ucb:alpha=0.25"``. Numbers that are not known may be
        `FIT` (``"ucb:alpha=0.25,scale=fit"``): they are fitted from the log, and intervals allow for it.
    method
        `bracket` (both sides of the last hesitation between an arm and the best; the default where the order of rounds
        is known and the rule decides without chance), `switching` (the paper's Procedures 1 and 2, and what follows
        their idea; the default with `pool`), `posterior` (the default for randomised rules), `counts` (final pull
        counts alone), `naive`, or `bootstrap`: the points of the first that applies, with intervals from simulations
        at them.
    best_mean
        The best arm's mean, if it is known: gaps then become means.
    anchor
        Instead of it any one arm's mean: ``{"B": 0.4}``. With method `counts` also several, and the best arm's: all
        means then follow from the level that most of them agree on, and those that do not agree are named.
    scale
        `unknown` if the factor of the rule's width is not known: gaps are then known up to one common factor and given
        as ratios.
    reference
        The arm whose gap the ratios are counted in; by default the one whose gap is known best.
    horizon
        `T` of the demonstrator, if the log is only the beginning; by default the log's length.
    level
        Of the intervals, between 0 and 1.
    sigma
        Standard deviation of a reward, for the intervals and the points of a bracket; by default that of the rule. If
        neither is given, intervals assume 1, with a warning, and a bracket's points are halfway between its sides.
    bernoulli
        Whether rewards were 0 or 1; takes the place of sigma.
    constant
        Of the naive estimator; sqrt(2) sigma by default.
    pool
        Whether all demonstrations are of one instance, to be combined into one answer; by default they stay apart.
    resamples
        Simulations of the bootstrap: 1,000 by default; 100 where each takes a posterior.
    seed
        Of the bootstrap and of the posterior; 0 by default.
    prior, particles
        As for `posterior`, where the method draws from one.
    starting_pulls
        Pulls of every arm before the log begins, if it begins in mid-run: ``{"A": 300, "B": 200}``, or a table of
        counts, or its path. An arm that gave way to the best one only before that is bounded, not estimated.
    kept
        The probability with which every round got into the log, if some are missing at random. Without it, a log whose
        numbers show missing rounds gives brackets that take in every case.
    availability
        The rounds in which arms could be pulled, where they arrived late or were withdrawn: ``{"C": (1001, None),
        "B": (None, 3000)}``, or the path of a table with the columns arm, first and last; rounds are counted from 1.
        Every arm is then read while it was there, and its gap is to the best arm that was there in its last round.
    check
        Whether to compare the log with simulations of the rule, and with what other rules would make of it; by default
        yes, unless the environment variable UNBANDIT_CHECK is `off`. The answer's `check` says what was found.
    demonstration
        The name of the one demonstration to read, of several.

    Examples
    --------
    >>> from unbandit import UCB, Instance, estimate
    >>> instance = Instance([1.0, 0.5], noise=1.0)
    >>> rule = UCB(alpha=0.25)
    >>> log = rule.demonstrate(instance, horizon=5_000, seed=7)
    >>> result = estimate(log, rule, best_mean=1.0, sigma=1.0)
    >>> result.best
    ('0',)
    >>> result["1"].mean_low < 0.5 < result["1"].mean_high
    True
    """
    given = rule_or_family(rule)
    check_types(method, pool, check, seed)
    log = one_demonstration(log, demonstration, "estimate")
    if isinstance(given, RuleFamily):
        from unbandit.estimators.family import estimate_family

        options = {
            "method": method, "best_mean": best_mean, "anchor": anchor, "scale": scale, "reference": reference,
            "horizon": horizon, "level": level, "sigma": sigma, "bernoulli": bernoulli, "constant": constant,
            "pool": pool, "resamples": resamples, "seed": seed, "prior": prior, "particles": particles,
            "starting_pulls": starting_pulls, "kept": kept, "availability": availability, "check": check,
        }  # fmt: skip
        return estimate_family(estimate, posterior, log, given, options)
    assumed, meant = meant_rule(given, bernoulli, sigma)
    level = checks.level(level)
    record = asked_record(log, starting_pulls, kept, horizon, method, assumed, in_memory=availability is not None)
    fitted = assumed.for_arms(len(record.arms))
    chosen = usable_method(method, record, fitted, pool)
    check_hidden(record, chosen, pool, scale)
    there = None if availability is None else told_availability(record, availability)
    check_numbers(best_mean, anchor, level, sigma, bernoulli, scale, constant, fitted, chosen)
    check_choices(chosen, scale, reference, constant, resamples, seed, pool, prior, particles)
    if pool:
        check_pool(record)
    noise, warnings = reward_noise(fitted, sigma, bernoulli, scale)
    is_whole = record.ordered and not shows_part(record) and availability is None
    guessed = [] if chosen == "naive" else guessed_numbers(assumed, noise, can_fit=is_whole)
    notes = [*(record.said(bracketed=chosen != "posterior") if is_thinned(record) else record.reading), *meant]
    notes = [each for each in notes if each.code not in MISREAD]
    if chosen != method and not record.ordered:
        notes.append(Notice("counts-only", "The log has pull counts without their order, so method counts is used."))
    if scale == "unknown":
        notes.append(Notice("scale-unknown", "The width's scale is treated as unknown: gaps have one unknown factor."))
    closed_form: Method = "bracket" if record.ordered else "counts"
    known = known_means(best_mean, anchor, record.arms)
    if len(known) > 1:
        check_several(known, chosen, fitted, pool)
    request = _request_class(record)(
        log=record,
        rule=fitted,
        method=closed_form if chosen == "bootstrap" else chosen,
        horizons=horizons(horizon, record),
        noise=noise,
        anchor=known[0] if known else None,
        level=level,
        noise_known=scale == "known" and not warnings,
        constant=float(constant if constant is not None else np.sqrt(2) * noise.deviation),
        scale=scale,
        reference=None if reference is None else checks.position("reference", reference, record.arms),
        availability=there,
    )
    if there is not None:
        request = _read_while_there(request, chosen, pool)
    drawn = (0 if seed is None else seed) if chosen in DRAWING else None
    others: dict[str, Answer] = {}
    with explaining_refusals(record, fitted):
        even = _check_counts(request, pool) if not record.ordered and request.method in ("counts", "naive") else None
        if len(known) > 1:
            from unbandit.estimators.common_level import estimate_from_several

            answer, others = estimate_from_several(request, known)
        elif drawn is None:
            answer = _estimate_together(request) if pool else _estimate_each(request)
        else:
            answer = _drawn(request, chosen, prior, particles, resamples, drawn, pool)
    for each in (answer, *others.values()):
        if even is not None:
            _qualify_counts(request, each, even, len(known))
        each.warnings += impossible_values(fitted, noise, each.numbers, record.arms, each.demonstrations)
        if chosen != "posterior" and "gap_low" in each.numbers:
            say_open_best(each, record.arms)
    used = assumed.model_copy(update=answer.changed)
    tried = replace(request, rule=fitted.model_copy(update=answer.changed))
    found, drifts = checked(tried, check, answer.numbers, answer.posteriors, drawn or 0)
    misfits, said = said_of(found, used, drifts, record, can_fit=is_whole)
    warnings = with_sigma(warnings, [(used.name, found)])
    misfits += [] if there is not None else sorted_rows(record)
    misfits += misread(record, fitted)
    left = withdrawn_arms(tried, found, answer.posteriors, drawn or 0)
    warnings = [*misfits, *late_start(tried, found, answer.posteriors, drawn or 0), *left, *guessed, *warnings]
    for notice in warnings + answer.warnings:
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)

    def result(answer: Answer, alternatives: Mapping[str, Estimate]) -> Estimate:
        return Estimate(
            rule=str(used),
            method=chosen,
            arms=record.arms,
            demonstrations=answer.demonstrations,
            columns=answer.columns,
            horizons=integers(request.horizons),
            level=level,
            sigma=noise.sigma if scale == "known" and isinstance(noise, Gaussian) else None,
            warnings=tuple(warnings + answer.warnings),
            notes=tuple(notes + answer.notes + beside_doubts(said, warnings + answer.warnings)),
            seed=drawn,
            best_by_demonstration=marked(answer.best, record.arms),
            apart_by_demonstration=marked(answer.apart, record.arms) if answer.apart.any() else (),
            posteriors=tuple(answer.posteriors),
            alternatives=alternatives,
            check=found,
        )

    return result(answer, {label: result(other, {}) for label, other in others.items()})


def _request_class(record: Record) -> type[Request]:
    """Return the class of a request: of a log that misses rounds another one reads the counts."""
    if not is_thinned(record):
        return Request
    from unbandit.estimators.hidden_rounds import HiddenRequest  # most logs are whole

    return HiddenRequest


def _drawn(
    request: Request, method: Method, prior: Prior | str | None, particles: int | None, resamples: int | None,
    seed: int, pool: bool,
) -> Answer:  # fmt: skip
    """Answer by a method that draws random numbers."""
    from unbandit.estimators.bootstrap import bootstrapped
    from unbandit.estimators.posterior import bootstrapped_posterior, inferred, settled_prior

    believed = settled_prior(prior, request.noise, request.anchor)
    if method == "posterior":
        return inferred(request, believed, particles, seed, pool)
    if isinstance(request.rule, RandomisedRule):
        return bootstrapped_posterior(request, believed, particles, resamples or 100, seed)
    return bootstrapped(request, resamples or 1000, seed)


def posterior(
    log: ActionLog | str | os.PathLike[str] | Any,
    rule: Demonstrator | RuleFamily | str,
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
    starting_pulls: StartingPulls | None = None,
    kept: float | None = None,
    availability: Availability | AvailabilityTable | None = None,
    check: bool | None = None,
    demonstration: object = None,
) -> Posterior:
    """Draw from the posterior of every arm's mean, given which arm was pulled and such rewards as are known.

    Sequential Monte Carlo over the hidden sums of rewards; the means are integrated out.

    Parameters
    ----------
    log, rule, sigma, bernoulli, anchor, horizon
        As for `estimate`.
    best_mean
        As for `estimate`: taken as the mean of the most-pulled arm, and no other arm is better.
    prior
        On every mean: a `NormalPrior` or, for rewards of 0 and 1, a `BetaPrior`, or its text. By default normal around
        0 (or the mean that is known) with a deviation of twice sigma, but at least 1; or Beta(1, 1).
    pool
        Whether all demonstrations are of one instance; a log of several is refused without it, or `demonstration`.
    particles
        Particles of each cloud; by default 250 to 4,000, fewer for a longer record, and up to four times as many where
        the clouds disagree.
    clouds
        How many independent clouds of particles.
    draws
        How many draws of each cloud.
    threads
        By default one per core; the result does not depend on it.
    starting_pulls, kept, availability, check, demonstration
        As for `estimate`.

    Examples
    --------
    >>> import unbandit as ub
    >>> rule = ub.Thompson(sigma=0.5)
    >>> log = rule.demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), horizon=300, seed=1)
    >>> found = ub.posterior(log, rule, sigma=0.5, particles=200, seed=1)
    >>> found.means.shape, float(found.beats("0", "2")) > 0.9
    ((4, 1000, 3), True)
    """
    from unbandit.estimators.posterior import (
        from_the_prior,
        infer_hidden_request,
        infer_request,
        late_arms,
        settled_prior,
    )

    check_types("posterior", pool, check, seed)
    given = rule_or_family(rule)
    log = one_demonstration(log, demonstration, "posterior")
    if isinstance(given, RuleFamily):
        from unbandit.estimators.family import posterior_family

        options = {
            "prior": prior, "sigma": sigma, "bernoulli": bernoulli, "best_mean": best_mean, "anchor": anchor,
            "horizon": horizon, "pool": pool, "particles": particles, "clouds": clouds, "draws": draws, "seed": seed,
            "threads": threads, "starting_pulls": starting_pulls, "kept": kept, "availability": availability,
            "check": check,
        }  # fmt: skip
        return posterior_family(posterior, as_log(log, "posterior"), given, options)
    assumed, meant = meant_rule(given, bernoulli, sigma)
    record = asked_record(log, starting_pulls, kept, horizon, "posterior", assumed)
    fitted = assumed.for_arms(len(record.arms))
    check_hidden(record, "posterior", pool, "known")
    check_numbers(best_mean, anchor, sigma=sigma, bernoulli=bernoulli, rule=fitted)
    if pool:
        check_pool(record)
    elif len(record) > 1:
        text = f"the log has {counted(len(record), noun_of(record.demonstrations))}."
        remedy = (
            f"Give {option('pool', True)} if they are of one instance, or choose one of them, as in "
            f"{option('demonstration', record.demonstrations[0])}."
        )
        raise ParameterError(text, parameter="pool", count=len(record), remedy=remedy)
    noise, warnings = reward_noise(fitted, sigma, bernoulli)
    known = known_mean(best_mean, anchor, record.arms)
    there = None if availability is None else told_availability(record, availability)
    request = _request_class(record)(
        record, fitted, "posterior", horizons(horizon, record), noise, known, noise_known=not warnings,
        availability=there,
    )  # fmt: skip
    request = request if there is None else _read_while_there(request, "posterior", pool)
    believed = settled_prior(prior, noise, known)
    number = None if particles is None else checks.whole("particles", particles)
    work: dict[str, Any] = {
        "clouds": checks.whole("clouds", clouds), "draws": checks.whole("draws", draws), "threads": threads,
    }  # fmt: skip
    with explaining_refusals(record, fitted):
        if shows_part(record):
            found = infer_hidden_request(request, record, 0, believed, number, seed, **work)
        else:
            assert isinstance(record, ActionLog)
            found, _ = infer_request(request, record, request.horizons.tolist(), believed, number, seed, **work)
    numbers = {name: values[None] for name, values in found.moments().items()}
    warnings += [*found.warnings, *impossible_values(fitted, noise, numbers, record.arms, ("1",))]
    fit, drifts = checked(request, check, numbers, [found], seed, threads)
    misfits, _ = said_of(fit, fitted, drifts, record)
    warnings = with_sigma(warnings, [(fitted.name, fit)])
    misfits += [] if there is not None else sorted_rows(record)
    misfits += misread(record, fitted)
    guessed = guessed_numbers(assumed, noise, can_fit=not shows_part(record) and availability is None)
    left = [*late_start(request, fit, [found], seed), *withdrawn_arms(request, fit, [found], seed)]
    warnings = [*misfits, *left, *guessed, *late_arms(request), *warnings]
    for notice in (each for each in warnings if each.code not in HARMLESS):
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)
    return replace(found, warnings=(*warnings, *meant, *from_the_prior(request)), check=fit)


# Closed forms


def _check_counts(request: Request, pool: bool) -> NDArray[np.bool_]:
    """Refuse counts that show no sign of rewards; return which of several demonstrations show none."""
    from unbandit.estimators.allocation import refuse_even  # most logs have rounds

    return refuse_even(request, pool=pool)


def _qualify_counts(request: Request, answer: Answer, even: NDArray[np.bool_], known_means: int) -> None:
    """Leave out demonstrations whose counts show no sign of rewards, and say what counts cannot show."""
    from unbandit.estimators.allocation import counts_cannot_tell, leave_out_even

    if even.any():
        leave_out_even(request, answer, even)
    answer.notes.append(counts_cannot_tell(request, known_means))


def _estimate_each(request: Request) -> Answer:
    """Read every demonstration by itself."""
    with_means = ("mean", "mean_low", "mean_high") if request.anchor else ()
    quantities = ("gap", "ratio") if request.scale == "unknown" else ("gap", "gap_low", "gap_high", *with_means)
    answer = Answer(request.log.demonstrations, request.tallies.pulls, quantities)
    diagnosis, units = Diagnosis(request), np.full(len(request.log), -1)

    def put(rows: slice, comparison: Comparison) -> None:
        if request.scale == "unknown":
            numbers, units[rows] = _in_ratios(request, comparison)
        else:
            ends = request.intervals(comparison)
            numbers = {"gap": comparison.gap, "gap_low": ends.low, "gap_high": ends.high}
            if request.anchor is not None:
                numbers |= {"mean": ends.mean, "mean_low": ends.mean_low, "mean_high": ends.mean_high}
        answer.put(rows, numbers, comparison.verdict, comparison.best)

    diagnosis.read(put)
    diagnosis.report(answer, notes=_references(request, answer, units))
    _report_lost(request, answer, units)
    if request.availability is not None:
        _qualify_available(request, answer)
    return answer


def _read_while_there(request: Request, method: Method, pool: bool) -> Request:
    """Read every arm in the rounds in which it could be pulled, if by a closed form; refuse what is not read so."""
    from unbandit.estimators.availability import check_known_mean, check_readable, is_filtered, read_available

    check_readable(request.rule, method, pool)
    if is_filtered(request.rule, method):
        check_known_mean(request.anchor)
        return request
    assert isinstance(request.log, ActionLog)
    assert request.log.actions is not None
    assert request.availability is not None
    found = read_available(
        request.log.actions, request.log.offsets, request.availability, request.rule, request.method, request.horizons,
        request.anchor, request.known_noise,
    )  # fmt: skip
    return replace(request, available=found)


def _qualify_available(request: Request, answer: Answer) -> None:
    """Leave out means that do not follow where gaps are to different arms, and say what was taken for what."""
    from unbandit.estimators.availability import said_of_availability, without_other_levels

    assert request.availability is not None
    assert request.available is not None
    assert isinstance(request.log, ActionLog)
    if request.anchor is not None:
        without_other_levels(request.available, request.anchor, answer.numbers)
    warnings, notes, answer.apart = said_of_availability(request.available, request.log, request.availability)
    answer.warnings += warnings
    answer.notes += notes


def _estimate_together(request: Request) -> Answer:
    """Combine all demonstrations, of one instance, into one answer."""
    from unbandit.estimators.pool import pool

    diagnosis, several, noun = Diagnosis(request), len(request.log), noun_of(request.log.demonstrations)
    pooled = pool(request, Comparison.joined(diagnosis.read(lambda _, comparison: comparison)))
    numbers, units = pooled.numbers, np.array([-1])
    if request.method == "naive":  # it has no intervals
        numbers = {name: values for name, values in numbers.items() if name in ("gap", "mean")}
    if request.scale == "unknown":
        numbers, units = _in_ratios(request, pooled.as_comparison())
    answer = Answer(("pooled",), request.tallies.pulls.sum(axis=0, keepdims=True), tuple(numbers))
    answer.put(slice(0, 1), numbers, pooled.verdict, pooled.best)
    diagnosis.report(answer)
    answer.warnings += pooled.notices
    if 2 * diagnosis.count("few-pulls") > several:
        text = (
            f"Most {plural(noun)} turned from an arm after few pulls. Its gap is then somewhat too small. This does "
            "not average out, and its pooled interval is probably too short."
        )
        answer.warnings.append(Notice("few-pulls-pooled", text))
    text = f"{counted(several, noun)} are assumed to have the same arms and values, and are pooled."
    answer.notes.append(Notice("pooled", text))
    answer.notes += [notice for _, notice in _references(request, answer, units)]
    _report_lost(request, answer, units)
    return answer


def _in_ratios(request: Request, comparison: Comparison) -> tuple[dict[str, Numbers], NDArray[np.int64]]:
    """Return gaps in units of one of them, where the width's scale is not known; and which arm's that is."""
    ratio, units = ratios(comparison, request.reference)
    gap = np.where(comparison.verdict == BEST, 0.0, np.nan)  # the one gap that no factor changes
    return {"gap": gap, "ratio": ratio}, units


def _references(request: Request, answer: Answer, units: NDArray[np.int64]) -> PlacedNotices:
    """Say what ratios are counted in, where there are any."""
    if request.scale == "known":
        return []

    def reference(which: int) -> Notice:
        arm = request.log.arms[units[which]]
        return Notice("reference", f'Ratios are relative to the gap of "{arm}".', arm=arm)

    counted = ~np.isnan(answer.numbers["ratio"]).all(axis=-1)
    return notices_of(np.flatnonzero(counted), answer.demonstrations, reference)


def _report_lost(request: Request, answer: Answer, units: NDArray[np.int64]) -> None:
    """Say where an anchor, or the arm that ratios are counted in, has no estimated gap, so that nothing follows."""
    arms, anchor = request.log.arms, request.anchor

    def notice_of(which: int) -> Notice:
        if anchor is not None and anchor.arm is not None:
            return Notice("no-anchor", f'The anchor "{arms[anchor.arm]}" has no estimated gap.')
        missing = "No arm has an" if units[which] < 0 else f'"{arms[units[which]]}" has no'
        return Notice("no-ratio", f"{missing} estimated gap above 0 to count the others in.")

    if request.scale == "unknown":
        lost = np.isnan(answer.numbers["ratio"]).all(axis=-1)
    elif anchor is not None and anchor.arm is not None:
        lost = np.isnan(answer.numbers["gap"][:, anchor.arm])
    else:
        return
    if lost.all():
        raise NotIdentifiable(f"{notice_of(0).message} So nothing else follows; choose an arm with verdict estimated.")
    answer.warnings += [notice for _, notice in notices_of(np.flatnonzero(lost), answer.demonstrations, notice_of)]
