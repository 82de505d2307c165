"""Logs in files that need not fit in memory: read in streaming passes, of which only tallies are kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import LogError, Notice
from unbandit.log.labels import Codes, Integers, LabelColumn, case_notices, given_arms
from unbandit.log.reader import Reader, Rows, arm_order, batches_of, lone_row_notices
from unbandit.log.rounds import grown
from unbandit.log.sources import ROWS, ParquetSource, Paths, Source, check_alike, files_of
from unbandit.log.tallies import Need, Tallies

MOST_PAIRS = 2_000
"""Up to this many arms, the switching round of each against every other is kept of a demonstration being read."""

SHARE = 4
"""A log that would take more than one part in this many of the machine's memory is scanned."""

BYTES_PER_ROW, BYTES_PER_BYTE, BYTES_PER_PACKED_BYTE = 40, 4, 20
"""What a row of Parquet, a byte of text, and one compressed by gzip take while they are read into memory, roughly."""


class ScannedLog:
    """Demonstrations in files, of which no more is held in memory than their tallies.

    Make one with `ActionLog.scan`. It can be estimated by closed forms: methods switching, counts and naive. What looks
    at rounds one by one (posteriors, pictures) needs `ActionLog.read`.

    The rows of a demonstration must be in order, from file to file as well, where files come in the order of their
    names with numbers in them by value; they may be spread over files, with those of others between. Rows are read when
    they are first needed: once, a second time if demonstrations are mixed, once more for rules that eliminate.

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
        self, sources: Sequence[Source], columns: Mapping[str, str] | None = None,
        arms: Sequence[object] | None = None, *, notices: tuple[Notice, ...] = (), rows: int = ROWS,
        most_pairs: int = MOST_PAIRS,
    ) -> None:  # fmt: skip
        self._pass, self._notices, self._most_pairs = Pass(sources, columns, arms, rows), notices, most_pairs
        self._epochs: Tallies | None = None

    def __len__(self) -> int:
        return len(self.demonstrations)

    def __repr__(self) -> str:
        plural, files = "" if len(self) == 1 else "s", len(self._pass.sources)
        where = "1 file" if files == 1 else f"{files:,} files"
        counted = f"{len(self):,} demonstration{plural}, {len(self.arms):,} arms, {self.lengths.sum():,} rounds"
        return f"<ScannedLog: {counted} in {where}>"

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
        return self._notices + self._pass.reader.notices + self._read.notices

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should know about the reading, in words."""
        return tuple(notice.message for notice in self.reading)

    def tallied(self, need: Need) -> Tallies:
        """Return what closed forms need of every demonstration; see `ActionLog.tallied`."""
        if need == "epochs":
            if self._epochs is None:
                self._epochs = _read_epochs(self._pass, self._read)
            return self._epochs
        return self._read.tallies

    @cached_property
    def _read(self) -> _Read:
        return _read_switching(self._pass, self._most_pairs)


class Pass:
    """The rows of a log in files, from the first to the last, as often as necessary.

    Parameters
    ----------
    sources
        The files.
    columns, arms
        As `ActionLog.read` takes them.
    rows
        How many are read at once, about.
    """

    def __init__(
        self, sources: Sequence[Source], columns: Mapping[str, str] | None, arms: Sequence[object] | None, rows: int
    ) -> None:
        self.sources, self._rows = sources, rows
        labels = LabelColumn("arm", None if arms is None else given_arms(arms)), LabelColumn("demonstration")
        self.reader = Reader(sources[0].names, sources[0].refuse, columns, *labels)
        self.reader.read_choices_only(sources[0].refuse)
        check_alike(sources, list(self.reader.name.values()))
        self._known: tuple[int, int] | None = None  # demonstrations and arms after the first pass

    def rows(self) -> Iterator[Rows]:
        """Go through all rows; rounds are checked in the first pass only."""
        reader, is_first = self.reader, self._known is None
        names = [name for role, name in reader.name.items() if is_first or role != "round"]
        for batch in batches_of(self.sources, names, self._rows):
            rows = reader.read_in_order(batch) if is_first else reader.read(batch)
            if not is_first and reader.known() != self._known:
                raise _changed(batch.path)
            yield rows
        reader.check()
        self._known = reader.known()

    def check_same(self, counted: Integers, before: Integers) -> None:
        """Refuse files that had other rows when they were read again."""
        if not np.array_equal(counted, before):
            raise _changed(self.sources[0].path)


def _changed(path: str | None) -> LogError:
    return LogError("the file changed while it was being read.", path=path, remedy="Wait until it is written.")


class _Read(NamedTuple):
    """What the first pass, and perhaps a second, found; `order` is the code of each arm."""

    arms: tuple[str, ...]
    order: Integers
    demonstrations: tuple[str, ...]
    lengths: Integers
    tallies: Tallies
    notices: tuple[Notice, ...]


class TallyAccumulator:
    """Tallies that grow run by run; rows and columns are added as demonstrations and arms turn up."""

    def __init__(self, most_pairs: int = MOST_PAIRS) -> None:
        self._most_pairs = most_pairs
        self.grids = [np.zeros((1, 0), np.int64) for _ in ("pulls", "first", "last", "own", "of_best", "rounds")]
        self.lengths, self.torn = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        self._open: int | None = None  # the demonstration whose rows the last batch ended with
        self._pairs: list[Integers] = []

    def add(self, rows: Rows, demonstrations: int, arms: int) -> None:
        """Add the next rows."""
        from unbandit.kernels.tally import tally_runs

        self._fit(demonstrations, arms)
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
        if self._pairs[0].shape[0] < arms:
            more = arms - self._pairs[0].shape[0]
            self._pairs = [np.pad(pair, ((0, more), (0, more))) for pair in self._pairs]
        advance_switching(codes, self.lengths[which], *(grid[which] for grid in self.grids[:3]), *self._pairs)
        self.lengths[which] += codes.size

    def _fit(self, demonstrations: int, arms: int) -> None:
        rows, columns = self.grids[0].shape
        if demonstrations <= rows and arms <= columns:
            return
        shape = (rows if demonstrations <= rows else max(demonstrations, 2 * rows), max(arms, columns))
        for at, grid in enumerate(self.grids):
            self.grids[at] = np.zeros(shape, np.int64)
            self.grids[at][:rows, :columns] = grid
        self.lengths, self.torn = grown(self.lengths, shape[0]), grown(self.torn, shape[0])


def _read_switching(rows_of: Pass, most_pairs: int) -> _Read:
    """Go through the rows once, and a second time where demonstrations were torn."""
    tallies, reader = TallyAccumulator(most_pairs), rows_of.reader
    for rows in rows_of.rows():
        tallies.add(rows, *reader.known())
    tallies.close()
    names, labels = tuple(reader.demonstration_names), reader.arms.coder.labels
    count = len(names)
    pulls, first, last, own, of_best, rounds = (grid[:count, : len(labels)] for grid in tallies.grids)
    order = arm_order(reader.arms, lambda: order_of_appearance(first), rows_of.sources[0].refuse)
    torn, lengths = tallies.torn[:count], tallies.lengths[:count]
    best = order[pulls[:, order].argmax(axis=1)]
    torn |= pulls.argmax(axis=1) != best  # ties go to the arm that comes first, and the order was not known before
    if torn.any():
        _switch_again(rows_of, lengths, torn, best, pulls, last, own, of_best, rounds)
    notices = case_notices(labels)
    if count > 1 and lengths.max() == 1:
        notices += lone_row_notices(reader.name["demonstration"])
    is_sorted = bool((order == np.arange(order.size)).all())
    arrays = [
        grid if is_sorted and grid.flags.c_contiguous else np.ascontiguousarray(grid[:, order])
        for grid in (pulls, first, last, own, of_best, rounds)
    ]
    for array in (lengths, *arrays):
        array.setflags(write=False)
    return _Read(tuple(labels[code] for code in order), order, names, lengths, Tallies(*arrays), notices)


def order_of_appearance(first: Integers) -> Integers:
    """Return arms in the order in which they first appear, from their first rounds (demonstrations, arms; 0 for none).

    Examples
    --------
    >>> order_of_appearance(np.array([[0, 1], [1, 0]])).tolist()
    [1, 0]
    """
    earliest = np.argmax(first > 0, axis=0)  # the demonstration in which each arm appears first
    return np.lexsort((first[earliest, np.arange(first.shape[1])], earliest))


def _switch_again(
    rows_of: Pass, lengths: Integers, torn: NDArray[np.bool_], best: Integers, pulls: Integers, last: Integers,
    own: Integers, of_best: Integers, rounds: Integers,
) -> None:  # fmt: skip
    """Find the switching rounds of torn demonstrations, now that their most-pulled arms are known."""
    from unbandit.kernels.tally import switch_runs

    own[torn], of_best[torn], rounds[torn] = pulls[torn], 0, 0
    end = last[np.arange(best.size), best]
    passed, so_far = np.zeros(best.size, np.int64), np.zeros(best.size, np.int64)
    for rows in rows_of.rows():
        switch_runs(*rows, torn, best, end, passed, so_far, own, of_best, rounds)
    which = np.flatnonzero(torn)
    rows_of.check_same(passed[which], lengths[which])
    rounds[which, best[which]], of_best[which, best[which]] = end[which], 0
    own[torn] = np.where(of_best[torn] > 0, own[torn], 0)


def _read_epochs(rows_of: Pass, read: _Read) -> Tallies:
    """Go through the rows once more, as an elimination rule would have played them."""
    from unbandit.kernels.tally import epochs_of_runs, no_marks

    shape = read.tallies.pulls.shape
    following, preceding, passed = np.full(shape, -1), np.full(shape, -1), np.zeros(shape, np.int64)
    marks, lengths = no_marks(shape[0]), np.zeros(shape[0], np.int64)
    for rows in rows_of.rows():
        epochs_of_runs(*rows, lengths, following, preceding, passed, marks)
    rows_of.check_same(lengths, read.lengths)
    place = np.argsort(read.order)
    broken, arm = marks[:, 4], marks[:, 5]
    return replace(
        read.tallies,
        passed=np.ascontiguousarray(passed[:, read.order]),
        broken=broken,
        broken_arm=np.where(arm >= 0, place[arm], 0),
    )


def is_large(paths: Paths) -> bool:
    """Return whether a log should be scanned: it would take too much of the machine's memory."""
    return sum(_size(file.path) for file in files_of(paths)) > memory() / SHARE


def memory() -> int:
    """Return the bytes of memory that this machine has, or this process may use."""
    limits = []
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # in a container
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits, default=8 * 2**30)


def _size(path: Path) -> int:
    """Guess what a file would take in memory; nothing for what can be read only once."""
    if not path.is_file():
        return 0
    try:
        with path.open("rb") as file:
            beginning = file.read(4)
    except OSError:  # reading it will say why
        return 0
    if beginning == b"PAR1":
        with suppress(LogError):
            return BYTES_PER_ROW * ParquetSource(path, str(path)).rows()
        return 0
    return path.stat().st_size * (BYTES_PER_PACKED_BYTE if beginning.startswith(b"\x1f\x8b") else BYTES_PER_BYTE)
