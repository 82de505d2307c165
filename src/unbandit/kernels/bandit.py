"""What every simulating kernel needs to know of the bandit it plays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined
from unbandit.kernels.scalar import philox, reward_from_word

__all__ = ["REWARDS", "Bandit", "reward"]

ONE = np.uint64(1)
REWARDS = np.uint64(0)  # the tape's stream 0


class Bandit(NamedTuple):
    """Hold an instance as arrays, and the tape's key.

    Attributes
    ----------
    means
        `mu_i`.
    sample
        A few of the means, of all sizes, for guesses that must not cost as much as there are arms.
    sigma, bernoulli
        The noise.
    inverse
        1/n for n = 0 ... horizon + 1 (1 at 0): kernels multiply where others divide.
    key
        The seed, as two 32-bit numbers.
    table
        The normal quantile's coefficients.
    """

    means: NDArray[np.float64]
    sample: NDArray[np.float64]
    sigma: float
    bernoulli: bool
    inverse: NDArray[np.float64]
    key: tuple[np.uint64, np.uint64]
    table: NDArray[np.float64]


@inlined
def reward(bandit: Bandit, run: np.uint64, arm: np.uint64, pull: np.uint64) -> float:
    """Return the reward of one pull, counted from 0. Loops that pull an arm many times take both words of a block."""
    first, second = philox(pull >> ONE, arm, run, REWARDS, bandit.key[0], bandit.key[1])
    word = second if pull & ONE else first
    return reward_from_word(word, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)
