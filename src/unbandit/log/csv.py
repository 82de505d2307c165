"""Delimited text (CSV, TSV, semicolons) in blocks of whole rows, every cell as text.

Cells stay text so that a label such as "01" survives, and so that an error can show the cell as it is in the file.
Rows are cut by hand because polars neither reads compressed text in batches nor says in which line a row begins.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import polars as pl

from unbandit.errors import LogError, first_line

BLOCK = 1 << 24  # bytes that are read at once

SEPARATORS = (",", "\t", ";")
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What polars raises where a file is damaged, or cannot be read or written."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_ROW = 1 << 26  # a quote that is never closed must not collect the rest of the file


class Header(NamedTuple):
    """What the beginning of a file says about all of it."""

    names: list[str]
    separator: str
    text: bytes  # the line of names with its line break, and what comes before it
    old: bool  # whether lines end in a carriage return, as on the old Macintosh

    def usual(self, data: bytes) -> bytes:
        """Return bytes of the file with the usual line breaks."""
        return data.replace(b"\r", b"\n") if self.old else data


class TextBlock:
    """Some rows of a file, which are parsed together; rows and lines before them include the header's line."""

    def __init__(self, header: Header, data: bytes, path: str, rows_before: int, lines_before: int) -> None:
        self.path, self.rows_before = path, rows_before
        self._names, self._separator = header.names, header.separator
        line_of_names = header.text.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n")
        self._lines_before = lines_before - line_of_names.count(b"\n")
        self._data = line_of_names + data
        _refuse_what_is_no_text(data, path, rows_before, lines_before)

    def cells(self, positions: Sequence[int]) -> list[pl.Series]:
        """Parse columns; refuse rows with too many or too few cells."""
        wanted = sorted({*positions, len(self._names) - 1})
        try:
            frame = pl.read_csv(
                io.BytesIO(self._data), columns=wanted, separator=self._separator, infer_schema=False, encoding="utf8"
            )
        except POLARS_ERRORS as error:
            self._refuse_uneven_rows()
            text = f"expected a table of text; it could not be read ({first_line(error)})."
            raise LogError(text, path=self.path, remedy="Save it again as CSV.") from error
        columns = dict(zip(wanted, frame.get_columns(), strict=True))
        # A row that ends early shows as a blank last cell: only then is it worth counting the cells of every row.
        if len(self._names) > 1 and columns[wanted[-1]].null_count() and not self._is_plainly_even(frame.height):
            self._refuse_uneven_rows()
        return [columns[position] for position in positions]

    def line(self, row: int) -> int:
        """Return the line in which a row of the file begins; line breaks inside quoted cells count."""
        row -= self.rows_before
        try:
            line, _ = next(islice(_records(self._data, self._separator), row, None), (row + 1, []))
        except csv.Error:
            line = row + 1
        return line + self._lines_before

    def _is_plainly_even(self, rows: int) -> bool:
        """Return whether the separators add up: no row can then be short, since a long one is refused elsewhere."""
        separators = self._data.count(self._separator.encode())
        return b'"' not in self._data and separators == (rows + 1) * (len(self._names) - 1)

    def _refuse_uneven_rows(self) -> None:
        """Name the first row with more or fewer cells than the header, or with quotes that do not close."""
        row, line, width = 0, 1, len(self._names)
        try:
            for row, (line, record) in enumerate(_records(self._data, self._separator, strict=True)):
                cells = len(record)
                if cells == width or (width == 1 and not cells):
                    continue
                got = f"{cells} cells" if cells > 1 else ("1 cell" if cells else "a blank line")
                text, value = f"expected {width} cells, one for each column; got {got}.", self._separator.join(record)
                remedy = "Correct this line, or quote cells that contain the separator."
                refused = LogError(text, path=self.path, value=value, remedy=remedy)
                raise refused.at(row=row + self.rows_before, line=line + self._lines_before)
        except csv.Error as error:
            text = f"expected cells whose quotes open and close; got a broken one ({error})."
            refused = LogError(text, path=self.path, remedy="Correct the quotes there.")
            raise refused.at(row=row + 1 + self.rows_before, line=line + 1 + self._lines_before) from error


def header_of(data: bytes, path: str) -> Header:
    """Read the names of the columns from the beginning of a file."""
    _refuse_what_is_no_text(data, path)
    old = _is_old(data)
    data = data.replace(b"\r", b"\n") if old else data
    body = data.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n")
    if not body.strip():
        text = "expected a header and one row per choice; got an empty file."
        raise LogError(text, path=path, remedy="Check that it was saved.")
    separator = _sniff(body, path)
    records = _records(body, separator)
    names = [name.strip() for name in next(records)[1]]
    lines = next((line - 1 for line, _ in records), body.count(b"\n") or 1)  # more than one if a name has a line break
    end = sum(len(line) for line in islice(io.BytesIO(body), lines))
    return Header(names, separator, data[: len(data) - len(body) + end], old)


def read_header(chunks: Iterable[tuple[bytes, bool]], path: str) -> tuple[Header, bytes]:
    """Read no more of a file than it takes to know its columns; return also the bytes that were read.

    `chunks` are bytes of the file, one chunk after the other, and whether each is the last.
    """
    beginning, cut = b"", 0
    for data, ended in chunks:
        beginning += data
        usual = beginning.replace(b"\r", b"\n") if _is_old(beginning) else beginning
        cut = whole_rows(usual, ended=ended)
        if ended or usual.strip(_BYTE_ORDER_MARK + b"\r\n").count(b"\n", 0, cut) > 1 or len(beginning) > _LONGEST_ROW:
            break
    return header_of(beginning[: cut or None], path), beginning


def whole_rows(data: bytes, *, ended: bool) -> int:
    """Return how many of some bytes are whole rows; those after a line break within quotes, or a blank line, wait."""
    if ended:
        return len(data)
    cut = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, cut)
    while cut and quotes % 2:
        end, cut = cut, data.rfind(b"\n", 0, cut - 1) + 1
        quotes -= data.count(b'"', cut, end)
    # A blank line waits as well: at the end of a file it is no row.
    while cut and (b"\n" + data[max(cut - 3, 0) : cut]).endswith((b"\n\n", b"\n\r\n")):
        cut = data.rfind(b"\n", 0, cut - 1) + 1
    return cut


def text_blocks(
    chunks: Iterable[tuple[bytes, bool]], header: Header, path: str, positions: Sequence[int]
) -> Iterator[tuple[TextBlock, list[pl.Series]]]:
    """Parse columns of a file whose rows need not fit in memory at once, block by block; see `read_header`."""
    left, rows, lines = b"", 0, header.text.count(b"\n")
    skipped = len(header.text)
    for chunk, ended in chunks:
        data = left + header.usual(chunk)
        data, skipped = data[skipped:], max(0, skipped - len(data))
        if ended and (len(data) < 3 or data.endswith((b"\n\n", b"\n\r\n"))):  # blank lines at the end are no rows
            data = data.rstrip(b"\r\n") + b"\n" if data.strip(b"\r\n") else b""
        cut = whole_rows(data, ended=ended)
        if cut == 0 and len(data) > _LONGEST_ROW:
            cut = data.rfind(b"\n") + 1
        left = data[cut:]
        if cut:
            block = TextBlock(header, data[:cut], path, rows, lines)
            columns = block.cells(positions)
            yield block, columns
            rows += len(columns[0])
            lines += data.count(b"\n", 0, cut)


def first_cells(data: bytes, header: Header, positions: Sequence[int], count: int) -> list[pl.Series]:
    """Return the first cells of columns, unchecked, from the beginning of a file; a missing cell is blank."""
    body = header.usual(data)[len(header.text) :]
    records = [record for _, record in islice(_records(body, header.separator), count)]
    cells = [[record[at] if at < len(record) else None for record in records] for at in positions]
    return [pl.Series(header.names[at], column, pl.String) for at, column in zip(positions, cells, strict=True)]


def _is_old(data: bytes) -> bool:
    """Return whether lines end in a carriage return alone."""
    return b"\n" not in data and b"\r" in data


def _records(data: bytes, separator: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Parse records one by one, each with the line it begins in: slow, for headers and errors."""
    lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    reader = csv.reader(lines, delimiter=separator, strict=strict)
    begins = 1
    for record in reader:
        yield begins, record
        begins = reader.line_num + 1


def _sniff(body: bytes, path: str) -> str:
    """Choose the separator that cuts the header into most names, and the first row into as many cells."""
    widths, reason = {}, ""
    for separator in SEPARATORS:
        try:
            records = [record for _, record in islice(_records(body, separator), 2)]
            widths[separator] = (len(records) < 2 or len(records[0]) == len(records[1]), len(records[0]))
        except csv.Error as error:  # a header of very many names is one endless name to the wrong separator
            reason = str(error)
    if not widths:
        text = f"expected a header of column names; it could not be read ({reason})."
        raise LogError(text, path=path, remedy="Save the table as CSV.")
    return max(widths, key=lambda separator: widths[separator])


def _refuse_what_is_no_text(data: bytes, path: str, rows_before: int = -1, lines_before: int = 0) -> None:
    encode = "Save the file again with the encoding UTF-8 (in Excel: CSV UTF-8)."
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LogError("expected text in UTF-8; got UTF-16.", path=path, remedy=encode)
    if b"\0" in data:
        got, remedy = "a binary file", "Check the name."
        if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            got, remedy = "a spreadsheet or an archive", "Save the sheet as CSV."
        raise LogError(f"expected a table as CSV, TSV or Parquet; got {got}.", path=path, remedy=remedy)
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start : error.start + 1]
        refused = LogError(f"expected text in UTF-8; got the byte 0x{byte.hex()}.", path=path, remedy=encode)
        raise refused.at(row=line + rows_before or None, line=line + lines_before, value=byte) from error
