"""Figures of a switching moment and of a learning curve."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from figure_tools import drawn, words

from unbandit import (
    KLUCB,
    SAE,
    UCB,
    UCB1,
    AssumptionWarning,
    Bernoulli,
    Instance,
    learning_curve,
    plots,
    switching_moment,
)

INSTANCE = Instance([1.0, 0.6, 0.2], 1.0, ["control", "blue", "red"])


@pytest.mark.parametrize("rule", [UCB(alpha=0.25), UCB1(), SAE(alpha=0.25)], ids=str)
@pytest.mark.parametrize("best_mean", [None, 1.0])
def test_both_values_are_named_and_the_round_is_told(rule, best_mean):
    log = rule.demonstrate(INSTANCE, 10_000, seed=2)
    moment = switching_moment(log, rule, sigma=1.0, best_mean=best_mean)
    figure = moment.plot()
    drawn(figure)
    shown = " | ".join(words(figure))
    first, second = ("lower bound of", "upper bound of") if isinstance(rule, SAE) else ("index of", "index of")
    assert f"{first} {moment.best}" in shown
    assert f"{second} {moment.arm}" in shown
    assert f"Round {moment.round:,}:" in shown
    assert "The sample means are hidden" in shown
    assert ("above the best arm's mean" in shown) == (best_mean is None)


def test_where_the_estimate_is_another_methods_the_values_are_not_called_equal():
    rule = UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 10_000, seed=2)
    assert "make both values equal here" in " ".join(words(switching_moment(log, rule, sigma=1.0).plot()))
    naive = switching_moment(log, rule, sigma=1.0, method="naive")
    assert "make both values equal here" not in " ".join(words(naive.plot()))


def test_rewards_of_0_and_1_can_be_drawn():
    rule = KLUCB()
    log = rule.demonstrate(Instance([0.7, 0.5, 0.3], Bernoulli()), 5_000, seed=2)
    moment = switching_moment(log, rule, bernoulli=True, best_mean=0.7)
    figure, growth = moment.plot(), learning_curve(log, rule, bernoulli=True, best_mean=0.7).plot()
    drawn(figure)
    drawn(growth)
    assert f"Round {moment.round:,}:" in " ".join(words(figure))
    assert {"0", "1", "2"} <= set(words(growth))


@pytest.mark.parametrize("options", [{}, {"best_mean": 1.0}, {"scale": "unknown"}, {"method": "naive"}], ids=str)
@pytest.mark.parametrize("rule", [UCB(alpha=0.25), SAE(alpha=0.25)], ids=str)
def test_growth_can_be_drawn_of_every_quantity(rule, options):
    log = rule.demonstrate(INSTANCE, 10_000, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        growth = learning_curve(log, rule, **({} if "scale" in options else {"sigma": 1.0}) | options)
    figure = growth.plot()
    drawn(figure)
    assert set(INSTANCE.arms) <= set(words(figure))


def test_the_truth_is_dashed_and_eight_arms_are_shown():
    instance = Instance(np.linspace(1, 0, 20))
    log = UCB(alpha=0.25).demonstrate(instance, 20_000, seed=1)
    growth = learning_curve(log, "ucb:alpha=0.25", sigma=1.0, best_mean=1.0)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    figure = plots.learning_curve(growth, truth=truth)
    assert len(drawn(figure)) < 100_000
    (said,) = [word for word in words(figure) if "bands" in word]
    assert said == "bands: 95% intervals; dashed: the truth; 8 of 20 arms"
    shown = [word for word in words(figure) if word in instance.arms]
    ranked = [row.arm for row in growth.answer.ranked()]
    assert {ranked[0], ranked[-1]} <= set(shown)
    level = [line for line in figure.axes[0].lines if len(set(line.get_ydata())) == 1 and line.is_dashed()]
    assert {round(float(line.get_ydata()[0]), 9) for line in level} >= {round(truth[ranked[-1]], 9)}


def test_growth_of_a_record_that_tells_little_can_be_drawn():
    log = UCB(alpha=0.25).demonstrate(INSTANCE, 3, seed=2)
    for rule, short in (("ucb:alpha=0.25", log), ("sae", SAE().demonstrate(INSTANCE, 50, seed=1))):
        figure = learning_curve(short, rule, sigma=1.0).plot()
        drawn(figure)
        assert set(INSTANCE.arms) & set(words(figure))
