"""Rows with one name in a table of counts: refused, separate arms, or one arm, as the user says."""

from __future__ import annotations

import polars as pl
import pytest

from unbandit import ActionLog, LogError, ParameterError

TABLE = pl.DataFrame({"arm": ["x", "y", "x", "x"], "pulls": [5, 3, 2, 1]})


def test_by_default_they_are_refused_and_the_message_says_what_to_do():
    for duplicates in (None, "refuse"):
        with pytest.raises(LogError, match=r'row 3.*got "x" again.*duplicates="separate".*duplicates="add"'):
            ActionLog.from_frame(TABLE, duplicates=duplicates)


def test_separate_arms_have_names_of_their_own():
    log = ActionLog.from_frame(TABLE, duplicates="separate")
    assert log.arms == ("x", "x (2)", "x (3)", "y")
    assert log.pulls.tolist() == [[5, 2, 1, 3]]
    assert 'the first being "x"' in log.notices[0]


def test_a_name_that_is_taken_is_not_given_twice():
    table = pl.DataFrame({"arm": ["x", "x (2)", "x", "x (2)"], "pulls": [5, 3, 2, 1]})
    log = ActionLog.from_frame(table, duplicates="separate")
    assert log.arms == ("x", "x (3)", "x (2)", "x (2) (2)")
    assert log.pulls.tolist() == [[5, 2, 3, 1]]


def test_counts_are_added():
    log = ActionLog.from_frame(TABLE, duplicates="add")
    assert (log.arms, log.pulls.tolist()) == (("x", "y"), [[8, 3]])
    assert "added up" in log.notices[0]


def test_numbers_keep_their_order():
    log = ActionLog.from_counts([(10, 4), (9, 3), (10, 2)], duplicates="separate")
    assert (log.arms, log.pulls.tolist()) == (("9", "10", "10 (2)"), [[3, 4, 2]])
    assert ActionLog.from_counts({1: 1, "1": 2, 2: 1}, duplicates="add").pulls.tolist() == [[3, 1]]


def test_each_demonstration_counts_its_own_rows():
    table = pl.DataFrame({"demonstration": [1, 1, 2, 2, 2], "arm": ["x", "y", "x", "x", "y"], "pulls": [1, 2, 3, 4, 5]})
    log = ActionLog.from_frame(table, duplicates="separate")
    assert (log.arms, log.pulls.tolist()) == (("x", "x (2)", "y"), [[1, 0, 2], [3, 4, 5]])


def test_a_table_without_them_is_read_as_ever(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("arm,pulls\nx,5\ny,3\n")
    for duplicates in (None, "refuse", "separate", "add"):
        log = ActionLog.read(path, duplicates=duplicates)
        assert log == ActionLog.from_counts({"x": 5, "y": 3})
        assert log.notices == ()
        assert ActionLog.from_bytes(path.read_bytes(), duplicates=duplicates) == log


@pytest.mark.parametrize("duplicates", ["refuse", "separate", "add"])
def test_a_log_of_rounds_has_no_such_rows(duplicates):
    with pytest.raises(ParameterError, match="duplicates: expected only with a table of counts"):
        ActionLog.from_frame(pl.DataFrame({"arm": ["x", "y", "x"]}), duplicates=duplicates)


def test_an_unknown_choice_is_refused():
    with pytest.raises(ParameterError, match="duplicates: expected one of refuse, separate, add"):
        ActionLog.from_frame(TABLE, duplicates="sum")
