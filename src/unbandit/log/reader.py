"""The reader of logs: it checks the cells of its columns, and turns batches of rows into codes.

Scanned and growing logs only count what it gives; `Collection` gathers all of it for logs in memory.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice, option
from unbandit.formatting import counted, plural
from unbandit.log.columns import (
    FIRST_ROWS,
    Demonstrations,
    column_notices,
    date_and_clock,
    find_columns,
    is_count_like,
    is_mark_like,
    may_be_data,
    naming,
    noun_of,
    role_of,
)
from unbandit.log.labels import (
    MOST_SPAN,
    Codes,
    Integers,
    LabelColumn,
    Refuse,
    are_blank,
    first_rows,
    is_number,
    refuse_missing,
    run_starts,
    smallest_type,
)
from unbandit.log.numbers import LogTimes, RoundColumn, are_dates_with_clocks, joined_times, whole_numbers
from unbandit.log.rewards import RewardColumn, Rewards
from unbandit.log.sources import ROWS, Batch, Columns, Source

MOST_PAIRS_NAMED = 3  # of labels that look alike
_NO_CHOICE = "expected a choice in some row; got only blank cells."
FEWEST_ROWS = 10  # by which nearly all values of a column can be said to be different


class Rows(NamedTuple):
    """Rows of a batch."""

    codes: Codes  # the arm of each row
    starts: Integers  # where each run of rows of one demonstration begins, and the end
    who: Integers  # the demonstration of each run


class Reader:
    """Columns with a role in a log (`name`, by role), whose rows are read batch by batch; `columns` are all of them.

    It is made from the columns of the first file and what makes an error that names it, the columns as `ActionLog.read`
    takes them, and the columns of labels, with the labels met so far. `perhaps_counts` is a column that may hold counts
    of choices, though the rows are read as rounds, and `perhaps_mark` one that may mark the chosen one of several
    offers. With `skip_blank` rows without a choice are marked, not refused.
    """

    def __init__(
        self, names: Sequence[str], refuse: Refuse, columns: Columns, arms: LabelColumn, demonstrations: LabelColumn,
        *, skip_blank: bool = False,
    ) -> None:  # fmt: skip
        self.blank: list[NDArray[np.bool_]] | None = [] if skip_blank else None  # rows without a choice, by batch
        positions, self.named = find_columns(names, columns, refuse), dict(columns or {})
        self.name = {role: "+".join(names[at] for at in places) for role, places in positions.items()}
        self.notices = column_notices(names, positions, self.named)
        self.arms, self.demonstrations = arms, demonstrations
        read = {at for role, places in positions.items() if role != "round" or role in self.named for at in places}
        counts = (name for at, name in enumerate(names) if at not in read and is_count_like(name))
        self.perhaps_counts = None if "pulls" in {*positions, *self.named} else next(counts, None)
        arm = self.name["arm"]
        self.perhaps_mark = next((name for name in names if is_mark_like(name) and name != arm), None)
        keys = [names[at] for at in positions.get("demonstration", ())]
        self._keys = {name: LabelColumn("demonstration") for name in keys} if len(keys) > 1 else {}
        for name, key in self._keys.items():
            key.name = name
        self._halves = [names[at] for at in positions.get("round", ())]  # of the round, if there are two: date and time
        self._open_roles = {"demonstration", "round", "reward"} - {*positions, *self.named}
        self._open_roles -= {"round", "reward"} if "pulls" in positions else set()
        arms.name, demonstrations.name = self.name["arm"], self.name.get("demonstration", "")

    def columns(self, *roles: str) -> list[str]:
        """Return the columns of some roles, by default of all that there are."""
        wanted = [role for role in self.name if role in roles or not roles]
        several = {"demonstration": [*self._keys], "round": self._halves}
        each = (several.get(role) or [self.name[role]] for role in wanted)
        return [name for names in each for name in names]

    @property
    def demonstration_names(self) -> Sequence[str]:
        """Return the demonstrations met so far."""
        return self.demonstrations.coder.labels if "demonstration" in self.name else ("1",)

    @property
    def names_with_column(self) -> Demonstrations:
        """Return all of them, when all rows are read, with the column that they come from."""
        return Demonstrations.of(self.demonstration_names, self.name.get("demonstration"))

    def read(self, batch: Batch) -> Rows:
        """Turn the next rows into codes."""
        for name, row in batch.late.items():
            if (role := role_of(name)) in self._open_roles:
                text = (
                    f'expected a member "{name}" from the first objects on, to be read as {role}; it comes later only.'
                )
                remedy = f"Write it in the first object too, or say that there is none with {naming(role, '')}."
                raise batch.refuse(text, row=row, column=name, remedy=remedy)
        codes = self._choices(batch)
        if "demonstration" not in self.name:
            return Rows(codes, np.array([0, codes.size]), np.zeros(1, np.int64))
        starts, who = self._joined_runs(batch) if self._keys else self._runs(batch)
        changes = run_starts(who)  # labels that differ as written may be the same
        return Rows(codes, starts[changes], who[changes[:-1]].astype(np.int64))

    def rounds_in(self, batch: Batch) -> pl.Series:
        """Return the cells of rounds, of two columns joined."""
        each = [batch.columns[name].alias(name) for name in self._halves]
        return each[0] if len(each) == 1 else joined_times(batch.refuse, *each).alias(self.name["round"])

    def _choices(self, batch: Batch) -> Codes:
        """Code the arms of all rows; where rows without one are skipped, note these, whose codes mean nothing."""
        column = batch.columns[self.name["arm"]]
        if self.blank is None:
            return self.arms.code(batch.refuse, column)
        blank = self.arms.blank_cells(column)
        self.blank.append(blank)
        rows = np.flatnonzero(~blank)
        codes = np.zeros(len(column), np.int64)
        if rows.size:
            codes[rows] = self.arms.code(batch.refuse, column.filter(pl.Series(~blank)), rows)
        return codes

    def empty(self, batch: Batch) -> pl.Series:
        """Return which rows have no choice, no round and no reward."""
        blank = pl.Series(self.arms.blank_cells(batch.columns[self.name["arm"]]))
        for name in self.columns("round", "reward"):
            blank &= are_blank(batch.columns[name])
        return blank

    def _runs(self, batch: Batch) -> tuple[Integers, Codes]:
        """Find where another demonstration begins, and which; as a rule only these rows need to be looked up."""
        column = batch.columns[self.name["demonstration"]]
        refuse_missing(batch.refuse, column, self.demonstrations.name, "demonstration")
        if column.dtype.is_integer():
            values = column.to_numpy()
            starts = run_starts(values)
            first = pl.Series(values[starts[:-1]])  # `gather` would plan a query, which takes 6 times as long
        else:
            lengths, first = column.rle().struct.unnest()
            starts = offsets_of(lengths.to_numpy())
        return starts, self.demonstrations.code(batch.refuse, first, starts)

    def _joined_runs(self, batch: Batch) -> tuple[Integers, Codes]:
        """Do the same where several columns name a demonstration; their labels are joined once for each demonstration.

        A plus sign within a label is marked, so that no two pairs look the same.
        """
        codes = [key.code(batch.refuse, batch.columns[name]) for name, key in self._keys.items()]
        changed = np.any([each[1:] != each[:-1] for each in codes], axis=0)
        starts = np.concatenate(([0], np.flatnonzero(changed) + 1, [codes[0].size]))
        codes = [each[starts[:-1]].astype(np.int64) for each in codes]
        first, which = np.zeros(1, np.int64), np.zeros(starts.size - 1, np.int64)
        for each in codes:
            first, which = _distinct(which * (each.max() + 1) + each)
        order = np.argsort(first)  # as they appear
        keys = zip(self._keys.values(), codes, strict=True)
        columns = [[_marked(key.coder.labels[code]) for code in each[first[order]].tolist()] for key, each in keys]
        labels = pl.Series(["+".join(parts) for parts in zip(*columns, strict=True)], dtype=pl.String)
        joined = np.empty(first.size, np.int64)
        joined[order] = self.demonstrations.code(batch.refuse, labels, starts[first[order]])
        return starts, joined[which]

    def refuse_data_as_names(self, source: Source) -> None:
        """Refuse a first row that was taken for names but may be data, where nobody named the arms' column.

        A name that is a number or a time says so, and one that is also an arm, among those read so far.
        """
        arm = self.name["arm"].strip()
        if not source.begins_with_names or "arm" in self.named:
            return
        name = next((name for name in source.names if arm != "arm" and may_be_data(name)), None)
        what = "a number or a time"
        if name is None and arm in self.arms.coder.labels:
            name, what = arm, "one of the arms too"
        if name is not None:
            text = f'expected the names of columns in the first row; got "{name}", which is {what}.'
            remedy = f"If that row is data, read the file with {option('header', False)}; if it names the columns, say "
            raise source.refuse(text, column=name, value=name, remedy=f"{remedy}so with {naming('arm', arm)}.")

    def refuse_lone_rows(self, refuse: Refuse, lengths: Integers, *, numbered: bool) -> None:
        """Refuse demonstrations of fewer than two rounds on average whose column nobody named: visitors, perhaps.

        Rounds that are `numbered` confirm that it holds demonstrations, since they start over in each.
        """
        keys = self.name.get("demonstration", "demonstration").strip()
        is_meant = numbered or "demonstration" in self.named or keys == "demonstration"
        is_usual = lengths.max() > 1 and (2 * lengths.size <= lengths.sum() or lengths.sum() < FEWEST_ROWS)
        if is_meant or is_usual or lengths.size == 1:
            return
        rows = "every row" if lengths.max() == 1 else "nearly every row"
        text = f'expected several rounds in each demonstration; "{keys}" is different in {rows}: it has '
        text += f"{lengths.size:,} values in {counted(int(lengths.sum()), 'row')}."
        remedy = f"If all rows are one log, say so with {naming('demonstration', '')}; if each value of this column "
        remedy += f"is a log of its own, with {naming('demonstration', keys)}."
        raise refuse(text, column=keys, remedy=remedy)

    def check(self) -> None:
        """Refuse, when all rows are read, labels that stand for nothing."""
        for column in (self.arms, self.demonstrations, *self._keys.values()):
            column.check()


def with_clock(
    source: Source, columns: Columns, names: Sequence[str] | None = None
) -> tuple[Columns, tuple[Notice, ...]]:
    """Join a column of dates and one of times of day to the round, where both are such for sure; say so.

    Roles are found among `names`, by default all of the source.
    """
    if columns is not None and (not isinstance(columns, Mapping) or "round" in columns or columns.get("pulls")):
        return columns, ()
    names = source.names if names is None else names
    pair = date_and_clock([name for name in names if name not in (columns or {}).values()])
    if pair is None or "+" in "".join(pair):
        return columns, ()
    try:
        cells = source.head([source.names.index(name) for name in pair], FIRST_ROWS)
    except LogError:  # said where all rows are read
        return columns, ()
    if not are_dates_with_clocks(*cells):
        return columns, ()
    alone = {**(columns or {}), "round": ""}
    if "pulls" in find_columns(names, alone, source.refuse):  # a table of counts, as of some time
        return alone, ()
    text = f'"{pair[0]}" and "{pair[1]}" are read together, as the time of each row. If that is wrong, name the column '
    text += f"of rounds with {naming('round')}, or none with {naming('round', '')}."
    return {**(columns or {}), "round": "+".join(pair)}, (Notice("columns", text),)


def _distinct(values: Integers) -> tuple[Integers, Integers]:
    """Return the first place of each distinct number, by value, and which of these every number is."""
    size = int(values.max()) + 1
    if size > MOST_SPAN:
        _, first, which = np.unique(values, return_index=True, return_inverse=True)
        return first, which
    table = np.full(size, -1)
    table[values[::-1]] = np.arange(values.size - 1, -1, -1)
    distinct = np.flatnonzero(table >= 0)
    first = table[distinct]
    table[distinct] = np.arange(distinct.size)
    return first, table[values]


def _marked(label: str) -> str:
    return label.replace("\\", "\\\\").replace("+", "\\+")


def batches_of(sources: Sequence[Source], names: Iterable[str], rows: int = ROWS) -> Iterator[Batch]:
    """Read columns of all sources; refuse a log without rows."""
    wanted, is_empty = list(names), True
    for source in sources:
        for batch in source.batches(wanted, rows):
            is_empty = False
            yield batch
    if is_empty:
        raise sources[0].refuse_empty()


class Parts(NamedTuple):
    """What a log consists of; see `ActionLog`."""

    arms: tuple[str, ...]
    actions: Codes | None
    offsets: Integers
    demonstrations: Sequence[str]
    reading: tuple[Notice, ...] = ()
    rewards: Rewards | None = None
    counts: Integers | None = None
    is_numbered: bool = False  # whether a column numbers the rounds, without holes
    times: LogTimes | None = None


class NumberColumn(Protocol):
    """A column of numbers that is read batch by batch."""

    name: str

    def read(self, refuse: Refuse, column: pl.Series) -> None:
        """Read the next rows."""


class Collection:
    """All rows of a log in memory, as they come from the files; `codes`, `starts` and `who` as in `Rows`.

    `numbers` are the rounds or their times, or in a table of counts the pulls, batch by batch; empty where there are
    none; `rounds` is the column of rounds, if any. Rounds are in order if they count up from 0 or 1 within each
    demonstration, provided that the rows of each are contiguous. Columns in `also` are read beside those of the reader.
    `is_cut` says whether rows beyond about `most` were left unread, `unnumbered` how many were skipped that have no
    choice and no round.
    """

    def __init__(
        self, sources: Sequence[Source], reader: Reader, rows: int, also: Sequence[NumberColumn] = (),
        most: int | None = None,
    ) -> None:  # fmt: skip
        names, role = reader.name, next((role for role in ("pulls", "round") if role in reader.name), None)
        self.column = None if role is None else names[role]  # of `numbers`
        self.rounds = RoundColumn(names["round"]) if role == "round" else None
        self.perhaps_counts, self.perhaps_mark = reader.perhaps_counts, reader.perhaps_mark
        self.rewards: RewardColumn | None = None
        if "reward" in names and role != "pulls":
            self.rewards = RewardColumn(names["reward"], named="reward" in reader.named)
        self._source, self._batches, self._begins, total = sources[0], list[Batch](), list[int](), 0
        parts, self.numbers, self.is_in_order = list[Rows](), list[Integers](), True
        firsts, self.is_cut, self.unnumbered = list[Integers](), False, 0
        for batch in batches_of(sources, [*reader.columns(), *(column.name for column in also)], rows):
            self.is_cut = most is not None and total >= most
            if self.is_cut:
                break
            if reader.blank is not None and role == "round" and (empty := reader.empty(batch)).any():
                self.unnumbered += int(empty.sum())
                batch = batch.without(empty)
                if empty.all():
                    continue
            parts.append(reader.read(batch))
            if self.rewards is not None:
                self.rewards.read(batch.refuse, batch.columns[self.rewards.name])
            for column in also:
                column.read(batch.refuse, batch.columns[column.name])
            if role is not None:
                pulls_or_rounds = (
                    whole_numbers(batch.refuse, batch.columns[names[role]], names[role], role)
                    if self.rounds is None
                    else self.rounds.read(batch.refuse, reader.rounds_in(batch))
                )
                self.numbers.append(pulls_or_rounds)
                firsts.append(self.numbers[-1][parts[-1].starts[:-1]])
                self.is_in_order = self.is_in_order and _counts_up(self.numbers[-1], parts[-1].starts)
            batch.columns = {}
            self._batches.append(batch)
            self._begins.append(total)
            total += parts[-1].codes.size
        if not parts:
            raise self.refuse(_NO_CHOICE, column=names["arm"])
        reader.check()
        self.blank = np.concatenate(reader.blank) if reader.blank else None  # rows without a choice
        if self.blank is not None and self.blank.all():
            raise self.refuse(_NO_CHOICE, column=names["arm"])
        kind = smallest_type(len(reader.arms.coder))
        self.codes: Codes = np.concatenate([each.codes for each in parts], dtype=kind, casting="unsafe")
        starts = [each.starts[:-1] + begin for each, begin in zip(parts, self._begins, strict=True)]
        self.starts, self.who = np.concatenate([*starts, [total]]), np.concatenate([each.who for each in parts])
        if firsts:
            self.is_in_order = self.is_in_order and _runs_follow(np.concatenate(firsts), self.starts, self.who)

    def demonstration_of_rows(self) -> Integers:
        """Return the demonstration of every row."""
        if self.who.size == 1:
            return np.broadcast_to(self.who, self.codes.shape)  # which takes no room
        return np.repeat(self.who, np.diff(self.starts))

    def refuse(self, text: str, *, row: int | None = None, **data: Any) -> LogError:
        """Return the error that names the file and the row in it, given a row of the log (from 1)."""
        if row is None:
            return self._source.refuse(text, **data)
        at = bisect_right(self._begins, row - 1) - 1
        return self._batches[at].refuse(text, row=row - self._begins[at], **data)


def _counts_up(rounds: Integers, starts: Integers) -> bool:
    """Return whether rounds rise by one within each run of rows."""
    steps = rounds[1:] - rounds[:-1] == 1
    steps[starts[1:-1] - 1] = True
    return bool(steps.all())


def _runs_follow(firsts: Integers, starts: Integers, who: Integers) -> bool:
    """Return whether runs, by their first rounds, follow on each other from 0 or 1 in contiguous demonstrations."""
    goes_on = who[1:] == who[:-1]
    expected = firsts[:-1] + np.diff(starts)[:-1]
    begins = np.concatenate(([True], ~goes_on))
    return bool(np.isin(firsts[begins], (0, 1)).all() and (firsts[1:] == expected)[goes_on].all())


def offsets_of(lengths: NDArray[np.integer[Any]]) -> Integers:
    """Return where each demonstration begins, and the end."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def label_notices(
    arms: Sequence[str], demonstrations: Sequence[str] = (), lengths: Integers | None = None, column: str | None = ""
) -> tuple[Notice, ...]:
    """Say which labels look alike, and whether the column of demonstrations differs in every row."""
    texts = []
    for kind, labels in (("arm", arms), (noun_of(demonstrations), demonstrations)):
        pairs = _twins(labels) if _may_have_twins(labels) else []
        numbers = [(one, other) for one, other in pairs if is_number(one) and is_number(other)]
        capitals = [pair for pair in pairs if pair not in numbers and pair[0].casefold() == pair[1].casefold()]
        marks = [pair for pair in pairs if pair not in numbers and pair not in capitals]
        if capitals:
            texts.append(_alike(kind, capitals, "in capitals only"))
        if marks:
            texts.append(_alike(kind, marks, "in spaces, accents or the encoding of letters only"))
        if numbers:
            texts.append(_alike(kind, numbers, "in how a number is written only"))
    if lengths is not None and lengths.size > 1 and lengths.max() == 1:
        texts.append(f'column "{column}" is different in every row: each row is read as a separate demonstration.')
    return tuple(Notice("reading", text) for text in texts)


def _alike(kind: str, pairs: Sequence[tuple[str, str]], how: str) -> str:
    """Say of pairs of labels that they look alike."""
    named = ", ".join(f'"{one}" and "{other}"' for one, other in pairs[:MOST_PAIRS_NAMED])
    more = len(pairs) - MOST_PAIRS_NAMED
    named += f", and {counted(more, 'more pair')}," if more > 0 else ""
    each = " each" if len(pairs) > 1 else ""
    text = f"{plural(kind)} {named} differ {how} and are read as two{each}. "
    return f"{text}If they are the same {kind}, spell them alike."


def _may_have_twins(labels: Sequence[str]) -> bool:
    """Return quickly whether labels may look alike; there may be millions of them."""
    text = "\0".join(labels)
    if text.isascii() and text.replace("\0", "").isdecimal():
        return re.search("(^|\0)0[^\0]", text) is not None  # "01" may be 1
    column = pl.Series(labels, dtype=pl.String)
    numbers = column.filter(column.str.contains(r"^[+-]?\.?[0-9]"))
    values = numbers.str.strip_prefix("+").cast(pl.Float64, strict=False)
    if values.drop_nulls().n_unique() < len(values) - values.null_count():
        return True
    if not text.isascii():
        column = column.str.normalize("NFKC").str.replace_all("\u00df", "ss", literal=True)
    return column.str.replace_all(r"[\s\p{C}]+", "").str.to_lowercase().n_unique() < len(labels)


def _twins(labels: Iterable[str]) -> list[tuple[str, str]]:
    """Return labels that differ in capitals, spaces, encoding or a number's form, each with the first that is alike."""
    first, pairs = dict[str | Decimal, str](), list[tuple[str, str]]()
    for label in labels:
        alike = label if label.isascii() else "".join(filter(str.isprintable, unicodedata.normalize("NFKC", label)))
        other = first.setdefault(Decimal(label) if is_number(label) else " ".join(alike.casefold().split()), label)
        if other != label:
            pairs.append((other, label))
    return pairs


def arm_order(arms: LabelColumn, by_appearance: Callable[[], Integers | Codes], refuse: Refuse) -> Integers:
    """Return the code of each arm: as listed by the user, else by value if all are numbers, else as they appear."""
    labels = arms.coder.labels
    if arms.expected is not None:
        return np.arange(len(labels))
    if len(labels) < 2:
        text = f'expected two arms or more; got only "{labels[0]}".'
        remedy = f"List every arm there was, pulled or not, with {option('arms', [labels[0], 'OTHER'])}."
        raise refuse(text, column=arms.name, value=labels[0], remedy=remedy)
    if all(map(is_number, labels)):
        return np.array(sorted(range(len(labels)), key=lambda code: (Decimal(labels[code]), labels[code])))
    return np.asarray(by_appearance(), np.int64)


def in_order(arms: LabelColumn, codes: Codes, refuse: Refuse) -> tuple[tuple[str, ...], Codes]:
    """Return the labels of arms in their order, and the codes of all rows accordingly."""
    labels = arms.coder.labels

    def by_appearance() -> Codes:
        rows = first_rows(codes[:ROWS])  # as a rule all arms are among the first rows
        return codes[rows if rows.size == len(labels) else first_rows(codes)]

    order = arm_order(arms, by_appearance, refuse)
    return tuple(labels[code] for code in order), renumbered(codes, order)


def renumbered(codes: Codes, order: Integers) -> Codes:
    """Replace each code by its place in `order`."""
    if bool((order == np.arange(order.size)).all()):
        return codes
    place = np.argsort(order).astype(smallest_type(order.size))
    # In blocks, since an index is widened to eight bytes per entry.
    return np.concatenate([place[codes[at : at + ROWS]] for at in range(0, codes.size, ROWS)])


def in_demonstration(names: Sequence[str], which: int) -> str:
    """Name a demonstration within a sentence, where there are several."""
    return f' in {noun_of(names)} "{names[which]}"' if len(names) > 1 else ""
