"""Records of 0 and 1 by programs that break ties at random, or count time their own way."""

from __future__ import annotations

import itertools
import math
import random
import re

import pytest
from reference_posterior import chance_of_actions

import unbandit as ub
from unbandit.errors import AssumptionWarning, InferenceError

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

CONVENTIONS = {
    "ucb1:exploration=2.0": {},
    "ucb1:exploration=2.0,ties=random": {"ties": "random"},
    "ucb1:exploration=2.0,clock=pulls": {"behind": 1},
    "ucb1:exploration=2.0,ties=random,clock=pulls": {"ties": "random", "behind": 1},
}
CODES = {"ties": "ties-at-random", "behind": "other-clock"}
FEW = {"bernoulli": True, "particles": 300}


def plain_ucb1(seed, horizon, arms=4, ties="lowest", behind=0):
    """Play UCB1 on random Bernoulli arms in plain Python, without anything of ours."""
    rng = random.Random(seed)
    means = [rng.random() for _ in range(arms)]
    pulls, ones, actions = [0] * arms, [0] * arms, []
    for t in range(1, horizon + 1):
        index = [
            ones[arm] / pulls[arm] + math.sqrt(2 * math.log(t - behind) / pulls[arm]) if pulls[arm] else math.inf
            for arm in range(arms)
        ]
        tied = [arm for arm in range(arms) if index[arm] == max(index)]
        arm = rng.choice(tied) if ties == "random" else tied[0]
        actions.append(arm)
        pulls[arm] += 1
        ones[arm] += rng.random() < means[arm]
    return ub.ActionLog.from_actions(actions, arms=range(arms))


def codes(found):
    return [notice.code for notice in found.warnings]


def test_logs_with_ties_at_random_are_accepted():
    """By the posterior, and the first of them by `estimate` and `identify`; in a few no tie went to a later arm."""
    at_random = 0
    for seed in range(16):
        log = plain_ucb1(seed, 100, ties="random")
        found = ub.posterior(log, "ucb1", seed=1, **FEW)
        assert ("ties=random" in found.rule) == ("ties-at-random" in codes(found))
        at_random += found.rule == "ucb1:exploration=2.0,ties=random"
        if "ties=random" in found.rule:
            assert found.warnings[0].round is not None
            assert f"The answer is for {found.rule}." in found.warnings[0].message
        if seed < 3:
            assert ub.estimate(log, "ucb1", method="posterior", seed=1, **FEW).rule == found.rule
            named = ub.identify(log, "ucb1:exploration=2,uniform", bernoulli=True, particles=150)
            assert named["ucb1:exploration=2"].probability > 0.9
    assert at_random >= 12


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("made_by", CONVENTIONS)
def test_each_convention_is_found_by_posterior_and_identify(made_by, seed):
    log = plain_ucb1(seed, 120, **CONVENTIONS[made_by])
    expected = [code for key, code in CODES.items() if key in CONVENTIONS[made_by]]
    found = ub.posterior(log, "ucb1", seed=1, **FEW)
    assert (found.rule, codes(found)) == (made_by, expected)
    named = ub.identify(log, "ucb1:exploration=2,uniform", **FEW)
    assert named.winner == "ucb1:exploration=2"
    assert str(named.leading.guesses[0].rule) == made_by
    assert [notice.code for notice in named.notes][: len(expected)] == expected
    assert (f"(as {made_by})" in named.answer()) == bool(expected)
    assert named.posterior(draws=50).rule in (made_by, "ucb1:exploration=2")


def test_a_convention_written_out_is_tried_and_changed_too():
    log = plain_ucb1(1, 150, ties="random")
    assert ub.posterior(log, "ucb1:ties=lowest,clock=round", **FEW).rule == "ucb1:exploration=2.0,ties=random"
    given = ub.posterior(log, "ucb1:ties=random", **FEW)
    assert (given.rule, codes(given)) == ("ucb1:exploration=2.0,ties=random", [])


@pytest.mark.parametrize("rule", ["ucb:alpha=0.25", "klucb", "moss", "lilucb:reward_range=1", "ucbv"])
def test_other_index_rules(rule):
    """Six of our own logs with ties broken at random; most are impossible with ties to the lowest arm."""
    at_random = ub.parse_rule(rule).model_copy(update={"ties": "random"})
    logs = at_random.demonstrate(ub.Instance([0.8, 0.6, 0.4, 0.2], ub.Bernoulli()), 120, runs=6, seed=3)
    changed = 0
    for which in range(6):
        found = ub.posterior(logs.select(which), rule, seed=1, **FEW)
        assert ("ties-at-random" in codes(found)) == ("ties=random" in found.rule)
        changed += "ties=random" in found.rule
    assert changed >= 4


@pytest.mark.parametrize("rule", ["ucb:scale=0.5", "ucb1:exploration=0.5"])
def test_short_records_are_judged_as_by_counting(rule):
    """Every record of eight rounds of two arms: impossible with ties to the lowest, possible at random, or neither."""
    lowest, seen = ub.parse_rule(rule), {"lowest": 0, "other": 0, "none": 0}
    rewards = list(itertools.product((0, 1), repeat=8))

    def possible(assumed, actions):
        return any(chance_of_actions(assumed, actions, list(row), 2, 8, {}) > 0 for row in rewards)

    for rest in list(itertools.product((0, 1), repeat=6))[::3]:
        actions = [0, 1, *rest]
        log = ub.ActionLog.from_actions(actions, arms=range(2))
        others = [each for each in lowest.conventions(ub.Bernoulli()) if possible(each, actions)]
        if possible(lowest, actions):
            seen["lowest"] += 1
            assert ub.posterior(log, rule, bernoulli=True, particles=500).rule == str(lowest)
        elif others:
            seen["other"] += 1
            assert ub.posterior(log, rule, bernoulli=True, particles=500).rule in map(str, others)
        elif not lowest.uses_round:  # otherwise a single round is let pass, with a warning
            seen["none"] += 1
            with pytest.raises(InferenceError, match=f"explains the log so far under {rule.split(':')[0]}"):
                ub.posterior(log, rule, bernoulli=True, particles=500)
    assert seen["lowest"]
    assert seen["other"] or lowest.uses_round
    assert seen["none"] or lowest.uses_round


def test_a_record_that_no_convention_explains_is_refused_as_before():
    """Fifty pulls of each arm in turn, whatever it gives."""
    log = ub.ActionLog.from_actions([arm for arm in range(3) for _ in range(50)], arms=range(3))
    with pytest.raises(InferenceError, match="comes again before all 3 have been pulled"):
        ub.posterior(log, "ucb1", **FEW)
    stubborn = ub.ActionLog.from_actions([0, 1, 2] + [0] * 40 + [1] * 40 + [2] * 40, arms=range(3))
    with pytest.raises(InferenceError, match=r"^round \d+: none of 300 particles .* under ucb1:exploration=2.0\."):
        ub.posterior(stubborn, "ucb1", **FEW)
    found = ub.identify(stubborn, "ucb1:exploration=2,uniform", **FEW)
    assert not found["ucb1:exploration=2"].possible
    assert "under ucb1:exploration=2.0." in found["ucb1:exploration=2"].reason
    assert len(found["ucb1:exploration=2"].guesses) == 1
    assert found["ucb1:exploration=2"].guesses[0].beforehand == 1


def test_with_normal_rewards_no_two_indices_are_equal():
    assert ub.UCB1().conventions(ub.Gaussian(0.5)) == []
    assert ub.UCB().conventions(ub.Gaussian(0.5)) == []
    assert ub.Thompson().conventions(ub.Bernoulli()) == []
    assert [each.ties for each in ub.UCB().conventions(ub.Bernoulli())] == ["random"]
    assert ub.UCB(ties="random").conventions(ub.Bernoulli()) == []
    assert len(ub.UCB1().conventions(ub.Bernoulli())) == 3


def test_a_convention_that_is_a_candidate_already_is_not_tried_twice():
    log = plain_ucb1(2, 150, ties="random")
    given = ["ucb1:exploration=2", "ucb1:exploration=2,ties=random"]
    found = ub.identify(log, given, **FEW)
    assert (found.winner, found.verdict) == (given[1], "identified")
    assert not found[given[0]].possible


def test_an_estimate_carries_the_rule_and_says_so():
    log = plain_ucb1(3, 150, ties="random", behind=1)
    with pytest.warns(AssumptionWarning, match="ln t"):
        answer = ub.estimate(log, "ucb1", method="posterior", **FEW)
    assert answer.rule == "ucb1:exploration=2.0,ties=random,clock=pulls"
    assert answer.warnings[0].code == "other-clock"
    assert answer.notes[0].code == "ties-at-random"  # it puts no value in doubt
    assert answer.posteriors[0].rule == answer.rule
    assert any(answer.rule in notice.message for notice in answer.notes if notice.code == "evidence")


def test_one_rule_made_all_demonstrations():
    """The first is too short to show how ties are broken; the second shows it, and so decides for both."""
    actions = [plain_ucb1(4, rounds, ties="random").demonstration(0).tolist() for rounds in (4, 150)]
    log = ub.ActionLog.from_actions(actions, arms=range(4))
    answer = ub.estimate(log, "ucb1", method="posterior", **FEW)
    assert answer.rule == "ucb1:exploration=2.0,ties=random"
    assert {each.rule for each in answer.posteriors} == {answer.rule}
    assert [notice.demonstration for notice in answer.notes if notice.code == "ties-at-random"] == ["2"]
    alone = ub.estimate(log.select(0), "ucb1", method="posterior", **FEW)
    assert alone.rule == "ucb1:exploration=2.0"


def test_all_demonstrations_together_decide_the_convention():
    """The first is explained by ties alone; the others also show the clock, whatever their order."""
    actions = [plain_ucb1(seed, rounds, ties="random", behind=1).demonstration(0).tolist()
               for seed, rounds in ((2, 40), (2, 80), (6, 80))]  # fmt: skip
    made_by = "ucb1:exploration=2.0,ties=random,clock=pulls"
    first = ub.posterior(ub.ActionLog.from_actions(actions[0], arms=range(4)), "ucb1", seed=1, **FEW)
    assert first.rule == "ucb1:exploration=2.0,ties=random"
    for order in (actions, actions[::-1]):
        answer = ub.estimate(ub.ActionLog.from_actions(order, arms=range(4)), "ucb1", method="posterior", seed=1, **FEW)
        assert answer.rule == made_by
        assert {each.rule for each in answer.posteriors} == {made_by}


def test_a_report_is_about_the_rule_that_explains_the_record():
    made = ub.report(plain_ucb1(3, 150, ties="random", behind=1), "ucb1", method="posterior", **FEW)
    assert made.answer.rule == "ucb1:exploration=2.0,ties=random,clock=pulls"
    assert made.html.count("ucb1:exploration=2.0,ties=random,clock=pulls") >= 1
    assert "ties, random" in re.sub(r"(<[^>]*>|\s)+", ", ", made.html)  # in the table of its parameters


def test_the_closed_form_does_not_depend_on_ties():
    log = plain_ucb1(5, 400, ties="random")
    lowest, at_random = (ub.estimate(log, f"ucb1:ties={ties}", bernoulli=True) for ties in ("lowest", "random"))
    assert lowest.to_frame().drop("rule", strict=False).equals(at_random.to_frame().drop("rule", strict=False))


def test_policies_of_another_library():
    """River's UCB: ties and opening at random, and ln t of the pulls made so far."""
    bandit = pytest.importorskip("river.bandit", reason="river is not installed (extra bench)")
    for seed in range(4):
        rng = random.Random(seed)
        means, policy, actions = [rng.random() for _ in range(4)], bandit.UCB(delta=1, seed=seed), []
        for _ in range(200):
            arm = policy.pull(list(range(4)))
            policy.update(arm, float(rng.random() < means[arm]))
            actions.append(arm)
        log = ub.ActionLog.from_actions(actions, arms=range(4))
        assert "ties=random" in ub.posterior(log, "ucb1", **FEW).rule  # a short log may go with either clock
        assert ub.identify(log, "ucb1:exploration=2,uniform", **FEW).winner == "ucb1:exploration=2"


def test_the_clock_is_one_behind():
    pulls, rounds = ub.UCB1(clock="pulls"), ub.UCB1()
    assert pulls.index(0.5, 3, 20, 100) == rounds.index(0.5, 3, 19, 100)
    assert pulls.index(0.5, 3, 1, 100) == 0.5
    by_level = [ub.KLUCB(level="round", clock=clock).index(0.5, 3, 20, 100) for clock in ("round", "pulls")]
    assert by_level[0] > by_level[1]
    with pytest.raises(ub.ParameterError, match="expected clock=pulls only with level=round"):
        ub.KLUCB(clock="pulls")


def test_values_are_the_same_however_ties_are_broken():
    log = ub.UCB1().demonstrate(ub.Instance([0.7, 0.6, 0.3], ub.Bernoulli()), 300, seed=5)
    lowest, random = (ub.posterior(log, f"ucb1:ties={ties}", bernoulli=True) for ties in ("lowest", "random"))
    assert lowest.log_evidence > random.log_evidence + 1  # there were ties
    assert lowest.draws.mean(axis=0).tolist() == pytest.approx(random.draws.mean(axis=0).tolist(), abs=0.005)
