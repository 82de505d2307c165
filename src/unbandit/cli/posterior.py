"""`unbandit posterior`: how sure can one be of every arm?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from unbandit.errors import LogError, ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from unbandit.inference import Posterior

__all__ = ["HELP", "posterior", "posterior_table"]

HELP = """Draw from the posterior of every arm's mean, given the actions (and such rewards as the log holds).

The answer has the probability that each arm is the best, and intervals of every mean and gap. With -o it goes to a
table (.csv, .parquet), .json, a picture of the hidden sample means over the rounds (.png, .svg), or a netCDF file for
ArviZ (.nc).

Example:  unbandit posterior log.csv --rule thompson:sigma=0.5 --sigma 0.5 --pair A,B -o draws.nc
"""


def posterior(
    log: str = typer.Argument(..., metavar="LOG", help="The log, or - for standard input.", show_default=False),
    rule: str = typer.Option(..., "--rule", help="Who made it: name:key=value,... (see: unbandit demonstrators)"),
    prior: str = typer.Option(None, "--prior", help="normal:mean=0,deviation=1 or beta:successes=1,failures=1."),
    sigma: float = typer.Option(None, "--sigma", help="Standard deviation of a reward."),
    bernoulli: bool = typer.Option(False, "--bernoulli", help="Rewards were 0 or 1."),
    best_mean: float = typer.Option(None, "--best-mean", help="The best arm's mean, if known."),
    anchor: str = typer.Option(None, "--anchor", metavar="ARM=VALUE", help="Instead: any one arm's known mean."),
    pair: str = typer.Option(None, "--pair", metavar="A,B", help="Also the probability that arm A beats arm B."),
    by: float = typer.Option(0.0, "--by", help="With --pair: by at least so much."),
    pool: bool = typer.Option(False, "--pool", help="All demonstrations are of one instance: combine them."),
    horizon: int = typer.Option(None, "--horizon", help="The demonstrator's horizon, if the log is a beginning of it."),
    level: float = typer.Option(0.95, "--level", help="Level of the intervals."),
    particles: int = typer.Option(None, "--particles", help="Of each of four clouds; by default 250 to 4,000."),
    draws: int = typer.Option(1_000, "--draws", help="Of each cloud."),
    seed: int = typer.Option(0, "--seed", help="The same seed gives the same numbers."),
    threads: int = typer.Option(None, "--threads", help="By default one a core; nothing depends on it."),
    arms: str = typer.Option(None, "--arms", metavar="A,B,C", help="All arms there were, also those never pulled."),
    columns: str = typer.Option(None, "--columns", metavar="arm=...,round=...", help="Names of columns."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    output: str = typer.Option(None, "--output", "-o", help="A table, .json, a picture, or .nc for ArviZ."),
) -> None:
    """Read the log, infer, print or write."""
    from unbandit import estimators
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.options import anchor_from, arm_list, assignments
    from unbandit.cli.outputs import check_folder, check_output
    from unbandit.cli.tables import console, print_notices
    from unbandit.demonstrators import parse_rule
    from unbandit.log import ActionLog

    assumed = parse_rule(rule)
    if output is not None and output.lower().endswith(".nc"):
        check_folder(output)
    else:
        check_output(output)
    pairs = [] if pair is None else [_pair(pair)]
    say_if_first()
    with console(error=True).status("Filtering"):
        record = ActionLog.read(log, columns=assignments("--columns", columns), arms=arm_list(arms))
        try:
            found = estimators.posterior(
                record, assumed, prior=prior, sigma=sigma, bernoulli=bernoulli, best_mean=best_mean,
                anchor=anchor_from(anchor), horizon=horizon, pool=pool, particles=particles, draws=draws, seed=seed,
                threads=threads,
            )  # fmt: skip
        except LogError as error:
            raise error.at(path="standard input" if log == "-" else log) from None
    beaten = [(first, second, found.beats(first, second, by)) for first, second in pairs]
    said = _said(found, level, beaten, by, seed)
    if output is not None:
        _write(found, said, level, output)
    if as_json:
        typer.echo(said)
        return
    out = console()
    out.print(f"{found.rule}, prior {found.prior}, {level * 100:g}% intervals", style="bold")
    out.print(posterior_table(found, level))
    for first, second, chance in beaten:
        out.print(f'P("{first}" beats "{second}"' + (f" by {by:g} or more" if by else "") + f") = {chance:.3f}")
    out.print(
        f"log evidence {found.log_evidence:.1f} ± {found.log_evidence_error:.1f}; 4 clouds of {found.particles:,} "
        f"particles, smallest effective size {found.effective_size:.0f}"
    )
    print_notices(found.warnings, ())
    if output is not None:
        typer.echo(f"{output}: written", err=True)


def _pair(text: str) -> tuple[str, str]:
    first, comma, second = (part.strip() for part in text.partition(","))
    if not (first and comma and second):
        raise ParameterError(f'expected two arms, as in A,B; got "{text}".', parameter="pair")
    return first, second


def posterior_table(found: Posterior, level: float) -> Table:
    """Lay out the arms, best first."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("arm", overflow="fold")
    for name in ("pulls", "P(best)", "mean"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("gap", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    for row in found.frame(level).iter_rows(named=True):
        table.add_row(
            row["arm"], f"{row['pulls']:,}", f"{row['probability_best']:.3f}", f"{row['mean']:.4g}",
            f"{row['mean_low']:.4g} to {row['mean_high']:.4g}", f"{row['gap']:.4g}",
            f"{row['gap_low']:.4g} to {row['gap_high']:.4g}",
        )  # fmt: skip
    return table


def _said(found: Posterior, level: float, beaten: list[tuple[str, str, float]], by: float, seed: int) -> str:
    """Write the answer as JSON."""
    answer: dict[str, Any] = {
        "schema": "unbandit.posterior/1", "rule": found.rule, "prior": str(found.prior), "sigma": found.sigma,
        "horizon": found.horizon, "level": level, "seed": seed, "log_evidence": found.log_evidence,
        "log_evidence_error": found.log_evidence_error, "particles": found.particles,
        "effective_size": found.effective_size,
        "pairs": [{"arm": first, "other": second, "by": by, "probability": p} for first, second, p in beaten],
        "warnings": [{"code": notice.code, "message": notice.message} for notice in found.warnings],
        "arms": found.frame(level).to_dicts(),
    }  # fmt: skip
    return json.dumps(answer, indent=2, allow_nan=False)


def _write(found: Posterior, said: str, level: float, output: str) -> None:
    """Write what the file's name asks for; whole, or not at all."""
    from unbandit.cli.outputs import PICTURES
    from unbandit.files import written_whole
    from unbandit.log.writing import write_table

    name = output.lower()
    if name.endswith(".nc"):
        found.to_netcdf(output)
    elif name.endswith(PICTURES):
        from unbandit.plots import save

        save(found.plot(), output)
    elif name.endswith(".json"):
        with written_whole(output) as temporary:
            temporary.write_text(said + "\n", encoding="utf-8")
    else:
        write_table(lambda: found.frame(level), output)
