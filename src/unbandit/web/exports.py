"""Tables to take home, in the formats that people's programs open."""

from __future__ import annotations

import io
from collections.abc import Callable

import polars as pl

from unbandit.web.model import Download

__all__ = ["harmless", "tables"]

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What makes a spreadsheet take a cell for a formula."""


def harmless(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before every text (and column name) that a spreadsheet would run as a formula; numbers stay.

    Examples
    --------
    >>> harmless(pl.DataFrame({"arm": ["A", "-1", "=1+1", "@SUM(A1)"], "gap": [0.0, -1.0, 0.5, 1.0]}))["arm"].to_list()
    ['A', '-1', "'=1+1", "'@SUM(A1)"]
    """

    def quoted(name: str) -> pl.Expr:
        cell = pl.col(name)
        strange = pl.any_horizontal(cell.str.starts_with(mark) for mark in _BEGINNINGS)
        number = cell.cast(pl.Float64, strict=False).is_not_null()
        return pl.when(strange & ~number).then("'" + cell).otherwise(cell).alias(name)

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    renamed = {name: "'" + name for name in frame.columns if name.startswith(_BEGINNINGS)}
    return frame.with_columns([quoted(name) for name in texts]).rename(renamed)


def tables(frame: pl.DataFrame, name: str, label: str) -> tuple[Download, ...]:
    """Return a table as CSV, for spreadsheets, and as Parquet, for programs."""
    return (
        Download(f"{name}.csv", f"{label} (CSV)", "text/csv; charset=utf-8", _bytes(harmless(frame).write_csv)),
        Download(
            f"{name}.parquet", f"{label} (Parquet)", "application/vnd.apache.parquet", _bytes(frame.write_parquet)
        ),
    )


def _bytes(write: Callable[[io.BytesIO], object]) -> bytes:
    held = io.BytesIO()
    write(held)
    return held.getvalue()
