"""What was asked, settled; and the answer as it comes about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.estimators.arguments import Method, with_rounds
from unbandit.estimators.compare import Reading, compare, needed
from unbandit.estimators.comparison import Anchor
from unbandit.estimators.intervals import Noise, quantile
from unbandit.estimators.many import check_comparable
from unbandit.inference import Posterior
from unbandit.log import ActionLog
from unbandit.log.record import Record
from unbandit.log.tallies import Tallies
from unbandit.result import NUMBERS, UNSEEN, Columns, Notice

__all__ = ["Answer", "Asked", "Judged"]


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
    horizons: NDArray[np.int64]
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

    @cached_property
    def tallies(self) -> Tallies:
        """Return what the method counts."""
        check_comparable(self.rule, self.method)
        return self.log.tallied(needed(self.rule, self.method))

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of rounds of each demonstration."""
        return self.log.lengths

    def read(self, start: int, stop: int) -> Reading:
        """Read the demonstrations from `start` up to `stop`."""
        sigma = self.noise.sigma if self.noise.sigma is not None else 0.5
        return compare(
            self.tallies.part(start, stop), self.lengths[start:stop], self.log.ordered, self.rule, self.method,
            np.asarray(self.horizons[start:stop]), sigma, self.constant, self.anchor,
        )  # fmt: skip


class Found(Protocol):
    """Stand for anything that has verdicts and marks the arms that may be best."""

    @property
    def verdict(self) -> NDArray[np.int8]:
        """Return one of `result.VERDICTS` for each arm, as its number."""

    @property
    def best(self) -> NDArray[np.bool_]:
        """Return which arms may be best."""


class Judged(NamedTuple):
    """Hold verdicts, and which arms may be best."""

    verdict: NDArray[np.int8]
    best: NDArray[np.bool_]


@dataclass
class Answer:
    """Gather numbers, verdicts and notices: one row a demonstration, or one row in all.

    Attributes
    ----------
    numbers
        Those that there are, by name; what is left out has no number anywhere.
    best
        Which arms may be best.
    """

    demonstrations: Sequence[str]
    pulls: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    verdict: NDArray[np.int8] = field(init=False)
    best: NDArray[np.bool_] = field(init=False)
    warnings: list[Notice] = field(default_factory=list)
    notes: list[Notice] = field(default_factory=list)
    posteriors: list[Posterior] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.verdict = np.full(self.pulls.shape, UNSEEN, np.int8)
        self.best = np.zeros(self.pulls.shape, np.bool_)

    def put(self, rows: int | slice, values: Mapping[str, NDArray[np.float64]], found: Found) -> None:
        """Put one row, or some, in their places."""
        for name, numbers in values.items():
            self.numbers[name][rows] = numbers
        self.verdict[rows], self.best[rows] = found.verdict, found.best

    def room(self, *names: str) -> None:
        """Make room for numbers, all of which are put in later."""
        self.numbers |= {name: np.empty(self.pulls.shape) for name in names}

    @property
    def columns(self) -> Columns:
        """Return everything as an answer holds it; of numbers that there are none of, one that stands for all."""
        nothing = np.broadcast_to(np.nan, self.pulls.shape)
        numbers = {name: self.numbers.get(name, nothing) for name in NUMBERS}
        return Columns(pulls=self.pulls, verdict=self.verdict, **numbers)
