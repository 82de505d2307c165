"""Read cells as labels or as whole numbers, and name the first that is neither."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError
from unbandit.log.coding import Coded, code_labels
from unbandit.log.labels import is_hole, is_missing_word, is_not_finite, is_number
from unbandit.log.table import Table

__all__ = ["no_labels", "odd_label", "odd_labels", "read_labels", "read_whole_numbers", "refuse_missing"]


def read_labels(
    table: Table, column: pl.Series, name: str, role: str, expected: tuple[str, ...] | None = None
) -> Coded:
    """Code a column of labels; refuse blanks, and what programs write for a value that is not there.

    Parameters
    ----------
    table, column, name
        Where the cells stand.
    role
        What they should be, for the message.
    expected
        Labels that the user named, which therefore are no blunders however odd they look.
    """
    refuse_missing(table, column, name, role)
    coded = code_labels(column)
    if coded is None:
        raise no_labels(table, column, name, role)
    odd = odd_labels(coded.labels, expected or ())
    if odd:
        row = int(np.argmax(np.isin(coded.codes, odd)))
        raise odd_label(table, coded.labels[int(coded.codes[row])], row + 1, name, role)
    return coded


def odd_label(table: Table, value: str, row: int, name: str, role: str) -> LogError:
    """Make the error that refuses a label which stands for nothing."""
    came = f'"{value}", which is no name for one' if value else "a blank cell"
    rescue = f" If it is one, list it with --{role}s." if value and role == "arm" else ""
    return table.refuse(
        f"expected {_article(role)}; got {came}. Fill it in or remove the row, if it was no round.{rescue}",
        row=row,
        column=name,
        value=value,
    )


def no_labels(table: Table, column: pl.Series, name: str, role: str) -> LogError:
    """Make the error that refuses a column of a type that cannot be labels."""
    return table.refuse(
        f"expected names or numbers for {role}; got a column of type {column.dtype}. Turn it into text first.",
        column=name,
    )


def read_whole_numbers(table: Table, column: pl.Series, name: str, what: str) -> NDArray[np.int64]:
    """Read a column of whole numbers; refuse everything else."""
    refuse_missing(table, column, name, what)
    kind = column.dtype
    if kind in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if kind.is_integer() and (kind != pl.UInt64 or int(column.max()) < 1 << 63):  # type: ignore[arg-type]
        return column.cast(pl.Int64).to_numpy()
    if not (column.dtype == pl.String or kind.is_numeric()):
        raise table.refuse(
            f"expected whole numbers for {what}; got a column of type {kind}. "
            f"Name another column with --columns {what}=NAME, or leave this one out.",
            column=name,
        )
    text = column.str.strip_chars() if column.dtype == pl.String else column
    whole = text.cast(pl.Int64, strict=False) if column.dtype == pl.String else None
    if whole is not None and not whole.null_count():
        return whole.to_numpy()
    # Not integers throughout: "3.0" and 3.0 are whole as well.
    values = text.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    wrong = ~(np.isfinite(values) & (np.abs(values) < 1 << 53))
    wrong |= np.where(wrong, 0.0, values) % 1 != 0
    if wrong.any():
        row = int(np.argmax(wrong))
        value = column[row]
        blank = isinstance(value, str) and not value.strip()
        came = "a blank cell" if blank else f'"{value}"' if isinstance(value, str) else str(value)
        raise table.refuse(
            f"expected a whole number for {what}; got {came}. Correct it or remove the row.",
            row=row + 1,
            column=name,
            value=value,
        )
    return values.astype(np.int64)


def refuse_missing(table: Table, column: pl.Series, name: str, what: str) -> None:
    """Refuse a cell without a value, and a number that is not finite."""
    missing = column.is_null() if column.null_count() else None
    came: object = None
    if missing is None and column.dtype.is_float():
        finite = column.is_finite()
        missing = None if finite.all() else ~finite
    if missing is None:
        return
    row = missing.arg_max()
    assert row is not None
    came = column[row]
    raise table.refuse(
        f"expected {_article(what)}; got {'a blank cell' if came is None else came}. Fill it in or remove the row.",
        row=row + 1,
        column=name,
        value=came,
    )


def odd_labels(labels: list[str], expected: tuple[str, ...]) -> list[int]:
    """Return the codes of labels that stand for nothing.

    "none" may be an arm; among labels that are otherwise all numbers it is a hole.
    """
    odd = [at for at, label in enumerate(labels) if not label or is_not_finite(label) or is_hole(label)]
    words = [at for at, label in enumerate(labels) if is_missing_word(label)]
    others = [label for at, label in enumerate(labels) if at not in {*odd, *words}]
    if words and others and all(map(is_number, others)):
        odd += words
    return [at for at in odd if labels[at] not in expected]


def _article(what: str) -> str:
    spoken = {"arm": "an arm", "demonstration": "the name of a demonstration", "round": "a round", "pulls": "a count"}
    return spoken[what]
