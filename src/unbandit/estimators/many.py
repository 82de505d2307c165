"""Read many demonstrations at once, from what their simulation counted: no logs, one row a demonstration."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from unbandit.demonstrators import AdditiveIndexRule, Demonstrator, EliminationRule, IndexRule
from unbandit.errors import NotIdentifiable
from unbandit.estimators import counts, switching
from unbandit.estimators.arguments import Method
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.naive import naive

__all__ = ["can_compare", "check_comparable", "compare_many"]


def can_compare(rule: Demonstrator, method: Method) -> bool:
    """Return whether a method can read demonstrations of a rule: the naive one needs no width.

    Examples
    --------
    >>> from unbandit import SAE
    >>> can_compare(SAE(), "counts")
    True
    """
    return isinstance(rule, EliminationRule | (IndexRule if method == "naive" else AdditiveIndexRule))


def check_comparable(rule: Demonstrator, method: Method) -> None:
    """Refuse a rule that a method cannot read."""
    if not can_compare(rule, method):
        kinds = "index rules" if method == "naive" else "additive index rules"
        raise NotIdentifiable(f"{rule.name}: this rule has no {method} estimator; {kinds} and elimination rules have.")


def compare_many(evidence: Any, rule: Demonstrator, method: Method, horizon: int, constant: float) -> Comparison:
    """Return what the demonstrations behind `rule.evidence(...)` say about every arm's gap.

    The same numbers as `estimate` gives for their logs, without its warnings.

    Parameters
    ----------
    evidence
        What the rule's kind gives: `SwitchingCounts` or `Eliminations`.
    constant
        Of the naive estimator.
    """
    check_comparable(rule, method)
    if method == "naive":
        return naive(evidence.pulls, horizon, constant)
    if isinstance(rule, EliminationRule):
        width = partial(rule.width, horizon=horizon)
        if method == "counts":
            return counts.elimination_counts(evidence.pulls, width)
        return switching.eliminated_and_active(evidence.pulls, (evidence.pulls > 0) & evidence.gone, width)
    assert isinstance(rule, AdditiveIndexRule)
    width = partial(rule.width, horizon=horizon)
    if method == "counts":
        return counts.index_counts(evidence.pulls, width)
    once = np.ones_like(evidence.pulls)  # an arm that the rule never reconsidered has had its first pull alone
    return switching.index_comparison(evidence.pulls, evidence.own, evidence.of_best, once, width)
