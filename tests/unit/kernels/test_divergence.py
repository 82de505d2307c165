"""Bounds by the Bernoulli divergence, against 50-digit arithmetic and at their edges."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit.kernels.divergence import bernoulli_divergence, lower_bernoulli, upper_bernoulli

RATES = st.one_of(st.floats(1e-9, 1e-3), st.floats(1e-3, 1), st.floats(1, 30))


def exact_divergence(p: float, q: float) -> mpmath.mpf:
    p, q = mpmath.mpf(p), mpmath.mpf(q)
    return p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q))


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
