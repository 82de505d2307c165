"""Many demonstrations in one log: each is read alone, whatever the lengths and whatever stands beside it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit import SAE, UCB, ActionLog, AssumptionWarning, Instance, estimate
from unbandit.result import NUMBERS

LENGTHS = (3, 40, 7, 1, 200, 12)


def quietly(log, rule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(log, rule, **({"sigma": 1.0, "best_mean": 1.0} | options))


def mixed(rule):
    instance = Instance([1.0, 0.5, 0.2], 0.5)
    runs = [rule.demonstrate(instance, length, seed=length).demonstration(0).tolist() for length in LENGTHS]
    return ActionLog.from_actions(runs, arms=range(3))


@pytest.mark.parametrize("method", ["switching", "counts", "naive"])
@pytest.mark.parametrize("rule", [UCB(scale=0.5), SAE(scale=0.2)], ids=lambda rule: rule.name)
def test_a_row_equals_the_estimate_from_its_demonstration_alone(rule, method):
    log = mixed(rule)
    together = quietly(log, rule, method=method)
    assert together.horizons == LENGTHS
    for which in range(len(log)):
        alone = quietly(log.select(which), rule, method=method)
        for name in (*NUMBERS, "pulls", "verdict"):
            np.testing.assert_array_equal(getattr(together.columns, name)[which], getattr(alone.columns, name)[0])
        assert together.best_by_demonstration[which] == alone.best
        mine = [notice for notice in (*together.warnings, *together.notes) if notice.demonstration == str(which + 1)]
        assert [notice.message for notice in mine] == [notice.message for notice in (*alone.warnings, *alone.notes)]


def test_a_horizon_holds_for_all_and_must_reach_the_longest():
    log = mixed(UCB())
    assert quietly(log, UCB(), horizon=200).horizons == (200,) * len(LENGTHS)
    with pytest.raises(ValueError, match="the log has 200 rounds, more than the horizon 199"):
        quietly(log, UCB(), horizon=199)


def test_counts_of_several_demonstrations():
    import polars as pl

    frame = pl.DataFrame({"subject": ["x", "x", "y", "y"], "arm": ["A", "B", "A", "B"], "pulls": [36, 4, 4, 36]})
    result = quietly(ActionLog.from_frame(frame), UCB(alpha=0.25, scale=1.0), horizon=10_000)
    assert result.best_by_demonstration == (("A",), ("B",))
    assert result.best == ("A", "B")
    np.testing.assert_allclose(result.gaps, [[0.0, 2.0], [2.0, 0.0]])


actions = st.lists(st.integers(0, 2), min_size=1, max_size=40)


@given(actions, st.sampled_from(["ucb", "sae"]))
def test_arms_never_pulled_do_not_change_the_others(played, rule):
    few = quietly(ActionLog.from_actions(played, arms=range(3)), rule)
    many = quietly(ActionLog.from_actions(played, arms=range(10)), rule)
    assert list(few) == list(many)[:3]
    assert few.best == many.best
    for row in list(many)[3:]:
        assert (row.verdict, row.pulls) == ("unseen", 0)
        assert all(getattr(row, name) is None for name in NUMBERS)


@given(st.lists(actions, min_size=1, max_size=5), st.sampled_from(["ucb", "sae"]))
def test_any_log_gives_numbers_that_fit_their_verdicts(runs, rule):
    result = quietly(ActionLog.from_actions(runs, arms=range(3)), rule)
    for row in result:
        numbers = {name for name in NUMBERS if getattr(row, name) is not None}
        if row.verdict == "best":
            assert numbers == {"gap", "mean"}
            assert (row.gap, row.mean) == (0.0, 1.0)
        elif row.verdict == "estimated":
            assert numbers == set(NUMBERS) - {"ratio"}
            assert row.gap_low < row.gap < row.gap_high
            assert row.mean_low < row.mean < row.mean_high
        elif row.verdict == "bounded":
            assert numbers <= {"gap_low", "gap_high", "mean_low", "mean_high"}
            assert row.gap_low >= 0
            assert row.mean_high <= 1.0
            assert (row.gap_high is None) == (row.mean_low is None)
            assert rule == "sae" or row.gap_high is None
        else:
            assert (numbers, row.pulls) == (set(), 0)
