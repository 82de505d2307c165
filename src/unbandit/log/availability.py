"""Availability: which arms could be pulled in which rounds, as told, and held against a log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.errors import LogError, ParameterError
from unbandit.formatting import quoted
from unbandit.log.action_log import ActionLog
from unbandit.log.columns import naming
from unbandit.log.formats import sources_of
from unbandit.log.numbers import LogTimes, Moment, moment_of

AvailabilityTable = Mapping[Any, Any] | str | os.PathLike[str]
"""Rounds in which arms can be pulled: ``{"C": (1001, None), "B": (None, 3000)}``, or the path of a table.

Where a log has times, these may be dates and times, as texts or as Python has them.
"""

ALWAYS = 2**62  # later than any round
COLUMNS = ("arm", "first", "last")
_Bound = int | Moment | None
REMEDY = 'Its columns are "arm", "first" and "last"; rounds are counted from 1, and a blank is the beginning or end.'


@dataclass(frozen=True, eq=False)
class Availability:
    """The rounds in which every arm can be pulled, counted from 1: from `first` to `last`, both included.

    Examples
    --------
    >>> found = availability_of({"C": (101, None), "B": (None, 300)}, ("A", "B", "C"))
    >>> found
    <Availability: "B" to round 300, "C" from round 101>
    >>> found.at(50).tolist(), found.at(301).tolist()
    ([True, True, False], [True, False, True])
    """

    arms: tuple[str, ...]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    in_utc: bool = False  # whether dates were taken as days in UTC

    def __repr__(self) -> str:
        return f"<Availability: {self.said or 'all arms in all rounds'}>"

    @property
    def said(self) -> str:
        """Return which arms cannot be pulled throughout, in words."""
        parts = []
        for arm, first, last in zip(self.arms, self.first.tolist(), self.last.tolist(), strict=True):
            begins = f" from round {first:,}" if first > 1 else ""
            ends = f" to round {last:,}" if last < ALWAYS else ""
            parts += [f"{quoted(arm)}{begins}{ends}"] if begins or ends else []
        return ", ".join(parts)

    @property
    def arrives(self) -> bool:
        """Return whether some arm arrives after the first round."""
        return bool((self.first > 1).any())

    def at(self, round: int) -> NDArray[np.bool_]:
        """Return which arms can be pulled in a round."""
        return np.asarray((self.first <= round) & (round <= self.last))

    def ends(self, rounds: int) -> NDArray[np.int64]:
        """Return the last round of each arm in a record with this number of rounds."""
        return np.minimum(self.last, rounds)

    def covers(self, rounds: int) -> bool:
        """Return whether every arm can be pulled in every one of the first `rounds` rounds."""
        return bool((self.first <= 1).all() and (self.last >= rounds).all())

    def within(self, rounds: int) -> Availability | None:
        """Return this table; None if it limits nothing in the first `rounds` rounds."""
        return None if self.covers(rounds) else self

    def rivals(self, rounds: int) -> NDArray[np.bool_]:
        """Return for each arm which arms can be pulled in its last round of a record: its gap is to the best of them.

        Examples
        --------
        >>> availability_of({"B": (None, 300), "C": (301, None)}, ("A", "B", "C")).rivals(500).astype(int).tolist()
        [[1, 0, 1], [1, 1, 0], [1, 0, 1]]
        """
        return np.array([self.at(end) for end in self.ends(rounds).tolist()])

    def check_rounds(self, rounds: int) -> None:
        """Refuse a table that leaves some round of a run without an arm."""
        edges = np.unique(np.concatenate(([1], self.first, self.last + 1)))
        for edge in edges[edges <= rounds].tolist():
            if not self.at(edge).any():
                text = f"expected an arm that can be pulled in every round; there is none in round {edge:,}."
                raise ParameterError(text, parameter="availability", remedy="Correct the table.")

    def check_log(self, log: ActionLog) -> None:
        """Refuse a log in which an arm is pulled when it could not be."""
        tallies = log.tallied("counts")
        for which, name in enumerate(log.demonstrations):
            where = f' of demonstration "{name}"' if len(log) > 1 else ""
            pulled = tallies.pulls[which] > 0
            early = pulled & (tallies.first[which] < self.first)
            late = pulled & (tallies.last[which] > self.last)
            for arm in np.flatnonzero(early | late).tolist():
                rounds = tallies.first if early[arm] else tallies.last
                bounds = self.first if early[arm] else self.last
                at, bound = int(rounds[which, arm]), int(bounds[arm])
                told = "first" if early[arm] else "last"
                text = f"arm {quoted(self.arms[arm])} is pulled in round {at:,}{where}, and its {told} round is "
                text += f"{bound:,}."
                remedy = "Correct the table; rounds are counted from 1."
                raise LogError(text, round=at, remedy=remedy)


def availability_of(
    given: Availability | AvailabilityTable, arms: Sequence[str], times: LogTimes | None = None
) -> Availability:
    """Return what was told of these arms; arms that are not listed are available throughout.

    Dates and times stand for rounds by the `times` of a log with one demonstration.
    """
    if isinstance(given, Availability):
        if given.arms != tuple(arms):
            text = f"expected the availability of {', '.join(arms[:6])}; got that of {', '.join(given.arms[:6])}."
            raise ParameterError(text, parameter="availability")
        return given
    first, last, in_utc = np.ones(len(arms), np.int64), np.full(len(arms), ALWAYS), False
    for arm, bounds in spans_of(given, arms, times):
        begins, ends = (_round(bound, arms[arm], times, last=which > 0) for which, bound in enumerate(bounds))
        first[arm], last[arm] = 1 if begins is None else begins, ALWAYS if ends is None else ends
        in_utc |= (
            times is not None and times.has_zone and any(isinstance(each, Moment) and each.is_day for each in bounds)
        )
        if first[arm] > last[arm]:
            text = f"by the times of the log, no round lies between the first and the last of {quoted(arms[arm])}."
            raise ParameterError(text, parameter="availability", remedy="Correct the table.")
    return Availability(tuple(arms), first, last, in_utc)


def spans_of(
    given: AvailabilityTable, arms: Sequence[str], times: LogTimes | None = None
) -> list[tuple[int, tuple[_Bound, _Bound]]]:
    """Return what a table tells of these arms: the first and the last round or time of each that it lists."""
    rows = list(given.items()) if isinstance(given, Mapping) else _rows_of(given)
    found: dict[int, tuple[_Bound, _Bound]] = {}
    for label, span in rows:
        arm = checks.position("availability", label, arms)
        if arm in found:
            raise ParameterError(f"expected each arm once; got {quoted(arms[arm])} again.", parameter="availability")
        if isinstance(span, str) or not isinstance(span, Sequence) or len(span) != 2:
            text = f"expected the first and the last round of {quoted(arms[arm])}; got {checks.brief(span)}."
            raise ParameterError(text, parameter="availability", value=span, remedy="Give None for no limit.")
        found[arm] = first, last = _bound(span[0], arms[arm], times), _bound(span[1], arms[arm], times)
        by_time = isinstance(first, Moment) and isinstance(last, Moment) and first.time > last.ends
        if by_time or (isinstance(first, int) and isinstance(last, int) and first > last):
            text = f"expected a first round up to the last, {checks.brief(span[1])}, for {quoted(arms[arm])}; got "
            raise ParameterError(f"{text}{checks.brief(span[0])}.", parameter="availability", value=span)
    bounds = [each for span in found.values() for each in span if each is not None]
    if len({isinstance(each, Moment) for each in bounds}) > 1:
        text = "expected rounds throughout or times throughout; got both."
        raise ParameterError(text, parameter="availability", remedy="Write all in one form.")
    return list(found.items())


def _bound(value: object, arm: str, times: LogTimes | None) -> _Bound:
    """Read a round or a time; None and blank cells stand for no limit.

    Numbers are rounds, except large ones where the log has times since 1970.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text, number = str(value).strip(), checks.integer(value)
    if isinstance(value, str) and text.removesuffix(".0").isdecimal():
        number = int(text.removesuffix(".0"))
    if number is None or (times is not None and times.since_1970):
        like = "" if times is None else times.form
        moment = moment_of(text, like) if isinstance(value, str | date) or number is not None else None
        if moment is not None:
            return moment
    if number is None or not 1 <= number < ALWAYS:
        text = f"expected a round, counted from 1, or a time such as 2026-05-31, for {quoted(arm)}; got "
        remedy = "Leave it blank for no limit. Times are written in ISO 8601, or as the log writes them."
        raise ParameterError(f"{text}{checks.brief(value)}.", parameter="availability", value=value, remedy=remedy)
    return number


def _round(bound: _Bound, arm: str, times: LogTimes | None, *, last: bool) -> int | None:
    """Return the round that a bound is: of times the first one from then on, or the last one up to then."""
    if not isinstance(bound, Moment):
        return bound
    if times is None:
        text = f"expected rounds, as there are no times by which those of {quoted(arm)} could be found."
        remedy = f"Give rounds; or, if a column of the log has times, name it with {naming('round')}. Of several "
        remedy += "demonstrations choose one."
        raise ParameterError(text, parameter="availability", remedy=remedy)
    if not times.compares(bound):
        text = f"the times of {quoted(arm)} are {bound.form}, and those of the log are {times.form}."
        raise ParameterError(text, parameter="availability", remedy="Write them as the log does, or give rounds.")
    before = times.rows_before(bound, included=last)
    if last:
        return before if before < times.times.size else None  # no limit that the log shows
    return before + 1


def _rows_of(path: str | os.PathLike[str]) -> list[tuple[str, tuple[str | None, str | None]]]:
    """Read a table of arms with their first and last rounds."""
    checks.path("availability", path)
    rows: list[tuple[str, tuple[str | None, str | None]]] = []
    for source in sources_of(path):
        if missing := [name for name in COLUMNS if name not in source.names]:
            text = f'expected the columns "arm", "first" and "last"; there is no "{missing[0]}".'
            raise ParameterError(text, parameter="availability", remedy=REMEDY)
        for batch in source.batches(list(COLUMNS)):
            arm, first, last = (batch.columns[name].cast(str).to_list() for name in COLUMNS)
            rows += [(str(label).strip(), span) for label, span in zip(arm, zip(first, last, strict=True), strict=True)]
    if not rows:
        raise ParameterError("expected a row for each arm; got none.", parameter="availability", remedy=REMEDY)
    return rows
