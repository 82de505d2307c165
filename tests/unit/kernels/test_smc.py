"""The parts of the particle filters, run as plain Python against SciPy and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unbandit.kernels.rng import QUANTILE_TABLE
from unbandit.kernels.smc.cloud import ArmPrior, inherit_rows, posterior_mean, posterior_success
from unbandit.kernels.smc.proposal import log_twist, no_ones, one_more, reservoir, truncated_normal, twisted_proposal


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.5), (-np.inf, -3.0), (2.0, np.inf), (-12.0, -9.0), (9.0, np.inf)])
def test_a_truncated_normal_is_the_quantile_within_its_interval(low, high):
    for uniform in (0.1, 0.5, 0.9):
        value, log_mass = truncated_normal(low, high, uniform, QUANTILE_TABLE)
        assert low <= value <= high
        assert log_mass == pytest.approx(stats.norm.logcdf(-low) if high == np.inf else np.log(
            np.diff(stats.norm.cdf([low, high]))[0]), rel=1e-6)  # fmt: skip
        quantiles = stats.truncnorm.ppf([uniform, 1 - uniform], low, high)  # the number may count from either end
        assert np.abs(value - quantiles).min() < 0.02


def test_an_empty_interval_has_no_probability():
    assert truncated_normal(1.0, 1.0, 0.5, QUANTILE_TABLE) == (1.0, -np.inf)


def test_the_posterior_of_a_mean_is_conjugate():
    mean, variance = posterior_mean(ArmPrior(0.2, 0.49, 0.5), 4, 3.0)
    precision = 1 / 0.49 + 4 / 0.25
    assert (mean, variance) == (pytest.approx((0.2 / 0.49 + 3.0 / 0.25) / precision), pytest.approx(1 / precision))
    assert posterior_success(ArmPrior(1.5, 1.0, 1.0), 3, 2) == pytest.approx(3.5 / 5.5)


def test_numbers_of_ones_have_beta_binomial_probabilities():
    chances = [no_ones(2.5, 1.5, 6)]
    for outcome in range(1, 7):
        chances.append(one_more(chances[-1], outcome, 2.5, 1.5, 6))
    assert chances == pytest.approx(stats.betabinom(6, 2.5, 1.5).pmf(range(7)))


def test_a_reservoir_draws_in_proportion():
    counts = np.zeros(3)
    for uniform in (np.arange(10_000) + 0.5) / 10_000:
        drawn, mass = 0, 0.0
        for outcome, chance in enumerate((0.2, 0.5, 0.1)):
            drawn, uniform, mass = reservoir(drawn, uniform, mass, outcome, chance)
        counts[drawn] += 1
    assert mass == pytest.approx(0.8)
    assert counts / 10_000 == pytest.approx([0.25, 0.625, 0.125], abs=1e-3)


def test_a_twisted_proposal_is_the_prediction_times_the_twisting_factor():
    """At any sum x: prediction(x) exp(log_twist(x)) = proposal(x) exp(log_weight)."""
    prior, known, total, hidden = ArmPrior(0.1, 0.6, 0.5), 3.0, 2.0, 2
    twist = twisted_proposal(prior, known, total, 1.5, hidden, 5, 7, 0.8, 0.05)
    mean, variance = posterior_mean(prior, known, total)
    prediction = stats.norm(hidden * mean, np.sqrt(hidden**2 * variance + hidden * 0.25))
    proposal = stats.norm(twist.centre, twist.deviation)
    for x in (-1.0, 0.5, 2.0):
        assert prediction.logpdf(x) + log_twist(twist, x, 0.8) == pytest.approx(proposal.logpdf(x) + twist.log_weight)


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_inherited_in_place(seed):
    generator = np.random.default_rng(seed)
    ancestors = np.sort(generator.integers(7, size=7))
    rows = generator.normal(size=(7, 3))
    expected = rows[ancestors]
    inherit_rows(rows, ancestors)
    np.testing.assert_array_equal(rows, expected)
