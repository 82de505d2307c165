"""Which rule made a log: clear cases, cases that cannot be told, and cases of none."""

from __future__ import annotations

import copy
import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import unbandit as ub
from unbandit.demonstrators import parse_rule
from unbandit.fit import Check
from unbandit.identification import api, evidence, selection, values
from unbandit.identification.evidence import Contender, Guess, IdentificationRequest, LogEvidence
from unbandit.identification.selection import Decision
from unbandit.identification.signs import appeared_late, signs
from unbandit.identification.values import RuleValues, said_of_values
from unbandit.inference.prior import NormalPrior

RULES = ["ucb:alpha=0.25", "sae:alpha=0.25", "uniform"]
INSTANCE = ub.Instance([1.0, 0.4, 0.0], 0.5, arms="ABC")


@pytest.mark.parametrize("made_by", RULES)
def test_clear_cases(made_by):
    log = ub.parse_rule(made_by).demonstrate(INSTANCE, 500, seed=1)
    found = ub.identify(log, RULES, sigma=0.5, particles=150)
    assert (found.verdict, found.winner) == ("identified", made_by)
    assert found.assured > 0.99
    assert found.check.verdict == "fits"
    assert sum(each.probability for each in found.candidates) == pytest.approx(1)


@pytest.mark.parametrize(
    "text",
    ["sliding-window-ucb:window=100", "discounted-ucb:discount=0.99", "ucb:alpha=0.25,delay=5", "sae:delay=poisson:5"],
)
def test_a_rule_whose_evidence_cannot_be_computed_is_refused_and_not_called_impossible(text):
    log = ub.UCB(alpha=0.25).demonstrate(INSTANCE, 50, seed=1)
    with pytest.raises(ub.ParameterError, match="is not computed here"):
        ub.identify(log, [text, "uniform"], sigma=0.5)


def test_what_comes_after_a_misfit_is_checked_before_it_is_named(monkeypatch):
    asked = []

    def misfits(request, candidate, values):
        asked.append(candidate.name)
        return Check("does not fit", 0.001), candidate.guesses[0].rule

    monkeypatch.setattr(api, "checked_rule", misfits)
    monkeypatch.setattr(api, "MOST_CHECKED", 1)
    log = ub.UCB(alpha=0.25).demonstrate(INSTANCE, 60, seed=1)
    with pytest.warns(ub.AssumptionWarning, match="does not make such logs"):
        found = ub.identify(log, ["ucb:alpha=0.25", "ucb:alpha=0.26"], sigma=0.5, particles=100)
    assert found.verdict == "none fits"
    assert len(asked) == 2  # the second one too, after the first was out


def test_few_are_checked_unless_the_first_of_them_do_not_fit():
    several = Decision((0, 1, 2, 3, 4, 5), (0.3, 0.2, 0.2, 0.1, 0.1, 0.1), 0.3, 0.3, (0, 1, 2, 3, 4, 5))
    assert api._to_check(several, []) == [0, 1, 2, 3]
    assert api._to_check(several, [0, 1, 2, 3]) == []
    without = Decision((4, 5), (0, 0, 0, 0, 0.5, 0.5), 0.5, 0.5, (4, 5))
    assert api._to_check(without, [0, 1, 2, 3]) == [4]
    clear = Decision((0, 1, 2), (0.95, 0.04, 0.01), 0.95, 0.95, (0, 1, 2))
    assert api._to_check(clear, []) == [0, 1]


def test_values_are_averaged_over_a_rule_that_is_improbable_but_possible(monkeypatch):
    log = ub.Softmax(temperature=0.6).demonstrate(ub.Instance([1.0, 0.3, 0.0], 0.5), 25, seed=6)
    rules = "softmax:temperature=0.6,uniform"
    assert ub.identify(log, rules, sigma=0.5, particles=100).verdict == "cannot tell"
    monkeypatch.setattr(selection, "SURE", 0.75)
    found = ub.identify(log, rules, sigma=0.5, particles=100)
    assert (found.verdict, found.left) == ("identified", ("softmax:temperature=0.6",))
    assert set(found.averaged) == {"softmax:temperature=0.6", "uniform"}
    alone = found.posterior("softmax:temperature=0.6", draws=4_000)
    one = alone.probability_best.max()
    assert found.values.probability_best.max() < one - 0.02


def test_one_candidate_that_was_not_checked_does_not_fit_by_that():
    found = ub.identify(ub.ActionLog.from_actions("ABA"), ["ucb:alpha=0.25"], sigma=0.5)
    assert found.verdict == "cannot tell"
    assert "not checked" in found.answer()


def test_an_opening_alone_cannot_tell():
    found = ub.identify(ub.ActionLog.from_actions("ABC"), "ucb:alpha=0.25,sae:alpha=0.25", sigma=0.5)
    assert (found.verdict, found.winner) == ("cannot tell", None)
    assert set(found.left) == {"ucb:alpha=0.25", "sae:alpha=0.25"}
    assert found.leading.probability == pytest.approx(0.5)
    assert "cannot distinguish between" in found.answer()


@pytest.mark.parametrize(("pulls", "left"), [(37, {"sae", "explore-then-commit"}),
                                             (64, {"sae", "phased", "explore-then-commit"})])  # fmt: skip
def test_one_number_does_not_show_which_elimination_rule_left_it(pulls, left):
    """Phased elimination tests after 1, 2, 4, ... pulls; any rule may have dropped an arm then."""
    log = ub.ActionLog.from_actions([0, 1] * pulls + [1] * 120)
    found = ub.identify(log, "sae,phased,explore-then-commit,uniform", sigma=0.5, particles=60)
    assert (found.verdict, set(found.left)) == ("cannot tell", left)
    assert "one-number" in [notice.code for notice in found.notes]
    assert found["sae"].probability > 0.01


def test_arms_dropped_one_by_one_show_that_no_fixed_exploration_did_it():
    log = ub.SAE(alpha=0.25).demonstrate(ub.Instance([1.0, -0.5, 0.0], 0.5), 400, seed=1)
    found = ub.identify(log, "sae,explore-then-commit", sigma=0.5, particles=60)
    assert (found.verdict, found.winner) == ("identified", "sae")
    assert not found["explore-then-commit"].possible


def test_rules_that_are_one_and_the_same_cannot_be_told_apart():
    log = ub.UCB(alpha=0, scale=math.sqrt(2) * 0.5).demonstrate(INSTANCE, 200, seed=2)
    same = [ub.UCB(alpha=0, scale=math.sqrt(2) * 0.5), ub.UCB(alpha=0, scale=math.sqrt(2) * 0.5 * (1 + 1e-9))]
    found = ub.identify(log, same, sigma=0.5, particles=150)
    assert found.verdict == "cannot tell"


def test_a_rule_of_another_name_that_is_the_same_is_named_where_its_parameters_are_probable():
    known, twin = LogEvidence(-10.0, 0.1, -10.2, -9.8), ub.KLUCB(noise="gaussian", sigma=0.5, level="round")
    request = IdentificationRequest(
        ub.ActionLog.from_actions("AB"), (100,), ub.NormalPrior(), ub.Gaussian(0.5), None, 0, 1
    )
    said = {}
    for exploration in (0.5, 4.0):
        guess = Guess(ub.UCB1(exploration=exploration), 1.0, 1.0, known)
        said[exploration] = api._twins(
            request, Contender("ucb1", (guess,), known, 1.0, axis="exploration", twins=(twin,))
        )
    (notice,) = said[0.5]
    assert notice.code == "same-rule"
    assert notice.message.startswith("ucb1 with exploration = 0.5 is klucb")
    assert notice.message.endswith("compared in the row of ucb1.")
    assert not said[4.0]


def test_a_candidate_that_cannot_be_says_where_and_why():
    log = ub.ActionLog.from_actions("ABCABCABAABC")
    found = ub.identify(log, "sae,uniform", sigma=0.5)
    assert found.winner == "uniform"
    assert not found["sae"].possible
    assert found["sae"].evidence.round == 11
    assert "after its turn had passed" in found["sae"].reason
    with pytest.raises(ub.NotIdentifiable, match="cannot have made the log: round 11"):
        found.posterior("sae")


def test_nobody_left():
    with pytest.raises(ub.NotIdentifiable, match="None of 2 candidates can have made this log"):
        ub.identify(ub.ActionLog.from_actions("ABCABCABAABC"), "sae,phased", sigma=0.5)


def test_a_record_that_the_winner_does_not_reproduce():
    log = ub.ActionLog.from_actions(["A"] * 106 + ["B"] * 100 + ["C"] * 94)
    with pytest.warns(ub.AssumptionWarning, match="does not make such logs"):
        found = ub.identify(log, "uniform,sae", sigma=0.5)
    assert (found.verdict, found.winner, found.leading.name) == ("none fits", None, "uniform")
    assert "none of the candidates made this" in found.answer()
    assert (found.values, found.value_table(), found.to_dict()["values"]) == (None, None, None)
    assert found.averaged == ()
    assert "no values are given" in found.warnings[-1].message
    tails = {row.name: row.tail for row in found.check.statistics}
    assert tails["switches"] < 0.01 < tails["pulls, rank 1"]
    assert "`check` tests each rule." in found.warnings[-1].message


def test_unknown_parameters_are_averaged_and_carried_into_the_intervals():
    log = ub.UCB(alpha=0.25).demonstrate(INSTANCE, 400, seed=3)
    found = ub.identify(log, {"ucb": [ub.UCB(alpha=0.2), ub.UCB(alpha=0.25)], "uniform": ["uniform"]}, sigma=0.5,
                        particles=150)  # fmt: skip
    (first, second), evidence = found["ucb"].guesses, found["ucb"].evidence
    assert first.share + second.share == pytest.approx(1)
    assert evidence.value == pytest.approx(np.logaddexp(first.evidence.value, second.evidence.value) - math.log(2))
    mixed = found.posterior(draws=200)
    assert mixed.rule == "ucb"
    assert mixed.means.shape == (4, 200, 3)
    assert found.values.means.shape == (4, 1_000, 3)
    assert found.value_table().columns == ["arm", "pulls", "probability_best", "gap", "gap_low", "gap_high"]
    apart = [ub.posterior(log, guess.rule, sigma=0.5, particles=150, draws=200) for guess in (first, second)]
    low, high = sorted(posterior.gaps[..., 2].mean() for posterior in apart)
    assert low - 0.02 < mixed.gaps[..., 2].mean() < high + 0.02


def test_values_are_averaged_along_a_smooth_curve_and_not_at_the_guess_that_errors_favour(monkeypatch):
    """Evidences of a wide peak, with errors: the heaviest guess alone would leave out most of what is probable."""
    log, errors = ub.ActionLog.from_actions("ABC"), np.random.default_rng(1)
    request = IdentificationRequest(log, (3,), NormalPrior(), ub.Gaussian(0.5), None, 0, 1)
    width, scales = 0.5, np.geomspace(0.3, 8.0, 10)

    def evidence(request, rule, heat):
        value = -0.5 * (math.log(rule.scale / 1.5) / width) ** 2 + errors.normal(0.0, 1.0)
        return LogEvidence(value, 1.0, value, value)

    monkeypatch.setattr(values, "log_evidence", evidence)
    given = [(ub.SAE(scale=scale), evidence(request, ub.SAE(scale=scale), None)) for scale in scales]
    guesses = sorted(
        (Guess(rule, 0.1, math.exp(each.value), each) for rule, each in given), key=lambda each: -each.share
    )
    total = sum(each.share for each in guesses)
    guesses = tuple(replace(each, share=each.share / total) for each in guesses)
    [line] = values.probable_lines(request, Contender("sae", guesses, guesses[0].evidence, 1.0, axis="scale"))
    places = np.log([rule.scale for rule in line.rules])
    assert line.shares == pytest.approx([1 / len(line.rules)] * len(line.rules))
    assert np.log(line.values)[:, 0] == pytest.approx(places)
    assert places.std() == pytest.approx(width, rel=0.5)
    assert places.mean() == pytest.approx(math.log(1.5), abs=0.5)
    lone = Contender("sae", guesses[:1], guesses[0].evidence, 1.0, axis="scale")
    [alone] = values.probable_lines(request, lone)
    assert (alone.rules, alone.shares, alone.curve) == ([guesses[0].rule], [guesses[0].share], None)


@pytest.mark.parametrize(("shares", "numbers"), [((0.5, 0.5), [3, 3]), ((0.9, 0.1), [3, 1])], ids=["alike", "seldom"])
def test_a_wide_line_has_several_values_unless_another_is_far_more_probable(monkeypatch, shares, numbers):
    log = ub.ActionLog.from_actions("ABC")
    request = IdentificationRequest(log, (3,), NormalPrior(), ub.Gaussian(0.5), None, 0, 1)

    def evidence(request, rule, heat):
        value = -0.5 * (math.log(rule.sigma) / 0.5) ** 2
        return LogEvidence(value, 0.01, value, value)

    monkeypatch.setattr(values, "log_evidence", evidence)
    guesses = []
    for deviation, share in zip((1.0, 10.0), shares, strict=True):
        rules = [ub.Thompson(deviation=deviation, sigma=sigma) for sigma in np.geomspace(0.2, 5.0, 9)]
        found = [evidence(request, rule, None) for rule in rules]
        total = sum(math.exp(each.value) for each in found)
        guesses += [
            Guess(rule, 0.1, share * math.exp(each.value) / total, each)
            for rule, each in zip(rules, found, strict=True)
        ]
    contender = Contender("thompson", tuple(guesses), guesses[0].evidence, 0.2, axis="sigma")
    assert [len(line.rules) for line in values.probable_lines(request, contender)] == numbers


def test_values_reach_as_far_as_the_parameter_does(monkeypatch):
    """Gaps in proportion to the scale: draws under a few scales alone would end where the outermost of them does."""
    log, width = ub.ActionLog.from_actions("ABC"), 0.5
    request = IdentificationRequest(log, (3,), NormalPrior(), ub.Gaussian(0.5), None, 0, 1)
    places = np.linspace(-2.0, 2.0, 81)[:, None]
    weights = np.exp(-0.5 * np.square(places[:, 0] / width))
    rules, scale = [ub.SAE(scale=math.exp(x)) for x in (0.0, -0.5, 0.5)], SimpleNamespace(axis="scale", normal=False)
    curve = values.ParameterCurve(np.exp(places), weights / weights.sum())
    line = values.ParameterLine(rules, [1 / 3] * 3, curve, ("scale",))
    monkeypatch.setattr(values, "probable_lines", lambda request, candidate: [line])

    def posterior(request, which, rule, draws, tried):
        noise = np.random.default_rng(1).normal(0.0, 0.01, (values.CLOUDS, draws, 3))
        return SimpleNamespace(means=rule.scale * np.array([0.0, 1.0, 2.0]) + noise)

    monkeypatch.setattr(values, "_posterior", posterior)
    found = values.values_under(request, 0, scale).means.reshape(-1, 3)
    assert found[:, 1].min() > 0.0  # no gap changes its sign
    assert np.log(found[:, 1:]).std(axis=0) == pytest.approx([width, width], rel=0.1)
    apart = replace(line, curve=None)
    monkeypatch.setattr(values, "probable_lines", lambda request, candidate: [apart])
    assert values.values_under(request, 0, scale).means.reshape(-1, 3)[:, 1].max() < 1.1 * math.exp(0.5)


def test_every_set_of_parameters_is_checked_with_the_means_under_it(monkeypatch):
    """Means under one scale do not make the log under another, so that the right rule would not fit."""
    log, asked = ub.ActionLog.from_actions("ABC"), []
    request = IdentificationRequest(log, (3,), NormalPrior(), ub.Gaussian(0.5), None, 0, 1)
    sets = tuple((ub.SAE(scale=scale), np.full((1, 2, 3), scale)) for scale in (1.0, 2.0))

    def check_log(log, rule, noise, horizons, answered, **options):
        asked.append((rule.scale, answered(0).mean[0]))
        return Check("fits" if rule.scale == 2.0 else "does not fit", 0.5)

    monkeypatch.setattr(values, "check_log", check_log)
    known = LogEvidence(0.0, 0.0, 0.0, 0.0)
    candidate = Contender("sae", (Guess(sets[0][0], 1.0, 1.0, known),), known, 1.0)
    own = RuleValues(np.concatenate([means for _, means in sets], axis=1), None, by_rule=sets)
    assert values.checked_rule(request, candidate, own)[1] == sets[1][0]
    assert asked == [(1.0, 1.0), (2.0, 2.0)]


def test_a_single_candidate_fits_or_does_not_and_has_no_probability():
    log = ub.UCB(alpha=0.25).demonstrate(INSTANCE, 300, seed=3)
    right = ub.identify(log, "ucb:alpha=0.25", sigma=0.5)
    assert (right.verdict, right.winner) == ("fits", None)
    assert "no other rule was considered" in right.answer()
    assert "probability" not in right.answer()
    assert right.values.arms[int(right.values.probability_best.argmax())] == "A"
    with pytest.warns(ub.AssumptionWarning, match="does not make such logs"):
        wrong = ub.identify(log, "ucb:alpha=0.9", sigma=0.5)
    assert (wrong.verdict, wrong.answer()) == ("none fits", "this log does not look like one that ucb:alpha=0.9 made")


def test_values_are_averaged_over_what_is_left():
    log = ub.UCB(alpha=0, scale=0.7).demonstrate(INSTANCE, 200, seed=2)
    found = ub.identify(log, [ub.UCB(alpha=0, scale=0.7), ub.UCB(alpha=0, scale=0.8)], sigma=0.5, particles=150)
    assert found.verdict == "cannot tell"
    apart = [found.posterior(name).gaps[..., 2].mean() for name in found.left]
    assert min(apart) < found.values.gaps[..., 2].mean() < max(apart)
    assert found.best_by_rule == dict.fromkeys(found.left, "A")
    assert "rules-agree" in {notice.code for notice in found.notes}
    together = np.logaddexp(*(found[name].evidence.value for name in found.left)) - math.log(2)
    assert found.values.log_evidence == pytest.approx(together)
    assert np.isnan(found.values.evidences).all()  # no cloud is of both rules
    with pytest.raises(ub.ParameterError, match="there is no hidden path"):
        found.values.plot("paths")
    assert found.posterior(found.left[0]).path_rounds.size > 0  # with one set of parameters there is one


def test_rules_that_disagree_about_the_best_arm_are_named():
    means = {"ucb": [[[1.0, 0.0]]], "moss": [[[0.0, 1.0]]]}
    log = ub.ActionLog.from_actions("ABAB")
    request = IdentificationRequest(log, (4,), ub.NormalPrior(), ub.Gaussian(0.5), None, 0, 1)
    known = LogEvidence(-1.0, 0.0, -1.0, -1.0)
    rules = [
        (Contender(name, (), known, 0.5), RuleValues(np.array(own), object())) for name, own in means.items()
    ]  # fmt: skip
    (notice,) = said_of_values(request, rules)
    assert notice.code == "rules-disagree"
    assert notice.message.endswith('"A" under ucb; "B" under moss.')


def test_several_demonstrations_are_of_one_rule():
    log = ub.Uniform().demonstrate(INSTANCE, 60, runs=3, seed=1)
    found = ub.identify(log, "uniform,ucb", sigma=0.5)
    assert found.winner == "uniform"
    assert found["uniform"].evidence.value == pytest.approx(-180 * math.log(3))
    assert {row.demonstration for row in found.surprises} <= {"1", "2", "3"}
    with pytest.raises(ub.ParameterError, match="from 0 to 2"):
        found.posterior("uniform", demonstration=3)


def test_surprising_rounds_are_named():
    actions = list("ABC" + "A" * 97)
    actions[50] = "C"
    found = ub.identify(ub.ActionLog.from_actions(actions), "epsilon-greedy:epsilon=0.03", sigma=0.5, particles=100)
    assert found.winner is None
    first = found.surprises[0]
    assert (first.round, first.arm) == (51, "C")
    assert first.log_probability == pytest.approx(math.log(0.01), abs=0.2)


def test_the_answer_as_json_has_its_schema():
    log = ub.ActionLog.from_actions("ABCABCABAABC")
    found = ub.identify(log, "sae,uniform", sigma=0.5, seed=3)
    said = json.loads(found.to_json())
    assert list(said)[:20] == [
        "schema", "verdict", "winner", "leading", "assured", "left", "averaged", "horizon", "demonstrations", "sigma",
        "prior", "seed", "candidates", "check", "level", "values", "best_by_rule", "surprises", "warnings", "notes",
    ]  # fmt: skip
    assert (said["schema"], said["seed"], said["horizon"]) == ("unbandit.identify/2", 3, 12)
    uniform, sae = said["candidates"]
    assert set(uniform) == {
        "name", "log_evidence", "error", "low", "high", "behind", "probability", "fits", "p_value", "reason", "round",
        "guesses",
    }  # fmt: skip
    assert (sae["log_evidence"], sae["error"], sae["probability"], sae["round"]) == (None, None, 0.0, 11)
    assert len(sae["guesses"]) == 7
    assert (said["check"]["candidate"], said["check"]["verdict"]) == ("uniform", "fits")
    assert (said["values"], said["best_by_rule"]) == (None, {})
    assert list(found.to_dict()) == list(said)[:20]


def _same(again, found):
    assert again.to_json() == found.to_json()
    assert (repr(again), again.winner, again.answer()) == (repr(found), found.winner, found.answer())
    assert_frame_equal(again.to_frame(), found.to_frame())
    assert again.summary().equals(found.summary())
    assert again.plot().axes


def test_an_answer_comes_back_from_json_with_its_draws():
    log = ub.SAE(alpha=0).demonstrate(ub.Instance([1.0, 0.0], 0.5), horizon=300, seed=1)
    found = ub.identify(log, "ucb:alpha=0,sae:alpha=0,uniform", sigma=0.5)
    again = ub.Identification.from_json(found.to_json())
    _same(again, found)
    assert again.value_table(0.5).equals(found.value_table(0.5))
    np.testing.assert_array_equal(again.values.means, found.values.means)
    assert again.demonstration_values() is again.values
    assert again["sae:alpha=0"].guesses[0].rule == ub.SAE(alpha=0)
    assert len(copy.deepcopy(again).question.log) == 1
    with pytest.raises(ub.ParameterError, match=r"read from JSON, which does not hold the log.*identify"):
        again.posterior()


def test_an_answer_without_values_comes_back_from_json():
    log = ub.ActionLog.from_actions([list("ABCABCABAABC"), list("ABCABCABAABCA")])
    found = ub.identify(log, "sae,uniform", sigma=0.5, seed=3)
    again = ub.Identification.from_json(found.to_json().encode())
    _same(again, found)
    assert again.question.horizons == (12, 13)
    assert again.values is None


def test_json_of_something_else_is_no_identification():
    found = ub.identify(ub.ActionLog.from_actions("ABCABCABAABC"), "sae,uniform", sigma=0.5)
    with pytest.raises(ub.ParameterError, match=r"expected an answer with its checks.*Identification\.to_json\(\)"):
        ub.Identification.from_json(json.dumps(found.to_dict()))
    with pytest.raises(ub.ParameterError, match=r"unbandit\.identify/2; got unbandit\.leak/1"):
        ub.Identification.from_json('{"schema": "unbandit.leak/1"}')
    with pytest.raises(ub.ParameterError, match="this is no JSON"):
        ub.Identification.from_json("verdict")


def test_a_survey_comes_back_from_json():
    log = ub.UCB1().demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), horizon=300, seed=1)
    found = ub.check(log, "ucb1,sae,klucb", sigma=0.5)  # klucb gives no estimate without a known mean
    again = ub.Survey.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert (str(again), again.answer()) == (str(found), found.answer())
    assert [row.estimate is None for row in again.rows] == [row.estimate is None for row in found.rows]
    assert [row.rule for row in again.rows] == [row.rule for row in found.rows]
    with pytest.raises(ub.ParameterError, match=r"Give the text that Survey\.to_json\(\) wrote"):
        ub.Survey.from_json(json.dumps(found.to_dict()))


def test_as_a_table_and_in_words():
    found = ub.identify(ub.ActionLog.from_actions("ABCABCABAABC"), "sae,uniform", sigma=0.5)
    assert found.to_frame()["candidate"].to_list() == ["uniform"] + ["sae"] * 7
    assert repr(found).startswith("<Identification: 2 candidates, identified, the most probable rule is uniform")
    with pytest.raises(KeyError, match="expected a candidate among uniform, sae"):
        found["ucb"]


def test_rewards_of_0_and_1():
    instance = ub.Instance([0.8, 0.3], ub.Bernoulli())
    log = ub.SAE(alpha=0, scale=0.5).demonstrate(instance, 200, seed=1)
    found = ub.identify(log, ["sae:alpha=0,scale=0.5", "uniform"], bernoulli=True, particles=150)
    assert found.winner == "sae:alpha=0,scale=0.5"
    assert found.question.sigma is None


def test_a_beginning_of_a_longer_run():
    log = ub.SAE(alpha=0.25).demonstrate(INSTANCE, 2_000, seed=1)
    beginning = ub.ActionLog.from_codes(log.demonstration(0)[:400].copy(), log.arms)
    found = ub.identify(beginning, ["sae:alpha=0.25", "uniform"], sigma=0.5, horizon=2_000)
    assert found.winner == "sae:alpha=0.25"
    assert found.check.verdict == "fits"


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads():
    log = ub.UCB().demonstrate(INSTANCE, 100, seed=1)
    first, second = (
        ub.identify(log, "ucb:alpha=0.25,uniform", sigma=0.5, particles=150, threads=threads).to_json()
        for threads in (1, 2)
    )
    assert first == second


def test_an_unknown_noise_is_assumed_with_a_warning():
    with pytest.warns(ub.AssumptionWarning, match="sigma = 1 is assumed"):
        found = ub.identify(ub.ActionLog.from_actions("ABAB"), "uniform")
    assert [notice.code for notice in found.warnings] == ["sigma-assumed"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"sigma": -1}, ub.ParameterError, "sigma: expected a positive number"),
        ({"sigma": 1, "bernoulli": True}, ub.ParameterError, "leave sigma or bernoulli out"),
        ({"sigma": 1, "particles": 0}, ub.ParameterError, "particles: expected a whole number"),
        ({"sigma": 1, "seed": -1}, ub.ParameterError, "seed: expected a whole number"),
        ({"sigma": 1, "horizon": 3}, ub.LogError, "more than the horizon 3"),
        ({"sigma": 1, "prior": "normal:deviation=0"}, ub.ParameterError, "deviation: expected a positive number"),
        ({"sigma": 1, "prior": "beta"}, ub.ParameterError, "expected a normal prior"),
    ],
)
def test_what_is_asked_wrongly(options, error, said):
    with pytest.raises(error, match=said):
        ub.identify(ub.ActionLog.from_actions("ABAB"), "uniform", **options)


def test_counts_alone_cannot_tell():
    with pytest.raises(ub.NotIdentifiable, match="without their order"):
        ub.identify(ub.ActionLog.from_counts({"A": 70, "B": 30}), sigma=1)


def test_short_demonstrations_of_different_lengths_are_compared_in_what_they_share() -> None:
    log = ub.ActionLog.from_actions([["A", "B"], ["A"]], arms="AB")
    found = ub.identify(log, ["ucb:alpha=0.5", "ucb1"], sigma=0.5)
    assert found.check.verdict == "not checked"


def test_an_arm_that_first_appears_late_is_noted_with_what_to_do():
    late = ["A", "B"] * 20 + ["C", "A"] * 20
    (notice,) = appeared_late(ub.ActionLog.from_actions(late, arms=["A", "B", "C"]))
    assert (notice.code, notice.arm, notice.round) == ("appeared-late", "C", 41)
    assert "give availability a table with the lines `arm,first,last` and `C,41,`." in notice.message
    found = ub.check(ub.ActionLog.from_actions(late), sigma=0.5)
    assert not found.fitting
    assert "appeared-late" in [each.code for each in found.warnings]
    assert "appeared-late" not in [
        each.code
        for each in ub.check(ub.ActionLog.from_actions(late), sigma=0.5, availability={"C": (41, None)}).warnings
    ]
    with pytest.raises(ub.NotIdentifiable, match=r'Arm "C" first appears in round 41'):
        ub.identify(ub.ActionLog.from_actions(late), ["ucb1", "moss"], sigma=0.5)


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
@pytest.mark.parametrize("left", ["softmax", "thompson"])  # Thompson's beliefs differ in width by many orders
def test_a_late_arm_that_excludes_rules_is_warned_of(left):
    log = ub.UCB(alpha=0.25, scale=0.7).demonstrate(
        ub.Instance([1.0, 0.6, 0.3, 0.8], 0.5), horizon=300, seed=3, availability={"3": (120, None)}
    )
    found = ub.identify(log, ["ucb1", left], sigma=0.5, particles=100)
    assert found.left == (left,)  # which did not make it
    (warned,) = [each.message for each in found.warnings if each.code == "appeared-late"]
    assert re.search(r'"3" first appears in round 120.*Otherwise do not rely', warned)
    assert "appeared-late" not in {each.code for each in found.notes}
    assert all(each.evidence.value <= 0 for each in found.candidates)


@pytest.mark.parametrize(
    "actions",
    [["A", "B", "C"] * 50, ["A", "A", "B"] * 6 + ["C"] * 9, ["A", "B"] * 40, ["A", "B", "A", "B", "C"] * 9],
    ids=["in time", "no opening", "never", "soon"],
)
def test_other_arms_are_not_late(actions):
    assert appeared_late(ub.ActionLog.from_actions(actions, arms=["A", "B", "C"])) == []


def test_an_arm_that_others_chose_early_was_there():
    import polars as pl

    rows = [("one", arm) for arm in "AB" * 20 + "C"] + [("two", arm) for arm in "ABC" * 10]
    log = ub.ActionLog.from_frame(pl.DataFrame(rows, ["demonstration", "arm"], orient="row"))
    assert appeared_late(log) == []


@pytest.fixture(scope="module")
def changing():
    """A log of UCB1 in which an arm arrives late and another is withdrawn, with the table of both."""
    table = {"C": (121, None), "B": (None, 300)}
    instance = ub.Instance([1.0, 0.6, 0.8], 0.5, arms="ABC")
    return ub.UCB1().demonstrate(instance, horizon=400, seed=2, availability=table), table


def test_a_rule_is_identified_where_arms_arrive_late_or_are_withdrawn(changing):
    log, table = changing
    candidates = ["ucb1", "epsilon-greedy:epsilon=0.1", "uniform"]
    with pytest.raises(ub.NotIdentifiable, match=r"first appears in round 121.*availability"):
        ub.identify(log, candidates[:1], sigma=0.5)
    found = ub.identify(log, [*candidates, "sae"], sigma=0.5, availability=table, seed=1)
    assert (found.verdict, found.winner, found.check.verdict) == ("identified", "ucb1", "fits")
    told = {notice.code: notice.text for notice in found.notes}
    assert told["candidate-left-out"].startswith("sae is left out")
    assert '"B" to round 300, "C" from round 121' in told["availability"]
    assert "appeared-late" not in told
    assert found.values.rivals.tolist() == [[True, False, True], [True, True, True], [True, False, True]]
    gaps = np.quantile(found.values.gaps.reshape(-1, 3), [0.001, 0.999], axis=0)
    assert (gaps[0] <= [0, 0.4, 0.2]).all()
    assert (gaps[1] >= [0, 0.4, 0.2]).all()


def test_decisions_are_predicted_where_an_arm_is_withdrawn():
    table = {"B": (None, 150)}
    instance = ub.Instance([1.0, 0.6, 0.8], 0.5, arms="ABC")
    log = ub.UCB1().demonstrate(instance, 400, seed=2, availability=table)
    found = ub.identify(log, ["ucb1", "ucb:alpha=0.25", "uniform"], sigma=0.5, availability=table)
    assert (found.winner, found.leading.guesses[0].evidence.particles) == ("ucb1", 24)  # of predictions


def test_what_cannot_be_told_with_a_table_of_arms_is_refused(changing):
    log, table = changing
    with pytest.raises(ub.NotIdentifiable, match="no posterior of a rule of this kind where arms arrive late"):
        ub.identify(log, ["sae", "phased"], sigma=0.5, availability=table)
    with pytest.raises(ub.UnbanditError, match='arm "C" is pulled in round 121, and its first round is 200'):
        ub.identify(log, ["ucb1"], sigma=0.5, availability={"C": (200, None)})


def test_rules_are_checked_where_an_arm_is_withdrawn(changing):
    log, table = changing
    found = ub.check(log, "ucb1,sae:alpha=0.25", sigma=0.5, availability=table)
    verdicts = {row.name: row.check.verdict for row in found.rows}
    assert verdicts == {"ucb1": "fits", "sae:alpha=0.25": "not checked"}
    assert re.search(r"could not be checked.*sae.*not checked \(", str(found), re.DOTALL)
    assert found.fitting[0].estimate.best == ("A",)


def test_a_table_that_limits_nothing_leaves_no_rule_out():
    log = ub.SAE(alpha=0).demonstrate(ub.Instance([1.0, 0.0], 0.5, arms="AB"), 300, seed=1)
    found = ub.identify(log, "ucb1,sae:alpha=0", sigma=0.5, availability={"B": (None, 5_000)})
    assert found.winner == "sae:alpha=0"


def test_a_rule_of_chance_opens_an_arm_that_arrives(changing):
    _, table = changing
    instance = ub.Instance([1.0, 0.6, 0.8], 0.5, arms="ABC")
    log = ub.EpsilonGreedy(epsilon=0.1).demonstrate(instance, 300, seed=1, availability={"C": table["C"]})
    found = ub.identify(log, ["epsilon-greedy", "ucb1:batch=5|1"], sigma=0.5, availability={"C": table["C"]})
    assert {guess.rule.initial for guess in found["epsilon-greedy"].guesses} == {1}
    told = {notice.code: notice.text for notice in found.notes}
    assert told["candidate-left-out"].startswith("ucb1:exploration=2.0,batch=5 is left out")


def test_choices_that_may_be_uniform_have_no_values_where_these_are_the_priors():
    """Values would be those of the next rule, EXP3 that is nearly uniform, and the prior's alone."""
    log = ub.Uniform().demonstrate(ub.Instance((0.8, 0.5, 0.2), ub.Bernoulli()), 300, seed=4)
    found = ub.identify(log, ["uniform", "exp3:mixing=1"], bernoulli=True)
    assert found.values is None
    (notice,) = [each for each in found.notes if each.code == "no-values"]
    assert "uniform may have made it, whose choices do not depend on rewards" in notice.message


def test_a_survey_says_of_which_rules_it_knows_the_best_arm():
    log = ub.UCB1().demonstrate(ub.Instance((0.9, 0.4), ub.Bernoulli()), 300, seed=1)
    found = ub.check(log, "ucb1,klucb", bernoulli=True)  # without a known mean there is no estimate of klucb
    assert [row.estimate is None for row in found.fitting] in ([False, True], [True, False])
    assert 'under the one with an estimate "0" is the best arm' in found.answer()


def test_sorted_rows_are_named_whatever_explains_them():
    log = ub.ActionLog.from_actions(["A"] * 80 + ["B"] * 30 + ["C"] * 20)
    with pytest.warns(ub.AssumptionWarning, match="All rounds of an arm stand together"):
        found = ub.identify(log, "epsilon-greedy:epsilon=0.05,initial=0", sigma=0.5, particles=60)
    assert found.warnings[-1].code == "shows-sorted"


@pytest.mark.parametrize(
    ("actions", "codes"),
    [
        ("A" * 50 + "B" * 40 + "C" * 30, {"shows-sorted"}),
        ("AAAABACABBBBCAB" * 5, {"shows-no-opening"}),
        ("ABCD" + ("A" * 20 + "B" * 10 + "C" * 10 + "D" * 10) * 3, {"shows-batches"}),
        ("ABCDDCBABADCCABDADBC" + "AABAACAADABAAA" * 5, {"shows-turns"}),
        ("ABC" + "AABAC" * 20 + "BBCBC" * 20 + "BAB", {"shows-change"}),
        ("ABC" + "AABAC" * 20 + "BBBCB" * 20, {"shows-withdrawal"}),
        ("ABC" + "AABACABBCAA" * 10, set()),
        ("ABCD" + "AAAAACCCCCCCBBBDDDDDDDDDDBBBBBBAAAACCCDDDDBBBBBCC" * 6, {"shows-habit"}),
        ("ABCD" + "ACBDABDCBADBCDACDBCABDCDABADCBACBDBCADAB" * 5, {"shows-habit"}),
    ],
)
def test_what_a_log_shows_by_itself(actions, codes):
    gone = [each.message for each in signs(ub.ActionLog.from_actions(actions)) if each.code == "shows-withdrawal"]
    assert not gone or "the lines `arm,first,last` and `A,,102`." in gone[0]
    assert {each.code for each in signs(ub.ActionLog.from_actions(actions))} == codes


@pytest.mark.parametrize("rule", [ub.UCB1(), ub.Thompson(), ub.Softmax(), ub.EpsilonGreedy(), ub.Uniform(), ub.EXP3()])
def test_logs_of_usual_rules_show_few_such_signs(rule):
    noise = ub.Bernoulli() if rule.bernoulli_only else ub.Gaussian(0.5)
    means = np.random.default_rng(1).uniform(0.2, 0.8, (20, 4))
    logs = [rule.demonstrate(ub.Instance(each, noise), 400, seed=at) for at, each in enumerate(means)]
    strange = {"shows-sorted", "shows-batches", "shows-turns", "shows-habit"}
    assert sum(bool(strange & {sign.code for sign in signs(log)}) for log in logs) <= 1


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_habit_is_named_and_is_no_choice_at_random():
    draws = np.random.default_rng(2)
    actions = [0, 1, 2, 3]
    for _ in range(296):
        actions.append(actions[-1] if draws.random() < 0.8 else int(draws.integers(4)))
    log = ub.ActionLog.from_actions(["ABCD"[at] for at in actions])
    found = ub.identify(log, "thompson:sigma=0.5,uniform", sigma=0.5)
    assert found.verdict == "none fits"
    assert "people who tend to stay" in next(each.message for each in found.notes if each.code == "shows-habit")
    assert "choices at random" not in found.warnings[-1].message
    survey = ub.check(log, "sae", sigma=0.5)
    assert [each.code for each in survey.warnings] == ["none-fits", "shows-habit"]
    learner = ub.identify(log, "learning-softmax:rate=0.9,temperature=0.1,initial=0", sigma=0.5, particles=60)
    said = next(each.message for each in learner.notes if each.code == "shows-habit")
    assert "temperature=0.1,initial=0 is not excluded, and would do so because of rewards." in said
    assert not any("not excluded" in each.message for each in (*found.notes, *survey.warnings))


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_rules_that_take_arms_in_turn_are_named_beside_a_habit():
    """Elimination rules keep an order of turns, which people who tend to change do not; nothing more is claimed."""

    def said(log):
        return next((each.message for each in signs(log) if each.code == "shows-habit"), "")

    means = np.random.default_rng(1).uniform(0, 1, (10, 4))
    for text in ("sae", "phased"):
        rule = parse_rule(text)
        logs = [rule.demonstrate(ub.Instance(each, 0.5), 400, seed=at) for at, each in enumerate(means)]
        assert (
            sum("So do elimination rules (sae, phased), whose order the log keeps" in said(log) for log in logs) == 10
        )
    people = said(ub.ActionLog.from_actions("ABCD" + "ACBDABDCBADBCDACDBCABDCDABADCBACBDBCADAB" * 5))
    assert "So do rules that take arms in turn (sae, phased), and people who tend to change" in people
    stays = said(ub.ActionLog.from_actions("ABCD" + "AAAAACCCCCCCBBBDDDDDDDDDDBBBBBBAAAACCCDDDDBBBBBCC" * 6))
    assert "rules that follow few rewards (learning-softmax, sliding-window-ucb)" in stays


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_check_says_what_a_log_shows_where_no_rule_fits():
    log = ub.UCB(alpha=0.25, delay=20).demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), 1_000, seed=1)
    found = ub.check(log, "ucb:alpha=0.25,sae", sigma=0.5)
    assert "pull every arm 7 times, in turn" in next(e.message for e in found.warnings if e.code == "shows-turns")
    rows = ub.ActionLog.from_actions(["A"] * 80 + ["B"] * 30 + ["C"] * 20)
    assert "shows-sorted" in {each.code for each in ub.check(rows, "ucb1,sae", sigma=0.5).warnings}


def test_what_a_log_shows_is_said_where_nothing_fits():
    actions = "ABCD" + ("A" * 20 + "B" * 10 + "C" * 10 + "D" * 10) * 3
    with pytest.raises(ub.NotIdentifiable, match=r"multiple of 10 rounds.*ucb:batch=10"):
        ub.identify(ub.ActionLog.from_actions(actions), "sae,phased", sigma=0.5)
    with pytest.warns(ub.AssumptionWarning, match="More probable: ucb"):
        found = ub.identify(ub.ActionLog.from_actions(actions), "uniform", sigma=0.5)
    assert (found.verdict, found.notes[-1].code, found.values) == ("none fits", "shows-batches", None)
    assert found.to_dict()["notes"][-1]["code"] == "shows-batches"


def thinned(rule: str, seed: int) -> ub.ActionLog:
    """Return a tenth of the rounds of a long log, taken at random."""
    log = parse_rule(rule).demonstrate(ub.Instance([1.0, 0.75, 0.5, 0.25, 0.0], 0.5), horizon=15_000, seed=seed)
    kept = np.random.default_rng(seed).random(15_000) < 0.1
    return ub.ActionLog.from_actions(log.demonstration(0)[kept], arms=log.arms)


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
def test_of_a_log_with_lost_rounds_it_is_said_that_the_first_of_them_decide():
    found = ub.identify(thinned("ucb:alpha=0.25", 1), "ucb,sae,thompson,uniform", sigma=0.5)
    assert found.left == ("thompson",)  # in the log as it is, no rule that pulls every arm once first is possible
    (said,) = [each.message for each in found.warnings if each.code == "opening-decides"]
    assert said.startswith("sae and ucb: excluded by the first rounds alone")
    assert re.search(r"may be so here: thompson would have assumed a noise of \S+ \(\S+ to \S+\), not the 0.5", said)
    assumed = ub.identify(thinned("ucb:alpha=0.25", 1), "ucb,sae,thompson,uniform")
    assert {"sigma-assumed"} == {each.code for each in assumed.warnings}
    assert "opening-alone" in {each.code for each in assumed.notes}


def test_a_whole_log_of_thompson_sampling_has_no_such_warning():
    log = ub.Thompson(sigma=0.5).demonstrate(ub.Instance([1.0, 0.75, 0.5, 0.25, 0.0], 0.5), horizon=600, seed=4)
    found = ub.identify(log, "ucb,sae,thompson,uniform", sigma=0.5)
    assert "opening-decides" not in {each.code for each in found.warnings}
    assert "opening-alone" in {each.code for each in found.notes}


def test_rewards_of_0_and_1_that_no_number_tried_explains_do_not_rule_an_index_rule_out():
    """They show its number to many digits: by any other it is impossible, and a rule of chance would be named."""
    bandit = ub.Instance([0.8, 0.5, 0.4], ub.Bernoulli())
    log = ub.UCB1(exploration=2.0157, ties="random").demonstrate(bandit, 500, seed=3)
    found = ub.identify(log, "ucb1,learning-softmax,epsilon-greedy", bernoulli=True)
    assert (found.verdict, found.left[0]) == ("cannot tell", "ucb1")
    used = found.candidates[0].guesses[0].evidence
    assert (used.rounds, used.surprise[0].size) == (None, 500)  # of all rounds
    (note,) = [each for each in found.notes if each.code == "as-normal"]
    assert note.text.startswith("No rewards of 0 and 1 explain the log under ucb1 with the values of exploration")
    assert "not-checked" in [each.code for each in found.notes]
    values = found.value_table()
    assert values["arm"].to_list() == ["0", "1", "2"]
    assert (values["gap_low"].to_numpy()[1:] > 0).all()
    assert values["mean_low"].min() >= 0
    assert values["mean_high"].max() <= 1
    named = ub.identify(log, "ucb1:exploration=2.0157,learning-softmax", bernoulli=True)
    assert named.winner == "ucb1:exploration=2.0157"
    with pytest.warns(ub.AssumptionWarning, match="does not make such logs"):
        wrong = ub.identify(log, "ucb1:exploration=0.5,softmax", bernoulli=True)
    assert wrong.verdict == "none fits"  # a number that is given is believed


def test_several_numbers_of_ones_own_are_compared_as_a_line_of_them_is_and_one_is_believed():
    log = ub.UCB1(exploration=1.37).demonstrate(ub.Instance([0.6, 0.4], ub.Bernoulli()), 500, seed=3)
    own = {"mine": ["ucb1:exploration=1.0", "ucb1:exploration=3.0"], "ts": ["thompson:noise=bernoulli"]}
    found = ub.identify(log, own, bernoulli=True)
    assert (found.verdict, found.left[0]) == ("cannot tell", "mine")
    notes = {each.code: each.text for each in found.notes}
    assert "under mine with the values of exploration that were tried" in notes["as-normal"]
    assert "ucb1:exploration=..." in notes["as-normal"]
    assert "more-particles" not in notes


def test_an_index_rule_that_explains_every_reward_of_0_and_1_is_named():
    log = ub.UCB1().demonstrate(ub.Instance([0.8, 0.5, 0.4], ub.Bernoulli()), 500, seed=3)
    found = ub.identify(log, "ucb1,lilucb,moss,learning-softmax", bernoulli=True)
    assert found.winner == "ucb1"
    assert "as-normal" not in [each.code for each in found.notes]


@pytest.mark.parametrize(("rule", "seed"), [("epsilon-greedy:epsilon=0.05", 1), ("epsilon-greedy:epsilon=0.05", 2)])
def test_rules_of_chance_with_rewards_of_0_and_1_are_not_taken_for_index_rules(rule, seed):
    """The evidence of a beginning alone once stood for that of the whole log."""
    log = parse_rule(rule).demonstrate(ub.Instance([0.8, 0.5, 0.4], ub.Bernoulli()), 600, seed=seed)
    found = ub.identify(log, "ucb1,epsilon-greedy", bernoulli=True)
    assert "epsilon-greedy" in found.left


@pytest.mark.parametrize("horizon", [300, 600])
def test_few_particles_that_miss_a_rule_of_0_and_1_are_not_the_last_word(horizon):
    log = ub.UCB1().demonstrate(ub.Instance([0.7, 0.6, 0.5, 0.4, 0.3], ub.Bernoulli()), horizon, seed=2)
    found = ub.identify(log, "ucb1,learning-softmax", bernoulli=True)
    assert found.winner == "ucb1"
    assert found.candidates[0].guesses[0].rule == ub.UCB1()


def test_a_parameter_whose_evidence_is_rough_has_an_interval_as_narrow_as_the_log_allows():
    """The error of all values together says nothing about which of them is the most probable."""
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), 2_000, seed=1)
    (row,) = ub.identify(log, "softmax", sigma=0.5).candidates
    assert row.evidence.error < 1.0
    first = [guess.rule.temperature for guess in row.guesses if guess.share > 0.001]
    assert min(first) > 0.1
    assert max(first) < 1.5


def test_surprise_where_arms_arrive_is_read_with_the_table():
    rule, table = ub.Softmax(temperature=0.05), {"C": (101, None)}
    log = rule.demonstrate(ub.Instance([1.0, 0.5, 0.8], 0.5, arms="ABC"), 300, seed=1, availability=table)
    there = api.told_availability(log, table).within(300)
    question = IdentificationRequest(log, (300,), NormalPrior(), ub.Gaussian(0.5), None, 0, 1, there=there)
    known = LogEvidence(-1e3, 0.1, -1e3, -1e3)  # no clouds find it
    (found,) = evidence.surprise_of(question, Guess(rule, 1.0, 1.0, known))
    assert found.size == 300


@pytest.mark.parametrize("rate", [0.15, 0.8])
def test_a_learning_rate_between_those_of_the_grid_is_found_and_carried_into_the_values(rate):
    instance = ub.Instance([1.0, 0.6, 0.2], 0.5)
    rule = ub.LearningSoftmax(rate=rate, temperature=0.25)
    found = ub.identify(
        rule.demonstrate(instance, horizon=1_000, seed=5), "learning-softmax,softmax,uniform", sigma=0.5
    )
    assert found.winner == "learning-softmax"
    written = values.said_of_parameters(found.leading)
    said = re.search(r"rate \S+ \((\S+) to (\S+)\), temperature \S+ \((\S+) to (\S+)\)", written)
    low, high, coldest, warmest = map(float, said.groups())
    assert low < rate < high < min(8 * low, 1.01)
    assert coldest < 0.25 < warmest < 5 * coldest
    for row, gap in zip(found.value_table().sort("arm").to_dicts(), (0.0, 0.4, 0.8), strict=True):
        assert row["gap_low"] <= gap <= row["gap_high"]


def test_values_under_two_unknown_numbers_go_as_far_as_both_do():
    """Evidence that makes two numbers make up for each other leaves a ridge, and rules are taken along it."""
    rules = [
        ub.LearningSoftmax(rate=rate, temperature=temperature)
        for rate in np.geomspace(0.1, 0.8, 7) for temperature in np.geomspace(0.05, 0.8, 9)
    ]  # fmt: skip
    across = [math.log(rule.rate * rule.temperature / 0.06) for rule in rules]
    along = [math.log(rule.rate / rule.temperature / 1.5) for rule in rules]
    known = [-50 * a**2 - b**2 for a, b in zip(across, along, strict=True)]
    guesses = [
        Guess(rule, 1 / len(rules), math.exp(value), evidence.rough_evidence(value, 1.0, value, None))
        for rule, value in zip(rules, known, strict=True)
    ]
    order = tuple(sorted(guesses, key=lambda each: -each.share))
    contender = Contender("learning-softmax", order, order[0].evidence, 1.0, axis="temperature", across="rate")
    (line,) = values.probable_lines(None, contender)
    assert len(line.rules) == 5
    products = [rule.rate * rule.temperature for rule in line.rules]
    rates = [rule.rate for rule in line.rules]
    assert max(products) / min(products) < 1.5
    assert max(rates) / min(rates) > 2
    assert re.match(r"rate 0\.\d+ \(0\.\d+ to 0\.\d+\), temperature", values.said_of_parameters(contender))
