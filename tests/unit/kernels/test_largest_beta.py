"""The probability that one Beta draw is the largest: held against SciPy, directly and from tables moved on by pulls."""

from __future__ import annotations

from itertools import pairwise

import numba
import numpy as np
import pytest
from scipy import integrate, special

from unbandit.kernels.largest_beta import largest_by_tables, largest_of_betas, lay_tables, pull_tables

COUNTS = [0, 1, 2, 7, 30, 200, 1_000, 5_000]


def exact(a, b, arm):
    """Return the integral by adaptive quadrature on the scale of log odds, piece by piece."""

    def integrand(y):
        value = np.exp(a[arm] * special.log_expit(y) + b[arm] * special.log_expit(-y) - special.betaln(a[arm], b[arm]))
        for other in set(range(a.size)) - {arm}:
            if y > 0:
                value *= special.betaincc(b[other], a[other], special.expit(-y))
            else:
                value *= special.betainc(a[other], b[other], special.expit(y))
        return value

    centres, widths = np.log(a / b), np.sqrt(1 / a + 1 / b)
    order = np.argsort(widths)[:3]
    steps = (centres[order, None] + widths[order, None] * [-40, -12, -6, -3, 0, 3, 6, 12, 40, 120]).ravel()
    own = centres[arm] + widths[arm] * np.array([-40, -6, -3, 0, 3, 6, 12, 40, 120])
    pieces = pairwise(np.unique(np.concatenate([steps, own])))
    return sum(integrate.quad(integrand, *piece, epsabs=1e-14, epsrel=1e-10, limit=200)[0] for piece in pieces)


@numba.njit
def every(a, b, arm, out):
    for at in range(arm.size):
        out[at] = largest_of_betas(a[at], b[at], arm[at])


@numba.njit
def walk(arms, rewards, successes, failures, among, out):
    """Fill in the probability of each round's arm, for particles that get these rewards: (rounds, particles).

    It is compared with the arms in `among`.
    """
    number, size = rewards.shape[1], arms.max() + 1
    wins, pulls = np.zeros((number, size), np.int64), np.zeros(size, np.int64)
    low, high = np.zeros(size, np.int64), np.zeros(size, np.int64)
    tables, laid = lay_tables(successes, failures, pulls, low, high, 1.0, among), 1
    for step in range(arms.size):
        arm = arms[step]
        largest_by_tables(tables, wins, arm, among, out[step])
        wins[:, arm] += rewards[step]
        pulls[arm] += 1
        if pulls[arm] > tables.expiry[arm]:
            for each in range(size):
                low[each], high[each] = wins[:, each].min(), wins[:, each].max()
            tables = lay_tables(successes, failures, pulls, low, high, 1.0, among)
            laid += 1
        else:
            pull_tables(tables, arm)
    return laid


def check(found, expected):
    """Hold the relative error to 1e-6 down to probabilities of 1e-8, and the absolute one everywhere."""
    assert np.abs(found / np.maximum(expected, 1e-300) - 1)[expected > 1e-8].max() < 1e-6
    assert np.abs(found - expected).max() < 1e-6


@pytest.mark.parametrize(("arms", "states"), [(2, 60), (3, 40), (4, 40), (10, 12), (20, 8)])
def test_random_states(arms, states):
    rng = np.random.default_rng(arms)
    pulls = rng.choice(COUNTS, (states, arms))
    spread = rng.normal(0, 1, (states, arms)) * rng.choice([0.02, 0.1, 0.3], (states, 1))
    successes = rng.binomial(pulls, np.clip(rng.choice([0.1, 0.5, 0.8], (states, 1)) + spread, 0.0, 1.0))
    prior = rng.choice([0.1, 0.5, 1.0, 2.5], (states, 1))
    a, b = successes + prior, pulls - successes + prior
    arm, found = rng.integers(0, arms, states), np.empty(states)
    every(a, b, arm, found)
    check(found, np.array([exact(*state) for state in zip(a, b, arm, strict=True)]))


@pytest.mark.parametrize("pulls", [(3, 3), (4_000, 2), (2_000, 2_000, 5)])
def test_no_success_and_no_failure(pulls):
    pulls = np.array(pulls)
    for successes in (pulls * 0, pulls, np.where(np.arange(pulls.size) == 0, pulls, 0)):
        a, b = 1.0 + successes, 1.0 + pulls - successes
        for arm in range(pulls.size):
            assert largest_of_betas(a, b, arm) == pytest.approx(exact(a, b, arm), abs=1e-7)


def test_two_arms_have_a_closed_form():
    """For whole `a`: the first draw is larger with probability `sum B(a_1 + i, b_0 + b_1) / ((b_0 + i) B B)`."""
    a, b = np.array([30.0, 20.0]), np.array([25.0, 44.0])
    i = np.arange(a[0])
    logs = special.betaln(a[1] + i, b[0] + b[1]) - np.log(b[0] + i) - special.betaln(1 + i, b[0])
    assert largest_of_betas(a, b, 0) == pytest.approx(np.exp(logs - special.betaln(a[1], b[1])).sum(), abs=1e-9)


def test_all_arms_together_are_certain():
    rng = np.random.default_rng(1)
    for _ in range(20):
        pulls = rng.choice(COUNTS, 5)
        a = 1.0 + rng.binomial(pulls, 0.4)
        assert sum(largest_of_betas(a, 2.0 + pulls - a, arm) for arm in range(5)) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize(("successes", "failures"), [(1.0, 1.0), (0.1, 3.0)])
@pytest.mark.parametrize(
    ("means", "away"),
    [([0.7, 0.65, 0.2], None), ([1.0, 0.99, 0.5], None), ([0.0, 0.02, 0.3, 0.3], None), ([0.9, 0.4, 0.2], 0)],
)
def test_tables_follow_a_cloud(successes, failures, means, away):
    """Also for particles whose shares differ far more than those of a cloud, and that have no success or no failure.

    An arm that is `away` is not compared, though its own tables reach further up than those of the others.
    """
    rng, rounds, number = np.random.default_rng(2), 1_200, 8
    among = np.array([arm for arm in range(len(means)) if arm != away])
    arms = rng.choice(len(means), rounds, p=np.array([8, *[1] * (len(means) - 1)]) / (7 + len(means)))
    shares = np.clip(np.array(means) + rng.normal(0, 0.2, (number, 1)), 0, 1)
    rewards = (rng.random((rounds, number)) < shares[:, arms].T).astype(np.int64)
    found = np.empty((rounds, number))
    laid = walk(arms, rewards, successes, failures, among, found)
    assert 10 < laid < 300
    states = sorted({1, 2, 5, 17, *rng.integers(0, rounds, 60).tolist(), rounds - 1})
    a, b, arm, taken = [], [], [], []
    for step in states:
        for particle in range(number if arms[step] != away else 0):
            wins = np.array([rewards[:step, particle][arms[:step] == each].sum() for each in range(len(means))])
            pulls = np.bincount(arms[:step], minlength=len(means))
            a.append((successes + wins)[among])
            b.append((failures + pulls - wins)[among])
            arm.append(np.searchsorted(among, arms[step]))
            taken.append(found[step, particle])
    direct = np.empty(len(arm))
    every(np.array(a), np.array(b), np.array(arm), direct)
    check(np.array(taken), direct)
