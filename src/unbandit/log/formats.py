"""Formats of files: Parquet, Arrow, delimited text, JSON lines and spreadsheets, known by their first bytes."""

import gzip
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from unbandit.errors import LogError, Notice, ParameterError, UnbanditError, first_line, option
from unbandit.formatting import label
from unbandit.log.columns import MOST_ABOVE, NO_ARM, missing_arm_remedy
from unbandit.log.csv import BLOCK, POLARS_ERRORS, Header, TextBlock, first_cells, read_header, text_blocks
from unbandit.log.labels import Integers, is_number, listed
from unbandit.log.parquet import PARQUET, ParquetLayout, UnreadableParquet, without_panic_text
from unbandit.log.sources import (
    BROKEN_GZIP,
    GZIP,
    ROWS,
    USUAL,
    Batch,
    Layout,
    Paths,
    Source,
    blank_rows_notice,
    files_of,
    unreadable,
)

PARQUET_ROWS = 1 << 20
"""Rows that are decoded at once: more than a batch has, since polars takes its time for every call."""

SHARE = 4  # a log that would take more than one part in this many of the machine's memory is scanned

BYTES_PER_ROW, BYTES_PER_BYTE, BYTES_PER_PACKED_BYTE = 40, 4, 20
"""What a row of Parquet, a byte of text, and one compressed by gzip take while they are read into memory, roughly."""

SPREADSHEET = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of .xlsx and .ods, which are ZIP archives, and of .xls
ARROW, ARROW_STREAM, FEATHER_1 = b"ARRO", b"\xff\xff\xff\xff", b"FEA1"
WHOLE = (*SPREADSHEET, ARROW, ARROW_STREAM)  # formats of files that never grow, besides Parquet


class ParquetSource(Source):
    """A Parquet file on disk or in memory."""

    format = "Parquet"

    def __init__(self, content: Path | bytes, path: str, partition: Mapping[str, str] | None = None) -> None:
        self.path, self._content = path, content
        with self._reading():
            self._layout = ParquetLayout(content)
            self._kinds = pl.read_parquet_schema(self._opened())
        self.set_columns(list(self._kinds), partition)

    def kind(self, name: str) -> str:
        """Return what a column holds."""
        kind = pl.String() if name in self.partition else self._kinds[name]
        if kind.is_integer():
            return "integers"
        if kind.is_float() or kind.is_decimal():
            return "numbers"
        return "text" if isinstance(kind, pl.String | pl.Categorical | pl.Enum) else str(kind)

    def rows(self) -> int:
        """Return the number of rows, which the end of the file states."""
        return self._layout.rows

    def _tables(self, names: list[str], rows: int) -> Iterator[Batch]:
        self._check(names)
        step = self.rows() if isinstance(self._content, bytes) else PARQUET_ROWS
        places = range(0, self.rows(), step or 1)
        if len(places) < 2:
            yield from (Batch(self._decoded(names, place, step), self.path, place) for place in places)
            return
        with ThreadPoolExecutor(1) as decoder:  # works on the next rows while ours are used
            following = decoder.submit(self._decoded, names, 0, step)
            for place in places:
                columns = following.result()
                if place != places[-1]:
                    following = decoder.submit(self._decoded, names, place + step, step)
                yield Batch(columns, self.path, place)

    def _decoded(self, names: list[str], place: int, count: int) -> dict[str, pl.Series]:
        """Return columns of some rows; a damaged file fails within, and never while a batch is being used."""
        with self._reading():
            scan = self._scan().select(names)
            frame = scan.slice(place, count).collect(engine="streaming" if count < self.rows() else "auto")
            for column in frame.select(pl.selectors.categorical()):  # polars does not check that these are text
                column.unique().cast(pl.String).cast(pl.Binary).cast(pl.String)
        if frame.height != min(count, self.rows() - place):
            raise self.refuse("the file changed while it was being read.", remedy="Wait until it is written.")
        return {column.name: column for column in frame}

    def _check(self, names: list[str]) -> None:
        """Refuse columns that polars could not read safely."""
        with self._reading():
            self._layout.check(names)

    def _scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(self._opened(), glob=False, hive_partitioning=False)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Refuse the file where polars cannot read it, without the text that polars prints then."""
        try:
            with without_panic_text():
                yield
        except (UnreadableParquet, *POLARS_ERRORS) as error:
            raise self._broken(error) from error

    def _opened(self) -> str | io.BytesIO:
        # An absolute path, so that no name is taken for an address on the network.
        return io.BytesIO(self._content) if isinstance(self._content, bytes) else str(self._content.absolute())

    def _broken(self, error: BaseException) -> LogError:
        # Polars gives the kind of an error of the system, not always its number.
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            return unreadable(str(self.path), error)
        if isinstance(error, UnreadableParquet) and error.expected is not None:
            return self.refuse(f"expected {error.expected}; {error}.", remedy=error.remedy)
        reason = "its values are damaged" if isinstance(error, pl.exceptions.PanicException) else first_line(error)
        text = f"expected a whole {self.format} file; it could not be read ({reason})."
        return self.refuse(text, remedy="Write or copy it again.")


class ArrowSource(ParquetSource):
    """An Arrow file (IPC, Feather version 2) on disk or in memory, or a stream of Arrow batches."""

    format = "Arrow"

    def __init__(self, content: Path | bytes, path: str, partition: Mapping[str, str] | None = None) -> None:
        self.path, self._content = path, content
        with self._reading():
            self._stream = pl.read_ipc_stream(self._opened()) if _beginning(content) == ARROW_STREAM else None
            self._kinds = pl.Schema(self._scan().collect_schema())
            self._rows = int(self._scan().select(pl.len()).collect().item())
        self.set_columns(list(self._kinds), partition)

    def rows(self) -> int:
        """Return the number of rows, which the batches state."""
        return self._rows

    def _check(self, names: list[str]) -> None:
        pass

    def _scan(self) -> pl.LazyFrame:
        return pl.scan_ipc(self._opened(), glob=False) if self._stream is None else self._stream.lazy()


def _beginning(content: Path | bytes) -> bytes:
    """Return the first four bytes of a file."""
    if isinstance(content, bytes):
        return content[:4]
    with content.open("rb") as file:
        return file.read(4)


class TextSource(Source):
    """A CSV or TSV file or JSON lines, on disk, compressed by gzip or not, or in memory.

    Text that is no UTF-8 is read as Windows-1252, which contains Latin-1, if its first letter beyond ASCII says so.
    """

    empty = ("expected one row per choice below the header; got the header only, without rows.", "Check the file.")

    def __init__(
        self, content: Path | bytes, path: str, partition: Mapping[str, str] | None = None, layout: Layout = USUAL
    ) -> None:
        self._content, self.path, self._path, self._has_names = content, path, path, layout.header
        self._latin = ""  # a word with a letter beyond ASCII, where the file is no UTF-8
        self._blank = 0  # rows left out so far, as all their cells are blank
        self._header = self._read_header()[0]
        if not (layout.header or self._header.separator):
            raise _no_header("JSON lines, whose objects name their members")
        self.begins_with_names = layout.header and bool(self._header.separator)
        self.set_columns(self._header.names, partition)

    def _read_header(self) -> tuple[Header, bytes]:
        return read_header(self._chunks(1 << 16), self._path, has_names=self._has_names)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Say which separator, encoding and names of columns were taken, where that is not the usual."""
        notices = layout_notices(self._header, has_names=self._has_names, latin=self._latin)
        return notices + blank_rows_notice(self._blank)

    def refuse(self, text: str, **data: Any) -> LogError:
        """Return the error that names this source, and of one without arms the line that looks like its header."""
        if text.startswith(NO_ARM) and "remedy" in data:
            lines = self._read_header()[1].decode("utf-8", "replace").splitlines()[:MOST_ABOVE]
            rows = [[cell.strip(' "') for cell in re.split("[,;\t]", line)] for line in lines]
            data["remedy"] = missing_arm_remedy(data["remedy"], rows, has_names=self._has_names)
        return super().refuse(text, **data)

    def head(self, positions: Sequence[int], count: int) -> list[pl.Series]:
        """Return the first rows of columns; a missing cell is blank. Of very long rows fewer come."""
        own = [at for at in positions if at < len(self._header.names)] or [0]
        cells = dict(zip(own, first_cells(self._chunks(1 << 16), self._header, own, count), strict=True))
        for at, (key, value) in enumerate(self.partition.items(), len(self._header.names)):
            cells[at] = pl.Series(key, [value]).new_from_index(0, len(cells[own[0]]))
        return [cells[at] for at in positions]

    def _tables(self, names: list[str], rows: int) -> Iterator[Batch]:
        positions = [self._header.names.index(name) for name in names]
        chunks, self._blank = self._chunks(BLOCK if rows >= ROWS else 8 * rows), 0
        for block, columns in text_blocks(chunks, self._header, self._path, positions):
            cells, line, begins = dict(zip(names, columns, strict=True)), block.line, block.rows_before - self._blank
            kept = block.filled(columns)
            if kept is not None:
                cells = {name: column[kept] for name, column in cells.items()}
                self._blank += block.rows - kept.size
            if self._blank:
                line = partial(line_of, block, np.arange(block.rows) if kept is None else kept, begins)
            yield Batch(cells, self._path, begins, line, block.late())

    def _chunks(self, size: int) -> Iterator[tuple[bytes, bool]]:
        """Yield the bytes of the file in UTF-8, decompressed, and whether they are the last."""
        is_utf8, held = None, b""
        for chunk, is_last in self._raw_chunks(size):
            data, held = held + chunk, b""
            if is_utf8 is None and not data.isascii():
                at = re.search(rb"[\x80-\xff]", data)
                assert at is not None
                if len(data) - at.start() < 4 and not is_last:  # the rest of the letter comes later
                    data, held = data[: at.start()], data[at.start() :]
                else:
                    is_utf8 = _begins_as_utf8(data[at.start() :][:4]) or data.startswith((b"\xff\xfe", b"\xfe\xff"))
            if is_utf8 is False and b"\0" not in data:
                with suppress(UnicodeDecodeError):  # refused when it is parsed
                    text = data.decode("cp1252")
                    words = None if self._latin else re.search(r'[^\s,;"]*[^\x00-\x7f][^\s,;"]*', text)
                    self._latin = self._latin if words is None else label(words[0], 40)
                    data = text.encode()
            yield data, is_last

    def _raw_chunks(self, size: int) -> Iterator[tuple[bytes, bool]]:
        """Yield the bytes of the file, decompressed, and whether they are the last."""
        try:
            with self._opened() as file:
                data = file.read(size)
                while True:
                    following = file.read(size)
                    yield data, not following
                    if not following:
                        return
                    data = following
        except (*BROKEN_GZIP, OSError) as error:
            raise unreadable(self._path, error) from error

    def _opened(self) -> IO[bytes]:
        if isinstance(self._content, bytes):
            return io.BytesIO(self._content)
        with self._content.open("rb") as file:
            packed = file.read(2) == GZIP
        return gzip.open(self._content, "rb") if packed else self._content.open("rb")  # type: ignore[return-value]


def line_of(block: TextBlock, kept: Integers, begins: int, row: int) -> int:
    """Return the line of a row among those that are not blank, of which `begins` come before the block."""
    return block.line(int(kept[row - 1 - begins]) + 1 + block.rows_before)


def _begins_as_utf8(data: bytes) -> bool:
    """Return whether a letter beyond ASCII is written as UTF-8 has it."""
    for length in (2, 3, 4):
        with suppress(UnicodeDecodeError):
            data[:length].decode("utf-8")
            return True
    return False


def layout_notices(header: Header, *, has_names: bool, latin: str = "") -> tuple[Notice, ...]:
    """Say how a text file was read, where that is not the usual: names of columns, separator and encoding.

    `latin` is a word that was read as Windows-1252, if the file was.
    """
    texts = list[str]()
    if not has_names:
        called = f": its columns are called 1 to {len(header.names)}" if len(header.names) > 1 else ""
        texts.append(f"without a header{called}")
    if header.separator == ";":
        texts.append("with semicolons between cells")
    wrong = ""
    if latin:
        texts.append("as Windows-1252 (Latin-1), since it is no UTF-8")
        wrong = f' It holds "{latin}": if that looks wrong, save the file as UTF-8.'
    notices = [Notice("layout", f"the file is read {', '.join(texts)}.{wrong}")] if texts else []
    if has_names and header.separator and header.names and all(map(is_number, header.names)):
        text = f"the first row ({listed(header.names)}) is read as the names of columns: if it is data, "
        notices.append(Notice("layout", f"{text}read the file with {option('header', False)}."))
    return tuple(notices)


def _no_header(what: str) -> ParameterError:
    text = f"expected only with text in columns or a spreadsheet; got {what}."
    return ParameterError(text, parameter="header", value=False, remedy="Leave it out.")


def _open_content(content: Path | bytes, name: str, partition: Mapping[str, str] | None, layout: Layout) -> Source:
    """Open a file or its content; the first bytes decide on its format."""
    beginning = _beginning(content)
    if beginning in SPREADSHEET:
        from unbandit.log.spreadsheets import SpreadsheetSource  # few logs are spreadsheets

        return SpreadsheetSource(content, name, partition, layout)
    if layout.sheet is not None:
        text = f"expected only with a spreadsheet; {name} is none."
        raise ParameterError(text, parameter="sheet", value=layout.sheet, remedy="Leave it out.")
    kinds = {PARQUET: ParquetSource, ARROW: ArrowSource, ARROW_STREAM: ArrowSource}
    if beginning in kinds:
        if not layout.header:
            raise _no_header(f"a file of {kinds[beginning].format}, which names its columns")
        return kinds[beginning](content, name, partition)
    if beginning == FEATHER_1:
        text = "expected Feather of version 2; got version 1, which is no longer read."
        raise LogError(text, path=name, remedy="Write it again by a current version of pandas or arrow.")
    return TextSource(content, name, partition, layout)


def open_bytes(data: bytes, name: str, layout: Layout = USUAL) -> Source:
    """Open the content of a file; `name` is only what messages call it."""
    if not isinstance(data, bytes | bytearray | memoryview):
        text = f"expected the content of a file, as bytes; got {type(data).__name__}."
        raise ParameterError(text, parameter="data", value=data, remedy="A file is read by ActionLog.read.")
    data = bytes(data)
    if data.startswith(GZIP):
        try:
            with gzip.GzipFile(
                fileobj=io.BytesIO(data)
            ) as packed:  # `decompress` takes the square of many members' time
                data = packed.read()
        except (*BROKEN_GZIP, OSError) as error:
            raise unreadable(name, error) from error
    return _open_content(data, name, None, layout)


def open_source(
    path: str | os.PathLike[str], partition: Mapping[str, str] | None = None, layout: Layout = USUAL, *,
    unpack: bool = True,
) -> Source:  # fmt: skip
    """Open one file ("-" is standard input) far enough to know its columns; the first bytes decide on its format.

    Parquet compressed by gzip is unpacked into memory, or refused.
    """
    name, file = os.fspath(path), Path(path)
    if name == "-":
        return open_bytes(sys.stdin.buffer.read(), "standard input", layout)
    try:
        if _beginning(file).startswith(GZIP):
            with gzip.open(file, "rb") as packed:
                is_packed_table = packed.read(4) in (PARQUET, *WHOLE)
            if is_packed_table and unpack:
                return open_bytes(file.read_bytes(), name, layout)
            if is_packed_table:
                text = "expected Parquet, Arrow or a spreadsheet as it is; got one compressed by gzip."
                raise LogError(text, path=name, remedy="Unpack it first.")
        return _open_content(file, name, partition, layout)
    except (*BROKEN_GZIP, OSError, ValueError) as error:
        if isinstance(error, UnbanditError):
            raise
        raise unreadable(name, error) from error


def sources_of(paths: Paths, layout: Layout = USUAL, *, unpack: bool = False) -> list[Source]:
    """Open every file of a log far enough to know its columns."""
    return [open_source(file.path, file.partition, layout, unpack=unpack) for file in files_of(paths)]


def is_large(paths: Paths) -> bool:
    """Return whether a log should be scanned: it would take too much of the machine's memory."""
    return sum(_size(file.path) for file in files_of(paths)) > memory() / SHARE


def memory() -> int:
    """Return the bytes of memory that this machine has, or this process may use."""
    limits = []
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # in a container
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits, default=8 * 2**30)


def _size(path: Path) -> int:
    """Guess what a file would take in memory; nothing for what can be read only once, or not at all."""
    if not path.is_file():
        return 0
    with suppress(OSError, LogError):  # reading it will say why
        with path.open("rb") as file:
            beginning = file.read(4)
        if beginning == PARQUET:
            return BYTES_PER_ROW * ParquetSource(path, str(path)).rows()
        is_packed = beginning.startswith((GZIP, *SPREADSHEET))
        return path.stat().st_size * (BYTES_PER_PACKED_BYTE if is_packed else BYTES_PER_BYTE)
    return 0
