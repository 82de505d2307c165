"""The normal quantile's table on a GPU: the part that nearly every draw reads lies in each block's shared memory.

There the coefficients of one power lie side by side, so that the threads of a warp, which read different rows, seldom
want the same memory bank. Rows of one sign stand for both. What is left, few draws in a thousand, is read from afar.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.scalar import QUANTILE_TABLE

__all__ = ["ALL_NEAR", "MOST_NEAR", "POWERS", "bring_near", "near_coefficients", "one_sided"]

POWERS = 8
ALL_NEAR = 768  # rows of three levels: with eight numbers each they fill the 48 KB that every GPU gives a block
MOST_NEAR = 512  # rows of two levels, for kernels that need shared memory for other things too

_ONE, _EIGHT, _NINE, _SEGMENT = np.uint64(1), np.uint64(8), np.uint64(9), np.uint64(255)


def one_sided() -> NDArray[np.float64]:
    """Return the table for positive numbers alone, one column a row: (powers, levels times segments)."""
    rows = QUANTILE_TABLE.reshape(-1, 2, 256, POWERS)[:, 0].reshape(-1, POWERS)
    return np.ascontiguousarray(rows.T)


def bring_near(near: Any, far: Any, thread: int, threads: int) -> None:
    """Copy the rows that are wanted most, one thread of a block a part of them; the block waits for all afterwards."""
    for at in range(thread, near.size, threads):
        power, row = at // near.shape[1], at % near.shape[1]
        near[power, row] = far[power, row]


@lru_cache(maxsize=2)
def near_coefficients(rows: int) -> Any:
    """Return what takes the place of `scalar.coefficients`: so many rows are near, all are afar."""
    limit = np.uint64(rows)

    def coefficients(table: Any, row: Any) -> Any:
        near, far = table
        at = ((row >> _NINE) << _EIGHT) | (row & _SEGMENT)
        if at < limit:
            c0, c1, c2, c3 = near[0, at], near[1, at], near[2, at], near[3, at]
            c4, c5, c6, c7 = near[4, at], near[5, at], near[6, at], near[7, at]
        else:
            c0, c1, c2, c3 = far[0, at], far[1, at], far[2, at], far[3, at]
            c4, c5, c6, c7 = far[4, at], far[5, at], far[6, at], far[7, at]
        if (row >> _EIGHT) & _ONE:
            return -c0, -c1, -c2, -c3, -c4, -c5, -c6, -c7
        return c0, c1, c2, c3, c4, c5, c6, c7

    return coefficients
