"""`unbandit demonstrators`: the rules there are."""

from __future__ import annotations

import typer

__all__ = ["HELP", "demonstrators"]

HELP = """List the rules that can be simulated and inverted, with their parameters.

Example:  unbandit demonstrators
"""


def demonstrators(as_json: bool = typer.Option(False, "--json", help="Print their JSON schemas.")) -> None:
    """Print each rule's name, line and parameters."""
    from unbandit.demonstrators import rules

    if as_json:
        import json

        listed = {name: {"summary": rule.summary(), "parameters": rule.model_json_schema()["properties"]}
                  for name, rule in rules().items()}  # fmt: skip
        typer.echo(json.dumps(listed, indent=2))
        return
    for name, rule in rules().items():
        typer.echo(f"{name:12} {rule.summary()}")
        for key, field in rule.model_fields.items():
            usual = "" if field.default is None else f" (default {field.default})"
            typer.echo(f"{'':12}   {key}: {field.description or ''}{usual}")
