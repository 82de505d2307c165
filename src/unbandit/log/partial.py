"""Parts of a run: logs that begin in mid-run, with the pulls that came before, and logs that miss rounds."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.formatting import counted, quoted
from unbandit.log.action_log import ActionLog
from unbandit.log.columns import noun_of
from unbandit.log.counts import refuse_duplicates
from unbandit.log.formats import is_large, open_bytes, sources_of
from unbandit.log.rewards import Rewards
from unbandit.log.rounds import collect_part
from unbandit.log.sources import Arms, Blank, Columns, Duplicates, Layout, Paths, Source
from unbandit.log.tallies import Counts, Need, Record, Tallies

if TYPE_CHECKING:
    from unbandit.log.scan import ScannedLog

StartingPulls = Mapping[Any, int] | ActionLog | str | os.PathLike[str]
"""Pulls of every arm before a log begins: by arm, as a table of counts, or as the path of one."""

MOST_ROUNDS = 10**9  # of a run of which some rounds were kept; more are not simulated
IMPROBABLE = 1e-6  # chance of so long a hole, below which rounds did not get lost one by one
FAR_OFF = 5  # standard deviations by which the share of rounds that are there may differ from the one given


class SwitchingRecord(Record, Protocol):
    """Record whose switching rounds can be found against any arm."""

    def switching_against(self, favourites: Counts) -> tuple[Counts, ...]:
        """Return own pulls, those of an arm given for each demonstration, and the rounds at which arms gave way."""


class SeenRows:
    """Record of some rows of a run, which are a record of their own."""

    ordered = True
    rows: SwitchingRecord

    def __len__(self) -> int:
        return len(self.rows)

    def with_rows(self, rows: SwitchingRecord) -> Self:
        """Return the same part of a run with rows that have the same counts, but other names of the arms."""
        other = copy.copy(self)
        other.rows = rows
        return other

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the label of every arm."""
        return self.rows.arms

    @property
    def demonstrations(self) -> Sequence[str]:
        """Return the name of each demonstration."""
        return self.rows.demonstrations

    @property
    def noun(self) -> str:
        """Return what a demonstration is called, by the column of their names."""
        return noun_of(self.demonstrations)

    @property
    def rewards(self) -> Rewards | None:
        """Return the rewards that are known; None, as a rule."""
        return self.rows.rewards


class PartialLog(SeenRows):
    """Record of part of a run: rows that begin in mid-run.

    Closed forms read it, with counts from the run's beginning on. It is no `ActionLog`: what would take its first row
    for the first round of a run refuses it.

    Attributes
    ----------
    rows
        The part that was seen, a record of its own.
    starting_pulls
        Pulls of each arm before the first row, (demonstrations, arms); None if they are not known.
    numbers
        The round of every row, where rounds are numbered and do not begin with the run.

    Examples
    --------
    >>> part = started(ActionLog.from_actions("ABAA"), {"A": 6, "B": 4})
    >>> part
    <PartialLog: 1 demonstration, 2 arms, rounds 11 to 14>
    >>> part.pulls.tolist(), part.tallied("switching").own.tolist()
    ([[9, 5]], [[0, 5]])
    """

    def __init__(self, rows: SwitchingRecord, starting_pulls: Counts | None, numbers: Counts | None = None) -> None:
        self.rows, self.starting_pulls, self.numbers = rows, starting_pulls, numbers
        self._kept: dict[Need, Tallies] = {}

    def __repr__(self) -> str:
        held = f"{counted(len(self), self.noun)}, {len(self.arms):,} arms"
        if len(self) > 1 or self.starting_pulls is None:
            return f"<PartialLog: {held}, {self.rows.lengths.sum():,} rounds>"
        return f"<PartialLog: {held}, rounds {self.before[0] + 1:,} to {self.lengths[0]:,}>"

    @property
    def starts(self) -> Counts:
        """Return the pulls before the first row; refuse a log without them."""
        if self.starting_pulls is None:
            begins = "" if self.numbers is None else f"; they begin at {self.numbers[0]:,}"
            text = f"expected rounds from 0 or 1{begins}, so the opening is missing."
            remedy = f"Give the pulls of every arm before it with {option('starting_pulls')}."
            if _has_holes(self):
                remedy = f"If rounds are missing at random, give the share that was kept with {option('kept')}."
            raise LogError(text, remedy=remedy)
        return self.starting_pulls

    @property
    def before(self) -> Counts:
        """Return how many rounds came before the first row of each demonstration."""
        return np.asarray(self.starts.sum(axis=1))

    @property
    def lengths(self) -> Counts:
        """Return the number of rounds of each, those before the first row included."""
        return self.before + self.rows.lengths

    @property
    def reading(self) -> tuple[Notice, ...]:
        """Return what the user should know about the reading."""
        several = len(self) > 1
        where = "demonstrations begin" if several else f"the log begins in round {self.before[0] + 1:,}"
        text = f"{where}{' in mid-run' if several else ''}: counts are those given for what came before, plus its rows."
        first, arms = self.rows.tallied("counts").first, len(self.arms)
        if arms > 2 and self.numbers is None and ((first > 0) & (first <= arms)).all():
            text += " But its first rows pull every arm once, as a run does when it begins: if the log is whole, leave "
            text += f"{option('starting_pulls')} out."
        return (*self.rows.reading, Notice("mid-run", text))

    @property
    def pulls(self) -> Counts:
        """Return how often each arm was pulled since the run began: (demonstrations, arms)."""
        return self.rows.pulls + self.starts

    def tallied(self, need: Need) -> Tallies:
        """Return what closed forms need, with counts and rounds from the run's beginning on.

        An arm that gave way to the most-pulled one only before the first row has no switching round (`of_best` 0); its
        own pulls are those it began with.
        """
        if need not in self._kept:
            self._kept[need] = self._tallied(need)
        return self._kept[need]

    def _tallied(self, need: Need) -> Tallies:
        starts, before = self.starts, self.before[:, None]
        seen = self.rows.tallied("epochs" if need == "epochs" else "counts")
        pulls = self.pulls
        found = Tallies(pulls, *(_later(each, before) for each in seen.counted[1:]))
        if need == "epochs":
            # Whoever is active is pulled within as many rounds as there are arms.
            left = (starts > 0) & (seen.pulls == 0)
            gone = left & (
                (self.rows.lengths[:, None] >= len(self.arms)) | (starts < starts.max(axis=1, keepdims=True) - 1)
            )
            passed, broken, broken_arm = seen.turns
            return replace(
                found, passed=_later(passed, before), broken=_later(broken, before[:, 0]), broken_arm=broken_arm,
                gone=(passed > 0) | gone,
            )  # fmt: skip
        if need == "counts":
            return found
        every, favourites = np.arange(len(self)), pulls.argmax(axis=1)
        own, of_best, rounds = self.rows.switching_against(favourites)
        switched = rounds > 0
        of_best = np.where(switched, of_best + starts[every, favourites][:, None], 0)
        own, rounds = own + starts, _later(rounds, before)
        own[every, favourites] = of_best[every, favourites] = 0
        # The most-pulled arm's last pull, if it came before the first row, was in no earlier round than this:
        rounds[every, favourites] = np.maximum(rounds[every, favourites], pulls[every, favourites])
        return replace(found, own=own, of_best=of_best, rounds=rounds)

    def select(self, which: int) -> ActionLog | PartialLog | ThinnedLog:
        """Return one demonstration: whole, if it begins with the run and has no holes."""
        rows = _one_of(self.rows, which)
        if self.starting_pulls is not None:
            return PartialLog(rows, self.starting_pulls[which : which + 1], _numbers_of(self, which))
        return _part_of(rows, _numbers_of(self, which))

    def bracketed(self) -> ThinnedLog:
        """Return a log of which nobody knows the pulls before it begins: one that misses rounds, of any arm.

        Refuse one that misses more than half of its rounds, which leaves every gap open.
        """
        if self.numbers is None or self.starting_pulls is not None:
            raise ValueError("expected a part of a run with numbers, and without the pulls before it")
        found = ThinnedLog(self.rows, None, _from_one(self.numbers))
        if found.lengths.sum() > 2 * self.rows.lengths.sum():
            self.starts  # noqa: B018  it says what is missing
        return found

    def played(self, which: int, rows: int) -> int:
        """Return how many rounds of a run show as many rows of one demonstration."""
        return rows + int(self.before[which])

    def like(self, which: int, runs: NDArray[Any]) -> PartialLog:
        """Return what would have been seen of whole runs (runs x rounds) in place of one demonstration."""
        hidden, arms = int(self.before[which]), len(self.arms)
        first = np.arange(len(runs))[:, None] * arms
        starts = np.bincount((runs[:, :hidden] + first).reshape(-1), minlength=first.size * arms)
        return PartialLog(ActionLog.from_codes(self.rows_of(which, runs), self.arms), starts.reshape(-1, arms))

    def rows_of(self, which: int, runs: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that would have been seen of whole runs in place of one demonstration."""
        return np.ascontiguousarray(runs[:, int(self.before[which]) :])


class ThinnedLog(SeenRows):
    """Record of a run that misses rounds: each was kept with one probability, or numbers show which are missing.

    Closed forms read it (`unbandit.estimators.hidden_rounds`). Pulls and tallies are of the rows that were seen.

    Attributes
    ----------
    rows
        What was seen, a record of its own.
    kept
        The probability with which every round was kept; None if that is not known.
    numbers
        The round of every row, from 1; None if rounds are not numbered.
    most
        No run has more rounds than this, if that is known.

    Examples
    --------
    >>> thinned(ActionLog.from_actions("ABAA"), 0.5)
    <ThinnedLog: 1 demonstration, 2 arms, 4 of about 8 rounds>
    """

    def __init__(
        self, rows: SwitchingRecord, kept: float | None, numbers: Counts | None = None, most: int | None = None
    ) -> None:
        self.rows, self.kept, self.numbers, self.most = rows, kept, numbers, most
        self._kept: Tallies | None = None

    def __repr__(self) -> str:
        held = f"{counted(len(self), self.noun)}, {len(self.arms):,} arms"
        about = "about " if self.numbers is None else ""
        return f"<ThinnedLog: {held}, {self.rows.lengths.sum():,} of {about}{self.lengths.sum():,} rounds>"

    @property
    def lengths(self) -> Counts:
        """Return the number of rounds of each, missing ones included; about, where rounds are not numbered."""
        if self.numbers is None:
            about = np.rint(self.rows.lengths / (self.kept or 1.0)).astype(np.int64)
            return np.minimum(about, np.maximum(self.most or about, self.rows.lengths))
        return self.numbers[np.cumsum(self.rows.lengths) - 1]

    @property
    def begins_late(self) -> bool:
        """Return whether all missing rounds come before the first row, of one demonstration or of each."""
        if self.numbers is None:
            return False
        ends = np.cumsum(self.rows.lengths)
        return bool((self.numbers[ends - 1] - self.numbers[ends - self.rows.lengths] == self.rows.lengths - 1).all())

    @property
    def reading(self) -> tuple[Notice, ...]:
        """Return what the user should know about the reading."""
        return self.said()

    def said(self, *, bracketed: bool = True) -> tuple[Notice, ...]:
        """Return what the user should know, where gaps are `bracketed` unless rounds got lost at random, or are not."""
        seen, total = int(self.rows.lengths.sum()), int(self.lengths.sum())
        if self.kept is not None:
            about = "about " if self.numbers is None else ""
            text = f"Every round was kept with a probability of {self.kept:g}: {seen:,} of {about}{total:,} are left. "
            text += "Pulls are those seen; intervals allow for the others."
            if self.numbers is None and not isinstance(self.rows, ActionLog):
                text += f" A log whose numbered rounds have no holes is whole: read it without {option('kept')}."
            return (*self.rows.reading, *self._missing_block(), Notice("thinned", text, count=total - seen))
        text = f"{counted(total - seen, 'round is', 'rounds are')} missing of {total:,} ({1 - seen / total:.1%})"
        text += ", all before the log begins. Pulls are those seen." if self.begins_late else ". Pulls are those seen."
        if bracketed:
            text += " The others may be of any arm, so every gap has limits that cover all cases."
            if len(self.lengths) > 1 and (self.lengths == self.rows.lengths).any():
                text += " Demonstrations without missing rounds are read as they are."
        if self.begins_late:
            text += f" Give those of every arm, if you know them, with {option('starting_pulls')}."
            return (*self.rows.reading, Notice("begins-late", text, count=total - seen))
        if bracketed:
            text += f" If rounds are missing at random, give the share that was kept with {option('kept')}."
        return (*self.rows.reading, Notice("missing-rounds", text, count=total - seen))

    def _missing_block(self) -> tuple[Notice, ...]:
        """Warn of rounds that are missing at once, where rounds are said to have got lost one by one."""
        if not any(each.code == "hole-in-times" for each in self.rows.reading):
            return ()
        text = (
            f"{option('kept')} takes it that rounds got lost one by one, whichever they were. The times have a hole: "
        )
        text += "if choices were made then, what is missing is one block, and values and intervals are wrong."
        return (Notice("missing-block", text),)

    @property
    def pulls(self) -> Counts:
        """Return how often each arm was seen to be pulled: (demonstrations, arms)."""
        return self.rows.pulls

    def tallied(self, need: Need) -> Tallies:
        """Return the counts of the rows that were seen, whatever is needed: rounds are rows, counted from 1.

        Unlike in other logs an arm's own pulls are kept where the most-pulled arm was not seen before.
        """
        if self._kept is None:
            counts = self.rows.tallied("counts")
            own, of_best, rounds = self.rows.switching_against(counts.pulls.argmax(axis=1))
            self._kept = Tallies(*counts.counted, own=own, of_best=of_best, rounds=rounds)
        return self._kept

    def select(self, which: int) -> ActionLog | PartialLog | ThinnedLog:
        """Return one demonstration: whole, if its numbers have no holes."""
        rows = _one_of(self.rows, which)
        if self.kept is not None:
            return ThinnedLog(rows, self.kept, _numbers_of(self, which), self.most)
        return _part_of(rows, _numbers_of(self, which))

    def rounds_of(self, which: int, rows: Counts) -> Counts:
        """Return the round of some rows of a demonstration, from 1; 0 still stands for none."""
        if self.numbers is None:
            about = np.rint(rows * (self.lengths[which] / self.rows.lengths[which]))
            return np.asarray(about.astype(np.int64))
        first = int(self.rows.lengths[:which].sum())
        return np.where(rows > 0, self.numbers[first + np.maximum(rows, 1) - 1], 0)

    def played(self, which: int, rows: int) -> int:
        """Return how many rounds of a run show as many rows of one demonstration."""
        return int(self.rounds_of(which, np.array([rows]))[0])

    def like(self, which: int, runs: NDArray[Any]) -> ThinnedLog:
        """Return what would have been seen of whole runs (runs x rounds) in place of one demonstration."""
        rows = self.rows_of(which, runs)
        numbers = None if self.numbers is None else np.tile(self.numbers_of(which), len(runs))
        return ThinnedLog(ActionLog.from_codes(rows, self.arms), self.kept, numbers, self.most)

    def rows_of(self, which: int, runs: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that would have been seen of whole runs: the same rounds or, not numbered, as many."""
        played = runs.shape[1]
        if self.numbers is not None:
            numbers = self.numbers_of(which)
            return np.ascontiguousarray(runs[:, numbers[numbers <= played] - 1])
        number = round(played * self.rows.lengths[which] / self.lengths[which])
        generator = np.random.default_rng([which, number])
        chosen = (np.sort(generator.choice(played, number, replace=False, shuffle=False)) for _ in runs)
        return np.stack([run[rounds] for run, rounds in zip(runs, chosen, strict=True)])

    def numbers_of(self, which: int) -> Counts:
        """Return the rounds of one demonstration that were seen."""
        numbers = _numbers_of(self, which)
        assert numbers is not None
        return numbers


def _numbers_of(part: PartialLog | ThinnedLog, which: int) -> Counts | None:
    """Return the rounds of one demonstration, from 1; None if rounds are not numbered."""
    if part.numbers is None:
        return None
    ends = np.cumsum(part.rows.lengths)
    return _from_one(part.numbers)[int(ends[which] - part.rows.lengths[which]) : int(ends[which])]


def _one_of(rows: SwitchingRecord, which: int) -> ActionLog:
    """Return the rows of one demonstration; refuse rows that are not in memory."""
    if not isinstance(rows, ActionLog):
        text = f"expected a log in memory, of which one demonstration is read; got a {type(rows).__name__}."
        raise ParameterError(text, parameter="demonstration", remedy="Read it with ActionLog.read.")
    return replace(rows.select(which), reading=rows.reading)


def _later(rounds: Counts, before: Counts) -> Counts:
    """Count rounds from the run's beginning on; 0 still stands for none."""
    return np.where(rounds > 0, rounds + before, 0)


def read_or_scan(
    paths: Paths, *, columns: Columns = None, arms: Arms = None, duplicates: Duplicates = None,
    sheet: str | None = None, header: bool = True, scan: bool = True, blank: Blank = None,
) -> ActionLog | ScannedLog | PartialLog | ThinnedLog:  # fmt: skip
    """Read a file, several, a folder or a pattern; unless told not to, scan what is large, and say so in a notice.

    A log of which rows without a choice are skipped is never scanned.

    A log whose rounds are numbered and begin in mid-run is a `PartialLog`, one that misses some later a `ThinnedLog`.
    """
    layout = Layout(sheet, header)
    if blank == "skip" or not (scan and is_large(paths)):
        return _read(sources_of(paths, layout, unpack=True), columns, arms, duplicates, blank)
    from unbandit.log.scan import ScannedLog  # most logs are read whole

    refuse_duplicates(duplicates)  # a table of counts is not scanned

    text = "the log is large, so it is scanned: read in passes, of which only counts are kept in memory."
    return ScannedLog(sources_of(paths, layout), columns, arms, notices=(Notice("reading", text),))


def read_bytes(
    data: bytes, *, name: str = "the log", columns: Columns = None, arms: Arms = None, duplicates: Duplicates = None,
    sheet: str | None = None, header: bool = True, blank: Blank = None,
) -> ActionLog | PartialLog | ThinnedLog:  # fmt: skip
    """Read the content of a file as `read_or_scan` reads a file; `name` is what messages call it."""
    return _read([open_bytes(data, name, Layout(sheet, header))], columns, arms, duplicates, blank)


def _read(
    sources: Sequence[Source], columns: Columns, arms: Arms, duplicates: Duplicates, blank: Blank
) -> ActionLog | PartialLog | ThinnedLog:
    """Read a log into memory, or the part of one that is there."""
    parts, numbers = collect_part(sources, columns, arms, duplicates=duplicates, blank=blank, whole=False)
    rows = ActionLog(*parts)
    return _part_of(rows, numbers)


def _part_of(rows: ActionLog, numbers: Counts | None) -> ActionLog | PartialLog | ThinnedLog:
    """Return what rows with these numbers are: whole if there are none, or if those of one run have no holes."""
    if numbers is None:
        return rows
    if not (numbers[rows.offsets[:-1]] <= 1).all():  # the first of each demonstration
        return PartialLog(rows, None, numbers)
    if len(rows) == 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return replace(rows, is_numbered=True)
    return ThinnedLog(rows, None, _from_one(numbers))


def thinned(record: Any, kept: float, horizon: int | None = None) -> ThinnedLog:
    """Return a record of which every round was kept with one probability; refuse one that numbers contradict.

    A run has no more rounds than its horizon, where that is given.
    """
    probability = checks.level(kept, "kept")
    if not hasattr(record, "switching_against") and not isinstance(record, PartialLog | ThinnedLog):
        text = f"expected a log that was read, scanned or followed here; got a {type(record).__name__}."
        raise ParameterError(text, parameter="kept")
    if not record.ordered:
        text = "which rounds a table of counts leaves out says nothing about any arm: expected one row per round."
        raise ParameterError(text, parameter="kept", remedy="Divide the counts by it, and leave it out.")
    if isinstance(record, ActionLog) and record.is_numbered:
        text = "expected rounds with holes where some are missing; their numbers have none, so the log is whole."
        remedy = f"Leave {option('kept')} out; if rows were numbered only after some got lost, ignore the numbers with "
        raise ParameterError(text, parameter="kept", value=kept, remedy=f"{remedy}{option('columns', {'round': ''})}.")
    if not isinstance(record, PartialLog | ThinnedLog):
        found = ThinnedLog(record, probability, most=None if horizon is None else checks.whole("horizon", horizon))
        if int(found.lengths.max()) > MOST_ROUNDS:
            text = f"a run would have {int(found.lengths.max()):,} rounds; expected at most {MOST_ROUNDS:,}."
            raise ParameterError(text, parameter="kept", value=kept, remedy="Correct it, or leave it out.")
        return found
    if record.numbers is None:
        text = "expected without pulls before the log begins: what was kept of those is not known."
        raise ParameterError(text, parameter="kept", remedy="Leave one of them out.")
    found = ThinnedLog(record.rows, probability, _from_one(record.numbers))
    seen, total = int(found.rows.lengths.sum()), int(found.lengths.sum())
    if abs(seen - probability * total) > FAR_OFF * np.sqrt(total * probability * (1 - probability)) + 1:
        text = f"of {total:,} rounds {seen:,} are here, a share of {seen / total:.3g}; got {probability:g}."
        raise ParameterError(text, parameter="kept", value=kept, remedy="Correct it, or leave it out.")
    _refuse_blocks(found, probability)
    return found


def _refuse_blocks(log: ThinnedLog, kept: float) -> None:
    """Refuse holes that rounds lost one by one, each with the same probability, would not leave."""
    assert log.numbers is not None
    first = np.zeros(len(log.numbers), np.bool_)
    first[np.cumsum(log.rows.lengths)[:-1]] = first[0] = True
    before = np.where(first, 0, np.append(0, log.numbers[:-1]))
    holes, total = log.numbers - before - 1, int(log.lengths.sum())
    longest, missing, number = int(holes.max()), 1 - kept, int((holes > 0).sum())
    usual, variance = total * kept * missing, total * kept * missing * (1 - 3 * kept * missing)
    is_long = longest > 0 and total * missing**longest < IMPROBABLE
    if is_long or abs(number - usual) > FAR_OFF * np.sqrt(variance) + len(log) + 1:
        at = int(holes.argmax())
        text = f"expected rounds that got lost one by one; {longest:,} in a row are missing before round "
        text += f"{log.numbers[at]:,}, in {counted(number, 'hole')} where about {usual:,.0f} would be usual."
        remedy = f"Leave {option('kept')} out; where the beginning is missing, give {option('starting_pulls')}."
        raise ParameterError(text, parameter="kept", value=kept, remedy=remedy)


def _from_one(numbers: Counts) -> Counts:
    """Count rounds from 1 that are numbered from 0 or 1."""
    return numbers + 1 if numbers.min() == 0 else numbers


def part_of(record: Any, starting_pulls: StartingPulls | None, kept: float | None, horizon: int | None) -> Any:
    """Return a record as part of a run, if it is said to be one."""
    if starting_pulls is not None:
        record = started(record, starting_pulls)
    if kept is not None:
        record = thinned(record, kept, horizon)
    return record


def without_counts(record: Any) -> Any:
    """Return a record that begins in mid-run after nobody knows which pulls as one that misses rounds; others as is."""
    return record.bracketed() if isinstance(record, PartialLog) and record.starting_pulls is None else record


def started(record: Any, given: StartingPulls) -> PartialLog:
    """Return a record that begins in mid-run, after as many pulls of every arm as are given."""
    if isinstance(record, ThinnedLog) or _has_holes(record):
        text = "expected a log without missing rounds: which arm was pulled in them is not known."
        raise ParameterError(text, parameter="starting_pulls", remedy="Add the missing rows, or leave it out.")
    part = record if isinstance(record, PartialLog) else None
    rows, table = (part.rows if part else record), _table_of(given)
    if not hasattr(rows, "switching_against"):
        text = f"expected a log that was read, scanned or followed here; got a {type(rows).__name__}."
        raise ParameterError(text, parameter="starting_pulls")
    if not rows.ordered:
        text = "a table of counts has no beginning: expected a log with one row per round."
        raise ParameterError(text, parameter="starting_pulls", remedy="Add the counts up, and leave it out.")
    if missing := [arm for arm in rows.arms if arm not in table.arms]:
        text = f"expected the pulls of every arm before the log begins; got none of {quoted(missing[0])}."
        remedy = "Give 0 for an arm that was not pulled before."
        raise ParameterError(text, parameter="starting_pulls", remedy=remedy)
    if more := tuple(arm for arm in table.arms if arm not in rows.arms):
        if not isinstance(rows, ActionLog):
            text = f"arm {quoted(more[0])} was pulled before the log begins, and not since."
            raise ParameterError(text, parameter="starting_pulls", remedy=f"List all arms with {option('arms')}.")
        rows = replace(rows, arms=rows.arms + more)
    places = [table.arms.index(arm) for arm in rows.arms]
    found = PartialLog(rows, np.ascontiguousarray(table.pulls[_matched(rows, table)][:, places]))
    if part is not None and part.numbers is not None:
        _check_numbers(found, part.numbers)
    return found


def _has_holes(record: Any) -> bool:
    """Return whether rounds are missing between the first row of a part of a run and its last."""
    if not isinstance(record, PartialLog) or record.numbers is None:
        return False
    ends = np.cumsum(record.rows.lengths)
    return bool((record.numbers[ends - 1] - record.numbers[ends - record.rows.lengths] >= record.rows.lengths).any())


def _table_of(given: StartingPulls) -> ActionLog:
    """Return counts as a table of them."""
    try:
        if isinstance(given, Mapping):
            return ActionLog.from_counts(given)
        if isinstance(given, ActionLog):
            table = given
        else:
            checks.path("starting_pulls", given)
            table = ActionLog.read(given)
    except ParameterError as error:
        raise error.at(parameter="starting_pulls") from None
    if table.ordered:
        text = "expected a table of arms and their pulls before the log begins; got one row per round."
        raise ParameterError(text, parameter="starting_pulls", remedy='Its columns are "arm" and "pulls".')
    return table


def _matched(rows: Record, table: ActionLog) -> list[int]:
    """Return which row of the table belongs to each demonstration."""
    if len(rows) == len(table) == 1:
        return [0]
    names = list(table.demonstrations)
    if len(rows) == 1 and rows.demonstrations[0] in names:  # one of several was chosen
        return [names.index(rows.demonstrations[0])]
    if sorted(names) != sorted(rows.demonstrations):
        text = f"expected counts of each of the {len(rows):,} demonstrations, by the same names; got "
        text += f"{counted(len(table), 'demonstration')}."
        remedy = 'Add a column "demonstration" to the table of counts.'
        raise ParameterError(text, parameter="starting_pulls", remedy=remedy)
    return [names.index(name) for name in rows.demonstrations]


def _check_numbers(part: PartialLog, numbers: Counts) -> None:
    """Refuse counts that do not add up to the rounds before the first; these are counted from 0 or 1."""
    begins = numbers[np.concatenate(([0], np.cumsum(part.rows.lengths)[:-1]))]
    for name, first, before in zip(part.demonstrations, begins.tolist(), part.before.tolist(), strict=True):
        if first not in (before, before + 1):
            where = f' of demonstration "{name}"' if len(part) > 1 else ""
            text = f"the first round{where} is {first:,}, so {first - 1:,} came before; the counts given add up to "
            text += f"{before:,}."
            raise ParameterError(text, parameter="starting_pulls", remedy="Correct them.")
