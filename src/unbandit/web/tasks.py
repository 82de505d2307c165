"""The tasks of a worker process: preview, estimate, survey, identify, population, simulate; and files they offer."""

import csv
import io
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from unbandit.contexts.result import estimate_contexts
from unbandit.contexts.rule import linear_rule_or_family
from unbandit.demonstrators import UCB, parse_rule
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import FIT
from unbandit.errors import Notice, option
from unbandit.estimators.arguments import draws, shows_part
from unbandit.formatting import joined
from unbandit.identification import check
from unbandit.instance import Bernoulli, Instance
from unbandit.log import ActionLog
from unbandit.log.availability import COLUMNS
from unbandit.reporting import LogSource, context_report, identification_report, population_report, report
from unbandit.reporting.page import Page
from unbandit.reporting.provenance import TABLES, command_line, shell_line
from unbandit.result import Estimate, json_pieces
from unbandit.web.examples import EXAMPLES
from unbandit.web.forms import ReadAs, Simulation, page_option
from unbandit.web.jobs import Download, Limits, Outcome
from unbandit.web.pages import surveyed_page
from unbandit.web.preview import Preview, Upload, preview, read, read_contexts

Say = Callable[[str, float | None], None]

_FORMULA = r"^[\s\"']*[=+\-@＝＋－＠]|^[\t\r\n]"
"""Beginnings that make a spreadsheet take a cell for a formula; some drop spaces and quotes before it."""

_FORMULA_AFTER_SEPARATOR = r"([;,|\t\r\n][\s\"']*)([=+\-@＝＋－＠])"
"""The same within a cell: a spreadsheet set to another country divides lines at semicolons or tabs, not at commas."""


def warm_up() -> None:
    """Run a small report, so that the first visitor does not wait for what every visitor needs."""
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5, 0.2]), 200, seed=1, threads=1)
    report(log, "ucb:alpha=0.25", best_mean=1.0, sigma=1.0, source=LogSource.of_bytes("log.csv", b""))


def _preview(upload: Upload, reading: ReadAs, limits: Limits, say: Say) -> Preview:
    say("Reading the file", None)
    return preview(upload, reading, limits)


def _estimate(
    upload: Upload, reading: ReadAs, rule: str, options: Mapping[str, Any], limits: Limits, say: Say
) -> Outcome:
    say("Reading the file", 0.0)
    log, data = read(upload, reading, limits)
    given = _without_idle_seed(rule, options)
    if data is None and isinstance(log, ActionLog):
        return _beside_truth(log, upload.name, rule, given, EXAMPLES[upload.example].truth(), "", say)
    origin = _origin(upload.name, data or b"", rule, given, reading)
    made = report(log, rule, progress=say, audience=page_option, **origin, **given)
    return Outcome(made.title, made.main, (*_downloads(made), *_told(options)))


def _estimate_contexts(
    upload: Upload, reading: ReadAs, rule: str, options: Mapping[str, Any], limits: Limits, say: Say
) -> Outcome:
    say("Reading the file", None)
    log, data = read_contexts(upload, reading, limits)
    say("Following the hidden rewards", None)
    answer = estimate_contexts(log, rule, **options)
    prior = {"prior": f"normal:deviation={options['prior']}"} if "prior" in options else {}
    told = {"features": _comma_list(reading.features), **options, **prior}
    origin = _origin(upload.name, data, rule, told, reading)
    made = context_report(log, answer, seed=options.get("seed", 0), audience=page_option, **origin)
    return Outcome(made.title, made.main, _downloads(made))


FROM_CHOICES = ("sigma", "bernoulli", "horizon", "prior", "seed", "level")
"""What the page asks that `identify` and `population` use."""


def _identify(upload: Upload, reading: ReadAs, options: Mapping[str, Any], limits: Limits, say: Say) -> Outcome:
    say("Reading the file", 0.0)
    log, data = read(upload, reading, limits)
    asked = {key: options[key] for key in (*FROM_CHOICES, "availability") if key in options}
    log = _noting_unused(log, options, asked, "Which rule made a log is found from its choices alone.")
    written = table_files(log.to_frame(), "log", "The log") if data is None else ()
    name, data = (upload.name, data) if data is not None else ("log.csv", written[0].data)
    origin = _origin(name, data, None, asked, reading)
    made = identification_report(log, name=upload.name, progress=say, audience=page_option, **origin, **asked)
    found = made.answer
    files = () if found is None else (
        *table_files(found.to_frame(), "candidates", "Candidates"), _everything("identify", found)
    )  # fmt: skip
    return Outcome(made.title, made.main, (_report_page(made), *files, *written, *_told(options)))


def _noting_unused(log: Any, options: Mapping[str, Any], asked: Mapping[str, Any], why: str) -> Any:
    """Have a log say which answers are not used."""
    unused = [option(key) for key in options if key not in asked]
    if not unused:
        return log
    rows: Any = log.rows if shows_part(log) else log
    noted = replace(rows, reading=(*rows.reading, Notice("not-used", f"Not used: {joined(unused)}. {why}")))
    return log.with_rows(noted) if shows_part(log) else noted


def _population(
    upload: Upload, reading: ReadAs, rule: str, options: Mapping[str, Any], limits: Limits, say: Say
) -> Outcome:
    say("Reading the file", 0.0)
    log, data = read(upload, reading, limits)
    asked = {key: options[key] for key in (*FROM_CHOICES, "values") if key in options}
    log = _noting_unused(log, options, asked, "The numbers of each person are found from choices alone.")
    own = without_fitted(rule)
    written = table_files(log.to_frame(), "log", "The log") if data is None else ()
    name, data = (upload.name, data) if data is not None else ("log.csv", written[0].data)
    origin = _origin(name, data, None, {"rule": own, "population": True, **asked}, reading)
    made = population_report(log, own, name=upload.name, progress=say, audience=page_option, **origin, **asked)
    files = (*table_files(made.answer.to_frame(), "people", "People"), *table_files(made.answer.values, "arms", "Arms"))
    return Outcome(
        made.title, made.main, (_report_page(made), *files, _everything("population", made.answer), *written)
    )


def without_fitted(rule: str) -> str:
    """Leave out the numbers of a rule that are to be fitted: those that a population leaves open.

    >>> without_fitted("learning-softmax:rate=fit,temperature=0.4"), without_fitted("q-learning:fit")
    ('learning-softmax:temperature=0.4', 'q-learning')
    """
    name, _, numbers = rule.partition(":")
    kept = [part for part in numbers.split(",") if part and part.partition("=")[2] != FIT.value and part != FIT.value]
    return f"{name}:{','.join(kept)}" if kept else name


def _survey(upload: Upload, reading: ReadAs, options: Mapping[str, Any], limits: Limits, say: Say) -> Outcome:
    say("Reading the file", None)
    log, _ = (read_contexts if reading.contexts else read)(upload, reading, limits)
    used: tuple[str, ...] = ("sigma", "bernoulli", "horizon", "best_mean", "level", "availability")
    used = ("sigma", "prior", "level", "seed") if reading.contexts else used
    asked = {key: options[key] for key in used if key in options}
    found = check(log, progress=lambda stage: say(stage, None), **asked)
    downloads = (*table_files(found.to_frame(), "rules", "Rules"), _everything("check", found))
    return Outcome("Which rules fit this log?", surveyed_page(found, upload.name), downloads)


def _simulate(simulation: Simulation, limits: Limits, say: Say) -> Outcome:
    say("Playing the rule", 0.0)
    instance, rule = simulation.instance(), parse_rule(simulation.rule)
    log = rule.demonstrate(instance, simulation.horizon, seed=simulation.seed)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    known: dict[str, Any] = {"bernoulli": True} if isinstance(instance.noise, Bernoulli) else {"sigma": instance.sigma}
    known["best_mean"] = instance.best_mean
    command = f"{simulation.command} --truth truth.csv && "
    return _beside_truth(log, "a simulation", simulation.rule, known, truth, command, say)


def _beside_truth(
    log: ActionLog, name: str, rule: str, options: Mapping[str, Any], truth: Mapping[str, float], before: str, say: Say
) -> Outcome:
    """Report on a log that was made here, with the truth, and with the files from which it can be made again."""
    written = table_files(log.to_frame(), "log", "The log")
    known = table_files(pl.DataFrame({"arm": list(truth), "mean": list(truth.values())}), "truth", "The truth")
    command = f"{before}{shell_line('log.csv', rule_or_family(rule), options)} --truth truth.csv"
    source = LogSource.of_bytes("log.csv", written[0].data)
    made = report(
        log, rule, source=source, name=name, command=command, truth=truth, progress=say, audience=page_option, **options
    )
    return Outcome(made.title, made.main, (*_downloads(made), *written, known[0], *_told(options)))


def _without_idle_seed(rule: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out a seed where nothing is drawn: a visitor who fills it in means no harm."""
    drawn = draws(options.get("method"), rule_or_family(rule))
    return {key: value for key, value in options.items() if key != "seed" or drawn}


def _origin(name: str, data: bytes, rule: str | None, options: Mapping[str, Any], reading: ReadAs) -> dict[str, Any]:
    """Return where a report comes from: the file, and the command that reads it the same way."""
    named = linear_rule_or_family if reading.contexts else rule_or_family
    first = [] if rule is None else ["--rule", str(named(rule))]
    columns, arms, duplicates, blank, sheet = reading.plain.values()
    words = ["--columns", _comma_list([f"{role}={column}" for role, column in columns.items()])] if columns else []
    words += ["--arms", _comma_list(arms)] if arms else []
    words += ["--duplicates", duplicates] if duplicates else []
    words += ["--blank", blank] if blank else []
    words += ["--sheet", sheet] if sheet else []
    command = f"{command_line(name, first, options)} {shlex.join(words)}".rstrip()
    return {"source": LogSource.of_bytes(name, data), "command": command}


def _comma_list(names: Sequence[str]) -> str:
    """Write a list with commas, and names that have a comma in quotes."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _report_page(made: Page) -> Download:
    return Download("report.html", "Report", "text/html; charset=utf-8", made.html.encode())


def _everything(name: str, answer: Any) -> Download:
    """Return an answer in the form that `--json` prints, without the draws, and with options by their fields."""
    if isinstance(answer, Estimate):  # of very many rows
        text = "".join(json_pieces(answer, audience=page_option))
    else:
        text = json.dumps(answer.to_dict(page_option), indent=2, allow_nan=False)
    return Download(f"{name}.json", "Everything (JSON)", "application/json", text.encode())


def _downloads(made: Any) -> tuple[Download, ...]:
    tables = table_files(made.answer.to_frame(), "estimate", "Table")
    return (_report_page(made), *tables, _everything("estimate", made.answer))


def _told(options: Mapping[str, Any]) -> tuple[Download, ...]:
    """Return the tables that were typed in, as the files that the command of a report reads."""
    tables = []
    if "availability" in options:
        rows = [(arm, first or None, last or None) for arm, (first, last) in options["availability"].items()]
        frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
        tables.append((frame, "availability", "When arms could be chosen"))
    if "starting_pulls" in options:
        tables.append((options["starting_pulls"].to_frame(), "starting_pulls", "Pulls before the log"))
    return tuple(table_files(frame, TABLES[name].removesuffix(".csv"), label)[0] for frame, name, label in tables)


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before all within texts and column names that a spreadsheet would run as a formula.

    Numbers stay as they are.
    """

    def escaped(cell: pl.Expr) -> pl.Expr:
        number = cell.cast(pl.Float64, strict=False).is_not_null()
        inside = cell.str.replace_all(_FORMULA_AFTER_SEPARATOR, "${1}'${2}")
        first = pl.when(cell.str.contains(_FORMULA)).then(pl.lit("'")).otherwise(pl.lit(""))
        return pl.when(number).then(cell).otherwise(first + inside)

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    names = pl.DataFrame({"name": frame.columns}, schema={"name": pl.String}).select(escaped(pl.col("name")))
    escaped_texts = frame.with_columns(escaped(pl.col(name)).alias(name) for name in texts)
    return escaped_texts.rename(dict(zip(frame.columns, names.to_series(), strict=True)))


def table_files(frame: pl.DataFrame, name: str, label: str) -> tuple[Download, ...]:
    """Return a table as CSV, for spreadsheets, and as Parquet, for programs."""
    csv_bytes, parquet_bytes = io.BytesIO(), io.BytesIO()
    without_formulas(frame).write_csv(csv_bytes)
    frame.write_parquet(parquet_bytes)
    parquet = "application/vnd.apache.parquet"
    return (
        Download(f"{name}.csv", f"{label} (CSV)", "text/csv; charset=utf-8", csv_bytes.getvalue()),
        Download(f"{name}.parquet", f"{label} (Parquet)", parquet, parquet_bytes.getvalue()),
    )


TASKS: Mapping[str, Callable[..., Any]] = {
    "preview": _preview, "estimate": _estimate, "contexts": _estimate_contexts, "survey": _survey,
    "identify": _identify, "population": _population, "simulate": _simulate,
}  # fmt: skip
