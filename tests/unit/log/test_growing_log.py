"""A log that grows: at every moment the same as all rounds so far read at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit import ActionLog, LogError, ParameterError
from unbandit.log.growth import GrowingLog

LABELS = {"numbers": ["10", "9", "2", "33"], "texts": ["b", "a", "c", "none"], "mixed": ["1", "x", "02", "2"]}


def whole(rows):
    """Read everything so far at once, demonstrations in the order in which they first appeared."""
    names = list(dict.fromkeys(name for name, _ in rows))
    import polars as pl

    frame = pl.DataFrame(rows, schema=["demonstration", "arm"], orient="row")
    return ActionLog.from_frame(frame), names


FIELDS = {
    "counts": (),
    "switching": ("own", "of_best", "rounds"),
    "epochs": ("passed", "broken", "broken_arm"),
}
"""What a growing log must have counted for each need, beside pulls and each arm's first and last round."""


@pytest.mark.parametrize("need", FIELDS)
@given(data=st.data())
def test_every_moment_equals_reading_everything_so_far(need, data):
    labels = LABELS[data.draw(st.sampled_from(sorted(LABELS)))]
    log, rows = GrowingLog(need=need), []
    for _ in range(data.draw(st.integers(1, 8))):
        name = data.draw(st.sampled_from("xyz"))
        actions = data.draw(st.lists(st.sampled_from(labels), max_size=9))
        log.update(actions, name)
        rows += [(name, action) for action in actions]
        if len({action for _, action in rows}) < 2:
            continue
        expected, names = whole(rows)
        assert (log.arms, log.demonstrations) == (expected.arms, tuple(names))
        assert log.lengths.tolist() == expected.lengths.tolist()
        assert log.pulls.tolist() == expected.pulls.tolist()
        ours, theirs = log.tallied(need), expected.tallied(need)
        for field in ("pulls", "first", "last", *FIELDS[need]):
            assert getattr(ours, field).tolist() == getattr(theirs, field).tolist(), field
        log = GrowingLog.restored(*log.state())


def test_long_updates_and_many_arms():
    actions = np.random.default_rng(2).integers(0, 300, 30_000)
    log = GrowingLog()
    for at in range(0, actions.size, 777):
        log.update(actions[at : at + 777])
    expected = ActionLog.from_actions(actions).tallied("switching")
    for ours, theirs in zip(log.tallied("switching").at_switching, expected.at_switching, strict=True):
        assert ours.tolist() == theirs.tolist()


def test_integers_are_positions_where_arms_have_names():
    log = GrowingLog(["A", "B", "C"])
    log.update(np.array([2, 0, 2]))
    log.update(["B"])
    assert log.pulls.tolist() == [[1, 1, 2]]
    assert log.arms == ("A", "B", "C")
    with pytest.raises(ParameterError, match="positions from 0 to 2; got 3 in place 2"):
        log.update([0, 3])


@pytest.mark.parametrize(
    ("actions", "said"),
    [(["C", ""], "a blank cell"), (["C", None], "a blank cell"), ([1.0, float("nan")], "got nan"), ([["A"]], "List")],
)
def test_what_is_refused_leaves_nothing_behind(actions, said):
    log = GrowingLog()
    log.update(["A", "B"])
    with pytest.raises(LogError, match=said):
        log.update(actions, "other")
    assert (log.arms, log.demonstrations, log.pulls.tolist()) == (("A", "B"), ("1",), [[1, 1]])
    log.update(["B"])
    assert log.pulls.tolist() == [[1, 2]]


def test_arms_that_were_not_listed_are_refused():
    log = GrowingLog([1, 2])
    log.update([1, 2.0])
    with pytest.raises(LogError, match='expected an arm among 1, 2; got "3"'):
        log.update([1, 3])
    assert log.pulls.tolist() == [[1, 1]]


def test_words_for_nothing_are_refused_among_numbers():
    log = GrowingLog()
    log.update(["none", "x"])
    assert log.arms == ("none", "x")
    log = GrowingLog()
    log.update(["none", "1", "2"])
    with pytest.raises(LogError, match='row 1, column "arm": expected an arm; got "none"'):
        log.tallied("counts")


def test_nothing_yet_and_one_arm_are_refused():
    log = GrowingLog()
    log.update([])
    with pytest.raises(LogError, match="got none yet"):
        log.tallied("counts")
    log.update(["A", "A"])
    with pytest.raises(LogError, match='expected two arms or more; got only "A"'):
        log.tallied("counts")


def test_too_many_arms_are_refused_and_only_where_pairs_are_kept():
    log = GrowingLog(need="counts")
    log.update(np.arange(2001))
    assert log.pulls.sum() == 2001
    log = GrowingLog()
    log.update([0, 1])
    with pytest.raises(ParameterError, match="expected at most 2,000"):
        log.update(np.arange(2001))
    assert log.pulls.tolist() == [[1, 1]]
    with pytest.raises(ParameterError, match="expected counts or switching"):
        log.tallied("epochs")
