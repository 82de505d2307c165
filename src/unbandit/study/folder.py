"""A folder of results: what study it holds, which parts are there, and whether they fit what is asked.

::

    FOLDER/study.json              all that determines the bytes
    FOLDER/parts/00000.parquet     one a task, written whole or not at all
    FOLDER/summary.csv             the table that `unbandit study` ends with

A part that is there is whole and final, so a killed study goes on by doing the parts that are not there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from unbandit.errors import OutputError, ResumeError
from unbandit.files import written_whole
from unbandit.log.writing import write_table
from unbandit.study.changes import changes
from unbandit.study.grid import SCHEMA, Study
from unbandit.study.identity import pretty

__all__ = ["Folder"]

LEFTOVER = re.compile(r"\.(study\.json|summary\.csv|\d+\.parquet)\..*\.part")
"""The names under which files are written before they are whole; a kill leaves them behind."""

REMEDY = "Take another folder, or delete this one."


class Folder:
    """Keep a study's parts in a folder.

    Examples
    --------
    >>> import tempfile
    >>> study = Study("two-armed", "ucb", [100, 200], runs=10)
    >>> folder = Folder(Path(tempfile.mkdtemp()) / "new", study)
    >>> folder.claim()
    >>> folder.part(1).name, folder.finished()
    ('00001.parquet', set())
    >>> Folder(folder.path, Study("two-armed", "ucb", [100, 200], runs=20)).claim()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ResumeError: ...: it has another study (runs: the folder has 10, asked for 20). Take another ...
    """

    def __init__(self, path: str | os.PathLike[str], study: Study) -> None:
        self.path, self.study = Path(path), study
        self.parts, self.summary = self.path / "parts", self.path / "summary.csv"
        self._digits = max(5, len(str(len(study.tasks) - 1)))

    def part(self, number: int) -> Path:
        """Return where a task's rows go; names sort as numbers do."""
        return self.parts / f"{number:0{self._digits}d}.parquet"

    def claim(self) -> None:
        """Make the folder the study's, or make sure that it is: same study, known parts, all of them readable."""
        written = self.path / "study.json"
        with self._usable():
            self.path.mkdir(parents=True, exist_ok=True)
            if written.exists():
                self._compare(written)
            elif others := sorted(item.name for item in self.path.iterdir() if not LEFTOVER.fullmatch(item.name)):
                raise ResumeError(
                    f"{self.path}: expected an empty folder or one with a study; got one without study.json, in which "
                    f'there is "{others[0]}". Take another folder.'
                )
            else:
                with written_whole(written) as temporary:
                    temporary.write_text(pretty(self.study.identity) + "\n", encoding="utf-8")
            self.parts.mkdir(exist_ok=True)

    def finished(self) -> set[int]:
        """Return the numbers of the tasks whose parts are there."""
        known, found = len(self.study.tasks), set()
        with self._usable():
            for item in self.parts.iterdir() if self.parts.exists() else ():
                if LEFTOVER.fullmatch(item.name):
                    continue
                number = int(item.stem) if item.suffix == ".parquet" and item.stem.isdecimal() else -1
                if not 0 <= number < known or item != self.part(number):
                    raise ResumeError(f"{item}: expected parts of this study alone; got another file. {REMEDY}")
                _check(item)
                found.add(number)
        return found

    def write(self, number: int, rows: pl.DataFrame) -> None:
        """Write a task's rows, whole or not at all; equal rows give equal bytes."""
        write_table(lambda: rows, self.part(number))

    def clear(self) -> None:
        """Remove what kills have left behind; only when nothing is being written any more."""
        with self._usable():
            for place in (self.path, self.parts):
                for item in place.iterdir():
                    if LEFTOVER.fullmatch(item.name):
                        item.unlink(missing_ok=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out of the folder; a process that dies lets go of it."""
        try:
            import fcntl
        except ImportError:  # there is no such lock on this system
            yield
            return
        with ExitStack() as stack:
            with self._usable():
                lock = stack.enter_context((self.path / "study.json").open("r+b"))
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise ResumeError(
                    f"{self.path}: another process is at work on this study. Wait until it ends, or stop it."
                ) from None
            except OSError:  # a file system without locks
                pass
            yield

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

    def _compare(self, written: Path) -> None:
        """Refuse a folder whose study is not the one asked for."""
        try:
            had: Any = json.loads(written.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ResumeError(f"{written}: could not be read as a study: {_line(error)}. {REMEDY}") from error
        if not isinstance(had, dict) or had.get("schema") != SCHEMA:
            schema = had.get("schema") if isinstance(had, dict) else None
            raise ResumeError(f'{written}: expected a study with schema "{SCHEMA}"; got {schema!r}. {REMEDY}')
        changed = changes(had, self.study.identity)
        if changed:
            raise ResumeError(f"{self.path}: it has another study ({'; '.join(changed)}). {REMEDY}")


def _check(part: Path) -> None:
    """Refuse a part that other hands have cut or changed, as far as its last bytes tell."""
    try:
        pl.scan_parquet(part, glob=False).collect_schema()
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ResumeError(
            f"{part}: expected a whole Parquet file; got one that cannot be read ({_line(error)}). "
            "Delete it, and it is made again."
        ) from error


def _line(error: Exception) -> str:
    """Return the first line of what an error says, without a full stop."""
    said = getattr(error, "strerror", None) or str(error)
    return (said.strip().splitlines() or [type(error).__name__])[0].rstrip(".")
