"""Tables of offers: which columns hold features, which offer was chosen, and what belongs to one round.

Columns, labels, rounds and files are read by the reader of plain logs (`log/reader.py`), with the same refusals.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.log.columns import (
    FIRST_ROWS,
    MARKS,
    ROLES,
    column_notices,
    find_columns,
    is_count_like,
    is_mark_like,
    is_reward_like,
    is_time_like,
    naming,
    only,
    perhaps_marked,
    role_of,
    separator_remedy,
)
from unbandit.log.labels import Integers, LabelColumn, Refuse, is_number, listed
from unbandit.log.numbers import RoundColumn
from unbandit.log.reader import Collection, Reader, in_demonstration, in_order, label_notices, offsets_of, with_clock
from unbandit.log.rewards import TRUTHS, DecimalMarks, Rewards, numbers_of, words_of
from unbandit.log.rounds import (
    compared_times,
    goes_by_time,
    hole_in_times,
    moved,
    places_by_round,
    places_by_time,
    replaced_by_times,
    said_of_times,
    tied_times,
)
from unbandit.log.sources import ROWS, Arms, Columns, Source, check_alike, source_notices

Features = Sequence[str] | str | None
"""The columns of features, by name."""

CONTEXT_ROLES = ("arm", "demonstration", "round", "chosen", "reward")
MOST_CELLS = 50_000_000  # offers times features and what else is held of an offer: below 1 GB while a log is read
OTHER_CELLS = 4  # of an offer besides its features
ROUNDS_AT_ONCE = 100_000  # that are looked through for an arm that is offered twice
LARGEST_FEATURE = 1e100  # of which a computer can hold sums of products
NO_CHOICE = "expected rounds with several offers; every round has one offer, so there was nothing to choose between."
ALL_OFFERS = "Export all offers of a round, not only the chosen ones."
GROUPED_NUMBER = re.compile(r"[+-]?[1-9][0-9]{0,2}([, '\u00a0\u202f][0-9]{3})+([.][0-9]+)?")


class ContextParts(NamedTuple):
    """What a log with contexts consists of; see `ContextLog`."""

    features: NDArray[np.float64]
    offsets: Integers
    chosen: Integers
    arms: tuple[str, ...]
    codes: Integers
    feature_names: tuple[str, ...]
    starts: Integers
    demonstrations: Sequence[str]
    reading: tuple[Notice, ...]
    rewards: Rewards | None


class FeatureColumn:
    """Column of a feature, read batch by batch: a finite number in every row, or true and false as 1 and 0."""

    fill = "Fill in the number that the learner used, often 0 or an average: it learnt from this round too."
    expected = f"expected a number for a feature, up to {LARGEST_FEATURE:g}"
    truths: Mapping[str, float] = TRUTHS

    def __init__(self, name: str, role: str = "feature") -> None:
        self.name, self._role = name, role
        self._marks = DecimalMarks(name, role)
        self._batches: list[NDArray[np.float64]] = []

    def read(self, refuse: Refuse, column: pl.Series) -> None:
        """Read the next rows; refuse a cell that is no number."""
        column = self._marks.with_points(refuse, column)
        values = numbers_of(column)
        if values is None:
            text = f"expected numbers for a {self._role}; got a column of type {column.dtype}."
            raise refuse(text, column=self.name, remedy=self._remedy())
        if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
            values = values.copy()
            for row, word in words_of(column, values).items():
                values[row] = self.truths.get(word.lower(), np.nan)
        wrong = ~(np.abs(values) <= LARGEST_FEATURE)
        if wrong.any():
            row = int(np.argmax(wrong))
            value = column[row]
            blank = value is None or (isinstance(value, str) and not value.strip())
            got = "a blank cell" if blank else f'"{value}"' if isinstance(value, str) else str(value)
            text = f"{self.expected}; got {got}."
            raise refuse(text, row=row + 1, column=self.name, value=value, remedy=self._remedy("" if blank else value))
        self._batches.append(values)

    def _remedy(self, value: object = None) -> str:
        """Say what to do about a cell: one without a number, one too large, one with marks in it, or a category."""
        written = "categories" if value is None else str(value).strip()
        if written.lower() in ("", "nan", "na", "n/a", "null", "none"):
            return self.fill
        if GROUPED_NUMBER.fullmatch(written):
            plain = re.sub(r"[^0-9.+-]", "", written)
            if re.fullmatch(r"[+-]?[0-9]+,[0-9]{3}", written):
                return f"Write {plain} or {written.replace(',', '.')}, whichever is meant."
            return f"Write it without thousands separators: {plain}."
        if is_number(written) or written.lower().lstrip("+-") in ("inf", "infinity"):
            return "Correct it: a learner cannot compute with a number like this."
        if written[0].isdecimal():
            return "Write only the number, without a unit or other characters."
        return "Write categories as columns of 0 and 1, as the learner did."

    def values(self) -> NDArray[np.float64]:
        """Return all rows, once: they are not held twice."""
        self._marks.check()
        batches, self._batches = self._batches, []
        return np.concatenate(batches)


class ChosenColumn(FeatureColumn):
    """Column that marks the chosen offer of every round: 1, true or yes, and 0, false or no for the others."""

    expected = "expected 1 for the chosen offer and 0 for the others"
    truths = MARKS

    def __init__(self, name: str) -> None:
        super().__init__(name, "mark of the chosen offer")
        self._marked: list[NDArray[np.bool_]] = []

    def read(self, refuse: Refuse, column: pl.Series) -> None:
        """Read the next rows; refuse a cell that is neither 0 nor 1."""
        super().read(refuse, column)
        wrong = ~np.isin(self._batches[-1], (0.0, 1.0))
        if wrong.any():
            row = int(np.argmax(wrong))
            text = f"{self.expected}; got {column[row]}."
            raise refuse(text, row=row + 1, column=self.name, value=column[row], remedy=self._remedy())
        self._marked.append(self._batches.pop() == 1.0)

    def marks(self) -> NDArray[np.bool_]:
        """Return which rows are marked."""
        self._marks.check()
        return np.concatenate(self._marked)

    def _remedy(self, value: object = None) -> str:
        return f"Mark the chosen offer with 1, the others with 0, or name another column with {naming('chosen')}."


class AskedColumn(FeatureColumn):
    """Column of a feature in a table of contexts whose values are asked for."""

    fill = "Fill it in: a context needs a number for every feature."


class ContextTable:
    """The columns of a table with contexts: its features, the mark of the chosen offer (None in wide form), and others.

    `rest` are the names among which the roles of plain logs are found. Features are looked for unless `any_features`
    is false.
    """

    def __init__(
        self, source: Source, features: Features, columns: Columns, *, any_features: bool = True
    ) -> None:  # fmt: skip
        self.named = _checked_roles(columns)
        self.features = _feature_columns(source, features) if any_features else []
        others = [name for name in source.names if name not in self.features]
        self.chosen = _chosen_column(source, others, self.named)
        self.rest = [name for name in others if name != self.chosen]
        roles = {role: name for role, name in self.named.items() if role in ROLES} | {"pulls": ""}
        joined, self._joined = with_clock(source, roles, self.rest)
        self.roles = dict(joined or {})

    def leave_out(self, names: Set[str]) -> None:
        """Read the table as if it had no columns of these names."""
        self.rest = [name for name in self.rest if name not in names]

    def places(self, source: Source) -> dict[str, tuple[int, ...]]:
        """Return the position of the column that plays each role."""
        found = find_columns(self.rest, self.roles, source.refuse)
        places = {role: tuple(source.names.index(self.rest[at]) for at in each) for role, each in found.items()}
        return places if self.chosen is None else places | {"chosen": (source.names.index(self.chosen),)}

    def reader(self, source: Source, arms: Arms) -> Reader:
        """Return the reader of the roles that plain logs have."""
        return Reader(self.rest, source.refuse, self.roles, LabelColumn("arm", arms), LabelColumn("demonstration"))

    def notices(self) -> tuple[Notice, ...]:
        """Say which columns were taken for what; `unread` names the others."""
        read = {self.rest[at] for places in find_columns(self.rest, self.roles).values() for at in places}
        kept = [name for name in self.rest if name in read or not (is_count_like(name) or is_reward_like(name))]
        named = {role: name for role, name in self.roles.items() if role != "pulls"}
        return column_notices(kept, find_columns(kept, self.roles), named) + self._joined

    def unread(self, read: Sequence[str]) -> tuple[Notice, ...]:
        """Say which columns are neither read nor features: a feature that the learner used must not be left out."""
        left = [name.strip() for name in self.rest if name.strip() and name not in read]
        if not left:
            return ()
        named, alone = listed([f'"{name}"' for name in left]), len(left) == 1
        text = f"column {named} is not read" if alone else f"columns {named} are not read"
        which = "it" if alone else "one of them"
        text += f": if the learner used {which}, name it with {option('features')} too."
        if "reward" not in self.named and (rewards := list(filter(is_reward_like, left))):
            text += f' If "{rewards[0]}" holds the rewards, say so with {naming("reward", rewards[0])}.'
        return (Notice("reading", text),)

    def perhaps_offers(self, source: Source, reader: Reader) -> str:
        """Say how to read the rows as offers, where they were read as rounds and a column may mark the chosen ones."""
        if self.chosen is not None or self.named.get("chosen") == "":
            return ""
        left = [name for name in self.rest if name.strip() and name not in reader.columns("arm", "reward")]
        try:
            head = source.head([source.names.index(name) for name in left], FIRST_ROWS)
        except LogError:  # of a column that nothing else reads
            return ""
        keys = [name for role in ("round", "demonstration") for name in reader.columns(role)]
        found = perhaps_marked(dict(zip(left, head, strict=True)), keys)
        if found is None:
            return ""
        mark, which = (each if each is None else each.strip() for each in found)
        roles = {"chosen": mark} | ({} if "round" in reader.name else {"round": which or "NAME"})
        return f'If a row is an offer, and "{mark}" marks the chosen one, say so with {option("columns", roles)}.'


def collect_contexts(
    sources: Sequence[Source], features: Features, columns: Columns, arms: Arms, rows: int = ROWS
) -> ContextParts:
    """Read a log with contexts, in long form (one row per offer) or in wide form (one row per round)."""
    layout = ContextTable(sources[0], features, columns)
    reader = layout.reader(sources[0], arms)
    other_data = layout.features if layout.chosen is None else [*layout.features, layout.chosen]
    beside, orders = compared_times(sources, reader, other_data), tuple[Notice, ...]()
    if beside is not None:
        if layout.chosen is not None:  # the offers of a round need not share a time
            beside = beside._replace(is_disputed=True)
        orders = (said_of_times(reader, *beside),)
        if goes_by_time(reader, *beside[1:]):
            layout.leave_out(replaced_by_times(reader, layout.rest, beside.name))
            reader = layout.reader(sources[0], arms)
    reader.perhaps_mark = None  # it was looked for
    most = MOST_CELLS // (len(layout.features) + OTHER_CELLS)
    numbers = [FeatureColumn(name) for name in layout.features]
    mark = None if layout.chosen is None else ChosenColumn(layout.chosen)
    also = [*numbers, *([] if mark is None else [mark])]
    check_alike(sources, [*reader.columns(), *(column.name for column in also)])
    try:
        table = Collection(sources, reader, rows, also, most)
    except LogError as error:
        if mark is None or error.column is None or error.column != reader.name.get("round"):
            raise
        raise error.at(remedy=_numbering(layout.rest, error.column)) from None
    reader.refuse_data_as_names(sources[0])
    known, demonstrations = reader.arms.coder.labels, reader.names_with_column
    present = known if arms is None else [known[code] for code in np.unique(table.codes)]
    known_of = [*reader.columns(), *([] if beside is None else [beside.name])]
    notices = source_notices(sources) + layout.notices() + orders + layout.unread(known_of)
    notices += label_notices(present, demonstrations)
    offers = layout.perhaps_offers(sources[0], reader)
    if offers:
        notices += (
            Notice("rows-as-rounds", f"No column marks the chosen offer, so every row is read as a round. {offers}"),
        )
    arranged = _arranged_rounds if mark is None else _arranged_offers
    if table.is_cut:
        _refuse_unordered(table)
    try:
        order, bounds, lengths, timed = arranged(table, demonstrations)
    except LogError as error:
        raise error.at(remedy=f"{error.remedy}{_other_readings(reader, layout, demonstrations, offers)}") from None
    kept = _rounds_held(table, bounds, most, len(known) if mark is None else 1)
    if kept < bounds.size - 1:
        bounds, order = bounds[: kept + 1], order[: bounds[kept]]
        lengths = np.clip(kept - offsets_of(lengths)[:-1], 0, lengths)
        lengths = lengths[lengths > 0]
        demonstrations = only(demonstrations, *range(lengths.size))
        text = f"The log is too large for memory, so only its first {kept:,} rounds are read. The learner's first "
        notices += (Notice("read-in-part", f"{text}choices show its coefficients without the rest."),)
    numbered = table.rounds is not None and not table.rounds.form
    reader.refuse_lone_rows(table.refuse, lengths, numbered=numbered)
    values = np.empty((order.size, len(numbers)))
    for at, column in enumerate(numbers):
        values[:, at] = column.values()[order]
    rewards = None if table.rewards is None else table.rewards.values()
    if rewards is not None:
        rewards = rewards[order]
    arm_names, ordered = in_order(reader.arms, table.codes[order], table.refuse)
    codes = ordered.astype(np.int64)
    if mark is None:  # every arm has the context of its round
        count = len(arm_names)
        chosen, codes = codes, np.tile(np.arange(count), codes.size)
        values, offsets = np.repeat(values, count, axis=0), np.arange(chosen.size + 1) * count
    else:
        if (np.diff(bounds) == 1).all():
            remedy = f"{ALL_OFFERS} If all arms share the features of a row, say so with {naming('chosen', '')}."
            raise table.refuse(NO_CHOICE, remedy=remedy)
        offsets = bounds
        chosen = _chosen_offers(table, mark, order, bounds, demonstrations)
        _refuse_twins(table, codes, arm_names, order, bounds)
        rewards = None if rewards is None else rewards[offsets[:-1] + chosen]
    if rewards is not None:
        if np.isnan(rewards).all():
            rewards = None
        else:
            share = f"{np.isfinite(rewards).sum():,} of {rewards.size:,}"
            text = f'column "{reader.name["reward"]}" holds {share} rewards of chosen arms.'
            notices += (Notice("reading", text),)
    names = tuple(name.strip() for name in layout.features)
    starts = offsets_of(lengths)
    return ContextParts(
        values, offsets, chosen, arm_names, codes, names, starts, demonstrations, notices + timed, rewards
    )


def _rounds_held(table: Collection, bounds: Integers, most: int, offers: int) -> int:
    """Return how many rounds are held of a log in which a row is so many offers; refuse one of which none is."""
    rounds = bounds.size - 1
    rounds = min(rounds, most // offers) if offers > 1 else rounds - table.is_cut  # the last one may be a part
    if rounds < 1:
        text = f"expected at most {most:,} offers per round with this many features, to fit in memory; got more."
        raise table.refuse(text, remedy="Take fewer features.")
    return rounds


def _refuse_unordered(table: Collection) -> None:
    """Refuse a log of which not all rows were read, unless those that were are its first rounds."""
    who, rounds = table.demonstration_of_rows(), np.concatenate(table.numbers or [np.zeros(table.codes.size, np.int64)])
    if ((who[1:] < who[:-1]) | ((who[1:] == who[:-1]) & (rounds[1:] < rounds[:-1]))).any():
        text = "expected rows sorted by demonstration and round, since the log is too large for memory: more than "
        remedy = "Sort the rows: the first part can then be read without the rest."
        raise table.refuse(f"{text}{table.codes.size:,} rows; got another order.", remedy=remedy)


def _numbering(names: Sequence[str], column: str) -> str:
    """Say how rounds of several offers are numbered, and which column has times instead."""
    remedy = "Number the rounds 1, 2, ... in the order in which they were played, with one number for all offers of a "
    times = [name for name in names if is_time_like(name) and name != column]
    return remedy + (
        "round." if not times else f"round; or put them in order by time with {naming('round', times[0])}."
    )


def _other_readings(reader: Reader, layout: ContextTable, demonstrations: Sequence[str], offers: str) -> str:
    """Say how else a table may be read of which the rounds are wrong: as one log, or with a row for each offer."""
    remedy = ""
    if len(demonstrations) > 1 and "demonstration" not in layout.named:
        keys = reader.name["demonstration"].strip()
        remedy = f' "{keys}" was read as the demonstration: if all rows are one log, say so with '
        remedy += f"{naming('demonstration', '')}."
    if layout.chosen is None and is_mark_like(arm := reader.name["arm"]):
        remedy += f' "{arm}" was read as the arm. If every row is an offer, and "{arm}" marks the chosen one, the '
        remedy += f'column of arms is missing: add one "arm", or name it with {naming("arm")}.'
    elif offers:
        remedy += f" {offers}"
    elif layout.chosen is None:
        remedy += f" If every row is an offer, name the column that marks the chosen one with {naming('chosen')}."
    return remedy


def holds_offers(source: Source) -> bool:
    """Return whether a table looks like one of offers: with a mark of the chosen one, and columns without a role."""
    try:
        table = ContextTable(source, None, None, any_features=False)
        return table.chosen is not None and len(table.places(source)) < len(source.names)
    except LogError:
        return False


def _checked_roles(columns: Columns) -> dict[str, str]:
    """Refuse a role that a log with contexts does not have."""
    if columns is not None and not isinstance(columns, Mapping):
        text = f"expected the column of each role; got {type(columns).__name__}."
        raise ParameterError(text, parameter="columns", value=columns, remedy='Write it as {"arm": "picked"}.')
    for role in columns or {}:
        checks.one_of("columns", role, CONTEXT_ROLES)
    return dict(columns or {})


def _feature_columns(source: Source, features: Features) -> list[str]:
    """Return the columns of features as the table has them; refuse names that it has not, and repeats."""
    given = [features] if isinstance(features, str) else features
    free = [name for name in source.names if role_of(name) is None and not is_mark_like(name)]
    if given is None or not checks.is_list(given) or not len(given) or not all(isinstance(name, str) for name in given):
        text = f"expected the columns of features, by name; got {checks.brief(features)}."
        example = option("features", [name.strip() for name in free[:12]] or ["x1", "x2"])
        raise ParameterError(text, parameter="features", value=features, remedy=f"Name them with {example}.")
    found = list[str]()
    for name in given:
        exact = [there for there in source.names if there == name] or [
            there for there in source.names if there.strip() == name.strip() != ""
        ]
        if len(exact) != 1:
            text = f'expected a column "{name}" among the features; the table has {listed(source.names)}.'
            near = checks.did_you_mean(name, source.names) or f"Name columns of it with {option('features')}."
            near = separator_remedy(source.names) or near
            raise source.refuse(text, column=name, value=name, remedy=near)
        if exact[0] in found:
            text = f'expected each feature once; got "{name}" twice.'
            raise ParameterError(text, parameter="features", value=name, remedy="Name it once.")
        found.append(exact[0])
    return found


def _chosen_column(source: Source, names: Sequence[str], columns: Mapping[str, str]) -> str | None:
    """Return the column that marks the chosen offer; None for the wide form, where the arm's column is the choice."""
    given = columns.get("chosen")
    if given is not None and not isinstance(given, str):
        text = f"expected the name of a column for chosen; got {checks.brief(given)}."
        raise ParameterError(text, parameter="columns", value=given)
    if given == "":
        return None
    if given is not None:
        found = [name for name in names if name.strip() == given.strip()]
        if not found:
            text = f'expected a column "{given}" for chosen; the table has {listed(source.names)}.'
            raise source.refuse(text, column=given, value=given, remedy=f"Name one of these with {naming('chosen')}.")
        return found[0]
    free = [name for name in names if name.strip() not in {each.strip() for each in columns.values()}]
    marks = list(filter(is_mark_like, free))
    marks = [name for name in marks if name.strip() == "chosen"] or marks
    others = [name for name in names if name not in marks]
    if not marks or not (columns.get("arm") or any(role_of(name) == "arm" for name in others)):
        return None
    if len(marks) > 1:
        both = " and ".join(f'"{name}"' for name in marks)
        remedy = f"Say which one it is with {naming('chosen', marks[0])}."
        raise source.refuse(f"expected one column that marks the chosen offer; got {both}.", remedy=remedy)
    return marks[0]


Arranged = tuple[Integers, Integers, Integers, tuple[Notice, ...]]
"""The rows in order, where rounds begin and the end, how many rounds each demonstration has, and what to say."""


def _arranged_rounds(table: Collection, demonstrations: Sequence[str]) -> Arranged:
    """Put the rows of a wide table in order: one row is one round."""
    lengths = np.bincount(table.who, np.diff(table.starts)).astype(np.int64)
    notices: tuple[Notice, ...] = ()
    if table.rounds is not None and table.rounds.form:
        places, notice, newest_first = places_by_time(table, table.rounds)
        holes = hole_in_times(moved(np.concatenate(table.numbers), places), table.rounds, offsets_of(lengths))
        notices = (notice, *tied_times(table, places, table.rounds.name, newest_first=newest_first), *holes)
    else:
        by_round, _ = places_by_round(table, offsets_of(lengths), demonstrations, True)
        places = np.arange(table.codes.size) if by_round is None else by_round
    order = moved(np.arange(places.size), places)
    return order, np.arange(places.size + 1), lengths, notices


def _arranged_offers(table: Collection, demonstrations: Sequence[str]) -> Arranged:
    """Put the rows of a long table in order: rows of one round, in one demonstration, are its offers."""
    if table.rounds is None:
        text = "expected a column that says to which round each offer belongs; got none."
        raise table.refuse(text, column="round", remedy=f"Name it with {naming('round')}.")
    rounds, who = np.concatenate(table.numbers), table.demonstration_of_rows()
    table.numbers = [rounds]  # not held twice
    same = who[1:] == who[:-1]
    if (who[1:] >= who[:-1]).all() and (rounds[1:] >= rounds[:-1])[same].all():  # in order, as most are
        order = np.arange(rounds.size)
        step = np.diff(rounds)
    else:
        order = np.lexsort((rounds, who))  # stable: offers stay as they are written
        step, same = np.diff(rounds[order]), np.diff(who[order]) == 0
    bounds = np.concatenate(([0], np.flatnonzero(~same | (step != 0)) + 1, [rounds.size]))
    lengths = np.bincount(who[order[bounds[:-1]]], minlength=len(demonstrations)).astype(np.int64)
    if table.rounds.form:
        backward = int(np.count_nonzero(np.diff(rounds)[np.diff(who) == 0] < 0))
        holes = hole_in_times(rounds[order[bounds[:-1]]], table.rounds, offsets_of(lengths))
        return order, bounds, lengths, (table.rounds.notice(0, backward=backward), *holes)
    begins = bounds[offsets_of(lengths)[:-1]]
    late = begins[~np.isin(rounds[order[begins]], (0, 1))]
    gaps = np.flatnonzero(same & (step > 1)) + 1
    if late.size or gaps.size:
        at = int(order[late[0] if late.size else gaps[0]])
        value, where = int(rounds[at]), in_demonstration(demonstrations, int(who[at]))
        text = f"expected rounds from 0 or 1{where}; they begin at {value}, so the opening is missing."
        if not late.size:
            last = int(rounds[order[gaps[0] - 1]])
            text = f"expected round {last + 1} after round {last}{where}; got {value}."
        remedy = "Add the missing rows: a learner remembers what it learnt in them."
        raise table.refuse(text, row=at + 1, column=table.column, value=value, remedy=remedy)
    return order, bounds, lengths, ()


def _chosen_offers(
    table: Collection, mark: ChosenColumn, order: Integers, bounds: Integers, demonstrations: Sequence[str]
) -> Integers:
    """Return which offer of every round was chosen; refuse rounds with none or with several."""
    marks = mark.marks()[order]
    counts = np.add.reduceat(marks, bounds[:-1], dtype=np.int64)
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        begin, end = bounds[wrong[0]], bounds[wrong[0] + 1]
        chosen = np.flatnonzero(marks[begin:end])
        at = int(order[begin + (chosen[1] if chosen.size else 0)])
        which = _written_round(table, at)
        where = in_demonstration(demonstrations, int(table.demonstration_of_rows()[at]))
        got = f"{chosen.size}" if chosen.size else "none"
        text = f"expected one chosen offer in round {which}{where}; got {got}."
        remedy = "Mark the offer that was chosen with 1 and all others with 0, or give the rounds different numbers."
        raise table.refuse(text, row=at + 1, column=mark.name, remedy=remedy)
    return np.flatnonzero(marks) - bounds[:-1]


def _written_round(table: Collection, row: int) -> str:
    """Write the round of a row as the table has it."""
    number, column = int(np.concatenate(table.numbers)[row]), table.rounds
    return column.written(number) if isinstance(column, RoundColumn) and column.form else str(number)


def _refuse_twins(table: Collection, codes: Integers, arms: Sequence[str], order: Integers, bounds: Integers) -> None:
    """Refuse an arm that is offered twice in a round."""
    for first in range(0, bounds.size - 1, ROUNDS_AT_ONCE):
        own = bounds[first : first + ROUNDS_AT_ONCE + 1]
        which = np.repeat(np.arange(own.size - 1), np.diff(own)) * len(arms) + codes[own[0] : own[-1]]
        _, seen = np.unique(which, return_index=True)
        if seen.size == which.size:
            continue
        at = int(own[0] + np.setdiff1d(np.arange(which.size), seen)[0])
        row = int(order[at])
        which_round = _written_round(table, row)
        text = f'expected each arm once among the offers of round {which_round}; got "{arms[codes[at]]}" twice.'
        remedy = "Remove one of the rows, or give the offers different names or the rounds different numbers."
        raise table.refuse(text, row=row + 1, remedy=remedy)


def read_features(sources: Sequence[Source], features: Sequence[str], rows: int = ROWS) -> NDArray[np.float64]:
    """Read a table of contexts, with the features of a log by name: (rows, features)."""
    first = sources[0]
    there = {name.strip() for name in first.names}
    if missing := [name for name in features if name not in there]:
        text = f"expected every feature of the log in the table of contexts; it has no {listed(missing)}."
        remedy = separator_remedy(first.names) or "Add the column: a context needs a number for every feature."
        raise first.refuse(text, column=missing[0], value=missing[0], remedy=remedy)
    numbers = [AskedColumn(name) for name in _feature_columns(first, list(features))]
    names = [column.name for column in numbers]
    check_alike(sources, names)
    is_empty = True
    for batch in (batch for source in sources for batch in source.batches(names, rows)):
        is_empty = False
        for column in numbers:
            column.read(batch.refuse, batch.columns[column.name])
    if is_empty:
        text = "expected one row per context; the table of contexts has none."
        raise first.refuse(text, remedy="Write a row of features for each context.")
    return np.column_stack([column.values() for column in numbers])
