"""Uploads: carry a file from page to page inside the form, read it, and preview what was understood.

The form itself carries the file, so the server keeps nothing between two requests, and nothing that comes back in a
form is trusted.
"""

from __future__ import annotations

import base64
import gzip
import io
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.contexts import ContextLog
from unbandit.contexts.table import ContextTable, holds_offers
from unbandit.errors import LogError, Notice, ParameterError, first_line
from unbandit.formatting import capitalise, counted, label, size
from unbandit.log import ActionLog
from unbandit.log.columns import find_columns, noun_of
from unbandit.log.formats import ARROW, ARROW_STREAM, SPREADSHEET, open_bytes
from unbandit.log.parquet import PARQUET, ParquetLayout, UnreadableParquet, without_panic_text
from unbandit.log.partial import PartialLog, ThinnedLog, read_bytes, without_counts
from unbandit.log.reader import with_clock
from unbandit.log.rewards import are_binary
from unbandit.log.sources import BROKEN_GZIP, GZIP, Layout, unreadable
from unbandit.log.spreadsheets import sheet_names
from unbandit.web.examples import EXAMPLES, Example
from unbandit.web.forms import SHEET, ReadAs, page_option
from unbandit.web.jobs import Limits
from unbandit.web.problems import page_text

_PACKED, _AS_IS = "packed:", "as-is:"

MOST_COLUMNS, COLUMNS_SHOWN, ROWS_SHOWN, ARMS_SHOWN = 200, 8, 6, 12
LONGEST_CELL, LONGEST_NAME = 40, 80

UNPACKED_AT_ONCE = 1 << 22  # bytes of a file compressed by gzip


@dataclass(frozen=True)
class Upload:
    """Log as a visitor sent it: the bytes of a file, a form field that carries one, or the name of an example."""

    name: str = "the log"  # of the file; it is only shown
    data: bytes = b""
    carried: str = ""
    example: str = ""

    @classmethod
    def of_example(cls, example: Example) -> Upload:
        """Take an example instead of a file."""
        return cls(f"{example.title} (an example)", example=example.name)

    @property
    def weight(self) -> int:
        """Return how many bytes were sent."""
        return len(self.data) + len(self.carried)

    def bytes(self, limits: Limits) -> bytes:
        """Return the file as it was sent."""
        return from_form_text(self.carried, limits.unpacked) if self.carried else self.data


@dataclass(frozen=True)
class Preview:
    """What was understood of a log before anything is estimated."""

    name: str  # of the file; it is only shown
    columns: tuple[str, ...] = ()  # up to 200 of them
    columns_left_out: int = 0
    columns_shown: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()  # role and column: arm, and if present demonstration, round, pulls, reward
    rows: tuple[tuple[str, ...], ...] = ()  # the first rows of the columns shown, each cell shortened
    rows_more: bool = False
    summary: str = ""  # "5,000 rounds of 20 arms"
    arms: tuple[tuple[str, int], ...] = ()  # up to 12 with their pulls, the most-pulled first
    arms_left_out: int = 0
    notices: tuple[str, ...] = ()
    problem: str | None = None  # why the log cannot be used; the first rows may still be there
    carried: str = ""  # the file itself, as text for a form field
    example: str = ""
    contexts: bool = False  # whether a learner chose by features
    sheets: tuple[str, ...] = ()  # of a spreadsheet that has several
    binary: bool = False  # whether every reward in it is 0 or 1
    several: bool = False  # whether it has several demonstrations of rounds
    wrong: str = ""  # the name of the field that the problem is about, where it is one

    @property
    def played(self) -> dict[str, str]:
        """Return the role of every column that has one; some roles have two columns."""
        known = {*self.columns, *self.columns_shown}
        each = ((role, (name,) if name in known else name.split("+")) for role, name in self.roles)
        return {name: role for role, names in each for name in names}


def form_text(data: bytes) -> str:
    """Write a file as text for a hidden form field."""
    if data.startswith((GZIP, PARQUET)):  # they are compressed already
        return _AS_IS + base64.b64encode(data).decode("ascii")
    return _PACKED + base64.b64encode(gzip.compress(data, compresslevel=1, mtime=0)).decode("ascii")


def from_form_text(text: str, most: int) -> bytes:
    """Read such a field; anybody may have written it, so at most `most` bytes are unpacked."""
    kind, colon, body = text.partition(":")
    try:
        data = base64.b64decode(body, validate=True)
    except ValueError:
        kind = ""
    if kind + colon == _AS_IS:
        return data
    if kind + colon == _PACKED and data:
        return _gunzip(data, most, "the log")
    raise LogError("expected the log that this page shows; it did not arrive whole. Choose the file again.")


def _gunzip(data: bytes, most: int, name: str) -> bytes:
    """Unpack gzip to at most `most` bytes: a small file can hold terabytes, or millions of members."""
    parts, room = [], most
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            while part := packed.read(min(room + 1, UNPACKED_AT_ONCE)):
                parts.append(part)
                room -= len(part)
                if room < 0:
                    raise _too_large(name, most)
    except BROKEN_GZIP as error:
        raise unreadable(name, error) from error
    return b"".join(parts)


def _too_large(name: str, most: int) -> LogError:
    text = f"expected at most {size(most)} once it is unpacked; it is larger."
    return LogError(text, path=name, remedy="Upload a part of it, or use the command line: unbandit report.")


def clean_name(name: str) -> str:
    """Return a file's name as it can be shown: without folders and unprintable characters, not too long."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return label("".join(filter(str.isprintable, last)).strip(), LONGEST_NAME) or "the log"


def read(upload: Upload, reading: ReadAs, limits: Limits) -> tuple[ActionLog | PartialLog | ThinnedLog, bytes | None]:
    """Read a log or the part of one that is there, with the bytes of its file; refuse one that is too long."""
    if upload.example:
        return EXAMPLES[upload.example].log(), None
    sent = upload.bytes(limits)
    data = _unpack_limited(sent, upload.name, limits)
    return read_bytes(data, name=upload.name, **reading.plain), sent


def read_contexts(upload: Upload, reading: ReadAs, limits: Limits) -> tuple[ContextLog, bytes]:
    """Read a log with features, and return it with the bytes of its file; refuse one that is too long."""
    sent = upload.bytes(limits)
    data = _unpack_limited(sent, upload.name, limits)
    return _context_log(data, upload, reading), sent


def _context_log(data: bytes, upload: Upload, reading: ReadAs) -> ContextLog:
    return ContextLog.from_bytes(
        data, features=reading.features, name=upload.name, columns=reading.columns, arms=reading.arms,
        sheet=reading.sheet,
    )  # fmt: skip


def preview(upload: Upload, reading: ReadAs, limits: Limits) -> Preview:
    """Return a file's first rows, the role of each column, and the number of rounds and arms."""
    if upload.example:
        log = EXAMPLES[upload.example].log()
        frame = log.to_frame()
        roles = tuple((name, name) for name in frame.columns)
        seen = Preview(upload.name, example=upload.example, roles=roles)
        return _with_log(_with_rows(seen, frame.columns, frame.get_columns()), log)
    seen = Preview(upload.name)
    try:
        sent = upload.bytes(limits)
        seen = replace(seen, carried=upload.carried or form_text(sent))
        data = _unpack_limited(sent, upload.name, limits)
        sheets = sheet_names(data) if data.startswith(SPREADSHEET) else ()
        seen = replace(seen, sheets=sheets if len(sheets) > 1 else ())
        table = open_bytes(data, upload.name, Layout(reading.sheet))
        names = table.names
        seen = replace(seen, columns=tuple(names[:MOST_COLUMNS]), columns_left_out=max(len(names) - MOST_COLUMNS, 0))
        places: dict[str, tuple[int, ...]] = {}
        seen = replace(seen, contexts=reading.contexts if reading.contexts is not None else holds_offers(table))
        with suppress(LogError, ParameterError):  # unclear roles are refused below, and the rows are still shown
            if seen.contexts:
                places = ContextTable(
                    table, reading.features, reading.columns, any_features=bool(reading.features)
                ).places(table)
            else:
                places = find_columns(names, with_clock(table, reading.columns)[0], table.refuse)
        seen = replace(seen, roles=tuple((role, "+".join(names[at] for at in each)) for role, each in places.items()))
        read = {at for each in places.values() for at in each} | {
            at for at, name in enumerate(names) if name in reading.features
        }
        shown = sorted({*read, *range(min(len(names), COLUMNS_SHOWN))})[: COLUMNS_SHOWN + len(read)]
        seen = _with_rows(seen, [names[at] for at in shown], table.head(shown, ROWS_SHOWN + 1))
        if not seen.contexts:
            return _with_log(seen, read_bytes(data, name=upload.name, **reading.plain))
        return _with_contexts(seen, _context_log(data, upload, reading)) if reading.features else seen
    except (LogError, ParameterError) as error:
        if seen.sheets and isinstance(error, ParameterError) and error.parameter == SHEET.name:
            return replace(seen, problem=capitalise(error.said(page_option)), wrong=SHEET.name)
        return replace(seen, problem=page_text(error))


def _unpack_limited(sent: bytes, name: str, limits: Limits) -> bytes:
    """Unpack a file, and refuse one with too many rows before they are laid out in memory."""
    data = _gunzip(sent, limits.unpacked, name) if sent.startswith(GZIP) else sent
    if data.startswith(GZIP):
        raise LogError("expected a table; it is compressed with gzip twice. Unpack it once and upload that.", path=name)
    if data.startswith((ARROW, ARROW_STREAM)):  # their rows are known only once they are in memory
        text = "expected CSV, TSV, JSON lines, Parquet or a spreadsheet; got Arrow (Feather)."
        raise LogError(text, path=name, remedy="Save it as Parquet or CSV.")
    if data.startswith(b"PK\x03\x04"):
        _refuse_large_archive(data, name, limits)
    rows = _parquet_rows(data) if data.startswith(PARQUET) else max(data.count(b"\n"), data.count(b"\r")) - 1
    if rows > limits.rows:
        remedy = "Upload a part of it, or use the command line, which reads more: unbandit report."
        raise LogError(f"expected at most {limits.rows:,} rows; it has {rows:,}.", path=name, remedy=remedy)
    return data


def _refuse_large_archive(data: bytes, name: str, limits: Limits) -> None:
    """Refuse a spreadsheet that is too large once it is unpacked, or broken.

    Every part is unpacked to its end, since the archive may state any size.
    """
    room = limits.unpacked
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for part in archive.infolist():
                part.file_size = 1 << 62  # Python would stop at the size that is stated, and others do not
                with archive.open(part) as packed:
                    while room >= 0 and (piece := packed.read(min(room + 1, UNPACKED_AT_ONCE))):
                        room -= len(piece)
                if room < 0:
                    raise _too_large(name, limits.unpacked)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, *BROKEN_GZIP, OSError) as error:
        if isinstance(error, LogError):
            raise
        text = f"expected a whole spreadsheet; it could not be unpacked ({first_line(error)})."
        raise LogError(text, path=name, remedy="Save it again, or save the sheet as CSV.") from error


def _parquet_rows(data: bytes) -> int:
    """Return the number of rows in a Parquet file's footer; a broken file is refused when it is read."""
    with suppress(UnreadableParquet):
        return ParquetLayout(data).rows
    return 0


def _with_rows(seen: Preview, names: Sequence[str], series: Sequence[pl.Series]) -> Preview:
    heads = [_cells(column.head(ROWS_SHOWN)) for column in series]
    texts = [["" if cell is None else label(str(cell), LONGEST_CELL) for cell in head] for head in heads]
    rows = tuple(zip(*texts, strict=True))
    more = bool(series) and len(series[0]) > ROWS_SHOWN
    return replace(seen, columns=seen.columns or tuple(names), columns_shown=tuple(names), rows=rows, rows_more=more)


def _cells(column: pl.Series) -> list[object]:
    """Return values to show; a time that Python does not have, such as one in the year 20000, is a number."""
    try:
        with without_panic_text():
            return column.to_list()
    except (ValueError, OverflowError, pl.exceptions.PanicException):
        return column.to_physical().to_list()


def _with_contexts(seen: Preview, log: ContextLog) -> Preview:
    """Say how many rounds, arms and features a log has; arms are counted where they were chosen."""
    pulls = log.pulls.sum(axis=0)
    parts = f" in {counted(len(log), noun_of(log.demonstrations))}" if len(log) > 1 else ""
    summary = f"{log.rounds:,} rounds{parts}, {len(log.arms):,} arms, {counted(len(log.feature_names), 'feature')}"
    return _with_pulls(replace(seen, summary=summary), log.arms, pulls, log.reading)


def _with_log(seen: Preview, log: ActionLog | PartialLog | ThinnedLog) -> Preview:
    """Say how many rounds and arms a log has, and how many rounds it misses."""
    reading: tuple[Notice, ...] = ()
    try:
        log = without_counts(log)
        reading = log.reading
    except LogError as error:  # nothing else can be said of what came before its first row, and the form may
        reading = (Notice("begins-late", f"{error.text} {error.remedy}"),)
    rows = log if isinstance(log, ActionLog) else log.rows
    seen = replace(seen, binary=are_binary(rows.rewards), several=log.ordered and len(log) > 1)
    missing = f" of {int(log.lengths.sum()):,}" if isinstance(log, ThinnedLog) else ""
    total = f"{int(rows.lengths.sum()):,}{missing} " + ("rounds" if log.ordered else "pulls without their order")
    parts = f" in {counted(len(log), log.noun)}" if len(log) > 1 else ""
    summary = f"{total}{parts}, {len(log.arms):,} arms"
    return _with_pulls(replace(seen, summary=summary), log.arms, rows.pulls.sum(axis=0), reading)


def _with_pulls(
    seen: Preview, arms: Sequence[str], pulls: NDArray[np.int64], notices: Sequence[Notice]
) -> Preview:  # fmt: skip
    """Add the arms that were chosen most often, and what to know about how the log was read."""
    order = np.argsort(-pulls, kind="stable")
    return replace(
        seen,
        arms=tuple((label(arms[arm], LONGEST_CELL), int(pulls[arm])) for arm in order[:ARMS_SHOWN].tolist()),
        arms_left_out=max(len(arms) - ARMS_SHOWN, 0),
        notices=tuple(page_text(notice.text) for notice in notices),
    )
