"""Answers under a rule whose numbers are fitted from the log: averaged over what the log leaves possible of them.

The numbers are fitted once (`inference.parameters`). The answer is that of the rule at their medians, with the
intervals of a mixture: the same is estimated under equally likely values of the numbers, and every interval is that of
all of these together. It is the same for closed forms, whose intervals are mixed, and for posteriors, whose draws are:
these take longer, so there are draws under a few values only, which are moved to all others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import AssumptionWarning, NotIdentifiable, ParameterError, option
from unbandit.estimators.arguments import (
    as_log,
    as_record,
    check_numbers,
    horizons,
    is_thinned,
    known_means,
    reward_noise,
)
from unbandit.estimators.check import unless_fitted
from unbandit.estimators.diagnostics import explaining_refusals
from unbandit.estimators.posterior import best_notice, posterior_row, settled_prior
from unbandit.fit import fitted_notice
from unbandit.inference import Posterior
from unbandit.inference.draws import draws_between, with_best
from unbandit.inference.parameters import ParameterPosterior, fit_family
from unbandit.instance import Bernoulli
from unbandit.log import ActionLog
from unbandit.progress import interruptible
from unbandit.result import Columns, Estimate, marked

Numbers = NDArray[np.float64]
Options = dict[str, Any]  # of `estimate`, or of `posterior`

MIXED, MIXED_DRAWN = 41, 3  # values of the rule's numbers at which intervals, and draws, are made
SPREAD = 199  # quantiles of one interval that stand for its distribution
POSTERIOR_OPTIONS = ("prior", "sigma", "bernoulli", "best_mean", "anchor", "horizon", "pool", "particles")


def fitted_to_log(log: Any, family: RuleFamily, options: Options) -> tuple[ActionLog, ParameterPosterior]:
    """Fit a rule's free numbers; return the log in memory, and what is known of the numbers."""
    if options.get("scale", "known") != "known":
        raise ParameterError(
            f"expected without {option('scale', 'unknown')} where a number is fitted; got {family}.", parameter="scale"
        )
    if options.get("method") == "bootstrap":
        raise ParameterError(
            f"bootstrap plays the rule at one value of {family.title}; use another, or give a value.",
            parameter="method",
        )
    if options.get("starting_pulls") is not None:
        raise NotIdentifiable(
            f"{family}: the log begins in mid-run, and the rewards that decided its first rows are hidden.",
            remedy=f"Give {family.title} a value, or the whole run.",
        )
    given = as_record(log, scan=False)
    if options.get("kept") is not None or is_thinned(given):
        raise NotIdentifiable(
            f"{family}: rounds are missing, and which arms they pulled decided the others.",
            remedy=f"Give {family.title} a value, or the whole run.",
        )
    if options.get("availability") is not None:
        raise NotIdentifiable(
            f"{family}: no number of a rule is fitted where arms arrive late or are withdrawn.",
            remedy=f"Give {family.title} a value, or ask `identify` with {option('candidates', family.kind.name)}: it "
            "averages the values over what is not known of a rule.",
        )
    record = as_log(given, f"fitting {family.title}")
    if not record.ordered:
        raise NotIdentifiable(
            f"{family}: pull counts without their order do not show {family.title}.",
            remedy=f"Give {family.title} a value, or {option('scale', 'unknown')} for ratios.",
        )
    example, sigma, bernoulli = family.example, options.get("sigma"), options.get("bernoulli", False)
    level = checks.level(options.get("level", 0.95))
    check_numbers(options.get("best_mean"), options.get("anchor"), level, sigma, bernoulli, rule=example)
    if "sigma" in family.free and sigma is None and not bernoulli and not example.bernoulli_only:
        raise ParameterError(
            f"expected the standard deviation of a reward: {family} fits the one that the rule assumes, which may be "
            "another.",
            parameter="sigma",
        )
    noise, _ = reward_noise(example, sigma, bernoulli)
    means = known_means(options.get("best_mean"), options.get("anchor"), record.arms)
    prior = settled_prior(options.get("prior"), noise, means[0] if len(means) == 1 else None)
    rounds, seed = horizons(options.get("horizon"), record).tolist(), options.get("seed") or 0
    with explaining_refusals(record):
        threads = checks.threads(options.get("threads"))
        found = interruptible(fit_family, record, family, noise, prior, rounds, level=level, seed=seed, threads=threads)
        return record, found


def estimate_family(
    estimate: Callable[..., Estimate], posterior: Callable[..., Posterior], log: Any, family: RuleFamily,
    options: Options,
) -> Estimate:  # fmt: skip
    """Answer `estimate` under a rule whose numbers are fitted."""
    record, found = fitted_to_log(log, family, options)
    centre = estimate(record, found.rule, **options)
    said = unless_fitted(centre.notes, family.kind, found.fitted)
    notes = (*said, fitted_notice(found.fitted, centre.level, len(record)))
    if not found.varies:
        return replace(centre, notes=notes, fitted=found.fitted)
    if not centre.posteriors:
        quietly, rules = options | {"check": False}, found.rules(MIXED)
        by_rule = {str(rule): rule for rule in rules}
        found_by = {name: _quiet(estimate, record, rule, quietly).columns for name, rule in by_rule.items()}
        others = [found_by[str(rule)] for rule in rules]
        return replace(centre, columns=_mixed(centre, others), notes=notes, fitted=found.fitted)
    given = {name: options[name] for name in POSTERIOR_OPTIONS if name in options} | {"seed": centre.seed}
    parts = [record] if options.get("pool") else [record.select(which) for which in range(len(record))]
    posteriors = [
        mixed_posterior(posterior, part, each, found, given)
        for part, each in zip(parts, centre.posteriors, strict=True)
    ]
    rows = [posterior_row(each, centre.level) for each in posteriors]
    columns = replace(
        centre.columns,
        **{name: np.array([row[0][name] for row in rows]) for name in rows[0][0]},
        verdict=np.array([row[1] for row in rows]),
    )
    best = marked(np.array([row[2] for row in rows]), centre.arms)
    sure = (best_notice(each, centre.level) for each in posteriors)
    notes = tuple(
        replace(next(sure), demonstration=note.demonstration) if note.code == "probability-best" else note
        for note in notes
    )
    return replace(
        centre, columns=columns, best_by_demonstration=best, posteriors=tuple(posteriors), notes=notes,
        fitted=found.fitted,
    )  # fmt: skip


def posterior_family(
    posterior: Callable[..., Posterior], log: Any, family: RuleFamily, options: Options
) -> Posterior:  # fmt: skip
    """Answer `posterior` under a rule whose numbers are fitted."""
    record, found = fitted_to_log(log, family, options)
    centre = posterior(record, found.rule, **options)
    return mixed_posterior(posterior, record, centre, found, options)


def mixed_posterior(
    posterior: Callable[..., Posterior], record: ActionLog, centre: Posterior, found: ParameterPosterior,
    options: Options,
) -> Posterior:  # fmt: skip
    """Average over the rule's numbers: by draws at their medians and under some other values, moved to all others."""
    clouds, draws, arms = centre.means.shape
    if not found.varies:
        return replace(centre, fitted=found.fitted)
    single = options | {"clouds": 1, "draws": clouds * draws, "check": False}
    if len(found.settings) > 1:
        parts, shares = [found.under(each) for each in found.settings], [each.probability for each in found.settings]
        under = [centre, *(_quiet(posterior, record, each.rule, single) for each in parts[1:])]
        every = [mixed_posterior(posterior, record, *pair, options) for pair in zip(under, parts, strict=True)]
        which = np.random.default_rng([options.get("seed") or 0, 12]).choice(len(parts), (clouds, draws), p=shares)
        drawn = np.array([each.means.reshape(clouds, -1, arms)[:, :draws] for each in every])
        mixed = drawn[which, np.arange(clouds)[:, None], np.arange(draws)]
        return replace(centre, means=mixed, fitted=found.fitted)
    points, medians = found.points(MIXED_DRAWN), found.medians
    nearest = int(np.square(points - medians).sum(axis=1).argmin())
    points[nearest] = medians
    means = [
        centre.means
        if at == nearest
        else _quiet(posterior, record, found.rule_at(point), single).means.reshape(clouds, draws, arms)
        for at, point in enumerate(points)
    ]
    seed, best_mean = options.get("seed") or 0, options.get("best_mean")
    generator = np.random.default_rng([seed, 6])
    bounded = isinstance(centre.noise, Bernoulli)
    at, everywhere = found.values(points), found.values(found.places)
    spread = draws_between(np.array(means), at, everywhere, found.weights, generator, bounded=bounded)
    if best_mean is not None:  # draws that were moved may no longer agree with it
        spread = with_best(spread, (int(centre.pulls.argmax()), float(best_mean)), centre.arms, seed)
    return replace(centre, means=spread, fitted=found.fitted)


def _quiet(answer: Callable[..., Any], record: ActionLog, rule: Demonstrator, options: Options) -> Any:
    """Answer under one of several values of the rule's numbers: warnings are those of the medians."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return answer(record, rule, **options)


def _mixed(centre: Estimate, others: Sequence[Columns]) -> Columns:
    """Return an answer's numbers with the intervals of a mixture of answers."""
    changed = {}
    for name in ("gap", "mean"):
        points, lows, highs = (
            np.array([getattr(each, f"{name}{end}") for each in others]) for end in ("", "_low", "_high")
        )
        ends = [
            mixed_interval(points[:, row], lows[:, row], highs[:, row], centre.level) for row in range(points.shape[1])
        ]
        low, high = (np.array([each[at] for each in ends]) for at in (0, 1))
        own_low, own_high = getattr(centre.columns, f"{name}_low"), getattr(centre.columns, f"{name}_high")
        changed[f"{name}_low"] = np.where(np.isnan(own_low), np.nan, low)
        changed[f"{name}_high"] = np.where(np.isnan(own_high), np.nan, high)
    return replace(centre.columns, **changed)


def mixed_interval(points: Numbers, lows: Numbers, highs: Numbers, level: float) -> tuple[Numbers, Numbers]:
    """Return the ends of the interval of a mixture of intervals, each (answers, arms), all equally likely.

    An interval stands for two halves of normal distributions around its point; where there is no point, its ends are
    all that is known.

    Examples
    --------
    >>> points = np.array([[0.0], [10.0]])
    >>> low, high = mixed_interval(points, points - 1.96, points + 1.96, 0.95)
    >>> low.round(1).tolist(), high.round(1).tolist()
    ([-1.6], [11.6])
    """
    tail = (1 - level) / 2
    normal = NormalDist()
    steps = np.array([normal.inv_cdf((at + 0.5) / SPREAD) for at in range(SPREAD)])[:, None, None]
    sides = np.where(steps < 0, points - lows, highs - points) / normal.inv_cdf(1 - tail)
    spread = points + steps * sides
    known = np.isfinite(spread).reshape(-1, points.shape[1]).mean(axis=0) > 0.5
    ends = []
    for own, share in ((lows, tail), (highs, 1 - tail)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where all are missing
            alone = np.nanquantile(own, share, axis=0)
            together = np.nanquantile(spread.reshape(-1, points.shape[1]), share, axis=0)
            least = np.where(np.nanmin(own, axis=0) >= 0, 0.0, -np.inf)  # as far as intervals end at 0
        ends.append(np.where(known, np.maximum(together, least), alone))
    return ends[0], ends[1]
