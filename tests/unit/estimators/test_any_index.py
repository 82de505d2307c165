"""Closed forms of every rule: indices equated, with and without a known mean; and rules that give nothing away."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbandit import ActionLog, Bernoulli, Instance, NotIdentifiable, estimate
from unbandit.demonstrators import EliminationRule, IndexRule, parse_rule, rules
from unbandit.estimators.procedures import Anchor, can_compare, compare, intervals, quantile

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
GAUSSIAN, BERNOULLI = Instance([0.2, 0.9, 0.5, 0.7], 0.4), Instance([0.2, 0.9, 0.5, 0.7], Bernoulli())
READABLE = [
    (name, tuple(sorted(example.items())))
    for name, kind in rules().items()
    if issubclass(kind, IndexRule | EliminationRule) and kind.reveals == "values"
    for example in kind.examples
]


def made(name, example):
    rule = rules()[name](**dict(example))
    return rule, BERNOULLI if rule.bernoulli_only else GAUSSIAN


@pytest.mark.parametrize(("name", "example"), READABLE, ids=str)
@pytest.mark.parametrize("method", ["switching", "counts"])
def test_many_runs_at_once_are_read_as_their_logs_are(name, example, method):
    rule, instance = made(name, example)
    log = rule.demonstrate(instance, 400, runs=3, seed=5)
    bernoulli = instance is BERNOULLI
    one_by_one = estimate(
        log, rule, method=method, best_mean=0.9, bernoulli=bernoulli, sigma=None if bernoulli else 0.4
    ).columns
    known = Anchor(None, 0.9)
    many = compare(rule.evidence(instance, 400, runs=3, seed=5), rule, method, 400, anchor=known)
    low, high, *_ = intervals(many, instance.noise, known, quantile(0.95))
    for found, expected in ((many.gap, one_by_one.gap), (low, one_by_one.gap_low), (high, one_by_one.gap_high)):
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert np.array_equal(many.verdict, one_by_one.verdict)


@pytest.mark.parametrize("rule", ["klucb", "klucb:level=round", "ucbv", "klucb:batch=4"])
@pytest.mark.parametrize("method", ["switching", "counts"])
def test_indices_are_equal_at_the_estimates(rule, method):
    rule = parse_rule(rule)
    log = rule.demonstrate(BERNOULLI, 3_000, seed=4)
    answer = estimate(log, rule, method=method, bernoulli=True, best_mean=0.9)
    if method == "counts" and rule.batch == 1:
        at = [rule.index(row.mean, row.pulls, 3_000, 3_000) for row in answer if row.verdict in ("best", "estimated")]
        assert at == pytest.approx([at[0]] * len(at), rel=1e-6)
    errors = [abs(row.mean - true) for row, true in zip(answer, BERNOULLI.means, strict=True) if row.mean is not None]
    assert max(errors) < 0.35


@pytest.mark.parametrize("method", ["switching", "counts"])
def test_an_anchor_gives_the_best_arms_mean_and_all_others(method):
    rule = parse_rule("klucb")
    log = rule.demonstrate(BERNOULLI, 3_000, seed=4)
    from_best = estimate(log, rule, method=method, bernoulli=True, best_mean=0.9)
    known = next(row for row in from_best if row.verdict == "estimated")
    from_other = estimate(log, rule, method=method, bernoulli=True, anchor={known.arm: known.mean})
    assert [row.mean for row in from_other] == pytest.approx([row.mean for row in from_best], rel=1e-6)
    best = from_other[from_other.best[0]]
    assert best.mean_low < 0.9 < best.mean_high
    itself = estimate(log, rule, method=method, bernoulli=True, anchor={from_best.best[0]: 0.9})
    assert [row.mean for row in itself] == pytest.approx([row.mean for row in from_best])


def test_the_interval_follows_the_slope_of_the_equation():
    rule = parse_rule("klucb")
    log = ActionLog.from_counts({"A": 900, "B": 60, "C": 25})

    def mean(best):
        return estimate(log, rule, bernoulli=True, best_mean=best)["B"].mean

    row = estimate(log, rule, bernoulli=True, best_mean=0.7)["B"]
    slope = (mean(0.7 + 1e-4) - mean(0.7 - 1e-4)) / 2e-4
    added = (60 * row.mean + 2) / 64  # few successes do not show how rare they are
    own = max(row.mean * (1 - row.mean), added * (1 - added))
    deviation = math.sqrt(own / 60 + slope**2 * 0.7 * 0.3 / 900)
    assert row.gap - row.gap_low == pytest.approx(1.959964 * deviation, rel=1e-4)


def test_without_a_mean_such_a_rule_has_no_gaps():
    with pytest.raises(NotIdentifiable, match=r"klucb: .*give best_mean, or the mean of any one arm as anchor"):
        estimate(list("ABABAABAAA"), "klucb", bernoulli=True)
    with pytest.raises(NotIdentifiable, match='anchor "C" has no estimated gap'):
        estimate(list("ABCABABAABAAA"), "klucb", bernoulli=True, anchor={"C": 0.2})


def test_a_mean_that_no_index_reaches_leaves_the_arm_bounded():
    # A's index is 1 whatever B's mean: nothing excludes any.
    answer = estimate(ActionLog.from_counts({"A": 30, "B": 2}), "klucb", bernoulli=True, best_mean=1.0, horizon=100)
    assert answer["B"].verdict in ("bounded", "estimated")
    assert answer["B"].gap_low is not None


@pytest.mark.parametrize("method", [None, "switching", "counts", "naive"])
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("uniform", "choices do not depend on rewards"),
        ("explore-then-commit", "which arm it judged best, and no values"),
    ],
)
def test_rules_that_give_no_values_away(rule, said, method):
    with pytest.raises(NotIdentifiable, match=said):
        estimate(list("ABABAABAAA"), rule, sigma=1.0, method=method)
    assert not can_compare(parse_rule(rule), "naive")


@pytest.mark.parametrize("method", ["switching", "counts"])
def test_randomised_rules_have_no_closed_form(method):
    with pytest.raises(NotIdentifiable, match=f'draws its arms at random.*{method} needs. Use method="posterior"'):
        estimate(list("ABABAABAAA"), "epsilon-greedy", sigma=1.0, method=method)
    assert estimate(list("ABABAABAAA"), "epsilon-greedy", sigma=1.0, method="naive")["B"].gap > 0


def test_several_pulls_in_the_opening_and_batches_are_allowed_for():
    # B: 2 pulls in the opening and one batch of 3; before that batch it was in front. C(n) = 6 / sqrt(n).
    rule = parse_rule("ucb:alpha=0.25,scale=1,initial=2,batch=3")
    log = ActionLog.from_actions(list("ABAB" + "AAA" + "BBB" + "A" * 6))
    answer = estimate(log, rule, horizon=10_000, sigma=0.1, method="switching")
    row = answer["B"]
    assert "coarse" in [notice.code for notice in answer.notes]
    after, before = 6 / math.sqrt(5) - 6 / math.sqrt(5), 6 / math.sqrt(2) - 3 / math.sqrt(5) - 3 / math.sqrt(11)
    assert row.gap == pytest.approx((after + before) / 2)
    assert row.gap_low == pytest.approx(after - 1.959964 * 0.1 * math.sqrt(2 / 5), rel=1e-5)
    assert row.gap_high == pytest.approx(before + 1.959964 * 0.1 * math.sqrt(1 / 2 + 1 / 5), rel=1e-5)
    once = estimate(ActionLog.from_actions(list("ABAB" + "A" * 9)), rule, horizon=10_000, sigma=0.1)["B"]
    assert (once.verdict, once.gap) == ("bounded", None)
    assert once.gap_low == pytest.approx(6 / math.sqrt(2) - 6 / math.sqrt(11) - 0.1959964 * math.sqrt(1 / 2 + 1 / 11))
