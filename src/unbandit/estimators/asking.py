"""What was asked, settled; and the answer as it comes about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.estimators.arguments import Method, with_rounds
from unbandit.estimators.compare import compare
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.intervals import Anchor, Noise, quantile
from unbandit.inference import Posterior
from unbandit.log import ActionLog
from unbandit.log.record import Record
from unbandit.result import NUMBERS, UNSEEN, Notice

__all__ = ["Answer", "Asked"]


@dataclass(frozen=True)
class Asked:
    """Hold a record, the rule that is taken to have made it, and what is known beside.

    Attributes
    ----------
    log, rule, method
        The record, its rule for so many arms, and how it is read: by a closed form or the naive estimator.
    horizons
        `T` of each demonstration.
    noise, anchor
        The rewards' noise, and the one mean that is known, if any.
    level
        Of the intervals.
    constant
        Of the naive estimator.
    scale, reference
        Whether the width's scale is known, and the arm that ratios are counted in, if one was given.
    """

    log: Record
    rule: Demonstrator
    method: Method
    horizons: list[int]
    noise: Noise
    anchor: Anchor | None
    level: float
    constant: float
    scale: Literal["known", "unknown"]
    reference: int | None

    @property
    def z(self) -> float:
        """Return the normal quantile of the level."""
        return quantile(self.level)

    @property
    def whole(self) -> ActionLog:
        """Return the record as a log whose rounds can be looked at."""
        return with_rounds(self.log, f"method {self.method}")

    def compare(self, which: int) -> Comparison:
        """Read one demonstration."""
        sigma = self.noise.sigma if self.noise.sigma is not None else 0.5
        return compare(self.log, which, self.rule, self.method, self.horizons[which], sigma, self.constant, self.anchor)


@dataclass
class Answer:
    """Gather numbers, verdicts and notices: one row a demonstration, or one row in all."""

    demonstrations: Sequence[str]
    pulls: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float64]] = field(init=False)
    verdict: NDArray[np.int8] = field(init=False)
    best: list[tuple[str, ...]] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)
    notes: list[Notice] = field(default_factory=list)
    lost: list[Notice] = field(default_factory=list)
    posteriors: list[Posterior] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers = {name: np.full(self.pulls.shape, np.nan) for name in NUMBERS}
        self.verdict = np.full(self.pulls.shape, UNSEEN, np.int8)

    def put(
        self, which: int, row: dict[str, NDArray[np.float64]], verdict: NDArray[np.int8], best: tuple[str, ...]
    ) -> None:
        """Put one row in its place."""
        for column, values in row.items():
            self.numbers[column][which] = values
        self.verdict[which] = verdict
        self.best.append(best)
