"""The plain Numba loop: UCB as one would write it down, one demonstration at a time."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit
def _play(means: NDArray[np.float64], sigma: float, first_width: float, actions: NDArray[Any]) -> None:
    pulls, totals = np.zeros(means.size), np.zeros(means.size)
    index = np.full(means.size, np.inf)
    for t in range(actions.size):
        arm, largest = 0, index[0]
        for other in range(1, means.size):
            if index[other] > largest:
                arm, largest = other, index[other]
        pulls[arm] += 1
        totals[arm] += means[arm] + sigma * np.random.standard_normal()
        index[arm] = totals[arm] / pulls[arm] + first_width / np.sqrt(pulls[arm])
        actions[t] = arm


def simulate(means: NDArray[np.float64], sigma: float, first_width: float, rounds: int, runs: int) -> NDArray[Any]:
    """Return the actions of `runs` demonstrations, in the type that our own log has."""
    actions = np.empty((runs, rounds), np.min_scalar_type(means.size - 1))
    for row in actions:
        _play(means, sigma, first_width, row)
    return actions
