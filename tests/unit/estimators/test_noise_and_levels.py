"""How long the intervals are: the level, the rewards' noise, the horizon. C(n) = 6 / sqrt(n) at T = 10,000."""

from __future__ import annotations

import math
import warnings

import pytest

from unbandit import SAE, UCB, ActionLog, AssumptionWarning, LogError, ParameterError
from unbandit import estimate as estimate_by

RULE = UCB(alpha=0.25, scale=1.0)
LOG = ActionLog.from_actions(list("AB" + "A" * 8 + "BBB" + "A"))  # gap_B = C(4) - C(9) = 1
DEVIATION = math.sqrt(13) / 6


def estimate(*arguments, **options):
    """Estimate as the paper does, by numbers that can be worked by hand."""
    return estimate_by(*arguments, **{"method": "switching", **options})


def half_length(row):
    """Return the lower half, which starts from the point."""
    return row.gap - row.gap_low


@pytest.mark.parametrize(("level", "z"), [(0.5, 0.674490), (0.9, 1.644854), (0.95, 1.959964), (0.99, 2.575829)])
def test_the_level_sets_the_length(level, z):
    row = estimate(LOG, RULE, horizon=10_000, sigma=2.0, level=level)["B"]
    assert half_length(row) == pytest.approx(z * 2 * DEVIATION, rel=1e-6)
    assert row.gap == pytest.approx(1.0)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95.0, math.nan])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(ParameterError, match="level: expected a number between 0 and 1"):
        estimate(LOG, RULE, sigma=1.0, level=level)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_sigma_is_positive(sigma):
    with pytest.raises(ParameterError, match="sigma: expected a positive number"):
        estimate(LOG, RULE, sigma=sigma)


def test_without_sigma_1_is_assumed_aloud():
    with pytest.warns(AssumptionWarning, match="sigma = 1"):
        result = estimate(LOG, RULE, horizon=10_000)
    assert [notice.code for notice in result.warnings] == ["sigma-assumed"]
    assert result.sigma == 1.0
    assert half_length(result["B"]) == pytest.approx(1.959964 * DEVIATION, rel=1e-6)


def test_the_rules_own_sigma_is_taken_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = estimate(LOG, UCB(alpha=0.25, sigma=0.2), horizon=10_000)  # scale 5 * 0.2 = 1
    assert (result.warnings, result.sigma) == ((), 0.2)
    assert half_length(result["B"]) == pytest.approx(1.959964 * 0.2 * DEVIATION, rel=1e-6)


def test_a_sigma_given_goes_before_the_rules():
    result = estimate(LOG, UCB(alpha=0.25, sigma=0.2), horizon=10_000, sigma=3.0)
    assert result.sigma == 3.0
    assert result["B"].gap == pytest.approx(1.0)


def test_bernoulli_rewards_have_the_noise_of_their_mean():
    # scale 0.4 makes C(n) = 2.4 / sqrt(n): gap C(4) - C(9) = 0.4, so the means are 0.9 and 0.5.
    # s^2 = 0.5 * 0.5 / 4 + 0.9 * 0.1 / 9 = 0.0625 + 0.01 = 0.0725
    rule = UCB(alpha=0.25, scale=0.4)
    result = estimate(LOG, rule, horizon=10_000, bernoulli=True, best_mean=0.9)
    assert (result.sigma, result.warnings) == (None, ())
    assert result["B"].mean == pytest.approx(0.5)
    assert half_length(result["B"]) == pytest.approx(1.959964 * math.sqrt(0.0725), rel=1e-6)
    anchored = estimate(LOG, rule, horizon=10_000, bernoulli=True, anchor={"B": 0.5})
    assert half_length(anchored["B"]) == pytest.approx(half_length(result["B"]))


def test_bernoulli_rewards_of_unknown_mean_have_the_largest_noise():
    result = estimate(LOG, RULE, horizon=10_000, bernoulli=True)
    assert half_length(result["B"]) == pytest.approx(1.959964 * 0.5 * DEVIATION, rel=1e-6)


def test_bernoulli_takes_probabilities_and_no_sigma():
    with pytest.raises(ParameterError, match="best_mean: expected a probability"):
        estimate(LOG, RULE, bernoulli=True, best_mean=1.2)
    with pytest.raises(ParameterError, match="anchor B: expected a probability"):
        estimate(LOG, RULE, bernoulli=True, anchor={"B": -0.1})
    with pytest.raises(ParameterError, match="leave sigma or bernoulli out"):
        estimate(LOG, RULE, bernoulli=True, sigma=1.0)


def test_the_horizon_defaults_to_the_logs_length():
    # T = 14: G = 4 (14^(1/4) - 1) = 4 (1.934336 - 1) = 3.737345; gap = sqrt(G) (1/2 - 1/3) = 0.322203
    result = estimate(LOG, RULE, sigma=1.0)
    assert result.horizons == (14,)
    assert result["B"].gap == pytest.approx(0.322203, abs=1e-6)
    assert result["B"].gap == estimate(LOG, RULE, sigma=1.0, horizon=14)["B"].gap


def test_a_longer_horizon_widens_the_rules_widths_and_not_the_intervals():
    short, long = (estimate(LOG, RULE, sigma=1.0, horizon=horizon)["B"] for horizon in (10_000, 160_000))
    # 160,000^(1/4) = 20: G = 76 instead of 36
    assert long.gap / short.gap == pytest.approx(math.sqrt(76 / 36))
    assert half_length(long) == pytest.approx(half_length(short))


def test_a_horizon_shorter_than_the_log_is_refused():
    with pytest.raises(LogError, match="the log has 14 rounds, more than the horizon 13"):
        estimate(LOG, RULE, sigma=1.0, horizon=13)
    with pytest.raises(LogError, match="more than the horizon 13"):
        estimate_by(ActionLog.from_counts({"A": 10, "B": 4}), RULE, sigma=1.0, horizon=13)


@pytest.mark.parametrize("horizon", [0, -5, 20.5, math.nan, math.inf, "20", 10**400])
def test_a_horizon_is_a_whole_number(horizon):
    with pytest.raises(ParameterError, match="horizon: expected a whole number"):
        estimate(LOG, RULE, sigma=1.0, horizon=horizon)


@pytest.mark.parametrize("rule", [UCB(alpha=0.0, scale=1.0), SAE(alpha=0.0, scale=1.0)])
def test_alpha_0_takes_the_logarithm(rule):
    # G = ln 10,000 = 9.210340; UCB: sqrt(G) / 6 = 0.505810; SAE: ABAB then AA, so 2 sqrt(G / 2) = 4.291932
    log = LOG if rule.name == "ucb" else ActionLog.from_actions(list("ABABAA"))
    expected = 0.505810 if rule.name == "ucb" else 4.291932
    assert estimate(log, rule, horizon=10_000, sigma=1.0)["B"].gap == pytest.approx(expected, abs=1e-6)
