"""Output: tables for people, files and JSON for programs, notices on the error stream; the same for every command.

Whatever is slow to load is imported when it is used: every command imports this module, `--help` too.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unbandit.cli.command import verbosity
from unbandit.errors import (
    HARMLESS,
    MISREAD,
    AssumptionWarning,
    Interrupts,
    LogError,
    Notice,
    OutputError,
    ParameterError,
    escaped,
    phrase,
    printable,
    shell_option,
)
from unbandit.progress import StageLine

if TYPE_CHECKING:
    import polars
    from rich.console import Console
    from rich.table import Table

    from unbandit.estimators.stretches import Stretches
    from unbandit.fit import Check
    from unbandit.instance import Instance
    from unbandit.result import Estimate

PICTURES = (".png", ".svg")

NARROW_WIDTH = 100  # a console with fewer columns does not show gaps and means side by side
MISFIT = "does-not-fit"  # code of the warning that comes before a table

MOST_TABLES = 5  # of more demonstrations than this, only the first ones are printed
WIDEST_CELL = 27  # of a value with its interval
MOST_LINES = 40  # lines of a long table that are printed
MOST_ARMS = 300  # arms of an estimate that are printed, best first

TEXT: Mapping[str, Any] = {"overflow": "fold"}
WORD: Mapping[str, Any] = {"no_wrap": True}
RULE: Mapping[str, Any] = {"overflow": "fold"}  # a rule's text, which a narrow window breaks after `:` and `,`
NUMBER: Mapping[str, Any] = {"justify": "right", "no_wrap": True}

ONLY_VERBOSE = {"short-horizon"}  # notes that ordinary output leaves out: what Theorem 2 of the paper promises

HELD = {True: "yes", False: "no", None: ""}


def console(*, error: bool = False) -> Console:
    """Return a console that fits its window, neither wraps nor pads lines when piped, and prints names verbatim.

    A sentence may quote a file: whatever the console would obey is escaped.
    """
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    window = stream.isatty()

    class EscapingConsole(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            safe = ["\n".join(map(escaped, each.split("\n"))) if isinstance(each, str) else each for each in objects]
            if window:
                super().print(*safe, **options)
                return
            with self.capture() as printed:
                super().print(*safe, **options)
            stream.write("\n".join(line.rstrip(" ") for line in printed.get().split("\n")))

    return EscapingConsole(
        file=stream, width=None if window else 200, soft_wrap=not window, highlight=False, markup=False, emoji=False
    )


def say_on(out: Console) -> Callable[[str], None]:
    """Return a function that prints a sentence on a console."""
    return lambda sentence: out.print(phrase(sentence, shell_option), soft_wrap=True)


def columns(kind: Mapping[str, Any], *names: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return columns of a table that are of the same kind: `TEXT`, `WORD`, `RULE` or `NUMBER`."""
    return [(name, kind) for name in names]


def new_table(headings: Iterable[tuple[str, Mapping[str, Any]]], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table with columns of some kinds."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    kinds = []
    for name, kind in headings:
        table.add_column(name, **kind)
        kinds.append(kind)
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < NARROW_WIDTH
    for row in rows:
        cells = zip(map(printable, row), kinds, strict=True)
        table.add_row(*(_parted(text) if narrow and kind is RULE else text for text, kind in cells))
    return table


def _parted(rule: str) -> str:
    """Write each parameter of a rule on a line of its own."""
    return re.sub(r"[:,](?=\S)", r"\g<0>\n ", rule)


def announce_compilation() -> None:
    """Say, on the error stream, that the kernels are compiled on the first start of a version."""
    from unbandit.kernels.compile import CACHE_DIRECTORY

    if CACHE_DIRECTORY is None or not any(CACHE_DIRECTORY.rglob("*.nbi")):
        typer.echo("Compiling the kernels (once per version, up to a minute) ...", err=True)


def working(stage: str) -> StageLine:
    """Show what a command is doing, how far it is and how long it will take, for use in a `with` block."""
    if verbosity() < 0:
        return StageLine(console(error=True), stage, is_quiet=True)
    announce_compilation()
    return StageLine(console(error=True), stage)


def check_folder(path: str) -> None:
    """Refuse a file in a folder that does not exist, before any work is done."""
    if not Path(path).absolute().parent.is_dir():
        raise OutputError(f"{path}: could not be written: its folder does not exist. Create the folder first.")


def check_output(output: str | None, *also: str, parameter: str = "output") -> None:
    """Refuse a file name of no known format, or a folder that does not exist; `also` are formats besides tables."""
    from unbandit.files import check_name

    if output is None:
        return
    if not output.lower().endswith(also):
        check_name(output, also=also, parameter=parameter)
    check_folder(output)


@contextmanager
def answering(log: str | None = None) -> Iterator[None]:
    """Name the log in its errors, and ignore warnings: they are among the notices that are printed later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        try:
            yield
        except LogError as error:
            raise error.at(path=error.path or log) from None  # a table beside the log names itself


@contextmanager
def resumable(sentence: Callable[[], str]) -> Iterator[None]:
    """When Ctrl-C stops the block, say what is kept and end with exit code 130."""
    with Interrupts() as interrupts:
        try:
            yield
        except BaseException as error:
            if not (interrupts.came or isinstance(error, KeyboardInterrupt)):
                raise
            typer.echo(sentence(), err=True)
            raise typer.Exit(130) from None


def deliver(
    answer: Any, output: str | None, as_json: bool, *, table: Callable[[], polars.DataFrame] | None = None,
    json_pieces: Callable[[], Iterable[str]] | None = None, as_dict: Callable[[], dict[str, Any]] | None = None,
    written: str = "written",
) -> bool:  # fmt: skip
    """Write the file and print the JSON, where asked for; return whether the answer is still to be shown to a person.

    An answer has `to_frame()`, `to_json()` and `plot()`; `table`, and `json_pieces` or `as_dict`, stand for the first
    two.
    """

    def pieces() -> Iterable[str]:
        if json_pieces is not None:
            return json_pieces()
        return [answer.to_json() if as_dict is None else json.dumps(as_dict(), indent=2, allow_nan=False)]

    if output is not None:
        write_answer(answer, output, pieces(), table)
    if as_json:
        for piece in pieces():
            typer.echo(piece, nl=False)
        typer.echo()
    elif output is not None:
        typer.echo(f"{output}: {written}", err=True)
    return not as_json


def check_truth_apart(output: str | None, truth: str | None) -> None:
    """Refuse to write the truth where the log goes."""
    if truth is not None and output is not None and Path(truth).absolute() == Path(output).absolute():
        raise ParameterError(f'expected a different file; got "{truth}", where the log goes.', parameter="truth")


def write_answer(
    answer: Any, output: str, json_pieces: Iterable[str], table: Callable[[], polars.DataFrame] | None = None
) -> None:
    """Write the picture, the draws, the JSON or the table that a file's name asks for; whole, or not at all."""
    from unbandit.files import write_table, written_whole

    name = output.lower()
    if name.endswith(".nc"):
        answer.to_netcdf(output)
    elif name.endswith(PICTURES):
        from unbandit.plots import save

        save(answer.plot(), output)
    elif name.endswith(".json"):
        with written_whole(output) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(json_pieces)
            file.write("\n")
    else:
        write_table(table or answer.to_frame, output)


def write_log(table: polars.DataFrame, output: str, written: str) -> None:
    """Write a simulated log and say so, or print it if `output` is -."""
    from unbandit.files import write_table

    if output == "-":
        for at, part in enumerate(table.iter_slices(100_000)):
            sys.stdout.write(part.write_csv(include_header=at == 0))
        return
    write_table(lambda: table, output)
    typer.echo(f"{output}: {written}", err=True)


def write_truth(instance: Instance, path: str | Path) -> None:
    """Write every arm's true mean and gap."""
    import polars as pl

    from unbandit.files import write_table

    table = pl.DataFrame({"arm": list(instance.arms), "mean": instance.means, "gap": instance.gaps})
    write_table(lambda: table, path)


def say_left_out(
    out: Console, total: int, things: str, most: int = MOST_LINES, where: str = "-o FILE or --json"
) -> None:
    """Say how many lines of a long table are not printed, and where they are."""
    if total > most:
        out.print(f"... and {total - most:,} more {things}; see all of them with {where}.")


def estimate_table(
    estimate: Estimate, demonstration: str, *, truth: Mapping[str, float] | None = None, unit: float = 1.0,
    value: str = "mean", digits: int | None = None, narrow: bool = False,
) -> Table:  # fmt: skip
    """Return the table of one demonstration, best arm first and not too long; in a narrow console without the gaps."""
    import numpy as np

    from unbandit.formatting import interval
    from unbandit.reporting.truth import holds_truth
    from unbandit.tables import same_decimals

    def column(values: Iterable[float | None]) -> Callable[[float | None], str]:
        write = same_decimals(None if each is None else each * unit for each in values)
        if digits is not None:
            return lambda value: "-" if value is None else f"{value * unit:,.{digits}f}"
        return lambda value: "-" if value is None else write(value * unit)

    which, numbers = list(estimate.demonstrations).index(demonstration), ("gap", "gap_low", "mean", "ratio")
    rows = estimate.ranked(demonstration, MOST_ARMS)
    has = {name: not np.isnan(getattr(estimate.columns, name)[which]).all() for name in numbers}
    gaps = (has["gap_low"] or (has["gap"] and not has["ratio"])) and not (has["mean"] and narrow)
    ends = f"{estimate.level * 100:g}% interval"
    longest = min(16, max(len(row.arm) for row in rows))
    headings = [("rank", NUMBER), ("arm", {**TEXT, "min_width": longest}), ("verdict", WORD), ("pulls", NUMBER)]
    headings += [("gap", NUMBER), (ends, WORD)] if gaps else []
    headings += [(value, NUMBER), (ends, WORD)] if has["mean"] else []
    headings += [("ratio", NUMBER)] if has["ratio"] else []
    headings += [("truth", NUMBER), ("held", WORD)] if truth is not None else []
    lines = []
    apart = set(estimate.apart(demonstration))
    gap = column(each for row in rows for each in (row.gap, row.gap_low, row.gap_high))
    mean = column(each for row in rows for each in (row.mean, row.mean_low, row.mean_high))
    for rank, row in enumerate(rows, 1):
        cells = ["-" if row.arm in apart else str(rank), row.arm, row.verdict, f"{row.pulls:,}"]
        cells += [gap(row.gap), interval(row.gap_low, row.gap_high, gap)] if gaps else []
        cells += [mean(row.mean), interval(row.mean_low, row.mean_high, mean)] if has["mean"] else []
        cells += ["-" if row.ratio is None else f"{row.ratio:.4g}"] if has["ratio"] else []
        cells += [mean(truth[row.arm]), HELD[holds_truth(row, "mean", truth)]] if truth is not None else []
        lines.append(cells)
    return new_table(headings, lines)


def print_estimate(estimate: Estimate, title: str | None = None) -> None:
    """Print the table of every demonstration, or of the first few of many."""
    import numpy as np

    from unbandit.formatting import counted, short_numbers

    out = console()
    intervals = any(np.isfinite(ends).any() for ends in (estimate.columns.gap_low, estimate.columns.gap_high))
    head = f"{short_numbers(estimate.rule)}, method {estimate.method}"
    out.print(title or (f"{head}, {estimate.level * 100:g}% intervals" if intervals else head), style="bold")
    summary = summary_of_many(estimate)
    if summary:
        out.print(summary)
    several, shown = len(estimate.demonstrations) > 1, estimate.demonstrations[:MOST_TABLES]
    for demonstration in shown:
        if several:
            out.print(printable(f"{estimate.noun} {demonstration}"))
        out.print(estimate_table(estimate, demonstration, narrow=out.width < NARROW_WIDTH))
        say_left_out(out, len(estimate.arms), "arms", MOST_ARMS)
    if len(shown) < len(estimate.demonstrations):
        left = len(estimate.demonstrations) - len(shown)
        out.print(f"... and {counted(left, f'more {estimate.noun}')}; see all of them with -o FILE or --json.")
    for label, other in estimate.alternatives.items():
        print_estimate(other, label)


def print_stretches(found: Stretches) -> None:
    """Print one table of arms and stretches, the best arm of the whole log first."""
    out = console()
    out.print(f"{found.quantity} by stretch, at the last hesitation in each", style="bold")
    headings = [("arm", TEXT), *((f"{a:,} to {b:,}", WORD) for a, b in zip(found.first, found.last, strict=True))]
    rows = [(row.arm, found.arms.index(row.arm)) for row in found.answer.ranked()]
    stretches = range(found.first.size)
    out.print(new_table(headings, [[arm, *(found.written(at, place) for at in stretches)] for arm, place in rows]))


def print_sensitivity(answer: Estimate, others: Mapping[str, Estimate]) -> None:
    """Print one table of arms and variants, the best arm first."""
    from unbandit.estimators.variants import sensitivity_rows

    out = console()
    is_wide = out.width >= WIDEST_CELL * (len(others) + 2)
    headings, rows = sensitivity_rows(answer, others, MOST_TABLES, intervals=is_wide)
    out.print(f"{headings[-len(others) - 1]} under other assumptions", style="bold")
    kinds = [TEXT] * (len(headings) - len(others) - 1) + [WORD] * (len(others) + 1)
    names = [*headings[: -len(others) - 1], "as assumed", *others]
    out.print(new_table(zip(names, kinds, strict=True), rows))


def summary_of_many(estimate: Estimate) -> str | None:
    """Return which arm is best in how many demonstrations, if there are more than are printed."""
    from unbandit.reporting.sentence import sentence

    return sentence(estimate, []) if len(estimate.demonstrations) > MOST_TABLES else None


def insist(check: Check, strict: bool, warnings: Iterable[Notice] = ()) -> None:
    """End with exit code 4 if that matters and a rule does not fit the log, or a warning puts the rule in doubt."""
    from unbandit.estimators.check import UNRELIABLE

    if strict and (check.verdict == "does not fit" or any(each.code in UNRELIABLE for each in warnings)):
        raise typer.Exit(4)


def print_misfit(warnings: Sequence[Notice]) -> list[Notice]:
    """Print that the rule does not fit, which must stand above numbers that rest on it; return the other warnings."""
    print_notices([each for each in warnings if each.code == MISFIT])
    return [each for each in warnings if each.code != MISFIT]


def print_notices(
    warnings: Sequence[Notice], notes: Sequence[Notice] = (), noun: str = "demonstration"
) -> None:  # fmt: skip
    """Print warnings and notes on the error stream, so that a piped table stays a table; each kind once.

    `noun` is what the log calls a demonstration.
    """
    from unbandit.formatting import counted

    out, loudness = console(error=True), verbosity()
    notes = [*(each for each in warnings if each.code in HARMLESS), *notes]
    warnings = [each for each in warnings if each.code not in HARMLESS]
    warnings += [each for each in notes if each.code in MISREAD and each not in warnings]
    notes = [each for each in notes if each.code not in MISREAD]
    notes = [each for each in notes if loudness > 0 or (loudness == 0 and each.code not in ONLY_VERBOSE)]
    for kind, notices in (("warning", warnings), ("note", notes)):
        groups: dict[str, list[Notice]] = {}
        for notice in notices:  # what was noticed while reading is something else each time
            groups.setdefault(notice.text if notice.code == "reading" else notice.code, []).append(notice)
        for group in groups.values():
            shown = group if loudness > 0 else group[:1]
            for each in shown:
                where = f" ({noun} {each.demonstration})" if each.demonstration else ""
                out.print(f"{kind}{printable(where)}: {phrase(each.text, shell_option)}", soft_wrap=True)
            if left := len(group) - len(shown):
                are = "is" if left == 1 else "are"
                out.print(f"{counted(left, f'similar {kind}')} {are} not shown (use --verbose).")
