"""Each index rule's own formula: against the textbook, turned round, and where it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import simulated
from scipy import stats

from unbandit.demonstrators import (
    KLUCB,
    MOSS,
    UCB,
    UCB1,
    UCBV,
    AdditiveIndexRule,
    AnytimeMOSS,
    BayesUCB,
    IndexRule,
    LilKLUCB,
    LilUCB,
    UCBTuned,
    parse_rule,
    rules,
)
from unbandit.errors import ParameterError
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.formula import mean_by_bisection, mean_value

INDEX_RULES = [rule(**given) for rule in rules().values() if issubclass(rule, IndexRule) for given in rule.examples]


def divergence(p: float, q: float) -> float:
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)))


@pytest.mark.parametrize("rule", INDEX_RULES, ids=str)
@pytest.mark.parametrize("pulls", [1, 3, 40, 700])
def test_an_index_turned_round_is_the_mean(rule, pulls):
    rule, horizon, round = rule.for_arms(4), 1000, 900
    for mean in (0.02, 0.3, 0.5):
        index = rule.index(mean, pulls, round, horizon)
        if index < 1 - 1e-6 or not rule.bernoulli_only:
            assert mean_value(rule.parameters(horizon), index, pulls, round) == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("rule", INDEX_RULES, ids=str)
def test_a_rule_that_shifts_has_an_index_that_rises_one_for_one(rule):
    rule = rule.for_arms(4)
    low, high = (rule.index(mean, 40_000, 100_000, 200_000) for mean in (0.25, 0.6))
    assert (high - low == pytest.approx(0.35)) == rule.shifts
    assert rule.shifts == (
        isinstance(rule, AdditiveIndexRule | AnytimeMOSS | UCB1) or getattr(rule, "noise", "") == "gaussian"
    )


@pytest.mark.parametrize("rule", INDEX_RULES, ids=str)
def test_a_rule_says_whether_its_index_changes_with_the_round(rule):
    rule = rule.for_arms(4)
    assert (rule.index(0.4, 5, 50, 100) != rule.index(0.4, 5, 90, 100)) == rule.uses_round


def test_the_textbook_formulas():
    assert UCB1().index(0.5, 4, 100, 999) == pytest.approx(0.5 + math.sqrt(2 * math.log(100) / 4))
    assert LilUCB(reward_range=2).index(0.5, 9, 1, 99) == pytest.approx(0.5 + math.sqrt(8 * math.log(324 / 0.05) / 9))
    moss = MOSS(arms=5)
    assert moss.index(0.5, 4, 1, 1000) == pytest.approx(0.5 + math.sqrt(math.log(50) / 4))
    assert moss.index(0.5, 200, 1, 1000) == moss.index(0.5, 900, 1, 1000) == 0.5
    rate = 1.5 * math.log(60) / 8
    assert UCBV(exploration=1.5).index(0.25, 8, 60, 99) == pytest.approx(
        0.25 + math.sqrt(2 * 0.25 * 0.75 * rate) + 3 * rate
    )
    sigma = KLUCB(noise="gaussian", sigma=2)
    assert sigma.index(0.5, 4, 7, 1000) == pytest.approx(0.5 + 2 * math.sqrt(2 * math.log(1000) / 4))
    assert KLUCB(noise="gaussian").index(0, 4, 7, 1000) == KLUCB(noise="gaussian", sigma=0.5).index(0, 4, 7, 1000)


def test_the_textbook_formulas_of_rules_that_share_their_loops():
    anytime = AnytimeMOSS(arms=5, scale=2)
    assert anytime.index(0.5, 4, 1000, 9) == pytest.approx(0.5 + 2 * math.sqrt(math.log(50) / 4))
    assert anytime.index(0.5, 200, 1000, 9) == anytime.index(0.5, 900, 1000, 9) == 0.5
    bound = LilKLUCB(delta=0.02, exploration=1.5).index(0.4, 32, 7, 1000)
    assert 32 * divergence(0.4, bound) == pytest.approx(1.5 * math.log(math.log2(64) / 0.02))
    order = 1 - 1 / (60 * math.log(1000) ** 2)
    assert BayesUCB(log_power=2).index(0.25, 8, 60, 1000) == pytest.approx(stats.beta.ppf(order, 3, 7))
    for power in (10, 20):  # orders that no float near 1 has
        tail = 1 / (1_000 * math.log(1_000_000) ** power)
        rule = BayesUCB(log_power=power)
        index = rule.index(0.5, 100, 1_000, 1_000_000)
        assert index == pytest.approx(stats.beta.isf(tail, 51, 51), rel=1e-6)
        assert mean_value(rule.parameters(1_000_000), index, 100, 1_000) == pytest.approx(0.5, abs=1e-6)
    normal = BayesUCB(noise="gaussian", sigma=2, log_power=2).index(0.25, 8, 60, 1000)
    assert normal == pytest.approx(0.25 + 2 * stats.norm.ppf(order) / math.sqrt(8))
    rate = 0.5 * math.log(60) / 800
    tuned = 0.9 + math.sqrt(rate * (0.09 + math.sqrt(2 * rate)))
    assert UCBTuned(exploration=0.5).index(0.9, 800, 60, 99) == pytest.approx(tuned)
    assert UCBTuned().index(0.9, 8, 60, 99) == pytest.approx(0.9 + math.sqrt(math.log(60) / 8 / 4))


def test_rules_that_share_a_formula_share_their_compiled_loops():
    kinds = {rule.parameters(1000).dtype for rule in (KLUCB(), LilKLUCB(), BayesUCB(), AnytimeMOSS(arms=3))}
    variance = {rule.parameters(1000).dtype for rule in (UCBV(), UCBTuned())}
    assert (len(kinds), len(variance), len(kinds | variance)) == (1, 1, 2)


@pytest.mark.parametrize("rule", [UCBTuned(), UCBTuned(exploration=0.02), BayesUCB(), BayesUCB(log_power=3)], ids=str)
def test_the_index_rises_with_the_mean_and_is_turned_round_everywhere(rule):
    parameters, means = rule.parameters(1000), np.linspace(0, 1, 41).tolist()
    for pulls, round in ((1, 5), (3, 900), (60, 100), (4_000, 5_000)):
        indices = [rule.index(mean, pulls, round, 1000) for mean in means]
        assert (np.diff(indices) > 0).all()
        assert [mean_value(parameters, index, pulls, round) for index in indices] == pytest.approx(means, abs=1e-7)
    if isinstance(rule, BayesUCB):
        assert mean_value(parameters, 1e-9, 50, 80) == -math.inf
        assert mean_value(parameters, 1 - 1e-12, 50, 80) == mean_value(parameters, 1.5, 50, 80) == math.inf


def test_moss_without_a_horizon_asks_for_the_number_of_arms():
    with pytest.raises(ParameterError, match=r"anytime-moss: expected the number of arms .* use for_arms"):
        AnytimeMOSS().parameters(100)


@pytest.mark.parametrize(("level", "at"), [("horizon", 1000), ("round", 50)])
@pytest.mark.parametrize("double_log", [0, 3])
def test_kl_ucb_for_bernoulli_rewards(level, at, double_log):
    rule = KLUCB(level=level, double_log=double_log)
    for mean, pulls in ((0.1, 12), (0.5, 30), (0.9, 300)):
        q = rule.index(mean, pulls, 50, 1000)
        assert pulls * divergence(mean, q) == pytest.approx(math.log(at) + double_log * math.log(math.log(at)))


@pytest.mark.parametrize("level", ["horizon", "round"])
def test_a_closed_inverse_is_what_halving_finds(level):
    parameters = KLUCB(level=level).parameters(1000)
    for index in (0.4, 0.9, 0.999):
        assert mean_value(parameters, index, 50, 80) == pytest.approx(
            mean_by_bisection(parameters, index, 50, 80), abs=1e-9
        )
    assert mean_value(parameters, 0.01, 50, 80) == mean_by_bisection(parameters, 0.01, 50, 80) == -math.inf
    assert mean_value(parameters, 1.01, 50, 80) == mean_by_bisection(parameters, 1.01, 50, 80) == math.inf


def test_the_inverse_of_ucb_v_is_the_smaller_mean():
    rule = UCBV(exploration=1, correction=0.5)
    parameters = rule.parameters(1000)
    for mean in np.linspace(0, 1, 21):
        index = rule.index(float(mean), 10, 100, 1000)
        found = mean_value(parameters, index, 10, 100)
        assert found <= mean + 1e-9
        assert rule.index(found, 10, 100, 1000) == pytest.approx(index)
    assert mean_value(parameters, rule.index(1.0, 10, 100, 1000), 10, 100) < 0.9  # 1 itself is on the falling branch
    assert mean_value(parameters, rule.index(-0.2, 10, 100, 1000), 10, 100) == pytest.approx(-0.2)
    assert mean_value(parameters, 5.0, 10, 100) > 1


@pytest.mark.parametrize("rule", [UCBV(), KLUCB(), KLUCB(level="round"), UCBTuned(), LilKLUCB(), BayesUCB()], ids=str)
def test_rules_for_bernoulli_rewards_refuse_others(rule):
    assert rule.bernoulli_only
    for play in (rule.demonstrate, rule.evidence):
        with pytest.raises(ParameterError, match=f"^{rule.name}: expected Bernoulli rewards.*Gaussian.sigma=0.5"):
            play(Instance([1.0, 0.5], 0.5), 100)
    assert not KLUCB(noise="gaussian").bernoulli_only


@pytest.mark.parametrize(
    ("rule", "given", "message"),
    [
        (KLUCB, {"sigma": 1}, "klucb: expected no sigma with Bernoulli rewards"),
        (KLUCB, {"noise": "gausian"}, "klucb: noise: expected 'bernoulli' or 'gaussian'; got 'gausian'"),
        (KLUCB, {"noise": "gaussian", "sigma": 0}, "klucb: sigma: "),
        (KLUCB, {"double_log": -1}, "klucb: double_log: "),
        (KLUCB, {"doublelog": 1}, 'Did you mean "double_log"'),
        (UCB1, {"exploration": 0}, "ucb1: exploration: "),
        (LilUCB, {"delta": 0}, "lilucb: delta: "),
        (LilUCB, {"reward_range": -1}, "lilucb: reward_range: "),
        (MOSS, {"arms": 1}, "moss: arms: "),
        (UCBV, {"correction": -1}, "ucbv: correction: "),
        (UCBTuned, {"exploration": 0}, "ucb-tuned: exploration: "),
        (LilKLUCB, {"clock": "pulls"}, "lil-klucb: clock: "),
        (LilKLUCB, {"delta": 2}, "lil-klucb: delta: "),
        (BayesUCB, {"sigma": 1}, "bayes-ucb: expected no sigma with Bernoulli rewards"),
        (AnytimeMOSS, {"arms": 1}, "anytime-moss: arms: "),
        (UCB, {"initial": -1}, "ucb: initial: "),
        (UCB, {"batch": 0}, "ucb: batch: "),
        (UCB, {"batch": 1.5}, "ucb: batch: "),
    ],
)
def test_bad_parameters_are_refused(rule, given, message):
    with pytest.raises(ParameterError, match=message):
        rule(**given)


def test_moss_takes_the_number_of_arms_from_the_instance():
    instance = Instance([0.5, 0.4, 0.3], 0.5)
    free, given = (rule.demonstrate(instance, 300, seed=3).actions for rule in (MOSS(), MOSS(arms=3)))
    assert np.array_equal(free, given)
    assert str(MOSS()) == "moss:scale=1.0"
    with pytest.raises(ParameterError, match="moss: expected the number of arms"):
        MOSS().width(np.ones(1), 100)


def test_usual_openings_and_batches_are_not_written():
    assert str(UCB(alpha=0.5, scale=1)) == "ucb:alpha=0.5,scale=1.0"
    assert str(UCB(alpha=0.5, scale=1, batch=3, initial=2)) == "ucb:alpha=0.5,scale=1.0,initial=2,batch=3"


@pytest.mark.parametrize("name", ["ucb", "ucb1", "klucb"])
def test_a_batch_keeps_its_arm(name):
    rule, arms = rules()[name](initial=2, batch=5), 3
    actions = simulated(rule, Instance([0.4, 0.5, 0.6], Bernoulli()), 206, seed=1)[0]
    assert actions[: 2 * arms].tolist() == [0, 1, 2, 0, 1, 2]
    batches = actions[2 * arms :].reshape(-1, 5)
    assert (batches == batches[:, :1]).all()
    assert len(set(batches[:, 0].tolist())) > 1


def test_a_random_opening_goes_round_in_a_new_order_each_time():
    openings = simulated(UCB(ties="random", initial=3), Instance([1.0] * 4, Bernoulli()), 12, 500, 2).reshape(-1, 4)
    assert (np.sort(openings, axis=1) == np.arange(4)).all()
    assert len({tuple(turn) for turn in openings.tolist()}) == 24


def test_an_opening_cut_short_by_the_horizon():
    assert simulated(UCB(initial=5), Instance([1.0, 0.0]), 7)[0].tolist() == [0, 1, 0, 1, 0, 1, 0]


def test_without_an_opening_an_arm_never_pulled_comes_first_all_the_same():
    assert parse_rule("ucb:initial=0") == parse_rule("ucb")
    for text in ("ucb1:initial=0,batch=3", "ucb:initial=0,delay=5"):
        with pytest.raises(ParameterError, match="expected initial=1 or more with a batch or a delay"):
            parse_rule(text)
