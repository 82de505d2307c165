"""The fast kernels against the plain-Python algorithms, action for action."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import reference_sae, reference_ucb, simulated

from unbandit.demonstrators import SAE, UCB
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.formula import PowerWidth

LAYOUTS = {
    "equal": np.ones,
    "zero": np.zeros,
    "spread": lambda arms: np.linspace(0, 1, arms),
    "falling": lambda arms: np.linspace(1, 0, arms),
    "first is best": lambda arms: (np.arange(arms) == 0).astype(float),
    "last is best": lambda arms: (np.arange(arms) == arms - 1).astype(float),
    "halves": lambda arms: np.where(np.arange(arms) % 2, 0.5, 0.25),
}
GAUSSIAN_LAYOUTS = LAYOUTS | {
    "negative": lambda arms: -5 - np.arange(arms, dtype=float),
    "huge": lambda arms: 1e9 * np.arange(arms),
    "random": lambda arms: np.random.default_rng(arms).normal(size=arms),
}
ALPHAS = st.one_of(st.sampled_from([0.0, 0.001, 0.15, 0.25, 0.5, 0.9]), st.floats(0, 0.99))
SCALES = st.one_of(st.sampled_from([2**0.5, 1e-6, 1e6]), st.floats(1e-3, 1e3))


@st.composite
def instances(draw) -> Instance:
    arms = draw(st.integers(2, 40))
    if draw(st.booleans()):
        return Instance(LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](arms), Bernoulli())
    means = GAUSSIAN_LAYOUTS[draw(st.sampled_from(sorted(GAUSSIAN_LAYOUTS)))](arms)
    return Instance(means, draw(st.sampled_from([1e-9, 1e-3, 0.5, 1.0, 1e6])))


runs = st.one_of(st.integers(0, 20), st.sampled_from([2**32 - 1, 2**31]))
seeds = st.integers(0, 2**64 - 1)
worlds = st.tuples(instances(), st.integers(1, 300), ALPHAS, SCALES, runs, seeds)
TINY = (Instance([0.0, 0.0]), 1, 0.0, 1.0, 0, 0)
SHORT = (Instance(np.zeros(40), Bernoulli()), 39, 0.25, 1.0, 0, 1)
LEVEL = (Instance(np.full(7, 0.5), Bernoulli()), 300, 0.0, 0.1, 3, 2)


@settings(max_examples=150)
@given(worlds, st.sampled_from(["lowest", "random"]))
@example(TINY, "lowest")
@example(SHORT, "lowest")
@example(SHORT, "random")
@example(LEVEL, "lowest")
@example(LEVEL, "random")
def test_ucb_is_algorithm_2(world, ties):
    instance, horizon, alpha, scale, run, seed = world
    rule = UCB(alpha=alpha, scale=scale, ties=ties)
    played = simulated(rule, instance, horizon, 1, seed, first_run=run)
    assert played[0].tolist() == reference_ucb(rule, instance, horizon, run, seed)


@settings(max_examples=100)
@given(worlds)
@example(TINY)
@example(SHORT)
@example(LEVEL)
def test_sae_is_algorithm_1(world):
    instance, horizon, alpha, scale, run, seed = world
    rule = SAE(alpha=alpha, scale=scale)
    played = simulated(rule, instance, horizon, 1, seed, first_run=run)
    assert played[0].tolist() == reference_sae(rule, instance, horizon, run, seed)


@pytest.mark.parametrize("rule", [UCB(), UCB(ties="random"), SAE(scale=0.2)], ids=str)
@pytest.mark.parametrize("arms", [2, 30, 300])
def test_threads_and_the_number_of_runs_change_nothing(rule, arms):
    instance = Instance(np.linspace(0, 1, arms), 0.5)
    whole = rule.demonstrate(instance, 500, runs=200, seed=6, threads=1).actions
    assert np.array_equal(rule.demonstrate(instance, 500, runs=200, seed=6, threads=3).actions, whole)
    assert np.array_equal(rule.demonstrate(instance, 500, runs=200, seed=6).actions, whole)
    assert np.array_equal(rule.demonstrate(instance, 500, runs=7, seed=6, threads=3).actions, whole[: 7 * 500])
    assert np.array_equal(simulated(rule, instance, 500, 150, 6, first_run=50).ravel(), whole[50 * 500 :])


def test_runs_differ_and_so_do_seeds():
    first, second = UCB().demonstrate(Instance([1.0, 0.9]), 500, runs=2).actions.reshape(2, 500)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, UCB().demonstrate(Instance([1.0, 0.9]), 500, seed=1).actions)


@pytest.mark.parametrize(("arms", "kind"), [(2, np.uint8), (256, np.uint8), (257, np.uint16), (65_537, np.uint32)])
@pytest.mark.parametrize("rule", [UCB(), SAE()], ids=str)
def test_actions_are_kept_in_the_smallest_type(rule, arms, kind):
    log = rule.demonstrate(Instance(np.zeros(arms)), arms)
    assert log.actions.dtype == kind
    assert np.array_equal(log.actions, np.arange(arms))  # the opening reaches the last arm


def test_a_demonstration_is_a_log_with_the_arms_of_the_instance():
    log = UCB().demonstrate(Instance([1.0, 0.5], arms=["x", "y"]), 10, runs=3)
    assert (log.arms, len(log), log.lengths.tolist()) == (("x", "y"), 3, [10, 10, 10])


def test_random_ties_are_even():
    # certain and equal rewards: the opening of each run is a random order; each arm leads a quarter of the runs
    instance, runs = Instance([1.0] * 4, Bernoulli()), 20_000
    openings = UCB(ties="random").demonstrate(instance, 4, runs=runs, seed=1).actions.reshape(runs, 4)
    assert (np.sort(openings, axis=1) == np.arange(4)).all()
    for place in range(4):
        shares = np.bincount(openings[:, place], minlength=4) / runs
        assert np.abs(shares - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / runs)


@pytest.mark.parametrize("rule", [UCB(), UCB(ties="random"), SAE(scale=0.2)], ids=str)
def test_a_horizon_too_long_for_tables_gives_the_same_actions(monkeypatch, rule):
    instance, horizon = Instance([1.0, 0.5, 0.8], 0.5), 3_000
    expected = rule.demonstrate(instance, horizon, runs=3, seed=5).actions
    monkeypatch.setattr("unbandit.demonstrators.widths.LONGEST_TABLE", 100)
    assert isinstance(rule.parameters(horizon), PowerWidth)
    assert np.array_equal(rule.demonstrate(instance, horizon, runs=3, seed=5).actions, expected)


def test_counts_by_levels_without_tables(monkeypatch):
    rule, instance = UCB(), Instance(np.linspace(0, 1, 80))
    expected = rule.evidence(instance, 2_000, runs=2, seed=6)
    monkeypatch.setattr("unbandit.demonstrators.widths.LONGEST_TABLE", 10)
    found = rule.evidence(instance, 2_000, runs=2, seed=6)
    assert np.array_equal(found.own, expected.own)
    assert np.array_equal(found.of_best, expected.of_best)
