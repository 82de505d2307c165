"""The reader of logs: it finds the columns, checks the cells, and turns batches of rows into codes.

`ActionLog.read` collects what it gives and then puts the rows in order; scanned and growing logs only count it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.log.csv import POLARS_ERRORS
from unbandit.log.labels import (
    Codes,
    Integers,
    LabelColumn,
    Refuse,
    first_rows,
    is_number,
    listed,
    refuse_missing,
    run_starts,
    smallest_type,
)
from unbandit.log.rewards import RewardColumn, Rewards
from unbandit.log.sources import ROWS, Arms, Batch, Columns, Duplicates, Source, check_alike

# Which column of a table plays which role. A table needs a column `arm`; `demonstration`, `round` and `reward` are read
# when they are there, and `arm` with `pulls` instead of rounds is a table of counts. People call these columns many
# things, so each role has aliases, written the way `_folded` leaves a name: small letters and digits only.

ROLES = ("arm", "demonstration", "round", "pulls", "reward")

MOST_UNREAD = 50  # columns without a role that are searched for counts

ALIASES: Mapping[str, frozenset[str]] = {
    role: frozenset(words.split())
    for role, words in {
        "arm": "arms armid armindex armname armno armnumber action actions actionid choice choices chosen chosenarm "
        "chosenoption option optionid variant variantid bandit decision decisions lever machine deck treatment pull "
        "pulled pulledarm selected selectedarm selection",
        "demonstration": "demonstrations demonstrationid demo demoid subject subjects subjectid subj subjid sub "
        "participant participantid user userid session sessionid run runs runid episode episodeid player playerid "
        "trajectory trajectoryid replicate replication id",
        "round": "rounds roundid roundno roundnumber trial trials trialid trialindex trialno trialnumber t time "
        "timestep step stepno stepnumber index iteration iterations iter period tick",
        "pulls": "npulls numpulls numberofpulls pullcount pullcounts count counts n plays nplays playcount impressions "
        "visits visitcount visitors visitorcount uniquevisitors timespulled frequency freq",
        "reward": "rewards rewardvalue observedreward r outcome outcomes payoff payoffs payout payouts",
    }.items()
}

# Perhaps rewards, perhaps a part of them or their opposite: read only where the user says so.
REWARDS = {"gain", "gains", "loss", "losses", "return", "returns", "score", "scores", "points", "win", "wins"}
REWARDS |= {"feedback", "regret"}

_REWARD_LIKE = {"reward"} | REWARDS | ALIASES["reward"]


def _folded(name: str) -> str:
    """Leave case, spaces, underscores and dashes out of a column's name."""
    return re.sub(r"[\s_\-.]+", "", name).lower()


def _check_roles(columns: Columns) -> dict[str, str]:
    """Refuse a role that does not exist, or one column in two roles."""
    if columns is not None and not isinstance(columns, Mapping):
        text = f"expected the column of each role; got {type(columns).__name__}."
        raise ParameterError(text, parameter="columns", value=columns, remedy='Write it as {"arm": "picked"}.')
    named = dict(columns or {})
    for role, name in named.items():
        problem = ""
        same = [other for other in named if name and named[other] == name]
        if role not in ROLES:
            problem = f'expected a role among {", ".join(ROLES)}; got "{role}".'
        elif len(same) > 1:
            problem = f'expected a column of its own for each role; got "{name}" for {" and ".join(same)}.'
        elif not isinstance(name, str) or (role == "arm" and not name):
            problem = f"expected the name of a column for {role}; got {name!r}."
            if role == "demonstration":
                problem += ' Join the names of several by a plus sign: "subject+block".'
        elif role == "round" and name and named.get("pulls"):
            problem = "expected either round (a log of choices) or pulls (a table of counts); got both. Leave one out."
        if problem:
            raise ParameterError(problem, parameter="columns")
    return named


def find_columns(names: Sequence[str], columns: Columns, refuse: Refuse = LogError) -> dict[str, tuple[int, ...]]:
    """Return the position of the column that plays each role; of demonstrations, perhaps several that are joined.

    Roles that the user names go before anything recognised here; an empty name says that there is no such column.
    """
    named = _check_roles(columns)
    seen: set[str] = set()
    for name in (name.strip() for name in names):
        if name and name in seen:
            text = f'expected each column once; got "{name}" twice.'
            raise refuse(text, column=name, value=name, remedy="Rename or remove one of the two.")
        seen.add(name)
    found = {role: _positions(role, name, names, refuse) for role, name in named.items() if name != ""}
    taken = [at for places in found.values() for at in places]
    for at in taken:
        if taken.count(at) > 1:
            roles = " and ".join(role for role, places in found.items() for place in places if place == at)
            text = f'expected a column of its own for each role; got "{names[at]}" for {roles}.'
            raise ParameterError(text, parameter="columns")
    folded = [_folded(name) for name in names]
    for role in ROLES:
        if role not in named:
            position = _recognised(role, names, folded, taken, refuse)
            if position is not None:
                found[role] = (position,)
                taken.append(position)
    if "arm" not in found:
        text = f'expected a column "arm" (or action, choice, option ...); the table has {_quoted(names)}.'
        raise refuse(text, column="arm", remedy=f"Say which one holds the arms with {_naming('arm')}.")
    # Rounds make it a log of choices, whatever else is counted beside them, unless pulls were asked for by name.
    if "round" in found and "pulls" in found:
        del found["round" if named.get("pulls") else "pulls"]
    return {role: found[role] for role in ROLES if role in found}


def _positions(role: str, name: str, names: Sequence[str], refuse: Refuse) -> tuple[int, ...]:
    """Find the column that the user named, exactly or else up to case and punctuation; or several joined by "+"."""
    for spelling in (str, str.strip, _folded):
        places = [at for at, there in enumerate(names) if spelling(there) == spelling(name)]
        if len(places) == 1:
            return (places[0],)
    parts = name.split("+")
    if role == "demonstration" and len(parts) > 1:
        return tuple(at for part in parts for at in _positions("arm", part, names, refuse))
    text = f'expected a column "{name}" for {role}; the table has {_quoted(names)}.'
    raise refuse(text, column=name, value=name, remedy=f"Name one of these with {_naming(role)}.")


def _recognised(
    role: str, names: Sequence[str], folded: Sequence[str], taken: Sequence[int], refuse: Refuse
) -> int | None:
    """Find the column of a role by its own name, else by an alias; refuse to guess between two."""
    free = [at for at in range(len(names)) if at not in taken]
    tiers = (
        [at for at in free if names[at].strip() == role],
        [at for at in free if folded[at] == role],
        [at for at in free if folded[at] in ALIASES[role]],
    )
    places: list[int] = next(filter(None, tiers), [])
    if len(places) > 1 and role != "reward":  # rewards are not needed, so a notice is enough
        first, second = (names[at] for at in places[:2])
        both = " and ".join(f'"{names[at]}"' for at in places)
        remedy = f"Say which one it is with {_naming(role, first)}."
        raise refuse(f"expected one column for {role}; got {both}.", column=second, value=second, remedy=remedy)
    return places[0] if len(places) == 1 else None


def _column_notices(
    names: Sequence[str], found: Mapping[str, tuple[int, ...]], named: Mapping[str, str]
) -> tuple[Notice, ...]:
    """Say which columns were taken for what, where nobody said so and the name alone does not, and which are ignored.

    Of these, that is, the ones that look like rewards, and others that may distinguish people or rounds. Rewards that
    are read have a notice of their own.
    """
    guessed = {role: names[places[0]] for role, places in found.items() if role not in named}
    guessed = {role: name for role, name in guessed.items() if name.strip() != role and role != "reward"}
    notices = list[Notice]()
    if guessed:
        taken = ", ".join(f'"{name}" as {role}' for role, name in guessed.items())
        role = next(iter(sorted(guessed, key=("demonstration", "pulls", "round", "arm").index)))
        remedy = f"If that is wrong, say so with {_naming(role)}"
        remedy += "." if role == "arm" else f", or {_naming(role, '')} for none."
        notices.append(Notice("columns", f"columns are read by their names: {taken}. {remedy}"))
    read = {at for places in found.values() for at in places}
    free = [name for at, name in enumerate(names) if at not in read and name.strip()]
    rewards = [name for name in free if _folded(name) in _REWARD_LIKE]
    others = [name for name in free if name not in rewards]
    remedy = "if it holds the rewards, say so with"
    texts = [f'column "{name}" is ignored: {remedy} {_naming("reward", name)}.' for name in rewards]
    if named.get("reward") == "":
        texts = []
    if others and not {"demonstration", "round", "pulls"} & {*found, *named}:
        verb, which = ("is", "it") if len(others) == 1 else ("are", "one of them")
        texts.append(
            f"all rows are read as one record, in order; not read {verb} {_quoted(others)}. If {which} distinguishes "
            f"people, runs or rounds, say so with {_naming('demonstration')} or {_naming('round')}."
        )
    return (*notices, *(Notice("reading", text) for text in texts))


def _naming(role: str, name: str = "NAME") -> str:
    """Return a reference to the option that names the column of a role."""
    return option("columns", {role: name})


def _quoted(names: Sequence[str]) -> str:
    return listed([f'"{name}"' for name in names])


class Rows(NamedTuple):
    """Rows of a batch."""

    codes: Codes  # the arm of each row
    starts: Integers  # where each run of rows of one demonstration begins, and the end
    who: Integers  # the demonstration of each run


class Reader:
    """Columns with a role in a log (`name`, by role), whose rows are read batch by batch; `columns` are all of them.

    It is made from the columns of the first file and what makes an error that names it, the columns as `ActionLog.read`
    takes them, and the columns of labels, with the labels met so far.
    """

    def __init__(
        self, names: Sequence[str], refuse: Refuse, columns: Columns, arms: LabelColumn, demonstrations: LabelColumn
    ) -> None:
        positions, self.named = find_columns(names, columns, refuse), dict(columns or {})
        self.name = {role: "+".join(names[at] for at in places) for role, places in positions.items()}
        self.notices = _column_notices(names, positions, self.named)
        self.arms, self.demonstrations = arms, demonstrations
        keys = [names[at] for at in positions.get("demonstration", ())]
        self._keys = {name: LabelColumn("demonstration") for name in keys} if len(keys) > 1 else {}
        for name, key in self._keys.items():
            key.name = name
        arms.name, demonstrations.name = self.name["arm"], self.name.get("demonstration", "")

    def columns(self, *roles: str) -> list[str]:
        """Return the columns of some roles, by default of all that there are."""
        wanted = [role for role in self.name if role in roles or not roles]
        each = ([*self._keys] or [self.name[role]] if role == "demonstration" else [self.name[role]] for role in wanted)
        return [name for names in each for name in names]

    @property
    def demonstration_names(self) -> Sequence[str]:
        """Return the demonstrations met so far."""
        return self.demonstrations.coder.labels if "demonstration" in self.name else ("1",)

    def read(self, batch: Batch) -> Rows:
        """Turn the next rows into codes."""
        codes = self.arms.code(batch.refuse, batch.columns[self.name["arm"]])
        if "demonstration" not in self.name:
            return Rows(codes, np.array([0, codes.size]), np.zeros(1, np.int64))
        # Find where another demonstration begins; as a rule only these rows need to be looked up.
        column = self._joined(batch) if self._keys else batch.columns[self.name["demonstration"]]
        refuse_missing(batch.refuse, column, self.demonstrations.name, "demonstration")
        if column.dtype.is_integer():
            values = column.to_numpy()
            starts = run_starts(values)
            first = pl.Series(values[starts[:-1]])  # `gather` would plan a query, which takes 6 times as long
        else:
            lengths, first = column.rle().struct.unnest()
            starts = offsets_of(lengths.to_numpy())
        who = self.demonstrations.code(batch.refuse, first, starts)
        changes = run_starts(who)  # labels that differ as written may be the same
        return Rows(codes, starts[changes], who[changes[:-1]].astype(np.int64))

    def _joined(self, batch: Batch) -> pl.Series:
        """Join the labels of several columns; a plus sign within one is marked, so that no two pairs look the same."""
        parts = list[pl.Series]()
        for name, key in self._keys.items():
            codes = key.code(batch.refuse, batch.columns[name])
            labels = [label.replace("\\", "\\\\").replace("+", "\\+") for label in key.coder.labels]
            parts.append(pl.Series(name, labels, pl.String).gather(pl.Series(codes)))
        return pl.select(pl.concat_str(parts, separator="+")).to_series()

    def check(self) -> None:
        """Refuse, when all rows are read, labels that stand for nothing."""
        for column in (self.arms, self.demonstrations, *self._keys.values()):
            column.check()


def whole_numbers(refuse: Refuse, column: pl.Series, name: str, role: str) -> Integers:
    """Return a column of whole numbers; refuse everything else."""
    refuse_missing(refuse, column, name, role)
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if kind.is_integer() and (kind != pl.UInt64 or int(column.max()) < 1 << 63):  # type: ignore[arg-type]
        return column.cast(pl.Int64).to_numpy()
    if not (column.dtype == pl.String or kind.is_numeric()):
        text = f"expected whole numbers for {role}; got a column of type {kind}."
        raise refuse(text, column=name, remedy=f"Name another column with {_naming(role)}, or leave this one out.")
    cells = column
    if column.dtype == pl.String:
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count():
            cells = column.str.strip_chars()
            whole = cells.cast(pl.Int64, strict=False)
        if not whole.null_count():
            return whole.to_numpy()
    # Not integers throughout: "3.0" and 3.0 are whole as well.
    values = cells.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    wrong = ~(np.isfinite(values) & (np.abs(values) < 1 << 53))
    wrong |= np.where(wrong, 0.0, values) % 1 != 0
    if wrong.any():
        row = int(np.argmax(wrong))
        value = column[row]
        got = str(value) if not isinstance(value, str) else f'"{value}"' if value.strip() else "a blank cell"
        text = f"expected a whole number for {role}; got {got}."
        raise refuse(text, row=row + 1, column=name, value=value, remedy="Correct it or remove the row.")
    return values.astype(np.int64)


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


class Collection:
    """All rows of a log in memory, as they come from the files; `codes`, `starts` and `who` as in `Rows`.

    `numbers` are the rounds, or in a table of counts the pulls, batch by batch; empty where there are none. Rounds are
    in order if they count up from 0 or 1 within each demonstration, provided that the rows of each are contiguous.
    """

    def __init__(self, sources: Sequence[Source], reader: Reader, rows: int) -> None:
        names, role = reader.name, next((role for role in ("pulls", "round") if role in reader.name), None)
        self.column = None if role is None else names[role]  # of `numbers`
        self.rewards: RewardColumn | None = None
        if "reward" in names and role != "pulls":
            self.rewards = RewardColumn(names["reward"], named="reward" in reader.named)
        self._source, self._batches, self._begins, total = sources[0], list[Batch](), list[int](), 0
        parts, self.numbers, self.is_in_order = list[Rows](), list[Integers](), True
        firsts = list[Integers]()
        for batch in batches_of(sources, reader.columns(), rows):
            parts.append(reader.read(batch))
            if self.rewards is not None:
                self.rewards.read(batch.refuse, batch.columns[self.rewards.name])
            if role is not None:
                self.numbers.append(whole_numbers(batch.refuse, batch.columns[names[role]], names[role], role))
                firsts.append(self.numbers[-1][parts[-1].starts[:-1]])
                self.is_in_order = self.is_in_order and _counts_up(self.numbers[-1], parts[-1].starts)
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
            self.is_in_order = self.is_in_order and _runs_follow(np.concatenate(firsts), self.starts, self.who)

    def refuse(self, text: str, *, row: int | None = None, **data: Any) -> LogError:
        """Return the error that names the file and the row in it, given a row of the log (from 1)."""
        if row is None:
            return self._source.refuse(text, **data)
        at = bisect_right(self._begins, row - 1) - 1
        return self._batches[at].refuse(text, row=row - self._begins[at], **data)


def collect(
    sources: Sequence[Source], columns: Columns, arms: Arms, rows: int = ROWS, duplicates: Duplicates = None
) -> Parts:
    """Read a log into memory, `rows` at a time, and put its rows in the order of demonstrations and rounds."""
    if duplicates is not None:
        checks.one_of("duplicates", duplicates, ("refuse", "separate", "add"))
    labels = LabelColumn("arm", arms), LabelColumn("demonstration")
    reader = Reader(sources[0].names, sources[0].refuse, columns, *labels)
    check_alike(sources, reader.columns())
    table = Collection(sources, reader, rows)
    known, demonstrations = reader.arms.coder.labels, tuple(reader.demonstration_names)
    present = known if arms is None else [known[code] for code in np.unique(table.codes)]
    if "pulls" in reader.name:
        return _counted(table, reader, demonstrations, reader.notices + label_notices(present), duplicates)
    refuse_duplicates(duplicates)
    _refuse_unread_counts(sources, reader, table.codes)
    lengths = np.bincount(table.who, np.diff(table.starts)).astype(np.int64)
    offsets = offsets_of(lengths)
    notices = reader.notices + label_notices(present, lengths, reader.name.get("demonstration"))
    codes, rewards = table.codes, None
    if table.rewards is not None:
        rewards = table.rewards.values()
        notices += (table.rewards.notice(),)
    places = _places(table, offsets, demonstrations)
    if places is not None:
        codes = _moved(codes, places)
        rewards = None if rewards is None else _moved(rewards, places)
    arm_names, codes = in_order(reader.arms, codes, table.refuse)
    return Parts(arm_names, codes, offsets, demonstrations, notices, rewards)


def refuse_duplicates(duplicates: Duplicates) -> None:
    """Refuse to be told what rows of one name are where there is one row per round."""
    if duplicates is not None:
        text = "expected only with a table of counts; this log has one row per round, where an arm comes many times."
        raise ParameterError(text, parameter="duplicates", value=duplicates, remedy="Leave it out.")


def _refuse_unread_counts(sources: Sequence[Source], reader: Reader, codes: Codes) -> None:
    """Refuse rows that each have another arm beside a column of whole numbers: as a rule counts, not rounds."""
    if codes.size < 2 or "round" in reader.name or {"pulls", "demonstration"} & {*reader.named}:
        return
    if codes.size > len(reader.arms.coder) or np.unique(codes).size < codes.size:
        return
    unread = [name for name in sources[0].names if name.strip() and name not in reader.columns()][:MOST_UNREAD]
    if not unread or any(name not in source.names for source in sources for name in unread):
        return
    batches = [batch.columns for source in sources for batch in source.batches(unread)]
    for name in unread:
        try:
            numbers = whole_numbers(LogError, pl.concat([columns[name] for columns in batches]), name, "pulls")
        except (LogError, *POLARS_ERRORS):
            continue
        places = np.sort(numbers) - np.arange(codes.size)
        if numbers.min() < 0 or numbers.max() < 2 or (places[0] == places).all():
            continue
        text = f'expected an arm in several rows, one for each choice; got every arm once, beside numbers in "{name}".'
        remedy = f"If these are counts of choices, say so with {_naming('pulls', name)}; if every row is one choice, "
        raise sources[0].refuse(text, column=name, remedy=f"{remedy}with {_naming('pulls', '')}.")


def _counted(
    table: Collection, reader: Reader, names: tuple[str, ...], notices: tuple[Notice, ...], duplicates: Duplicates
) -> Parts:
    """Arrange pulls as (demonstrations, arms); refuse what no counting gives."""
    labels, codes = in_order(reader.arms, table.codes, table.refuse)
    pulls, column = np.concatenate(table.numbers), reader.name["pulls"]
    if (pulls < 0).any():
        row = int(np.argmax(pulls < 0))
        text = f"expected a count of 0 or more for pulls; got {pulls[row]}."
        raise table.refuse(text, row=row + 1, column=column, value=int(pulls[row]), remedy="Correct it.")
    if pulls.sum(dtype=np.float64) >= 2**62:
        text = "expected counts that add up to less than 2^62; got more."
        raise table.refuse(text, column=column, remedy="Correct them.")
    who = np.repeat(table.who, np.diff(table.starts))
    again = _occurrences(who * len(labels) + codes)  # how often the same name stands above each row
    if again.any() and duplicates not in ("add", "separate"):
        row = int(np.argmax(again > 0))
        label = labels[int(codes[row])]
        text = f'expected each arm once in a table of pulls; got "{label}" again.'
        remedy = (
            f"If such rows are different arms, give {option('duplicates', 'separate')}; if they are one arm, "
            f"{option('duplicates', 'add')}; if every row is one choice, name the column of rounds with "
            f"{_naming('round')}."
        )
        raise table.refuse(text, row=row + 1, column=reader.name["arm"], value=label, remedy=remedy)
    if again.any():
        repeated = np.unique(codes[again > 0])
        text = f'{repeated.size:,} names stand in more than one row, the first being "{labels[int(repeated[0])]}": '
        if duplicates == "separate":
            labels, codes = _separated(labels, codes, again)
            text += "each row is a separate arm, numbered from its second row on."
        else:
            text += "their counts are added up."
        notices += (Notice("reading", text),)
    cell = who * len(labels) + codes
    counts = np.zeros((len(names), len(labels)), np.int64)
    np.add.at(counts.reshape(-1), cell, pulls)
    for which in np.flatnonzero(counts.sum(axis=1) == 0).tolist():
        text = f"expected at least one pull{in_demonstration(names, which)}; got 0 for every arm."
        remedy = f"Check that this is the column of counts, or name it with {_naming('pulls')}."
        raise table.refuse(text, column=column, value=0, remedy=remedy)
    if "reward" in reader.name:
        text = f'column "{reader.name["reward"]}" is ignored: a table of counts has no rounds to give rewards to.'
        notices += (Notice("reading", text),)
    return Parts(labels, None, offsets_of(counts.sum(axis=1)), names, notices, counts=counts)


def _occurrences(cells: NDArray[Any]) -> Integers:
    """Return for each cell how often the same number stands before it."""
    order = np.argsort(cells, kind="stable")
    starts = run_starts(cells[order])
    found = np.empty(cells.size, np.int64)
    found[order] = np.arange(cells.size) - np.repeat(starts[:-1], np.diff(starts))
    return found


def _separated(labels: tuple[str, ...], codes: Codes, again: Integers) -> tuple[tuple[str, ...], Codes]:
    """Make rows of one name separate arms: "name", "name (2)" ..., next to each other; return labels and codes."""
    most = np.zeros(len(labels), np.int64)
    np.maximum.at(most, codes, again)
    taken, new = set(labels), list[str]()
    for label, more in zip(labels, most.tolist(), strict=True):
        new.append(label)
        number = 2
        for _ in range(more):
            while f"{label} ({number})" in taken:
                number += 1
            new.append(f"{label} ({number})")
            taken.add(new[-1])
    first = np.cumsum(most + 1) - (most + 1)
    return tuple(new), (first[codes] + again).astype(smallest_type(len(new)))


def offsets_of(lengths: NDArray[np.integer[Any]]) -> Integers:
    """Return where each demonstration begins, and the end."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def label_notices(arms: Sequence[str], lengths: Integers | None = None, column: str | None = "") -> tuple[Notice, ...]:
    """Say which arms look alike, and whether the column of demonstrations differs in every row."""
    texts, first = [], dict[str, str]()
    for label in arms:
        alike = label if label.isascii() else "".join(filter(str.isprintable, unicodedata.normalize("NFKC", label)))
        other = first.setdefault(" ".join(alike.casefold().split()), label)
        if other != label:
            same = other.casefold() == label.casefold()
            how = "in capitals only" if same else "in spaces, accents or the encoding of letters only"
            text = f'arms "{other}" and "{label}" differ {how} and are read as two. '
            texts = [f"{text}If they are the same arm, spell them alike."]
            break
    if lengths is not None and lengths.size > 1 and lengths.max() == 1:
        texts.append(f'column "{column}" is different in every row: each row is read as a separate demonstration.')
    return tuple(Notice("reading", text) for text in texts)


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


# Rows are put in order by their rounds, which must be whole numbers without gaps from 0 or 1. So a row's place follows
# from its round by arithmetic: nothing is sorted, and the places are right exactly when every place is taken once.


def _places(table: Collection, offsets: Integers, names: Sequence[str]) -> Integers | None:
    """Return the place of each row in the log; None if all are in place. Refuse rounds that are wrong."""
    is_grouped = bool((table.who[1:] >= table.who[:-1]).all())
    if is_grouped and (not table.numbers or table.is_in_order):
        return None
    demonstration = np.repeat(table.who, np.diff(table.starts)) if len(names) > 1 else np.zeros(1, np.int64)
    if not table.numbers:
        places: Integers = np.empty(offsets[-1], np.int64)
        places[np.argsort(demonstration, kind="stable")] = np.arange(offsets[-1])
        return places
    rounds = np.concatenate(table.numbers)
    begins = np.full(len(names), rounds.min() if len(names) == 1 else np.iinfo(np.int64).max)
    if len(names) > 1:
        np.minimum.at(begins, demonstration, rounds)
    distance = (rounds - begins[demonstration]).view(np.uint64)  # exact, though it may not fit in a signed number
    inside = distance < np.diff(offsets).view(np.uint64)[demonstration]
    places = rounds + (offsets[:-1] - begins)[demonstration]
    taken = np.zeros(rounds.size, np.bool_)
    taken[places[inside]] = True
    if not (np.isin(begins, (0, 1)).all() and inside.all() and taken.all()):
        raise _wrong_rounds(table, rounds, np.broadcast_to(demonstration, rounds.shape), begins, names)
    return places


def _moved(values: NDArray[Any], places: Integers) -> NDArray[Any]:
    moved = np.empty_like(values)
    moved[places] = values
    return moved


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


def _wrong_rounds(
    table: Collection, rounds: Integers, demonstration: Integers, begins: Integers, names: Sequence[str]
) -> LogError:
    """Name a demonstration without its opening, else the first round that occurs twice, else one that is missing."""
    order = np.lexsort((rounds, demonstration))
    same = demonstration[order][1:] == demonstration[order][:-1]
    step = np.diff(rounds[order])
    late, again = np.flatnonzero((begins != 0) & (begins != 1)), np.flatnonzero(same & (step == 0))
    if late.size:
        row = int(np.argmax((rounds == begins[late[0]]) & (demonstration == late[0])))
    elif again.size:
        row = int(order[again + 1].min())
    else:
        gap = int(np.flatnonzero(same & (step > 1))[0])
        row, last = int(order[gap + 1]), int(rounds[order[gap]])
    value, where = int(rounds[row]), in_demonstration(names, int(demonstration[row]))
    missing = remedy = ""
    if late.size:
        text = f"expected rounds from 0 or 1{where}; they begin at {value}, so the opening is missing."
    elif again.size:
        before = int(np.argmax((rounds == value) & (demonstration == demonstration[row]))) + 1
        text = f"expected each round once{where}; got {value} again, first in row {before}."
        remedy = f"Correct the round, remove the row, or name the demonstrations with {_naming('demonstration')}."
    else:
        missing = f" ({last + 1})" if value == last + 2 else f" ({last + 1} to {value - 1})"
        text = f"expected round {last + 1} after round {last}{where}; got {value}."
    remedy = remedy or f"Add the missing rows{missing}, or leave the column out if the rows are complete and in order."
    return table.refuse(text, row=row + 1, column=table.column, value=value, remedy=remedy)


def in_demonstration(names: Sequence[str], which: int) -> str:
    """Name a demonstration within a sentence, where there are several."""
    return f' in demonstration "{names[which]}"' if len(names) > 1 else ""
