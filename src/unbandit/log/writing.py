"""Write a table to a file whose name says the format; whole, or not at all."""

import gzip
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, cast

import polars as pl

from unbandit.errors import ParameterError, first_line
from unbandit.files import written_whole

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".parquet": "", ".csv.gz": ",", ".tsv.gz": "\t"}


def _ending(path: str | os.PathLike[str]) -> str | None:
    name = Path(path).name.lower()
    return next((ending for ending in _SEPARATORS if name.endswith(ending)), None)


def check_name(path: str | os.PathLike[str], also: Sequence[str] = (), parameter: str = "path") -> None:
    """Refuse a file name of no known format, before any work is done; `also` are formats that others write.

    Examples
    --------
    >>> check_name("log.xlsx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: path: expected a name that ends in .csv, ...; got "log.xlsx".
    """
    name = os.fspath(path)
    if _ending(path) is None:
        text = f'expected a name that ends in {", ".join((*_SEPARATORS, *also))}; got "{name}".'
        raise ParameterError(text, parameter=parameter, value=name)


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
    ending, frame = _ending(path) or "", make()
    with written_whole(path) as temporary, temporary.open("wb") as file:
        try:
            if ending == ".parquet":
                frame.write_parquet(file)
            elif ending.endswith(".gz"):
                # Without name and time inside, equal tables give equal files.
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                    frame.write_csv(cast(IO[bytes], packed), separator=_SEPARATORS[ending])
            else:
                frame.write_csv(file, separator=_SEPARATORS[ending])
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            # The only thing that can fail here is the disk, whatever polars calls it.
            raise OSError(first_line(error)) from error
