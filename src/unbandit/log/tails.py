"""Files that others still write to: how far each was read, and what came since."""

from __future__ import annotations

import hashlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unbandit.errors import LogError
from unbandit.log.places import Place
from unbandit.log.reading import unreadable
from unbandit.log.sources import ParquetSource, Piece, constant
from unbandit.log.text_blocks import BLOCK, Block, Header, header_of, whole_rows

__all__ = ["ParquetTail", "Patience", "Tail", "TextTail", "tail_of"]

PATIENCE = 5.0
"""Seconds that a file may stay as it is without being whole, if it is Parquet or others wait for it."""

_SAMPLE = 4096  # bytes of the beginning, and of what was read last, by which a file is known again
_LONGEST = 1 << 20  # bytes by which the line of names and a row must have ended, and later every row


class Patience:
    """Watch the size of a file that is not whole yet."""

    def __init__(self) -> None:
        self._seen = (-1, 0.0)

    def is_over(self, path: Path) -> bool:
        """Tell whether the file has stayed as it is for too long."""
        try:
            size, now = path.stat().st_size, time.monotonic()
        except OSError as error:
            raise unreadable(str(path), error) from error
        if size != self._seen[0]:
            self._seen = (size, now)
        return now - self._seen[1] > PATIENCE


class Tail(ABC):
    """A file, and how far it was read."""

    place: Place

    @abstractmethod
    def names(self) -> list[str] | None:
        """Return its columns; None while they are not written yet."""

    @abstractmethod
    def kind(self, name: str) -> str:
        """Say what a column holds, once there are names: text, integers, ..."""

    @abstractmethod
    def pieces(self, names: list[str]) -> Iterator[Piece]:
        """Read what came since, whole rows only; `state` says after each piece how far that was."""

    @abstractmethod
    def more(self) -> bool:
        """Tell whether something was not read yet, be it a whole row or not."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return how far the file was read, as something for JSON."""


class TextTail(Tail):
    """A CSV or TSV file to which lines are added."""

    def __init__(self, place: Place, state: dict[str, Any] | None = None) -> None:
        self.place, self._path = place, str(place.path)
        self._read: dict[str, Any] = {"offset": 0, "rows": 0, "lines": 0, "first": "", "latest": ""} | (state or {})
        self._header: Header | None = None

    def names(self) -> list[str] | None:
        """Read the header once it and a row are there."""
        if self._header is None:
            with self._opened() as file:
                beginning = file.read(_LONGEST)
            if beginning[:2] == b"\x1f\x8b":
                raise LogError(
                    "expected text that lines are added to; got a file packed by gzip. Follow the unpacked one.",
                    path=self._path,
                )
            cut = whole_rows(beginning, ended=False)
            if beginning[:cut].strip(b"\xef\xbb\xbf\r\n").count(b"\n") < 1:
                self._refuse_old_lines(beginning)
                if len(beginning) == _LONGEST and beginning.strip(b"\xef\xbb\xbf\r\n"):
                    header = header_of(beginning[: cut or None], self._path)
                    raise self._endless(header, beginning[len(header.text) :], header.text.count(b"\n"))
                return None
            self._header = header_of(beginning[:cut], self._path)
        return [*self._header.names, *(key for key in self.place.keys if key not in self._header.names)]

    def kind(self, name: str) -> str:
        """Every cell is text."""
        return "text"

    def pieces(self, names: list[str]) -> Iterator[Piece]:
        """Read whole lines from where the reading stopped; a line without its end waits."""
        if self.names() is None:
            return
        assert self._header is not None
        known, keys = self._header.names, self.place.keys
        own = [name for name in names if name in known] or known[:1]
        while True:
            with self._opened() as file:
                self._recognise(file)
                if self._read["offset"] == 0:
                    self._note(file, len(self._header.text), 0, self._header.text.count(b"\n"))
                file.seek(self._read["offset"])
                data = file.read(BLOCK)
                cut = whole_rows(data, ended=False)
                if not cut:
                    if len(data) >= _LONGEST and data.strip(b"\r\n"):
                        raise self._endless(self._header, data, self._read["lines"])
                    return
                block = Block(self._header, data[:cut], self._path, self._read["rows"], self._read["lines"])
                columns = dict(zip(own, block.take([known.index(name) for name in own]), strict=True))
                count = len(columns[own[0]])
                columns |= {key: constant(key, keys[key], count) for key in keys.keys() - columns.keys()}
                self._note(file, cut, count, data.count(b"\n", 0, cut))
            yield Piece([columns[name].alias(name) for name in names], 0, block)

    def more(self) -> bool:
        """Look behind what was read; a file without its line of names has that to come, one without rows is whole."""
        with self._opened() as file:
            file.seek(self._read["offset"])
            data = file.read(_LONGEST)
        if self._read["offset"] == 0:
            cut = whole_rows(data, ended=False)
            if not data[:cut].strip(b"\xef\xbb\xbf\r\n"):
                return True
            data = data[len(header_of(data[:cut], self._path).text) :]
        return bool(data.strip(b"\r\n"))

    def state(self) -> dict[str, Any]:
        """Return the bytes, rows and lines read, and digests of the first and the latest."""
        return dict(self._read)

    def _refuse_old_lines(self, beginning: bytes) -> None:
        """Refuse the line breaks of the old Macintosh: of these none tells whether a line is whole."""
        text = beginning.lstrip(b"\xef\xbb\xbf\r").rstrip(b"\r")  # the last may be half of a usual one
        at = text.find(b"\r")
        if at > 0 and b"\n" not in text and text.count(b'"', 0, at) % 2 == 0:
            raise LogError(
                "expected lines that end in a line feed, since others are added; got those of the old Macintosh, which "
                "end in a carriage return. Write the file with the usual line ends, or estimate without following.",
                path=self._path,
            )

    def _endless(self, header: Header, data: bytes, lines: int) -> LogError:
        """Make the error for a row that does not end: as a rule that of a quote which is never closed."""
        rows = self._read["rows"]
        try:
            Block(header, data[: data.rfind(b"\n") + 1] or data, self._path, rows, lines).take([0])
        except LogError as error:
            return error
        return LogError(
            f"expected rows of less than {_LONGEST:,} bytes; got one that has not ended by then. Check its quotes.",
            path=self._path,
            row=rows + 1,
            line=lines + 1,
        )

    def _note(self, file: Any, length: int, rows: int, lines: int) -> None:
        read = self._read
        for name, more in (("offset", length), ("rows", rows), ("lines", lines)):
            read[name] += more
        read["first"], read["latest"] = self._digests(file)

    def _recognise(self, file: Any) -> None:
        """Refuse a file that is shorter than what was read of it, or another one."""
        size = os.fstat(file.fileno()).st_size
        if size < self._read["offset"]:
            raise LogError(
                f"expected a file that only grows; it has {size:,} bytes, and {self._read['offset']:,} were read "
                "before. Begin anew: remove the snapshot, or name another.",
                path=self._path,
            )
        if self._read["offset"] and self._digests(file) != (self._read["first"], self._read["latest"]):
            raise LogError(
                "expected a file that only grows; what was read before has changed. Begin anew: remove the snapshot, "
                "or name another.",
                path=self._path,
            )

    def _digests(self, file: Any) -> tuple[str, str]:
        offset = self._read["offset"]
        found = []
        for start in (0, max(0, offset - _SAMPLE)):
            file.seek(start)
            found.append(hashlib.sha256(file.read(min(_SAMPLE, offset - start))).hexdigest())
        return found[0], found[1]

    def _opened(self) -> Any:
        try:
            return self.place.path.open("rb")
        except OSError as error:
            raise unreadable(self._path, error) from error


class ParquetTail(Tail):
    """A Parquet file, which is read at once when it is whole."""

    def __init__(self, place: Place, state: dict[str, Any] | None = None) -> None:
        self.place, self._path = place, str(place.path)
        self._read: dict[str, Any] = {"rows": 0, "size": 0, "time": 0, "whole": False} | (state or {})
        self._source: ParquetSource | None = None
        self._patience = Patience()

    def names(self) -> list[str] | None:
        """Return its columns once the file is whole; refuse one that is not and does not grow either."""
        if self._source is None:
            try:
                self._source = ParquetSource(self.place)
            except LogError:
                if self._patience.is_over(self.place.path):
                    raise
                return None
        return self._source.names

    def kind(self, name: str) -> str:
        """Say what a column holds."""
        assert self._source is not None
        return self._source.kind(name)

    def pieces(self, names: list[str]) -> Iterator[Piece]:
        """Read the file, or the rest of it where the reading was stopped in the middle."""
        if not self._read["whole"] and self.names() is None:
            return
        status = self.place.path.stat() if self.place.path.exists() else None
        now = (0, 0) if status is None else (status.st_size, status.st_mtime_ns)
        if self._read["size"] and now != (self._read["size"], self._read["time"]):
            raise LogError(
                "expected files that stay as they are once they were read; this one has changed or is gone. "
                "Begin anew: remove the snapshot, or name another.",
                path=self._path,
            )
        if self._read["whole"]:
            return
        assert self._source is not None
        self._read["size"], self._read["time"] = now
        for piece in self._source.pieces(names):
            before, count = self._read["rows"] - piece.rows_before, len(piece.columns[0])
            if before < count:
                rest = piece.columns if before <= 0 else [column[before:] for column in piece.columns]
                self._read["rows"] = piece.rows_before + count
                yield Piece(rest, piece.rows_before + max(before, 0), self._source.table)
        self._read["whole"] = True

    def more(self) -> bool:
        """Tell whether the file was not read to its end."""
        return not self._read["whole"]

    def state(self) -> dict[str, Any]:
        """Return what the file was like when it was read."""
        return dict(self._read)


def tail_of(place: Place, state: dict[str, Any] | None = None) -> Tail | None:
    """Look at the first bytes of a file; None while it has too few."""
    try:
        with place.path.open("rb") as file:
            beginning = file.read(4)
    except OSError as error:
        raise unreadable(str(place.path), error) from error
    if state is not None and "whole" in state:
        return ParquetTail(place, state)
    if len(beginning) < 4 and state is None:
        return None
    return ParquetTail(place, state) if beginning == b"PAR1" else TextTail(place, state)
