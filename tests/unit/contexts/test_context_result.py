"""What follows from coefficients: how often each offer was the best, and whether several demonstrations fit."""

from __future__ import annotations

import numpy as np
import pytest

import unbandit as ub
from unbandit.contexts.result import estimate_contexts, offered_arms

SIGMA = 0.5


def posterior_of(log, rule, draws, level=0.95):
    """Return a posterior with given draws: (draws, coefficients)."""
    names = rule.design(log).names
    return ub.ContextPosterior(
        str(rule), SIGMA, 1.0, level, names, log.arms, log.rounds, draws[None], draws.mean(axis=0),
        np.cov(draws.T).reshape(len(names), len(names)), -30.0, 0.3, 20.0, 50,
    )  # fmt: skip


@pytest.mark.parametrize("disjoint", [False, True])
def test_a_feature_may_be_named_intercept(disjoint):
    generator = np.random.default_rng(1)
    contexts = np.stack((generator.standard_normal((40, 3)), np.ones((40, 3))), axis=2)
    theta = [[1.0, 0.0], [0.5, 0.2], [-0.5, 0.1]] if disjoint else [1.0, 0.2]
    rule = ub.LinUCB(alpha=1, disjoint=disjoint)
    log = rule.demonstrate(ub.ContextInstance(theta, SIGMA), contexts, seed=1, feature_names=["x1", "intercept"])
    answer = estimate_contexts(log, rule, sigma=SIGMA, particles=200, check=False)
    found = answer.posterior
    assert [feature for feature, _ in found.names] == ["x1", "intercept"] * (3 if disjoint else 1)
    assert sum(each.best * each.offered for each in answer.offers["1"]) == pytest.approx(40)
    assert found.predict([[0.5, 1.0]]).shape == ((3, 1, 3) if disjoint else (3, 1))
    with pytest.raises(ub.ParameterError, match="rows of 2 finite numbers"):
        found.predict([[0.5]])


@pytest.mark.parametrize("rule", [ub.LinUCB(alpha=1, intercept=True), "linucb:alpha=fit,intercept=true"])
def test_a_model_may_have_an_intercept_beside_a_feature_of_that_name(rule):
    log = ub.ContextLog.from_arrays(
        np.random.default_rng(2).standard_normal((9, 3, 1)), [1] * 9, feature_names=["intercept"]
    )
    found = posterior_of(log, ub.LinUCB(alpha=1, intercept=True), np.array([[1.0, 5.0], [2.0, 7.0]]))
    found = ub.ContextPosterior(**{**vars(found), "rule": str(rule)})
    assert found.predict([[3.0]])[0].tolist() == [0.5 * (3 + 5 + 6 + 7)]
    assert sum(each.best * each.offered for each in offered_arms(found, log)) == pytest.approx(9)
