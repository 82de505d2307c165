"""Read one demonstration by a method, as the rule's kind asks for."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.demonstrators import AdditiveIndexRule, Demonstrator, EliminationRule
from unbandit.demonstrators.width import RegretWidth
from unbandit.errors import NotIdentifiable
from unbandit.estimators import checks, counts, switching
from unbandit.estimators.arguments import Method, position
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.naive import naive
from unbandit.log import ActionLog
from unbandit.result import ESTIMATED, Notice

__all__ = ["compare", "horizon_note", "ratios"]


def compare(
    log: ActionLog, which: int, rule: Demonstrator, method: Method, horizon: int, sigma: float, constant: float
) -> Comparison:
    """Return what demonstration `which` says about every arm's gap, with warnings where it does not fit the rule."""
    if method == "naive":
        return _most_pulled(log, which, naive(log.pulls[which], horizon, constant))
    if isinstance(rule, EliminationRule):
        return _eliminated(log, which, rule, method, horizon, sigma)
    if isinstance(rule, AdditiveIndexRule):
        pulls, width = log.pulls[which], partial(rule.width, horizon=horizon)
        if method == "counts":
            return _most_pulled(log, which, counts.index_counts(pulls, width))
        return _most_pulled(log, which, switching.procedure_2(log.demonstration(which), pulls, log.last[which], width))
    raise NotIdentifiable(
        f"{rule.name}: this rule has no {method} estimator; additive index rules and elimination rules have."
    )


def _most_pulled(log: ActionLog, which: int, result: Comparison) -> Comparison:
    """Add the warnings that concern any rule whose best arm is the most-pulled one."""
    pulls, last = log.pulls[which], None
    if log.ordered:
        result.warnings += checks.opening(_first_pulls(log, which), int(log.lengths[which]), log.arms)
        last = log.last[which]
    result.warnings += checks.tied_best(pulls, last, log.arms)
    return result


def _eliminated(
    log: ActionLog, which: int, rule: EliminationRule, method: Method, horizon: int, sigma: float
) -> Comparison:
    """Read one demonstration of an elimination rule."""
    pulls, width = log.pulls[which], partial(rule.width, horizon=horizon)
    passed = None
    if method == "switching":
        actions, first = log.demonstration(which), _first_pulls(log, which)
        result, broken, passed = switching.procedure_1(actions, pulls, first, width)
        result.warnings += checks.opening(first, actions.size, log.arms)
        if broken:
            result.warnings += checks.broken_order(broken, log.arms[int(actions[broken - 1])])
    else:
        result = counts.elimination_counts(pulls, width)
    result.warnings += checks.several_active(result.best, log.arms)
    result.warnings += checks.eliminated_among_many(result, pulls, passed, sigma, log.arms)
    return result


def _first_pulls(log: ActionLog, which: int) -> NDArray[np.int64]:
    """Return the round of each arm's first pull, 0 if there is none."""
    from unbandit.kernels.switching import first_pulls

    return first_pulls(log.demonstration(which), log.pulls[which])


def horizon_note(rule: Demonstrator, comparison: Comparison, horizon: int) -> list[Notice]:
    """Tell if the horizon is too short for Theorem 2, at the estimated gaps."""
    gaps = comparison.gap[(comparison.verdict == ESTIMATED) & (comparison.gap > 0)]
    if not isinstance(rule, RegretWidth) or gaps.size == 0:
        return []
    required = theory.horizon_required(gaps, horizon, rule.alpha, rule.factor)
    if horizon >= required:
        return []
    return [
        Notice(
            "short-horizon",
            f"The horizon {horizon:,} is below the {required:,.0f} rounds that the paper's Theorem 2 asks for at the "
            "estimated gaps: its error bound is not promised here. The intervals do not rest on it.",
        )
    ]


def ratios(comparison: Comparison, reference: object, arms: tuple[str, ...]) -> NDArray[np.float64]:
    """Count every gap in units of one arm's gap: a common factor falls out."""
    if reference is None:
        noise = 1 / comparison.own + 1 / comparison.other
        noise = np.where(np.isnan(noise), comparison.gap, noise)  # the naive estimator knows none: its smallest gap
        usable = np.where((comparison.verdict == ESTIMATED) & (comparison.gap > 0), noise, np.inf)
        at = int(usable.argmin())
        known = np.isfinite(usable[at])
    else:
        at = position("reference", reference, arms)
        known = comparison.verdict[at] == ESTIMATED and comparison.gap[at] > 0
    if not known:
        raise NotIdentifiable(
            "With an unknown scale the record tells gaps only as ratios to another arm's gap, and "
            + ("no arm has an estimated gap above 0." if reference is None else f'"{reference}" has none above 0.')
        )
    return np.asarray(comparison.gap / comparison.gap[at])
