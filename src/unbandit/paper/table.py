"""The rows behind a curve, all in one form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from unbandit.study.monte_carlo import Measured

__all__ = ["points"]


def points(panel: str, curve: str, x: ArrayLike, measured: Measured, *, share: ArrayLike | None = None) -> pl.DataFrame:
    """Return the points of a drawn curve: panel, curve, x, value, its standard error, the share of runs behind it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> points("a", "alpha 0.25", [500, 5000], SimpleNamespace(value=np.ones(2), error=np.zeros(2))).columns
    ['panel', 'curve', 'x', 'value', 'error', 'share']
    """
    along = np.asarray(x, dtype=float)
    portion = np.ones(along.size) if share is None else np.asarray(share, dtype=float)
    return pl.DataFrame(
        {
            "panel": [panel] * along.size,
            "curve": [curve] * along.size,
            "x": along,
            "value": np.asarray(measured.value, dtype=float),
            "error": np.asarray(measured.error, dtype=float),
            "share": portion,
        }
    )
