"""Labels of arms and demonstrations: as text, in order, and as codes that are assigned batch by batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice, ParameterError, option

if TYPE_CHECKING:
    from unbandit.log.sources import Batch

Codes = NDArray[np.integer[Any]]
Integers = NDArray[np.int64]

MOST_SPAN = 1 << 24
"""Integers up to this far apart are looked up in a table with one entry per value; others are coded as text."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_HOLES = frozenset(("na", "n/a", "<na>", "null"))  # what statistics programs write
_MISSING_WORDS = _HOLES | {"none", "nil", "missing", "."}  # could be the name of an arm
_EXPECTED = {"arm": "an arm", "demonstration": "the name of a demonstration", "round": "a round", "pulls": "a count"}


def label_of(value: object) -> str:
    """Write a label as text: whole floats without a point, truth values in lower case, no surrounding blanks.

    Examples
    --------
    >>> [label_of(value) for value in (3, 3.0, 0.5, True, " A ", "01")]
    ['3', '3', '0.5', 'true', 'A', '01']
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value).strip()


def is_number(label: str) -> bool:
    """Return whether a label is a number as people write them."""
    return _NUMBER.fullmatch(label) is not None


def is_missing_word(label: str) -> bool:
    """Return whether a label is what programs write for a missing value; it may be the name of an arm all the same."""
    return label.lower() in _MISSING_WORDS


def is_never_a_label(label: str) -> bool:
    """Return whether a label is blank, not finite, or what statistics programs write for a missing value."""
    return not label or _NOT_FINITE.fullmatch(label) is not None or label.lower() in _HOLES


def natural_order(labels: Iterable[str]) -> list[str]:
    """Sort labels by value if all are numbers; otherwise keep their order.

    Examples
    --------
    >>> natural_order(["10", "9", "1"]), natural_order(["b", "10", "a"])
    (['1', '9', '10'], ['b', '10', 'a'])
    """
    ordered = list(labels)
    if all(map(is_number, ordered)):
        ordered.sort(key=lambda label: (Decimal(label), label))
    return ordered


def without_point(label: str) -> str:
    """Write a whole number as one: "3.0" as "3"."""
    return label_of(float(label)) if is_number(label) and label.rstrip("0").endswith(".") else label


def case_notices(labels: Sequence[str]) -> tuple[Notice, ...]:
    """Say which arms differ in capitals alone: perhaps they are the same arm."""
    first: dict[str, str] = {}
    for label in labels:
        other = first.setdefault(label.casefold(), label)
        if other != label:
            text = f'arms "{other}" and "{label}" differ in capitals only and are read as two. '
            return (Notice("reading", f"{text}If they are the same arm, spell them alike."),)
    return ()


def listed(labels: Sequence[str], separator: str = ",", limit: int = 12) -> str:
    """Join labels; of more than `limit`, the first ones and the last.

    Examples
    --------
    >>> listed([str(number) for number in range(30)], separator=", ", limit=4)
    '0, 1, 2, ..., 29'
    """
    return separator.join(_shortened(labels, limit))


def given_arms(arms: Iterable[object]) -> tuple[str, ...]:
    """Return the arms that a user lists, as text; refuse fewer than two, blanks and repeats."""
    labels = tuple([arm.strip() if type(arm) is str else label_of(arm) for arm in arms])
    if len(labels) < 2:
        raise ParameterError(
            f"expected two labels or more; got {len(labels)}.", parameter="arms", remedy="List every arm there was."
        )
    if all(labels) and len(set(labels)) == len(labels):
        return labels
    seen: set[str] = set()
    for at, label in enumerate(labels):
        if not label:
            raise ParameterError(
                f"expected a label at position {at + 1}; got a blank.", parameter="arms", remedy="Remove it or name it."
            )
        if label in seen:
            raise ParameterError(
                f'expected different labels; got "{label}" twice.', parameter="arms", remedy="List it once."
            )
        seen.add(label)
    return labels


def smallest_type(count: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest type that holds `count` codes."""
    return np.dtype(np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32)


def first_rows(codes: Codes, least: int = 0) -> Integers:
    """Return the row in which each code from `least` on first appears, in the order of rows."""
    turns = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))  # few, where labels come in runs
    turns = turns[codes[turns] >= least]
    return turns[np.sort(np.unique(codes[turns], return_index=True)[1])]


class _Table:
    """A table from integers to codes, -1 for a value without one."""

    def __init__(self, most: int) -> None:
        self.low, self.codes, self._most = 0, np.empty(0, np.int32), most
        self.identity = 0  # values below this are their own codes

    def reach(self, low: int, high: int) -> bool:
        """Make room for values from `low` to `high`; return False if they are too far apart."""
        begin, end = (self.low, self.low + self.codes.size) if self.codes.size else (low, low)
        if begin <= low and high < end:
            return True
        bottom, top = min(low, begin), max(high + 1, end)
        if top - bottom > self._most or abs(low) >= 1 << 62 or abs(high) >= 1 << 62:
            return False
        codes = np.full(min(2 * (top - bottom), self._most), -1, np.int32)
        codes[begin - bottom : end - bottom] = self.codes
        self.low, self.codes = bottom, codes
        return True

    def look_up(self, values: Codes) -> NDArray[np.int32]:
        return self.codes[values.astype(np.int64) - self.low if self.low else values]

    def assign(self, values: Codes, codes: Sequence[int]) -> None:
        self.codes[values.astype(np.int64) - self.low] = codes
        following = np.arange(self.identity, self.identity + len(codes))
        if np.array_equal(values, following) and np.array_equal(codes, following):
            self.identity += len(codes)

    def forget(self, count: int) -> None:
        self.codes[self.codes >= count] = -1
        self.identity = 0


class LabelCoder:
    """Labels met so far, each with its code.

    Integers are looked up in a table. For text, polars numbers the labels (its categories carry over from batch to
    batch), and a second table leads from these numbers to codes.

    Parameters
    ----------
    canonical
        Maps a label to its spelling here; labels that then agree share a code.
    by_appearance
        Whether new labels get codes in the order in which they appear, or in any order.
    """

    def __init__(self, canonical: Callable[[str], str] | None = None, *, by_appearance: bool = False) -> None:
        self._canonical, self._by_appearance = canonical, by_appearance
        self.labels: list[str] = []
        self._index: dict[str, int] | None = None  # labels to codes; made when a label may already have a code
        self.categories = pl.Categories.random()
        self._keeper = pl.Series(dtype=pl.Categorical(self.categories))  # they last as long as some series has them
        self._integers, self._texts = _Table(MOST_SPAN), _Table(1 << 31)

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, label: str) -> int:
        """Return the code of a label, a new one if necessary."""
        if self._index is None:
            self._index = {known: code for code, known in enumerate(self.labels)}
        label = label.strip()
        label = label if self._canonical is None else self._canonical(label)
        code = self._index.setdefault(label, len(self.labels))
        if code == len(self.labels):
            self.labels.append(label)
        return code

    def forget(self, count: int) -> None:
        """Keep the first `count` labels only."""
        del self.labels[count:]
        self._index = None
        self._integers.forget(count)
        self._texts.forget(count)

    def code(self, column: pl.Series) -> Codes:
        """Code the next rows of a column without missing values, of a type that can be a label."""
        if column.dtype.is_float() or column.dtype.is_decimal():
            column = _without_floats(column.cast(pl.Float64))
        if column.dtype.is_integer():
            codes = self._look_up(self._integers, column.to_numpy(), column)
            if codes is not None:
                return codes
        kind = pl.Categorical(self.categories)
        texts = column if column.dtype == kind else column.cast(pl.String).cast(kind)
        codes = self._look_up(self._texts, texts.to_physical().to_numpy(), texts)
        assert codes is not None
        return codes

    def _look_up(self, table: _Table, values: Codes, column: pl.Series) -> Codes | None:
        """Return codes from a table; None if the values are too far apart for one."""
        low, high = int(values.min()), int(values.max())
        if low >= 0 and high < table.identity:
            return values.astype(smallest_type(len(self)), copy=False)
        if not table.reach(low, high):
            return None
        codes = table.look_up(values)
        if codes.min() < 0:
            fresh = np.flatnonzero(codes < 0)
            distinct, first = np.unique(values[fresh], return_index=True)
            if self._by_appearance:
                first.sort()
                distinct = values[fresh[first]]
            table.assign(distinct, self._new_codes(distinct, column.gather(fresh[first])))
            codes = table.look_up(values)
        return codes.astype(smallest_type(len(self)))

    def _new_codes(self, values: Codes, cells: pl.Series) -> Sequence[int]:
        """Return codes for values that a table does not have."""
        if cells.dtype.is_integer() and self._canonical is None and self._index is None:
            before = len(self.labels)
            self.labels += map(str, values.tolist())
            return range(before, len(self.labels))
        return [self.add(label) for label in cells.cast(pl.String).to_list()]


def _without_floats(column: pl.Series) -> pl.Series:
    """Return whole numbers as integers, else labels as text."""
    values = column.to_numpy()
    if np.abs(values).max() < 1 << 53 and ((whole := values.astype(np.int64)) == values).all():
        return pl.Series(whole)
    distinct, places = np.unique(values, return_inverse=True)
    return pl.Series([label_of(value) for value in distinct.tolist()]).gather(places)


class LabelColumn:
    """A column of labels that is coded batch by batch, and whose cells are refused where they are no labels.

    Parameters
    ----------
    role
        `arm` or `demonstration`.
    expected
        The labels that the user listed; no others are accepted, however odd these look.
    """

    def __init__(self, role: str, expected: tuple[str, ...] | None = None) -> None:
        self.name: str | None = role
        self._role, self.expected = role, expected
        known = frozenset(expected or ())
        canonical = None if expected is None else lambda label: label if label in known else without_point(label)
        self.coder = LabelCoder(canonical, by_appearance=role == "demonstration")
        for label in expected or ():
            self.coder.add(label)
        self._doubtful: dict[str, LogError] = {}  # labels that may stand for nothing, in the order of rows

    def code(self, batch: Batch, column: pl.Series, rows: Integers | None = None) -> Codes:
        """Code cells of a batch; `rows` are the rows they are in, by default all."""
        refuse_missing(batch, column, self.name, self._role, rows)
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary, pl.Null):
            raise batch.refuse(
                f"expected names or numbers for {self._role}; got a column of type {column.dtype}.",
                column=self.name,
                remedy="Convert it to text first.",
            )
        before = len(self.coder)
        codes = self.coder.code(column)
        if len(self.coder) > before and not (column.dtype.is_integer() and self.expected is None):
            self._check_new(batch, column, first_rows(codes, before), rows)
        return codes

    def forget(self, count: int) -> None:
        """Keep the first `count` labels only."""
        self.coder.forget(count)
        self._doubtful = {label: error for label, error in self._doubtful.items() if label in self.coder.labels}

    def check(self) -> None:
        """Refuse labels that stand for nothing; a word such as "none" is one if all other labels are numbers."""
        if not self._doubtful:
            return
        others = [label for label in self.coder.labels if not is_never_a_label(label) and not is_missing_word(label)]
        only_numbers = bool(others) and all(map(is_number, others))
        for label, error in self._doubtful.items():
            if only_numbers or is_never_a_label(label):
                raise error

    def _check_new(self, batch: Batch, column: pl.Series, at: Integers, rows: Integers | None) -> None:
        """Refuse, among labels that are new at some places of a column, those that are none or were not listed."""
        labels = [label_of(value) for value in column.gather(at).to_list()]
        places = ((at if rows is None else rows[at]) + 1).tolist()
        for label, row in zip(labels, places, strict=True):
            if is_never_a_label(label) or is_missing_word(label):
                self._doubtful[label] = self._no_label(batch, label, row)
        if any(map(is_never_a_label, labels)):
            self.check()
        if self.expected is not None:
            raise batch.refuse(
                f'expected an arm among {listed(self.expected, ", ")}; got "{labels[0]}".',
                row=places[0],
                column=self.name,
                value=labels[0],
                remedy=f"Add it with {arms_option([*self.expected, labels[0]])}.",
            )

    def _no_label(self, batch: Batch, label: str, row: int) -> LogError:
        cell = f'"{label}", which is no name for one' if label else "a blank cell"
        remedy = "Fill it in or remove the row, if it was no round."
        if label and self._role == "arm":
            remedy += f" If it is one, list it with {option('arms')}."
        text = f"expected {_EXPECTED[self._role]}; got {cell}."
        return batch.refuse(text, row=row, column=self.name, value=label, remedy=remedy)


def arms_option(labels: Sequence[str]) -> str:
    """Return a reference to the option that lists arms, with these labels; few of many."""
    return option("arms", _shortened(labels))


def _shortened(labels: Sequence[str], limit: int = 12) -> list[str]:
    return list(labels) if len(labels) <= limit else [*labels[: limit - 1], "...", labels[-1]]


def refuse_missing(batch: Batch, column: pl.Series, name: str | None, role: str, rows: Integers | None = None) -> None:
    """Refuse a cell without a value, and a number that is not finite."""
    if column.null_count():
        missing = column.is_null()
    elif column.dtype.is_float() and not column.is_finite().all():
        missing = ~column.is_finite()
    else:
        return
    at = missing.arg_max()
    assert at is not None
    value = column[at]
    raise batch.refuse(
        f"expected {_EXPECTED[role]}; got {'a blank cell' if value is None else value}.",
        row=(at if rows is None else int(rows[at])) + 1,
        column=name,
        value=value,
        remedy="Fill it in or remove the row.",
    )
