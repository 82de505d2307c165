"""Elimination at its edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import reference_sae, simulated

from unbandit.demonstrators import SAE
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.tally import read_epochs


def test_arms_exactly_two_widths_below_are_dropped():
    # certain rewards and widths of exactly 1/2 after one pull: 2 C = 1 = the gap
    rule = SAE(alpha=0, scale=0.5 / np.sqrt(np.log(4)))
    assert rule.width(np.array([1.0]), 4).tolist() == [0.5]
    assert simulated(rule, Instance([1.0, 0.0], Bernoulli()), 4)[0].tolist() == [0, 1, 0, 0]


def test_an_epoch_cut_short_makes_no_test():
    rule, instance = SAE(alpha=0, scale=1e-9), Instance([0.0, 1.0, 0.0], Bernoulli())
    assert simulated(rule, instance, 2)[0].tolist() == [0, 1]
    assert simulated(rule, instance, 5)[0].tolist() == [0, 1, 2, 1, 1]


@pytest.mark.parametrize(("arms", "horizon"), [(224, 3000), (600, 1800), (300, 100)])
def test_many_arms(arms, horizon):
    instance, rule = Instance(np.linspace(0, 1, arms), 0.2), SAE(alpha=0.25, scale=0.1)
    assert simulated(rule, instance, horizon, seed=5)[0].tolist() == reference_sae(rule, instance, horizon, 0, 5)


@settings(max_examples=150, deadline=None)
@given(
    arms=st.integers(2, 9),
    horizon=st.integers(1, 120),
    scale=st.sampled_from([0.05, 0.2, 0.6, 2.0]),
    seed=st.integers(0, 2**32),
    bernoulli=st.booleans(),
)
def test_what_is_counted_is_what_a_log_shows(arms, horizon, scale, seed, bernoulli):
    """Above all at the end of the log, where an elimination may not have shown yet."""
    means = np.random.default_rng(seed).random(arms)
    rule, instance = SAE(scale=scale), Instance(means, Bernoulli() if bernoulli else 0.4)
    found = rule.evidence(instance, horizon, runs=4, seed=seed)
    for run, actions in enumerate(simulated(rule, instance, horizon, 4, seed)):
        pulled = np.bincount(actions, minlength=arms)
        passed, _ = read_epochs(actions, arms)
        assert np.array_equal(found.pulls[run], pulled)
        assert np.array_equal(found.gone[run], (passed > 0) & (pulled > 0))
