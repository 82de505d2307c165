"""One way in: `estimate(log, rule)`."""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import in_threads, threads
from unbandit.demonstrators import Demonstrator, RandomisedRule, parse_rule
from unbandit.demonstrators.base import RegretWidth
from unbandit.errors import AssumptionWarning, Notice, NotIdentifiable, ParameterError
from unbandit.estimators.diagnostics import Diagnosis, PlacedNotices, notices_of
from unbandit.estimators.intervals import intervals, ratios
from unbandit.estimators.procedures import Comparison, Method, compare
from unbandit.estimators.request import (
    Answer,
    Request,
    arm_position,
    as_log,
    as_record,
    check_choices,
    check_numbers,
    closed_form,
    draws,
    horizons,
    known_mean,
    reward_noise,
    usable_method,
    usual_sigma,
)
from unbandit.instance import Gaussian
from unbandit.log import ActionLog
from unbandit.log.tallies import Record
from unbandit.result import BEST, Estimate, integers, marked

if TYPE_CHECKING:
    from unbandit.inference import Prior

Numbers = NDArray[np.float64]


def estimate(
    log: ActionLog | str | os.PathLike[str] | Any,
    rule: Demonstrator | str,
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
) -> Estimate:
    """Estimate what every arm was worth from which arm was pulled.

    Parameters
    ----------
    log
        An `ActionLog`, the path of one, or anything that `ActionLog.from_actions` takes. Closed forms read any record
        that can be tallied (`unbandit.log.tallies.Record`).
    rule
        The demonstrator that made it, or its text such as ``"ucb:alpha=0.25"``.
    method
        `switching` (Procedures 1 and 2 and what follows their idea; the default where the order of rounds is known and
        the rule decides without chance), `posterior` (the default for randomised rules), `counts` (final pull counts
        alone), `naive`, or `bootstrap`: the points of the first that applies, with intervals from simulations at them.
    best_mean
        The best arm's mean, if it is known: gaps then become means.
    anchor
        Instead of it any one arm's mean: ``{"B": 0.4}``.
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
        Standard deviation of a reward, for the intervals; by default that of the rule, else 1 with a warning.
    bernoulli
        Rewards were 0 or 1; takes the place of sigma.
    constant
        Of the naive estimator; sqrt(2) sigma by default.
    pool
        Take all demonstrations as of one instance, and combine them into one answer; by default they stay apart.
    resamples, seed
        Of the bootstrap: how many simulations (1,000 by default; 100 where each takes a posterior). The seed is also
        that of the posterior (0).
    prior, particles
        Of the posterior: see `unbandit.posterior`.

    Returns
    -------
    Estimate

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
    assumed = parse_rule(rule) if isinstance(rule, str) else rule
    record: Record = as_log(log, f"method {method or 'posterior'}") if draws(method, assumed) else as_record(log)
    fitted = assumed.for_arms(len(record.arms))
    chosen = usable_method(method, record, fitted)
    check_numbers(best_mean, anchor, level, sigma, bernoulli, scale, constant, fitted)
    check_choices(chosen, scale, reference, constant, resamples, seed, pool, prior, particles)
    noise, warnings = reward_noise(fitted, sigma, bernoulli, scale)
    notes = list(record.reading)
    if chosen != method and not record.ordered:
        notes.append(Notice("counts-only", "The record holds pull counts without their order: method counts is used."))
    if scale == "unknown":
        notes.append(Notice("scale-unknown", "The width's scale is taken as unknown: gaps are known up to one factor."))
    request = Request(
        log=record,
        rule=fitted,
        method=closed_form(chosen, record),
        horizons=horizons(horizon, record),
        noise=noise,
        anchor=known_mean(best_mean, anchor, record.arms),
        level=level,
        constant=constant if constant is not None else float(np.sqrt(2) * usual_sigma(noise)),
        scale=scale,
        reference=None if reference is None else arm_position("reference", reference, record.arms),
    )
    drawn = (0 if seed is None else seed) if chosen in ("bootstrap", "posterior") else None
    if drawn is None:
        answer = estimate_together(request) if pool else estimate_each(request)
    else:
        answer = _drawn(request, chosen, prior, particles, resamples, drawn, pool)
    warnings += answer.warnings
    for notice in warnings:
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)
    return Estimate(
        rule=str(assumed),
        method=chosen,
        arms=record.arms,
        demonstrations=answer.demonstrations,
        columns=answer.columns,
        horizons=integers(request.horizons),
        level=level,
        sigma=noise.sigma if scale == "known" and isinstance(noise, Gaussian) else None,
        warnings=tuple(warnings),
        notes=tuple(notes + answer.notes),
        seed=drawn,
        best_by_demonstration=marked(answer.best, record.arms),
        posteriors=tuple(answer.posteriors),
    )


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


def sensitivity(log: ActionLog | Any, rule: Demonstrator | str, **options: Any) -> dict[str, Estimate]:
    """Estimate again with alpha (unless it is 0), and the width's scale, 20% lower and higher than assumed.

    Examples
    --------
    >>> from unbandit import UCB, Instance
    >>> log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5]), 1_000, seed=1)
    >>> list(sensitivity(log, "ucb:alpha=0.25", sigma=1.0))
    ['alpha=0.2', 'alpha=0.3', 'scale=1.131', 'scale=1.697']
    """
    assumed = parse_rule(rule) if isinstance(rule, str) else rule
    if not isinstance(assumed, RegretWidth):
        raise ParameterError(f"expected a rule with alpha and scale; got {assumed}.", parameter="sensitivity")
    record, answers = as_record(log), {}
    scale = "sigma" if assumed.sigma is not None else "scale"
    # the noise stays what it was, also where the rule's own sigma is varied
    if options.get("sigma") is None and not options.get("bernoulli"):
        options["sigma"] = assumed.sigma
    varied = [("alpha", assumed.alpha)] * (assumed.alpha > 0) + [(scale, getattr(assumed, scale))]
    for name, value in varied:  # 20% of an alpha of 0 is nothing
        for share in (0.8, 1.2):
            changed = assumed.model_copy(update={name: min(value * share, 0.999) if name == "alpha" else value * share})
            label = f"{name}={getattr(changed, name):.4g}"
            with python_warnings.catch_warnings():
                python_warnings.simplefilter("ignore", AssumptionWarning)
                answers[label] = estimate(record, changed, **options)
    return answers


def estimate_each(request: Request) -> Answer:
    """Read every demonstration by itself, by a closed form."""
    answer, diagnosis = Answer(request.log.demonstrations, request.tallies.pulls), Diagnosis(request)
    units = np.full(len(request.log), -1)
    if request.scale == "unknown":
        answer.make_room("gap", "ratio")
    else:
        answer.make_room("gap", "gap_low", "gap_high", *(("mean", "mean_low", "mean_high") if request.anchor else ()))

    def read(start: int, stop: int) -> None:
        comparison, rows = compare(*request.part(start, stop), at_the_end=True), slice(start, stop)
        diagnosis.look(start, stop, comparison)
        if request.scale == "unknown":
            numbers, units[rows] = _in_ratios(request, comparison)
        else:
            numbers = _with_intervals(request, comparison)
        answer.put(rows, numbers, comparison.verdict, comparison.best)

    in_threads(read, diagnosis.blocks, threads())
    diagnosis.report(answer, _references(request, answer, units) if request.scale == "unknown" else [])
    _report_lost(request, answer, units)
    return answer


def estimate_together(request: Request) -> Answer:
    """Combine all demonstrations, of one instance, into one answer."""
    from unbandit.estimators.pooling import pool

    several = len(request.log)
    if several < 2:
        raise ParameterError(
            f"expected two demonstrations of one instance or more; got {several}. Leave it out.", parameter="pool"
        )
    answer = Answer(("pooled",), request.tallies.pulls.sum(axis=0, keepdims=True))
    diagnosis = Diagnosis(request)

    def read(start: int, stop: int) -> Comparison:
        comparison = compare(*request.part(start, stop), at_the_end=True)
        diagnosis.look(start, stop, comparison)
        return comparison

    comparison = Comparison.joined(in_threads(read, diagnosis.blocks, threads()))
    diagnosis.report(answer)
    pooled = pool(comparison, request.noise, request.anchor, request.z, request.log.arms)
    answer.warnings += pooled.notices
    if 2 * diagnosis.count("few-pulls") > several:
        text = (
            "Most demonstrations turned from an arm after few pulls: that its gap is rather too small does not average "
            "out, and its pooled interval is likely too short."
        )
        answer.warnings.append(Notice("few-pulls-pooled", text))
    answer.notes.append(Notice("pooled", f"{several:,} demonstrations are taken as of one instance, and pooled."))
    numbers, units = pooled.numbers, np.array([-1])
    if request.method == "naive":  # it has no intervals
        numbers = {name: values for name, values in numbers.items() if name in ("gap", "mean")}
    if request.scale == "unknown":
        numbers, units = _in_ratios(request, pooled.as_comparison())
    answer.make_room(*numbers)
    answer.put(slice(0, 1), numbers, pooled.verdict, pooled.best)
    if request.scale == "unknown":
        answer.notes += [notice for _, notice in _references(request, answer, units)]
    _report_lost(request, answer, units)
    return answer


def _with_intervals(request: Request, comparison: Comparison) -> dict[str, Numbers]:
    """Return gaps and, where one mean is known, means, with their intervals."""
    found = intervals(comparison, request.noise, request.anchor, request.z)
    numbers = {"gap": comparison.gap, "gap_low": found.low, "gap_high": found.high}
    if request.anchor is not None:
        numbers |= {"mean": found.mean, "mean_low": found.mean_low, "mean_high": found.mean_high}
    return numbers


def _in_ratios(request: Request, comparison: Comparison) -> tuple[dict[str, Numbers], NDArray[np.int64]]:
    """Return gaps in units of one of them, where the width's scale is not known; and which arm's that is."""
    ratio, units = ratios(comparison, request.reference)
    gap = np.where(comparison.verdict == BEST, 0.0, np.nan)  # the one gap that no factor changes
    return {"gap": gap, "ratio": ratio}, units


def _references(request: Request, answer: Answer, units: NDArray[np.int64]) -> PlacedNotices:
    """Say what ratios are counted in, where they are."""

    def reference(which: int) -> Notice:
        arm = request.log.arms[units[which]]
        return Notice("reference", f'Ratios are counted in the gap of "{arm}".', arm=arm)

    counted = ~np.isnan(answer.numbers["ratio"]).all(axis=-1)
    return notices_of(np.flatnonzero(counted), answer.demonstrations, reference)


def _report_lost(request: Request, answer: Answer, units: NDArray[np.int64]) -> None:
    """Say where an anchor, or the arm that ratios are counted in, has no estimated gap, so that nothing follows."""
    arms, anchor = request.log.arms, request.anchor

    def no_anchor(which: int) -> Notice:
        assert anchor is not None
        assert anchor.arm is not None
        return Notice("no-anchor", f'The anchor "{arms[anchor.arm]}" has no estimated gap.')

    def no_ratio(which: int) -> Notice:
        missing = "No arm has an" if units[which] < 0 else f'"{arms[units[which]]}" has no'
        return Notice("no-ratio", f"{missing} estimated gap above 0 to count the others in.")

    if request.scale == "unknown":
        lost, notice_of = np.isnan(answer.numbers["ratio"]).all(axis=-1), no_ratio
    elif anchor is not None and anchor.arm is not None:
        lost, notice_of = np.isnan(answer.numbers["gap"][:, anchor.arm]), no_anchor
    else:
        return
    if lost.all():
        raise NotIdentifiable(f"{notice_of(0).message} So nothing else follows; choose an arm with verdict estimated.")
    answer.warnings += [notice for _, notice in notices_of(np.flatnonzero(lost), answer.demonstrations, notice_of)]
