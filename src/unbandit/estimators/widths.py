"""Horizons of one demonstration or of many: a rule's width, and whatever else is asked for one horizon at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import AdditiveIndexRule, EliminationRule
from unbandit.demonstrators.width import RegretWidth

__all__ = ["Horizon", "RuleWidth", "by_horizon", "common", "spread_out"]

Horizon = int | NDArray[np.int64]
"""`T`: one for all demonstrations, or one for each of them."""


@dataclass(frozen=True)
class RuleWidth:
    """Give a rule's width `C(n)`, whatever the horizon of each demonstration is."""

    rule: AdditiveIndexRule | EliminationRule
    horizon: Horizon

    def __call__(self, pulls: NDArray[np.float64], where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the widths of pull counts, one for each place that is marked in an array of demonstrations and arms.

        Examples
        --------
        >>> from unbandit import UCB
        >>> both = np.array([[True, True], [True, False]])
        >>> RuleWidth(UCB(alpha=0), np.array([10, 100]))(np.array([1.0, 4.0, 4.0]), both).round(3).tolist()
        [2.146, 1.073, 1.517]
        """
        rounds = spread_out(self.horizon, where)
        if isinstance(self.rule, RegretWidth) and not isinstance(rounds, int):
            return self.rule.width(pulls, rounds)
        return by_horizon(lambda one, counts: self.rule.width(counts, one), rounds, pulls)

    def of_counts(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the widths of whole counts, a row each demonstration; of 0, or of more than the horizon, anything.

        Where there are more counts than rounds, every width is computed once and looked up.
        """
        if isinstance(self.horizon, int) and self.horizon < counts.size:
            return self._table.take(counts, mode="clip")
        rows = np.broadcast_to(True, counts.shape)
        return self(np.maximum(counts, 1).reshape(-1).astype(np.float64), rows).reshape(counts.shape)

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        assert isinstance(self.horizon, int)
        widths = self.rule.width(np.arange(1, self.horizon + 1, dtype=np.float64), self.horizon)
        return np.concatenate(([np.nan], widths))


def spread_out(horizon: Horizon, where: NDArray[np.bool_]) -> Horizon:
    """Return the horizon of each place that is marked, or the one of them all."""
    return horizon if isinstance(horizon, int) else np.broadcast_to(horizon[..., None], where.shape)[where]


def by_horizon(work: Callable[..., NDArray[np.float64]], horizon: Horizon, *arrays: Any) -> NDArray[np.float64]:
    """Call `work(horizon, ...)` once for each horizon there is, with the places of the arrays that have it.

    Examples
    --------
    >>> by_horizon(lambda one, values: values / one, np.array([2, 4, 2]), np.array([1.0, 1.0, 3.0])).tolist()
    [0.5, 0.25, 1.5]
    """
    if isinstance(horizon, int):
        return work(horizon, *arrays)
    found = np.empty(horizon.shape)
    order = np.argsort(horizon, kind="stable")
    starts = np.flatnonzero(np.diff(horizon[order], prepend=-1))
    for at in np.split(order, starts[1:]) if order.size else []:
        found[at] = work(int(horizon[at[0]]), *(array[at] for array in arrays))
    return found


def common(horizons: NDArray[np.int64]) -> Horizon:
    """Return the one horizon of all demonstrations as a number; where they differ, each as it is."""
    return int(horizons[0]) if horizons.size and (horizons == horizons[0]).all() else horizons
