"""Open a file or standard input as a table, whatever its format.

The first bytes decide, not the name: Parquet, gzip, else text.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from unbandit.errors import LogError
from unbandit.log.table import Table
from unbandit.log.text import TextTable

__all__ = ["ParquetTable", "open_bytes", "open_table", "unreadable"]

_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"


def open_table(path: str | os.PathLike[str]) -> Table:
    """Open `path` ("-" is standard input) far enough to know its columns.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("arm,reward\\nA,1\\nB,0\\n")
    >>> open_table(path).names
    ['arm', 'reward']
    """
    if os.fspath(path) == "-":
        return open_bytes(sys.stdin.buffer.read(), "standard input")
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            if file.read(4) == _PARQUET:
                return ParquetTable(Path(path), name)
            file.seek(0)
            data = file.read()
    except OSError as error:
        raise unreadable(name, error) from error
    return open_bytes(data, name)


class ParquetTable(Table):
    """Hold a Parquet file, on disk or in memory."""

    def __init__(self, source: Path | bytes, path: str) -> None:
        self.path = path
        # An absolute path, so that no name is taken for an address on the network.
        self._source = str(source.absolute()) if isinstance(source, Path) else source
        try:
            self.kinds = pl.read_parquet_schema(self._opened())
            self.names = list(self.kinds)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self.broken(error) from error

    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Read columns."""
        wanted = [self.names[position] for position in positions]
        try:
            frame = pl.read_parquet(self._opened(), columns=wanted, glob=False, hive_partitioning=False)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self.broken(error) from error
        if frame.is_empty():
            raise self.refuse("expected one row a choice; got a table without rows. Check that it was saved.")
        return [frame[name] for name in wanted]

    def head(self, positions: Sequence[int], count: int) -> list[pl.Series]:
        """Read the first rows of columns."""
        wanted = [self.names[position] for position in positions]
        try:
            frame = pl.scan_parquet(self._opened(), glob=False, hive_partitioning=False).select(wanted).head(count)
            return frame.collect().get_columns()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self.broken(error) from error

    def rows(self) -> int:
        """Return the number of rows, which a file says at its end."""
        try:
            return int(
                pl.scan_parquet(self._opened(), glob=False, hive_partitioning=False).select(pl.len()).collect().item()
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self.broken(error) from error

    def _opened(self) -> str | io.BytesIO:
        return self._source if isinstance(self._source, str) else io.BytesIO(self._source)

    def broken(self, error: BaseException) -> LogError:
        """Make the error that says why the file could not be read."""
        # Polars gives the kind of an error of the system, not always its number.
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            return unreadable(str(self.path), error)
        reason = str(error).strip().splitlines()[0]
        return self.refuse(f"expected a whole Parquet file; it could not be read ({reason}). Write or copy it again.")


def open_bytes(data: bytes, name: str) -> Table:
    """Open what a file holds; `name` is only what messages call it.

    Examples
    --------
    >>> open_bytes(b"arm\\nA\\nB\\n", "log.csv").names
    ['arm']
    """
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise LogError(
                f"expected a whole gzip file; it could not be unpacked ({error}). Write or copy it again.", path=name
            ) from error
    return ParquetTable(data, name) if data.startswith(_PARQUET) else TextTable(data, name)


def unreadable(name: str, error: OSError) -> LogError:
    """Say why a file could not be opened or read to its end."""
    if isinstance(error, FileNotFoundError):
        return LogError("expected a file; there is none of this name. Check the path.", path=name)
    if isinstance(error, IsADirectoryError):
        return LogError("expected a file; got a directory. Name one file in it.", path=name)
    if isinstance(error, PermissionError):
        return LogError("expected a file that you may read; permission was denied. Check its mode.", path=name)
    reason = error.strerror or str(error)
    return LogError(f"expected a readable file; got an error of the system: {reason}. Check the path.", path=name)
