"""JSON lines: one object per line, whose members are the cells of a row.

Every value becomes text as it is written in the file, so that a label such as 1.0 or "01" survives. Members that hold
lists or objects are no columns.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from unbandit.errors import LogError, first_line

BEGINNING = 1 << 16  # bytes whose lines say which columns there are
BLOCK_OF_LINES = 1 << 20  # bytes that are read at once: an object takes far more memory than its text

_BLANK = b" \t\r\n\xef\xbb\xbf"  # what may come before the first object

Row = dict[str, Any]


def is_json_lines(data: bytes) -> bool:
    """Return whether a file that begins so has JSON objects, be it one per line or not."""
    beginning = data[:BEGINNING].lstrip(_BLANK)
    return beginning.startswith(b"{") or (beginning.startswith(b"[") and beginning[1:].lstrip(_BLANK).startswith(b"{"))


def json_names(data: bytes, path: str) -> list[str]:
    """Return the columns that the first lines of a file have: members that hold text, numbers or truth values."""
    if data.lstrip(_BLANK).startswith(b"["):
        text, remedy = "expected one JSON object per line; got a list of objects.", "Write each object on a line, as "
        raise LogError(
            text, path=path, remedy=f'{remedy}`jq -c ".[]"` or pandas\' to_json(orient="records", lines=True) does.'
        )
    names, nested = dict[str, None](), set[str]()
    end = len(data)
    if end > BEGINNING:  # whole lines, be it only one
        end = data.rfind(b"\n", 0, BEGINNING) + 1 or data.find(b"\n") + 1 or end
    for _, row in json_rows(data[:end], path, 0, 0):
        names |= dict.fromkeys(row)
        nested |= {name for name, value in row.items() if isinstance(value, list | dict)}
    if nested and nested.issuperset(names):
        text = "expected one JSON object per row; got one of lists or objects alone."
        remedy = 'Write one object per row and line, as pandas\' to_json(orient="records", lines=True) does.'
        raise LogError(text, path=path, remedy=remedy)
    return [name for name in names if name not in nested]


def json_rows(data: bytes, path: str, rows_before: int, lines_before: int) -> Iterator[tuple[int, Row]]:
    """Parse whole lines; yield the line (from 1, within `data`) and the object of each that is not blank."""
    row = rows_before
    for line, text in enumerate(data.lstrip(_BLANK[4:]).split(b"\n"), 1):
        if not text.strip():
            continue
        row += 1
        problem = ""
        try:
            value = json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=_Object)
        except (ValueError, RecursionError) as error:
            problem = "a line that is none" if isinstance(error, RecursionError) else first_line(error)
        if not problem and not isinstance(value, _Object):
            problem = f"a line that holds a {_kind(value)}"
        elif not problem and value.has_twins:
            problem = "an object with two members of one name"
        if problem:
            remedy = "Write each object on a line of its own, and nothing else."
            refused = LogError(f"expected one JSON object per line; got {problem}.", path=path, remedy=remedy)
            raise refused.at(row=row, line=lines_before + line)
        yield line, value


def json_cells(rows: Sequence[Row], name: str, refuse: Any) -> list[str | None]:
    """Return the member of each object as text, None where there is none; refuse lists and objects."""
    cells = list[str | None]()
    for at, row in enumerate(rows):
        value = row.get(name)
        if isinstance(value, list | dict):
            text = f'expected text or a number for "{name}"; got a {_kind(value)}.'
            raise refuse(text, at, name)
        cells.append(
            ("true" if value else "false")
            if isinstance(value, bool)
            else value
            if value is None
            else str(value) or None
        )
    return cells


class _Object(dict[str, Any]):
    """An object, and whether two of its members have one name, of which a parser would silently keep one."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.has_twins = len(self) < len(pairs)


def _kind(value: object) -> str:
    kinds = {list: "list", _Object: "nested object", str: "text", bool: "truth value", type(None): "null"}
    return kinds.get(type(value), "number")
