"""`unbandit estimate`: from a log to a ranked table; with --follow, again and again as the log grows."""

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Option

from unbandit.cli import options
from unbandit.cli import output as printer
from unbandit.cli.options import EstimateCommand
from unbandit.errors import LogError, NotIdentifiable, ParameterError, UnbanditError, option, shell_option
from unbandit.formatting import short_numbers

if TYPE_CHECKING:
    from unbandit.estimators.stream import StreamingEstimate
    from unbandit.log.follower import Follower

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
    features: options.Features = None,
    predict: str = Option(
        None, "--predict", metavar="FILE", help="With --features: also predict values for the rows of this file."
    ),
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
    windows: options.Windows = None,
    availability: options.Availability = None,
    seed: options.OptionalSeed = None,
    no_check: options.NoCheck = False,
    strict: options.Strict = False,
    sensitivity: bool = Option(False, "--sensitivity", help="Also estimate with changed parameters of the rule."),
    as_json: options.Json = False,
    output: str = Option(None, "--output", "-o", help="Write the table (.csv, .tsv, .parquet) or .json."),
    follow: bool = Option(False, "--follow", help="Continue as the log grows; with --json, one object per line."),
    every: float = Option(
        None, "--every", metavar="SECONDS", help="With --follow: how often to check the log; default 2."
    ),
    snapshot: str = Option(None, "--snapshot", metavar="FILE", help=SNAPSHOT),
    until_idle: float = Option(
        None, "--until-idle", metavar="SECONDS", help="With --follow: stop if nothing was added for this long."
    ),
) -> None:
    """Estimate the value of every arm of a log.

    LOG is CSV, TSV, JSON lines, Parquet, Arrow or a spreadsheet (optionally gzipped), or - for standard input. It needs
    a column "arm"; optional columns are "demonstration", "round" (numbers or times) and "reward" (known rewards, for
    method posterior). A table of final counts has "arm" and "pulls". Several files, a folder or a pattern in quotes
    form one log. A large log is scanned and need not fit in memory.

    Example:  unbandit estimate log.csv --rule ucb1 --sigma 0.5

    With --features, a log has one row per offer ("round", "arm", "chosen" and features) or, for disjoint models, one
    row per round ("arm" and features). The answer is the coefficients of a linear model.

    With --follow, the table is printed again whenever the log has grown: a CSV or JSON lines file to which lines are
    added, or a folder to which Parquet files are added.
    """
    if features is not None:
        from unbandit.cli import contexts

        contexts.estimate(context.params)
        return
    if predict is not None:
        needed = option("features")
        raise ParameterError(f"expected only with {needed}; leave it out, or add {needed}.", parameter="predict")
    from unbandit.demonstrators.family import RuleFamily
    from unbandit.estimators import estimate as estimate_log
    from unbandit.estimators.arguments import draws, one_demonstration
    from unbandit.log.counts import refuse_duplicates
    from unbandit.log.partial import read_or_scan
    from unbandit.result import json_pieces

    asked = EstimateCommand.read(context.params)
    printer.check_output(output, ".json")
    for name, value in (("every", every), ("snapshot", snapshot), ("until_idle", until_idle)):
        if not follow and value is not None:
            needed = option("follow")
            raise ParameterError(f"expected only with {needed}; leave it out, or add {needed}.", parameter=name)
    if follow:
        for name in ("sensitivity", "windows", "demonstration", "blank", "availability"):
            if context.params[name]:
                why = ": following a log does not keep its rounds" if name == "availability" else ""
                refusal = f"expected without {option('follow')}{why}; leave one of them out."
                raise ParameterError(refusal, parameter=name)
        refuse_duplicates(duplicates)  # a table of counts is not followed
        printer.announce_compilation()
        _follow(asked, 2.0 if every is None else every, snapshot, until_idle, as_json, output)
        return
    with printer.working("Estimating"):
        path, is_family = logs[0] if len(logs) == 1 else logs, isinstance(asked.rule, RuleFamily)
        looked_at = (availability, windows, demonstration)
        needs_rounds = is_family or draws(method, asked.rule) or any(each is not None for each in looked_at)
        log = read_or_scan(path, **asked.reading, scan=not needs_rounds)
        with printer.answering(options.log_name(*asked.logs)):
            log = one_demonstration(log, demonstration, "estimate")
            if windows is not None:
                from unbandit.estimators.stretches import check_stretches

                check_stretches(log, asked.rule, windows, asked.options)
            answer = estimate_log(log, asked.rule, **asked.options)
            others, found = {}, None
            if sensitivity:
                from unbandit.estimators.variants import sensitivity as estimate_nearby  # most answers are of one rule

                others = estimate_nearby(log, asked.rule, answer=answer, **asked.options)
            if windows is not None:
                from unbandit.estimators.stretches import stretches, with_stretches  # most answers are of the whole log

                used = answer.rule if isinstance(asked.rule, RuleFamily) else asked.rule
                found = stretches(log, used, windows=windows, **asked.options)
                answer = with_stretches(answer, found)
    if answer.seed is None:
        answer = replace(answer, seed=seed)  # as given, even if the method draws nothing
    told = {} if found is None else found.to_dict()
    more = {"stretches": {name: told[name] for name in ("drifted", "furthest", "rows")}} if told else {}
    pieces = partial(json_pieces, answer, others, shell_option, more)
    if not printer.deliver(answer, output, as_json, json_pieces=pieces, written=f"{len(answer):,} rows"):
        printer.insist(answer.check, strict, answer.warnings)
        return
    warnings = printer.print_misfit(answer.warnings)
    if output is None or others:
        printer.print_estimate(answer)
    elif summary := printer.summary_of_many(answer):
        typer.echo(summary, err=True)
    if others:
        printer.print_sensitivity(answer, others)
    if found is not None:
        printer.print_stretches(found)
    printer.print_notices(warnings, answer.notes, answer.noun)
    printer.insist(answer.check, strict, answer.warnings)


def _follow(
    asked: EstimateCommand, every: float, snapshot: str | None, until_idle: float | None, as_json: bool,
    output: str | None,
) -> None:  # fmt: skip
    """Read what is there, print, and continue as more comes, until the log is idle or Ctrl-C."""
    from unbandit.estimators.stream import StreamingEstimate
    from unbandit.log.follower import Follower

    for name, value in (("every", every), ("until_idle", until_idle)):
        if value is not None and not 0 < value < float("inf"):
            raise ParameterError(f"expected a number of seconds above 0; got {value:g}.", parameter=name, value=value)
    if asked.log == "-":
        text = "expected a file or a folder; got standard input, which can be read only once."
        raise ParameterError(text, parameter="follow")
    if snapshot is not None and not Path(snapshot).absolute().parent.is_dir():
        raise ParameterError(f'expected a file in an existing folder; got "{snapshot}".', parameter="snapshot")
    streaming = StreamingEstimate(asked.rule, arms=asked.reading["arms"], snapshot=snapshot, **asked.options)
    reading = asked.reading
    if reading["sheet"] is not None:
        raise ParameterError(f"expected without {option('follow')}: a spreadsheet does not grow.", parameter="sheet")
    follower = Follower(asked.log, streaming.log, reading["columns"], streaming.position, header=reading["header"])
    answers = _Printer(streaming, follower, as_json, output)
    news = saved = time.monotonic()
    try:
        while True:
            for _ in follower.news():
                news, answers.due = time.monotonic(), True
                if news - saved > every:
                    saved = _save(streaming, follower)
            if answers.due:
                saved = _save(streaming, follower)
                answers.print()
            left = float("inf") if until_idle is None else news + until_idle - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(every, left))
    except KeyboardInterrupt:
        if follower.settled:
            _save(streaming, follower)
            answers.print()
        else:  # some rows were read and counted only in part: the last snapshot does not have them
            typer.echo("note: stopped while rows were being read; these rows are left out.", err=True)
        raise typer.Exit(130) from None
    if answers.refusal is not None:
        raise answers.refusal


def _save(streaming: "StreamingEstimate", follower: "Follower") -> float:
    """Write the snapshot, if one was asked for, and return the time."""
    if streaming.snapshot is not None:
        streaming.position = follower.position()
        streaming.save()
    return time.monotonic()


class _Printer:
    """Printer of an answer whenever there is a new one, and of each notice once."""

    def __init__(self, streaming: "StreamingEstimate", follower: "Follower", as_json: bool, output: str | None) -> None:
        self._streaming, self._follower, self._as_json, self._output = streaming, follower, as_json, output
        self.due = True
        self.refusal: UnbanditError | None = None
        self._printed: set[str] = set()

    def print(self) -> None:
        """Print the table, or a line of JSON; while the log is too short for an answer, print what is missing."""
        from unbandit.result import json_pieces

        if not self.due:
            return
        self.due, self.refusal = False, None
        try:
            with printer.answering():
                answer = self._streaming.estimate()
        except (LogError, NotIdentifiable) as error:
            self.refusal = error
            self._print_once(f"waiting: {error.phrased(shell_option)}")
            return
        answer = replace(answer, notes=(*self._follower.notices, *answer.notes))
        if self._output is not None:
            printer.write_answer(answer, self._output, json_pieces(answer, audience=shell_option))
        if self._as_json:
            typer.echo(json.dumps(answer.to_dict(shell_option), allow_nan=False))
            return
        rounds = f"{self._streaming.log.lengths.sum():,} rounds"
        printer.print_estimate(answer, f"{short_numbers(answer.rule)}, method {answer.method}, after {rounds}")
        new = [[each for each in said if self._is_new(each.text)] for said in (answer.warnings, answer.notes)]
        printer.print_notices(new[0], new[1], answer.noun)

    def _is_new(self, message: str) -> bool:
        known = message in self._printed
        self._printed.add(message)
        return not known

    def _print_once(self, message: str) -> None:
        if self._is_new(message):
            typer.echo(message, err=True)
