"""Write a table to a file whose name says the format; whole, or not at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

import polars as pl

from unbandit.errors import ParameterError
from unbandit.files import written_whole

__all__ = ["check_name", "write_table"]


def _write_text(frame: pl.DataFrame, path: Path, separator: str) -> None:
    with path.open("wb") as file:
        frame.write_csv(file, separator=separator)


def _write_packed(frame: pl.DataFrame, path: Path, separator: str) -> None:
    # Without name and time inside, equal tables give equal files.
    with path.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        frame.write_csv(cast(IO[bytes], packed), separator=separator)


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    with path.open("wb") as file:
        frame.write_parquet(file)


_WRITERS: Mapping[str, Callable[[pl.DataFrame, Path], None]] = {
    ".csv": lambda frame, path: _write_text(frame, path, ","),
    ".tsv": lambda frame, path: _write_text(frame, path, "\t"),
    ".parquet": _write_parquet,
    ".csv.gz": lambda frame, path: _write_packed(frame, path, ","),
    ".tsv.gz": lambda frame, path: _write_packed(frame, path, "\t"),
}


def check_name(path: str | os.PathLike[str], also: Sequence[str] = (), parameter: str = "path") -> None:
    """Refuse a file name of no known format, before any work is done; `also` are formats that others write.

    Examples
    --------
    >>> check_name("log.parquet")
    >>> check_name("log.xlsx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: path: expected a name that ends in .csv, ...; got "log.xlsx".
    """
    if _writer(path) is None:
        raise ParameterError(
            f'expected a name that ends in {", ".join((*_WRITERS, *also))}; got "{os.fspath(path)}".',
            parameter=parameter,
            value=os.fspath(path),
        )


def _writer(path: str | os.PathLike[str]) -> Callable[[pl.DataFrame, Path], None] | None:
    name = Path(path).name.lower()
    return next((_WRITERS[suffix] for suffix in _WRITERS if name.endswith(suffix)), None)


def write_table(make: Callable[[], pl.DataFrame], path: str | os.PathLike[str]) -> None:
    """Write the table that `make` gives, which is not made for a name of no known format.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pulls.tsv"
    >>> write_table(lambda: pl.DataFrame({"arm": ["A"], "pulls": [3]}), path)
    >>> path.read_text()
    'arm\\tpulls\\nA\\t3\\n'
    """
    check_name(path)
    write, frame = _writer(path), make()
    assert write is not None
    with written_whole(path) as temporary:
        try:
            write(frame, temporary)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            # The only thing that can fail here is the disk, whatever polars calls it.
            raise OSError(str(error).strip().splitlines()[0]) from error
