"""Where a log comes from: files and their content, each as named columns that are read in batches."""

import glob
import gzip
import itertools
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import polars as pl

from unbandit.errors import LogError, Notice, ParameterError, first_line
from unbandit.log.labels import is_same_label, listed

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Columns = Mapping[str, str] | None
Arms = Sequence[object] | None
"""The column of each role, and all arms there were, where the user says so; see `ActionLog.read`."""
Duplicates = str | None
"""What rows of one name in a table of counts are: `refuse`, `separate` or `add`; None is `refuse`."""
Blank = str | None
"""What becomes of rows without a choice: `refuse` or `skip`; None is `refuse`."""

ROWS = 1 << 17  # rows of a batch: few enough that they are still in a core's cache when they are coded

ENDINGS = (
    ".parquet", ".pq", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".csv.gz", ".tsv.gz", ".txt.gz",
    ".json.gz", ".jsonl.gz", ".ndjson.gz", ".feather", ".arrow", ".ipc", ".xlsx", ".xls", ".ods",
)  # fmt: skip
"""The names that count in a folder; a file named by itself may be called anything."""

_ENDINGS_SAID = ", ".join(ending for ending in ENDINGS if not ending.endswith(".gz")) + ", or .gz after that of text"

GZIP = b"\x1f\x8b"  # the first bytes of a file compressed by gzip

BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
"""What Python raises where a gzip file is damaged."""


class Layout(NamedTuple):
    """How files are laid out: the sheet of a spreadsheet, and whether the first row names the columns."""

    sheet: str | None = None
    header: bool = True


USUAL = Layout()


class LogFile(NamedTuple):
    """A file, and what the names of its folders say about its rows, as in ``demonstration=7/part.parquet``."""

    path: Path
    partition: dict[str, str]


def is_several(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder or a pattern, and not the name of one file."""
    try:
        return Path(path).is_dir() or (glob.has_magic(os.fspath(path)) and not Path(path).exists())
    except (OSError, ValueError) as error:  # a name that is too long, or has characters that no name can have
        raise unreadable(os.fspath(path), error) from error


def files_of(paths: Paths) -> list[LogFile]:
    """Return the files of a log in the order of their names, with the numbers in names by value.

    `paths` is a file, a folder (with folders in it), a pattern such as ``"logs/**/*.csv"``, or a list of these.
    """
    given: list[Any] = [paths]
    if isinstance(paths, Sequence) and not isinstance(paths, str | bytes):
        given = list(paths)
    wrong = [path for path in given if not isinstance(path, str | os.PathLike)]
    if wrong:
        text = "expected the name of a file, a folder or a pattern, or a list of these; got "
        remedy = "A table in memory is read by ActionLog.from_frame, a sequence of choices by ActionLog.from_actions."
        raise ParameterError(f"{text}{type(wrong[0]).__name__}.", parameter="path", value=wrong[0], remedy=remedy)
    if not given:
        raise ParameterError("expected a file, a folder or a pattern; got an empty list.", parameter="paths")
    partitions: dict[Path, FolderValues] = {}
    single: list[Path] = []
    for path in given:
        name, folder = os.fspath(path), Path(path)
        if not is_several(path):
            single.append(folder)
            continue
        if folder.is_dir():
            files, base = _inside(folder), folder
            text = f"expected files that end in {_ENDINGS_SAID}; the folder has none."
            remedy = "Check the path."
        else:
            matches = [Path(match) for match in glob.glob(name, recursive=True)]  # noqa: PTH207
            files = [file for match in matches for file in (_inside(match) if match.is_dir() else [match])]
            base = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), folder.parts))
            text = "expected a pattern that some file matches; none does."
            remedy = "Check it, and that it is in quotes."
        if not files:
            raise LogError(text, path=name, remedy=remedy)
        partitions |= {file: _partition(file.relative_to(base)) for file in files}
    partitions |= _differing({file: _partition(file) for file in single})
    return [LogFile(path, _agreed(path, partitions[path])) for path in sorted(partitions, key=by_value)]


def by_value(file: Path) -> list[str | int]:
    """Return a sorting key that compares numbers in names as numbers: part-2 comes before part-10."""
    return [int(piece) if at % 2 else piece for at, piece in enumerate(re.split(r"(\d+)", str(file)))]


FolderValues = dict[str, tuple[str, ...]]
"""What the names of a file's folders say: the values of each key, of which there should be one."""


def _partition(file: Path) -> FolderValues:
    """Read the names of folders: ``{"demonstration": ("a b",)}`` for ``demonstration=a%20b/part.parquet``."""
    values: dict[str, dict[str, None]] = {}
    for part in file.parts[:-1]:
        key, equals, value = part.partition("=")
        if key and equals:
            values.setdefault(unquote(key), {})[unquote(value)] = None
    return {key: tuple(each) for key, each in values.items()}


def _agreed(file: Path, partition: FolderValues) -> dict[str, str]:
    """Return the one value of each key; refuse folders that contradict each other."""
    for key, values in partition.items():
        if len(values) > 1:
            text = f'expected one value of "{key}" in the names of its folders; got "{values[0]}" and "{values[1]}".'
            raise LogError(text, path=str(file), column=key, remedy="Rename one of the folders, or move the file.")
    return {key: values[0] for key, values in partition.items()}


def _differing(partitions: dict[Path, FolderValues]) -> dict[Path, FolderValues]:
    """Of files named one by one, as a shell does for a pattern, keep the keys in which they differ."""
    every = list(partitions.values())
    differing = {key for each in every for key in each if any(other.get(key) != each[key] for other in every)}
    return {file: {key: each[key] for key in each if key in differing} for file, each in partitions.items()}


def _inside(folder: Path) -> list[Path]:
    """Return the tables in a folder; hidden ones, and those that begin with an underscore, are leftovers."""
    files = ((file, file.relative_to(folder)) for file in folder.rglob("*") if file.name.lower().endswith(ENDINGS))
    return [file for file, inner in files if not any(p.startswith((".", "_")) for p in inner.parts) and file.is_file()]


@dataclass
class Batch:
    """Some rows of a source: the columns that were asked for, by name."""

    columns: dict[str, pl.Series]
    path: str | None = None
    rows_before: int = 0  # how many rows of the file come before these
    line: Callable[[int], int] | None = None  # returns the line of a text file in which a row of the file begins
    late: Mapping[str, int] = field(default_factory=dict)  # members that are no columns, as they come late: their rows
    kept: Sequence[int] | None = None  # which rows are left, where some were left out

    def without(self, rows: pl.Series) -> "Batch":
        """Return the batch without some rows."""
        columns = {name: column.filter(~rows) for name, column in self.columns.items()}
        return replace(self, columns=columns, kept=(~rows).arg_true().to_list())

    def refuse(self, text: str, *, row: int | None = None, **data: Any) -> LogError:
        """Return the error that names the file and the row in it, given a row of the batch (from 1)."""
        if row is not None:
            row = self.rows_before + (row if self.kept is None else int(self.kept[row - 1]) + 1)
            data["line"] = None if self.line is None else self.line(row)
        return LogError(text, path=self.path, row=row, **data)


class Source(ABC):
    """A table of which no more is read than its columns until batches are asked for."""

    path: str | None = None  # what messages call it; None for a table that never was a file
    names: list[str]  # its columns, including those that its folders name
    partition: Mapping[str, str] = {}  # the value that its folders give to all rows, for columns that the file lacks
    stated: Mapping[str, str] = {}  # the same for columns that the file has: these must agree
    begins_with_names = False  # whether its first row was taken for the names of its columns, which may be wrong
    empty = ("expected one row per choice; got a table without rows.", "Check that it was saved.")

    @abstractmethod
    def _tables(self, names: list[str], rows: int) -> Iterator[Batch]:
        """Read columns of the source itself, about `rows` or more at a time."""

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Return what the user should know about how the file is laid out, once it was read."""
        return ()

    def set_columns(self, own: Sequence[str], partition: Mapping[str, str] | None) -> None:
        """Take the columns of the file itself, and what the names of its folders say."""
        said = partition or {}
        self.partition = {key: value for key, value in said.items() if key not in own}
        self.stated = {key: value for key, value in said.items() if key in own}
        self.names = [*own, *self.partition]

    def head(self, positions: Sequence[int], count: int) -> list[pl.Series]:
        """Return the first rows of columns, unchecked."""
        names = [self.names[at] for at in positions]
        first = next(self.batches(names, count), Batch({name: pl.Series(name, [], pl.String) for name in names}))
        return list(first.columns.values())

    def kind(self, name: str) -> str:
        """Return what a column holds: text, integers, ..."""
        return "text"

    def refuse(self, text: str, **data: Any) -> LogError:
        """Return the error that names this source."""
        return LogError(text, path=self.path, **data)

    def refuse_empty(self) -> LogError:
        """Return the error for a source without rows."""
        text, remedy = self.empty
        return self.refuse(text, remedy=remedy)

    def batches(self, names: Sequence[str], rows: int = ROWS) -> Iterator[Batch]:
        """Read columns in batches of at most about `rows` rows."""
        own = [name for name in names if name not in self.partition] or self.names[:1]
        for table in self._tables(own, rows):
            first, end = table.columns[own[0]], 0
            is_whole = first.n_chunks() > 2 * len(first) // rows + 1
            for length in [len(first)] if is_whole else first.chunk_lengths():  # within a chunk nothing is copied
                end += length
                for at in range(end - length, end, rows):
                    count = min(rows, end - at)
                    columns = {name: column[at : at + count] for name, column in table.columns.items()}
                    for key, value in self.partition.items():
                        columns[key] = pl.Series(key, [value]).new_from_index(0, count)
                    wanted = {name: columns[name] for name in names}
                    late = {} if at else table.late
                    batch = Batch(wanted, table.path, table.rows_before + at, table.line, late)
                    for key in self.stated.keys() & wanted.keys():
                        _refuse_contradiction(batch, key, self.stated[key])
                    yield batch


def _refuse_contradiction(batch: Batch, key: str, value: str) -> None:
    """Refuse a column that says something else than the name of the file's folder."""
    column = batch.columns[key]
    if column.dtype.is_nested():
        return
    cells = column.cast(pl.String, strict=False).str.strip_chars()
    for cell in cells.filter(cells != value).unique(maintain_order=True).to_list():
        if not is_same_label(cell, value):
            text = f'expected "{value}", which the name of the folder says; got "{cell}".'
            row = int((cells == cell).arg_true()[0]) + 1
            raise batch.refuse(
                text, row=row, column=key, value=cell, remedy="Rename the folder, or correct the column."
            )


def source_notices(sources: Sequence[Source]) -> tuple[Notice, ...]:
    """Return what the user should know about how files are laid out, once they were read; each once."""
    return tuple(dict.fromkeys(notice for source in sources for notice in source.notices))


def blank_rows_notice(count: int) -> tuple[Notice, ...]:
    """Say that rows were left out whose cells are all blank."""
    rows = "1 row is completely blank and was" if count == 1 else f"{count:,} rows are completely blank and were"
    return (Notice("reading", f"{rows} left out.", count=count),) if count else ()


def check_columns(source: Source, kinds: Mapping[str, str], where: str) -> None:
    """Refuse a file that lacks one of the columns that files before it have, or holds something else in it."""
    for name, kind in kinds.items():
        if name not in source.names:
            held = listed([f"{name!r}" for name in source.names])
            text = f'expected a column "{name}", as in {where}; the file has {held}.'
            raise source.refuse(text, column=name, remedy="Write the file again with that column, or remove it.")
        if source.kind(name) != kind:
            text = f"expected {kind}, as in {where}; got {source.kind(name)}."
            raise source.refuse(text, column=name, remedy="Write the column in one type in all files.")


def check_alike(sources: Sequence[Source], names: Iterable[str]) -> None:
    """Refuse a file that lacks one of the columns, or has another type in it than the first file."""
    kinds = {name: sources[0].kind(name) for name in names}
    for source in sources[1:]:
        check_columns(source, kinds, str(sources[0].path))


def unreadable(name: str, error: BaseException) -> LogError:
    """Return the error that says why a file could not be opened or read to its end."""
    text, remedy = f"expected a readable file; got a system error: {first_line(error)}.", "Check the path."
    if isinstance(error, BROKEN_GZIP):
        text, remedy = f"expected a whole gzip file; it could not be unpacked ({error}).", "Write or copy it again."
    elif isinstance(error, ValueError):
        text, remedy = f"expected the name of a file; no file can have this one ({first_line(error)}).", "Check it."
    elif isinstance(error, FileNotFoundError):
        text = "file not found."
    elif isinstance(error, IsADirectoryError):
        text, remedy = "expected a file; got a directory.", "Name one file in it."
    elif isinstance(error, PermissionError):
        text, remedy = "expected a file that you may read; permission was denied.", "Check its mode."
    return LogError(text, path=name, remedy=remedy)
