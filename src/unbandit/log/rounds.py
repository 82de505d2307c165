"""Logs in memory: all rows are collected, and put in the order of demonstrations and rounds."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.formatting import counted
from unbandit.log.columns import FIRST_ROWS, is_time_like, naming, perhaps_marked
from unbandit.log.counts import counted_parts, perhaps_total_at_end, refuse_duplicates, refuse_unread_counts
from unbandit.log.labels import Codes, Integers, LabelColumn, are_blank, blank_choice_remedy
from unbandit.log.numbers import DAY, LogTimes, RoundColumn, times_in, trend_of_times, whole_numbers
from unbandit.log.reader import (
    Collection,
    Parts,
    Reader,
    in_demonstration,
    in_order,
    label_notices,
    offsets_of,
    with_clock,
)
from unbandit.log.rewards import Rewards
from unbandit.log.sources import ROWS, Arms, Blank, Columns, Duplicates, Source, check_alike, source_notices

FEWEST_GROUPS = 5  # of offers of which one is marked
_WITH_FEATURES = (
    f"`unbandit estimate` and `unbandit report` read such a log with {option('features')} and a rule such as "
    f"linucb or lints. If you do not know the rule, `unbandit check` with {option('features')} tries all of them."
)

_REVERSE = (
    "python -c \"import polars; polars.read_csv('log.csv', infer_schema=False).reverse().write_csv('reversed.csv')\""
)

FEWEST_ROWS_AROUND = 100  # that say which pauses are usual
LONGEST_HOLIDAYS = 9 * DAY // 2  # as at Easter
MOST_STRETCHES = 2_048  # far shorter than any hole

MOST_OTHERS = 2_000  # columns that nothing reads, and that are looked at for what they may be
FEWEST_TIMES = 5  # that tell which way they run
MOST_FILES = 100  # in whose first rows times are compared with rounds, evenly spread over a log of more
AGREES = 0.9  # from 1 for times in the order of the rounds to -1 for the reverse: clocks of servers differ somewhat
MOST_ROUNDS_A_ROW = 1_000  # with more, numbers are of something else than rounds, of which some are missing


class TimesBeside(NamedTuple):
    """A column of times that stands unread beside rounds."""

    name: str
    agreement: float  # how far its order is that of the rounds: from 1 to -1 for the reverse
    is_disputed: bool = False  # whether other times do not run against the rounds


def collect(
    sources: Sequence[Source], columns: Columns, arms: Arms, rows: int = ROWS, duplicates: Duplicates = None,
    blank: Blank = None,
) -> Parts:  # fmt: skip
    """Read a log into memory, `rows` at a time, and put its rows in the order of demonstrations and rounds."""
    return collect_part(sources, columns, arms, rows, duplicates, blank)[0]


def collect_part(
    sources: Sequence[Source], columns: Columns, arms: Arms, rows: int = ROWS, duplicates: Duplicates = None,
    blank: Blank = None, *, whole: bool = True,
) -> tuple[Parts, Integers | None]:  # fmt: skip
    """Do the same; unless the log must be `whole`, return also the round of each row, if not all are there."""
    if duplicates is not None:
        checks.one_of("duplicates", duplicates, ("refuse", "separate", "add"))
    skip = checks.one_of("blank", blank or "refuse", ("refuse", "skip")) == "skip"
    labels = LabelColumn("arm", arms, blank_choice_remedy(whole=whole)), LabelColumn("demonstration")
    columns, joined = with_clock(sources[0], columns)
    names, orders = sources[0].names, tuple[Notice, ...]()
    reader = Reader(names, sources[0].refuse, columns, *labels, skip_blank=skip)
    beside = compared_times(sources, reader)
    if beside is not None:
        orders = (said_of_times(reader, *beside),)
        if goes_by_time(reader, *beside[1:]):
            left_out = replaced_by_times(reader, names, beside.name)
            names = ["" if name in left_out else name for name in names]
            reader = Reader(names, sources[0].refuse, columns, *labels, skip_blank=skip)
    if skip and "pulls" in reader.name:
        text = "expected only with a log of rounds; a table of counts has no round without a choice."
        raise ParameterError(text, parameter="blank", value=blank, remedy="Leave it out.")
    check_alike(sources, reader.columns())
    try:
        table = Collection(sources, reader, rows)
    except LogError as error:
        if beside is None or error.column != beside.name:
            raise
        raise error.at(remedy=f"{error.remedy} {orders[0].text[:1].upper()}{orders[0].text[1:]}") from None
    reader.refuse_data_as_names(sources[0])
    known, demonstrations = reader.arms.coder.labels, reader.names_with_column
    present = known if arms is None else [known[code] for code in np.unique(table.codes)]
    layout = source_notices(sources)
    if "pulls" in reader.name:
        return counted_parts(table, reader, layout + label_notices(present, demonstrations), duplicates), None
    refuse_duplicates(duplicates)
    refuse_unread_counts(sources, table, reader)
    _refuse_offers(sources[0], table, reader)
    reader.notices += orders or times_left(sources[0], reader)
    if arms is None:
        reader.notices += perhaps_total_at_end(table.codes if table.blank is None else table.codes[~table.blank], known)
    lengths = np.bincount(table.who, np.diff(table.starts)).astype(np.int64)
    reader.refuse_lone_rows(table.refuse, lengths, numbered=table.rounds is not None and not table.rounds.form)
    offsets = offsets_of(lengths)
    notices = (
        layout
        + joined
        + reader.notices
        + label_notices(present, demonstrations, lengths, reader.name.get("demonstration"))
    )
    codes, rewards = table.codes, None
    places: Integers | None
    numbers: Integers | None = None
    times: LogTimes | None = None
    if table.rewards is not None:
        rewards = table.rewards.values()
        notices += (table.rewards.notice(),)
    if table.rounds is not None and table.rounds.form:
        places, notice, newest_first = places_by_time(table, table.rounds)
        notices += (notice, *tied_times(table, places, table.rounds.name, newest_first=newest_first))
        times = LogTimes(moved(np.concatenate(table.numbers), places), table.rounds.form)
        notices += hole_in_times(times.times, table.rounds, offsets)
    else:
        places, numbers = places_by_round(table, offsets, demonstrations, whole)
    if places is not None:
        codes = moved(codes, places)
        rewards = None if rewards is None else moved(rewards, places)
    if table.blank is not None and (table.blank.any() or table.unnumbered):
        kept = ~(table.blank if places is None else moved(table.blank, places))
        codes, rewards, numbers, offsets = _without_blank(table, kept, codes, rewards, numbers, offsets, demonstrations)
        notices += (_skipped(int(kept.size - offsets[-1]) + table.unnumbered),)
        times = None if times is None else times._replace(times=times.times[kept])
    arm_names, codes = in_order(reader.arms, codes, table.refuse)
    is_numbered = table.rounds is not None and not table.rounds.form and numbers is None
    parts = Parts(arm_names, codes, offsets, demonstrations, notices, rewards, None, is_numbered, times)
    return parts, numbers


def _others(source: Source, read: Sequence[str]) -> list[int]:
    """Return where columns stand that are not read; of very many the first ones."""
    known = {*read}
    return [at for at, name in enumerate(source.names) if name.strip() and name not in known][:MOST_OTHERS]


def _refuse_offers(source: Source, table: Collection, reader: Reader) -> None:
    """Refuse rows that are offers: another column repeats for them, and one of each such group is marked.

    Within a group no arm comes twice. Not asked where the user named the arms' column.
    """
    places = _others(source, reader.columns("arm", "reward"))
    if "arm" in reader.named or len(places) < 2:
        return
    try:
        head = source.head(places, FIRST_ROWS)
    except LogError:  # of a column that nothing reads
        return
    columns = dict(zip((source.names[at] for at in places), head, strict=True))
    mark, group = perhaps_marked(columns, reader.columns("round", "demonstration")) or (None, None)
    if mark is None or group is None:
        return
    groups = columns[group].rle_id().to_numpy()
    pairs = np.unique(np.stack([groups, table.codes[: groups.size]]), axis=1)
    if groups[-1] + 1 < FEWEST_GROUPS or pairs.shape[1] < groups.size:
        return
    text = f'expected one row per round; "{mark.strip()}" marks one of the rows of each "{group.strip()}".'
    roles = {"arm": reader.name["arm"].strip()}
    remedy = (
        f"Where rows are offers, {_WITH_FEATURES} If every row is a choice, say so with {option('columns', roles)}."
    )
    raise source.refuse(text, column=mark, remedy=remedy)


def times_left(source: Source, reader: Reader) -> tuple[Notice, ...]:
    """Say which column has times in its first rows, in their order or the reverse, where no column orders the rows."""
    places = _others(source, reader.columns())
    if {"round", "pulls"} & {*reader.name, *reader.named} or not places:
        return ()
    try:
        head = source.head(places, FIRST_ROWS)
    except LogError:  # of a column that nothing reads
        return ()
    left = [source.names[at] for at in places]
    for name, column in zip(left, head, strict=True):
        if trend := trend_of_times(column.alias(name)):
            runs = "in the order of the rows" if trend > 0 else "newest first, so the rows may be in reverse"
            text = f'column "{name}" looks like times, {runs}; to sort the rows by it, use '
            return (Notice("reading", f"{text}{naming('round', name)}."),)
    return ()


def compared_times(sources: Sequence[Source], reader: Reader, ignored: Sequence[str] = ()) -> TimesBeside | None:
    """Return the times beside rounds that agree least with them, in the first rows of every file, or of many files."""
    files = sources[:: -(-len(sources) // MOST_FILES)]
    each = (_times_beside(file, reader, ignored) for file in files)
    return _least_agreeing([found for found in each if found is not None])


def _times_beside(source: Source, reader: Reader, ignored: Sequence[str] = ()) -> TimesBeside | None:
    """Do so for one file; columns that are `ignored` hold something else. Of two that agree alike, the finer times."""
    others = (source.names[at] for at in _others(source, [*reader.columns(), *ignored]))
    names, keys = list(filter(is_time_like, others)), reader.columns("demonstration")
    if not names or "round" not in reader.name or "pulls" in reader.name:
        return None
    wanted = [reader.name["round"], *names, *keys]
    if not {*wanted} <= {*source.names}:  # refused where all files are read
        return None
    try:
        rounds, *cells = source.head([source.names.index(name) for name in wanted], FIRST_ROWS)
    except LogError:  # said where all rows are read
        return None
    times = sorted(map(pl.Series.alias, cells, names), key=_distinct_values, reverse=True)
    of = [key.cast(pl.String) for key in cells[len(names) :]]
    who = pl.select(pl.concat_str(of)).to_series() if of else pl.repeat("", len(rounds), eager=True)
    each = [(column.name, _agreement(rounds, column, who)) for column in times]
    return _least_agreeing([TimesBeside(name, agreement) for name, agreement in each if agreement is not None])


def _distinct_values(column: pl.Series) -> int:
    return 0 if column.dtype.is_nested() or column.dtype == pl.Object else column.n_unique()


def _agreement(rounds: pl.Series, times: pl.Series, who: pl.Series) -> float | None:
    """Return how far the order of times is that of the rounds of each demonstration; None if they have no order."""
    if pl.Object in (rounds.dtype, times.dtype):
        return None
    kept = ~(are_blank(rounds) | are_blank(times))
    if kept.sum() < FEWEST_TIMES:
        return None
    try:
        numbers, moments = whole_numbers(LogError, rounds.filter(kept), "", "round"), times_in(times.filter(kept))
    except LogError:  # said where all rows are read
        return None
    if moments is None:
        return None
    frame = pl.DataFrame({"who": who.filter(kept), "round": numbers, "time": moments})
    middle = (pl.len().over("who") + 1) / 2
    ranks = frame.select(pl.col("round", "time").rank().over("who") - middle, who="who")
    ordered = ranks.select(pl.col("round", "time").sort().over("who"))
    as_is, most = (float((each["round"] * each["time"]).sum()) for each in (ranks, ordered))
    return as_is / most if most > 0 else None


def _least_agreeing(found: Sequence[TimesBeside]) -> TimesBeside | None:
    """Return the first of the times that contradict the rounds most, and whether others do not."""
    if not found:
        return None
    worst = min(found, key=lambda each: (each.agreement >= -AGREES) + (each.agreement >= AGREES))
    others = any(each.is_disputed or each.agreement >= -AGREES for each in found)
    return worst._replace(is_disputed=others)


def goes_by_time(reader: Reader, agreement: float, is_disputed: bool = False) -> bool:
    """Return whether times go before a column that was only taken for rounds, since all of them run against it."""
    is_taken = "round" not in (*reader.named, reader.name["round"].strip().lower())
    return agreement < -AGREES and is_taken and not is_disputed


def replaced_by_times(reader: Reader, names: Sequence[str], times: str) -> set[str]:
    """Return the columns to be read as if they were not there, where times go before rounds: these, and other times."""
    others = {name for name in names if is_time_like(name)} - {*reader.columns()}
    return (others | {reader.name["round"]}) - {times}


def said_of_times(reader: Reader, name: str, agreement: float, is_disputed: bool = False) -> Notice:
    """Say how times that stand beside rounds run; a warning where they contradict each other, and nobody chose."""
    rounds, by_time = reader.name["round"], naming("round", name)
    if agreement >= AGREES:
        return Notice("reading", f'"{name}" is not read: its times run in the order of the rounds in "{rounds}".')
    if goes_by_time(reader, agreement, is_disputed):
        text = f'column "{rounds}" is not read as round: the times in "{name}" run the other way, so it numbers the '
        return Notice("reading", f"{text}latest first. If that is the order, say so with {naming('round', rounds)}.")
    runs = "run opposite to" if agreement < -AGREES else "are not in the order of"
    text = f'The times in "{name}" {runs} the rounds in "{rounds}": one of them is wrong, or means something else. '
    if "round" in reader.named and agreement >= -AGREES:
        return Notice("reading", f"{text}To put rounds in the order of the times, use {by_time}.")
    own = "" if agreement < -AGREES else f", to keep them as they are, {naming('round', rounds)}"
    return Notice("times-against", f"{text}To put rounds in the order of the times, use {by_time}{own}.")


def _without_blank(
    table: Collection, kept: NDArray[np.bool_], codes: Codes, rewards: Rewards | None, numbers: Integers | None,
    offsets: Integers, names: Sequence[str],
) -> tuple[Codes, Rewards | None, Integers | None, Integers]:  # fmt: skip
    """Leave out rows without a choice from a log in order; the rounds after them are numbered without them."""
    if rewards is not None and not np.isnan(rewards[~kept]).all():
        count = int(np.count_nonzero(~np.isnan(rewards[~kept])))
        text = f"expected no reward where there is no choice; {counted(count, 'row')} without a choice has one."
        text = text if count == 1 else text.replace("has one", "have one")
        remedy = f"A choice was made there: fill it in, or ignore rewards with {option('columns', {'reward': ''})}."
        raise table.refuse(text, remedy=remedy)
    skipped = np.concatenate(([0], np.cumsum(~kept)))  # before each row
    left = offsets - skipped[offsets]
    if (empty := np.flatnonzero(np.diff(left) == 0)).size:
        where = in_demonstration(names, int(empty[0]))
        raise table.refuse(f"expected a choice{where}; got only blank cells.", remedy="Remove these rows.")
    if numbers is not None:
        before = np.repeat(skipped[offsets[:-1]], np.diff(offsets))
        numbers = (numbers - (skipped[:-1] - before))[kept]
    return codes[kept], None if rewards is None else rewards[kept], numbers, left


def _skipped(count: int) -> Notice:
    rows = "1 row without a choice was" if count == 1 else f"{count:,} rows without a choice were"
    text = f"{rows} left out: nobody chose there, so the learner learnt nothing."
    return Notice("blank-choices", text, count=count)


# Rows are put in order by their rounds, which must be whole numbers without gaps from 0 or 1. So a row's place follows
# from its round by arithmetic: nothing is sorted, and the places are right exactly when every place is taken once.


def places_by_round(
    table: Collection, offsets: Integers, names: Sequence[str], whole: bool
) -> tuple[Integers | None, Integers | None]:
    """Return the place of each row in the log; None if all are in place. Refuse rounds that are wrong.

    Of a log that need not be whole, return besides the round of every place, if it begins in mid-run or misses rounds.
    """
    is_grouped = bool((table.who[1:] >= table.who[:-1]).all())
    if is_grouped and (not table.numbers or table.is_in_order):
        return None, None
    demonstration = table.demonstration_of_rows() if len(names) > 1 else np.zeros(1, np.int64)
    if not table.numbers:
        places: Integers = np.empty(offsets[-1], np.int64)
        places[np.argsort(demonstration, kind="stable")] = np.arange(offsets[-1])
        return places, None
    rounds = np.concatenate(table.numbers)
    begins = np.full(len(names), rounds.min() if len(names) == 1 else np.iinfo(np.int64).max)
    if len(names) > 1:
        np.minimum.at(begins, demonstration, rounds)
    distance = (rounds - begins[demonstration]).view(np.uint64)  # exact, though it may not fit in a signed number
    inside = distance < np.diff(offsets).view(np.uint64)[demonstration]
    places = rounds + (offsets[:-1] - begins)[demonstration]
    taken = np.zeros(rounds.size, np.bool_)
    taken[places[inside]] = True
    if np.isin(begins, (0, 1)).all() and inside.all() and taken.all():
        return places, None
    demonstration = np.broadcast_to(demonstration, rounds.shape)
    order = np.lexsort((rounds, demonstration))
    steps = np.diff(rounds[order])[np.diff(demonstration[order]) == 0]
    is_wrong = whole or rounds.min() < 0 or (steps < 1).any() or table.perhaps_counts is not None
    if is_wrong or steps.sum(dtype=np.float64) > MOST_ROUNDS_A_ROW * rounds.size:
        raise _wrong_rounds(table, rounds, demonstration, begins, names, whole)
    places[order] = np.arange(rounds.size)
    return places, rounds[order]


def places_by_time(table: Collection, column: RoundColumn) -> tuple[Integers, Notice, bool]:
    """Return the place of each row in the order of demonstrations and times; ties stay as they are.

    And what to say, and whether the log runs newest first.
    """
    times, who = np.concatenate(table.numbers), table.demonstration_of_rows()
    as_written = np.argsort(who, kind="stable")
    is_same = np.diff(who[as_written]) == 0
    steps = np.diff(times[as_written])[is_same]
    order = np.lexsort((times, who))
    ties = int(np.count_nonzero(np.diff(times[order])[is_same] == 0))
    backward = int(np.count_nonzero(steps < 0))
    places = np.empty(times.size, np.int64)
    places[order] = np.arange(times.size)
    newest_first = backward > 0 and not (steps > 0).any()
    return places, column.notice(ties, backward=backward, newest_first=newest_first), newest_first


def tied_times(table: Collection, places: Integers, name: str, *, newest_first: bool) -> tuple[Notice, ...]:
    """Warn of times that leave open how rows follow each other, where that matters: other arms share them.

    Of most rows or, where the log runs newest first, of any, since these are then in reverse.
    """
    log = np.concatenate(table.numbers), table.demonstration_of_rows(), table.codes
    times, who, codes = (np.diff(moved(values, places).astype(np.int64)) for values in log)
    tied = (times == 0) & (who == 0)
    count = int(np.count_nonzero(tied))
    if not codes[tied].any():
        return ()
    if newest_first:
        share = counted(count, "row shares its", "rows share their")
        text = f'the log is newest first, and {share} time in "{name}" with the row before: these rows keep the order '
        text += "of the file, so they are almost certainly reversed. Reverse the rows of the file first, as in "
        text += f"`{_REVERSE}`, or name a column that numbers the rounds with {naming('round')}."
        return (Notice("ties-backwards", text, count=count),)
    return mostly_tied(count, table.codes.size, name)


def mostly_tied(count: int, rows: int, name: str) -> tuple[Notice, ...]:
    """Warn of times that most rows share with the row before."""
    if 2 * count <= rows:
        return ()
    text = f'{count:,} of {rows:,} rows share their time in "{name}" with the row before: only the order of '
    text += "the file shows in which order these choices were made. If that order is wrong, so are all numbers, unless "
    text += "the rule decided in batches. "
    text += f"Write times to the second or finer, or name a column that numbers the rounds with {naming('round')}."
    return (Notice("times-tied", text, count=count),)


class CoarseTimes:
    """The first and the last of a log's times in each of up to 2,049 stretches, by which holes are found.

    Stretches are longer the longer the log is, and the same in whatever order its times come. `count` is how many came.
    """

    def __init__(self, times: Sequence[int] = (), count: int = 0) -> None:
        self.times, self.count = np.array(times, np.int64), count

    def add(self, times: Integers) -> None:
        """Take further times."""
        self.count += times.size
        self.times = _thinned(np.union1d(self.times, _thinned(times)))

    def hole(self, column: RoundColumn, begins: Integers, ends: Integers) -> tuple[Notice, ...]:
        """Say where a log has no rows for far longer than usual, nights, weekends and holidays not counted.

        `begins` and `ends` are the times at which demonstrations do; what was off, was off for all of them.
        """
        times, log = self.times, LogTimes(self.times, column.form or "")
        is_short = self.count < FEWEST_ROWS_AROUND or log.is_plain
        after = None if is_short else longest_hole(times, DAY if log.has_days_alone else 1)
        if after is None:
            return ()
        if not ((begins <= times[after]) & (ends >= times[after + 1])).any():  # it lies between demonstrations
            return ()
        hours = (times[after + 1] - times[after]) / DAY * 24
        length = f"{hours / 24:,.0f} days" if hours >= 48 else f"{hours:,.0f} hours"
        text = f'"{column.name}" has no rows for {length} after {column.written(int(times[after]))}, far longer than '
        text += "usual. If choices were made then, they are missing and the values are wrong: read only the rows "
        text += f"before the hole, or number all rounds, missing ones too, and name that column with {naming('round')}."
        return (Notice("hole-in-times", text),)


def _thinned(times: Integers) -> Integers:
    """Return the first and the last of sorted times in each stretch; of others more than these, in order."""
    stretches = times >> (int(times.max() - times.min()) // MOST_STRETCHES).bit_length()
    last = np.flatnonzero((stretches[1:] != stretches[:-1]) | (times[1:] < times[:-1]))
    return np.unique(times[np.concatenate(([0], last, last + 1, [-1]))])


def hole_in_times(times: Integers, column: RoundColumn, offsets: Integers) -> tuple[Notice, ...]:
    """Say where a log in memory has a hole; its times are in order within each demonstration."""
    coarse = CoarseTimes()
    coarse.add(times)
    return coarse.hole(column, times[offsets[:-1]], times[offsets[1:] - 1])


def longest_hole(times: Integers, usual: int) -> int | None:
    """Return after which of sorted times a log has a hole; None if it has none, or one that may be usual.

    A hole is ten times longer than all but the three longest pauses (so that three holes do not hide each other), than
    a `usual` one, and 2% of the log. Up to four and a half days may be a night, a weekend or holidays: such a hole
    counts only if the same hours of the week before and of the week after have rows. Pauses between sessions are none.
    """
    pauses = np.diff(times)
    if pauses.size < 4:
        return None
    after = int(pauses.argmax())
    length, usual = int(pauses[after]), max(usual, int(np.sort(pauses)[-4]))
    if length <= 10 * usual or 50 * length <= times[-1] - times[0] or _are_sessions(times, pauses, 10 * usual):
        return None
    if length > LONGEST_HOLIDAYS:
        return after
    for shift in (-7 * DAY, 7 * DAY):
        begin, end = times[after] + shift, times[after + 1] + shift
        within = times[(times > begin) & (times < end)]
        if begin < times[0] or end > times[-1] or 2 * np.diff(within, prepend=begin, append=end).max() > length:
            return None
    return after


def _are_sessions(times: Integers, pauses: Integers, usual: int) -> bool:
    """Return whether somebody came for sessions, with pauses longer than a `usual` one between them.

    Then sessions last a day at most (six hours if there are two) and a tenth of the pauses, none of which is ten times
    longer than the next; or they are shorter than the pauses, which are alike.
    """
    long = np.flatnonzero(pauses > usual)
    sessions = times[np.append(long, times.size - 1)] - times[np.append(0, long + 1)]
    lengths = np.sort(pauses[long])
    longest = DAY if long.size > 1 else DAY // 4
    are_short = 10 * sessions.max() <= min(lengths[0], 10 * longest) and lengths[-1] <= 10 * lengths[-2:][0]
    return bool(are_short or (long.size > 1 and sessions.max() <= lengths[0] and 4 * lengths[0] >= 3 * lengths[-1]))


def moved(values: NDArray[Any], places: Integers) -> NDArray[Any]:
    """Return values in the order of their places."""
    ordered = np.empty_like(values)
    ordered[places] = values
    return ordered


def _wrong_rounds(
    table: Collection, rounds: Integers, demonstration: Integers, begins: Integers, names: Sequence[str], whole: bool
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
        remedy = f"Correct the round, remove the row, or name the demonstrations with {naming('demonstration')}."
        if table.perhaps_mark is not None:
            remedy = (
                f'If a row is an offer and "{table.perhaps_mark}" marks the chosen one, a learner with features chose: '
                f"{_WITH_FEATURES}"
            )
    else:
        missing = f" ({last + 1})" if value == last + 2 else f" ({last + 1} to {value - 1})"
        text = f"expected round {last + 1} after round {last}{where}; got {value}."
    if not remedy:
        remedy = (
            f"Add the missing rows{missing}. If the rows are complete and in order, or nobody chose in the missing "
        )
        remedy += f"rounds, ignore the numbers with {naming('round', '')}."
        if whole and table.perhaps_counts is None:
            kind = "begin in mid-run" if late.size else "miss rounds"
            remedy += f" `unbandit estimate` and `unbandit report` read logs that {kind}."
    if table.perhaps_counts is not None:
        counts = table.perhaps_counts
        remedy += f' If "{counts}" counts choices, say so with {naming("pulls", counts)}.'
    return table.refuse(text, row=row + 1, column=table.column, value=value, remedy=remedy)
