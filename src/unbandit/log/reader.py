"""The reader of logs: it finds the columns, checks the cells, and turns batches of rows into codes.

`ActionLog.read` collects what it gives and then puts the rows in order; scanned and growing logs only count it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.log.columns import check_roles, find_columns, reward_notices, unread_notices
from unbandit.log.labels import (
    Codes,
    Integers,
    LabelColumn,
    case_notices,
    first_rows,
    given_arms,
    is_number,
    natural_order,
    numbered,
    refuse_missing,
    smallest_type,
)
from unbandit.log.rewards import RewardColumn, Rewards, check_rewards
from unbandit.log.rounds import Refuse, RoundCounter, counts_up, places_by_round, runs_follow
from unbandit.log.sources import ROWS, Batch, Source, check_alike, is_frame, series_of


class Rows(NamedTuple):
    """Rows of a batch.

    Attributes
    ----------
    codes
        The arm of each row.
    starts, who
        Where each run of rows of one demonstration begins, and the end; the demonstration of each run.
    """

    codes: Codes
    starts: Integers
    who: Integers


class Reader:
    """Columns with a role in a log, whose rows are read batch by batch.

    Parameters
    ----------
    names, refuse
        The columns of the first file, and what makes an error that names it.
    columns
        As `ActionLog.read` takes them.
    arms, demonstrations
        The columns of labels, with the labels met so far.

    Attributes
    ----------
    name
        The column of each role.
    notices
        What the user should know about the columns.
    """

    def __init__(
        self, names: Sequence[str], refuse: Refuse, columns: Mapping[str, str] | None, arms: LabelColumn,
        demonstrations: LabelColumn,
    ) -> None:  # fmt: skip
        named = check_roles(columns)
        positions = find_columns(names, columns, refuse)
        self.name = {role: names[at] for role, at in positions.items()}
        self.notices = () if named.get("reward") == "" else reward_notices(names, positions)
        self.notices += unread_notices(names, positions, named)
        self.named, self.counter = named, RoundCounter()
        self.arms, self.demonstrations = arms, demonstrations
        arms.name, demonstrations.name = self.name["arm"], self.name.get("demonstration", "")

    def read_choices_only(self, refuse: Refuse) -> None:
        """Leave rewards unread, and refuse a table of counts, as a log requires of which only tallies are kept."""
        if "pulls" in self.name:
            raise refuse(
                "expected one row per choice; got a table of counts, which needs no scanning.",
                column=self.name["pulls"],
                remedy=f"Read it with ActionLog.read, or name the column of rounds with "
                f"{option('columns', {'round': 'NAME'})}.",
            )
        if "reward" in self.name:
            name = self.name.pop("reward")
            text = f'column "{name}" is not read: a log that is scanned gives no rewards.'
            self.notices += (Notice("reading", text),)

    @property
    def demonstration_names(self) -> Sequence[str]:
        """Return the demonstrations met so far."""
        return self.demonstrations.coder.labels if "demonstration" in self.name else ("1",)

    def read(self, batch: Batch) -> Rows:
        """Turn the next rows into codes."""
        codes = self.arms.code(batch, batch.columns[self.name["arm"]])
        if "demonstration" not in self.name:
            return Rows(codes, np.array([0, codes.size]), np.zeros(1, np.int64))
        starts, who = self._runs(batch, batch.columns[self.name["demonstration"]])
        return Rows(codes, starts, who)

    def read_in_order(self, batch: Batch) -> Rows:
        """Turn the next rows into codes; refuse them if their rounds do not follow on those read before."""
        rows, column = self.read(batch), self.name.get("round")
        if column is not None:
            rounds = whole_numbers(batch, batch.columns[column], column, "round")
            self.counter.check(batch.refuse, rounds, column, rows.starts, rows.who, self.demonstration_names)
        return rows

    def known(self) -> tuple[int, int]:
        """Return how many demonstrations and arms were met so far."""
        return len(self.demonstration_names), len(self.arms.coder)

    def check(self) -> None:
        """Refuse, when all rows are read, labels that stand for nothing."""
        self.arms.check()
        self.demonstrations.check()

    def _runs(self, batch: Batch, column: pl.Series) -> tuple[Integers, Integers]:
        """Find where another demonstration begins; as a rule only these rows need to be looked up."""
        refuse_missing(batch, column, self.demonstrations.name, "demonstration")
        if column.dtype == pl.String or column.dtype.is_integer():
            changed = (column[1:] != column[:-1]).to_numpy()
            starts = np.concatenate(([0], np.flatnonzero(changed) + 1, [len(column)]))
        else:
            starts = np.arange(len(column) + 1)
        who = self.demonstrations.code(batch, column.gather(starts[:-1]), starts)
        changes = _starts(who)  # labels that differ as written may be the same
        return starts[changes], who[changes[:-1]].astype(np.int64)


def _starts(values: NDArray[Any]) -> Integers:
    """Return the rows in which another value begins, the first too, and the end."""
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1, [values.size]))


def whole_numbers(batch: Batch, column: pl.Series, name: str, role: str) -> Integers:
    """Return a column of whole numbers; refuse everything else."""
    refuse_missing(batch, column, name, role)
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if kind.is_integer() and (kind != pl.UInt64 or int(column.max()) < 1 << 63):  # type: ignore[arg-type]
        return column.cast(pl.Int64).to_numpy()
    if not (column.dtype == pl.String or kind.is_numeric()):
        raise batch.refuse(
            f"expected whole numbers for {role}; got a column of type {kind}.",
            column=name,
            remedy=f"Name another column with {option('columns', {role: 'NAME'})}, or leave this one out.",
        )
    text = column
    if column.dtype == pl.String:
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count():
            text = column.str.strip_chars()
            whole = text.cast(pl.Int64, strict=False)
        if not whole.null_count():
            return whole.to_numpy()
    # Not integers throughout: "3.0" and 3.0 are whole as well.
    values = text.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    wrong = ~(np.isfinite(values) & (np.abs(values) < 1 << 53))
    wrong |= np.where(wrong, 0.0, values) % 1 != 0
    if wrong.any():
        row = int(np.argmax(wrong))
        value = column[row]
        is_blank = isinstance(value, str) and not value.strip()
        got = "a blank cell" if is_blank else f'"{value}"' if isinstance(value, str) else str(value)
        raise batch.refuse(
            f"expected a whole number for {role}; got {got}.",
            row=row + 1,
            column=name,
            value=value,
            remedy="Correct it or remove the row.",
        )
    return values.astype(np.int64)


class Parts(NamedTuple):
    """What a log consists of; see `ActionLog`."""

    arms: tuple[str, ...]
    actions: Codes | None
    offsets: Integers
    demonstrations: Sequence[str]
    reading: tuple[Notice, ...] = ()
    rewards: Rewards | None = None
    counts: Integers | None = None


class Collection:
    """All rows of a log in memory, as they come from the files.

    Parameters
    ----------
    sources
        Files, or a dataframe.
    reader
        What reads them.
    rows
        How many are read at once, about.

    Attributes
    ----------
    codes, starts, who
        As in `Rows`.
    numbers
        The rounds, or in a table of counts the pulls, of each row, batch by batch; empty where there are none.
    is_in_order
        Whether rounds count up from 0 or 1 within each demonstration, if the rows of each are contiguous.
    rewards
        The column of rewards, if there is one.
    """

    def __init__(self, sources: Sequence[Source], reader: Reader, rows: int) -> None:
        names, role = reader.name, next((role for role in ("pulls", "round") if role in reader.name), None)
        self.rewards: RewardColumn | None = None
        if "reward" in names and role != "pulls":
            self.rewards = RewardColumn(names["reward"], named="reward" in reader.named)
        self._source, self._batches, self._begins, total = sources[0], list[Batch](), list[int](), 0
        parts, self.numbers, self.is_in_order = list[Rows](), list[Integers](), True
        firsts = list[Integers]()
        for batch in batches_of(sources, names.values(), rows):
            parts.append(reader.read(batch))
            if self.rewards is not None:
                self.rewards.read(batch, batch.columns[self.rewards.name])
            if role is not None:
                self.numbers.append(whole_numbers(batch, batch.columns[names[role]], names[role], role))
                firsts.append(self.numbers[-1][parts[-1].starts[:-1]])
                self.is_in_order = self.is_in_order and counts_up(self.numbers[-1], parts[-1].starts)
            batch.columns = {}
            self._batches.append(batch)
            self._begins.append(total)
            total += parts[-1].codes.size
        reader.check()
        kind = smallest_type(len(reader.arms.coder))
        self.codes: Codes = np.concatenate([each.codes for each in parts], dtype=kind, casting="unsafe")
        starts = [each.starts[:-1] + begin for each, begin in zip(parts, self._begins, strict=True)]
        self.starts, self.who = np.concatenate([*starts, [total]]), np.concatenate([each.who for each in parts])
        if firsts:
            self.is_in_order = self.is_in_order and runs_follow(np.concatenate(firsts), self.starts, self.who)

    def refuse(self, text: str, *, row: int | None = None, **data: Any) -> LogError:
        """Return the error that names the file and the row in it, given a row of the log (from 1)."""
        if row is None:
            return self._source.refuse(text, **data)
        at = bisect_right(self._begins, row - 1) - 1
        return self._batches[at].refuse(text, row=row - self._begins[at], **data)


def batches_of(sources: Sequence[Source], names: Iterable[str], rows: int = ROWS) -> Iterator[Batch]:
    """Read columns of all sources; refuse a log without rows."""
    wanted, is_empty = list(names), True
    for source in sources:
        for batch in source.batches(wanted, rows):
            is_empty = False
            yield batch
    if is_empty:
        raise sources[0].refuse_empty()


def collect(
    sources: Sequence[Source], columns: Mapping[str, str] | None, arms: Sequence[object] | None, rows: int = ROWS
) -> Parts:
    """Read a log into memory, and put its rows in the order of demonstrations and rounds.

    Parameters
    ----------
    sources
        Files, or a dataframe.
    columns, arms
        As `ActionLog.read` takes them.
    rows
        How many are read at once, about.
    """
    expected, first = None if arms is None else given_arms(arms), sources[0]
    reader = Reader(first.names, first.refuse, columns, LabelColumn("arm", expected), LabelColumn("demonstration"))
    check_alike(sources, list(reader.name.values()))
    table = Collection(sources, reader, rows)
    known = reader.arms.coder.labels
    present = known if expected is None else [known[code] for code in np.unique(table.codes)]
    notices = reader.notices + case_notices(present)
    demonstrations = tuple(reader.demonstration_names)
    if "pulls" in reader.name:
        return _counted(table, reader, demonstrations, notices)
    lengths = np.bincount(table.who, np.diff(table.starts)).astype(np.int64)
    offsets = offsets_of(lengths)
    if len(demonstrations) > 1 and lengths.max() == 1:
        notices += lone_row_notices(reader.name["demonstration"])
    rewards = None if table.rewards is None else table.rewards.values()
    if table.rewards is not None:
        notices += (table.rewards.notice(),)
    codes = table.codes
    places = _places(table, reader, offsets, demonstrations)
    if places is not None:
        codes = _moved(codes, places)
        rewards = None if rewards is None else _moved(rewards, places)
    order = arm_order(reader.arms, lambda: codes[_first_appearances(codes, len(known))], table.refuse)
    labels = tuple(known[code] for code in order)
    return Parts(labels, renumbered(codes, order), offsets, demonstrations, notices, rewards)


def _places(table: Collection, reader: Reader, offsets: Integers, names: Sequence[str]) -> Integers | None:
    """Return the place of each row in the log; None if all are in place."""
    is_grouped = bool((table.who[1:] >= table.who[:-1]).all())
    if is_grouped and (not table.numbers or table.is_in_order):
        return None
    demonstration = None if len(names) == 1 else np.repeat(table.who, np.diff(table.starts))
    if table.numbers:
        rounds = np.concatenate(table.numbers)
        return places_by_round(table.refuse, rounds, reader.name["round"], demonstration, offsets, names)
    places = np.empty(offsets[-1], np.int64)
    places[np.argsort(demonstration, kind="stable")] = np.arange(offsets[-1])  # type: ignore[arg-type]
    return places


def _moved(values: NDArray[Any], places: Integers) -> NDArray[Any]:
    moved = np.empty_like(values)
    moved[places] = values
    return moved


def _counted(table: Collection, reader: Reader, names: tuple[str, ...], notices: tuple[Notice, ...]) -> Parts:
    """Arrange pulls as (demonstrations, arms); refuse what no counting gives."""
    order = arm_order(reader.arms, lambda: table.codes[first_rows(table.codes)], table.refuse)
    labels = tuple(reader.arms.coder.labels[code] for code in order)
    codes, pulls, column = renumbered(table.codes, order), np.concatenate(table.numbers), reader.name["pulls"]
    if (pulls < 0).any():
        row = int(np.argmax(pulls < 0))
        raise table.refuse(
            f"expected a count of 0 or more for pulls; got {pulls[row]}.",
            row=row + 1,
            column=column,
            value=int(pulls[row]),
            remedy="Correct it.",
        )
    cell = np.repeat(table.who, np.diff(table.starts)) * len(labels) + codes
    distinct, first = np.unique(cell, return_index=True)
    if distinct.size < cell.size:
        row = int(np.setdiff1d(np.arange(cell.size), first)[0])
        raise table.refuse(
            f'expected each arm once in a table of pulls; got "{labels[int(codes[row])]}" again.',
            row=row + 1,
            column=reader.name["arm"],
            value=labels[int(codes[row])],
            remedy="Add its counts up, or, if every row is one choice, name the column of rounds with "
            f"{option('columns', {'round': 'NAME'})}.",
        )
    counts = np.zeros((len(names), len(labels)), np.int64)
    counts.reshape(-1)[cell] = pulls
    if counts.sum(dtype=np.float64) >= 2**62:
        raise table.refuse(
            "expected counts that add up to less than 2^62; got more.", column=column, remedy="Correct them."
        )
    for which in np.flatnonzero(counts.sum(axis=1) == 0).tolist():
        where = f' in demonstration "{names[which]}"' if len(names) > 1 else ""
        raise table.refuse(
            f"expected at least one pull{where}; got 0 for every arm.",
            column=column,
            value=0,
            remedy=f"Check that this is the column of counts, or name it with {option('columns', {'pulls': 'NAME'})}.",
        )
    if "reward" in reader.name:
        text = f'column "{reader.name["reward"]}" is ignored: a table of counts has no rounds to give rewards to.'
        notices += (Notice("reading", text),)
    return Parts(labels, None, offsets_of(counts.sum(axis=1)), names, notices, counts=counts)


def offsets_of(lengths: NDArray[np.integer[Any]]) -> Integers:
    """Return where each demonstration begins, and the end."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def lone_row_notices(column: str) -> tuple[Notice, ...]:
    """Say that the column of demonstrations is different in every row."""
    text = f'column "{column}" is different in every row: each row is read as a separate demonstration.'
    return (Notice("reading", text),)


def arm_order(arms: LabelColumn, by_appearance: Callable[[], Integers | Codes], refuse: Refuse) -> Integers:
    """Return the code of each arm: as listed by the user, else by value if all are numbers, else as they appear.

    Parameters
    ----------
    arms
        The column of arms, read to its end.
    by_appearance
        Returns the codes in the order in which they first appear.
    refuse
        Makes the error that refuses a single arm.
    """
    labels = arms.coder.labels
    if arms.expected is not None:
        return np.arange(len(labels))
    if len(labels) < 2:
        raise refuse(
            f'expected two arms or more; got only "{labels[0]}".',
            column=arms.name,
            value=labels[0],
            remedy=f"List every arm there was, pulled or not, with {option('arms', [labels[0], 'OTHER'])}.",
        )
    if all(map(is_number, labels)):
        place = {label: code for code, label in enumerate(labels)}
        return np.array([place[label] for label in natural_order(labels)])
    return np.asarray(by_appearance(), np.int64)


def renumbered(codes: Codes, order: Integers) -> Codes:
    """Replace each code by its place in `order`."""
    if bool((order == np.arange(order.size)).all()):
        return codes
    place = np.argsort(order).astype(smallest_type(order.size))
    # In blocks, since an index is widened to eight bytes per entry.
    return np.concatenate([place[codes[at : at + ROWS]] for at in range(0, codes.size, ROWS)])


def _first_appearances(codes: Codes, count: int) -> Integers:
    """Return the row in which each of `count` codes first appears, as a rule from the first rows alone."""
    rows = first_rows(codes[:ROWS])
    return rows if rows.size == count else first_rows(codes)


def collect_choices(actions: Any, arms: Sequence[object] | None, rewards: Any = None) -> Parts:
    """Check choices in memory, and the rewards beside them where some are known; see `ActionLog.from_actions`."""
    expected = None if arms is None else given_arms(arms)
    flat, lengths = _flattened(actions)
    if not lengths.all():
        raise LogError(
            f"expected at least one choice in each demonstration; demonstration {lengths.argmin() + 1} has none.",
            remedy="Leave it out.",
        )
    known = None if rewards is None else check_rewards(rewards, lengths.tolist())
    offsets, names = offsets_of(lengths), numbered(len(lengths))
    is_integers = isinstance(flat, np.ndarray) and flat.dtype.kind in "iu"
    plain = _plain_arms(flat, expected) if is_integers else None
    if plain is not None:
        return Parts(plain, flat, offsets, names, rewards=known)
    values, column, parts = flat if is_integers else series_of(flat), LabelColumn("arm", expected), []
    for at in range(0, len(values), ROWS):
        cells = series_of(values[at : at + ROWS])
        parts.append(column.code(Batch({"arm": cells}, rows_before=at), cells))
    column.check()
    codes: Codes = np.concatenate(parts, dtype=smallest_type(len(column.coder)), casting="unsafe")
    order = arm_order(column, lambda: codes[_first_appearances(codes, len(column.coder))], LogError)
    labels = tuple(column.coder.labels[code] for code in order)
    is_plain = is_integers and labels == tuple(map(str, range(len(labels))))
    codes = flat if is_plain else renumbered(codes, order)  # the integers 0 to K - 1 are kept, not copied
    return Parts(labels, codes, offsets, names, rewards=known)


def _plain_arms(values: Codes, expected: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the labels 0 to K - 1 if integers are quickly seen to be these, each of them pulled or listed."""
    low, high = int(values.min()), int(values.max())
    count = high + 1 if expected is None else len(expected)
    if low < 0 or high >= count or count < 2 or count > ROWS:
        return None
    labels = tuple(map(str, range(count)))
    is_plain = np.unique(values[:ROWS]).size == count if expected is None else expected == labels
    return labels if is_plain else None


def _flattened(actions: Any) -> tuple[Any, Integers]:
    """Lay demonstrations one after the other; return them with their lengths."""
    if not isinstance(actions, np.ndarray | list | tuple | str) and is_frame(actions):
        raise ParameterError(
            "expected choices; got a dataframe.", parameter="actions", remedy="Use ActionLog.from_frame."
        )
    if isinstance(actions, np.ndarray):
        if actions.ndim not in (1, 2):
            raise ParameterError(
                f"expected one sequence, or an array with one row per demonstration; got shape {actions.shape}.",
                parameter="actions",
            )
        return actions.reshape(-1), np.full(actions.shape[0] if actions.ndim == 2 else 1, actions.shape[-1])
    if hasattr(actions, "dtype"):  # a column of a dataframe
        return actions, np.array([len(actions)])
    if isinstance(actions, dict) or not isinstance(actions, Iterable):
        raise ParameterError(f"expected a sequence of choices; got {type(actions).__name__}.", parameter="actions")
    rows = list(actions)
    nested = [_is_sequence(row) for row in rows]
    if not any(nested):
        return _as_array(rows), np.array([len(rows)])
    if not all(nested):
        raise ParameterError(
            f"expected either choices or sequences of choices; got both (position {nested.index(not nested[0]) + 1}).",
            parameter="actions",
            remedy="Put single choices in a list of their own.",
        )
    demonstrations = [_as_array(row if isinstance(row, np.ndarray) else list(row)) for row in rows]
    lengths = np.array([len(demonstration) for demonstration in demonstrations])
    if all(isinstance(one, np.ndarray) and one.dtype.kind in "iu" and one.ndim == 1 for one in demonstrations):
        return np.concatenate(demonstrations), lengths
    return [label for demonstration in demonstrations for label in _plain(demonstration)], lengths


def _as_array(labels: Any) -> Any:
    """Pack integers into an array, which is coded faster; leave everything else alone."""
    if isinstance(labels, list) and all(type(label) is int for label in labels):
        try:
            return np.array(labels, dtype=np.int64)
        except OverflowError:
            pass
    return labels


def _plain(labels: Any) -> list[Any]:
    plain: list[Any] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    return plain


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray | pl.Series) and not isinstance(value, str | bytes)
