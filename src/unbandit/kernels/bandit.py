"""The bandit as every simulation kernel takes it: an instance in arrays, its rewards, the order of its arms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import inlined
from unbandit.kernels.rng import Word, normal_from_word, philox, uniform_from_word

ZERO, ONE = np.uint64(0), np.uint64(1)
REWARDS, ORDERS = np.uint64(0), np.uint64(3)  # the tape's streams 0 and 3


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
        1/n from n = 0 (where it is 1) on, as far as the table goes: kernels multiply where others divide.
    key
        The seed, as two 32-bit numbers.
    table
        The normal quantile's coefficients.
    horizon
        `T`.
    listed, orders
        The means as the instance lists them, and for each run of a block the order in which its arms stand (empty where
        they stand as listed): see `arrange`.
    """

    means: NDArray[np.float64]
    sample: NDArray[np.float64]
    sigma: float
    bernoulli: bool
    inverse: NDArray[np.float64]
    key: tuple[np.uint64, np.uint64]
    table: NDArray[np.float64]
    horizon: int
    listed: NDArray[np.float64]
    orders: NDArray[np.int64]

    def block(self, first: int, last: int) -> Bandit:
        """Return the bandit of some of the runs, with means of its own to arrange."""
        return self._replace(means=self.means.copy(), orders=self.orders[first:last])


@inlined
def arrange(bandit: Bandit, run: int) -> None:
    """Lay the means out in the order that the block's run `run` has its arms in, where orders are given."""
    if bandit.orders.shape[0] > 0:
        for position in range(bandit.means.size):
            bandit.means[position] = bandit.listed[bandit.orders[run, position]]


@inlined
def inverse_of(inverse: NDArray[np.float64], pulls: np.uint64) -> float:
    """Return 1/n: looked up, or beyond the table divided, which gives the same bits."""
    return inverse[pulls] if pulls < np.uint64(inverse.size) else 1.0 / np.float64(np.int64(pulls))


@inlined
def reward_from_word(word: Word, mean: float, sigma: float, bernoulli: bool, table: NDArray[np.float64]) -> float:
    """Turn 64 random bits into a reward: normal around `mean`, or 1 with probability `mean`."""
    if bernoulli:
        return 1.0 if uniform_from_word(word) < mean else 0.0
    return mean + sigma * normal_from_word(word, table)


@inlined
def reward(bandit: Bandit, run: np.uint64, arm: np.uint64, pull: np.uint64) -> float:
    """Return the reward of one pull, counted from 0. Loops that pull an arm many times take both words of a block."""
    first, second = philox(pull >> ONE, arm, run, REWARDS, bandit.key[0], bandit.key[1])
    word = second if pull & ONE else first
    return reward_from_word(word, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)


@inlined
def arm_order_bits(key_low: np.uint64, key_high: np.uint64, name: np.uint64, arm: int) -> np.uint64:
    """Return the random bits of an arm in run `name`: arms stand in the order of their bits."""
    first, _ = philox(ZERO, np.uint64(arm), name, ORDERS, key_low, key_high)
    return first


@inlined
def rank(bits: NDArray[Any], arm: int) -> int:
    """Return where an arm stands, from the bits of all; of equal ones the earlier first."""
    before, own = 0, bits[arm]
    for other in range(bits.size):
        before += 1 if bits[other] < own or (bits[other] == own and other < arm) else 0
    return before
