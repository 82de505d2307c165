"""Turn rows of a log into codes, piece by piece, and check their rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError
from unbandit.log.assembly import unknown_arm, without_point
from unbandit.log.cells import never_labels, no_labels, odd_label, odd_labels, read_whole_numbers, refuse_missing
from unbandit.log.coding import Codes
from unbandit.log.columns import Refuse, check_roles, find_columns, reward_notices, unread_notice
from unbandit.log.dictionary import Dictionary, first_rows
from unbandit.log.labels import is_missing_word, label_of
from unbandit.log.runs import Runs, in_memory, starts_of, turns_of
from unbandit.log.sources import Piece
from unbandit.log.table import Table

__all__ = ["LabelColumn", "RowReader"]

Integers = NDArray[np.int64]


class LabelColumn:
    """Code a column of labels piece by piece, and refuse what is none."""

    def __init__(self, role: str, expected: tuple[str, ...] | None = None) -> None:
        self.name, self._role, self._expected = role, role, expected
        known = set(expected or ())
        canonical = str if expected is None else lambda label: label if label in known else without_point(label)
        self.dictionary = Dictionary(canonical, by_value=role == "arm")
        for label in expected or ():
            self.dictionary.add(label)
        self._words: dict[str, LogError] = {}

    def code(self, piece: Table, column: pl.Series) -> Codes:
        """Code some rows."""
        refuse_missing(piece, column, self.name, self._role)
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary, pl.Null):
            raise no_labels(piece, column, self.name, self._role)
        before = len(self.dictionary)
        codes = self.dictionary.code(column)
        if len(self.dictionary) == before or (column.dtype.is_integer() and self._expected is None):
            return codes  # nothing that could be wrong
        rows = first_rows(codes, before)
        labels = [label_of(value) for value in column.gather(rows).to_list()]
        for at in never_labels(labels):
            if labels[at] not in (self._expected or ()):
                raise odd_label(piece, labels[at], int(rows[at]) + 1, self.name, self._role)
        for label, row in zip(labels, rows.tolist(), strict=True) if self._expected is not None else ():
            raise unknown_arm(piece, label, row + 1, self.name, self._expected or ())
        for at, label in enumerate(labels):
            if is_missing_word(label):  # perhaps a name: the labels to come will tell
                self._words[label] = odd_label(piece, label, int(rows[at]) + 1, self.name, self._role)
        return codes

    def check(self) -> None:
        """Refuse, when all labels are known, words for a missing value among numbers."""
        if self._words:
            labels = self.dictionary.labels
            for at in odd_labels(labels, self._expected or ()):
                raise self._words[labels[at]]


class RowReader:
    """Know which columns play which role, and read rows of them in order.

    Parameters
    ----------
    names, refuse
        The columns of the first file, and what makes an error that names it.
    columns
        As `ActionLog.read` takes them.
    arms, demonstrations
        The labels met so far, and those to come; by default none.

    Attributes
    ----------
    name
        The column of each role.
    notices
        What the user should hear about the reading.
    """

    def __init__(
        self, names: Sequence[str], refuse: Refuse, columns: Mapping[str, str] | None, arms: LabelColumn,
        demonstrations: LabelColumn,
    ) -> None:  # fmt: skip
        named = check_roles(columns)
        found = find_columns(names, columns, refuse)
        self.name = {role: names[at] for role, at in found.items()}
        if "pulls" in found:
            raise refuse(
                "expected one row a choice; got a table of counts, which needs no scanning. Read it with "
                "ActionLog.read, or name the column of rounds with --columns round=NAME.",
                column=self.name["pulls"],
            )
        self.notices = () if named.get("reward") == "" else reward_notices(names, found)
        self.notices += unread_notice(names, found, named)
        if "reward" in found:
            name = self.name.pop("reward")
            self.notices += (f'column "{name}" is not read: a log that is scanned gives no rewards.',)
        self.arms, self.demonstrations = arms, demonstrations
        arms.name, demonstrations.name = self.name["arm"], self.name.get("demonstration", "")
        self._begins, self._counted = np.full(1, -1), np.zeros(1, np.int64)

    @property
    def several(self) -> bool:
        """Tell whether there is a column of demonstrations."""
        return "demonstration" in self.name

    def known(self) -> tuple[int, int]:
        """Return how many demonstrations and arms were met so far."""
        return len(self.demonstrations.dictionary) if self.several else 1, len(self.arms.dictionary)

    def read(self, piece: Piece, *, again: bool = False) -> Runs:
        """Turn some rows, which follow those read before, into runs; rounds are not checked `again`."""
        cells = dict(zip(self.name, piece.columns, strict=True))
        codes = self.arms.code(piece, cells["arm"])
        starts, who = np.array([0, codes.size]), np.zeros(1, np.int64)
        if "demonstration" in cells:
            starts, who = self._turns(piece, cells["demonstration"])
        runs = Runs(codes, starts, who)
        if "round" in cells and not again:
            self._check_rounds(piece, cells["round"], runs)
        return runs

    def rounds_so_far(self) -> list[list[int]]:
        """Return each demonstration's first round, and how many followed: what `go_on` takes."""
        return [self._begins.tolist(), self._counted.tolist()]

    def go_on(self, rounds: list[list[int]]) -> None:
        """Go on where another reader stopped."""
        self._begins, self._counted = (np.array(each, np.int64) for each in rounds)

    def _turns(self, piece: Piece, column: pl.Series) -> tuple[Integers, Integers]:
        """Find where another demonstration begins; as a rule only these rows need be looked up."""
        refuse_missing(piece, column, self.demonstrations.name, "demonstration")
        found = turns_of(column)
        if found is None:
            who = self.demonstrations.code(piece, column)
            starts = starts_of(who)
            return starts, who[starts[:-1]].astype(np.int64)
        starts, first = found
        who = self.demonstrations.code(_Rows(piece, starts), first)
        changed = np.concatenate(
            ([True], who[1:] != who[:-1])
        )  # a value may go on where another piece of memory begins
        return np.append(starts[:-1][changed], starts[-1]), who[changed].astype(np.int64)

    def _check_rounds(self, piece: Piece, column: pl.Series, runs: Runs) -> None:
        """Refuse rounds that do not count up from 0 or 1 within each demonstration."""
        from unbandit.kernels.tally import first_out_of_order

        name = self.name["round"]
        plain = column.dtype.is_integer() and not column.null_count()
        parts = in_memory(column) if plain else [read_whole_numbers(piece, column, name, "round")]
        count = int(runs.who.max()) + 1
        self._begins, self._counted = _grown(self._begins, count, -1), _grown(self._counted, count)
        at = 0
        for rounds in parts:
            here = runs.between(at, at + rounds.size)
            wrong = first_out_of_order(rounds, *here[1:], self._begins, self._counted)
            at += wrong
            if wrong < rounds.size:
                break
        else:
            return
        run = int(np.searchsorted(here.starts, wrong, side="right")) - 1
        d, got = int(here.who[run]), int(rounds[wrong])
        labels = self.demonstrations.dictionary.labels
        of = f' in demonstration "{labels[d]}"' if len(labels) > 1 else ""
        if self._begins[d] < 0:
            came = f"expected rounds from 0 or 1{of}; they begin at {got}, so the opening is missing, or comes later."
        else:
            last = int(self._begins[d] + self._counted[d]) + wrong - int(here.starts[run]) - 1
            came = f"expected round {last + 1} after round {last}{of}; got {got}, so rows are missing or out of order."
        raise piece.refuse(
            f"{came} A log that is scanned must be in order, also from file to file: sort it, or if it fits in memory "
            "read it with ActionLog.read.",
            row=at + 1,
            column=name,
            value=got,
        )


class _Rows(Table):
    """Some rows of a piece, as if they stood one after the other."""

    def __init__(self, piece: Table, rows: Integers) -> None:
        self.path, self.names, self._piece, self._rows = piece.path, piece.names, piece, rows

    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Give columns."""
        return [column.gather(self._rows) for column in self._piece.take(positions)]

    def refuse(
        self, message: str, *, row: int | None = None, column: str | None = None, value: object = None
    ) -> LogError:
        """Name the row of the piece."""
        row = None if row is None else int(self._rows[row - 1]) + 1
        return self._piece.refuse(message, row=row, column=column, value=value)


def _grown(array: Integers, count: int, fill: int = 0) -> Integers:
    """Return an array with room for `count` entries, the same one if it has.

    Examples
    --------
    >>> _grown(np.array([1, 2]), 3).tolist()[:3]
    [1, 2, 0]
    """
    if array.shape[0] >= count:
        return array
    larger = np.full((max(count, 2 * array.shape[0]), *array.shape[1:]), fill, array.dtype)
    larger[: array.shape[0]] = array
    return larger
