"""Labels of arms and demonstrations: as text, and as codes that are assigned batch by batch."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeVar, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import LogError, ParameterError, UnbanditError, first_line, option

Codes = NDArray[np.integer[Any]]
Integers = NDArray[np.int64]
Refuse = Callable[..., LogError]
"""Makes an error that names a place, given its text and data: `Batch.refuse`, `Source.refuse`, or `LogError` itself."""

MOST_SPAN = 1 << 24
"""Integers up to this far apart are looked up in a table with one entry per value; others are coded as text."""

MOST_TEXTS = 1 << 14
"""Up to this many texts are kept from batch to batch in the form in which they are looked up fastest."""

FEW_ROWS = 1 << 10  # up to this many rows are looked up one by one
MOST_IN_TUPLE = 1_000  # up to this many members are kept in a plain tuple

Member = TypeVar("Member", covariant=True)

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_HOLES = frozenset(("na", "n/a", "<na>", "null"))  # what statistics programs write
_MISSING_WORDS = _HOLES | {"none", "nil", "missing", "."}  # could be the name of an arm
_EXPECTED = {"arm": "an arm", "demonstration": "the name of a demonstration", "round": "a round", "pulls": "a count"}


def label_of(value: object) -> str:
    """Write a label as text: whole floats without a point, truth values in lower case, no surrounding blanks."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value).strip()


def checked_label(value: object, refuse: Callable[..., UnbanditError] = LogError, **data: Any) -> str:
    """Write a label as text; refuse what has none, with `data` about its place."""
    has_no_text = type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__
    reason = "it has no text" if has_no_text else ""
    try:
        label = "" if has_no_text else label_of(value)
        label.encode()
    except UnicodeEncodeError:
        reason = "with half of a surrogate pair, which no text can hold"
    except Exception as error:  # whatever an object's own methods raise
        reason = first_line(error)
    if reason:
        text = f"expected names or numbers; got a value of type {type(value).__name__} ({reason})."
        raise refuse(text, remedy="Convert it to text first.", **data)
    return label


def is_same_label(one: str, other: str) -> bool:
    """Return whether two labels are the same up to how a number or a truth value is written."""
    if is_number(one) and is_number(other):
        return Decimal(one) == Decimal(other)
    return one.strip().casefold() == other.strip().casefold()


def is_number(label: str) -> bool:
    """Return whether a label is a number as people write them."""
    return _NUMBER.fullmatch(label) is not None


def is_missing_word(label: str) -> bool:
    """Return whether a label is what programs write for a missing value; it may be the name of an arm all the same."""
    return label.lower() in _MISSING_WORDS


def are_blank(column: pl.Series) -> pl.Series:
    """Return which cells hold nothing: no value, no number, or text without a letter."""
    if column.dtype == pl.String:
        return (column.str.strip_chars() == "").fill_null(True)
    return ~column.is_finite().fill_null(False) if column.dtype.is_float() else column.is_null()


def is_never_a_label(label: str) -> bool:
    """Return whether a label is blank, not finite, or what statistics programs write for a missing value."""
    return not label or _NOT_FINITE.fullmatch(label) is not None or label.lower() in _HOLES


def listed(labels: Sequence[str]) -> str:
    """Join labels; of many, the first ones and the last."""
    return ", ".join(_shortened(labels))


def _shortened(labels: Sequence[str], limit: int = 12) -> list[str]:
    return list(labels) if len(labels) <= limit else [*labels[: limit - 1], "...", labels[-1]]


def given_arms(arms: Iterable[object]) -> tuple[str, ...]:
    """Return the arms that a user lists, as text; refuse fewer than two, blanks and repeats."""
    if not checks.is_list(arms):
        text = f"expected a list of labels; got {type(arms).__name__}."
        raise ParameterError(text, parameter="arms", value=arms, remedy="List every arm there was.")
    given = tuple(arms)
    texts = [arm for arm in given if type(arm) is str]
    if len(texts) == len(given) and "".join(texts).isascii():  # as simulations name them, perhaps thousands
        labels = tuple(map(str.strip, texts))
    else:
        labels = tuple([checked_label(arm, ParameterError, parameter="arms") for arm in given])
    if len(labels) < 2:
        text = f"expected two labels or more; got {len(labels)}."
        raise ParameterError(text, parameter="arms", remedy="List every arm there was.")
    if "" in labels:
        text = f"expected a label at position {labels.index('') + 1}; got a blank."
        raise ParameterError(text, parameter="arms", remedy="Remove it or name it.")
    if len(set(labels)) < len(labels):
        twice = next(label for label, count in Counter(labels).items() if count > 1)
        text = f'expected different labels; got "{twice}" twice.'
        raise ParameterError(text, parameter="arms", remedy="List it once.")
    return labels


def smallest_type(count: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest type that holds `count` codes."""
    return np.dtype(np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32)


def run_starts(values: NDArray[Any]) -> Integers:
    """Return the rows in which another value begins, the first too, and the end."""
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1, [values.size]))


def first_rows(codes: Codes, least: int = 0) -> Integers:
    """Return the row in which each code from `least` on first appears, in the order of rows."""
    turns = run_starts(codes)[:-1]  # few, where labels come in runs
    turns = turns[codes[turns] >= least]
    return turns[np.sort(np.unique(codes[turns], return_index=True)[1])]


class LabelCoder:
    """Labels met so far, each with its code; labels that agree in their `canonical` spelling share one.

    Integers are looked up in a table with one entry per value. Text, once per run of equal rows where runs are long, is
    cast to an enumeration of the texts met so far; if some are new, the rows are first searched for them. New texts get
    codes in the order in which they appear, new integers by value, or `by_appearance`.
    """

    def __init__(self, canonical: Callable[[str], str] | None = None, *, by_appearance: bool = False) -> None:
        self._canonical, self._by_appearance = canonical, by_appearance
        self.labels: list[str] = []
        self._index: dict[str, int] | None = None  # labels to codes; made when a label may already have a code
        self._low, self._of_integers = 0, np.empty(0, np.int32)  # the code of each integer from `low` on, -1 for none
        self._identity = 0  # integers below this are their own codes
        self._texts, self._of_texts = pl.Enum([]), np.empty(0, np.int64)  # texts, and their codes

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, label: str) -> int:
        """Return the code of a label, a new one if necessary."""
        if self._index is None:
            self._index = {known: code for code, known in enumerate(self.labels)}
        label = label.strip() if self._canonical is None else self._canonical(label.strip())
        code = self._index.setdefault(label, len(self.labels))
        if code == len(self.labels):
            self.labels.append(label)
        return code

    def forget(self, count: int) -> None:
        """Keep the first `count` labels only."""
        del self.labels[count:]
        self._index, self._identity = None, 0
        self._of_integers[self._of_integers >= count] = -1
        self._texts, self._of_texts = pl.Enum([]), self._of_texts[:0]

    def code(self, column: pl.Series) -> Codes:
        """Code the next rows of a column without missing values, of a type that can be a label."""
        if column.dtype.is_float() or column.dtype.is_decimal():
            column = _without_floats(column.cast(pl.Float64))
        codes = self._code_integers(column.to_numpy()) if column.dtype.is_integer() else None
        if codes is None:
            codes = self._code_text(column if column.dtype == pl.String else column.cast(pl.String))
        return codes.astype(smallest_type(len(self)), copy=False)

    def _code_text(self, column: pl.Series) -> Codes:
        if len(column) <= FEW_ROWS:
            return np.array([self.add(text) for text in column.to_list()])
        sample = column[len(column) // 2 :][:FEW_ROWS]
        if np.count_nonzero(sample[1:] != sample[:-1]) < len(sample) / 8:  # looked up once per run: about twice as fast
            lengths, first = column.rle().struct.unnest()
            return np.repeat(self.code(first), lengths.to_numpy())
        known = column.cast(self._texts, strict=False)
        if known.null_count():
            new = column.filter(known.is_null()).unique(maintain_order=True)
            if self._of_texts.size + len(new) > MOST_TEXTS:  # hardly any come again: those of these rows are enough
                self._texts, self._of_texts = pl.Enum([]), self._of_texts[:0]
                new = column.unique(maintain_order=True)
            self._texts = pl.Enum(pl.concat([self._texts.categories, new]))
            self._of_texts = np.append(self._of_texts, [self.add(text) for text in new.to_list()])
            known = column.cast(self._texts)
        places = known.to_physical().to_numpy()
        is_identity = self._of_texts.size == len(self) and bool((self._of_texts == np.arange(len(self))).all())
        return places if is_identity else self._of_texts[places]

    def _code_integers(self, values: Codes) -> Codes | None:
        """Look integers up; return None if they are too far apart for a table."""
        low, high = int(values.min()), int(values.max())
        if low >= 0 and high < self._identity:
            return values
        if not self._reach(low, high):
            return None
        places = values.astype(np.int64) - self._low
        codes = self._of_integers[places]
        if codes.min() < 0:
            fresh = values[codes < 0]
            distinct, first = np.unique(fresh, return_index=True)
            new: Integers = (fresh[np.sort(first)] if self._by_appearance else distinct).astype(np.int64)
            self._of_integers[new - self._low] = added = self._add_integers(new)
            following = np.arange(self._identity, self._identity + new.size)
            if np.array_equal(new, following) and np.array_equal(added, following):
                self._identity += new.size
            codes = self._of_integers[places]
        return codes

    def _add_integers(self, values: Integers) -> Sequence[int]:
        if self._canonical is None and self._index is None:
            before = len(self.labels)
            self.labels += map(str, values.tolist())
            return range(before, len(self.labels))
        return [self.add(str(value)) for value in values.tolist()]

    def _reach(self, low: int, high: int) -> bool:
        """Make room for integers from `low` to `high`; return False if they are too far apart."""
        begin, end = (self._low, self._low + self._of_integers.size) if self._of_integers.size else (low, low)
        if begin <= low and high < end:
            return True
        bottom, top = min(low, begin), max(high + 1, end)
        if top - bottom > MOST_SPAN or abs(low) >= 1 << 62 or abs(high) >= 1 << 62:
            return False
        codes = np.full(min(2 * (top - bottom), MOST_SPAN), -1, np.int32)
        codes[begin - bottom : end - bottom] = self._of_integers
        self._low, self._of_integers = bottom, codes
        return True


def _without_floats(column: pl.Series) -> pl.Series:
    """Return whole numbers as integers, else labels as text."""
    values = column.to_numpy()
    if np.abs(values).max() < 1 << 53 and ((whole := values.astype(np.int64)) == values).all():
        return pl.Series(whole)
    distinct, places = np.unique(values, return_inverse=True)
    return pl.Series([label_of(value) for value in distinct.tolist()]).gather(places)


class LabelColumn:
    """Column of labels that is coded batch by batch; cells that are no labels are refused.

    Its role is `arm` or `demonstration`. Where the user listed the labels, no others are accepted, however odd these
    look. `remedy` says what to do about a cell without a value.
    """

    def __init__(self, role: str, arms: Iterable[object] | None = None, remedy: str | None = None) -> None:
        self.name, self._role = role, role
        self._remedy = missing_remedy(role) if remedy is None else remedy
        self.expected = None if arms is None else given_arms(arms)
        known = frozenset(self.expected or ())
        canonical = None if arms is None else lambda label: label if label in known else _without_point(label)
        self.coder = LabelCoder(canonical, by_appearance=role == "demonstration")
        for label in self.expected or ():
            self.coder.add(label)
        self._doubtful: dict[str, LogError] = {}  # labels that may stand for nothing, in the order of rows

    def code(self, refuse: Refuse, column: pl.Series, rows: Integers | None = None) -> Codes:
        """Code cells of a batch; `rows` are the rows they are in, by default all."""
        _refuse_beyond_calendar(refuse, column, self.name, rows)
        refuse_missing(refuse, column, self.name, self._role, rows, self._remedy)
        before = len(self.coder)
        codes = self.coder.code(column)
        new = self.coder.labels[before:] if self.expected is not None or not column.dtype.is_integer() else []
        if new and (self.expected is not None or any(map(_is_doubtful, new))):
            at = first_rows(codes, before)
            places = ((at if rows is None else rows[at]) + 1).tolist()
            labels = [label_of(value) for value in column.gather(at).to_list()]
            counts = [int(np.count_nonzero(codes == code)) if is_never_a_label(label) else 1
                      for label, code in zip(labels, codes[at].tolist(), strict=True)]  # fmt: skip
            self._check_new(refuse, labels, places, [_first_of(count, codes.size) for count in counts])
        return codes

    def blank_cells(self, column: pl.Series) -> NDArray[np.bool_]:
        """Return which cells hold no label: blank, not finite, or what statistics programs write for a missing value.

        A label that the user listed is one.
        """
        blank = column.is_null()
        if column.dtype.is_float():
            blank |= ~column.is_finite().fill_null(False)
        elif not column.dtype.is_numeric() and not column.dtype.is_nested():
            texts = column.cast(pl.String, strict=False)
            known = frozenset(self.expected or ())
            holes = [each for each in texts.unique().drop_nulls().to_list()
                     if is_never_a_label(each.strip()) and each.strip() not in known]  # fmt: skip
            blank |= texts.is_in(holes).fill_null(False)
        return blank.to_numpy()

    def forget(self, count: int) -> None:
        """Keep the first `count` labels only."""
        self.coder.forget(count)
        self._doubtful = {label: error for label, error in self._doubtful.items() if label in self.coder.labels}

    def check(self) -> None:
        """Refuse labels that stand for nothing; a word such as "none" is one if all other labels are numbers."""
        if not self._doubtful:
            return
        others = [label for label in self.coder.labels if not _is_doubtful(label)]
        only_numbers = bool(others) and all(map(is_number, others))
        for label, error in self._doubtful.items():
            if only_numbers or is_never_a_label(label):
                raise error

    def _check_new(self, refuse: Refuse, labels: list[str], places: list[int], among: list[str]) -> None:
        """Refuse, among new labels in some rows, those that are none or were not listed; `among` says of how many."""
        for label, row, others in zip(labels, places, among, strict=True):
            if _is_doubtful(label):
                cell = f'"{label}", which is no name for one' if label else "a blank cell"
                remedy = self._remedy
                if label and self._role == "arm":
                    remedy += f' If "{label}" is an arm, list it with {option("arms")}.'
                text = f"expected {_EXPECTED[self._role]}; got {cell}{others}."
                self._doubtful[label] = refuse(text, row=row, column=self.name, value=label, remedy=remedy)
        if any(map(is_never_a_label, labels)):
            self.check()
        if self.expected is not None:
            text = f'expected an arm among {listed(self.expected)}; got "{labels[0]}".'
            remedy = f"Add it with {option('arms', _shortened([*self.expected, labels[0]]))}."
            raise refuse(text, row=places[0], column=self.name, value=labels[0], remedy=remedy)


def _is_doubtful(label: str) -> bool:
    return is_never_a_label(label) or is_missing_word(label)


def _without_point(label: str) -> str:
    """Write a whole number as one: "3.0" as "3"."""
    return label_of(float(label)) if is_number(label) and label.rstrip("0").endswith(".") else label


def _refuse_beyond_calendar(refuse: Refuse, column: pl.Series, name: str, rows: Integers | None) -> None:
    """Refuse times outside of the years 1 to 9999, which Python does not have and polars cannot always write."""
    kind = column.dtype
    if kind == pl.Date:
        days = column.to_physical()
    elif isinstance(kind, pl.Datetime) and kind.time_unit != "ns":  # those end in the year 2262
        days = column.to_physical() // (86_400_000 if kind.time_unit == "ms" else 86_400_000_000)
    else:
        return
    outside = ((days <= -719_162) | (days >= 2_932_896)).fill_null(False).arg_true()
    if len(outside):
        row = int(outside[0]) if rows is None else int(rows[outside[0]])
        text = "expected a date in the years 1 to 9999; got one outside of them."
        raise refuse(text, row=row + 1, column=name, remedy="Correct it, or write the dates as text.")


def missing_remedy(role: str, repair: str = "Fill it in") -> str:
    """Say what to do about a cell without a value, and what becomes of the log without its row."""
    if role == "round":
        return (
            f"{repair}. If rows are complete and in order, ignore the column with {option('columns', {'round': ''})}."
        )
    if role != "arm":
        return f"{repair} or remove the row."
    return f"{repair}. If a choice was made but is not known, {_NUMBERED}. If nobody chose, remove the row."


_NUMBERED = 'remove the row and keep a column "round" with the numbers of the others: the log then misses a round'


def blank_choice_remedy(*, whole: bool, scanned: bool = False) -> str:
    """Say what to do about a row without a choice: the log must be `whole` or may miss rounds, or is `scanned`."""
    leave_out = "read the log whole (in Python with `ActionLog.read`) and " if scanned else ""
    skipped = (
        f"If nobody chose in such a round, so that nothing was learnt in it, {leave_out}leave these rows out with "
        f"{option('blank', 'skip')}. If a choice was made but is not known, "
    )
    if whole:
        return f"Fill it in. {skipped}{_NUMBERED}, as `unbandit estimate` and `unbandit report` can read it."
    return f"Fill it in. {skipped}{_NUMBERED}, and {option('kept')} says how probably a round was kept."


def _first_of(count: int, rows: int) -> str:
    """Say that a cell is the first of several of its kind."""
    return f", the first of {count:,} in {rows:,} rows" if count > 1 else ""


def refuse_missing(
    refuse: Refuse, column: pl.Series, name: str, role: str, rows: Integers | None = None, remedy: str | None = None
) -> None:
    """Refuse a cell without a value, a number that is not finite, and a column of labels that cannot be any."""
    kind = column.dtype
    if role in ("arm", "demonstration") and (kind.is_nested() or kind in (pl.Object, pl.Binary, pl.Null, pl.Duration)):
        text = f"expected names or numbers for {role}; got a column of type {kind}."
        raise refuse(text, column=name, remedy="Convert it to text first.")
    if column.null_count():
        missing = column.is_null()
    elif column.dtype.is_float() and not column.is_finite().all():
        missing = ~column.is_finite()
    else:
        return
    at = missing.arg_max()
    assert at is not None
    value, row = column[at], (at if rows is None else int(rows[at])) + 1
    text = f"expected {_EXPECTED[role]}; got {'a blank cell' if value is None else value}"
    text += f"{_first_of(int(missing.sum()), len(column)) if rows is None else ''}."
    raise refuse(text, row=row, column=name, value=value, remedy=remedy or missing_remedy(role))


class LazySequence(Sequence[Member]):
    """Sequence that behaves like the tuple of its members, which are made on access: a million cost no memory."""

    @abstractmethod
    def _member(self, at: int) -> Member:
        """Return the member at a position."""

    @overload
    def __getitem__(self, at: int) -> Member: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Member, ...]: ...
    def __getitem__(self, at: int | slice) -> Member | tuple[Member, ...]:
        places = range(len(self))[at]
        return self._member(places) if isinstance(places, int) else tuple(map(self._member, places))

    def __iter__(self) -> Iterator[Member]:
        return map(self._member, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LazySequence | tuple):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        if len(self) <= MOST_IN_TUPLE:
            return repr(tuple(self))
        first = ", ".join(map(repr, self[:3]))
        return f"<{len(self):,} members: {first}, ..., {self[-1]!r}>"


class Numbered(LazySequence[str]):
    """Names of demonstrations that have none: "1", "2", ..."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def _member(self, at: int) -> str:
        return str(at + 1)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or not (name.isascii() and name.isdecimal()):
            return False
        return name[0] != "0" and int(name) <= self._count

    def index(self, name: Any, start: int = 0, stop: int | None = None) -> int:
        """Return the position of a name."""
        if name in self and int(name) - 1 in range(self._count)[start:stop]:
            return int(name) - 1
        raise ValueError(f"{name!r} is not in the sequence")

    def __eq__(self, other: object) -> bool:
        return self._count == other._count if isinstance(other, Numbered) else super().__eq__(other)

    __hash__ = LazySequence.__hash__


def numbered(count: int) -> Sequence[str]:
    """Return the names of demonstrations that have none: "1", "2", ..."""
    return tuple(map(str, range(1, count + 1))) if count <= MOST_IN_TUPLE else Numbered(count)
