"""Which of an answer's numbers to show: means, gaps or ratios. Pictures, tables and reports all ask here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from unbandit.result import Columns, Estimate

__all__ = ["Quantity", "shown_quantity"]

Quantity = Literal["mean", "gap", "ratio"]


def shown_quantity(estimate: Estimate | Columns) -> Quantity:
    """Return what an answer is shown in: means if any arm but the best has one (or a bound), else gaps, else ratios.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("ABABAA")
    >>> shown_quantity(ub.estimate(log, "ucb", sigma=1.0))
    'gap'
    >>> shown_quantity(ub.estimate(log, "ucb", sigma=1.0, best_mean=1.0))
    'mean'
    """
    columns: Any = getattr(estimate, "columns", estimate)
    others = columns.verdict != 0
    names: tuple[Quantity, ...] = ("mean", "gap", "ratio")
    for name in names:
        numbers = (getattr(columns, name + end, None) for end in ("", "_low", "_high"))
        if any(np.isfinite(each[others]).any() for each in numbers if each is not None):
            return name
    return "mean" if np.isfinite(columns.mean).any() else "gap"
