"""From evidence to a verdict: one candidate, or none that can be told from the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unbandit.identification.weighing import Weighed

__all__ = ["SURE", "Decision", "decide"]

SURE = 0.95
"""The probability that a candidate must have, with the Monte-Carlo error held against it, to be the answer."""


@dataclass(frozen=True)
class Decision:
    """Hold who won, and by how much.

    Attributes
    ----------
    order
        The candidates' positions, the most probable first.
    probabilities
        Of each candidate, all being equally likely beforehand.
    assured
        The probability of the first one if its evidence is taken at the low end and all others' at the high end.
    contenders
        Those that cannot be told from the first one, itself included.
    """

    order: tuple[int, ...]
    probabilities: tuple[float, ...]
    assured: float
    contenders: tuple[int, ...]

    @property
    def clear(self) -> bool:
        """Return whether the first one is the answer."""
        return self.assured >= SURE


def decide(weights: Sequence[Weighed]) -> Decision:
    """Compare candidates that are equally likely beforehand; one of them at least must be possible.

    Examples
    --------
    >>> sharp, dull = Weighed(-10.0, 0.1, -10.2, -9.8), Weighed(-14.0, 2.0, -17.0, -10.0)
    >>> found = decide([dull, sharp])
    >>> found.order, found.clear, found.contenders
    ((1, 0), False, (1, 0))
    >>> decide([Weighed(-30.0, 2.0, -33.0, -26.0), sharp]).clear
    True
    """
    order = tuple(sorted(range(len(weights)), key=lambda at: -weights[at].value))
    first, others = weights[order[0]], order[1:]
    behind = [math.exp(each.value - first.value) for each in weights]
    against = {at: math.exp(min(weights[at].high - first.low, 700.0)) for at in others}
    assured = 1 / (1 + sum(against.values()))
    contenders = tuple(at for at in others if against[at] > (1 - SURE) / len(weights))
    return Decision(order, tuple(each / sum(behind) for each in behind), assured, (order[0], *contenders))
