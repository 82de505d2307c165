"""Times that nothing reads, beside a column of rounds: do the two agree on the order of the rows?"""

from datetime import UTC, datetime, timedelta

import pytest

from unbandit import ActionLog

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
