"""The made-up bandits of the paper's simulations."""

from __future__ import annotations

import math

import numpy as np

from unbandit.datasets.choice import whole_number
from unbandit.errors import ParameterError
from unbandit.instance import Gaussian, Instance

__all__ = ["linear", "shrinking_gap", "two_armed"]


def two_armed() -> Instance:
    """Return two arms worth 1 and 1/2, with unit variance.

    Examples
    --------
    >>> two_armed()
    <Instance two-armed: 2 arms, means 0.5 to 1, Gaussian(sigma=1.0)>
    """
    return Instance([1.0, 0.5], Gaussian(1.0), name="two-armed")


def linear(arms: int = 4) -> Instance:
    """Return `arms` (`K`) arms whose means fall evenly from 1 to 0, with variance 1/4.

    Examples
    --------
    >>> linear(5).means.tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    count = whole_number(arms)
    if count is None or count < 2:
        raise ParameterError(
            f"expected a count of 2 or more; got {arms!r}. Two arms are the smallest bandit.", parameter="arms"
        )
    return Instance(np.linspace(1.0, 0.0, count), Gaussian(0.5), name="linear")


def shrinking_gap(horizon: float, beta: float) -> Instance:
    """Return two arms whose gap is `Delta_T = T^-beta`, with unit variance; the better one is worth 1.

    Examples
    --------
    >>> shrinking_gap(horizon=10_000, beta=0.5).gaps.round(12).tolist()
    [0.0, 0.01]
    """
    if not (math.isfinite(horizon) and horizon >= 1):
        raise ParameterError(f"expected a number of rounds, 1 or more; got {horizon!r}.", parameter="horizon")
    if not (math.isfinite(beta) and beta >= 0):
        raise ParameterError(
            f"expected a number from 0 up; got {beta!r}. The paper takes 0.05 and 0.5.", parameter="beta"
        )
    gap = horizon**-beta
    if 1.0 - gap == 1.0:
        raise ParameterError(
            f"expected a gap that a mean near 1 can show; got {gap:.3g} at horizon {horizon:g}. Take a smaller beta.",
            parameter="beta",
        )
    return Instance([1.0, 1.0 - gap], Gaussian(1.0), name="shrinking-gap")
