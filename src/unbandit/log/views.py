"""Code long columns of text by their 16-byte views, without touching the text.

Polars keeps a column of text as views: length and, up to 12 bytes, the text itself; longer text is a reference into a
buffer of its chunk. Equal views within a chunk mean equal text, so a small hash table from views to codes does the
work in one pass, about as fast as memory allows.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.log.arrow_views import Views, views_of
from unbandit.log.coding import Coded, smallest_type
from unbandit.log.labels import natural_order
from unbandit.log.view_table import ViewTable

__all__ = ["code_views"]

_OPENING_ROWS = 1 << 16
_PIECE_ROWS = 1 << 19
_WINDOW_ROWS = 1 << 12
# Views that have to be looked at as text, in all pieces together; beyond, polars' own way is faster.
_MOST_LOOKS = 100_000
_INLINE_BYTES = 12


def code_views(column: pl.Series) -> Coded | None:
    """Code a column of text; None when its views repeat too little for this to pay.

    Examples
    --------
    >>> coded = code_views(pl.Series(["b", "a longer label than twelve bytes", "b"]))
    >>> coded.labels, coded.codes.tolist()
    (['b', 'a longer label than twelve bytes'], [0, 1, 0])
    """
    with views_of(column) as chunks:
        if not chunks:
            return None
        pieces = _pieces(chunks)
        labels = _Labels(column)
        try:
            seed = _opening(pieces[0][1][:_OPENING_ROWS], labels)
            # Arms show early and demonstrations late: a second try when the labels outgrow the first type.
            for count in sorted({len(labels.codes), 1 << 8, 1 << 16}):
                if count >= len(labels.codes) and (codes := _fill_all(pieces, seed, labels, count)) is not None:
                    return Coded(list(labels.codes), codes)
        except _TooManyLooks:
            pass
    return None


class _TooManyLooks(Exception):
    """There are more different views than this way of coding is good for."""


class _Labels:
    """The labels found so far by all threads, each with its code."""

    def __init__(self, column: pl.Series) -> None:
        self._column, self._lock, self._looks = column, Lock(), 0
        self.codes: dict[str, int] = {}

    def codes_of(self, views: Views, rows: NDArray[np.int64], start: int) -> NDArray[np.int64]:
        """Return the codes of the labels in some rows of a piece, new ones where need be."""
        texts = [self._text(views[row], start + int(row)) for row in rows]
        with self._lock:
            self._looks += len(texts)
            if self._looks > _MOST_LOOKS:
                raise _TooManyLooks
            return np.array([self.codes.setdefault(text, len(self.codes)) for text in texts])

    def _text(self, view: NDArray[np.uint64], row: int) -> str:
        content = view.tobytes()
        length = int.from_bytes(content[:4], sys.byteorder)
        return content[4 : 4 + length].decode() if length <= _INLINE_BYTES else str(self._column[row])


def _pieces(chunks: list[Views]) -> list[tuple[int, Views]]:
    """Cut chunks into pieces that threads can share, each with the row it starts at."""
    pieces, row = [], 0
    for chunk in chunks:
        pieces += [(row + at, chunk[at : at + _PIECE_ROWS]) for at in range(0, len(chunk), _PIECE_ROWS)]
        row += len(chunk)
    return pieces


def _opening(views: Views, labels: _Labels) -> ViewTable:
    """Learn the labels of the first rows, in the order they will be listed in, so that no second pass is needed."""
    table = ViewTable()
    _fill(table, 0, views, np.empty(len(views), np.uint32), labels)
    found = list(labels.codes)
    labels.codes = {label: code for code, label in enumerate(natural_order(found))}
    table.renumber(np.array([labels.codes[label] for label in found]))
    return table.up_to(_INLINE_BYTES)  # longer text is a reference that only its own chunk understands


def _fill_all(
    pieces: list[tuple[int, Views]], seed: ViewTable, labels: _Labels, count: int
) -> NDArray[np.unsignedinteger[Any]] | None:
    """Code all pieces on threads in the type for `count` labels; None when there turn out to be more."""
    last, views = pieces[-1]
    codes = np.empty(last + len(views), smallest_type(count))
    room = np.iinfo(codes.dtype).max + 1

    def fill(piece: tuple[int, Views]) -> None:
        start, views = piece
        if len(labels.codes) <= room:
            _fill(seed.copy(), start, views, codes[start : start + len(views)], labels)

    with ThreadPoolExecutor(min(len(pieces), os.cpu_count() or 1)) as threads:
        list(threads.map(fill, pieces))
    return codes if len(labels.codes) <= room else None


def _fill(table: ViewTable, start: int, views: Views, codes: NDArray[np.unsignedinteger[Any]], labels: _Labels) -> None:
    """Code one piece: the compiled loop runs until it meets a view it does not know."""
    at = table.look_up(views, codes)
    while at < len(views):
        rows = at + table.discover(views[at : at + _WINDOW_ROWS])
        table.name(labels.codes_of(views, rows, start))
        at += table.look_up(views[at:], codes[at:])
