"""Several known means: one level that most agree on, arms that were held back, and both answers where they disagree.

C(n) = 6 / sqrt(n), so an arm pulled n times at level V has the mean V - 6 / sqrt(n).
"""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

import unbandit as ub
from unbandit import ActionLog, NotIdentifiable, ParameterError, estimate
from unbandit.estimators.common_level import Levels

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

Z = 1.959963984540054
RULE = ub.UCB(alpha=0.25, scale=1.0)
PULLS = {"A": 3600, "B": 900, "C": 400, "D": 225, "E": 144, "F": 1}
ON_LEVEL = {name: 5 - 6 / math.sqrt(count) for name, count in PULLS.items()}  # A 4.9, B 4.8, C 4.7, D 4.6, E 4.5


def read(anchor, *, sigma=0.1, rule=RULE, **options):
    return estimate(ActionLog.from_counts(PULLS), rule, horizon=10_000, sigma=sigma, anchor=anchor, **options)


def codes(result):
    return {notice.code for notice in (*result.warnings, *result.notes)}


def test_known_means_that_agree_give_all_others():
    result = read({name: ON_LEVEL[name] for name in "BCD"})
    assert result.best == ("A",)
    for name in "ABCDE":
        assert result[name].mean == pytest.approx(ON_LEVEL[name], abs=1e-12)
        assert result[name].gap == pytest.approx(ON_LEVEL["A"] - ON_LEVEL[name], abs=1e-12)
    assert result["B"].mean_low is result["B"].mean_high is None  # it was given
    assert (result["F"].verdict, result["F"].mean) == ("bounded", None)
    assert result["F"].mean_high < 0
    assert "common-level" in codes(result)
    assert not {"anchors-disagree", "above-level"} & codes(result)
    assert result.alternatives == {}
    assert "alternatives" not in result.to_dict()


def test_the_interval_has_the_noise_of_the_arm_and_of_the_level():
    # level: three sample means with variance sigma^2 / n and steps of one pull, weighted by precision
    result, sigma = read({name: ON_LEVEL[name] for name in "BCD"}), 0.1
    counts = np.array([900.0, 400.0, 225.0])
    step = 6 / np.sqrt(counts - 1) - 6 / np.sqrt(counts)
    level = 1 / np.sum(1 / (sigma**2 / counts + step**2 / 12))
    row = result["E"]
    assert row.mean_high - row.mean == pytest.approx(Z * math.sqrt(sigma**2 / 144 + level), rel=1e-6)
    lower = 5 - 6 / math.sqrt(143)
    assert lower - row.mean_low == pytest.approx(Z * math.sqrt(sigma**2 / 143 + level), rel=1e-6)


def test_more_known_means_give_shorter_intervals():
    few, many = (read({name: ON_LEVEL[name] for name in names})["E"] for names in ("CD", "ABCD"))
    assert many.mean_high - many.mean_low < few.mean_high - few.mean_low


def test_an_arm_that_was_held_back_is_named_and_not_used():
    # A is 0.5 better than its count says: from it alone, all means would be 0.5 too high.
    anchor = {name: ON_LEVEL[name] for name in "BCD"} | {"A": ON_LEVEL["A"] + 0.5}
    result = read(anchor)
    assert result["E"].mean == pytest.approx(ON_LEVEL["E"], abs=1e-3)
    assert result.best == ("A",)
    assert result["E"].gap == pytest.approx(ON_LEVEL["A"] + 0.5 - ON_LEVEL["E"], abs=1e-3)
    (above,) = [notice for notice in result.warnings if notice.code == "above-level"]
    assert above.arm == "A"
    assert "0.5 above the common level" in above.message
    (differ,) = [notice for notice in result.warnings if notice.code == "anchors-disagree"]
    assert '"B", "C", "D"' in differ.message
    assert "mean of 4.9" in differ.message
    assert "one of 5.4" in differ.message


def test_both_answers_are_given_where_known_means_disagree():
    anchor = {name: ON_LEVEL[name] for name in "BCD"} | {"A": ON_LEVEL["A"] + 0.5}
    result = read(anchor)
    ((label, other),) = result.alternatives.items()
    assert label == 'from the mean of "A" instead'
    assert other["E"].mean == pytest.approx(ON_LEVEL["E"] + 0.5, abs=1e-3)
    shown = json.loads(result.to_json())["alternatives"][label]
    assert [row["mean"] for row in shown["arms"]] == [row.mean for row in other]
    assert label in str(result)


def test_an_arm_held_back_that_is_the_best_of_all_is_the_best():
    result = read({name: ON_LEVEL[name] for name in "BC"} | {"D": 5.3})
    assert result.best == ("D",)
    assert result["D"].gap == 0.0
    assert result["A"].gap == pytest.approx(5.3 - ON_LEVEL["A"], abs=1e-3)
    assert result["A"].gap_low < result["A"].gap < result["A"].gap_high


def test_of_two_that_disagree_the_lower_level_is_taken_and_both_are_shown():
    result = read({"B": ON_LEVEL["B"] + 0.5, "C": ON_LEVEL["C"]})
    assert result["E"].mean == pytest.approx(ON_LEVEL["E"], abs=1e-2)
    assert "neither being the larger group" in next(
        notice.message for notice in result.warnings if notice.code == "anchors-disagree"
    )
    ((_, other),) = result.alternatives.items()
    assert other["E"].mean == pytest.approx(ON_LEVEL["E"] + 0.5, abs=1e-2)


def test_noise_is_no_disagreement():
    # 0.02 off at 144 pulls is within what sigma = 0.1 allows, and not what sigma = 0.001 does
    anchor = {name: ON_LEVEL[name] for name in "BCD"} | {"E": ON_LEVEL["E"] + 0.03}
    assert "anchors-disagree" not in codes(read(anchor))
    assert "anchors-disagree" in codes(read(anchor, sigma=0.0001))


def test_the_best_mean_is_one_of_several():
    result = read({"C": ON_LEVEL["C"], "D": ON_LEVEL["D"]}, best_mean=ON_LEVEL["A"] + 0.5)
    assert "above-level" in codes(result)
    assert result["A"].mean == ON_LEVEL["A"] + 0.5
    with pytest.raises(ParameterError, match=r'"A", is given two means: 5 and 4\.9'):
        read({"A": 4.9}, best_mean=5.0)


def test_known_means_show_a_wrong_width():
    # The rule is said to have half the width that made the counts.
    half = ub.UCB(alpha=0.25, scale=0.5)
    result = read({name: ON_LEVEL[name] for name in "ABCDE"}, rule=half)
    (notice,) = [notice for notice in result.warnings if notice.code in ("width-factor", "anchors-disagree")][:1]
    assert "2 times as large" in notice.message.replace("2.0", "2")
    assert "width-factor" not in codes(read({name: ON_LEVEL[name] for name in "ABCDE"}))


def test_counts_that_are_nearly_equal_show_no_factor_of_the_width():
    # Widths equal to sixteen digits: what is left of their differences is rounding.
    for huge in (10**12, 10**15):
        counts = {"A": 4 * huge, "B": huge, "C": huge + 1, "D": huge + 2}
        log = ActionLog.from_counts(counts)
        result = estimate(log, RULE, horizon=8 * huge, sigma=0.1, anchor=dict.fromkeys("BCD", 0.5))
        assert "common-level" in codes(result)
        assert "width-factor" not in codes(result)
    deviation, step = np.full(3, 1e-9), np.zeros(3)
    width = np.array([0.5, np.nextafter(0.5, 1), 0.5])
    levels = Levels(np.arange(3), 1 - width, np.ones(3), deviation, step, width)
    assert np.isnan(levels.factor()).all()
    apart = Levels(np.arange(3), 1 - 2 * np.arange(3.0), np.ones(3), deviation, step, np.arange(3.0))
    assert apart.factor() == pytest.approx((2.0, 1e-9 / math.sqrt(2)))


def test_an_index_that_is_not_additive_has_a_level_too():
    rule, instance = ub.KLUCB(), ub.Instance([0.8, 0.6, 0.5, 0.4, 0.2], ub.Bernoulli())
    pulls = rule.evidence(instance, horizon=20_000, seed=4).pulls[0]
    log = ActionLog.from_counts(dict(zip("ABCDE", pulls.tolist(), strict=True)))
    result = estimate(log, rule, bernoulli=True, anchor={"A": 0.8, "B": 0.6, "C": 0.5})
    assert "common-level" in codes(result)
    for name, mean in (("D", 0.4), ("E", 0.2)):
        assert result[name].mean_low < mean < result[name].mean_high


def test_several_demonstrations_have_a_level_each():
    counts = [list(PULLS.values()), [count // 4 for count in list(PULLS.values())[:5]] + [1]]
    frame = pl.DataFrame({
        "demonstration": np.repeat(["x", "y"], 6), "arm": list(PULLS) * 2, "pulls": np.concatenate(counts),
    })  # fmt: skip
    # At a quarter of the counts the same means are off: C(n) is twice as large.
    result = estimate(
        ActionLog.from_frame(frame), RULE, horizon=10_000, sigma=0.1, anchor={name: ON_LEVEL[name] for name in "BCD"}
    )
    assert result["E", "x"].mean == pytest.approx(ON_LEVEL["E"], abs=1e-9)
    assert {notice.demonstration for notice in result.warnings if notice.code == "anchors-disagree"} == {"y"}
    (other,) = result.alternatives.values()
    assert other["E", "x"].mean == result["E", "x"].mean


@pytest.mark.parametrize("options", [{"method": "naive"}, {"method": "bootstrap"}, {"pool": True}, {"rule": ub.SAE()}])
def test_several_are_refused_where_there_is_no_common_level(options):
    given = dict(options)
    frame = pl.DataFrame({
        "demonstration": np.repeat(["x", "y"], 6), "arm": list(PULLS) * 2, "pulls": list(PULLS.values()) * 2,
    })  # fmt: skip
    rule = given.pop("rule", RULE)
    with pytest.raises(ParameterError, match="anchor: expected one arm with its mean; got 2"):
        estimate(ActionLog.from_frame(frame), rule, sigma=0.1, anchor={"B": 1.0, "C": 1.0}, **given)


def test_arms_without_an_estimate_are_no_anchors():
    with pytest.raises(NotIdentifiable, match="None of the arms whose mean was given"):
        estimate(ActionLog.from_counts(PULLS | {"G": 1}), RULE, horizon=10_000, sigma=0.1, anchor={"F": 1.0, "G": 1.0})


def test_an_arm_without_an_estimate_is_named_and_not_used():
    # F was pulled once: its count gives no more than a bound.
    result = read({"B": ON_LEVEL["B"], "C": ON_LEVEL["C"], "F": 3.0})
    (notice,) = [notice for notice in result.warnings if notice.code == "no-anchor"]
    assert notice.arm == "F"
    assert result["E"].mean == pytest.approx(ON_LEVEL["E"], abs=1e-9)


def test_coverage_of_means_from_three_known_ones():
    rule, rng, held, total = ub.LilUCB(reward_range=1), np.random.default_rng(0), 0, 0
    for seed in range(20):
        means = rng.normal(0.0, 0.3, 40)
        pulls = rule.evidence(ub.Instance(means, 0.3), horizon=8_000, seed=seed).pulls[0]
        log = ActionLog.from_counts({str(arm): int(count) for arm, count in enumerate(pulls)})
        result = estimate(log, rule, sigma=0.3, anchor={arm: means[arm] for arm in (1, 2, 3)})
        low, high = result.columns.mean_low[0][4:], result.columns.mean_high[0][4:]
        known = np.isfinite(low) & np.isfinite(high)
        held, total = held + int(((low <= means[4:]) & (means[4:] <= high))[known].sum()), total + int(known.sum())
    # 95% intervals, rather too long than too short; the Monte-Carlo error of 720 arms is about 1%
    assert 0.92 <= held / total <= 0.995
