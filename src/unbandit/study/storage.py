"""Where parts are kept: a folder of this machine or, by its address, any place that fsspec knows.

Both promise the same: a file is there whole or not at all, and while somebody holds the place nobody else does. How
the second promise is kept differs, see `Local` and `object_store.Remote`.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from unbandit.files import locked, written_whole

__all__ = ["LEFTOVER", "Local", "Storage", "is_address", "storage_at"]

LEFTOVER = re.compile(r"\.(study\.json|summary\.csv|\d+\.parquet)\..*\.part")
"""The names under which files are written before they are whole; a kill leaves them behind."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")  # two letters: C:// is a disk


class Storage(Protocol):
    """Stand for a place of files; their names are relative to it, with "/" between folder and file."""

    @property
    def path(self) -> Path | str:
        """Return the place: a path, or an address."""

    def where(self, name: str = "") -> str:
        """Return the place, or a file in it, as people would write it."""

    def make(self, folder: str = "") -> None:
        """Make the place, or a folder in it, if it is not there."""

    def names(self, folder: str = "") -> list[str]:
        """Return what is in the place, or in a folder of it; nothing if it is not there."""

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""

    def read(self, name: str) -> bytes:
        """Return what is in a file."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def held(self) -> AbstractContextManager[None]:
        """Keep everybody else out of the place meanwhile."""


class Local:
    """Keep files in a folder of this machine, or one that it sees as its own.

    Files are written under another name and renamed. Who holds the folder has the system's lock on it, which ends with
    the process.

    Examples
    --------
    >>> import tempfile
    >>> place = Local(Path(tempfile.mkdtemp()))
    >>> place.write("a.txt", b"whole")
    >>> place.names(), place.read("a.txt")
    (['a.txt'], b'whole')
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def where(self, name: str = "") -> str:
        """Return the folder, or a file in it."""
        return os.fspath(self.path / name)

    def make(self, folder: str = "") -> None:
        """Make the folder."""
        (self.path / folder).mkdir(parents=not folder, exist_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """Return what is in the folder, or in one below."""
        place = self.path / folder
        if place.is_file():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(place))
        try:
            return [item.name for item in place.iterdir()]
        except FileNotFoundError:
            return []

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        """Return what is in a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Write a file under another name, and rename it."""
        with written_whole(self.path / name) as temporary:
            temporary.write_bytes(data)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock of the folder."""
        with locked(self.path):
            yield


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a text is the address of a place elsewhere, not a path of this machine.

    Examples
    --------
    >>> is_address("s3://bucket/results"), is_address("results"), is_address("C://results"), is_address("file:///results")
    (True, False, False, False)
    """
    text = os.fspath(path)
    return isinstance(path, str) and bool(_ADDRESS.match(text)) and urlsplit(text).scheme not in ("file", "local")


def storage_at(path: str | os.PathLike[str]) -> Storage:
    """Return the place that a path, or an address such as ``s3://bucket/results``, stands for.

    Examples
    --------
    >>> storage_at("results").where("study.json"), storage_at("file:///results").where("study.json")
    ('results/study.json', '/results/study.json')
    """
    text = os.fspath(path)
    if is_address(path):
        from unbandit.study.object_store import Remote

        return Remote(text)
    if isinstance(path, str) and _ADDRESS.match(text):  # file:// names a folder of this machine
        parts = urlsplit(text)
        return Local(Path(unquote(parts.path if not parts.netloc else f"{parts.netloc}{parts.path}")))
    return Local(Path(text))
