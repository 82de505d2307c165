"""Counts that show no sign of rewards are refused, and what counts cannot show is said."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import unbandit as ub
from unbandit import ActionLog, NotIdentifiable, estimate
from unbandit.estimators.allocation import factors

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

UNIFORM = np.random.default_rng(3).multinomial(3_000, np.full(60, 1 / 60))
ROTATION = np.where(np.arange(60) < 17, 51, 50)
RULES = ["ucb:alpha=0.25", "ucb1", "lilucb:reward_range=2", "moss", "sae:alpha=0.25", "ucb:alpha=0.25,batch=2"]


def counts_log(pulls):
    return ActionLog.from_counts({f"arm {at}": int(count) for at, count in enumerate(pulls)})


def codes(notices):
    return [notice.code for notice in notices]


@pytest.mark.parametrize("pulls", [UNIFORM, ROTATION], ids=["uniform", "rotation"])
@pytest.mark.parametrize("method", [None, "counts", "naive", "bootstrap"])
@pytest.mark.parametrize("rule", RULES)
def test_even_counts_are_refused_whatever_the_rule_and_the_method(rule, method, pulls):
    with pytest.raises(NotIdentifiable, match="do not show which arm is better") as caught:
        estimate(counts_log(pulls), rule, method=method, sigma=0.5)
    assert "one row per round" in caught.value.remedy
    assert f"{pulls.min()} to {pulls.max()} times each" in str(caught.value)


def test_uniform_draws_after_an_opening_are_refused_too():
    # 40 arms, three pulls each on average: the opening alone makes the counts more even than chance
    drawn = 1 + np.random.default_rng(1).multinomial(80, np.full(40, 1 / 40))
    for pulls in (drawn, np.ones(40, int), np.full(40, 2)):
        with pytest.raises(NotIdentifiable, match="do not show which arm is better"):
            estimate(counts_log(pulls), "lilucb", sigma=0.5)


def test_batches_make_uniform_counts_scatter_more():
    pulls = 10 * np.random.default_rng(2).multinomial(400, np.full(20, 1 / 20))
    with pytest.raises(NotIdentifiable, match="as random choices would do"):
        estimate(counts_log(pulls), "ucb:alpha=0.25,batch=10", sigma=0.5)
    assert estimate(counts_log(pulls), "ucb:alpha=0.25", sigma=0.5).best  # ten times as much as chance would


def test_arms_that_were_never_there_do_not_make_counts_uneven():
    with pytest.raises(NotIdentifiable, match="50 to 51 times each"):
        estimate(counts_log([*ROTATION, *[0] * 40]), "lilucb", sigma=0.5)


@pytest.mark.parametrize("rule", [ub.UCB(alpha=0.25), ub.UCB1(), ub.LilUCB(reward_range=2)], ids=str)
def test_adaptive_counts_are_read(rule):
    means = np.random.default_rng(5).normal(0.0, 0.3, 60)
    pulls = rule.evidence(ub.Instance(means, 0.5), horizon=3_000, seed=1).pulls[0]
    result = estimate(counts_log(pulls), rule, sigma=0.5)
    assert np.isfinite(result.gaps).sum() > 50
    assert "even-counts" not in codes(result.warnings)


def test_of_several_demonstrations_even_ones_have_no_estimate():
    pulls = np.array([[900, 60, 25, 15], [251, 249, 250, 250], [880, 70, 30, 20]])
    names = np.repeat([1, 2, 3], 4)
    frame = pl.DataFrame({"demonstration": names, "arm": list("abcd") * 3, "pulls": pulls.reshape(-1)})
    log = ActionLog.from_frame(frame)
    result = estimate(log, "ucb:alpha=0.25", sigma=0.5, best_mean=1.0)
    (notice,) = [notice for notice in result.warnings if notice.code == "even-counts"]
    assert notice.demonstration == "2"
    assert "249 to 251 times each" in notice.message
    row = result["b", "2"]
    assert (row.gap, row.gap_high, row.mean, row.verdict, row.gap_low) == (None, None, None, "bounded", 0.0)
    assert result.best_by_demonstration[1] == tuple("abcd")
    assert result["b", "1"].gap is not None
    with pytest.raises(NotIdentifiable, match="in 2 demonstrations"):
        estimate(ActionLog.from_frame(frame.with_columns(pulls=pl.lit(250)).head(8)), "ucb", sigma=0.5)
    subjects = frame.with_columns(pulls=pl.lit(250)).rename({"demonstration": "subject"})
    with pytest.raises(NotIdentifiable, match="250 times each in 3 subjects"):
        estimate(ActionLog.from_frame(subjects), "ucb", sigma=0.5)


def test_demonstrations_of_one_instance_are_judged_together():
    # Each is too short to tell, all of them are not.
    rule, instance = ub.UCB(alpha=0.25), ub.Instance([1.0, 0.5, 0.0], 0.5)
    pulls = rule.evidence(instance, horizon=40, runs=30, seed=1).pulls
    names = np.repeat(np.arange(30), 3)
    frame = pl.DataFrame({"demonstration": names, "arm": list("abc") * 30, "pulls": pulls.reshape(-1)})
    pooled = estimate(ActionLog.from_frame(frame), rule, sigma=0.5, pool=True)
    assert pooled.best == ("a",)
    uniform = np.random.default_rng(0).multinomial(40, np.full(3, 1 / 3), size=30)
    with pytest.raises(NotIdentifiable, match="as random choices would do"):
        estimate(
            ActionLog.from_frame(frame.with_columns(pulls=pl.Series(uniform.reshape(-1)))), rule, sigma=0.5, pool=True
        )


def test_a_rule_that_reveals_nothing_is_refused_for_that_reason_first():
    with pytest.raises(NotIdentifiable, match="do not depend on rewards"):
        estimate(counts_log(ROTATION), "uniform", sigma=0.5)


# What counts cannot show


@pytest.mark.parametrize(
    ("rule", "options", "said"),
    [
        ("lilucb:reward_range=2", {}, ["reward_range=2.", "twice as large doubles every gap", "sigma = 0.5"]),
        ("ucb:alpha=0.25", {}, ["alpha=0.25, scale=1.414", "held back", 'scale="unknown"']),
        ("ucb1", {}, ["exploration=2."]),
        ("sae:alpha=0.25", {}, ["alpha=0.25, scale=1.414"]),
        ("klucb", {"best_mean": 0.9, "bernoulli": True, "sigma": None}, ["the rule and its parameters are right"]),
        ("ucb:alpha=0.25", {"method": "naive"}, ["constant of the naive estimator"]),
        ("ucb:alpha=0.25", {"scale": "unknown"}, ["taken as unknown"]),
    ],
)
def test_what_counts_cannot_show_stands_beside_the_numbers(rule, options, said):
    result = estimate(counts_log([900, 60, 25, 30]), rule, **({"sigma": 0.5} | options))
    (notice,) = [notice for notice in result.notes if notice.code == "counts-cannot-tell"]
    for words in said:
        assert words in notice.message
    assert notice.to_dict() in result.to_dict()["notes"]


def test_doubling_the_named_factor_doubles_every_gap():
    log = counts_log([900, 60, 25, 30])
    once, twice = (estimate(log, f"lilucb:reward_range={factor}", sigma=0.5).gaps[0] for factor in (1, 2))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-12)


def test_a_log_with_rounds_has_no_such_note():
    log = ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.0], 0.5), 500, seed=1)
    assert "counts-cannot-tell" not in codes(estimate(log, "ucb:alpha=0.25", sigma=0.5).notes)


def test_a_width_that_ends_at_zero_still_has_its_factor():
    rule = ub.parse_rule("moss").for_arms(2)
    assert factors(rule, 100) == {"scale": 1.0}
