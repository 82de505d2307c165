"""Reading files: every format, and every file that is refused."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import polars as pl
import pytest

from unbandit.errors import LogError
from unbandit.log import ActionLog, csv

GOOD = b"round,arm\n1,A\n2,B\n3,A\n"


def saved(folder: Path, content: bytes | str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path: Path, **options: object) -> LogError:
    with pytest.raises(LogError) as caught:
        ActionLog.read(path, **options)  # type: ignore[arg-type]
    error = caught.value
    assert error.path == str(path)
    assert str(error).startswith(str(path))
    assert "expected" in error.message or "file not found" in error.message
    assert error.message.endswith(".")
    return error


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


FRAME = pl.DataFrame({"round": [1, 2, 3], "arm": ["A", "B", "A"]})
FORMATS = {
    "comma": GOOD,
    "tab": GOOD.replace(b",", b"\t"),
    "semicolon": GOOD.replace(b",", b";"),
    "windows": GOOD.replace(b"\n", b"\r\n"),
    "macintosh": GOOD.replace(b"\n", b"\r"),
    "marked": b"\xef\xbb\xbf" + GOOD,
    "no end of line": GOOD.rstrip(),
    "blank lines around": b"\n\r\n" + GOOD + b"\n\r\n\n",
    "quoted": b'"round","arm"\n"1","A"\n"2","B"\n"3","A"\n',
    "blanks": b"round , arm\n 1, A\n2 ,B \n 3, A \n",
    "gzip": gzip.compress(GOOD),
    "parquet": parquet(FRAME),
    "gzipped parquet": gzip.compress(parquet(FRAME)),
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_every_format_reads_the_same_whatever_its_name(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ActionLog.from_actions(["A", "B", "A"])
    assert ActionLog.read(saved(tmp_path, content, "log.dat")) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert ActionLog.read("-") == expected


def test_standard_input_is_named_in_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"round,arm\n1,A\n2,\n")))
    with pytest.raises(LogError, match=r'^standard input row 2 \(line 3\), column "arm": .*blank.*remove the row'):
        ActionLog.read("-")


@pytest.mark.parametrize(
    ("content", "words", "remedy"),
    [
        (b"", "empty file", "Check that it was saved"),
        (b"\n\n", "empty file", "Check that it was saved"),
        (b"\xef\xbb\xbf", "empty file", "Check that it was saved"),
        (b"arm,round\n", "header only", "Check the file"),
        (parquet(FRAME.head(0)), "without rows", "Check that it was saved"),
        (b"arm\nA\n\0\0\0\n", "binary file", "Check the name"),
        (b"PK\x03\x04\0\0", "spreadsheet", "save the sheet as CSV"),
        ("arm\nA\nB\n".encode("utf-16"), "UTF-16", "encoding UTF-8"),
        (gzip.compress(GOOD, mtime=0)[:-9], "gzip", "Write or copy it again"),
        (b"\x1f\x8bnonsense", "gzip", "Write or copy it again"),
        (parquet(FRAME)[:-20], "Parquet", "Write or copy it again"),
        (b"PAR1" + b"x" * 100 + b"PAR1", "Parquet", "Write or copy it again"),
        (b"PAR1", "Parquet", "Write or copy it again"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, words: str, remedy: str, tmp_path: Path) -> None:
    error = refusal(saved(tmp_path, content))
    assert words in error.message
    assert remedy in error.message


def test_parquet_broken_in_the_middle_is_refused(tmp_path: Path) -> None:
    content = bytearray(parquet(pl.DataFrame({"arm": [str(number % 7) for number in range(5000)]})))
    content[10:400] = b"\xff" * 390
    assert "Write or copy it again" in refusal(saved(tmp_path, bytes(content))).message


def test_what_is_neither_utf_8_nor_latin_1_is_refused_with_its_line(tmp_path: Path) -> None:
    for content in (b"arm\nA\nm\x81sli\n", "arm\nA\nm\u00fcsli\n".encode() + b"\xfc"):
        error = refusal(saved(tmp_path, content))
        assert error.row is not None
        assert error.line == error.row + 1
        assert "expected text in UTF-8" in error.message
    error = refusal(saved(tmp_path, b"arm\nA\nm\x81sli\n"))
    assert (error.row, error.line, error.value) == (2, 3, b"\x81")
    assert "Save the file again with the encoding UTF-8" in error.message


@pytest.mark.parametrize(
    ("content", "row", "line", "words"),
    [
        ("round,arm\n1,A\n2,B,C\n", 2, 3, "3 cells"),
        ("round,arm,note\n1,A,x\n2,B\n3,A,\n", 2, 3, "2 cells"),
        ("round,arm,note\n1,A,\n2\n", 2, 3, "1 cell"),
        ("round,arm\n1,A\n\n2,B\n", 2, 3, "a blank line"),
        ("\nround,arm\n1,A\n\n2,B\n", 2, 4, "a blank line"),
        ('round,arm\n1,"A\nA"\n2,B,C\n', 2, 4, "3 cells"),
    ],
)
def test_uneven_rows_are_refused_with_their_line(content: str, row: int, line: int, words: str, tmp_path: Path) -> None:
    error = refusal(saved(tmp_path, content))
    assert (error.row, error.line) == (row, line)
    assert f"got {words}" in error.message
    assert "Correct this line" in error.message
    assert error.value is not None


def test_a_quote_that_does_not_close_is_refused(tmp_path: Path) -> None:
    error = refusal(saved(tmp_path, 'round,arm\n1,"A\n2,B\n'))
    assert error.row is not None
    assert "Correct" in error.message


def test_blank_last_cells_of_a_column_that_is_not_used_are_fine(tmp_path: Path) -> None:
    assert len(ActionLog.read(saved(tmp_path, "arm,note\nA,\nB,x\n")).arms) == 2


def test_directories_and_missing_files_are_refused(tmp_path: Path) -> None:
    assert "the folder has none" in refusal(tmp_path).message
    assert "Check the path" in refusal(tmp_path / "nowhere.csv").message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_without_permission_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD)
    path.chmod(0)
    assert "Check its mode" in refusal(path).message


def test_permission_and_other_troubles_of_the_system_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, GOOD)

    def fail_with(error: OSError) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(Path, "open", fail)

    fail_with(PermissionError(13, "Permission denied"))
    assert "Check its mode" in refusal(path).message
    fail_with(OSError(5, "Input/output error"))
    assert "Input/output error" in refusal(path).message


def test_a_parquet_file_that_vanishes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, parquet(FRAME), "log.parquet")
    schema = pl.read_parquet_schema

    def vanish(source: object) -> object:
        names = schema(source)  # type: ignore[arg-type]
        path.unlink()
        return names

    monkeypatch.setattr(pl, "read_parquet_schema", vanish)
    assert "file not found" in refusal(path).message


def test_names_with_wildcards_are_taken_literally_where_there_is_such_a_file(tmp_path: Path) -> None:
    saved(tmp_path, parquet(FRAME.select("arm")), "a.parquet")
    saved(tmp_path, parquet(FRAME.select("arm")), "b.parquet")
    pattern = tmp_path / "[ab].parquet"
    assert ActionLog.read(pattern).lengths.sum() == 2 * FRAME.height
    assert ActionLog.read(saved(tmp_path, parquet(FRAME), pattern.name)).lengths.sum() == FRAME.height
    assert "none does" in refusal(tmp_path / "*.csv").message


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_labels_keep_their_zeros(name: str, tmp_path: Path) -> None:
    content = parquet(pl.DataFrame({"arm": ["02", "1", "01"]})) if name.endswith("t") else b"arm\n02\n1\n01\n"
    assert ActionLog.read(saved(tmp_path, content, name)).arms == ("01", "1", "02")


STRICT = {
    "more cells than the header, beside an unread column": ("note,arm,y\nx,A,1\nhello, world,B,2\n", 2, 3, "4 cells"),
    "more cells than the header in the first row": ("note,arm,y\nhello, world,B,2\nx,A,1\n", 1, 2, "4 cells"),
    "a stray quote": ('arm,y\nA,1\n"A"9",2\nB,3\n', 2, 3, "expected after"),
    "inch marks": ('arm,y\nA,1\n"5"",1\nB,3\n', 2, 3, "unexpected end of data"),
    "a carriage return within a line": ("arm,y\nA,1\nB\rC,2\n", 2, 3, "a carriage return without a line feed"),
    "two carriage returns": ("arm,y\r\nA,1\r\nB,2\r\r\n", 2, 3, "a carriage return without a line feed"),
}


@pytest.mark.parametrize("small_piece", [1 << 18, 1])
@pytest.mark.parametrize(("content", "row", "line", "words"), STRICT.values(), ids=STRICT)
def test_what_python_reads_otherwise_is_refused(
    content: str, row: int, line: int, words: str, small_piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbandit.log.csv.SMALL_PIECE", small_piece)
    error = refusal(saved(tmp_path, content))
    assert (error.row, error.line) == (row, line)
    assert words in error.message
    assert "Correct" in str(error.remedy)


@pytest.mark.parametrize("small_piece", [1 << 18, 1])
@pytest.mark.parametrize(
    ("content", "arms"),
    [
        ('arm,y\n5",1\n6",2\n', ('5"', '6"')),
        ('arm,y\n"5""",1\n"a\r\nb",2\n', ('5"', "a\r\nb")),
        ('arm,y\rA,1\r"a\rb",2\r', ("A", "a\rb")),
        ('"arm","n\n""1"""\n"A",1\nB,""\n', ("A", "B")),
    ],
)
def test_quotes_are_read_as_python_does(
    content: str, arms: tuple[str, ...], small_piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbandit.log.csv.SMALL_PIECE", small_piece)
    assert ActionLog.read(saved(tmp_path, content)).arms == arms


def test_one_column_is_separated_as_its_name_says(tmp_path: Path) -> None:
    content = "arm\nred, large\nblue, small\n"
    assert ActionLog.read(saved(tmp_path, content, "log.tsv")).arms == ("red, large", "blue, small")
    assert "got 2 cells" in refusal(saved(tmp_path, content, "log.csv")).message


def test_rows_in_many_blocks_are_those_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f'"x ""{at}"", y",{at % 7}' if at % 3 else f'inch 5",{at % 7}' for at in range(5_000)]
    path = saved(tmp_path, "\n".join(["note,arm", *rows]))
    whole = ActionLog.read(path)
    assert whole.arms == tuple("0123456")
    monkeypatch.setattr("unbandit.log.csv.SMALL_PIECE", 300)
    monkeypatch.setattr("unbandit.log.formats.BLOCK", 7_000)
    assert ActionLog.read(path) == whole
    saved(tmp_path, "\n".join(["note,arm", *rows, 'a"b,c,1', *rows]))
    assert (refusal(path).row, refusal(path).line) == (5_001, 5_002)


@pytest.mark.parametrize("separator", [",", "\t", ";"])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_cell_is_too_long_in_every_file_or_in_none(separator: str, quoted: bool, tmp_path: Path) -> None:
    for many in (1, 40_000):  # such a file is large: polars reads it
        rows = f"A{separator}x\n" * many
        for length in (131_072, 131_073):
            cell = "\u00e9" * length
            text = f"arm{separator}note\n{rows}B{separator}" + (f'"{cell}"\n' if quoted else f"{cell}\n") + rows
            if length == 131_072:
                assert ActionLog.read(saved(tmp_path, text)).arms == ("A", "B")
                continue
            error = refusal(saved(tmp_path, text))
            assert (error.row, error.line) == (many + 1, many + 2)
            assert "expected cells of at most 131,072 characters; got a longer one. Close the quote" in error.message


@pytest.mark.parametrize("text", ["arm,x;y\nA,1;2\nB,1;2\n", "arm;x,y\nA;1,5\nB;2,5\n", "arm\tx;y\nA\t1;2\nB\t1;2\n"])
def test_two_separators_that_are_equally_good_are_refused(text: str, tmp_path: Path) -> None:
    error = refusal(saved(tmp_path, text))
    assert "divide equally well. Use one of them, and quote the names that contain the other." in error.message


def test_what_settles_the_separator(tmp_path: Path) -> None:
    assert ActionLog.read(saved(tmp_path, "arm\tx;y\nA\t1;2\nB\t1;2\n", "log.tsv")).arms == ("A", "B")
    for text in ('arm,"x;y"\nA,1;2\nB,1;2\n', 'arm;"x,y"\nA;1,5\nB;2,5\n'):  # as the refusal advises
        assert ActionLog.read(saved(tmp_path, text)).arms == ("A", "B")


def test_one_cell_too_many_in_one_column(tmp_path: Path) -> None:
    assert "expected 1 cell, one for each column; got 2 cells" in refusal(saved(tmp_path, "arm\nA\nB,C\n")).message


@pytest.mark.parametrize("end", ["1,2,x,y", "1,,x", "1,A\rB,x", '1,"A"B,x', '1,"A\nB",x\n1,,x'])
@pytest.mark.parametrize("cell", ["x", '"x"', '"x\ny"'])
def test_a_bad_last_row_is_refused_without_reading_the_rest_again(
    end: str, cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 100_000
    path = saved(tmp_path, "round,arm,note\n" + f"1,A,{cell}\n" * rows + end + "\n")
    parsed: list[int] = []
    records = csv._records

    def counted(data: bytes, separator: str) -> object:
        parsed.append(len(data))
        return records(data, separator)

    monkeypatch.setattr(csv, "_records", counted)
    error = refusal(path)
    lines = rows * (1 + cell.count("\n"))
    assert (error.row, error.line) == (rows + 1 + ("\n" in end), lines + 2 + end.count("\n"))
    assert sum(parsed) < path.stat().st_size  # the header is tried with three separators


def test_folders_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    inner = tmp_path / "demonstration=1" / "demonstration=2"
    inner.mkdir(parents=True)
    path = saved(inner, "arm\nA\nB\n")
    with pytest.raises(LogError, match='"demonstration" in the names of its folders; got "1" and "2"') as caught:
        ActionLog.read(tmp_path)
    assert caught.value.path == str(path)
    assert caught.value.remedy
    assert ActionLog.read(path).arms == ("A", "B")  # of one file the folders say nothing
    other = tmp_path / "demonstration=3" / "demonstration=3"
    other.mkdir(parents=True)
    assert ActionLog.read(saved(other, "arm\nA\nB\n").parents[1]).demonstrations == ("3",)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_that_contradicts_its_folder_is_refused(ending: str, tmp_path: Path) -> None:
    def write(folder: str, who: list[object]) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        frame = pl.DataFrame({"demonstration": who, "arm": ["A", "B", "A"], "x": [1, 2, 3]})
        path = tmp_path / folder / f"part.{ending}"
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)

    write("demonstration=07", [7, 7, 7])
    write("demonstration=8", [8, 8, 8])
    for log in (ActionLog.read(tmp_path), ActionLog.scan(tmp_path)):
        assert log.demonstrations == ("7", "8")
    write("demonstration=8", [8, 9, 8])
    for call in (ActionLog.read, lambda path: ActionLog.scan(path).pulls):
        with pytest.raises(LogError, match='expected "8", which the name of the folder says; got "9"') as caught:
            call(tmp_path)
        assert (caught.value.row, caught.value.column) == (2, "demonstration")
    assert ActionLog.read(tmp_path, columns={"demonstration": ""}).lengths.tolist() == [6]


@pytest.mark.parametrize("name", ["a\0b", "a" * 5_000, "a" * 5_000 + "*", "a\ud800b", "x/" * 3_000 + "log.csv"])
def test_names_that_no_file_can_have_are_refused(name: str) -> None:
    for call in (ActionLog.read, ActionLog.scan):
        with pytest.raises(LogError, match="expected") as caught:
            call(name)
        assert caught.value.remedy
