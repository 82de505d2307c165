"""Successive arm elimination with O(T^alpha) regret: Algorithm 1 of the paper, and a variant with rarer tests."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.elimination import EliminationRule
from unbandit.demonstrators.widths import RegretWidth


class SAE(RegretWidth, EliminationRule):
    """Pull all active arms in turn, and eliminate those whose confidence interval has fallen below the best.

    Algorithm 1 of Guo et al. The test is made at the end of an epoch; an epoch cut short by the horizon makes none. The
    last arm left is pulled until the end.

    Examples
    --------
    >>> from unbandit import Instance
    >>> SAE(alpha=0.25).demonstrate(Instance([1.0, 0.5]), horizon=4, seed=1).actions.tolist()
    [0, 1, 0, 1]
    """

    name: ClassVar[str] = "sae"
    title: ClassVar[str] = "Successive arm elimination, Algorithm 1 of the paper"
    aliases: ClassVar[tuple[str, ...]] = ("successive-arm-elimination",)
    examples: ClassVar[Examples] = ({}, {"alpha": 0}, {"alpha": 0.1, "scale": 0.1}, {"alpha": 0.5, "sigma": 1e-7})


class PhasedElimination(RegretWidth, EliminationRule):
    """Pull all active arms in turn as SAE does, but test them only at epochs that grow: 1, 2, 4, 8 and so on.

    Tests are made at the epochs `ceil(growth^m)`; with a `batch`, counted in batches of epochs.

    Examples
    --------
    >>> np.flatnonzero(PhasedElimination(growth=1.5).tests(np.arange(1, 13))) + 1
    array([ 1,  2,  3,  4,  6,  8, 12])
    """

    name: ClassVar[str] = "phased"
    title: ClassVar[str] = "Phased elimination"
    aliases: ClassVar[tuple[str, ...]] = ("phased-elimination",)
    examples: ClassVar[Examples] = (
        {},
        {"alpha": 0.1, "scale": 0.1},
        {"alpha": 0.1, "scale": 0.2, "growth": 1.3},
        {"alpha": 0, "sigma": 0.05, "batch": 3},
    )

    growth: float = Field(2.0, gt=1, description="factor from one test's epoch to the next")

    def tests(self, epochs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether an epoch is the first at or after a power of `growth`, counted in batches."""
        whole, turn = np.divmod(np.asarray(epochs), self.batch)
        last = float(whole.max(initial=1))
        phases = np.ceil(self.growth ** np.arange(np.ceil(np.log(last) / np.log(self.growth)) + 1))
        return np.asarray((turn == 0) & np.isin(whole, phases))
