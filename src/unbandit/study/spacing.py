"""Horizons at even distances."""

from __future__ import annotations

import numpy as np

from unbandit.demonstrators.base import whole
from unbandit.errors import ParameterError

__all__ = ["spaced"]


def spaced(start: int, stop: int, points: int, spacing: str = "log") -> tuple[int, ...]:
    """Return whole numbers from `start` to `stop`, both among them: evenly spaced, or in their logarithm.

    Examples
    --------
    >>> spaced(500, 5_000, 4)
    (500, 1077, 2321, 5000)
    >>> spaced(500, 1_000, 3, "linear")
    (500, 750, 1000)
    """
    first, last, count = whole("from", start), whole("to", stop), whole("points", points)
    if spacing not in ("log", "linear"):
        raise ParameterError(f'expected log or linear; got "{spacing}".', parameter="spacing")
    if not first < last:
        raise ParameterError(f"expected less than to, {last}; got {first}.", parameter="from")
    if count < 2:
        raise ParameterError(f"expected two or more; got {count}.", parameter="points")
    numbers = (np.geomspace if spacing == "log" else np.linspace)(first, last, count).round().astype(int).tolist()
    if len(set(numbers)) < count:
        raise ParameterError(
            f"expected no more than there are whole numbers apart; got {count} from {first} to {last}. Take fewer.",
            parameter="points",
        )
    return tuple(numbers)
