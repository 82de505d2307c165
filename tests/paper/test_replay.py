"""Demonstrations looked into: the rewards played again are those that the demonstrator saw."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import SAE, UCB
from unbandit.datasets.registry import two_armed
from unbandit.paper.figure import Results, Size
from unbandit.paper.sketches import BLOCK, SketchSwitching, play
from unbandit.study.monte_carlo import measured, replicates

RULES = {"SAE": SAE(alpha=0.25), "UCB": UCB(alpha=0.25)}


def test_ucb_pulls_the_larger_index_of_the_replayed_means():
    rule, horizon, seed = RULES["UCB"], 600, 5
    for played in play(rule, two_armed(), horizon, runs=3, seed=seed):
        pulls, means = played.hidden_means(seed)
        index = means[2:-1] + rule.width(pulls[2:-1].astype(float), horizon)
        assert (index.argmax(axis=1) == played.actions[2:]).all()


def test_runs_do_not_depend_on_their_number_and_arms_are_shuffled():
    few = list(play(RULES["UCB"], two_armed(), 50, runs=3, seed=1))
    many = list(play(RULES["UCB"], two_armed(), 50, runs=BLOCK + 5, seed=1))
    assert [played.run for played in many] == list(range(BLOCK + 5))
    for one, other in zip(few, many, strict=False):
        assert (one.actions == other.actions).all()
        assert one.worse == other.worse
    # of 205 fair coins, between 70 and 135 heads but once in 100,000 times
    assert 70 < sum(played.worse for played in many) < 135


def test_replicates_give_the_error_of_a_mean():
    values = np.random.default_rng(1).normal(size=20)
    found = measured(replicates(np.mean, values))
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(20))


def test_nothing_to_replicate():
    assert np.isnan(replicates(lambda values: np.nan, np.empty(0))).all()


def test_the_estimates_of_the_sketch_are_the_papers_formulas():
    """SAE's gap is 2C(n) after n pulls of both; UCB's C(n₂) - C(n₁), for n₁ pulls of the arm kept, n₂ of the other."""
    table, horizon = SketchSwitching().table(Results(Size(runs=4), {})), 5_000
    for name, rule in RULES.items():
        rows = table.filter(rule=name)
        dropped, kept = (
            rule.width(rows[f"pulls_{which}"].to_numpy().astype(float), horizon) for which in ("dropped", "kept")
        )
        assert rows.height == 4
        assert rows["estimate"].to_list() == pytest.approx(2 * dropped if name == "SAE" else dropped - kept)
        assert (rows["pulls_dropped"] + rows["pulls_kept"] == rows["switching_round"]).all()
        assert (rows["pulls_dropped"] == rows["pulls_kept"]).all() == (name == "SAE")
        assert rows["gap"].to_list() == [0.5] * 4
