"""Read a delimited text file of any size, a block of whole rows after the other."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl

from unbandit.errors import LogError
from unbandit.log.reading import unreadable
from unbandit.log.text import TextTable

__all__ = ["BLOCK", "Block", "Header", "header_of", "header_of_file", "text_blocks", "whole_rows"]

BLOCK = 1 << 24
"""Bytes that are read at once."""

_LONGEST_ROW = 1 << 26  # a quote that was never closed must not gather the rest of the file


class Header(NamedTuple):
    """What the beginning of a file says of all of it.

    Attributes
    ----------
    names, separator
        Its columns, and what stands between cells.
    text
        The line of names with its line break, and what came before it.
    old
        Whether lines end as those of the old Macintosh did.
    """

    names: list[str]
    separator: str
    text: bytes
    old: bool

    def usual(self, data: bytes) -> bytes:
        """Return bytes of the file with the usual line breaks."""
        return _usual(data) if self.old else data


class Block(TextTable):
    """Hold some rows of a file, and know which."""

    def __init__(self, header: Header, data: bytes, path: str, rows_before: int, lines_before: int) -> None:
        self.path, self.names, self.separator = path, header.names, header.separator
        self.rows_before = rows_before
        names = header.text.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        self._lines_before = lines_before - names.count(b"\n")
        self._data = names + data
        try:
            self._refuse_what_is_no_text(data)
        except LogError as error:
            line = None if error.line is None else error.line + lines_before
            raise self._moved(error, rows=rows_before + 1, line=line) from None

    def take(self, positions: list[int]) -> list[pl.Series]:  # type: ignore[override]
        """Read columns, and refuse rows with too many or too few cells."""
        try:
            return super().take(positions)
        except LogError as error:
            raise self._moved(error, self.rows_before, error.line) from None

    def refuse(
        self, message: str, *, row: int | None = None, column: str | None = None, value: object = None
    ) -> LogError:
        """Name the row of the file."""
        error = super().refuse(message, row=row, column=column, value=value)
        return self._moved(error, self.rows_before, error.line)

    def _moved(self, error: LogError, rows: int, line: int | None) -> LogError:
        row = None if error.row is None else error.row + rows
        return error.at(path=self.path, row=row, line=line)


def header_of(data: bytes, path: str) -> Header:
    """Read the names of the columns off the beginning of a file.

    Examples
    --------
    >>> header_of(b"round;arm\\n1;A\\n", "log.csv")
    Header(names=['round', 'arm'], separator=';', text=b'round;arm\\n', old=False)
    """
    table, old = TextTable(data, path), _is_old(data)
    data = _usual(data) if old else data
    body = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    lines = table.header_lines()
    end = 0
    for _ in range(lines):
        at = body.find(b"\n", end)
        end = len(body) if at < 0 else at + 1
    return Header(table.names, table.separator, data[: len(data) - len(body) + end], old)


def whole_rows(data: bytes, *, ended: bool) -> int:
    """Return how many of some bytes are whole rows; those after a line break within quotes, or a blank line, wait.

    Examples
    --------
    >>> whole_rows(b'1,A\\n2,"B\\nC', ended=False), whole_rows(b"1,A\\n2,B", ended=True)
    (4, 7)
    """
    if ended:
        return len(data)
    cut = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, cut)
    while cut and quotes % 2:
        end, cut = cut, data.rfind(b"\n", 0, cut - 1) + 1
        quotes -= data.count(b'"', cut, end)
    # A blank line waits as well: if it ends the file, it is none.
    while cut and (b"\n" + data[max(cut - 3, 0) : cut]).endswith((b"\n\n", b"\n\r\n")):
        cut = data.rfind(b"\n", 0, cut - 1) + 1
    return cut


def text_blocks(
    path: Path, header: Header, positions: list[int], size: int = BLOCK
) -> Iterator[tuple[Block, list[pl.Series]]]:
    """Go through columns of a file, packed by gzip or not, whose rows need not fit in memory at once.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("arm\\nA\\nB\\nC\\n")
    >>> [columns[0].to_list() for _, columns in text_blocks(path, header_of_file(path), [0], size=8)]
    [['A', 'B'], ['C']]
    """
    left, rows, lines = b"", 0, header.text.count(b"\n")
    skipped = len(header.text)
    for data, ended in _read(path, size):
        data = left + header.usual(data)
        data, skipped = data[skipped:], max(0, skipped - len(data))
        if ended:
            data = data.rstrip(b"\r\n") + b"\n" if data.strip(b"\r\n") else b""
        cut = whole_rows(data, ended=ended)
        if cut == 0 and len(data) > _LONGEST_ROW:
            cut = data.rfind(b"\n") + 1
        left = data[cut:]
        if cut:
            block = Block(header, data[:cut], str(path), rows, lines)
            columns = block.take(positions)
            yield block, columns
            rows += len(columns[0])
            lines += data.count(b"\n", 0, cut)


def header_of_file(path: Path, size: int = 1 << 16) -> Header:
    """Read no more of a file than it takes to know its columns: the line of names, and a row if there is one."""
    beginning = b""
    for data, ended in _read(path, size):
        beginning += data
        usual = _usual(beginning) if _is_old(beginning) else beginning
        cut = whole_rows(usual, ended=ended)
        if ended or usual.strip(b"\xef\xbb\xbf\r\n").count(b"\n", 0, cut) > 1 or len(beginning) > _LONGEST_ROW:
            break
    if beginning.startswith(b"PAR1"):
        raise LogError("expected a Parquet file as it is; got one packed by gzip. Unpack it first.", path=str(path))
    return header_of(beginning[: cut or None], str(path))


def _read(path: Path, size: int) -> Iterator[tuple[bytes, bool]]:
    """Give the bytes of a file, unpacked, and say when they are the last."""
    try:
        with _opened(path) as file:
            data = file.read(size)
            while True:
                following = file.read(size)
                yield data, not following
                if not following:
                    return
                data = following
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LogError(
            f"expected a whole gzip file; it could not be unpacked ({error}). Write or copy it again.", path=str(path)
        ) from error
    except OSError as error:
        raise unreadable(str(path), error) from error


def _is_old(data: bytes) -> bool:
    """Tell the line breaks of the old Macintosh."""
    return b"\n" not in data and b"\r" in data


def _usual(data: bytes) -> bytes:
    return data.replace(b"\r", b"\n")


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]
