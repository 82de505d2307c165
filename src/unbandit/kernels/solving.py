"""Turn an index round: which sample mean gives it this value?"""

from __future__ import annotations

import math
from typing import Any

from unbandit.kernels.compiling import inlined
from unbandit.kernels.formula import index_value

__all__ = ["halved"]

HALVINGS = 60
DOUBLINGS = 60


@inlined
def halved(parameters: Any, index: float, pulls: Any, round: Any) -> float:
    """Return the mean at which `index_value` reaches `index`, by halving; the index must not fall as the mean rises.

    The interval is found by doubling, so any scale of means will do. Where no mean gives the value, an infinite one.
    """
    step = 1.0 + abs(index)
    low, high = index - step, index + step
    for _ in range(DOUBLINGS):
        if not index_value(parameters, low, pulls, round) > index:
            break
        step *= 2.0
        low -= step
    for _ in range(DOUBLINGS):
        if not index_value(parameters, high, pulls, round) < index:
            break
        step *= 2.0
        high += step
    if index_value(parameters, high, pulls, round) < index:
        return math.inf
    if index_value(parameters, low, pulls, round) > index:
        return -math.inf
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if index_value(parameters, middle, pulls, round) < index:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
