"""Which of an answer's numbers to show first: means, gaps or ratios."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbandit.plots.quantity import Quantity, shown_quantity
from unbandit.result import ArmEstimate, Estimate

__all__ = ["Quantity", "ends", "point", "quantity", "told"]

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
    return shown_quantity(told(answer))


def told(answer: Estimate) -> Estimate:
    """Return the answer without means whose level is only believed; as it is where the record tells them."""
    if not any(note.code in BELIEVED for note in answer.notes):
        return answer
    columns = answer.columns
    nothing = np.full(columns.mean.shape, np.nan)
    return replace(answer, columns=replace(columns, mean=nothing, mean_low=nothing, mean_high=nothing))


def point(row: ArmEstimate, shown: Quantity) -> float | None:
    """Return an arm's value, if it has one."""
    value: float | None = getattr(row, shown)
    return value


def ends(row: ArmEstimate, shown: Quantity) -> tuple[float | None, float | None]:
    """Return the ends of an arm's interval, as far as they are known; ratios have none."""
    if shown == "ratio":
        return None, None
    return (row.mean_low, row.mean_high) if shown == "mean" else (row.gap_low, row.gap_high)
