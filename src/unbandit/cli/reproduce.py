"""`unbandit reproduce`: the paper's pictures and claims, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unbandit.cli.device import DEVICE, folder_device
from unbandit.cli.study import ADDRESS, EXECUTOR, WAIT

if TYPE_CHECKING:
    from unbandit.paper.reproduce import FinishedFigure, Reproduction

__all__ = ["HELP", "reproduce"]

HELP = """Make the paper's pictures again, and test what it says of them.

PICTURES are names (see: --list); without any, all those of the paper are made. What was simulated in the folder before
is not simulated again, so a stopped command goes on where it was. A folder has one size and one seed, and its page
shows the pictures of the last command.

Example:  unbandit reproduce ucb battery-landscape -o reproduction
"""


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(metavar="PICTURE", help="By name; all, if none.")] = None,
    folder: str = typer.Option("reproduction", "--output", "-o", metavar="FOLDER", help="Where everything goes."),
    runs: int = typer.Option(None, "--runs", help="Of every picture, 2 or more; by default the paper's (see --full)."),
    full: bool = typer.Option(
        False,
        "--full",
        help="Far beyond the paper: 100,000 runs, or ten times its own, and more.",
    ),
    seed: int = typer.Option(1, "--seed", help="The same seed gives the same pictures."),
    device: str = typer.Option("auto", "--device", help=DEVICE),
    threads: int = typer.Option(None, "--threads", help="By default one a core; the pictures do not depend on it."),
    executor: str = typer.Option("threads", "--executor", metavar="NAME", help=EXECUTOR),
    address: str = typer.Option(None, "--address", metavar="HEAD", help=ADDRESS),
    wait: float = typer.Option(20.0, "--wait", metavar="SECONDS", help=WAIT),
    listed: bool = typer.Option(False, "--list", help="List the pictures and stop."),
) -> None:
    """Make the pictures, print the claims, say where the page is."""
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.tables import console
    from unbandit.paper.figure import chosen_figures
    from unbandit.paper.reproduce import reproduce as make
    from unbandit.study.progress import progress_on

    names = list(figures or ())
    if listed:
        chosen_figures(names)  # an unknown name is refused here too
        _print_list()
        return
    err = console(error=True)
    device = folder_device(folder, "reproduction.json", device, executor)

    def told(made: FinishedFigure) -> None:
        err.print(f"{made.files[0]}, .svg, .parquet: {made.figure.title}", soft_wrap=True)

    try:
        done = make(
            names,
            folder,
            runs=runs,
            seed=seed,
            full=full,
            device=device,
            threads=threads,
            executor=executor,
            address=address,
            wait=wait,
            say=lambda sentence: err.print(sentence, soft_wrap=True, highlight=False, markup=False),
            progress=progress_on(err),
            ready=say_if_first,
            told=told,
        )
    except KeyboardInterrupt:
        typer.echo(f"Stopped. What was simulated is kept in {folder}: the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    _print_claims(done)


def _print_list() -> None:
    """Print every picture: its name, what it is, and whether it is one of those that go beyond the paper."""
    from rich import box
    from rich.table import Table

    from unbandit.cli.tables import console
    from unbandit.paper.figure import figures

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("picture", "title", "in the paper"):
        table.add_column(heading, no_wrap=heading == "picture")
    for figure in figures().values():
        table.add_row(figure.name, figure.title, figure.section + (" (with --full)" if figure.full_only else ""))
    console().print(table)


def _print_claims(done: Reproduction) -> None:
    """Print what does not hold, how many claims have each verdict, and where all of them are."""
    from rich import box
    from rich.table import Table

    from unbandit.cli.tables import console
    from unbandit.paper.claims import FAILS, counted, written

    out = console()
    failing = [(made.figure.name, claim) for made in done.made for claim in made.claims if claim.verdict == FAILS]
    if failing:
        out.print("What does not hold:")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("picture", no_wrap=True)
        table.add_column("the paper says", ratio=2)
        table.add_column("statistic", ratio=3)
        table.add_column("measured", justify="right", no_wrap=True)
        for name, claim in failing:
            says = f"(ours) {claim.says}" if claim.ours else claim.says
            table.add_row(name, says, claim.statistic, "-" if claim.measured is None else written(claim.measured))
        out.print(table)
    for whose, verdicts in (("The paper's claims", done.verdicts), ("Questions of ours", done.own_verdicts)):
        if any(verdicts.values()):
            out.print(f"{whose}: " + ", ".join(counted(verdict, count) for verdict, count in verdicts.items()))
    out.print(f"All claims: {done.listing}")
    out.print(f"The page: {done.page}")
