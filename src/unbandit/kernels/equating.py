"""Equate two arms' indices: which sample mean of one gives it the index that the other has?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import compiled
from unbandit.kernels.formula import index_value, mean_value

__all__ = ["equated_means"]


@compiled
def equated_means(
    parameters: Any,
    known: NDArray[np.float64],
    of_known: NDArray[np.int64],
    own: NDArray[np.int64],
    rounds: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return, place by place, the mean at which `own` pulls give the index of the mean `known` after `of_known` pulls.

    Both indices are those before round `rounds` (from 1). NaN where nothing is known.
    """
    found = np.full(known.size, np.nan)
    for at in range(known.size):
        if known[at] == known[at]:
            level = index_value(parameters, known[at], of_known[at], rounds[at])
            found[at] = mean_value(parameters, level, own[at], rounds[at])
    return found
