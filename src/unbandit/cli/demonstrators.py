"""`unbandit demonstrators`: the rules there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unbandit.demonstrators import Demonstrator

__all__ = ["HELP", "demonstrators"]

HELP = """List the rules that can be simulated and inverted; with a rule's name, its parameters.

Example:  unbandit demonstrators ucb
"""


def demonstrators(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[RULE]...", help="Rules to show with their parameters.")
    ] = None,
    as_json: bool = typer.Option(False, "--json", help="Print their JSON schemas."),
) -> None:
    """Print each rule's name and line; of those that are named, the parameters too."""
    from unbandit.demonstrators import parse_rule, rules

    chosen = {rule.name: type(rule) for rule in map(parse_rule, names)} if names else rules()
    if as_json:
        import json

        listed = {name: {"summary": rule.summary(), "parameters": rule.model_json_schema()["properties"]}
                  for name, rule in chosen.items()}  # fmt: skip
        typer.echo(json.dumps(listed, indent=2))
        return
    column = max(map(len, chosen)) + 2
    for name, rule in chosen.items():
        typer.echo(f"{name:{column}}{rule.summary()}")
        if names:
            _print_parameters(rule)
    if not names:
        typer.echo("\nWith a name, a rule's parameters:  unbandit demonstrators ucb")


def _print_parameters(rule: type[Demonstrator]) -> None:
    """Print a rule's parameters, its own first, with the values that they have unless given."""
    fields = sorted(rule.model_fields.items(), key=lambda field: field[0] in {"ties", *rule.unwritten})
    for key, field in fields:
        usual = "" if field.default is None else f" (default {field.default})"
        typer.echo(f"  {key}: {field.description or ''}{usual}")
