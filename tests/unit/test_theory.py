import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit import theory
from unbandit.errors import ParameterError

# The numbers below are worked from T = 10^4 and alpha = 1/4, where T^alpha = 10 and G = (10 - 1) / (1/4) = 36.
T, ALPHA = 10_000, 0.25


def test_growth_by_hand():
    assert theory.growth(T, ALPHA) == pytest.approx(36.0)
    assert theory.growth(100, 0.5) == pytest.approx(18.0)  # (10 - 1) / (1/2)
    assert theory.growth(T, 0.0) == math.log(T)
    assert theory.growth(1, 0.3) == 0.0


def test_growth_takes_arrays_of_either():
    assert theory.growth([1, 100, T], 0.5) == pytest.approx([0.0, 18.0, 198.0])  # (100 - 1) / (1/2) = 198
    assert theory.growth(T, [0.0, 0.25, 0.5]) == pytest.approx([math.log(T), 36.0, 198.0])


@given(st.floats(1.0, 1e12), st.floats(1e-14, 0.999))
def test_growth_keeps_its_digits(horizon, alpha):
    with mpmath.workdps(50):
        exact = (mpmath.mpf(horizon) ** mpmath.mpf(alpha) - 1) / mpmath.mpf(alpha)
        # Rounding alpha ln T costs T^alpha about alpha ln T half-units in the last place, no more.
        assert abs(theory.growth(horizon, alpha) - exact) <= 1e-15 * exact * (4 + alpha * math.log(horizon))


def test_growth_tends_to_the_logarithm():
    # The plain (T^alpha - 1) / alpha is off by 1% at alpha = 1e-15.
    assert theory.growth(T, 1e-15) == pytest.approx(math.log(T), rel=1e-13)


def test_width_by_hand():
    # sqrt(2 * 36 / 8) = 3; with scale 5 * 0.1: 0.5 * sqrt(36 / 9) = 1
    assert theory.width(8, T, ALPHA) == pytest.approx(3.0)
    assert theory.width(9, T, ALPHA, scale=0.5) == pytest.approx(1.0)
    assert theory.width([0, 2, 8], T, ALPHA) == pytest.approx([math.inf, 6.0, 3.0])
    assert theory.width(0, 1, ALPHA) == math.inf


def test_kappa_and_the_bound_on_pulls_by_hand():
    # 4 * 36 / (1/2)^2 = 576, and 8 * 576 = 4608
    assert theory.kappa(0.5, T, ALPHA) == pytest.approx(576.0)
    assert theory.pull_upper_bound(0.5, T, ALPHA) == pytest.approx(4608.0)
    # scale 1/2: 2 * (1/4) * 36 / (1/4) = 72, and gaps 1/2 and 1 differ by a factor of 4
    assert theory.kappa([0.5, 1.0], T, ALPHA, scale=0.5) == pytest.approx([72.0, 18.0])


@given(st.floats(0.01, 1.0), st.floats(2.0, 1e6), st.floats(0.0, 0.9), st.floats(0.1, 5.0))
def test_the_bound_on_pulls_is_where_the_width_is_a_quarter_of_the_gap(gap, horizon, alpha, scale):
    pulls = theory.pull_upper_bound(gap, horizon, alpha, scale)
    assert theory.width(pulls, horizon, alpha, scale) == pytest.approx(gap / 4)


def test_regret_bound_by_hand():
    # gaps 1/3, 2/3, 1: 1/gap sums to 3 + 3/2 + 1 = 11/2, and 32 * 36 * 11/2 = 6336
    assert theory.regret_upper_bound([1 / 3, 2 / 3, 1.0], T, ALPHA) == pytest.approx(6336.0)
    assert isinstance(theory.regret_upper_bound([0.5], T, ALPHA), float)
    # one arm, gap 1/2, scale 1: 8 * 2 * 36 / (1/4) * (1/2) = 1152
    assert theory.regret_upper_bound([0.5], T, ALPHA, scale=1.0) == pytest.approx(1152.0)


def test_horizon_condition_by_hand():
    # gap 1/2: 64 * 36 * 4 = 9216 <= 10000; a second such arm doubles it
    assert theory.horizon_required([0.5], T, ALPHA) == pytest.approx(9216.0)
    assert theory.horizon_condition_holds([0.5], T, ALPHA)
    assert theory.horizon_required([0.5, 0.5], T, ALPHA) == pytest.approx(18432.0)
    assert not theory.horizon_condition_holds([0.5, 0.5], T, ALPHA)
    # scale 1/2: 32 * (1/4) * 36 * 4 = 1152
    assert theory.horizon_required([0.5], T, ALPHA, scale=0.5) == pytest.approx(1152.0)


def test_the_papers_two_arms_fall_short_of_its_own_condition():
    # 5000^(1/4) = 8.408964; G = 4 * 7.408964 = 29.635857; 64 * 4 * 29.635857 = 7586.78
    assert theory.horizon_required([0.5], 5000, 0.25) == pytest.approx(7586.78, abs=0.005)
    assert not any(theory.horizon_condition_holds([0.5], horizon, 0.25) for horizon in (500, 1000, 2000, 5000))


def test_lower_bound_by_hand():
    # 1 / (16 * sqrt(100)) = 1/160; below one expected pull it stays at 1/16
    assert theory.lower_bound(100) == pytest.approx(1 / 160)
    assert theory.lower_bound([0.0, 0.25, 1.0, 4.0]) == pytest.approx([1 / 16, 1 / 16, 1 / 16, 1 / 32])


def test_tradeoff_slopes():
    assert theory.tradeoff_slope() == -0.5
    assert theory.tradeoff_slope(power=2) == -1.0


def test_numbers_give_numbers_and_arrays_give_arrays():
    for answer in (
        theory.growth(T, ALPHA),
        theory.width(3, T, ALPHA),
        theory.kappa(1, T, ALPHA),
        theory.lower_bound(3),
    ):
        assert isinstance(answer, float)
    assert theory.width(np.arange(1, 7).reshape(2, 3), T, ALPHA).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.growth(T, 1.0), "alpha: expected .* not including, 1; got 1"),
        (lambda: theory.growth(T, [0.5, -0.1]), "alpha: .* got -0.1"),
        (lambda: theory.growth(T, math.nan), "alpha: .* got nan"),
        (lambda: theory.growth(0.5, 0.2), "horizon: expected a number of rounds, 1 or more; got 0.5"),
        (lambda: theory.growth(math.inf, 0.2), "horizon: .* got inf"),
        (lambda: theory.width(-1, T, ALPHA), "pulls: expected a count, 0 or more; got -1"),
        (lambda: theory.width(1, T, ALPHA, scale=0.0), "scale: expected a positive number; got 0"),
        (lambda: theory.kappa(0.0, T, ALPHA), r"gap: .* got 0. Leave out the best arm: gaps\[gaps > 0\]"),
        (lambda: theory.regret_upper_bound([0.0, 0.5], T, ALPHA), "got 0. Leave out the best arm"),
        (lambda: theory.horizon_required([0.5, -0.25], T, ALPHA), "got -0.25"),
        (lambda: theory.horizon_condition_holds([], T, ALPHA), "one suboptimal arm or more; got none"),
        (lambda: theory.lower_bound(math.nan), "pulls: .* got nan"),
        (lambda: theory.tradeoff_slope(0), "power: expected a positive number; got 0"),
    ],
)
def test_bad_parameters_are_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
