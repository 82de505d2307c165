"""The rounds that surprise are those whose action was improbable."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unbandit as ub


def test_an_explored_arm_surprises_in_its_own_round():
    actions = np.array([0, 1] + [0] * 98)
    actions[60] = 1
    found = ub.posterior(ub.ActionLog.from_actions(actions), ub.EpsilonGreedy(epsilon=0.1), sigma=0.5, particles=200)
    assert found.surprise.argmin() == 60
    assert found.surprise[60] == pytest.approx(math.log(0.05), abs=0.01)
    assert found.surprise.sum() == pytest.approx(found.log_evidence, abs=0.5)


def test_the_uniform_rule_is_surprised_by_every_round_alike():
    log = ub.Uniform().demonstrate(ub.Instance([1.0, 0.0, 0.5]), 20, seed=2)
    found = ub.identify(log, "uniform", sigma=0.5, particles=20)
    (surprise,) = found.leading.evidence.surprise
    assert surprise == pytest.approx(np.full(20, -math.log(3)))
