"""The bandit as every simulation kernel takes it: an instance in arrays, its rewards, the order of its arms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import Integers, Numbers, called, inlined
from unbandit.kernels.rng import Word, normal_from_word, philox, uniform_from_word

ZERO, ONE = np.uint64(0), np.uint64(1)
REWARDS, ORDERS, OPENINGS = np.uint64(0), np.uint64(3), np.uint64(25)  # the tape's streams 0, 3 and 25


class Bandit(NamedTuple):
    """An instance as arrays, with the tape's key."""

    means: Numbers  # `mu_i`
    sample: Numbers  # a few of the means, of all sizes, for predictions whose cost must not grow with the arms
    sigma: float
    bernoulli: bool
    inverse: Numbers  # 1/n from n = 0 (where it is 1) on, as far as the table goes: multiplying is faster
    key: tuple[np.uint64, np.uint64]  # the seed, as two 32-bit numbers
    table: Numbers  # the normal quantile's coefficients
    horizon: int  # `T`
    listed: Numbers  # the means as the instance lists them
    orders: Integers  # the order of the arms in each run of a block; empty if all are as listed

    def block(self, first: int, last: int) -> Bandit:
        """Return the bandit of some of the runs, with its own means to arrange."""
        return self._replace(means=self.means.copy(), orders=self.orders[first:last])


@inlined
def arrange(bandit: Bandit, run: int) -> None:
    """Put the means into the order of the arms in run `run` of the block, if orders are given."""
    if bandit.orders.shape[0] > 0:
        for position in range(bandit.means.size):
            bandit.means[position] = bandit.listed[bandit.orders[run, position]]


@called
def draw_opening(bandit: Bandit, run: np.uint64, order: Integers) -> None:
    """Fill in a random order of the arms, all equally likely, in which a run opens; an empty one stays as it is."""
    bits, merged = np.empty(order.size, np.uint64), np.empty(order.size, np.int64)
    for arm in range(order.size):
        bits[arm] = philox(ZERO, np.uint64(arm), run, OPENINGS, bandit.key[0], bandit.key[1])[0]
        order[arm] = arm
    width = 1
    while width < order.size:  # a merge sort: that of NumPy takes five seconds to compile
        for start in range(0, order.size, 2 * width):
            middle, stop = min(start + width, order.size), min(start + 2 * width, order.size)
            left, right = start, middle
            for at in range(start, stop):
                if left < middle and (right == stop or bits[order[left]] <= bits[order[right]]):
                    merged[at], left = order[left], left + 1
                else:
                    merged[at], right = order[right], right + 1
        for at in range(order.size):
            order[at] = merged[at]
        width *= 2


@inlined
def inverse_of(inverse: Numbers, pulls: np.uint64) -> float:
    """Return 1/n: looked up, or beyond the table divided, which gives the same bits."""
    return inverse[pulls] if pulls < np.uint64(inverse.size) else 1.0 / np.float64(np.int64(pulls))


@inlined
def reward_from_word(word: Word, mean: float, sigma: float, bernoulli: bool, table: Numbers) -> float:
    """Turn 64 random bits into a reward: normal around `mean`, or 1 with probability `mean`."""
    if bernoulli:
        return 1.0 if uniform_from_word(word) < mean else 0.0
    return mean + sigma * normal_from_word(word, table)


@inlined
def reward(bandit: Bandit, run: np.uint64, arm: np.uint64, pull: np.uint64) -> float:
    """Return the reward of one pull, counted from 0. Loops that pull an arm many times use both words of a block."""
    first, second = philox(pull >> ONE, arm, run, REWARDS, bandit.key[0], bandit.key[1])
    word = second if pull & ONE else first
    return reward_from_word(word, bandit.means[arm], bandit.sigma, bandit.bernoulli, bandit.table)


@inlined
def arm_order_bits(key_low: np.uint64, key_high: np.uint64, name: np.uint64, arm: int) -> np.uint64:
    """Return the random bits of an arm in run `name`: the arms of a run are ordered by their bits."""
    first, _ = philox(ZERO, np.uint64(arm), name, ORDERS, key_low, key_high)
    return first


@inlined
def rank(bits: NDArray[Any], arm: int) -> int:
    """Return the rank of an arm, given the bits of all; of equal ones the earlier first."""
    before, own = 0, bits[arm]
    for other in range(bits.size):
        before += 1 if bits[other] < own or (bits[other] == own and other < arm) else 0
    return before
