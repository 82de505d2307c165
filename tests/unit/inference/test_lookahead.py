"""The filter of Beta draws: right whatever it looks ahead by, and its look-ahead is that of normal draws of angles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.inference import filter as filters
from unbandit.inference import twist
from unbandit.inference.clouds import LookAhead, one_look_ahead, run_filters
from unbandit.inference.filter import new_cloud
from unbandit.inference.lookahead import BetaLog, as_angles, beta_log
from unbandit.inference.steps import steps_of, views_of
from unbandit.kernels.smc.bernoulli import filter_bernoulli
from unbandit.kernels.smc.cloud import Belief
from unbandit.kernels.smc.twist import Exponents

RULE = ub.Thompson(noise="bernoulli", successes=1.0, failures=2.0)
ACTIONS = [0, 1, 2, 0, 0, 1, 0, 0, 2]


def read(actions=ACTIONS, arms=3):
    actions = np.array(actions)
    steps = steps_of(actions, np.full(actions.size, np.nan), tuple(map(str, range(arms))), 0, 1)
    return beta_log(RULE, [steps]), steps


def some_lookahead(rounds, arms, rng):
    """Return functions that have nothing to do with the log; they end with 1 after the last round."""
    slope, bend = rng.normal(0, 0.3, (rounds + 1, arms)), rng.normal(0, 0.1, (rounds + 1, arms, arms))
    slope[rounds], bend[rounds] = 0, 0
    return Exponents(np.append(rng.normal(0, 1, rounds), 0.0), slope, bend + bend.transpose(0, 2, 1))


def evidence_of(steps, look, particles, name, function=filter_bernoulli):
    belief = Belief(True, np.full(3, 1.5), np.full(3, 1.0), 1.0)
    cloud = new_cloud(belief, np.zeros((particles, 3)), np.zeros(3), steps.arm.size, np.zeros(0, np.int64), 5, name)
    start = look.constant[0] if look.constant.size else 0.0  # all scores are 0
    died = function(1.0, 2.0, steps, views_of(steps, RULE), cloud, 0, np.full(particles, start), look)
    assert died == 0
    return cloud.increments.sum() + start, cloud


def test_any_lookahead_gives_the_evidence_of_counting():
    log, steps = read()
    expected, means = exact_posterior(RULE, [ACTIONS], 3, (1.5, 1.0), 9)
    look = some_lookahead(len(ACTIONS), 3, np.random.default_rng(1))
    pulls = np.bincount(ACTIONS)
    for each in (log.exponents, look):
        found, cloud = evidence_of(steps, each, 20_000, 1)
        assert found == pytest.approx(expected, abs=0.03)
        weights = np.exp(cloud.log_weights)
        drawn = np.average((1.5 + cloud.sums) / (2.5 + pulls), weights=weights, axis=0)
        assert drawn == pytest.approx(means, abs=0.01)


def test_the_compiled_filter_is_its_plain_python():
    _, steps = read()
    look = some_lookahead(len(ACTIONS), 3, np.random.default_rng(2))
    compiled, cloud = evidence_of(steps, look, 7, 3)
    plain, reference = evidence_of(steps, look, 7, 3, filter_bernoulli.py_func)
    assert compiled == pytest.approx(plain, rel=1e-9)
    assert np.array_equal(cloud.sums, reference.sums)


def test_on_the_scale_of_angles_draws_are_nearly_normal():
    _, steps = read([0, 1, 2, *[0] * 30, *[1] * 20, *[2] * 10])
    belief = Belief(True, np.full(3, 1.5), np.full(3, 1.0), 1.0)
    normal, beliefs, readings, (sums, counts) = as_angles(RULE, belief, [steps], 3)
    successes, pulls = np.array([22.0, 9.0, 3.0]), np.array([31, 21, 11])
    memory = successes[:, None].copy()
    angles = np.arcsin(np.sqrt((successes + 1.0) / (pulls + 3.0)))
    scores = (pulls + 3.0) * angles - 3.0 * np.arcsin(np.sqrt(1.0 / 3.0))
    for arm in range(3):
        exact = RULE.probability(RULE.parameters(63), pulls, memory, 64, arm)
        about = normal.probability(normal.parameters(63), pulls, scores[:, None], 64, arm)
        assert about == pytest.approx(exact, rel=0.25)
    assert beliefs.first == pytest.approx(np.arcsin(np.sqrt(0.6)))
    assert beliefs.second == pytest.approx(0.25 / 2.5)
    assert np.isnan(readings[0].rewards).all()
    assert not sums.any()
    assert not counts.any()


def test_known_rewards_are_moved_to_the_scale_of_angles():
    rewards = np.array([1.0, 0.0, np.nan, 1.0, 1.0, 0.0, 0.0, 1.0, np.nan])
    steps = read()[1]._replace(rewards=rewards)
    _, _, readings, (sums, counts) = as_angles(RULE, Belief(True, np.ones(3), np.ones(3), 1.0), [steps], 3)
    moved = readings[0].rewards
    assert np.isnan(moved).tolist() == np.isnan(rewards).tolist()
    assert counts.tolist() == [5.0, 2.0, 0.0]
    for arm in (0, 1):
        own = (np.array(ACTIONS) == arm) & ~np.isnan(rewards)
        share = (rewards[own].sum() + 0.5) / (own.sum() + 1)
        steep = 0.5 / np.sqrt(share * (1 - share))
        assert moved[own] == pytest.approx(np.arcsin(np.sqrt(share)) + steep * (rewards[own] - share))
        assert sums[arm] == pytest.approx(moved[own].sum())


def test_a_look_ahead_finds_what_ten_times_as_many_particles_without_one_miss():
    rule = ub.Thompson(noise="bernoulli")
    means = np.random.default_rng(1).uniform(0.3, 0.7, 10)
    log = rule.demonstrate(ub.Instance(means, ub.Bernoulli()), 300, seed=1)
    belief = Belief(True, np.ones(10), np.ones(10), 1.0)
    ahead = run_filters(log, rule, belief, [300], 200, 4, 1, 1)
    straight = run_filters(log, rule, belief, [300], 2_000, 4, 1, 1, look_ahead=LookAhead())
    assert ahead.twisted
    assert not straight.twisted
    assert ahead.evidences.std() < 0.6
    assert straight.evidences.mean() < ahead.evidences.mean() + 0.5
    assert straight.evidences.std() > 2 * ahead.evidences.std()


def test_a_poor_lookahead_is_not_used(monkeypatch):
    log = RULE.demonstrate(ub.Instance([0.8, 0.5, 0.4], ub.Bernoulli()), 60, seed=1)
    belief = Belief(True, np.ones(3), np.ones(3), 1.0)
    usual = run_filters(log, RULE, belief, [60], 300, 4, 1, 1)
    assert usual.twisted
    spoilt = some_lookahead(log.actions.size, 3, np.random.default_rng(4))
    spoilt = spoilt._replace(slope=5 * spoilt.slope)
    monkeypatch.setattr(
        BetaLog, "towards", lambda self, twisted: replace(self, exponents=spoilt, log_start=spoilt.constant[0])
    )
    without = run_filters(log, RULE, belief, [60], 300, 4, 1, 1)
    assert not without.twisted
    assert without.evidences.mean() == pytest.approx(usual.evidences.mean(), abs=0.5)


def test_a_strong_prior_far_from_the_observers_has_no_look_ahead():
    """Such a rule's angle moves by other steps than the observer's: clouds agreed on too little evidence."""
    rule = ub.Thompson(noise="bernoulli", successes=50.0, failures=0.1)
    log = rule.demonstrate(ub.Instance([0.5, 0.3, 0.2], ub.Bernoulli()), 100, seed=6)
    for far, belief in ((True, np.ones(3)), (False, np.array([50.0, 50.0, 50.0]))):
        beliefs = Belief(True, belief, np.full(3, 1.0 if far else 0.1), 1.0)
        assert run_filters(log, rule, beliefs, [100], 100, 2, 1, 1).twisted is not far
        assert (one_look_ahead(log, rule, beliefs, [100], 1) is None) is far


def test_a_log_that_is_too_long_is_filtered_without_and_by_more_particles(monkeypatch):
    log = ub.ActionLog.from_actions([[*range(12), *[3] * 3_000]])
    belief = Belief(True, np.ones(12), np.ones(12), 1.0)
    monkeypatch.setattr(twist, "MOST_TWISTED", 1_000)
    result = run_filters(log, RULE, belief, [3_012], None, 2, 1, 1)
    assert not result.twisted
    assert result.passes[0][0].cloud.sums.shape[0] == int(65 / 12 * (1_500_000 // log.actions.size))


def test_a_log_too_long_for_tables_of_betas_gives_the_same_evidence(monkeypatch):
    rule = ub.Thompson(noise="bernoulli")
    log = rule.demonstrate(ub.Instance([0.7, 0.3], ub.Bernoulli()), 30, seed=1)
    asked = {"bernoulli": True, "particles": 2_000, "check": False}
    by_tables = ub.posterior(log, rule, **asked)
    monkeypatch.setattr(filters, "MOST_TABLED", 10)
    assert ub.posterior(log, rule, **asked).log_evidence == pytest.approx(by_tables.log_evidence, abs=0.15)
