"""How well counts that follow rewards are told from counts that do not: plain simulators, written for this test.

The rules are played pull by pull in plain NumPy, so that nothing here rests on the package's own simulations.
"""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import ActionLog, NotIdentifiable, estimate

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

SIGMA = 0.5


def ucb(pulls, round, horizon):
    return np.sqrt(2 * (horizon**0.25 - 1) / 0.25 / pulls)


def ucb1(pulls, round, horizon):
    return np.sqrt(2 * np.log(round) / pulls)


def lilucb(pulls, round, horizon):
    return 2 * np.sqrt(2 * np.log(4 * pulls**2 / 0.05) / pulls)


RULES = {"ucb:alpha=0.25": ucb, "ucb1": ucb1, "lilucb:reward_range=2,delta=0.05": lilucb}


def play(width, means, horizon, rng):
    """Return how often each arm was pulled by a rule that takes the largest sample mean plus width."""
    pulls, sums = np.ones(means.size), means + SIGMA * rng.standard_normal(means.size)
    for round in range(means.size + 1, horizon + 1):
        arm = int(np.argmax(sums / pulls + width(pulls, round, horizon)))
        pulls[arm] += 1
        sums[arm] += means[arm] + SIGMA * rng.standard_normal()
    return pulls.astype(int)


def uniform(arms, horizon, rng):
    return rng.multinomial(horizon, np.full(arms, 1 / arms))


def after_opening(arms, horizon, rng):
    return 1 + rng.multinomial(horizon - arms, np.full(arms, 1 / arms))


def rotation(arms, horizon, rng):
    return rng.permutation(np.bincount(np.arange(horizon) % arms, minlength=arms))


def disturbed_rotation(arms, horizon, rng):
    """Take arms in turn, but lose one showing in ten: what real round-robin systems look like."""
    return rng.binomial(rotation(arms, horizon, rng), 0.9)


def is_refused(pulls, rule):
    log = ActionLog.from_counts({str(at): int(count) for at, count in enumerate(pulls)})
    try:
        estimate(log, rule, sigma=SIGMA)
    except NotIdentifiable as error:
        return "do not show which arm is better" in str(error)
    return False


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("arms", "per_arm", "runs"), [(30, 40, 8), (30, 70, 6), (100, 20, 4), (300, 20, 2)])
def test_counts_of_adaptive_rules_are_not_refused(rule, arms, per_arm, runs):
    # Means scatter by 0.3, less than a reward does. None of 60 runs is refused; at 30 arms and 20 pulls per arm, 3 of
    # 12 by the widest of the three rules are.
    rng = np.random.default_rng(arms + per_arm)
    drawn = [play(RULES[rule], rng.normal(0, 0.3, arms), arms * per_arm, rng) for _ in range(runs)]
    assert sum(is_refused(pulls, rule) for pulls in drawn) == 0


@pytest.mark.parametrize("allocation", [uniform, after_opening, rotation, disturbed_rotation])
@pytest.mark.parametrize(("arms", "per_arm"), [(4, 50), (30, 5), (30, 70), (300, 5), (300, 70)])
def test_allocations_that_ignore_rewards_are_refused(allocation, arms, per_arm):
    # One in a thousand is let through by design: of 200, none is expected, and two have a probability of 2%.
    rng = np.random.default_rng(arms + per_arm)
    drawn = [allocation(arms, arms * per_arm, rng) for _ in range(200)]
    assert sum(not is_refused(pulls, "lilucb:reward_range=2") for pulls in drawn) <= 1


@pytest.mark.parametrize(("arms", "per_arm"), [(300, 5), (30, 5)])
def test_five_pulls_per_arm_are_too_few_for_a_wide_width(arms, per_arm):
    # The rule has hardly done more than its opening: its counts are more even than chance, and are refused.
    rng = np.random.default_rng(1)
    rule = "lilucb:reward_range=2,delta=0.05"
    pulls = play(lilucb, rng.normal(0, 0.3, arms), arms * per_arm, rng)
    assert is_refused(pulls, rule)


def test_two_arms_are_refused_only_if_they_are_nearly_equal():
    # 1,000 rounds of two arms: gaps of 0.3 are read in all of 20 runs; of 0, in few.
    rng = np.random.default_rng(2)
    refused = {
        gap: sum(is_refused(play(ucb, np.array([0.0, -gap]), 1_000, rng), "ucb:alpha=0.25") for _ in range(20))
        for gap in (0.3, 0.0)
    }
    assert refused[0.3] == 0
    assert refused[0.0] >= 2
