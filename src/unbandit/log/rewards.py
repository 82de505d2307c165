"""Read the rewards that a record happens to hold: a number where one is known, a blank where none is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.log.labels import is_missing_word, listed
from unbandit.log.table import Table

__all__ = ["Rewards", "check_rewards", "known_notice", "read_rewards"]

Rewards = NDArray[np.float64]
"""One number a round, NaN where it is not known."""

_TRUTHS = {"true": 1.0, "false": 0.0}


def read_rewards(table: Table, column: pl.Series, name: str, *, named: bool = True) -> Rewards | None:
    """Read a column of rewards; blanks, NaN and what programs write for a missing value are rewards not known.

    Parameters
    ----------
    table, column, name
        Where the cells stand.
    named
        Whether the user said that this is the column. One that only has such a name and holds no number at all is none.

    Returns
    -------
    Rewards or None
        None where no reward is known.

    Examples
    --------
    >>> from unbandit.log.table import ColumnTable
    >>> cells = pl.Series(["0.5", "", "NA", "-1"])
    >>> read_rewards(ColumnTable(cells), cells, "reward").tolist()
    [0.5, nan, nan, -1.0]
    """
    values = _numbers(column)
    if values is None:
        if not named:
            return None
        raise table.refuse(
            f"expected numbers for reward; got a column of type {column.dtype}. {_remedy(name)}", column=name
        )
    wrong = np.isinf(values)
    if column.dtype == pl.String or column.dtype in (pl.Categorical, pl.Enum):
        words = _words(column, values)
        values = values.copy()
        for row, word in words.items():
            truth = _TRUTHS.get(word.lower())
            if truth is not None:
                values[row] = truth
            else:
                wrong[row] = True
    known = np.isfinite(values)
    if wrong.any() and (named or known.any()):
        row = int(np.argmax(wrong))
        value = column[row]
        came = f'"{value}"' if isinstance(value, str) else str(value)
        raise table.refuse(
            f"expected a number for reward, or a blank where it is not known; got {came}. "
            "Correct it, leave the cell blank, or leave the whole column unread with --columns reward=.",
            row=row + 1,
            column=name,
            value=value,
        )
    return values if known.any() and not wrong.any() else None


def known_notice(rewards: Rewards | None, name: str) -> str:
    """Say how many rewards were read, and what reads them.

    Examples
    --------
    >>> known_notice(np.array([1.0, np.nan]), "payoff")
    'column "payoff" holds 1 of 2 rewards: only the method posterior uses them.'
    """
    if rewards is None:
        return f'column "{name}" is ignored: it holds no rewards that are numbers.'
    known = int(np.isfinite(rewards).sum())
    return f'column "{name}" holds {known:,} of {rewards.size:,} rewards: only the method posterior uses them.'


def check_rewards(rewards: Any, lengths: Sequence[int]) -> Rewards | None:
    """Take rewards beside choices in memory, in the same arrangement; None and NaN are rewards not known.

    Examples
    --------
    >>> check_rewards([[1, None], [0]], [2, 1]).tolist()
    [1.0, nan, 0.0]
    """
    if rewards is None:
        return None
    rows = _rows(rewards)
    found = [len(row) for row in rows]
    if found != list(lengths):
        raise ParameterError(
            f"expected one for each choice ({listed(list(map(str, lengths)), ', ')}); "
            f"got {listed(list(map(str, found)), ', ')}. Put None where a reward is not known.",
            parameter="rewards",
        )
    flat = np.concatenate([_in_memory(row) for row in rows])
    return flat if np.isfinite(flat).any() else None


def _rows(rewards: Any) -> list[Any]:
    if isinstance(rewards, np.ndarray):
        return list(rewards) if rewards.ndim == 2 else [rewards]
    listed = rewards if isinstance(rewards, pl.Series) else list(rewards)
    nested = [hasattr(row, "__len__") and not isinstance(row, str) for row in listed]
    return list(listed) if len(nested) and all(nested) else [listed]


def _in_memory(row: Any) -> Rewards:
    values = np.asarray(row)
    if values.dtype.kind in "fiu" and not np.isinf(values).any():
        return values.astype(np.float64)
    return np.array([_number(value) for value in np.asarray(row, dtype=object)], np.float64)


def _number(value: object) -> float:
    """Take any number, NumPy's and truth values too; None is a reward not known."""
    if value is None:
        return float("nan")
    if isinstance(value, int | float | np.number | np.bool_) and not np.isinf(value):
        return float(value)
    raise ParameterError(f"expected finite numbers, None where one is not known; got {value!r}.", parameter="rewards")


def _numbers(column: pl.Series) -> Rewards | None:
    """Return the cells as numbers, NaN where they are none; None for a type that holds no numbers."""
    kind = column.dtype
    if kind in (pl.Categorical, pl.Enum):
        column, kind = column.cast(pl.String), pl.String()
    if kind == pl.String:
        column = column.str.strip_chars()
    elif not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
        return None
    return column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def _words(column: pl.Series, values: Rewards) -> dict[int, str]:
    """Return the cells of text that are neither numbers nor blanks, by row."""
    rows = np.flatnonzero(np.isnan(values) & column.is_not_null().to_numpy())
    cells = column.cast(pl.String).gather(rows).str.strip_chars()
    plain = {word: not word or is_missing_word(word) or word.lower().lstrip("+-") == "nan" for word in cells.unique()}
    return {int(row): word for row, word in zip(rows, cells, strict=True) if not plain[word]}


def _remedy(name: str) -> str:
    return f'Name another column than "{name}" with --columns reward=NAME, or none with --columns reward=.'
