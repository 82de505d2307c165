"""Rules that choose by features: held against whole matrices, action for action, and found by their names."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from reference_linear import played

import unbandit as ub
from unbandit.contexts.rule import known_linear_rules, linear_rule_or_family
from unbandit.demonstrators.base import linear_rules
from unbandit.kernels.simulate_linear import absorb, begin_learning, whiten

RULES = [
    pytest.param(kind(**given), id=f"{name}-{at}")
    for name, kind in sorted(known_linear_rules.items())
    for at, given in enumerate(kind.examples)
]


def offers(rounds=150, arms=5, size=3, seed=0, changing=True):
    """Return a log of random offers, of which some rounds have fewer."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, arms + 1, rounds) if changing else np.full(rounds, arms)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    codes = np.concatenate([generator.permutation(arms)[:length] for length in lengths])
    features = generator.normal(size=(offsets[-1], size)) / np.sqrt(size)
    return ub.ContextLog.from_arrays(
        features, np.zeros(rounds, int), offsets=offsets, codes=codes, arms=[f"arm {at}" for at in range(arms)]
    )


def theta_for(rule, log, seed=0):
    design = rule.design(log)
    theta = np.random.default_rng(seed).normal(size=design.parameters)
    return theta.reshape(design.count, design.size) if rule.disjoint else theta


@pytest.mark.parametrize("rule", RULES)
def test_every_choice_is_that_of_whole_matrices(rule):
    log = offers()
    theta = theta_for(rule, log)
    found = rule.demonstrate(ub.ContextInstance(theta, 0.5), log, seed=3, first_run=2, rewards=True)
    chosen, rewards = played(rule, theta.reshape(-1), 0.5, log, run=2, seed=3)
    assert found.chosen.tolist() == chosen.tolist()
    assert found.rewards == pytest.approx(rewards, abs=1e-12)
    assert len(set(found.actions.tolist())) > 1


def test_runs_do_not_depend_on_how_they_are_spread():
    rule, log = ub.LinTS(v=0.5), offers(40)
    instance = ub.ContextInstance([1.0, -0.5, 0.2], 0.5)
    together = rule.demonstrate(instance, log, runs=5, seed=4, threads=3)
    assert len(together) == 5
    for run in range(5):
        alone = rule.demonstrate(instance, log, seed=4, first_run=run, threads=1)
        assert together.select(run).chosen.tolist() == alone.chosen.tolist()
    assert together.select(0).chosen.tolist() != together.select(1).chosen.tolist()


def test_each_run_may_have_its_own_parameters():
    rule, log = ub.LinUCB(), offers(40)
    thetas = np.random.default_rng(1).normal(size=(3, 3))
    chosen, gained = rule.choices_at(rule.design(log), thetas, 0.5, seed=4)
    for run, theta in enumerate(thetas):
        expected = rule.demonstrate(ub.ContextInstance(theta, 0.5), log, seed=4, first_run=run, rewards=True)
        assert chosen[run].tolist() == expected.chosen.tolist()
        assert gained[run].tolist() == expected.rewards.tolist()


def test_rotations_keep_precision_where_an_inverse_would_lose_it():
    root, response, white = np.empty((2, 2)), np.empty(2), np.empty(2)
    begin_learning(root, response, 1.0)
    rows = np.array([[1e7, 1.0], [1e7, 2.0], [1e7, 1.5]])
    for row in rows:
        absorb(root, response, row.copy(), 1.0)
    whiten(root, np.array([0.0, 1.0]), white)
    centred = rows[:, 1] - rows[:, 1].mean()
    exact = 1 / (1 + centred @ centred)  # the ridge of the first column is far below one part in 1e13
    assert white @ white == pytest.approx(exact, rel=1e-9)


def test_known_rewards_follow_batches_and_delays():
    assert ub.LinUCB().known(4).tolist() == [0, 1, 2, 3]
    assert ub.LinUCB(delay=2).known(5).tolist() == [0, 0, 0, 1, 2]
    assert ub.LinUCB(batch=2, delay=1).known(6).tolist() == [0, 0, 1, 1, 3, 3]


def test_a_context_for_all_arms_is_played_by_a_disjoint_model():
    contexts = np.random.default_rng(2).normal(size=(60, 2))
    instance = ub.ContextInstance([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], 0.1)
    log = ub.LinUCB(disjoint=True).demonstrate(instance, contexts, arms="ABC", feature_names=["age", "time"])
    assert (log.arms, log.feature_names, log.rounds) == (("A", "B", "C"), ("age", "time"), 60)
    assert (log.features[::3] == contexts).all()
    assert log.pulls.min() > 3
    with pytest.raises(ub.ParameterError, match="expected an array"):
        ub.LinUCB().demonstrate(ub.ContextInstance([1.0, 0.0]), contexts)


def test_designs_of_both_models():
    log = ub.ContextLog.from_arrays([[[1.0, 2.0], [3.0, 4.0]]], [1], arms="AB", feature_names=["x", "y"])
    shared = ub.LinUCB(intercept=True).design(log)
    assert shared.names == (("x", None), ("y", None), ("intercept", None))
    assert shared.vectors.tolist() == [[1, 2, 1], [3, 4, 1]]
    assert shared.values(np.array([[1.0, 0, 10]]), np.arange(2)).tolist() == [[11], [13]]
    disjoint = ub.LinUCB(disjoint=True).design(log)
    assert disjoint.names == (("x", "A"), ("y", "A"), ("x", "B"), ("y", "B"))
    assert (disjoint.count, disjoint.size, disjoint.parameters, disjoint.rows.tolist()) == (2, 2, 4, [1])
    assert disjoint.values(np.array([[1.0, 0, 0, 1]]), np.arange(2)).tolist() == [[1], [4]]


def test_a_shared_model_cannot_tell_offers_with_the_same_features_apart():
    wide = ub.ContextLog.from_arrays(np.ones((4, 2, 1)) * np.arange(4)[:, None, None], [0, 1, 0, 1])
    with pytest.raises(ub.NotIdentifiable, match="disjoint=true"):
        ub.LinUCB().design(wide)
    assert ub.LinUCB(disjoint=True).design(wide).parameters == 2


@pytest.mark.parametrize("rule", RULES)
def test_rules_are_written_and_read(rule):
    assert ub.parse_rule(str(rule)) == rule
    assert linear_rule_or_family(str(rule)) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert type(rule).model_validate_json(rule.model_dump_json()) == rule


def test_rules_are_found_by_name_and_kept_apart():
    assert sorted(linear_rules()) == ["lin-epsilon-greedy", "lin-softmax", "lints", "linucb"]
    assert not set(linear_rules()) & set(ub.rules())
    assert isinstance(ub.parse_rule("LIN_TS"), ub.LinTS)
    assert str(ub.LinUCB(alpha=ub.FIT, ridge=2)) == "linucb:ridge=2,alpha=fit"
    with pytest.raises(ub.ParameterError, match="Give alpha a value"):
        ub.parse_rule("linucb:fit")


def test_rules_of_the_other_kind_are_refused():
    log = ub.ActionLog.from_actions("ABAB")
    for rule in ("linucb:alpha=1", ub.LinUCB(), ub.LinUCB(alpha=ub.FIT)):
        with pytest.raises(ub.ParameterError, match=r"without features; got .*features="):
            ub.estimate(log, rule)
    for rule in ("ucb:alpha=0.25", ub.UCB(alpha=0.25), "ucb:scale=fit"):
        with pytest.raises(ub.ParameterError, match="expected a rule that chooses by features"):
            linear_rule_or_family(rule)
    with pytest.raises(ub.ParameterError, match='Did you mean "linucb"'):
        ub.parse_rule("linucbb")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ridge": 0}, "ridge"),
        ({"alpha": 0}, "alpha"),
        ({"disjoint": "yes"}, "expected true or false"),
        ({"intercept": 1}, "expected true or false"),
        ({"beta": 1}, "expected parameters among"),
        ({"batch": 0}, "batch"),
    ],
)
def test_wrong_parameters_are_refused(given, said):
    with pytest.raises(ub.ParameterError, match=said):
        ub.LinUCB(**given)


def test_wrong_instances_and_contexts_are_refused():
    rule, log = ub.LinUCB(), offers(5)
    with pytest.raises(ub.ParameterError, match=r"expected 3 numbers \(x1, x2, x3\)"):
        rule.demonstrate(ub.ContextInstance([1.0, 2.0]), log)
    with pytest.raises(ub.ParameterError, match="expected a ContextInstance"):
        rule.demonstrate(ub.Instance([1.0, 2.0]), log)
    with pytest.raises(ub.ParameterError, match="finite numbers"):
        ub.ContextInstance([1.0, np.nan])
    with pytest.raises(ub.ParameterError, match="Leave them out"):
        rule.demonstrate(ub.ContextInstance([1.0, 2.0, 3.0]), log, arms="ABCDE")
    with pytest.raises(ub.ParameterError, match="expected a log with contexts"):
        rule.design(ub.ActionLog.from_actions("AB"))
