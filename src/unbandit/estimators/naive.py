"""The naive estimator that the paper warns of: any low-regret rule pulls an arm about `ln T / gap^2` times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.comparison import Comparison, most_pulled
from unbandit.estimators.widths import Horizon, spread_out
from unbandit.result import ESTIMATED

__all__ = ["naive"]


def naive(pulls: NDArray[np.int64], horizon: Horizon, constant: float) -> Comparison:
    """Return `gap_i = constant sqrt(ln T / n_i)`: it needs no rule, is not consistent, and has no interval."""
    result, seen = Comparison.of_nothing(pulls.shape), pulls > 0
    result.gap[seen] = constant * np.sqrt(np.log(spread_out(horizon, seen)) / pulls[seen])
    result.verdict[seen] = ESTIMATED
    result.settle(most_pulled(pulls))
    return result
