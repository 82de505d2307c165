"""On a GPU every rule does what it does on the CPU, action for action."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import Bernoulli, Instance, ParameterError, parse_rule, rules
from unbandit.tape import Tape

EVERY = [
    pytest.param(kind(**example), id=f"{name}-{number}")
    for name, kind in sorted(rules().items())
    for number, example in enumerate(kind.examples)
]


def on_a_cpu_alone(rule):
    """Return whether the rule is refused on a GPU, with the reason."""
    return rule.name in {"sliding-window-ucb", "discounted-ucb", "top-two-thompson"} or rule.is_late


EXAMPLES = [example for example in EVERY if not on_a_cpu_alone(example.values[0])]
REFUSED = [example for example in EVERY if on_a_cpu_alone(example.values[0])]


def instance_for(rule, arms=3):
    means = np.linspace(0.8, 0.2, arms)
    return Instance(means, Bernoulli() if rule.bernoulli_only else 0.5)


@pytest.mark.parametrize("rule", REFUSED)
def test_rules_that_a_gpu_cannot_play_are_refused(rule):
    with pytest.raises(ParameterError, match=r'cannot be played on a GPU.*device="cpu"'):
        rule.demonstrate(instance_for(rule), 20, device="cuda")


@pytest.mark.parametrize("rule", EXAMPLES)
def test_same_actions_as_the_cpu(rule, size):
    horizon, runs = size
    instance = instance_for(rule)
    here = rule.demonstrate(instance, horizon, runs=runs, seed=3)
    there = rule.demonstrate(instance, horizon, runs=runs, seed=3, device="cuda")
    same = (here.actions.reshape(runs, -1) == there.actions.reshape(runs, -1)).all(axis=1)
    assert same.mean() >= 0.9999


@pytest.mark.parametrize("rule", [example for example in EXAMPLES if example.values[0].reveals == "values"])
def test_same_evidence_as_the_cpu(rule, size):
    horizon, runs = size
    instance, orders = instance_for(rule), Tape(5).orders(np.arange(runs), 3)
    asked = {"runs": runs, "seed": 5, "orders": orders, "first_run": 7}
    here, there = (rule.evidence(instance, horizon, **asked, device=device) for device in ("cpu", "cuda"))
    same = [
        (getattr(here, name) == getattr(there, name)).all(axis=1)
        for name in here.arrays
        if name != "rounds" or here.rounds.any()
    ]
    assert np.all(same, axis=0).mean() >= 0.9999


@pytest.mark.parametrize(
    ("rule", "spread"),
    [("ucb", 0.0), ("ucb:alpha=0.9,scale=0.3", 0.3), ("ucb", 2.0), ("moss", 0.3), ("sae", 0.3), ("softmax", 0.3)],
)
@pytest.mark.parametrize("many", [1, 1 << 40])  # with a thread per demonstration, and with a group of threads
def test_many_arms_as_on_the_cpu(rule, spread, many, size, monkeypatch):
    from unbandit.kernels.gpu import stage

    monkeypatch.setattr(stage, "MANY_RUNS", many)
    rule, runs = parse_rule(rule), size[1]
    arms, horizon = (70, 240) if runs < 10 else (224, 2_000)
    instance = Instance(np.random.default_rng(2).normal(0, spread, arms), 0.5)
    asked = {"runs": runs, "seed": 11}
    here, there = (rule.evidence(instance, horizon, **asked, device=device) for device in ("cpu", "cuda"))
    same = [(getattr(here, name) == getattr(there, name)).all(axis=1) for name in here.arrays if name != "rounds"]
    assert np.all(same, axis=0).mean() >= 0.9999


@pytest.mark.parametrize(
    ("rule", "arms", "horizon"), [("ucb", 70, 5), ("ucb", 70, 71), ("moss", 33, 2), ("moss", 33, 40)]
)
@pytest.mark.parametrize("many", [1, 1 << 40])
def test_horizons_about_the_number_of_arms(rule, arms, horizon, many, size, monkeypatch):
    from unbandit.kernels.gpu import stage

    monkeypatch.setattr(stage, "MANY_RUNS", many)
    rule, runs = parse_rule(rule), min(size[1], 3)
    instance = Instance(np.linspace(1, 0, arms), 0.5)
    here, there = (rule.evidence(instance, horizon, runs=runs, seed=1, device=device) for device in ("cpu", "cuda"))
    assert all((getattr(here, name) == getattr(there, name)).all() for name in ("pulls", "own", "of_best"))


@pytest.mark.parametrize("arms", [2, 4, 5, 13, 32])
def test_few_arms_in_any_order(arms, size):
    horizon, runs = 3 * arms + 5, size[1]
    instance, orders = Instance(np.linspace(1, 0, arms), 0.5), Tape(5).orders(np.arange(runs), arms)
    asked = {"runs": runs, "seed": 5, "orders": orders}
    here, there = (parse_rule("ucb").evidence(instance, horizon, **asked, device=device) for device in ("cpu", "cuda"))
    same = [(getattr(here, name) == getattr(there, name)).all(axis=1) for name in here.arrays]
    assert np.all(same, axis=0).mean() >= 0.9999


def test_the_order_of_arms_is_the_tapes(size):
    from unbandit.demonstrators.base import laid_out

    instance, runs = Instance(np.linspace(1, 0, 7)), size[1]
    stage = parse_rule("ucb")._staged(laid_out(instance, 20, 9), 20, drawn=True)
    scene = stage.scene(3, 0, runs)
    orders = Tape(9).orders(np.arange(3, 3 + runs), 7)
    assert (orders == scene.order.copy_to_host().T).all()
    assert (orders.argsort(axis=1) == scene.place.copy_to_host().T).all()


@pytest.mark.parametrize("word", [0, 1, (1 << 55) - 1, 5 << 51, (1 << 63) | 3, (1 << 64) - 1, 1 << 59, 0xF << 55])
def test_normals_and_words_have_the_cpus_bits(word):
    from unbandit.kernels.gpu import port
    from unbandit.kernels.rng import QUANTILE_TABLE, normal_from_word, philox

    if not port.SIMULATED:
        pytest.skip("functions of a GPU cannot be called from outside of it")
    far = port.one_sided()
    here = normal_from_word(np.uint64(word), QUANTILE_TABLE)
    assert port.normal_on_gpu(np.uint64(word), (far[:, : port.ALL_NEAR], far)) == here
    counters = [np.uint64(each) for each in (word % 2**32, 7, 11, 1, word >> 32, 5)]
    assert port.philox_on_gpu(*counters) == philox(*counters)


@pytest.mark.parametrize(
    ("rule", "loop"),
    [("ucb1", "rising"), ("ucb1:clock=pulls", "rising"), ("ucb1:batch=3", "index"), ("ucb1:ties=random", "index")],
)
def test_bounds_are_used_where_indices_rise_and_nothing_else_matters(rule, loop):
    from unbandit.demonstrators.base import laid_out

    instance = Instance(np.linspace(1, 0, 3), 0.5)
    assert parse_rule(rule)._staged(laid_out(instance, 20, 1), 20).loop == loop
    many = Instance(np.linspace(1, 0, 65), 0.5)
    assert parse_rule(rule)._staged(laid_out(many, 80, 1), 80).loop == "index"
