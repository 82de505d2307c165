"""Look integers up in a table, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import compiled

__all__ = ["UNKNOWN", "recode"]

UNKNOWN = 2**32 - 1
"""What the table holds for an integer that has no code."""


@compiled
def recode(values: NDArray[Any], low: int, table: NDArray[np.uint32], out: NDArray[Any]) -> int:
    """Fill `out` with `table[value - low]`, and return how many values have no code.

    Those that lie outside the table have none either. In `out` they show as the largest number of its type, which
    must not be a code.
    """
    unknown, size = 0, np.uint64(table.size)
    for t in range(values.size):
        at = np.uint64(np.int64(values[t]) - low)
        code = table[at] if at < size else np.uint32(UNKNOWN)
        out[t] = code
        unknown += 1 if code == np.uint32(UNKNOWN) else 0
    return unknown
