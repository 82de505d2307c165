"""`unbandit identify`: which rule made this log?"""

from __future__ import annotations

import json
import math
import warnings
from typing import TYPE_CHECKING

import typer

from unbandit.errors import AssumptionWarning, InferenceError, LogError, NotIdentifiable, ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from unbandit.identification import Identification
    from unbandit.identification.result import Contender
    from unbandit.inference import Posterior

__all__ = ["HELP", "identify"]

HELP = """Which rule made this log? Candidates weighed by how probable they make it, and the leading one checked.

LOG is read as by estimate; the order of its rounds must be known. A candidate with parameters is taken as it is; of a
bare name unknown parameters are averaged over a grid, which is shown; ucb:alpha=0|0.25 gives a grid of one's own. With
--values the arms' means and gaps follow, by the leading candidate, with intervals that hold what is not known of it.
"Cannot tell" is an answer too: the difference is then within the Monte-Carlo error, or the log is too short.

Example:  unbandit identify log.csv --candidates ucb,sae:alpha=0.25,thompson,uniform --sigma 0.5
"""

QUICK = 150
"""Particles of a cloud where a quick answer is enough."""

LONGEST = 76
"""Letters of a reason that the table shows."""


def identify(
    log: str = typer.Argument(..., metavar="LOG", help="The log, or - for standard input.", show_default=False),
    candidates: str = typer.Option(None, "--candidates", metavar="A,B:key=value,...", help="By default all that fit."),
    sigma: float = typer.Option(None, "--sigma", help="Standard deviation of a reward (default 1, with a warning)."),
    bernoulli: bool = typer.Option(False, "--bernoulli", help="Rewards were 0 or 1."),
    prior: str = typer.Option(None, "--prior", metavar="normal:mean=0,deviation=1", help="On every arm's mean."),
    horizon: int = typer.Option(None, "--horizon", help="The demonstrator's horizon, if the log is a beginning of it."),
    particles: int = typer.Option(None, "--particles", help="Of each cloud in the last heat; by default what fits."),
    quick: bool = typer.Option(False, "--quick", help="Take few particles, for a first look."),
    values: bool = typer.Option(False, "--values", help="Also what each arm was worth, by the leading candidate."),
    level: float = typer.Option(0.95, "--level", help="Level of the intervals of --values."),
    arms: str = typer.Option(None, "--arms", metavar="A,B,C", help="All arms there were, also those never pulled."),
    columns: str = typer.Option(None, "--columns", metavar="arm=...,round=...", help="Names of columns."),
    seed: int = typer.Option(0, "--seed", help="The same seed gives the same answer."),
    threads: int = typer.Option(None, "--threads", help="By default one a core; the answer does not depend on it."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    output: str = typer.Option(None, "--output", "-o", help="A picture (.png, .svg), a table (.csv ...) or .json."),
) -> None:
    """Read the log, weigh the candidates, print or write."""
    from unbandit import identification
    from unbandit.cli.first_start import say_if_first
    from unbandit.cli.options import arm_list, assignments
    from unbandit.cli.outputs import check_output, write_answer
    from unbandit.cli.posterior import posterior_table
    from unbandit.cli.tables import console
    from unbandit.log import ActionLog

    if quick and particles is not None:
        raise ParameterError("expected it or --particles, not both.", parameter="quick")
    if not 0 < level < 1:
        raise ParameterError(f"expected a number between 0 and 1; got {level}.", parameter="level")
    check_output(output)
    say_if_first()
    with console(error=True).status("Reading") as status, warnings.catch_warnings():
        record = ActionLog.read(log, columns=assignments("--columns", columns), arms=arm_list(arms))
        warnings.simplefilter("ignore", AssumptionWarning)  # they are said below
        try:
            answer = identification.identify(
                record, candidates, prior=prior, sigma=sigma, bernoulli=bernoulli, horizon=horizon,
                particles=QUICK if quick else particles, seed=seed, threads=threads, progress=status.update,
            )  # fmt: skip
        except LogError as error:
            raise error.at(path="standard input" if log == "-" else log) from None
        worth, missing = _worth(answer) if values else (None, "")
    if output is not None:
        write_answer(answer, output)
    if as_json:
        said = answer.to_dict() | (
            {} if not values else {"values": None if worth is None else worth.frame(level).to_dicts()}
        )
        typer.echo(json.dumps(said, indent=2, allow_nan=False))
        return
    _print(answer)
    if worth is not None:
        out = console()
        out.print(f"\nWhat the arms were worth under {worth.rule}, {level * 100:g}% intervals", style="bold")
        out.print(posterior_table(worth, level))
    for kind, notices in (("warning", answer.warnings), ("note", answer.notes)):
        for notice in notices:
            typer.echo(f"{kind}: {notice.message}", err=True)
    if missing:
        typer.echo(f"note: {missing}", err=True)
    if output is not None:
        typer.echo(f"{output}: written", err=True)


def _worth(answer: Identification) -> tuple[Posterior | None, str]:
    """Return the means under the leading candidate, averaged over what its parameters may be, or why there are none."""
    if len(answer.question.log) > 1:
        return None, "--values: the log has several demonstrations; in Python, posterior(demonstration=...) takes one."
    try:
        return answer.posterior(), ""
    except (NotIdentifiable, InferenceError) as error:
        return None, str(error)


def _print(answer: Identification) -> None:
    """Print the verdict, the candidates, the check, and the rounds that surprise."""
    from unbandit.cli.tables import console

    out, asked = console(), answer.question
    rewards = "rewards of 0 and 1" if asked.sigma is None else f"sigma {asked.sigma:g}"
    said = answer.answer()
    out.print(f"{said[0].upper()}{said[1:]}.", style="bold")
    out.print(_candidates(answer))
    out.print(f"Log evidence ± its Monte-Carlo error; {rewards}, prior {asked.prior}, all candidates equally likely.")
    for candidate in answer.candidates:
        if len(candidate.guesses) > 1:
            out.print(f"{candidate.name}: {_guesses(candidate)}")
    check = answer.check
    fits = "reproduces" if check.fits else "does not reproduce"
    out.print(
        f"\n{check.candidate} {fits} the record: p = {check.probability:.2g} in {check.simulations} simulations",
        style="bold",
    )
    out.print(_check(answer))
    if answer.surprises:
        several = len(asked.log) > 1
        rounds = (
            f"{row.round:,} (arm {row.arm}{f', demonstration {row.demonstration}' if several else ''}, "
            f"1 in {math.exp(-row.log_probability):,.3g})"
            for row in answer.surprises
        )
        out.print(f"Rounds that surprise it most: {', '.join(rounds)}.")


def _candidates(answer: Identification) -> Table:
    """Lay out the candidates, the most probable first."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("candidate", overflow="fold")
    for name in ("log evidence", "behind", "probability"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    best = answer.leading.weighed.value
    for candidate in answer.candidates:
        weighed = candidate.weighed
        if not candidate.possible:
            reason = candidate.reason or ""
            shown = reason if len(reason) <= LONGEST else reason[: LONGEST - 1] + "…"
            table.add_row(candidate.name, "-", "-", "0", f"cannot be: {shown}")
            continue
        left = "cannot be told apart" if len(answer.left) > 1 and candidate.name in answer.left else ""
        table.add_row(
            candidate.name,
            f"{weighed.value:,.1f} ± {weighed.error:.1f}",
            f"{best - weighed.value:,.1f}",
            f"{candidate.probability:.3f}" if candidate.probability >= 0.0005 else "< 0.001",
            left,
        )
    return table


def _guesses(candidate: Contender) -> str:
    """Write a candidate's grid, with how likely each set of parameters is after the log where it can be."""
    written = []
    for guess in candidate.guesses:
        share = f" {guess.share:.0%}" if candidate.possible else ""
        written.append(f"{_parameters(candidate, guess.rule.model_dump())}{share}")
    return " | ".join(written)


def _parameters(candidate: Contender, values: dict[str, object]) -> str:
    """Write what differs between a candidate's guesses; of those that are all alike, nothing."""
    every = [guess.rule.model_dump() for guess in candidate.guesses]
    differing = [key for key in values if any(other[key] != values[key] for other in every)]
    return ", ".join(
        f"{key} {value:g}" if isinstance(value := values[key], int | float) else f"{key} {value}" for key in differing
    )


def _check(answer: Identification) -> Table:
    """Lay out the record beside the simulations."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("", "record", "simulated", "95% of them", "as far out"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in answer.check.statistics:
        table.add_row(
            row.name, f"{row.observed:,.5g}", f"{row.median:,.5g}", f"{row.low:,.5g} to {row.high:,.5g}",
            f"{row.tail:.0%}" if row.tail >= 0.1 else f"{row.tail:.1%}",
        )  # fmt: skip
    return table
