"""Values that no rewards of the known range can have are warned of, whatever the method."""

from __future__ import annotations

import numpy as np
import pytest

import unbandit as ub
from unbandit import ActionLog, estimate

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

# A width five times too large: gaps of rewards of 0 and 1 come out far above 1.
RIGHT, WIDE = ub.UCB(alpha=0.25, scale=0.5), ub.UCB(alpha=0.25, scale=2.5)
INSTANCE = ub.Instance([0.9, 0.6, 0.3], ub.Bernoulli())


@pytest.fixture(scope="module")
def log():
    return RIGHT.demonstrate(INSTANCE, 1_000, seed=1)


def impossible(result):
    return [notice for notice in result.warnings if notice.code == "impossible-value"]


@pytest.mark.parametrize(
    "options",
    [{"method": "switching"}, {"method": "counts"}, {"method": "naive", "constant": 9.0}],
)
def test_a_gap_above_1_of_rewards_of_0_and_1(log, options):
    (notice,) = impossible(estimate(log, WIDE, bernoulli=True, **options))
    assert "The gap of arm " in notice.message
    assert "rewards of 0 and 1 cannot differ by more than 1" in notice.message
    assert estimate(log, WIDE, bernoulli=True, **options)[notice.arm].gap > 1
    assert not impossible(estimate(log, RIGHT, bernoulli=True))


def test_the_furthest_arm_is_named_and_the_others_counted(log):
    result = estimate(log, WIDE, bernoulli=True)
    (notice,) = impossible(result)
    assert notice.arm == max(result, key=lambda row: row.gap).arm
    assert notice.to_dict() in result.to_dict()["warnings"]


def test_a_mean_outside_0_and_1(log):
    notices = impossible(estimate(log, WIDE, bernoulli=True, best_mean=0.9))
    assert ["gap" in notice.message.split(" of ")[0] for notice in notices] == [True, False]
    assert "average between 0 and 1" in notices[1].message
    assert "The mean of arm" in notices[1].message
    assert impossible(estimate(log, RIGHT, bernoulli=True, best_mean=0.9)) == []
    (above,) = [
        notice
        for notice in impossible(estimate(log, RIGHT, bernoulli=True, anchor={"2": 0.9}))
        if "mean of" in notice.message
    ]
    assert above.arm == "0"


def test_a_bound_can_be_impossible_too():
    # B was pulled once: its gap is at least C(1) - C(3599), less the noise.
    result = estimate(ActionLog.from_counts({"A": 3_599, "B": 1}), ub.UCB(alpha=0.25), bernoulli=True)
    assert result["B"].gap is None
    (notice,) = impossible(result)
    assert "is at least" in notice.message


def test_an_interval_that_holds_possible_values_is_said():
    # C(n) = 6 / sqrt(n) at T = 10,000: a gap of 6 / 5 - 6 / 60 = 1.1, with a deviation of 0.1
    result = estimate(ActionLog.from_counts({"A": 3_600, "B": 25}), ub.UCB(scale=1.0), horizon=10_000, bernoulli=True)
    assert result["B"].gap_low < 1 < result["B"].gap
    (notice,) = impossible(result)
    assert "Its interval does hold possible values." in notice.message


def test_a_gap_beyond_the_range_that_the_rule_has():
    log = ActionLog.from_counts({"A": 3_000, "B": 4})
    rule = ub.LilUCB(reward_range=1.0)
    result = estimate(log, rule, sigma=0.3)
    assert result["B"].gap > 1
    (notice,) = impossible(result)
    assert "rewards in a range of 1, as the rule has it" in notice.message
    # Rewards that scatter by more than half of the range have no such range.
    assert not impossible(estimate(log, rule, sigma=0.6))
    assert not impossible(estimate(log, ub.UCB(), sigma=0.3))


def test_of_many_demonstrations_each_is_looked_at():
    logs = RIGHT.demonstrate(INSTANCE, 1_000, runs=30, seed=2)
    (notice,) = impossible(estimate(logs, WIDE, bernoulli=True))
    assert notice.count == 30


def test_posteriors_are_looked_at_too():
    # Gaussian rewards in a range of 1, by the rule, and a record that shows a gap far beyond it
    rule, truth = ub.LilUCB(reward_range=0.5), ub.Instance([3.0, 0.0], 0.2)
    log = rule.demonstrate(truth, 150, seed=1)
    options = {"sigma": 0.2, "particles": 100, "seed": 1}
    assert [notice.arm for notice in impossible(estimate(log, rule, method="posterior", **options))] == ["1"]
    assert [notice.arm for notice in impossible(ub.posterior(log, rule, **options))] == ["1"]
    near = rule.demonstrate(ub.Instance([0.3, 0.0], 0.2), 150, seed=1)
    assert not impossible(ub.posterior(near, rule, **options))


def test_ratios_have_no_range(log):
    result = estimate(log, WIDE, bernoulli=True, scale="unknown")
    assert not impossible(result)
    assert np.isnan(result.columns.gap_low).all()
