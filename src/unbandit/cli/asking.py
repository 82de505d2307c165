"""What `estimate` and `report` both ask: the log, the rule, and all that bears on the answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from unbandit.errors import ParameterError

if TYPE_CHECKING:
    from unbandit.demonstrators import Demonstrator

__all__ = ["Question", "asking"]


_LOGS = typer.Argument(
    ..., metavar="LOG", help="The log: files, a folder, a pattern, or - for standard input.", show_default=False
)


@dataclass(frozen=True)
class Question:
    """Hold what was asked in the shell, read and checked as far as goes without the log.

    Attributes
    ----------
    logs
        The paths of the log, or "-".
    rule
        The demonstrator.
    options
        What `estimators.estimate` takes beside them.
    columns, arms
        What `ActionLog.read` takes beside the path.
    seed
        As it was given, also where the method draws nothing.
    """

    logs: tuple[str, ...]
    rule: Demonstrator
    options: dict[str, Any]
    columns: dict[str, str] | None
    arms: list[str] | None
    seed: int | None

    @property
    def log(self) -> str:
        """Return the path of the log where only one will do: a file, a folder, a pattern or "-"."""
        if len(self.logs) > 1:
            raise ParameterError(
                f"LOG: expected one file here, or a folder; got {len(self.logs)}: {', '.join(self.logs[:3])} ... "
                "Put them in a folder, or a pattern that they match in quotes."
            )
        return self.logs[0]

    @property
    def name(self) -> str:
        """Return what messages call the log."""
        more = f" and {len(self.logs) - 1} more" if len(self.logs) > 1 else ""
        return "standard input" if self.logs == ("-",) else self.logs[0] + more


def _question(
    logs: list[str] = _LOGS,
    rule: str = typer.Option(..., "--rule", help="Who made it: name:key=value,... (see: unbandit demonstrators)"),
    method: str = typer.Option(
        None, "--method", help="switching, posterior, counts, naive or bootstrap; by default what fits."
    ),
    best_mean: float = typer.Option(None, "--best-mean", help="The best arm's mean, if known: gives means, not gaps."),
    anchor: str = typer.Option(None, "--anchor", metavar="ARM=VALUE", help="Instead: any one arm's known mean."),
    scale: str = typer.Option("known", "--scale", help="unknown: the width's factor is not known; gives ratios."),
    reference: str = typer.Option(None, "--reference", metavar="ARM", help="The arm that ratios are counted in."),
    horizon: int = typer.Option(None, "--horizon", help="The demonstrator's horizon, if the log is a beginning of it."),
    level: float = typer.Option(0.95, "--level", help="Level of the intervals."),
    sigma: float = typer.Option(None, "--sigma", help="Standard deviation of a reward, for the intervals."),
    bernoulli: bool = typer.Option(False, "--bernoulli", help="Rewards were 0 or 1."),
    constant: float = typer.Option(None, "--constant", help="Constant of the naive estimator."),
    arms: str = typer.Option(None, "--arms", metavar="A,B,C", help="All arms there were, also those never pulled."),
    columns: str = typer.Option(None, "--columns", metavar="arm=...,round=...", help="Names of columns."),
    pool: bool = typer.Option(False, "--pool", help="All demonstrations are of one instance: combine them."),
    prior: str = typer.Option(None, "--prior", help="Of the posterior: normal:mean=0,deviation=1 or beta:..."),
    particles: int = typer.Option(None, "--particles", help="Of the posterior: particles of each cloud."),
    resamples: int = typer.Option(None, "--resamples", help="Simulations of the bootstrap; 1,000 by default."),
    seed: int = typer.Option(None, "--seed", help="For methods that draw random numbers; kept in the JSON."),
) -> Question:
    """Read the options; a seed reaches the estimator only where it draws."""
    from unbandit.cli.options import anchor_from, arm_list, assignments
    from unbandit.demonstrators import parse_rule
    from unbandit.estimators.request import draws

    assumed = parse_rule(rule)
    options: dict[str, Any] = {
        "method": method,
        "best_mean": best_mean,
        "anchor": anchor_from(anchor),
        "scale": scale,
        "reference": reference,
        "horizon": horizon,
        "level": level,
        "sigma": sigma,
        "bernoulli": bernoulli,
        "constant": constant,
        "pool": pool,
        "resamples": resamples,
        "prior": prior,
        "particles": particles,
    }
    if draws(method, assumed):
        options["seed"] = seed
    return Question(tuple(logs), assumed, options, assignments("--columns", columns), arm_list(arms), seed)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command whose first parameter is a `Question` the options that it is made of, before its own."""
    shared, own = (inspect.signature(function).parameters for function in (_question, command))
    mine = list(own.values())[1:]

    def run(**given: Any) -> None:
        command(_question(**{name: given.pop(name) for name in shared}), **given)

    hints = get_type_hints(_question) | get_type_hints(command)
    parameters = [*shared.values(), *mine]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    )
    run.__annotations__ = {each.name: hints[each.name] for each in parameters}
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    return run
