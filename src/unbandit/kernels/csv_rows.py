"""Verify delimited text with quotes, byte by byte, faster than any parser reads it.

A row is plain if every parser reads it alike: a quote stands at the beginning of a cell or within a quoted one, doubled
there unless it ends the cell; a carriage return outside quotes is followed by a line feed; and there are as many cells
as columns, none of them too long. What is not plain is left to Python's `csv` module in strict mode
(`unbandit.log.csv`), against which the tests hold these functions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, compiled

Bytes = NDArray[np.uint8]

QUOTE, LINE_FEED, CARRIAGE_RETURN = 34, 10, 13


@called
def _end_of_quoted(data: Any, at: int) -> int:
    """Return the place after the closing quote of a cell that begins at `at`, if it has one; else past the end."""
    at += 1
    while True:
        while at < data.size and data[at] != QUOTE:
            at += 1
        at += 1
        if at >= data.size or data[at] != QUOTE:  # a doubled quote is one within the cell
            return at
        at += 1


@called
def _end_of_unquoted(data: Any, at: int, separator: int) -> int:
    """Return where a cell without quotes ends: at a separator, a line break, a quote, or the end of the data."""
    highest = max(separator, QUOTE)
    while at < data.size:
        byte = data[at]
        if byte <= highest and byte in (separator, LINE_FEED, CARRIAGE_RETURN, QUOTE):
            break
        at += 1
    return at


@compiled
def plain_rows(data: Bytes, separator: int, columns: int, longest: int) -> tuple[int, int]:
    """Return where the plain, whole rows at the beginning of some text end, and how many they are.

    `data` begins with a row; `separator` is a byte; `longest` is how many bytes a cell may have.
    """
    at, cells, end, rows = 0, 1, 0, 0
    while at < data.size:
        begin = at
        at = _end_of_quoted(data, at) if data[at] == QUOTE else _end_of_unquoted(data, at, separator)
        if at - begin > longest:
            break
        if at < data.size and data[at] == separator:
            cells += 1
            at += 1
            continue
        if at + 1 < data.size and data[at] == CARRIAGE_RETURN:
            at += 1
        if at >= data.size or data[at] != LINE_FEED or cells != columns:
            break
        at += 1
        end, rows, cells = at, rows + 1, 1
    return end, rows
