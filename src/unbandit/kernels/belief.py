"""What an observer believes about an arm's mean once the sum of its rewards is given: the mean integrates out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined

__all__ = ["Belief", "of_mean", "success"]


class Belief(NamedTuple):
    """Hold the prior on every mean, and the noise.

    Attributes
    ----------
    bernoulli
        Rewards are 0 or 1, with a Beta prior; otherwise normal, with a normal prior.
    first, second
        One number an arm: the prior's mean and variance (0 for a mean that is known), or its two Beta parameters.
    sigma
        The standard deviation of a normal reward.
    """

    bernoulli: bool
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    sigma: float


@inlined
def of_mean(belief: Belief, arm: int, pulls: float, total: float) -> tuple[float, float]:
    """Return expectation and variance of a mean, after so many normal rewards of this sum."""
    noise, prior = belief.sigma * belief.sigma, belief.second[arm]
    scale = 1.0 / (noise + pulls * prior)
    return (belief.first[arm] * noise + prior * total) * scale, prior * noise * scale


@inlined
def success(belief: Belief, arm: int, pulls: float, total: float) -> float:
    """Return the probability that the next reward is 1, after so many of which `total` were."""
    return (belief.first[arm] + total) / (belief.first[arm] + belief.second[arm] + pulls)
