"""Tables of counts: pulls of each arm in place of rounds, and tables that only look like rounds."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.formatting import counted
from unbandit.log.columns import is_count_like, is_reward_like, naming
from unbandit.log.csv import POLARS_ERRORS
from unbandit.log.labels import Codes, Integers, run_starts, smallest_type
from unbandit.log.numbers import GROUPED, whole_numbers
from unbandit.log.reader import Collection, Parts, Reader, in_demonstration, in_order, offsets_of
from unbandit.log.sources import Duplicates, Source

MOST_UNREAD = 50  # columns without a role that are searched for counts
FEWEST_WITH_TOTAL = 3  # rows: fewer have no total, or one that says nothing
MOST_TOTALS_NAMED = 5  # of rows that may add up others
NEAR_TOTAL = 0.01  # part of a sum by which a row that is called a total may miss it: some visitors count twice

TOTALS = {"all", "gesamt", "gesamtergebnis", "grand total", "insgesamt", "overall", "subtotal", "sum", "summe"}
TOTALS |= {"total", "totals"}
"""What people call a row that adds up the others: small letters, without marks."""


def refuse_duplicates(duplicates: Duplicates) -> None:
    """Refuse to be told what rows of one name are where there is one row per round."""
    if duplicates is not None:
        text = "expected only with a table of counts; this log has one row per round, where an arm comes many times."
        raise ParameterError(text, parameter="duplicates", value=duplicates, remedy="Leave it out.")


def refuse_unread_counts(sources: Sequence[Source], table: Collection, reader: Reader) -> None:
    """Refuse rows that each have another arm beside a column of whole numbers: as a rule counts, not rounds.

    Of each demonstration only beside a column whose name says that it counts; and so beside rounds, where these are
    called that.
    """
    if "pulls" in reader.named or any(reader.named.get(role) for role in ("demonstration", "round")):
        return
    rows, arms, read = table.codes.size, len(reader.arms.coder), set(reader.columns())
    shared = set(sources[0].names).intersection(*(source.names for source in sources[1:])) - read
    unread = [name for name in sources[0].names if name.strip() and name in shared]
    if reader.name.get("round") == "round" or rows > arms or np.unique(table.codes).size < rows:
        unread = list(filter(is_count_like, unread))
    elif "round" in reader.name:
        unread = [name for name in unread if not is_reward_like(name)]
    unread = sorted(unread, key=is_count_like, reverse=True)[:MOST_UNREAD]
    if rows < 2 or not unread or rows > arms * len(reader.demonstration_names):
        return
    if np.unique(table.demonstration_of_rows() * arms + table.codes).size < rows:
        return
    batches = [batch.columns for source in sources for batch in source.batches(unread)]
    for name in unread:
        if _may_be_counts([columns[name] for columns in batches]):
            others = [f'"{reader.name[role]}" as {role}' for role in ("demonstration", "round") if role in reader.name]
            taken = f", with {' and '.join(others)}" if others else ""
            text = "expected an arm in several rows, one for each choice; got every arm once, beside numbers in "
            remedy = f"If these are counts of choices, say so with {naming('pulls', name)}; if every row is one "
            remedy += f"choice, with {naming('pulls', '')}."
            raise sources[0].refuse(f'{text}"{name}"{taken}.', column=name, remedy=remedy)


def _may_be_counts(columns: Sequence[pl.Series]) -> bool:
    """Return whether all cells are counts, some larger than one, that do not just number the rows."""
    try:
        cells = pl.concat(columns)
        if cells.dtype == pl.String:
            cells = cells.str.strip_chars()
            digits = cells.str.replace_all("[^0-9]", "")
            cells = pl.select(pl.when(cells.str.contains(GROUPED)).then(digits).otherwise(cells)).to_series()
        numbers = whole_numbers(LogError, cells, "", "pulls")
    except (LogError, *POLARS_ERRORS):
        return False
    places = np.sort(numbers) - np.arange(numbers.size)
    return numbers.min() >= 0 and numbers.max() >= 2 and not (places[0] == places).all()


def counted_parts(table: Collection, reader: Reader, notices: tuple[Notice, ...], duplicates: Duplicates) -> Parts:
    """Arrange pulls as (demonstrations, arms); refuse what no counting gives."""
    labels, codes = in_order(reader.arms, table.codes, table.refuse)
    pulls, column, names = np.concatenate(table.numbers), reader.name["pulls"], reader.names_with_column
    notices = reader.notices + notices
    if (pulls < 0).any():
        row = int(np.argmax(pulls < 0))
        text = f"expected a count of 0 or more for pulls; got {pulls[row]}."
        raise table.refuse(text, row=row + 1, column=column, value=int(pulls[row]), remedy="Correct it.")
    if pulls.sum(dtype=np.float64) >= 2**62:
        text = "expected counts that add up to less than 2^62; got more."
        raise table.refuse(text, column=column, remedy="Correct them.")
    who = table.demonstration_of_rows()
    if len(names) > 1 and len(names) == who.size:
        keys, named = reader.name["demonstration"], reader.named.get("demonstration")
        text = f'column "{keys}" is different in every row: each row is read as a separate demonstration.'
        notices += (Notice("reading", text),)
        if not named:
            text = f'expected several arms in each demonstration; got one, since "{keys}" is different in every row.'
            remedy = f"If it only numbers the rows, say so with {naming('demonstration', '')}; if each row is a "
            remedy += f"demonstration, with {naming('demonstration', keys)}."
            raise table.refuse(text, column=keys, remedy=remedy)
    again = _occurrences(who * len(labels) + codes)  # how often the same name stands above each row
    if again.any() and duplicates not in ("add", "separate"):
        row = int(np.argmax(again > 0))
        label = labels[int(codes[row])]
        text = f'expected each arm once in a table of pulls; got "{label}" again.'
        remedy = (
            f"If such rows are different arms, give {option('duplicates', 'separate')}; if they are one arm, "
            f"{option('duplicates', 'add')}; if they are of different demonstrations, name their column with "
            f"{naming('demonstration')}; if every row is one choice, name the column of rounds with {naming('round')}."
        )
        raise table.refuse(text, row=row + 1, column=reader.name["arm"], value=label, remedy=remedy)
    notices += _perhaps_totals(table, reader, labels, codes)
    if again.any():
        repeated = np.unique(codes[again > 0])
        names_in = counted(repeated.size, "name stands", "names stand")
        text = f'{names_in} in more than one row, the first being "{labels[int(repeated[0])]}": '
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
        remedy = f"Check that this is the column of counts, or name it with {naming('pulls')}."
        raise table.refuse(text, column=column, value=0, remedy=remedy)
    if "reward" in reader.name:
        text = f'column "{reader.name["reward"]}" is ignored: a table of counts has no rounds to give rewards to.'
        notices += (Notice("reading", text),)
    return Parts(labels, None, offsets_of(counts.sum(axis=1)), names, notices, counts=counts)


def is_total_like(label: str) -> bool:
    """Return whether a row may add up others, by its name."""
    return " ".join(re.findall(r"[^\W\d_]+", label.casefold())) in TOTALS


def total_notice(label: str, why: str) -> Notice:
    """Say of a row that it may add up others."""
    text = f'"{label}" is read as an arm, though {why}: if it adds up the other rows, remove that row.'
    return Notice("perhaps-total", text, arm=label)


def total_notices(reasons: Mapping[str, str]) -> tuple[Notice, ...]:
    """Say of rows that they may add up others: of each why, or of several in one sentence."""
    if len(reasons) < 2:
        return tuple(total_notice(label, why) for label, why in reasons.items())
    named = ", ".join(f'"{label}" ({why})' for label, why in list(reasons.items())[:MOST_TOTALS_NAMED])
    more = len(reasons) - MOST_TOTALS_NAMED
    named += f" and {counted(more, 'other')}" if more > 0 else ""
    text = f"rows are read as arms that may add up others: {named}. If they do, remove these rows."
    return (Notice("perhaps-total", text),)


def _perhaps_totals(table: Collection, reader: Reader, labels: tuple[str, ...], codes: Codes) -> tuple[Notice, ...]:
    """Refuse a row called a total whose count is the sum of the others; return what to say of those that may be."""
    pulls, who = np.concatenate(table.numbers), table.demonstration_of_rows()
    sums = np.zeros(int(who.max()) + 1, np.int64)
    np.add.at(sums, who, pulls)
    others = sums[who] - pulls
    is_named = np.array(list(map(is_total_like, labels)))[codes] & (np.bincount(who)[who] >= FEWEST_WITH_TOTAL)
    is_near = (pulls > 0) & (np.abs(pulls - others) <= NEAR_TOTAL * others)
    ends = np.unique(who, return_index=True)[1], who.size - 1 - np.unique(who[::-1], return_index=True)[1]
    is_sum = (pulls == others) & (np.bincount(who, pulls > 0)[who] >= FEWEST_WITH_TOTAL)
    is_sum &= np.isin(np.arange(who.size), np.concatenate(ends))
    certain, perhaps = np.flatnonzero(is_named & is_near), np.flatnonzero(is_named | is_sum)
    if certain.size and reader.arms.expected is None:
        row = int(certain[0])
        label, sum_of_others = labels[int(codes[row])], f"the sum of the other rows ({others[row]:,})"
        got = f"is {sum_of_others}" if pulls[row] == others[row] else f"is close to {sum_of_others}: {pulls[row]:,}"
        text = f'expected the count of one arm in every row; that of "{label}" {got}.'
        remedy = f"Remove this row. If it is an arm all the same, list every arm with {option('arms')}."
        raise table.refuse(text, row=row + 1, column=reader.name["arm"], value=label, remedy=remedy)
    reasons = dict[str, str]()
    for row in perhaps.tolist():
        is_all = pulls[row] == others[row]
        why = f"its count ({pulls[row]:,}) is the sum of the others" if is_all else "it is called like a total"
        reasons.setdefault(labels[int(codes[row])], why)
    return total_notices(reasons)


def perhaps_total_at_end(codes: Codes, labels: Sequence[str]) -> tuple[Notice, ...]:
    """Say of a log of rounds that its last row may be no round: its arm is called a total, and has no other row."""
    last = int(codes[-1])
    if codes.size < FEWEST_WITH_TOTAL or not is_total_like(labels[last]) or np.count_nonzero(codes == last) > 1:
        return ()
    return (total_notice(labels[last], "it is called like a total and stands in the last row alone"),)


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
