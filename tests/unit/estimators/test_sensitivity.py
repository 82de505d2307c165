"""The same record with alpha and the width's factor 20% off."""

from __future__ import annotations

import warnings

import pytest

from unbandit import SAE, UCB, ActionLog, ParameterError, estimate, sensitivity
from unbandit.demonstrators import IndexRule
from unbandit.demonstrators.base import known_rules

LOG = ActionLog.from_actions(list("AB" + "A" * 8 + "BBB" + "A"))


@pytest.mark.parametrize("rule", [UCB(alpha=0.25, scale=1.0), SAE(alpha=0.25, scale=1.0)], ids=lambda rule: rule.name)
def test_each_is_the_estimate_with_the_rule_changed(rule):
    log = LOG if rule.name == "ucb" else ActionLog.from_actions(list("ABABAA"))
    found = sensitivity(log, rule, sigma=1.0, best_mean=1.0)
    changes = {"alpha=0.2": {"alpha": 0.2}, "alpha=0.3": {"alpha": 0.3}, "scale=0.8": {"scale": 0.8}}
    changes |= {"scale=1.2": {"scale": 1.2}}
    assert list(found) == list(changes)
    for label, change in changes.items():
        changed = type(rule)(**({"alpha": 0.25, "scale": 1.0} | change))
        assert found[label]["B"].gap == pytest.approx(estimate(log, changed, sigma=1.0)["B"].gap)


def test_the_scale_multiplies_the_gaps_and_leaves_the_intervals_as_long():
    given = {"sigma": 1.0, "method": "switching"}
    usual, found = estimate(LOG, "ucb:scale=1", **given)["B"], sensitivity(LOG, "ucb:scale=1", **given)
    for label, share in (("scale=0.8", 0.8), ("scale=1.2", 1.2)):
        row = found[label]["B"]
        assert row.gap == pytest.approx(share * usual.gap)
        assert row.gap - row.gap_low == pytest.approx(usual.gap - usual.gap_low)


def test_where_the_rule_has_a_sigma_it_is_varied_and_the_noise_is_not():
    found = sensitivity(LOG, "ucb:sigma=0.2")
    assert list(found) == ["alpha=0.2", "alpha=0.3", "sigma=0.16", "sigma=0.24"]
    assert {answer.sigma for answer in found.values()} == {0.2}


def test_it_does_not_say_the_warnings_again():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sensitivity(LOG, "ucb")
    assert all(answer.warnings[0].code == "sigma-assumed" for answer in found.values())


def test_alpha_stays_below_1():
    assert "alpha=0.999" in sensitivity(LOG, "ucb:alpha=0.9", sigma=1.0)


def test_bernoulli_stays_bernoulli():
    assert {answer.sigma for answer in sensitivity(LOG, "ucb:sigma=0.2", bernoulli=True).values()} == {None}


def test_a_sigma_of_0_is_refused_here_too():
    with pytest.raises(ParameterError, match="sigma: expected a positive number"):
        sensitivity(LOG, "ucb:sigma=0.2", sigma=0.0)


def test_a_rule_without_alpha_is_refused():
    class Plain(IndexRule):
        """Pull something."""

        name = "plain"

    try:
        with pytest.raises(ParameterError, match="expected a rule with alpha and scale"):
            sensitivity(LOG, Plain(), sigma=1.0)
    finally:
        del known_rules["plain"]
