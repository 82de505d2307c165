"""Which device a command simulates on: what is asked, what a folder already has, and what is said of the choice."""

from __future__ import annotations

import json
from pathlib import Path

import typer

__all__ = ["DEVICE", "chosen_device", "folder_device"]

DEVICE = "cpu, cuda (a GPU), or auto: a GPU if there is one and the work is worth it."


def chosen_device(device: str, rounds: int) -> str:
    """Settle the device for so many rounds, and say so where it was left open and a GPU is taken."""
    from unbandit.devices import settled

    chosen, said = settled(device, rounds)
    if said is not None:
        typer.echo(said, err=True)
    return chosen


def folder_device(description: Path, device: str) -> str:
    """Return the device of what a folder already holds, where it was left open: it goes on as it began."""
    if device != "auto":
        return device
    try:
        had = json.loads(description.read_text(encoding="utf-8")).get("device")
    except (OSError, ValueError, AttributeError):
        return device
    return str(had) if had in ("cpu", "cuda") else device
