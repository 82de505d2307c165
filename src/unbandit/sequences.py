"""Lazy sequences: their members are made on access, where a tuple of a million would cost time and memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

MOST_IN_TUPLE = 1_000
"""Up to this many members are kept in a plain tuple."""

Member = TypeVar("Member", covariant=True)


class LazySequence(Sequence[Member]):
    """Sequence that behaves like the tuple of its members."""

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
    """Names of demonstrations that have none: "1", "2", ...

    Examples
    --------
    >>> names = Numbered(1_000_000)
    >>> names[-1], "17" in names, names.index("17"), "017" in names
    ('1000000', True, 16, False)
    """

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


class Integers(LazySequence[int]):
    """Integers of Python, kept in an array."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def _member(self, at: int) -> int:
        return int(self.values[at])


class Marked(LazySequence[tuple[str, ...]]):
    """For each demonstration, the names of the arms that are marked in its row.

    Examples
    --------
    >>> Marked(np.array([[True, False], [True, True]]), ("A", "B"))[1]
    ('A', 'B')
    """

    def __init__(self, marks: NDArray[np.bool_], arms: tuple[str, ...]) -> None:
        self.marks, self.arms = marks, arms

    def __len__(self) -> int:
        return len(self.marks)

    def _member(self, at: int) -> tuple[str, ...]:
        return tuple(self.arms[arm] for arm in np.flatnonzero(self.marks[at]))


def numbered(count: int) -> Sequence[str]:
    """Return the names of demonstrations that have none: "1", "2", ..."""
    return tuple(map(str, range(1, count + 1))) if count <= MOST_IN_TUPLE else Numbered(count)


def integers(values: NDArray[np.int64]) -> Sequence[int]:
    """Return integers as a sequence."""
    return tuple(map(int, values)) if len(values) <= MOST_IN_TUPLE else Integers(values)


def marked(marks: NDArray[np.bool_], arms: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
    """Return for each row the names of the arms that are marked."""
    names = Marked(marks, arms)
    return tuple(names) if len(names) <= MOST_IN_TUPLE else names
