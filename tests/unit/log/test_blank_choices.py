"""Rows without a choice: refused with their number, or skipped where nobody chose."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from workbooks import xlsx

import unbandit as ub
from unbandit.errors import LogError, ParameterError, shell_option
from unbandit.log import ActionLog
from unbandit.log.follower import Follower
from unbandit.log.frames import FrameSource
from unbandit.log.growth import GrowingLog
from unbandit.log.partial import ThinnedLog, read_bytes, read_or_scan
from unbandit.log.rounds import collect

TWO_PEOPLE = b"""subject,trial,choice
x,2,
x,1,A
x,3,B
y,1,NA
y,2,B
y,3,A
y,4,
"""


def test_skipped_rounds_are_no_holes_in_the_numbering():
    log = ActionLog.from_bytes(TWO_PEOPLE, blank="skip")
    assert (log.arms, log.demonstrations, log.lengths.tolist()) == (("A", "B"), ("x", "y"), [2, 2])
    assert log.actions.tolist() == [0, 1, 1, 0]
    assert log.is_numbered
    (notice,) = [each for each in log.reading if each.code == "blank-choices"]
    assert notice.count == 3
    assert "3 rows without a choice were left out" in notice.message


def test_rounds_that_are_missing_besides_stay_missing():
    data = b"round,arm\n1,A\n2,\n3,B\n4,A\n7,B\n8,\n9,A\n"
    log = read_bytes(data, blank="skip")
    assert isinstance(log, ThinnedLog)
    assert log.numbers.tolist() == [1, 2, 3, 6, 7]
    with pytest.raises(LogError, match="expected round 5 after round 4"):
        ActionLog.from_bytes(data, blank="skip")


@pytest.mark.parametrize("blank", [None, float("nan")])
def test_numbers_and_nulls_are_skipped_in_every_batch(blank):
    frame = pl.DataFrame({"arm": [blank, blank, 1.0, 2.0, blank, 2.0], "reward": [None, None, 0.5, 1.0, None, 0.0]})
    for rows in (2, 100):
        log = ActionLog(*collect([FrameSource(frame)], None, None, rows=rows, blank="skip"))
        assert (log.arms, log.actions.tolist(), log.rewards.tolist()) == (("1", "2"), [0, 1, 1], [0.5, 1.0, 0.0])


def test_a_listed_arm_is_a_choice_whatever_it_is_called():
    log = ActionLog.from_bytes(b"arm\nNA\nB\n", arms=["NA", "B"], blank="skip")
    assert log.pulls.tolist() == [[1, 1]]


def test_nothing_is_said_where_nothing_is_blank():
    log = ActionLog.from_bytes(b"arm\nA\nB\n", blank="skip")
    assert [each.code for each in log.reading if each.code == "blank-choices"] == []
    assert np.array_equal(log.actions, [0, 1])


def test_the_refusal_counts_and_names_what_works_for_the_command():
    with pytest.raises(LogError, match="the first of 2 in 7 rows") as whole:
        ActionLog.from_bytes(TWO_PEOPLE.replace(b"NA", b"A"))
    said = whole.value.phrased(shell_option)
    assert "--blank skip" in said
    assert "--kept" not in said
    with pytest.raises(LogError, match="the first of 2 in 7 rows") as partial:
        read_bytes(TWO_PEOPLE.replace(b"NA", b"A"))
    assert "--kept" in partial.value.phrased(shell_option)


def test_a_missing_round_can_be_ignored():
    with pytest.raises(LogError, match="expected round 2") as refused:
        ActionLog.from_bytes(b"trial,choice\n1,A\n3,B\n")
    assert "--columns round=" in refused.value.phrased(shell_option)


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"arm,reward\nA,1\n,1\nB,0\n", LogError, "expected no reward where there is no choice; 1 row"),
        (b"subject,arm\nx,A\nx,B\ny,\ny,\n", LogError, 'expected a choice in subject "y"'),
        (b"arm,round\n,1\n,2\n", LogError, "expected a choice in some row"),
        (b"arm,pulls\nA,4\nB,2\n", ParameterError, "expected only with a log of rounds"),
    ],
)
def test_what_cannot_be_skipped_is_refused(data, error, words):
    with pytest.raises(error, match=words):
        ActionLog.from_bytes(data, blank="skip")


def test_other_words_are_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(TWO_PEOPLE)
    with pytest.raises(ParameterError, match="skip"):
        ActionLog.read(path, blank="drop")
    assert read_or_scan(path, blank="skip").lengths.tolist() == [2, 2]


def test_a_table_of_rounds_does_not_go_with_skipped_ones():
    log = ActionLog.from_bytes(TWO_PEOPLE, blank="skip")
    given = {"sigma": 1.0, "demonstration": log.demonstrations[0]}
    with pytest.raises(ParameterError, match="counted without them") as refusal:
        ub.estimate(log, "ucb1", availability={log.arms[0]: (1, None)}, **given)
    assert refusal.value.parameter == "availability"


def on_blank_rows(log):
    return [(each.count, each.message) for each in log.reading if "completely blank" in each.message]


@pytest.mark.parametrize("blank", [None, "skip"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_rows_that_are_blank_in_all_columns_are_no_rows(blank, separator):
    text = "arm,round,note\n,,\nA,1,\n,,\n,,\nB,2,\nA,3,x\n,,\n".replace(",", separator)
    log = ActionLog.from_bytes(text.encode(), blank=blank)
    assert log.actions.tolist() == [0, 1, 0]
    assert on_blank_rows(log) == [(4, "4 rows are completely blank and were left out.")]
    with pytest.raises(LogError, match=r'row 2 \(line 6\), column "round": expected a whole number for round; got "x"'):
        ActionLog.from_bytes(text.replace("2", "x").encode(), blank=blank)


def test_blank_rows_are_counted_however_a_log_is_read(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,note\n,\nA,1\n,\n")
    log = GrowingLog()
    follower = Follower(path, log)
    assert sum(follower.news()) == 1
    assert "2 rows are completely blank and were left out." in [each.message for each in follower.notices]
    with path.open("a") as file:
        file.write("B,2\nA,3\n,\n")
    position = json.loads(json.dumps(follower.position()))
    follower = Follower(path, log, position=position)
    assert sum(follower.news()) == 2
    said = on_blank_rows(ActionLog.scan(path))
    assert said == [(3, "3 rows are completely blank and were left out.")]
    assert [(each.count, each.message) for each in follower.notices if "blank" in each.message] == said


def test_a_row_with_a_cell_that_is_not_read_is_a_round():
    with pytest.raises(LogError, match="expected an arm; got a blank cell"):
        ActionLog.from_bytes(b"arm,note\nA,\n,away\nB,\n")


def test_blank_rows_are_left_out_of_large_files_too():
    rows = ["A,1", "B,2", ",", "B,3"] * 60_000
    log = ActionLog.from_bytes("\n".join(["arm,reward", *rows, ""]).encode())
    assert log.pulls.tolist() == [[60_000, 120_000]]
    assert on_blank_rows(log)[0][0] == 60_000
    with pytest.raises(LogError, match=r"row 180001 \(line 240002\)"):
        ActionLog.from_bytes("\n".join(["arm,reward", *rows, ",5", ""]).encode())


def test_blank_rows_within_a_sheet_are_left_out():
    rows = [["arm", "round"], [None, None], ["A", 1], ["B", 2], [None, None], ["B", 3]]
    log = ActionLog.from_bytes(xlsx(log=rows))
    assert log.actions.tolist() == [0, 1, 1]
    assert on_blank_rows(log)[0][0] == 2
    with pytest.raises(LogError, match=r"row 3 \(line 6\)"):
        ActionLog.from_bytes(xlsx(log=[*rows[:-1], ["B", "x"]]))


def test_the_round_of_a_skipped_row_may_be_blank():
    log = ActionLog.from_bytes(b"round,arm,note\n1,A,\n,,away\n2,B,\n3,A,\n,NA,away\n", blank="skip")
    assert log.actions.tolist() == [0, 1, 0]
    (notice,) = [each for each in log.reading if each.code == "blank-choices"]
    assert notice.count == 2
    with pytest.raises(LogError, match=r"row 3 \(line 4\)"):
        ActionLog.from_bytes(b"round,arm,note\n1,A,\n,,away\nx,B,\n3,A,\n", blank="skip")
    with pytest.raises(LogError, match="expected a round; got a blank cell"):
        ActionLog.from_bytes(b"round,arm,reward\n1,A,1\n,,1\n2,B,0\n", blank="skip")


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_rows_without_round_and_choice_are_skipped_wherever_batches_end(rows):
    frame = pl.DataFrame({
        "round": [None, "0", "1", " ", None, "2", "", "3"], "arm": ["", "A", "B", "", None, "A", " ", "A"],
        "page": list("abcdefgh"),
    })  # fmt: skip
    log = ActionLog(*collect([FrameSource(frame)], None, None, rows=rows, blank="skip"))
    assert [log.arms[at] for at in log.actions] == list("ABAA")
    (notice,) = [each for each in log.reading if each.code == "blank-choices"]
    assert notice.count == 4
    nothing = frame.filter(pl.Series([True, False, False, True, True, False, True, False]))
    with pytest.raises(LogError, match="expected a choice in some row; got only blank cells"):
        collect([FrameSource(nothing)], None, None, rows=rows, blank="skip")
