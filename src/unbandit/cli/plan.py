"""`unbandit plan` and `unbandit leak`: how long must a rule run, and what does the log of its actions reveal?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from typer import Option

from unbandit.cli import options
from unbandit.cli import output as printer
from unbandit.cli.output import MOST_LINES, NUMBER, TEXT, WORD
from unbandit.formatting import short_numbers

if TYPE_CHECKING:
    from unbandit.planning import Leak, Plan

REVEALED = {
    "values": "The best arm can be found from {found} of the logs.",
    "best": "This rule's actions show which arm it judged best (the best one in {found} of the logs), but no values.",
    "nothing": "This rule's actions do not depend on the rewards, so they reveal nothing.",
}


def plan(
    rule: str = Option(
        ..., "--rule", help="The rule that will make the choices: name:key=value,... (see unbandit demonstrators)."
    ),
    within: float = Option(..., "--within", metavar="D", help="Required precision of the gaps."),
    instance: options.InstanceName = None,
    means: options.Means = None,
    sigma: options.MeansSigma = None,
    bernoulli: options.MeansBernoulli = False,
    arms: options.InstanceArms = None,
    level: options.Level = 0.95,
    longest: int = Option(100_000, "--longest", help="Longest horizon to simulate."),
    points: int = Option(12, "--points", help="Number of horizons to simulate."),
    runs: int = Option(200, "--runs", help="Simulated runs per horizon."),
    seed: options.Seed = 1,
    threads: options.Threads = None,
    as_json: bool = Option(False, "--json", help="Print JSON, including the curves."),
    output: options.Output = None,
) -> None:
    """Plan how long a rule must run to reveal its gaps.

    Prints the horizon at which each gap is known to within D, and the regret up to then.

    INSTANCE is a guess at the arms: a data set (see unbandit datasets), or --means with --sigma (or --bernoulli).
    Theory and simulation are shown side by side; -o plan.png draws both.

    Example:  unbandit plan linear --rule ucb:alpha=0.25 --within 0.1 -o plan.png
    """
    from unbandit import planning

    chosen = planning.rule_of_arms(rule)
    guessed = options.read_instance("plan", instance, means, sigma, bernoulli, arms)
    printer.check_output(output, *printer.PICTURES, ".json")
    with printer.working("Planning") as status:
        answer = planning.plan(
            guessed, chosen, within, level=level, longest=longest, points=points, runs=runs, seed=seed, threads=threads,
            progress=lambda horizon: status.update(f"Simulating {runs:,} x {horizon:,} rounds"),
        )  # fmt: skip
    if not printer.deliver(answer, output, as_json):
        return
    out = printer.console()
    out.print(f"{short_numbers(answer.rule)} on {answer.instance}: every gap to within {answer.within:g}", style="bold")
    numbers = printer.columns(NUMBER, "theory: rounds", "regret", "simulated: rounds", "regret")
    out.print(printer.new_table([("arm", TEXT), ("gap", NUMBER), ("known by", WORD), *numbers], _plan_rows(answer)))
    printer.say_left_out(out, len(answer.needs), "lines")
    out.print(f"Interval: half its length ({answer.level * 100:g}%) is at most {answer.within:g} in half of the runs.")
    out.print(f"Error: the root-mean-square error is at most {answer.within:g}. ± is the Monte-Carlo standard error.")
    out.print(f"All gaps by interval: {answer.answer('interval')}; by error: {answer.answer('error')}.")
    for note in answer.notes:
        typer.echo(f"note: {note}", err=True)


def _plan_rows(answer: "Plan") -> Iterator[tuple[str, ...]]:
    """Yield theory and simulation side by side, the arms in order of their gaps."""
    from unbandit.planning.result import amount, rounded

    for need in sorted(answer.needs, key=lambda need: need.gap)[:MOST_LINES]:
        simulated = f"not by {answer.curves.horizons[-1]:,.0f}"
        if need.horizon is not None:
            before = "by " if need.status == "earlier" else ""
            simulated = f"{before}{rounded(need.horizon)}{_error(need.horizon_error)}"
        yield (
            need.arm,
            f"{need.gap:.3g}",
            need.criterion,
            "more than 1e+12" if need.theory_horizon is None else rounded(need.theory_horizon),
            "-" if need.theory_regret is None else amount(need.theory_regret),
            simulated,
            "-" if need.regret is None else f"{amount(need.regret)}{_error(need.regret_error)}",
        )


def _error(error: float | None) -> str:
    if error is None:
        return ""
    return f" ± {error:,.2g}" if error < 100 else f" ± {error:,.0f}"


def leak(
    rule: str = Option(
        ..., "--rule", help="The rule that makes the log: name:key=value,... (see unbandit demonstrators)."
    ),
    horizon: int = Option(..., "--horizon", help="Number of rounds of the log."),
    instance: options.InstanceName = None,
    means: options.Means = None,
    sigma: options.MeansSigma = None,
    bernoulli: options.MeansBernoulli = False,
    arms: options.InstanceArms = None,
    runs: int = Option(400, "--runs", help="Number of simulated logs."),
    seed: options.Seed = 1,
    threads: options.Threads = None,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Measure how much the log of a rule's actions reveals.

    The unit is equivalent observed rewards per arm: the number of the arm's rewards that, if observed, would determine
    its mean as precisely as the log does for an outsider who knows the rule and the best mean. INSTANCE is a data set
    (see unbandit datasets), or --means with --sigma.

    Example:  unbandit leak linear --rule ucb:alpha=0.25 --horizon 5000 -o leak.png
    """
    from unbandit import planning

    chosen = planning.rule_of_arms(rule)
    faced = options.read_instance("leak", instance, means, sigma, bernoulli, arms)
    printer.check_output(output, *printer.PICTURES, ".json")
    with printer.working(f"Simulating {runs:,} x {horizon:,} rounds"):
        answer = planning.leak(faced, chosen, horizon, runs=runs, seed=seed, threads=threads)
    if not printer.deliver(answer, output, as_json):
        return
    out = printer.console()
    title = f"{short_numbers(answer.rule)} on {answer.instance}, {answer.horizon:,} rounds: what the log reveals"
    out.print(title, style="bold")
    numbers = printer.columns(NUMBER, "gap", "pulls", "estimated", "RMSE", "equivalent", "of its pulls")
    out.print(printer.new_table([("arm", TEXT), *numbers], _leak_rows(answer)))
    printer.say_left_out(out, len(answer.arms), "arms")
    out.print(REVEALED[answer.reveals].format(found="" if answer.found is None else f"{answer.found:.1%}"))
    if answer.reveals == "values":
        out.print(
            "Equivalent: the number of observed rewards of the arm that would determine its mean as well. "
            "± is the Monte-Carlo error."
        )


def _leak_rows(answer: "Leak") -> Iterator[tuple[str, ...]]:
    """Yield the arms in order of their gaps."""
    from unbandit.formatting import with_error

    for row in sorted(answer.arms, key=lambda row: row.gap)[:MOST_LINES]:
        yield (
            row.arm,
            f"{row.gap:.3g}",
            f"{row.pulls:,.0f}",
            "best" if row.equivalent is None else f"{row.estimated:.0%}",
            with_error(row.rmse, row.rmse_error),
            with_error(row.equivalent, row.equivalent_error),
            "-" if row.share is None else f"{row.share:.0%}" + (f" ± {row.share_error:.0%}" if row.share_error else ""),
        )
