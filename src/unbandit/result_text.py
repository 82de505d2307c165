"""An answer as text: JSON for programs, lines for people. Of very long answers, in pieces or in part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from unbandit.verdicts import NUMBERS, SCHEMA, VERDICTS

if TYPE_CHECKING:
    import polars

    from unbandit.result import ArmEstimate, Estimate

__all__ = ["as_dict", "as_frame", "in_lines", "json_pieces"]

LONG = 10_000
"""From so many rows on, JSON has them without spaces, and is made block by block."""

BLOCK = 100_000
"""Rows of a block."""

MOST_SHOWN = 100
"""Of more demonstrations than this, lines tell the first ones."""

FIRST_SHOWN = 10
"""Of too many, so many are told."""


def as_frame(answer: Estimate, start: int = 0, stop: int | None = None) -> polars.DataFrame:
    """Return some demonstrations, by default all, as a table: one row an arm."""
    import polars as pl

    several, arms = len(answer.demonstrations), len(answer.arms)
    rows = range(several)[start:stop]
    columns: dict[str, Any] = {}
    if several > 1:
        names = pl.Series(answer.demonstrations[rows.start : rows.stop], dtype=pl.String)
        columns["demonstration"] = names.gather(np.repeat(np.arange(len(rows), dtype=np.uint32), arms))
    places = np.tile(np.arange(arms, dtype=np.uint32), len(rows))
    columns["arm"] = pl.Series(answer.arms, dtype=pl.String).gather(places)
    columns["pulls"] = answer.columns.pulls[rows.start : rows.stop].reshape(-1)
    columns |= {name: getattr(answer.columns, name)[rows.start : rows.stop].reshape(-1) for name in NUMBERS}
    verdicts = answer.columns.verdict[rows.start : rows.stop].reshape(-1).astype(np.uint32)
    columns["verdict"] = pl.Series(VERDICTS).gather(verdicts)
    table = pl.DataFrame(columns, nan_to_null=True)
    return table.with_columns(pl.col(name).cast(pl.Float64) for name in NUMBERS)


def as_dict(answer: Estimate) -> dict[str, Any]:
    """Return the answer in the form that `--json` prints."""
    several = len(answer.demonstrations) > 1
    rows = []
    for row in answer:
        numbers = {name: getattr(row, name) for name in NUMBERS}
        named = {"demonstration": row.demonstration} if several else {}
        rows.append(named | {"arm": row.arm, "pulls": row.pulls} | numbers | {"verdict": row.verdict})
    return _head(answer) | {"arms": rows}


def json_pieces(answer: Estimate, others: Mapping[str, Estimate] | None = None) -> Iterator[str]:
    """Give the answer as JSON text, piece by piece; with `others` as what it becomes under other assumptions."""
    if len(answer) < LONG:
        whole = as_dict(answer)
        if others:
            whole["sensitivity"] = {name: as_dict(other) for name, other in others.items()}
        yield json.dumps(whole, indent=2, allow_nan=False)
        return
    yield json.dumps(_head(answer), indent=2, allow_nan=False).removesuffix("\n}") + ',\n  "arms": ['
    step = max(1, BLOCK // len(answer.arms))
    for start in range(0, len(answer.demonstrations), step):
        rows = as_frame(answer, start, start + step).write_json()
        yield ("\n" if start == 0 else ",\n") + rows[1:-1]
    yield "\n  ]"
    for at, (name, other) in enumerate((others or {}).items()):
        yield (',\n  "sensitivity": {\n' if at == 0 else ",\n") + f"{json.dumps(name)}: "
        yield from json_pieces(other)
    yield "}\n}" if others else "\n}"


def _head(answer: Estimate) -> dict[str, Any]:
    """Return what is not in the rows."""
    same = len(set(answer.horizons)) == 1
    return {
        "schema": SCHEMA,
        "rule": answer.rule,
        "method": answer.method,
        "horizon": answer.horizons[0] if same else list(answer.horizons),
        "demonstrations": len(answer.demonstrations),
        "level": answer.level,
        "sigma": answer.sigma,
        "seed": answer.seed,
        "best": list(answer.best),
        "warnings": [notice.to_dict() for notice in answer.warnings],
        "notes": [notice.to_dict() for notice in answer.notes],
    }


def in_lines(answer: Estimate) -> str:
    """Write the answer for people: a line each arm, then what should be known; of too many demonstrations the first."""
    several = len(answer.demonstrations)
    shown = answer.demonstrations if several <= MOST_SHOWN else answer.demonstrations[:FIRST_SHOWN]
    lines = [f"{answer.rule} | {answer.method} | {answer.level:.0%} intervals"]
    lines += [f"  {row.arm}: {row.verdict}{_numbers(row)}" for name in shown for row in answer.ranked(name)]
    if len(shown) < several:
        lines.append(f"  ... and {several - len(shown):,} more demonstrations: see frame")
    lines += [f"  warning: {notice.message}" for notice in answer.warnings]
    return "\n".join(lines + [f"  note: {notice.message}" for notice in answer.notes])


def _numbers(row: ArmEstimate) -> str:
    """Write a row's numbers."""
    parts = (
        ("gap", row.gap, row.gap_low, row.gap_high),
        ("mean", row.mean, row.mean_low, row.mean_high),
        ("ratio", row.ratio, None, None),
    )
    written = ""
    for name, point, low, high in parts:
        if point is None and low is None and high is None:
            continue
        written += f", {name}" + (f" {point:.4g}" if point is not None else "")
        if low is not None or high is not None:
            written += f" [{'' if low is None else f'{low:.4g}'}, {'' if high is None else f'{high:.4g}'}]"
    return written
