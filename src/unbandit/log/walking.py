"""Go through the files of a log from the first row to the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import LogError
from unbandit.log.labels import given_arms
from unbandit.log.rows import LabelColumn, RowReader, Runs
from unbandit.log.sources import ROWS, Source, check_alike

__all__ = ["Walk"]


class Walk:
    """Go through the rows of a log in files as often as need be.

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
        self, sources: Sequence[Source], columns: Mapping[str, str] | None, arms: Sequence[object] | None,
        rows: int = ROWS,
    ) -> None:  # fmt: skip
        self.sources, self._rows = sources, rows
        self.expected = None if arms is None else given_arms(arms)
        columns_of_labels = LabelColumn("arm", self.expected), LabelColumn("demonstration")
        self.reader = RowReader(sources[0].names, sources[0].refuse, columns, *columns_of_labels)
        check_alike(sources, list(self.reader.name.values()))
        self._met: tuple[int, int] | None = None  # what was known after the first time

    def runs(self) -> Iterator[Runs]:
        """Go through all rows; rounds are checked on the first time only."""
        reader, empty = self.reader, True
        for source in self.sources:
            for piece in source.pieces(list(reader.name.values()), self._rows):
                empty = False
                runs = reader.read(piece, again=self._met is not None)
                if self._met not in (None, reader.known()):
                    raise self._changed(source)
                yield runs
        if empty:
            said = "expected one row a choice; got a table without rows. Check that it was saved."
            raise self.sources[0].refuse(said)
        reader.arms.check()
        reader.demonstrations.check()
        self._met = reader.known()

    def same(self, counted: NDArray[np.int64], before: NDArray[np.int64]) -> None:
        """Refuse files that had other rows when they were read again."""
        if not np.array_equal(counted, before):
            raise self._changed(self.sources[0])

    def _changed(self, source: Source) -> LogError:
        return source.refuse("expected a file at rest; it changed while it was read. Wait until it is written.")
