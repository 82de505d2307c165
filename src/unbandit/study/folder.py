"""A folder of results: what study it holds, which parts are there, and whether they fit what is asked.

::

    FOLDER/study.json              all that determines the bytes
    FOLDER/parts/00000.parquet     one a task, written whole or not at all
    FOLDER/summary.csv             the table that `unbandit study` ends with

A part that is there is whole and final, so a killed study goes on by doing the parts that are not there. Each carries
the digest of its study and its own number, so that a part of another study is not taken for one of this.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from unbandit.errors import OutputError, ResumeError
from unbandit.files import locked, written_whole
from unbandit.study.changes import changes
from unbandit.study.identity import pretty
from unbandit.study.work import Work

__all__ = ["Folder"]

LEFTOVER = re.compile(r"\.(study\.json|summary\.csv|\d+\.parquet)\..*\.part")
"""The names under which files are written before they are whole; a kill leaves them behind."""

REMEDY = "Take another folder, or delete this one."


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
        self.path, self.study = Path(path), study
        self.parts, self.summary = self.path / "parts", self.path / "summary.csv"
        self._written = self.path / "study.json"
        self._digits = max(5, len(str(len(study.tasks) - 1)))

    def part(self, number: int) -> Path:
        """Return where a task's rows go; names sort as numbers do."""
        return self.parts / f"{number:0{self._digits}d}.parquet"

    def look(self) -> set[int]:
        """Return the numbers of the tasks whose parts are there, and write nothing.

        Raises
        ------
        ResumeError
            If the folder is not this study's: another study, other things, parts that are not whole or not its own.
        """
        if not self._is_ours():
            return set()
        found = self.present()
        with self._usable():
            for number in sorted(found):
                self._check(number)
        return found

    @contextmanager
    def held(self) -> Iterator[set[int]]:
        """Make the folder the study's, keep others out of it meanwhile, and give the numbers of the parts there.

        Whose the folder is, is settled behind the lock: of two studies that begin in a new folder one is refused. A
        process that dies lets go of it.
        """
        with ExitStack() as stack:
            with self._usable():
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.path))
            found = self.look()
            with self._usable():
                if not self._written.exists():
                    with written_whole(self._written) as temporary:
                        temporary.write_text(pretty(self.study.identity) + "\n", encoding="utf-8")
                self.parts.mkdir(exist_ok=True)
            yield found

    def present(self) -> set[int]:
        """Return the numbers of the tasks whose parts are there, going by their names."""
        known, found = len(self.study.tasks), set()
        with self._usable():
            for item in _listed(self.parts):
                number = int(item.stem) if item.suffix == ".parquet" and item.stem.isdecimal() else -1
                if not 0 <= number < known or item != self.part(number):
                    raise ResumeError(f"{item}: expected parts of this study alone; got another file. Remove it.")
                found.add(number)
        return found

    def write(self, number: int, rows: pl.DataFrame) -> None:
        """Write a task's rows, whole or not at all; equal rows give equal bytes."""
        with written_whole(self.part(number)) as temporary, temporary.open("wb") as file:
            try:
                rows.write_parquet(file, metadata=self._marks(number))
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                raise OSError(_line(error)) from error  # only the disk can fail here, whatever polars calls it

    def clear(self) -> None:
        """Remove what kills have left behind; only when nothing is being written any more."""
        with self._usable():
            for place in (self.path, self.parts):
                for item in place.iterdir():
                    if LEFTOVER.fullmatch(item.name):
                        item.unlink(missing_ok=True)

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
            if self._written.exists():
                self._compare()
                return True
            others = sorted(item.name for item in _listed(self.path))
        if others:
            raise ResumeError(
                f"{self.path}: expected an empty folder or one with a study; got one without study.json, in which "
                f'there is "{others[0]}". Take another folder.'
            )
        return False

    def _compare(self) -> None:
        """Refuse a folder whose study is not the one asked for."""
        try:
            had: Any = json.loads(self._written.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ResumeError(f"{self._written}: could not be read as a study: {_line(error)}. {REMEDY}") from error
        asked = self.study.identity
        schema = had.get("schema") if isinstance(had, dict) else None
        if schema != asked["schema"]:
            said = f'expected a study with schema "{asked["schema"]}"; got {schema!r}'
            raise ResumeError(f"{self._written}: {said}. {REMEDY}")
        changed = changes(had, asked)
        if changed:
            raise ResumeError(f"{self.path}: it has another study ({'; '.join(changed)}). {REMEDY}")

    def _marks(self, number: int) -> dict[str, str]:
        """Return what a part carries beside its rows: whose it is."""
        return {"unbandit.study": self.study.digest, "unbandit.task": str(number)}

    def _check(self, number: int) -> None:
        """Refuse a part that other hands have cut, changed or put there, as far as its last bytes tell."""
        part, again = self.part(number), "Delete it, and it is made again."
        try:
            found = pl.read_parquet_metadata(part)
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise ResumeError(
                f"{part}: expected a whole Parquet file; got one that cannot be read ({_line(error)}). {again}"
            ) from error
        marks = self._marks(number)
        if found.get("unbandit.study") != marks["unbandit.study"]:
            raise ResumeError(f"{part}: expected a part of this study; got one of another. {again}")
        if found.get("unbandit.task") != marks["unbandit.task"]:
            raise ResumeError(f"{part}: expected part {number} of the study; got another of its parts. {again}")


def _listed(folder: Path) -> list[Path]:
    """Return what is in a folder, but for what kills have left behind; nothing if there is no folder."""
    if folder.is_file():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(folder))
    try:
        return [item for item in folder.iterdir() if not LEFTOVER.fullmatch(item.name)]
    except FileNotFoundError:
        return []


def _line(error: Exception) -> str:
    """Return the first line of what an error says, without a full stop."""
    said = getattr(error, "strerror", None) or str(error)
    return (said.strip().splitlines() or [type(error).__name__])[0].rstrip(".")
