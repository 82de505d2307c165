"""Rows that are called plain are those that Python's `csv` module reads, cell for cell."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit.kernels.csv_rows import plain_rows


def found(text: str, columns: int, separator: str = ",", longest: int = 100) -> tuple[int, int]:
    end, rows = plain_rows(np.frombuffer(text.encode(), np.uint8), ord(separator), columns, longest)
    return int(end), int(rows)


def reference(text: str, columns: int) -> tuple[int, int]:
    """Return the same in plain Python, one row after the other."""
    end = rows = 0
    lines = text.splitlines(keepends=True)
    while lines:
        for count in range(1, len(lines) + 1):
            row = "".join(lines[:count])
            if row.count('"') % 2 == 0 or count == len(lines):
                break
        body = row.removesuffix("\n").removesuffix("\r")
        try:
            records = list(csv.reader([row], strict=True))
        except csv.Error:
            break
        cells = [[""]] if records == [[]] else records
        written = '"'.join(body.split('"')[::2])  # what stands outside quotes
        is_plain = not any(part and not part.endswith(",") for part in written.split('"')[:-1])
        if not row.endswith("\n") or len(cells) != 1 or len(cells[0]) != columns or not is_plain or "\r" in written:
            break
        end, rows, lines = end + len(row), rows + 1, lines[count:]
    return end, rows


@given(st.text(alphabet='a,"\n', max_size=30), st.integers(1, 3))
def test_plain_rows_are_what_csv_reads(text: str, columns: int) -> None:
    assert found(text, columns) == reference(text, columns)


@pytest.mark.parametrize(
    ("text", "columns", "plain"),
    [
        ('a,b\n"c, d",e\n', 2, 2),
        ('"a\nb",c\r\n"",""\n', 2, 2),
        ('"5""",1\n"""a""",2\n', 2, 2),
        ('x,y\n5",1\n', 2, 1),  # csv reads an inch mark, polars does not
        ('x,y\n"5"",1\n', 2, 1),
        ('x,y\n"A"9",1\n', 2, 1),
        ("x,y\na\rb,1\n", 2, 1),
        ("x,y\na,b\r\r\n", 2, 1),
        ('x,y\n"a\rb",1\n', 2, 2),
        ("x,y\na,b,c\n", 2, 1),
        ("x,y\na\nb,c\n", 2, 1),
        ("a\n\nb\n", 1, 3),
        ("a\nb", 1, 1),  # no line break yet
        ('a\n"b', 1, 1),
        ('a\n"b"', 1, 1),
        ("a\nb\r", 1, 1),
        ("", 1, 0),
    ],
)
def test_rows_are_plain_up_to_the_first_that_is_not(text: str, columns: int, plain: int) -> None:
    assert found(text, columns)[1] == plain


def test_other_separators() -> None:
    assert found('a;"b;c"\nd,e;f\n', 2, ";") == (14, 2)
    assert found("a\tb,c\n", 2, "\t") == (6, 1)


def test_a_cell_that_is_too_long_is_left_to_csv() -> None:
    assert found('a,b\nabcd,"x"\nabcde,"x"\n', 2, longest=4) == (13, 2)
    assert found('a,b\n"ab",x\n"abc",x\n', 2, longest=4) == (11, 2)
