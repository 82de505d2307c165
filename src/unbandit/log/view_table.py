"""A hash table from 16-byte views to codes, with its compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import compiled

__all__ = ["ViewTable"]


_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads neighbouring keys
_ONE = np.uint64(1)
_FREE = -1
_NO_VIEW = np.uint64(0xFFFFFFFFFFFFFFFF)  # no text is 2^32 - 1 bytes long
_LENGTH = np.uint64(0xFFFFFFFF)
_FEWEST_BITS, _MOST_BITS = 8, 14  # up to the latter, what a core's nearest caches still hold


class ViewTable:
    """Map views to codes by open addressing, in a table large enough that nearly every view has its own slot.

    Attributes
    ----------
    first, second
        The two halves of the view in each slot.
    codes
        Its code; -1 in a slot that is free.

    Examples
    --------
    >>> table, codes = ViewTable(), np.zeros(3, np.uint8)
    >>> views = np.array([[1, 65], [1, 66], [1, 65]], np.uint64)
    >>> table.discover(views).tolist()
    [0, 1]
    >>> table.name(np.array([7, 8]))
    >>> table.look_up(views, codes), codes.tolist()
    (3, [7, 8, 7])
    """

    def __init__(self, bits: int = _FEWEST_BITS) -> None:
        self.bits = bits
        self.first = np.full(1 << bits, _NO_VIEW)
        self.second = np.full(1 << bits, _NO_VIEW)
        self.codes = np.full(1 << bits, _FREE, np.int32)

    def look_up(self, views: NDArray[np.uint64], codes: NDArray[np.unsignedinteger[Any]]) -> int:
        """Write the code of each view, up to the first unknown one; return its row, or the number of rows."""
        return int(_look_up(self.first, self.second, self.codes, views, codes, self._shift))

    def discover(self, views: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Add the unknown among these views, as far as there is room; return the row of each, for `name`."""
        rows = np.empty(min(len(views), 1 << self.bits), np.int64)
        return rows[: int(_discover(self.first, self.second, self.codes, views, rows, self._shift))]

    def name(self, codes: NDArray[np.integer[Any]]) -> None:
        """Give the views that `discover` added their codes, and make room for more."""
        waiting = np.flatnonzero(self.codes < _FREE)
        self.codes[waiting] = codes[_FREE - 1 - self.codes[waiting]]
        # The fast loop below is for views in their own slot; while that is cheap, see that all of them are.
        taken = np.flatnonzero(self.codes != _FREE)
        displaced = _displaced(self.first, self.second, self.codes, self._shift)
        if 4 * taken.size > self.codes.size or (displaced and self.bits < _MOST_BITS):
            larger = self._rebuilt(taken, self.bits + (2 if 4 * taken.size > self.codes.size else 1))
            self.bits, self.first, self.second, self.codes = larger.bits, larger.first, larger.second, larger.codes

    def renumber(self, codes: NDArray[np.integer[Any]]) -> None:
        """Replace every code by the entry at its place."""
        taken = self.codes != _FREE
        self.codes[taken] = codes[self.codes[taken]]

    def up_to(self, longest: int) -> ViewTable:
        """Return a table of the views of text up to so many bytes."""
        short = (self.codes != _FREE) & ((self.first & _LENGTH) <= longest)
        return self._rebuilt(np.flatnonzero(short), self.bits)

    def copy(self) -> ViewTable:
        """Return a table that grows apart from this one."""
        twin = ViewTable.__new__(ViewTable)
        twin.bits = self.bits
        twin.first, twin.second, twin.codes = self.first.copy(), self.second.copy(), self.codes.copy()
        return twin

    @property
    def _shift(self) -> np.uint64:
        return np.uint64(64 - self.bits)

    def _rebuilt(self, slots: NDArray[np.intp], bits: int) -> ViewTable:
        other = ViewTable(bits)
        _move(self.first, self.second, self.codes, slots, other.first, other.second, other.codes, other._shift)
        return other


@compiled
def _home(first: Any, second: Any, shift: Any) -> Any:
    # The high bits of the product depend on all bits of the key.
    return ((first ^ (second << _ONE)) * _MULTIPLIER) >> shift


@compiled
def _probe(firsts: Any, seconds: Any, table: Any, first: Any, second: Any, shift: Any) -> Any:
    # The slot where a view is, or the free one where it belongs.
    slot = _home(first, second, shift)
    while table[slot] != _FREE and (firsts[slot] != first or seconds[slot] != second):
        slot = (slot + _ONE) & np.uint64(table.size - 1)
    return slot


@compiled
def _discover(firsts: Any, seconds: Any, table: Any, views: Any, rows: Any, shift: Any) -> Any:
    room = table.size // 2 - np.sum(table != _FREE)
    found = 0
    for row in range(views.shape[0]):
        first, second = views[row, 0], views[row, 1]
        slot = _probe(firsts, seconds, table, first, second, shift)
        if table[slot] == _FREE:
            if found >= max(room, 1):
                break
            firsts[slot], seconds[slot], table[slot] = first, second, _FREE - 1 - found
            rows[found] = row
            found += 1
    return found


@compiled
def _displaced(firsts: Any, seconds: Any, table: Any, shift: Any) -> Any:
    for slot in range(table.size):
        if table[slot] != _FREE and _home(firsts[slot], seconds[slot], shift) != np.uint64(slot):
            return True
    return False


@compiled
def _move(
    firsts: Any, seconds: Any, table: Any, slots: Any, to_firsts: Any, to_seconds: Any, to_table: Any, shift: Any
) -> None:
    for slot in slots:
        new = _probe(to_firsts, to_seconds, to_table, firsts[slot], seconds[slot], shift)
        to_firsts[new], to_seconds[new], to_table[new] = firsts[slot], seconds[slot], table[slot]


@compiled
def _run(firsts: Any, seconds: Any, table: Any, views: Any, codes: Any, shift: Any) -> Any:
    # Four rows at a time without a branch, as long as each view stands in its own slot; returns the rows done.
    for four in range(views.shape[0] // 4):
        unlike = np.uint64(0)
        for part in range(4):
            row = np.uint64(4 * four + part)  # unsigned, which spares a test of the sign
            first, second = views[row, 0], views[row, 1]
            slot = _home(first, second, shift)
            unlike |= (firsts[slot] ^ first) | (seconds[slot] ^ second)
            codes[row] = table[slot]
        if unlike:
            return 4 * four
    return views.shape[0] // 4 * 4


@compiled
def _look_up(firsts: Any, seconds: Any, table: Any, views: Any, codes: Any, shift: Any) -> Any:
    row, rows = 0, views.shape[0]
    while row < rows:
        row += _run(firsts, seconds, table, views[row:], codes[row:], shift)
        for _ in range(min(4, rows - row)):
            slot = _probe(firsts, seconds, table, views[row, 0], views[row, 1], shift)
            if table[slot] == _FREE:
                return row
            codes[row] = table[slot]
            row += 1
    return rows
