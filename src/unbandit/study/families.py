"""Instances that change with the horizon, as in the paper's study of gaps that shrink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from unbandit import datasets
from unbandit.errors import ParameterError
from unbandit.instance import Bernoulli, Instance

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
    """Give two arms whose gap is `Delta_T = T^-beta`.

    Parameters
    ----------
    beta
        From 0 up.
    bernoulli
        Rewards are 0 or 1, with means as far above 1/2 as below it; otherwise they have unit variance, and the better
        arm is worth 1.

    Examples
    --------
    >>> family = ShrinkingGap(beta=0.5)
    >>> family.name, family(10_000).gaps.round(12).tolist()
    ('shrinking-gap beta=0.5', [0.0, 0.01])
    >>> ShrinkingGap(beta=0.5, bernoulli=True)(10_000).means.tolist()
    [0.505, 0.495]
    """

    beta: float
    bernoulli: bool = False

    def __post_init__(self) -> None:
        datasets.shrinking_gap(2, self.beta)  # it refuses a beta out of range
        if not isinstance(self.bernoulli, bool):
            raise ParameterError(f"expected True or False; got {self.bernoulli!r}.", parameter="bernoulli")

    @property
    def name(self) -> str:
        """Return the family's name, which holds its beta."""
        return f"shrinking-gap beta={self.beta}" + " Bernoulli" * self.bernoulli

    def __call__(self, horizon: int) -> Instance:
        """Return the two arms for a horizon."""
        instance = datasets.shrinking_gap(horizon, self.beta)  # it refuses a gap that is too small
        if not self.bernoulli:
            return instance
        half = horizon**-self.beta / 2
        return Instance([0.5 + half, 0.5 - half], Bernoulli(), name=instance.name)
