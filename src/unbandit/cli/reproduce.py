"""`unbandit reproduce`: the paper's figures and claims, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from unbandit.cli import options

if TYPE_CHECKING:
    from unbandit.paper.page import FinishedFigure, Reproduction


def reproduce(
    figures: Annotated[list[str] | None, Argument(metavar="PICTURE", help="By name; all, if none.")] = None,
    folder: str = Option("reproduction", "--output", "-o", metavar="FOLDER", help="Where everything goes."),
    runs: int = Option(None, "--runs", help="Per picture, 2 or more; by default the paper's (see --full)."),
    full: bool = Option(False, "--full", help="Far beyond the paper: 100,000 runs, or ten times its own, and more."),
    seed: options.Seed = 1,
    device: options.Device = "auto",
    threads: options.Threads = None,
    executor: options.Executor = "threads",
    address: options.Address = None,
    wait: options.Wait = 20.0,
    listed: bool = Option(False, "--list", help="List the pictures and stop."),
) -> None:
    """Make the paper's pictures again, and test what it says of them.

    PICTURES are names (see: --list); without any, all those of the paper are made. What was simulated in the folder
    before is not simulated again, so the same command resumes one that was stopped. A folder has one size and one seed,
    and its page shows the pictures of the last command.

    Example:  unbandit reproduce ucb battery-landscape -o reproduction
    """
    from unbandit.cli.output import announce_compilation, console, say_on
    from unbandit.paper.figure import chosen_figures
    from unbandit.paper.reproduce import reproduce as make
    from unbandit.study.progress import progress_on

    names = list(figures or ())
    if listed:
        chosen_figures(names)  # an unknown name is refused here too
        _print_list()
        return
    err = console(error=True)
    device = options.folder_device(folder, "reproduction.json", device, executor)

    def told(made: FinishedFigure) -> None:
        err.print(f"{made.files[0]}, .svg, .parquet: {made.figure.title}", soft_wrap=True)

    try:
        done = make(
            names, folder, runs=runs, seed=seed, full=full, device=device, threads=threads, executor=executor,
            address=address, wait=wait, say=say_on(err), progress=progress_on(err), ready=announce_compilation,
            told=told,
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"Stopped. What was simulated is kept in {folder}: the same command resumes.", err=True)
        raise typer.Exit(130) from None
    _print_claims(done)


def _print_list() -> None:
    """Print every figure: its name, its title, and whether it goes beyond the paper."""
    from unbandit.cli.output import WORD, console, new_table
    from unbandit.paper.figure import figures

    table = new_table(("picture", WORD), ("title", {}), ("in the paper", {}))
    for figure in figures().values():
        table.add_row(figure.name, figure.title, figure.section + (" (with --full)" if figure.full_only else ""))
    console().print(table)


def _print_claims(done: Reproduction) -> None:
    """Print the claims that do not hold, how many have each verdict, and where all of them are."""
    from unbandit.cli.output import NUMBER, WORD, console, new_table
    from unbandit.paper.claims import FAILS, counted, written

    out = console()
    failing = [(made.figure.name, claim) for made in done.made for claim in made.claims if claim.verdict == FAILS]
    if failing:
        out.print("What does not hold:")
        table = new_table(
            ("picture", WORD), ("the paper says", {"ratio": 2}), ("statistic", {"ratio": 3}), ("measured", NUMBER)
        )
        for name, claim in failing:
            says = f"(ours) {claim.says}" if claim.ours else claim.says
            table.add_row(name, says, claim.statistic, "-" if claim.measured is None else written(claim.measured))
        out.print(table)
    for whose, verdicts in (("The paper's claims", done.verdicts), ("Questions of ours", done.own_verdicts)):
        if any(verdicts.values()):
            out.print(f"{whose}: " + ", ".join(counted(verdict, count) for verdict, count in verdicts.items()))
    out.print(f"All claims: {done.listing}")
    out.print(f"The page: {done.page}")
