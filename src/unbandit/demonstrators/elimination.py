"""Elimination rules: pull every active arm once an epoch, and drop for good those that are clearly worse."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.tables import width_parameters
from unbandit.kernels.bandit import Bandit

__all__ = ["EliminationRule"]


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
