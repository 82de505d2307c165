"""Special functions, against SciPy and 50-digit arithmetic, and at their edges."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from unbandit.kernels.compile import compiled
from unbandit.kernels.special import (
    bernoulli_divergence,
    beta_cdf,
    exponential,
    hazard,
    log_beta,
    log_odds_from_uniform,
    lower_bernoulli,
    normal_cdf,
    normal_density,
    normal_from_uniform,
    softmax_share,
    upper_bernoulli,
)


@compiled
def compiled_share(memory, pulls, sharpness, arm):
    return softmax_share(memory, 0, pulls, True, sharpness, arm)


RATES = st.one_of(st.floats(1e-9, 1e-3), st.floats(1e-3, 1), st.floats(1, 30))


def exact_divergence(p: float, q: float) -> mpmath.mpf:
    p, q = mpmath.mpf(p), mpmath.mpf(q)
    return p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q))


@given(value=st.floats(-800, 700))
@example(4.0)
@example(math.nextafter(4.0, 0.0))
@example(math.nextafter(4.0, 5.0))
@example(-40.0)
@example(math.nextafter(-40.0, 0.0))
def test_the_tabulated_exponential_is_the_exponential(value):
    assert exponential(value) == pytest.approx(math.exp(value), rel=3e-10)


def test_the_tabulated_exponential_of_what_is_no_number_is_none():
    assert math.isnan(exponential(math.nan))
    assert exponential(-math.inf) == 0.0


@given(mean=st.floats(1e-6, 1 - 1e-6), share=st.floats(1e-9, 1 - 1e-9))
def test_the_divergence_keeps_its_digits(mean, share):
    away = (1 - mean) * share
    with mpmath.workdps(50):
        exact = exact_divergence(mean, mpmath.mpf(mean) + mpmath.mpf(away))
    assert float(abs(bernoulli_divergence(mean, away) - exact)) <= 1e-15 * away / (1 - share)


@given(mean=st.floats(1e-9, 1 - 1e-9), rate=RATES)
def test_the_upper_bound_is_where_the_divergence_reaches_the_rate(mean, rate):
    bound = upper_bernoulli(mean, rate)
    assert mean <= bound <= 1
    with mpmath.workdps(50):
        if bound - 1e-14 > mean:
            assert exact_divergence(mean, bound - 1e-14) < rate
        if bound + 1e-14 < 1:
            assert exact_divergence(mean, bound + 1e-14) > rate


@given(mean=st.floats(1e-9, 1 - 1e-9), rate=RATES)
def test_the_lower_bound_is_where_the_divergence_reaches_the_rate(mean, rate):
    index = upper_bernoulli(mean, rate)
    found = lower_bernoulli(index, rate)
    assert found <= index
    if index < 1 - 1e-6:  # nearer to 1 the last digit of the index stands for many means
        assert found == pytest.approx(mean, abs=1e-9)


def test_the_ends():
    for rate in (1e-6, 0.5, 20.0):
        assert upper_bernoulli(1.0, rate) == upper_bernoulli(7.0, rate) == 1.0
        assert upper_bernoulli(0.0, rate) == upper_bernoulli(-7.0, rate) == -math.expm1(-rate)
        assert lower_bernoulli(upper_bernoulli(0.0, rate), rate) == 0.0
        assert lower_bernoulli(1.0, rate) == 1.0
        assert lower_bernoulli(1.01, rate) == math.inf
        assert lower_bernoulli(0.5 * -math.expm1(-rate), rate) == -math.inf
    assert upper_bernoulli(0.3, 0.0) == lower_bernoulli(0.3, 0.0) == 0.3
    assert upper_bernoulli(0.3, 700.0) == 1.0


def test_the_normal_distribution_function():
    for u in np.concatenate([np.linspace(-14, 9, 4001), [-37.0, 37.0]]):
        assert normal_cdf(u) == pytest.approx(special.ndtr(u), rel=3e-5)
        assert normal_density(u) == pytest.approx(np.exp(-u * u / 2) / np.sqrt(2 * np.pi), rel=1e-3)
        slope = np.exp(-u * u / 2 - special.log_ndtr(u)) / np.sqrt(2 * np.pi)
        assert hazard(u) == pytest.approx(slope, rel=2e-3)


def test_the_normal_quantile():
    given = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 2001), 10.0 ** -np.arange(1, 300, 7)])
    for p in given:
        assert normal_from_uniform(p) == pytest.approx(special.ndtri(p), rel=1e-14, abs=1e-15)


def test_the_beta_distribution_and_its_quantile():
    rng = np.random.default_rng(3)
    for a, b in np.exp(rng.uniform(-2, 8.5, (400, 2))):
        y = np.log(a / b) + rng.uniform(-5, 5) * np.sqrt(1 / a + 1 / b)
        expected = special.betainc(a, b, special.expit(y))
        if 1e-300 < expected < 1:
            assert log_beta(a, b) == pytest.approx(special.betaln(a, b), rel=1e-9, abs=1e-8)
            assert beta_cdf(a, b, log_beta(a, b), y) == pytest.approx(expected, rel=1e-6)
        for uniform in (rng.random(), 1e-12):
            found = special.expit(log_odds_from_uniform(a, b, uniform))
            assert special.betainc(a, b, found) == pytest.approx(uniform, rel=1e-6)


def test_compiled_shares_of_averages_just_below_the_end_of_the_table_are_right():
    """Averages of 7 in 10 and 3 in 10 at a temperature of 0.1: 4 apart, but for the last digit."""
    memory, pulls = np.array([[7.0], [3.0]]), np.array([10, 10])
    shares = [compiled_share(memory, pulls, 10.0, arm) for arm in (0, 1)]
    assert shares == pytest.approx([1 / (1 + math.exp(-4)), 1 / (1 + math.exp(4))], rel=1e-8)
