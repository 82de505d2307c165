"""Dataframes as logs, and demonstrations of which some cannot be anchored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unbandit import SAE, UCB, ActionLog, AssumptionWarning, Instance, NotIdentifiable, ParameterError, estimate

CHOICES = list("AB" + "AAAB" * 20 + "A" * 118)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=["pandas", "polars", "lazy"])
def test_a_dataframe_is_a_log(frame):
    table = frame({"trial": list(range(1, len(CHOICES) + 1)), "choice": CHOICES})
    answer, expected = estimate(table, "ucb", sigma=1.0), estimate(CHOICES, "ucb", sigma=1.0)
    assert answer.to_dict()["arms"] == expected.to_dict()["arms"]
    with pytest.raises(ParameterError, match=r"got a dataframe. Use ActionLog.from_frame"):
        ActionLog.from_actions(table)


def test_one_demonstration_without_the_anchor_does_not_lose_the_others():
    rule = UCB(alpha=0.25)
    log = ActionLog.from_actions([CHOICES, ["A", "B", *"A" * 50]])  # in the second, B is only bounded
    with pytest.warns(AssumptionWarning, match='anchor "B" has no estimated gap'):
        answer = estimate(log, rule, sigma=1.0, anchor={"B": 0.5})
    assert answer["A", "1"].mean == pytest.approx(0.5 + answer["B", "1"].gap)
    assert (answer["A", "2"].mean, answer["B", "2"].gap_low is None) == (None, False)
    assert [notice.demonstration for notice in answer.warnings] == ["2"]
    with pytest.raises(NotIdentifiable, match="anchor"):
        estimate(log.select(1), rule, sigma=1.0, anchor={"B": 0.5})
    with pytest.raises(KeyError, match="several demonstrations"):
        answer["A"]
    with pytest.raises(KeyError, match="expected an arm among A, B"):
        answer["C", "1"]


def test_ratios_name_their_unit():
    answer = estimate(CHOICES, "ucb", scale="unknown")
    assert (answer["B"].ratio, answer["A"].gap, answer.sigma) == (1.0, 0.0, None)
    assert {notice.code: notice.arm for notice in answer.notes}["reference"] == "B"


@pytest.mark.parametrize("given", [{"reference": "B"}, {"constant": 1.0}])
def test_an_option_that_would_not_be_used_is_refused(given):
    with pytest.raises(ParameterError, match="expected only"):
        estimate(CHOICES, "ucb", sigma=1.0, **given)


def test_the_best_arms_noise_is_known_with_its_mean_even_where_several_are_active():
    log = SAE().demonstrate(Instance([0.9, 0.85]), 20, seed=1)
    with pytest.warns(AssumptionWarning, match="still active"):
        certain = estimate(log, SAE(), bernoulli=True, best_mean=1.0)
    with pytest.warns(AssumptionWarning, match="still active"):
        unknown = estimate(log, SAE(), bernoulli=True)
    assert np.all(certain.columns.gap_high < unknown.columns.gap_high)
