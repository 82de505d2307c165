"""Forms of a rule that nobody named, what the answer calls possible, and what it says about numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import unbandit as ub
from unbandit.identification import Identification, api
from unbandit.identification.candidates import axis_of, candidates_for
from unbandit.identification.evidence import Contender, Guess, IdentificationRequest, LogEvidence
from unbandit.identification.selection import Decision
from unbandit.identification.values import gaps_from_prior, said_of_parameters

KNOWN, ANY = LogEvidence(-10.0, 0.1, -10.2, -9.8), (ub.Uniform(),)


def falling_epsilon(means, rounds, constant, seed):
    """Play epsilon-greedy with epsilon = min(1, c / t), in plain NumPy."""
    generator, arms = np.random.default_rng(seed), len(means)
    pulls, sums, actions = np.zeros(arms), np.zeros(arms), []
    for t in range(1, rounds + 1):
        arm = t - 1 if t <= arms else int(np.argmax(sums / pulls))
        if t > arms and generator.random() < min(1.0, constant / t):
            arm = int(generator.integers(arms))
        pulls[arm] += 1
        sums[arm] += means[arm] + 0.5 * generator.normal()
        actions.append(arm)
    return ub.ActionLog.from_actions(actions)


def test_a_falling_epsilon_is_found_though_nobody_named_it():
    log = falling_epsilon([1.0, 0.5, 0.2], 490, 20.0, seed=2)
    found = ub.identify(log, "thompson:sigma=0.5,epsilon-greedy", sigma=0.5, particles=60)
    assert (found.verdict, found.winner) == ("identified", "epsilon-greedy")
    rule = found.leading.guesses[0].rule
    assert (rule.epsilon, rule.rate) == (1.0, None)
    assert rule.decay == pytest.approx(20.0, rel=0.5)
    assert "epsilon 1, decay" in said_of_parameters(found.leading)


def test_every_form_has_a_line_and_half_of_the_probability():
    log = ub.ActionLog.from_actions([0, 1, 2] * 200)
    greedy, softmax = candidates_for("epsilon-greedy,softmax", ub.Gaussian(0.5), log, lines=True)[0]
    by_axis: dict[str, float] = {}
    for rule, weight in greedy.guesses:
        by_axis[axis_of(rule, greedy)] = by_axis.get(axis_of(rule, greedy), 0.0) + weight
    assert set(by_axis) == {"epsilon", "decay", "rate"}
    assert by_axis["epsilon"] == pytest.approx(0.5)
    assert sum(weight for _, weight in greedy.guesses) == pytest.approx(1.0)
    assert {rule.annealing for rule, _ in softmax.guesses} == {0.0, 0.5}
    finer = greedy.refined({at: -float(at) for at in range(len(greedy.guesses))}, -100.0)
    assert sum(weight for rule, weight in finer.guesses if axis_of(rule, finer) == "epsilon") == pytest.approx(0.5)
    assert all((rule.decay is None) or (rule.rate is None) for rule, _ in finer.guesses)


def test_a_log_that_does_not_open_in_turn_is_tried_without_an_opening():
    in_turn, other = (ub.ActionLog.from_actions(actions) for actions in ("ABCAB", "AABCB"))
    for log, initial in ((in_turn, 1), (other, 0)):
        greedy, ucb = candidates_for("epsilon-greedy,ucb1", ub.Gaussian(0.5), log, lines=True)[0]
        assert {rule.initial for rule, _ in greedy.guesses} == {initial}
        assert {rule.initial for rule, _ in ucb.guesses} == {1}


def contender(name, probability, rules=ANY, shares=(1.0,), **more):
    guesses = tuple(Guess(rule, 1 / len(rules), share, KNOWN) for rule, share in zip(rules, shares, strict=True))
    return Contender(name, guesses, KNOWN, probability, **more)


def decided(probabilities):
    """Return an answer that the evidence does not decide, with candidates of these probabilities."""
    log = ub.ActionLog.from_actions("ABAB")
    request = IdentificationRequest(log, (4,), ub.NormalPrior(), ub.Gaussian(0.5), None, 0, 1)
    contenders = {at: contender(name, chance) for at, (name, chance) in enumerate(probabilities.items())}
    order = tuple(contenders)
    decision = Decision(order, tuple(probabilities.values()), 0.5, 0.5, order)
    return api._decided(request, contenders, decision, decision, {}, [], [])


def test_the_headline_names_what_is_as_probable_as_the_values_need():
    found = decided({"klucb": 0.57, "ucb1": 0.4295, "lilucb": 0.0005})
    assert found.left == found.averaged == ("klucb", "ucb1")
    close = decided({"moss": 0.99, "ucb": 0.01})
    assert isinstance(close, Identification)
    assert close.left == ("moss", "ucb")
    said = "moss is the most probable candidate; too few particles explain the log under ucb to exclude it"
    assert (close.verdict, close.answer()) == ("cannot tell", said)


def test_parameters_have_an_interval_that_reaches_between_the_values_of_a_grid():
    rules = [ub.EpsilonGreedy(epsilon=value) for value in (0.1, 0.05, 0.2)]
    said = said_of_parameters(contender("epsilon-greedy", 1.0, rules, (1.0, 0.0, 0.0), axis="epsilon"))
    name, middle, low, _, high = said.replace("(", "").replace(")", "").split()
    assert name == "epsilon"
    assert float(middle) == pytest.approx(0.1, rel=0.01)
    assert float(low) == pytest.approx(0.1 / math.sqrt(2), rel=0.03)
    assert float(high) == pytest.approx(0.1 * math.sqrt(2), rel=0.03)
    at_its_end = said_of_parameters(contender("epsilon-greedy", 1.0, rules, (0.0, 0.0, 1.0), axis="epsilon"))
    assert float(at_its_end.split()[-1].rstrip(")")) > 0.25
    shaky = replace(KNOWN, value=-14.0, error=4.0)  # a value that the error alone puts behind counts as the first does
    sure = contender("epsilon-greedy", 1.0, rules, (0.97, 0.015, 0.015), axis="epsilon")
    unsure = replace(sure, guesses=(sure.guesses[0], *(replace(each, evidence=shaky) for each in sure.guesses[1:])))
    ends = [said_of_parameters(each).split()[-1].rstrip(")") for each in (sure, unsure)]
    assert float(ends[0]) < 0.15 < 0.2 < float(ends[1])
    largest = [ub.EpsilonGreedy(epsilon=value) for value in (1.0, 0.5)]
    assert said_of_parameters(contender("x", 1.0, largest, (1.0, 0.0), axis="epsilon")).endswith("to 1)")


def test_a_bare_name_of_which_one_rule_is_left_says_which():
    left = ub.KLUCB(noise="gaussian", sigma=0.5, level="round", double_log=3.0)
    assert set(said_of_parameters(contender("klucb", 0.5, (left,))).split(", ")) == {"level round", "double_log 3"}
    assert said_of_parameters(contender("uniform", 0.5)) == ""


def test_gaps_that_are_the_priors_are_named_and_others_are_not():
    log, generator = ub.ActionLog.from_actions("ABC" * 3), np.random.default_rng(1)
    request = IdentificationRequest(log, (9,), ub.NormalPrior(), ub.Gaussian(0.5), None, 0, 1)
    drawn = generator.normal(0.0, 1.0, (4, 500, 3))
    gaps = drawn.max(axis=-1, keepdims=True) - drawn
    gaps[..., 1] = 0.5 + 0.05 * generator.normal(size=(4, 500))
    gaps[..., 0] = 0.0
    (notice,) = gaps_from_prior(request, SimpleNamespace(arms=log.arms, gaps=gaps, rivals=None))
    assert notice.code == "gaps-from-prior"
    assert notice.message.startswith('The gap of "C" comes mostly from the prior: its interval is nearly as wide')
    gaps[..., 2] = gaps[..., 1]
    assert gaps_from_prior(request, SimpleNamespace(arms=log.arms, gaps=gaps, rivals=None)) == []
    assert gaps_from_prior(request, None) == []


def test_an_interval_is_of_one_line_of_values():
    constant = tuple(ub.Softmax(temperature=value) for value in (0.1, 0.2, 0.4))
    annealed = tuple(ub.Softmax(temperature=value, annealing=0.5) for value in (3.0, 6.0, 12.0))
    shares = (0.05, 0.5, 0.05, 0.05, 0.3, 0.05)
    ordered = sorted(zip((*constant, *annealed), shares, strict=True), key=lambda each: -each[1])
    rules, shares = zip(*ordered, strict=True)
    said = said_of_parameters(contender("softmax", 1.0, rules, shares, axis="temperature"))
    assert "annealing 0 or 0.5" in said
    high = float(said.split(" to ")[1].split(")")[0])
    assert high < 0.6


def test_a_rule_that_did_not_open_in_turn_is_said_to():
    rules = tuple(ub.EpsilonGreedy(epsilon=value, initial=0) for value in (0.1, 0.2))
    assert "initial 0" in said_of_parameters(contender("epsilon-greedy", 1.0, rules, (0.9, 0.1), axis="epsilon"))
    usual = tuple(ub.EpsilonGreedy(epsilon=value) for value in (0.1, 0.2))
    assert "initial" not in said_of_parameters(contender("epsilon-greedy", 1.0, usual, (0.9, 0.1), axis="epsilon"))
