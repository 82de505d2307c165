"""The tape as a sample: moments, tails and independence. Seeds are fixed; tolerances are five Monte-Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr

from unbandit.instance import Bernoulli, Instance
from unbandit.tape import Stream, Tape

MILLION = 1_000_000
RUN, ARM, PULL = np.ix_(range(100), range(100), range(1, 101))


@pytest.fixture(scope="module")
def normals():
    return Tape(1).normal(RUN, ARM, PULL).ravel()


# the k-th raw moment of a standard normal, and its Monte-Carlo error: sqrt((E x^2k - (E x^k)^2) / n)
@pytest.mark.parametrize(
    ("power", "moment", "variance"), [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (5, 0, 945), (6, 15, 10170)]
)
def test_moments(normals, power, moment, variance):
    assert abs((normals**power).mean() - moment) < 5 * math.sqrt(variance / MILLION)


def test_skewness_and_kurtosis(normals):
    standard = (normals - normals.mean()) / normals.std()
    assert abs((standard**3).mean()) < 5 * math.sqrt(6 / MILLION)
    assert abs((standard**4).mean() - 3) < 5 * math.sqrt(24 / MILLION)


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("beyond", [2, 3, 4, 5])
def test_tails(side, beyond):
    draws = 10 * MILLION
    count = np.count_nonzero(side * Tape(2).normal(0, 0, np.arange(1, draws + 1)) > beyond)
    expected = draws * ndtr(-beyond)  # 2.9 beyond five sigma; the count is Poisson around it
    assert abs(count - expected) < 5 * math.sqrt(expected)


def test_distribution(normals):
    # Kolmogorov: P(sqrt(n) D > 2.6) = 2 exp(-2 * 2.6^2) = 3e-6, as rare as five standard errors
    expected = ndtr(np.sort(normals))
    rank = np.arange(MILLION + 1) / MILLION
    deviation = max((rank[1:] - expected).max(), (expected - rank[:-1]).max())
    assert deviation * math.sqrt(MILLION) < 2.6


def test_uniforms():
    uniforms = np.sort(Tape(3).uniform(RUN, ARM, PULL).ravel())
    rank = np.arange(MILLION + 1) / MILLION
    assert max((rank[1:] - uniforms).max(), (uniforms - rank[:-1]).max()) * math.sqrt(MILLION) < 2.6


def test_bits():
    # each of the 64 bits is set half the time: error 1/2 sqrt(1/n)
    words = Tape(4).words(RUN, ARM, PULL).ravel()
    shares = [np.count_nonzero(words >> np.uint64(bit) & np.uint64(1)) / MILLION for bit in range(64)]
    assert np.abs(np.array(shares) - 0.5).max() < 5 * 0.5 / math.sqrt(MILLION)


@pytest.mark.parametrize("mean", [0.001, 0.1, 0.5, 0.9])
def test_bernoulli_frequencies(mean):
    rewards = Tape(5).reward(Instance([mean, mean], Bernoulli()), 0, 1, np.arange(1, MILLION + 1))
    assert abs(rewards.mean() - mean) < 5 * math.sqrt(mean * (1 - mean) / MILLION)


def neighbours() -> dict[str, Callable[[], np.ndarray]]:
    return {
        "runs": lambda: Tape(1).normal(RUN + 1, ARM, PULL),
        "arms": lambda: Tape(1).normal(RUN, ARM + 1, PULL),
        "pulls": lambda: Tape(1).normal(RUN, ARM, PULL + 1),
        "blocks": lambda: Tape(1).normal(RUN, ARM, PULL + 2),
        "streams": lambda: Tape(1).normal(RUN, ARM, PULL, Stream.DECISIONS),
        "other streams": lambda: Tape(1).normal(RUN, ARM, PULL, Stream.TIES),
        "seeds": lambda: Tape(2).normal(RUN, ARM, PULL),
        "seeds' high halves": lambda: Tape(1 + 2**32).normal(RUN, ARM, PULL),
        "run and arm exchanged": lambda: Tape(1).normal(ARM + 1000, RUN, PULL),
    }


# the sample correlation of independent draws has standard error 1/sqrt(n); so have those of their squares and signs
@pytest.mark.parametrize("transform", [np.positive, np.square, np.abs], ids=["values", "squares", "sizes"])
@pytest.mark.parametrize("which", neighbours())
def test_neighbours_are_independent(normals, which, transform):
    other = neighbours()[which]().ravel()
    correlation = np.corrcoef(transform(normals), transform(other))[0, 1]
    assert abs(correlation) < 5 / math.sqrt(MILLION)


def test_sums_over_arms_and_runs_have_the_variance_of_independent_draws(normals):
    # a common component, too small to see in pairs, would add up: var of 10,000 sums of 100 has error 100 sqrt(2/10^4)
    cube = normals.reshape(100, 100, 100)
    for axis in range(3):
        assert abs(cube.sum(axis).var() - 100) < 5 * 100 * math.sqrt(2 / 10_000)
