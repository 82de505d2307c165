"""The parameters a rule suggests where they are unknown."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest

import unbandit as ub

LOG = ub.ActionLog.from_actions([0, 1, 2, 0, 1, 2, 2, 2, 2, 2])


@pytest.mark.parametrize("noise", [ub.Bernoulli(), ub.Gaussian(0.5), ub.Gaussian(164.0)], ids=str)
@pytest.mark.parametrize("name", list(ub.rules()))
def test_every_rule_guesses_its_parameters(name, noise):
    guesses = ub.rules()[name].guesses(noise, LOG)
    assert 1 <= len(guesses) <= 6
    assert len({str(rule) for rule, _ in guesses}) == len(guesses)
    assert sum(weight for _, weight in guesses) <= 1 + 1e-12
    assert all(weight == guesses[0][1] or name == "explore-then-commit" for _, weight in guesses)


def test_values_may_be_in_units_of_the_noise():
    small, large = (ub.Softmax.grid(ub.Gaussian(sigma))["temperature"] for sigma in (0.5, 50.0))
    assert [100 * value for value in small] == pytest.approx(list(large))


def test_the_length_of_an_exploration_is_read_off_the_log():
    (shown, weight), (longer, rest) = ub.ExploreThenCommit.guesses(ub.Gaussian(1.0), LOG)
    assert (shown.explore, longer.explore) == (2, 4)
    assert weight == pytest.approx(math.log(3 / 2) / math.log(12))
    others = [math.log((length + 1) / length) / math.log(12) for length in (1, 3)]  # which explain nothing
    assert weight + rest + sum(others) == pytest.approx(1)


def test_a_rule_of_ones_own_brings_its_grid():
    class Stubborn(ub.Uniform):
        """Take any arm."""

        name: ClassVar[str] = "stubborn"
        strength: float = 1.0

        @classmethod
        def grid(cls, noise):
            return {"strength": (1.0, 2.0), "initial": (0, 1)}

    found = {(rule.strength, rule.initial): weight for rule, weight in Stubborn.guesses(ub.Bernoulli(), LOG)}
    assert found == {(1.0, 0): 0.25, (1.0, 1): 0.25, (2.0, 0): 0.25, (2.0, 1): 0.25}
