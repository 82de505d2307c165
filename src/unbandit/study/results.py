"""A folder of results: what study it holds, which parts are there, and whether they fit what is asked.

::

    FOLDER/study.json              all that determines the bytes
    FOLDER/parts/00000.parquet     one a task, written whole or not at all
    FOLDER/summary.csv             the table that `unbandit study` ends with

A part that is there is final, so a killed study goes on by doing the parts that are not there. Each carries the digest
of its study and its own number, so that a part of another study is not taken for one of this, and a checksum, so that
one that was cut or altered since is made again. A folder is one of this machine, or an address (see `storage`).

Read all parts of a folder lazily, wherever it is.

Do what is not yet done of a study, and read what is. Any `Work` counts as a study here.

The seam is small: `executor.submit(perform, study, number, folder)` must give a future with `result`, `cancel` and
`add_done_callback`. Threads do for one machine, for the kernels let go of the interpreter; a process pool does as well,
or a cluster (`clusters`), if its workers see the folder. Who does a task writes its part: nothing large comes back.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from unbandit.errors import OutputError, ResumeError
from unbandit.study.storage import DIGEST, LEFTOVER, marks_of, sealed, storage_at
from unbandit.study.taskgrid import Work, changes, pretty

REMEDY = "Take another folder, or delete this one."


STUDY, PARTS, SUMMARY = "study.json", "parts", "summary.csv"


READERS = 8
"""Parts that are read and checked at a time."""


class Folder:
    """Keep a study's parts in a folder.

    Examples
    --------
    >>> import tempfile
    >>> from unbandit.study import Study
    >>> study = Study("two-armed", "ucb", [100, 200], runs=10)
    >>> folder = Folder(Path(tempfile.mkdtemp()) / "new", study)
    >>> with folder.held() as finished:
    ...     folder.part(1).name, finished
    ('00001.parquet', set())
    >>> Folder(folder.path, Study("two-armed", "ucb", [100, 200], runs=20)).look()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ResumeError: ...: it has another study (runs: the folder has 10, asked for 20). Take another ...
    """

    def __init__(self, path: str | os.PathLike[str], study: Work) -> None:
        self.storage, self.study = storage_at(path), study
        self.broken: set[int] = set()
        self._digits = max(5, len(str(len(study.tasks) - 1)))
        self._whole: set[int] = set()

    @property
    def path(self) -> Path | str:
        """Return where it is: a path, or an address."""
        return self.storage.path

    @property
    def elsewhere(self) -> str:
        """Return where it is, in a way that is right in any folder of any machine that sees it."""
        return os.path.abspath(self.path) if isinstance(self.path, Path) else self.path  # noqa: PTH100

    @property
    def summary(self) -> str:
        """Return where the table is that a study ends with."""
        return self.storage.where(SUMMARY)

    def part(self, number: int) -> PurePosixPath:
        """Return where in the folder a task's rows go; names sort as numbers do."""
        return PurePosixPath(PARTS, f"{number:0{self._digits}d}.parquet")

    def look(self) -> set[int]:
        """Return the numbers of the tasks whose parts are there and whole, and write nothing.

        Those that are there, but were cut or altered since they were written, are in `broken`: to be made again.

        Raises
        ------
        ResumeError
            If the folder is not this study's: another study, other things, parts that are not its own.
        """
        if not self._is_ours():
            return set()
        found = self.present()
        with self._usable():
            self._check(found)
        return found & self._whole

    @contextmanager
    def held(self) -> Iterator[set[int]]:
        """Make the folder the study's, keep others out of it meanwhile, and give the numbers of the parts there.

        Whose the folder is, is settled behind the lock: of two studies that begin in a new folder one is refused. A
        process that dies lets go of it.
        """
        with ExitStack() as stack:
            with self._usable():
                self.storage.make()
                stack.enter_context(self.storage.held())
            found = self.look()
            with self._usable():
                if not self.storage.exists(STUDY):
                    self.storage.write(STUDY, f"{pretty(self.study.identity)}\n".encode())
                self.storage.make(PARTS)
            yield found

    def present(self) -> set[int]:
        """Return the numbers of the tasks whose parts are there, going by their names."""
        known, found = len(self.study.tasks), set()
        with self._usable():
            for name in self._listed(PARTS):
                stem, _, kind = name.rpartition(".")
                number = int(stem) if kind == "parquet" and stem.isdecimal() else -1
                if not 0 <= number < known or name != self.part(number).name:
                    item = self.storage.where(f"{PARTS}/{name}")
                    raise ResumeError(f"{item}: expected parts of this study alone; got another file. Remove it.")
                found.add(number)
        return found

    def read(self, number: int, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Return a task's rows, all columns or some, if they are as they were written."""
        with self._usable():
            data = self.storage.read(str(self.part(number)))
        if not self._fits(number, data):
            raise ResumeError(
                f"{self.storage.where(str(self.part(number)))}: expected a part as it was written; its checksum does "
                "not fit. Run the study again: the part is made again."
            )
        return pl.read_parquet(io.BytesIO(data), columns=None if columns is None else list(columns))

    def write(self, number: int, rows: pl.DataFrame) -> None:
        """Write a task's rows, whole or not at all; equal rows give equal bytes."""
        self.storage.write(str(self.part(number)), sealed(rows, self._marks(number)))

    def write_summary(self, table: pl.DataFrame) -> None:
        """Write the table that the study ends with."""
        self.storage.write(SUMMARY, table.write_csv().encode())

    def clear(self) -> None:
        """Remove what kills have left behind; only when nothing is being written any more."""
        with self._usable():
            for folder in ("", PARTS):
                for name in self.storage.names(folder):
                    if LEFTOVER.fullmatch(name):
                        self.storage.remove(f"{folder}/{name}".lstrip("/"))

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Say what the system refuses, in one sentence."""
        try:
            yield
        except OutputError:
            raise
        except FileExistsError as error:
            raise OutputError(f"{error.filename}: expected a folder; got a file. Take another name.") from error
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{self.path}: could not be used: {reason}. Take another folder.") from error

    def _is_ours(self) -> bool:
        """Return whether the study has begun here; refuse a folder with another study, or with other things."""
        with self._usable():
            others = sorted(self._listed(""))
            if STUDY in others:
                self._compare()
                return True
        if others:
            raise ResumeError(
                f"{self.path}: expected an empty folder or one with a study; got one without study.json, in which "
                f'there is "{others[0]}". Take another folder.'
            )
        return False

    def _compare(self) -> None:
        """Refuse a folder whose study is not the one asked for."""
        written = self.storage.where(STUDY)
        try:
            had: Any = json.loads(self.storage.read(STUDY).decode())
        except (OSError, ValueError) as error:
            raise ResumeError(f"{written}: could not be read as a study: {_error_line(error)}. {REMEDY}") from error
        asked = self.study.identity
        schema = had.get("schema") if isinstance(had, dict) else None
        if schema != asked["schema"]:
            said = f'expected a study with schema "{asked["schema"]}"; got {schema!r}'
            raise ResumeError(f"{written}: {said}. {REMEDY}")
        changed = changes(had, asked)
        if changed:
            raise ResumeError(f"{self.path}: it has another study ({'; '.join(changed)}). {REMEDY}")

    def _marks(self, number: int) -> dict[str, str]:
        """Return what a part carries beside its rows: whose it is."""
        return {"unbandit.study": self.study.digest, "unbandit.task": str(number)}

    def _check(self, found: set[int]) -> None:
        """Sort parts into whole and broken ones, those that this object has not seen before."""
        numbers = sorted(found - self._whole)
        with ThreadPoolExecutor(READERS, "checking") as readers:
            fitting = list(readers.map(lambda number: self._fits(number, self._read(number)), numbers))
        self._whole |= {number for number, fits in zip(numbers, fitting, strict=True) if fits}
        self.broken = found - self._whole

    def _read(self, number: int) -> bytes:
        return self.storage.read(str(self.part(number)))

    def _fits(self, number: int, data: bytes) -> bool:
        """Return whether a part is as it was written; refuse one that is whole, but not this."""
        part, again = self.storage.where(str(self.part(number))), "Delete it, and it is made again."
        found, marks = marks_of(data), self._marks(number)
        if found is None:
            return False
        if found.get("unbandit.study") != marks["unbandit.study"]:
            raise ResumeError(f"{part}: expected a part of this study; got one of another. {again}")
        if found.get("unbandit.task") != marks["unbandit.task"]:
            raise ResumeError(f"{part}: expected part {number} of the study; got another of its parts. {again}")
        return DIGEST in found

    def _listed(self, folder: str) -> list[str]:
        """Return what is in the folder, or in one below, but for what kills have left behind."""
        return [name for name in self.storage.names(folder) if not LEFTOVER.fullmatch(name)]


def _error_line(error: Exception) -> str:
    """Return the first line of what an error says, without a full stop."""
    said = getattr(error, "strerror", None) or str(error)
    return (said.strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def scanned(place: Folder) -> pl.LazyFrame:
    """Return the rows of all parts, to be read as far as they are needed.

    Of a folder of this machine polars reads the files itself; from elsewhere they come one after the other.
    """
    if isinstance(place.path, Path):
        return pl.scan_parquet(place.path / PARTS, glob=False)
    names = [str(place.part(number)) for number in range(len(place.study.tasks))]

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, batch: int | None
    ) -> Iterator[pl.DataFrame]:
        left = most
        for name in names:
            rows = pl.read_parquet(io.BytesIO(place.storage.read(name)), columns=columns, n_rows=left)
            if left is not None:
                left -= rows.height
            yield rows if predicate is None else rows.filter(predicate)
            if left == 0:
                return

    return register_io_source(source, schema=pl.read_parquet_schema(io.BytesIO(place.storage.read(names[0]))))


Done = TypeVar("Done", bound=Work)


@dataclass(frozen=True)
class Result(Generic[Done]):
    """Hold a finished study of any kind: the folder with its parts, and ways to read them."""

    study: Done
    folder: Path | str

    def scan(self) -> pl.LazyFrame:
        """Return all rows, to be read as far as they are needed."""
        place = self._whole()
        if place.look() != set(range(len(self.study.tasks))):
            number = min(place.broken)
            place.read(number)  # it says what is wrong
        return scanned(place)

    def parts(self, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
        """Give the rows task by task, all columns or some, so that no more than one part is held at a time."""
        place, names = self._whole(), None if columns is None else tuple(columns)
        return (place.read(number, names) for number in range(len(self.study.tasks)))

    def _whole(self) -> Folder:
        """Return the folder, if the study in it has come to its end."""
        place = Folder(self.folder, self.study)
        kept, parts = len(place.present()), len(self.study.tasks)
        if kept < parts:
            raise ResumeError(f"{self.folder}: {kept:,} of {parts:,} parts are there: run the study to its end.")
        return place
