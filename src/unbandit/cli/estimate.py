"""`unbandit estimate`: from a log to a ranked table."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from unbandit.errors import AssumptionWarning, LogError, ParameterError

if TYPE_CHECKING:
    from unbandit.result import Estimate

__all__ = ["HELP", "estimate"]

HELP = """Estimate what every arm of a log was worth.

LOG is CSV, TSV or Parquet (gzip too), or - for standard input: a column "arm" and, if there are, "demonstration",
"round" and "reward" (where one is known, for method posterior); or final counts, "arm" and "pulls".

Example:  unbandit estimate log.csv --rule ucb:alpha=0.25 --best-mean 1 --sigma 0.14
"""


def estimate(
    log: str = typer.Argument(..., metavar="LOG", help="The log, or - for standard input.", show_default=False),
    rule: str = typer.Option(..., "--rule", help="Who made it: name:key=value,... (see: unbandit demonstrators)"),
    method: str = typer.Option(
        None, "--method", help="switching, posterior, counts, naive or bootstrap; by default what fits."
    ),
    best_mean: float = typer.Option(None, "--best-mean", help="The best arm's mean, if known: gives means, not gaps."),
    anchor: str = typer.Option(None, "--anchor", metavar="ARM=VALUE", help="Instead: any one arm's known mean."),
    scale: str = typer.Option("known", "--scale", help="unknown: the width's factor is not known; gives ratios."),
    reference: str = typer.Option(None, "--reference", metavar="ARM", help="The arm that ratios are counted in."),
    horizon: int = typer.Option(None, "--horizon", help="The demonstrator's horizon, if the log is a beginning of it."),
    level: float = typer.Option(0.95, "--level", help="Level of the intervals."),
    sigma: float = typer.Option(None, "--sigma", help="Standard deviation of a reward, for the intervals."),
    bernoulli: bool = typer.Option(False, "--bernoulli", help="Rewards were 0 or 1."),
    constant: float = typer.Option(None, "--constant", help="Constant of the naive estimator."),
    arms: str = typer.Option(None, "--arms", metavar="A,B,C", help="All arms there were, also those never pulled."),
    columns: str = typer.Option(None, "--columns", metavar="arm=...,round=...", help="Names of columns."),
    pool: bool = typer.Option(False, "--pool", help="All demonstrations are of one instance: combine them."),
    prior: str = typer.Option(None, "--prior", help="Of the posterior: normal:mean=0,deviation=1 or beta:..."),
    particles: int = typer.Option(None, "--particles", help="Of the posterior: particles of each cloud."),
    resamples: int = typer.Option(None, "--resamples", help="Simulations of the bootstrap; 1,000 by default."),
    sensitivity: bool = typer.Option(False, "--sensitivity", help="Show it again with alpha and scale 20% off."),
    seed: int = typer.Option(None, "--seed", help="For methods that draw random numbers; kept in the JSON."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    output: str = typer.Option(None, "--output", "-o", help="Write the table (.csv, .tsv, .parquet) or .json."),
) -> None:
    """Read the log, estimate, print or write."""
    from unbandit import estimators
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.options import anchor_from, arm_list, assignments
    from unbandit.cli.tables import console, print_estimate, print_notices
    from unbandit.demonstrators import RandomisedRule, parse_rule
    from unbandit.estimators.arguments import DRAWING
    from unbandit.log import ActionLog
    from unbandit.log.writing import check_name

    assumed = parse_rule(rule)
    options: dict[str, Any] = {
        "method": method,
        "best_mean": best_mean,
        "anchor": anchor_from(anchor),
        "scale": scale,
        "reference": reference,
        "horizon": horizon,
        "level": level,
        "sigma": sigma,
        "bernoulli": bernoulli,
        "constant": constant,
        "pool": pool,
        "resamples": resamples,
        "prior": prior,
        "particles": particles,
    }
    if method in DRAWING or (method is None and isinstance(assumed, RandomisedRule)):
        options["seed"] = seed
    if output is not None and not output.lower().endswith(".json"):
        try:
            check_name(output)
        except ParameterError as error:
            raise ParameterError(f"--output: {str(error).removeprefix('path: ')} (or .json)") from None
    say_if_first()
    with console(error=True).status("Estimating"), warnings.catch_warnings():
        record = ActionLog.read(log, columns=assignments("--columns", columns), arms=arm_list(arms))
        warnings.simplefilter("ignore", AssumptionWarning)  # they are said below, with their places
        try:
            answer = estimators.estimate(record, assumed, **options)
        except LogError as error:
            raise LogError(error.message, path="standard input" if log == "-" else log) from error
        others = estimators.sensitivity(record, assumed, **options) if sensitivity else {}
    if answer.seed is None:
        answer = replace(answer, seed=seed)
    if output is not None:
        _write(answer, others, output)
    if as_json:
        typer.echo(_json(answer, others))
        return
    if output is None or others:
        print_estimate(answer)
    else:
        typer.echo(f"{output}: {len(answer):,} rows", err=True)
    for name, other in others.items():
        print_estimate(other, f"with {name} instead")
    print_notices(answer.warnings, answer.notes)


def _json(answer: Estimate, others: dict[str, Estimate]) -> str:
    """Write the answer, and where it was asked for how it changes, as JSON."""
    import json

    result = answer.to_dict()
    if others:
        result["sensitivity"] = {name: other.to_dict() for name, other in others.items()}
    return json.dumps(result, indent=2, allow_nan=False)


def _write(answer: Estimate, others: dict[str, Estimate], output: str) -> None:
    """Write the table, or the whole answer as JSON; whole, or not at all."""
    from unbandit.files import written_whole
    from unbandit.log.writing import write_table

    if not output.lower().endswith(".json"):
        write_table(lambda: answer.frame, output)
        return
    with written_whole(output) as temporary:
        temporary.write_text(_json(answer, others) + "\n", encoding="utf-8")
