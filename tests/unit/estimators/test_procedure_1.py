"""Procedure 1 on tiny logs, worked by hand.

As for Procedure 2: alpha 1/4, T = 10,000 and scale 1 make C(n) = 6 / sqrt(n), so 2 C(4) = 6 and 2 C(9) = 4.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit import SAE, ActionLog, estimate

RULE = SAE(alpha=0.25, scale=1.0)
Z = 1.959963984540054
RESOLVED = "ABC" * 4 + "AC" * 5 + "AA"

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")


def worked(actions, *, sigma=1.0, **options):
    return estimate(
        ActionLog.from_actions(list(actions)), RULE, horizon=10_000, sigma=sigma, **{"method": "switching", **options}
    )


def test_an_eliminated_arm_has_twice_the_width_at_its_last_pull():
    # B is passed over in epoch 5, after 4 pulls: gap 2 C(4) = 6. C has 9 pulls when A is pulled twice in a row:
    # gap 2 C(9) = 4. Deviations sqrt(2/4) and sqrt(2/9).
    result = worked(RESOLVED + "A" * 200)
    assert result.best == ("A",)
    for arm, gap, pulls in (("B", 6.0, 4), ("C", 4.0, 9)):
        row, reach = result[arm], Z * math.sqrt(2 / pulls)
        assert (row.verdict, row.pulls) == ("estimated", pulls)
        assert (row.gap, row.gap_low, row.gap_high) == pytest.approx((gap, gap - reach, gap + reach), rel=1e-12)
    row = result["A"]
    assert (row.verdict, row.gap, row.gap_low, row.gap_high) == ("best", 0.0, None, None)
    assert result.warnings == ()


def test_an_arm_that_the_record_only_just_shows_eliminated_may_have_been_unlucky():
    # Without A's 200 pulls, B could have stayed for (4 + 11) / 2 = 7.5 epochs at most: gaps below c = 2 C(7.5) do not
    # show. The low end g has P(X >= 6) / P(X >= c) = 2.5% for X normal around g with deviation sqrt(2/4).
    result, noise = worked(RESOLVED), math.sqrt(2 / 4)
    above = NormalDist(result["B"].gap_low, noise)
    assert (1 - above.cdf(6)) / (1 - above.cdf(12 / math.sqrt(7.5))) == pytest.approx(0.025, rel=1e-6)
    assert result["B"].gap_high == pytest.approx(6 + Z * noise)
    assert result["C"].gap_low == 0.0  # it went one epoch before the last that could have been: no gap is excluded


def test_where_tests_are_rare_the_gap_lies_between_two_of_them():
    # Tests after 4, 8 ... epochs: B went at the second, so 2 C(8) < gap < 2 C(4); C was never seen to go, and has
    # survived the second; D went at the first, before which there was none.
    rule = SAE(alpha=0.25, scale=1.0, batch=4)
    log = ActionLog.from_actions(list("ABCD" * 4 + "ABC" * 4 + "AC" * 3))
    result = estimate(log, rule, horizon=10_000, sigma=1.0, method="switching")
    row = result["B"]
    low, high = 12 / math.sqrt(8) - Z * math.sqrt(2 / 8), 6 + Z * math.sqrt(2 / 4)
    assert (row.gap, row.gap_low, row.gap_high) == pytest.approx((3 + 6 / math.sqrt(8), low, high), rel=1e-12)
    assert result.best == ("A", "C")
    assert result["C"].gap_high == pytest.approx(12 / math.sqrt(8) + Z * math.sqrt(2 / 8))
    row = result["D"]
    assert (row.verdict, row.gap, row.gap_high) == ("bounded", None, None)
    assert row.gap_low == pytest.approx(6 - Z * math.sqrt(2 / 4), rel=1e-12)


def test_an_arm_whose_turn_has_not_come_again_is_still_active():
    # One round shorter, the log ends with A's pull in epoch 10: C's turn would be next. A (10 pulls) has survived
    # test 9, C (9 pulls) test 8: gap_high = 2 C(9) + z sqrt(2/9) and 2 C(8) + z sqrt(2/8). Neither is known best.
    result = worked(RESOLVED[:-1])
    assert result.best == ("A", "C")
    for arm, survived in (("A", 9), ("C", 8)):
        row = result[arm]
        assert (row.verdict, row.gap, row.gap_low) == ("bounded", None, 0.0)
        assert row.gap_high == pytest.approx(12 / math.sqrt(survived) + Z * math.sqrt(2 / survived), rel=1e-12)
    assert result["B"].gap == pytest.approx(6.0)


def test_the_end_of_an_epoch_says_nothing_about_those_in_it():
    assert worked("ABC" * 4).best == ("A", "B", "C")
    assert worked("ABC" * 4 + "A").best == ("A", "B", "C")
    assert worked("ABC" * 4 + "AC").best == ("A", "C")


def test_after_one_pull_there_is_no_upper_end():
    result = worked("ABCA")
    for arm in "BC":
        row = result[arm]
        assert (row.verdict, row.gap, row.gap_low, row.gap_high) == ("bounded", None, 0.0, None)
    assert result["A"].gap_high == pytest.approx(12 + Z * math.sqrt(2), rel=1e-12)


def test_epochs_go_in_the_order_of_the_first_whatever_it_is():
    # C A B, four times; then A is passed over in epoch 5 (round 14 pulls B), n_A = 4.
    result = worked("CAB" * 4 + "CB")
    assert result.best == ("C", "B")
    assert result["A"].gap == pytest.approx(6.0)
    assert [notice.code for notice in result.warnings] == ["unresolved"]


def test_the_first_arms_of_an_epoch_can_be_eliminated_together():
    result = worked("ABCD" * 4 + "CDCD")
    assert result.best == ("C", "D")
    assert (result["A"].gap, result["B"].gap) == pytest.approx((6.0, 6.0))


def test_while_none_is_best_the_gaps_are_said_to_be_to_an_unknown_one():
    notices = {notice.code: notice for notice in worked(RESOLVED[:-1]).warnings}
    assert '"A", "C"' in notices["unresolved"].message


def test_an_arm_never_pulled_is_unseen_and_is_not_waited_for():
    log = ActionLog.from_actions(list(RESOLVED), arms="ABCDE")
    result = estimate(log, RULE, horizon=10_000, sigma=1.0, method="switching")
    assert result.best == ("A",)
    assert [result[arm].verdict for arm in "DE"] == ["unseen", "unseen"]
    assert result["D"].gap is result["D"].gap_low is result["D"].gap_high is None


def test_one_arm_alone_among_unseen_ones_is_best():
    result = estimate(ActionLog.from_actions(["A", "A"], arms="AB"), RULE, sigma=1.0)
    assert result.best == ("A",)
    assert result["B"].verdict == "unseen"


def by_definition(actions):
    """Return the arms eliminated, by a list of the active ones and a finger on the one due."""
    order = list(dict.fromkeys(actions))
    active, due, gone = list(order), 0, []
    for arm in actions:
        if arm in gone:
            continue
        while active[due] != arm:
            gone.append(active.pop(due))
            due %= len(active)
        due = (due + 1) % len(active)
    return set(gone)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=50))
def test_any_log_is_read_epoch_by_epoch(actions):
    result = estimate(
        ActionLog.from_actions(actions, arms=range(5)), RULE, horizon=10_000, sigma=1.0, method="switching"
    )
    gone = {str(arm) for arm in by_definition(actions)}
    active = {str(arm) for arm in actions} - gone
    assert {row.arm for row in result if row.verdict == "estimated"} == gone
    assert set(result.best) == active
    assert {row.verdict for row in result if row.arm in active} == ({"best"} if len(active) == 1 else {"bounded"})


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.permutations(range(4)))
def test_listing_the_arms_in_another_order_does_not_change_an_arms_answer(actions, order):
    one, other = (
        estimate(ActionLog.from_actions(actions, arms=arms), "sae", sigma=1.0, best_mean=1.0)
        for arms in (range(4), order)
    )
    assert {row.arm: row for row in one} == {row.arm: row for row in other}
    assert set(one.best) == set(other.best)
