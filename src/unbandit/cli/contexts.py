"""Logs with contexts in the shell: `estimate`, `report` and `check` with --features; `simulate` with linear rules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from unbandit import checks
from unbandit.cli import options
from unbandit.cli import output as printer
from unbandit.errors import ParameterError, option, printable, shell_option

if TYPE_CHECKING:
    from rich.console import Console

    from unbandit.contexts import ContextInstance, ContextLog, LinearRule
    from unbandit.contexts.posterior import ContextPosterior
    from unbandit.contexts.result import ContextEstimate, OfferedArm

PLAIN = {
    "best_mean": None, "anchor": None, "scale": "known", "reference": None, "horizon": None, "bernoulli": False,
    "constant": None, "duplicates": None, "pool": False, "demonstration": None, "resamples": None,
    "starting_pulls": None, "kept": None, "windows": None, "availability": None, "sensitivity": False, "blank": None,
    "follow": False, "every": None, "snapshot": None, "until_idle": None,
}  # fmt: skip
"""Options of `estimate` for logs without contexts, each with its default."""

CLICKS = "for clicks it is about the root of p (1 - p), such as 0.3 for a click rate of 10%"
INSTEAD = {
    "bernoulli": f"For rewards of 0 and 1 give {option('sigma')} instead: {CLICKS}.",
    "sensitivity": f"Compare answers with other values of {option('sigma')}, {option('prior')} and the rule's numbers.",
    "windows": "Leave it out: coefficients are assumed to stay the same in all rounds.",
    "pool": "Leave it out: each demonstration is a separate learner with its own coefficients.",
    "demonstration": "Leave it out: all demonstrations are read, each as a separate learner.",
    "best_mean": "Leave it out: no mean needs to be known.",
    "anchor": "Leave it out: no mean needs to be known.",
    "means": f"Give coefficients with {option('theta')} instead.",
}
"""What to do about such an option, where there is more to say than to leave it out."""

PLAIN_SIMULATED = {
    "instance": None, "means": None, "bernoulli": False, "availability": None, "counts": False, "draw": "every",
}  # fmt: skip
"""The same of `simulate`."""

IN_JSON = "--json or -o FILE.json"
"""Where everything stands; a table has the coefficients alone."""
MOST_ARMS = 10  # of which the probability to be the best is printed


def estimate(given: Mapping[str, Any]) -> None:
    """Estimate the coefficients of a log with contexts, given the parameters of the command by name."""
    from unbandit.contexts.result import warnings_and_notes

    output = given["output"]
    printer.check_output(output, ".json")
    log, answer = _answered(given)
    written = f"{len(answer.to_frame()):,} coefficients"
    if answer.predictions is not None:
        there = str(output).lower().endswith(".json")
        values = f"{len(answer.predictions):,} values of the requested contexts"
        written += f" and {values}" if there else f", without the {values}: for these use {IN_JSON}"
    as_dict = partial(answer.to_dict, shell_option)
    if printer.deliver(answer, output, given["as_json"], as_dict=as_dict, written=written):
        notices = printer.print_misfit(answer.notices)
        if output is None:
            _print(answer)
        printer.print_notices(*warnings_and_notes(log, notices), answer.noun)
    printer.insist(answer.check, given["strict"])


def report(given: Mapping[str, Any]) -> None:
    """Write a report of a log with contexts."""
    from unbandit import reporting
    from unbandit.contexts.result import warnings_and_notes
    from unbandit.reporting.provenance import without_folders

    for name in ("population", "truth", "sensitivity", "names", "unit", "title", "author", "date", "short"):
        if given[name]:
            text = f"cannot be used with {option('features')}: reports of logs with features do not have it yet."
            raise ParameterError(text, parameter=name, value=given[name], remedy="Leave it out.")
    logs, output, pdf = given["logs"], given["output"], given["pdf"]
    log, answer = _answered(given)
    source = reporting.LogSource.of_file(logs[0]) if len(logs) == 1 and logs[0] != "-" else None
    command = without_folders(["unbandit", *sys.argv[1:]])
    written = reporting.context_report(
        log, answer, source=source, command=command, seed=given["seed"] or 0, audience=shell_option
    )
    written.write(output)
    if pdf is not None:
        reporting.write_pdf(written.html, pdf, paper=given["paper"])
    out = printer.console()
    notices = printer.print_misfit(answer.notices)
    out.print(written.sentence)
    printer.print_notices(*warnings_and_notes(log, notices), answer.noun)
    out.print("Written: " + ", ".join([output] + ([] if pdf is None else [pdf])))
    printer.insist(answer.check, given["strict"])


def _answered(given: Mapping[str, Any]) -> tuple[ContextLog, ContextEstimate]:
    """Read the log that a command is given, and estimate its coefficients."""
    from unbandit.contexts.result import estimate_contexts
    from unbandit.contexts.rule import linear_rule_or_family
    from unbandit.log.sources import Layout

    rule, read = linear_rule_or_family(given["rule"]), reader(given, given["logs"])
    if given["method"] not in (None, "posterior"):
        text = f'expected posterior, the only one with {option("features")}; got "{given["method"]}".'
        raise ParameterError(text, parameter="method", value=given["method"], remedy="Leave it out.")
    deviation = prior_deviation(given["prior"])
    check = options.read_check(given["no_check"], given["strict"]) is not False
    with printer.working("Estimating"):
        log = read()
        with printer.answering(options.log_name(*given["logs"])):
            answer = estimate_contexts(
                log, rule, sigma=given["sigma"], prior=deviation, level=given["level"], particles=given["particles"],
                seed=given["seed"] or 0, predict=given.get("predict"), layout=Layout(None, not given["no_header"]),
                check=check,
            )  # fmt: skip
    return log, answer


def reader(given: Mapping[str, Any], logs: Sequence[str]) -> Callable[[], ContextLog]:
    """Check what a command was told of a log with contexts; return what reads it."""
    from unbandit.contexts import ContextLog

    _refuse_others(given, PLAIN, option("features"))
    if given["sigma"] is None:
        text = "expected the standard deviation of a reward, without which coefficients have no scale."
        remedy = f"Give it as in {option('sigma', 0.5)}; {CLICKS}."
        raise ParameterError(text, parameter="sigma", remedy=remedy)
    reading = options.read_layout(*(given[name] for name in ("columns", "arms", "sheet", "no_header")))
    features = options.read_names(given["features"], "features")
    return partial(ContextLog.read, logs[0] if len(logs) == 1 else logs, features=features, **reading)


def _refuse_others(given: Mapping[str, Any], others: Mapping[str, Any], other: str) -> None:
    """Refuse options that mean nothing for a log with contexts."""
    for name, usual in others.items():
        if given.get(name, usual) not in (usual, [], ()):
            remedy = INSTEAD.get(name, "Leave it out: it is for logs without features.")
            raise ParameterError(f"cannot be used with {other}.", parameter=name, value=given[name], remedy=remedy)


def prior_deviation(text: str | None) -> float:
    """Return the deviation of every coefficient beforehand; refuse a prior that is not around 0."""
    from unbandit.inference import NormalPrior, parse_prior

    prior = NormalPrior() if text is None else parse_prior(text)
    if not isinstance(prior, NormalPrior) or prior.mean != 0:
        refusal = f"expected a normal prior around 0 for coefficients; got {prior}."
        raise ParameterError(refusal, parameter="prior", value=text, remedy="Write it as normal:deviation=1.")
    return prior.deviation


def _print(answer: ContextEstimate) -> None:
    """Print what is known of each learner, and predictions."""
    from unbandit.formatting import counted, short_numbers

    out, found = printer.console(), answer.posterior
    rounds = sum(each.rounds for each in answer.posteriors.values())
    learners = f", {counted(len(answer.posteriors), answer.noun)}, each a separate learner" if answer.several else ""
    out.print(
        f"{short_numbers(found.rule)}, {counted(rounds, 'round')}{learners}, {found.level * 100:g}% intervals",
        style="bold",
    )
    shown = list(answer.posteriors.items())[: printer.MOST_TABLES]
    for name, each in shown:
        if answer.several:
            out.print(printable(f"{answer.noun} {name}"), style="bold")
        _print_learner(out, each, answer.offers[name], answer.best[name])
    if (left := len(answer.posteriors) - len(shown)) > 0:
        out.print(f"... and {counted(left, f'more {answer.noun}')}; see all of them with -o FILE or --json.")
    if answer.predictions is not None:
        frame = answer.predictions
        texts = {"arm", "demonstration"}
        heads = [(name, printer.TEXT if name in texts else printer.NUMBER) for name in frame.columns]
        cells = [[_number(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in frame.rows()]
        out.print("Values of the requested contexts", style="bold")
        out.print(printer.new_table(heads, cells[: printer.MOST_LINES]))
        printer.say_left_out(out, len(cells), "values", where=IN_JSON)


def _print_learner(
    out: Console, found: ContextPosterior, offers: Sequence[OfferedArm], best: Mapping[str, float]
) -> None:
    """Print coefficients, how well direction and length are known, and how often each arm was best."""
    from unbandit.contexts.result import degrees
    from unbandit.formatting import interval, probability

    by_arm = found.names[0][1] is not None
    headings = printer.columns(printer.TEXT, "feature", *(["arm"] if by_arm else []))
    headings += [
        *printer.columns(printer.NUMBER, "value"),
        *printer.columns(printer.WORD, f"{found.level * 100:g}% interval", "verdict"),
    ]
    lows, highs = found.interval()
    rows = zip(found.names, found.mean, lows, highs, found.verdicts, strict=True)
    lines = [
        [feature, *([] if arm is None else [arm]), _number(value), interval(low, high, _number), verdict]
        for (feature, arm), value, low, high, verdict in rows
    ]
    out.print(printer.new_table(headings, lines[: printer.MOST_LINES]))
    printer.say_left_out(out, len(lines), "coefficients")
    out.print(f"Direction known to {degrees(found.angle)}; length {interval(*found.length())}.")
    out.print("How often an arm was the best offer of its round", style="bold")
    headings = [
        *printer.columns(printer.TEXT, "arm"), *printer.columns(printer.NUMBER, "offered", "chosen", "best"),
        *printer.columns(printer.WORD, f"{found.level * 100:g}% interval", *(["P(best)"] if best else [])),
    ]  # fmt: skip
    lines = [
        [each.arm, f"{each.offered:,}", f"{each.chosen / each.offered:.0%}", f"{each.best:.0%}",
         f"{each.low:.0%} to {each.high:.0%}", *([probability(best[each.arm])] if best else [])]
        for each in offers[:MOST_ARMS]
    ]  # fmt: skip
    out.print(printer.new_table(headings, lines))
    printer.say_left_out(out, len(offers), "arms", MOST_ARMS, IN_JSON)
    if best:
        where = "at the average context" if by_arm else "at its own features, among all arms"
        out.print(f"P(best): the probability of being the best arm {where}.")


def _number(value: float) -> str:
    """Write a number as the tables of other commands have it."""
    return f"{value + 0.0:.4g}"


def simulate(rule: LinearRule, given: Mapping[str, Any]) -> None:
    """Simulate a rule that chooses by features, and write a log in long form."""
    from unbandit.contexts import ContextInstance
    from unbandit.files import write_table

    _refuse_others(given, PLAIN_SIMULATED, rule.name)
    if given["device"] not in ("auto", "cpu"):
        text = f'expected cpu: rules that choose by features are not played on a GPU; got "{given["device"]}".'
        raise ParameterError(text, parameter="device", value=given["device"], remedy="Leave it out.")
    output, truth, horizon = given["output"], given["truth"], checks.whole("horizon", given["horizon"])
    for name, path in (("output", output), ("truth", truth)):
        if path not in (None, "-"):
            printer.check_output(path, parameter=name)
    printer.check_truth_apart(output, truth)
    instance = ContextInstance(_theta(given["theta"], rule), 1.0 if given["sigma"] is None else given["sigma"])
    with printer.working(f"Simulating {given['runs']:,} x {horizon:,} rounds"):
        contexts = _contexts(given, rule, instance, horizon)
        asked = {name: given[name] for name in ("runs", "seed", "threads")}
        log = rule.demonstrate(instance, contexts, **asked)
        table = log.to_frame()
    printer.write_log(table, output, f"{given['runs']:,} x {horizon:,} rounds of {rule} ({len(log.arms)} arms)")
    if truth is not None:
        import polars as pl

        features, arms = zip(*rule.design(log).names, strict=True)
        values = {"feature": features, "arm": pl.Series(arms, dtype=pl.String), "value": instance.theta.reshape(-1)}
        write_table(lambda: pl.DataFrame(values), truth)


def _theta(text: str | None, rule: LinearRule) -> list[Any]:
    """Read `1,0.5,-1`, or for a disjoint model one such list per arm, with semicolons between them."""
    try:
        rows = [[float(part) for part in row.split(",")] for row in (text or "").split(";")]
    except ValueError:
        rows = []
    if not rows or len({len(row) for row in rows}) > 1 or (len(rows) > 1) != rule.disjoint:
        example = "1,0.5;0,1 (one list per arm)" if rule.disjoint else "1,0.5,-1"
        refusal = f'expected the coefficients of {rule.name}, as in {example}; got "{text or ""}".'
        remedy = "An intercept is the last number."
        raise ParameterError(refusal, parameter="theta", value=text, remedy=remedy)
    return rows if rule.disjoint else rows[0]


def _contexts(given: Mapping[str, Any], rule: LinearRule, instance: ContextInstance, horizon: int) -> ContextLog:
    """Return the offers: those of a log, or random ones."""
    from unbandit.contexts import ContextLog
    from unbandit.contexts.simulation import random_contexts

    if given["contexts"] is not None:
        features = options.read_names(given["features"], "features")
        log = ContextLog.read(given["contexts"], features=features).select(0)
        if log.rounds < horizon:
            text = f"expected at most the {log.rounds:,} rounds of {given['contexts']}; got {horizon:,}."
            raise ParameterError(text, parameter="horizon", value=horizon)
        return log.select(0, horizon)
    size = instance.theta.shape[-1] - rule.intercept
    if size < 1:
        raise ParameterError("expected a coefficient of a feature, not of the intercept alone.", parameter="theta")
    count, names = _arms(given["arms"], instance, rule)
    return random_contexts(horizon, count, size, alike=rule.disjoint, seed=given["seed"], names=names)


def _arms(text: str | None, instance: ContextInstance, rule: LinearRule) -> tuple[int, list[str] | None]:
    """Return how many arms there are, and their names where these are given."""
    count = len(instance.theta) if rule.disjoint else 5
    if text is None:
        return count, None
    if text.strip().isdigit():
        number, names = checks.whole("arms", int(text), 2), None
    else:
        names = options.read_names(text, "arms")
        number = len(names)
    if rule.disjoint and number != count:
        raise ParameterError(f"expected {count}, one for each list of theta; got {number}.", parameter="arms")
    return number, names
