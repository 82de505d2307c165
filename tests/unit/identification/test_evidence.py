"""Successive halving and the decision, on evidence that is made up."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.identification import evidence, selection
from unbandit.identification.candidates import Candidate, candidates_for
from unbandit.identification.evidence import (
    PER_ROUND,
    SEEN,
    Heat,
    IdentificationRequest,
    LogEvidence,
    _by_spacing,
    averaged,
    log_evidence,
    shortfall_bound,
)
from unbandit.identification.selection import decide, successive_halving
from unbandit.inference import clouds
from unbandit.inference.filter import CloudCollapsed

FIRST, SECOND = Heat(None, 100, 16, 2), Heat(None, 300, 16, 4)
NOT_SO = InferenceError("not so.", round=2)
BEST = {(9, 0): LogEvidence(6.0, 0.0, 6.0, 6.0)}  # of another candidate
RULES = [ub.UCB(alpha=alpha) for alpha in (0.0, 0.1, 0.2, 0.3)]


@pytest.fixture
def question():
    log = ub.ActionLog.from_actions([[0, 1, 0, 0], [0, 1, 1, 1]])
    return IdentificationRequest(log, (4, 4), ub.NormalPrior(), ub.Gaussian(0.5), 900, 0, 1)


@pytest.fixture
def made_up(monkeypatch):
    """Return where a rule's evidence can be put: per cloud, by rule and particles; and what was asked for."""
    monkeypatch.setattr(evidence, "predicts", lambda *given: False)
    values, asked = {}, []

    def run_filters(log, rule, belief, horizons, particles, clouds, seed, **options):
        asked.append((rule.alpha, particles))
        found = values[rule.alpha]
        found = found(particles) if callable(found) else found
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(
            evidences=np.array(found, float), surprise=np.zeros(4), relaxed=(), look_ahead=None, twisted=False
        )

    monkeypatch.setattr(evidence, "run_filters", run_filters)
    return values, asked


def one(rule, *others):
    rules = (rule, *others)
    return Candidate(str(rule), tuple((each, 1 / len(rules)) for each in rules))


def test_the_bound_on_the_shortfall_is_the_smallest_of_three():
    assert shortfall_bound([-30.0], [5.0]) == pytest.approx(10.6, abs=0.05)
    assert shortfall_bound([-208.0, -205.0], [3_000.0, 12_000.0]) == 6.0  # the same peak, found twice


def test_demonstrations_multiply(question, made_up):
    made_up[0][0.0] = [-5.0, -5.0, -5.0, -5.0]
    found = log_evidence(question, RULES[0], FIRST)
    assert (found.value, found.error, found.low, found.high) == pytest.approx((-10.0, 0.0, -10.0, -10.0), abs=1e-6)
    assert len(found.surprise) == 2


def test_what_is_impossible_says_where_and_why(question, made_up):
    made_up[0][0.0] = NOT_SO
    found = log_evidence(question, RULES[0], FIRST)
    assert (found.value, found.reason, found.round, found.demonstration) == (-math.inf, str(NOT_SO), 2, 0)
    made_up[0][0.0] = NotIdentifiable("no such kind.")
    assert log_evidence(question, RULES[0], FIRST).reason == "no such kind."


def test_clouds_that_fell_short_raise_the_high_end_more_than_they_lower_the_low_one(question, made_up):
    made_up[0][0.0] = [-53.0, -50.0, -57.0, -51.0]
    found = log_evidence(question, RULES[0], FIRST)
    assert found.low == pytest.approx(found.value - evidence.MARKOV)
    assert found.high == pytest.approx(found.value + shortfall_bound([-100.0], [6.0]))
    made_up[0][0.0] = [-6000.0, -50.0, -7500.0, -51.0]
    capped = log_evidence(question, RULES[0], FIRST)
    assert capped.high == pytest.approx(capped.value + SEEN + PER_ROUND * 8)


def test_where_more_particles_gain_nothing_there_is_nothing_to_gain(question, made_up):
    made_up[0][0.0] = [-3000.0, -2000.0, -4500.0, -200.0]
    first = log_evidence(question, RULES[0], FIRST)
    assert first.high == pytest.approx(first.value + SEEN + PER_ROUND * 8)
    made_up[0][0.0] = [-1500.0, -2500.0, -4500.0, -199.0]
    second = log_evidence(question, RULES[0], SECOND, first)
    assert second.high == pytest.approx(second.value + 2 * 2.0)


def test_clouds_that_fall_far_short_in_every_heat_end_by_being_told():
    bests, spacings = [-13_386.0, -8_988.0, -5_113.0], [12_918.0, 3_221.0, 3_084.0]
    ends = [bests[at] + shortfall_bound(bests[: at + 1], spacings[: at + 1]) for at in range(3)]
    assert ends[0] > 0
    assert ends[2] < -1_000


def test_exponential_shortfalls_are_within_the_bound_in_19_of_20_cases():
    generator = np.random.default_rng(1)
    for scale, heats in ((1.0, 1), (50.0, 1), (50.0, 3)):
        drawn = np.sort(generator.exponential(scale, (1_000, heats, 4)), axis=2)
        short = [
            shortfall_bound(-each[:, 0], each[:, 2] - each[:, 0]) if heats == 1 else _by_spacing(-each[:, 0],
            each[:, 2] - each[:, 0]) for each in drawn
        ]  # fmt: skip
        assert np.mean(np.array(short) >= drawn[:, -1, 0]) == pytest.approx(0.95, abs=0.02)


def test_more_particles_go_to_those_that_may_still_win(question, made_up):
    values, asked = made_up
    values[0.0] = [-20.0, -22.0, -21.0, -25.0]
    values[0.1] = [-22.0, -23.0, -21.0, -25.0]
    values[0.2] = [-90.0, -90.0, -90.0, -90.1]
    values[0.3] = NOT_SO
    successive_halving(question, [one(rule) for rule in RULES])
    assert [heat.particles for heat in question.heats if heat.glance is None] == [25, 150, 900]
    tried = {alpha: sorted({number for each, number in asked if each == alpha}) for alpha in values}
    assert tried == {0.0: [25, 150, 900], 0.1: [25, 150, 900], 0.2: [25], 0.3: [25]}


def test_clouds_that_collapse_are_given_more_particles(question, made_up):
    values, asked = made_up
    collapsed = CloudCollapsed("none of them.", round=3)
    values[0.0] = lambda particles: collapsed if particles < 900 else [-5.0, -5.0, -5.0, -math.inf]
    values[0.1] = [-50.0, -50.0, -50.0, -math.inf]
    _, ((late,), (steady,)) = successive_halving(question, [one(rule) for rule in RULES[:2]])
    assert {number for alpha, number in asked if alpha == 0.0} == {25, 150, 900}
    assert late.value == pytest.approx(-10.0 + 2 * math.log(3 / 4))  # one of four clouds collapsed, twice
    assert late.high <= 0.0
    assert steady.value == pytest.approx(-100.0 + 2 * math.log(3 / 4))


def test_a_race_that_is_decided_ends(question, made_up):
    values, asked = made_up
    values |= {0.0: [-20.0, -22.0, -21.0, -25.0], 0.1: [-90.0] * 4}
    successive_halving(question, [one(rule) for rule in RULES[:2]])
    assert {number for _, number in asked} == {25}


def test_what_no_number_of_particles_would_decide_is_not_tried_again(question, made_up):
    values, asked = made_up
    values |= {0.0: [-20.0, -20.1, -20.0, -20.1], 0.1: [-20.2, -20.1, -20.0, -20.1]}
    successive_halving(question, [one(rule) for rule in RULES[:2]])
    assert {number for _, number in asked} == {25}


def test_all_are_compared_on_the_beginning_and_few_on_the_whole(made_up):
    values, asked = made_up
    log = ub.ActionLog.from_codes(np.zeros(1_200, np.int8), "AB")
    request = IdentificationRequest(log, (1_200,), ub.NormalPrior(), ub.Gaussian(0.5), None, 0, 1)
    values |= {0.0: [-20.0] * 4, 0.1: [-60.0] * 4}
    _, ((kept,), (dropped,)) = successive_halving(request, [one(rule) for rule in RULES[:2]])
    assert [heat.rounds for heat in request.heats if heat.glance is None] == [250, None, None, None]
    assert asked == [(0.0, 25), (0.1, 25), (0.0, 25)]
    assert (kept.value, dropped.value) == (pytest.approx(-20.0), -math.inf)
    assert (
        dropped.reason
        == "the first 250 rounds are 10^17 times as probable under ucb:alpha=0.0,scale=1.4142135623730951."
    )


def test_predictions_and_filters_find_the_same_evidence():
    log = ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.5], 0.5), 60, seed=1)
    request = IdentificationRequest(log, (60,), ub.NormalPrior(0, 1), ub.Gaussian(0.5), None, 1, 1)
    rule, heat = ub.UCB(alpha=0.25), Heat(None, 1_000, 500, 4)
    predicted, filtered = (
        evidence._predicted(request, 0, rule, heat),
        evidence._filtered(request, 0, rule, heat, None),
    )
    assert predicted.evidences.mean() == pytest.approx(filtered.evidences.mean(), abs=0.3)
    assert predicted.surprise.sum() == pytest.approx(predicted.evidences.mean(), abs=1e-6)


def test_values_between_those_of_a_grid_are_tried_around_the_best():
    (moss,), _ = candidates_for("moss", ub.Gaussian(0.5), ub.ActionLog.from_actions("AB"), lines=True)
    scales = [rule.scale for rule, _ in moss.guesses]
    assert scales == pytest.approx(np.geomspace(0.25, 4.0, 9))
    finer = moss.refined({at: -abs(at - 4.0) for at in range(9)}, -8.0)
    assert [rule.scale for rule, _ in finer.guesses[9:]] == pytest.approx([2**-0.25, 2**0.25])
    assert sum(weight for _, weight in finer.guesses) == pytest.approx(1)
    assert finer.guesses[9][1] == pytest.approx(finer.guesses[0][1] / 2)


def test_a_second_peak_of_a_line_is_looked_into_too():
    """EXP3 with a mixing of 0.44: evidence between two values of the grid was 10 nats larger than at both."""
    [candidate], _ = candidates_for("exp3", ub.Bernoulli(), ub.ActionLog.from_actions("ABAB"), lines=True)
    first = [rule.mixing for rule, _ in candidate.guesses]
    heights = dict(enumerate([-9.0, -1.0, -8.0, -4.0, -4.5, -30.0][: len(first)]))
    added = [rule.mixing for rule, _ in candidate.refined(heights, -8.0).guesses][len(first) :]
    middle = [math.sqrt(a * b) for a, b in pairwise(first)]
    assert sorted(added) == pytest.approx([middle[0], middle[1], middle[2], middle[3]])
    assert sum(weight for _, weight in candidate.refined(heights, -8.0).guesses) == pytest.approx(1.0)
    low = [rule.mixing for rule, _ in candidate.refined(heights, -3.0).guesses][len(first) :]
    assert sorted(low) == pytest.approx(middle[:2])  # the second is too far behind
    sharp = [rule.mixing for rule, _ in candidate.refined(heights, -8.0, 2.0).guesses][len(first) :]
    assert sorted(sharp) == pytest.approx(middle[:2])  # the second has a neighbour that is hardly lower


def test_sharp_lines_of_random_rules_are_refined_twice_and_flat_ones_once(question):
    """A peak between two coarse values is far above both, and so far that the rule seems out of the question."""
    for width, added in ((0.06, {1, 2}), (0.8, {1})):
        (candidate,) = candidates_for("epsilon-greedy", question.noise, question.log, lines=True)[0]
        found = {}
        for turn in (0, 1, 2):
            if turn:
                held = [candidate]
                places = selection._between(held, {(0, at): each for at, each in found.items()} | BEST, turn)
                candidate = held[0]
                assert bool(places) == (turn in added)
            for at, (rule, _) in enumerate(candidate.guesses):
                value = -0.5 * (math.log(rule.epsilon / 0.31) / width) ** 2
                found[at] = LogEvidence(value, 0.0, value, value)
        assert max(each.value for each in found.values()) > -2.0


def test_one_that_falls_short_at_first_is_given_more(question, made_up):
    values, _ = made_up
    values[0.0] = lambda particles: np.array([-40.0, -60.0, -65.0, -80.0]) if particles < 150 else np.full(4, -10.0)
    values[0.1] = [-25.0] * 4
    _, ((late,), (steady,)) = successive_halving(question, [one(rule) for rule in RULES[:2]])
    assert late.value > steady.value


def test_guesses_are_averaged_not_maximised():
    sharp, flat = LogEvidence(-10.0, 0.0, -10.0, -10.0), LogEvidence(-math.inf, 0.0, -math.inf, -math.inf)
    assert averaged(one(*RULES), [sharp, flat, flat, flat]).value == pytest.approx(-10.0 - math.log(4))
    assert averaged(one(*RULES[:2]), [sharp, sharp]).value == pytest.approx(-10.0)


def test_errors_of_guesses_count_by_their_weight():
    weights = [LogEvidence(-10.0, 0.3, -10.6, -9.4), LogEvidence(-30.0, 9.0, -33.0, -12.0)]
    found = averaged(one(*RULES[:2]), weights)
    assert found.error == pytest.approx(0.3, abs=1e-3)
    assert found.high == pytest.approx(np.logaddexp(-9.4, -12.0) - math.log(2))


def test_errors_of_different_guesses_do_not_add_up():
    found = averaged(one(*RULES), [LogEvidence(-10.0, 0.4, -10.8, -9.2)] * 4)
    assert (found.value, found.error) == pytest.approx((-10.0, 0.2))
    assert (found.low, found.high) == pytest.approx((-10.4, -9.6))


def test_errors_of_two_candidates_are_those_of_their_difference():
    first, second = LogEvidence(-10.0, 0.3, -10.6, -9.4), LogEvidence(-14.0, 0.4, -14.8, -13.2)
    assert decide([first, second]).assured == pytest.approx(1 / (1 + math.exp(-4.0 + 0.5)))
    assert decide([first, second]).at_best == pytest.approx(1 / (1 + math.exp(-4.0 - 0.5)))
    uncertain = LogEvidence(-14.0, 1.2, -16.4, -11.6)  # two errors where they are large
    assert decide([first, uncertain]).assured == pytest.approx(1 / (1 + math.exp(-4.0 + math.hypot(0.6, 2.4))))


def test_why_no_guess_is_possible_is_told_of_the_one_that_came_furthest():
    early, late = (LogEvidence(-math.inf, 0.0, -math.inf, -math.inf, reason=f"round {at}", round=at) for at in (3, 17))
    assert averaged(one(*RULES[:2]), [early, late]).reason == "round 17"


def test_a_difference_within_the_error_is_not_decided():
    first, close = LogEvidence(-10.0, 0.5, -11.0, -9.0), LogEvidence(-15.0, 1.5, -18.0, -12.0)
    assert not decide([first, close]).clear
    assert decide([first, close]).contenders == (0, 1)
    assert decide([first, LogEvidence(-16.0, 0.5, -17.0, -15.0)]).clear
    assert not decide([first, first]).clear
    assert decide([first]).assured == 1.0


def test_candidates_that_are_alike_are_left_however_their_evidences_differ():
    first, far = LogEvidence(-10.0, 0.1, -10.2, -9.8), LogEvidence(-30.0, 0.1, -30.2, -29.8)
    impossible = LogEvidence.impossible("")
    found = decide([first, far, impossible, far], alike={0, 1, 2})
    assert (found.clear, found.contenders) == (False, (0, 1))
    assert decide([first, far, impossible], alike={1, 2}).clear
    assert decide([first, impossible], alike={0, 1}).clear


def test_probabilities_are_those_of_the_estimates():
    found = decide(
        [LogEvidence(-3.0, 0, -3, -3), LogEvidence(-1.0, 0, -1, -1), LogEvidence(-math.inf, 0, -math.inf, -math.inf)]
    )
    assert found.order == (1, 0, 2)
    assert found.probabilities == pytest.approx([math.exp(-2) / (1 + math.exp(-2)), 1 / (1 + math.exp(-2)), 0.0])


def test_how_clouds_look_ahead_is_chosen_once(monkeypatch):
    """In the first heat, and dropped at the end; not kept where it would take much memory."""
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.5], 0.5), 60, seed=1)
    made, choose = [], clouds._look_ahead
    monkeypatch.setattr(clouds, "_look_ahead", lambda *given: made.append(0) or choose(*given))
    prior, noise = ub.NormalPrior(0, 1), ub.Gaussian(0.5)
    request = evidence.IdentificationRequest(log, (60,), prior, noise, 500, 1, 1)
    rule = ub.Softmax(temperature=0.3)
    first = log_evidence(request, rule, FIRST)
    assert len(made) == 1
    assert log_evidence(request, rule, SECOND, first).value == pytest.approx(first.value, abs=0.5)
    assert len(made) == 1
    _, ((last,),) = successive_halving(request, [one(rule)])
    assert last.looks == ()
    monkeypatch.setattr(evidence, "MOST_KEPT", 10)
    assert log_evidence(request, rule, FIRST).looks == ()


def test_a_rule_whose_width_depends_on_the_number_of_arms_has_an_evidence():
    log = ub.MOSS(scale=0.7).demonstrate(ub.Instance([1.0, 0.5], 0.5), 60, seed=1)
    request = IdentificationRequest(log, (60,), ub.NormalPrior(0, 1), ub.Gaussian(0.5), None, 1, 1)
    assert -60 < log_evidence(request, ub.MOSS(scale=0.7), Heat(None, 50, 16, 2)).value < 0


def test_a_guess_that_others_of_its_rule_outdo_is_given_no_more(question, made_up):
    values, asked = made_up
    values |= {0.0: [-10.0] * 4, 0.1: [-20.0] * 4, 0.2: [-26.0, -36.0, -41.0, -46.0]}
    alone = [one(RULES[0]), one(RULES[2])]
    successive_halving(question, alone)
    assert (0.2, 150) in asked  # its clouds may have fallen short by much more
    asked.clear()
    _, (_, (_, outdone)) = successive_halving(question, [one(RULES[0]), one(*RULES[1:3])])
    assert {number for alpha, number in asked if alpha == 0.2} == {25}
    assert outdone.high < -40.0


def test_clouds_that_look_ahead_quickly_do_not_say_how_probable_each_round_is_but_straight_ones_do():
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.5], 0.5), 60, seed=1)
    request = IdentificationRequest(log, (60,), ub.NormalPrior(0, 1), ub.Gaussian(0.5), 500, 1, 1)
    rule, quick = ub.Softmax(temperature=0.3), Heat(None, 25, 16, 2, quick=True)
    first = log_evidence(request, rule, quick)
    again = log_evidence(request, rule, quick._replace(particles=150), first)
    assert again.looks == first.looks
    straight = log_evidence(request, rule, Heat(None, 200, 16, 4, straight=True))
    assert (first.surprise[0].size, straight.surprise[0].size) == (0, 60)
    assert straight.surprise[0].sum() == pytest.approx(straight.value, abs=0.2)
    assert straight.value == pytest.approx(again.value, abs=0.5)


@pytest.fixture
def smooth():
    """Return a question about a log of softmax."""
    rule, sigma = ub.Softmax(temperature=0.3), 0.5
    log = rule.demonstrate(ub.Instance([1.0, 0.5, 0.2], sigma), 300, seed=1)
    return IdentificationRequest(log, (300,), ub.NormalPrior(0, 1), ub.Gaussian(sigma), None, 1, 1)


@pytest.mark.parametrize(
    "rule",
    [ub.Softmax(temperature=0.3), ub.Thompson(deviation=1.0, sigma=0.5), ub.LearningSoftmax(temperature=0.3, rate=0.2)],
    ids=lambda rule: rule.name,
)
def test_what_is_found_without_particles_is_what_many_find(smooth, rule):
    rough = log_evidence(smooth, rule, Heat(None, 25, 16, 2, quick=True, rough=True))
    many = log_evidence(smooth, rule, Heat(None, 1_000, 16, 4))
    assert (rough.rough, rough.particles, many.rough) == (True, 0, False)
    assert rough.low - 0.5 < many.value < rough.high
    assert abs(rough.value - many.value) < 1.0


def test_rewards_of_0_and_1_are_read_by_particles():
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([0.8, 0.5], ub.Bernoulli()), 60, seed=1)
    request = IdentificationRequest(log, (60,), ub.BetaPrior(), ub.Bernoulli(), None, 1, 1)
    assert not log_evidence(request, ub.Softmax(temperature=0.3), request.heats[0]).rough


def test_only_what_was_found_roughly_is_glanced_at(smooth, monkeypatch):
    filtered, plain = [], evidence._filtered
    monkeypatch.setattr(
        evidence, "_filtered", lambda request, which, rule, heat, look: filtered.append((rule.name, heat.glance)) or
        plain(request, which, rule, heat, look)
    )  # fmt: skip
    known = [one(ub.Softmax(temperature=0.3)), one(ub.EpsilonGreedy(epsilon=0.3)), one(ub.LearningSoftmax(rate=0.2))]
    _, (by_scores, by_leader, learnt) = successive_halving(smooth, known)
    assert {name for name, glance in filtered if glance is not None} <= {"softmax", "learning-softmax"}
    assert any(glance is not None for _, glance in filtered)
    assert ("epsilon-greedy", None) in filtered
    assert by_scores[0].value > by_leader[0].value
    assert all(each[0].laplace is not None for each in (by_scores, learnt))


def test_clouds_that_went_astray_leave_the_rough_evidence(smooth, monkeypatch):
    rule, lost = ub.Softmax(temperature=0.3), Heat(None, 25, 16, 2, quick=True, glance=0.25)
    rough = log_evidence(smooth, rule, lost._replace(rough=True, glance=None))
    found = SimpleNamespace(surprise=np.zeros(0), relaxed=(), look_ahead=None, twisted=True)
    monkeypatch.setattr(
        evidence, "run_filters", lambda *given, **options: SimpleNamespace(**vars(found), evidences=np.full(4, -1e6))
    )
    assert log_evidence(smooth, rule, lost, rough) == rough
    assert log_evidence(smooth, rule, lost).value == -1e6

    def collapse(*given, **options):
        raise CloudCollapsed("none of them.", round=3)

    monkeypatch.setattr(evidence, "run_filters", collapse)
    assert log_evidence(smooth, rule, lost, rough) == rough
    assert log_evidence(smooth, rule, lost).collapsed


def test_what_some_guesses_of_a_rule_lack_is_added_to_all():
    filtered = LogEvidence(-100.0, 0.1, -100.2, -99.8, laplace=-104.0)
    rough, other = (
        evidence.rough_evidence(-110.0, 5.0, -110.0, None),
        evidence.rough_evidence(-109.0, 5.0, -109.0, None),
    )
    rules = one(*(ub.Softmax(temperature=0.1 * at) for at in (1, 2, 3))), one(ub.LearningSoftmax())
    known = {(0, 0): filtered, (0, 1): rough, (0, 2): LogEvidence(-90.0, 0.1, -90.2, -89.8), (1, 0): other}
    found = selection._aligned(rules, known)
    assert list(found) == [(0, 1)]
    assert (found[0, 1].value, found[0, 1].error, found[0, 1].rough) == (-106.0, 2.5, True)
    again = selection._aligned(rules, {**known, **found})
    assert again == {}  # no smaller error by the same guess
    two = selection._aligned(rules, {**known, (0, 2): replace(filtered, value=-96.0, laplace=-100.2)})
    assert (two[0, 1].value, two[0, 1].error) == (pytest.approx(-105.9), selection.ALIGNED)


def test_the_best_guess_speaks_for_those_that_few_particles_found_less_probable():
    rules = [one(*RULES)]
    best = LogEvidence(-200.0, 6.0, -203.0, -188.0, particles=37)
    lower, higher = (LogEvidence(value, 110.0, value - 3, 0.0, particles=25) for value in (-240.0, -190.0))
    sharp = LogEvidence(-250.0, 0.2, -250.4, -249.6, particles=25)
    found = selection._outdone(rules, {(0, 0): best, (0, 1): lower, (0, 2): higher, (0, 3): sharp}, SECOND)
    assert list(found) == [(0, 1)]
    assert (found[0, 1].high, found[0, 1].error) == (-188.0, 6.0)


def test_errors_that_guesses_share_do_not_average_out():
    rough = [evidence.rough_evidence(-10.0, 4.0, -10.0, None)] * 4
    apart = [LogEvidence(-10.0, 0.5, -11.0, -9.0)] * 4
    rules = one(*RULES)
    assert averaged(rules, rough).error == pytest.approx(4.0)
    assert averaged(rules, apart).error == pytest.approx(0.25)
    assert averaged(rules, rough).high == pytest.approx(-2.0, abs=0.01)
