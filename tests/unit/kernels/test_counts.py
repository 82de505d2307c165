"""Counts taken from levels, against the same counts read from the simulated actions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import reference_switching, simulated, switching_read

from unbandit.demonstrators import UCB
from unbandit.demonstrators.base import laid_out
from unbandit.demonstrators.index import MANY_ARMS
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.counts import count_by_levels

LAYOUTS = {
    "equal": np.zeros,
    "spread": lambda arms: np.linspace(0, 1, arms),
    "falling": lambda arms: np.linspace(1, 0, arms),
    "one good": lambda arms: (np.arange(arms) == arms // 2).astype(float),
    "alternating": lambda arms: np.arange(arms) % 2.0,
}


def read(rule: UCB, instance: Instance, horizon: int, runs: int, seed: int) -> tuple[np.ndarray, ...]:
    """Simulate, count, and look for the switching rounds."""
    rows = [switching_read(actions, len(instance)) for actions in simulated(rule, instance, horizon, runs, seed)]
    pulls, _, own, of_best = (np.array(part) for part in zip(*rows, strict=True))
    return pulls, own, of_best


def agree(rule: UCB, instance: Instance, horizon: int, runs: int, seed: int, threads: int | None = None) -> bool:
    counts = rule.evidence(instance, horizon, runs=runs, seed=seed, threads=threads)
    expected = read(rule, instance, horizon, runs, seed)
    return all(map(np.array_equal, (counts.pulls, counts.own, counts.of_best), expected))


@settings(max_examples=80)
@given(
    st.one_of(st.integers(2, MANY_ARMS + 1), st.integers(MANY_ARMS, 150)),
    st.sampled_from([1, 2, 31, 32, 33, 64, 100, 300, 1000, 5000]),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([Bernoulli(), 1e-6, 0.1, 1.0, 1e6]),
    st.sampled_from([1e-6, 0.01, 0.1, 2**0.5, 100.0]),
    st.integers(0, 2**64 - 1),
)
def test_counts_by_levels_are_the_counts_of_the_actions(arms, horizon, layout, noise, scale, seed):
    assert agree(UCB(scale=scale), Instance(LAYOUTS[layout](arms), noise), horizon, 2, seed)


@pytest.mark.parametrize("rule", [UCB(), UCB(ties="random")], ids=str)
@pytest.mark.parametrize("arms", [3, MANY_ARMS - 1, MANY_ARMS, 300])
def test_every_way_of_counting(rule, arms):
    instance = Instance(np.random.default_rng(1).random(arms), 0.5)
    assert agree(rule, instance, 2000, 7, 11, threads=2)


@pytest.mark.parametrize("noise", [1.0, Bernoulli()], ids=["Gaussian", "Bernoulli"])
def test_many_pulls(noise):
    assert agree(UCB(), Instance(np.linspace(0, 1, 100), noise), 200_000, 1, 4)


def test_counts_agree_with_the_definition():
    rule, instance, horizon = UCB(scale=0.2), Instance(np.linspace(0, 1, 70), 0.3), 400
    counts = rule.evidence(instance, horizon, runs=3, seed=2)
    for run, actions in enumerate(simulated(rule, instance, horizon, 3, 2).tolist()):
        assert (counts.own[run].tolist(), counts.of_best[run].tolist()) == reference_switching(actions, 70)[1:]


def test_no_place_is_out_of_bounds():
    """In plain Python, where that is an error: the first arm alone outlasts the horizon at the level first aimed at."""
    arms, horizon, seed, rule = 66, 88, 82, UCB(scale=100)
    instance = Instance(np.random.default_rng(seed).normal(size=arms), 1e6)
    bandit, found = laid_out(instance, horizon, seed), np.empty((3, 1, arms), np.int64)
    with np.errstate(over="ignore"):  # the generator's products wrap around, as they should
        count_by_levels.py_func(bandit, rule.parameters(horizon), 0, *found)
    assert all(map(np.array_equal, found, read(rule, instance, horizon, 1, seed)))
