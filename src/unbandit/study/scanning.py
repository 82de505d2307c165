"""Read all parts of a folder lazily, wherever it is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from unbandit.study.folder import PARTS, Folder

__all__ = ["scanned"]


def scanned(place: Folder) -> pl.LazyFrame:
    """Return the rows of all parts, to be read as far as they are needed.

    Of a folder of this machine polars reads the files itself; from elsewhere they come one after the other.
    """
    if isinstance(place.path, Path):
        return pl.scan_parquet(place.path / PARTS, glob=False)
    names = [str(place.part(number)) for number in range(len(place.study.tasks))]

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, batch: int | None
    ) -> Iterator[pl.DataFrame]:
        left = most
        for name in names:
            rows = pl.read_parquet(io.BytesIO(place.storage.read(name)), columns=columns, n_rows=left)
            if left is not None:
                left -= rows.height
            yield rows if predicate is None else rows.filter(predicate)
            if left == 0:
                return

    return register_io_source(source, schema=pl.read_parquet_schema(io.BytesIO(place.storage.read(names[0]))))
