"""Files of a log, each as named columns that are read piece by piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import polars as pl

from unbandit.errors import LogError
from unbandit.log.labels import listed
from unbandit.log.places import Paths, Place, places_of
from unbandit.log.reading import ParquetTable, unreadable
from unbandit.log.table import Table
from unbandit.log.text_blocks import BLOCK, header_of_file, text_blocks

__all__ = ["ROWS", "Piece", "Source", "check_alike", "constant", "sources_of"]

ROWS = 1 << 20
"""Rows of a Parquet file that are read at once."""

_SMALL = 1 << 22  # a file of fewer bytes is read at once
_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


class Piece(Table):
    """Some rows of a file, and where they stand there."""

    def __init__(self, columns: list[pl.Series], rows_before: int, whole: Table) -> None:
        self.columns, self.rows_before, self._whole = columns, rows_before, whole
        self.path, self.names = whole.path, [column.name for column in columns]

    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Give columns."""
        return [self.columns[position] for position in positions]

    def refuse(
        self, message: str, *, row: int | None = None, column: str | None = None, value: object = None
    ) -> LogError:
        """Name the row of the file."""
        row = None if row is None else row + self.rows_before
        return self._whole.refuse(message, row=row, column=column, value=value)


class Source(ABC):
    """A file of a log.

    Attributes
    ----------
    path
        What messages call it.
    keys
        What its folders say of all its rows: columns of one text each, unless the file itself has such a column.
    names
        Its columns, and those of its folders.
    """

    path: str
    keys: dict[str, str]
    names: list[str]

    @abstractmethod
    def kind(self, name: str) -> str:
        """Say what a column holds: text, integers, ..."""

    @abstractmethod
    def size(self) -> int:
        """Guess the bytes that the rows would take in memory."""

    @abstractmethod
    def _pieces(self, names: list[str], rows: int) -> Iterator[Piece]:
        """Read columns of the file itself."""

    def refuse(self, message: str, *, column: str | None = None, value: object = None) -> LogError:
        """Make the error that names this file."""
        return LogError(message, path=self.path, column=column, value=value)

    def pieces(self, names: list[str], rows: int = ROWS) -> Iterator[Piece]:
        """Go through columns of the file, about `rows` of them at a time."""
        own = [name for name in names if name not in self.keys]
        for piece in self._pieces(own or self.names[:1], rows):
            columns, count = dict(zip(piece.names, piece.columns, strict=True)), len(piece.columns[0])
            if count == 0:
                continue
            columns |= {key: constant(key, value, count) for key, value in self.keys.items()}
            piece.columns = [columns[name] for name in names]
            piece.names = list(names)
            yield piece


class ParquetSource(Source):
    """A Parquet file."""

    def __init__(self, place: Place) -> None:
        self.path, self.table = str(place.path), ParquetTable(place.path, str(place.path))
        self._file = place.path
        self.keys = {key: value for key, value in place.keys.items() if key not in self.table.names}
        self.names = [*self.table.names, *self.keys]

    def kind(self, name: str) -> str:
        """Say what a column holds."""
        if name in self.keys:
            return "text"
        kind = self.table.kinds[name]
        if kind.is_integer():
            return "integers"
        if kind.is_float() or kind.is_decimal():
            return "numbers"
        return "text" if kind in (pl.String, pl.Categorical, pl.Enum) else str(kind)

    def size(self) -> int:
        """Guess from the number of rows: a Parquet file may hold a thousand of them in a byte."""
        return 40 * self.table.rows()

    def _pieces(self, names: list[str], rows: int) -> Iterator[Piece]:
        before = 0
        try:
            for frame in self._frames(names, rows):
                yield Piece(frame.get_columns(), before, self.table)
                before += frame.height
        except _ERRORS as error:
            raise self.table.broken(error) from error

    def _frames(self, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        source = str(self._file.absolute())
        if self._file.stat().st_size <= _SMALL and self.table.rows() <= rows:
            yield pl.read_parquet(source, columns=names, glob=False, hive_partitioning=False)
            return
        scan = pl.scan_parquet(source, glob=False, hive_partitioning=False).select(names)
        yield from scan.collect_batches(chunk_size=rows, maintain_order=True, engine="streaming")


class TextSource(Source):
    """A CSV or TSV file, packed by gzip or not."""

    def __init__(self, place: Place) -> None:
        self.path, self._file = str(place.path), place.path
        self._header = header_of_file(place.path)
        self._names = self._header.names
        self.keys = {key: value for key, value in place.keys.items() if key not in self._names}
        self.names = [*self._names, *self.keys]

    def kind(self, name: str) -> str:
        """Every cell is text."""
        return "text"

    def size(self) -> int:
        """Guess from the number of bytes, which gzip makes about five times fewer."""
        with self._file.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return self._file.stat().st_size * (20 if packed else 4)

    def _pieces(self, names: list[str], rows: int) -> Iterator[Piece]:
        positions = [self._names.index(name) for name in names]
        for block, columns in text_blocks(self._file, self._header, positions, BLOCK if rows >= ROWS else 8 * rows):
            columns = [column.alias(name) for column, name in zip(columns, names, strict=True)]
            yield Piece(columns, 0, block)  # the block knows which rows it holds


def constant(name: str, value: str, count: int) -> pl.Series:
    """Return a column of one text."""
    return pl.Series(name, [value]).new_from_index(0, count)


def sources_of(paths: Paths) -> list[Source]:
    """Open every file far enough to know its columns."""
    return [_opened(place) for place in places_of(paths)]


def check_alike(sources: Sequence[Source], names: Sequence[str]) -> None:
    """Refuse a file that lacks one of the columns, or has something else in it than the first file has."""
    first = sources[0]
    for source in sources[1:]:
        for name in names:
            if name not in source.names:
                raise source.refuse(
                    f'expected a column "{name}", as in {first.path}; the file has '
                    f"{listed([f'{name!r}' for name in source.names], ', ')}. "
                    "Write the file again with that column, or take it out.",
                    column=name,
                )
            if source.kind(name) != first.kind(name):
                raise source.refuse(
                    f"expected {first.kind(name)}, as in {first.path}; got {source.kind(name)}. "
                    "Write the column in one type in all files.",
                    column=name,
                )


def _opened(place: Place) -> Source:
    try:
        with place.path.open("rb") as file:
            parquet = file.read(4) == b"PAR1"
    except OSError as error:
        raise unreadable(str(place.path), error) from error
    return ParquetSource(place) if parquet else TextSource(place)
