"""Elimination rules: pull every active arm once an epoch, and drop for good those that are clearly worse."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.tables import width_parameters
from unbandit.kernels.bandit import Bandit

__all__ = ["EliminationRule", "Eliminations"]


@dataclass(frozen=True)
class Eliminations:
    """Hold what Procedure 1 reads from demonstrations: one row a run, one column an arm.

    Attributes
    ----------
    pulls
        `n_{i,T}`.
    gone
        Whether the actions show that the arm was eliminated.
    """

    pulls: NDArray[np.int64]
    gone: NDArray[np.bool_]

    def part(self, first: int, last: int) -> Eliminations:
        """Return some of the runs, as views."""
        return Eliminations(self.pulls[first:last], self.gone[first:last])


class EliminationRule(Demonstrator):
    """Drop an arm at the end of epoch `e` if its sample mean is `2 width(e)` or more below the largest."""

    @abstractmethod
    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `C(n)` for pull counts of 1 and more."""

    def parameters(self, horizon: int) -> Any:
        """Return the widths as a table over epochs."""
        return width_parameters(self, horizon)

    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        from unbandit.kernels.elimination import eliminate

        eliminate(bandit, parameters, first_run, actions)

    def _empty_evidence(self, runs: int, arms: int) -> Eliminations:
        return Eliminations(np.empty((runs, arms), np.int64), np.empty((runs, arms), np.bool_))

    def _gather(self, bandit: Bandit, parameters: Any, first_run: int, rows: Eliminations) -> None:
        from unbandit.kernels.elimination import count_eliminations

        count_eliminations(bandit, parameters, first_run, bandit.horizon, rows.pulls, rows.gone)
