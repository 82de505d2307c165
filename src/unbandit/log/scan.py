"""Logs in files that need not fit in memory: read in streaming passes, of which only tallies are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.formatting import counted
from unbandit.log.columns import naming
from unbandit.log.labels import Codes, Integers, LabelColumn, Refuse, blank_choice_remedy, run_starts
from unbandit.log.numbers import RoundColumn
from unbandit.log.reader import Reader, Rows, arm_order, batches_of, in_demonstration, label_notices, with_clock
from unbandit.log.rounds import CoarseTimes, compared_times, goes_by_time, mostly_tied, said_of_times, times_left
from unbandit.log.sources import ROWS, Arms, Batch, Columns, Source, check_alike, source_notices
from unbandit.log.tallies import LookRule, Need, Tallies, broken_rounds, looks_at, switching_against
from unbandit.tables import Tabular

if TYPE_CHECKING:
    import polars

MOST_PAIRS = 2_000
"""Up to this many arms, the switching round of each against every other is kept of a demonstration being read."""

MOST_RECENT_BYTES = 2**30  # of rounds whose rewards are not known yet, of all demonstrations together

_IN_ORDER = (
    "A log that is scanned or followed must be in order, also from file to file: sort it, or, if it fits in memory, "
    "read it whole."
)


class OrderedReader(Reader):
    """Reader of a log of which only tallies are kept: rewards are not read, and the rows must come in order.

    `rounds`, `times` and `coarse` are where an earlier reader stopped, if there was one; for the rest see `Reader`.
    """

    def __init__(
        self, names: Sequence[str], refuse: Refuse, columns: Columns, arms: LabelColumn,
        demonstrations: LabelColumn, rounds: Sequence[Sequence[int]] | None = None, times: str | None = None,
        coarse: Sequence[Sequence[int]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(names, refuse, columns, arms, demonstrations)
        if "pulls" in self.name:
            text = "expected one row per choice; got a table of counts, which needs no scanning."
            remedy = "Read it whole, without scanning or following, or name the column of rounds with "
            remedy += f"{option('columns', {'round': 'NAME'})}."
            raise refuse(text, column=self.name["pulls"], remedy=remedy)
        self._open_roles.discard("reward")
        if "reward" in self.name:
            text = f'column "{self.name.pop("reward")}" is not read: a scanned log has no rewards.'
            self.notices += (Notice("reading", text),)
        self._round_column = RoundColumn(self.name["round"], times) if "round" in self.name else None
        self._begins, self._counted = (np.array(each, np.int64) for each in rounds or ([-1], [0]))
        not_kept: tuple[Any, ...] = (self._begins, np.zeros_like(self._begins), [], [0, 0])  # by an earlier version
        begins, latest, seen, (count, is_open) = coarse or not_kept
        self._first_times, self._coarse = np.array(begins, np.int64), CoarseTimes(seen, count)
        self._latest_arms, self._is_open = np.array(latest, np.int64), is_open  # whether ties are of several arms
        self.order_notices: tuple[Notice, ...] = ()

    def compare_with_times(self, *sources: Source) -> None:
        """Compare the order of rows with times that nothing reads, in files' first rows, as logs in memory are.

        Refuse a column of rounds that such a log would not be read by.
        """
        beside = compared_times(sources, self)
        self.order_notices = times_left(sources[0], self) if beside is None else (said_of_times(self, *beside),)
        if beside is not None and goes_by_time(self, *beside[1:]):
            rounds, times = self.name["round"], beside[0]
            text = f'expected rounds in the order of the times; by "{times}", "{rounds}" numbers the latest first, and '
            text += "nobody said that it is the column of rounds."
            remedy = f'{_IN_ORDER} To read it by the times, use {naming("round", times)}. If "{rounds}" is the order, '
            raise sources[0].refuse(text, column=rounds, remedy=f"{remedy}say so with {naming('round', rounds)}.")

    @property
    def rounds(self) -> list[list[int]]:
        """Return each demonstration's first round (-1 before it came), and how many followed.

        Of times instead the latest, and how many rows shared theirs with the row before.
        """
        return [self._begins.tolist(), self._counted.tolist()]

    @property
    def times(self) -> str | None:
        """Return how times are written, "" for round numbers; None if that is not known yet."""
        return None if self._round_column is None else self._round_column.form

    @property
    def coarse(self) -> list[list[int]] | None:
        """Return each demonstration's first time and latest arm, and what holes are found by; None without times."""
        each = (self._first_times, self._latest_arms, self._coarse.times)
        return [*map(np.ndarray.tolist, each), [self._coarse.count, self._is_open]] if self.times else None

    def time_notices(self) -> tuple[Notice, ...]:
        """Say that times order the rounds, if they do, whether they leave that open, and where they have a hole."""
        column = self._round_column
        if column is None or not column.form:
            return ()
        ties = int(self._counted.sum())
        tied = mostly_tied(ties, self._coarse.count, column.name) if self._is_open else ()
        return column.notice(ties), *tied, *self._coarse.hole(column, self._first_times, self._begins)

    def known(self) -> tuple[int, int]:
        """Return how many demonstrations and arms were met so far."""
        return len(self.demonstration_names), len(self.arms.coder)

    def read(self, batch: Batch) -> Rows:
        """Turn the next rows into codes; refuse them if their rounds do not follow on those read before."""
        rows, columns = super().read(batch), self.columns("round")
        if self._round_column is not None and {*columns} <= {*batch.columns}:
            rounds = self._round_column.read(batch.refuse, self.rounds_in(batch))
            (self._check_times if self._round_column.form else self._check_rounds)(batch.refuse, rounds, rows)
        return rows

    def _check_times(self, refuse: Refuse, times: Integers, rows: Rows) -> None:
        """Refuse times that go back within a demonstration."""
        count = int(rows.who.max()) + 1
        self._begins, self._counted = grown(self._begins, (count,), -1), grown(self._counted, (count,))
        self._first_times = grown(self._first_times, (count,), -1)
        self._latest_arms = grown(self._latest_arms, (count,))
        who = np.repeat(rows.who, np.diff(rows.starts))
        order = np.argsort(who, kind="stable")
        which, ordered = who[order], times[order]
        begins = run_starts(which)
        before = np.concatenate(([0], ordered[:-1]))
        before[begins[:-1]] = self._begins[which[begins[:-1]]]
        if (ordered < before).any():
            wrong = int(order[ordered < before].min())
            at = int(np.flatnonzero(order == wrong)[0])
            assert self._round_column is not None
            got, earlier = (self._round_column.written(int(time[at])) for time in (ordered, before))
            where = in_demonstration(self.names_with_column, int(who[wrong]))
            text = f"expected times in ascending order{where}; got {got} after {earlier}."
            raise refuse(text, row=wrong + 1, column=self.name["round"], remedy=_IN_ORDER)
        tied = ordered == before
        np.add.at(self._counted, which[tied], 1)
        came, firsts, arms = which[begins[:-1]], ordered[begins[:-1]], rows.codes[order]
        differs = np.concatenate(([False], arms[1:] != arms[:-1]))
        differs[begins[:-1]] = arms[begins[:-1]] != self._latest_arms[came]
        self._is_open, self._latest_arms[came] = self._is_open | int((tied & differs).any()), arms[begins[1:] - 1]
        self._first_times[came] = np.where(self._first_times[came] < 0, firsts, self._first_times[came])
        self._begins[came] = ordered[begins[1:] - 1]
        self._coarse.add(ordered)

    def _check_rounds(self, refuse: Refuse, rounds: Integers, rows: Rows) -> None:
        from unbandit.kernels.tally import first_out_of_order

        count = int(rows.who.max()) + 1
        self._begins, self._counted = grown(self._begins, (count,), -1), grown(self._counted, (count,))
        wrong = first_out_of_order(rounds, rows.starts, rows.who, self._begins, self._counted)
        if wrong == rounds.size:
            return
        run = int(np.searchsorted(rows.starts, wrong, side="right")) - 1
        which, got = int(rows.who[run]), int(rounds[wrong])
        where = in_demonstration(self.names_with_column, which)
        leave_out, remedy = f"ignore the numbers with {option('columns', {'round': ''})} and give", _IN_ORDER
        if self._begins[which] < 0:
            text = f"expected rounds from 0 or 1{where}; they begin at {got}, so the opening is missing"
            text += ", or comes later."
            remedy += f" If it begins in mid-run, {leave_out} {option('starting_pulls')}."
        else:
            last = int(self._begins[which] + self._counted[which]) + wrong - int(rows.starts[run]) - 1
            text = f"expected round {last + 1} after round {last}{where}; got {got}"
            text += ", so rows are missing or out of order."
            if got > last:
                remedy += (
                    f" If rows were lost at random, {leave_out} the share of rows that were kept: {option('kept')}."
                )
        raise refuse(text, row=wrong + 1, column=self.name["round"], value=got, remedy=remedy)


def grown(array: NDArray[Any], shape: tuple[int, ...], fill: Any = 0) -> NDArray[Any]:
    """Return an array with room for a shape, and for more on its first axis; the same one if it has that."""
    if all(have >= wanted for have, wanted in zip(array.shape, shape, strict=True)):
        return array
    rows = array.shape[0] if array.shape[0] >= shape[0] else shape[0] + shape[0] // 2
    larger = np.full((rows, *map(max, array.shape[1:], shape[1:])), fill, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


class TallyAccumulator:
    """Tallies that grow run by run; rows and columns are added as demonstrations and arms turn up."""

    def __init__(self, most_pairs: int = MOST_PAIRS) -> None:
        self._most_pairs = most_pairs
        self.grids = [np.zeros((1, 0), np.int64) for _ in ("pulls", "first", "last", "own", "of_best", "rounds")]
        self.lengths, self.torn = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        self._open: int | None = None  # the demonstration whose rows the last batch ended with
        self._pairs: list[Integers] = []

    def add(self, rows: Rows, demonstrations: int, arms: int) -> None:
        """Add the next rows, of which there are now as many demonstrations and arms."""
        from unbandit.kernels.tally import tally_runs

        self.grids = [grown(grid, (demonstrations, arms)) for grid in self.grids]
        self.lengths, self.torn = grown(self.lengths, (demonstrations,)), grown(self.torn, (demonstrations,))
        if self._open is not None and arms > self._most_pairs:  # too many to keep pairs of
            self.torn[self._open], self._open = True, None
        codes, starts, who = rows
        first, last = 0, who.size - 1
        if self._open is not None:
            if who[0] == self._open:
                self._advance(codes[: starts[1]])
                first = 1
            if first <= last:
                self.close()
        if first < last:
            tally_runs(codes, starts[first : last + 1], who[first:last], self.lengths, self.torn, *self.grids)
        if first <= last and self.lengths[who[last]] == 0 and arms <= self._most_pairs:
            self._open, self._pairs = int(who[last]), [np.zeros((arms, arms), np.int64) for _ in range(3)]
            self._advance(codes[starts[last] :])
        elif first <= last:
            tally_runs(codes, starts[last:], who[last:], self.lengths, self.torn, *self.grids)

    def close(self) -> None:
        """End the demonstration that was being read, if any: its most-pulled arm is known now."""
        if self._open is None:
            return
        pulls, _, last, own, of_best, rounds = (grid[self._open] for grid in self.grids)
        best, arms = int(pulls.argmax()), self._pairs[0].shape[0]
        latest, own_pulls, best_pulls = (pair[:, best] for pair in self._pairs)
        rounds[:arms], of_best[:arms] = latest, best_pulls
        own[:arms] = np.where(best_pulls > 0, own_pulls, 0)
        rounds[best] = last[best]
        self._open, self._pairs = None, []

    def _advance(self, codes: Codes) -> None:
        from unbandit.kernels.tally import advance_switching

        which, arms = self._open, self.grids[0].shape[1]
        assert which is not None
        more = arms - self._pairs[0].shape[0]
        if more:
            self._pairs = [np.pad(pair, ((0, more), (0, more))) for pair in self._pairs]
        advance_switching(codes, self.lengths[which], *(grid[which] for grid in self.grids[:3]), *self._pairs)
        self.lengths[which] += codes.size


class _Read(NamedTuple):
    """What the first pass, and perhaps a second, found; `order` is the code of each arm."""

    arms: tuple[str, ...]
    order: Integers
    demonstrations: tuple[str, ...]
    lengths: Integers
    tallies: Tallies
    notices: tuple[Notice, ...]


class ScannedLog(Tabular):
    """Demonstrations in files, of which no more is held in memory than their tallies.

    Make one with `ActionLog.scan`. It can be estimated by closed forms: methods bracket, switching, counts and naive.
    What looks at rounds one by one (posteriors, pictures) needs `ActionLog.read`.

    The rows of a demonstration must be in order, from file to file as well; those of others may come between. They are
    read when first needed: once, a second time if demonstrations are mixed, once more for rules that eliminate.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from unbandit import ActionLog
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part, rows in enumerate(["arm\\nB\\nA\\n", "arm\\nA\\nB\\nA\\n"]):
    ...     _ = (folder / f"part-{part}.csv").write_text(rows)
    >>> log = ActionLog.scan(folder)
    >>> log
    <ScannedLog: 1 demonstration, 2 arms, 5 rounds in 2 files>
    >>> log.pulls.tolist(), log.tallied("switching").of_best.tolist()
    ([[2, 3]], [[2, 0]])
    """

    rewards = None
    ordered = True

    def __init__(
        self, sources: Sequence[Source], columns: Columns = None, arms: Arms = None, *,
        notices: tuple[Notice, ...] = (), rows: int = ROWS, most_pairs: int = MOST_PAIRS,
    ) -> None:  # fmt: skip
        self._sources, self._batch_rows, self._most_pairs = sources, rows, most_pairs
        labels = LabelColumn("arm", arms, blank_choice_remedy(whole=False, scanned=True)), LabelColumn("demonstration")
        columns, joined = with_clock(sources[0], columns)
        self._reader = OrderedReader(sources[0].names, sources[0].refuse, columns, *labels)
        self._reader.compare_with_times(*sources)
        check_alike(sources, self._reader.columns())
        self._notices = notices + joined + self._reader.notices + self._reader.order_notices
        self._known: tuple[int, int] | None = None  # demonstrations and arms after the first pass

    def __len__(self) -> int:
        return len(self.demonstrations)

    def __repr__(self) -> str:
        held = f"{counted(len(self), 'demonstration')}, {len(self.arms):,} arms, {self.lengths.sum():,} rounds"
        return f"<ScannedLog: {held} in {counted(len(self._sources), 'file')}>"

    def to_frame(self) -> polars.DataFrame:
        """Return one row per arm (and demonstration): pulls, their share, the first and the last round."""
        return self._read.tallies.frame(self.arms, self.demonstrations)

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the label of every arm."""
        return self._read.arms

    @property
    def demonstrations(self) -> tuple[str, ...]:
        """Return the name of each demonstration."""
        return self._read.demonstrations

    @property
    def lengths(self) -> Integers:
        """Return the number of rounds of each."""
        return self._read.lengths

    @property
    def pulls(self) -> Integers:
        """Return how often each arm was pulled: (demonstrations, arms)."""
        return self._read.tallies.pulls

    @property
    def reading(self) -> tuple[Notice, ...]:
        """Return what the user should know about the reading."""
        return self._notices + self._read.notices

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should know about the reading, in words."""
        return tuple(notice.message for notice in self.reading)

    def tallied(self, need: Need) -> Tallies:
        """Return what closed forms need of every demonstration; see `ActionLog.tallied`."""
        return self._epochs if need == "epochs" else self._read.tallies

    def switching_against(self, favourites: Integers) -> tuple[Integers, ...]:
        """Go through the rows again; see `ActionLog.switching_against`."""
        read, codes = self._read, np.argsort(self._read.order)
        counted = Tallies(read.tallies.pulls[:, codes], last=read.tallies.last[:, codes])
        found = switching_against(self._rows(), read.order[favourites], counted)
        return tuple(each.take(read.order, axis=1) for each in found)

    def with_looks(self, tallies: Tallies, rule: LookRule) -> Tallies:
        """Go through the rows again; see `ActionLog.with_looks`. Of every demonstration some last rounds are kept."""
        rule.check_fixed()
        read, codes, longest = self._read, np.argsort(self._read.order), int(self.lengths.max())
        if 8 * len(self) * min(rule.memory, longest) > MOST_RECENT_BYTES:
            text = (
                f"expected a shorter delay or fewer demonstrations in a scanned log, since rounds are kept until their "
                f"rewards are known; got {rule.delay:,} rounds of {len(self):,} demonstrations."
            )
            raise ParameterError(text, parameter="delay", remedy="Read the log whole.")
        counted = Tallies(read.tallies.pulls[:, codes], last=read.tallies.last[:, codes])
        best = read.order[read.tallies.pulls.argmax(axis=1)]
        looks = looks_at(self._rows(), counted, best, longest, rule)
        return replace(tallies, looks=looks.take(read.order, axis=1))

    def _rows(self) -> Iterator[Rows]:
        """Go through all rows; rounds are checked in the first pass only."""
        reader, is_first = self._reader, self._known is None
        names = reader.columns() if is_first else reader.columns("arm", "demonstration")
        for batch in batches_of(self._sources, names, self._batch_rows):
            rows = reader.read(batch)
            if not is_first and reader.known() != self._known:
                raise _changed(batch.path)
            yield rows
        reader.check()
        self._known = reader.known()

    @cached_property
    def _read(self) -> _Read:
        """Go through the rows once, and a second time where demonstrations were torn."""
        tallies, reader = TallyAccumulator(self._most_pairs), self._reader
        for rows in self._rows():
            tallies.add(rows, *reader.known())
        tallies.close()
        reader.refuse_data_as_names(self._sources[0])
        names, labels = reader.names_with_column, reader.arms.coder.labels
        count = len(names)
        grids = [grid[:count, : len(labels)] for grid in tallies.grids]
        pulls, first = grids[:2]
        order = arm_order(reader.arms, lambda: order_of_appearance(first), self._sources[0].refuse)
        torn, lengths = tallies.torn[:count], tallies.lengths[:count]
        reader.refuse_lone_rows(self._sources[0].refuse, lengths, numbered=reader.times == "")
        best = order[pulls[:, order].argmax(axis=1)]
        torn |= pulls.argmax(axis=1) != best  # ties go to the arm that comes first, and the order was not known before
        if torn.any():
            self._switch_again(lengths, torn, best, grids)
        is_sorted = bool((order == np.arange(order.size)).all())
        arrays = [grid if is_sorted and grid.flags.c_contiguous else grid.take(order, axis=1) for grid in grids]
        for array in (lengths, *arrays):
            array.setflags(write=False)
        notices = source_notices(self._sources) + label_notices(
            labels, names, lengths, reader.name.get("demonstration")
        )
        notices += reader.time_notices()
        return _Read(tuple(labels[code] for code in order), order, names, lengths, Tallies(*arrays), notices)

    def _switch_again(self, lengths: Integers, torn: NDArray[np.bool_], best: Integers, grids: list[Integers]) -> None:
        """Find the switching rounds of torn demonstrations, now that their most-pulled arms are known."""
        from unbandit.kernels.tally import switch_runs

        pulls, _, last, own, of_best, rounds = grids
        own[torn], of_best[torn], rounds[torn] = pulls[torn], 0, 0
        end = last[np.arange(best.size), best]
        passed, so_far = np.zeros(best.size, np.int64), np.zeros(best.size, np.int64)
        for rows in self._rows():
            switch_runs(*rows, torn, best, end, passed, so_far, own, of_best, rounds)
        which = np.flatnonzero(torn)
        if not np.array_equal(passed[which], lengths[which]):
            raise _changed(self._sources[0].path)
        rounds[which, best[which]], of_best[which, best[which]] = end[which], 0
        own[torn] = np.where(of_best[torn] > 0, own[torn], 0)

    @cached_property
    def _epochs(self) -> Tallies:
        """Go through the rows once more, as an elimination rule would have played them."""
        from unbandit.kernels.tally import epochs_of_runs, no_marks

        read, shape = self._read, self.pulls.shape
        following, preceding, passed = np.full(shape, -1), np.full(shape, -1), np.zeros(shape, np.int64)
        marks, lengths = no_marks(shape[0]), np.zeros(shape[0], np.int64)
        for rows in self._rows():
            epochs_of_runs(*rows, lengths, following, preceding, passed, marks)
        if not np.array_equal(lengths, read.lengths):
            raise _changed(self._sources[0].path)
        return replace(read.tallies, passed=passed.take(read.order, axis=1), **broken_rounds(marks, read.order))


def _changed(path: str | None) -> LogError:
    return LogError("the file changed while it was being read.", path=path, remedy="Wait until it is written.")


def order_of_appearance(first: Integers) -> Integers:
    """Return arms in the order in which they first appear, from their first rounds (0 for none)."""
    earliest = np.argmax(first > 0, axis=0)  # the demonstration in which each arm appears first
    return np.lexsort((first[earliest, np.arange(first.shape[1])], earliest))
