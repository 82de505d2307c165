"""Elimination rules: pull every active arm once per epoch, and drop for good those that are clearly worse."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.widths import width_parameters, width_table
from unbandit.kernels.bandit import Bandit
from unbandit.log.tallies import Tallies


class EliminationRule(Demonstrator):
    """Drop an arm at the end of epoch `e` if its sample mean is `2 width(e)` or more below the largest.

    The arm with the largest mean always stays (the lowest of several). A rule may test at some epochs only.
    """

    batch: int = Field(1, ge=1, lt=2**32, description="epochs from one test to the next")

    @abstractmethod
    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `C(n)` for pull counts of 1 and more."""

    def tests(self, epochs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether arms are tested at the end of these epochs, counted from 1: by default every `batch`-th."""
        return np.asarray(np.asarray(epochs) % self.batch == 0)

    def parameters(self, horizon: int) -> Any:
        """Return the widths as a table over epochs, infinite where no test is made."""
        if self._width_is_plain():
            return width_parameters(self, horizon)
        widths = width_table(self, horizon).copy()
        widths[1:][~self.tests(np.arange(1, widths.size))] = np.inf
        return widths

    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        from unbandit.kernels.simulate_elimination import eliminate

        eliminate(bandit, parameters, first_run, actions)

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        return "elimination", ()

    def _width_is_plain(self) -> bool:
        return self.batch == 1 and type(self).tests is EliminationRule.tests

    def _empty_evidence(self, runs: int, arms: int) -> Tallies:
        return Tallies(np.empty((runs, arms), np.int64), gone=np.empty((runs, arms), np.bool_))

    def _gather(self, bandit: Bandit, parameters: Any, first_run: int, rows: Tallies) -> None:
        from unbandit.kernels.simulate_elimination import count_eliminations

        assert rows.gone is not None
        count_eliminations(bandit, parameters, first_run, bandit.horizon, rows.pulls, rows.gone)
