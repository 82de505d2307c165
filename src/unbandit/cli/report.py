"""`unbandit report`: from a log to a page that can be sent to a colleague."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from unbandit.cli.asking import Question, asking
from unbandit.errors import LogError, ParameterError

__all__ = ["HELP", "report"]

HELP = """Write a report of what every arm of a log was worth: one HTML file that needs no other.

The answer in a sentence, the ranked table, pictures, warnings in words, what was assumed, what cannot be known, how to
make it again and how to cite it. LOG and all options but the last three are those of unbandit estimate.

Example:  unbandit report log.csv --rule ucb:alpha=0.25 --best-mean 1 --sigma 0.14 -o report.html
"""


@asking
def report(
    asked: Question,
    output: str = typer.Option("report.html", "--output", "-o", help="The report: .html."),
    pdf: str = typer.Option(None, "--pdf", metavar="PATH", help="Also print it, with an installed browser: .pdf."),
    truth: str = typer.Option(
        None, "--truth", metavar="PATH", help="The true means, as unbandit simulate --truth writes them."
    ),
) -> None:
    """Read the log with its checksum, estimate, write."""
    _check(asked, output, pdf, truth)
    from unbandit import reporting
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.tables import console, print_notices
    from unbandit.reporting.provenance import read_log, typed_line
    from unbandit.reporting.truth import read_truth

    say_if_first()
    with console(error=True).status("Reading the log") as status:
        means = None if truth is None else read_truth(truth)
        record, source = read_log(asked.log, columns=asked.columns, arms=asked.arms)
        try:
            made = reporting.report(
                record, asked.rule, source=source, command=typed_line(sys.argv), truth=means,
                progress=lambda stage, _: status.update(stage), **asked.options,
            )  # fmt: skip
        except LogError as error:
            raise error.at(path=asked.name) from None
        made.write(output)
        if pdf is not None:
            status.update("Printing")
            reporting.write_pdf(made.html, pdf)
    out = console()
    out.print(made.sentence)
    print_notices(made.answer.warnings, ())
    out.print("Written: " + ", ".join([output] + ([] if pdf is None else [pdf])))


def _check(asked: Question, output: str, pdf: str | None, truth: str | None) -> None:
    """Refuse what cannot be written or printed before any work is done."""
    from unbandit.cli.outputs import check_folder

    if not output.lower().endswith((".html", ".htm")):
        raise ParameterError(
            f'expected a name that ends in .html; got "{output}". For paper, add --pdf PATH.', parameter="output"
        )
    if truth == "-" and asked.log == "-":
        raise ParameterError("standard input is the log already. Name a file.", parameter="truth")
    check_folder(output)
    if pdf is None:
        return
    if not pdf.lower().endswith(".pdf"):
        raise ParameterError(f'expected a name that ends in .pdf; got "{pdf}".', parameter="pdf")
    if Path(pdf).absolute() == Path(output).absolute():
        raise ParameterError(f'expected a file of its own; got "{pdf}", where the report goes.', parameter="pdf")
    check_folder(pdf)
    from unbandit.reporting.pdf import find_browser

    find_browser()
