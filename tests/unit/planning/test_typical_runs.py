"""The typical run: the estimators' own equation, solved for the pulls, and near to what simulation gives."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import SAE, UCB, UCB1, Bernoulli, Gaussian, Instance, NotIdentifiable, datasets
from unbandit.demonstrators import Uniform
from unbandit.planning.runs import arm_deviations, typical_run

FOUR = datasets.linear(4)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.6])
@pytest.mark.parametrize("horizon", [100, 5_000, 10**9])
def test_an_additive_rule_s_gaps_are_differences_of_widths(alpha, horizon):
    rule = UCB(alpha=alpha, scale=0.8)
    run = typical_run(FOUR, rule, horizon)
    widths = rule.width(run.pulls, horizon)
    assert run.pulls.sum() == pytest.approx(horizon, rel=1e-6)
    assert widths - widths[0] == pytest.approx(FOUR.gaps, rel=1e-3, abs=1e-3)
    assert run.regret == pytest.approx(run.pulls @ FOUR.gaps)


def test_deviations_are_those_of_the_intervals():
    run = typical_run(FOUR, UCB(), 5_000)
    expected = 0.5 * np.sqrt(1 / run.pulls + 1 / run.pulls[0])
    assert run.deviation[1:] == pytest.approx(expected[1:])
    assert (run.reach(1.96)[1:] > 1.96 * expected[1:]).all()  # the upper end starts one decision earlier


def test_bernoulli_arms_have_a_noise_of_their_own():
    assert arm_deviations(Instance([0.5, 0.1], Bernoulli())).tolist() == pytest.approx([0.5, 0.3])
    assert arm_deviations(Instance([0.5, 0.1], Gaussian(2.0))).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("rule", [UCB(), UCB(alpha=0.5, scale=0.5), SAE(), SAE(batch=10), UCB1()], ids=str)
def test_pulls_and_regret_are_near_those_of_simulated_runs(rule):
    run = typical_run(FOUR, rule, 20_000)
    orders = np.tile(np.arange(4), (200, 1))
    pulls = rule.evidence(FOUR, 20_000, runs=200, seed=3, orders=orders).pulls.mean(axis=0)
    assert run.pulls == pytest.approx(pulls, rel=0.15)
    assert run.regret == pytest.approx(pulls @ FOUR.gaps, rel=0.1)


def test_an_arm_that_the_rounds_do_not_suffice_for_has_no_estimate():
    run = typical_run(FOUR, SAE(), 2_000)
    assert np.isfinite(run.deviation).tolist() == [False, False, True, True]
    assert run.pulls[0] == run.pulls[1]
    twins = typical_run(Instance([1.0, 1.0, 0.0]), SAE(), 10**6)
    assert np.isfinite(twins.deviation).tolist() == [False, False, True]
    assert np.isinf(typical_run(FOUR, UCB(initial=500), 10_000).deviation[3])


def test_rules_of_other_kinds_are_refused():
    with pytest.raises(NotIdentifiable, match="uniform: there is no equation"):
        typical_run(FOUR, Uniform(), 100)
