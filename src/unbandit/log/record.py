"""What an estimator of closed forms can read: a log in memory, one too large for it, or one that still grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unbandit.log.rewards import Rewards
from unbandit.log.tallies import Need, Tallies

__all__ = ["Record", "is_record"]


class Record(Protocol):
    """Stand for demonstrations that can be counted, whether or not their rounds can be looked at one by one."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the label of every arm."""

    @property
    def demonstrations(self) -> Sequence[str]:
        """Return the name of each demonstration."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of rounds of each."""

    @property
    def ordered(self) -> bool:
        """Tell whether the rounds are known, or only the counts."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should hear about the reading."""

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Return how often each arm was pulled: (demonstrations, arms)."""

    @property
    def rewards(self) -> Rewards | None:
        """Return the rewards that are known; None, as a rule."""

    def __len__(self) -> int:
        """Return the number of demonstrations."""

    def tallied(self, need: Need) -> Tallies:
        """Read what is needed, once: the answer is kept."""


def is_record(given: Any) -> TypeGuard[Record]:
    """Tell whether something is a record, without reading it.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> is_record(ActionLog.from_actions("AB")), is_record(["A", "B"])
    (True, False)
    """
    return callable(getattr(type(given), "tallied", None))
