"""Say why the first start takes longer."""

from __future__ import annotations

import typer

__all__ = ["say_if_first"]


def say_if_first() -> None:
    """Tell, on the error stream, that kernels are compiled on the first start of a version."""
    from unbandit.kernels.compile import cache_directory

    if not any(cache_directory().rglob("*.nbi")):
        typer.echo("Compiling the kernels: once for each version, half a minute or less.", err=True)
