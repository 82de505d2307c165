"""What records give away, held against what is known of it (errors of four Monte-Carlo standard errors are allowed)."""

from __future__ import annotations

import pytest

import unbandit as ub


@pytest.mark.parametrize("horizon", [2_000, 10_000])
def test_ucb_gives_away_nearly_all_that_it_knows(horizon):
    # MSE = sigma^2 (1/n + 1/n_best) up to a little noise in n: between 75% and all of the pulls.
    row = ub.leak("two-armed", "ucb:alpha=0.25", horizon, runs=1_000)["1"]
    assert 0.75 - 4 * row.share_error < row.share < 1.0 + 4 * row.share_error


def test_sae_gives_away_half_for_it_compares_two_arms_of_equal_pulls():
    # MSE = 2 sigma^2 / n, and the arm goes a little early or late: about half of the pulls.
    row = ub.leak("two-armed", "sae:alpha=0.25", 20_000, runs=1_000)["1"]
    assert row.estimated > 0.99
    assert row.share == pytest.approx(0.5, abs=0.1 + 4 * row.share_error)


def test_the_monte_carlo_error_of_a_plan_is_how_far_seeds_scatter():
    plans = [ub.plan("two-armed", "ucb:alpha=0.25", 0.25, runs=60, points=6, seed=seed) for seed in range(1, 13)]
    needs = [planned.need("1") for planned in plans]
    horizons = [need.horizon for need in needs]
    mean = sum(horizons) / len(horizons)
    scatter = (sum((each - mean) ** 2 for each in horizons) / (len(horizons) - 1)) ** 0.5
    said = (sum(need.horizon_error**2 for need in needs) / len(needs)) ** 0.5
    assert 0.4 < said / scatter < 2.5
