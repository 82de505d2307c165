"""Where a log came from: its name, and a checksum of its bytes, so that a reader can tell it is the same one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from unbandit.errors import LogError

__all__ = ["Source"]

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
        """Read a file block by block, for its checksum and its size.

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
            with Path(path).open("rb") as file:
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
