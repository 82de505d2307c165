"""Long records in few columns: how often each arm was pulled in each stretch of rounds."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.naming import place_of

if TYPE_CHECKING:
    from unbandit.log import ActionLog

__all__ = ["binned", "most_pulled_first", "rounds_of"]


def rounds_of(log: ActionLog, demonstration: object, picture: str) -> tuple[int, NDArray[Any], NDArray[np.int64]]:
    """Return which demonstration is meant, its rounds and its pulls; refuse a log that has no rounds to draw."""
    if not log.ordered:
        raise ParameterError(f"{picture}: expected a log with rounds; this one holds counts, which have no order.")
    which = place_of(log.demonstrations, demonstration)
    codes = log.demonstration(which)
    if codes.size == 0:
        raise ParameterError(f'{picture}: expected rounds; demonstration "{log.demonstrations[which]}" has none.')
    return which, codes, log.pulls[which]


def binned(
    codes: NDArray[Any], rows: NDArray[np.intp], count: int, bins: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count pulls by stretch of rounds and by row.

    Parameters
    ----------
    codes
        The arm of every round, as its place.
    rows
        The row of every arm, from 0 to `count - 1`.
    bins
        How many stretches at most; of a shorter record every round is one.

    Returns
    -------
    edges, counts
        The rounds after which stretches end, from 0 on, and pulls as (stretches, rows).

    Examples
    --------
    >>> edges, counts = binned(np.array([0, 1, 0, 0]), np.array([0, 1]), 2, bins=2)
    >>> edges.tolist(), counts.tolist()
    ([0, 2, 4], [[1, 1], [2, 0]])
    """
    stretches = max(min(bins, codes.size), 1)
    edges = np.linspace(0, codes.size, stretches + 1).astype(np.int64)
    counts = np.empty((stretches, count), np.int64)
    for at, (begin, end) in enumerate(pairwise(edges.tolist())):
        counts[at] = np.bincount(rows[codes[begin:end]], minlength=count)
    return edges, counts


def most_pulled_first(pulls: NDArray[np.int64], most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rank arms by their pulls; all after the first `most` share one row, unless it would hold one arm only.

    Returns
    -------
    order, rows
        The arms that have a row of their own, the most-pulled first; and the row of every arm.

    Examples
    --------
    >>> order, rows = most_pulled_first(np.array([3, 9, 1, 5]), 2)
    >>> order.tolist(), rows.tolist()
    ([1, 3], [2, 0, 2, 1])
    """
    ranked = np.argsort(-pulls, kind="stable")
    order = ranked if pulls.size <= most + 1 else ranked[:most]
    rows = np.full(pulls.size, order.size, np.intp)
    rows[order] = np.arange(order.size)
    return order, rows
