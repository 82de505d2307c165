"""Without the order of the rounds: the same equations at the end of the record, from final pull counts alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.comparison import Comparison, Width
from unbandit.estimators.switching import eliminated_and_active, index_comparison

__all__ = ["elimination_counts", "index_counts"]


def index_counts(pulls: NDArray[np.int64], width: Width) -> Comparison:
    """Put every index at one common level `V`: `m_i = V - C(n_i)`, so `gap_i = C(n_i) - C(n_best)`."""
    return index_comparison(pulls, pulls, np.broadcast_to(pulls.max(axis=-1, keepdims=True), pulls.shape), pulls, width)


def elimination_counts(pulls: NDArray[np.int64], width: Width) -> Comparison:
    """Take an arm as eliminated if it was pulled two times less than the most-pulled one, or fewer."""
    return eliminated_and_active(pulls, (pulls > 0) & (pulls < pulls.max(axis=-1, keepdims=True) - 1), width)
