"""`unbandit report` writes an answer as a page; `unbandit serve` asks and answers on one."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer import Option

from unbandit.cli import options
from unbandit.cli import output as printer
from unbandit.cli.command import check_written
from unbandit.cli.options import EstimateCommand
from unbandit.errors import ParameterError, option, shell_option

if TYPE_CHECKING:
    from unbandit.progress import StageLine
    from unbandit.reporting.page import Page

IDENTIFY_OPTIONS = ("prior", "sigma", "bernoulli", "horizon", "particles", "seed", "availability")
NEEDS_A_RULE: dict[str, Any] = {
    "method": None, "best_mean": None, "anchor": None, "scale": "known", "reference": None, "constant": None,
    "duplicates": None, "pool": False, "resamples": None, "starting_pulls": None, "kept": None, "windows": None,
    "no_check": False, "strict": False, "truth": None, "sensitivity": False, "population": False,
    "features": None,
}  # fmt: skip
"""Options of a report that need a rule, each with its default."""

POPULATION_OPTIONS = ("values", "prior", "sigma", "bernoulli", "horizon", "level", "particles", "seed")
NOT_OF_A_POPULATION: dict[str, Any] = {
    "method": None, "best_mean": None, "anchor": None, "scale": "known", "reference": None, "constant": None,
    "duplicates": None, "pool": False, "resamples": None, "starting_pulls": None, "kept": None, "windows": None,
    "availability": None, "truth": None, "sensitivity": False, "demonstration": None,
}  # fmt: skip
"""Options of a report that a population has none of, each with its default."""


def report(
    context: typer.Context,
    logs: options.Logs,
    rule: options.OptionalRule = None,
    candidates: options.Candidates = None,
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
    features: options.Features = None,
    sheet: options.Sheet = None,
    no_header: options.NoHeader = False,
    blank: options.Blank = None,
    duplicates: options.Duplicates = None,
    pool: options.Pool = False,
    demonstration: options.Demonstration = None,
    prior: options.Prior = None,
    particles: options.Particles = None,
    resamples: options.Resamples = None,
    starting_pulls: options.StartingPulls = None,
    kept: options.Kept = None,
    availability: options.Availability = None,
    windows: options.Windows = None,
    population: bool = Option(False, "--population", help="Report on many participants as one population."),
    values: str = Option(
        None, "--values", help="With --population: arms' values, own to each participant or shared by all."
    ),
    seed: options.OptionalSeed = None,
    no_check: options.NoCheck = False,
    strict: options.Strict = False,
    sensitivity: bool = Option(False, "--sensitivity", help="Also estimate with changed parameters of the rule."),
    output: str = Option("report.html", "--output", "-o", help="File name of the report (.html)."),
    title: str = Option(None, "--title", help="Title of the report."),
    author: str = Option(None, "--author", metavar="NAME", help="Author of the report."),
    date: str = Option(None, "--date", metavar="DATE", help="Date of the report, printed as given."),
    names: str = Option(None, "--names", metavar="FILE", help="Display names of the arms (columns arm, name)."),
    unit: str = Option(None, "--unit", metavar="NAME=NUMBER", help="Show values in a unit, multiplied by this number."),
    short: bool = Option(False, "--short", help="One page: the answer, its table and one figure."),
    paper: str = Option("A4", "--paper", metavar="A4|letter", help="With --pdf: paper size."),
    pdf: str = Option(None, "--pdf", help="Also write a PDF, using an installed browser."),
    truth: str = Option(None, "--truth", help="The true means, as written by simulate --truth."),
) -> None:
    """Write a report on the value of every arm of a log.

    Writes one self-contained HTML file: a one-sentence answer, the ranked table, figures, warnings, the assumptions,
    what cannot be known, how to reproduce the report and how to cite it.

    Without --rule, it lists which rules are possible and how probable they are, which are ruled out and why, and gives
    the values averaged over the possible rules, as unbandit identify does. --candidates names the rules to try.

    LOG and most options are those of unbandit estimate; those of the report itself are under Output. With --population,
    they are those of unbandit population, and the report has its table, a forest plot and every participant. With
    --features, it is about the coefficients of a linear model.

    Example:  unbandit report log.csv --rule ucb1 --sigma 0.5 -o report.html
    """
    from unbandit import reporting
    from unbandit.files import write_table
    from unbandit.reporting.figures import HOW_A_LOG_WAS_READ
    from unbandit.reporting.provenance import read_log, without_folders
    from unbandit.reporting.truth import read_arm_names, read_truth

    if values is not None and not (population and rule is not None):
        text = f"expected with {option('rule')} and {option('population')}; leave it out."
        raise ParameterError(text, parameter="values", value=values)
    if rule is None:
        _report_identification(context.params)
        return
    if candidates is not None:
        text = f"expected without {option('rule')}; leave one of them out."
        raise ParameterError(text, parameter="candidates", value=candidates)
    if features is not None:
        from unbandit.cli import contexts

        _check_files(logs[0] if len(logs) == 1 else None, output, pdf, truth)
        contexts.report(context.params)
        return
    if population:
        _report_population(context.params)
        return
    asked = EstimateCommand.read(context.params)
    _check_files(asked.log, output, pdf, truth)
    table = Path(output).with_name(f"{Path(output).stem}-table.csv")
    check_written(table, context.params)
    with printer.working("Reading the log") as status:
        means = None if truth is None else read_truth(truth)
        log, source = read_log(asked.log, **asked.reading)
        with printer.answering(options.log_name(*asked.logs)):
            written = reporting.report(
                log, asked.rule, source=source, command=without_folders(["unbandit", *sys.argv[1:]]), truth=means,
                windows=windows, sensitivity=sensitivity, names=None if names is None else read_arm_names(names),
                unit=unit, title=title, author=author, date=date, short=short, table_file=table.name,
                demonstration=demonstration,
                progress=lambda stage, _: status.update(stage), audience=shell_option, **asked.options,
            )  # fmt: skip
        files = _write(written, output, pdf, paper, status)
        if len(written.answer.demonstrations) > reporting.api.MOST_TABLES:
            files.insert(1, str(write_table(written.answer.to_frame, table)))
    out = printer.console()
    warnings = printer.print_misfit(written.answer.warnings)
    out.print(written.sentence)
    reading = {notice.code for notice in getattr(log, "rows", log).reading} | HOW_A_LOG_WAS_READ
    notes = [each for each in written.answer.notes if each.code in reading]
    printer.print_notices(warnings, notes, written.answer.noun)
    out.print("Written: " + ", ".join(files))
    printer.insist(written.answer.check, strict, written.answer.warnings)


def _report_identification(given: Mapping[str, Any]) -> None:
    """Report which rules may have made a log, and the values averaged over them."""
    from unbandit import reporting
    from unbandit.reporting.provenance import read_log, without_folders
    from unbandit.reporting.truth import read_arm_names

    for name, usual in NEEDS_A_RULE.items():
        if given[name] != usual and given[name] not in ((), []):
            text = f"expected with {option('rule')}; add it, or leave this out."
            remedy = f"Without {option('rule')}, the report lists which rules are possible."
            raise ParameterError(text, parameter=name, value=given[name], remedy=remedy)
    logs, output, pdf, names = given["logs"], given["output"], given["pdf"], given["names"]
    log_path = options.only_log(logs)
    _check_files(log_path, output, pdf, None)
    reading = options.read_layout(*(given[name] for name in options.LAYOUT))
    asked = {name: given[name] for name in IDENTIFY_OPTIONS if given[name] is not None}
    with printer.working("Reading the log") as status:
        log, source = read_log(log_path, **reading)
        with printer.answering(options.log_name(*logs)):
            written = reporting.identification_report(
                log, given["candidates"], source=source, command=without_folders(["unbandit", *sys.argv[1:]]),
                names=None if names is None else read_arm_names(names), level=given["level"],
                **{name: given[name] for name in ("title", "author", "date", "unit", "short", "demonstration")},
                progress=lambda stage, _: status.update(stage), audience=shell_option, **asked,
            )  # fmt: skip
        files = _write(written, output, pdf, given["paper"], status)
    out = printer.console()
    out.print(written.sentence)
    if written.answer is not None:
        printer.print_notices(written.answer.warnings, getattr(log, "rows", log).reading, log.noun)
    out.print("Written: " + ", ".join(files))


def _write(written: "Page", output: str, pdf: str | None, paper: str, status: "StageLine") -> list[str]:
    """Write a report and, where asked for, print it; return the files."""
    from unbandit.reporting import write_pdf

    written.write(output)
    if pdf is None:
        return [output]
    status.update("Printing")
    write_pdf(written.html, pdf, paper=paper)
    return [output, pdf]


def _report_population(given: Mapping[str, Any]) -> None:
    """Report on the population of participants."""
    from unbandit import reporting
    from unbandit.hierarchy.likelihood import rule_of_people
    from unbandit.reporting.provenance import read_log, without_folders
    from unbandit.reporting.truth import read_arm_names

    for name, usual in NOT_OF_A_POPULATION.items():
        if given[name] != usual and given[name] not in ((), []):
            text = f"expected without {option('population')}; leave one of them out."
            raise ParameterError(text, parameter=name, value=given[name])
    asked, output, pdf, names = EstimateCommand.read(given), given["output"], given["pdf"], given["names"]
    rule = rule_of_people(given["rule"])
    _check_files(asked.log, output, pdf, None)
    told = {name: given[name] for name in POPULATION_OPTIONS if given[name] is not None}
    with printer.working("Reading the log") as status:
        log, source = read_log(asked.log, **asked.reading)
        with printer.answering(options.log_name(*asked.logs)):
            written = reporting.population_report(
                log, rule, source=source, command=without_folders(["unbandit", *sys.argv[1:]]),
                names=None if names is None else read_arm_names(names),
                **{name: given[name] for name in ("title", "author", "date", "unit", "short")},
                progress=lambda stage, _: status.update(stage), audience=shell_option, **told,
                check=options.read_check(given["no_check"], given["strict"]),
            )  # fmt: skip
        files = _write(written, output, pdf, given["paper"], status)
    out = printer.console()
    out.print(written.sentence)
    printer.print_notices(written.answer.warnings, log.reading, log.noun)
    out.print("Written: " + ", ".join(files))
    printer.insist(written.answer.check, given["strict"], written.answer.warnings)


def _check_files(log: object, output: str, pdf: str | None, truth: str | None) -> None:
    """Refuse what cannot be written or printed before any work is done."""
    if not output.lower().endswith((".html", ".htm")):
        refusal = f'expected a name that ends in .html; got "{output}". For paper, add {option("pdf", "PATH")}.'
        raise ParameterError(refusal, parameter="output")
    if truth == "-" and log == "-":
        raise ParameterError("standard input is already the log. Name a file.", parameter="truth")
    printer.check_folder(output)
    if pdf is None:
        return
    if not pdf.lower().endswith(".pdf"):
        raise ParameterError(f'expected a name that ends in .pdf; got "{pdf}".', parameter="pdf")
    if Path(pdf).absolute() == Path(output).absolute():
        raise ParameterError(f'expected a different file; got "{pdf}", where the report goes.', parameter="pdf")
    printer.check_folder(pdf)
    from unbandit.reporting.pdf import find_browser

    find_browser()


def serve(
    host: str = Option("127.0.0.1", "--host", help="Address to listen on; 0.0.0.0 admits other computers."),
    port: int = Option(8350, "--port", help="Port to listen on; 0 picks a free port."),
    no_open: bool = Option(False, "--no-open", help="Do not open the browser."),
    upload: int = Option(64, "--max-upload", help="Maximum size of a file, in megabytes."),
    rows: int = Option(10_000_000, "--max-rows", help="Maximum number of rows of a log."),
    seconds: float = Option(300, "--max-seconds", help="Maximum seconds for one answer."),
) -> None:
    """Open a page in the browser; no code needed.

    Upload a log or simulate one. The page runs on this computer and is visible only there, unless --host says
    otherwise. Stop it with Ctrl-C.

    Example:  unbandit serve
    """
    from unbandit.web.jobs import Limits
    from unbandit.web.server import serve as start

    for name, value in (("max_upload", upload), ("max_rows", rows), ("max_seconds", seconds)):
        if not value > 0:
            raise ParameterError(f"expected a number above 0; got {value}.", parameter=name, value=value)
    printer.announce_compilation()
    size = upload * 1024**2
    limits = Limits(upload=size, unpacked=8 * size, rows=rows, seconds=seconds)
    start(host, port, open_browser=not no_open, limits=limits, say=typer.echo)
