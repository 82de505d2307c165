"""`unbandit study`: simulate and estimate a whole grid, in a folder that can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from typer import Argument, Option

from unbandit.cli import options

if TYPE_CHECKING:
    import polars
    from rich.console import Console
    from rich.table import Table


def study(
    file: str = Argument(..., metavar="FILE", help="The study, as TOML.", show_default=False),
    output: str = Option(..., "--output", "-o", metavar="FOLDER", help="Where results are saved, and resumed from."),
    threads: options.Threads = None,
    executor: options.Executor = "threads",
    address: options.Address = None,
    wait: options.Wait = 20.0,
    runs: int = Option(None, "--runs", help="Runs of each cell, instead of the file's."),
    seed: int = Option(None, "--seed", help="The seed, instead of the file's."),
    device: options.Device = "auto",
    keep: str = Option(None, "--keep", help="rows (of every run), or sums (small, for any number of runs)."),
) -> None:
    """Simulate and estimate a grid of instances, rules and horizons many times over.

    FILE is a TOML file such as this one:

    \b
      rules = ["ucb:alpha=0.25", "sae"]
      horizons = {from = 500, to = 5000, points = 4, spacing = "log"}
      runs = 100
      estimators = ["switching", "naive:constant=0.75"]

    \b
      [[instances]]
      dataset = "two-armed"

    \b
      [[instances]]
      name = "close"
      means = [1.0, 0.9, 0.5]
      sigma = 0.5

    Rows go to FOLDER/parts as Parquet, a table of errors to FOLDER/summary.csv and to the screen. The same command
    resumes a study that was stopped, however it was stopped. FOLDER may be an address that fsspec supports, such as
    s3://bucket/results; with --executor ray or dask a cluster does the work, and the bytes are the same.

    Example:  unbandit study study.toml -o results
    """
    from unbandit.cli.output import announce_compilation, console, say_on
    from unbandit.study import Study
    from unbandit.study.dispatch import choose_executor
    from unbandit.study.progress import progress_on
    from unbandit.study.results import ResultsFolder

    described = Study.read(file, runs=runs, seed=seed)
    choose_executor(executor, address=address, wait=wait, threads=threads)  # a wrong option is refused here
    device = options.folder_device(output, "study.json", device, executor)
    device = options.choose_device(device, described.rounds)
    kept = options.folder_setting(output, "study.json", "keep")  # a folder is resumed as it began
    grid = described.on(device, keep=keep or (kept if kept in ("rows", "sums") else None))
    folder, err = ResultsFolder(output, grid), console(error=True)
    announce_compilation()
    try:
        result = grid.run(
            output, executor=executor, address=address, wait=wait, threads=threads, progress=progress_on(err),
            say=say_on(err),
        )  # fmt: skip
        table = result.summary()
        folder.write_summary(table)
    except KeyboardInterrupt:
        done, parts = len(folder.present()), len(grid.tasks)
        typer.echo(f"Stopped: {done:,} of {parts:,} parts are kept in {output}. The same command resumes.", err=True)
        raise typer.Exit(130) from None
    _print(console(), str(grid).strip("<>"), table, folder.summary)
    typer.echo(f"{output}: {len(grid.tasks):,} parts, and summary.csv", err=True)


def _print(out: Console, title: str, summary: polars.DataFrame, where: str) -> None:
    """Print a table per instance and estimator: arm by arm, or one line for all arms if there are very many."""
    import polars as pl

    from unbandit.cli.output import MOST_LINES
    from unbandit.study.curves import pool_arms

    out.print(title, style="bold")
    worse = summary.filter(pl.col("gap") > 0)
    worse = worse if worse.height else summary  # all arms are equally good
    many = worse.height > MOST_LINES
    rows = pool_arms(worse) if many else worse
    order = [pl.col(name).cast(pl.Enum(rows[name].unique(maintain_order=True))) for name in ("instance", "estimator")]
    rows = rows.sort(*order, "horizon", maintain_order=True)
    for names, part in rows.head(MOST_LINES).group_by("instance", "estimator", maintain_order=True):
        out.print(", ".join(map(str, names)))
        out.print(_table(part, arms=not many))
    if rows.height > MOST_LINES:
        out.print(f"... and {rows.height - MOST_LINES:,} more lines.")
    if many:
        out.print(
            "Each line covers all arms but the best; the RMSE is the largest of those estimated in nearly all runs."
        )
    out.print(f"Everything, arm by arm: {where}")


def _table(summary: polars.DataFrame, *, arms: bool) -> Table:
    """Lay out the rows of one instance and estimator."""
    from unbandit.cli.output import NUMBER, TEXT, new_table
    from unbandit.formatting import share, with_error

    by_arm = (("arm", TEXT), ("gap", NUMBER)) if arms else ()
    numbers = ("estimated", "RMSE", "coverage", "found", "regret")
    table = new_table(("horizon", NUMBER), ("rule", TEXT), *by_arm, *((name, NUMBER) for name in numbers))
    for row in summary.iter_rows(named=True):
        table.add_row(
            f"{row['horizon']:,}",
            _short(row["rule"]),
            *((row["arm"], f"{row['gap']:.3g}") if arms else ()),
            share(row["estimated"], 3),
            with_error(row["rmse"], row["rmse_error"]),
            share(row["coverage"], 3),
            share(row["found"], 3),
            f"{row['regret']:.4g}",
        )
    return table


def _short(rule: str) -> str:
    """Write a rule's numbers to four digits: sqrt(2) needs no more here."""
    import re

    return re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", rule)
