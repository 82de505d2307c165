"""`unbandit identify`: which rule made this log?"""

from __future__ import annotations

import json
import math
import warnings
from typing import TYPE_CHECKING

import typer
from typer import Option

from unbandit.cli import options
from unbandit.cli.options import log_name, read_names, read_pairs
from unbandit.errors import (
    AssumptionWarning,
    InferenceError,
    LogError,
    NotIdentifiable,
    ParameterError,
    option,
    phrase,
    shell_option,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from unbandit.identification import Identification
    from unbandit.identification.evidence import Contender
    from unbandit.inference import Posterior

QUICK_PARTICLES = 150
"""Particles per cloud with --quick."""

LONGEST_REASON = 76
"""Characters of a reason that the table shows."""


def identify(
    log: options.Log,
    candidates: str = Option(None, "--candidates", metavar="A,B:key=value,...", help="By default all that fit."),
    sigma: float = Option(None, "--sigma", help="Standard deviation of a reward (default 1, with a warning)."),
    bernoulli: options.BernoulliRewards = False,
    prior: str = Option(None, "--prior", metavar="normal:mean=0,deviation=1", help="On every arm's mean."),
    horizon: options.Horizon = None,
    particles: int = Option(None, "--particles", help="Per cloud in the last heat; by default what fits."),
    quick: bool = Option(False, "--quick", help="Take few particles, for a first look."),
    values: bool = Option(False, "--values", help="Also what each arm was worth, by the leading candidate."),
    level: float = Option(0.95, "--level", help="Level of the intervals of --values."),
    arms: options.Arms = None,
    columns: options.Columns = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Which rule made this log? Candidates weighed by how probable they make it, and the leading one checked.

    LOG is read as by estimate; the order of its rounds must be known. A candidate with parameters is taken as given;
    the unknown parameters of a bare name are averaged over a grid, which is shown; ucb:alpha=0|0.25 sets the grid. With
    --values the arms' means and gaps follow, under the leading candidate, with intervals that include the uncertainty
    about its parameters. "Cannot tell" is an answer too: the difference is within the Monte-Carlo error, or the log is
    too short.

    Example:  unbandit identify log.csv --candidates ucb,sae:alpha=0.25,thompson,uniform --sigma 0.5
    """
    from unbandit import checks, identification
    from unbandit.cli.output import PICTURES, announce_compilation, check_output, console, deliver
    from unbandit.log import ActionLog

    if quick and particles is not None:
        raise ParameterError(f"expected it or {option('particles')}, not both.", parameter="quick")
    checks.level(level)
    check_output(output, *PICTURES, ".json")
    announce_compilation()
    with console(error=True).status("Reading") as status, warnings.catch_warnings():
        record = ActionLog.read(log, columns=read_pairs("columns", columns), arms=read_names("arms", arms))
        warnings.simplefilter("ignore", AssumptionWarning)  # they are printed below
        try:
            answer = identification.identify(
                record, candidates, prior=prior, sigma=sigma, bernoulli=bernoulli, horizon=horizon,
                particles=QUICK_PARTICLES if quick else particles, seed=seed, threads=threads, progress=status.update,
            )  # fmt: skip
        except LogError as error:
            raise error.at(path=log_name(log)) from None
        worth, missing = _worth(answer) if values else (None, "")

    def json_text() -> str:
        rows = {"values": None if worth is None else worth.frame(level).to_dicts()} if values else {}
        return json.dumps(answer.to_dict() | rows, indent=2, allow_nan=False)

    deliver(answer, output, as_json, lambda out: _print(out, answer, worth, missing, level), json_text)


def _worth(answer: Identification) -> tuple[Posterior | None, str]:
    """Return the means under the leading candidate, averaged over its parameters, or why there are none."""
    if len(answer.question.log) > 1:
        return None, (
            f"{shell_option('values')}: the log has several demonstrations; in Python, posterior(demonstration=...) "
            "takes one."
        )
    try:
        return answer.posterior(), ""
    except (NotIdentifiable, InferenceError) as error:
        return None, error.phrased(shell_option)


def _print(out: Console, answer: Identification, worth: Posterior | None, missing: str, level: float) -> None:
    from unbandit.cli.posterior import posterior_table

    _print_candidates(out, answer)
    if worth is not None:
        out.print(f"\nWhat the arms were worth under {worth.rule}, {level * 100:g}% intervals", style="bold")
        out.print(posterior_table(worth, level))
    for kind, notices in (("warning", answer.warnings), ("note", answer.notes)):
        for notice in notices:
            typer.echo(f"{kind}: {phrase(notice.text, shell_option)}", err=True)
    if missing:
        typer.echo(f"note: {missing}", err=True)


def _print_candidates(out: Console, answer: Identification) -> None:
    """Print the verdict, the candidates, the check, and the most surprising rounds."""
    from unbandit.instance import Bernoulli

    asked = answer.question
    rewards = "rewards of 0 and 1" if isinstance(asked.noise, Bernoulli) else f"sigma {asked.noise.sigma:g}"
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
    """Return the candidates, the most probable first."""
    from unbandit.cli.output import NUMBER, TEXT, new_table

    numbers = ("log evidence", "behind", "probability")
    table = new_table(("candidate", TEXT), *((name, NUMBER) for name in numbers), ("", {}))
    best = answer.leading.evidence.value
    for candidate in answer.candidates:
        evidence = candidate.evidence
        if not candidate.possible:
            reason = candidate.reason or ""
            shown = reason if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"
            table.add_row(candidate.name, "-", "-", "0", f"cannot be: {shown}")
            continue
        left = "cannot be told apart" if len(answer.left) > 1 and candidate.name in answer.left else ""
        table.add_row(
            candidate.name,
            f"{evidence.value:,.1f} ± {evidence.error:.1f}",
            f"{best - evidence.value:,.1f}",
            f"{candidate.probability:.3f}" if candidate.probability >= 0.0005 else "< 0.001",
            left,
        )
    return table


def _guesses(candidate: Contender) -> str:
    """Write a candidate's grid, with the posterior probability of each set of parameters."""
    written = []
    for guess in candidate.guesses:
        share = f" {guess.share:.0%}" if candidate.possible else ""
        written.append(f"{_parameters(candidate, guess.rule.model_dump())}{share}")
    return " | ".join(written)


def _parameters(candidate: Contender, values: dict[str, object]) -> str:
    """Write the parameters that differ between a candidate's guesses."""
    every = [guess.rule.model_dump() for guess in candidate.guesses]
    differing = [key for key in values if any(other[key] != values[key] for other in every)]
    return ", ".join(
        f"{key} {value:g}" if isinstance(value := values[key], int | float) else f"{key} {value}" for key in differing
    )


def _check(answer: Identification) -> Table:
    """Return the log beside the simulations."""
    from unbandit.cli.output import NUMBER, WORD, new_table

    numbers = ("record", "simulated", "95% of them", "as far out")
    table = new_table(("", WORD), *((name, NUMBER) for name in numbers))
    for row in answer.check.statistics:
        table.add_row(
            row.name, f"{row.observed:,.5g}", f"{row.median:,.5g}", f"{row.low:,.5g} to {row.high:,.5g}",
            f"{row.tail:.0%}" if row.tail >= 0.1 else f"{row.tail:.1%}",
        )  # fmt: skip
    return table
