"""How far below the truth the evidence may be that clouds of particles found, as a logarithm.

A cloud falls short where it loses what only a few of its particles could have held on to. Three things limit by how
much:

- How the clouds differ. If shortfalls are exponential, the best of four falls short by more than `r` times its distance
  to the third best with probability `1 / ((1 + 4r/3) (1 + 2r))`, whatever their scale. Heats are independent, so these
  probabilities are combined over all heats, by Fisher's method.
- What more particles gain. Where the best of many finds what the best of few did, there is nothing left to gain.
- What was seen. On records of its own, of 1,000 rounds with 2, 4 or 10 arms, no rule's four clouds of 80 particles fell
  short by more than 20. A rule that made the record is taken to fall short by 20 and 0.1 a round at most; where clouds
  fall short by more, as those of an index rule do that is held against random choices, it did not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["falling_short"]

FISHER = (2.996, 4.744, 6.296, 7.754, 9.154, 10.513, 11.842, 13.148)
"""Half the 95% points of the chi-square distribution with 2, 4, 6, ... degrees of freedom."""


SEEN, PER_ROUND = 20.0, 0.1
"""What clouds fall short by, at most, if their rule made the record: altogether, and for each round."""

FAR = 1e7
"""As good as infinite, as a logarithm."""


def falling_short(bests: Sequence[float], spacings: Sequence[float], rounds: float = math.inf) -> float:
    """Return by how much the last heat's best cloud falls short at most, in 19 of 20 cases.

    Parameters
    ----------
    bests
        What the best cloud of each heat found.
    spacings
        How far the third best of its four clouds lay below it.
    rounds
        Of the record.

    Examples
    --------
    >>> round(falling_short([-30.0], [5.0]), 1)
    10.6
    >>> falling_short([-208.0, -205.0], [3_000.0, 12_000.0])  # the same peak, found twice
    6.0
    """
    gained = 2 * abs(bests[-1] - max(bests[:-1])) if len(bests) > 1 else math.inf
    return min(gained, _by_spacing(bests, spacings), SEEN + PER_ROUND * rounds)


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
