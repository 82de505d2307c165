"""Delimited text (CSV, TSV, semicolons) and JSON lines in blocks of whole rows, every cell as text.

Cells stay text so that a label such as "01" survives, and so that an error can show the cell as it is in the file.

Every reading is that of Python's `csv` module in strict mode, or none. Rows go to polars, which is much faster, only if
they are plain: each has as many cells as the header, and quotes and line breaks stand where every parser understands
them alike. All other rows, and small files, are read by `csv` itself, which also says what is wrong with them.
"""

import csv
import io
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import islice
from typing import NamedTuple

import numpy as np
import polars as pl

from unbandit.errors import LogError
from unbandit.formatting import counted
from unbandit.log.jsonlines import BLOCK_OF_LINES, Row, is_json_lines, json_cells, json_names, json_rows
from unbandit.log.labels import Integers, are_blank

BLOCK = 1 << 24  # bytes that are read at once

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons"}
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What polars raises where a file is damaged, or cannot be read or written."""

SMALL_PIECE = 1 << 18
"""Up to this many bytes are read by Python at once: few enough that their cells fit in memory, and soon done."""

_SEPARATOR_LINE = re.compile(rb'"?sep=([,;\t])"?\r?\n', re.IGNORECASE)  # with which Excel begins a file
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_ROW = 1 << 26  # a quote that is never closed must not collect the rest of the file
_WELL_FORMED = "cells whose quotes open and close, and usual line breaks"
_LINE_FEED, _QUOTE = 10, 34


class Header(NamedTuple):
    """What the beginning of a file says about all of it."""

    names: list[str]
    separator: str  # "" for JSON lines
    text: bytes  # the line of names with its line break, if there is one, and what comes before it
    old: bool  # whether lines end in a carriage return, as on the old Macintosh

    def usual(self, data: bytes, path: str) -> bytes:
        """Return bytes of the file with the usual line breaks."""
        if not self.old:
            return data
        if b"\n" in data:
            text = "expected lines that all end in a carriage return, as the first ones do; got a line feed."
            raise LogError(text, path=path, remedy="Save the file again with one kind of line break.")
        return data.replace(b"\r", b"\n")


class Before(NamedTuple):
    """How many rows of a file come before some others, and how many lines; those of the header are lines only."""

    rows: int
    lines: int


class _BrokenRow(Exception):
    """What `csv` refused, the line in which that row begins, and whether it may go on after the text at hand."""

    def __init__(self, reason: str, line: int, *, at_end: bool, is_long: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.line, self.at_end = reason, line, at_end
        self.expected, self.remedy = _WELL_FORMED, "Correct the quotes or the line break there."
        if is_long:
            self.expected = f"cells of at most {csv.field_size_limit():,} characters"
            self.remedy = "Close the quote that opens it, if that is why, or shorten it."


class TextBlock:
    """Some whole rows of a file, checked: plain ones that polars may parse, or `records` that `csv` has read."""

    def __init__(
        self, header: Header, data: bytes, path: str, before: Before, rows: int, records: list[list[str]] | None = None
    ) -> None:
        self._header, self._data, self._path, self._before = header, data, path, before
        self.rows, self.rows_before = rows, before.rows
        self._is_plain, self._records = records is None, records

    def __len__(self) -> int:
        return len(self._data)

    @property
    def after(self) -> Before:
        """Return how many rows and lines come before what follows this block."""
        is_simple = self._is_plain and b'"' not in self._data
        lines = self.rows if is_simple else np.count_nonzero(np.frombuffer(self._data, np.uint8) == ord("\n"))
        return Before(self._before.rows + self.rows, self._before.lines + int(lines))

    def cells(self, positions: Sequence[int]) -> list[pl.Series]:
        """Parse columns; a blank cell is null."""
        wanted = sorted(set(positions))
        columns = self._parsed_by_polars(wanted) if self._is_plain else None
        if columns is None:
            records = self._records or _read_strictly(self._header, self._data, self._path, self._before)[0]
            cells = ([record[at] or None if record else None for record in records] for at in wanted)
            columns = [pl.Series(str(at), column, pl.String) for at, column in zip(wanted, cells, strict=True)]
            self._records = None  # they take far more memory than the text
        if self._header.old:
            columns = [column.str.replace_all("\n", "\r", literal=True) for column in columns]
        return [columns[wanted.index(at)] for at in positions]

    def filled(self, columns: Sequence[pl.Series]) -> Integers | None:
        """Return which rows are not blank in every column of several, given some columns; None if that is every one."""
        width, separator = len(self._header.names), self._header.separator
        if width < 2 or not separator:
            return None
        are_empty = are_blank if _may_hold_space(self._data, separator) else pl.Series.is_null
        if not reduce(operator.and_, map(are_empty, columns)).any():
            return None
        blank = reduce(operator.and_, map(are_empty, self.cells(range(width))))
        return (~blank).arg_true().to_numpy().astype(np.int64) if blank.any() else None

    def late(self) -> dict[str, int]:
        """Return what no row before had, with the row (from 1, in this block) that has it first; see `JsonBlock`."""
        return {}

    def line(self, row: int) -> int:
        """Return the line in which a row of the file begins; line breaks inside quoted cells count."""
        at = row - 1 - self._before.rows
        if not self._is_plain:
            records = _records(self._data, self._header.separator)
            return self._before.lines + next(islice(records, at, None))[0]
        if b'"' not in self._data:
            return self._before.lines + at + 1
        data = np.frombuffer(self._data, np.uint8)
        breaks = np.flatnonzero(data == _LINE_FEED)
        is_within = np.cumsum(data == _QUOTE, dtype=np.uint8)[breaks] % 2 == 1  # an odd number of quotes before it
        ends = np.flatnonzero(~is_within)
        return self._before.lines + (int(ends[at - 1]) + 2 if at else 1)

    def _parsed_by_polars(self, wanted: list[int]) -> list[pl.Series] | None:
        separator = self._header.separator
        names = separator.join(map(str, range(len(self._header.names)))).encode() + b"\n"
        try:
            frame = pl.read_csv(
                io.BytesIO(names + self._data), columns=wanted, separator=separator, infer_schema=False, encoding="utf8"
            )
        except POLARS_ERRORS:
            return None
        return frame.get_columns() if frame.height == self.rows else None


class JsonBlock(TextBlock):
    """Some whole lines of a file, each an object: see `log/jsonlines.py`."""

    def __init__(self, header: Header, data: bytes, path: str, before: Before, parsed: list[tuple[int, Row]]) -> None:
        super().__init__(header, data, path, before, len(parsed), [])
        self._objects, self._lines = [row for _, row in parsed], [line for line, _ in parsed]

    def cells(self, positions: Sequence[int]) -> list[pl.Series]:
        """Return columns; a member that is missing, null or blank is null."""

        def refuse(text: str, at: int, name: str) -> LogError:
            row = self.rows_before + at + 1
            refused = LogError(text, path=self._path, remedy="Write it as one value, or name another column.")
            return refused.at(row=row, line=self.line(row), column=name)

        names = [self._header.names[at] for at in positions]
        return [pl.Series(name, json_cells(self._objects, name, refuse), pl.String) for name in names]

    def late(self) -> dict[str, int]:
        """Return members that are no columns, since the beginning of the file lacks them, with their first rows."""
        known = set(self._header.names)
        if all(row.keys() <= known for row in self._objects):
            return {}
        rows = reversed(list(enumerate(self._objects, 1)))
        return {
            name: at
            for at, row in rows
            for name, value in row.items()
            if name not in known and value is not None and not isinstance(value, list | dict)
        }

    def line(self, row: int) -> int:
        """Return the line of a row; blank lines count."""
        return self._before.lines + self._lines[row - 1 - self._before.rows]


def header_of(data: bytes, path: str, *, ended: bool = True, has_names: bool = True) -> Header | None:
    """Read the names of the columns from the beginning of a file; None if it takes more than that to know them.

    A file is known by its header and its first row, unless it has `ended`. One that `has_names` not begins with data:
    its only column is the arm, and several are called 1, 2 and so on. Objects on lines name their members themselves.
    """
    if is_json_lines(data):
        whole = data if ended else data[: data.rfind(b"\n") + 1]
        _refuse_what_is_no_text(whole, path, Before(0, 0))
        return Header(json_names(whole, path), "", b"", False) if whole.strip() else None
    old = b"\n" not in data and b"\r" in data[:-1]
    data = data.replace(b"\r", b"\n") if old else data
    data = data if ended else data[: data.rfind(b"\n") + 1]
    _refuse_what_is_no_text(data, path, Before(-1, 0))
    body = data.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n")
    stated = _SEPARATOR_LINE.match(body)
    body = body[stated.end() :] if stated else body
    if not body.strip():
        if not ended:
            return None
        text = "expected a header and one row per choice; got an empty file."
        raise LogError(text, path=path, remedy="Check that it was saved.")
    readings, reasons = dict[str, _Reading](), dict[str, str]()
    for separator in SEPARATORS if stated is None else stated[1].decode():
        records = _records(body, separator)
        try:
            _, end, names = next(records)
        except _BrokenRow as broken:  # also where very many names are one endless name to the wrong separator
            if broken.at_end and not ended:
                return None
            reasons[separator] = broken.reason
            continue
        try:
            cells = len(next(records)[2])
        except StopIteration:
            if not ended:
                return None
            cells = len(names)
        except _BrokenRow as broken:
            if broken.at_end and not ended:
                return None
            cells = 0
        readings[separator] = _Reading((len(names) > 1, cells == len(names), len(names)), names, end)
    separator = _best_separator(readings, path) if stated is None else stated[1].decode()
    if separator not in readings:
        text = f"expected a header of column names; got {reasons[separator]}."
        raise LogError(text, path=path, remedy="Save the table as CSV.")
    _, names, end = readings[separator]
    names = [(name.replace("\n", "\r") if old else name).strip() for name in names]
    if not has_names:
        names, end = ["arm"] if len(names) == 1 else [str(at) for at in range(1, len(names) + 1)], 0
    return Header(names, separator, data[: len(data) - len(body) + end], old)


class _Reading(NamedTuple):
    """A header as one separator divides it: how good that is, the names, and where it ends."""

    rank: tuple[bool, bool, int]  # whether there are several names, the first row has as many cells, and how many
    names: list[str]
    end: int


def _best_separator(readings: dict[str, _Reading], path: str) -> str:
    """Return the separator by which a file is a table; refuse to guess between two."""
    is_tabbed = path.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
    rank = max((reading.rank for reading in readings.values()), default=(False, False, 0))
    if not rank[0]:  # nothing tells but the name of the file
        return "\t" if is_tabbed else ","
    best = [separator for separator, reading in readings.items() if reading.rank == rank]
    # A quote within a name is that of a quoted name which another separator cuts.
    best = [each for each in best if not any('"' in name for name in readings[each].names)] or best
    if len(best) > 1 and not (is_tabbed and "\t" in best):
        one, other = (SEPARATORS[separator] for separator in best[:2])
        text = f"expected a header with one separator; got one that {one} and {other} divide equally well."
        raise LogError(text, path=path, remedy="Use one of them, and quote the names that contain the other.")
    return "\t" if len(best) > 1 else best[0]


def read_header(chunks: Iterable[tuple[bytes, bool]], path: str, *, has_names: bool = True) -> tuple[Header, bytes]:
    """Read no more of a file than it takes to know its columns; return also the bytes that were read.

    `chunks` are bytes of the file, one chunk after the other, and whether each is the last; see also `header_of`.
    """
    for beginning, ended in _beginnings(chunks):
        header = header_of(beginning, path, ended=ended, has_names=has_names)
        if header is not None:
            return header, beginning
        if len(beginning) > _LONGEST_ROW:
            raise endless_row(path, Before(-1, 0))
    raise AssertionError("the last chunk says that the file has ended")


def _beginnings(chunks: Iterable[tuple[bytes, bool]]) -> Iterator[tuple[bytes, bool]]:
    """Yield beginnings of a file, each at least twice as long as the one before, and whether it is all of the file."""
    beginning, before = b"", 0
    for data, ended in chunks:
        beginning += data
        if ended or len(beginning) >= 2 * before:
            before = len(beginning)
            yield beginning, ended


def next_block(header: Header, data: bytes, at: int, path: str, before: Before, *, ended: bool) -> TextBlock | None:
    """Return the next whole rows in some bytes from `at` on; None if there are none.

    At the end of what is there a row without its line break waits, as do blank lines, which are no rows at the end of a
    file; unless the file has `ended`.
    """
    if not header.separator:
        return _next_lines(header, data, at, path, before, ended=ended)
    if len(data) - at > SMALL_PIECE:
        piece, rows = _plain_rows(header, data, at)
        if len(piece) > SMALL_PIECE:
            _refuse_what_is_no_text(piece, path, before)
            return TextBlock(header, piece, path, before, rows)
    size = SMALL_PIECE
    while True:
        piece, is_last = data[at : at + size], at + size >= len(data)
        if not (is_last and ended):
            piece = piece[: piece.rfind(b"\n") + 1]
        _refuse_what_is_no_text(piece, path, before)
        records, length = _read_strictly(header, piece, path, before, ended=is_last and ended)
        if records:
            return TextBlock(header, piece[:length], path, before, len(records), records)
        if is_last:
            return None
        size *= 4


def _next_lines(header: Header, data: bytes, at: int, path: str, before: Before, *, ended: bool) -> JsonBlock | None:
    """Return the next whole lines that hold objects; None if there are none."""
    size = BLOCK_OF_LINES
    while True:
        piece, is_last = data[at : at + size], at + size >= len(data)
        if not (is_last and ended):
            piece = piece[: piece.rfind(b"\n") + 1]
        if piece.strip():
            _refuse_what_is_no_text(piece, path, before)
            parsed = list(json_rows(piece, path, *before))
            if parsed:
                return JsonBlock(header, piece, path, before, parsed)
        if is_last:
            return None
        size *= 4


def text_blocks(
    chunks: Iterable[tuple[bytes, bool]], header: Header, path: str, positions: Sequence[int]
) -> Iterator[tuple[TextBlock, list[pl.Series]]]:
    """Parse columns of a file whose rows need not fit in memory at once, block by block; see `read_header`."""
    left, skipped, before = b"", len(header.text), Before(0, header.text.count(b"\n"))
    for chunk, ended in chunks:
        data = left + header.usual(chunk, path)
        at, skipped = min(skipped, len(data)), max(0, skipped - len(data))
        while (block := next_block(header, data, at, path, before, ended=ended)) is not None:
            yield block, block.cells(positions)
            at, before = at + len(block), block.after
        left = data[at:]
        if not ended and len(left) > _LONGEST_ROW:
            raise endless_row(path, before)


def _may_hold_space(data: bytes, separator: str) -> bool:
    """Return quickly whether a cell may hold nothing but space; most files have none."""
    return not data.isascii() or any(mark in data for mark in b' \t\v\f"' if mark != ord(separator))


def endless_row(path: str, before: Before, most: int = _LONGEST_ROW) -> LogError:
    """Return the error for a row, or a header, that has not ended within `most` bytes."""
    text = f"expected rows of less than {most:,} bytes; got one that has not ended by then."
    return LogError(text, path=path, remedy="Check its quotes.", row=before.rows + 1, line=before.lines + 1)


def first_cells(
    chunks: Iterable[tuple[bytes, bool]], header: Header, positions: Sequence[int], count: int
) -> list[pl.Series]:
    """Return the first cells of columns, unchecked; a missing cell is blank. Of long rows, fewer than `count` come."""
    names = [header.names[at] for at in positions]
    columns = [pl.Series(name, [], pl.String) for name in names]
    for beginning, ended in _beginnings(chunks):
        data = beginning.replace(b"\r", b"\n") if header.old else beginning
        rows = _first_rows(data if ended else data[: data.rfind(b"\n") + 1], header, positions, count)
        columns = [pl.Series(name, [row[at] for row in rows], pl.String) for at, name in enumerate(names)]
        if len(rows) == count or len(beginning) >= BLOCK:
            break
    return columns


def _first_rows(data: bytes, header: Header, positions: Sequence[int], count: int) -> list[list[str | None]]:
    """Return cells of the first rows of text that ends with a whole row, or with the file."""
    if not header.separator:
        names = [header.names[at] for at in positions]
        objects = (row for _, row in islice(json_rows(data, "", 0, 0), count))
        return [[None if row.get(name) is None else str(row[name]) for name in names] for row in objects]
    rows = list[list[str | None]]()
    with suppress(_BrokenRow, UnicodeDecodeError):
        read = (record for *_, record in _records(data[len(header.text) :], header.separator))
        filled = (record for record in read if any(map(str.strip, record)) or len(header.names) < 2)
        for record in islice(filled, count):
            rows.append([record[at] if at < len(record) else None for at in positions])
    return rows


def _plain_rows(header: Header, data: bytes, at: int) -> tuple[bytes, int]:
    """Return the plain rows from `at` on, and how many they are: all that are whole, or fewer, or none."""
    end = data.rfind(b"\n") + 1
    while end > at and (b"\n" + data[max(end - 3, at) : end]).endswith((b"\n\n", b"\n\r\n")):  # a blank line
        end = data.rfind(b"\n", 0, end - 1) + 1
    piece, width, separator = data[at:end], len(header.names), header.separator.encode()
    longest = csv.field_size_limit()
    if b'"' in piece:
        from unbandit.kernels.csv_rows import plain_rows  # most logs have no quotes

        length, rows = plain_rows(np.frombuffer(piece, np.uint8), separator[0], width, longest)
        return piece[:length], rows
    if b"\r" in piece and piece.count(b"\r") != piece.count(b"\r\n"):
        bare = re.search(rb"\r(?!\n)", piece)
        piece = piece[: piece.rfind(b"\n", 0, bare.start() if bare else 0) + 1]
    # A cell that is too long covers one of these windows.
    half = max(longest // 2, 1)
    for begin in range(0, len(piece), half):
        window = begin, begin + half
        if piece.find(separator, *window) < 0 and piece.find(b"\n", *window) < 0 and window[1] <= len(piece):
            piece = piece[: piece.rfind(b"\n", 0, begin) + 1]
            break
    # Without quotes the separators and line feeds are the structure, which must repeat from row to row.
    structure = piece.translate(None, bytes(set(range(256)) - {separator[0], _LINE_FEED}))
    row = separator * (width - 1) + b"\n"
    rows = len(structure) // width
    if structure == row * rows:
        return piece, rows
    marks = np.frombuffer(structure, np.uint8)[: rows * width].reshape(rows, width)
    is_other = (marks != np.frombuffer(row, np.uint8)).any(axis=1)
    rows = int(is_other.argmax()) if is_other.any() else rows
    breaks = np.flatnonzero(np.frombuffer(piece, np.uint8) == _LINE_FEED)
    return (piece[: int(breaks[rows - 1]) + 1], rows) if rows else (b"", 0)


def _records(data: bytes, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """Parse records strictly, one by one; yield the line each begins in, where it ends, and its cells."""
    line, fed, begins = b"", 0, 1

    def lines() -> Iterator[str]:
        nonlocal line, fed
        for line in io.BytesIO(data):
            fed += len(line)
            yield line.decode("utf-8")

    reader = csv.reader(lines(), delimiter=separator, strict=True)
    while True:
        try:
            record = next(reader, None)
            if record is not None and line.endswith(b"\r\r\n"):
                raise csv.Error
        except csv.Error as error:
            if "field limit" in str(error):
                raise _BrokenRow("a longer one", begins, at_end=False, is_long=True) from error
            is_return = b"\r" in line.removesuffix(b"\n").removesuffix(b"\r")
            reason = "a carriage return without a line feed" if is_return else f"a broken row ({error})"
            raise _BrokenRow(reason, begins, at_end=fed == len(data)) from error
        if record is None:
            return
        yield begins, fed, record
        begins = reader.line_num + 1


def _read_strictly(
    header: Header, data: bytes, path: str, before: Before, *, ended: bool = True
) -> tuple[list[list[str]], int]:
    """Read rows by Python's `csv`, and return where they end; refuse those that are broken or have too many cells.

    Unless the file has `ended`, a row at the end that may go on is left, as are blank lines.
    """
    records, end, blank, width = list[list[str]](), 0, 0, len(header.names)

    def refuse(text: str, line: int, remedy: str, value: object = None) -> LogError:
        refused = LogError(text, path=path, value=value, remedy=remedy)
        return refused.at(row=before.rows + len(records) + 1, line=before.lines + line)

    try:
        for line, after, record in _records(data, header.separator):
            if not record:
                blank = blank or line
                continue
            if blank and width == 1:
                records += [[]] * (line - blank)
                blank = 0
            if blank or len(record) != width:
                cells = "a blank line" if blank else counted(len(record), "cell")
                text = f"expected {counted(width, 'cell')}, one for each column; got {cells}."
                remedy = "Correct this line, or quote cells that contain the separator."
                raise refuse(text, blank or line, remedy, "" if blank else header.separator.join(record))
            records.append(record)
            blank, end = 0, after
    except _BrokenRow as broken:
        if not broken.at_end or ended:
            text = f"expected {broken.expected}; got {broken.reason}."
            raise refuse(text, broken.line, broken.remedy) from broken
    return records, end


def _refuse_what_is_no_text(data: bytes, path: str, before: Before) -> None:
    encode = "Save the file again with the encoding UTF-8 (in Excel: CSV UTF-8)."
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LogError("expected text in UTF-8; got UTF-16.", path=path, remedy=encode)
    if b"\0" in data:
        got, remedy = "a binary file", "Check the name."
        if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            got, remedy = "a spreadsheet or an archive", "Save the sheet as CSV."
        raise LogError(
            f"expected a table (CSV, TSV, JSON lines, Parquet, Arrow or a spreadsheet); got {got}.",
            path=path,
            remedy=remedy,
        )
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start : error.start + 1]
        refused = LogError(f"expected text in UTF-8; got the byte 0x{byte.hex()}.", path=path, remedy=encode)
        raise refused.at(row=line + before.rows or None, line=line + before.lines, value=byte) from error
