"""Which device a command simulates on: the option, what a folder already has, and the note about the choice."""

from __future__ import annotations

import json

import typer

DEVICE = "cpu, cuda (a GPU), or auto: a GPU if there is one and the work is worth it."


def chosen_device(device: str, rounds: int) -> str:
    """Choose the device for a number of rounds, and print a note if a GPU is chosen automatically."""
    from unbandit.devices import choose_device

    chosen, said = choose_device(device, rounds)
    if said is not None:
        typer.echo(said, err=True)
    return chosen


def folder_device(folder: str, description: str, device: str, executor: str) -> str:
    """Return the device option or, if it is `auto`, the device that the folder was begun on.

    `description` is the name of the file that describes the folder's contents. A cluster uses its CPUs: which GPUs its
    workers have cannot be seen from here.
    """
    if device != "auto":
        return device
    begun = folder_has(folder, description, "device")
    return begun if begun in ("cpu", "cuda") else device if executor == "threads" else "cpu"


def folder_has(folder: str, description: str, key: str) -> str | None:
    """Return the value of a key in the description of a folder; None if there is none."""
    from unbandit.errors import UnbanditError
    from unbandit.study.storage import storage_at

    try:
        value = json.loads(storage_at(folder).read(description)).get(key)
    except (OSError, ValueError, AttributeError, UnbanditError):
        return None  # refused where the folder is used
    return None if value is None else str(value)
