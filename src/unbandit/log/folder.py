"""Look at several files as one table, all of it in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import polars as pl

from unbandit.errors import LogError
from unbandit.log.places import Paths
from unbandit.log.sources import Piece, check_alike, sources_of
from unbandit.log.table import Table

__all__ = ["FolderTable"]


class FolderTable(Table):
    """Hold the files of a folder, those that a pattern matches, or a list of files, one after the other.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "1.csv").write_text("arm\\nA\\n"), (folder / "2.csv").write_text("arm\\nB\\n")
    >>> FolderTable(folder).take([0])[0].to_list()
    ['A', 'B']
    """

    def __init__(self, paths: Paths) -> None:
        self._sources = sources_of(paths)
        self.names, self.path = self._sources[0].names, self._sources[0].path
        self._pieces: list[Piece] = []
        self._begins: list[int] = []

    def take(self, positions: Sequence[int]) -> list[pl.Series]:
        """Read columns of all files."""
        wanted = [self.names[position] for position in positions]
        check_alike(self._sources, wanted)
        count, frames = 0, []
        self._pieces, self._begins = [], []
        for source in self._sources:
            for piece in source.pieces(wanted):
                frame = pl.DataFrame(piece.columns)
                self._pieces.append(piece)
                self._begins.append(count)
                frames.append(frame)
                count += frame.height
                piece.columns = []  # the table that is made of them is enough
        if not frames:
            raise self.refuse("expected one row a choice; got a table without rows. Check that it was saved.")
        whole = pl.concat(frames, how="vertical_relaxed")
        return [whole[name] for name in wanted]

    def refuse(
        self, message: str, *, row: int | None = None, column: str | None = None, value: object = None
    ) -> LogError:
        """Name the file and the row in it."""
        if row is None:
            return super().refuse(message, column=column, value=value)
        at = bisect_right(self._begins, row - 1) - 1
        return self._pieces[at].refuse(message, row=row - self._begins[at], column=column, value=value)
