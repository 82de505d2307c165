"""Times that nothing reads, beside a column of rounds: do the two agree on the order of the rows?"""

from datetime import UTC, datetime, timedelta

import pytest

from unbandit import ActionLog, ContextLog, LogError
from unbandit.contexts.result import warnings_and_notes

ARMS = "ABAABBBABABBAAABABBA"
MOMENTS = [datetime(2026, 5, 1, tzinfo=UTC) + timedelta(seconds=7 * at) for at in range(3_000)]
NUMBERED = [each.isoformat() for each in MOMENTS]


def choices(log):
    return [log.arms[code] for code in log.actions]


def on_times(log):
    """Return what is said of times and the order of rounds."""
    codes = ("reading", "times-against")
    return [(each.code, each.text) for each in log.reading if each.code in codes and "times in" in each.text]


def read(names, rows, **options):
    text = "\n".join([names, *(",".join(map(str, row)) for row in rows), ""])
    return ActionLog.from_bytes(text.encode(), **options)


def test_times_are_compared_with_rounds_in_files_of_folders(tmp_path):
    rows = "".join(f"{at},{ARMS[i]},{NUMBERED[i]}\n" for at, i in enumerate(range(19, -1, -1)))
    for who in (7, 8):
        folder = tmp_path / f"demonstration={who}"
        folder.mkdir()
        (folder / "x.csv").write_text(f"index,arm,timestamp\n{rows}")
    log = ActionLog.read(tmp_path)
    assert choices(log) == list(ARMS) * 2
    assert on_times(log)[0][0] == "reading"


@pytest.mark.parametrize("name", ["index", "round"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_times_are_compared_with_rounds_where_rows_are_long(name, ending):
    cells = ",".join(["some words"] * 10)
    lines = [f"{at},{'AB'[at % 7 == 0]},{cells},{each}" for at, each in enumerate(NUMBERED[::-1])]
    names = ",".join(f"c{at}" for at in range(10))
    text = ending.join([f"{name},arm,{names},timestamp", *lines, ""])
    assert len(text) > 6 << 16
    (code, _), *_ = on_times(ActionLog.from_bytes(text.encode()))
    assert code == ("reading" if name == "index" else "times-against")


REVERSED = [(at, ARMS[::-1][at], NUMBERED[19 - at]) for at in range(20)]


@pytest.mark.parametrize("names", ["index,arm,date,timestamp", "index,arm,timestamp,date"])
def test_a_day_that_all_rows_share_says_nothing_of_their_order(names):
    day_last = names.endswith("date")
    rows = [(at, arm, *((time, "2026-05-01") if day_last else ("2026-05-01", time))) for at, arm, time in REVERSED]
    log = read(names, rows)
    assert choices(log) == list(ARMS)
    assert '"timestamp" run the other way' in on_times(log)[0][1]


def test_the_finer_of_two_times_orders_rounds():
    rows = [(at, arm, NUMBERED[19 - at][:10] if at else "2026-05-02", NUMBERED[19 - at]) for at, arm, _ in REVERSED]
    log = read("index,arm,date,timestamp", rows)
    assert choices(log) == list(ARMS)


@pytest.mark.parametrize("names", ["index,arm,created_at,timestamp", "index,arm,timestamp,created_at"])
def test_times_that_contradict_rounds_are_warned_of_where_others_agree(names):
    places = [2, 3] if names.endswith("timestamp") else [3, 2]
    rows = [[at, arm, None, None] for at, arm, _ in REVERSED]
    for at, row in enumerate(rows):
        row[places[0]], row[places[1]] = NUMBERED[at], NUMBERED[19 - at]
    log = read(names, rows)
    assert choices(log) == list(ARMS[::-1])
    ((code, text),) = on_times(log)
    assert code == "times-against"
    assert 'The times in "timestamp" run opposite to the rounds in "index"' in text


@pytest.mark.parametrize("blank", ["", " ", '"  "'])
def test_blank_cells_do_not_hide_that_times_contradict_rounds(blank):
    rows = [(at, arm, blank if at == 5 else time) for at, arm, time in REVERSED]
    ((code, _),) = on_times(read("round,arm,timestamp", rows))
    assert code == "times-against"
    text = '"index" is not read as round: the times in "timestamp" run the other way'
    with pytest.raises(LogError, match=text) as refused:
        read("index,arm,timestamp", rows)
    assert refused.value.line == 7
    assert on_times(read("round,arm,timestamp", [(at, arm, time if at < 4 else blank) for at, arm, time in rows])) == []


def test_a_row_without_a_round_does_not_hide_that_times_contradict_rounds():
    rows = [*REVERSED, ("", "", NUMBERED[0])]
    ((code, _),) = on_times(read("round,arm,timestamp", rows, blank="skip"))
    assert code == "times-against"
    assert choices(read("index,arm,timestamp", rows, blank="skip")) == list(ARMS)


@pytest.mark.parametrize("name", ["index", "round"])
def test_times_of_every_file_are_compared_with_rounds(tmp_path, name):
    for who, rows in enumerate([[(at, ARMS[at], NUMBERED[at]) for at in range(20)], REVERSED]):
        folder = tmp_path / f"demonstration={who}"
        folder.mkdir()
        text = "".join(f"{at},{arm},{time}\n" for at, arm, time in rows)
        (folder / "x.csv").write_text(f"{name},arm,timestamp\n{text}")
    log = ActionLog.read(tmp_path)
    assert choices(log) == [*ARMS, *ARMS[::-1]]
    ((code, _),) = on_times(log)
    assert code == "times-against"


def test_a_file_without_the_columns_of_the_first_is_refused_as_ever(tmp_path):
    (tmp_path / "1.csv").write_text("round,arm,timestamp\n" + "".join(f"{a},{b},{c}\n" for a, b, c in REVERSED))
    (tmp_path / "2.csv").write_text("arm,timestamp\nA,2026-05-01\n")
    with pytest.raises(LogError, match='expected a column "round"'):
        ActionLog.read(tmp_path)


def with_features(name, columns=None):
    rows = [(at, arm, at % 3, at % 5, time) for at, arm, time in REVERSED]
    text = "\n".join([f"{name},arm,x1,x2,timestamp", *(",".join(map(str, row)) for row in rows), ""])
    return ContextLog.from_bytes(text.encode(), features=["x1", "x2"], columns=columns)


def test_times_are_compared_with_the_rounds_of_a_log_with_features():
    log = with_features("round")
    assert [log.arms[at] for at in log.chosen] == list(ARMS[::-1])
    ((code, text),) = on_times(log)
    assert code == "times-against"
    assert not any('"timestamp" is not read: if the learner' in each.text for each in log.reading)
    assert warnings_and_notes(log, log.reading)[0] == [each for each in log.reading if each.text == text]
    log = with_features("index")
    assert [log.arms[at] for at in log.chosen] == list(ARMS)
    assert on_times(log)[0][0] == "reading"
    assert on_times(with_features("index", {"round": "index"}))[0][0] == "times-against"


def test_times_are_compared_with_the_rounds_of_offers():
    rows = [(at, arm, int(arm == mine), at % 3, time) for at, mine, time in REVERSED for arm in "AB"]
    text = "\n".join(["step,arm,chosen,x1,timestamp", *(",".join(map(str, row)) for row in rows), ""])
    ((code, _),) = on_times(ContextLog.from_bytes(text.encode(), features=["x1"]))
    assert code == "times-against"
