"""Read one demonstration by a method, as the rule's kind asks for."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit import theory
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, SwitchingCounts
from unbandit.demonstrators.width import RegretWidth
from unbandit.estimators import checks, counts, switching
from unbandit.estimators.arguments import Method
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.equating import equation
from unbandit.estimators.intervals import Anchor
from unbandit.estimators.many import check_comparable
from unbandit.estimators.naive import naive
from unbandit.log.record import Record
from unbandit.result import ESTIMATED, Notice

__all__ = ["compare", "horizon_note", "ratios"]


def compare(
    log: Record, which: int, rule: Demonstrator, method: Method, horizon: int, sigma: float, constant: float,
    anchor: Anchor | None = None,
) -> Comparison:  # fmt: skip
    """Return what demonstration `which` says about every arm's gap, with warnings where it does not fit the rule."""
    check_comparable(rule, method)
    if method == "naive":
        return _most_pulled(log, which, naive(log.pulls[which], horizon, constant))
    if isinstance(rule, EliminationRule):
        return _eliminated(log, which, rule, method, horizon, sigma)
    assert isinstance(rule, IndexRule)
    pulls = log.pulls[which]
    set_up = partial(equation, rule, horizon, anchor)
    if method == "counts":
        result = counts.index_counts(pulls, set_up)
    else:
        found = log.tallied("switching")
        last = found.last[which]
        read = SwitchingCounts(pulls, *(array[which] for array in found.at_switching))
        result = switching.index_comparison(read, last < last[pulls.argmax()], set_up)
        at_the_end = counts.index_counts(pulls, set_up).below
        result.warnings += checks.not_reconsidered(result, at_the_end, last, sigma, log.arms)
    result.warnings += checks.near_best(result, sigma, log.arms)
    result.notes += checks.few_pulls(result, log.arms) + checks.coarse(result)
    return _most_pulled(log, which, result)


def _most_pulled(log: Record, which: int, result: Comparison) -> Comparison:
    """Add the warnings that concern any rule whose best arm is the most-pulled one."""
    pulls, last = log.pulls[which], None
    if log.ordered:
        found = log.tallied("counts")
        result.warnings += checks.opening(found.first[which], int(log.lengths[which]), log.arms)
        last = found.last[which]
    result.warnings += checks.tied_best(pulls, last, log.arms)
    return result


def _eliminated(
    log: Record, which: int, rule: EliminationRule, method: Method, horizon: int, sigma: float
) -> Comparison:
    """Read one demonstration of an elimination rule."""
    pulls, width = log.pulls[which], partial(rule.width, horizon=horizon)
    passed = None
    if method == "switching":
        found = log.tallied("epochs")
        passed, broken, broken_arm = (array[which] for array in found.turns)
        result = switching.eliminated_and_active(pulls, (pulls > 0) & (passed > 0), width, rule.tests)
        result.warnings += checks.opening(found.first[which], int(log.lengths[which]), log.arms)
        if broken:
            result.warnings += checks.broken_order(int(broken), log.arms[int(broken_arm)])
    else:
        result = counts.elimination_counts(pulls, width, rule.tests)
    result.notes += checks.coarse(result)
    result.warnings += checks.several_active(result.best, log.arms)
    result.warnings += checks.eliminated_among_many(result, pulls, passed, sigma, log.arms)
    return result


def horizon_note(rule: Demonstrator, comparison: Comparison, horizon: int) -> list[Notice]:
    """Tell if the horizon is too short for Theorem 2, at the estimated gaps."""
    gaps = comparison.gap[comparison.verdict == ESTIMATED]
    if not isinstance(rule, RegretWidth) or gaps.size == 0:
        return []
    asked = "An estimated gap is 0 or less, for which the paper's Theorem 2 would ask for an endless horizon"
    if (gaps > 0).all():
        required = theory.horizon_required(gaps, horizon, rule.alpha, rule.factor)
        if horizon >= required:
            return []
        asked = (
            f"The horizon {horizon:,} is below the {required:,.0f} rounds that the paper's Theorem 2 asks for at the "
            "estimated gaps"
        )
    promise = "its error bound is not promised here. The intervals do not rest on it."
    return [Notice("short-horizon", f"{asked}: {promise}")]


def ratios(comparison: Comparison, reference: int | None) -> tuple[NDArray[np.float64], int | None]:
    """Count every gap in units of one arm's gap: a common factor falls out.

    Returns the ratios, NaN where the reference arm has no estimated gap above 0, and the reference arm: the one given,
    or the one whose gap is known best.
    """
    usable = (comparison.verdict == ESTIMATED) & (comparison.gap > 0)
    if reference is None and usable.any():
        reference = int(np.where(usable, _uncertainty(comparison), np.inf).argmin())
    if reference is None or not usable[reference]:
        return np.full(comparison.gap.size, np.nan), reference
    return np.asarray(comparison.gap / comparison.gap[reference]), reference


def _uncertainty(comparison: Comparison) -> NDArray[np.float64]:
    """Return the variance of each gap in units of sigma squared; of naive gaps, which have none, a common one."""
    variance = 1 / comparison.own + 1 / comparison.other
    return np.where(np.isnan(variance), 1.0, variance)
