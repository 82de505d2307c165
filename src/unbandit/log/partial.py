"""Parts of a run: logs that begin in mid-run, with the pulls that came before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.formatting import counted, quoted
from unbandit.log.action_log import ActionLog
from unbandit.log.counts import refuse_duplicates
from unbandit.log.formats import is_large, sources_of
from unbandit.log.rewards import Rewards
from unbandit.log.rounds import collect_part
from unbandit.log.sources import Arms, Columns, Duplicates, Layout, Paths
from unbandit.log.tallies import Counts, Need, Record, Tallies

if TYPE_CHECKING:
    from unbandit.log.scanned import ScannedLog

StartingPulls = Mapping[Any, int] | ActionLog | str | os.PathLike[str]
"""Pulls of every arm before a log begins: by arm, as a table of counts, or as the path of one."""


class SwitchingRecord(Record, Protocol):
    """Record whose switching rounds can be found against any arm."""

    def switching_against(self, favourites: Counts) -> tuple[Counts, ...]:
        """Return own pulls, those of an arm given for each demonstration, and the rounds at which arms gave way."""


class PartialLog:
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

    ordered = True

    def __init__(self, rows: SwitchingRecord, starting_pulls: Counts | None, numbers: Counts | None = None) -> None:
        self.rows, self.starting_pulls, self.numbers = rows, starting_pulls, numbers
        self._kept: dict[Need, Tallies] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        held = f"{counted(len(self), 'demonstration')}, {len(self.arms):,} arms"
        if len(self) > 1 or self.starting_pulls is None:
            return f"<PartialLog: {held}, {self.rows.lengths.sum():,} rounds>"
        return f"<PartialLog: {held}, rounds {self.before[0] + 1:,} to {self.lengths[0]:,}>"

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the label of every arm."""
        return self.rows.arms

    @property
    def demonstrations(self) -> Sequence[str]:
        """Return the name of each demonstration."""
        return self.rows.demonstrations

    @property
    def starts(self) -> Counts:
        """Return the pulls before the first row; refuse a log without them."""
        if self.starting_pulls is None:
            begins = "" if self.numbers is None else f"; they begin at {self.numbers[0]:,}"
            text = f"expected rounds from 0 or 1{begins}, so the opening is missing."
            raise LogError(text, remedy=f"Give the pulls of every arm before it with {option('starting_pulls')}.")
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
        return (*self.rows.reading, Notice("mid-run", text))

    @property
    def pulls(self) -> Counts:
        """Return how often each arm was pulled since the run began: (demonstrations, arms)."""
        return self.rows.pulls + self.starts

    @property
    def rewards(self) -> Rewards | None:
        """Return the rewards that are known; None, as a rule."""
        return self.rows.rewards

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

    def like(self, which: int, runs: NDArray[Any]) -> PartialLog:
        """Return what would have been seen of whole runs (runs x rounds) in place of one demonstration."""
        hidden, arms = int(self.before[which]), len(self.arms)
        first = np.arange(len(runs))[:, None] * arms
        starts = np.bincount((runs[:, :hidden] + first).reshape(-1), minlength=first.size * arms)
        return PartialLog(ActionLog.from_codes(self.rows_of(which, runs), self.arms), starts.reshape(-1, arms))

    def rows_of(self, which: int, runs: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that would have been seen of whole runs in place of one demonstration."""
        return np.ascontiguousarray(runs[:, int(self.before[which]) :])


def _later(rounds: Counts, before: Counts) -> Counts:
    """Count rounds from the run's beginning on; 0 still stands for none."""
    return np.where(rounds > 0, rounds + before, 0)


def read_or_scan(
    paths: Paths, *, columns: Columns = None, arms: Arms = None, duplicates: Duplicates = None,
    sheet: str | None = None, header: bool = True, scan: bool = True,
) -> ActionLog | ScannedLog | PartialLog:  # fmt: skip
    """Read a file, several, a folder or a pattern; unless told not to, scan what is large, and say so in a notice.

    A log whose rounds are numbered and begin in mid-run is a `PartialLog`.
    """
    layout = Layout(sheet, header)
    if not (scan and is_large(paths)):
        parts, numbers = collect_part(
            sources_of(paths, layout, unpack=True), columns, arms, duplicates=duplicates, whole=False
        )
        return ActionLog(*parts) if numbers is None else PartialLog(ActionLog(*parts), None, numbers)
    from unbandit.log.scanned import ScannedLog  # most logs are read whole

    refuse_duplicates(duplicates)  # a table of counts is not scanned

    text = "the log is large, so it is scanned: read in passes, of which only counts are kept in memory."
    return ScannedLog(sources_of(paths, layout), columns, arms, notices=(Notice("reading", text),))


def started(record: Any, given: StartingPulls) -> PartialLog:
    """Return a record that begins in mid-run, after as many pulls of every arm as are given."""
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
