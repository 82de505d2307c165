"""The rounds that surprise are those whose action was improbable."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import unbandit as ub
from unbandit.inference.filter import CloudFilter


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


def test_the_filter_of_surprises_runs_when_they_are_read(monkeypatch):
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.0], 0.5), 40, seed=3)
    ran, run = [], CloudFilter.run
    monkeypatch.setattr(CloudFilter, "run", lambda self, cloud: ran.append(self.looks_ahead) or run(self, cloud))
    found = ub.posterior(log, ub.Softmax(temperature=0.3), sigma=0.5, particles=50, check=False)
    assert all(ran)
    copied = replace(found, horizon=50)
    assert all(ran)
    assert copied.surprise.sum() == pytest.approx(found.log_evidence, abs=1.0)
    assert not all(ran)
    assert pickle.loads(pickle.dumps(found)).surprise == pytest.approx(copied.surprise)
