"""A participant's likelihood: exact where rewards are known, and tabulated to a small error from few evaluations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.hierarchy.likelihood import (
    ENOUGH,
    EXACT,
    Participant,
    free_parameters,
    node_grid,
    rule_of_people,
    tabulate,
)
from unbandit.inference.prior import NormalPrior, belief_of


def learner(seed: int, rounds: int = 60, arms: int = 2) -> tuple[list[int], list[float]]:
    """Play Q-learning with rate 0.3 and temperature 0.4, in plain Python; return choices and rewards."""
    generator = np.random.default_rng(seed)
    means, values = generator.normal(size=arms), np.zeros(arms)
    choices, rewards = [], []
    for _ in range(rounds):
        weights = np.exp((values - values.max()) / 0.4)
        arm = int(generator.choice(arms, p=weights / weights.sum()))
        reward = means[arm] + 0.5 * generator.standard_normal()
        values[arm] += 0.3 * (reward - values[arm])
        choices.append(arm)
        rewards.append(float(reward))
    return choices, rewards


def by_hand(choices: list[int], rewards: list[float], rate: float, temperature: float, arms: int = 2) -> float:
    """Return the log probability of choices, given all rewards."""
    values, total = np.zeros(arms), 0.0
    for arm, reward in zip(choices, rewards, strict=True):
        scaled = values / temperature
        total += scaled[arm] - scaled.max() - math.log(np.exp(scaled - scaled.max()).sum())
        values[arm] += rate * (reward - values[arm])
    return total


def participant(choices: list[int], rewards: list[float] | None, particles: int = 64) -> Participant:
    log = ub.ActionLog.from_codes(np.array([choices]), ("A", "B"), rewards=None if rewards is None else [rewards])
    rule, belief = ub.LearningSoftmax(), belief_of(NormalPrior(), 2, ub.Gaussian(0.5), None)
    return Participant(log, rule, free_parameters(rule, 0.5), belief, len(choices), particles, 0)


@pytest.mark.parametrize(("rate", "temperature"), [(0.3, 0.4), (0.05, 0.1), (0.9, 0.2), (0.5, 5.0)])
def test_with_known_rewards_the_probability_is_exact(rate, temperature):
    choices, rewards = learner(1)
    person = participant(choices, rewards)
    place = [float(each.coordinate(value)) for each, value in zip(person.parameters, (rate, temperature), strict=True)]
    assert person.log_probability(place) == pytest.approx(by_hand(choices, rewards, rate, temperature), abs=1e-9)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("learning-softmax:fit", ub.LearningSoftmax()),
        ("q-learning:rate=0.1,temperature=fit", ub.LearningSoftmax(rate=0.1)),
        (ub.Softmax(temperature=ub.FIT), ub.Softmax()),
        ("thompson", ub.Thompson()),
    ],
)
def test_a_number_to_be_fitted_is_one_that_differs_between_people(written, meant):
    assert rule_of_people(written) == meant


def test_without_rewards_it_is_the_filters_estimate():
    choices, _ = learner(2)
    found = [participant(choices, None, particles).log_probability([-0.8, 0.0]) for particles in (64, 1000)]
    assert found[0] == pytest.approx(found[1], abs=0.3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_table_from_few_evaluations_is_that_of_all_nodes(seed):
    choices, rewards = learner(seed)
    parameters = free_parameters(ub.LearningSoftmax(), 0.5)
    nodes, count = node_grid(parameters), [0]

    def function(place, least=-math.inf):
        count[0] += 1
        values = [float(each.value(at)) for each, at in zip(parameters, place, strict=True)]
        return by_hand(choices, rewards, *values)

    table = tabulate(function, nodes, EXACT * ENOUGH[2])
    assert count[0] < 400
    some = tuple(each[1::4] for each in nodes)
    exact = np.array([[function((first, second)) for second in some[1]] for first in some[0]])
    shares = [np.exp(each - each.max()) for each in (table[1::4, 1::4], exact)]
    first, second = (each / each.sum() for each in shares)
    assert np.abs(first - second).sum() / 2 < 0.03  # distance in total variation


def test_a_function_that_is_impossible_everywhere_is_refused():
    with pytest.raises(InferenceError, match="whatever the parameters"):
        tabulate(lambda place, least: -math.inf, node_grid(free_parameters(ub.Softmax(), 1.0)), 5)


def test_parameters_that_are_given_are_the_same_for_everybody():
    assert [each.name for each in free_parameters(ub.parse_rule("q-learning"), 1.0)] == ["rate", "temperature"]
    assert [each.name for each in free_parameters(ub.parse_rule("q-learning:rate=0.1"), 1.0)] == ["temperature"]
    assert [each.name for each in free_parameters(ub.parse_rule("thompson"), 1.0)] == ["sigma"]
    with pytest.raises(NotIdentifiable, match="nothing is left"):
        free_parameters(ub.Thompson(sigma=0.5), 1.0)
    with pytest.raises(NotIdentifiable, match="no parameter"):
        free_parameters(ub.Uniform(), 1.0)
    with pytest.raises(NotIdentifiable, match="no parameter"):
        free_parameters(ub.Thompson(noise="bernoulli"), 1.0)


def test_scales_go_forth_and_back():
    for each in free_parameters(ub.LearningSoftmax(), 0.5):
        assert each.value(each.coordinate(0.37)) == pytest.approx(0.37)


def test_clouds_that_differ_are_made_larger_unless_the_value_hardly_counts():
    choices, _ = learner(4, rounds=60)
    person, sizes, looks = participant(choices, None, particles=5), [], []
    filtered = Participant._filtered

    class Watched(Participant):
        def _filtered(self, rule, particles, look):
            sizes.append(particles)
            looks.append(look)
            return filtered(self, rule, particles, look)

    watched = Watched(**{name: getattr(person, name) for name in person.__dataclass_fields__})
    watched.log_probability([2.0, -2.5])
    assert sizes[0] == 5
    assert sizes == sorted(sizes)
    assert sizes[-1] > 5
    assert all(look is looks[0] for look in looks)  # which serves clouds of any size
    sizes.clear()
    watched.log_probability([2.0, -2.5], least=0.0)
    assert sizes == [5]


def test_values_are_drawn_from_the_clouds_that_are_left():
    choices, _ = learner(4, rounds=20)
    person, left = participant(choices, None, particles=20), [3]

    class Collapsing(Participant):
        def _filtered(self, rule, particles, look):
            found = super()._filtered(rule, particles, look)
            return replace(found, passes=found.passes[: left[0]])

    some = Collapsing(**{name: getattr(person, name) for name in person.__dataclass_fields__})
    places = np.array([[-0.8, 0.0], [-0.5, 0.3]])
    drawn = []
    for left[0] in (3, 2, 1):
        drawn.append(some.draw_values(places, 20))
        assert drawn[-1].shape == (2, 21, 2)
        assert np.isfinite(drawn[-1]).all()
    assert not np.array_equal(drawn[0], drawn[2])
