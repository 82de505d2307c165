"""Several demonstrations of one instance, combined. C(n) = 6 / sqrt(n)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbandit import SAE, UCB, ActionLog, Instance, ParameterError, estimate

Z = 1.959963984540054
RULE = UCB(alpha=0.25, scale=1.0)
pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")


def counted(*records, rule=RULE, named="demonstration", **options):
    frame = {named: [], "arm": [], "pulls": []}
    for which, pulls in enumerate(records):
        for arm, count in pulls.items():
            frame[named].append(which)
            frame["arm"].append(arm)
            frame["pulls"].append(count)
    import polars as pl

    log = ActionLog.from_frame(pl.DataFrame(frame))
    return estimate(log, rule, horizon=10_000, **({"sigma": 1.0, "pool": True} | options))


def test_two_demonstrations_with_one_best_arm_are_weighted_by_their_precision():
    # gap of B: C(4) - C(36) = 2 with variance 1/4 + 1/36 = 10/36, and C(9) - C(36) = 1 with 1/9 + 1/36 = 5/36.
    # Weights 1 : 2, so the pooled gap is 4/3 with variance 1 / (36/10 + 36/5) = 10/108.
    result = counted({"A": 36, "B": 4}, {"A": 36, "B": 9})
    row = result["B"]
    assert (result.best, result.demonstrations, row.pulls) == (("A",), ("pooled",), 13)
    assert row.gap == pytest.approx(4 / 3, rel=1e-12)
    assert row.gap_low == pytest.approx(4 / 3 - Z * math.sqrt(10 / 108), rel=1e-9)
    assert row.gap_high > 4 / 3 + Z * math.sqrt(10 / 108)
    assert result["A"].gap == 0.0


def test_pooling_a_demonstration_with_itself_halves_the_variance():
    once, twice = counted({"A": 36, "B": 4}, pool=False)["B"], counted({"A": 36, "B": 4}, {"A": 36, "B": 4})["B"]
    assert twice.gap == pytest.approx(once.gap)
    assert (twice.gap - twice.gap_low) * math.sqrt(2) == pytest.approx(once.gap - once.gap_low)


def test_different_best_arms_are_linked_through_what_they_share_and_said():
    # First: B is 1 below A, C 2 below A. Second: A is 2 below B, C 1 below B, so B is best there.
    result = counted({"A": 36, "B": 9, "C": 4}, {"B": 36, "A": 4, "C": 9})
    assert "best-arms-differ" in [notice.code for notice in result.warnings]
    # least squares: comparisons with A of 1 (precision 36/5) and with B of 2 (36/10), and C with A 2, with B 1.
    weights = {("A", "B"): (1, 7.2), ("A", "C"): (2, 3.6), ("B", "A"): (2, 3.6), ("B", "C"): (1, 7.2)}
    rows, right = [], []
    for (first, second), (gap, weight) in weights.items():
        rows.append(np.sqrt(weight) * ((np.array(list("ABC")) == first) * 1.0 - (np.array(list("ABC")) == second)))
        right.append(np.sqrt(weight) * gap)
    means = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
    found = [result[arm].gap for arm in "ABC"]
    assert found == pytest.approx((means.max() - means).tolist(), abs=1e-9)
    assert result.best == ("ABC"[int(means.argmax())],)


def test_bounds_are_combined_each_at_half_the_error():
    stricter = 2.241403  # the normal quantile of 1 - 0.025 / 2
    result = counted({"A": 36, "B": 1}, {"A": 144, "B": 1}, sigma=0.5)
    row = result["B"]
    assert (row.verdict, row.gap, row.gap_high) == ("bounded", None, None)
    expected = 6 - 0.5 - stricter * 0.5 * math.sqrt(1 + 1 / 144)
    assert row.gap_low == pytest.approx(expected, rel=1e-6)


def test_means_follow_from_the_best_mean_or_any_arm():
    records = {"A": 36, "B": 4, "C": 9}, {"A": 36, "B": 9, "C": 9}
    free, best, other = counted(*records), counted(*records, best_mean=3.0), counted(*records, anchor={"B": 1.0})
    assert [best[arm].mean for arm in "ABC"] == pytest.approx([3 - free[arm].gap for arm in "ABC"])
    assert [other[arm].mean for arm in "ABC"] == pytest.approx([1 + free["B"].gap - free[arm].gap for arm in "ABC"])
    assert (other["B"].mean_low, other["B"].mean_high) == (None, None)
    assert other["C"].mean_low < other["C"].mean < other["C"].mean_high
    assert other["A"].mean_high == pytest.approx(1 + free["B"].gap_high)


def test_ratios_and_naive_gaps_are_pooled_too():
    records = {"A": 36, "B": 4, "C": 9}, {"A": 36, "B": 4, "C": 9}
    assert counted(*records, scale="unknown", reference="B")["C"].ratio == pytest.approx(0.5)
    naive = counted(*records, method="naive")["B"]
    assert (naive.gap, naive.gap_low) == (pytest.approx(math.sqrt(2 * math.log(10_000) / 4)), None)


def test_elimination_rules_that_have_not_decided_are_pooled_against_the_unknown_best():
    rule = SAE(alpha=0.25, scale=1.0)
    result = counted({"A": 37, "B": 36, "C": 4}, {"A": 37, "B": 36, "C": 9}, rule=rule)
    # gaps 6 (variance 2/4) and 4 (2/9): weights 2 and 4.5, so 30 / 6.5
    assert result["C"].gap == pytest.approx(30 / 6.5)
    assert result.best == ("A", "B")
    assert result["A"].verdict == "bounded"
    decided = counted({"A": 40, "B": 36, "C": 4}, {"A": 37, "B": 36, "C": 9}, rule=rule)
    assert decided.best == ("A",)
    assert decided["C"].gap == pytest.approx(30 / 6.5)


def test_what_is_said_of_pooled_demonstrations_names_them_as_the_log_does():
    rule = SAE(alpha=0.25, scale=1.0)
    first, last, undecided = {"A": 40, "B": 36, "C": 4}, {"A": 36, "B": 4, "C": 40}, {"A": 4, "B": 37, "C": 36}
    told = {}
    for records in ((first, last), (first, undecided), (first, first, undecided, undecided)):
        found = counted(*records, rule=rule, named="subject")
        told[len(records), records[1] is last] = {each.code: each.message for each in found.warnings}
    assert "not the same in all subjects" in told[2, True]["best-arms-differ"]
    assert told[2, False]["left-out"] == '1 subject had given up "A" and is left out.'
    assert told[4, False]["left-out"] == '2 subjects had given up "A" and are left out.'


def test_one_demonstration_is_not_pooled():
    with pytest.raises(ParameterError, match="pool: expected two demonstrations of one instance or more; got 1"):
        estimate(list("AABAB"), RULE, sigma=1.0, pool=True)


def test_pooled_estimates_are_better_and_their_intervals_hold():
    rule, instance, held, errors = UCB(alpha=0.25), Instance(np.linspace(1, 0, 4), 0.5), [], []
    for group in range(60):
        log = rule.demonstrate(instance, 500, runs=4, seed=2, first_run=4 * group)
        pooled, apart = estimate(log, rule, sigma=0.5, pool=True).columns, estimate(log, rule, sigma=0.5).columns
        held.append((pooled.gap_low <= instance.gaps)[0, 1:] & (instance.gaps <= pooled.gap_high)[0, 1:])
        errors.append([np.square(each.gap - instance.gaps).mean() for each in (pooled, apart)])
    # 180 intervals: the Monte-Carlo error is 0.016; four demonstrations divide a variance by four
    assert 0.90 < np.mean(held) < 1.0
    assert np.divide(*np.mean(errors, axis=0)) < 0.45


def test_pooled_demonstrations_are_read_by_the_papers_procedures():
    rule = UCB(alpha=0.25)
    log = rule.demonstrate(Instance([1.0, 0.5], 0.5), 300, runs=3, seed=1)
    assert estimate(log, rule, sigma=0.5, pool=True).method == "switching"
    assert estimate(log, rule, sigma=0.5).method == "bracket"
    with pytest.raises(ParameterError, match="does not average out"):
        estimate(log, rule, sigma=0.5, pool=True, method="bracket")


def test_a_note_about_one_demonstration_stands_after_that_no_arm_is_known_to_be_best():
    """Notes keep the names of demonstrations, which a pooled answer does not have."""
    result = counted({"A": 36, "B": 4}, {"A": 900, "B": 30}, sigma=20.0)
    named = [(note.code, note.demonstration) for note in result.notes]
    assert named.index(("open-best", None)) < named.index(("few-pulls", "0"))
