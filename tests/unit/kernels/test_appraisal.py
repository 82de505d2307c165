"""One arm at a time says what the estimators say of whole tables."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import Bernoulli, Instance, Study, parse_rule
from unbandit.estimators.intervals import Noise, ends, quantile
from unbandit.estimators.procedures import Anchor, compare_many
from unbandit.instance import Gaussian
from unbandit.kernels import procedures
from unbandit.kernels.compile import compiled
from unbandit.result import BEST
from unbandit.study.rows import _setting, _tests

RULES = (
    "ucb", "ucb:alpha=0.9,scale=0.2", "ucb:initial=3,batch=5", "ucb1", "ucb1:initial=2", "moss", "lilucb", "klucb",
    "klucb:noise=gaussian", "klucb:level=round,batch=4", "ucbv", "sae", "sae:alpha=0.1,scale=0.3", "sae:batch=7",
    "phased",
)  # fmt: skip


@compiled
def index_arm(parameters, setting, pulls, own, of_best, rounds, most, ended, over):
    return procedures.index_arm(parameters, setting, pulls, own, of_best, rounds, most, ended, over)


def one_by_one(rule, cell, evidence, method, study):
    """Appraise every arm of every run."""
    horizon, parameters = cell.horizon, rule.parameters(cell.horizon)
    setting = _setting(study, cell, rule)
    elimination = "sae" in rule.name or rule.name == "phased"
    tests = _tests(rule, horizon) if elimination else None
    answers = np.full((4, *evidence.pulls.shape), np.nan)
    for run, pulls in enumerate(evidence.pulls):
        best, most = int(pulls.argmax()), int(pulls.max())
        gone = np.zeros(pulls.size, bool)
        if elimination:
            gone = (pulls > 0) & (pulls < most - 1) if method == "counts" else evidence.gone[run]
        active = int(((pulls > 0) & ~gone).sum())
        for arm, count in enumerate(pulls.tolist()):
            if elimination:
                said = procedures.eliminated_arm(tests, setting, count, bool(gone[arm]), active, most)
            elif arm == best:
                said = 0.0, np.nan, np.nan, BEST
            elif method == "counts":
                t = int(pulls.sum()) - 1
                said = index_arm(parameters, setting, count, count, most, t, most, t + 1, True)
            else:
                own, of_best = int(evidence.own[run, arm]), int(evidence.of_best[run, arm])
                rounds, ended = int(evidence.rounds[run, arm]), int(evidence.rounds[run, best]) + 1
                said = index_arm(parameters, setting, count, own, of_best, rounds, most, ended, False)
            answers[:, run, arm] = said
    return answers


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("method", ["switching", "counts"])
@pytest.mark.parametrize("horizon", [40, 700])
def test_every_arm_as_the_estimators_have_it(text, method, horizon):
    rule = parse_rule(text)
    bernoulli = rule.bernoulli_only or text == "sae"
    instance = Instance([0.8, 0.3, 0.75, 0.1], Bernoulli() if bernoulli else 0.7, name="four")
    study = Study(instance, rule, horizon, runs=6, estimators=method)
    cell = study.cells[0]
    evidence = rule.evidence(instance, horizon, runs=6, seed=3)
    known = Anchor(None, instance.best_mean)
    comparison = compare_many(evidence, rule, method, horizon, 1.0, known)
    noise = Noise(instance.sigma if isinstance(instance.noise, Gaussian) else None)
    low, high = ends(comparison, noise, known, quantile(0.95))
    gap, found_low, found_high, verdict = one_by_one(rule.for_arms(4), cell, evidence, method, study)
    np.testing.assert_array_equal(verdict, comparison.verdict)
    np.testing.assert_allclose(gap, comparison.gap, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found_low, low, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found_high, high, rtol=1e-9, atol=1e-12)


def test_logarithm_of_the_normal_distribution():
    from scipy.special import log_ndtr

    for u in (-60.0, -20.0, -19.99, -5.0, 0.0, 3.0, 8.0):
        assert procedures._log_normal_cdf(u) == pytest.approx(float(log_ndtr(u)), rel=1e-9, abs=1e-15)


def test_naive_needs_pulls_alone():
    assert procedures.naive_arm(0, 100.0, 1.0)[3] == 3
    assert procedures.naive_arm(4, 100.0, 2.0)[0] == pytest.approx(2 * np.sqrt(np.log(100) / 4))
