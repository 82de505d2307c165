"""Look at any dataframe (pandas, polars, pyarrow, lazy ones too) as a table, through narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from unbandit.errors import LogError, ParameterError
from unbandit.log.labels import label_of
from unbandit.log.table import Table

__all__ = ["FrameTable", "series_of"]


class FrameTable(Table):
    """Hold somebody's dataframe.

    Examples
    --------
    >>> FrameTable(pl.LazyFrame({"arm": ["A", "B"], "age": [30, 31]})).take([0])[0].to_list()
    ['A', 'B']
    """

    def __init__(self, frame: Any) -> None:
        self.path = None
        try:
            self._frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
            self._keys = list(self._frame.collect_schema().names())
        except nw.exceptions.DuplicateError:
            # The names alone are enough to say which column is there twice.
            self._keys = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
        except TypeError as error:
            raise ParameterError(
                f"expected a dataframe (pandas, polars, pyarrow ...); got {type(frame).__name__}. "
                "Give a sequence of choices to ActionLog.from_actions.",
                parameter="frame",
            ) from error
        except Exception as error:  # whatever engine stands behind a lazy frame
            raise self._failed(error) from error
        self.names = [str(key) for key in self._keys]

    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Collect columns and hand them over to polars."""
        try:
            chosen = self._frame.select(*(nw.col(self._keys[position]) for position in positions))
            frame = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
        except Exception as error:  # a lazy frame fails only now, in whatever way its engine does
            raise self._failed(error) from error
        if not len(frame):
            raise self.refuse("expected one row a choice; got a table without rows. Check how it was made.")
        return [series_of(column.to_native()) for column in frame.iter_columns()]

    def _failed(self, error: Exception) -> LogError:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return self.refuse(f"expected a table; its engine gave an error ({reason}). Collect it first.")


def series_of(values: Any) -> pl.Series:
    """Turn a column of any library, an array or a list into a polars series.

    A column of mixed objects has no type there: its labels are written as text one by one.

    Examples
    --------
    >>> series_of(["A", 1, None]).to_list()
    ['A', '1', None]
    """
    if isinstance(values, pl.Series):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        try:
            return pl.Series("", values)
        except Exception:  # pyarrow absent, or a column of mixed objects: take the values one by one
            values = values.to_list()
    elif hasattr(values, "tolist") and getattr(getattr(values, "dtype", None), "kind", None) == "O":
        values = values.tolist()
    try:
        series = pl.Series("", values, strict=True, nan_to_null=False)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):  # labels of several types
        series = None
    if series is None or series.dtype == pl.Object:
        return pl.Series("", [None if _is_missing(value) else label_of(value) for value in values], dtype=pl.String)
    return series


def _is_missing(value: object) -> bool:
    """Tell None, NaN and their kin: they are the values that do not equal themselves."""
    try:
        return value is None or not bool(value == value)
    except (TypeError, ValueError):
        return True


def is_frame(value: object) -> bool:
    """Tell a dataframe, eager or lazy, from a sequence.

    Examples
    --------
    >>> is_frame(pl.DataFrame({"arm": ["A"]})), is_frame(["A"])
    (True, False)
    """
    import narwhals as nw

    return isinstance(nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame)
