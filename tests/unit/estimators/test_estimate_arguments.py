"""What `estimate` takes for a log and a rule, and what it refuses."""

from __future__ import annotations

import pytest

from unbandit import UCB, ActionLog, LogError, NotIdentifiable, ParameterError, estimate
from unbandit.demonstrators import IndexRule

ACTIONS = list("ABAAABA")


def test_a_log_may_be_a_path_or_a_sequence(tmp_path):
    path = tmp_path / "log.csv"
    ActionLog.from_actions(ACTIONS).write(path)
    expected = list(estimate(ActionLog.from_actions(ACTIONS), "ucb", sigma=1.0))
    for log in (path, str(path), ACTIONS, tuple(ACTIONS)):
        assert list(estimate(log, "ucb", sigma=1.0)) == expected


def test_text_is_a_path_and_not_a_row_of_letters(tmp_path):
    with pytest.raises(LogError, match="file not found"):
        estimate(str(tmp_path / "nothing.csv"), "ucb", sigma=1.0)


def test_a_rule_may_be_text():
    log = ActionLog.from_actions(ACTIONS)
    by_text = estimate(log, "ucb:alpha=0.3,scale=2", sigma=1.0)
    assert list(by_text) == list(estimate(log, UCB(alpha=0.3, scale=2.0), sigma=1.0))
    assert by_text.rule == str(UCB(alpha=0.3, scale=2.0)) == "ucb:alpha=0.3,scale=2.0"


@pytest.mark.parametrize("rule", ["", "ucbb", "ucb:alpha=1", "ucb:alpha=-0.1", "ucb:alpha", "ucb:scale=0", "ucb:x=1"])
def test_a_rule_must_be_one(rule):
    with pytest.raises(ParameterError):
        estimate(ActionLog.from_actions(ACTIONS), rule, sigma=1.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"method": "magic"},
            'method: expected one of bracket, switching, counts, naive, posterior, bootstrap; got "magic"',
        ),
        ({"scale": "free"}, "scale: expected"),
        ({"best_mean": float("nan")}, "best_mean: expected a finite number"),
        ({"best_mean": float("inf")}, "best_mean: expected a finite number"),
    ],
)
def test_options_out_of_range(options, said):
    with pytest.raises(ParameterError, match=said):
        estimate(ActionLog.from_actions(ACTIONS), "ucb", sigma=1.0, **options)


def test_a_rule_whose_index_is_not_additive_needs_a_known_mean():
    class Multiplied(IndexRule):
        """Pull the largest mean times something."""

        name = "multiplied"

    with pytest.raises(NotIdentifiable, match=r"multiplied: .* give best_mean, or the mean of any one arm as anchor"):
        estimate(ActionLog.from_actions(ACTIONS), Multiplied(), sigma=1.0)
    naive = estimate(ActionLog.from_actions(ACTIONS), Multiplied(), sigma=1.0, method="naive")
    assert naive["B"].verdict == "estimated"


def test_one_round_is_a_log():
    with pytest.warns(UserWarning, match="ends in round 1"):
        result = estimate(ActionLog.from_actions(["A"], arms="AB"), "ucb", sigma=1.0)
    assert [row.verdict for row in result] == ["best", "unseen"]
