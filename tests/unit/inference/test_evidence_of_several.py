"""The evidence of several demonstrations: what the first of them rule out is not computed for the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unbandit as ub
from unbandit.demonstrators.base import rule_or_family
from unbandit.inference import parameters, usual_prior
from unbandit.inference.parameters import ALLOWANCE, SEEN, _axes, _Evidence
from unbandit.inference.surface import LEAST

PEOPLE = 4


@pytest.fixture
def evidence(monkeypatch):
    """Return the evidence of four people, by a bowl in place of Laplace's method, and whom it was asked about."""
    log = ub.LearningSoftmax(rate=0.3, temperature=0.4).demonstrate(
        ub.Instance([0.8, 0.2], ub.Bernoulli()), horizon=10, runs=PEOPLE, seed=1
    )
    family, asked = rule_or_family("q-learning:fit"), []
    axes, fixed = _axes(family, ub.Bernoulli(), [10] * PEOPLE)

    def bowl(record, rule, belief, horizons):
        asked.append(record.demonstrations[0])
        return 5.0 if rule.rate > 0.98 else -1.0 - 40 * math.log(rule.temperature / 0.4) ** 2

    monkeypatch.setattr(parameters, "evidence_without_clouds", bowl)
    made = _Evidence(log, family, axes, fixed, ub.Bernoulli(), usual_prior(ub.Bernoulli(), None), (10,) * PEOPLE, 0)
    return made, asked


def place(evidence, rate, temperature):
    by_name = {"rate": rate, "temperature": temperature}
    return np.array([by_name[axis.name] if axis.linear else math.log(by_name[axis.name]) for axis in evidence.axes])


def test_people_are_left_out_where_the_first_ones_rule_a_place_out(evidence):
    found, asked = evidence
    true = PEOPLE * (-1 - 40 * math.log(4) ** 2)
    top = found.without_clouds(place(found, 0.3, 0.4))
    assert (top, len(asked)) == (pytest.approx(-1.0 * PEOPLE), PEOPLE)
    asked.clear()
    assert found.without_clouds(place(found, 0.3, 1.6)) == pytest.approx(true)
    assert len(asked) == PEOPLE  # after so few places, all are asked
    for temperature in np.geomspace(0.4, 0.5, SEEN):
        asked.clear()
        near = found.without_clouds(place(found, 0.3, temperature))
        assert len(asked) == PEOPLE
    assert near == pytest.approx(PEOPLE * (-1 - 40 * math.log(1.25) ** 2))
    asked.clear()
    far = found.without_clouds(place(found, 0.3, 1.6))
    assert len(asked) == 1
    assert true < far < top - LEAST  # the most that it can have is next to nothing
    assert far == pytest.approx(true / PEOPLE - 3 * 1.0 + 3 * ALLOWANCE)


def test_where_the_expansion_breaks_down_a_cloud_is_asked(evidence, monkeypatch):
    found, _ = evidence
    monkeypatch.setattr(_Evidence, "_filtered_one", lambda self, rule, which, clouds, seed: (-2.0 - which, 0.1))
    assert found.without_clouds(place(found, 0.99, 0.4)) == -2.0 - 3.0 - 4.0 - 5.0

    def collapsed(self, rule, which, clouds, seed):
        raise ub.InferenceError("no particle explains the choices.")

    monkeypatch.setattr(_Evidence, "_filtered_one", collapsed)
    assert found.without_clouds(place(found, 0.99, 0.4)) == -math.inf
