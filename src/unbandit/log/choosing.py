"""Read a log into memory, or scan it where it would take too much of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from unbandit.errors import LogError
from unbandit.log.action_log import ActionLog
from unbandit.log.places import Paths, places_of
from unbandit.log.reading import ParquetTable
from unbandit.log.scanned import ScannedLog

__all__ = ["SHARE", "read_or_scan"]

SHARE = 4
"""What would take more than one part in so many of the machine's memory is scanned."""

BYTES_A_ROW, BYTES_A_BYTE, BYTES_A_PACKED_BYTE = 40, 4, 20
"""What a row of Parquet, a byte of text, and one packed by gzip take while they are read into memory, about."""


def read_or_scan(
    paths: Paths, *, columns: Mapping[str, str] | None = None, arms: Sequence[object] | None = None
) -> ActionLog | ScannedLog:
    """Read a file, several, a folder or a pattern; scan what is large, and say so in a notice.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("arm\\nA\\nB\\n")
    >>> read_or_scan(path)
    <ActionLog: 1 demonstration, 2 arms, 2 rounds>
    """
    size = sum(_size(place.path) for place in places_of(paths))
    if size <= memory() / SHARE:
        return ActionLog.read(paths, columns=columns, arms=arms)
    said = "the log is large, so it is scanned: read in passes, of which only counts are kept in memory."
    return ScannedLog.of(paths, columns, arms, notices=(said,))


def memory() -> int:
    """Return the bytes of memory that this machine has, or this process may use."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # in a container
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found, default=8 * 2**30)


def _size(path: Path) -> int:
    """Guess what a file would take in memory; nothing for what can be read only once."""
    if not path.is_file():
        return 0
    try:
        with path.open("rb") as file:
            beginning = file.read(4)
    except OSError:  # reading it will say why
        return 0
    if beginning == b"PAR1":
        with suppress(LogError):
            return BYTES_A_ROW * ParquetTable(path, str(path)).rows()
        return 0
    return path.stat().st_size * (BYTES_A_PACKED_BYTE if beginning.startswith(b"\x1f\x8b") else BYTES_A_BYTE)
