"""Choose in proportion to the exponential of a score: what softmax rules and EXP3 share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined

__all__ = ["softmax_choice", "softmax_share"]

LARGEST_EXPONENT = 700.0  # beyond it the exponential overflows


@inlined
def _score(memory: NDArray[np.float64], column: int, pulls: NDArray[np.int64], average: bool, arm: int) -> float:
    """Return what an arm's record says: the number in a column, or that number a pull."""
    return memory[arm, column] / pulls[arm] if average else memory[arm, column]


@inlined
def softmax_share(
    memory: NDArray[np.float64], column: int, pulls: NDArray[np.int64], average: bool, sharpness: float, arm: int
) -> float:
    """Return `exp(sharpness score)` of an arm as a share of all arms'."""
    own, others = _score(memory, column, pulls, average, arm), 0.0
    for other in range(pulls.size):
        if other != arm:
            ahead = sharpness * (_score(memory, column, pulls, average, other) - own)
            others += math.exp(min(ahead, LARGEST_EXPONENT))
    return 1.0 / (1.0 + others)


@inlined
def softmax_choice(
    memory: NDArray[np.float64], column: int, pulls: NDArray[np.int64], average: bool, sharpness: float, draw: float
) -> int:
    """Return the arm in whose share the draw falls, the shares lying one after the other."""
    largest, total = -math.inf, 0.0
    for arm in range(pulls.size):
        largest = max(largest, _score(memory, column, pulls, average, arm))
    for arm in range(pulls.size):
        total += math.exp(sharpness * (_score(memory, column, pulls, average, arm) - largest))
    left = draw * total
    for arm in range(pulls.size - 1):
        left -= math.exp(sharpness * (_score(memory, column, pulls, average, arm) - largest))
        if left < 0.0:
            return arm
    return pulls.size - 1
