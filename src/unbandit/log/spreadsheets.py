"""Spreadsheets (.xlsx, .ods, .xls): one sheet as a table, every cell as text.

They are read by calamine through `fastexcel`, the engine that polars uses for them too.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from unbandit.errors import LogError, Notice, ParameterError, first_line, option
from unbandit.formatting import counted
from unbandit.log.columns import MOST_ABOVE, NO_ARM, missing_arm_remedy
from unbandit.log.labels import listed
from unbandit.log.sources import USUAL, Batch, Layout, Source, blank_rows_notice


def sheet_names(data: bytes) -> tuple[str, ...]:
    """Return the names of the sheets of a spreadsheet; none where it cannot be read, which its source explains."""
    try:
        import fastexcel
    except ImportError:
        return ()
    try:
        return tuple(fastexcel.read_excel(data).sheet_names)
    except (fastexcel.FastExcelError, pl.exceptions.PanicException):
        return ()


class SpreadsheetSource(Source):
    """A sheet of a spreadsheet on disk or in memory: the first one, or the one that the layout names.

    The first row that is not blank names the columns. Blank rows are no rows.
    """

    def __init__(
        self, content: Path | bytes, path: str, partition: Mapping[str, str] | None = None, layout: Layout = USUAL
    ) -> None:
        try:
            import fastexcel
        except ImportError as error:
            text = "expected a table that can be read here; got a spreadsheet, for which fastexcel is not installed."
            remedy = "Install it with: pip install fastexcel (or save the sheet as CSV)."
            raise LogError(text, path=path, remedy=remedy) from error
        self.path, self._layout = path, layout
        try:
            book = fastexcel.read_excel(content if isinstance(content, bytes) else str(content))
            self._sheets: list[str] = list(book.sheet_names)
            self._sheet = self._sheets[0] if layout.sheet is None else self._named_sheet(layout.sheet)
            frame = book.load_sheet(self._sheet, header_row=None, skip_rows=0, dtypes="string").to_polars()
        except (fastexcel.FastExcelError, pl.exceptions.PolarsError, pl.exceptions.PanicException, IndexError) as error:
            text = f"expected a spreadsheet (.xlsx, .ods); it could not be read ({first_line(error)})."
            raise LogError(text, path=path, remedy="Save it again, or save the sheet as CSV.") from error
        frame = frame.with_columns(pl.all().str.strip_chars().replace("", None))
        is_blank = (
            frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
            if frame.width
            else pl.Series([], dtype=pl.Boolean)
        )
        filled = (~is_blank).arg_true()
        if not len(filled):
            text = f'expected a header and one row per choice in sheet "{self._sheet}"; it is empty.'
            raise self.refuse(
                text,
                remedy=f"For another sheet, read the file with {option('sheet', 'NAME')}."
                if len(self._sheets) > 1
                else "Check that it was saved.",
            )
        every = pl.int_range(int(filled[0]), int(filled[-1]) + 1, eager=True)  # a cell alone may be blank for a round
        self._rows = rows = (filled if frame.width > 1 else every)[layout.header :]  # of data
        names = [name or "" for name in frame.row(int(filled[0]))]
        if not layout.header:
            names = ["arm"] if len(names) == 1 else [str(at) for at in range(1, len(names) + 1)]
        self._columns = frame[rows].get_columns()
        self._blank = int(filled[-1] - filled[0]) + 1 - layout.header - len(rows)  # in mid-sheet, or below the header
        self._top = frame[:MOST_ABOVE].rows()
        self._own, self.begins_with_names = names, layout.header
        self.set_columns(names, partition)
        self.empty = (
            f'expected one row per choice below the header; got the header only in sheet "{self._sheet}".',
            "Check the file.",
        )

    def refuse(self, text: str, **data: Any) -> LogError:
        """Return the error that names this source; of columns that are not there also the sheet, and the others."""
        if len(self._sheets) > 1 and "column" in data and "row" not in data:
            others = listed([f'"{sheet}"' for sheet in self._sheets if sheet != self._sheet])
            text += f' Sheet "{self._sheet}" was read; for another ({others}), read the file with '
            text += f"{option('sheet', 'NAME')}."
        if text.startswith(NO_ARM):
            above = ([cell or "" for cell in row] for row in self._top)
            data["remedy"] = missing_arm_remedy(data["remedy"], above, has_names=self._layout.header)
        return super().refuse(text, **data)

    def _named_sheet(self, name: str) -> str:
        """Return the sheet of this name, up to case."""
        matches = [sheet for sheet in self._sheets if sheet == name] or [
            sheet for sheet in self._sheets if sheet.casefold() == name.strip().casefold()
        ]
        if len(matches) != 1:
            held = listed([f'"{sheet}"' for sheet in self._sheets])
            text = f'expected a sheet of {self.path}; got "{name}".'
            raise ParameterError(text, parameter="sheet", value=name, remedy=f"It has {held}.")
        return matches[0]

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Say which of several sheets is read, and that there is no header."""
        notices = list[Notice]()
        if len(self._sheets) > 1 and self._layout.sheet is None:
            others = listed([f'"{sheet}"' for sheet in self._sheets[1:]])
            text = f'sheet "{self._sheet}" is read, the first of {counted(len(self._sheets), "sheet")}; for another '
            notices.append(Notice("layout", f"{text}({others}), read the file with {option('sheet', 'NAME')}."))
        if not self._layout.header:
            notices.append(Notice("layout", "the sheet is read without a header."))
        return (*notices, *blank_rows_notice(self._blank))

    def _tables(self, names: list[str], rows: int) -> Iterator[Batch]:
        columns = {name: self._columns[self._own.index(name)] for name in names}
        if len(self._columns[0]):
            yield Batch(columns, self.path, 0, lambda row: int(self._rows[row - 1]) + 1)
