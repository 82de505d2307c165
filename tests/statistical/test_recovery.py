"""Do the estimates find the values that were hidden, and do the intervals hold them as often as they say?

Seeds are fixed, so a test here is red or green for everyone. Tolerances come from the Monte-Carlo error: a share p of n
independent cases has standard error sqrt(p (1 - p) / n), a mean its own; four standard errors are allowed unless a
wider band is what is claimed. The arms are listed in every order equally often: an estimator that leans on the paper's
listing the best arm first would show here.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from unbandit import SAE, UCB, AssumptionWarning, datasets, estimate
from unbandit.result import BOUNDED, ESTIMATED, VERDICTS

TWO, FOUR = datasets.two_armed(), datasets.linear(4)
INSTANCES = {"two": TWO, "four": FOUR}


@dataclass(frozen=True)
class Runs:
    """Answers to many simulated logs: arrays of (runs, arms), the arms back in the instance's own order."""

    truth: np.ndarray
    gap: np.ndarray
    low: np.ndarray
    high: np.ndarray
    verdict: np.ndarray
    found: np.ndarray
    """Whether the best arm, and it alone, was called best."""

    @property
    def held(self):
        """Tell whether the true gap lies between the ends there are."""
        above = np.isnan(self.low) | (self.low <= self.truth)
        return above & (np.isnan(self.high) | (self.truth <= self.high))

    def of(self, verdict):
        """Tell which arms got a verdict, the best arm left out."""
        return (self.verdict == verdict) & (self.truth > 0)


@cache
def simulated(rule, which, horizon, runs, seed):
    instance = INSTANCES[which]
    orders = list(itertools.permutations(range(len(instance))))
    parts, found = [], []
    for at, order in enumerate(orders):
        log = rule.demonstrate(instance.reordered(order), horizon, runs=runs // len(orders), seed=seed + at)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            answer = estimate(log, rule, sigma=instance.sigma)
        columns = (answer.columns.gap, answer.columns.gap_low, answer.columns.gap_high, answer.columns.verdict)
        parts.append([column[:, np.argsort(order)] for column in columns])
        found += [best == (instance.best,) for best in answer.best_by_demonstration]
    return Runs(instance.gaps, *map(np.concatenate, zip(*parts, strict=True)), np.array(found))


def test_two_arms_are_told_apart_as_well_as_by_one_who_saw_the_rewards():
    # Known from 500 to 2000 runs: mean squared error 0.0081, against 0.0088 for the hidden sample mean. The standard
    # error of both this mean and that one is near 0.0005, so four of the difference's are 0.0028.
    runs = simulated(UCB(alpha=0.25), "two", 5_000, 1_000, 11)
    errors = (runs.gap[:, 1] - 0.5) ** 2
    standard_error = errors.std() / math.sqrt(errors.size)
    assert standard_error < 0.0008
    assert runs.found.all()
    assert errors.mean() == pytest.approx(0.0081, abs=4 * math.hypot(standard_error, 0.0005))


def test_the_intervals_of_two_arms_hold_the_gap_as_often_as_they_say():
    # 1,000 intervals: a standard error of 0.7%, so the 93% to 97% claimed for plain intervals is nearly three of them
    runs = simulated(UCB(alpha=0.25), "two", 5_000, 1_000, 11)
    assert 0.93 <= runs.held[:, 1].mean() <= 0.97


@pytest.mark.parametrize("rule", [UCB(alpha=0.25), SAE(alpha=0.25)], ids=lambda rule: rule.name)
@pytest.mark.parametrize("horizon", [5_000, 20_000])
def test_the_intervals_of_four_arms_hold_where_the_best_was_found(rule, horizon):
    # 960 runs, three intervals each: standard error 0.4% at most 0.6% for SAE at T = 5,000, whose best arm stands
    # alone in 44% of runs only (the others are unresolved, and their arms are left out here).
    runs = simulated(rule, "four", horizon, 960, 23)
    estimated = runs.of(ESTIMATED)[runs.found]
    assert 0.93 <= runs.held[runs.found][estimated].mean() <= 0.97
    found = {("ucb", 5_000): 1.0, ("ucb", 20_000): 1.0, ("sae", 5_000): 0.44, ("sae", 20_000): 1.0}
    share = found[rule.name, horizon]
    assert runs.found.mean() == pytest.approx(share, abs=max(4 * math.sqrt(share * (1 - share) / 960), 0.005))


@pytest.mark.parametrize("arm", [1, 2, 3])
@pytest.mark.parametrize("rule", [UCB(alpha=0.25), SAE(alpha=0.25)], ids=lambda rule: rule.name)
def test_no_arm_is_held_much_less_than_the_others(rule, arm):
    # 960 intervals: four standard errors of 0.7% around 95%
    runs = simulated(rule, "four", 20_000, 960, 23)
    assert runs.held[:, arm].mean() == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 960))


def test_an_elimination_rule_cut_short_names_no_best_arm():
    # At T = 2,000 the arm next to the best is still active in every run: nothing is found, and nothing wrong is said.
    runs = simulated(SAE(alpha=0.25), "four", 2_000, 960, 23)
    assert not runs.found.any()
    assert (runs.verdict[:, 0] == BOUNDED).all()
    assert (runs.verdict[:, 1] == BOUNDED).all()
    assert VERDICTS.index("best") not in runs.verdict


@pytest.mark.parametrize(
    ("rule", "horizon"),
    [
        (SAE(alpha=0.25), 500),
        (SAE(alpha=0.25), 2_000),
        (SAE(alpha=0.25), 5_000),
        (UCB(alpha=0.0, scale=0.3), 200),
        (UCB(alpha=0.0, scale=0.6), 200),
    ],
    ids=str,
)
def test_bounds_hold(rule, horizon):
    # A bound is one-sided and starts from an inequality: it holds more often than the level says. At least 400 arms
    # each: three standard errors below 95% would be 92%; all of them hold in fact.
    runs = simulated(rule, "four", horizon, 960, 23)
    bounded = runs.of(BOUNDED)
    assert bounded.sum() >= 400
    assert runs.held[bounded].mean() >= 0.93


@pytest.mark.parametrize(
    ("rule", "which", "horizons"),
    [(UCB(alpha=0.25), "two", (500, 1_000, 2_000, 5_000)), (SAE(alpha=0.25), "four", (2_000, 5_000, 20_000))],
    ids=["ucb", "sae"],
)
def test_the_error_falls_with_the_horizon(rule, which, horizons):
    # From one horizon to the next, the mean squared error of the arms estimated at all of them falls by a fifth or
    # more: many standard errors (3% to 10% of the mean each).
    size, seed = (1_000, 11) if which == "two" else (960, 23)
    answers = [simulated(rule, which, horizon, size, seed) for horizon in horizons]
    arms = np.flatnonzero(np.all([runs.of(ESTIMATED).all(axis=0) for runs in answers], axis=0))
    assert arms.size
    errors = [((runs.gap - runs.truth)[:, arms] ** 2).mean() for runs in answers]
    assert all(later < 0.8 * earlier for earlier, later in itertools.pairwise(errors))


def test_the_level_is_the_share_that_holds():
    # 50% intervals of 2,880 comparisons: standard error 0.9%
    log = UCB(alpha=0.25).demonstrate(FOUR.reordered([2, 0, 3, 1]), 5_000, runs=960, seed=5)
    answer = estimate(log, UCB(alpha=0.25), sigma=0.5, level=0.5)
    truth = FOUR.gaps[[2, 0, 3, 1]]
    held = (answer.columns.gap_low <= truth) & (truth <= answer.columns.gap_high)
    assert held[:, truth > 0].mean() == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(held[:, truth > 0].size))


def test_the_naive_estimator_is_not_consistent():
    # The paper's warning: with the wrong constant its error does not fall. Procedure 2's does, on the same logs.
    rule, errors = UCB(alpha=0.25), {}
    for horizon in (500, 20_000):
        log = rule.demonstrate(TWO, horizon, runs=200, seed=3)
        for method, options in (("naive", {"constant": 0.2}), ("switching", {})):
            gaps = estimate(log, rule, sigma=1.0, method=method, **options).gaps[:, 1]
            errors[method, horizon] = abs(gaps.mean() - 0.5)
    assert errors["naive", 20_000] > 0.3
    assert errors["switching", 20_000] < 0.05
