"""How often the check rejects the right rule, and finds a wrong one, on random instances at the settings users get."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unbandit as ub

SIGMA = 0.5
RULES = {
    "ucb": ub.UCB(),
    "ucb1": ub.UCB1(),
    "moss": ub.MOSS(),
    "klucb": ub.KLUCB(noise="gaussian", sigma=SIGMA),
    "lilucb": ub.LilUCB(),
    "sae": ub.SAE(),
}


def flagged(made: ub.Demonstrator, read: ub.Demonstrator, arms: int, rounds: int, spread: float, seed: int) -> bool:
    means = spread * np.random.default_rng([seed, arms]).standard_normal(arms)
    log = made.demonstrate(ub.Instance(means, SIGMA), rounds, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ub.AssumptionWarning)
        return ub.estimate(log, read, sigma=SIGMA, check=True).check.verdict == "does not fit"


@pytest.mark.parametrize("name", RULES)
def test_the_right_rule_is_seldom_rejected(name: str) -> None:
    """At most 2% are; 12 logs of 2 to 30 arms, of which two rejections would happen once in 50 tests."""
    sizes = [(2, 500), (4, 1_000), (10, 1_000), (30, 800)]
    rejected = sum(
        flagged(RULES[name], RULES[name], arms, rounds, (1.0, 1.0, 0.01)[seed], 20 + seed)
        for arms, rounds in sizes
        for seed in range(3)
    )
    assert rejected <= 1


@pytest.mark.parametrize(
    ("made", "read"), [("ucb", "ucb1"), ("ucb1", "ucb"), ("ucb1", "moss"), ("ucb", "klucb"), ("lilucb", "ucb")]
)
def test_a_wrong_rule_is_found(made: str, read: str) -> None:
    found = sum(flagged(RULES[made], RULES[read], 4, 2_000, 1.0, seed) for seed in range(5))
    assert found >= 4
