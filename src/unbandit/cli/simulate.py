"""`unbandit simulate`, and the lists of what it can: `unbandit demonstrators` and `unbandit datasets`."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer import Argument, Option

from unbandit.cli import options
from unbandit.cli import output as printer
from unbandit.errors import ParameterError, option

if TYPE_CHECKING:
    import polars

    from unbandit.log.tallies import Tallies


def simulate(
    context: typer.Context,
    rule: str = Option(..., "--rule", help="The rule to simulate: name:key=value,... (see unbandit demonstrators)."),
    horizon: int = Option(..., "--horizon", help="Number of rounds of each demonstration."),
    instance: options.InstanceName = None,
    runs: int = Option(1, "--runs", help="Number of demonstrations."),
    seed: int = Option(0, "--seed", help="Seed; the same seed gives the same log on any machine."),
    means: options.Means = None,
    sigma: options.MeansSigma = None,
    bernoulli: options.MeansBernoulli = False,
    arms: options.InstanceArms = None,
    availability: options.Availability = None,
    output: str = Option("-", "--output", "-o", help="File for the log: .csv, .tsv, .parquet, .csv.gz or .tsv.gz."),
    truth: str = Option(None, "--truth", help="Also write the arms' true means: .csv, .tsv or .parquet."),
    counts: bool = Option(False, "--counts", help="Write pull counts, one row per arm, instead of every round."),
    draw: str = Option("every", "--draw", help="With --counts: draw every reward or, with UCB, only those needed."),
    theta: str = Option(None, "--theta", metavar="1,-0.5", help="Coefficients, for linucb, lints and the like."),
    contexts: str = Option(None, "--contexts", metavar="LOG", help="With --theta: use the offers of this log."),
    features: str = Option(None, "--features", metavar="X1,X2", help="With --contexts: the columns with features."),
    threads: options.Threads = None,
    device: options.Device = "auto",
) -> None:
    """Simulate a rule and write its action log.

    With --counts, write how often it pulled each arm.

    INSTANCE is a data set (see unbandit datasets); or give --means and --sigma (or --bernoulli). Rules that choose by
    features need --theta instead; their offers are random, or those of --contexts.

    Example:  unbandit simulate battery-high --rule sae --horizon 5000 --runs 100 -o log.parquet --truth truth.csv
    """
    from unbandit.contexts.rule import LinearRule, parse_rule

    chosen = parse_rule(rule)
    if isinstance(chosen, LinearRule):
        from unbandit.cli import contexts as with_contexts

        with_contexts.simulate(chosen, context.params)
        return
    for name, value in (("theta", theta), ("contexts", contexts), ("features", features)):
        if value is not None:
            text = f"expected only with a rule that chooses by features; got {chosen.name}."
            raise ParameterError(text, parameter=name, value=value, remedy="Leave it out.")
    faced = options.read_instance("simulate", instance, means, sigma, bernoulli, arms)
    for name, path in (("output", output), ("truth", truth)):
        if path != "-":
            printer.check_output(path, parameter=name)
    printer.check_truth_apart(output, truth)
    if draw != "every" and not counts:
        raise ParameterError(
            f"{option('draw', draw)}: expected with {option('counts')}, because a log shows every round. "
            f"Add {option('counts')}."
        )
    if availability is not None and counts:
        raise ParameterError(f"expected without {option('counts')}: counts do not show it.", parameter="availability")
    device = "cpu" if (draw != "every" or availability is not None) and device == "auto" else device
    device = options.choose_device(device, max(runs, 0) * max(horizon, 0))
    with printer.working(f"Simulating {runs:,} x {horizon:,} rounds"):
        if counts:
            asked = {"runs": runs, "seed": seed, "threads": threads, "draw": draw, "device": device}
            table = _counts_table(chosen.evidence(faced, horizon, **cast(Any, asked)), faced.arms)
        else:
            asked = {"runs": runs, "seed": seed, "threads": threads, "device": device, "availability": availability}
            log = chosen.demonstrate(faced, horizon, **cast(Any, asked))
            table = log.to_frame()
    printer.write_log(table, output, f"{runs:,} x {horizon:,} rounds of {chosen} on {faced.name} ({len(faced)} arms)")
    if truth is not None:
        printer.write_truth(faced, truth)


def _counts_table(evidence: "Tallies", arms: Sequence[str]) -> "polars.DataFrame":
    """Return one row per run and arm: its pulls and, of an index rule, the counts at its switching round.

    `switching_pulls` are the arm's own there, `switching_pulls_of_best` those of the run's most-pulled arm; empty if
    an arm has no switching round. A single run needs no column `demonstration`.
    """
    import numpy as np
    import polars as pl

    runs = len(evidence.pulls)
    columns: dict[str, Any] = {
        "demonstration": pl.Series(np.repeat(np.arange(1, runs + 1), len(arms))).cast(pl.String),
        "arm": pl.Series(arms, dtype=pl.String).gather(np.tile(np.arange(len(arms)), runs)),
        "pulls": evidence.pulls.reshape(-1),
    }
    if evidence.own is not None:
        columns["switching_pulls"] = evidence.own.reshape(-1)
        columns["switching_pulls_of_best"] = evidence.of_best.reshape(-1)
    if runs == 1:
        del columns["demonstration"]
    return pl.DataFrame(columns).with_columns(pl.col("^switching_.*$").replace(0, None))


def demonstrators(
    names: Annotated[list[str] | None, Argument(metavar="RULE", help="Rules whose parameters to show.")] = None,
    as_json: bool = Option(False, "--json", help="Print the rules' JSON schemas."),
) -> None:
    """List the rules or, given a name, the parameters of a rule.

    Example:  unbandit demonstrators ucb
    """
    from unbandit.contexts.rule import parse_rule
    from unbandit.demonstrators import rules
    from unbandit.demonstrators.base import linear_rules
    from unbandit.demonstrators.rule import Rule

    named: list[Rule] = [parse_rule(name, "RULE") for name in names or ()]
    chosen: dict[str, type[Rule]] = {each.name: type(each) for each in named} or {**rules(), **linear_rules()}
    if as_json:
        listed = {
            name: {
                "title": rule.title or name,
                "aliases": rule.aliases,
                "summary": rule.summary(),
                "parameters": rule.model_json_schema()["properties"],
            }
            for name, rule in chosen.items()
        }
        typer.echo(json.dumps(listed, indent=2))
        return
    column = max(map(len, chosen)) + 2
    for name, rule in chosen.items():
        also = f" (also: {', '.join(rule.aliases)})" if rule.aliases else ""
        typer.echo(f"{name:{column}}{rule.title or name}{also}")
        typer.echo(f"{'':{column}}{rule.summary()}")
        fields = rule.model_fields.items() if names else ()
        for key, field in sorted(fields, key=lambda each: each[0] in {"ties", *rule.unwritten}):  # shared ones last
            usual = "" if field.default is None else f" (default {field.default})"
            typer.echo(f"  {key}: {field.description or ''}{usual}")
    if not names:
        typer.echo("\nTo see the parameters of a rule:  unbandit demonstrators ucb")


def datasets(as_json: options.Json = False) -> None:
    """List the data sets for unbandit simulate.

    Example:  unbandit datasets
    """
    from unbandit.datasets import names

    if as_json:
        typer.echo(json.dumps(names(), indent=2))
        return
    for name, line in names().items():
        typer.echo(f"{name:16} {line}")
