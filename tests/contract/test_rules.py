"""What every rule promises, whatever its formula: each of its `examples` is put to each test."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from pydantic import ValidationError
from reference import reference_index, reference_recent, reference_sae, reference_switching, simulated
from reference_randomised import reference_randomised

from unbandit.demonstrators import (
    Demonstrator,
    EliminationRule,
    IndexRule,
    RandomisedRule,
    RecentIndexRule,
    parse_rule,
    rules,
)
from unbandit.demonstrators.base import aliases
from unbandit.demonstrators.widths import RegretWidth
from unbandit.errors import ParameterError
from unbandit.identification.candidates import candidates_for
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.tally import read_epochs
from unbandit.log import ActionLog
from unbandit.tape import Tape

INSTANCES = {
    "Gaussian": Instance([0.1, 1.0, 0.5, 0.7], 0.5),
    "Bernoulli": Instance([0.5, 0.5, 0.2], Bernoulli()),
    "many arms": Instance(np.linspace(-1, 1, 70), 1.0),
    "many probabilities": Instance(np.linspace(0, 1, 70), Bernoulli()),
}
COINS = Instance([0.3, 0.8, 0.5, 0.8], Bernoulli())  # an instance that every rule can play
COINS_LOG = ActionLog.from_actions([[0, 1, 2, 3] * 4])
EXAMPLES = [rule(**given) for rule in rules().values() for given in rule.examples]


def suits(rule, instance):
    return isinstance(instance.noise, Bernoulli) or not rule.bernoulli_only


every_name = pytest.mark.parametrize("name", sorted(rules()))
every_width = pytest.mark.parametrize("name", [name for name, rule in rules().items() if issubclass(rule, RegretWidth)])
every_rule = pytest.mark.parametrize("rule", EXAMPLES, ids=str)
every_way_to_play = pytest.mark.parametrize(
    ("name", "method"),
    [(name, "demonstrate") for name in rules()] + [(name, "evidence") for name in rules()],
)
every_rule_and_instance = pytest.mark.parametrize(
    ("rule", "instance"),
    [
        pytest.param(rule, instance, id=f"{rule}-{label}")
        for rule in EXAMPLES
        for label, instance in INSTANCES.items()
        if suits(rule, instance)
    ],
)


def two_arms(rule: Demonstrator) -> Instance:
    """Return an instance whose rewards the rule takes."""
    return Instance([1.0, 0.5], Bernoulli() if rule.bernoulli_only else 1.0)


@every_rule
def test_pickles(rule):
    assert pickle.loads(pickle.dumps(rule)) == rule


@every_rule
def test_round_trips_json(rule):
    assert type(rule).model_validate_json(rule.model_dump_json()) == rule
    assert type(rule)(**rule.model_dump()) == rule


@every_rule
def test_is_read_as_it_is_written(rule):
    assert parse_rule(str(rule)) == rule
    assert parse_rule(f"  {str(rule).replace(',', ' , ').replace('=', ' = ')} ") == rule


@every_rule
def test_is_a_value(rule):
    assert hash(rule) == hash(type(rule)(**rule.model_dump()))
    with pytest.raises(ValidationError, match="frozen"):
        rule.alpha = 0.5


@every_rule_and_instance
def test_simulated_equals_reference(rule, instance):
    kinds = {
        EliminationRule: reference_sae, IndexRule: reference_index, RandomisedRule: reference_randomised,
        RecentIndexRule: reference_recent,
    }  # fmt: skip
    reference = next(reference for kind, reference in kinds.items() if isinstance(rule, kind))
    slow = rule.name == "top-two-thompson"  # in plain Python, 70 arms take it a second per round
    few, many = ((60, 1), (4, 1)) if slow else ((250, 2), (150, 1))
    for horizon, runs in ((1, 1), (3, 3), few if len(instance) < 10 else many):
        for run, played in enumerate(simulated(rule, instance, horizon, runs, 7).tolist()):
            assert played == reference(rule, instance, horizon, run, 7)


@every_rule_and_instance
def test_chunks_and_threads_do_not_change_bits(rule, instance):
    whole = rule.demonstrate(instance, 100, runs=9, seed=2, threads=1).actions.reshape(9, 100)
    for threads in (2, 3, 9, 20, None):
        assert np.array_equal(rule.demonstrate(instance, 100, runs=9, seed=2, threads=threads).actions, whole.ravel())
    for first, last in ((0, 4), (4, 9), (8, 9)):
        assert np.array_equal(simulated(rule, instance, 100, last - first, 2, first), whole[first:last])


@every_rule_and_instance
def test_evidence_does_not_depend_on_threads_or_chunks(rule, instance):
    one, three = (rule.evidence(instance, 100, runs=9, seed=2, threads=threads) for threads in (1, 3))
    later = rule.evidence(instance, 100, runs=4, seed=2, first_run=5)
    for part in one.arrays:
        assert np.array_equal(getattr(one, part), getattr(three, part))
        assert np.array_equal(getattr(one, part)[5:], getattr(later, part))
    assert (one.pulls.sum(axis=1) == 100).all()


@every_rule_and_instance
def test_evidence_in_shuffled_orders_is_that_of_the_logs(rule, instance):
    """One run after the other on the reordered instance, as logs that are then read, gives the same numbers."""
    horizon, runs, arms = 300, 6, len(instance)
    orders = Tape(4).orders(np.arange(3, 3 + runs), arms)
    assert len({tuple(order) for order in orders.tolist()}) > 1
    found = rule.evidence(instance, horizon, runs=runs, seed=4, first_run=3, orders=orders)
    for at, order in enumerate(orders):
        log = rule.demonstrate(instance.reordered(order), horizon, seed=4, first_run=3 + at)
        actions = log.demonstration(0)
        assert np.array_equal(found.pulls[at], log.pulls[0])
        if isinstance(rule, EliminationRule):
            passed, broken = read_epochs(actions, arms)
            assert not broken
            assert np.array_equal(found.gone[at], passed > 0)
        elif isinstance(rule, IndexRule):
            _, own, of_best = reference_switching(actions.tolist(), arms)
            assert (found.own[at].tolist(), found.of_best[at].tolist()) == (own, of_best)


@every_name
def test_orders_that_are_none_are_refused(name):
    """The kernels look no further: a wrong order would read past the end."""
    rule = rules()[name]()
    instance, good = Instance([0.1, 1.0, 0.5, 0.7], two_arms(rule).noise), np.tile(np.arange(4), (3, 1))
    rule.evidence(instance, 50, runs=3, orders=good)
    for orders in (good[:2], good[:, :3], good + 1, np.zeros((3, 4), np.int64), good.astype(float)):
        with pytest.raises(ParameterError, match="orders: expected 3 rows, each with 0 to 3 once"):
            rule.evidence(instance, 50, runs=3, orders=orders)


@every_name
def test_the_summary_is_one_line(name):
    summary = rules()[name].summary()
    assert summary
    assert "\n" not in summary
    assert summary[0].isupper()
    assert summary.endswith(".")


@every_name
def test_is_known_by_its_name(name):
    rule = rules()[name]
    assert rule.name == name
    assert issubclass(rule, Demonstrator)
    assert parse_rule(name) == parse_rule(name.upper()) == parse_rule(f"{name}:") == rule()


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("ts", "thompson"), ("thompson-sampling", "thompson"), ("egreedy", "epsilon-greedy"),
        ("q-learning", "learning-softmax"), ("rescorla-wagner", "learning-softmax"), ("boltzmann", "softmax"),
        ("successive-elimination", "successive-elimination"),
    ],
)  # fmt: skip
def test_is_known_by_the_names_that_people_know(alias, name):
    for written in (alias, alias.upper(), alias.replace("-", "_")):
        assert parse_rule(written) == rules()[name]()
    assert str(parse_rule(f"{alias}:batch=3")).startswith(name)
    assert identify_candidate(alias) == name


def identify_candidate(text: str) -> str:
    (candidate,), _ = candidates_for(text, Bernoulli(), COINS_LOG)
    return candidate.name


def test_aliases_are_no_rules_names_and_each_is_one_rules():
    given = [alias for rule in rules().values() for alias in rule.__dict__.get("aliases", ())]
    assert len(set(given)) == len(given)
    assert not set(given) & set(rules())
    assert set(aliases()) == set(given)


def test_a_misspelt_alias_is_recognised():
    with pytest.raises(ParameterError, match=r'got "rescorla-wagnr"\. Did you mean "rescorla-wagner"'):
        parse_rule("rescorla-wagnr")


@every_width
def test_a_misspelt_key_is_refused_with_a_suggestion(name):
    with pytest.raises(ParameterError, match=f'{name}: expected parameters among .*"alhpa".*Did you mean "alpha"'):
        rules()[name](alhpa=0.2)
    with pytest.raises(ParameterError, match='Did you mean "scale"'):
        parse_rule(f"{name}:scal=2")
    with pytest.raises(ParameterError, match=r'got "xyzzy"\.$'):
        parse_rule(f"{name}:xyzzy=2")


BAD = [
    ("alpha", 1), ("alpha", 1.5), ("alpha", -1e-9), ("alpha", math.nan), ("alpha", math.inf), ("alpha", "much"),
    ("alpha", None), ("scale", 0), ("scale", -1), ("scale", math.nan), ("scale", math.inf), ("sigma", 0),
    ("sigma", -0.5), ("sigma", math.nan), ("sigma", math.inf), ("sigma", [1]),
]  # fmt: skip


@every_width
@pytest.mark.parametrize(("key", "value"), BAD, ids=str)
def test_bad_parameters_are_refused(name, key, value):
    with pytest.raises(ParameterError, match=f"^{name}: {key}: .*; got "):
        rules()[name](**{key: value})


@every_width
@pytest.mark.parametrize("text", ["alpha=nan", "alpha=1", "scale=inf", "scale=0", "sigma=-1", "alpha=x"])
def test_bad_parameters_are_refused_in_the_shell_too(name, text):
    with pytest.raises(ParameterError, match=f"^{name}: {text.split('=')[0]}: "):
        parse_rule(f"{name}:{text}")


@every_width
def test_scale_and_sigma_exclude_each_other(name):
    with pytest.raises(ParameterError, match="scale or sigma, not both"):
        rules()[name](scale=1, sigma=1)


@every_way_to_play
@pytest.mark.parametrize("value", [-1, 2.0, 1.5, True, False, math.nan, "3", None, 2**64])
def test_bad_counts_are_refused(name, method, value):
    rule = rules()[name]()
    play, instance = getattr(rule, method), two_arms(rule)
    with pytest.raises(ParameterError, match=r"^horizon: expected a whole number"):
        play(instance, value)
    with pytest.raises(ParameterError, match=r"^runs: expected a whole number"):
        play(instance, 10, runs=value)
    with pytest.raises(ParameterError, match=r"^seed: expected a whole number"):
        play(instance, 10, seed=value)


@every_way_to_play
def test_nothing_is_not_a_count(name, method):
    rule = rules()[name]()
    play, instance = getattr(rule, method), two_arms(rule)
    for given in ({"horizon": 0}, {"horizon": 10, "runs": 0}, {"horizon": 10, "threads": 0}):
        with pytest.raises(ParameterError, match="expected a whole number from 1"):
            play(instance, **given)


@pytest.mark.parametrize("text", ["", "ucbb", "ucb alpha=1", ":alpha=0.2"])
def test_unknown_rules_are_refused(text):
    with pytest.raises(ParameterError, match=r"rule: expected one of .*sae.*ucb"):
        parse_rule(text)


@pytest.mark.parametrize("text", ["ucb:alpha", "ucb:alpha=", "ucb:=2", "ucb:alpha:0.2"])
def test_a_rule_that_cannot_be_read_is_refused(text):
    with pytest.raises(ParameterError, match="rule: expected name:key=value"):
        parse_rule(text)


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(ParameterError, match='got "alpha" twice'):
        parse_rule("ucb:alpha=0.1,alpha=0.2")
