"""Switching rounds, and the two values that were weighed there."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import (
    KLUCB,
    SAE,
    UCB,
    UCB1,
    ActionLog,
    Bernoulli,
    ExploreThenCommit,
    Instance,
    NotIdentifiable,
    ParameterError,
    PhasedElimination,
    Thompson,
    Uniform,
    estimate,
    rules,
    switching_moment,
    switching_rounds,
)
from unbandit.estimators.procedures import can_compare

INSTANCE = Instance([1.0, 0.6, 0.2], 1.0, ["a", "b", "c"])
SIMPLE = ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)


def slowly(log, initial=1):
    """Find an index rule's switching rounds as the words say."""
    codes, found = log.demonstration(0).tolist(), {}
    best = int(log.pulls[0].argmax())
    for arm, name in enumerate(log.arms):
        rounds = [t for t, code in enumerate(codes) if code == arm and best in codes[t + 1 :] and best in codes[:t]]
        if arm != best and rounds and codes[: rounds[-1] + 1].count(arm) > initial:
            found[name] = rounds[-1] + 1
    return found


@pytest.mark.parametrize("seed", range(5))
def test_an_index_rules_rounds_are_the_last_pulls_before_the_best_arms(seed):
    log = UCB(alpha=0.25).demonstrate(INSTANCE, 400, seed=seed)
    assert switching_rounds(log, "ucb:alpha=0.25") == slowly(log)
    opened = UCB(alpha=0.25, initial=5).demonstrate(INSTANCE, 400, seed=seed)
    assert switching_rounds(opened, "ucb:alpha=0.25,initial=5") == slowly(opened, 5)


def test_an_elimination_rules_rounds_are_last_pulls_of_arms_that_went():
    log = ActionLog.from_actions("ABC" * 4 + "AC" * 30, arms="ABCD")
    assert switching_rounds(log, "sae") == {"B": 11}
    assert switching_rounds(ActionLog.from_actions("ABABAB"), "sae") == {}


def test_an_arm_of_the_opening_alone_has_no_round():
    assert switching_rounds(ActionLog.from_actions("ABC" + "AB" * 3 + "A" * 9), "ucb") == {"B": 9}


def test_one_demonstration_of_several_is_taken_by_name():
    log = ActionLog.from_actions([list("ABAABAAA"), list("BABABBB")])
    assert switching_rounds(log, "ucb") == {"B": 5}
    assert switching_rounds(log, "ucb", demonstration="2") == {"A": 4}
    assert switching_moment(log, "ucb", demonstration="2", sigma=1.0).arm == "A"
    with pytest.raises(ParameterError, match="demonstration: expected one of 1, 2"):
        switching_rounds(log, "ucb", demonstration="3")


@pytest.mark.parametrize("rule", [UCB(alpha=0.25), UCB(alpha=0.1, scale=0.7), SAE(alpha=0.25), SAE()], ids=str)
@pytest.mark.parametrize("best_mean", [None, 1.0])
def test_both_values_are_equal_at_the_switching_round(rule, best_mean):
    log = rule.demonstrate(INSTANCE, 20_000, seed=3)
    answer = estimate(log, rule, sigma=1.0, best_mean=best_mean, method="switching")
    for arm, at in switching_rounds(log, rule).items():
        moment = switching_moment(log, rule, arm, estimate=answer)
        assert (moment.round, moment.arm, moment.best) == (at, arm, "a")
        here = int(np.searchsorted(moment.rounds, at))
        assert moment.rounds[here] == at
        assert moment.own[here] == pytest.approx(moment.other[here])
        assert moment.gap == pytest.approx(answer[arm].gap)
        assert moment.best_mean == best_mean


@pytest.mark.parametrize("rule", [UCB1(), KLUCB(), KLUCB(noise="gaussian", sigma=1.0, level="round")], ids=str)
def test_an_index_that_is_not_a_mean_plus_a_width_is_weighed_too(rule):
    coins = rule.bernoulli_only
    instance = Instance([0.7, 0.5, 0.3], Bernoulli() if coins else 1.0)
    log = rule.demonstrate(instance, 5_000, seed=3)
    noise = {"bernoulli": True} if coins else {"sigma": 1.0}
    moment = switching_moment(log, rule, best_mean=0.7, **noise)
    here = int(np.searchsorted(moment.rounds, moment.round))
    assert moment.own[here] == pytest.approx(moment.other[here], rel=1e-6)
    n, t = int(moment.other_pulls[0]), int(moment.rounds[0])
    assert moment.other[0] == pytest.approx(rule.index(0.7, n, t + 1, 5_000))


def test_values_are_those_of_the_rule_at_the_counts_of_the_log():
    moment = switching_moment(SIMPLE, "ucb:alpha=0.25", sigma=1.0)
    rule, codes = UCB(alpha=0.25), SIMPLE.demonstration(0)
    for at in (0, moment.rounds.size // 2, moment.rounds.size - 1):
        seen = codes[: moment.rounds[at]]
        assert (moment.own_pulls[at], moment.other_pulls[at]) == ((seen == 1).sum(), (seen == 0).sum())
        assert moment.other[at] == pytest.approx(rule.index(0.0, int((seen == 0).sum()), 1, 200))
    assert moment.rounds[0] < 82 < moment.rounds[-1] <= 200
    assert repr(moment).startswith('<SwitchingMoment: "B" or "A" at round 82')


def test_an_eliminated_arm_stays_where_it_was():
    rule = SAE(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 20_000, seed=3)
    moment = switching_moment(log, rule, "c", sigma=1.0)
    after = moment.rounds > moment.round
    assert moment.kind == "elimination"
    assert len(set(moment.own[after].tolist())) == 1
    assert (np.diff(moment.other) > 0).all()
    assert (np.diff(moment.rounds) > 0).all()
    assert (moment.own[~after][:-1] > moment.other[~after][:-1]).all()


def test_rules_that_test_rarely_have_a_moment_between_two_tests():
    rule = PhasedElimination(alpha=0.1, scale=0.2)
    log = rule.demonstrate(INSTANCE, 20_000, seed=3)
    assert switching_moment(log, rule, sigma=1.0).gap > 0


def test_by_default_the_closest_rival_is_taken():
    log = UCB(alpha=0.25).demonstrate(INSTANCE, 10_000, seed=3)
    assert switching_moment(log, "ucb:alpha=0.25", sigma=1.0).arm == "b"


def test_long_stretches_are_thinned_out():
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.3]), 1_000_000, seed=3)
    moment = switching_moment(log, "ucb:alpha=0.25", sigma=1.0)
    assert moment.rounds.size < 500
    assert (np.diff(moment.rounds) > 0).all()


def test_a_pooled_answer_can_be_put_in():
    rule = UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 5_000, runs=3, seed=3)
    pooled = estimate(log, rule, sigma=1.0, pool=True)
    assert switching_moment(log, rule, "b", estimate=pooled, demonstration="2").gap == pytest.approx(pooled["b"].gap)


def test_an_answer_from_a_posterior_can_be_put_in():
    rule = UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 500, seed=3)
    answer = estimate(log, rule, sigma=1.0, method="posterior", particles=100)
    assert np.isfinite(switching_moment(log, rule, estimate=answer).gap)


@pytest.mark.parametrize("rule", [Thompson(sigma=1.0), Uniform(), ExploreThenCommit()], ids=str)
def test_rules_that_weigh_no_two_values_are_refused_with_the_reason(rule):
    log = rule.demonstrate(INSTANCE, 200, seed=1)
    for function in (switching_rounds, switching_moment):
        with pytest.raises(NotIdentifiable, match=rule.name):
            function(log, rule)


def test_what_cannot_be_shown_is_refused_with_the_reason():
    counts = ActionLog.from_counts({"A": 7, "B": 3})
    for function in (switching_rounds, switching_moment):
        with pytest.raises(ParameterError, match="expected a log with rounds"):
            function(counts, "ucb")
    with pytest.raises(NotIdentifiable, match="no round at which the rule turned from an arm"):
        switching_moment(ActionLog.from_actions("ABAAAA"), "ucb", sigma=1.0)
    opened = ActionLog.from_actions("ABC" + "AB" * 3 + "A" * 9)
    with pytest.raises(NotIdentifiable, match='no moment of hesitation over "C"'):
        switching_moment(opened, "ucb", "C", sigma=1.0)
    with pytest.raises(ParameterError, match='"A" is the best arm'):
        switching_moment(opened, "ucb", "A", sigma=1.0)
    with pytest.raises(ParameterError, match="arm: expected one of A, B, C"):
        switching_moment(opened, "ucb", "X", sigma=1.0)
    with pytest.raises(NotIdentifiable, match="No arm that has a switching round has an estimated gap"):
        switching_moment(SIMPLE, "ucb", scale="unknown")
    with pytest.raises(ParameterError, match="sigma: expected only where no estimate is given"):
        switching_moment(SIMPLE, "ucb", estimate=estimate(SIMPLE, "ucb", sigma=1.0), sigma=1.0)
    with pytest.raises(ParameterError, match="its arms are others"):
        switching_moment(opened, "ucb", estimate=estimate(SIMPLE, "ucb", sigma=1.0))


def test_every_rule_is_drawn_or_refused_in_words():
    for rule in rules().values():
        made = rule()
        coins = made.bernoulli_only
        instance = Instance([0.8, 0.5, 0.2], Bernoulli() if coins else 1.0)
        log = made.demonstrate(instance, 2_000, seed=1)
        noise = {"bernoulli": True} if coins else {"sigma": 1.0}
        if can_compare(made, "switching"):
            moment = switching_moment(log, made, best_mean=0.8, **noise)
            assert np.isfinite(moment.own).all()
            assert np.isfinite(moment.other).all()
        else:
            with pytest.raises(NotIdentifiable, match=made.name):
                switching_moment(log, made, best_mean=0.8, **noise)
