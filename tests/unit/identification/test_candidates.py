"""Who is considered: by name with a grid, with parameters as given, or with a grid of one's own."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest

import unbandit as ub
from unbandit.identification.candidates import candidates_for, twin_value

GAUSSIAN = ub.Gaussian(0.5)
LOG = ub.ActionLog.from_actions([0, 1, 2, 0, 1, 2, 2, 2, 2, 2])


def considered(asked, noise=GAUSSIAN):
    return candidates_for(asked, noise, LOG)[0]


def test_a_bare_name_stands_for_its_grid_and_a_rule_for_itself():
    ucb, sae, fixed = considered("ucb, sae:alpha=0.25,scale=2, moss:scale=1")
    assert (ucb.name, len(ucb.guesses)) == ("ucb", 6)
    assert {weight for _, weight in ucb.guesses} == {1 / 6}
    assert (sae.name, sae.guesses) == ("sae:alpha=0.25,scale=2", ((ub.SAE(alpha=0.25, scale=2), 1.0),))
    assert fixed.guesses == ((ub.MOSS(scale=1), 1.0),)


def test_rules_classes_and_texts_can_be_mixed():
    names = [each.name for each in considered([ub.UCB(alpha=0), ub.Softmax, "uniform"])]
    assert names == [str(ub.UCB(alpha=0)), "softmax", "uniform"]


def test_bars_and_mappings_give_grids_of_ones_own():
    (barred,) = considered("softmax:temperature=0.1|0.2,initial=2")
    assert barred.guesses == tuple((ub.Softmax(temperature=each, initial=2), 0.5) for each in (0.1, 0.2))
    (mapped,) = considered({"mine": ["ucb:alpha=0", ub.UCB(alpha=0.5)]})
    assert (mapped.name, [rule.alpha for rule, _ in mapped.guesses]) == ("mine", [0, 0.5])


def test_by_default_every_rule_that_takes_such_rewards():
    normal, binary = ({each.name: each for each in considered(None, noise)} for noise in (GAUSSIAN, ub.Bernoulli()))
    assert set(binary) == {name for name, rule in ub.rules().items() if rule.proposed}
    assert set(binary) - set(normal) == {"exp3", "ucbv"}
    assert {"uniform", "explore-then-commit"} <= set(normal)
    assert {rule.noise for rule, _ in normal["thompson"].guesses} == {"gaussian"}
    assert {rule.noise for rule, _ in binary["klucb"].guesses} == {"bernoulli"}


def test_a_rule_without_usual_parameters_is_left_out_with_a_note():
    class Choosy(ub.Uniform):
        """Take any arm."""

        name: ClassVar[str] = "choosy"
        needed: float

    found, notes = candidates_for(None, GAUSSIAN, LOG)
    assert "choosy" not in {each.name for each in found}
    assert [notice.code for notice in notes] == ["candidate-left-out"]


@pytest.mark.parametrize("one", [ub.UCB1(), ub.UCB1])
def test_one_rule_needs_no_list(one):
    assert considered(one, GAUSSIAN) == considered([one], GAUSSIAN)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("ucbb", 'Did you mean "ucb"'),
        ("ucb:alpa=1", 'Did you mean "alpha"'),
        ("ucb,ucb", '"ucb" twice'),
        ("", "expected one rule or more"),
        ([3], "expected rules, their classes or their texts"),
        ({"mine": []}, "mine: expected a list of rules"),
        ("exp3", "expected rewards of 0 and 1"),
        ([ub.Thompson(noise="bernoulli")], "expected rewards of 0 and 1"),
    ],
)
def test_what_cannot_be_a_candidate(asked, said):
    with pytest.raises(ub.ParameterError, match=said):
        considered(asked)


def test_rules_that_are_one_with_another_are_left_out_by_default_and_kept_where_named():
    log = ub.ActionLog.from_actions("ABC")
    by_default = {each.name: each for each in candidates_for(None, ub.Gaussian(0.5), log, lines=True)[0]}
    (left,) = by_default["klucb"].guesses
    assert (left[0].level, left[0].double_log, left[1]) == ("round", 3.0, 1.0)
    assert [(rule.level, rule.double_log) for rule in by_default["ucb1"].twins] == [("round", 0.0)]
    assert [(rule.level, rule.double_log) for rule in by_default["ucb"].twins] == [("horizon", 0.0), ("horizon", 3.0)]
    assert not by_default["moss"].twins
    etc = ub.ExploreThenCommit.guesses(ub.Gaussian(0.5), log)  # lengths that the log does not show keep their weight
    assert by_default["explore-then-commit"].guesses == tuple(etc)
    scales = [rule.scale for rule, _ in by_default["ucb"].guesses]
    for twin in by_default["ucb"].twins:  # whose scale is below the usual ones
        assert min(scales) <= twin_value(twin, ub.UCB(), "scale", 3, 3) <= max(scales)
    assert sum(weight for _, weight in by_default["ucb"].guesses) == pytest.approx(1)
    named, _ = candidates_for("klucb,ucb,ucb1", ub.Gaussian(0.5), log, lines=True)
    assert len(named[0].guesses) == 4
    assert not named[1].twins


def test_a_twin_decides_as_its_rule_does():
    rule, line = ub.KLUCB(noise="gaussian", sigma=0.5, double_log=3.0), ub.UCB(alpha=0.25, scale=2.0)
    scale = twin_value(rule, line, "scale", 1_200, 3)
    instance = ub.Instance([1.0, 0.7, 0.3], 0.5)
    pulled = [each.demonstrate(instance, 1_200, seed=1) for each in (rule, ub.UCB(alpha=0.25, scale=scale))]
    assert pulled[0].demonstration(0).tolist() == pulled[1].demonstration(0).tolist()
    assert twin_value(rule.model_copy(update={"batch": 4}), line, "scale", 1_200, 3) is None
    assert twin_value(ub.MOSS(), line, "scale", 1_200, 3) is None


def test_two_unknown_numbers_have_lines_side_by_side_that_share_the_probability():
    for kind, second, ends in ((ub.LearningSoftmax, "rate", (0.05, 1.0)), (ub.Thompson, "deviation", (0.5, 10.0))):
        (found,) = candidates_for(kind, GAUSSIAN, LOG, lines=True)[0]
        sides = sorted({getattr(rule, second) for rule, _ in found.guesses})
        assert (found.across, sides[0], sides[-1]) == (second, *ends)
        assert sum(weight for _, weight in found.guesses) == pytest.approx(1)
    (binary,) = candidates_for(ub.Thompson, ub.Bernoulli(), LOG, lines=True)[0]
    assert (binary.axis, binary.across) == (None, None)


def test_lines_are_tried_between_those_that_differ_much():
    (given,) = candidates_for(ub.LearningSoftmax, GAUSSIAN, LOG, lines=True)[0]
    rates = {rule.rate for rule, _ in given.guesses}
    for steepness, count in ((100.0, 2), (0.5, 0)):
        known = {
            at: -steepness * (abs(math.log(rule.rate / 0.3)) + abs(math.log(rule.temperature / 0.2)))
            for at, (rule, _) in enumerate(given.guesses)
        }
        finer = given.refined(known, max(known.values()) - 8.0)
        new = {rule.rate for rule, _ in finer.guesses} - rates
        assert len(new) == count
        assert sum(weight for _, weight in finer.guesses) == pytest.approx(1)
        shares = {rate: sum(weight for rule, weight in finer.guesses if rule.rate == rate) for rate in rates | new}
        assert shares[0.05] == pytest.approx(max(shares.values()))  # the ratio to its neighbour is among the largest
        assert all(shares[rate] < shares[0.05] for rate in new)
