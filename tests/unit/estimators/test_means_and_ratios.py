"""From gaps to means by one known mean, and to ratios where the width's factor is not known. C(n) = 6 / sqrt(n)."""

from __future__ import annotations

import math

import pytest

from unbandit import SAE, UCB, ActionLog, NotIdentifiable, ParameterError, estimate

Z = 1.959963984540054
RULE = UCB(alpha=0.25, scale=1.0)
# A is best with 36 pulls, D has gap C(4) - C(36) = 2, C gap C(9) - C(36) = 1, B was pulled once.
COUNTS = ActionLog.from_counts({"A": 36, "B": 1, "C": 9, "D": 4, "E": 0})
DEVIATION = {"C": math.sqrt(1 / 9 + 1 / 36), "D": math.sqrt(1 / 4 + 1 / 36)}


def worked(**options):
    return estimate(COUNTS, RULE, horizon=10_000, **({"sigma": 1.0} | options))


def test_the_best_mean_turns_gaps_into_means():
    result = worked(best_mean=3.0)
    row, reach = result["D"], Z * DEVIATION["D"]
    assert (row.mean, row.mean_low, row.mean_high) == pytest.approx((1.0, 3 - row.gap_high, 1 + reach), rel=1e-12)
    best = result["A"]
    assert (best.mean, best.mean_low, best.mean_high) == (3.0, None, None)
    once = result["B"]
    assert (once.mean, once.mean_low) == (None, None)
    assert once.mean_high == pytest.approx(3 - once.gap_low)
    assert result["E"].mean is result["E"].mean_high is None


def test_the_best_arm_by_name_is_the_same_as_the_best_mean():
    assert list(worked(anchor={"A": 3.0})) == list(worked(best_mean=3.0))


def test_any_estimated_arm_will_do_as_anchor():
    # D known to be worth 1: the best arm is worth 1 + 2 = 3, up to the noise of D's comparison; C is worth
    # 3 - 1 = 2, up to the noise of both comparisons.
    result = worked(anchor={"D": 1.0})
    assert [result[arm].mean for arm in "ACD"] == pytest.approx([3.0, 2.0, 1.0])
    assert (result["D"].mean_low, result["D"].mean_high) == (None, None)
    reach = Z * DEVIATION["D"]
    assert (result["A"].mean_low, result["A"].mean_high) == pytest.approx((3 - reach, 3 + reach), rel=1e-12)
    both = Z * math.hypot(DEVIATION["C"], DEVIATION["D"])
    assert result["C"].mean_high == pytest.approx(2 + both, rel=1e-12)
    free = worked()["C"].gap_high  # reaches further up than down, and so the mean further down than up
    assert 2 - both > result["C"].mean_low
    assert 3 - free > result["C"].mean_low > 3 - free - reach
    assert (result["B"].mean, result["B"].mean_low) == (None, None)
    assert result["B"].mean_high is not None


def test_an_anchor_does_not_change_the_gaps():
    free, tied = worked(), worked(anchor={"D": 1.0})
    assert [row.gap for row in free] == [row.gap for row in tied]
    assert all(row.mean is row.mean_low is row.mean_high is None for row in free)


@pytest.mark.parametrize("arm", ["B", "E"])
def test_a_bounded_or_unseen_arm_is_no_anchor(arm):
    with pytest.raises(NotIdentifiable, match=f'anchor "{arm}" has no estimated gap'):
        worked(anchor={arm: 1.0})


def test_an_arm_still_active_is_no_anchor():
    log = ActionLog.from_actions(list("AB" * 5))
    with pytest.raises(NotIdentifiable, match="no estimated gap"):
        estimate(log, SAE(), sigma=1.0, anchor={"A": 1.0})


def test_several_active_arms_are_bounded_in_their_means_too():
    # both have 5 pulls and survived test 4: at least best_mean - 2 C(4) - z sqrt(2/4), at most best_mean
    log = ActionLog.from_actions(list("AB" * 5))
    with pytest.warns(UserWarning, match="still active"):
        result = estimate(log, SAE(alpha=0.25, scale=1.0), horizon=10_000, sigma=1.0, best_mean=3.0)
    for row in result:
        assert row.mean is None
        assert (row.mean_low, row.mean_high) == pytest.approx((3 - 6 - Z * math.sqrt(0.5), 3.0), rel=1e-12)


def test_an_anchor_must_be_an_arm_and_a_finite_number():
    for anchor in ({"X": 1.0}, {"D": math.nan}, {"D": math.inf}, {}):
        with pytest.raises(ParameterError, match="anchor"):
            worked(anchor=anchor)


def test_with_rounds_the_best_mean_and_anchors_exclude_each_other():
    log = ActionLog.from_actions(list("ABCABABAABAAA"))
    with pytest.raises(ParameterError, match="not both"):
        estimate(log, RULE, sigma=1.0, best_mean=1.0, anchor={"B": 1.0})
    with pytest.raises(
        ParameterError, match=r'anchor: expected one arm with its mean; got 2\. .* method="counts" only'
    ):
        estimate(log, RULE, sigma=1.0, anchor={"A": 1.0, "B": 1.0})


def test_a_label_that_is_a_number_can_be_given_as_one():
    log = ActionLog.from_counts({1: 36, 2: 4})
    assert estimate(log, RULE, horizon=10_000, sigma=1.0, anchor={2: 1.0})["1"].mean == pytest.approx(3.0)


def test_with_an_unknown_scale_gaps_are_ratios():
    # gaps 1 (C) and 2 (D): C is known best, with 9 pulls against 4, so ratios are counted in C's gap
    result = worked(scale="unknown")
    assert [result[arm].ratio for arm in "ACD"] == pytest.approx([0.0, 1.0, 2.0])
    assert result["B"].ratio is result["E"].ratio is None
    for row in result:
        assert row.gap == (0.0 if row.verdict == "best" else None)
        assert row.gap_low is row.gap_high is row.mean is row.mean_low is row.mean_high is None


def test_ratios_can_be_counted_in_any_estimated_gap():
    assert worked(scale="unknown", reference="D")["C"].ratio == pytest.approx(0.5)


@pytest.mark.parametrize("factor", [0.01, 1.0, 2.5, 400.0])
def test_ratios_do_not_change_with_the_scale(factor):
    rule = UCB(alpha=0.25, scale=factor)
    result = estimate(COUNTS, rule, horizon=10_000, scale="unknown")
    assert [result[arm].ratio for arm in "ACD"] == pytest.approx([0.0, 1.0, 2.0])


def test_an_unknown_scale_says_nothing_about_sigma():
    assert estimate(COUNTS, RULE, horizon=10_000, scale="unknown").warnings == ()


def test_ratios_of_eliminated_arms():
    # gaps 2 C(4) = 6 and 2 C(9) = 4
    log = ActionLog.from_actions(list("ABC" * 4 + "AC" * 5 + "AA"))
    result = estimate(log, SAE(alpha=0.25), scale="unknown", reference="B", method="switching")
    assert result["C"].ratio == pytest.approx(2 / 3)


def test_the_naive_estimator_has_ratios_too():
    # sqrt(9 / 4) between arms pulled 4 and 9 times
    assert worked(scale="unknown", method="naive", reference="C")["D"].ratio == pytest.approx(1.5)


@pytest.mark.parametrize("reference", ["A", "B", "E"])
def test_an_arm_without_a_gap_is_no_reference(reference):
    with pytest.raises(NotIdentifiable, match=f'"{reference}" has no estimated gap above 0'):
        worked(scale="unknown", reference=reference)


def test_without_any_gap_there_are_no_ratios():
    with pytest.raises(NotIdentifiable, match="No arm has an estimated gap"):
        estimate(ActionLog.from_counts({"A": 36, "B": 1}), RULE, scale="unknown")


def test_an_unknown_scale_gives_no_means():
    with pytest.raises(ParameterError, match="scale"):
        worked(scale="unknown", best_mean=1.0)
    with pytest.raises(ParameterError, match="reference: expected one of A"):
        worked(scale="unknown", reference="X")
