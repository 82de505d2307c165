"""Read many demonstrations at once, from what their simulation counted: no logs, one row a demonstration."""

from __future__ import annotations

from functools import partial
from typing import Any

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule
from unbandit.errors import NotIdentifiable
from unbandit.estimators import counts, switching
from unbandit.estimators.comparison import Method
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.equating import equation
from unbandit.estimators.comparison import Anchor
from unbandit.estimators.naive import naive
from unbandit.estimators.widths import Horizon, RuleWidth

__all__ = ["can_compare", "check_comparable", "compare_many"]


def can_compare(rule: Demonstrator, method: Method) -> bool:
    """Return whether a method can read demonstrations of a rule: the naive one needs pull counts alone.

    Examples
    --------
    >>> from unbandit import SAE, Uniform
    >>> can_compare(SAE(), "counts"), can_compare(Uniform(), "naive")
    (True, False)
    """
    return rule.reveals == "values" and (method == "naive" or isinstance(rule, EliminationRule | IndexRule))


def check_comparable(rule: Demonstrator, method: Method) -> None:
    """Refuse a rule that a method cannot read, and say why."""
    if can_compare(rule, method):
        return
    if rule.reveals == "nothing":
        raise NotIdentifiable(
            f"{rule.name}: the rule's choices do not depend on rewards, so they tell nothing of values."
        )
    if rule.reveals == "best":
        raise NotIdentifiable(
            f"{rule.name}: the rule's choices show which arm it judged best, and no values: every other arm is pulled "
            "the same number of times, whatever it is worth."
        )
    raise NotIdentifiable(
        f"{rule.name}: the rule draws its arms at random, so no round shows two arms of equal value as method "
        f"{method} needs. The posterior reads a record of it: method posterior, or the command posterior."
    )


def compare_many(
    evidence: Any, rule: Demonstrator, method: Method, horizon: Horizon, constant: float, anchor: Anchor | None = None
) -> Comparison:
    """Return what the demonstrations behind `rule.evidence(...)` say about every arm's gap.

    The same numbers as `estimate` gives for their logs, without its warnings.

    Parameters
    ----------
    evidence
        What the rule's kind gives: `SwitchingCounts` or `Eliminations`.
    constant
        Of the naive estimator.
    anchor
        The one mean that is known; rules whose index does not rise one for one with the mean need it.
    """
    check_comparable(rule, method)
    if method == "naive":
        return naive(evidence.pulls, horizon, constant)
    rule = rule.for_arms(evidence.pulls.shape[-1])
    if isinstance(rule, EliminationRule):
        width = RuleWidth(rule, horizon)
        if method == "counts":
            return counts.elimination_counts(evidence.pulls, width, rule.tests)
        return switching.eliminated_and_active(evidence.pulls, (evidence.pulls > 0) & evidence.gone, width, rule.tests)
    assert isinstance(rule, IndexRule)
    set_up = partial(equation, rule, horizon, anchor)
    if method == "counts":
        return counts.index_counts(evidence.pulls, set_up)
    return switching.index_comparison(evidence, False, set_up)
