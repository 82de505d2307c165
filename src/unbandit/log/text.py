"""Read CSV, TSV and semicolon tables, every cell as text.

Cells stay text so that a label such as "01" survives, and so that an error can show the cell as it stands in the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice

import polars as pl

from unbandit.errors import LogError
from unbandit.log.table import Table

__all__ = ["TextTable"]

SEPARATORS = (",", "\t", ";")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextTable(Table):
    """Hold a delimited text file: its bytes, its separator, its header.

    Examples
    --------
    >>> table = TextTable(b"round;arm\\n1;A\\n2;B\\n", "log.csv")
    >>> table.names, table.take([1])[0].to_list()
    (['round', 'arm'], ['A', 'B'])
    """

    def __init__(self, data: bytes, path: str | None) -> None:
        self.path = path
        self._refuse_what_is_no_text(data)
        text = data.removeprefix(_BYTE_ORDER_MARK)
        if b"\n" not in text and b"\r" in text:  # line ends of the old Macintosh
            text = text.replace(b"\r", b"\n")
        body = text.lstrip(b"\r\n")
        if not body.strip():
            raise self.refuse("expected a header and one row a choice; got an empty file. Check that it was saved.")
        self._lines_before = text[: len(text) - len(body)].count(b"\n")
        self._data = body.rstrip(b"\r\n") + b"\n" if body.endswith((b"\n\n", b"\n\r\n")) else body
        self.separator = self._sniff()
        self.names = [name.strip() for name in next(self._records())[1]]

    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Read columns, and refuse rows with too many or too few cells."""
        wanted = sorted({*positions, len(self.names) - 1})
        try:
            frame = pl.read_csv(
                io.BytesIO(self._data),
                columns=wanted,
                separator=self.separator,
                infer_schema=False,
                encoding="utf8",
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            self._refuse_uneven_rows()
            reason = str(error).strip().splitlines()[0]
            raise self.refuse(
                f"expected a table of text; it could not be read ({reason}). Save it again as CSV."
            ) from error
        if frame.is_empty():
            raise self.refuse("expected one row a choice below the header; got the header only. Check the file.")
        columns = dict(zip(wanted, frame.get_columns(), strict=True))
        # A row that ends early shows as a blank last cell: only then is it worth counting the cells of every row.
        if len(self.names) > 1 and columns[wanted[-1]].null_count() and not self._plainly_even(len(frame)):
            self._refuse_uneven_rows()
        return [columns[position] for position in positions]

    def header_lines(self) -> int:
        """Return how many lines the names of the columns take up: one, unless a quoted name has a break in it."""
        records = self._records()
        next(records)
        return next((line - self._lines_before - 1 for line, _ in records), self._data.count(b"\n") or 1)

    def head(self, positions: Sequence[int], count: int) -> list[pl.Series]:
        """Read the first rows of columns; a cell that is not there is blank."""
        records = [record for _, record in islice(self._records(), 1, count + 1)]
        cells = [[record[at] if at < len(record) else None for record in records] for at in positions]
        return [pl.Series(self.names[at], column, pl.String) for at, column in zip(positions, cells, strict=True)]

    def line(self, row: int) -> int:
        """Return the line that a row begins in, counting line breaks inside quoted cells."""
        try:
            for number, (line, _) in enumerate(self._records()):
                if number == row:
                    return line
        except csv.Error:
            pass
        return row + 1 + self._lines_before

    def _records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Walk over the header and the rows with the line each begins in: slow, for the header and for errors."""
        lines = io.TextIOWrapper(io.BytesIO(self._data), encoding="utf-8", newline="")
        reader = csv.reader(lines, delimiter=self.separator, strict=strict)
        begins = 1
        for record in reader:
            yield begins + self._lines_before, record
            begins = reader.line_num + 1

    def _sniff(self) -> str:
        """Choose the separator that cuts the header into most names, and the first row into as many cells."""
        widths, reason = {}, ""
        for separator in SEPARATORS:
            self.separator = separator
            try:
                records = [record for _, record in islice(self._records(), 2)]
                even = len(records) < 2 or len(records[0]) == len(records[1])
                widths[separator] = (even, len(records[0]))
            except csv.Error as error:  # a header of very many names is one endless name to the wrong separator
                reason = str(error)
        if not widths:
            raise self.refuse(
                f"expected a header of column names; it could not be read ({reason}). Save the table as CSV."
            )
        return max(widths, key=lambda separator: widths[separator])

    def _plainly_even(self, rows: int) -> bool:
        """Tell whether the separators add up: no row can then be short, for one that is long is refused elsewhere."""
        separators = self._data.count(self.separator.encode())
        return b'"' not in self._data and separators == (rows + 1) * (len(self.names) - 1)

    def _refuse_uneven_rows(self) -> None:
        """Name the first row whose cells are more or fewer than the header's, or whose quotes do not close."""
        row, line, width = 0, 1, len(self.names)
        try:
            for row, (line, record) in enumerate(self._records(strict=True)):
                cells = len(record)
                if cells == width or (width == 1 and not cells):
                    continue
                came = f"{cells} cells" if cells > 1 else ("1 cell" if cells else "a blank line")
                raise LogError(
                    f"expected {width} cells, one for each column; got {came}. "
                    "Correct this line, or quote cells that hold the separator.",
                    path=self.path,
                    row=row,
                    line=line,
                    value=self.separator.join(record),
                )
        except csv.Error as error:
            raise LogError(
                f"expected cells whose quotes open and close; got a broken one ({error}). Correct the quotes there.",
                path=self.path,
                row=row + 1,
                line=line + 1,
            ) from error

    def _refuse_what_is_no_text(self, data: bytes) -> None:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise self.refuse(
                "expected text in UTF-8; got UTF-16. Save the file again with the encoding UTF-8 (in Excel: CSV UTF-8)."
            )
        if b"\0" in data:
            came = "a binary file. Check the name."
            if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
                came = "a spreadsheet or an archive. Save the sheet as CSV."
            raise self.refuse(f"expected a table as CSV, TSV or Parquet; got {came}")
        if data.isascii():
            return
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise LogError(
                f"expected text in UTF-8; got the byte 0x{data[error.start]:02x}. "
                "Save the file again with the encoding UTF-8 (in Excel: CSV UTF-8).",
                path=self.path,
                row=line - 1 or None,
                line=line,
                value=data[error.start : error.start + 1],
            ) from error
