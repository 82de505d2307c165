"""`unbandit calibrate`: measure how far the answers can be trusted, and print it beside what is to be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unbandit.calibration import Calibration

__all__ = ["HELP", "calibrate"]

HELP = """Measure how often intervals hold the truth, how large errors are, and how often a rule is recognised.

MEASURES are closed-forms, posterior and identify; without any, all of them. Records are simulated, so the truth behind
them is known. It takes an hour or so; a stopped command goes on where it was. All figures go to FOLDER/figures.csv, and
with what they mean to FOLDER/calibration.md.

Example:  unbandit calibrate posterior --rule ucb --runs 50 -o look
"""


def calibrate(
    measures: Annotated[list[str] | None, typer.Argument(metavar="MEASURE", help="By name; all, if none.")] = None,
    folder: str = typer.Option("calibration", "--output", "-o", metavar="FOLDER", help="Where everything goes."),
    rule: Annotated[
        list[str] | None, typer.Option("--rule", metavar="NAME", help="Only this; may be repeated.")
    ] = None,
    runs: int = typer.Option(None, "--runs", help="Of every cell, 2 or more, instead of its own number."),
    main_runs: int = typer.Option(None, "--main-runs", help="Of posteriors in the main cell."),
    side_runs: int = typer.Option(None, "--side-runs", help="Of posteriors in each of the other cells."),
    records: int = typer.Option(None, "--records", help="Of each rule that is to be identified."),
    seed: int = typer.Option(1, "--seed", help="The same seed gives the same figures."),
    particles: int = typer.Option(250, "--particles", help="Of each cloud of a posterior."),
    clouds: int = typer.Option(2, "--clouds", help="Of each posterior."),
    threads: int = typer.Option(None, "--threads", help="By default one a core; the figures do not depend on it."),
    timing: bool = typer.Option(False, "--timing", help="Measure time and memory too; they depend on the machine."),
) -> None:
    """Measure what is not yet measured, print the table, say where the page is."""
    from unbandit.calibration import calibrate as measure
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.tables import console
    from unbandit.study.progress import progress_on

    err = console(error=True)
    try:
        done = measure(
            folder,
            kinds=measures or (),
            rules=rule or (),
            runs=runs,
            main_runs=main_runs,
            side_runs=side_runs,
            records=records,
            seed=seed,
            particles=particles,
            clouds=clouds,
            threads=threads,
            timing=timing,
            progress=lambda label: progress_on(err, label),
            say=lambda sentence: err.print(sentence, soft_wrap=True, highlight=False, markup=False),
            ready=say_if_first,
        )
    except KeyboardInterrupt:
        typer.echo(f"Stopped. What was measured is kept in {folder}: the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    _print(done)


def _print(done: Calibration) -> None:
    """Print what is to be reached and what was measured, then every figure that misses its goal."""
    from rich import box
    from rich.table import Table

    from unbandit.calibration.criteria import MISSED
    from unbandit.cli.tables import console

    out = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, share in (("measure", 3), ("to reach", 2), ("measured", 2), ("figures", 2)):
        table.add_column(heading, ratio=share)
    for criterion in done.criteria:
        table.add_row(criterion.measure, criterion.reach, criterion.span, criterion.counted)
    out.print(table)
    missed = [(each, score) for each in done.criteria for score in each.scores if score.verdict == MISSED]
    if missed:
        out.print("Not reached:")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("measure", "whose", "cell", "measured"):
            table.add_column(heading, overflow="fold")
        for criterion, score in missed:
            table.add_row(criterion.key, score.row, score.column, score.text)
        out.print(table)
    out.print(f"Every figure: {done.folder / 'figures.csv'}")
    out.print(f"The page: {done.page}")
