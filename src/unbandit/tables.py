"""What all answers and logs share: tables for polars and pandas, JSON, a summary, and a view in notebooks."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from unbandit.errors import MissingExtra, Notice, ParameterError, UnbanditError
from unbandit.formatting import capitalise, fixed, label

if TYPE_CHECKING:
    import polars

MOST_ROWS = 40  # of a table in a notebook
LONGEST_CELL = 60

TABLE_STYLE = """\
.unbandit-answer table{border-collapse:collapse;text-align:left}
.unbandit-answer caption{caption-side:top;text-align:left;padding:0 0 .4em;opacity:.75}
.unbandit-answer :is(td,th){padding:.15em .9em .15em 0;text-align:left;background:none;vertical-align:middle}
.unbandit-answer tbody th{font-weight:600;overflow-wrap:anywhere;max-width:22em}
.unbandit-answer .number{text-align:right;font-variant-numeric:tabular-nums}
.unbandit-answer .interval{white-space:nowrap}
.unbandit-answer p{margin:.4em 0;max-width:60em}"""


class Tabular:
    """Base of everything that is a table: `to_frame`, `to_pandas`, `summary`, and HTML for notebooks."""

    def to_frame(self) -> polars.DataFrame:
        """Return everything as a polars table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return everything as a pandas table; needs the extra `pandas`."""
        return as_pandas(self.to_frame())

    def summary(self) -> polars.DataFrame:
        """Return what matters most as a short polars table."""
        return self.to_frame()

    @property
    def frame(self) -> Any:
        """Return `to_frame()`, by its name before version 0.7."""
        renamed(f"{type(self).__name__}.frame", f"{type(self).__name__}.to_frame()")
        return self.to_frame()

    def _repr_html_(self) -> str:
        """Show the summary in notebooks, with warnings and notes."""
        table = self.summary()
        kinds = [not kind.is_numeric() for kind in table.dtypes]
        columns = [
            column.to_list() if is_text else aligned(column.to_list())
            for column, is_text in zip(table.head(MOST_ROWS).iter_columns(), kinds, strict=True)
        ]
        left = table.height - MOST_ROWS
        lines = [f"{left:,} more {'row' if left == 1 else 'rows'}: see <code>.to_frame()</code>."] * (left > 0)
        lines += notice_lines(self)
        headings = [name.replace("_", " ") for name in table.columns]
        return html_table(headings, zip(*columns, strict=True), repr(self).strip("<>"), lines, kinds)


class Finding(Tabular):
    """Base of all answers: tables, and JSON in the form that the command line prints."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the answer as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def as_pandas(table: polars.DataFrame) -> Any:
    """Return a table of polars as one of pandas."""
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("A pandas table", "pandas") from None
    return table.to_pandas()


def renamed(old: str, new: str) -> None:
    """Warn that a name has changed and works for one version more."""
    warnings.warn(f"{old} is now {new}; the old name goes in version 0.8.", DeprecationWarning, stacklevel=3)


def with_draws(answer: dict[str, Any], **more: Any) -> str:
    """Return an answer as JSON text, followed by long lists, each on one line."""
    head = json.dumps(answer, indent=2, allow_nan=False).removesuffix("\n}")
    return (
        ",\n  ".join([head, *(f'"{name}": {json.dumps(value, allow_nan=False)}' for name, value in more.items())])
        + "\n}"
    )


def read_json(text: str | bytes, schema: str) -> dict[str, Any]:
    """Read an answer that `to_json` or `--json` wrote; refuse anything else."""
    try:
        answer = json.loads(text, parse_constant=_no_number)
    except (TypeError, ValueError, RecursionError):
        raise ParameterError("expected JSON as to_json writes it; this is no JSON.", parameter="text") from None
    found = answer.get("schema") if isinstance(answer, dict) else None
    if found != schema:
        text = f"expected an answer of schema {schema}; got {found or 'another document'}."
        raise ParameterError(text, parameter="text", value=found)
    assert isinstance(answer, dict)
    return answer


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


@contextmanager
def as_written_by(owner: str) -> Iterator[None]:
    """Refuse an answer in JSON that lacks something, or has something else in its place."""
    try:
        yield
    except UnbanditError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        text = f"expected JSON as {owner}.to_json writes it; this was altered."
        raise ParameterError(text, parameter="text") from None


def check_fields(answer: Mapping[str, Any], numbers: Iterable[str] = (), texts: Iterable[str] = ()) -> None:
    """Check that an answer in JSON has numbers and texts where it should."""
    for name in numbers:
        if not isinstance(answer[name], int | float) or isinstance(answer[name], bool):
            raise TypeError(name)
    for name in texts:
        if not isinstance(answer[name], str):
            raise TypeError(name)


def read_number(value: float | None, missing: float = math.nan) -> float:
    """Return a number of JSON, which is null where there is none."""
    return missing if value is None else value


def read_whole(text: str | bytes, schema: str, needed: str, owner: str) -> dict[str, Any]:
    """Read an answer that `to_json` wrote; refuse one without what is needed, as the command line prints it."""
    said = read_json(text, schema)
    if needed not in said:
        what = needed.replace("_", " ")
        raise ParameterError(
            f"expected an answer with its {what}; this JSON has none.",
            parameter="text",
            remedy=f"Give the text that {owner}.to_json() wrote.",
        )
    return said


def read_notices(rows: Iterable[dict[str, Any]]) -> tuple[Notice, ...]:
    """Read notices from JSON."""
    return tuple(map(Notice.from_dict, rows))


def aligned(values: Sequence[float | int | None]) -> list[str]:
    """Write a column of numbers with as many decimals each, three digits of its largest difference."""
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    if all(isinstance(value, int) for value in numbers):
        return ["" if value is None else f"{value:,}" for value in values]
    return list(map(same_decimals(values), values))


def same_decimals(values: Iterable[float | None]) -> Callable[[float | None], str]:
    """Return a function that writes each of some numbers with as many decimals, for a column of a table."""
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    width = max(numbers) - min(numbers) if len(numbers) > 1 else 0.0
    return partial(fixed, digits=decimals(width or max(map(abs, numbers), default=1.0) or 1.0), missing="")


def decimals(width: float) -> int:
    """Return how many decimals show three digits of a difference."""
    return min(max(2 - math.floor(math.log10(width / 3)), 0), 12)


def notice_lines(answer: object) -> list[str]:
    """Return warnings and notes of an answer as HTML, one of each kind with how many there are like it."""
    lines = []
    for name, before in (("warnings", "<strong>Warning:</strong> "), ("notices", ""), ("notes", ""), ("reading", "")):
        notices = [each for each in getattr(answer, name, ()) if isinstance(each, Notice)]
        lines += [before + line for line in grouped(notices)]
    return lines


def grouped(notices: Sequence[Notice]) -> list[str]:
    """Write one notice of each kind as HTML, with how many there are like it."""
    counts = Counter(notice.code for notice in notices)
    firsts = {notice.code: notice.message for notice in reversed(notices)}
    more = {code: f" ({count - 1:,} more like this.)" if count > 1 else "" for code, count in counts.items()}
    return [escape(firsts[code]) + more[code] for code in counts]


def html_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], caption: str, lines: Sequence[str],
    are_text: Sequence[bool],
) -> str:  # fmt: skip
    """Return a self-contained table for notebooks; `lines` are HTML, everything else is escaped."""
    looks = ["" if is_text else " class='number'" for is_text in are_text]
    heads = "".join(f"<th scope='col'{look}>{escape(name)}</th>" for name, look in zip(headings, looks, strict=True))
    body = ""
    for row in rows:
        cells = [escape(label("" if cell is None else str(cell), LONGEST_CELL)) for cell in row]
        first, *others = (f"<td{look}>{cell}</td>" for cell, look in zip(cells, looks, strict=True))
        body += f"<tr>{first.replace('<td', '<th scope=row', 1).replace('</td>', '</th>')}{''.join(others)}</tr>"
    above = f"<caption>{escape(capitalise(caption))}</caption>"
    table = f"<table>{above}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    below = "".join(f"<p>{line}</p>" for line in lines)
    return f"<div class='unbandit-answer'><style>{TABLE_STYLE}</style>{table}{below}</div>"
