"""The statistics behind the claims, on curves whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit.paper.claims import distance, error_falls, error_slope, mean_ratio, regret_slope, used, within_range
from unbandit.paper.simulations import bound_claims, fraction, panel_claims
from unbandit.study.curves import Curve

HORIZONS = np.array([500, 1_000, 2_000, 4_000])
FOLDS, RUNS = 4, 10.0


def made(mse, regret, *, gap=0.5, points=1.0, noise=0.0) -> Curve:
    """Return a curve with a given error and regret at each horizon; `noise` tells folds apart."""
    shape = (FOLDS, HORIZONS.size)
    wobble = 1 + noise * np.arange(-1.5, 2.5)[:, None]
    there = np.broadcast_to(points, shape) * RUNS
    sums = {
        "runs": np.full(shape, RUNS),
        "points": there,
        "squared": np.broadcast_to(mse, shape) * there * wobble,
        "regret": np.broadcast_to(regret, shape) * RUNS * wobble,
    }
    return Curve(HORIZONS, np.full(HORIZONS.size, gap), sums)


def test_slopes_are_those_of_power_laws():
    curve = made(mse=HORIZONS**-0.7, regret=HORIZONS**0.4)
    every = np.ones(4, bool)
    assert error_slope(curve, every) == pytest.approx([-0.7] * 5)
    assert regret_slope(curve, every).value == pytest.approx(0.4)


def test_points_that_rest_on_few_runs_are_left_out():
    curve = made(mse=np.array([9.0, 4.0, 2.0, 1.0]), regret=1.0, points=np.array([0.9, 1.0, 1.0, 1.0]))
    assert within_range(curve, 500, 4_000).tolist() == [False, True, True, True]
    assert within_range(curve, 1_500, 2_500).tolist() == [False, False, True, False]
    assert error_slope(curve, within_range(curve, 0, 9_999)) == pytest.approx([-1.0] * 5)


def test_two_horizons_are_too_few():
    curve = made(mse=np.array([9.0, 4.0, 2.0, 1.0]), regret=1.0, points=np.array([0.9, 0.5, 1.0, 1.0]))
    found = error_falls("it falls", curve)
    assert (found.verdict, found.statistic) == (
        "cannot be tested",
        "slope of log MSE on log T, below 0; 2 of 4 horizons can be used",
    )
    assert used(curve, np.ones(4, bool)) == "4 horizons, T from 500 to 4,000"


def test_a_ratio_without_points_is_unknown():
    one = np.ones((5, 4))
    assert np.isnan(mean_ratio(one, one, np.zeros(4, bool)).value)
    assert mean_ratio(one * 3, one, np.ones(4, bool)).value == pytest.approx(3.0)
    uneven = np.array([[1.0, 4.0, 2.0]] * 5)
    assert mean_ratio(uneven, np.full((5, 3), 2.0), np.ones(3, bool)).value == pytest.approx(1.0)


def test_curves_collapse_where_they_overlap_or_not():
    """Points of one power law, however their x are spread, lie on one curve; a factor between them shows."""
    first, second = made(mse=HORIZONS**-0.5, regret=HORIZONS**0.5), made(mse=2.5 * HORIZONS**-0.8, regret=HORIZONS**0.8)
    assert distance((first.regret, second.regret), (first.mse, second.mse)) == pytest.approx([2.5] * 5)
    few = (first.regret[:, :1], second.regret)
    assert np.isnan(distance(few, (first.mse[:, :1], second.mse))).all()


def verdicts(claims) -> dict[str, str]:
    return {claim.says: claim.verdict for claim in claims}


def test_the_paper_holds_on_curves_that_follow_it():
    small, large = (made(mse=3 / HORIZONS**a, regret=HORIZONS**a, noise=1e-4) for a in (0.15, 0.25))
    arms = [made(mse=gap / HORIZONS**0.25, regret=1.0, gap=gap, noise=1e-4) for gap in (1 / 3, 2 / 3, 1.0)]
    found = verdicts(panel_claims({0.15: small, 0.25: large}, arms, 500, 4_000))
    assert set(found.values()) == {"holds"}
    assert len(found) == 13


def test_the_paper_fails_on_curves_that_do_the_opposite():
    small, large = (made(mse=HORIZONS**a, regret=HORIZONS ** (2 - a), noise=1e-4) for a in (0.15, 0.25))
    arms = [made(mse=1 / gap**2 / HORIZONS, regret=1.0, gap=gap, noise=1e-4) for gap in (1 / 3, 2 / 3, 1.0)]
    found = verdicts(panel_claims({0.15: small, 0.25: large}, arms, 500, 4_000))
    assert set(found.values()) == {"does not hold"}


def test_nothing_is_said_where_nothing_was_estimated():
    none = made(mse=np.nan, regret=1.0, points=0.0)
    found = verdicts(panel_claims({0.15: none, 0.25: none}, [none, none, none], 500, 4_000))
    assert {found[says] for says in found if not says.startswith("(a)")} == {"cannot be tested"}


def test_the_bounds_are_those_of_theory():
    """The bound 32 (T^alpha - 1) / (alpha gap) is below gap T only from 1,800 rounds on at alpha 0.15."""
    large = made(mse=1.0, regret=np.array([0.0, 0.0, 1e9, 1e9]), noise=1e-4)
    regret, theorem = bound_claims({0.15: large}, 4_000, bernoulli=False)
    assert (regret.verdict, theorem.verdict) == ("does not hold", "does not hold")
    assert "the 2 horizons where" in regret.statistic
    assert regret.ours
    assert theorem.ours
    assert theorem.measured.value == pytest.approx(4_000 / (64 * (4_000**0.15 - 1) / 0.15 / 0.25))


def test_gaps_are_written_as_fractions():
    assert [fraction(gap) for gap in (1 / 3, 1.0, 0.5)] == ["1/3", "1", "1/2"]
