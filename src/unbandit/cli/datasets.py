"""`unbandit datasets`: the instances there are."""

from __future__ import annotations

import typer

__all__ = ["HELP", "datasets"]

HELP = """List the built-in instances that `unbandit simulate` takes.

Example:  unbandit datasets
"""


def datasets(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """Print each data set's name and line."""
    from unbandit.datasets import names

    if as_json:
        import json

        typer.echo(json.dumps(names(), indent=2))
        return
    for name, line in names().items():
        typer.echo(f"{name:16} {line}")
