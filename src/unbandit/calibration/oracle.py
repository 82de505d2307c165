"""Oracle Bayes: what an observer with the same prior would believe who had seen every reward.

No method that sees actions alone can be better on average, so this is what errors are measured by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.inference import BetaPrior, Prior

__all__ = ["Believed", "expected_largest", "oracle"]

REACH = 9.0
"""So many deviations on either side of a mean hold all of its distribution."""

POINTS = 481
"""Points of the quadrature for each arm."""


class Believed(NamedTuple):
    """Hold the expected mean of every arm, and its expected gap to the best."""

    mean: NDArray[np.float64]
    gap: NDArray[np.float64]


def oracle(prior: Prior, sigma: float | None, pulls: NDArray[np.int64], sums: NDArray[np.float64]) -> Believed:
    """Return what is expected of every arm once its rewards are seen; sigma None stands for rewards of 0 and 1.

    Examples
    --------
    >>> from unbandit.inference import NormalPrior
    >>> found = oracle(NormalPrior(), 1.0, np.array([1, 0]), np.array([2.0, 0.0]))
    >>> found.mean.tolist(), found.gap.round(3).tolist()
    ([1.0, 0.0], [0.143, 1.143])
    """
    if isinstance(prior, BetaPrior):
        successes, failures = prior.successes + sums, prior.failures + pulls - sums
        mean = successes / (successes + failures)
        return Believed(mean, _largest_of_betas(successes, failures) - mean)
    assert sigma is not None
    variance = 1 / (1 / prior.deviation**2 + pulls / sigma**2)
    mean = variance * (prior.mean / prior.deviation**2 + sums / sigma**2)
    return Believed(mean, expected_largest(mean, np.sqrt(variance)) - mean)


def expected_largest(mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> float:
    """Return the expectation of the largest of independent normal variables: `h - integral of prod F_i` up to `h`.

    The points of the quadrature lie around every variable, as closely as its deviation asks for.

    Examples
    --------
    >>> round(expected_largest(np.zeros(2), np.ones(2)), 6)
    0.56419
    """
    from scipy.special import ndtr

    points = np.unique(mean[:, None] + deviation[:, None] * np.linspace(-REACH, REACH, POINTS))
    below = ndtr((points[:, None] - mean) / deviation).prod(axis=1)
    return float(points[-1] - np.trapezoid(below, points))


def _largest_of_betas(successes: NDArray[np.float64], failures: NDArray[np.float64]) -> float:
    from scipy.special import betainc

    total = successes + failures
    mean, deviation = successes / total, np.sqrt(successes * failures / (total + 1)) / total
    around = mean[:, None] + deviation[:, None] * np.linspace(-REACH, REACH, POINTS)
    points = np.unique(np.clip(np.concatenate([around.ravel(), np.linspace(0, 1, POINTS)]), 0, 1))
    below = betainc(successes, failures, points[:, None]).prod(axis=1)
    return float(1 - np.trapezoid(below, points))
