"""Which rule is meant where rewards are 0 or 1."""

import pytest

import unbandit as ub
from unbandit.demonstrators import parse_rule
from unbandit.estimators.arguments import meant_rule


def test_a_sampler_of_which_nothing_is_said_counts_successes():
    found, notices = meant_rule(parse_rule("thompson:batch=5"), True)
    assert found == ub.Thompson(noise="bernoulli", batch=5)
    assert [notice.code for notice in notices] == ["beta-priors"]


@pytest.mark.parametrize("text", ["thompson:noise=gaussian", "thompson:sigma=0.5", "thompson:noise=bernoulli", "ucb1"])
def test_what_was_said_stays(text):
    assert meant_rule(parse_rule(text), True) == (parse_rule(text), [])


def test_normal_rewards_change_nothing():
    assert meant_rule(ub.Thompson(), False) == (ub.Thompson(), [])


def test_answers_say_so():
    log = ub.Thompson(noise="bernoulli").demonstrate(ub.Instance([0.7, 0.4], ub.Bernoulli()), 60, seed=1)
    found = ub.estimate(log, "thompson", bernoulli=True, particles=50)
    assert "noise=bernoulli" in found.rule
    assert "beta-priors" in [notice.code for notice in found.notes]
    found = ub.posterior(log, "thompson", bernoulli=True, particles=50, clouds=1)
    assert "noise=bernoulli" in found.rule
    assert ub.Posterior.from_json(found.to_json()).to_json() == found.to_json()  # the error of one cloud is not known
