"""MOSS without a horizon, of Degenne and Perchet: an arm's share is that of the rounds so far."""

import math
from typing import ClassVar

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.confidence import ConfidenceIndexRule
from unbandit.demonstrators.widths import EvenShare


class AnytimeMOSS(EvenShare, ConfidenceIndexRule):
    """Pull the arm with the largest sample mean plus scale sqrt(max(ln(t / (K n)), 0) / n), where t is the round.

    `K`, the number of arms, comes from the instance or the log (`for_arms`).

    Examples
    --------
    >>> round(AnytimeMOSS(arms=5).index(mean=0.5, pulls=4, round=1_000, horizon=2_000), 6)
    1.488942
    """

    name: ClassVar[str] = "anytime-moss"
    fits: ClassVar[tuple[str, ...]] = ("scale",)
    title: ClassVar[str] = "MOSS without a horizon"
    aliases: ClassVar[tuple[str, ...]] = ("moss-anytime",)
    proposed: ClassVar[bool] = False
    uses_round: ClassVar[bool] = True
    shifts: ClassVar[bool] = True
    examples: ClassVar[Examples] = ({}, {"scale": 0.5, "clock": "pulls"}, {"scale": 3, "ties": "random", "batch": 2})

    def bound(self, horizon: int) -> dict[str, float]:
        """Return the numbers of `L = max(ln t - ln(K n), 0)`, and of the factor of its root."""
        return {"sigma": self.scale / math.sqrt(2.0), "share": float(self.known_arms)}
