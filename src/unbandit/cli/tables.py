"""Print answers for people: ranked tables, warnings, notes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from unbandit.result import ArmEstimate, Estimate, Notice

__all__ = ["console", "estimate_table", "print_estimate", "print_notices", "summary_of_many"]

NARROW = 100
"""Fewer columns than this do not hold gaps and means side by side."""

MOST_TABLES = 5
"""Of more demonstrations than this, the shell shows the first ones."""


def console(*, error: bool = False) -> Console:
    """Return a console that fits its window, lets lines run on when it is piped, and prints names as they are."""
    stream = sys.stderr if error else sys.stdout
    window = stream.isatty()
    return Console(
        file=stream, width=None if window else 200, soft_wrap=not window, highlight=False, markup=False, emoji=False
    )


def estimate_table(
    estimate: Estimate, demonstration: str, *, truth: Mapping[str, float] | None = None, unit: float = 1.0,
    value: str = "mean", digits: int | None = None, narrow: bool = False,
) -> Table:  # fmt: skip
    """Lay out one demonstration's answer, best arm first; in a narrow window means stand without the gaps."""
    rows = estimate.ranked(demonstration)
    has = {name: any(getattr(row, name) is not None for row in rows) for name in ("gap", "gap_low", "mean", "ratio")}
    gaps = (has["gap_low"] or (has["gap"] and not has["ratio"])) and not (has["mean"] and narrow)
    level = f"{estimate.level * 100:g}%"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("arm", overflow="fold", min_width=min(16, max(len(row.arm) for row in rows)))
    table.add_column("verdict", no_wrap=True)
    table.add_column("pulls", justify="right", no_wrap=True)
    for name, shown in (("gap", gaps), (value, has["mean"])):
        if shown:
            table.add_column(name, justify="right", no_wrap=True)
            table.add_column(f"{level} interval", no_wrap=True)
    if has["ratio"]:
        table.add_column("ratio", justify="right", no_wrap=True)
    if truth is not None:
        table.add_column("truth", justify="right", no_wrap=True)
        table.add_column("held", no_wrap=True)
    for rank, row in enumerate(rows, 1):
        cells = [str(rank), row.arm, row.verdict, f"{row.pulls:,}"]
        if gaps:
            cells += [_number(row.gap, unit, digits), _interval(row.gap_low, row.gap_high, unit, digits)]
        if has["mean"]:
            low, high = row.mean_low, row.mean_high
            cells += [_number(row.mean, unit, digits), _interval(low, high, unit, digits)]
        if has["ratio"]:
            cells.append(_number(row.ratio, 1.0, None))
        if truth is not None:
            cells += [_number(truth[row.arm], unit, digits), _held(row, truth[row.arm])]
        table.add_row(*cells)
    return table


def print_estimate(estimate: Estimate, title: str | None = None) -> None:
    """Print the answer for every demonstration, or for the first few of many."""
    out = console()
    intervals = any(np.isfinite(ends).any() for ends in (estimate.columns.gap_low, estimate.columns.gap_high))
    head = f"{estimate.rule}, method {estimate.method}"
    out.print(title or (f"{head}, {estimate.level * 100:g}% intervals" if intervals else head), style="bold")
    summary = summary_of_many(estimate)
    if summary:
        out.print(summary)
    several, shown = len(estimate.demonstrations) > 1, estimate.demonstrations[:MOST_TABLES]
    for demonstration in shown:
        if several:
            out.print(f"demonstration {demonstration}")
        out.print(estimate_table(estimate, demonstration, narrow=out.width < NARROW))
    if len(shown) < len(estimate.demonstrations):
        left = len(estimate.demonstrations) - len(shown)
        out.print(f"... and {left:,} more demonstrations: all of them with -o FILE or --json.")


def summary_of_many(estimate: Estimate) -> str | None:
    """Say of more demonstrations than are shown which arm is the best in how many of them."""
    from unbandit.reporting.sentence import sentence

    return sentence(estimate, []) if len(estimate.demonstrations) > MOST_TABLES else None


def print_notices(warnings: Sequence[Notice], notes: Sequence[Notice]) -> None:
    """Say warnings and notes on the error stream, so that a piped table stays a table; each kind once."""
    out = console(error=True)
    for kind, notices in (("warning", warnings), ("note", notes)):
        groups: dict[str, list[Notice]] = {}
        for notice in notices:
            groups.setdefault(notice.code, []).append(notice)
        for first, *others in groups.values():
            where = f" (demonstration {first.demonstration})" if first.demonstration else ""
            more = f" The same kind of {kind} for {len(others):,} more." if others else ""
            out.print(f"{kind}{where}: {first.message}{more}", soft_wrap=True)


def _number(value: float | None, unit: float, digits: int | None) -> str:
    if value is None:
        return "-"
    return f"{value * unit:.4g}" if digits is None else f"{value * unit:,.{digits}f}"


def _interval(low: float | None, high: float | None, unit: float, digits: int | None) -> str:
    if low is None and high is None:
        return ""
    if low is None:
        return f"at most {_number(high, unit, digits)}"
    if high is None:
        return f"at least {_number(low, unit, digits)}"
    return f"{_number(low, unit, digits)} to {_number(high, unit, digits)}"


def _held(row: ArmEstimate, truth: float) -> str:
    if row.mean_low is None and row.mean_high is None:
        return ""
    above = row.mean_low is None or row.mean_low <= truth
    return "yes" if above and (row.mean_high is None or truth <= row.mean_high) else "no"
