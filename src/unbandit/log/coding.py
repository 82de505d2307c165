"""Turn a column of labels into small integers, one for each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.log.labels import label_of

__all__ = ["Coded", "Codes", "code_integers", "code_labels", "first_appearances", "recoded", "smallest_type"]

Codes = NDArray[np.integer[Any]]

# Below this many rows, importing the compiled loop of `views` costs more than it saves.
MANY_ROWS = 1_000_000
# Up to this span of values, a table with one slot a value is cheaper than sorting.
_SMALL_SPAN = 1 << 20
_BLOCK = 1 << 16


class Coded(NamedTuple):
    """A column as codes: `labels[codes[row]]` is the text of a row; no label stands there twice."""

    labels: list[str]
    codes: Codes


def smallest_type(count: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest type that holds the codes of `count` labels.

    Examples
    --------
    >>> smallest_type(256), smallest_type(257)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.dtype(np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32)


def code_labels(column: pl.Series) -> Coded | None:
    """Code a column without missing values; None for a type that cannot be a label.

    Examples
    --------
    >>> coded = code_labels(pl.Series(["b", "a ", "b"]))
    >>> coded.labels, coded.codes.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    if column.dtype.is_integer():
        return code_integers(column.to_numpy())
    if column.dtype.is_float() or column.dtype.is_decimal():
        return _code_floats(column.cast(pl.Float64))
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary, pl.Null):
        return None
    return _merged(_code_text(column if column.dtype in (pl.Categorical, pl.Enum) else column.cast(pl.String)))


def code_integers(values: Codes) -> Coded:
    """Code integers, smallest first. The array itself is the answer when it holds each of 0 to K - 1.

    Examples
    --------
    >>> actions = np.array([1, 0, 2, 1], dtype=np.int32)
    >>> code_integers(actions).codes is actions
    True
    >>> code_integers(np.array([10, 30, 10])).labels
    ['10', '30']
    """
    low, high = 0 if values.dtype == np.uint8 else int(values.min()), int(values.max())
    if high - low >= _SMALL_SPAN or high >= 1 << 63:
        distinct, places = np.unique(values, return_inverse=True)
        return Coded([str(value) for value in distinct.tolist()], places.astype(smallest_type(distinct.size)))
    present = _present(values, low, high)
    low += int(present.argmax())
    present = present[present.argmax() :]
    labels = [str(low + at) for at in np.flatnonzero(present).tolist()]
    if low == 0 and len(labels) == high + 1:
        return Coded(labels, values)
    return Coded(labels, recoded(values, np.cumsum(present) - 1, low))


def recoded(codes: Codes, table: Sequence[int] | NDArray[np.int64], low: int = 0) -> Codes:
    """Replace each code by `table[code - low]`, in the smallest type that holds the entries.

    Examples
    --------
    >>> recoded(np.array([0, 1, 1]), [5, 7])
    array([5, 7, 7], dtype=uint8)
    """
    entries = np.asarray(table).astype(smallest_type(int(np.max(table)) + 1))
    result: Codes = np.zeros_like(codes, dtype=entries.dtype)
    for at in range(0, codes.size, _BLOCK):  # in blocks, since an index is widened to eight bytes an entry
        index = codes[at : at + _BLOCK].astype(np.int64)
        if low:
            index -= low
        np.take(entries, index, out=result[at : at + _BLOCK], mode="clip")
    return result


def first_appearances(codes: Codes, count: int) -> list[int]:
    """Return the codes 0 to `count` - 1, all present, in the order in which they first appear.

    Examples
    --------
    >>> first_appearances(np.array([2, 2, 0, 1]), 3)
    [2, 0, 1]
    """
    distinct, first = np.unique(codes[:_BLOCK], return_index=True)
    if distinct.size < count:  # rarely: look at the whole column, without the repeats that follow one another
        changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        turns = codes[np.concatenate(([0], changes))]
        return pl.Series(turns).unique(maintain_order=True).to_list()
    return [int(code) for code in distinct[np.argsort(first)]]


def _present(values: Codes, low: int, high: int) -> NDArray[np.bool_]:
    """Mark which of low to high occur, and stop reading once all have."""
    present = np.zeros(high - low + 1, np.bool_)
    for at in range(0, values.size, _BLOCK):
        present[values[at : at + _BLOCK].astype(np.int64) - low] = True
        if present.all():
            break
    return present


def _code_floats(column: pl.Series) -> Coded:
    values = column.to_numpy()
    whole = values.astype(np.int64) if np.abs(values).max() < 1 << 53 else None
    if whole is not None and (whole == values).all():
        return code_integers(whole)
    distinct, places = np.unique(values, return_inverse=True)
    return _merged(Coded([label_of(value) for value in distinct.tolist()], places))


def _code_text(column: pl.Series) -> Coded:
    if column.dtype == pl.String and len(column) >= MANY_ROWS:
        from unbandit.log.views import code_views  # brings the compiler, which takes a third of a second

        coded = code_views(column)
        if coded is not None:
            return coded
    labels = column.unique(maintain_order=True).cast(pl.String)
    codes = column.cast(pl.String).cast(pl.Enum(labels)).to_physical().to_numpy()
    return Coded(labels.to_list(), codes.astype(smallest_type(len(labels)), copy=False))


def _merged(coded: Coded) -> Coded:
    """Strip the blanks around labels, and give those that then agree the same code."""
    stripped = [label.strip() for label in coded.labels]
    if stripped == coded.labels:
        return coded
    places = {label: at for at, label in enumerate(dict.fromkeys(stripped))}
    return Coded(list(places), recoded(coded.codes, [places[label] for label in stripped]))
