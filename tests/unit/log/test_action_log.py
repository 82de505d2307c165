"""The log itself: making one in memory, its parts, equality, pickling."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import unbandit.log
from unbandit.errors import LogError, ParameterError
from unbandit.log import ActionLog


def test_only_the_log_is_public() -> None:
    assert unbandit.log.__all__ == ["ActionLog"]


def test_integers_from_zero_are_kept_without_a_copy() -> None:
    actions = np.array([0, 2, 1, 0], dtype=np.int32)
    for log in (ActionLog.from_actions(actions), ActionLog.from_actions(actions, arms=range(5))):
        assert log.actions is not None
        assert log.actions.dtype == np.int32
        assert np.shares_memory(log.actions, actions)
        assert not log.actions.flags.writeable
    assert actions.flags.writeable
    grid = np.array([[0, 1], [1, 0]], dtype=np.uint8)
    log = ActionLog.from_actions(grid)
    assert log.actions is not None
    assert np.shares_memory(log.actions, grid)
    assert log.demonstrations == ("1", "2")


@pytest.mark.parametrize(("arms", "kind"), [(256, np.uint8), (257, np.uint16), (65537, np.uint32)])
def test_codes_take_the_smallest_type(arms: int, kind: type) -> None:
    for labels in ([f"arm {number}" for number in range(arms)], list(range(1, arms + 1))):
        log = ActionLog.from_actions(labels)
        assert log.actions is not None
        assert log.actions.dtype == kind
        assert log.actions.tolist() == list(range(arms))


@pytest.mark.parametrize(
    "actions",
    [
        [[1, 2, 2], [2]],
        [np.array([1, 2, 2]), np.array([2])],
        [["1", "2", "2"], ("2",)],
        [[1.0, 2.0, 2.0], [2]],
        [pl.Series([1, 2, 2]), range(2, 3)],
    ],
)
def test_demonstrations_of_different_lengths(actions: list[object]) -> None:
    log = ActionLog.from_actions(actions)
    assert log.arms == ("1", "2")
    assert log.lengths.tolist() == [3, 1]
    assert log.pulls.tolist() == [[1, 2], [0, 1]]


@pytest.mark.parametrize(
    "actions", ["ABBA", list("ABBA"), np.array(list("ABBA")), pl.Series(list("ABBA")), iter("ABBA"), tuple("ABBA")]
)
def test_one_sequence_of_any_kind(actions: object) -> None:
    log = ActionLog.from_actions(actions)
    assert log.arms == ("A", "B")
    assert log.actions is not None
    assert log.actions.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("actions", "kind", "words"),
    [
        ([], LogError, "demonstration 1 has none"),
        ([[0, 1], []], LogError, "demonstration 2 has none"),
        (np.zeros((2, 2, 2), int), ParameterError, r"shape \(2, 2, 2\)"),
        ([1, [2, 3]], ParameterError, "position 2"),
        (7, ParameterError, "got int"),
        ({"A": 3}, ParameterError, "got dict"),
        ([0, 0], LogError, r"arms=\['0', 'OTHER'\]"),
        (["A", None], LogError, "row 2"),
        ([1.0, float("nan")], LogError, "row 2"),
    ],
)
def test_what_is_no_record_is_refused(actions: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        ActionLog.from_actions(actions)


def test_codes_are_trusted() -> None:
    codes = np.array([0, 1, 1, 0, 1], dtype=np.uint8)
    log = ActionLog.from_codes(codes, ["A", "B", "C"], offsets=np.array([0, 2, 5]), demonstrations=["x", "y"])
    assert log.actions is not None
    assert np.shares_memory(log.actions, codes)
    assert log.pulls.tolist() == [[1, 1, 0], [1, 2, 0]]
    assert len(ActionLog.from_codes(codes[:4].reshape(2, 2), ["A", "B"])) == 2
    for offsets, names in (([0, 4], None), ([1, 5], None), ([0, 2, 5], ["x"])):
        with pytest.raises(ParameterError, match="offsets"):
            ActionLog.from_codes(codes, ["A", "B"], offsets=np.array(offsets), demonstrations=names)


def test_selecting_copies_nothing() -> None:
    log = ActionLog.from_actions([[0, 1, 1], [1, 0]])
    one = log.select(1)
    assert one.demonstrations == ("2",)
    assert one.actions is not None
    assert log.actions is not None
    assert np.shares_memory(one.actions, log.actions)
    assert one.demonstration(0).tolist() == [1, 0]
    for which in (-1, 2):
        with pytest.raises(ParameterError, match="0 to 1"):
            log.select(which)
    counts = ActionLog.from_counts({"A": 2, "B": 1})
    assert counts.select(0) == counts
    with pytest.raises(ParameterError, match="Use its pulls"):
        counts.demonstration(0)


def test_equality_is_by_content() -> None:
    log = ActionLog.from_actions(["A", "B", "A"])
    assert log == ActionLog.from_codes(np.array([0, 1, 0], np.int64), ["A", "B"])
    assert log != ActionLog.from_actions(["A", "B", "B"])
    assert log != ActionLog.from_actions(["A", "B", "A"], arms=["A", "B", "C"])
    assert log != ActionLog.from_counts({"A": 2, "B": 1})
    assert log != ActionLog.from_actions([["A", "B"], ["A"]])
    assert log != "log"
    with pytest.raises(TypeError):
        hash(log)
    with pytest.raises(AttributeError):
        log.arms = ()  # type: ignore[misc]


def test_pickles_and_shows_itself() -> None:
    for log in (ActionLog.from_actions([["A"], ["B", "A"]]), ActionLog.from_counts({"A": 2, "B": 1})):
        assert pickle.loads(pickle.dumps(log)) == log
    assert repr(ActionLog.from_actions([["A"], ["B", "A"]])) == "<ActionLog: 2 demonstrations, 2 arms, 3 rounds>"


def test_codes_outside_the_arms_are_refused_when_they_are_counted() -> None:
    codes = np.array([0, 1, 2**31 - 1] * 2000, np.int32)
    with pytest.raises(ParameterError, match="expected codes from 0 to 1"):
        ActionLog.from_codes(codes, ["A", "B"]).pulls  # noqa: B018
    kept = np.array([0, 1, 0])
    log = ActionLog.from_actions(kept)
    kept[:] = 10_000_000
    with pytest.raises(ParameterError, match="do not change an array"):
        log.last  # noqa: B018
    with pytest.raises(ParameterError, match="offsets"):
        ActionLog.from_codes(np.zeros(4, int), ["A", "B"], offsets=np.array([0, 3, 2, 4]))
