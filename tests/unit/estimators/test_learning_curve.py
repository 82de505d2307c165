"""How an answer settled: the same estimates on the first rounds."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from unbandit import (
    SAE,
    UCB,
    ActionLog,
    AssumptionWarning,
    Instance,
    NotIdentifiable,
    ParameterError,
    Thompson,
    estimate,
    learning_curve,
)
from unbandit.result import VERDICTS

INSTANCE = Instance([1.0, 0.6, 0.2], 1.0, ["a", "b", "c"])
RULE = UCB(alpha=0.25)


def same(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)
        for name in ("pulls", "gap", "gap_low", "gap_high", "mean", "mean_low", "mean_high", "ratio", "verdict")
    )


@pytest.mark.parametrize("rule", [RULE, SAE(alpha=0.25)], ids=str)
@pytest.mark.parametrize("options", [{}, {"best_mean": 1.0}, {"method": "counts"}, {"method": "naive"}], ids=str)
def test_every_row_is_the_estimate_on_the_first_rounds(rule, options):
    log = rule.demonstrate(INSTANCE, 3_000, seed=2)
    growth = learning_curve(log, rule, points=6, sigma=1.0, **options)
    assert growth.rounds[-1] == 3_000
    assert same(estimate_on(log, rule, 3_000, options), row_of(growth, -1))
    for place in range(growth.rounds.size):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            alone = estimate_on(log, rule, int(growth.rounds[place]), options)
        assert same(alone, row_of(growth, place))


def estimate_on(log, rule, rounds, options):
    begun = ActionLog.from_codes(log.demonstration(0)[:rounds], log.arms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(begun, rule, horizon=3_000, sigma=1.0, **options).columns


def row_of(growth, place):
    from dataclasses import fields, replace

    columns = growth.columns
    return replace(
        columns, **{field.name: getattr(columns, field.name)[place].reshape(1, -1) for field in fields(columns)}
    )


def test_rounds_are_spaced_by_logarithm_and_end_with_the_log():
    log = RULE.demonstrate(INSTANCE, 100_000, seed=2)
    rounds = learning_curve(log, RULE, sigma=1.0, points=9).rounds
    assert (rounds[0], rounds[-1], rounds.size) == (10, 100_000, 9)
    steps = np.diff(np.log(rounds))
    assert np.allclose(steps, steps.mean(), rtol=0.05)
    assert learning_curve(log, RULE, sigma=1.0, points=1).rounds.tolist() == [100_000]
    assert learning_curve(ActionLog.from_actions("ABA"), RULE, sigma=1.0).rounds.tolist() == [3]


def test_the_rule_keeps_its_horizon():
    log = RULE.demonstrate(INSTANCE, 2_000, seed=2)
    assert learning_curve(log, RULE, sigma=1.0).answer.horizons == (2_000,)
    assert learning_curve(log, RULE, sigma=1.0, horizon=5_000).answer.horizons == (5_000,)


def test_ratios_are_counted_in_one_arms_gap_throughout():
    log = RULE.demonstrate(INSTANCE, 5_000, seed=2)
    growth = learning_curve(log, RULE, scale="unknown")
    assert growth.quantity == "ratio"
    unit = growth.answer.columns.ratio[0].tolist().index(1.0)
    known = growth.columns.ratio[:, unit]
    assert (known[np.isfinite(known)] == 1.0).all()


def test_where_the_first_rounds_tell_nothing_there_is_nothing():
    # only from round 65 on does the record turn from c, whose mean is given, to a: before, no mean follows from it
    log = ActionLog.from_actions("abc" + "aaab" * 15 + "caaca" + "a" * 60)
    growth = learning_curve(log, "ucb", sigma=1.0, anchor={"c": 0.2})
    told = np.isfinite(growth.columns.mean).any(axis=1)
    assert told.tolist() == (growth.rounds >= 65).tolist()
    assert 5 < told.sum() < told.size - 5
    assert (growth.columns.verdict[~told] == VERDICTS.index("unseen")).all()
    assert np.isfinite(growth.columns.mean[-1]).all()


def test_a_long_log_is_followed_in_good_time():
    log = RULE.demonstrate(Instance(np.linspace(1, 0, 10)), 1_000_000, seed=2)
    learning_curve(log, RULE, sigma=1.0)
    start = time.process_time()
    learning_curve(log, RULE, sigma=1.0)
    assert time.process_time() - start < 1.5  # a tenth of a second on a machine with nothing else to do


def test_one_demonstration_of_several_is_followed_by_name():
    log = RULE.demonstrate(INSTANCE, 500, runs=3, seed=2)
    growth = learning_curve(log, RULE, demonstration="3", sigma=1.0)
    assert growth.demonstration == "3"
    assert np.array_equal(growth.columns.pulls[-1], log.pulls[2])
    with pytest.raises(ParameterError, match="demonstration: expected one of 1, 2, 3"):
        learning_curve(log, RULE, demonstration="4", sigma=1.0)


def test_the_table_has_a_row_for_every_arm_and_number_of_rounds():
    growth = learning_curve(RULE.demonstrate(INSTANCE, 500, seed=2), RULE, sigma=1.0, points=4)
    frame = growth.to_frame()
    assert frame.columns[:3] == ["rounds", "arm", "pulls"]
    assert frame.shape == (12, 11)
    assert frame["rounds"].to_list() == np.repeat(growth.rounds, 3).tolist()
    assert not frame["gap"].is_nan().any()
    assert repr(growth) == "<LearningCurve: 3 arms, 4 estimates after 10 to 500 rounds>"


def test_no_warning_is_raised_that_the_answer_does_not_hold():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        growth = learning_curve(RULE.demonstrate(INSTANCE, 500, seed=2), RULE)
    assert [notice.code for notice in growth.answer.warnings] == ["sigma-assumed"]


def test_what_cannot_be_followed_is_refused_with_the_reason():
    log = RULE.demonstrate(INSTANCE, 500, seed=2)
    for method in ("posterior", "bootstrap"):
        with pytest.raises(ParameterError, match=f"method {method} draws random numbers"):
            learning_curve(log, RULE, method=method)
    by_chance = Thompson(sigma=1.0)
    with pytest.raises(ParameterError, match="thompson draws its arms at random"):
        learning_curve(by_chance.demonstrate(INSTANCE, 100, seed=1), by_chance)
    with pytest.raises(ParameterError, match="holds counts"):
        learning_curve(ActionLog.from_counts({"A": 7, "B": 3}), RULE)
    with pytest.raises(ParameterError, match="pool: demonstrations are followed one by one"):
        learning_curve(log, RULE, pool=True)
    for points in (0, 2.5, True):
        with pytest.raises(ParameterError, match="points: expected a whole number"):
            learning_curve(log, RULE, points=points)
    with pytest.raises(NotIdentifiable):
        learning_curve(log, "uniform")
