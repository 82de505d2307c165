"""Where a log came from: its name, and a checksum of its bytes, so that a reader can tell it is the same one."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unbandit.errors import LogError
from unbandit.log import ActionLog
from unbandit.log.places import places_of

__all__ = ["Source", "read_log"]

STANDARD_INPUT = "standard input"

BLOCK = 1024**2
"""Bytes that are read at once: a file is never held in memory for its checksum."""


@dataclass(frozen=True)
class Source:
    """Hold where a log came from.

    Attributes
    ----------
    name
        As people know it: a path, or "standard input". It is only shown.
    checksum
        SHA-256 of the bytes, in hexadecimal; None where there were none, as for a log made in memory.
    size
        How many bytes.
    """

    name: str
    checksum: str | None = None
    size: int | None = None

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Source:
        """Read a file, or all those of a folder, block by block, for checksum and size.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.csv"
        >>> _ = path.write_bytes(b"arm\\nA\\nB\\n")
        >>> source = Source.of_file(path)
        >>> source.size, source.checksum == Source.of_bytes("log.csv", b"arm\\nA\\nB\\n").checksum
        (8, True)
        """
        digest, size = hashlib.sha256(), 0
        try:
            for place in places_of(path):  # of a folder: of all files in it, one after the other
                with place.path.open("rb") as file:
                    while block := file.read(BLOCK):
                        digest.update(block)
                        size += len(block)
        except OSError as error:
            raise LogError(
                f"expected a readable file; got an error of the system: {error.strerror or error}. Check the path.",
                path=os.fspath(path),
            ) from error
        return cls(os.fspath(path), digest.hexdigest(), size)

    @classmethod
    def of_bytes(cls, name: str, data: bytes) -> Source:
        """Take bytes that are already in memory.

        Examples
        --------
        >>> Source.of_bytes("standard input", b"").checksum[:12]
        'e3b0c44298fc'
        """
        return cls(name, hashlib.sha256(data).hexdigest(), len(data))


def read_log(
    path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None, arms: Sequence[object] | None = None
) -> tuple[ActionLog, Source]:
    """Read a log together with the checksum of the bytes that were read; "-" is standard input.

    A file is read for its checksum in small blocks, and refused if it changed between that and its reading. What can
    be read only once, such as a pipe, is held in memory.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_bytes(b"arm\\nA\\nB\\n")
    >>> log, source = read_log(path)
    >>> log.arms, source.size
    (('A', 'B'), 8)
    """
    name = os.fspath(path)
    file = Path(path)
    if name == "-" or (file.exists() and not file.is_file() and not file.is_dir()):  # what can be read only once
        called = STANDARD_INPUT if name == "-" else name
        data = sys.stdin.buffer.read() if name == "-" else file.read_bytes()
        return ActionLog.from_bytes(data, name=called, columns=columns, arms=arms), Source.of_bytes(called, data)
    before = _state(file)
    log = ActionLog.read(path, columns=columns, arms=arms)
    source = Source.of_file(file)
    if _state(file) != before:
        raise LogError("expected a file at rest; it changed while it was read. Wait until it is written.", path=name)
    return log, source


def _state(file: Path) -> tuple[int, int, int] | None:
    """Return what changes with a file's contents; None where there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
