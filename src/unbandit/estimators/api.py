"""One way in: `estimate(log, rule)`."""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import in_threads, threads
from unbandit.demonstrators import Demonstrator, RandomisedRule, parse_rule
from unbandit.demonstrators.width import RegretWidth
from unbandit.errors import AssumptionWarning, NotIdentifiable, ParameterError
from unbandit.estimators import intervals
from unbandit.estimators.bootstrap import bootstrapped
from unbandit.estimators.diagnostics import Said, Signs, told
from unbandit.estimators.pooling import pool
from unbandit.estimators.posterior import bootstrapped_posterior, inferred, settled_prior
from unbandit.estimators.procedures import Comparison, ratios
from unbandit.estimators.request import (
    Answer,
    Method,
    Request,
    as_log,
    as_record,
    check_choices,
    check_numbers,
    draws,
    horizons,
    known_mean,
    position,
    read_by,
    reward_noise,
    usable_method,
)
from unbandit.inference import Prior
from unbandit.log import ActionLog
from unbandit.log.tallies import Record
from unbandit.result import BEST, Estimate, Notice
from unbandit.sequences import integers, marked


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
    noise, found = reward_noise(fitted, sigma, bernoulli, scale)
    notes = list(record.reading)
    if chosen != method and not record.ordered:
        notes.append(Notice("counts-only", "The record holds pull counts without their order: method counts is used."))
    if scale == "unknown":
        notes.append(Notice("scale-unknown", "The width's scale is taken as unknown: gaps are known up to one factor."))
    usual = noise.sigma if noise.sigma is not None else 0.5
    asked = Request(
        log=record,
        rule=fitted,
        method=read_by(chosen, record),
        horizons=horizons(horizon, record),
        noise=noise,
        anchor=known_mean(best_mean, anchor, record.arms),
        level=level,
        constant=constant if constant is not None else float(np.sqrt(2) * usual),
        scale=scale,
        reference=None if reference is None else position("reference", reference, record.arms),
    )
    drawn = (0 if seed is None else seed) if chosen in ("bootstrap", "posterior") else None
    by_chance, believed = isinstance(fitted, RandomisedRule), settled_prior(prior, noise.sigma, asked.anchor)
    if chosen == "posterior":
        answer = inferred(asked, believed, particles, drawn or 0, pool)
    elif chosen == "bootstrap" and by_chance:
        answer = bootstrapped_posterior(asked, believed, particles, resamples or 100, drawn or 0)
    elif chosen == "bootstrap":
        answer = bootstrapped(asked, resamples or 1000, drawn or 0)
    else:
        answer = together(asked) if pool else apart(asked)
    found += answer.warnings
    for notice in found:
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)
    return Estimate(
        rule=str(assumed),
        method=chosen,
        arms=record.arms,
        demonstrations=answer.demonstrations,
        columns=answer.columns,
        horizons=integers(asked.horizons),
        level=level,
        sigma=noise.sigma if scale == "known" else None,
        warnings=tuple(found),
        notes=tuple(notes + answer.notes),
        seed=drawn,
        best_by_demonstration=marked(answer.best, record.arms),
        posteriors=tuple(answer.posteriors),
    )


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


Numbers = NDArray[np.float64]


def apart(asked: Request) -> Answer:
    """Read every demonstration by itself."""
    answer, signs = Answer(asked.log.demonstrations, asked.tallies.pulls), Signs(asked)
    units = np.full(len(asked.log), -1)
    if asked.scale == "unknown":
        answer.room("gap", "ratio")
    else:
        answer.room("gap", "gap_low", "gap_high", *(("mean", "mean_low", "mean_high") if asked.anchor else ()))

    def read(start: int, stop: int) -> None:
        comparison, here = signs.look(start, stop), slice(start, stop)
        if asked.scale == "unknown":
            row, units[here] = _in_ratios(asked, comparison)
        else:
            row = _numbers(asked, comparison)
        answer.put(here, row, comparison)

    in_threads(read, signs.blocks, threads())
    signs.tell(answer, _references(asked, answer, units) if asked.scale == "unknown" else [])
    _tell_lost(asked, answer, units)
    return answer


def together(asked: Request) -> Answer:
    """Combine all demonstrations, of one instance, into one answer."""
    several = len(asked.log)
    if several < 2:
        raise ParameterError(
            f"expected two demonstrations of one instance or more; got {several}. Leave it out.", parameter="pool"
        )
    signs = Signs(asked)
    answer = Answer(("pooled",), asked.tallies.pulls.sum(axis=0, keepdims=True))
    comparison = Comparison.joined(in_threads(signs.look, signs.blocks, threads()))
    signs.tell(answer)
    pooled = pool(comparison, asked.noise, asked.anchor, asked.z, asked.log.arms)
    answer.warnings += pooled.notices
    if 2 * signs.count("few-pulls") > several:
        said = (
            "Most demonstrations turned from an arm after few pulls: that its gap is rather too small does not average"
        )
        answer.warnings.append(Notice("few-pulls-pooled", f"{said} out, and its pooled interval is likely too short."))
    answer.notes.append(Notice("pooled", f"{several:,} demonstrations are taken as of one instance, and pooled."))
    row, units = pooled.numbers, np.array([-1])
    if asked.method == "naive":  # it has no intervals
        row = {name: values for name, values in row.items() if name in ("gap", "mean")}
    if asked.scale == "unknown":
        whole = Comparison.of_nothing((1, len(asked.log.arms)))
        whole.gap[0], whole.verdict[0] = row["gap"], pooled.verdict
        whole.own[0] = whole.other[0] = 2 / np.where(pooled.deviation > 0, pooled.deviation, np.nan) ** 2
        row, units = _in_ratios(asked, whole)
    answer.room(*row)
    answer.put(slice(0, 1), row, pooled)
    if asked.scale == "unknown":
        answer.notes += [notice for _, notice in _references(asked, answer, units)]
    _tell_lost(asked, answer, units)
    return answer


def _numbers(asked: Request, comparison: Comparison) -> dict[str, Numbers]:
    """Return gaps and, where one mean is known, means, with their intervals."""
    row = {"gap": comparison.gap}
    ends = intervals.ends(comparison, asked.noise, asked.anchor, asked.z)
    row["gap_low"], row["gap_high"] = ends
    if asked.anchor is not None:
        found = intervals.means(comparison, asked.noise, asked.anchor, asked.z, ends)
        row["mean"], row["mean_low"], row["mean_high"] = found
    return row


def _in_ratios(asked: Request, comparison: Comparison) -> tuple[dict[str, Numbers], NDArray[np.int64]]:
    """Give gaps in units of one of them, where the width's scale is not known; and which arm's that is."""
    ratio, units = ratios(comparison, asked.reference)
    gap = np.where(comparison.verdict == BEST, 0.0, np.nan)  # the one gap that no factor changes
    return {"gap": gap, "ratio": ratio}, units


def _references(asked: Request, answer: Answer, units: NDArray[np.int64]) -> Said:
    """Say what ratios are counted in, where they are."""

    def tell(which: int) -> Notice:
        arm = asked.log.arms[units[which]]
        return Notice("reference", f'Ratios are counted in the gap of "{arm}".', arm=arm)

    counted = ~np.isnan(answer.numbers["ratio"]).all(axis=-1)
    return told(np.flatnonzero(counted), answer.demonstrations, tell)


def _tell_lost(asked: Request, answer: Answer, units: NDArray[np.int64]) -> None:
    """Say where an anchor, or the arm that ratios are counted in, has no estimated gap, so that nothing follows."""
    arms, anchor = asked.log.arms, asked.anchor

    def no_anchor(which: int) -> Notice:
        assert anchor is not None
        assert anchor.arm is not None
        return Notice("no-anchor", f'The anchor "{arms[anchor.arm]}" has no estimated gap.')

    def no_ratio(which: int) -> Notice:
        missing = "No arm has an" if units[which] < 0 else f'"{arms[units[which]]}" has no'
        return Notice("no-ratio", f"{missing} estimated gap above 0 to count the others in.")

    if asked.scale == "unknown":
        lost, tell = np.isnan(answer.numbers["ratio"]).all(axis=-1), no_ratio
    elif anchor is not None and anchor.arm is not None:
        lost, tell = np.isnan(answer.numbers["gap"][:, anchor.arm]), no_anchor
    else:
        return
    if lost.all():
        raise NotIdentifiable(f"{tell(0).message} So nothing else follows; choose an arm with verdict estimated.")
    answer.warnings += [notice for _, notice in told(np.flatnonzero(lost), answer.demonstrations, tell)]
