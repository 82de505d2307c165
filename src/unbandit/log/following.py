"""Follow a log that others write: a text file that grows, or a folder to which files are added."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from unbandit.errors import LogError, ResumeError
from unbandit.log.growing import GrowingLog
from unbandit.log.places import Place, by_value, is_several, places_of
from unbandit.log.rows import RowReader
from unbandit.log.tails import ParquetTail, Patience, Tail, tail_of

__all__ = ["Follower"]


class Follower:
    """Bring a growing log up to date with the files it comes from.

    Parameters
    ----------
    path
        A CSV or TSV file, a folder, or a pattern.
    log
        What to bring up to date.
    columns
        As `ActionLog.read` takes them.
    position
        Where an earlier follower stopped (`position`), if there was one.

    Attributes
    ----------
    settled
        Whether the log holds exactly the rows up to `position`; it does not while a piece is being read and added, nor
        after that was interrupted.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("arm\\nA\\nB\\nA")
    >>> log = GrowingLog()
    >>> follower = Follower(path, log)
    >>> sum(follower.news()), log.pulls.tolist()  # the last line has no end yet
    (2, [[1, 1]])
    """

    def __init__(
        self, path: str | os.PathLike[str], log: GrowingLog, columns: Mapping[str, str] | None = None,
        position: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._path, self._log, self._columns = path, log, columns
        self._reader: RowReader | None = None
        self._kinds: dict[str, str] = {}  # what the columns hold
        self._tails: dict[str, Tail] = {}
        self.settled = True
        self._waiting: dict[Path, Path] = {}  # of each folder, the file that others wait for
        self._patience: dict[Path, Patience] = {}
        self._before = dict(position or {})
        self._asked = {"path": os.fspath(path), "columns": dict(columns or {})}
        if self._before and {name: self._before[name] for name in self._asked} != self._asked:
            raise ResumeError(
                f"{os.fspath(path)}: expected the log and the columns that the snapshot was made of "
                f"({self._before['path']}); got others. Remove the snapshot to begin anew, or name another."
            )
        for name, state in self._before.get("files", {}).items():
            found = tail_of(Place(Path(name), state["keys"]), state["read"])
            assert found is not None
            self._tails[name] = found

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should hear about the reading."""
        found = () if self._reader is None else self._reader.notices
        return (*found, *(f"{path} is not whole yet: files after it wait." for path in self._waiting.values()))

    def news(self) -> Iterator[int]:
        """Read what came since; give the number of rows after every piece, when `position` is up to date."""
        self._waiting = {}
        self._look()
        latest = {tail.place.path.parent: tail for tail in self._tails.values()}
        begun = {tail.place.path.parent: tail for tail in self._tails.values() if tail.state()["rows"]}
        passed: set[Path] = set()  # folders whose latest file with rows that were read came by
        stopped: set[Path] = set()  # folders of which no more is read this time
        for tail in self._tails.values():
            folder = tail.place.path.parent
            if folder in stopped:
                continue
            if folder in begun and folder not in passed and begun[folder] is not tail:
                self._refuse_growth(tail, begun[folder])
            else:
                passed.add(folder)
            yield from self._news_of(tail)
            if latest[folder] is not tail and tail.more():
                stopped.add(folder)
                self._wait_for(tail.place.path)

    def _news_of(self, tail: Tail) -> Iterator[int]:
        """Read what came since in one file."""
        if self._reader is not None or self._begin(tail):
            assert self._reader is not None
            names = tail.names()
            if names is not None:
                self._check(tail, names)
            self.settled = False
            for piece in tail.pieces(list(self._reader.name.values())):
                self._log.add(self._reader.read(piece))
                self.settled = True
                yield len(piece.columns[0])
                self.settled = False
            self.settled = True

    def position(self) -> dict[str, Any]:
        """Return how far every file was read, as something for JSON."""
        rounds = None if self._reader is None else self._reader.rounds_so_far()
        files = {name: {"keys": tail.place.keys, "read": tail.state()} for name, tail in self._tails.items()}
        return {"files": files, "rounds": rounds, **self._asked}

    def _look(self) -> None:
        """Find files that were added; in each folder they must come after those read before."""
        places = places_of(self._path) if is_several(self._path) else [Place(Path(self._path), {})]
        empty: dict[Path, Path] = {}
        for place in places:
            name, folder = str(place.path), place.path.parent
            if name in self._tails:
                continue
            if folder in empty:
                self._wait_for(empty[folder])
                continue
            tail = tail_of(place)
            if tail is None:
                empty[folder] = place.path
                continue
            if isinstance(tail, ParquetTail) and not is_several(self._path):
                raise LogError(
                    "expected text that lines are added to, or a folder that files are added to; got a Parquet file, "
                    "which does not grow. Follow its folder.",
                    path=name,
                )
            later = [other for other in self._tails if _precedes(place.path, Path(other))]
            if later:
                raise LogError(
                    f"expected new files to come after those read before in the order of names; this one comes before "
                    f"{Path(later[0]).name}. Name new files in rising order, or begin anew without the snapshot.",
                    path=name,
                )
            self._tails[name] = tail

    def _wait_for(self, path: Path) -> None:
        """Leave the files after this one for later, unless it has been waited for long enough."""
        self._waiting[path.parent] = path
        if self._patience.setdefault(path, Patience()).is_over(path):
            raise LogError(
                "expected a whole file, since there are files after it; its last line has no end, or it has no line of "
                "names. End it with a line break, or take it out of the folder.",
                path=str(path),
            )

    def _refuse_growth(self, tail: Tail, later: Tail) -> None:
        if tail.more():
            raise LogError(
                f"expected no more rows, since {later.place.path.name} comes after it and was read before; got some, "
                "which would be out of order. Add rows to the last file only, and begin anew without the snapshot.",
                path=str(tail.place.path),
            )

    def _begin(self, tail: Tail) -> bool:
        """Settle the columns by the first file that has some; False while there is none."""
        if tail.names() is None:
            return False
        path = str(tail.place.path)
        self._reader = RowReader(
            tail.names() or [], partial(LogError, path=path), self._columns, self._log.arm_column,
            self._log.demonstration_column,
        )  # fmt: skip
        self._kinds = {name: tail.kind(name) for name in self._reader.name.values()}
        if self._before.get("rounds"):
            self._reader.go_on(self._before["rounds"])
        return True

    def _check(self, tail: Tail, names: list[str]) -> None:
        assert self._reader is not None
        for name in self._reader.name.values():
            if name not in names:
                raise LogError(
                    f'expected a column "{name}", as in files before; it is not there. Write the file again with it.',
                    path=str(tail.place.path),
                    column=name,
                )
            if tail.kind(name) != self._kinds[name]:
                raise LogError(
                    f"expected {self._kinds[name]}, as in files before; got {tail.kind(name)}. Write the column in one "
                    "type in all files.",
                    path=str(tail.place.path),
                    column=name,
                )


def _precedes(new: Path, read: Path) -> bool:
    """Tell whether a new file would have been read before one of the same folder."""
    return new.parent == read.parent and by_value(new) < by_value(read)
