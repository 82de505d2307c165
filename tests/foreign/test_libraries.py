"""Policies of libraries that nobody here wrote: their logs, read by the rule that they are said to be.

Each policy plays bandits of ours through the library's own interface. Then, first, every pull must be the one that our
rule makes from the same rewards; second, intervals of the closed form must hold as often as they say. `make foreign`
plays more logs. A library that is not installed is skipped: `pip install mabwiser river SMPyBandits` in the same
environment.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import unbandit as ub
from unbandit.result import ESTIMATED

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, which are older than what they import

SIGMA = 0.5
ARMS, HORIZON = 4, 400
LOGS = int(os.environ.get("FOREIGN_LOGS", "25"))

Policy = tuple[Callable[[], int], Callable[[int, float], None]]  # which arm to pull, and what it gained


class Foreign(NamedTuple):
    """A policy of a library, and the rule that its logs are read by."""

    library: str
    make: Callable[[Any, int], Policy]  # from the library and a seed
    rule: str
    bernoulli: bool = False


def library(name: str) -> Any:
    """Import a library, or skip the test and say why."""
    if name == "SMPyBandits.Policies":
        import scipy.special

        scipy.special.btdtri = getattr(scipy.special, "btdtri", scipy.special.betaincinv)  # its old name
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} cannot be imported: {error}")


def mabwiser_ucb1(mab: Any, seed: int) -> Policy:
    policy = mab.MAB(arms=list(range(ARMS)), learning_policy=mab.LearningPolicy.UCB1(alpha=0.8), seed=seed)
    opening: list[tuple[int, float]] = []

    def choose() -> int:
        return len(opening) if len(opening) < ARMS else int(policy.predict())

    def learn(arm: int, reward: float) -> None:
        if len(opening) == ARMS:
            policy.partial_fit([arm], [reward])
            return
        opening.append((arm, reward))
        if len(opening) == ARMS:  # it must be fitted to something before it predicts
            arms, rewards = zip(*opening, strict=True)
            policy.fit(list(arms), list(rewards))

    return choose, learn


def river_ucb(bandit: Any, seed: int) -> Policy:
    policy = bandit.UCB(delta=0.7, seed=seed)
    return lambda: int(policy.pull(range(ARMS))), policy.update


def smpy(name: str, **given: Any) -> Callable[[Any, int], Policy]:
    def make(policies: Any, seed: int) -> Policy:
        np.random.seed(seed)  # what the library draws from
        policy = getattr(policies, name)(ARMS, **given)
        policy.startGame()
        return lambda: int(policy.choice()), policy.getReward

    return make


POLICIES = {
    "MABWiser UCB1(alpha=0.8)": Foreign("mabwiser.mab", mabwiser_ucb1, f"ucb1:exploration={2 * 0.8**2},clock=pulls"),
    "river UCB(delta=0.7)": Foreign(
        "river.bandit", river_ucb, f"ucb1:exploration={2 * 0.7**2},clock=pulls,ties=random"
    ),
    "SMPyBandits UCBalpha(alpha=4)": Foreign(
        "SMPyBandits.Policies", smpy("UCBalpha", alpha=4), "ucb1:exploration=2,clock=pulls,ties=random"
    ),
    "SMPyBandits MOSSH": Foreign("SMPyBandits.Policies", smpy("MOSSH", horizon=HORIZON), "moss:ties=random"),
    "SMPyBandits MOSSAnytime(alpha=1.35)": Foreign(
        "SMPyBandits.Policies",
        smpy("MOSSAnytime", alpha=1.35),
        f"anytime-moss:scale={math.sqrt(2.35 / 2)},clock=pulls,ties=random",
    ),
    "SMPyBandits klUCB": Foreign(
        "SMPyBandits.Policies", smpy("klUCB", tolerance=1e-12), "klucb:level=round,clock=pulls,ties=random", True
    ),
    "SMPyBandits UCBV": Foreign(
        "SMPyBandits.Policies", smpy("UCBV"), "ucbv:exploration=1,clock=pulls,ties=random", True
    ),
}


def mabwiser_greedy(mab: Any, seed: int) -> Policy:
    policy = mab.MAB(arms=list(range(ARMS)), learning_policy=mab.LearningPolicy.EpsilonGreedy(epsilon=0.1), seed=seed)
    policy.fit([0], [0.0])  # it must be fitted to something before it predicts; every mean is 0 then
    return lambda: int(policy.predict()), lambda arm, reward: policy.partial_fit([arm], [reward])


def river_greedy(bandit: Any, seed: int) -> Policy:
    policy = bandit.EpsilonGreedy(epsilon=0.1, seed=seed)
    return lambda: int(policy.pull(range(ARMS))), policy.update


NAMED = {
    name: POLICIES[name] for name in ("MABWiser UCB1(alpha=0.8)", "river UCB(delta=0.7)", "SMPyBandits MOSSH")
} | {
    "MABWiser EpsilonGreedy(epsilon=0.1)": Foreign("mabwiser.mab", mabwiser_greedy, "epsilon-greedy:initial=0"),
    "river EpsilonGreedy(epsilon=0.1)": Foreign("river.bandit", river_greedy, "epsilon-greedy:initial=0"),
}  # fmt: skip
"""Policies whose rule `identify` is to find."""

every_policy = pytest.mark.parametrize("name", POLICIES)


def played(foreign: Foreign, runs: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Let a policy play bandits with random means; give the means, the actions and the rewards of each."""
    found = library(foreign.library)
    for run in range(runs):
        generator = np.random.default_rng([7, run])
        means = generator.uniform(0, 1, ARMS) if foreign.bernoulli else generator.standard_normal(ARMS)
        choose, learn = foreign.make(found, run)
        actions, rewards = np.empty(HORIZON, np.int64), np.empty(HORIZON)
        for round in range(HORIZON):
            arm = choose()
            noise = generator.standard_normal()
            drawn = float(generator.random() < means[arm]) if foreign.bernoulli else means[arm] + SIGMA * noise
            learn(arm, drawn)
            actions[round], rewards[round] = arm, drawn
        yield means, actions, rewards


@every_policy
def test_every_pull_is_the_one_that_our_rule_makes(name):
    foreign = POLICIES[name]
    rule = ub.parse_rule(foreign.rule).for_arms(ARMS)
    for _, actions, rewards in played(foreign, 2):
        assert sorted(actions[:ARMS]) == list(range(ARMS))
        for at in range(ARMS, HORIZON):
            pulls = np.bincount(actions[:at], minlength=ARMS)
            means = np.bincount(actions[:at], rewards[:at], ARMS) / pulls
            index = [rule.index(float(means[arm]), int(pulls[arm]), at + 1, HORIZON) for arm in range(ARMS)]
            assert index[actions[at]] > max(index) - 1e-6


@every_policy
def test_intervals_of_the_closed_form_hold(name):
    foreign, held = POLICIES[name], []
    for means, actions, _ in played(foreign, LOGS):
        log = ub.ActionLog.from_codes(actions.astype(np.uint8), [str(arm) for arm in range(ARMS)])
        known = {"best_mean": float(means[log.pulls[0].argmax()])} if foreign.bernoulli else {"sigma": SIGMA}
        answer = ub.estimate(log, foreign.rule, **known)
        gaps = means[log.pulls[0].argmax()] - means
        columns = answer.columns
        low, high, verdict = columns.gap_low[0], columns.gap_high[0], columns.verdict[0]
        truth = means.max() - means if not foreign.bernoulli else gaps
        held += ((low <= truth) & (truth <= high))[verdict == ESTIMATED].tolist()
    error = math.sqrt(0.05 * 0.95 / len(held))
    print(f"{name}: {np.mean(held):.1%} of {len(held)} intervals hold")
    assert len(held) > LOGS
    assert 0.92 - 2.5 * error < np.mean(held) < 0.98 + 2.5 * error


@pytest.mark.parametrize("name", NAMED)
def test_identify_leaves_the_rule_of_a_library_and_names_no_other(name):
    foreign = NAMED[name]
    own = ub.parse_rule(foreign.rule).name
    for _, actions, _ in played(foreign, 2):
        log = ub.ActionLog.from_codes(actions.astype(np.uint8), [str(arm) for arm in range(ARMS)])
        found = ub.identify(log, sigma=SIGMA)
        same = {own, *(each.name for each in found.candidates if own in {twin.name for twin in each.twins})}
        print(f"{name}: {found.answer()}")
        assert found.verdict != "none fits", found.answer()
        assert same & set(found.left), found.answer()
