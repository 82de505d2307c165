"""Logs that others write while they are followed: a text file that grows, or a folder to which files are added."""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import polars as pl

from unbandit.errors import LogError, Notice, ResumeError
from unbandit.log.columns import FIRST_ROWS
from unbandit.log.csv import BLOCK, Before, Header, endless_row, header_of, next_block
from unbandit.log.formats import WHOLE, ParquetSource, layout_notices, line_of, open_source
from unbandit.log.growth import GrowingLog
from unbandit.log.parquet import PARQUET
from unbandit.log.reader import label_notices, with_clock
from unbandit.log.scan import OrderedReader
from unbandit.log.sources import (
    GZIP,
    Batch,
    Columns,
    Layout,
    LogFile,
    Source,
    blank_rows_notice,
    by_value,
    check_columns,
    files_of,
    is_several,
    source_notices,
    unreadable,
)

PATIENCE = 5.0  # seconds that a file may stay unchanged without being complete, if it is Parquet or others wait for it

_SAMPLE = 4096  # bytes of the beginning, and of what was read last, by which a file is recognised
_LONGEST = 1 << 20  # bytes by which the line of names and a row must have ended, and later every row
_ALL_ROWS = 1 << 62  # a batch has as many rows as were read at once, so that `Tail.read` is right after each
_BEGIN_ANEW = "Start over: remove the snapshot, or name another."
_BLANK = b"\xef\xbb\xbf\r\n"  # what may come before the names: a byte order mark and line breaks


class Follower:
    """Files (a CSV or TSV file, a folder, or a pattern) that a growing log comes from, and how far each was read.

    `position` is where an earlier follower stopped, if there was one. The log holds exactly the rows up to there if
    `settled`; it does not while a batch is being read and added, nor after that was interrupted.
    """

    def __init__(
        self, path: str | os.PathLike[str], log: GrowingLog, columns: Columns = None,
        position: Mapping[str, Any] | None = None, *, header: bool = True,
    ) -> None:  # fmt: skip
        self._path, self._log, self._columns, self._has_names = path, log, columns, header
        self._reader: OrderedReader | None = None
        self._joined: tuple[Notice, ...] = ()  # that a date and a time of day are read together
        self._kinds: dict[str, str] = {}  # what the columns hold
        self._tails: dict[str, Tail] = {}
        self.settled = True
        self._waiting: dict[Path, Path] = {}  # of each folder, the file that others wait for
        self._timers: dict[Path, StallTimer] = {}
        self._before = {"header": True} | dict(position) if position else {}
        self._request = {"path": os.fspath(path), "columns": dict(columns or {}), "header": header}
        if self._before and {name: self._before[name] for name in self._request} != self._request:
            before = self._before["path"]
            text = f"expected the log, the columns and the header that the snapshot was made of ({before}); got others."
            raise ResumeError(text, path=os.fspath(path), remedy=_BEGIN_ANEW)
        for name, state in self._before.get("files", {}).items():
            if not _belongs(Path(name), Path(path)):
                text = f"expected a snapshot of this log; it names another file ({name})."
                raise ResumeError(
                    text, path=os.fspath(path), remedy="Remove the snapshot to start over, or name another."
                )
            tail = tail_of(LogFile(Path(name), state["keys"]), state["read"], header=header)
            assert tail is not None
            self._tails[name] = tail

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Return what the user should know about the reading."""
        waiting = (f"{path} is not complete yet: files after it wait." for path in self._waiting.values())
        layout, reading = source_notices(list(self._tails.values())), tuple[Notice, ...]()
        if self._reader is not None:
            log, column = self._log, self._reader.name.get("demonstration")
            alike = label_notices(log.arm_column.coder.labels, log.demonstrations, log.lengths, column)
            reading = (
                *self._joined,
                *self._reader.notices,
                *self._reader.order_notices,
                *alike,
                *self._reader.time_notices(),
            )
        return (*layout, *reading, *(Notice("reading", text) for text in waiting))

    def position(self) -> dict[str, Any]:
        """Return how far every file was read, as something for JSON."""
        rounds = None if self._reader is None else self._reader.rounds
        files = {name: {"keys": tail.file.partition, "read": dict(tail.read)} for name, tail in self._tails.items()}
        times, coarse = (None, None) if self._reader is None else (self._reader.times, self._reader.coarse)
        return {"files": files, "rounds": rounds, "times": times, "coarse": coarse, **self._request}

    def news(self) -> Iterator[int]:
        """Read what came since; yield the number of rows after every batch, when `position` is up to date."""
        self._waiting = {}
        self._look()
        latest = {tail.file.path.parent: tail for tail in self._tails.values()}
        begun = {tail.file.path.parent: tail for tail in self._tails.values() if tail.read["rows"]}
        passed: set[Path] = set()  # folders whose latest file with rows that were read came by
        stopped: set[Path] = set()  # folders of which no more is read this time
        for tail in self._tails.values():
            folder = tail.file.path.parent
            if folder in stopped:
                continue
            if folder not in begun or folder in passed or begun[folder] is tail:
                passed.add(folder)
            elif tail.more():
                text = f"expected no more rows, since {begun[folder].file.path.name} comes after it and was read "
                text += "before; got some, which would be out of order."
                raise tail.refuse(text, remedy="Add rows to the last file only, and start over without the snapshot.")
            yield from self._news_of(tail)
            if latest[folder] is not tail and tail.more():
                stopped.add(folder)
                self._wait_for(tail.file.path)

    def _news_of(self, tail: Tail) -> Iterator[int]:
        """Read what came since in one file; the columns are found in the first file that has some."""
        if not tail.find_names():
            return
        is_new = self._reader is None
        if self._reader is None:
            labels = self._log.arm_column, self._log.demonstration_column
            reached = (self._before.get(name) for name in ("rounds", "times", "coarse"))
            columns, self._joined = with_clock(tail, self._columns)
            self._reader = OrderedReader(tail.names, tail.refuse, columns, *labels, *reached)
            self._kinds = {name: tail.kind(name) for name in self._reader.columns()}
        if is_new or (tail is next(iter(self._tails.values())) and tail.read["rows"] < FIRST_ROWS):
            self._reader.compare_with_times(tail)
        check_columns(tail, self._kinds, "files before")
        self.settled = False
        for batch in tail.batches(list(self._kinds), _ALL_ROWS):
            rows = self._reader.read(batch)
            self._reader.refuse_data_as_names(tail)
            self._log.add(rows)
            self.settled = True
            yield rows.codes.size
            self.settled = False
        self.settled = True

    def _look(self) -> None:
        """Find files that were added; in each folder they must come after those read before."""
        files = files_of(self._path) if is_several(self._path) else [LogFile(Path(self._path), {})]
        empty: dict[Path, Path] = {}
        for file in files:
            name, folder = str(file.path), file.path.parent
            if name in self._tails:
                continue
            if folder in empty:
                self._wait_for(empty[folder])
                continue
            tail = tail_of(file, header=self._has_names)
            if tail is None:
                empty[folder] = file.path
                continue
            if isinstance(tail, ParquetTail) and not is_several(self._path):
                text = "expected text that lines are added to, or a folder that files are added to; got a Parquet file"
                raise tail.refuse(f"{text}, which does not grow.", remedy="Follow its folder.")
            siblings = (other.file.path for other in self._tails.values() if other.file.path.parent == folder)
            later = next((other for other in siblings if by_value(file.path) < by_value(other)), None)
            if later is not None:
                text = "expected new files to come after those read before in the order of names; this one comes before"
                remedy = "Name new files in rising order, or start over without the snapshot."
                raise tail.refuse(f"{text} {later.name}.", remedy=remedy)
            self._tails[name] = tail

    def _wait_for(self, path: Path) -> None:
        """Leave the files after this one for later, unless it has stalled."""
        self._waiting[path.parent] = path
        if self._timers.setdefault(path, StallTimer()).has_stalled(path):
            text = "expected a complete file, since there are files after it; its last line has no end, or it has no "
            remedy = "End it with a line break, or remove it from the folder."
            raise LogError(f"{text}line of names.", path=str(path), remedy=remedy)


def _belongs(file: Path, path: Path) -> bool:
    """Return whether a file is the one at a path, or in that folder, or where a pattern would look for it."""
    base = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
    return file == path or (base in file.parents and ".." not in file.relative_to(base).parts)


class StallTimer:
    """The time since a file that is not complete yet last changed its size."""

    def __init__(self) -> None:
        self._seen = (-1, 0.0)

    def has_stalled(self, path: Path) -> bool:
        """Return whether the file has stayed unchanged for too long."""
        try:
            size, now = path.stat().st_size, time.monotonic()
        except OSError as error:
            raise unreadable(str(path), error) from error
        if size != self._seen[0]:
            self._seen = (size, now)
        return now - self._seen[1] > PATIENCE


class Tail(Source):
    """A file, and how far it was read (`read`, as something for JSON), which is up to date after each batch."""

    def __init__(self, file: LogFile, read: dict[str, Any]) -> None:
        self.file, self.path, self._path, self.read = file, str(file.path), str(file.path), read

    @abstractmethod
    def find_names(self) -> bool:
        """Find its columns; return False while they are not written yet."""

    @abstractmethod
    def more(self) -> bool:
        """Return whether something was not read yet, be it a whole row or not."""


class TextTail(Tail):
    """A CSV or TSV file to which lines are added."""

    def __init__(self, file: LogFile, state: dict[str, Any] | None = None, *, header: bool = True) -> None:
        super().__init__(
            file, {"offset": 0, "rows": 0, "lines": 0, "blank": 0, "first": "", "latest": ""} | (state or {})
        )
        self._header: Header | None = None
        self._has_names = header

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Say how the file is laid out, where that is not the usual, and which rows were left out."""
        layout = () if self._header is None else layout_notices(self._header, has_names=self._has_names)
        return layout + blank_rows_notice(self.read["blank"])

    def find_names(self) -> bool:
        """Read the header once it and a row are there."""
        if self._header is None:
            with self._opened() as file:
                beginning = file.read(_LONGEST)
            if beginning[:2] == GZIP:
                text = "expected text that lines are added to; got a file compressed by gzip."
                raise self.refuse(text, remedy="Follow the unpacked one.")
            if beginning[:4] in WHOLE:
                text = "expected text that lines are added to; got a spreadsheet or an Arrow file, which do not grow."
                raise self.refuse(text, remedy="Estimate it without following.")
            self._refuse_old_lines(beginning)
            header = header_of(beginning, self._path, ended=False, has_names=self._has_names)
            if header is None:
                if len(beginning) == _LONGEST and beginning.strip(_BLANK):
                    raise endless_row(self._path, Before(-1, 0), _LONGEST)
                return False
            self._header, self.begins_with_names = header, self._has_names and bool(header.separator)
            self.set_columns(header.names, self.file.partition)
        return True

    def _tables(self, names: list[str], rows: int) -> Iterator[Batch]:
        """Read whole lines from where the reading stopped; a line without its end waits."""
        assert self._header is not None
        header, read = self._header, self.read
        while True:
            with self._opened() as file:
                self._recognise(file)
                if read["offset"] == 0:
                    self._note(file, len(header.text), 0, header.text.count(b"\n"))
                file.seek(read["offset"])
                data = file.read(BLOCK)
                before = Before(read["rows"], read["lines"])
                block = next_block(header, data, 0, self._path, before, ended=False)
                if block is None:
                    if len(data) >= _LONGEST and data.strip(b"\r\n"):
                        raise endless_row(self._path, before, _LONGEST)
                    return
                columns, line = block.cells([header.names.index(name) for name in names]), block.line
                kept = block.filled(columns)
                if kept is not None:
                    columns = [column[kept] for column in columns]
                    line = partial(line_of, block, kept, block.rows_before)
                rows_here = block.rows if kept is None else kept.size
                read["blank"] += block.rows - rows_here
                self._note(file, len(block), rows_here, block.after.lines - before.lines)
            yield Batch(dict(zip(names, columns, strict=True)), self._path, block.rows_before, line, block.late())

    def head(self, positions: Sequence[int], count: int) -> list[pl.Series]:
        """Return the first rows of columns, wherever the reading stopped."""
        layout = Layout(header=self._has_names)
        return open_source(self._path, self.file.partition, layout).head(positions, count)

    def more(self) -> bool:
        """Look behind what was read; a file without its line of names has that to come, one without rows is whole."""
        with self._opened() as file:
            file.seek(self.read["offset"])
            data = file.read(_LONGEST)
        if self.read["offset"] == 0:
            lines = data[: data.rfind(b"\n") + 1]
            header = header_of(lines, self._path, has_names=self._has_names) if lines.strip(_BLANK) else None
            if header is None:
                return True
            data = data[len(header.text) :]
        return bool(data.strip(b"\r\n"))

    def _refuse_old_lines(self, beginning: bytes) -> None:
        """Refuse the line breaks of the old Macintosh, by which no line can be known to be complete."""
        text = beginning.lstrip(b"\xef\xbb\xbf\r").rstrip(b"\r")  # the last may be half of a usual one
        at = text.find(b"\r")
        if at > 0 and b"\n" not in text and text.count(b'"', 0, at) % 2 == 0:
            problem = "expected lines that end in a line feed, since others are added; got those of the old Macintosh, "
            remedy = "Write the file with the usual line ends, or estimate without following."
            raise self.refuse(f"{problem}which end in a carriage return.", remedy=remedy)

    def _note(self, file: IO[bytes], length: int, rows: int, lines: int) -> None:
        for name, more in (("offset", length), ("rows", rows), ("lines", lines)):
            self.read[name] += more
        self.read["first"], self.read["latest"] = self._digests(file)

    def _recognise(self, file: IO[bytes]) -> None:
        """Refuse a file that is shorter than what was read of it, or another one."""
        size, offset = os.fstat(file.fileno()).st_size, self.read["offset"]
        if size < offset:
            text = f"expected a file that only grows; it has {size:,} bytes, and {offset:,} were read before."
            raise self.refuse(text, remedy=_BEGIN_ANEW)
        if offset and self._digests(file) != [self.read["first"], self.read["latest"]]:
            text = "expected a file that only grows; what was read before has changed."
            raise self.refuse(text, remedy=_BEGIN_ANEW)

    def _digests(self, file: IO[bytes]) -> list[str]:
        offset, digests = self.read["offset"], []
        for start in (0, max(0, offset - _SAMPLE)):
            file.seek(start)
            digests.append(hashlib.sha256(file.read(min(_SAMPLE, offset - start))).hexdigest())
        return digests

    def _opened(self) -> IO[bytes]:
        try:
            return self.file.path.open("rb")
        except OSError as error:
            raise unreadable(self._path, error) from error


class ParquetTail(Tail):
    """A Parquet file, which is read at once when it is complete."""

    def __init__(self, file: LogFile, state: dict[str, Any] | None = None) -> None:
        super().__init__(file, {"rows": 0, "size": 0, "time": 0, "whole": False} | (state or {}))
        self._source: ParquetSource | None = None
        self._timer = StallTimer()

    def find_names(self) -> bool:
        """Open the file once it is complete; refuse one that is not and does not grow either."""
        if self._source is None:
            try:
                self._source = ParquetSource(self.file.path, self._path, self.file.partition)
            except LogError:
                if self._timer.has_stalled(self.file.path):
                    raise
                return False
            self.names = self._source.names
        return True

    def kind(self, name: str) -> str:
        """Return what a column holds."""
        assert self._source is not None
        return self._source.kind(name)

    def head(self, positions: Sequence[int], count: int) -> list[pl.Series]:
        """Return the first rows of columns, wherever the reading stopped."""
        assert self._source is not None
        return self._source.head(positions, count)

    def _tables(self, names: list[str], rows: int) -> Iterator[Batch]:
        """Read the file, or the rest of it where the reading was stopped in the middle."""
        assert self._source is not None
        read, status = self.read, self.file.path.stat() if self.file.path.exists() else None
        now = (0, 0) if status is None else (status.st_size, status.st_mtime_ns)
        if read["size"] and now != (read["size"], read["time"]):
            text = "expected files that do not change once they were read; this one has changed or is gone."
            raise self.refuse(text, remedy=_BEGIN_ANEW)
        if read["whole"]:
            return
        read["size"], read["time"] = now
        for batch in self._source.batches(names):
            known, count = max(read["rows"] - batch.rows_before, 0), len(batch.columns[names[0]])
            if known < count:
                read["rows"] = batch.rows_before + count
                columns = {name: column[known:] for name, column in batch.columns.items()}
                yield Batch(columns, self._path, batch.rows_before + known)
        read["whole"] = True

    def more(self) -> bool:
        """Return whether the file was not read to its end."""
        return not self.read["whole"]


def tail_of(file: LogFile, state: dict[str, Any] | None = None, *, header: bool = True) -> Tail | None:
    """Look at the first bytes of a file; return None while it has too few. `header` is as in `Layout`."""
    try:
        with file.path.open("rb") as content:
            beginning = content.read(4)
    except OSError as error:
        raise unreadable(str(file.path), error) from error
    if len(beginning) < 4 and state is None:
        return None
    is_parquet = beginning == PARQUET if state is None or "whole" not in state else True
    return ParquetTail(file, state) if is_parquet else TextTail(file, state, header=header)
