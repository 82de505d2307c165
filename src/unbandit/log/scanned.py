"""A log in files that need not fit in memory: read in streaming passes, of which only tallies are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.log.arm_order import arm_order
from unbandit.log.assembly import each_row_its_own
from unbandit.log.gathering import Gathering
from unbandit.log.labels import same_but_capitals
from unbandit.log.places import Paths
from unbandit.log.sources import ROWS, Source, sources_of
from unbandit.log.tallies import Need, Tallies
from unbandit.log.walking import Walk

__all__ = ["ScannedLog"]

Integers = NDArray[np.int64]


class ScannedLog:
    """Stand for demonstrations in files, of which no more is held in memory than their tallies.

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
        arms: Sequence[object] | None = None, *, notices: tuple[str, ...] = (), rows: int = ROWS,
    ) -> None:  # fmt: skip
        self._walk = Walk(sources, columns, arms, rows)
        self._said = notices
        self._epochs: Tallies | None = None

    @classmethod
    def of(
        cls, paths: Paths, columns: Mapping[str, str] | None = None, arms: Sequence[object] | None = None,
        notices: tuple[str, ...] = (),
    ) -> ScannedLog:  # fmt: skip
        """Open files; see `ActionLog.scan`."""
        return cls(sources_of(paths), columns, arms, notices=notices)

    def __len__(self) -> int:
        return len(self.demonstrations)

    def __repr__(self) -> str:
        many, files = "" if len(self) == 1 else "s", len(self._walk.sources)
        where = "1 file" if files == 1 else f"{files:,} files"
        counted = f"{len(self):,} demonstration{many}, {len(self.arms):,} arms, {self.lengths.sum():,} rounds"
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
    def notices(self) -> tuple[str, ...]:
        """Return what the user should hear about the reading."""
        return self._said + self._walk.reader.notices + self._read.notices

    def tallied(self, need: Need) -> Tallies:
        """Return what closed forms need of every demonstration; see `ActionLog.tallied`."""
        if need == "epochs":
            if self._epochs is None:
                self._epochs = _read_epochs(self._walk, self._read)
            return self._epochs
        return self._read.tallies

    @cached_property
    def _read(self) -> _Read:
        return _read_switching(self._walk)


class _Read(NamedTuple):
    """What the first pass, and perhaps a second, brought; `order` is the code of each arm."""

    arms: tuple[str, ...]
    order: Integers
    demonstrations: tuple[str, ...]
    lengths: Integers
    tallies: Tallies
    notices: tuple[str, ...]


def _read_switching(walk: Walk) -> _Read:
    """Go through the rows once, and a second time where demonstrations were torn."""
    gathered, reader = Gathering(), walk.reader
    for runs in walk.runs():
        gathered.add(runs, *reader.known())
    gathered.close()
    names = tuple(reader.demonstrations.dictionary.labels) if reader.several else ("1",)
    count, labels = len(names), reader.arms.dictionary.labels
    pulls, first, last, own, of_best, rounds = (grid[:count, : len(labels)] for grid in gathered.grids)
    order = arm_order(labels, walk.expected is not None, first, walk.sources[0].refuse, reader.name["arm"])
    torn = gathered.torn[:count]
    best = order[pulls[:, order].argmax(axis=1)]
    torn |= pulls.argmax(axis=1) != best  # ties go to the arm that comes first, and the order was not known before
    if torn.any():
        _switch_again(walk, gathered.lengths[:count], torn, best, pulls, last, own, of_best, rounds)
    notices = same_but_capitals(labels)
    lengths = gathered.lengths[:count]
    if count > 1 and lengths.max() == 1:
        notices += each_row_its_own(reader.name["demonstration"])
    sorted_already = bool((order == np.arange(order.size)).all())
    arrays = [
        grid if sorted_already and grid.flags.c_contiguous else np.ascontiguousarray(grid[:, order])
        for grid in (pulls, first, last, own, of_best, rounds)
    ]
    for array in (lengths, *arrays):
        array.setflags(write=False)
    return _Read(tuple(labels[code] for code in order), order, names, lengths, Tallies(*arrays), notices)


def _switch_again(
    walk: Walk, lengths: Integers, torn: NDArray[np.bool_], best: Integers, pulls: Integers, last: Integers,
    own: Integers, of_best: Integers, rounds: Integers,
) -> None:  # fmt: skip
    """Find the switching rounds of torn demonstrations, now that their most-pulled arms are known."""
    from unbandit.kernels.tally import switch_runs

    own[torn], of_best[torn], rounds[torn] = pulls[torn], 0, 0
    which = np.arange(best.size)
    end, passed, so_far = last[which, best], np.zeros(best.size, np.int64), np.zeros(best.size, np.int64)
    for runs in walk.runs():
        switch_runs(*runs, torn, best, end, passed, so_far, own, of_best, rounds)
    here = np.flatnonzero(torn)
    walk.same(passed[here], lengths[here])
    rounds[here, best[here]], of_best[here, best[here]] = end[here], 0
    own[torn] = np.where(of_best[torn] > 0, own[torn], 0)


def _read_epochs(walk: Walk, read: _Read) -> Tallies:
    """Go through the rows once more, as an elimination rule would have played them."""
    from unbandit.kernels.tally import epochs_of_runs, no_marks

    shape = read.tallies.pulls.shape
    following, preceding, passed = np.full(shape, -1), np.full(shape, -1), np.zeros(shape, np.int64)
    marks, lengths = no_marks(shape[0]), np.zeros(shape[0], np.int64)
    for runs in walk.runs():
        epochs_of_runs(*runs, lengths, following, preceding, passed, marks)
    walk.same(lengths, read.lengths)
    place = np.argsort(read.order)
    broken, arm = marks[:, 4], marks[:, 5]
    return replace(
        read.tallies,
        passed=np.ascontiguousarray(passed[:, read.order]),
        broken=broken,
        broken_arm=np.where(arm >= 0, place[arm], 0),
    )
