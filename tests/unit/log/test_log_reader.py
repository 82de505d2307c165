"""Cells, rounds, counts and arms: what is accepted, and where the first mistake is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbandit.errors import LogError, ParameterError
from unbandit.log import ActionLog
from unbandit.log.frames import FrameSource
from unbandit.log.rounds import collect


def refused(folder: Path, content: str, **options: object) -> LogError:
    path = folder / "log.csv"
    path.write_text(content)
    with pytest.raises(LogError) as caught:
        ActionLog.read(path, **options)  # type: ignore[arg-type]
    assert caught.value.path == str(path)
    return caught.value


CASES = {
    # text: row, column, value, remedy
    "arm\nA\n\nB\n": (2, "arm", None, "leave these rows out with blank="),
    "round,choice\n1,A\n2,\n": (2, "choice", None, "leave these rows out with blank="),
    "round,arm\n1,A\n2,  \n": (2, "arm", "", "leave these rows out with blank="),
    "arm\n1\n2\nNaN\n": (3, "arm", "NaN", "list it with arms."),
    "arm\n1\n-inf\n": (2, "arm", "-inf", "list it with arms."),
    "arm\n1\n2\nNA\n": (3, "arm", "NA", "list it with arms."),
    "subject,arm\nx,A\n,B\n": (2, "subject", None, "Fill it in or remove the row"),
    "round,arm\n1,A\n,B\n": (2, "round", None, "Fill it in. If rows are complete and in order, ignore the column"),
    "round,arm\n1,A\n ,B\n": (2, "round", " ", "Correct it. If rows are complete and in order"),
    "round,arm\n1,A\n2.5,B\n": (2, "round", "2.5", "Correct it. If rows are complete and in order"),
    "round,arm\n1,A\ntwo,B\n": (2, "round", "two", "Correct it. If rows are complete and in order"),
    "round,arm\n1,A\nnan,B\n": (2, "round", "nan", "Correct it. If rows are complete and in order"),
    "round,arm\n1,A\n1e300,B\n": (2, "round", "1e300", "Correct it. If rows are complete and in order"),
    "round,arm\n1,A\n2,B\n2,A\n": (3, "round", 2, "first in row 2"),
    "round,arm\n3,A\n2,B\n1,A\n2,B\n": (4, "round", 2, "first in row 2"),
    "round,arm\n1,A\n2,B\n4,A\n": (3, "round", 4, "missing rows (3)"),
    "round,arm\n9,A\n2,B\n1,A\n": (1, "round", 9, "missing rows (3 to 8)"),
    "round,arm\n6,A\n5,B\n7,A\n": (2, "round", 5, "the opening is missing"),
    "round,arm\n-1,A\n0,B\n1,A\n": (1, "round", -1, "begin at -1"),
    "round,arm\n0,A\n9223372036854775807,B\n": (2, "round", 2**63 - 1, "missing rows"),
    "run,round,arm\na,1,A\nb,1,B\na,2,A\nb,3,B\n": (4, "round", 3, 'in run "b"'),
    "run,round,arm\na,1,A\nb,2,B\n": (2, "round", 2, 'in run "b"'),
    "run,round,arm\na,1,A\nb,1,B\nb,1,B\n": (3, "round", 1, 'in run "b"'),
    "arm\nA\nA\n": (None, "arm", "A", "arms=['A', 'OTHER']"),
    "arm,pulls\nA,3\nB,-1\n": (2, "pulls", -1, "0 or more"),
    "arm,pulls\nA,3\nB,0.5\n": (2, "pulls", "0.5", "Correct it or remove the row"),
    "arm,pulls\nA,3\nB,NaN\n": (2, "pulls", "NaN", "Correct it or remove the row"),
    "arm,pulls\nA,3\nB,\n": (2, "pulls", None, "Fill it in or remove the row"),
    "arm,n\nA,3\nB,1\nA,2\n": (3, "arm", "A", "columns={'round': 'NAME'}"),
    "arm,pulls\nA,0\nB,0\n": (None, "pulls", 0, "columns={'pulls': 'NAME'}"),
    "run,arm,pulls\n1,A,1\n1,B,1\n2,A,0\n2,B,0\n": (None, "pulls", 0, 'in run "2"'),
    "arm,pulls\nA,3\n": (None, "arm", "A", "arms=['A', 'OTHER']"),
}


@pytest.mark.parametrize("text", CASES, ids=[text.replace("\n", "|") for text in CASES])
def test_the_first_mistake_is_named(text: str, tmp_path: Path) -> None:
    row, column, value, remedy = CASES[text]
    error = refused(tmp_path, text)
    assert (error.row, error.column, error.value) == (row, column, value)
    assert error.line == (None if row is None else row + 1)
    assert remedy in error.message
    assert "expected" in error.message


def test_the_line_counts_breaks_inside_cells(tmp_path: Path) -> None:
    error = refused(tmp_path, 'arm,note\nA,"one\ntwo"\nB,x\n,y\n')
    assert (error.row, error.line) == (3, 5)


def test_unknown_arms_are_named_with_the_whole_list(tmp_path: Path) -> None:
    error = refused(tmp_path, "round,choice\n3,D\n2,A\n1,B\n", arms=["A", "B", "C"])
    assert str(error).endswith(
        'log.csv row 1 (line 2), column "choice": expected an arm among A, B, C; got "D". Add it with '
        "arms=['A', 'B', 'C', 'D']."
    )
    error = refused(tmp_path, "arm\n99\n", arms=range(20))
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..., 19" in error.message
    assert "'10', '...', '99']" in error.message


@pytest.mark.parametrize(
    ("arms", "words"),
    [(["A", "B", "A"], '"A" twice'), (["A"], "two labels or more"), (["A", " "], "a blank"), ([1, 1.0], '"1" twice')],
)
def test_listed_arms_are_checked(arms: list[object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        ActionLog.from_actions(["A", "B"], arms=arms)


def test_types_that_are_no_numbers_or_labels_are_refused() -> None:
    times = pl.Series([0, 1]).cast(pl.Duration)
    with pytest.raises(LogError, match=r"columns={'round': 'NAME'}"):
        ActionLog.from_frame(pl.DataFrame({"arm": ["A", "B"], "time": times}))
    with pytest.raises(LogError, match="Convert it to text first"):
        ActionLog.from_frame(pl.DataFrame({"arm": [["A"], ["B"]]}))
    with pytest.raises(LogError, match="got inf") as caught:
        ActionLog.from_frame(pl.DataFrame({"arm": [1.0, float("inf")]}))
    assert (caught.value.row, caught.value.column) == (2, "arm")
    with pytest.raises(LogError, match=r"got 1\.5"):
        ActionLog.from_frame(pl.DataFrame({"arm": [1, 2], "round": [0.0, 1.5]}))


def test_what_looks_missing_may_be_an_arm(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm\nEU\nNone\n")
    assert ActionLog.read(path).arms == ("EU", "None")
    path.write_text("arm\nEU\nNA\nEU\n")
    with pytest.raises(LogError, match='expected an arm; got "NA"'):
        ActionLog.read(path)
    assert ActionLog.read(path, arms=["EU", "NA"]).pulls.tolist() == [[2, 1]]
    path.write_text("arm\n1\nNA\nnan\n")
    assert ActionLog.read(path, arms=["1", "NA", "nan"]).pulls.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    ("labels", "arms"),
    [
        ([10, 9, 1], ("1", "9", "10")),
        ([2.0, 1.0, 1.5], ("1", "1.5", "2")),
        ([3.0, 1.0], ("1", "3")),
        ([True, False], ("true", "false")),
        (["10", "9", "-1"], ("-1", "9", "10")),
        (["b", "a", "10"], ("b", "a", "10")),
        ([" b", "b ", "a"], ("b", "a")),
        ([10**18, 5], ("5", "1000000000000000000")),
        ([2**64 - 1, 3], ("3", "18446744073709551615")),
        (["A", 3, 2.0, None][:3], ("A", "3", "2")),
    ],
)
def test_arms_are_text_in_order(labels: list[object], arms: tuple[str, ...]) -> None:
    assert ActionLog.from_actions(labels).arms == arms


def test_listed_arms_keep_their_order_and_may_never_be_pulled(tmp_path: Path) -> None:
    log = ActionLog.from_actions(["B", "A", "B"], arms=["C", "B", "A"])
    assert log.pulls.tolist() == [[0, 2, 1]]
    path = tmp_path / "log.csv"
    path.write_text("arm\n3.0\n1.0\n")
    assert ActionLog.read(path, arms=[1, 2, 3]).pulls.tolist() == [[1, 0, 1]]


def test_first_appearance_follows_rounds_not_rows() -> None:
    log = ActionLog.from_frame(pl.DataFrame({"round": [3, 2, 1], "arm": ["x", "y", "z"]}))
    assert log.arms == ("z", "y", "x")
    assert log.actions is not None
    assert log.actions.tolist() == [0, 1, 2]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("ABC"), min_size=1, max_size=8), min_size=1, max_size=4),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_shuffled_rows_come_back_in_order(choices: list[list[str]], zero: bool, random: np.random.Generator) -> None:
    rows = [(name, at + (not zero), arm) for name, run in enumerate(choices) for at, arm in enumerate(run)]
    arms = ["A", "B", "C"]
    expected = ActionLog.from_actions(choices, arms=arms)
    random.shuffle(rows)
    frame = pl.DataFrame(rows, schema=["run", "trial", "choice"], orient="row")
    log = ActionLog.from_frame(frame, arms=arms)
    for at, name in enumerate(log.demonstrations):
        assert log.demonstration(at).tolist() == expected.demonstration(int(name)).tolist()
    first_seen = dict.fromkeys(str(name) for name, _, _ in rows)
    assert log.demonstrations == tuple(first_seen)
    assert ActionLog(*collect([FrameSource(frame)], None, arms, rows=3)) == log


def test_without_rounds_the_rows_keep_their_order_in_each_demonstration() -> None:
    log = ActionLog.from_frame(pl.DataFrame({"user": ["x", "y", "x", "y"], "arm": ["A", "B", "C", "A"]}))
    assert [log.demonstration(at).tolist() for at in range(2)] == [[0, 1], [2, 0]]
    assert log.arms == ("A", "C", "B")


def test_rows_that_are_each_their_own_demonstration_are_spoken_of() -> None:
    frame = pl.DataFrame({"demonstration": [1, 2], "arm": ["A", "B"], "reward": [0, 1]})
    log = ActionLog.from_frame(frame)
    assert len(log) == 2
    assert "different in every row" in log.notices[0]
    assert "reward" in log.notices[1]
    renamed = frame.rename({"demonstration": "id"})
    assert len(ActionLog.from_frame(renamed, columns={"demonstration": "id"})) == 2


@pytest.mark.parametrize("visits", [1, 2])
def test_visitors_are_no_demonstrations_unless_somebody_says_so(tmp_path: Path, visits: int) -> None:
    users = [f"u{at}" for at in range(12)] + ["u3", "u5"] * (visits - 1)
    rows = "".join(f"{1767225600 + at},{user},{'AB'[at % 2]}\n" for at, user in enumerate(users))
    path = tmp_path / "events.csv"
    path.write_text(f"timestamp,user_id,variation\n{rows}")
    for read in (ActionLog.read, ActionLog.scan):
        with pytest.raises(LogError, match=f'"user_id" is different in {"nearly " * (visits - 1)}every row') as refused:
            len(read(path))
        assert "columns={'demonstration': ''}" in str(refused.value)
        assert len(read(path, columns={"demonstration": ""})) == 1
        assert len(read(path, columns={"demonstration": "user_id"})) == 12
    path.write_text("user_id,round,arm\n" + "".join(f"{user},1,{'AB'[at % 2]}\n" for at, user in enumerate(users[:12])))
    assert len(ActionLog.read(path)) == len(ActionLog.scan(path)) == 12


def test_a_table_of_counts_is_a_log() -> None:
    log = ActionLog.from_frame(pl.DataFrame({"arm": [2, 1, 3], "count": [5.0, 7.0, 0.0]}))
    assert not log.ordered
    assert log.actions is None
    assert log.arms == ("1", "2", "3")
    assert log.pulls.tolist() == [[7, 5, 0]]
    assert log.offsets.tolist() == [0, 12]
    frame = pl.DataFrame({"run": ["a", "a", "b"], "arm": ["x", "y", "x"], "pulls": [1, 2, 3]})
    assert ActionLog.from_frame(frame).pulls.tolist() == [[1, 2], [3, 0]]


def test_from_counts_checks_like_a_table() -> None:
    assert ActionLog.from_counts({10: 1, 9: 2}).arms == ("9", "10")
    for pulls, words in (
        ({"A": 1, "B": 1.5}, "1.5"),
        ({"A": 0, "B": 0}, "0 for every arm"),
        ({1: 1, "1": 2, 2: 1}, "again"),
    ):
        with pytest.raises(LogError, match=words):
            ActionLog.from_counts(pulls)
    with pytest.raises(LogError):
        ActionLog.from_counts({})
