"""Rows whose cells are all blank: they are no rows, wherever a log is read."""

import pytest

from unbandit import ActionLog, LogError
from unbandit.log.csv import SMALL_PIECE
from unbandit.log.follower import Follower
from unbandit.log.formats import open_bytes
from unbandit.log.growth import GrowingLog

ROWS = [f"{at},{'ABBA'[at % 4]}" for at in range(12)]


def text_of(rows):
    return "\n".join(["round,arm", *rows, ""])


@pytest.mark.parametrize("blank", [",", " , ", '""," "', "\t,", "\u00a0,"])
@pytest.mark.parametrize("many", [1, SMALL_PIECE // 4])
def test_rows_of_nothing_but_space_are_left_out(blank, many):
    text = text_of([*ROWS[:5], *[blank] * many, *ROWS[5:], blank])
    log = ActionLog.from_bytes(text.encode())
    assert [log.arms[at] for at in log.actions] == list("ABBA" * 3)
    (notice,) = (each for each in log.reading if each.code == "reading" and each.count)
    assert notice.count == many + 1
    source = open_bytes(text.encode(), "log.csv")
    assert source.head([0], 12)[0].to_list() == [str(at) for at in range(12)]


@pytest.mark.parametrize("blank", [",", " , "])
def test_a_cell_that_is_blank_beside_others_is_refused_with_its_line(blank):
    with pytest.raises(LogError, match="got a blank cell") as refused:
        ActionLog.from_bytes(text_of([*ROWS[:5], blank, blank, "5,", *ROWS[6:]]).encode())
    assert (refused.value.row, refused.value.line) == (6, 9)


@pytest.mark.parametrize("blank", [",", " , "])
def test_a_log_that_is_followed_leaves_blank_rows_out_too(tmp_path, blank):
    path = tmp_path / "log.csv"
    grown = GrowingLog()
    follower = Follower(path, grown)
    path.write_text(text_of([*ROWS[:5], blank, blank]))
    assert list(follower.news()) == [5]
    with path.open("a") as file:
        file.write("\n".join([blank, *ROWS[5:], ""]))
    assert list(follower.news()) == [7]
    assert grown.pulls.tolist() == [[6, 6]]
    with path.open("a") as file:
        file.write(f"{blank}\n")
    assert list(follower.news()) == []
    with path.open("a") as file:
        file.write(f"{blank}\n12,\n")
    with pytest.raises(LogError, match="got a blank cell") as refused:
        list(follower.news())
    assert (refused.value.row, refused.value.line) == (13, 19)


def test_a_followed_log_counts_on_behind_blank_rows_from_a_snapshot(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(text_of([*ROWS[:5], ",", ","]))
    grown = GrowingLog()
    follower = Follower(path, grown)
    assert sum(follower.news()) == 5
    again = Follower(path, grown, position=follower.position())
    with path.open("a") as file:
        file.write("\n".join([",", *ROWS[5:], "12,", ""]))
    with pytest.raises(LogError) as refused:
        list(again.news())
    assert (refused.value.row, refused.value.line) == (13, 17)
