"""Final pull counts alone: the same equations at the end; and the naive estimator. C(n) = 6 / sqrt(n)."""

from __future__ import annotations

import math

import pytest

from unbandit import SAE, UCB, ActionLog, ParameterError, estimate

Z = 1.959963984540054
INDEX, ELIMINATION = UCB(alpha=0.25, scale=1.0), SAE(alpha=0.25, scale=1.0)

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")


def counted(rule, pulls, *, sigma=1.0, **options):
    return estimate(ActionLog.from_counts(pulls), rule, horizon=10_000, sigma=sigma, **options)


def test_all_indices_sit_at_one_level():
    # gap_B = C(4) - C(36) = 3 - 1 = 2, deviation sqrt(1/4 + 1/36) = sqrt(10) / 6; gap_C = C(9) - C(36) = 1.
    # Before its last pull B was still in front: the upper end is C(3) - C(36) = 2 sqrt(3) - 1 and the noise of 3 pulls.
    result = counted(INDEX, {"A": 36, "B": 4, "C": 9}, best_mean=5.0)
    assert (result.method, result.best) == ("counts", ("A",))
    reach = Z * math.sqrt(10) / 6
    row = result["B"]
    assert (row.gap, row.gap_low, row.gap_high) == pytest.approx(
        (2, 2 - reach, 2 * math.sqrt(3) - 1 + Z * math.sqrt(13) / 6), rel=1e-12
    )
    assert (result["B"].mean, result["C"].mean) == pytest.approx((3.0, 4.0))
    assert result.notes[0].code == "counts-only"


def test_an_arm_counted_once_is_bounded_and_one_not_at_all_unseen():
    result = counted(INDEX, {"A": 36, "B": 1, "C": 0})
    assert (result["B"].verdict, result["B"].gap, result["B"].gap_high) == ("bounded", None, None)
    assert result["B"].gap_low == pytest.approx(6 - 1 - Z * math.sqrt(37 / 36), rel=1e-12)
    assert result["C"].verdict == "unseen"


def test_arms_within_one_pull_of_the_most_pulled_are_still_active():
    # n_max = 38: 37 counts as still active, 36 as eliminated.
    result = counted(ELIMINATION, {"A": 38, "B": 37, "C": 36, "D": 4})
    assert result.best == ("A", "B")
    assert (result["C"].gap, result["D"].gap) == pytest.approx((2.0, 6.0))
    assert result["B"].gap_high == pytest.approx(12 / 6 + Z * math.sqrt(2 / 36))
    assert (result["B"].gap, result["B"].gap_low) == (None, 0.0)


def test_the_last_active_arm_is_best():
    result = counted(ELIMINATION, {"A": 38, "C": 36, "B": 4})
    assert result.best == ("A",)
    assert result["C"].gap == pytest.approx(2.0)


def test_counts_can_be_asked_for_on_a_log_with_rounds():
    log = ActionLog.from_actions(list("ABC" * 4 + "AC" * 5 + "A"))
    result = estimate(log, ELIMINATION, method="counts", horizon=10_000, sigma=1.0)
    assert result.best == ("A", "C")
    assert "counts-only" not in [notice.code for notice in result.notes]  # it is what was asked for


def test_switching_cannot_be_asked_for_on_counts():
    with pytest.raises(ParameterError, match="needs the order"):
        counted(INDEX, {"A": 5, "B": 2}, method="switching")


def test_a_tie_of_counts_has_no_round():
    result = counted(INDEX, {"A": 36, "B": 36, "C": 4})
    (tied,) = [notice for notice in result.warnings if notice.code == "tied-best"]
    assert tied.round is None
    assert result["B"].gap == 0.0


def test_the_naive_estimator_is_a_constant_times_the_root_of_ln_t_over_n():
    # ln 10,000 = 9.21034; sqrt(9.21034 / 4) = 1.517428; with constant 0.75 that is 1.138071.
    result = counted(INDEX, {"A": 36, "B": 4, "C": 0}, method="naive", constant=0.75, best_mean=2.0)
    row = result["B"]
    assert row.gap == pytest.approx(1.138071, abs=1e-6)
    assert row.mean == pytest.approx(2 - row.gap)
    assert row.gap_low is row.gap_high is row.mean_low is row.mean_high is None
    assert (row.verdict, result["A"].gap, result["C"].verdict) == ("estimated", 0.0, "unseen")


@pytest.mark.parametrize("rule", [INDEX, ELIMINATION])
def test_the_naive_estimator_does_not_look_at_the_rule(rule):
    # by default its constant is sqrt(2) sigma: sqrt(2) * 1/2 * 1.517428 = 1.072984
    assert counted(rule, {"A": 36, "B": 4}, method="naive", sigma=0.5)["B"].gap == pytest.approx(1.072984, abs=1e-6)


@pytest.mark.parametrize("constant", [0.0, -1.0, math.nan, math.inf])
def test_the_naive_constant_is_positive(constant):
    with pytest.raises(ParameterError, match="constant: expected a positive number"):
        counted(INDEX, {"A": 36, "B": 4}, method="naive", constant=constant)
