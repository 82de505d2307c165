"""Give labels codes as they come, piece after piece of a column."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.log.coding import Coded, Codes, code_labels
from unbandit.log.labels import natural_order

__all__ = ["Dictionary", "first_rows"]

# Up to this span of integers, a table with one slot a value is kept.
_SPAN = 1 << 24
# From so many rows on, text is coded by its views.
_MANY = 1 << 13


class Dictionary:
    """Hold the labels met so far, each with its code.

    Parameters
    ----------
    canonical
        What a label is called here; labels that then agree share a code.
    by_value
        Whether new labels of a piece, if they are all numbers, are taken by value, or as they first appear.

    Examples
    --------
    >>> arms = Dictionary()
    >>> arms.code(pl.Series(["b", "a", "b"])).tolist(), arms.code(pl.Series(["a", "c"])).tolist()
    ([0, 1, 0], [1, 2])
    """

    def __init__(self, canonical: Callable[[str], str] = str, *, by_value: bool = True) -> None:
        self._canonical, self._by_value = canonical, by_value
        self._codes: dict[str, int] = {}
        self._unnamed: list[NDArray[np.int64]] = []  # integers that have codes, and no label yet: only few ask for it
        self._low, self._table = 0, np.empty(0, np.uint32)
        self._count, self._only_integers = 0, True
        self._as_they_are = False  # whether the integers 0, 1, ... are their own codes

    @property
    def labels(self) -> list[str]:
        """Return every label, in the order of the codes."""
        return [*self._codes, *itertools.chain(*(map(str, integers.tolist()) for integers in self._unnamed))]

    def __len__(self) -> int:
        return self._count

    def add(self, label: str) -> int:
        """Return the code of a label, a new one if need be."""
        self._name()
        code = self._codes.setdefault(self._canonical(label), self._count)
        self._count, self._only_integers = len(self._codes), False
        return code

    def forget(self, count: int) -> None:
        """Keep the first labels only, so many of them."""
        from unbandit.kernels.recoding import UNKNOWN

        self._name()
        self._codes, self._count = dict(itertools.islice(self._codes.items(), count)), count
        self._table[self._table >= count] = UNKNOWN
        self._as_they_are = False

    def code(self, column: pl.Series) -> Codes:
        """Code the next piece of a column without missing values, of a type that can be a label."""
        codes = self._by_table(column.to_numpy()) if column.dtype.is_integer() else None
        return self._translated(_coded(column)) if codes is None else codes

    def _by_table(self, values: Codes) -> Codes | None:
        """Look integers up; None when they lie too far apart for a table."""
        from unbandit.kernels.recoding import recode

        if self._as_they_are and values.dtype.itemsize <= 2 and values.dtype.kind == "u" and values.max() < len(self):
            return values
        codes = np.empty(values.size, self._type())
        missing = recode(values, self._low, self._table, codes)
        while missing:
            new = values[codes == np.iinfo(codes.dtype).max]
            distinct, first = np.unique(new, return_index=True)
            if not self._widen(int(distinct[0]), int(distinct[-1])):
                return None
            added = (distinct if self._by_value else new[np.sort(first)]).astype(np.int64)
            self._table[added - self._low] = self._codes_of(added)
            count = len(self)
            plain = count <= 1 << 16 and self._low == 0 and self._table.size >= count
            self._as_they_are = plain and bool((self._table[:count] == np.arange(count)).all())
            codes = np.empty(values.size, self._type())
            missing = recode(values, self._low, self._table, codes)
        return codes

    def _codes_of(self, added: NDArray[np.int64]) -> Sequence[int]:
        """Give codes to integers that the table does not have."""
        if self._canonical is not str or not self._only_integers:
            return [self.add(str(value)) for value in added.tolist()]
        self._unnamed.append(added)
        self._count += added.size
        return range(self._count - added.size, self._count)

    def _name(self) -> None:
        """Give labels to integers that have none."""
        if self._unnamed:
            self._codes, self._unnamed = {label: code for code, label in enumerate(self.labels)}, []

    def _widen(self, low: int, high: int) -> bool:
        """Make room for more integers, and some more than asked for; False when there is none."""
        from unbandit.kernels.recoding import UNKNOWN

        begin, end = (self._low, self._low + self._table.size) if self._table.size else (low, low)
        if begin <= low and high < end:
            return True
        if max(high + 1, end) - min(low, begin) > _SPAN or high >= 1 << 62 or low <= -(1 << 62):
            return False
        bottom, top = min(low, begin), max(high + 1, end)
        top += min(top - bottom, 1 << 16)
        table = np.full(top - bottom, UNKNOWN, np.uint32)
        table[begin - bottom : end - bottom] = self._table
        self._low, self._table = bottom, table
        return True

    def _translated(self, coded: Coded) -> Codes:
        """Turn the codes of a piece into ours; new labels in the order in which they first appear there."""
        from unbandit.kernels.recoding import recode

        self._name()
        known, names = self._codes, coded.labels
        if self._canonical is not str:
            names = [self._canonical(name) for name in names]
        fresh = [code for code, name in enumerate(names) if name not in known]
        if len(fresh) > 1:
            rows = first_rows(coded.codes)
            place = dict(zip(coded.codes[rows].tolist(), rows.tolist(), strict=True))
            fresh.sort(key=lambda code: place.get(code, coded.codes.size))
        new = [names[code] for code in fresh]
        for name in natural_order(new) if self._by_value else new:
            known.setdefault(name, len(known))
        self._count, self._only_integers = len(known), False
        table = np.array([known[name] for name in names], np.uint32)
        codes = np.empty(coded.codes.size, self._type())
        recode(coded.codes, 0, table, codes)
        return codes

    def _type(self) -> np.dtype[np.unsignedinteger[Any]]:
        """Return the smallest type that holds every code and a number more."""
        count = len(self)
        return np.dtype(np.uint8 if count < 1 << 8 else np.uint16 if count < 1 << 16 else np.uint32)


def first_rows(codes: Codes, least: int = 0) -> NDArray[np.int64]:
    """Return the row in which each code, from `least` on, first appears, in the order of rows.

    Examples
    --------
    >>> first_rows(np.array([2, 2, 0, 1, 0])).tolist()
    [0, 2, 3]
    """
    turns = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))  # few, where labels come in runs
    turns = turns[codes[turns] >= least]
    return turns[np.sort(np.unique(codes[turns], return_index=True)[1])]


def _coded(column: pl.Series) -> Coded:
    if column.dtype == pl.String and len(column) >= _MANY:
        from unbandit.log.views import code_views

        coded = code_views(column)
        if coded is not None:
            return _stripped(coded)
    coded = code_labels(column)
    assert coded is not None
    return coded


def _stripped(coded: Coded) -> Coded:
    """Take the blanks off labels; those that then agree are told apart only by their codes, which ours are not."""
    return Coded([label.strip() for label in coded.labels], coded.codes)
