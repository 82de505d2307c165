"""The folder of a study's results: which study it holds, which parts are there, and how they are read.

::

    FOLDER/study.json              everything that determines the bytes
    FOLDER/parts/00000.parquet     one per task: final once it is there, so a killed study resumes with those missing
    FOLDER/summary.csv             the table that `unbandit study` ends with

Each part carries the digest of its study, its number and a checksum: one of another study is refused, an altered one
redone.
"""

import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from unbandit import checks
from unbandit.errors import OutputError, ResumeError, first_line
from unbandit.study.storage import CHECKSUM, LEFTOVER, read_checked_metadata, storage_at, write_checked
from unbandit.study.taskgrid import TaskGrid, differences, readable_json

ANOTHER_FOLDER = "Use another folder, or delete this one."

STUDY, PARTS, SUMMARY = "study.json", "parts", "summary.csv"

PARTS_READ_AT_ONCE = 8

Grid = TypeVar("Grid", bound=TaskGrid)


class ResultsFolder:
    """The folder with a study's parts; `damaged` are the parts that were cut or altered, as of the last `finished`."""

    def __init__(self, path: str | os.PathLike[str], study: TaskGrid) -> None:
        self.storage, self.study = storage_at(path), study
        self.damaged: set[int] = set()
        self._digits = max(5, len(str(len(study.tasks) - 1)))
        self._whole: set[int] = set()

    @property
    def path(self) -> Path | str:
        """Return where it is: a path, or an address."""
        return self.storage.path

    @property
    def absolute(self) -> str:
        """Return where it is, independent of the working directory."""
        return os.path.abspath(self.path) if isinstance(self.path, Path) else self.path  # noqa: PTH100

    @property
    def summary(self) -> str:
        """Return where the summary is."""
        return self.storage.where(SUMMARY)

    def part(self, number: int) -> str:
        """Return where in the folder a task's rows are; names sort as numbers do."""
        return f"{PARTS}/{number:0{self._digits}d}.parquet"

    def finished(self) -> set[int]:
        """Return the numbers of the tasks whose parts are there and whole; refuse a folder that is not this study's."""
        if not self._has_this_study():
            return set()
        present = self.present()
        unread = sorted(present - self._whole)
        with self._system_errors():
            blocks = [(number, number + 1) for number in unread]
            fitting = checks.in_threads(lambda at, _: self._fits(at, self._read(at)), blocks, PARTS_READ_AT_ONCE)
        self._whole |= {number for number, fits in zip(unread, fitting, strict=True) if fits}
        self.damaged = present - self._whole
        return present & self._whole

    @contextmanager
    def open(self) -> Iterator[set[int]]:
        """Create the folder or resume it, locked where it can be; yields the numbers of the finished parts."""
        with ExitStack() as stack:
            with self._system_errors():
                self.storage.make()
                stack.enter_context(self.storage.lock())
            if not self._has_this_study():
                with self._system_errors():
                    self.storage.create(STUDY, f"{readable_json(self.study.identity)}\n".encode())
            finished = self.finished()  # reads study.json back: another run may have created it first
            with self._system_errors():
                self.storage.make(PARTS)
            yield finished

    def present(self) -> set[int]:
        """Return the numbers of the tasks whose parts are there, judging by their names."""
        count, present = len(self.study.tasks), set()
        with self._system_errors():
            for name in self._names(PARTS):
                stem, _, suffix = name.rpartition(".")
                number = int(stem) if suffix == "parquet" and stem.isdecimal() else -1
                if not 0 <= number < count or f"{PARTS}/{name}" != self.part(number):
                    item = self.storage.where(f"{PARTS}/{name}")
                    raise ResumeError(f"{item}: expected only parts of this study; got another file. Remove it.")
                present.add(number)
        return present

    def read(self, number: int, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Return a task's rows, all columns or some, if they are as they were written."""
        with self._system_errors():
            data = self._read(number)
        if not self._fits(number, data):
            place = self.storage.where(self.part(number))
            remedy = "Run the study again to redo the part."
            raise ResumeError(
                f"{place}: expected a part as it was written; its checksum does not match.", remedy=remedy
            )
        return pl.read_parquet(io.BytesIO(data), columns=None if columns is None else list(columns))

    def write(self, number: int, rows: pl.DataFrame) -> None:
        """Write a task's rows, whole or not at all; equal rows give equal bytes."""
        self.storage.write(self.part(number), write_checked(rows, self._metadata(number)))

    def write_summary(self, table: pl.DataFrame) -> None:
        """Write the table that the study ends with."""
        self.storage.write(SUMMARY, table.write_csv().encode())

    def remove_leftovers(self) -> None:
        """Remove the temporary files of killed processes; only when nothing is being written any more."""
        with self._system_errors():
            for folder in ("", PARTS):
                for name in self.storage.names(folder):
                    if LEFTOVER.fullmatch(name):
                        self.storage.remove(f"{folder}/{name}".lstrip("/"))

    def scan(self) -> pl.LazyFrame:
        """Return the rows of all parts lazily; polars reads local files itself, remote ones come one by one."""
        if isinstance(self.path, Path):
            return pl.scan_parquet(self.path / PARTS, glob=False)
        names = [self.part(number) for number in range(len(self.study.tasks))]

        def source(
            columns: list[str] | None, predicate: pl.Expr | None, most: int | None, batch: int | None
        ) -> Iterator[pl.DataFrame]:
            left = most
            for name in names:
                rows = pl.read_parquet(io.BytesIO(self.storage.read(name)), columns=columns, n_rows=left)
                if left is not None:
                    left -= rows.height
                yield rows if predicate is None else rows.filter(predicate)
                if left == 0:
                    return

        return register_io_source(source, schema=pl.read_parquet_schema(io.BytesIO(self.storage.read(names[0]))))

    @contextmanager
    def _system_errors(self) -> Iterator[None]:
        """Turn the system's errors into one sentence."""
        try:
            yield
        except OutputError:
            raise
        except FileExistsError as error:
            raise OutputError(f"{error.filename}: expected a folder; got a file. Use another name.") from error
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{self.path}: could not be used: {reason}. Use another folder.") from error

    def _has_this_study(self) -> bool:
        """Return whether the study has begun here; refuse a folder with another study, or with other files."""
        with self._system_errors():
            names = sorted(self._names(""))
            if STUDY in names:
                self._compare()
                return True
        if names:
            raise ResumeError(
                f"{self.path}: expected an empty folder or one with a study; got one without {STUDY}, which contains "
                f'"{names[0]}". Use another folder.'
            )
        return False

    def _compare(self) -> None:
        """Refuse a folder whose study is not the one asked for."""
        file = self.storage.where(STUDY)
        try:
            saved: Any = checks.shallow(json.loads(self.storage.read(STUDY).decode()))
        except (OSError, ValueError, RecursionError) as error:
            raise ResumeError(f"{file}: could not be read as a study: {first_line(error)}. {ANOTHER_FOLDER}") from error
        asked = self.study.identity
        saved = saved if isinstance(saved, dict) else {}
        schema, version = saved.get("schema"), saved.get("version")
        same_kind = str(schema).partition("/")[0] == asked["schema"].partition("/")[0]
        if same_kind and version and (schema, version) != (asked["schema"], asked.get("version")):
            raise ResumeError(
                f"{self.path}: it was made by unbandit {version}, and this version cannot continue it. {ANOTHER_FOLDER}"
            )
        if schema != asked["schema"]:
            text = f'{file}: expected a study with schema "{asked["schema"]}"; got {schema!r}. {ANOTHER_FOLDER}'
            raise ResumeError(text)
        changed = differences(saved, asked)
        if changed:
            raise ResumeError(f"{self.path}: it has another study ({'; '.join(changed)}). {ANOTHER_FOLDER}")

    def _metadata(self, number: int) -> dict[str, str]:
        return {"unbandit.study": self.study.digest, "unbandit.task": str(number)}

    def _read(self, number: int) -> bytes:
        return self.storage.read(self.part(number))

    def _fits(self, number: int, data: bytes) -> bool:
        """Return whether a part is as it was written; refuse one that is whole, but another."""
        part, remedy = self.storage.where(self.part(number)), "Delete it, and run the study again to redo it."
        metadata, expected = read_checked_metadata(data), self._metadata(number)
        if metadata is None:
            return False
        if metadata.get("unbandit.study") != expected["unbandit.study"]:
            raise ResumeError(f"{part}: expected a part of this study; got one of another.", remedy=remedy)
        if metadata.get("unbandit.task") != expected["unbandit.task"]:
            raise ResumeError(f"{part}: expected part {number} of the study; got another of its parts.", remedy=remedy)
        return CHECKSUM in metadata

    def _names(self, folder: str) -> list[str]:
        """Return the names in the folder, or in one below it, without the leftovers of killed processes."""
        return [name for name in self.storage.names(folder) if not LEFTOVER.fullmatch(name)]


@dataclass(frozen=True)
class Result(Generic[Grid]):
    """A finished study of any kind: the folder with its parts, and ways to read them."""

    study: Grid
    folder: Path | str

    def scan(self) -> pl.LazyFrame:
        """Return all rows, read lazily."""
        place = self._finished()
        if place.finished() != set(range(len(self.study.tasks))):
            place.read(min(place.damaged))  # raises the error
        return place.scan()

    def parts(self, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows task by task, all columns or some, with one part in memory at a time."""
        place, names = self._finished(), None if columns is None else tuple(columns)
        return (place.read(number, names) for number in range(len(self.study.tasks)))

    def _finished(self) -> ResultsFolder:
        """Return the folder; refuse one whose study is unfinished."""
        place = ResultsFolder(self.folder, self.study)
        present, count = len(place.present()), len(self.study.tasks)
        if present < count:
            raise ResumeError(f"{self.folder}: {present:,} of {count:,} parts are there: run the study to its end.")
        return place
