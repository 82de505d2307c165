"""Tables and values in memory: dataframes of any library, arrays and lists, as polars series."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import polars as pl

from unbandit.errors import LogError, ParameterError, first_line
from unbandit.log.labels import checked_label
from unbandit.log.sources import Batch, Source


class FrameSource(Source):
    """A dataframe of any library (pandas, polars, pyarrow, lazy ones too), through narwhals."""

    empty = ("expected one row per choice; got a table without rows.", "Check how it was made.")

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        try:
            self._frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
            self._keys = list(self._frame.collect_schema().names())
        except nw.exceptions.DuplicateError:
            # The names alone are enough to say which column is there twice.
            self._keys = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
        except TypeError as error:
            text = f"expected a dataframe (pandas, polars, pyarrow ...); got {type(frame).__name__}."
            remedy = "Give a sequence of choices to ActionLog.from_actions."
            raise ParameterError(text, parameter="frame", remedy=remedy) from error
        except Exception as error:  # whatever engine is behind a lazy frame
            raise self._failed(error) from error
        self.names = [str(key) for key in self._keys]

    def _tables(self, names: list[str], rows: int) -> Iterator[Batch]:
        import narwhals as nw

        keys = [self._keys[self.names.index(name)] for name in names]
        try:
            chosen = self._frame.select(*map(nw.col, keys))
            frame = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
        except Exception as error:  # a lazy frame fails only now, in whatever way its engine does
            raise self._failed(error) from error
        columns = {}
        for name, column in zip(names, frame.iter_columns(), strict=True):
            try:
                columns[name] = series_of(column.to_native())
            except LogError as error:
                raise error.at(column=name) from error
        yield Batch(columns)

    def _failed(self, error: Exception) -> LogError:
        text = f"expected a table; its engine gave an error ({first_line(error)})."
        return self.refuse(text, remedy="Collect it first.")


def series_of(values: Any) -> pl.Series:
    """Return a column of any library, an array or a list as a polars series.

    A column of mixed objects has no type there: its labels are written as text one by one.
    """
    if isinstance(values, pl.Series):
        return _without_wide_integers(values)
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind == "m" and hasattr(values, "astype"):  # polars knows few units
        values = values.astype("m8[ns]")
    if hasattr(values, "__arrow_c_stream__"):
        try:
            series = pl.Series("", values)
            if not isinstance(series.dtype, pl.BaseExtension):  # pandas' periods and the like
                return _without_wide_integers(series)
        except Exception:  # pyarrow absent, or a column of mixed objects: take the values one by one
            pass
        values = values.to_list()
    elif hasattr(values, "tolist") and kind == "O":
        values = values.tolist()
    try:
        is_plain = not _has_wild_decimals(values)
        series = pl.Series("", values, strict=True, nan_to_null=False) if is_plain else pl.Series([], dtype=pl.Object)
    except Exception:  # labels of several types, or objects whose own methods fail
        series = pl.Series([], dtype=pl.Object)
    if series.dtype == pl.Object:
        labels = [None if is_missing(value) else checked_label(value, row=at) for at, value in enumerate(values, 1)]
        return pl.Series("", labels, dtype=pl.String)
    return _without_wide_integers(series)


def _has_wild_decimals(values: Any) -> bool:
    """Return whether there are Decimals that are not finite, at which polars panics."""
    if not any(issubclass(kind, Decimal) for kind in set(map(type, values))):
        return False
    return not all(value.is_finite() for value in values if isinstance(value, Decimal))


def _without_wide_integers(series: pl.Series) -> pl.Series:
    """Return integers of 128 bits, which NumPy has not, as the usual ones, or as text where they are too large."""
    if series.dtype not in (pl.Int128, pl.UInt128):
        return series
    usual = series.cast(pl.Int64, strict=False)
    return usual if usual.null_count() == series.null_count() else series.cast(pl.String)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN or the like, which do not equal themselves or cannot be compared."""
    try:
        return value is None or not bool(value == value)
    except (TypeError, ValueError, ArithmeticError):  # pandas' missing value, and the NaN that signals
        return True
    except Exception:  # whatever an object's own method raises
        return False


def is_frame(value: object) -> bool:
    """Return whether a value is a dataframe, eager or lazy, and not a sequence."""
    import narwhals as nw

    return isinstance(nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame)
