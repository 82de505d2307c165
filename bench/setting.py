"""The bandit and the rule that everything here is timed on, and how much of it is done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbandit import UCB, Instance

RULE = UCB(alpha=0.25)
SIGMA = 1.0


@dataclass(frozen=True)
class Effort:
    """How often each timing is repeated, and the share of the full work that is done."""

    repeats: int
    share: float

    def of(self, amount: int, at_least: int = 1) -> int:
        return max(at_least, round(amount * self.share))


FULL = Effort(repeats=5, share=1.0)
QUICK = Effort(repeats=1, share=0.005)


def instance_of(arms: int, names: list[str] | None = None) -> Instance:
    return Instance(np.linspace(1.0, 0.0, arms), SIGMA, names)


def first_width(horizon: int) -> float:
    """Return `C(1)`; all other widths are `C(1) / sqrt(n)`."""
    return float(RULE.width(np.ones(1), horizon)[0])
