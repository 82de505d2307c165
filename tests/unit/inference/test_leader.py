"""Greedy rules: the filter that follows the leader, against plain averages over rewards drawn from the prior."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.inference import filter as filters
from unbandit.inference import twist
from unbandit.inference.prior import belief_of
from unbandit.inference.steps import opening_chance, reading_of
from unbandit.kernels.formula import probability
from unbandit.kernels.smc.leader import leader_chances, most_likely_leaders

SIGMA, PRIOR, DRAWS = 0.5, ub.NormalPrior(0.2, 0.7), 300_000
RULE = ub.EpsilonGreedy(epsilon=0.2)
MEETING = [0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]  # arm 1 takes the lead after round 7
THREE = [0, 1, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 1, 0]


def averaged(rule, records, arms, known=None):
    """Draw means and rewards from the prior, and weight them by the probabilities of the actions, round by round."""
    generator = np.random.default_rng(3)
    means, log_weights = PRIOR.draw(generator, (DRAWS, arms)), np.zeros(DRAWS)
    for which, actions in enumerate(records):
        sums, pulls = np.zeros((DRAWS, arms)), np.zeros(arms)
        for at, arm in enumerate(actions):
            since = at - rule.initial * arms
            if since >= 0 and since % rule.batch == 0:
                leading, epsilon = (sums / pulls).argmax(axis=1), rule.epsilon
                if rule.decay is not None:
                    epsilon = min(1.0, rule.epsilon * rule.decay / (at + 1))
                elif rule.rate is not None:
                    epsilon = rule.epsilon * math.exp(-rule.rate * at)
            if since >= 0:
                log_weights += np.log(epsilon / arms + (1 - epsilon) * (leading == arm))
            rewards = means[:, arm] + SIGMA * generator.standard_normal(DRAWS)
            if (which, at) in (known or {}):
                value = known[which, at]
                log_weights -= (value - means[:, arm]) ** 2 / (2 * SIGMA**2)
                rewards = np.full(DRAWS, value)
            sums[:, arm] += rewards
            pulls[arm] += 1
    weights = np.exp(log_weights)
    share = weights / weights.sum()
    expected = share @ means
    return math.log(weights.mean()), expected, np.sqrt(share @ (means - expected) ** 2)


def filter_task(log, rule, particles=4_000, coins=None):
    arms, horizons = len(log.arms), log.lengths.tolist()
    readings = tuple(reading_of(log, which, rule, horizon) for which, horizon in enumerate(horizons))
    belief = (
        belief_of(PRIOR, arms, ub.Gaussian(SIGMA), None)
        if coins is None
        else belief_of(coins, arms, ub.Bernoulli(), None)
    )
    return filters.CloudFilter(log, rule, belief, tuple(horizons), readings, particles, 1, keep_paths=False)


def twisted(task, width=None):
    """Let a filter look at the meetings."""
    steps = list(task.readings)
    chances = [task.leader_chances(each, horizon) for each, horizon in zip(steps, task.horizons, strict=True)]
    twists = twist.twist_leaders(task.rule, task.belief, steps, chances, max(task.horizons), task.known_rewards())
    return replace(task, twists=(twists[0],))


@pytest.mark.parametrize(
    "text",
    ["epsilon=0.2", "epsilon=0.5,decay=4", "epsilon=0.9,rate=0.1", "epsilon=0.3,initial=2", "epsilon=0.3,batch=3"],
)
@pytest.mark.parametrize("actions", [MEETING, [0, 1, 0, 1, 1, 1, 0, 0, 0, 0]])
def test_evidence_and_means_are_those_of_weighted_draws(text, actions):
    rule = ub.parse_rule(f"epsilon-greedy:{text}").for_arms(2)
    if rule.initial == 2:
        actions = [0, 1, *actions]
    evidence, means, deviations = averaged(rule, [actions], 2)
    log = ub.ActionLog.from_actions([actions], arms=[0, 1])
    found = ub.posterior(log, rule, prior=PRIOR, sigma=SIGMA, particles=4_000, seed=1, check=False)
    assert abs(found.log_evidence - evidence) < 0.03 + 3 * found.log_evidence_error
    assert np.allclose(found.draws.mean(axis=0), means, atol=0.04)  # four errors of 4,000 draws
    assert np.allclose(found.draws.std(axis=0), deviations, atol=0.03)


@pytest.mark.parametrize("width", [1.0, 5.0])
def test_a_look_at_the_meetings_changes_nothing_but_the_noise(monkeypatch, width):
    monkeypatch.setattr(twist, "WIDTHS", (width,))
    evidence, means, _ = averaged(RULE, [THREE], 3)
    task = twisted(filter_task(ub.ActionLog.from_actions([THREE], arms=[0, 1, 2]), RULE.for_arms(3), 20_000))
    assert task.twists[0].transitions.judged.sum() == 1
    passes = task.run(0)
    opening = opening_chance(task.log, 0, task.rule)
    assert filters.log_evidence_of(passes) + opening == pytest.approx(evidence, abs=0.05)
    drawn = filters.systematic(passes[0].cloud.log_weights, 20_000, np.random.default_rng(0))
    by_particle = (PRIOR.mean * SIGMA**2 + PRIOR.deviation**2 * passes[0].cloud.sums) / (
        SIGMA**2 + passes[0].pulls * PRIOR.deviation**2
    )
    assert np.allclose(by_particle[drawn].mean(axis=0), means, atol=0.03)


def test_demonstrations_and_known_rewards_are_pooled_with_a_twist():
    records, known = [MEETING, [0, 1, 1, 1, 1, 0, 1]], {(0, 4): 0.9, (1, 2): 0.4}
    _, means, _ = averaged(RULE, records, 2, known)
    rewards = [[known.get((which, at), math.nan) for at in range(len(each))] for which, each in enumerate(records)]
    log = ub.ActionLog.from_actions(records, arms=[0, 1], rewards=rewards)
    task = filter_task(log, RULE.for_arms(2), 20_000)
    found = []
    for each in (task, twisted(task)):
        passes = each.run(0)
        chosen = filters.systematic(passes[-1].cloud.log_weights, 20_000, np.random.default_rng(0))
        cloud = passes[-1].cloud
        totals, behind = (cloud.past + cloud.sums)[chosen], cloud.before + passes[-1].pulls
        expected = (PRIOR.mean * SIGMA**2 + PRIOR.deviation**2 * totals) / (SIGMA**2 + behind * PRIOR.deviation**2)
        assert np.allclose(expected.mean(axis=0), means, atol=0.03)
        found.append(filters.log_evidence_of(passes))
    assert found[0] == pytest.approx(found[1], abs=0.05)


@pytest.mark.parametrize(
    "text", ["epsilon=0.2", "epsilon=0.5,decay=4", "epsilon=0.3,ties=random", "epsilon=0.2,initial=2"]
)
@pytest.mark.parametrize("known", [{}, {3: 1, 6: 0}])
def test_rewards_of_0_and_1_are_those_of_counting_with_or_without_a_look_at_the_meetings(monkeypatch, text, known):
    monkeypatch.setattr(twist, "CHANGING", (0.3,))  # so that a short log has a meeting
    rule, coins = ub.parse_rule(f"epsilon-greedy:{text}").for_arms(2), ub.BetaPrior(1.5, 1.0)
    actions = [0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1]
    evidence, means = exact_posterior(rule, [actions], 2, (1.5, 1.0), 12, known)
    rewards = [[known.get(at, math.nan) for at in range(12)]] if known else None
    task = filter_task(ub.ActionLog.from_actions([actions], arms=[0, 1], rewards=rewards), rule, 20_000, coins)
    looking = twisted(task)
    assert task.follows_leader
    assert looking.twists[0].transitions.judged.sum() > 0
    for each in (task, looking):
        (only,) = each.run(0)
        totals, behind = only.cloud.past + only.cloud.sums, only.cloud.before + only.pulls
        share = np.exp(only.cloud.log_weights) / np.exp(only.cloud.log_weights).sum()
        found = filters.log_evidence_of((only,)) + opening_chance(task.log, 0, rule)
        assert found == pytest.approx(evidence, abs=0.03)
        assert np.allclose(share @ ((1.5 + totals) / (2.5 + behind)), means, atol=0.01)


def test_ties_broken_anew_in_each_round_of_a_batch_are_not_read_by_one_leader():
    log = ub.ActionLog.from_actions([MEETING], arms=[0, 1])
    rule = ub.parse_rule("epsilon-greedy:ties=random,batch=3").for_arms(2)
    assert filter_task(log, rule).follows_leader  # normal rewards do not tie
    assert not filter_task(log, rule, coins=ub.BetaPrior()).follows_leader


def test_a_record_of_rewards_0_and_1_that_is_impossible_is_refused():
    """Once epsilon is 0 to a computer: arm 1 leads after a 1, against a 0, and no reward can end its lead at once."""
    log = ub.ActionLog.from_actions([[0, 1, 1, 0, 0]], arms=[0, 1])
    with pytest.raises(ub.InferenceError, match="none of 50 particles"):
        ub.posterior(log, "epsilon-greedy:epsilon=0.5,rate=800", bernoulli=True, particles=50, check=False)


def test_chances_are_the_rules_probabilities_and_leaders_the_best_sequence():
    rule, actions = RULE.for_arms(3), [0, 1, 2, 2, 2, 1, 1, 1, 1]
    reading = reading_of(ub.ActionLog.from_actions([actions], arms=[0, 1, 2]), 0, rule, 9)
    chances = leader_chances(rule.parameters(9), reading, 1, 3)
    for at, leader in itertools.product(range(3, 9), range(3)):
        memory = np.array([[0.3], [0.2], [0.1]])
        memory[leader] = 40.0
        pulls = np.bincount(actions[:at], minlength=3)
        assert chances[at, leader] == pytest.approx(
            math.log(probability(rule.parameters(9), pulls, memory, at + 1, actions[at]))
        )

    def value(sequence):
        total = 0.0
        for at, leader in enumerate(sequence, start=3):
            total += chances[at, leader]
            if at > 3 and leader != sequence[at - 4]:
                total += math.log(0.01) if actions[at - 1] in (leader, sequence[at - 4]) else -math.inf
        return total

    best = max(itertools.product(range(3), repeat=6), key=value)
    assert most_likely_leaders(reading, chances, math.log(0.01))[3:].tolist() == list(best)


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_clouds_agree_where_an_arm_takes_the_lead_late():
    instance = ub.Instance(np.random.default_rng(1045).normal(0, 1, 4), SIGMA)
    rule = ub.EpsilonGreedy(epsilon=0.1)
    log = rule.demonstrate(instance, 2_000, seed=1045)
    blind = np.array([filters.log_evidence_of(filter_task(log, rule, 300).run(cloud)) for cloud in range(4)])
    found = ub.posterior(log, rule, prior=ub.NormalPrior(), sigma=SIGMA, particles=300, seed=1, check=False)
    assert blind.std() > 3  # one action ahead is not enough here
    assert found.evidences.std() < 1.5


def test_known_rewards_that_tie_are_compared_as_the_rule_does():
    actions, rewards = [0, 1, 1, 0, 1, 0], [0.3, 0.5, 0.1, 0.2, 0.4, 0.1]  # after round 3 both means are 0.3
    log = ub.ActionLog.from_actions([actions], arms=[0, 1], rewards=[rewards])
    expected, sums, pulls = 0.0, np.zeros(2), np.zeros(2)
    for at, (arm, reward) in enumerate(zip(actions, rewards, strict=True)):
        if at >= 2:
            leading = int((sums / pulls).argmax())
            expected += math.log(RULE.epsilon / 2 + (1 - RULE.epsilon) * (leading == arm))
        sums[arm] += reward
        pulls[arm] += 1
    task = filter_task(log, RULE, particles=10)
    assert task.follows_leader
    assert filters.log_evidence_of(task.run(0)) == pytest.approx(expected, abs=1e-9)


def test_a_subclass_that_chooses_otherwise_is_read_by_its_own_probabilities():
    class Careful(ub.EpsilonGreedy):
        """Epsilon-greedy but for its probabilities."""

        @staticmethod
        def probability(parameters, pulls, memory, round, arm):
            """Return the same for all arms."""
            return 1.0 / pulls.size

    log = ub.ActionLog.from_actions([MEETING], arms=[0, 1])
    assert filter_task(log, RULE).follows_leader
    assert not filter_task(log, Careful(epsilon=0.2)).follows_leader


def test_a_log_too_long_for_a_table_is_filtered_without_it(monkeypatch):
    log = ub.ActionLog.from_actions([MEETING], arms=[0, 1])
    monkeypatch.setattr(filters, "MOST_CHANCES", 10)
    assert not filter_task(log, RULE).follows_leader


def test_the_round_named_is_that_of_the_action_which_weights_judge():
    task = filter_task(ub.ActionLog.from_actions([MEETING]), RULE)
    looking, (steps,) = twisted(task), task.readings
    judged = looking._judged(steps, steps.round)
    assert looking.twists
    assert judged.tolist() == [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12]
    assert np.array_equal(judged, task._judged(steps, steps.round))
