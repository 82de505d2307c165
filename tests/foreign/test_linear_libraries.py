"""MABWiser's LinUCB, LinGreedy and LinTS, given the rewards of our runs: each of their choices is the one that we made.

MABWiser fits one ridge regression per arm: our disjoint model. It is skipped where it is not installed (`pip install
mabwiser`). Before an arm's first pull it takes `A` for its inverse, which is the same for a ridge of 1 alone.
"""

from __future__ import annotations

import numpy as np
import pytest

import unbandit as ub

pytestmark = pytest.mark.filterwarnings("ignore")  # of the library, which is older than what it imports

ARMS, SIZE, ROUNDS = 4, 3, 300


def mabwiser():
    return pytest.importorskip("mabwiser.mab", reason="MABWiser is not installed", exc_type=ImportError)


def run_of(rule, seed=5):
    """Return contexts, choices and rewards of one of our runs."""
    generator = np.random.default_rng(seed)
    contexts = generator.normal(size=(ROUNDS, SIZE))
    instance = ub.ContextInstance(generator.normal(size=(ARMS, SIZE)), 0.5)
    log = rule.demonstrate(instance, contexts, seed=seed, rewards=True)
    return contexts, log.chosen, log.rewards


def followed(policy, contexts, chosen, rewards):
    """Teach a policy the first round, then yield it before every other round, taught all rounds before."""
    policy.fit([int(chosen[0])], [rewards[0]], contexts[:1])
    for t in range(1, ROUNDS):
        yield t, policy
        policy.partial_fit([int(chosen[t])], [rewards[t]], contexts[t : t + 1])


@pytest.mark.parametrize(
    ("rule", "learner"),
    [
        (ub.LinUCB(alpha=1.3, disjoint=True), lambda policy: policy.LinUCB(alpha=1.3, l2_lambda=1)),
        (ub.LinEpsilonGreedy(epsilon=0, disjoint=True), lambda policy: policy.LinGreedy(epsilon=0, l2_lambda=1)),
    ],
    ids=["LinUCB", "LinGreedy"],
)
def test_every_choice_is_theirs(rule, learner):
    library = mabwiser()
    contexts, chosen, rewards = run_of(rule)
    policy = library.MAB(list(range(ARMS)), learner(library.LearningPolicy), seed=1)
    theirs = [policy.predict(contexts[t : t + 1]) for t, policy in followed(policy, contexts, chosen, rewards)]
    assert theirs == chosen[1:].tolist()
    assert len(set(theirs)) == ARMS


def test_thompson_sampling_draws_from_the_same_posterior():
    library = mabwiser()
    rule = ub.LinTS(v=0.7, disjoint=True)
    contexts, chosen, rewards = run_of(rule)
    policy = library.MAB(list(range(ARMS)), library.LearningPolicy.LinTS(alpha=0.7, l2_lambda=1), seed=1)
    for _ in followed(policy, contexts, chosen, rewards):
        pass
    context, draws = contexts[:1], 4_000
    values = np.empty((draws, ARMS))
    for arm in range(ARMS):
        x, y = contexts[chosen == arm], rewards[chosen == arm]
        precision = np.eye(SIZE) + x.T @ x
        model = policy._imp.arm_to_model[arm]
        assert model.beta == pytest.approx(np.linalg.solve(precision, x.T @ y))
        z = np.random.default_rng([2, arm]).normal(size=(draws, SIZE))
        theta = model.beta + rule.v * np.linalg.solve(np.linalg.cholesky(precision).T, z.T).T
        values[:, arm] = theta @ context[0]
    ours = np.bincount(values.argmax(axis=1), minlength=ARMS) / draws
    theirs = np.bincount(policy.predict(np.repeat(context, draws, axis=0)), minlength=ARMS) / draws
    assert ours == pytest.approx(theirs, abs=4 * np.sqrt(0.5 / draws))
