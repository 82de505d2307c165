"""How far below the truth the evidence may be that clouds of particles found, as a logarithm.

A cloud falls short where it loses what only a few of its particles could have held on to. Two things limit by how much:

- How the clouds differ. If shortfalls are exponential, the best of four falls short by more than `r` times its distance
  to the third best with probability `1 / ((1 + 4r/3) (1 + 2r))`, whatever their scale. Heats are independent, so these
  probabilities are combined over all heats, by Fisher's method.
- What more particles gain. Where the best of many finds what the best of few did, there is nothing left to gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["falling_short"]

FISHER = (2.996, 4.744, 6.296, 7.754, 9.154, 10.513, 11.842, 13.148)
"""Half the 95% points of the chi-square distribution with 2, 4, 6, ... degrees of freedom."""


FAR = 1e7
"""As good as infinite, as a logarithm."""


def falling_short(bests: Sequence[float], spacings: Sequence[float]) -> float:
    """Return by how much the last heat's best cloud falls short at most, in 19 of 20 cases.

    Parameters
    ----------
    bests
        What the best cloud of each heat found.
    spacings
        How far the third best of its four clouds lay below it.

    Examples
    --------
    >>> round(falling_short([-30.0], [5.0]), 1)
    10.6
    >>> falling_short([-208.0, -205.0], [3_000.0, 12_000.0])  # the same peak, found twice
    6.0
    """
    if len(bests) == 1:
        return _by_spacing(bests, spacings)
    gained = 2 * abs(bests[-1] - max(bests[:-1]))
    return max(min(gained, _by_spacing(bests, spacings)), 0.0)


def _by_spacing(bests: Sequence[float], spacings: Sequence[float]) -> float:
    """Solve for the evidence that all heats together would still fall short of with a probability of 1 in 20."""
    threshold = FISHER[min(len(bests), len(FISHER)) - 1]

    def surprise(evidence: float) -> float:
        total = 0.0
        for best, spacing in zip(bests, spacings, strict=True):
            ratio = max(evidence - best, 0.0) / max(spacing, 1e-9)
            total += math.log1p(4 * ratio / 3) + math.log1p(2 * ratio)
        return total

    low, high = 0.0, 1.0
    while surprise(bests[-1] + high) < threshold and high < FAR:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if surprise(bests[-1] + middle) < threshold else (low, middle)
    return high
