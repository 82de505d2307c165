"""What seeing the rewards would have told: against draws from the same posteriors."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import Bernoulli, Gaussian
from unbandit.calibration.trials import expected_largest, oracle
from unbandit.inference import BetaPrior, NormalPrior

DRAWS = 400_000


@pytest.mark.parametrize(
    ("pulls", "sums"),
    [([5, 5], [2.0, 1.5]), ([1_950, 34, 9, 4], [1_900.0, 30.0, 6.0, 1.0]), ([300, 0, 2], [-20.0, 0.0, -1.0])],
)
def test_normal_beliefs_and_gaps(pulls, sums):
    prior, sigma = NormalPrior(0.5, 2.0), 0.7
    expected, gap = oracle(prior, Gaussian(sigma), np.array(pulls), np.array(sums))
    precision = 1 / prior.deviation**2 + np.array(pulls) / sigma**2
    mean = (prior.mean / prior.deviation**2 + np.array(sums) / sigma**2) / precision
    np.testing.assert_allclose(expected, mean)
    drawn = mean + np.random.default_rng(1).standard_normal((DRAWS, len(pulls))) / np.sqrt(precision)
    gaps = drawn.max(axis=1, keepdims=True) - drawn
    # five standard errors of the simulated expectation
    assert (np.abs(gaps.mean(axis=0) - gap) < 5 * gaps.std(axis=0) / np.sqrt(DRAWS) + 1e-6).all()


@pytest.mark.parametrize(
    ("pulls", "sums"), [([5, 5], [2, 1]), ([1_950, 34, 9, 0], [1_800, 20, 3, 0]), ([40, 40, 0], [40, 0, 0])]
)
def test_beta_beliefs_and_gaps(pulls, sums):
    prior = BetaPrior(1.0, 2.0)
    expected, gap = oracle(prior, Bernoulli(), np.array(pulls), np.array(sums, float))
    successes, failures = 1.0 + np.array(sums), 2.0 + np.array(pulls) - np.array(sums)
    np.testing.assert_allclose(expected, successes / (successes + failures))
    drawn = np.random.default_rng(1).beta(successes, failures, (DRAWS, len(pulls)))
    gaps = drawn.max(axis=1, keepdims=True) - drawn
    assert (np.abs(gaps.mean(axis=0) - gap) < 5 * gaps.std(axis=0) / np.sqrt(DRAWS) + 1e-6).all()


def test_the_largest_of_two_normals_has_a_formula():
    mean, deviation = np.array([0.3, 0.1]), np.array([1e-3, 0.4])
    spread = np.hypot(*deviation)
    ahead = (mean[0] - mean[1]) / spread
    from scipy.special import ndtr

    density = np.exp(-(ahead**2) / 2) / np.sqrt(2 * np.pi)
    expected = mean[0] * ndtr(ahead) + mean[1] * ndtr(-ahead) + spread * density
    assert expected_largest(mean, deviation) == pytest.approx(expected, abs=2e-5)
