"""Read a file that came from anywhere, and say what was understood of it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unbandit.errors import LogError, ParameterError
from unbandit.log import ActionLog
from unbandit.log.columns import find_columns
from unbandit.log.reading import open_bytes
from unbandit.log.table import Table
from unbandit.plots.naming import short
from unbandit.web.carrying import GZIP, PARQUET, carried, uncarried, unpacked
from unbandit.web.examples import example_log
from unbandit.web.model import Limits, Look
from unbandit.web.wording import plain, plain_error

__all__ = ["Brought", "look", "read"]

COLUMNS, COLUMNS_SHOWN, ROWS_SHOWN, ARMS_SHOWN, CELL = 200, 8, 6, 12, 40


@dataclass(frozen=True)
class Brought:
    """Hold a log as a visitor brought it: the bytes of a file, a field that carries one, or the name of an example.

    Attributes
    ----------
    name
        Of the file, to be shown and for nothing else.
    """

    name: str = "the log"
    data: bytes = b""
    carried: str = ""
    example: str = ""

    @property
    def weight(self) -> int:
        """Return how many bytes were brought."""
        return len(self.data) + len(self.carried)

    def bytes(self, limits: Limits) -> bytes:
        """Return what the file holds, as it was sent."""
        return uncarried(self.carried, limits.unpacked) if self.carried else self.data


def read(
    brought: Brought, columns: Mapping[str, str] | None, arms: Sequence[str] | None, limits: Limits
) -> tuple[ActionLog, bytes | None]:
    """Read a log, and return it with the bytes of its file; refuse one that is too long."""
    if brought.example:
        return example_log(brought.example), None
    sent = brought.bytes(limits)
    data = _short_enough(sent, brought.name, limits)
    return ActionLog.from_bytes(data, name=brought.name, columns=columns, arms=arms), sent


def look(
    brought: Brought, columns: Mapping[str, str] | None, arms: Sequence[str] | None, limits: Limits
) -> Look:  # fmt: skip
    """Say what a file is: its first rows, which column plays which role, how many rounds and arms."""
    if brought.example:
        log = example_log(brought.example)
        frame = log.to_frame()
        seen = Look(name=brought.name, size=0, example=brought.example)
        seen = _with_rows(seen, frame.columns, [frame[name] for name in frame.columns])
        return _understood(replace(seen, roles=tuple((name, name) for name in frame.columns)), log)
    seen = Look(name=brought.name, size=0)
    try:
        sent = brought.bytes(limits)
        seen = replace(seen, size=len(sent), carried=brought.carried or carried(sent))
        data = _short_enough(sent, brought.name, limits)
        table = open_bytes(data, brought.name)
        names = table.names
        seen = replace(seen, columns=tuple(names[:COLUMNS]), columns_left_out=max(len(names) - COLUMNS, 0))
        places = _places(table, columns)
        roles = {role: table.names[at] for role, at in places.items()}
        seen = replace(seen, roles=tuple(roles.items()))
        shown = sorted({*places.values(), *range(min(len(names), COLUMNS_SHOWN))})[: COLUMNS_SHOWN + len(places)]
        seen = _with_rows(seen, [table.names[at] for at in shown], table.head(shown, ROWS_SHOWN + 1))
        log = ActionLog.from_bytes(data, name=brought.name, columns=columns, arms=arms)
        return _understood(seen, log)
    except (LogError, ParameterError) as error:
        return replace(seen, problem=plain_error(error))


def _short_enough(sent: bytes, name: str, limits: Limits) -> bytes:
    """Unpack a file, and refuse one with more rows than allowed before they are laid out in memory."""
    data = unpacked(sent, limits.unpacked, name)
    if data.startswith(GZIP):
        raise LogError("expected a table; it is packed with gzip twice. Unpack it once, and send that.", path=name)
    rows = _parquet_rows(data) if data.startswith(PARQUET) else max(data.count(b"\n"), data.count(b"\r")) - 1
    if rows > limits.rows:
        raise LogError(
            f"expected at most {limits.rows:,} rows; it has {rows:,}. Take a part of it, or use the command "
            "line, which takes more: unbandit report.",
            path=name,
        )
    return data


def _parquet_rows(data: bytes) -> int:
    """Return how many rows a Parquet file says it has; a broken one is refused when it is read."""
    try:
        return int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return 0


def _places(table: Table, columns: Mapping[str, str] | None) -> dict[str, int]:
    """Return where each role's column is; none if they cannot be told, so that the rows are shown all the same."""
    try:
        return find_columns(table.names, columns, table.refuse)
    except (LogError, ParameterError):
        return {}


def _with_rows(seen: Look, names: Sequence[str], series: Sequence[pl.Series]) -> Look:
    heads = [column.head(ROWS_SHOWN).to_list() for column in series]
    rows = tuple(tuple("" if cell is None else _cut(str(cell)) for cell in row) for row in zip(*heads, strict=True))
    return replace(
        seen,
        columns=seen.columns or tuple(names),
        columns_shown=tuple(names),
        rows=rows,
        rows_more=bool(series) and len(series[0]) > ROWS_SHOWN,
    )


def _understood(seen: Look, log: ActionLog) -> Look:
    pulls = log.pulls.sum(axis=0)
    order = np.argsort(-pulls, kind="stable")
    shown = tuple((_cut(log.arms[arm]), int(pulls[arm])) for arm in order[:ARMS_SHOWN].tolist())
    return replace(
        seen,
        summary=_summary(log),
        arms=shown,
        arms_left_out=max(len(log.arms) - ARMS_SHOWN, 0),
        notices=tuple(plain(notice) for notice in log.notices),
    )


def _summary(log: ActionLog) -> str:
    """Say what a log is.

    Examples
    --------
    >>> _summary(ActionLog.from_actions([["A", "B"], ["B", "A"]]))
    '4 rounds in 2 demonstrations, 2 arms'
    >>> _summary(ActionLog.from_counts({"A": 3000, "B": 4}))
    '3,004 pulls without their order, 2 arms'
    """
    total = f"{int(log.offsets[-1]):,} " + ("rounds" if log.ordered else "pulls without their order")
    parts = f" in {len(log):,} demonstrations" if len(log) > 1 else ""
    return f"{total}{parts}, {len(log.arms):,} arms"


def _cut(text: str) -> str:
    return short(text, CELL)
