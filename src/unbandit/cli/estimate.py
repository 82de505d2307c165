"""`unbandit estimate`: from a log to a ranked table."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from unbandit.cli.asking import Question, asking
from unbandit.errors import AssumptionWarning, LogError, ParameterError

if TYPE_CHECKING:
    from unbandit.result import Estimate

__all__ = ["HELP", "estimate", "write_answer"]

HELP = """Estimate what every arm of a log was worth.

LOG is CSV, TSV or Parquet (gzip too), or - for standard input: a column "arm" and, if there are, "demonstration",
"round" and "reward" (where one is known, for method posterior); or final counts, "arm" and "pulls". Several files, a
folder or a pattern in quotes are one log; what is large is scanned, and need not fit in memory.

Example:  unbandit estimate log.csv --rule ucb:alpha=0.25 --best-mean 1 --sigma 0.14

With --follow the table is printed again whenever the log has grown: a CSV that lines are added to, or a folder that
Parquet files are added to.
"""


@asking
def estimate(
    asked: Question,
    sensitivity: bool = typer.Option(False, "--sensitivity", help="Show it again with alpha and scale 20% off."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    output: str = typer.Option(None, "--output", "-o", help="Write the table (.csv, .tsv, .parquet) or .json."),
    follow: bool = typer.Option(False, "--follow", help="Go on as the log grows; with --json one object a line."),
    every: float = typer.Option(None, "--every", metavar="SECONDS", help="With --follow: look so often; 2 by default."),
    snapshot: str = typer.Option(
        None, "--snapshot", metavar="FILE", help="With --follow: kept up to date, and gone on from, also after a kill."
    ),
    until_idle: float = typer.Option(
        None, "--until-idle", metavar="SECONDS", help="With --follow: end when nothing came for so long."
    ),
) -> None:
    """Read the log, estimate, print or write."""
    from unbandit import estimators
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.tables import console, print_estimate, print_notices, summary_of_many
    from unbandit.estimators.request import draws
    from unbandit.log import ActionLog
    from unbandit.log.choosing import read_or_scan
    from unbandit.log.writing import check_name
    from unbandit.result import json_pieces

    if output is not None and not output.lower().endswith(".json"):
        try:
            check_name(output)
        except ParameterError as error:
            raise ParameterError(f"{str(error).removeprefix('path: ')} (or .json)", parameter="output") from None
    if not follow:
        _refuse_without_follow(every=every, snapshot=snapshot, until_idle=until_idle)
    say_if_first()
    if follow:
        from unbandit.cli import following

        if sensitivity:
            raise ParameterError("expected without --follow; leave one of them out.", parameter="sensitivity")
        following.follow(asked, 2.0 if every is None else every, snapshot, until_idle, as_json, output)
        return
    with console(error=True).status("Estimating"), warnings.catch_warnings():
        drawing = draws(asked.options["method"], asked.rule)
        read = ActionLog.read if drawing else read_or_scan
        path = asked.logs[0] if len(asked.logs) == 1 else asked.logs
        record = read(path, columns=asked.columns, arms=asked.arms)
        warnings.simplefilter("ignore", AssumptionWarning)  # they are said below, with their places
        try:
            answer = estimators.estimate(record, asked.rule, **asked.options)
        except LogError as error:
            raise error.at(path=asked.name) from None
        others = estimators.sensitivity(record, asked.rule, **asked.options) if sensitivity else {}
    if answer.seed is None:
        answer = replace(answer, seed=asked.seed)
    if output is not None:
        write_answer(answer, others, output)
    if as_json:
        for piece in json_pieces(answer, others):
            typer.echo(piece, nl=False)
        typer.echo()
        return
    if output is None or others:
        print_estimate(answer)
    else:
        typer.echo(f"{output}: {len(answer):,} rows", err=True)
        summary = summary_of_many(answer)
        if summary:
            typer.echo(summary, err=True)
    for name, other in others.items():
        print_estimate(other, f"with {name} instead")
    print_notices(answer.warnings, answer.notes)


def _refuse_without_follow(**given: object) -> None:
    """Refuse an option that would not be used."""
    for name, value in given.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise ParameterError("expected only with --follow; leave it out, or add --follow.", parameter=option)


def write_answer(answer: Estimate, others: dict[str, Estimate], output: str) -> None:
    """Write the table, or the whole answer as JSON; whole, or not at all."""
    from unbandit.files import written_whole
    from unbandit.log.writing import write_table
    from unbandit.result import json_pieces

    if not output.lower().endswith(".json"):
        write_table(lambda: answer.frame, output)
        return
    with written_whole(output) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json_pieces(answer, others))
        file.write("\n")
