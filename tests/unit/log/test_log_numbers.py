"""Times that order the rounds: how they are written, what is said, and what is refused."""

import datetime
import json
import re
import subprocess
import sys
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from unbandit import ActionLog, LogError
from unbandit.errors import MISREAD, phrase, shell_option
from unbandit.log.follower import Follower
from unbandit.log.formats import sources_of
from unbandit.log.growth import GrowingLog
from unbandit.log.numbers import RoundColumn
from unbandit.log.partial import thinned
from unbandit.log.rounds import CoarseTimes
from unbandit.log.scan import ScannedLog

ORDER = "ABCAB"
MOMENTS = [
    datetime.datetime(2026, 3, 28, 23, 59, 57, tzinfo=datetime.UTC) + datetime.timedelta(seconds=s) for s in range(5)
]
FORMS = {
    "iso with Z": lambda m: m.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "iso with a zone": lambda m: m.astimezone(ZoneInfo("Europe/Berlin")).isoformat(),
    "zone without a colon": lambda m: m.astimezone(ZoneInfo("America/New_York")).strftime("%Y-%m-%d %H:%M:%S%z"),
    "without a zone": lambda m: m.strftime("%Y-%m-%d %H:%M:%S"),
    "slashes": lambda m: m.strftime("%Y/%m/%d %H:%M:%S"),
    "basic format": lambda m: m.strftime("%Y%m%dT%H%M%SZ"),
    "fractions, seldom": lambda m: m.isoformat().replace(":58+", ":58.250000+"),
    "decimal comma": lambda m: m.strftime("%Y-%m-%d %H:%M:%S,125"),
    "seconds": lambda m: str(int(m.timestamp())),
    "seconds with a fraction": lambda m: f"{m.timestamp() + 0.25:.2f}",
    "milliseconds": lambda m: str(int(m.timestamp() * 1000)),
    "microseconds": lambda m: str(int(m.timestamp() * 1_000_000)),
    "nanoseconds": lambda m: str(int(m.timestamp()) * 10**9 + 1),
    "Excel": lambda m: f"{25569 + m.timestamp() / 86400:.7f}",
    "numbers": lambda m: str(int(m.timestamp()) % 1000 * 7),
}


def log_of(times, arms=ORDER, name="timestamp", **options):
    rows = "".join(f'"{time}",{arm}\n' for time, arm in zip(times, arms, strict=True))
    return ActionLog.from_bytes(f"{name},arm\n{rows}".encode(), **options)


def choices(log):
    return [log.arms[code] for code in log.actions]


def said(log):
    return next(notice for notice in log.reading if notice.code == "times")


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_put_in_the_order_of_their_times(form):
    times = [FORMS[form](moment) for moment in MOMENTS]
    shuffled = [3, 0, 4, 2, 1]
    log = log_of([times[at] for at in shuffled], [ORDER[at] for at in shuffled])
    assert choices(log) == list(ORDER)
    assert "so the log was sorted" in said(log).text
    assert said(log).count == 0
    assert choices(log_of(times)) == list(ORDER)
    assert "sorted" not in said(log_of(times)).text


def test_zones_are_taken_into_account():
    log = log_of(["2026-01-01T12:00:00+02:00", "2026-01-01T10:30:00Z", "2026-01-01T10:00:00-01"], "ABC")
    assert choices(log) == ["A", "B", "C"]
    log = log_of(["2026-01-01T12:00:00-02:00", "2026-01-01T12:30:00Z"], "AB")
    assert choices(log) == ["B", "A"]


def test_columns_of_dataframes_and_parquet_hold_times(tmp_path):
    for column in (
        pl.Series(MOMENTS, dtype=pl.Datetime("us", "UTC")),
        pl.Series(MOMENTS, dtype=pl.Datetime("ns", "UTC")),
        pl.Series([m.replace(tzinfo=None) for m in MOMENTS], dtype=pl.Datetime("ms")),
        pl.Series([m.date() + datetime.timedelta(days=i) for i, m in enumerate(MOMENTS)]),
        pl.Series([int(m.timestamp()) for m in MOMENTS]),
        pl.Series([m.timestamp() + 0.5 for m in MOMENTS]),
    ):
        frame = pl.DataFrame({"arm": list(ORDER), "timestamp": column})
        frame[::-1].write_parquet(tmp_path / "log.parquet")
        for log in (ActionLog.from_frame(frame[::-1]), ActionLog.read(tmp_path / "log.parquet")):
            assert choices(log) == list(ORDER)
            assert "newest first and was sorted" in said(log).text


def test_ties_keep_the_order_of_the_file_and_are_counted():
    log = log_of(["2026-01-02", "2026-01-01", "2026-01-02", "2026-01-01", "2026-01-01"], "ABCDE")
    assert choices(log) == ["B", "D", "E", "A", "C"]
    assert said(log).count == 3
    assert "3 rows share their time with the row before, and keep the order of the file" in said(log).text
    assert "1 row shares its time with the row before, and keeps" in said(log_of(["1", "1"], "AB")).text


def test_a_log_that_runs_newest_first_is_sorted_and_said():
    log = log_of(["2026-01-03", "2026-01-02", "2026-01-02", "2026-01-01"], "ABCD")
    assert choices(log) == ["D", "B", "C", "A"]
    assert "newest first and was sorted" in said(log).text


def test_every_demonstration_is_ordered_by_itself():
    data = b"timestamp,user,arm\n9,x,A\n1,y,B\n5,x,B\n3,y,C\n5,x,C\n"
    log = ActionLog.from_bytes(data)
    assert [log.arms[code] for code in log.actions] == ["B", "C", "A", "B", "C"]
    assert log.demonstrations == ("x", "y")
    assert said(log).count == 1


def test_rewards_move_with_their_rows():
    log = ActionLog.from_bytes(b"when,arm,reward\n2026-01-02,A,1\n2026-01-01,B,0\n")
    assert log.rewards.tolist() == [0, 1]


def test_columns_may_be_named_and_left_out():
    times = ["2026-01-02", "2026-01-01"]
    assert choices(log_of(times, "AB", name="zeit", columns={"round": "zeit"})) == ["B", "A"]
    assert choices(log_of(times, "AB", columns={"round": ""})) == ["A", "B"]
    log = ActionLog.from_bytes(b"trial,timestamp,arm\n1,2026-01-02,A\n2,2026-01-01,B\n")
    assert choices(log) == ["A", "B"]  # numbers of rounds go before times
    log = ActionLog.from_bytes(b"trial,timestamp,arm\n1,2026-01-02,A\n2,2026-01-01,B\n", columns={"round": "timestamp"})
    assert choices(log) == ["B", "A"]


def test_times_do_not_make_rounds_of_counts():
    log = ActionLog.from_bytes(b"date,variant,visitors\n2026-01-02,A,10\n2026-01-02,B,30\n")
    assert log.pulls.tolist() == [[10, 30]]


@pytest.mark.parametrize("name", ["round", "trial", "step"])
def test_numbers_of_rounds_are_not_taken_for_times(name):
    with pytest.raises(LogError, match="so the opening is missing"):
        log_of(["1700000000", "1700000001"], "AB", name=name)
    with pytest.raises(LogError, match="so the opening is missing"):
        log_of(["45000", "45001"], "AB", name=name)


@pytest.mark.parametrize(
    ("times", "row", "problem"),
    [
        (["2026-01-01", "2026-01-01T10:00:00"], 2, "expected dates, as in the rows before"),
        (["2026-01-01T10:00:00", "2026-01-01T10:00:00Z"], 2, "expected dates and times without a zone"),
        (["2026-01-01T10:00:00Z", "1767261600"], 2, "expected dates and times with a zone"),
        (["1767261600", "2026-01-01T10:00:00Z"], 2, "expected seconds since 1970, as in the rows before"),
        (["1767261600", "1767261600000"], 2, "expected seconds since 1970, as in the rows before"),
        (["45231.5", "1767261600"], 2, "expected days as Excel counts them"),
        (["2026-02-30", "2026-03-01"], 1, "expected a time such as"),
        (["2026-01-01 25:00", "2026-01-02 10:00"], 1, "expected a time such as"),
        (["2026-01-01 10:00", "yesterday"], 2, 'got "yesterday"'),
        (["01/02/2026 10:00", "01/03/2026 10:00"], 1, "in which either number may be the day"),
        (["01/02/2026 10:00 PM", "01/03/2026 10:00 PM"], 1, "in which either number may be the day"),
        (["31.5.2026", "5.31.2026"], 2, "expected dates, day.month.year, as in the rows before"),
        (["05/31/2026", "31/05/2026"], 1, "and other rows have day and month in the other order"),
        (["05/31/2026 9:61 AM", "06/01/2026 9:00 AM"], 1, 'got "05/31/2026 9:61 AM". Write'),
        (["31.5.2026", "2026-06-01"], 2, "expected dates, day.month.year, as in the rows before"),
        (["2026-05-31 08:00 AM", "2026-05-31 20:00"], 2, "on a 12-hour clock, as in the rows before"),
        (["2026-05-31 13:00 PM", "2026-05-31 02:00 PM"], 1, "expected a time such as"),
        (["2026-05-31 0:30 AM", "2026-05-31 13:00 PM"], 2, "on a 12-hour clock, as in the rows before"),
        (["31 Mai 2026", "1 Juni 2026"], 1, "expected a time such as"),
        (["2026-01-01", ""], 2, "got a blank cell"),
        (["1969-12-31", "1970-01-01"], 1, "expected a time in the years 1970 to 2115"),
        (["2026-01-01", "2116-12-31"], 2, "expected a time in the years 1970 to 2115"),
    ],
)
def test_mixed_forms_and_what_is_no_time_are_refused(times, row, problem):
    with pytest.raises(LogError, match=re.escape(problem)) as refused:
        log_of(times, "AB")
    assert (refused.value.row, refused.value.column) == (row, "timestamp")


def test_two_columns_of_times_are_not_guessed_between():
    with pytest.raises(LogError, match='expected one column for round; got "created_at" and "served_at"'):
        ActionLog.from_bytes(b"created_at,served_at,arm\n2026-01-01,2026-01-02,A\n2026-01-01,2026-01-02,B\n")


def test_a_form_holds_from_batch_to_batch():
    column = RoundColumn("timestamp")
    assert column.read(LogError, pl.Series(["2026-01-01"])).tolist() == [1767225600 * 10**9]
    with pytest.raises(LogError, match="expected dates, as in the rows before"):
        column.read(LogError, pl.Series(["2026-01-01T00:00Z"]))
    with pytest.raises(LogError, match="expected dates, as in the rows before"):
        column.read(LogError, pl.Series([5]))


def written(tmp_path, rows):
    path = tmp_path / "log.csv"
    path.write_text("timestamp,user,arm\n" + "".join(f"{row}\n" for row in rows))
    return path


def followed(path, position=None):
    log = GrowingLog()
    follower = Follower(path, log, position=position)
    for _ in follower.news():
        pass
    return log, follower


def test_read_scanned_and_followed_give_the_same(tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"{1_700_000_000 + at // 3},{rng.choice(['x', 'y'])},{rng.choice(['A', 'B', 'C'])}" for at in range(500)]
    path = written(tmp_path, rows)
    read, scanned, (grown, follower) = ActionLog.read(path), ActionLog.scan(path), followed(path)
    for log in (scanned, grown):
        for name in ("pulls", "first", "last", "own", "of_best", "rounds"):
            expected = getattr(read.tallied("switching"), name)
            assert getattr(log.tallied("switching"), name).tolist() == expected.tolist()
    assert said(read) == said(scanned) == next(n for n in follower.notices if n.code == "times")


def test_what_cannot_be_sorted_is_refused(tmp_path):
    path = written(tmp_path, ["3,x,A", "3,y,A", "2,y,B"])
    for attempt in (lambda: ActionLog.scan(path).pulls, lambda: followed(path)):
        with pytest.raises(LogError, match='in ascending order in user "y"') as refused:
            attempt()
        assert refused.value.row == 3
    assert "read it whole" in str(refused.value)


def test_following_resumes_in_the_form_and_at_the_time_it_had(tmp_path):
    path = written(tmp_path, ["1700000003,x,A", "1700000003,y,A"])
    _, follower = followed(path)
    position = follower.position()
    assert position["times"] == "seconds since 1970"
    for row, problem in (("1700000002,x,B", "ascending order"), ("1700000004000,x,B", "expected seconds since 1970")):
        written(tmp_path, ["1700000003,x,A", "1700000003,y,A", row])
        with pytest.raises(LogError, match=problem):
            followed(path, position)


@pytest.mark.parametrize("scale", [3, 9, 20])
def test_seconds_as_decimals_keep_their_fraction(scale):
    seconds = [Decimal("1767225600.75"), Decimal("1767225600.25"), Decimal("1767225600.5")]
    column = pl.Series("timestamp", seconds, pl.Decimal(38, scale))
    log = ActionLog.from_frame(pl.DataFrame({"timestamp": column, "arm": ["C", "A", "B"]}))
    assert choices(log) == ["A", "B", "C"]
    assert said(log).count == 0
    times = RoundColumn("timestamp").read(LogError, column)
    assert times.tolist() == [int(each * 10**9) for each in seconds]
    days = RoundColumn("timestamp").read(LogError, pl.Series([Decimal("46000.5")], dtype=pl.Decimal(20, 5)))
    assert days.tolist() == [int((Decimal("46000.5") - 25569) * 86400 * 10**9)]


def test_numbers_some_of_which_could_be_days_are_plain_numbers():
    log = log_of(["90000", "60000", "30000"], "CBA")
    assert choices(log_of(["30000", "90000", "60000"], "ACB")) == choices(log) == ["A", "B", "C"]
    assert "read as numbers" in said(log).text
    assert "days as Excel" in said(log_of(["30000", "60000", "70000"], "ABC")).text


def test_a_log_that_runs_newest_first_says_nothing_of_clocks():
    times = ["2026-01-01 10:00:03", "2026-01-01 10:00:02", "2026-01-01 10:00:01"]
    assert "newest first" in said(log_of(times, "CBA")).text
    assert "clock" not in said(log_of(times, "CBA")).text
    assert "clock" in said(log_of([times[1], times[2], times[0]], "BAC")).text


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["2026-01-01T10:00:00Z", "2026-01-01T09:00:00.5Z"], "got 2026-01-01T09:00:00.5Z after 2026-01-01T10:00:00Z"),
        (["2026-01-10", "2026-01-02"], "got 2026-01-02 after 2026-01-10"),
        (["1767225603.5", "1767225600"], "got 1767225600 after 1767225603.5"),
        (["46000.5", "45000"], "got 45000 after 46000.5"),
    ],
)
def test_a_scan_says_which_times_go_back(tmp_path, times, said):
    path = tmp_path / "log.csv"
    path.write_text(f"timestamp,arm\n{times[0]},A\n{times[1]},B\n")
    with pytest.raises(LogError, match=re.escape(said)):
        len(ActionLog.scan(path))


# Times in a column that nothing reads


def hint(times, header="zeitpunkt,arm", columns=None):
    rows = "\n".join(f"{time},{arm}" for time, arm in zip(times, "ABAAB", strict=False))
    log = ActionLog.from_bytes(f"{header}\n{rows}\n".encode(), columns=columns)
    return [each.text for each in log.reading if "looks like times" in each.text]


@pytest.mark.parametrize(
    "times",
    [
        ["2026-05-05", "2026-05-04", "2026-05-04", "2026-05-01"],
        ["2026-05-05T10:00Z", "2026-05-05T09:00Z", "2026-05-04T23:00Z"],
        [1_780_236_204, 1_780_236_203, 1_780_236_202],
    ],
)
def test_times_that_are_not_read_are_named_with_their_order(times):
    (text,) = hint(times)
    assert 'column "zeitpunkt" looks like times, newest first, so the rows may be in reverse' in text
    (text,) = hint(times[::-1])
    assert "in the order of the rows" in text
    assert hint(times, columns={"round": "zeitpunkt"}) == []
    assert hint(times, columns={"round": ""}) == []
    assert hint([f'" {times[0]}"', *times[1:]]) == hint(times)


@pytest.mark.parametrize(
    "times",
    [
        ["2026-05-05", "2026-05-03", "2026-05-04"], ["2026-05-05", "x", "2026-05-04"], ["2026-05-05", "", "2026-05-04"],
        ["2026-05-05"] * 3, [3, 2, 1], ["05/03/2026", "05/02/2026"], [0.5, 0.4, 0.3],
    ],
)  # fmt: skip
def test_columns_that_are_no_times_or_in_no_order_are_not_named(times):
    assert hint(times) == []


NUMBERED = [f"2026-05-01T10:{minute:02}:00Z" for minute in range(20)]
ARMS = "ABAABBBABABBAAABABBA"
MIXED = [3, 1, 2, 0, 7, 6, 5, 4, 19, 18, 17, 16, 8, 9, 10, 11, 12, 13, 14, 15]


def numbered(name, order, columns=None, head="timestamp", people=1):
    """Read rows that are numbered from 0 in the order given; the arms are those of the times."""
    rows = [f"p{who},{at},{ARMS[i]},{NUMBERED[i]}" for who in range(people) for at, i in enumerate(order)]
    text = "\n".join([f"subject,{name},arm,{head}", *rows, ""])
    return ActionLog.from_bytes(text.encode(), columns=columns)


def on_times(log):
    return [(each.code, each.text) for each in log.reading if '"timestamp"' in each.text and each.code != "columns"]


@pytest.mark.parametrize("name", ["index", "step", "round"])
@pytest.mark.parametrize("columns", [None, "named"])
@pytest.mark.parametrize("people", [1, 3])
def test_times_beside_rounds_that_agree_are_noted(name, columns, people):
    log = numbered(name, range(20), columns and {"round": name}, people=people)
    ((code, text),) = on_times(log)
    assert code == "reading"
    assert text == f'"timestamp" is not read: its times run in the order of the rounds in "{name}".'
    assert choices(log) == list(ARMS) * people


@pytest.mark.parametrize("name", ["index", "step", "Trial"])
@pytest.mark.parametrize("people", [1, 3])
def test_times_go_before_a_column_that_is_only_taken_for_rounds(name, people):
    log = numbered(name, range(19, -1, -1), people=people)
    assert choices(log) == list(ARMS) * people
    (code, text), (order, _) = on_times(log)
    assert (code, order) == ("reading", "times")
    assert f'column "{name}" is not read as round' in text
    assert str(log.times.form) == "dates and times with a zone"


@pytest.mark.parametrize(("name", "columns"), [("round", None), ("round", "round"), ("index", "index")])
@pytest.mark.parametrize("people", [1, 3])
def test_times_that_contradict_rounds_are_warned_of(name, columns, people):
    log = numbered(name, range(19, -1, -1), columns and {"round": columns}, people=people)
    assert choices(log) == list(ARMS[::-1]) * people
    ((code, text),) = on_times(log)
    assert code == "times-against"
    assert f'The times in "timestamp" run opposite to the rounds in "{name}"' in text
    assert '["columns", {"round": "timestamp"}]' in text
    assert choices(numbered(name, range(19, -1, -1), {"round": "timestamp"})) == list(ARMS)


@pytest.mark.parametrize("name", ["round", "index"])
def test_times_in_another_order_are_warned_of_unless_rounds_were_named(name):
    ((code, text),) = on_times(numbered(name, MIXED))
    assert code == "times-against"
    assert f'are not in the order of the rounds in "{name}"' in text
    ((code, _),) = on_times(numbered(name, MIXED, {"round": name}))
    assert code == "reading"


def test_clocks_that_differ_a_little_and_coarse_times_agree():
    swapped = [1, 0, 2, 4, 3, *range(5, 20)]
    assert "run in the order" in on_times(numbered("round", swapped))[0][1]
    days = "".join(f"{at},A,2026-05-0{1 + at // 10}\n{at + 1},B,2026-05-0{1 + at // 10}\n" for at in range(0, 20, 2))
    assert "run in the order" in on_times(ActionLog.from_bytes(f"step,arm,timestamp\n{days}".encode()))[0][1]
    assert on_times(numbered("round", range(19, -1, -1), head="published")) == []
    few = ActionLog.from_bytes(b"round,arm,timestamp\n1,A,2026-05-02\n2,B,2026-05-01\n")
    assert on_times(few) == []


@pytest.mark.parametrize("name", ["round", "step", "index"])
@pytest.mark.parametrize("form", ["milliseconds", "microseconds", "nanoseconds", "seconds with a fraction"])
def test_times_since_1970_in_a_column_of_rounds_are_times(name, form):
    times = [FORMS[form](moment) for moment in MOMENTS]
    log = log_of([times[at] for at in (3, 0, 4, 2, 1)], [ORDER[at] for at in (3, 0, 4, 2, 1)], name=name)
    assert choices(log) == list(ORDER)
    assert f'in the order of the times in "{name}", read as ' in said(log).text


def test_seconds_that_are_not_consecutive_are_no_rounds():
    assert "read as seconds since 1970" in said(log_of([1_780_236_202, 1_780_236_207, 1_780_236_207], "ABA")).text
    assert choices(log_of([1_780_236_207, 1_780_236_202, 1_780_236_209], "BAB", "step")) == list("ABB")
    with pytest.raises(LogError, match="so the opening is missing"):
        log_of([1_780_236_202, 7, 1_780_236_209], "ABB", "step")
    with pytest.raises(LogError, match="so the opening is missing"):
        log_of([200_000_001, 200_000_005, 200_000_009], "ABB", "step")


def tied(times, arms):
    return [each for each in log_of(times, arms).reading if each.code == "times-tied"]


@pytest.mark.parametrize("times", [["1.78024E+12"] * 9 + ["1.78025E+12"], ["2026-05-01"] * 5 + ["2026-05-02"] * 5])
def test_times_that_most_rows_share_are_warned_of(times):
    (notice,) = tied(times, "ABABBABAAB")
    assert notice.count == 8
    assert '8 of 10 rows share their time in "timestamp" with the row before' in notice.text
    assert tied(times, [*"AAAAA", *"BBBBB"] if times[5] != times[4] else "A" * 9 + "B") == []


def backwards(times, arms):
    return [each for each in log_of(times, arms).reading if each.code == "ties-backwards"]


def test_rows_of_one_time_are_warned_of_where_the_log_runs_newest_first():
    times = [f"2026-05-01T10:{minute:02}" for minute in (9, 8, 8, 7, 6, 5)]
    (notice,) = backwards(times, "ABACBA")
    assert notice.count == 1
    assert '1 row shares its time in "timestamp" with the row before' in notice.text
    assert "polars.read_csv('log.csv', infer_schema=False).reverse()" in notice.text
    assert backwards(times[::-1], "ABACBA") == []
    assert backwards(times, "ABBCBA") == []  # both are of one arm
    assert backwards([times[0], *times[:5]], "BAABCA") != []
    most = ["2026-05-02"] * 5 + ["2026-05-01"] * 5
    assert len(backwards(most, "ABABBABAAB")) == 1
    assert tied(most, "ABABBABAAB") == []
    assert "ties-backwards" in MISREAD


def test_the_command_that_reverses_a_file_keeps_its_cells(tmp_path):
    cells = [f"2026-05-01T10:0{minute}" for minute in (9, 8, 8, 7, 6, 5)], ["01", '"a, b"', "01", "1", "1", "é"]
    path = tmp_path / "log.csv"
    path.write_text("timestamp,arm\n" + "".join(f"{time},{arm}\n" for time, arm in zip(*cells, strict=True)))
    (notice,) = (each for each in ActionLog.read(path).reading if each.code == "ties-backwards")
    program = notice.text.split('python -c "')[1].split('"`')[0]
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert choices(ActionLog.read(tmp_path / "reversed.csv")) == ["é", "1", "1", "01", "a, b", "01"]
    assert "ties-backwards" not in [each.code for each in ActionLog.read(tmp_path / "reversed.csv").reading]


def test_some_times_that_rows_share_are_only_counted():
    assert tied(["2026-05-01", "2026-05-01", "2026-05-02", "2026-05-03"], "ABAB") == []
    one_each = "".join(f"p{who},{arm},2026-05-01\n" for who in range(6) for arm in "A")
    text = f"subject,arm,date\n{one_each}p0,B,2026-05-02\n"
    assert [each for each in ActionLog.from_bytes(text.encode()).reading if each.code == "times-tied"] == []


@pytest.mark.parametrize("name", ["timestamp", "trial"])
@pytest.mark.parametrize("time", ["19.05.26 19:00:00", "05/19/26", "31-05-26", "1-Sep-26", "1 September 26, 9:00"])
def test_years_of_two_digits_are_refused_with_every_way_out(time, name):
    with pytest.raises(LogError) as refused:
        log_of([time, time], "AB", name=name)
    assert "told apart" not in refused.value.message
    assert "expected a time such as 2026-05-31T14:03:22Z" in refused.value.message
    assert f'got "{time}", whose year has two digits. Write the year first, with four digits' in refused.value.message
    remedy = phrase(refused.value.remedy, shell_option)
    assert "If another column numbers the rounds, name it with --columns round=NAME." in remedy
    assert "first choice comes first, keep the order of the file with --columns round=." in remedy


STYLES = {
    "%a, %d %b %Y %H:%M:%S GMT": "with a zone, the month by name",
    "%d %b %Y %H:%M:%S +0000": "with a zone, the month by name",
    "%d-%b-%Y %H:%M:%S": "without a zone, the month by name",
    "%d/%b/%Y:%H:%M:%S +0000": "with a zone, as web servers write them",
    "[%d/%b/%Y:%H:%M:%S +0000]": "with a zone, as web servers write them",
    "%Y-%m-%d %I:%M:%S %p": "without a zone, on a 12-hour clock",
    "%d.%m.%Y %H:%M:%S": "without a zone, day.month.year",
    "%d.%m.%Y, %H:%M:%S": "without a zone, day.month.year",
    "%d.%m.%Y %I:%M:%S %p": "without a zone, day.month.year on a 12-hour clock",
    "%d %B %Y %H:%M:%S": "without a zone, the month by name",
    "%A, %d. %B %Y, %I:%M:%S %p": "without a zone, the month by name on a 12-hour clock",
    "%B %d, %Y %H:%M:%S": "without a zone, the month by name before the day",
    "%b %d, %Y, %I:%M:%S\u202f%p": "without a zone, the month by name before the day on a 12-hour clock",
    "%B %dth, %Y at %I:%M:%S %p UTC": "with a zone, the month by name before the day on a 12-hour clock",
    "%a %b %d %H:%M:%S %Y": "without a zone, the month by name and the year at the end",
    "%a %b %d %H:%M:%S +0000 %Y": "with a zone, the month by name and the year at the end",
    "%d-%m-%Y %H:%M": "without a zone, day-month-year",
    "%d/%m/%Y %H:%M:%S": "without a zone, day/month/year",
    "%m/%d/%Y %H:%M:%S": "without a zone, month/day/year",
    "%m/%d/%Y, %I:%M:%S %p": "without a zone, month/day/year on a 12-hour clock",
    "%d/%m/%Y %I:%M:%S %p": "without a zone, day/month/year on a 12-hour clock",
}
HALF_DAYS = [datetime.datetime(2026, 4, 28, 0, 30) + datetime.timedelta(hours=12 * at) for at in range(12)]


def test_dates_with_different_separators_are_not_read_in_one_order():
    with pytest.raises(LogError, match="03-05-2026"):
        log_of(["13/04/2026", "03-05-2026", "14/04/2026"], "ABB")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("first", [0, 6])
def test_times_are_read_however_they_are_written(style, first):
    """The sixth is in May, when a part above 12 comes only in other rows."""
    moments = HALF_DAYS[first:] + HALF_DAYS[:first]
    arms = "ABBABBBAABAB"
    log = log_of([moment.strftime(style) for moment in moments], arms[first:] + arms[:first])
    assert choices(log) == list(arms)
    assert f"read as dates and times {STYLES[style]}" in said(log).text
    assert log.times.times.tolist() == [
        int(each.replace(tzinfo=datetime.UTC).timestamp()) * 10**9 for each in HALF_DAYS
    ]
    assert log.times.has_zone == ("with a zone" in STYLES[style])


@pytest.mark.parametrize(
    ("cells", "hours"),
    [
        (["5/31/2026 0:30 AM", "5/31/2026 0:30 PM"], [0.5, 12.5]),
        (["2026-05-31 12:30 a.m.", "2026-05-31 12:30 p.m."], [0.5, 12.5]),
        (["31.5.2026 0:30 a. m.", "31.5.2026 1:30 p. m."], [0.5, 13.5]),
        (["May 31, 2026 0:30AM", "may 31 2026 01:30 PM"], [0.5, 13.5]),
        (["31st May 2026 0:30", "31 May, 2026 13:30"], [0.5, 13.5]),
    ],
)
def test_clocks_of_twelve_hours_and_months_by_name(cells, hours):
    times = log_of(cells, "AB").times.times - np.datetime64("2026-05-31", "ns").astype(np.int64)
    assert (times / 3.6e12).tolist() == hours


def test_single_digits_offsets_and_days_alone_are_read():
    column = RoundColumn("timestamp")
    cells = ["Sun, 3 May 2026 8:05:01 -0230", "Sun, 03 May 2026 23:59:59 +0000"]
    expected = [datetime.datetime(2026, 5, 3, 10, 35, 1), datetime.datetime(2026, 5, 3, 23, 59, 59)]
    expected = [int(each.replace(tzinfo=datetime.UTC).timestamp()) * 10**9 for each in expected]
    assert column.read(LogError, pl.Series(cells)).tolist() == expected
    assert "read as dates, day.month.year" in said(log_of(["1.5.2026", "2.5.2026"], "AB")).text
    assert "read as dates, month/day/year" in said(log_of(["5/9/2026", "5/31/2026"], "AB")).text


def test_a_date_in_the_other_order_is_refused():
    with pytest.raises(LogError, match=r'expected dates, month/day/year, as in the rows before; got "31/05/2026"'):
        log_of(["05/30/2026", "05/31/2026", "31/05/2026"], "ABA")


def test_following_resumes_in_the_order_of_day_and_month(tmp_path):
    path = written(tmp_path, ["05/31/2026,x,A", "06/01/2026,x,B"])
    _, follower = followed(path)
    assert follower.position()["times"] == "dates, month/day/year"
    written(tmp_path, ["05/31/2026,x,A", "06/01/2026,x,B", "06/02/2026,x,B"])
    log, _ = followed(path, follower.position())
    assert log.lengths.tolist() == [1]


def test_an_undecided_first_block_is_refused_wherever_the_log_is_read(tmp_path):
    path = written(tmp_path, ["05/01/2026,x,A", "05/02/2026,x,B"])
    for attempt in (ActionLog.read, lambda file: ActionLog.scan(file).pulls, followed):
        with pytest.raises(LogError, match=r"in which either number may be the day"):
            attempt(path)


# A date in one column, and the time of day in another

CLOCKS = [
    ("2026-05-01", "23:59:58"),
    ("2026-05-01", "23:59:59"),
    ("2026-05-02", "0:00:00"),
    ("2026-05-02", "8:05:01.5"),
]


def halves(rows, names="date,time", **options):
    lines = [f"{first},{second},{arm}" for (first, second), arm in zip(rows, "ABCA", strict=True)]
    return ActionLog.from_bytes("\n".join([f"{names},arm", *lines, ""]).encode(), **options)


@pytest.mark.parametrize("names", ["date,time", "Date,Time of day", "event_date,clock"])
def test_dates_and_times_of_day_are_read_together(names):
    log = halves(CLOCKS[::-1], names)
    assert choices(log) == ["A", "C", "B", "A"]
    assert "newest first" in said(log).text
    first, second = names.split(",")
    assert any(f'"{first}" and "{second}" are read together' in each for each in log.notices)
    moments = log.times.times - log.times.times[0]
    assert moments.tolist() == [0, 10**9, 2 * 10**9, (8 * 3600 + 5 * 60 + 3) * 10**9 + 5 * 10**8]


@pytest.mark.parametrize(
    "rows",
    [[("31.05.2026", "8:05 PM"), ("31.05.2026", "8:06 PM"), ("01.06.2026", "1:00 AM"), ("02.06.2026", "2:00 AM")],
     [("31 May 2026", "8:05PM"), ("31 May 2026", "8:06 p.m."), ("1 June 2026", "0:30 a.m."), ("2 June 2026", "2:00AM")],
     [("05/31/2026", "08:00"), ("05/31/2026", "09:00"), ("06/01/2026", "01:00"), ("06/02/2026", "02:00")]],
)  # fmt: skip
def test_halves_are_read_as_they_are_written(rows):
    assert choices(halves(rows[::-1])) == ["A", "C", "B", "A"]


@pytest.mark.parametrize("columns", ["date+time", "time+date", " date + time"])
def test_two_columns_are_named_as_one_time(columns):
    log = halves(CLOCKS[::-1], columns={"round": columns.replace(" ", "")})
    assert choices(log) == ["A", "C", "B", "A"]
    assert not any("read together" in each for each in log.notices)


def test_columns_that_are_no_date_and_time_are_not_joined():
    with pytest.raises(LogError, match='expected a time of day such as 14:03:22; got "A"') as refused:
        halves(CLOCKS, columns={"round": "date+arm", "arm": "time"})
    assert refused.value.column == "arm"
    numbered = halves([("2026-05-01", at) for at in (3, 1, 2, 0)])
    assert choices(numbered) == ["A", "B", "C", "A"]
    with pytest.raises(LogError, match='expected one column for round; got "step" and "time"'):
        ActionLog.from_bytes(b"step,date,time,arm\n1,2026-05-01,10:00,A\n2,2026-05-01,11:00,B\n")


def test_a_time_of_day_alone_is_refused_with_the_way_to_join_it():
    with pytest.raises(LogError, match='got "10:00", a time of day alone') as refused:
        ActionLog.from_bytes(b"day of test,time,arm\n2026-05-01,10:00,A\n2026-05-01,11:00,B\n")
    assert '{"round": "DATE+time"}' in refused.value.remedy
    assert "the first choice comes first" in refused.value.remedy


def test_dates_and_times_of_day_have_types_too():
    moments = [datetime.datetime(2026, 5, 1 + at // 2, 23, at) for at in range(4)]
    frame = pl.DataFrame({"time": [each.time() for each in moments], "date": [each.date() for each in moments]})
    for date in (frame["date"], frame["date"].cast(pl.Datetime)):
        log = ActionLog.from_frame(frame.with_columns(date=date, arm=pl.Series(["A", "B", "C", "A"]))[::-1])
        assert choices(log) == ["A", "B", "C", "A"]
        assert log.times.times.tolist() == [
            int(each.replace(tzinfo=datetime.UTC).timestamp()) * 10**9 for each in moments
        ]


def test_dates_and_times_of_day_are_scanned_and_followed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("date,time,arm\n" + "".join(f"{a},{b},{arm}\n" for (a, b), arm in zip(CLOCKS, "ABCA", strict=True)))
    scanned, (grown, follower) = ActionLog.scan(path), followed(path)
    for log, notices in ((scanned, scanned.notices), (grown, [each.text for each in follower.notices])):
        assert log.pulls.tolist() == [[2, 1, 1]]
        assert any("are read together" in each for each in notices)
    path.write_text("date,time,arm\n2026-05-02,10:00,A\n2026-05-01,11:00,B\n")
    for attempt in (lambda: ActionLog.scan(path).pulls, lambda: followed(path)):
        with pytest.raises(LogError, match="ascending order; got 2026-05-01T11:00:00 after 2026-05-02T10:00:00"):
            attempt()


# Holes in times

DAY_SECONDS = 86_400


def traffic(kind, days=60, seed=1, rows=4_000):
    """Return the seconds at which a service chose: through day and night, in office hours, by day, or in bursts."""
    rng = np.random.default_rng(seed)
    if kind == "daily":
        return np.arange(days) * DAY_SECONDS
    if kind == "bursts":
        times = np.cumsum(rng.lognormal(0, 1.5, rows))
        return times / times[-1] * days * DAY_SECONDS
    times = np.sort(rng.uniform(0, days * DAY_SECONDS, rows))
    hours, weekday = times / 3600 % 24, times // DAY_SECONDS % 7
    if kind in ("by day", "office"):
        times, weekday = times[(hours > 8) & (hours < 20)], weekday[(hours > 8) & (hours < 20)]
    return times[weekday < 5] if kind in ("office", "weekdays") else times


def holes(seconds, kept=None):
    moments = np.datetime64("2026-05-04T00:00:00") + seconds.astype(np.int64).astype("m8[s]")
    arms = np.random.default_rng(1).choice(["A", "B"], seconds.size)
    log = ActionLog.from_frame(pl.DataFrame({"timestamp": moments.astype("M8[us]"), "arm": arms}))
    record = log if kept is None else thinned(log, kept)
    return [each for each in record.reading if each.code in ("hole-in-times", "missing-block")]


@pytest.mark.parametrize("kind", ["day and night", "by day", "office", "weekdays", "bursts"])
@pytest.mark.parametrize("days", [2, 5, 8, 12, 16, 60, 400])
def test_ordinary_logs_have_no_hole(kind, days):
    assert [holes(traffic(kind, days, seed)) for seed in range(3)] == [[]] * 3


def test_daily_logs_have_no_hole():
    days = np.arange(200)
    for kept in (days >= 0, days % 7 < 5, (days < 50) | (days > 56)):
        assert holes(days[kept] * DAY_SECONDS) == []


@pytest.mark.parametrize(
    ("kind", "begin", "length"),
    [("day and night", 20, 15), ("day and night", 20, 2), ("by day", 20, 15), ("bursts", 20, 15), ("weekdays", 7, 50)],
)
def test_an_outage_is_a_hole(kind, begin, length):
    times = traffic(kind)
    (notice,) = holes(times[(times < begin * DAY_SECONDS) | (times > (begin + length) * DAY_SECONDS)])
    said = re.search(r"has no rows for (\d+) days after 2026-05-", notice.text)
    assert said is not None
    assert length <= int(said[1]) <= length + 3
    assert "read only the rows before the hole" in notice.text


def test_a_probability_of_being_kept_is_warned_of_beside_a_hole():
    times = traffic("day and night")
    times = times[(times < 20 * DAY_SECONDS) | (times > 35 * DAY_SECONDS)]
    assert [each.code for each in holes(times, 0.75)] == ["hole-in-times", "missing-block"]
    assert "missing-block" in MISREAD
    assert holes(traffic("day and night"), 0.75) == []


def test_the_time_between_two_demonstrations_is_no_hole():
    """What began two weeks after something else missed nothing."""
    one = np.sort(np.random.default_rng(1).uniform(0, 3 * DAY_SECONDS, 200))
    seconds = np.concatenate([one, one + 14 * DAY_SECONDS])
    frame = pl.DataFrame(
        {
            "timestamp": (np.datetime64("2026-05-04T00:00:00") + seconds.astype("m8[s]")).astype("M8[us]"),
            "arm": np.random.default_rng(2).choice(["A", "B"], 400), "subject": ["one"] * 200 + ["two"] * 200,
        }
    )  # fmt: skip
    apart, together = ActionLog.from_frame(frame), ActionLog.from_frame(frame.drop("subject"))
    assert [each.code for each in apart.reading if each.code == "hole-in-times"] == []
    assert [each.code for each in together.reading if each.code == "hole-in-times"] == ["hole-in-times"]


def sessions(days, hours=1.0, rows=150, seed=1):
    """Return the seconds at which somebody chose who came on these days, each time for some hours."""
    rng = np.random.default_rng(seed)
    parts = [day * DAY_SECONDS + rng.uniform(0, 2 * 3600) + rng.uniform(0, hours * 3600, rows) for day in days]
    return np.sort(np.concatenate(parts))


@pytest.mark.parametrize("days", [(0, 7), (0, 7, 14), (0, 7, 14, 21), (0, 7, 21), (0, 6, 14, 20), (0, 30, 35, 60)])
@pytest.mark.parametrize("hours", [0.2, 1.0, 4.0])
def test_pauses_between_sessions_are_no_holes(days, hours):
    assert [holes(sessions(days, hours, seed=seed)) for seed in range(3)] == [[]] * 3


def test_pauses_that_are_alike_are_no_holes():
    """A service ran for three days of every two weeks."""
    assert holes(sessions((0, 14, 28, 42), 72, rows=500)) == []
    assert len(holes(sessions((0, 10), 20, rows=1_500))) == 1  # two long stretches: of a service
    assert len(holes(sessions((0, 14, 28, 84), 72, rows=500))) == 1


@pytest.mark.parametrize("days", [(0, 1, 2, 3, 40), (0, 1, 2, 30), (0, 1, 15)])
def test_one_pause_far_longer_than_those_between_sessions_is_a_hole(days):
    (notice,) = holes(sessions(days))
    assert f"has no rows for {days[-1] - days[-2]} days" in notice.text


@pytest.mark.parametrize("people", [1, 3])
def test_holes_are_the_same_in_logs_that_are_read_scanned_and_followed(tmp_path, people):
    times = traffic("day and night")
    times = times[(times < 20 * DAY_SECONDS) | (times > 35 * DAY_SECONDS)].astype(np.int64) + 1_700_000_000
    who = np.random.default_rng(3).integers(people, size=times.size)
    rows = [f"{time},{'xyz'[key]},{'AB'[time % 2]}" for time, key in zip(times.tolist(), who.tolist(), strict=True)]
    rows = [row for key in range(people) for row in rows if row[11] == "xyz"[key]] if people == 3 else rows

    def hole(notices):
        (notice,) = (each for each in notices if each.code == "hole-in-times")
        return notice

    path = written(tmp_path, rows)
    expected = hole(ActionLog.read(path).reading)
    scanned = ActionLog.scan(path)
    assert len(scanned) == people
    assert hole(scanned.reading) == expected == hole(followed(path)[1].notices)
    small = ScannedLog(sources_of(path), rows=100)
    assert hole(small.reading) == expected
    written(tmp_path, rows[:500])
    log, follower = followed(path)
    for end in (1_000, len(rows)):
        position = json.loads(json.dumps(follower.position()))
        written(tmp_path, rows[:end])
        follower = Follower(path, log, position=position)
        assert sum(follower.news()) > 0
    assert hole(follower.notices) == expected


@pytest.mark.parametrize(("arms", "is_said"), [("AB", True), ("A", False)])
def test_times_that_most_rows_share_are_warned_of_however_a_log_is_read(tmp_path, arms, is_said):
    """Unless the rows of one time are all of one arm."""
    rows = [f"2026-05-{1 + at // 10:02},{'xy'[at % 2]},{arms[at // 2 % len(arms)]}" for at in range(60)]
    rows += ["2026-06-01,x,A", "2026-06-01,y,A", "2026-06-02,x,B", "2026-06-02,y,B"]
    path = written(tmp_path, rows)

    def tied(notices):
        return [each for each in notices if each.code == "times-tied"]

    expected = tied(ActionLog.read(path).reading)
    assert bool(expected) == is_said
    assert tied(ActionLog.scan(path).reading) == expected == tied(followed(path)[1].notices)
    log, position = GrowingLog(), None
    for end in range(1, len(rows) + 1):
        written(tmp_path, rows[:end])
        follower = Follower(path, log, position=position)
        assert sum(follower.news()) == 1
        position = json.loads(json.dumps(follower.position()))
    assert tied(follower.notices) == expected


def test_pauses_between_demonstrations_are_no_holes_in_scanned_logs(tmp_path):
    one = sessions((0,), 72, rows=200).astype(np.int64) + 1_700_000_000
    rows = [f"{time + 14 * DAY_SECONDS * (who == 'y')},{who},{'AB'[time % 2]}" for who in "xy" for time in one.tolist()]
    path, alone = written(tmp_path, rows), [row.replace(",y,", ",x,") for row in rows]
    for notices in (ActionLog.scan(path).reading, followed(path)[1].notices):
        assert "hole-in-times" not in [each.code for each in notices]
    written(tmp_path, alone)
    for notices in (ActionLog.scan(path).reading, followed(path)[1].notices):
        assert "hole-in-times" in [each.code for each in notices]


def test_stretches_of_times_are_the_same_in_whatever_order_they_come():
    times = np.random.default_rng(1).lognormal(25, 3, 20_000).astype(np.int64)
    whole = CoarseTimes()
    whole.add(times)
    parts = CoarseTimes()
    for part in np.array_split(np.random.default_rng(2).permutation(times), 70):
        parts.add(part)
    assert (whole.times.tolist(), whole.count) == (parts.times.tolist(), parts.count)
    assert whole.times.size <= 2 * 2_049
    assert {times.min(), times.max()} <= {*whole.times.tolist()}
    pauses, coarse = (np.sort(np.diff(np.sort(each)))[-3:].tolist() for each in (times, whole.times))
    assert pauses == coarse


def test_three_outages_do_not_hide_each_other():
    times = traffic("day and night", 120) / DAY_SECONDS
    off = [(20, 35), (50, 58), (90, 100)]
    kept = ~np.any([(times > begin) & (times < end) for begin, end in off], axis=0)
    (notice,) = holes(times[kept] * DAY_SECONDS)
    assert "has no rows for 15 days after 2026-05-2" in notice.text


def test_a_table_of_counts_as_of_some_time_stays_one():
    table = b"date,time,arm,pulls\n2026-05-31,14:03,A,500\n2026-05-31,14:03,B,90\n2026-05-31,14:03,C,40\n"
    log = ActionLog.from_bytes(table)
    assert (log.ordered, log.pulls.tolist()) == (False, [[500, 90, 40]])
