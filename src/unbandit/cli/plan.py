"""`unbandit plan`: how long must a rule run before its record tells what one wants to know?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from unbandit.planning import Plan

__all__ = ["HELP", "plan"]

HELP = """Before collecting: how long must a rule run for each gap to be known to within d, and at what regret?

INSTANCE is a guess at the arms: a data set (see: unbandit datasets), or --means with --sigma (or --bernoulli). Theory
and simulation stand side by side; -o plan.png draws both.

Example:  unbandit plan linear --rule ucb:alpha=0.25 --within 0.1 -o plan.png
"""

SHOWN = 40
"""Lines of the table that the shell shows."""


def plan(
    instance: str = typer.Argument(None, metavar="[INSTANCE]", help="A data set by name.", show_default=False),
    rule: str = typer.Option(..., "--rule", help="Who will collect: name:key=value,..."),
    within: float = typer.Option(..., "--within", metavar="D", help="How well gaps shall be known."),
    means: str = typer.Option(None, "--means", metavar="1,0.5,...", help="Instead of a data set: the arms' means."),
    sigma: float = typer.Option(None, "--sigma", help="With --means: standard deviation of a reward (default 1)."),
    bernoulli: bool = typer.Option(False, "--bernoulli", help="With --means: rewards are 0 or 1."),
    arms: str = typer.Option(None, "--arms", help="How many arms of the data set, or with --means their names."),
    level: float = typer.Option(0.95, "--level", help="Level of the intervals."),
    longest: int = typer.Option(100_000, "--longest", help="The longest horizon to simulate."),
    points: int = typer.Option(12, "--points", help="How many horizons to simulate."),
    runs: int = typer.Option(200, "--runs", help="Simulated runs of each horizon."),
    seed: int = typer.Option(1, "--seed", help="The same seed gives the same plan."),
    threads: int = typer.Option(None, "--threads", help="By default one a core; the plan does not depend on it."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, with the curves."),
    output: str = typer.Option(None, "--output", "-o", help="A picture (.png, .svg), a table (.csv ...) or .json."),
) -> None:
    """Build the instance, plan, print or write."""
    from unbandit import planning
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.instances import instance_from
    from unbandit.cli.outputs import check_output, write_answer
    from unbandit.cli.tables import console
    from unbandit.demonstrators import parse_rule

    chosen = parse_rule(rule)
    faced = instance_from("plan", instance, means, sigma, bernoulli, arms)
    check_output(output)
    say_if_first()
    with console(error=True).status("Planning") as status:
        answer = planning.plan(
            faced, chosen, within, level=level, longest=longest, points=points, runs=runs, seed=seed, threads=threads,
            progress=lambda horizon: status.update(f"Simulating {runs:,} x {horizon:,} rounds"),
        )  # fmt: skip
    if output is not None:
        write_answer(answer, output)
    if as_json:
        typer.echo(answer.to_json())
        return
    out = console()
    out.print(f"{answer.rule} on {answer.instance}: every gap to within {answer.within:g}", style="bold")
    out.print(_table(answer))
    if len(answer.needs) > SHOWN:
        out.print(f"... and {len(answer.needs) - SHOWN:,} more lines: all of them with -o FILE or --json.")
    out.print(f"Interval: half its length ({answer.level * 100:g}%) is at most {answer.within:g} in half of the runs.")
    out.print(f"Error: the root-mean-square error is at most {answer.within:g}. ± is the Monte-Carlo standard error.")
    out.print(f"All gaps by interval: {answer.answer('interval')}; by error: {answer.answer('error')}.")
    for note in answer.notes:
        typer.echo(f"note: {note}", err=True)
    if output is not None:
        typer.echo(f"{output}: written", err=True)


def _table(answer: Plan) -> Table:
    """Lay theory and simulation out side by side, the arms in order of their gaps."""
    from rich import box
    from rich.table import Table

    from unbandit.planning.result import amount, rounded

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("arm", overflow="fold")
    for name in ("gap", "known by", "theory: rounds", "regret", "simulated: rounds", "regret"):
        table.add_column(name, justify="left" if name == "known by" else "right", no_wrap=True)
    for need in sorted(answer.needs, key=lambda need: need.gap)[:SHOWN]:
        simulated = f"not by {answer.curves.horizons[-1]:,.0f}"
        if need.horizon is not None:
            before = "by " if need.status == "earlier" else ""
            simulated = f"{before}{rounded(need.horizon)}{_error(need.horizon_error)}"
        table.add_row(
            need.arm,
            f"{need.gap:.3g}",
            need.criterion,
            "more than 1e+12" if need.theory_horizon is None else rounded(need.theory_horizon),
            "-" if need.theory_regret is None else amount(need.theory_regret),
            simulated,
            "-" if need.regret is None else f"{amount(need.regret)}{_error(need.regret_error)}",
        )
    return table


def _error(error: float | None) -> str:
    return f" ± {error:,.2g}" if error is not None and error < 100 else "" if error is None else f" ± {error:,.0f}"
