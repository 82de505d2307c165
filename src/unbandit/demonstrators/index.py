"""Index rules: give every arm an index from its own record, and pull the arm with the largest."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators.base import Demonstrator, SwitchingCounts, width_table
from unbandit.kernels.bandit import Bandit

__all__ = ["AdditiveIndexRule", "IndexRule"]

MANY_ARMS = 64
"""From this many arms on, counts are taken from levels (`kernels.counts`) rather than from simulated actions."""


class IndexRule(Demonstrator):
    """Pull the arm with the largest `index(mean, pulls, round)`; an arm never pulled comes first.

    A rule of this kind gives a `formula`, compiled by numba, and the numbers it reads; or, simpler, it is an
    `AdditiveIndexRule`.
    """

    uses_round: ClassVar[bool] = False
    """Whether the index changes with the round; if it does not, arms need never be compared (`kernels.levels`)."""

    ties: Literal["lowest", "random"] = "lowest"

    @staticmethod
    def formula(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the index of an arm; `parameters` has the rule's numbers, and `horizon`, as attributes."""
        raise TypeError("an IndexRule needs a formula")

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the numbers that the formula reads: by default the rule's numeric parameters, and the horizon."""
        values = {key: float(value) for key, value in self.model_dump().items() if isinstance(value, int | float)}
        return values | {"horizon": float(horizon)}

    def parameters(self, horizon: int) -> Any:
        """Return what the kernels take as the rule's parameters."""
        from unbandit.kernels.formula import formula_parameters

        return formula_parameters(type(self).formula, self.numbers(horizon))

    def index(self, mean: float, pulls: int, round: int, horizon: int) -> float:
        """Return an arm's index before round `round`, from its sample mean and its pulls."""
        from unbandit.kernels.formula import index_value

        return float("inf") if pulls == 0 else float(index_value(self.parameters(horizon), mean, pulls, round))

    def _simulate(self, bandit: Bandit, first_run: int, actions: NDArray[Any]) -> None:
        parameters = self.parameters(actions.shape[1])
        if self.uses_round or self.ties == "random":
            from unbandit.kernels.argmax import pull_largest_index

            pull_largest_index(bandit, parameters, first_run, self.uses_round, self.ties == "random", actions)
        else:
            from unbandit.kernels.levels import merge_tapes

            merge_tapes(bandit, parameters, first_run, actions)

    def _count(self, bandit: Bandit, horizon: int, first_run: int, rows: SwitchingCounts) -> None:
        if self.uses_round or self.ties == "random" or bandit.means.size < MANY_ARMS:
            return super()._count(bandit, horizon, first_run, rows)
        from unbandit.kernels.counts import count_by_levels

        parameters = self.parameters(horizon)
        count_by_levels(bandit, parameters, first_run, horizon, rows.pulls, rows.own, rows.of_best)
        return None


class AdditiveIndexRule(IndexRule):
    """Pull the arm with the largest `mean + width(pulls)`: an index rule whose file holds a width and nothing else."""

    @abstractmethod
    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `C(n)` for pull counts of 1 and more."""

    def parameters(self, horizon: int) -> NDArray[np.float64]:
        """Return the widths as a table over pull counts; an arm never pulled has an infinite one."""
        return width_table(self, horizon)

    def index(self, mean: float, pulls: int, round: int, horizon: int) -> float:
        """Return `mean + C(pulls)`."""
        return float("inf") if pulls == 0 else float(mean + self.width(np.array([float(pulls)]), horizon)[0])
