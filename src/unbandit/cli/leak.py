"""`unbandit leak`: how much does a record of actions give away?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from unbandit.planning import Leak

__all__ = ["HELP", "leak"]

HELP = """How much does the record of a rule's actions give away, as equivalent observed rewards of each arm?

That is the number of the arm's own rewards which, seen, would tell its mean as well as the record does to an outsider
who knows the rule and the best mean. INSTANCE is a data set (see: unbandit datasets), or --means with --sigma.

Example:  unbandit leak linear --rule ucb:alpha=0.25 --horizon 5000 -o leak.png
"""

SHOWN = 40
"""Lines of the table that the shell shows."""

TOLD = {
    "values": "The best arm can be told from {found} of the records.",
    "best": "This rule's actions tell which arm it judged best ({found} of the records: the best one), and no values.",
    "nothing": "This rule's actions do not depend on the rewards: they tell nothing.",
}


def leak(
    instance: str = typer.Argument(None, metavar="[INSTANCE]", help="A data set by name.", show_default=False),
    rule: str = typer.Option(..., "--rule", help="The demonstrator: name:key=value,..."),
    horizon: int = typer.Option(..., "--horizon", help="Rounds of the record."),
    means: str = typer.Option(None, "--means", metavar="1,0.5,...", help="Instead of a data set: the arms' means."),
    sigma: float = typer.Option(None, "--sigma", help="With --means: standard deviation of a reward (default 1)."),
    bernoulli: bool = typer.Option(False, "--bernoulli", help="With --means: rewards are 0 or 1."),
    arms: str = typer.Option(None, "--arms", help="How many arms of the data set, or with --means their names."),
    runs: int = typer.Option(400, "--runs", help="Simulated records."),
    seed: int = typer.Option(1, "--seed", help="The same seed gives the same numbers."),
    threads: int = typer.Option(None, "--threads", help="By default one a core; nothing depends on it."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    output: str = typer.Option(None, "--output", "-o", help="A picture (.png, .svg), a table (.csv ...) or .json."),
) -> None:
    """Build the instance, simulate and read, print or write."""
    from unbandit import planning
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.instances import instance_from
    from unbandit.cli.outputs import check_output, write_answer
    from unbandit.cli.tables import console
    from unbandit.demonstrators import parse_rule

    chosen = parse_rule(rule)
    faced = instance_from("leak", instance, means, sigma, bernoulli, arms)
    check_output(output)
    say_if_first()
    with console(error=True).status(f"Simulating {runs:,} x {horizon:,} rounds"):
        answer = planning.leak(faced, chosen, horizon, runs=runs, seed=seed, threads=threads)
    if output is not None:
        write_answer(answer, output)
    if as_json:
        typer.echo(answer.to_json())
        return
    out = console()
    out.print(
        f"{answer.rule} on {answer.instance}, {answer.horizon:,} rounds: what the record gives away", style="bold"
    )
    out.print(_table(answer))
    if len(answer.arms) > SHOWN:
        out.print(f"... and {len(answer.arms) - SHOWN:,} more arms: all of them with -o FILE or --json.")
    out.print(TOLD[answer.reveals].format(found="" if answer.found is None else f"{answer.found:.1%}"))
    if answer.reveals == "values":
        out.print(
            "Equivalent: rewards of the arm which, seen, would tell its mean as well. ± is the Monte-Carlo error."
        )
    if output is not None:
        typer.echo(f"{output}: written", err=True)


def _table(answer: Leak) -> Table:
    """Lay out the arms in order of their gaps."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("arm", overflow="fold")
    for name in ("gap", "pulls", "estimated", "RMSE", "equivalent", "of its pulls"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in sorted(answer.arms, key=lambda row: row.gap)[:SHOWN]:
        table.add_row(
            row.arm,
            f"{row.gap:.3g}",
            f"{row.pulls:,.0f}",
            "best" if row.equivalent is None else f"{row.estimated:.0%}",
            _number(row.rmse, row.rmse_error),
            _number(row.equivalent, row.equivalent_error),
            "-" if row.share is None else f"{row.share:.0%}" + (f" ± {row.share_error:.0%}" if row.share_error else ""),
        )
    return table


def _number(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" + (f" ± {error:.2g}" if error else "")
