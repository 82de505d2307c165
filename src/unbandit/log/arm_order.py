"""Number the arms of a log that was counted piece by piece as one read at once would be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.log.assembly import lone_arm
from unbandit.log.columns import Refuse
from unbandit.log.labels import is_number, natural_order

__all__ = ["arm_order"]


def arm_order(
    labels: list[str], listed: bool, first: NDArray[np.int64], refuse: Refuse, column: str
) -> NDArray[np.int64]:
    """Return the code of each arm: as listed by the user, else by value if all are numbers, else as they first appear.

    Parameters
    ----------
    labels, listed
        The label of each code, and whether a user gave them.
    first
        The round in which each first appears, (demonstrations, arms); 0 for none.
    refuse, column
        Make the error that refuses a single arm.

    Examples
    --------
    >>> arm_order(["b", "a"], False, np.array([[0, 1], [1, 0]]), ValueError, "arm").tolist()
    [1, 0]
    """
    if listed:
        return np.arange(len(labels))
    if len(labels) < 2:
        raise lone_arm(refuse, labels[0], column)
    if all(map(is_number, labels)):
        place = {label: code for code, label in enumerate(labels)}
        return np.array([place[label] for label in natural_order(labels)])
    earliest = np.argmax(first > 0, axis=0)  # the demonstration that each arm appears in first
    return np.lexsort((first[earliest, np.arange(len(labels))], earliest))
