"""Elimination rules that test now and then, or once."""

from __future__ import annotations

import numpy as np
import pytest
from reference import simulated

from unbandit.demonstrators import SAE, ExploreThenCommit, PhasedElimination, parse_rule
from unbandit.errors import ParameterError
from unbandit.instance import Bernoulli, Instance

SURE = Instance([0.0, 1.0, 0.0, 1.0], Bernoulli())


def when_tested(rule, last: int) -> list[int]:
    epochs = np.arange(1, last + 1)
    return epochs[rule.tests(epochs)].tolist()


def test_when_arms_are_tested():
    assert when_tested(SAE(), 5) == [1, 2, 3, 4, 5]
    assert when_tested(SAE(batch=3), 10) == [3, 6, 9]
    assert when_tested(PhasedElimination(), 40) == [1, 2, 4, 8, 16, 32]
    assert when_tested(PhasedElimination(batch=3), 40) == [3, 6, 12, 24]
    assert when_tested(PhasedElimination(growth=1.5), 20) == [1, 2, 3, 4, 6, 8, 12, 18]
    assert when_tested(PhasedElimination(growth=1.01), 9) == list(range(1, 10))
    assert when_tested(ExploreThenCommit(explore=7), 40) == [7]
    for rule in (SAE(batch=3), PhasedElimination(growth=3), ExploreThenCommit(explore=9)):
        assert [rule.tests(np.array([epoch]))[0] for epoch in range(1, 30)] == rule.tests(np.arange(1, 30)).tolist()


def test_a_test_comes_at_the_end_of_its_epoch_only():
    assert simulated(SAE(alpha=0, scale=1e-3, batch=2), SURE, 14)[0].tolist() == [0, 1, 2, 3] * 2 + [1, 3] * 3
    assert simulated(PhasedElimination(alpha=0, scale=1e-3), SURE, 8)[0].tolist() == [0, 1, 2, 3, 1, 3, 1, 3]


def test_commitment_is_to_the_lowest_of_the_best():
    assert simulated(ExploreThenCommit(explore=2), SURE, 12)[0].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 1, 1, 1, 1]


def test_an_exploration_cut_short_commits_to_nothing():
    assert simulated(ExploreThenCommit(explore=2), SURE, 7)[0].tolist() == [0, 1, 2, 3, 0, 1, 2]


def test_the_evidence_of_a_commitment():
    found = ExploreThenCommit(explore=3).evidence(SURE, 20)
    assert found.pulls.tolist() == [[3, 11, 3, 3]]
    assert found.gone.tolist() == [[True, False, True, True]]


def test_commitment_reveals_the_best_arm_alone():
    assert (SAE.reveals, PhasedElimination.reveals, ExploreThenCommit.reveals) == ("values", "values", "best")


def test_the_arm_with_the_largest_mean_stays_whatever_the_width():
    """Far from 0 a width may vanish beside the mean: then the first of the best arms is the one that stays."""
    rule, instance = SAE(alpha=0, scale=1e-9), Instance([1e12, 1e12 + 1e3, 0.0], 1e-9)
    assert simulated(rule, instance, 9)[0].tolist() == [0, 1, 2] + [1] * 6


@pytest.mark.parametrize(
    ("rule", "given", "message"),
    [
        (PhasedElimination, {"growth": 1}, "phased: growth: "),
        (PhasedElimination, {"batch": 0}, "phased: batch: "),
        (ExploreThenCommit, {"explore": 0}, "explore-then-commit: explore: "),
        (ExploreThenCommit, {"batch": 2}, "explore-then-commit: batch: expected 1, as it tests once"),
    ],
)
def test_bad_parameters_are_refused(rule, given, message):
    with pytest.raises(ParameterError, match=message):
        rule(**given)


def test_explore_then_commit_says_why_it_has_no_batch():
    for make in (lambda: parse_rule("explore-then-commit:batch=3"), lambda: ExploreThenCommit(batch=3)):
        with pytest.raises(ParameterError, match=r"expected 1, as it tests once, after .*; got 3\.") as refused:
            make()
        assert (refused.value.parameter, refused.value.owner) == ("batch", "explore-then-commit")
    assert parse_rule("etc:batch=1") == ExploreThenCommit(batch=1)
