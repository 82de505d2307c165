"""Procedure 2 on tiny logs, worked by hand.

The rule is chosen so that widths are plain numbers: alpha 1/4 and T = 10,000 give G = (10 - 1) / (1/4) = 36, and with
scale 1 the width is C(n) = 6 / sqrt(n): C(1) = 6, C(4) = 3, C(9) = 2, C(36) = 1.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from unbandit import UCB, ActionLog, AssumptionWarning, estimate

RULE = UCB(alpha=0.25, scale=1.0)
Z = 1.959963984540054  # the 97.5% point of the normal distribution
WORKED = "ABC" + "A" * 8 + "BBB" + "AAA" + "B"


def worked(actions=WORKED, *, sigma=1.0, **options):
    return estimate(
        ActionLog.from_actions(list(actions)), RULE, horizon=10_000, sigma=sigma, **{"method": "switching", **options}
    )


def test_the_gap_is_the_difference_of_the_widths_at_the_switching_round():
    # A is pulled 12 times: it is best. B's last pull, round 18, comes after A's last, round 17, so the switching
    # round is its pull before that, round 14: B has been pulled 4 times then, that one included, and A 9 times.
    # gap = C(4) - C(9) = 3 - 2 = 1; its deviation is sqrt(1/4 + 1/9) = sqrt(13) / 6. Before that pull B had 3, and its
    # index was still in front of A's, which came down from C(9) to C(12) by the end: the upper end starts halfway.
    row = worked()["B"]
    assert (row.verdict, row.pulls) == ("estimated", 5)
    assert row.gap == pytest.approx(1.0, rel=1e-12)
    reach = Z * math.sqrt(13) / 6
    assert row.gap_low == pytest.approx(1 - reach, rel=1e-12)
    high = 2 * math.sqrt(3) - (2 + math.sqrt(3)) / 2 + Z * math.sqrt(1 / 3 + 1 / 9)
    assert row.gap_high == pytest.approx(high, rel=1e-12)


def test_without_the_pull_after_the_best_arms_last_the_answer_is_the_same():
    with_it, without = worked()["B"], worked(WORKED[:-1])["B"]
    assert without.pulls == 4
    assert (with_it.gap, with_it.gap_low, with_it.gap_high) == (without.gap, without.gap_low, without.gap_high)


def test_an_arm_pulled_only_in_the_opening_is_bounded_from_below():
    # C is pulled once, A 12 times: gap >= C(1) - C(12) - z sigma sqrt(1 + 1/12) = 6 - sqrt(3) - 1.0200 = 3.2480.
    row = worked(sigma=0.5)["C"]
    assert (row.verdict, row.gap, row.gap_high) == ("bounded", None, None)
    assert row.gap_low == pytest.approx(6 - math.sqrt(3) - Z / 2 * math.sqrt(13 / 12), rel=1e-12)
    assert row.gap_low == pytest.approx(3.2480, abs=1e-4)


def test_where_one_unlucky_reward_would_do_the_bound_is_lower():
    # With sigma 1 the bound starts only 4.1 deviations above 0: less than 4.75, which luck exceeds once in a million
    # times. Its error is then a fiftieth of 2.5%, so z = 3.2905.
    assert worked()["C"].gap_low == pytest.approx(6 - math.sqrt(3) - 3.2905267 * math.sqrt(13 / 12), rel=1e-6)


def test_a_bound_is_not_let_below_0():
    assert worked(sigma=100.0)["C"].gap_low == 0.0


def test_the_end_of_an_estimated_arms_interval_may_lie_below_0():
    assert worked(sigma=100.0)["B"].gap_low == pytest.approx(1 - 100 * Z * math.sqrt(13) / 6)


def test_the_best_arm_has_gap_0_and_no_ends():
    result = worked()
    row = result["A"]
    assert result.best == ("A",)
    assert (row.verdict, row.gap, row.gap_low, row.gap_high) == ("best", 0.0, None, None)


def test_an_arm_reconsidered_only_after_the_best_arms_last_pull_is_bounded():
    # B: round 2, then round 6, after A's last pull. Its only switching round is in the opening: never reconsidered.
    # A has 4 pulls, so gap >= C(1) - C(4) - z sigma sqrt(1 + 1/4) = 6 - 3 - 1.0957.
    row = worked("ABAAAB", sigma=0.5)["B"]
    assert (row.verdict, row.gap, row.gap_high) == ("bounded", None, None)
    assert row.gap_low == pytest.approx(3 - Z / 2 * math.sqrt(1.25), rel=1e-12)


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_an_arm_last_pulled_before_the_best_arms_first_is_bounded():
    row = worked("BBAAAA")["B"]
    assert (row.verdict, row.gap, row.gap_high) == ("bounded", None, None)


def test_any_permutation_of_the_arms_is_an_opening():
    # C A B: A has been pulled once when B is first pulled; B's second pull, round 8, makes n_B = 2 with n_A = 5.
    result = worked("CAB" + "A" * 4 + "B" + "A")
    assert result.warnings == ()
    assert result["B"].gap == pytest.approx(6 / math.sqrt(2) - 6 / math.sqrt(5))


def test_a_gap_below_0_is_kept():
    # B overtakes the later best arm A early on: at B's last pull B has 9, A 4, so C(9) - C(4) = -1.
    row = worked("AB" + "B" * 7 + "AAAB" + "A" * 10)["B"]
    assert row.verdict == "estimated"
    assert row.gap == pytest.approx(-1.0)


def by_definition(actions, arms):
    """Return each arm's verdict and point, read off the definition round by round."""
    best = max(range(arms), key=actions.count)

    def width(pulls):
        return 6 / math.sqrt(pulls)

    answer = {}
    for arm in range(arms):
        counts = None
        for at, pulled in enumerate(actions):
            if pulled == arm and best in actions[at + 1 :]:
                counts = actions[: at + 1].count(arm), actions[: at + 1].count(best)
        if arm == best:
            answer[str(arm)] = "best", 0.0
        elif arm not in actions:
            answer[str(arm)] = "unseen", None
        elif counts is None or counts[0] < 2 or counts[1] == 0:
            answer[str(arm)] = "bounded", None
        else:
            answer[str(arm)] = "estimated", width(counts[0]) - width(counts[1])
    return answer


@given(
    st.integers(2, 5).flatmap(lambda arms: st.tuples(st.just(arms), st.lists(st.integers(0, arms - 1), max_size=40)))
)
@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_any_log_is_read_as_the_definition_says(log):
    arms, tail = log
    actions = [*range(arms), *tail]
    found = estimate(
        ActionLog.from_actions(actions, arms=range(arms)), RULE, horizon=10_000, sigma=1.0, method="switching"
    )
    for row in found:
        verdict, gap = by_definition(actions, arms)[row.arm]
        assert row.verdict == verdict
        assert row.gap == (gap if gap is None else pytest.approx(gap, abs=1e-12))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.permutations(range(4)))
@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_listing_the_arms_in_another_order_does_not_change_an_arms_answer(actions, order):
    counts = sorted(actions.count(arm) for arm in range(4))
    assume(counts[-1] > counts[-2])  # of tied arms the first listed is taken as best
    one, other = (
        estimate(ActionLog.from_actions(actions, arms=arms), "ucb", sigma=1.0, best_mean=1.0)
        for arms in (range(4), order)
    )
    assert {row.arm: row for row in one} == {row.arm: row for row in other}
    assert one.best == other.best


def test_after_a_broken_opening_a_bound_claims_only_what_the_pulls_support():
    # A was pulled 5 times before B's first pull: its index then stood at C(5) above its mean, not at C(1).
    rule = UCB(alpha=0.25, scale=1.0)
    with pytest.warns(AssumptionWarning, match="opening"), pytest.warns(AssumptionWarning, match="mid-run"):
        answer = estimate(list("AAAAA" + "B" * 100), rule, sigma=0.1)
    widths = rule.width(np.array([5.0, 100.0]), 105)
    expected = widths[0] - widths[1] - 1.959964 * 0.1 * np.sqrt(1 / 5 + 1 / 100)
    assert answer["A"].verdict == "bounded"
    assert answer["A"].gap_low == pytest.approx(expected)
