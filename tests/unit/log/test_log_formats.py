"""Formats of files beside CSV and Parquet, files without a header, and text as Excel writes it in Europe."""

import datetime
import gzip
import io
import re
import zipfile

import polars as pl
import pytest
from workbooks import xlsx

from unbandit import ActionLog, LogError, ParameterError
from unbandit.log.follower import Follower
from unbandit.log.formats import open_bytes
from unbandit.log.growth import GrowingLog

CHOICES = ["A", "B", "A", "C", "A"]
FRAME = pl.DataFrame({"round": [1, 2, 3, 4, 5], "arm": CHOICES})
LINES = b"".join(b'{"round": %d, "arm": "%s"}\n' % (at, arm.encode()) for at, arm in enumerate(CHOICES, 1))


def choices(log):
    return [log.arms[code] for code in log.actions]


def notices(log, code):
    return [notice.message for notice in log.reading if notice.code == code]


def arrow(frame, kind="file"):
    held = io.BytesIO()
    frame.write_ipc(held) if kind == "file" else frame.write_ipc_stream(held)
    return held.getvalue()


def followed(path, **options):
    log = GrowingLog()
    follower = Follower(path, log, **options)
    for _ in follower.news():
        pass
    return log, follower


# JSON lines


@pytest.mark.parametrize("name", ["log.jsonl", "log.ndjson", "log.json", "log"])
def test_json_lines_are_read_scanned_and_followed(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(LINES)
    read = ActionLog.read(path)
    assert choices(read) == CHOICES
    assert ActionLog.scan(path).pulls.tolist() == read.pulls.tolist() == followed(path)[0].pulls.tolist()
    path.write_bytes(gzip.compress(LINES))
    assert choices(ActionLog.read(path)) == CHOICES


def test_values_stay_as_they_are_written():
    data = b'{"arm": 1.0, "x": [1], "y": {"s": 1, "s": 2}}\n\n{"arm": "01"}\r\n{"arm": true}\n'
    data += b'{"arm": 10000000000000000000000001}'
    assert ActionLog.from_bytes(data).arms == ("1.0", "01", "true", "10000000000000000000000001")
    assert open_bytes(data, "log").names == ["arm"]  # lists are no columns


def test_a_growing_file_of_json_lines_is_followed_line_by_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINES[:-10])
    log = GrowingLog()
    follower = Follower(path, log)
    assert sum(follower.news()) == 4
    with path.open("ab") as file:
        file.write(LINES[-10:] + b'{"round": 6, "arm": "B"}\n')
    assert sum(follower.news()) == 2
    assert log.pulls.tolist() == [[3, 2, 1]]


def test_many_lines_are_read_block_by_block():
    rows = 60_000
    data = b"".join(b'{"arm": "%d", "round": %d, "note": "padding"}\n' % (at % 7, at) for at in range(rows))
    assert ActionLog.from_bytes(data).pulls.sum() == rows
    with pytest.raises(LogError, match="JSON object per line") as refused:
        ActionLog.from_bytes(data + b"\n{oops}\n")
    assert (refused.value.row, refused.value.line) == (rows + 1, rows + 2)


@pytest.mark.parametrize(
    ("data", "problem", "row"),
    [
        (b'{"arm": "A"}\n[1]\n', "a line that holds a list", 2),
        (b'{"arm": "A"}\n\n"B"\n', "a line that holds a text", 2),
        (b'{"arm": "A"}\n{"arm": "B"\n', "expected one JSON object per line", 2),
        (b'{\n  "arm": "A"\n}\n', "expected one JSON object per line", 1),
        (b'{"arm": "A", "arm": "B"}\n', "two members of one name", 1),
        (b'[{"arm": "A"}, {"arm": "B"}]', "got a list of objects", None),
        (b'{"arm": "A"}\n{"round": 2}\n', "a blank cell", 2),
        (b'{"arm": "A"}\n{"arm": null}\n', "a blank cell", 2),
        (b'{"arm": "A"}\n' * 9000 + b'{"arm": ["B"]}\n', "got a list", 9001),
        (b'{"arm": ' + b"[" * 100_000, "expected one JSON object per line", 1),
    ],
)
def test_what_is_no_json_lines_is_refused(data, problem, row):
    with pytest.raises(LogError, match=re.escape(problem)) as refused:
        ActionLog.from_bytes(data)
    assert refused.value.row == row


# Arrow


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_is_read_and_scanned(kind, tmp_path):
    path = tmp_path / "log.feather"
    path.write_bytes(arrow(FRAME, kind))
    assert choices(ActionLog.read(path)) == choices(ActionLog.from_bytes(path.read_bytes())) == CHOICES
    assert ActionLog.scan(tmp_path).pulls.tolist() == [[3, 1, 1]]
    with pytest.raises(LogError):
        followed(path)


def test_arrow_of_other_types():
    frame = pl.DataFrame(
        {"arm": pl.Series(CHOICES, dtype=pl.Categorical), "timestamp": FRAME["round"].cast(pl.Datetime)}
    )
    assert choices(ActionLog.from_bytes(arrow(frame[::-1]))) == CHOICES


@pytest.mark.parametrize(
    "data", [arrow(FRAME)[:-9], arrow(FRAME)[:60], arrow(FRAME, "stream")[:90], b"FEA1" + bytes(90)]
)
def test_a_damaged_arrow_file_is_refused(data):
    with pytest.raises(LogError, match=r"expected (a whole Arrow file|Feather of version 2)"):
        ActionLog.from_bytes(data)


# Without a header, and as Excel writes text in Europe


def test_a_file_without_a_header_is_read_when_asked(tmp_path):
    log = ActionLog.from_bytes(b"A\nB\nA\n", header=False)
    assert choices(log) == ["A", "B", "A"]
    assert notices(log, "layout") == ["the file is read without a header."]
    log = ActionLog.from_bytes(b"2,A\n1,B\n3,A\n", header=False, columns={"round": "1", "arm": "2"})
    assert choices(log) == ["B", "A", "A"]
    assert notices(log, "layout") == ["the file is read without a header: its columns are called 1 to 2."]
    path = tmp_path / "log.csv"
    path.write_bytes(b"1,A\n2,B\n3,A\n")
    columns = {"round": "1", "arm": "2"}
    scanned = ActionLog.scan(path, columns=columns, header=False)
    grown, follower = followed(path, columns=columns, header=False)
    assert scanned.pulls.tolist() == grown.pulls.tolist() == [[2, 1]]
    assert "without a header" in scanned.notices[0]
    assert "without a header" in follower.notices[0].message
    with pytest.raises(LogError, match='expected a column "arm"'):
        ActionLog.from_bytes(b"1,A\n2,B\n", header=False)


@pytest.mark.parametrize(
    "data", [b"1,0.5\n2,0.25\n", b"2026-01-01,A\n2026-01-02,B\n", b"left\nright\nleft\n", b"1,1\n2,2\n"]
)
def test_a_missing_header_is_offered(data):
    with pytest.raises(LogError, match=r"If the first row is data.*header=False"):
        ActionLog.from_bytes(data)


HEADERLESS = (
    [["treatment"], ["control"], ["treatment"]],
    [["2026-01-01T00:00:03Z", "treatment"]] * 2 + [["2026-01-01T00:00:04Z", "control"]],
)


@pytest.mark.parametrize("rows", [*HEADERLESS, [["1", "option"], ["2", "A"], ["3", "B"]]])
def test_a_first_row_that_may_be_data_is_refused(tmp_path, rows):
    path = tmp_path / "log.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    named = {"arm": rows[0][-1], "demonstration": "", "round": ""}
    for read in (ActionLog.read, ActionLog.scan, followed):
        with pytest.raises(LogError, match=r"expected the names of columns in the first row.*header=False"):
            len(read(path))
    if rows[0] != rows[1]:
        assert ActionLog.read(path, columns=named).pulls.sum() == len(rows) - 1
    columns = {"arm": "2", "round": "1"} if len(rows[0]) > 1 else None
    assert ActionLog.read(path, header=False, columns=columns).pulls.sum() == len(rows)
    assert ActionLog.from_frame(pl.DataFrame({"treatment": ["treatment", "control"]})).arms == ("treatment", "control")


@pytest.mark.usefixtures("excel")
@pytest.mark.parametrize("rows", HEADERLESS)
def test_a_first_row_of_a_sheet_that_may_be_data_is_refused(rows):
    with pytest.raises(LogError, match=r"expected the names of columns in the first row.*header=False"):
        ActionLog.from_bytes(xlsx(log=rows))


def test_columns_beside_the_arm_may_be_called_by_numbers():
    assert choices(ActionLog.from_bytes(b"arm,1,2\nA,0,0\nB,0,1\n")) == ["A", "B"]


def test_json_lines_of_any_length_are_followed(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"arm": "A", "list": [1]}\n{"arm": "B"}\n' * 3000)
    assert followed(path)[0].pulls.tolist() == [[3000, 3000]]
    path.write_text(f'{{"arm": "A", "note": "{"x" * 70_000}"}}\n{{"arm": "B"}}\n')
    assert followed(path)[0].pulls.tolist() == [[1, 1]]


@pytest.mark.parametrize(("name", "value"), [("user_id", '"u"'), ("reward", "1"), ("trial", "3"), ("timestamp", "5")])
def test_members_that_come_late_and_would_have_a_role_are_refused(tmp_path, name, value):
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"arm": "A", "list": [1]}\n{"arm": "B"}\n' * 3000 + f'{{"arm": "A", "list": 1, "{name}": {value}}}\n'
    )
    with pytest.raises(LogError, match=f'expected a member "{name}" from the first objects on') as refused:
        ActionLog.read(path)
    assert (refused.value.row, refused.value.line) == (6001, 6001)
    role = {"user_id": "demonstration", "trial": "round", "timestamp": "round"}.get(name, name)
    assert ActionLog.read(path, columns={role: ""}).pulls.sum() == 6001
    if name == "reward":
        assert ActionLog.scan(path).pulls.sum() == 6001
    else:
        with pytest.raises(LogError, match="from the first objects on"):
            followed(path)


def test_a_header_of_numbers_is_said():
    log = ActionLog.from_bytes(b"1,2\n5,A\n6,B\n", columns={"arm": "2"})
    assert notices(log, "layout") == [
        "the first row (1, 2) is read as the names of columns: if it is data, read the file with header=False."
    ]


@pytest.mark.parametrize("data", [LINES, arrow(FRAME)])
def test_formats_that_name_their_columns_have_a_header(data):
    with pytest.raises(ParameterError, match="expected only with text in columns or a spreadsheet"):
        ActionLog.from_bytes(data, header=False)
    with pytest.raises(ParameterError, match="expected only with a spreadsheet"):
        ActionLog.from_bytes(data, sheet="log")


def test_latin_1_is_read_and_said(tmp_path):
    data = "arm;note\nmüsli;5 €\ncafé;\nmüsli;\n".encode("cp1252")
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    for log in (ActionLog.from_bytes(data), ActionLog.scan(path)):
        assert log.arms == ("müsli", "café")
        assert notices(log, "layout") == [
            "the file is read with semicolons between cells, as Windows-1252 (Latin-1), since it is no UTF-8. "
            'It holds "müsli": if that looks wrong, save the file as UTF-8.'
        ]
    with pytest.raises(LogError, match="expected text in UTF-8"):
        followed(path)


def test_a_letter_that_two_chunks_share_is_utf_8(tmp_path, monkeypatch):
    for padding in range(8):
        data = b"arm\n" + b"A" * ((1 << 16) - 8 + padding) + "é\nB\n".encode()
        log = ActionLog.from_bytes(data)
        assert log.arms[0].endswith("é")
        assert notices(log, "layout") == []


def test_latin_1_may_begin_late():
    data = b"arm\n" + b"A\nB\n" * 50_000 + "ü\n".encode("latin-1")
    assert ActionLog.from_bytes(data).arms == ("A", "B", "ü")


def test_decimal_commas_are_read_and_said():
    log = ActionLog.from_bytes(b"arm;reward\nA;0,5\nB;1\nA;\nB;-,25\nA;1,500\n")
    assert log.rewards.tolist()[:2] == [0.5, 1]
    assert log.rewards.tolist()[3:] == [-0.25, 1.5]
    assert any("written with decimal commas" in notice for notice in log.notices)


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (["1,500", "2,250"], "whose comma may separate thousands or decimals"),
        (["0,5", "0.5"], 'got "0,5"'),
        (["0.5", "0,5"], 'got "0,5"'),
        (["1.000,5", "1"], 'got "1.000,5"'),
        (["1,5,5", "0,5"], 'got "1,5,5"'),
    ],
)
def test_commas_that_may_mean_something_else_are_refused(cells, problem):
    data = "arm;reward\n" + "".join(f"{arm};{cell}\n" for arm, cell in zip("AB", cells, strict=True))
    with pytest.raises(LogError, match=re.escape(problem)):
        ActionLog.from_bytes(data.encode())


# Spreadsheets


def ods(rows):
    """Return a spreadsheet of OpenDocument with one sheet."""
    office = "urn:oasis:names:tc:opendocument:xmlns:"
    written = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    lines = "".join(f"<table:table-row>{''.join(map(written.format, row))}</table:table-row>" for row in rows)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{office}manifest:1.0"/>')
        book.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{office}office:1.0" xmlns:table="{office}table:1.0" '
            f'xmlns:text="{office}text:1.0"><office:body><office:spreadsheet><table:table table:name="log">{lines}'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    return held.getvalue()


DAY = datetime.datetime(2026, 3, 1, 12)
LATER, NEXT = DAY + datetime.timedelta(seconds=1), DAY + datetime.timedelta(days=1)
SHEET = [["when", "choice"], [LATER, 2], [DAY, "x"], [NEXT, 10]]


@pytest.fixture
def excel():
    return pytest.importorskip("fastexcel", reason="spreadsheets are read by fastexcel")


@pytest.mark.usefixtures("excel")
def test_the_first_sheet_is_read_or_the_one_that_is_named(tmp_path):
    data = xlsx(log=SHEET, other=[["arm"], ["A"], ["B"]], blank=[])
    log = ActionLog.from_bytes(data)
    assert choices(log) == ["x", "2", "10"]  # dates order them, and whole numbers have no point
    assert 'sheet "log" is read, the first of 3 sheets' in notices(log, "layout")[0]
    (tmp_path / "log.xlsx").write_bytes(data)
    for sheet in ("other", "Other "):
        assert choices(ActionLog.read(tmp_path / "log.xlsx", sheet=sheet)) == ["A", "B"]
    assert ActionLog.scan(tmp_path, sheet="other").pulls.tolist() == [[1, 1]]
    with pytest.raises(ParameterError, match=r'got "nowhere"\. It has "log", "other", "blank"'):
        ActionLog.from_bytes(data, sheet="nowhere")
    with pytest.raises(LogError, match='sheet "blank"; it is empty'):
        ActionLog.from_bytes(data, sheet="blank")
    with pytest.raises(LogError, match=r'Sheet "notes" was read; for another \("log"\), read the file with sheet'):
        ActionLog.from_bytes(xlsx(notes=[["Study", "mine"], ["N", 20]], log=SHEET))
    with pytest.raises(LogError, match="without following"):
        followed(tmp_path / "log.xlsx")


@pytest.mark.usefixtures("excel")
def test_rows_of_sheets_are_named_as_the_spreadsheet_numbers_them():
    data = xlsx(log=[[None], ["round", "arm"], [1, "A"], [2, None], [None, None]])
    with pytest.raises(LogError, match="a blank cell") as refused:
        ActionLog.from_bytes(data)
    assert (refused.value.row, refused.value.line) == (2, 4)
    with pytest.raises(LogError, match="header only"):
        ActionLog.from_bytes(xlsx(log=[["arm"]]))
    log = ActionLog.from_bytes(xlsx(log=[["A"], ["B"]]), header=False)
    assert choices(log) == ["A", "B"]
    assert notices(log, "layout") == ["the sheet is read without a header."]


@pytest.mark.usefixtures("excel")
def test_open_document_is_read():
    assert choices(ActionLog.from_bytes(ods([["trial", "choice"], ["2", "B"], ["1", "A"]]))) == ["A", "B"]


@pytest.mark.usefixtures("excel")
@pytest.mark.parametrize("data", [b"PK\x03\x04nothing", xlsx(log=SHEET)[:-60], b"\xd0\xcf\x11\xe0" + bytes(600)])
def test_what_is_no_spreadsheet_is_refused(data):
    with pytest.raises(LogError, match=r"expected a spreadsheet .*save the sheet as CSV"):
        ActionLog.from_bytes(data)


def test_a_missing_engine_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)
    with pytest.raises(LogError, match="Install it with: pip install fastexcel"):
        ActionLog.from_bytes(xlsx(log=SHEET))


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "\ufeffSEP=;\n"])
def test_the_line_by_which_excel_names_its_separator_is_skipped(first, tmp_path):
    data = f"{first}arm;a,b,c\nA;1,5\nB;2,5\n".encode()
    log = ActionLog.from_bytes(data, columns={"reward": "a,b,c"})
    assert choices(log) == ["A", "B"]
    assert log.rewards.tolist() == [1.5, 2.5]
    assert choices(ActionLog.from_bytes(f"{first}A\nB\n".encode(), header=False)) == ["A", "B"]
    with pytest.raises(LogError, match=r"row 2 \(line 4\)"):
        ActionLog.from_bytes(f"{first}arm;x\nA;1\n;2\n".encode())


@pytest.mark.parametrize("above", [["# exported by us"], ["Study 1, May"], ["# a", "# b, c"], ['"My study",,']])
def test_lines_above_the_header_are_named(above):
    data = "\n".join([*above, "round,choice,reward", "1,A,0", "2,B,1", ""]).encode()
    with pytest.raises(LogError) as refused:
        ActionLog.from_bytes(data)
    line = len(above) + 1
    assert refused.value.remedy == f"Line {line} looks like the names of the columns: remove what stands above it."
    cells = [[above[0], None], [None, None], ["round", "arm"], [1, "A"], [2, "B"]]
    with pytest.raises(LogError, match="Line 3 looks like the names of the columns"):
        ActionLog.from_bytes(xlsx(log=cells))


def test_without_a_header_the_remedy_is_to_name_a_column():
    for data in (b"1,A\n2,B\n", xlsx(log=[[1, "A"], [2, "B"]])):
        with pytest.raises(LogError, match='expected a column "arm"') as refused:
            ActionLog.from_bytes(data, header=False)
        assert "header" not in refused.value.message
        assert "columns={'arm': 'NAME'}" in refused.value.message


@pytest.mark.parametrize(
    "data",
    [
        b'{"columns":["arm","reward"],"index":[0,1],"data":[["A",1],["B",0]]}',
        b'{"arm":{"0":"A","1":"B"},"reward":{"0":1,"1":0}}',
    ],
)
def test_json_of_columns_is_refused_with_the_form_that_is_read(data):
    with pytest.raises(LogError, match="expected one JSON object per row") as refused:
        ActionLog.from_bytes(data)
    assert 'orient="records"' in refused.value.remedy
