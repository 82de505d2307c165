"""The procedures' scalar formulas, against the paper's equations and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from unbandit import SAE, UCB, Instance, parse_rule
from unbandit.estimators.procedures import Anchor, assumptions, compare
from unbandit.instance import Bernoulli, Gaussian
from unbandit.kernels import intervals, procedures
from unbandit.kernels.compile import compiled
from unbandit.kernels.formula import PowerWidth, SparseWidths
from unbandit.kernels.special import log_normal_cdf
from unbandit.log.tallies import Tallies


@compiled
def solved(rule, best_mean, pulls, best_pulls, round):
    return procedures.procedure_2(rule, best_mean, pulls, best_pulls, round)


def test_procedure_1_is_twice_the_width():
    rule, counts = SAE(alpha=0.1), np.arange(1, 41) / 2
    widths = rule.width(counts, 1_000)
    by_halves = np.concatenate(([np.nan], widths))
    power = rule.power_width(1_000)
    sparse = SparseWidths((2 * counts).astype(np.int64), widths)
    for kind in (by_halves, PowerWidth(power.factor, 2 * power.growth), sparse):
        found = [procedures.procedure_1(kind, pulls) for pulls in counts]
        assert found == pytest.approx(2 * widths, rel=1e-15)


def test_procedure_2_is_a_difference_of_widths_for_an_additive_index():
    rule = UCB(alpha=0.25)
    table = np.concatenate(([np.nan], rule.width(np.arange(1.0, 101), 1_000)))
    expected = table[9] - table[80]
    assert procedures.procedure_2(table, 0.0, 9, 80, 100) == expected
    assert solved(table, 0.0, 9, 80, 100) == expected
    assert solved(rule.power_width(1_000), 0.0, 9, 80, 100) == expected


@pytest.mark.parametrize("text", ["klucb", "klucb:noise=gaussian", "ucb1", "ucbv"])
def test_both_indices_are_equal_at_the_gap_of_procedure_2(text):
    rule = parse_rule(text)
    parameters = rule.parameters(2_000)
    gap = solved(parameters, 0.8, 30, 400, 500)
    assert rule.index(0.8 - gap, 30, 500, 2_000) == pytest.approx(rule.index(0.8, 400, 500, 2_000), rel=1e-9)


@pytest.mark.parametrize(
    "text", ["ucb:alpha=0.1", "ucb:initial=3,batch=5", "moss", "lilucb", "sae", "sae:batch=7", "phased"]
)
@pytest.mark.parametrize("method", ["switching", "counts"])
def test_tables_and_computed_widths_give_the_same_comparison(text, method):
    """Many short demonstrations are compared by a table, one long one by computed or looked-up widths."""
    rule = parse_rule(text).for_arms(4)
    tallies = rule.evidence(Instance([0.8, 0.3, 0.75, 0.1], 0.7), 300, runs=200, seed=3)
    together = compare(tallies, rule, method, 300)
    for which in range(5):
        alone = compare(tallies.part(which, which + 1), rule, method, 300)
        np.testing.assert_allclose(alone.numbers[:, 0], together.numbers[:, which], rtol=1e-13)
        assert alone.verdict[0].tolist() == together.verdict[which].tolist()


@pytest.mark.parametrize("text", ["ucb", "moss", "sae", "klucb:noise=gaussian"])
def test_demonstrations_of_different_horizons_are_compared_one_by_one(text):
    rule = parse_rule(text).for_arms(3)
    tallies = rule.evidence(Instance([0.8, 0.3, 0.75], 0.7), 300, runs=6, seed=3)
    horizons = np.array([300, 500, 300, 301, 500, 999])
    together = compare(tallies, rule, "switching", horizons)
    for which, horizon in enumerate(horizons.tolist()):
        alone = compare(tallies.part(which, which + 1), rule, "switching", horizon)
        np.testing.assert_allclose(alone.numbers[:, 0], together.numbers[:, which], rtol=1e-12)


@pytest.mark.parametrize("text", ["ucb", "moss", "sae"])
def test_a_long_horizon_needs_no_table(text):
    rule = parse_rule(text).for_arms(2)
    pulls = np.array([[10**11, 5_000]])
    names = {"gone": np.array([[False, True]])} if text == "sae" else {}
    counted = Tallies(pulls, own=np.array([[0, 5_000]]), of_best=pulls[:, ::-1].copy(), rounds=pulls, **names)
    assert math.isfinite(compare(counted, rule, "switching", 10**12).gap[0, 1])


def test_logarithm_of_the_normal_distribution():
    for u in (-60.0, -20.0, -19.99, -5.0, 0.0, 3.0, 8.0):
        assert log_normal_cdf(u) == pytest.approx(float(log_ndtr(u)), rel=1e-13, abs=1e-15)


def test_naive_needs_pulls_alone():
    found = compare(Tallies(np.array([[90, 4, 0]])), UCB(), "naive", 100, 2.0)
    assert found.gap[0].tolist() == pytest.approx([0.0, 2 * np.sqrt(np.log(100) / 4), math.nan], nan_ok=True)
    assert found.verdict.tolist() == [[0, 1, 3]]


def test_deviations_of_bernoulli_rewards_follow_their_mean():
    assumed = assumptions(anchor=Anchor(None, 0.9), noise=Bernoulli(), z=1.96)
    assert intervals.known_deviation(assumed) == pytest.approx(0.3)
    assert intervals.reward_deviation(assumed, 1.2, 50.0) == intervals.reward_deviation(assumed, math.nan, 50.0) == 0.5
    assert intervals.reward_deviation(assumed, 0.5, 50.0) == 0.5
    assert intervals.reward_deviation(assumptions(noise=Gaussian(2.0)), 0.5, 50.0) == 2.0
