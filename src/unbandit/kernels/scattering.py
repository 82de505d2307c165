"""Keep a cloud from running together.

Resampling leaves copies, and an arm that is seldom pulled would soon have one value in all of the cloud. So heirs are
moved: their sample means are drawn a little towards the cloud's centre and scattered as much, which keeps the mean and
the covariance of the whole (J. Liu and M. West, "Combined parameter and state estimation in simulation-based
filtering", 2001). It takes the cloud's shape as normal, which is an approximation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import called
from unbandit.kernels.particles import SCATTERING, Cloud
from unbandit.kernels.scalar import normal_from_word, philox

__all__ = ["scatter"]

SCATTER = 0.2
"""How far heirs are moved, in standard deviations of the cloud."""

MANY = 64
"""From this many moving numbers on, their correlations are left out."""


@called
def scatter(
    cloud: Cloud, pulls: NDArray[np.int64], memories: NDArray[np.float64], step: int, table: NDArray[np.float64]
) -> None:
    """Move heirs apart: a little towards the centre of the cloud and as much at random, so that its shape stays.

    All that differs between particles moves together: sample means, whatever else the rule remembers, and the sample
    means from earlier demonstrations. Arms are taken as uncorrelated where they are many.
    """
    number, arms, columns = memories.shape
    size = arms * (columns + 1)
    values, centre = np.zeros((number, size)), np.zeros(size)
    for particle in range(number):
        for arm in range(arms):
            at = arm * (columns + 1)
            values[particle, at] = memories[particle, arm, 0] / max(pulls[arm], 1)
            for column in range(1, columns):
                values[particle, at + column] = memories[particle, arm, column]
            values[particle, at + columns] = cloud.past[particle, arm] / max(cloud.before[arm], 1.0)
        centre += values[particle]
    centre /= number
    factor = _factor(values, centre)
    keep_share = math.sqrt(1.0 - SCATTER * SCATTER)
    noise = np.empty(size)
    for particle in range(number):
        for at in range(size):
            where = np.uint64(particle * size + at)
            word, _ = philox(np.uint64(step), where, cloud.name, SCATTERING, cloud.key[0], cloud.key[1])
            noise[at] = normal_from_word(word, table)
        for arm in range(arms):
            for column in range(columns + 1):
                at = arm * (columns + 1) + column
                moved = centre[at] + keep_share * (values[particle, at] - centre[at])
                for other in range(at + 1):
                    moved += SCATTER * factor[at, other] * noise[other]
                if column == columns:
                    cloud.past[particle, arm] = moved * cloud.before[arm]
                elif column == 0:
                    memories[particle, arm, 0] = moved * pulls[arm]
                else:
                    memories[particle, arm, column] = moved


@called
def _factor(values: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangle whose square is the covariance of some values; what does not vary gets zeros."""
    number, size = values.shape
    factor = np.zeros((size, size))
    for row in range(size):
        for column in range(row if size > MANY else 0, row + 1):
            covariance = 0.0
            for particle in range(number):
                covariance += (values[particle, row] - centre[row]) * (values[particle, column] - centre[column])
            covariance /= number
            for other in range(column):
                covariance -= factor[row, other] * factor[column, other]
            if column < row:
                factor[row, column] = covariance / factor[column, column] if factor[column, column] > 0.0 else 0.0
            else:
                scale = 1e-12 * (centre[row] * centre[row]) + 1e-300
                factor[row, row] = math.sqrt(covariance) if covariance > scale else 0.0
    return factor
