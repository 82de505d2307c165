"""Short records of rewards 0 and 1, where every sequence of rewards can be counted: the filters must agree."""

from __future__ import annotations

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub

RULES = [
    "ucb:alpha=0.25,scale=0.5", "ucb:scale=0.3,ties=random", "ucb:scale=0.5,batch=3", "ucb:scale=0.4,initial=2",
    "lilucb:reward_range=0.5", "moss:scale=0.7", "ucb1:exploration=0.5", "ucb1:exploration=0.3,ties=random",
    "klucb", "klucb:level=round", "ucbv:exploration=0.3",
    "sae:scale=0.2", "sae:scale=0.15,batch=2", "phased:scale=0.2", "explore-then-commit:explore=2",
    "successive-elimination:sigma=0.05", "ucb-tuned:exploration=0.5", "lil-klucb:delta=0.2", "bayes-ucb",
    "anytime-moss:scale=0.5",
    "thompson:noise=bernoulli", "thompson:sigma=0.5", "thompson:noise=bernoulli,batch=3", "epsilon-greedy:epsilon=0.2",
    "top-two-thompson:beta=0.6,sigma=0.5", "top-two-thompson:sigma=0.3,batch=2,delay=1",
    "epsilon-greedy:epsilon=0.3,ties=random,initial=2", "softmax:temperature=0.3", "softmax:temperature=0.5,batch=2",
    "learning-softmax:rate=0.4,temperature=0.4", "exp3:mixing=0.3", "exp3:mixing=0.4,rate=0.5,batch=2",
    "sae:scale=0.2,delay=2", "sae:scale=0.15,delay=1,batch=2", "thompson:noise=bernoulli,delay=2",
    "thompson:sigma=0.5,delay=3", "softmax:temperature=0.3,delay=2,batch=2", "epsilon-greedy:epsilon=0.3,delay=2",
    "learning-softmax:rate=0.4,temperature=0.4,delay=1,initial=1", "epsilon-greedy:epsilon=0.3,initial=0",
    "softmax:temperature=0.3,initial=0", "epsilon-greedy:epsilon=0.4,initial=0,delay=2",
    "exp3:mixing=0.3,rate=0.5,delay=2", "exp3:mixing=0.4,rate=0.5,batch=2,delay=1",
    "ucb:scale=0.5,delay=2", "ucb:scale=0.3,delay=1,batch=2", "ucb:scale=0.3,ties=random,delay=2",
    "ucb1:exploration=0.3,delay=1",
]  # fmt: skip
MEANS = [0.7, 0.4, 0.5]
PRIOR = ub.BetaPrior(1.5, 1.0)


def counted(rule, records, arms, known=None):
    return exact_posterior(rule, records, arms, (PRIOR.successes, PRIOR.failures), 12, known)


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("arms", [pytest.param(2, marks=pytest.mark.thorough), 3])
def test_evidence_and_means_are_those_of_counting(text, arms):
    rule = ub.parse_rule(text).for_arms(arms)
    log = rule.demonstrate(ub.Instance(MEANS[:arms], ub.Bernoulli()), 12, seed=3).select(0)
    short = ub.ActionLog.from_codes(np.ascontiguousarray(log.actions[:9]), log.arms)
    evidence, means = counted(rule, [short.actions.tolist()], arms)
    found = ub.posterior(short, rule, prior=PRIOR, bernoulli=True, horizon=12, particles=4_000, seed=1)
    assert abs(found.log_evidence - evidence) < 0.03 + 4 * found.log_evidence_error
    assert np.allclose(found.draws.mean(axis=0), means, atol=0.03)


@pytest.mark.parametrize(
    "text",
    ["ucb:scale=0.5", "klucb:level=round", "sae:scale=0.2", "softmax:temperature=0.3", "thompson:noise=bernoulli"],
)
@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_known_rewards_are_conditioned_on(text):
    rule = ub.parse_rule(text).for_arms(2)
    log = rule.demonstrate(ub.Instance(MEANS[:2], ub.Bernoulli()), 12, seed=5)
    actions = log.actions[:9].tolist()
    evidence, means = None, None
    for guess in ({2: 1, 5: 0}, {2: 0, 5: 1}, {2: 1, 5: 1}, {2: 0, 5: 0}):
        evidence, means = counted(rule, [actions], 2, guess)
        if np.isfinite(evidence):
            break
    rewards = np.full(9, np.nan)
    rewards[list(guess)] = list(guess.values())
    record = ub.ActionLog.from_actions([actions], arms=[0, 1], rewards=[rewards])
    found = ub.posterior(record, rule, prior=PRIOR, bernoulli=True, horizon=12, particles=4_000, seed=1)
    assert abs(found.log_evidence - evidence) < 0.03 + 4 * found.log_evidence_error
    assert np.allclose(found.draws.mean(axis=0), means, atol=0.03)


@pytest.mark.parametrize("text", ["ucb:scale=0.5", "sae:scale=0.2", "thompson:noise=bernoulli", "exp3:mixing=0.3"])
def test_demonstrations_of_one_instance_are_pooled(text):
    rule = ub.parse_rule(text).for_arms(2)
    logs = rule.demonstrate(ub.Instance(MEANS[:2], ub.Bernoulli()), 12, runs=2, seed=7)
    records = [logs.demonstration(which)[:5].tolist() for which in range(2)]
    evidence, means = counted(rule, records, 2)
    pooled = ub.ActionLog.from_actions(records, arms=[0, 1])
    found = ub.posterior(pooled, rule, prior=PRIOR, bernoulli=True, horizon=12, pool=True, particles=4_000, seed=1)
    assert abs(found.log_evidence - evidence) < 0.03 + 4 * found.log_evidence_error
    assert np.allclose(found.draws.mean(axis=0), means, atol=0.03)
