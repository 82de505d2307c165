"""`unbandit estimate`: from a log to a ranked table."""

from __future__ import annotations

import warnings
from dataclasses import replace

import typer
from typer import Option

from unbandit.cli import options
from unbandit.cli.options import EstimateCommand
from unbandit.errors import AssumptionWarning, LogError, ParameterError, option

SNAPSHOT = "With --follow: save progress here and resume from it, even after a crash."


def estimate(
    context: typer.Context,
    logs: options.Logs,
    rule: options.Rule,
    method: options.Method = None,
    best_mean: options.BestMean = None,
    anchor: options.Anchor = None,
    scale: options.Scale = "known",
    reference: options.Reference = None,
    horizon: options.Horizon = None,
    level: options.Level = 0.95,
    sigma: options.Sigma = None,
    bernoulli: options.BernoulliRewards = False,
    constant: options.Constant = None,
    arms: options.Arms = None,
    columns: options.Columns = None,
    pool: options.Pool = False,
    prior: options.Prior = None,
    particles: options.Particles = None,
    resamples: options.Resamples = None,
    seed: options.OptionalSeed = None,
    sensitivity: bool = Option(False, "--sensitivity", help="Also estimate with alpha and scale 20% off."),
    as_json: options.Json = False,
    output: str = Option(None, "--output", "-o", help="Write the table (.csv, .tsv, .parquet) or .json."),
    follow: bool = Option(False, "--follow", help="Continue as the log grows; with --json one object per line."),
    every: float = Option(None, "--every", metavar="SECONDS", help="With --follow: how often to look; default 2."),
    snapshot: str = Option(None, "--snapshot", metavar="FILE", help=SNAPSHOT),
    until_idle: float = Option(None, "--until-idle", metavar="SECONDS", help="With --follow: stop after so long idle."),
) -> None:
    """Estimate what every arm of a log was worth.

    LOG is CSV, TSV or Parquet (gzip too), or - for standard input: a column "arm" and optionally "demonstration",
    "round" and "reward" (known rewards, for method posterior); or final counts, "arm" and "pulls". Several files, a
    folder or a pattern in quotes are one log; a large one is scanned and need not fit in memory.

    Example:  unbandit estimate log.csv --rule ucb:alpha=0.25 --best-mean 1 --sigma 0.14

    With --follow the table is printed again whenever the log has grown: a CSV that lines are added to, or a folder that
    Parquet files are added to.
    """
    from unbandit.cli import output as printer
    from unbandit.estimators import estimate as estimate_log
    from unbandit.estimators import sensitivity as estimate_nearby
    from unbandit.estimators.request import draws
    from unbandit.log import ActionLog
    from unbandit.log.action_log import read_or_scan
    from unbandit.log.writing import check_name
    from unbandit.result import json_pieces

    asked = EstimateCommand.read(context.params)
    if output is not None and not output.lower().endswith(".json"):
        check_name(output, also=(".json",), parameter="output")
    if not follow:
        _refuse_without_follow(every=every, snapshot=snapshot, until_idle=until_idle)
    printer.announce_compilation()
    if follow:
        from unbandit.cli.follow import follow_log

        if sensitivity:
            raise ParameterError(
                f"expected without {option('follow')}; leave one of them out.", parameter="sensitivity"
            )
        follow_log(asked, 2.0 if every is None else every, snapshot, until_idle, as_json, output)
        return
    with printer.console(error=True).status("Estimating"), warnings.catch_warnings():
        read = ActionLog.read if draws(method, asked.rule) else read_or_scan
        path = asked.logs[0] if len(asked.logs) == 1 else asked.logs
        log = read(path, columns=asked.columns, arms=asked.arms)
        warnings.simplefilter("ignore", AssumptionWarning)  # they are printed below, with their places
        try:
            answer = estimate_log(log, asked.rule, **asked.options)
        except LogError as error:
            raise error.at(path=asked.name) from None
        others = estimate_nearby(log, asked.rule, **asked.options) if sensitivity else {}
    if answer.seed is None:
        answer = replace(answer, seed=seed)
    if output is not None:
        printer.write_answer(answer, output, json_pieces(answer, others))
    if as_json:
        for piece in json_pieces(answer, others):
            typer.echo(piece, nl=False)
        typer.echo()
        return
    if output is None or others:
        printer.print_estimate(answer)
    else:
        typer.echo(f"{output}: {len(answer):,} rows", err=True)
        summary = printer.summary_of_many(answer)
        if summary:
            typer.echo(summary, err=True)
    for name, other in others.items():
        printer.print_estimate(other, f"with {name} instead")
    printer.print_notices(answer.warnings, answer.notes)


def _refuse_without_follow(**given: object) -> None:
    """Refuse an option that would not be used."""
    for name, value in given.items():
        if value is not None:
            follow = option("follow")
            raise ParameterError(f"expected only with {follow}; leave it out, or add {follow}.", parameter=name)
