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
from unbandit.log import ActionLog

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
    assert "expected" in error.message
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
        (b"PK\x03\x04\0\0", "spreadsheet", "Save the sheet as CSV"),
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


def test_other_encodings_are_refused_with_their_line(tmp_path: Path) -> None:
    error = refusal(saved(tmp_path, "arm\nA\nm\u00fcsli\n".encode("latin-1")))
    assert (error.row, error.line, error.value) == (2, 3, b"\xfc")
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
    assert "there is none of this name" in refusal(path).message


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
