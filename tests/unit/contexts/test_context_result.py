"""What follows from coefficients: how often each offer was the best, and whether several demonstrations fit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest

import unbandit as ub
from unbandit.contexts.check import check_notice
from unbandit.contexts.clouds import particles_for
from unbandit.contexts.posterior import most_probable
from unbandit.contexts.result import (
    ContextEstimate,
    angle_between,
    degrees,
    estimate_contexts,
    offered_arms,
    warnings_and_notes,
)
from unbandit.errors import Notice
from unbandit.estimators.coverage import SimulatedCoverage
from unbandit.fit import Check, FittedNumber
from unbandit.identification.survey import CheckedRule
from unbandit.log.columns import Demonstrations
from unbandit.progress import Work
from unbandit.reporting.contexts import _check, _in_simulations, context_report, context_sentence

SIGMA, FITS = 0.5, Check("fits", 0.5)


def posterior_of(log, rule, draws, level=0.95):
    """Return a posterior with given draws: (draws, coefficients)."""
    names = rule.design(log).names
    return ub.ContextPosterior(
        str(rule), SIGMA, 1.0, level, names, log.arms, log.rounds, draws[None], draws.mean(axis=0),
        np.cov(draws.T).reshape(len(names), len(names)), -30.0, 0.3, 20.0, 50,
    )  # fmt: skip


@pytest.mark.parametrize("disjoint", [False, True])
def test_a_feature_may_be_named_intercept(disjoint):
    generator = np.random.default_rng(1)
    contexts = np.stack((generator.standard_normal((40, 3)), np.ones((40, 3))), axis=2)
    theta = [[1.0, 0.0], [0.5, 0.2], [-0.5, 0.1]] if disjoint else [1.0, 0.2]
    rule = ub.LinUCB(alpha=1, disjoint=disjoint)
    log = rule.demonstrate(ub.ContextInstance(theta, SIGMA), contexts, seed=1, feature_names=["x1", "intercept"])
    answer = estimate_contexts(log, rule, sigma=SIGMA, particles=200, check=False)
    found = answer.posterior
    assert [feature for feature, _ in found.names] == ["x1", "intercept"] * (3 if disjoint else 1)
    assert sum(each.best * each.offered for each in answer.offers["1"]) == pytest.approx(40)
    assert found.predict([[0.5, 1.0]]).shape == ((3, 1, 3) if disjoint else (3, 1))
    with pytest.raises(ub.ParameterError, match="rows of 2 finite numbers"):
        found.predict([[0.5]])


@pytest.mark.parametrize("rule", [ub.LinUCB(alpha=1, intercept=True), "linucb:alpha=fit,intercept=true"])
def test_a_model_may_have_an_intercept_beside_a_feature_of_that_name(rule):
    log = ub.ContextLog.from_arrays(
        np.random.default_rng(2).standard_normal((9, 3, 1)), [1] * 9, feature_names=["intercept"]
    )
    found = posterior_of(log, ub.LinUCB(alpha=1, intercept=True), np.array([[1.0, 5.0], [2.0, 7.0]]))
    found = ub.ContextPosterior(**{**vars(found), "rule": str(rule)})
    assert found.predict([[3.0]])[0].tolist() == [0.5 * (3 + 5 + 6 + 7)]
    assert sum(each.best * each.offered for each in offered_arms(found, log)) == pytest.approx(9)


def checked(p_value):
    """Return the check of a demonstration; the reasons are those of `check_record`."""
    if p_value > 0.01:
        return Check("fits", p_value, reason="All 9 choices were compared.", checked=1)
    reason = "lints:v=1 makes all 9 choices 900 times as probable."
    return Check("does not fit", p_value, reason=reason, instead=("lints:v=1",), checked=1, failed=("1",))


@pytest.fixture
def estimated(monkeypatch):
    """Return what is estimated from demonstrations whose checks find the given probabilities."""

    def estimate(*p_values):
        several, rule = len(p_values), ub.LinUCB(alpha=1)
        contexts = np.random.default_rng(3).standard_normal((9, 3, 1))
        log = rule.demonstrate(ub.ContextInstance([1.0], SIGMA), contexts, runs=several, seed=1)
        alone = posterior_of(log.select(0), rule, np.array([[1.0], [2.0]]))
        checks = iter(map(checked, p_values))

        def found(*_, **__):
            check = next(checks)
            return replace(alone, check=check, notices=tuple(check_notice(check, "linucb")))

        monkeypatch.setattr("unbandit.contexts.result.context_posterior", found)
        return log, estimate_contexts(log, rule, sigma=SIGMA)

    return estimate


def test_one_of_several_demonstrations_may_fail_by_chance(estimated):
    log, answer = estimated(0.3, 0.5, 0.005, 1.0, 0.8)
    check = answer.check
    assert (check.verdict, check.failed, check.checked, check.instead) == ("fits", ("3",), 5, ())
    assert check.p_value > 0.01
    assert check.reason.startswith("1 of 5 does not fit, as may happen by chance; 4 fit.")
    assert 'Demonstration "3", the one that fits worst: lints:v=1 makes' in check.reason
    warnings, notes = warnings_and_notes(log, answer.notices)
    assert warnings == []
    assert notes[0].demonstration == "3"
    assert "as may happen by chance: lints:v=1 makes" in notes[0].text
    assert "Do not rely" not in " ".join(each.text for each in notes)
    assert sorted(each.demonstration for each in notes) == ["1", "2", "3", "4", "5"]
    assert _check(answer).startswith("Taken together, the demonstrations fit (p = 0.05). 1 of 5")


@pytest.mark.parametrize(
    ("p_values", "failed", "said"),
    [
        ((0.3, 0.5, 0.0005, 1.0, 0.8), ("3",), "1 of 5 does not fit; 4 fit."),
        ((0.009, 0.009, 0.009, 1.0, 0.8), ("1", "2", "3"), "3 of 5 do not fit; 2 fit."),  # too many for chance
    ],
)
def test_demonstrations_that_do_not_fit_are_warned_of(estimated, p_values, failed, said):
    log, answer = estimated(*p_values)
    check = answer.check
    assert (check.verdict, check.failed, check.instead) == ("does not fit", failed, ("lints:v=1",))
    assert check.reason.startswith(said)
    assert _check(answer).startswith(f"The rule does not fit {len(failed)} of 5 demonstrations (p ")
    warnings, _ = warnings_and_notes(log, answer.notices)
    assert tuple(each.demonstration for each in warnings) == failed
    assert all("Do not rely on the numbers" in each.text for each in warnings)


def test_demonstrations_that_all_fit(estimated):
    _, answer = estimated(0.3, 0.5)
    assert answer.check.verdict == "fits"
    assert answer.check.reason.startswith("2 of 2 demonstrations fit. The one that fits worst: All 9 choices")
    assert [each.code for each in answer.notices] == ["fits", "fits"]


def test_a_report_of_several_demonstrations_says_what_it_is_about_and_says_it_once(estimated):
    log, answer = estimated(0.3, 0.5)
    report = context_report(log, answer, command="unbandit report log.csv")
    assert report.sentence.startswith("In the first of 2 demonstrations, the choices show 0 of 1 coefficient; ")
    assert report.sentence.endswith(" Each is read by itself.")
    assert report.main.count("All 9 choices were compared.") == 1
    assert report.main.count("Checked: all 9 choices were compared.") == 2
    for p_value, said in ((1e-6, "cannot be relied on"), (0.005, "alone (p = 0.005), as may happen by chance.")):
        log, answer = estimated(0.3, 0.5, p_value)
        main = context_report(log, answer, command="unbandit report log.csv").main
        assert main.count("lints:v=1 makes all 9 choices 900 times as probable.") == 1
        assert said in main


def test_a_report_says_how_many_arms_it_leaves_out(estimated):
    log, answer = estimated(0.3)
    assert "more arms: <code>" not in context_report(log, answer, command="").main
    many = {"1": answer.offers["1"] * 4}  # 12 arms
    assert "… and 2 more arms: <code>" in context_report(log, replace(answer, offers=many), command="").main


@pytest.mark.parametrize("disjoint", [False, True])
def test_how_often_an_offer_was_the_best(disjoint, monkeypatch):
    monkeypatch.setattr("unbandit.contexts.result.BLOCK", 3_000)  # several blocks of rounds
    generator = np.random.default_rng(4)
    lengths = generator.integers(1, 5, 30)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    codes = np.concatenate([generator.permutation(5)[:length] for length in lengths])
    features = generator.integers(-1, 2, (codes.size, 3)) * [0.1, 0.7, 1 / 3]  # many offers are equal
    log = ub.ContextLog.from_arrays(features, [0] * 30, offsets=offsets, codes=codes, arms=list("ABCDE"))
    rule = ub.LinUCB(alpha=1, disjoint=disjoint)
    draws = generator.standard_normal((200, 15 if disjoint else 3))
    shares = np.zeros((200, 5))
    for at, theta in enumerate(draws):
        for begin, end in pairwise(offsets):
            of_arm = theta.reshape(-1, 3)[codes[begin:end] if disjoint else [0] * (end - begin)]
            values = (features[begin:end] * of_arm).sum(axis=1)
            shares[at, codes[begin:end][values >= values.max() - 1e-12]] += 1
    shares /= np.bincount(codes)
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    for each in offered_arms(posterior_of(log, rule, draws), log):
        arm = "ABCDE".index(each.arm)
        expected = (np.bincount(codes)[arm], shares[:, arm].mean(), low[arm], high[arm])
        assert (each.offered, each.best, each.low, each.high) == pytest.approx(expected)


def test_a_higher_level_takes_more_draws():
    log = ub.ContextLog.from_arrays([[[1.0], [-1.0]]] * 4, [0] * 4)
    draws = np.where(np.arange(4_000) % 20, 1.0, -1.0)[:, None]  # only every 20th has the second arm as the best
    usual, high = (
        offered_arms(posterior_of(log, ub.LinUCB(alpha=1), draws, level=level), log) for level in (0.95, 0.99)
    )
    assert [(each.arm, each.best) for each in usual] == [("1", 1.0), ("0", 0.0)]
    assert [(each.arm, each.best) for each in high] == [("0", 0.8), ("1", pytest.approx(0.2))]


def test_comparing_offers_says_how_far_it_is_and_can_be_stopped(monkeypatch):
    monkeypatch.setattr("unbandit.contexts.result.BLOCK", 800)
    log = ub.ContextLog.from_arrays([[[1.0], [-1.0]]] * 5, [0] * 5)
    found, reached = posterior_of(log, ub.LinUCB(alpha=1), np.ones((200, 1))), []
    monkeypatch.setattr(Work, "reach", lambda _, part: reached.append(part))
    offered_arms(found, log)
    assert reached == [2, 4, 5]
    monkeypatch.setattr(Work, "reach", lambda work, part: (reached.append(part), work.stop()))
    with pytest.raises(KeyboardInterrupt):
        offered_arms(found, log)
    assert reached == [2, 4, 5, 2]


def test_an_angle_has_its_unit():
    assert [degrees(angle) for angle in (0.5, 1.0, 1.001, 9.96, 12.3, 99.6, 104.2)] == [
        "0.5 degrees",
        "1 degree",
        "1 degree",
        "10 degrees",
        "12 degrees",
        "100 degrees",
        "104 degrees",
    ]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"delay": 8}, r"With delay=8 the learner knew no reward when it made the last of its 9 choices.*Check delay,"),
        ({"batch": 9}, r"With batch=9 the learner.*nothing of the coefficients. Check batch,"),
        ({"batch": 4, "delay": 8}, "With batch=4 and delay=8 the learner"),
    ],
)
def test_choices_without_any_reward_show_nothing(numbers, said):
    contexts = np.random.default_rng(3).standard_normal((9, 3, 1))
    rule = ub.LinUCB(alpha=1, **numbers)
    log = rule.demonstrate(ub.ContextInstance([1.0], SIGMA), contexts, seed=1, rewards=True)
    hidden = replace(log, rewards=None)
    for asked in (rule, str(rule), str(rule).replace("alpha=1.0", "alpha=fit")):
        with pytest.raises(ub.NotIdentifiable, match=said):
            estimate_contexts(hidden, asked, sigma=SIGMA)
    rule.refuse_unlearnt(log)  # known rewards show coefficients by themselves
    ub.LinUCB(delay=7).refuse_unlearnt(hidden)  # the last choice knows the first reward


def test_a_headline_counts_no_coefficients_if_they_cannot_be_relied_on():
    log = ub.ContextLog.from_arrays(np.random.default_rng(2).standard_normal((9, 3, 2)), [1] * 9)
    found = posterior_of(log, ub.LinUCB(alpha=1), np.random.default_rng(3).standard_normal((50, 2)) / 9)
    answer = ContextEstimate({"1": found}, {"1": offered_arms(found, log)}, {"1": {}})
    assert "show 2 of 2 coefficients" in context_sentence(answer)
    few = replace(answer, notices=(Notice("few-particles", "..."),))
    wrong = replace(answer, posteriors={"1": replace(found, check=checked(1e-6))})
    assert context_sentence(few).startswith("Too few particles explain the choices")
    assert context_sentence(wrong).startswith("The rule does not fit the choices")


def test_rules_are_tried_with_the_numbers_that_explain_a_log_best(monkeypatch):
    monkeypatch.setattr("unbandit.identification.survey.MOST_ROUNDS", 150)
    contexts = np.random.default_rng(1).standard_normal((200, 4, 2))
    log = ub.LinUCB(alpha=1).demonstrate(ub.ContextInstance([1.0, -0.5], SIGMA), contexts, seed=1)
    found = ub.check(log, [ub.LinUCB(alpha=ub.FIT), "lin-epsilon-greedy:epsilon=0.5"], sigma=SIGMA)
    first, second = found.rows
    assert (first.name, first.check.verdict, second.check.verdict) == ("linucb:alpha=fit", "fits", "does not fit")
    assert 0.25 < first.rule.alpha < 4
    assert not first.rule.disjoint
    assert second.rule == ub.LinEpsilonGreedy(epsilon=0.5)
    assert first.estimate.posterior.rounds == 150
    told = {notice.code: notice.message for notice in found.warnings}
    assert list(told) == ["chosen-number", "checked-in-part"]
    assert told["checked-in-part"] == "Checked in part: the first 150 rounds, of up to 200."
    assert found.answer() == "1 of 2 rules fits this log"
    again = ub.Survey.from_json(found.to_json())
    assert [(row.name, row.rule, row.check, row.estimate) for row in again.rows] == [
        (row.name, row.rule, row.check, None) for row in found.rows
    ]


def test_whether_arms_share_coefficients_is_chosen_where_it_is_not_given():
    contexts = np.random.default_rng(1).standard_normal((150, 2))
    rule, theta = ub.LinUCB(alpha=1, disjoint=True), [[1.0, -1], [-1, 0.5], [0, 1]]
    wide = rule.demonstrate(ub.ContextInstance(theta, SIGMA), contexts, seed=1)
    assert most_probable(wide, ub.LinUCB(), sigma=SIGMA).disjoint
    assert most_probable(wide, ub.LinUCB(alpha=2), sigma=SIGMA) == ub.LinUCB(alpha=2)
    with pytest.raises(ub.NotIdentifiable, match="disjoint=true"):
        most_probable(wide, ub.LinUCB(disjoint=False), sigma=SIGMA)
    found = ub.check(wide, ub.LinUCB(disjoint=False), sigma=SIGMA)
    assert (found.rows[0].check.verdict, found.rows[0].estimate) == ("not checked", None)
    assert "disjoint=true" in str(found.rows[0].refusal)
    assert ub.Survey.from_json(found.to_json()).rows[0].rule == ub.LinUCB()
    offers = np.random.default_rng(2).standard_normal((150, 3, 2))
    for each, coefficients in ((rule, theta), (ub.LinUCB(alpha=1), [1.0, -0.5])):
        log = each.demonstrate(ub.ContextInstance(coefficients, SIGMA), offers, seed=1)
        assert most_probable(log, ub.LinUCB(), sigma=SIGMA).disjoint == each.disjoint


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "sigma: expected the standard deviation"),
        ({"sigma": 1, "horizon": 100}, "horizon: cannot be used"),
        ({"sigma": 1, "demonstration": "1"}, "demonstration: cannot be used"),
        ({"sigma": 1, "candidates": []}, "candidates: expected one rule or more"),
        ({"sigma": 1, "candidates": "ucb1"}, "expected a rule that chooses by features"),
        ({"sigma": 1, "candidates": ub.LinUCB(ridge=ub.FIT)}, "expected alpha=fit and no other"),
        ({"sigma": 1, "prior": 0}, "prior: expected"),
    ],
)
def test_what_is_not_for_a_log_with_contexts_is_refused(given, said):
    log = ub.ContextLog.from_arrays(np.random.default_rng(2).standard_normal((9, 3, 1)), [1] * 9)
    with pytest.raises(ub.ParameterError, match=said):
        ub.check(log, **given)
    with pytest.raises(ub.ParameterError, match="prior: expected only with a log that has features"):
        ub.check(["A", "B"], prior=1.0)


def several_logs(lengths):
    """Return a log of several LinUCB learners."""
    starts = [0, *np.cumsum(lengths)]
    offers = np.random.default_rng(7).standard_normal((starts[-1], 3, 2))
    return ub.ContextLog.from_arrays(offers, np.argmax(offers @ [1.0, -0.5], axis=1), starts=starts)


@pytest.mark.parametrize(
    ("learners", "rounds", "said"),
    [
        (2, 30, None),
        (1, 30, "the first 1 of 2 demonstrations."),
        (2, 20, "the first 20 rounds of each demonstration, of up to 30."),
        (1, 12, "the first 1 of 2 demonstrations and the first 12 rounds of each demonstration, of up to 15."),
    ],
)
def test_a_log_that_is_checked_in_part_says_which_part(monkeypatch, learners, rounds, said):
    monkeypatch.setattr("unbandit.identification.survey.MOST_LEARNERS", learners)
    monkeypatch.setattr("unbandit.identification.survey.MOST_ROUNDS", rounds)
    found = ub.check(several_logs([15, 30]), "lin-softmax:temperature=0.3", sigma=SIGMA)
    told = [notice.message for notice in found.warnings if notice.code == "checked-in-part"]
    assert told == ([] if said is None else [f"Checked in part: {said}"])


def test_what_is_said_of_several_learners_names_them_as_the_log_does(monkeypatch):
    log = several_logs([15, 30])
    log = replace(log, demonstrations=Demonstrations.of(log.demonstrations, "subject"))
    monkeypatch.setattr("unbandit.identification.survey.MOST_LEARNERS", 1)
    monkeypatch.setattr("unbandit.identification.survey.MOST_ROUNDS", 12)
    told = [each.text for each in ub.check(log, "lin-softmax:temperature=0.3", sigma=SIGMA).warnings]
    said = "the first 1 of 2 subjects and the first 12 rounds of each subject, of up to 15."
    assert f"Checked in part: {said}" in told
    with pytest.raises(ub.ParameterError, match="the log has 2 subjects"):
        ub.context_posterior(log, "lints", sigma=SIGMA)


@pytest.mark.parametrize(
    ("candidate", "number", "remedy"),
    [
        ("linucb", "alpha", "linucb:alpha=fit"),
        (ub.LinUCB(ridge=2.0, disjoint=False), "alpha", "linucb:ridge=2.0,alpha=fit"),
        (ub.LinTS(v=ub.FIT), "v", "lints:v=fit"),
        ("lin-softmax", "temperature", "lin-softmax:temperature=fit"),
        ("lin-epsilon-greedy", "epsilon", "lin-epsilon-greedy:epsilon=fit"),
        ("linucb:alpha=1", None, None),
        ("lin-epsilon-greedy:epsilon=0.1", None, None),
    ],
)
def test_a_number_that_was_chosen_is_never_passed_over_in_silence(candidate, number, remedy):
    contexts = np.random.default_rng(1).standard_normal((80, 4, 2))
    log = ub.LinUCB(alpha=1).demonstrate(ub.ContextInstance([1.0, -0.5], SIGMA), contexts, seed=1)
    found = ub.check(log, [candidate], sigma=SIGMA)
    (row,) = found.rows
    told = [
        [notice.message for notice in notices if notice.code == "chosen-number"]
        for notices in (found.warnings, row.estimate.notices, row.estimate.posterior.notices)
    ]
    assert row.chosen_number is (number is not None)
    assert "chosen-number" in str(row.estimate.to_dict()) or number is None
    for messages in told:
        assert len(messages) == (number is not None)
        for message in messages:
            assert message.startswith(f"{number} = ")
            assert f'rule="{remedy}"' in message
            assert ("in proportion" in message) is (number != "epsilon")
    if number is not None:
        again = ub.Survey.from_json(found.to_json())
        assert [each.message for each in again.warnings] == [each.message for each in found.warnings]
        ub.contexts.rule.linear_rule_or_family(remedy)  # can be given


def test_a_number_that_was_chosen_on_a_part_of_a_log_says_so():
    both = several_logs([15, 30])
    found = ub.check(both, ["lin-softmax", "lints", "lints:v=1"], sigma=SIGMA)
    (told,) = [notice.message for notice in found.warnings if notice.code == "chosen-number"]
    assert "on the first 15 rounds of the first demonstration" in told
    assert (told.count("v = "), told.count("temperature = ")) == (1, 1)
    assert [row.chosen_number for row in found.rows] == [row.name != "lints:v=1" for row in found.rows]


def test_only_a_choice_that_a_rule_never_makes_proves_that_it_does_not_fit():
    contexts = np.random.default_rng(1).standard_normal((60, 4, 2))
    log = ub.LinEpsilonGreedy(epsilon=0.1).demonstrate(ub.ContextInstance([1.0, -0.5], SIGMA), contexts, seed=1)
    found = ub.check(log, ["linucb:alpha=1", "lints:v=0.01"], sigma=SIGMA)
    rows = {row.name: row for row in found.rows}
    never, died = rows["linucb:alpha=1"], rows["lints:v=0.01"]
    assert (never.check.verdict, never.check.p_value, never.estimate) == ("does not fit", 0.0, None)
    assert "before it knows any reward" in never.check.reason
    assert (died.check.verdict, died.check.p_value, died.estimate) == ("not checked", None, None)
    assert died.check.reason.startswith("Round ")
    assert "none leads to this choice. This does not prove" in died.check.reason
    assert found.answer() == "none of the 2 rules that were tried is known to fit this log; 1 could not be checked"


def fitting_row(degree, *, thin=False, disjoint=False):
    """Return a rule that fits, with coefficients in a direction, in degrees."""
    log = ub.ContextLog.from_arrays(np.random.default_rng(2).standard_normal((9, 3, 2)), [1] * 9)
    rule, at = ub.LinUCB(alpha=1, disjoint=disjoint), np.radians(degree)
    mean = np.tile([np.cos(at), np.sin(at)], 3 if disjoint else 1)
    found = posterior_of(log, rule, mean + np.random.default_rng(3).standard_normal((50, mean.size)) / 99)
    found = replace(found, mean=mean)
    notices = (Notice("few-particles", "..."),) if thin else ()
    return CheckedRule(str(rule), rule, ContextEstimate({"1": found}, {"1": ()}, {"1": {}}, None, notices), FITS)


@pytest.mark.parametrize("order", list(permutations((0, 20, -25))))
def test_directions_are_compared_between_all_rules_that_fit(order):
    rows = tuple(fitting_row(degree) for degree in order)
    assert "differ by up to 45 degrees" in ub.Survey(rows, SIGMA).answer()
    more = (*rows, fitting_row(90, disjoint=True), fitting_row(170, thin=True))
    said = "differ by up to 45 degrees (not compared: 1 with other coefficients, 1 with too few particles)"
    assert said in ub.Survey(more, SIGMA).answer()
    assert said in ub.Survey(more[::-1], SIGMA).answer()


def test_directions_that_cannot_be_compared_are_not_passed_over_in_silence():
    shared, apart, thin = fitting_row(0), fitting_row(0, disjoint=True), fitting_row(0, thin=True)
    for rows, why in (
        ((shared, apart), "1 with other coefficients"),
        ((shared, thin), "1 with too few particles"),
        ((thin, thin), "2 with too few particles"),
    ):
        assert f"directions of their coefficients cannot be compared ({why})" in ub.Survey(rows, SIGMA).answer()
    assert ub.Survey((shared,), SIGMA).answer() == f"the rule {shared.rule} fits this log"
    assert (shared.shown != "", thin.shown) == (True, "")


def test_each_rule_that_too_few_particles_explain_is_named(monkeypatch):
    monkeypatch.setattr("unbandit.contexts.posterior.THINNEST", 1e9)  # as if few were left
    contexts = np.random.default_rng(1).standard_normal((60, 4, 2))
    log = ub.LinEpsilonGreedy(epsilon=0.1).demonstrate(ub.ContextInstance([1.0, -0.5], SIGMA), contexts, seed=1)
    names = ["lin-epsilon-greedy:epsilon=0.1", "lin-epsilon-greedy:epsilon=0.2", "lin-softmax:temperature=0.3"]
    found = ub.check(log, names, sigma=SIGMA)
    told = [notice.message for notice in found.warnings if notice.code == "few-particles"]
    thin = [row for row in found.rows if row.too_thin]
    assert {row.name for row in thin} == set(names[:2])
    assert [message.partition(": at one round")[0] for message in told] == [str(row.rule) for row in thin]
    assert all((row.shown == "") is row.too_thin for row in found.rows)


def test_answers_about_other_coefficients_have_no_angle_between_them(estimated):
    _, answer = estimated(0.3)
    assert angle_between(answer, answer) == pytest.approx(0, abs=1e-5)
    renamed = replace(answer.posterior, names=(("age", None),))
    assert angle_between(answer, replace(answer, posteriors={"1": renamed})) is None


def test_a_report_says_how_often_intervals_held_also_where_a_number_is_fitted(estimated, monkeypatch):
    log, answer = estimated(0.3)
    fitted = FittedNumber("alpha", 1.0, 0.5, 2.0, "evidence of the choices")
    particles = particles_for(ub.LinUCB().kind, log.rounds)
    found = replace(answer.posterior, rule="linucb:alpha=fit", fitted=(fitted,), particles=particles)
    answer = replace(answer, posteriors={"1": found})
    size = (3, 9, 0.95, 0.01, 40, "0.7.0", 1)
    rows = tuple(
        SimulatedCoverage("contexts", "coefficient", text, "gaussian", *size) for text in ("linucb:alpha=1", found.rule)
    )
    shipped = "unbandit.estimators.coverage.shipped_coverages"
    monkeypatch.setattr(shipped, lambda: rows[:1])
    assert "(none with alpha fitted)" in _in_simulations(answer, log)
    monkeypatch.setattr(shipped, lambda: rows)
    assert "(linucb:alpha=fit, 1 feature, 3 arms, 9 rounds)" in _in_simulations(answer, log)
