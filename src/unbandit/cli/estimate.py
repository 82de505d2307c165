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

__all__ = ["HELP", "estimate"]

HELP = """Estimate what every arm of a log was worth.

LOG is CSV, TSV or Parquet (gzip too), or - for standard input: a column "arm" and, if there are, "demonstration",
"round" and "reward" (where one is known, for method posterior); or final counts, "arm" and "pulls".

Example:  unbandit estimate log.csv --rule ucb:alpha=0.25 --best-mean 1 --sigma 0.14
"""


@asking
def estimate(
    asked: Question,
    sensitivity: bool = typer.Option(False, "--sensitivity", help="Show it again with alpha and scale 20% off."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    output: str = typer.Option(None, "--output", "-o", help="Write the table (.csv, .tsv, .parquet) or .json."),
) -> None:
    """Read the log, estimate, print or write."""
    from unbandit import estimators
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.tables import console, print_estimate, print_notices, summary_of_many
    from unbandit.log import ActionLog
    from unbandit.log.writing import check_name
    from unbandit.result_text import json_pieces

    if output is not None and not output.lower().endswith(".json"):
        try:
            check_name(output)
        except ParameterError as error:
            raise ParameterError(f"--output: {str(error).removeprefix('path: ')} (or .json)") from None
    say_if_first()
    with console(error=True).status("Estimating"), warnings.catch_warnings():
        record = ActionLog.read(asked.log, columns=asked.columns, arms=asked.arms)
        warnings.simplefilter("ignore", AssumptionWarning)  # they are said below, with their places
        try:
            answer = estimators.estimate(record, asked.rule, **asked.options)
        except LogError as error:
            raise LogError(error.message, path=asked.name) from error
        others = estimators.sensitivity(record, asked.rule, **asked.options) if sensitivity else {}
    if answer.seed is None:
        answer = replace(answer, seed=asked.seed)
    if output is not None:
        _write(answer, others, output)
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


def _write(answer: Estimate, others: dict[str, Estimate], output: str) -> None:
    """Write the table, or the whole answer as JSON; whole, or not at all."""
    from unbandit.files import written_whole
    from unbandit.log.writing import write_table
    from unbandit.result_text import json_pieces

    if not output.lower().endswith(".json"):
        write_table(lambda: answer.frame, output)
        return
    with written_whole(output) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json_pieces(answer, others))
        file.write("\n")
