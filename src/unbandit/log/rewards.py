"""Numbers in the cells of a log: the rewards that it happens to hold, a blank where none is known."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice, option
from unbandit.log.labels import Refuse, is_missing_word

Rewards = NDArray[np.float64]  # one number per round, NaN where it is not known

_COMMA, _THOUSANDS = r"^[+-]?[0-9]*,[0-9]+$", r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"
_NO_REWARD = option("columns", {"reward": ""})
TRUTHS = {"true": 1.0, "false": 0.0}


def are_binary(rewards: Rewards | None) -> bool:
    """Return whether there are known rewards, and all of them are 0 or 1."""
    known = np.zeros(0) if rewards is None else rewards[np.isfinite(rewards)]
    return known.size > 0 and bool(np.isin(known, (0.0, 1.0)).all())


class DecimalMarks:
    """How the numbers of a column are written, found batch by batch: with decimal points, or with decimal commas.

    A column in which all commas may separate thousands is refused once it is read (`check`).
    """

    def __init__(self, name: str, role: str, ignoring: str = "") -> None:
        self._name, self._role, self._ignoring = name, role, ignoring
        self.commas, self._points, self._is_settled = 0, 0, False  # cells such as "0,5" and "0.5"; not only "1,500"
        self._unsettled: LogError | None = None

    def with_points(self, refuse: Refuse, column: pl.Series) -> pl.Series:
        """Write decimal commas as points, where no cell has a point."""
        if column.dtype != pl.String or not column.str.contains(",", literal=True).any():
            if column.dtype == pl.String:
                self._points += int(column.str.contains(".", literal=True).sum())
            return column
        cells = column.str.strip_chars()
        is_comma = cells.str.contains(_COMMA).fill_null(False)
        self.commas += int(is_comma.sum())
        self._points += int(cells.str.contains(".", literal=True).sum())
        if self._points or not is_comma.any():
            return column
        self._is_settled = self._is_settled or not cells.filter(is_comma).str.contains(_THOUSANDS).all()
        if self._unsettled is None:
            row = int(is_comma.arg_true()[0])
            text = f'expected a number for {self._role}; got "{cells[row]}", whose comma may separate thousands or '
            remedy = f"Write it with a point or without thousands{self._ignoring}."
            self._unsettled = refuse(
                f"{text}decimals.", row=row + 1, column=self._name, value=cells[row], remedy=remedy
            )
        frame = pl.DataFrame({"cells": cells, "is_comma": is_comma})
        with_point = pl.col("cells").str.replace(",", ".", literal=True)
        return frame.select(pl.when("is_comma").then(with_point).otherwise("cells")).to_series()

    def check(self) -> None:
        """Refuse, when all rows are read, commas of which nothing shows what they separate."""
        if self.commas and not self._is_settled and self._unsettled is not None:
            raise self._unsettled


class RewardColumn:
    """Column of rewards, read batch by batch; blanks, NaN and words for a missing value are rewards not known.

    Where the user did not say that the column holds the rewards (`named`), it is ignored if it holds no number.
    """

    def __init__(self, name: str, *, named: bool) -> None:
        self.name, self._named = name, named
        self._known = 0
        self._marks = DecimalMarks(name, "reward", f", or ignore the column with {_NO_REWARD}")
        self._wrong: LogError | None = None
        self._batches: list[Rewards] = []

    def read(self, refuse: Refuse, column: pl.Series) -> None:
        """Read the next rows; refuse a cell that is no number."""
        column = self._marks.with_points(refuse, column)
        values = numbers_of(column)
        if values is None:
            text = f"expected numbers for reward; got a column of type {column.dtype}."
            remedy = f'Name another column than "{self.name}" with {option("columns", {"reward": "NAME"})}, or none '
            remedy += f"with {option('columns', {'reward': ''})}."
            self._wrong = self._wrong or refuse(text, column=self.name, remedy=remedy)
            values = np.full(len(column), np.nan)
        wrong = np.isinf(values)
        if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
            values = values.copy()
            for row, word in words_of(column, values).items():
                values[row] = TRUTHS.get(word.lower(), np.nan)
                wrong[row] = word.lower() not in TRUTHS
        if wrong.any() and self._wrong is None:
            row = int(np.argmax(wrong))
            value = column[row]
            got = f'"{value}"' if isinstance(value, str) else str(value)
            text = f"expected a number for reward, or a blank where it is not known; got {got}."
            ignoring = f"ignore the whole column with {option('columns', {'reward': ''})}."
            remedy = f"Correct it, leave the cell blank, or {ignoring}"
            self._wrong = refuse(text, row=row + 1, column=self.name, value=value, remedy=remedy)
        self._known += int(np.isfinite(values).sum())
        if self._wrong is not None and (self._named or self._known):
            raise self._wrong
        self._batches.append(values)

    def values(self) -> Rewards | None:
        """Return all rewards; None where none is known."""
        self._marks.check()
        return np.concatenate(self._batches) if self._known and self._wrong is None else None

    def notice(self) -> Notice:
        """Say how many rewards were read, and what uses them."""
        if self.values() is None:
            return Notice("reading", f'Column "{self.name}" is ignored: it contains no numeric rewards.')
        total = sum(values.size for values in self._batches)
        rows = f"all {total:,} rows" if self._known == total else f"{self._known:,} of {total:,} rows"
        held = f'Column "{self.name}" has a reward in {rows}'
        held += ", written with decimal commas" if self._marks.commas else ""
        text = f"{held}. Posteriors and comparisons of rules use them; closed forms do not."
        if not self._named and self.name.strip() != "reward":
            text += f" If it contains something else, say so with {option('columns', {'reward': ''})}."
        return Notice("reading", text, count=self._known)


def numbers_of(column: pl.Series) -> Rewards | None:
    """Return the cells as numbers, NaN where they are none; None for a type that holds no numbers."""
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum):
        column, kind = column.cast(pl.String), pl.String()
    if kind == pl.String:
        column = column.str.strip_chars()
    elif not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
        return None
    return column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def words_of(column: pl.Series, values: Rewards) -> dict[int, str]:
    """Return the cells of text that are neither numbers nor blanks, by row."""
    rows = np.flatnonzero(np.isnan(values) & column.is_not_null().to_numpy())
    cells = column.cast(pl.String).gather(rows).str.strip_chars()
    plain = {word: not word or is_missing_word(word) or word.lower().lstrip("+-") == "nan" for word in cells.unique()}
    return {int(row): word for row, word in zip(rows, cells, strict=True) if not plain[word]}
