"""The bootstrap: a second opinion on intervals, by simulation at the estimate."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unbandit import SAE, UCB, Bernoulli, Instance, NotIdentifiable, ParameterError, estimate
from unbandit.demonstrators import DiscountedUCB, SlidingWindowUCB, parse_rule

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
INSTANCE, RULE = Instance([1.0, 0.7, 0.4, 0.1], 0.5), UCB(alpha=0.25)


@pytest.fixture(scope="module")
def log():
    return RULE.demonstrate(INSTANCE, 2_000, seed=3)


def test_points_are_those_of_the_closed_form_and_intervals_agree_roughly(log):
    plain = estimate(log, RULE, sigma=0.5, best_mean=1.0)
    again = estimate(log, RULE, sigma=0.5, best_mean=1.0, method="bootstrap")
    assert (again.method, again.seed, again.best) == ("bootstrap", 0, ("0",))
    for arm in "123":
        assert again[arm].gap == plain[arm].gap
        length = plain[arm].gap_high - plain[arm].gap_low
        assert again[arm].gap_high - again[arm].gap_low == pytest.approx(length, rel=0.25)
        assert again[arm].mean_low == pytest.approx(1 - again[arm].gap_high)
    assert "1,000 simulations" in next(notice.message for notice in again.notes if notice.code == "bootstrap")
    assert json.loads(again.to_json())["seed"] == 0


def test_the_seed_decides_and_resamples_count(log):
    def ends(**options):
        return estimate(log, RULE, sigma=0.5, method="bootstrap", resamples=200, **options)["3"].gap_high

    assert ends(seed=1) == ends(seed=1)
    assert ends(seed=1) != ends(seed=2)


def test_bounded_arms_keep_their_bounds_and_it_is_said():
    rule = SAE(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=3)
    plain, again = estimate(log, rule, sigma=0.5), estimate(log, rule, sigma=0.5, method="bootstrap", resamples=200)
    for arm in plain.best:
        assert (again[arm].gap_low, again[arm].gap_high) == (plain[arm].gap_low, plain[arm].gap_high)
    assert "bounded-kept" in [notice.code for notice in again.notes]
    assert again["3"].gap_low < again["3"].gap < again["3"].gap_high


def test_it_is_said_when_the_best_arm_or_an_estimate_is_doubtful():
    near = Instance([1.0, 0.99, 0.4], 1.0)
    log = RULE.demonstrate(near, 300, seed=1)
    codes = [notice.code for notice in estimate(log, RULE, sigma=1.0, method="bootstrap", resamples=200).warnings]
    assert "best-uncertain" in codes
    rule = SAE(alpha=0.25)
    log = rule.demonstrate(Instance([1.0, 0.55], 1.0), 1_300, seed=4)
    answer = estimate(log, rule, sigma=1.0, method="bootstrap", resamples=200)
    if answer["1"].verdict == "estimated":
        assert {"often-bounded", "best-uncertain"} & {notice.code for notice in answer.warnings}


@pytest.mark.parametrize("rule", ["klucb", "klucb:level=round", "ucbv"])
def test_bernoulli_rules_are_simulated_at_means(rule):
    rule = parse_rule(rule)
    log = rule.demonstrate(Instance([0.8, 0.5, 0.3], Bernoulli()), 2_000, seed=2)
    answer = estimate(log, rule, bernoulli=True, best_mean=0.8, method="bootstrap", resamples=200)
    assert answer["2"].mean_low < answer["2"].mean < answer["2"].mean_high
    anchored = estimate(log, rule, bernoulli=True, anchor={"1": 0.5}, method="bootstrap", resamples=200)
    assert anchored["0"].mean_low < anchored["0"].mean < anchored["0"].mean_high
    assert (anchored["1"].mean, anchored["1"].mean_low) == (0.5, None)


def test_a_beginning_of_a_longer_run_is_simulated_as_a_beginning():
    whole = RULE.demonstrate(INSTANCE, 5_000, seed=3)
    part = whole.demonstration(0)[:1_000].tolist()
    answer = estimate(part, RULE, horizon=5_000, sigma=0.5, method="bootstrap", resamples=200)
    assert answer.horizons == (5_000,)
    assert answer["3"].gap_low < answer["3"].gap < answer["3"].gap_high


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resamples": 10, "method": "bootstrap"}, "resamples: expected a whole number from 100 to .*; got 10"),
        ({"resamples": 500}, 'resamples: expected only with method="bootstrap"'),
        ({"seed": 1}, 'seed: expected only with method="bootstrap"'),
        ({"method": "bootstrap", "scale": "unknown"}, "scale: method bootstrap plays the rule"),
        ({"method": "bootstrap", "pool": True}, "pool: the bootstrap reads every demonstration by itself"),
    ],
)
def test_options_that_do_not_fit(log, options, said):
    with pytest.raises(ParameterError, match=said):
        estimate(log, RULE, sigma=0.5, **options)


def test_bernoulli_rewards_without_a_mean_are_refused(log):
    with pytest.raises(NotIdentifiable, match="bootstrap: rewards of 0 and 1 are simulated from means"):
        estimate(log, RULE, bernoulli=True, method="bootstrap")


def test_bootstrap_intervals_hold_about_as_often_as_they_say():
    log, held = RULE.demonstrate(Instance(np.linspace(1, 0, 4), 0.5), 500, runs=60, seed=6), []
    answer = estimate(log, RULE, sigma=0.5, method="bootstrap", resamples=200).columns
    gaps = np.linspace(0, 1, 4)
    held = (answer.gap_low <= gaps)[:, 1:] & (gaps <= answer.gap_high)[:, 1:]
    assert 0.87 < held.mean() <= 1.0  # 180 intervals: the Monte-Carlo error is 0.018


@pytest.mark.parametrize("rule", [SlidingWindowUCB(window=50), DiscountedUCB()], ids=str)
def test_rules_that_forget_are_refused_before_anything_is_read(rule):
    log = rule.demonstrate(Instance([1.0, 0.5], 0.5), 100, seed=1)
    with pytest.raises(NotIdentifiable, match=r"the bootstrap counts its simulations.*bracket"):
        estimate(log, rule, method="bootstrap", sigma=0.5)
