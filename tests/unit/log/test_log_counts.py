"""Tables of counts: never taken for rounds in silence, and no count is read as another number."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from unbandit import ActionLog
from unbandit.errors import LogError
from unbandit.log.columns import COUNTS, is_count_like

ROWS = "1,A,510\n2,B,490\n3,C,505\n"


def read(text: str, **columns: str) -> ActionLog:
    return ActionLog.from_bytes(text.encode(), columns=columns or None)


def refusal(text: str, **columns: str) -> str:
    with pytest.raises(LogError) as caught:
        read(text, **columns)
    assert caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize("counts", ["Visitors", "users", "views", "n", "Page Views"])
@pytest.mark.parametrize("number", ["index", "step", "t", "period", "round"])
def test_counts_beside_rounds_with_every_arm_once_are_refused(number: str, counts: str) -> None:
    text = refusal(f"{number},arm,{counts}\n{ROWS}")
    assert f'beside numbers in "{counts}", with "{number}" as round' in text
    assert f"columns={{'pulls': '{counts}'}}" in text
    assert "columns={'pulls': ''}" in text
    assert read(f"{number},arm,{counts}\n{ROWS}", pulls=counts).pulls.tolist() == [[510, 490, 505]]
    assert read(f"{number},arm,{counts}\n{ROWS}", pulls="").pulls.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("number", ["index", "step", "t", "period", "round"])
def test_trials_may_be_rounds_or_counts(number: str) -> None:
    assert "columns={'pulls': 'trials'}" in refusal(f"{number},arm,trials\n{ROWS}")
    assert "columns={'pulls': 'trials'}" in refusal("arm,trials\nA,510\nB,490\n")


def test_any_numbers_beside_an_index_may_be_counts() -> None:
    assert 'numbers in "amount"' in refusal(f"index,arm,amount\n{ROWS}")
    assert read(f"round,arm,amount\n{ROWS}").ordered  # a column called round says it clearly
    assert read("index,arm,amount\n1,A,1\n2,B,0\n3,C,1\n").ordered
    assert read("index,arm,amount\n1,A,7\n2,B,8\n3,C,9\n").ordered
    assert read(f"t,arm,amount\n{ROWS}", round="t").ordered  # the user said what it is


def test_an_id_that_only_numbers_the_rows_is_no_demonstration() -> None:
    table = f"id,arm,visitors\n{ROWS}"
    text = refusal(table)
    assert '"id" is different in every row' in text
    assert "columns={'demonstration': ''}" in text
    assert read(table, demonstration="").pulls.tolist() == [[510, 490, 505]]
    log = read(table, demonstration="id")
    assert log.pulls.tolist() == [[510, 0, 0], [0, 490, 0], [0, 0, 505]]
    assert "different in every row" in log.notices[-1]
    assert 'numbers in "users"' in refusal(f"id,arm,users\n{ROWS}")
    assert 'numbers in "users"' in refusal(f"id,arm,users\n{ROWS}", demonstration="")


@pytest.mark.parametrize("heads", [("arm,users,note", "arm,users"), ("arm,users", "arm,users,note")])
def test_a_column_of_one_file_alone_does_not_hide_counts(tmp_path: Path, heads: tuple[str, str]) -> None:
    paths = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for path, head, arms in zip(paths, heads, ("AB", "CD"), strict=True):
        note = ",x" * head.endswith("note")
        path.write_text(f"{head}\n{arms[0]},510{note}\n{arms[1]},490{note}\n")
    with pytest.raises(LogError, match='every arm once, beside numbers in "users"'):
        ActionLog.read(paths)
    assert ActionLog.read(paths, columns={"pulls": "users"}).pulls.tolist() == [[510, 490, 510, 490]]


def test_counts_of_each_demonstration_are_not_rounds() -> None:
    table = "session,arm,users\nx,A,510\nx,B,490\ny,A,505\ny,B,12\n"
    assert 'beside numbers in "users", with "session" as demonstration' in refusal(table)
    assert read(table, pulls="users").pulls.tolist() == [[510, 490], [505, 12]]
    assert read(table.replace("users", "age")).ordered


def test_where_arms_come_again_a_line_says_that_counts_are_ignored(tmp_path: Path) -> None:
    for name in ("views", "visitors"):
        log = read(f"t,arm,{name}\n1,A,510\n2,B,490\n3,A,505\n")
        assert log.ordered
        assert log.reading[1].code == "columns"
        assert (
            f"\"{name}\" is ignored. If it counts choices, say so with columns={{'pulls': '{name}'}}" in log.notices[1]
        )
    path = tmp_path / "log.csv"
    path.write_text("t,arm,views\n1,A,510\n2,B,490\n3,A,505\n")
    assert '"views" is ignored' in ActionLog.scan(path).notices[1]
    assert len(read("round,arm,n\n1,A,1\n2,B,1\n3,A,2\n", pulls="").notices) == 0


def test_rounds_that_come_again_beside_counts_name_both_ways_out() -> None:
    table = "period,arm,visitors\n1,A,5\n1,B,4\n2,A,6\n2,B,7\n"
    text = refusal(table)
    assert "got 1 again" in text
    assert "If \"visitors\" counts choices, say so with columns={'pulls': 'visitors'}." in text
    assert "columns={'demonstration': 'NAME'}" in refusal(table, pulls="visitors")
    assert read(table, pulls="visitors", demonstration="period").pulls.tolist() == [[5, 4], [6, 7]]


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("1.000", "Write it as 1000 or as 1,"),
        (" 12.000 ", "Write it as 12000 or as 12,"),
        ("1.250", "Write it as 1250,"),
        ("1.000.000", "Write it as 1000000,"),
        ('"1,000"', "Write it as 1000 or as 1,"),
        ("1\u202f000", "Write it as 1000 or as 1,"),
    ],
)
def test_a_mark_that_may_separate_thousands_is_refused(cell: str, remedy: str) -> None:
    text = refusal(f"arm,pulls\nA,7\nB,{cell}\n")
    assert 'row 2 (line 3), column "pulls": expected a count in digits only; got "1' in text
    assert remedy in text
    assert 'numbers in "audience"' in refusal(f"arm,audience\nA,7\nB,{cell}\nC,3\n")


def test_decimals_that_say_nothing_are_whole_numbers() -> None:
    assert read("arm,pulls\nA,7.0\nB,3.00\nC,0.000\n").pulls.tolist() == [[7, 3, 0]]
    assert ActionLog.from_frame(pl.DataFrame({"arm": ["A", "B"], "pulls": [1.000, 2.000]})).pulls.tolist() == [[1, 2]]
    assert read("round,arm\n1.000,A\n2.000,B\n").ordered  # rounds count up: no thousands


def test_names_that_count() -> None:
    assert all(map(is_count_like, COUNTS))
    assert is_count_like("Unique Visitors")
    assert not is_count_like("age")


@pytest.mark.parametrize("name", ["Total", "TOTALS", "sum", "All", "overall", "Gesamt:", "Summe", "grand total"])
@pytest.mark.parametrize(("count", "got"), [(1000, "is the sum of the"), (995, "is close to the sum of the")])
def test_a_row_that_adds_up_the_others_is_no_arm(name: str, count: int, got: str) -> None:
    text = refusal(f"variation,visitors\nA,901\nB,66\nC,33\n{name},{count}\n")
    assert f'that of "{name}" {got} other rows (1,000)' in text
    assert "row 4" in text
    assert "Remove this row." in text
    log = ActionLog.from_bytes(f"arm,n\nA,6\nB,4\n{name},10\n".encode(), arms=["A", "B", name])
    assert log.pulls.tolist() == [[6, 4, 10]]  # whoever lists it says that it is one
    assert codes_of(log).count("perhaps-total") == 1


def codes_of(log: ActionLog) -> list[str]:
    return [notice.code for notice in log.reading]


def test_totals_of_each_demonstration_are_refused_wherever_they_stand() -> None:
    rows = "s1,A,7\ns1,all,11\ns1,B,4\ns2,A,5\ns2,B,9\ns2,all,14\n"
    assert 'that of "all" is the sum' in refusal(f"subject,arm,n\n{rows}")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("A,50\nB,50\nC,100\n", '"C" is read as an arm, though its count (100) is the sum of the others'),
        ("C,100\nA,30\nB,70\n", '"C" is read as an arm, though its count (100) is the sum of the others'),
        ("A,50\nTotal,20\nB,90\n", '"Total" is read as an arm, though it is called like a total'),
    ],
)
def test_a_row_that_may_be_a_total_is_warned_of(rows: str, said: str) -> None:
    notice = next(each for each in read(f"arm,n\n{rows}").reading if each.code == "perhaps-total")
    assert said in notice.text
    assert "remove that row" in notice.text


@pytest.mark.parametrize("rows", ["A,50\nC,100\nB,50\n", "A,50\nB,0\nC,50\n", "A,9\nall,9\n", "A,3\nB,4\nC,8\n"])
def test_other_counts_are_no_totals(rows: str) -> None:
    assert "perhaps-total" not in codes_of(read(f"arm,n\n{rows}"))


def test_a_total_below_a_log_of_rounds_is_warned_of() -> None:
    assert "perhaps-total" in codes_of(read("arm,reward\nA,1\nB,0\nA,1\nTotal,2\n"))
    assert "perhaps-total" not in codes_of(read("arm\nall\nB\nA\nall\n"))
    assert "perhaps-total" not in codes_of(read("arm\nall\nB\nA\nA\n"))


def test_all_rows_that_may_be_totals_are_named() -> None:
    def said(rows: str) -> str:
        (notice,) = (each for each in read(f"arm,n\n{rows}").reading if each.code == "perhaps-total")
        assert notice.arm is None
        return notice.text

    text = said("A,50\nSubtotal,20\nB,70\nTotal,30\n")
    assert '"Subtotal" (it is called like a total), "Total" (it is called like a total). If they do' in text
    text = said("A,50\nB,70\nall,10\nC,130\n")
    assert '"all" (it is called like a total), "C" (its count (130) is the sum of the others)' in text
    assert "and 2 others" in said("A,50\nSubtotal,20\nB,70\nTotal,3\nall,4\nsum,5\noverall,6\ntotals,7\nsumme,9\n")
