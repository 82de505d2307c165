"""Which of an answer's numbers to show first: means, gaps or ratios."""

from __future__ import annotations

from typing import Literal

import numpy as np

from unbandit.result import BEST, ArmEstimate, Estimate

__all__ = ["Quantity", "ends", "point", "quantity"]

Quantity = Literal["mean", "gap", "ratio"]

BELIEVED = frozenset({"level-from-prior", "values-from-prior"})
"""Notes that say the level of the means is not the record's: then the gaps come first."""


def quantity(answer: Estimate) -> Quantity:
    """Choose means where the record tells them, else gaps, else ratios.

    Examples
    --------
    >>> import unbandit
    >>> log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> quantity(unbandit.estimate(log, "ucb", sigma=1.0)), quantity(unbandit.estimate(log, "ucb", scale="unknown"))
    ('gap', 'ratio')
    """
    columns, others = answer.columns, answer.columns.verdict != BEST
    if not np.isnan(columns.mean[others]).all() and not any(note.code in BELIEVED for note in answer.notes):
        return "mean"
    has_gaps = any(not np.isnan(each[others]).all() for each in (columns.gap, columns.gap_low, columns.gap_high))
    return "ratio" if not has_gaps and not np.isnan(columns.ratio[others]).all() else "gap"


def point(row: ArmEstimate, shown: Quantity) -> float | None:
    """Return an arm's value, if it has one."""
    value: float | None = getattr(row, shown)
    return value


def ends(row: ArmEstimate, shown: Quantity) -> tuple[float | None, float | None]:
    """Return the ends of an arm's interval, as far as they are known; ratios have none."""
    if shown == "ratio":
        return None, None
    return (row.mean_low, row.mean_high) if shown == "mean" else (row.gap_low, row.gap_high)
