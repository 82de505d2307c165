"""`unbandit calibrate`: measure how far the answers can be trusted, and print it beside what is to be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from unbandit.cli import options

if TYPE_CHECKING:
    from unbandit.calibration import Calibration


def calibrate(
    measures: Annotated[list[str] | None, Argument(metavar="MEASURE", help="By name; all, if none.")] = None,
    folder: str = Option("calibration", "--output", "-o", metavar="FOLDER", help="Where everything goes."),
    rule: Annotated[list[str] | None, Option("--rule", metavar="NAME", help="Only this; may be repeated.")] = None,
    runs: int = Option(None, "--runs", help="Of every cell, 2 or more, instead of its own number."),
    main_runs: int = Option(None, "--main-runs", help="Of posteriors in the main cell."),
    side_runs: int = Option(None, "--side-runs", help="Of posteriors in each of the other cells."),
    records: int = Option(None, "--records", help="Of each rule that is to be identified."),
    seed: options.Seed = 1,
    particles: int = Option(250, "--particles", help="Of each cloud of a posterior."),
    clouds: int = Option(2, "--clouds", help="Of each posterior."),
    threads: options.Threads = None,
    timing: bool = Option(False, "--timing", help="Measure time and memory too; they depend on the machine."),
) -> None:
    """Measure how often intervals hold the truth, how large errors are, and how often a rule is recognised.

    MEASURES are closed-forms, posterior and identify; without any, all of them. Logs are simulated, so the truth
    behind them is known. It takes about an hour; the same command resumes one that was stopped. All figures go to
    FOLDER/figures.csv, and with their meaning to FOLDER/calibration.md.

    Example:  unbandit calibrate posterior --rule ucb --runs 50 -o look
    """
    from unbandit.calibration import calibrate as measure
    from unbandit.cli.output import announce_compilation, console, say_on
    from unbandit.study.progress import progress_on

    err = console(error=True)
    try:
        done = measure(
            folder, kinds=measures or (), rules=rule or (), runs=runs, main_runs=main_runs, side_runs=side_runs,
            records=records, seed=seed, particles=particles, clouds=clouds, threads=threads, timing=timing,
            progress=lambda label: progress_on(err, label), say=say_on(err), ready=announce_compilation,
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"Stopped. What was measured is kept in {folder}: the same command resumes.", err=True)
        raise typer.Exit(130) from None
    _print(done)


def _print(done: Calibration) -> None:
    """Print each criterion beside what was measured, then every score that misses it."""
    from unbandit.calibration.criteria import MISSED
    from unbandit.cli.output import TEXT, console, new_table

    out = console()
    headings = (("measure", 3), ("to reach", 2), ("measured", 2), ("figures", 2))
    table = new_table(*((name, {"ratio": share}) for name, share in headings))
    for criterion in done.criteria:
        table.add_row(criterion.measure, criterion.reach, criterion.span, criterion.counted)
    out.print(table)
    missed = [(each, score) for each in done.criteria for score in each.scores if score.verdict == MISSED]
    if missed:
        out.print("Not reached:")
        table = new_table(*((name, TEXT) for name in ("measure", "whose", "cell", "measured")))
        for criterion, score in missed:
            table.add_row(criterion.key, score.row, score.column, score.text)
        out.print(table)
    out.print(f"Every figure: {done.folder / 'figures.csv'}")
    out.print(f"The page: {done.page}")
