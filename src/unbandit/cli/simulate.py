"""`unbandit simulate`: make logs of a rule on a known instance."""

from __future__ import annotations

from pathlib import Path

import typer

from unbandit.cli.device import DEVICE, chosen_device
from unbandit.errors import ParameterError

__all__ = ["HELP", "simulate"]

HELP = """Simulate a demonstrator, and write which arm it pulled in every round; or, with --counts, how often each.

INSTANCE is a data set (see: unbandit datasets); or give --means and --sigma (or --bernoulli).

Example:  unbandit simulate battery-high --rule sae --horizon 5000 --runs 100 -o log.parquet --truth truth.csv
"""


def simulate(
    instance: str = typer.Argument(None, metavar="[INSTANCE]", help="A data set by name.", show_default=False),
    rule: str = typer.Option(..., "--rule", help="The demonstrator: name:key=value,..."),
    horizon: int = typer.Option(..., "--horizon", help="Rounds of each demonstration."),
    runs: int = typer.Option(1, "--runs", help="How many demonstrations."),
    seed: int = typer.Option(0, "--seed", help="The same seed gives the same log, on any machine."),
    means: str = typer.Option(None, "--means", metavar="1,0.5,...", help="Instead of a data set: the arms' means."),
    sigma: float = typer.Option(None, "--sigma", help="With --means: standard deviation of a reward (default 1)."),
    bernoulli: bool = typer.Option(False, "--bernoulli", help="With --means: rewards are 0 or 1."),
    arms: str = typer.Option(None, "--arms", help="How many arms of the data set, or with --means their names."),
    output: str = typer.Option("-", "--output", "-o", help="The log: .csv, .tsv, .parquet, .csv.gz, .tsv.gz."),
    truth: str = typer.Option(None, "--truth", help="Write the arms' true means: .csv, .tsv or .parquet."),
    counts: bool = typer.Option(False, "--counts", help="Write pull counts, one row an arm, instead of every round."),
    draw: str = typer.Option(
        "every", "--draw", help="With --counts: every reward, or for UCB only the needed ones (long horizons)."
    ),
    threads: int = typer.Option(None, "--threads", help="By default one a core; the log does not depend on it."),
    device: str = typer.Option("auto", "--device", help=DEVICE),
) -> None:
    """Build the instance, play the rule, write the log or the counts."""
    import sys
    from typing import Any, cast

    import polars as pl

    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.instances import instance_from
    from unbandit.cli.outputs import check_folder
    from unbandit.cli.pull_counts import counted
    from unbandit.cli.tables import console
    from unbandit.demonstrators import parse_rule
    from unbandit.log.writing import check_name, write_table

    chosen = parse_rule(rule)
    faced = instance_from("simulate", instance, means, sigma, bernoulli, arms)
    for path in (output, truth):
        if path is not None and path != "-":
            check_name(path)
            check_folder(path)
    if truth is not None and Path(truth).absolute() == Path(output).absolute():
        raise ParameterError(f'expected a file of its own; got "{truth}", where the log goes.', parameter="truth")
    if draw != "every" and not counts:
        raise ParameterError(f"--draw {draw}: expected with --counts, for a log shows every round. Add --counts.")
    device = "cpu" if draw != "every" and device == "auto" else chosen_device(device, max(runs, 0) * max(horizon, 0))
    say_if_first()
    with console(error=True).status(f"Simulating {runs:,} x {horizon:,} rounds"):
        if counts:
            asked = {"runs": runs, "seed": seed, "threads": threads, "draw": draw, "device": device}
            table = counted(chosen.evidence(faced, horizon, **cast(Any, asked)), faced.arms)
        else:
            log = chosen.demonstrate(faced, horizon, runs=runs, seed=seed, threads=threads, device=device)
            table = log.to_frame()
    if output == "-":
        for at, part in enumerate(table.iter_slices(100_000)):
            sys.stdout.write(part.write_csv(include_header=at == 0))
    else:
        write_table(lambda: table, output)
        typer.echo(f"{output}: {runs:,} x {horizon:,} rounds of {chosen} on {faced.name} ({len(faced)} arms)", err=True)
    if truth is not None:
        means_of = pl.DataFrame({"arm": list(faced.arms), "mean": faced.means, "gap": faced.gaps})
        write_table(lambda: means_of, truth)
