"""Instances that change with the horizon, as in the paper's study of gaps that shrink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from unbandit import datasets
from unbandit.instance import Instance

__all__ = ["Family", "ShrinkingGap"]


@runtime_checkable
class Family(Protocol):
    """Stand for anything that has a name and gives an instance for a horizon; it must pickle."""

    @property
    def name(self) -> str:
        """Return how the family is called in tables."""

    def __call__(self, horizon: int) -> Instance:
        """Return the instance for a horizon."""


@dataclass(frozen=True)
class ShrinkingGap:
    """Give two arms whose gap is `Delta_T = T^-beta`, with unit variance.

    Examples
    --------
    >>> family = ShrinkingGap(beta=0.5)
    >>> family.name, family(10_000).gaps.round(12).tolist()
    ('shrinking-gap beta=0.5', [0.0, 0.01])
    """

    beta: float

    def __post_init__(self) -> None:
        datasets.shrinking_gap(2, self.beta)  # it refuses a beta out of range

    @property
    def name(self) -> str:
        """Return the family's name, which holds its beta."""
        return f"shrinking-gap beta={self.beta}"

    def __call__(self, horizon: int) -> Instance:
        """Return the two arms for a horizon."""
        return datasets.shrinking_gap(horizon, self.beta)
