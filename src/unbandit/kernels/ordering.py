"""The order in which a run of a study has its arms: drawn with the run, so that no place is the best arm's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined
from unbandit.kernels.scalar import philox

__all__ = ["arm_bits", "rank_of"]

ZERO = np.uint64(0)
ORDERS = np.uint64(3)  # the tape's stream 3


@inlined
def arm_bits(key_low: np.uint64, key_high: np.uint64, name: np.uint64, arm: int) -> np.uint64:
    """Return the random bits of an arm in run `name`: arms stand in the order of their bits."""
    first, _ = philox(ZERO, np.uint64(arm), name, ORDERS, key_low, key_high)
    return first


@inlined
def rank_of(bits: NDArray[Any], arm: int) -> int:
    """Return where an arm stands, from the bits of all; of equal ones the earlier first."""
    before, own = 0, bits[arm]
    for other in range(bits.size):
        before += 1 if bits[other] < own or (bits[other] == own and other < arm) else 0
    return before
