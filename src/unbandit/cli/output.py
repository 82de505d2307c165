"""Output: consoles and tables for people, files and JSON for programs, notices on the error stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from unbandit.errors import Notice, OutputError, phrase, shell_option
from unbandit.files import written_whole
from unbandit.formatting import interval
from unbandit.kernels.compile import CACHE_DIRECTORY
from unbandit.log.writing import check_name, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.instance import Instance
    from unbandit.result import ArmEstimate, Estimate

PICTURES = (".png", ".svg")

NARROW_WIDTH = 100
"""A console with fewer columns does not show gaps and means side by side."""

MOST_TABLES = 5
"""Of more demonstrations than this, only the first ones are printed."""

MOST_LINES = 40
"""Lines of a long table that are printed."""

TEXT: Mapping[str, Any] = {"overflow": "fold"}
WORD: Mapping[str, Any] = {"no_wrap": True}
NUMBER: Mapping[str, Any] = {"justify": "right", "no_wrap": True}


class PrintedAnswer(Protocol):
    """Answer that can be a table, JSON and a picture."""

    @property
    def frame(self) -> pl.DataFrame:
        """Return the table."""

    def to_json(self) -> str:
        """Return the JSON text."""

    def plot(self) -> Figure:
        """Return the picture."""


@runtime_checkable
class NetcdfAnswer(Protocol):
    """Answer that can be a netCDF file."""

    def to_netcdf(self, path: str) -> None:
        """Write the file."""


def console(*, error: bool = False) -> Console:
    """Return a console that fits its window, does not wrap lines when piped, and prints names verbatim."""
    stream = sys.stderr if error else sys.stdout
    window = stream.isatty()
    return Console(
        file=stream, width=None if window else 200, soft_wrap=not window, highlight=False, markup=False, emoji=False
    )


def say_on(out: Console) -> Callable[[str], None]:
    """Return a function that prints a sentence on a console."""
    return lambda sentence: out.print(phrase(sentence, shell_option), soft_wrap=True, highlight=False, markup=False)


def new_table(*columns: tuple[str, Mapping[str, Any]]) -> Table:
    """Return an empty table with columns of the kinds `TEXT`, `WORD` or `NUMBER`."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name, kind in columns:
        table.add_column(name, **kind)
    return table


def announce_compilation() -> None:
    """Say, on the error stream, that the kernels are compiled on the first start of a version."""
    if not any(CACHE_DIRECTORY.rglob("*.nbi")):
        typer.echo("Compiling the kernels: once for each version, half a minute or less.", err=True)


def check_folder(path: str) -> None:
    """Refuse a file in a folder that does not exist, before any work is done."""
    if not Path(path).absolute().parent.is_dir():
        raise OutputError(f"{path}: could not be written: its folder is not there. Make the folder first.")


def check_output(output: str | None, *also: str) -> None:
    """Refuse a file name of no known format, or a folder that does not exist; `also` are formats besides tables."""
    if output is None:
        return
    if not output.lower().endswith(also):
        check_name(output, also=also, parameter="output")
    check_folder(output)


def write_answer(answer: PrintedAnswer, output: str, json_pieces: Iterable[str] | None = None) -> None:
    """Write the picture, the JSON or the table that a file's name asks for; whole, or not at all."""
    name = output.lower()
    if isinstance(answer, NetcdfAnswer) and name.endswith(".nc"):
        answer.to_netcdf(output)
    elif name.endswith(PICTURES):
        from unbandit.plots import save

        save(answer.plot(), output)
    elif name.endswith(".json"):
        with written_whole(output) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines([answer.to_json()] if json_pieces is None else json_pieces)
            file.write("\n")
    else:
        write_table(lambda: answer.frame, output)


def write_truth(instance: Instance, path: str | Path) -> None:
    """Write every arm's true mean and gap."""
    table = pl.DataFrame({"arm": list(instance.arms), "mean": instance.means, "gap": instance.gaps})
    write_table(lambda: table, path)


def deliver(
    answer: PrintedAnswer,
    output: str | None,
    as_json: bool,
    show: Callable[[Console], None],
    json_text: Callable[[], str] | None = None,
) -> None:
    """Write the file if one was asked for, then print the answer: as JSON, or as `show` does."""
    if output is not None:
        write_answer(answer, output)
    if as_json:
        typer.echo((json_text or answer.to_json)())
        return
    show(console())
    if output is not None:
        typer.echo(f"{output}: written", err=True)


def say_left_out(out: Console, total: int, things: str) -> None:
    """Say how many lines of a long table are not printed."""
    if total > MOST_LINES:
        out.print(f"... and {total - MOST_LINES:,} more {things}: all of them with -o FILE or --json.")


def estimate_table(
    estimate: Estimate, demonstration: str, *, truth: Mapping[str, float] | None = None, unit: float = 1.0,
    value: str = "mean", digits: int | None = None, narrow: bool = False,
) -> Table:  # fmt: skip
    """Return the table of one demonstration, best arm first; in a narrow console means replace the gaps."""
    rows = estimate.ranked(demonstration)
    has = {name: any(getattr(row, name) is not None for row in rows) for name in ("gap", "gap_low", "mean", "ratio")}
    gaps = (has["gap_low"] or (has["gap"] and not has["ratio"])) and not (has["mean"] and narrow)
    heading = f"{estimate.level * 100:g}% interval"
    longest = min(16, max(len(row.arm) for row in rows))
    table = new_table(("rank", NUMBER), ("arm", {**TEXT, "min_width": longest}), ("verdict", WORD), ("pulls", NUMBER))
    for name, shown in (("gap", gaps), (value, has["mean"])):
        if shown:
            table.add_column(name, **NUMBER)
            table.add_column(heading, **WORD)
    if has["ratio"]:
        table.add_column("ratio", **NUMBER)
    if truth is not None:
        table.add_column("truth", **NUMBER)
        table.add_column("held", **WORD)
    for rank, row in enumerate(rows, 1):
        cells = [str(rank), row.arm, row.verdict, f"{row.pulls:,}"]
        if gaps:
            cells += [_number(row.gap, unit, digits), _interval(row.gap_low, row.gap_high, unit, digits)]
        if has["mean"]:
            cells += [_number(row.mean, unit, digits), _interval(row.mean_low, row.mean_high, unit, digits)]
        if has["ratio"]:
            cells.append(_number(row.ratio, 1.0, None))
        if truth is not None:
            cells += [_number(truth[row.arm], unit, digits), _held(row, truth[row.arm])]
        table.add_row(*cells)
    return table


def print_estimate(estimate: Estimate, title: str | None = None) -> None:
    """Print the table of every demonstration, or of the first few of many."""
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
        out.print(estimate_table(estimate, demonstration, narrow=out.width < NARROW_WIDTH))
    if len(shown) < len(estimate.demonstrations):
        left = len(estimate.demonstrations) - len(shown)
        out.print(f"... and {left:,} more demonstrations: all of them with -o FILE or --json.")


def summary_of_many(estimate: Estimate) -> str | None:
    """Return which arm is best in how many demonstrations, if there are more than are printed."""
    from unbandit.reporting.sentence import sentence

    return sentence(estimate, []) if len(estimate.demonstrations) > MOST_TABLES else None


def print_notices(warnings: Sequence[Notice], notes: Sequence[Notice] = ()) -> None:
    """Print warnings and notes on the error stream, so that a piped table stays a table; each kind once."""
    out = console(error=True)
    for kind, notices in (("warning", warnings), ("note", notes)):
        groups: dict[str, list[Notice]] = {}
        for notice in notices:
            groups.setdefault(notice.code, []).append(notice)
        for first, *others in groups.values():
            where = f" (demonstration {first.demonstration})" if first.demonstration else ""
            more = f" The same kind of {kind} for {len(others):,} more." if others else ""
            out.print(f"{kind}{where}: {phrase(first.text, shell_option)}{more}", soft_wrap=True)


def _number(value: float | None, unit: float, digits: int | None) -> str:
    if value is None:
        return "-"
    return f"{value * unit:.4g}" if digits is None else f"{value * unit:,.{digits}f}"


def _interval(low: float | None, high: float | None, unit: float, digits: int | None) -> str:
    return interval(low, high, lambda end: _number(end, unit, digits))


def _held(row: ArmEstimate, truth: float) -> str:
    if row.mean_low is None and row.mean_high is None:
        return ""
    above = row.mean_low is None or row.mean_low <= truth
    return "yes" if above and (row.mean_high is None or truth <= row.mean_high) else "no"
