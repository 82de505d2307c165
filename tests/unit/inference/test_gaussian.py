"""Normal rewards: the filters agree with simulating from the prior and keeping the runs that made the same choices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

import unbandit as ub
from unbandit.demonstrators import EliminationRule, IndexRule

SIGMA, PRIOR, RUNS, ROUNDS = 0.5, ub.NormalPrior(0.2, 0.7), 200_000, 7
RULES = [
    "ucb:alpha=0.25,scale=0.3", "ucb1:exploration=0.3", "lilucb:reward_range=0.4", "klucb:noise=gaussian,level=round",
    "sae:scale=0.15", "phased:scale=0.15", "explore-then-commit:explore=2", "epsilon-greedy:epsilon=0.2",
    "softmax:temperature=0.4", "learning-softmax:rate=0.5,temperature=0.4", "thompson:mean=0.3,deviation=0.8,sigma=0.6",
    "top-two-thompson:beta=0.7,deviation=0.8,sigma=0.6", "softmax:temperature=0.5,initial=0",
    "epsilon-greedy:epsilon=0.4,initial=0",
]  # fmt: skip


def played(rule, arms, generator):
    """Play many runs at once on means drawn from the prior; return the means and the actions."""
    means = PRIOR.draw(generator, (RUNS, arms))
    sums, pulls, values = np.zeros((RUNS, arms)), np.zeros((RUNS, arms)), np.zeros((RUNS, arms))
    active, place, actions = np.ones((RUNS, arms), bool), np.zeros(RUNS, int), np.empty((RUNS, ROUNDS), int)
    everyone = np.arange(RUNS)
    for at in range(ROUNDS):
        with np.errstate(invalid="ignore", divide="ignore"):
            sample = sums / pulls
        if isinstance(rule, EliminationRule):
            while not active[everyone, place].all():
                place = np.where(active[everyone, place], place, (place + 1) % arms)
            arm = place.copy()
        elif at < rule.initial * arms:
            arm = np.full(RUNS, at % arms)
        elif isinstance(rule, IndexRule):
            index = np.array([_index(rule, sample[:, k], pulls[:, k], at + 1) for k in range(arms)]).T
            arm = index.argmax(axis=1)
        else:
            chances = _chances(rule, sums, pulls, values, generator)
            arm = (chances.cumsum(axis=1) < generator.random((RUNS, 1))).sum(axis=1)
        rewards = means[everyone, arm] + SIGMA * generator.standard_normal(RUNS)
        values[everyone, arm] += (getattr(rule, "rate", None) or 0.0) * (rewards - values[everyone, arm])
        sums[everyone, arm] += rewards
        pulls[everyone, arm] += 1
        actions[:, at] = arm
        if isinstance(rule, EliminationRule):
            _test(rule, sums, pulls, active, place, arms)
            place = (place + 1) % arms
    return means, actions


def _index(rule, mean, pulls, round):
    width = np.array([rule.index(0.0, int(n), round, ROUNDS) for n in range(1, ROUNDS + 1)])
    return mean + width[pulls.astype(int) - 1]


def _chances(rule, sums, pulls, values, generator):
    """Return the probability of each arm; for Thompson sampling that given the draws, 0 or 1."""
    if "thompson" in rule.name:
        precision = rule.deviation**-2 + pulls / rule.sigma**2
        centre = (rule.mean / rule.deviation**2 + sums / rule.sigma**2) / precision

        deviation = 1 / np.sqrt(precision)
        leaders = (centre + generator.standard_normal(sums.shape) * deviation).argmax(axis=1)
        if rule.name == "thompson":
            return np.eye(sums.shape[1])[leaders]
        others = _largest(centre, deviation)
        others[np.arange(len(sums)), leaders] = 0.0
        others /= others.sum(axis=1, keepdims=True)
        return rule.beta * np.eye(sums.shape[1])[leaders] + (1 - rule.beta) * others
    sample = sums / np.maximum(pulls, 1)
    if rule.name == "epsilon-greedy":
        greedy = np.eye(sample.shape[1])[sample.argmax(axis=1)]
        return (1 - rule.epsilon) * greedy + rule.epsilon / sample.shape[1]
    by = (values if rule.name == "learning-softmax" else sample) / rule.temperature
    shares = np.exp(by - by.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _largest(centre, deviation):
    """Return how probable it is that each of some normal draws is the largest, by quadrature.

    Drawing again until another arm leads, as the rule is defined, would go on for ever where one arm is far ahead.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    chances = np.zeros(centre.shape)
    for arm in range(centre.shape[1]):
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            at = centre[:, arm] + node * deviation[:, arm]
            below = [log_ndtr((at - centre[:, k]) / deviation[:, k]) for k in range(centre.shape[1]) if k != arm]
            chances[:, arm] += weight * np.exp(np.sum(below, axis=0))
    return np.maximum(chances, 1e-300)


def _test(rule, sums, pulls, active, place, arms):
    """Drop arms at the end of an epoch: where the arm just pulled was the last one active."""
    later = np.array([(active & (np.arange(arms) > at)).any(axis=1) for at in range(arms)])
    epoch = np.where(active, pulls, 0).max(axis=1).astype(int)
    ended = ~later[place, np.arange(len(place))] & (active.sum(axis=1) > 1) & rule.tests(np.maximum(epoch, 1))
    width = rule.width(np.maximum(epoch, 1).astype(float), ROUNDS)
    mean = np.where(active, sums / np.maximum(pulls, 1), -np.inf)
    largest = mean.max(axis=1, keepdims=True)
    stays = (mean > largest - 2 * width[:, None]) | (mean == largest)
    active[ended] &= stays[ended]


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("arms", [pytest.param(2, marks=pytest.mark.thorough), 3])
def test_draws_are_those_of_runs_that_made_the_same_choices(text, arms):
    rule = ub.parse_rule(text).for_arms(arms)
    means, actions = played(rule, arms, np.random.default_rng(5))
    codes = actions @ arms ** np.arange(ROUNDS)
    kinds, first, counts = np.unique(codes, return_index=True, return_counts=True)
    for kind in np.argsort(-counts)[:4]:
        same = codes == kinds[kind]
        log = ub.ActionLog.from_actions([actions[first[kind]].tolist()], arms=list(range(arms)))
        found = ub.posterior(log, rule, prior=PRIOR, sigma=SIGMA, particles=4_000, seed=2)
        assert (
            abs(found.log_evidence - np.log(same.mean())) < 0.05 + 4 * found.log_evidence_error + 4 / same.sum() ** 0.5
        )
        tolerance = 0.03 + 4 * means[same].std(axis=0) / np.sqrt(same.sum())
        assert (abs(found.draws.mean(axis=0) - means[same].mean(axis=0)) < tolerance).all()
        tolerance = 0.03 + 4 * means[same].std(axis=0) / np.sqrt(2 * same.sum())
        assert (abs(found.draws.std(axis=0) - means[same].std(axis=0)) < tolerance).all()
