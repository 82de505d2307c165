"""Rewards that happen to be known: where they are read, what is refused, and that they stay with their rounds."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unbandit import estimate
from unbandit.errors import LogError, ParameterError
from unbandit.log import ActionLog

NAN = float("nan")


def same(rewards: object, expected: list[float]) -> bool:
    assert isinstance(rewards, np.ndarray)
    assert rewards.dtype == np.float64
    assert not rewards.flags.writeable
    return np.array_equal(rewards, expected, equal_nan=True)


def read(folder: Path, content: str, **options: object) -> ActionLog:
    path = folder / "log.csv"
    path.write_text(content)
    return ActionLog.read(path, **options)  # type: ignore[arg-type]


def test_a_partly_filled_column_is_read(tmp_path: Path) -> None:
    log = read(tmp_path, "arm,reward,age\nA,0.5,1\nB,,1\nA, NA ,1\nB,nan,1\nA,-1e3,1\nB, true,1\n")
    assert same(log.rewards, [0.5, NAN, NAN, NAN, -1000, 1])
    said = 'Column "reward" has a reward in 3 of 6 rows. Posteriors and comparisons of rules use them; closed forms do '
    said += "not."
    assert log.notices[-1] == said
    assert '"age" is not used' in log.notices[0]
    assert read(tmp_path, "arm\nA\nB\n").rewards is None
    assert read(tmp_path, "arm,reward\nA,\nB,NA\n").rewards is None


def test_a_blank_at_the_end_of_a_row_is_a_reward_not_known(tmp_path: Path) -> None:
    assert same(read(tmp_path, "round,arm,reward\n1,A,\n2,B,2\n3,B,\n").rewards, [NAN, 2, NAN])


def test_a_column_is_named_or_left_out_by_the_user(tmp_path: Path) -> None:
    content = "arm,gain,reward\nA,1,x\nB,0,y\n"
    assert same(read(tmp_path, content, columns={"reward": "gain"}).rewards, [1, 0])
    left = read(tmp_path, content, columns={"reward": ""})
    assert (left.rewards, left.notices) == (None, ())


def test_rewards_go_where_their_rounds_go(tmp_path: Path) -> None:
    content = "run,t,arm,r\nx,2,A,12\ny,1,B,21\nx,1,B,11\ny,2,A,\n"
    log = read(tmp_path, content)
    assert same(log.rewards, [11, 12, 21, NAN])
    assert same(log.select(0).rewards, [11, 12])
    without_rounds = pl.DataFrame({"run": ["x", "y", "x"], "arm": [0, 1, 1], "reward": [1, 2, 3]})
    assert same(ActionLog.from_frame(without_rounds).rewards, [1, 3, 2])
    assert ActionLog.from_actions([[0, 1], [1]], rewards=[[None, None], [1]]).select(0).rewards is None


CASES = {
    "arm,reward\nA,1\nB,good\n": (2, "reward", "good"),
    "arm,reward\nA,1\nB,inf\n": (2, "reward", "inf"),
    "t,arm,Payoff\n2,A,\n1,B,1\n3,B,0;5\n": (3, "Payoff", "0;5"),
}


@pytest.mark.parametrize("content", CASES)
def test_the_first_bad_reward_is_named(tmp_path: Path, content: str) -> None:
    with pytest.raises(LogError, match=r"expected a number for reward.*columns={'reward': ''}") as caught:
        read(tmp_path, content)
    error = caught.value
    assert (error.row, error.column, error.value) == CASES[content]
    assert (error.path, error.line) == (str(tmp_path / "log.csv"), CASES[content][0] + 1)


def test_a_column_without_any_number_is_left_alone_unless_it_was_named(tmp_path: Path) -> None:
    content = "arm,outcome\nA,win\nB,lose\n"
    log = read(tmp_path, content)
    assert log.rewards is None
    assert log.notices == ('Column "outcome" is ignored: it contains no numeric rewards.',)
    with pytest.raises(LogError, match='got "win"'):
        read(tmp_path, content, columns={"reward": "outcome"})
    times = pl.DataFrame({"arm": ["A", "B"], "outcome": pl.Series([0, 1]).cast(pl.Datetime)})
    assert ActionLog.from_frame(times).rewards is None
    with pytest.raises(LogError, match="a column of type Datetime"):
        ActionLog.from_frame(times, columns={"reward": "outcome"})


@pytest.mark.parametrize("values", [[True, False, None], [1, 0, None], [1.0, 0.0, NAN], ["1", "0", None]])
def test_frames_of_any_type(values: list[object]) -> None:
    pandas = pytest.importorskip("pandas")
    data = {"arm": ["A", "B", "A"], "reward": values}
    for frame in (pl.DataFrame(data), pl.LazyFrame(data), pandas.DataFrame(data)):
        assert same(ActionLog.from_frame(frame).rewards, [1, 0, NAN])


def test_sequences_in_memory() -> None:
    assert same(ActionLog.from_actions("ABA", rewards=[1, None, NAN]).rewards, [1, NAN, NAN])
    grid = np.array([[0, 1], [1, 0]])
    assert same(ActionLog.from_actions(grid, rewards=grid * 0.5).rewards, [0, 0.5, 0.5, 0])
    assert same(ActionLog.from_codes(grid, "AB", rewards=grid * 0.5).rewards, [0, 0.5, 0.5, 0])
    assert ActionLog.from_actions("AB", rewards=[None, None]).rewards is None
    for rewards in ([1, 2], [[1, 2, 3], [1]], []):
        with pytest.raises(ParameterError, match="rewards: expected one for each choice"):
            ActionLog.from_actions("ABA", rewards=rewards)
    for rewards in (["x", "y", "z"], [1, 2, float("inf")], [1, "x", None]):
        with pytest.raises(ParameterError, match="rewards: expected finite numbers"):
            ActionLog.from_actions("ABA", rewards=rewards)


@pytest.mark.parametrize("name", ["log.csv", "log.tsv.gz", "log.parquet"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    log = ActionLog.from_actions([["A", "B"], ["B"]], rewards=[[0.1, None], [1 / 3]])
    log.write(tmp_path / name)
    again = ActionLog.read(tmp_path / name)
    assert again == log
    assert again.to_frame()["reward"].to_list() == [0.1, None, 1 / 3]
    assert pickle.loads(pickle.dumps(log)) == log


def test_rewards_are_part_of_what_a_log_is() -> None:
    log = ActionLog.from_actions("ABA", rewards=[1, None, None])
    assert log == ActionLog.from_actions("ABA", rewards=[1, NAN, NAN])
    assert log != ActionLog.from_actions("ABA")
    assert log != ActionLog.from_actions("ABA", rewards=[2, None, None])


def test_a_table_of_counts_has_no_rounds_to_give_rewards_to() -> None:
    log = ActionLog.from_frame(pl.DataFrame({"arm": ["A", "B"], "pulls": [3, 2], "reward": [1.0, 2.0]}))
    assert log.rewards is None
    assert "a table of counts" in log.notices[0]


def test_closed_forms_do_not_look_at_rewards() -> None:
    actions = list("ABBBABBBBB")
    plain = estimate(actions, "ucb", sigma=1)
    known = estimate(ActionLog.from_actions(actions, rewards=[0.5] + [None] * 9), "ucb", sigma=1)
    assert known.to_frame().equals(plain.to_frame())
