"""`unbandit.leak`: equivalent observed rewards, by their definition, and for rules that reveal no values."""

from __future__ import annotations

import json

import numpy as np
import pytest

import unbandit as ub
from unbandit.planning.runs import read_runs


def test_equivalents_follow_their_definition():
    instance = ub.datasets.linear(3)
    found = ub.leak(instance, "sae", 3_000, runs=60, seed=5)
    read = read_runs(instance, ub.SAE(), 3_000, 60, 5, 0.95)
    for at, row in enumerate(found.arms):
        errors = read.error[:, at]
        share = np.isfinite(errors).mean()
        assert row.pulls == pytest.approx(read.pulls[:, at].mean())
        assert row.estimated == pytest.approx(share)
        if at:
            assert row.rmse == pytest.approx(np.sqrt(np.nanmean(errors**2)))
            assert row.equivalent == pytest.approx(share * 0.25 / row.rmse**2)
            assert row.share == pytest.approx(row.equivalent / row.pulls)
    assert found.found == read.found.mean()
    best = found["0"]
    assert (best.equivalent, best.rmse, best.share) == (None, None, None)


def test_bernoulli_rewards_count_with_their_own_noise():
    instance = ub.Instance([0.9, 0.5], ub.Bernoulli())
    row = ub.leak(instance, "ucb:scale=0.5", 1_000, runs=60)["1"]
    assert row.equivalent == pytest.approx(row.estimated * 0.25 / row.rmse**2)


def test_uniform_gives_nothing_away():
    found = ub.leak("linear", "uniform", 300, runs=30)
    assert (found.reveals, found.found, found.total) == ("nothing", None, 0.0)
    assert [row.equivalent for row in found.arms] == [None, 0.0, 0.0, 0.0]
    assert sum(row.pulls for row in found.arms) == pytest.approx(300)


def test_explore_then_commit_gives_away_the_best_arm_only():
    found = ub.leak("linear", ub.ExploreThenCommit(), 2_000, runs=60)
    assert (found.reveals, found.total) == ("best", 0.0)
    assert found.found > 0.7
    assert found.found_error < 0.1


def test_an_arm_without_any_estimate_gives_nothing_away():
    row = ub.leak(ub.Instance([1.0, 0.99, 0.0], 0.5), "sae", 1_000, runs=20)["1"]
    assert (row.estimated, row.rmse, row.equivalent) == (0.0, None, 0.0)


def test_randomised_rules_are_refused_with_the_reason():
    with pytest.raises(ub.NotIdentifiable, match=r"epsilon-greedy.*at random"):
        ub.leak("two-armed", "epsilon-greedy", 100)


def test_table_json_and_picture():
    found = ub.leak("two-armed", "ucb", 500, runs=30)
    read = json.loads(found.to_json())
    assert read["arms"] == found.to_frame().to_dicts()
    assert (read["schema"], read["horizon"], read["runs"], read["reveals"]) == ("unbandit.leak/1", 500, 30, "values")
    assert found.to_json() == ub.leak("two-armed", "ucb", 500, runs=30, threads=1).to_json()
    assert {"0", "1"} <= {text.get_text() for text in found.plot().axes[0].texts}
    assert ub.leak("two-armed", "uniform", 50, runs=10).plot().axes
    assert "equivalent rewards" in repr(found)
    with pytest.raises(KeyError, match="expected an arm among 0, 1"):
        found["2"]


@pytest.mark.parametrize("rule", ["ucb", "uniform"])
def test_an_answer_comes_back_from_json(rule):
    found = ub.leak("two-armed", rule, 300, runs=20)
    again = ub.Leak.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert (again.arms, again.total, repr(again)) == (found.arms, found.total, repr(found))
    with pytest.raises(ub.ParameterError, match=r"unbandit\.leak/1; got unbandit\.plan/1"):
        ub.Leak.from_json('{"schema": "unbandit.plan/1"}')


@pytest.mark.parametrize("options", [{"runs": 1}, {"seed": -1}, {"threads": 0}])
def test_bad_options_are_refused(options):
    with pytest.raises(ub.ParameterError):
        ub.leak("two-armed", "ucb", 100, **options)
    with pytest.raises(ub.ParameterError, match="horizon"):
        ub.leak("two-armed", "ucb", 0)
