"""`unbandit demonstrators` and `unbandit datasets`: the rules and the instances that come with the package."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from unbandit.cli import options

if TYPE_CHECKING:
    from unbandit.demonstrators import Demonstrator


def demonstrators(
    names: Annotated[list[str] | None, Argument(metavar="[RULE]...", help="Rules whose parameters to show.")] = None,
    as_json: bool = Option(False, "--json", help="Print their JSON schemas."),
) -> None:
    """List the rules that can be simulated and inverted; with a rule's name, its parameters.

    Example:  unbandit demonstrators ucb
    """
    from unbandit.demonstrators import parse_rule, rules

    chosen = {rule.name: type(rule) for rule in map(parse_rule, names)} if names else rules()
    if as_json:
        listed = {
            name: {"summary": rule.summary(), "parameters": rule.model_json_schema()["properties"]}
            for name, rule in chosen.items()
        }
        typer.echo(json.dumps(listed, indent=2))
        return
    column = max(map(len, chosen)) + 2
    for name, rule in chosen.items():
        typer.echo(f"{name:{column}}{rule.summary()}")
        if names:
            _print_parameters(rule)
    if not names:
        typer.echo("\nWith a name, a rule's parameters:  unbandit demonstrators ucb")


def _print_parameters(rule: "type[Demonstrator]") -> None:
    """Print a rule's parameters with their defaults, those that all rules share last."""
    fields = sorted(rule.model_fields.items(), key=lambda field: field[0] in {"ties", *rule.unwritten})
    for key, field in fields:
        usual = "" if field.default is None else f" (default {field.default})"
        typer.echo(f"  {key}: {field.description or ''}{usual}")


def datasets(as_json: options.Json = False) -> None:
    """List the built-in instances that `unbandit simulate` takes.

    Example:  unbandit datasets
    """
    from unbandit.datasets import names

    if as_json:
        typer.echo(json.dumps(names(), indent=2))
        return
    for name, line in names().items():
        typer.echo(f"{name:16} {line}")
